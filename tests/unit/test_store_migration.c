/* devicemgr/store/store_schema.c of a release to come, with a schema one step further, on files of
 * this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "devicemgr/store/store.h"
#include "devicemgr/store/store_db.h"

#define SCHEMA_VERSION 1 /* of this release */

/* The release to come: the same files with STORE_SCHEMA_NEXT, loaded apart from this one's. */
static struct {
    int (*open)(const struct store_options *options, struct store **out, char *err,
                size_t err_bytes);
    void (*load)(struct store *store, void (*each)(void *user, const struct devicemgr_record *),
                 void *user);
    bool (*lost_rows)(const struct store *store);
    int (*commit)(struct store *store, const struct devicemgr_record *records, size_t records_len,
                  char *err, size_t err_bytes);
    void (*close)(struct store *store);
} next;

static int load_next(void **state)
{
    void *module = dlopen(STORE_NEXT, RTLD_NOW | RTLD_LOCAL);

    (void)state;
    if (!module)
        fail_msg("%s", dlerror());
    *(void **)&next.open = dlsym(module, "store_open");
    *(void **)&next.load = dlsym(module, "store_load");
    *(void **)&next.lost_rows = dlsym(module, "store_lost_rows");
    *(void **)&next.commit = dlsym(module, "store_commit");
    *(void **)&next.close = dlsym(module, "store_close");
    assert_true(next.open && next.load && next.lost_rows && next.commit && next.close);
    assert_ptr_not_equal(next.open, store_open);
    return 0;
}

static char dir[64];
static char error[STORE_ERROR_BYTES_MAX];
static char report[1024]; /* the last one */
static unsigned reports;

static void note_report(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    snprintf(report, sizeof report, "%s", text);
    reports++;
}

static const struct store_options OPTIONS = {.dir = dir, .boot_id = "b", .report = note_report};
static const struct devicemgr_record POD = {DEVICEMGR_RECORD_POD, {"p", "", ""}, "pod", 3};

static void count_row(void *user, const struct devicemgr_record *row)
{
    assert_string_equal(row->key[0], "p");
    assert_memory_equal(row->value, "pod", 3);
    ++*(unsigned *)user;
}

static void path_of(char out[128], const char *suffix)
{
    snprintf(out, 128, "%s/" STORE_FILE "%s", dir, suffix);
}

/* Removes what was set aside, and says how many that were. */
static unsigned remove_aside(void)
{
    DIR *entries = opendir(dir);
    char path[512];
    unsigned n = 0;

    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strncmp(entry->d_name, STORE_FILE ".newer-", strlen(STORE_FILE ".newer-")) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        unlink(path);
        n += strstr(path, "-wal") == NULL && strstr(path, "-shm") == NULL;
    }
    closedir(entries);
    return n;
}

/* A file of this release, with one row. */
static int set_up(void **state)
{
    struct store *store;

    (void)state;
    strcpy(dir, "/tmp/test_store_migration.XXXXXX");
    reports = 0;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(store_open(&OPTIONS, &store, error, sizeof error), 0);
    assert_int_equal(store_commit(store, &POD, 1, error, sizeof error), 0);
    store_close(store);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const SUFFIXES[] = {"", "-wal", "-shm", "-journal", ".new"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        path_of(path, SUFFIXES[i]);
        unlink(path);
    }
    return rmdir(dir);
}

static void assert_version(int expected)
{
    char path[128];
    sqlite3 *db;
    int version = 0;

    path_of(path, "");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(store_db_query_int(db, "PRAGMA user_version", &version), SQLITE_OK);
    assert_int_equal(version, expected);
    assert_int_equal(store_db_exec(db, "SELECT colour FROM pods") == SQLITE_OK,
                     expected == SCHEMA_VERSION + 1);
    sqlite3_close(db);
}

static void an_older_file_is_lifted_with_its_rows(void **state)
{
    struct store *store;

    (void)state;
    for (int start = 0; start < 2; start++) {
        unsigned rows = 0;

        assert_int_equal(next.open(&OPTIONS, &store, error, sizeof error), 0);
        next.load(store, count_row, &rows);
        assert_int_equal(rows, 1);
        assert_false(next.lost_rows(store));
        assert_int_equal(next.commit(store, &POD, 1, error, sizeof error), 0);
        next.close(store);
        assert_version(SCHEMA_VERSION + 1);
    }
    assert_int_equal(reports, 0);
}

static void a_new_file_has_every_step(void **state)
{
    struct store *store;
    char path[128];

    (void)state;
    path_of(path, "");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(next.open(&OPTIONS, &store, error, sizeof error), 0);
    next.close(store);
    assert_version(SCHEMA_VERSION + 1);
}

/* Taken back to the older release: it begins anew, says so, and knows that it has lost rows. The
 * newer one goes on from there, not from what it had left. */
static void back_and_forth_costs_no_start(void **state)
{
    static const struct devicemgr_record other[] = {
        {DEVICEMGR_RECORD_POD, {"p", "", ""}, "pod", 3},
        {DEVICEMGR_RECORD_LOSS, {"rows_lost", "", ""}, NULL, 0}};
    struct store *store;
    unsigned rows = 0;

    (void)state;
    for (unsigned trip = 0; trip < 2; trip++) {
        assert_int_equal(next.open(&OPTIONS, &store, error, sizeof error), 0);
        next.close(store);
        assert_version(SCHEMA_VERSION + 1);
        assert_int_equal(store_open(&OPTIONS, &store, error, sizeof error), 0);
        assert_int_equal(reports, trip + 1);
        assert_non_null(strstr(report, "is a newer release's (it has schema version 2, and this "
                                       "program knows up to 1); it was set aside as "));
        rows = 0;
        store_load(store, count_row, &rows);
        assert_int_equal(rows, 0);
        assert_true(store_lost_rows(store));
        assert_int_equal(store_commit(store, other, 2, error, sizeof error), 0);
        store_close(store);
        assert_version(SCHEMA_VERSION);
    }
    assert_int_equal(next.open(&OPTIONS, &store, error, sizeof error), 0);
    next.load(store, count_row, &rows);
    assert_int_equal(rows, 1);
    assert_false(next.lost_rows(store));
    next.close(store);
    assert_int_equal(remove_aside(), 2);
}

/* One that another process has open is waited for, whatever version it is. */
static void count_looked_at(void *user, const struct devicemgr_record *row, bool good)
{
    assert_true(good);
    count_row(user, row);
}

/* Nor is it set aside by who only looks. */
static void a_newer_one_is_not_looked_into(void **state)
{
    struct store_found found;
    struct store *store;
    char path[128];
    unsigned rows = 0;

    (void)state;
    path_of(path, "");
    assert_int_equal(store_look_at(path, &found, count_looked_at, &rows, error, sizeof error), 0);
    assert_int_equal(rows, 1);
    assert_int_equal(next.open(&OPTIONS, &store, error, sizeof error), 0);
    next.close(store);
    assert_int_equal(store_look_at(path, &found, count_looked_at, &rows, error, sizeof error), -1);
    assert_non_null(strstr(error, "it has schema version 2, and this program knows up to 1"));
    assert_version(SCHEMA_VERSION + 1);
    assert_int_equal(remove_aside(), 0);
    assert_int_equal(rows, 1);
}

static void a_newer_one_that_is_in_use_is_left_alone(void **state)
{
    struct store *store, *other;

    (void)state;
    assert_int_equal(next.open(&OPTIONS, &store, error, sizeof error), 0);
    assert_int_equal(store_open(&OPTIONS, &other, error, sizeof error), -1);
    assert_non_null(strstr(error, "another process has it open"));
    next.close(store);
    assert_version(SCHEMA_VERSION + 1);
    assert_int_equal(remove_aside(), 0);
}

static void a_lift_that_fails_leaves_the_older_file(void **state)
{
    struct rlimit old, none;
    struct store *store;
    unsigned rows = 0;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(next.open(&OPTIONS, &store, error, sizeof error), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(reports, 0);
    assert_version(SCHEMA_VERSION);
    assert_int_equal(store_open(&OPTIONS, &store, error, sizeof error), 0);
    store_load(store, count_row, &rows);
    assert_int_equal(rows, 1);
    store_close(store);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(an_older_file_is_lifted_with_its_rows),
        STORE_TEST(a_new_file_has_every_step),
        STORE_TEST(back_and_forth_costs_no_start),
        STORE_TEST(a_newer_one_is_not_looked_into),
        STORE_TEST(a_newer_one_that_is_in_use_is_left_alone),
        STORE_TEST(a_lift_that_fails_leaves_the_older_file),
    };

    return cmocka_run_group_tests(tests, load_next, NULL);
}
