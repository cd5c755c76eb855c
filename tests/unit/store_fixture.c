#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store_fixture.h"

void note_report(void *user, int level, const char *text)
{
    struct fixture *f = user;

    (void)level;
    f->reports++;
    snprintf(f->last_report, sizeof f->last_report, "%s", text);
}

static void note_record(void *user, const struct devicemgr_record *record)
{
    struct loaded *loaded = user;
    size_t n = record->value_bytes;

    assert_true(loaded->len < RECORDS_MAX);
    assert_non_null(record->value);
    loaded->rows[loaded->len].kind = record->kind;
    for (int i = 0; i < 3; i++)
        snprintf(loaded->rows[loaded->len].key[i], 64, "%s", record->key[i]);
    memcpy(loaded->rows[loaded->len].value, record->value, n < 64 ? n : 64);
    loaded->rows[loaded->len].value_bytes = n;
    loaded->len++;
}

void remove_files(const char *dir)
{
    DIR *stream = opendir(dir);
    char path[PATH_MAX];

    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (stream)
        closedir(stream);
}

int store_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f)
        return -1;
    snprintf(f->dir, sizeof f->dir, "/tmp/test_store.XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->file, sizeof f->file, "%s/" STORE_FILE, f->dir);
    *state = f;
    return 0;
}

int store_teardown(void **state)
{
    struct fixture *f = *state;
    int rc;

    remove_files(f->dir);
    rc = rmdir(f->dir);
    free(f);
    return rc;
}

struct store *open_store(struct fixture *f)
{
    struct store_options options = {
        .dir = f->dir, .boot_id = "boot-1", .report = note_report, .user = f};
    struct store *store;

    f->reports = 0;
    f->last_report[0] = '\0';
    if (store_open(&options, &store, f->error, sizeof f->error) < 0)
        return NULL;
    return store;
}

struct store *open_and_load(struct fixture *f)
{
    struct store *store = open_store(f);

    if (!store)
        fail_msg("%s", f->error);
    memset(&f->loaded, 0, sizeof f->loaded);
    store_load(store, note_record, &f->loaded);
    return store;
}

struct devicemgr_record store_record(enum devicemgr_record_kind kind, const char *a, const char *b,
                                     const char *c, const char *value)
{
    return (struct devicemgr_record){
        .kind = kind, .key = {a, b, c}, .value = value, .value_bytes = value ? strlen(value) : 0};
}

int try_commit(struct fixture *f, struct store *store, const struct devicemgr_record *records,
               size_t n)
{
    return store_commit(store, records, n, f->error, sizeof f->error);
}

void must_commit(struct fixture *f, struct store *store, const struct devicemgr_record *records,
                 size_t n)
{
    if (try_commit(f, store, records, n) < 0)
        fail_msg("%s", f->error);
}

const char *find_loaded(const struct fixture *f, enum devicemgr_record_kind kind, const char *key)
{
    for (size_t i = 0; i < f->loaded.len; i++) {
        if (f->loaded.rows[i].kind == kind && strcmp(f->loaded.rows[i].key[0], key) == 0)
            return f->loaded.rows[i].value;
    }
    return NULL;
}

static const char *sample_key(size_t i)
{
    static const char *const keys[] = {"a/0", "a/1", "a/2", "a/3", "a/4",
                                       "a/5", "a/6", "a/7", "a/8", "a/9"};

    return keys[i % 10];
}

void commit_samples(struct fixture *f)
{
    struct devicemgr_record records[SAMPLES];
    struct store *store = open_and_load(f);

    for (size_t i = 0; i < SAMPLES; i++)
        records[i] =
            store_record((enum devicemgr_record_kind)(i / 10), sample_key(i),
                         i / 10 == 1 ? "main" : "", i / 10 == 1 ? "v.com/gpu" : "", sample_key(i));
    must_commit(f, store, records, SAMPLES);
    store_close(store);
}

/* Whatever the damage: no row that was never written, none lost without a word, and it goes on. */
void assert_sound(struct fixture *f, const char *what, size_t where)
{
    struct devicemgr_record next = store_record(DEVICEMGR_RECORD_POD, "next", "", "", "next");
    struct store *store = open_and_load(f);
    size_t len = f->loaded.len;

    for (size_t i = 0; i < len; i++) {
        if (strcmp(f->loaded.rows[i].key[0], f->loaded.rows[i].value) != 0)
            fail_msg("%s at %zu: a row that was never written", what, where);
    }
    if (len > SAMPLES || (len < SAMPLES && f->reports == 0))
        fail_msg("%s at %zu: %zu rows and %u reports", what, where, len, f->reports);
    must_commit(f, store, &next, 1);
    store_close(store);
    store = open_and_load(f);
    if (f->reports != 0 || f->loaded.len != len + 1)
        fail_msg("%s at %zu: not healed: %s", what, where, f->last_report);
    store_close(store);
}

struct bytes read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct bytes bytes = {malloc(1 << 20), 0};

    assert_non_null(file);
    assert_non_null(bytes.at);
    bytes.len = fread(bytes.at, 1, 1 << 20, file);
    assert_true(feof(file));
    fclose(file);
    return bytes;
}

void write_whole(const char *path, const void *at, size_t len)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(at, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

unsigned count_set_aside(const struct fixture *f)
{
    DIR *stream = opendir(f->dir);
    unsigned n = 0;

    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        n += strncmp(entry->d_name, STORE_FILE ".damaged-", strlen(STORE_FILE ".damaged-")) == 0;
    closedir(stream);
    return n;
}

void lower_limit(int resource, rlim_t value, struct rlimit *old)
{
    struct rlimit now;

    assert_int_equal(getrlimit(resource, old), 0);
    now = *old;
    now.rlim_cur = value;
    assert_int_equal(setrlimit(resource, &now), 0);
}
