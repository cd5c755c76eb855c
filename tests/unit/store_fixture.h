/* A store in a directory of its own, what it loads and reports, and files to damage. */
#ifndef TEST_STORE_FIXTURE_H
#define TEST_STORE_FIXTURE_H

#include <stddef.h>
#include <sys/resource.h>

#include "devicemgr/store/store.h"

#define RECORDS_MAX 64
/* Ten resources, ten allocations, ten pods, ten orders; each value names its key. */
#define SAMPLES 40

struct loaded {
    struct {
        enum devicemgr_record_kind kind;
        char key[3][64];
        char value[64];
        size_t value_bytes;
    } rows[RECORDS_MAX];
    size_t len;
};

struct fixture {
    char dir[64];
    char file[128];
    unsigned reports;
    char last_report[1024];
    char error[STORE_ERROR_BYTES_MAX];
    struct loaded loaded;
};

struct bytes {
    unsigned char *at;
    size_t len;
};

void note_report(void *user, int level, const char *text);
void remove_files(const char *dir);
int store_setup(void **state);
int store_teardown(void **state);
struct store *open_store(struct fixture *f);
struct store *open_and_load(struct fixture *f);
struct devicemgr_record store_record(enum devicemgr_record_kind kind, const char *a, const char *b,
                                     const char *c, const char *value);
int try_commit(struct fixture *f, struct store *store, const struct devicemgr_record *records,
               size_t n);
void must_commit(struct fixture *f, struct store *store, const struct devicemgr_record *records,
                 size_t n);
const char *find_loaded(const struct fixture *f, enum devicemgr_record_kind kind, const char *key);
void commit_samples(struct fixture *f);
/* Whatever the damage: no row that was never written, none lost without a word, and it goes on. */
void assert_sound(struct fixture *f, const char *what, size_t where);
struct bytes read_whole(const char *path);
void write_whole(const char *path, const void *at, size_t len);
void run_sql(const char *path, const char *sql);
unsigned count_set_aside(const struct fixture *f);
/* `old`: what setrlimit() takes to put it back. */
void lower_limit(int resource, rlim_t value, struct rlimit *old);

#endif
