/* devicemgr/store.c: the checkpoint on real files, whole, damaged, full and killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <zlib.h>

#include "devicemgr/store.h"

#define RECORDS_MAX 64

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

static void note_report(void *user, int level, const char *text)
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

/* ---- fixture: a directory of its own, gone afterwards ---- */

static void remove_files(const char *dir)
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

static int set_up(void **state)
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

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int rc;

    remove_files(f->dir);
    rc = rmdir(f->dir);
    free(f);
    return rc;
}

static struct store *open_store(struct fixture *f)
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

static struct store *open_and_load(struct fixture *f)
{
    struct store *store = open_store(f);

    if (!store)
        fail_msg("%s", f->error);
    memset(&f->loaded, 0, sizeof f->loaded);
    store_load(store, note_record, &f->loaded);
    return store;
}

static struct devicemgr_record record(enum devicemgr_record_kind kind, const char *a, const char *b,
                                      const char *c, const char *value)
{
    return (struct devicemgr_record){
        .kind = kind, .key = {a, b, c}, .value = value, .value_bytes = value ? strlen(value) : 0};
}

static int commit(struct fixture *f, struct store *store, const struct devicemgr_record *records,
                  size_t n)
{
    return store_commit(store, records, n, f->error, sizeof f->error);
}

static void must_commit(struct fixture *f, struct store *store,
                        const struct devicemgr_record *records, size_t n)
{
    if (commit(f, store, records, n) < 0)
        fail_msg("%s", f->error);
}

static const char *find(const struct fixture *f, enum devicemgr_record_kind kind, const char *key)
{
    for (size_t i = 0; i < f->loaded.len; i++) {
        if (f->loaded.rows[i].kind == kind && strcmp(f->loaded.rows[i].key[0], key) == 0)
            return f->loaded.rows[i].value;
    }
    return NULL;
}

/* Ten resources, ten allocations, ten pods; each value names its key. */
#define SAMPLES 30
static const char *sample_key(size_t i)
{
    static const char *const keys[] = {"a/0", "a/1", "a/2", "a/3", "a/4",
                                       "a/5", "a/6", "a/7", "a/8", "a/9"};

    return keys[i % 10];
}

static void commit_samples(struct fixture *f)
{
    struct devicemgr_record records[SAMPLES];
    struct store *store = open_and_load(f);

    for (size_t i = 0; i < SAMPLES; i++)
        records[i] =
            record((enum devicemgr_record_kind)(i / 10), sample_key(i), i / 10 == 1 ? "main" : "",
                   i / 10 == 1 ? "v.com/gpu" : "", sample_key(i));
    must_commit(f, store, records, SAMPLES);
    store_close(store);
}

/* Whatever the damage: no row that was never written, none lost without a word, and it goes on. */
static void assert_sound(struct fixture *f, const char *what, size_t where)
{
    struct devicemgr_record next = record(DEVICEMGR_RECORD_POD, "next", "", "", "next");
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

struct bytes {
    unsigned char *at;
    size_t len;
};

static struct bytes read_whole(const char *path)
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

static void write_whole(const char *path, const void *at, size_t len)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(at, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

static unsigned count_set_aside(const struct fixture *f)
{
    DIR *stream = opendir(f->dir);
    unsigned n = 0;

    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        n += strncmp(entry->d_name, STORE_FILE ".damaged-", strlen(STORE_FILE ".damaged-")) == 0;
    closedir(stream);
    return n;
}

/* ---- tests ---- */

static void makes_its_directory_and_file_for_root_alone(void **state)
{
    struct fixture *f = *state;
    char deep[128], path[256];
    struct store_options options = {.dir = deep, .boot_id = "b", .report = note_report, .user = f};
    struct store *store;
    struct stat st;
    mode_t mask = umask(022);

    snprintf(deep, sizeof deep, "%s/one/two", f->dir);
    assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
    umask(mask);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    snprintf(path, sizeof path, "%s/one", f->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755); /* it may be others' as well */
    snprintf(path, sizeof path, "%s/" STORE_FILE, deep);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(f->reports, 0);
    store_close(store);
    remove_files(deep);
    assert_int_equal(rmdir(deep), 0);
    snprintf(deep, sizeof deep, "%s/one", f->dir);
    assert_int_equal(rmdir(deep), 0);
}

static void keeps_what_was_committed(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record first[] = {
        record(DEVICEMGR_RECORD_RESOURCE, "v.com/gpu", "", "", "resource"),
        record(DEVICEMGR_RECORD_ALLOCATION, "uid", "main", "v.com/gpu", "one"),
        record(DEVICEMGR_RECORD_ALLOCATION, "uid", "side", "v.com/gpu", "two"),
        record(DEVICEMGR_RECORD_POD, "uid", "", "", ""),
        record(DEVICEMGR_RECORD_POD, "gone", "", "", "x"),
    };
    struct devicemgr_record second[] = {
        record(DEVICEMGR_RECORD_ALLOCATION, "uid", "main", "v.com/gpu", "three"),
        record(DEVICEMGR_RECORD_POD, "gone", "", "", NULL),
        record(DEVICEMGR_RECORD_POD, "never there", "", "", NULL),
    };
    struct store *store = open_and_load(f);

    assert_int_equal(f->loaded.len, 0);
    must_commit(f, store, first, 5);
    must_commit(f, store, second, 3);
    must_commit(f, store, NULL, 0);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->reports, 0);
    assert_int_equal(f->loaded.len, 4);
    assert_false(store_lost_rows(store));
    assert_string_equal(find(f, DEVICEMGR_RECORD_RESOURCE, "v.com/gpu"), "resource");
    assert_string_equal(find(f, DEVICEMGR_RECORD_POD, "uid"), "");
    assert_null(find(f, DEVICEMGR_RECORD_POD, "gone"));
    for (size_t i = 0; i < 4; i++) {
        if (f->loaded.rows[i].kind != DEVICEMGR_RECORD_ALLOCATION)
            continue;
        assert_string_equal(f->loaded.rows[i].key[2], "v.com/gpu");
        assert_string_equal(f->loaded.rows[i].value,
                            strcmp(f->loaded.rows[i].key[1], "main") == 0 ? "three" : "two");
    }
    store_close(store);
}

static void keeps_large_values(void **state)
{
    struct fixture *f = *state;
    size_t bytes = 4 << 20;
    char *value = malloc(bytes);
    struct devicemgr_record big = {.kind = DEVICEMGR_RECORD_RESOURCE,
                                   .key = {"v.com/many", "", ""},
                                   .value = value,
                                   .value_bytes = bytes};
    struct store *store = open_and_load(f);

    memset(value, 0, bytes);
    must_commit(f, store, &big, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 1);
    assert_int_equal(f->loaded.rows[0].value_bytes, bytes);
    store_close(store);
    free(value);
}

static void tells_a_reboot(void **state)
{
    struct fixture *f = *state;
    struct store_options options = {
        .dir = f->dir, .boot_id = "boot-2", .report = note_report, .user = f};
    struct store *store = open_and_load(f);

    assert_false(store_rebooted(store));
    must_commit(f, store, NULL, 0);
    store_close(store);
    store = open_and_load(f);
    assert_false(store_rebooted(store));
    store_close(store);
    assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
    assert_true(store_rebooted(store));
    must_commit(f, store, NULL, 0);
    store_close(store);
    assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
    assert_false(store_rebooted(store));
    store_close(store);
    options.boot_id = ""; /* it cannot be read: nobody knows */
    assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
    assert_false(store_rebooted(store));
    must_commit(f, store, NULL, 0);
    store_close(store);
    options.boot_id = "boot-3";
    assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
    assert_false(store_rebooted(store));
    store_close(store);
}

static void refuses_a_second_process(void **state)
{
    struct fixture *f = *state;
    struct store *store = open_and_load(f);

    /* Of a new file, and of one from before that nothing was written to yet. */
    for (int i = 0; i < 2; i++) {
        assert_null(open_store(f));
        assert_non_null(strstr(f->error, "another process has it open"));
        assert_int_equal(count_set_aside(f), 0);
        store_close(store);
        store = open_and_load(f);
    }
    store_close(store);
}

static unsigned meta_checksum(const char *key, const char *value)
{
    const char *parts[] = {key, "", "", value};
    uLong sum = crc32(crc32(0, NULL, 0), (const Bytef *)"\3", 1);

    for (size_t i = 0; i < 4; i++) {
        unsigned char head[4] = {(unsigned char)strlen(parts[i]), 0, 0, 0};

        sum = crc32(sum, head, 4);
        sum = crc32(sum, (const Bytef *)parts[i], (uInt)strlen(parts[i]));
    }
    return (unsigned)sum;
}

static void leaves_a_newer_version_alone(void **state)
{
    struct fixture *f = *state;
    struct bytes before, after;
    char sql[256];

    commit_samples(f);
    snprintf(sql, sizeof sql,
             "PRAGMA user_version = 2; UPDATE meta SET value = CAST('2' AS BLOB), checksum = %u"
             " WHERE key = 'schema_version'",
             meta_checksum("schema_version", "2"));
    run_sql(f->file, sql);
    before = read_whole(f->file);
    assert_null(open_store(f));
    assert_non_null(strstr(f->error, "schema version 2, and this program knows up to 1"));
    after = read_whole(f->file);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.at, after.at, before.len);
    assert_int_equal(count_set_aside(f), 0);
    free(before.at);
    free(after.at);
}

/* A version in the head alone is a flipped bit, and must not keep the daemon from starting. */
static void takes_a_version_only_with_its_witness(void **state)
{
    struct fixture *f = *state;

    commit_samples(f);
    run_sql(f->file, "PRAGMA user_version = 2");
    assert_sound(f, "version", 0);
    assert_int_equal(count_set_aside(f), 1);
}

static void drops_only_the_damaged_row(void **state)
{
    static const char *const damages[] = {
        "UPDATE allocations SET value = CAST('a/X' AS BLOB) WHERE pod_uid = 'a/4'",
        "UPDATE allocations SET container = 'mbin' WHERE pod_uid = 'a/4'",
        "UPDATE allocations SET checksum = checksum + 1 WHERE pod_uid = 'a/4'",
        "UPDATE allocations SET checksum = NULL, value = NULL WHERE pod_uid = 'a/4'",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        struct store *store;

        remove_files(f->dir);
        commit_samples(f);
        run_sql(f->file, damages[i]);
        store = open_and_load(f);
        assert_int_equal(f->loaded.len, SAMPLES - 1);
        assert_int_equal(f->reports, 1);
        assert_non_null(strstr(f->last_report, "a damaged row of table allocations (a/4 "));
        assert_true(store_lost_rows(store));
        store_close(store);
        store = open_and_load(f);
        assert_false(store_lost_rows(store));
        assert_int_equal(f->loaded.len, SAMPLES - 1);
        assert_int_equal(f->reports, 0);
        store_close(store);
        assert_int_equal(count_set_aside(f), 0);
    }
}

/* One byte wrong, all over the file. */
static void survives_damage_at_any_offset(void **state)
{
    struct fixture *f = *state;
    struct bytes good;

    commit_samples(f);
    good = read_whole(f->file);
    for (size_t at = 0; at < good.len; at += at < 108 ? 1 : 53) {
        remove_files(f->dir);
        good.at[at] ^= 0x15;
        write_whole(f->file, good.at, good.len);
        good.at[at] ^= 0x15;
        assert_sound(f, "a flipped byte", at);
    }
    free(good.at);
}

static void survives_a_file_cut_anywhere(void **state)
{
    struct fixture *f = *state;
    struct bytes good;

    commit_samples(f);
    good = read_whole(f->file);
    for (size_t len = 0; len < good.len; len += len < 128 ? 9 : 1013) {
        remove_files(f->dir);
        write_whole(f->file, good.at, len);
        assert_sound(f, "a cut", len);
        assert_int_equal(count_set_aside(f), 1);
    }
    free(good.at);
}

static void sets_garbage_aside(void **state)
{
    struct fixture *f = *state;
    char garbage[8192];
    struct store *store;

    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)(i * 37 + i / 256);
    /* Twice, which is within one second: the second one gets a number. */
    for (unsigned n = 1; n <= 2; n++) {
        write_whole(f->file, garbage, sizeof garbage);
        store = open_and_load(f);
        assert_int_equal(f->reports, 1);
        assert_non_null(strstr(f->last_report, "is damaged (file is not a database); it was set "
                                               "aside as"));
        assert_int_equal(f->loaded.len, 0);
        assert_true(store_lost_rows(store));
        store_close(store);
        assert_int_equal(count_set_aside(f), n);
    }
}

static void sets_another_programs_database_aside(void **state)
{
    struct fixture *f = *state;
    struct store *store;

    run_sql(f->file, "PRAGMA user_version = 1; CREATE TABLE t (a)");
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "it is not a checkpoint"));
    store_close(store);
    remove_files(f->dir);

    commit_samples(f);
    run_sql(f->file, "DROP TABLE pods");
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "no such table: pods"));
    store_close(store);
}

static void sets_a_lone_journal_aside(void **state)
{
    struct fixture *f = *state;
    char wal[256];
    struct store *store;

    snprintf(wal, sizeof wal, "%s-wal", f->file);
    write_whole(wal, "stale", 5);
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "only its journal is there"));
    assert_int_equal(count_set_aside(f), 1);
    store_close(store);
}

static void limit(int resource, rlim_t value, struct rlimit *old)
{
    struct rlimit now;

    assert_int_equal(getrlimit(resource, old), 0);
    now = *old;
    now.rlim_cur = value;
    assert_int_equal(setrlimit(resource, &now), 0);
}

/* Removed alone, with its journal, with the directory, replaced by another, by a broken one. */
static void take_file_away(const struct fixture *f, int way)
{
    char wal[256], aside[256];

    snprintf(wal, sizeof wal, "%s-wal", f->file);
    snprintf(aside, sizeof aside, "%s.aside", f->dir);
    assert_int_equal(access(wal, F_OK), 0);
    switch (way) {
    case 0:
        assert_int_equal(unlink(f->file), 0);
        break;
    case 1:
        assert_int_equal(unlink(f->file), 0);
        assert_int_equal(unlink(wal), 0);
        break;
    case 2:
        assert_int_equal(rename(f->dir, aside), 0);
        remove_files(aside);
        assert_int_equal(rmdir(aside), 0);
        break;
    case 3:
        assert_int_equal(unlink(f->file), 0);
        run_sql(f->file, "CREATE TABLE t (a)");
        break;
    default:
        assert_int_equal(unlink(f->file), 0);
        write_whole(f->file, "garbage", 7);
        break;
    }
}

static void makes_a_file_that_was_taken_away_anew(void **state)
{
    static const unsigned SET_ASIDE[] = {1, 0, 0, 1, 2}; /* file, journal */
    struct fixture *f = *state;
    struct devicemgr_record first = record(DEVICEMGR_RECORD_POD, "p", "", "", "p"),
                            next = record(DEVICEMGR_RECORD_POD, "q", "", "", "q");

    for (int way = 0; way < 5; way++) {
        unsigned set_aside = count_set_aside(f);
        struct store *store = open_and_load(f);

        must_commit(f, store, &first, 1);
        take_file_away(f, way);
        set_aside = way == 2 ? 0 : set_aside;
        assert_int_equal(commit(f, store, &next, 1), STORE_RESET);
        assert_non_null(strstr(f->error, "was lost, and is written anew"));
        assert_non_null(strstr(f->last_report, "was removed or replaced while in use"));
        assert_int_equal(count_set_aside(f), set_aside + SET_ASIDE[way]);
        must_commit(f, store, &next, 1);
        store_close(store);
        store = open_and_load(f);
        assert_int_equal(f->loaded.len, 1); /* the first was not told again */
        assert_non_null(find(f, DEVICEMGR_RECORD_POD, "q"));
        store_close(store);
        assert_int_equal(unlink(f->file), 0);
    }
}

static void a_reset_is_told_once_the_new_file_is_there(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store = open_and_load(f);
    struct rlimit old;
    int next;

    must_commit(f, store, &pod, 1);
    take_file_away(f, 1);
    next = open("/dev/null", O_RDONLY);
    limit(RLIMIT_NOFILE, 0, &old);
    assert_int_equal(commit(f, store, &pod, 1), -1);
    assert_int_equal(commit(f, store, &pod, 1), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    close(next);
    assert_int_equal(commit(f, store, &pod, 1), STORE_RESET);
    must_commit(f, store, &pod, 1);
    store_close(store);
}

/* Whatever comes to have its name before the disk allows a new file. */
static void rows_of_another_are_not_mixed_into(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;
    char other[256];
    struct rlimit old;

    snprintf(other, sizeof other, "%s/other", f->dir);
    commit_samples(f);
    assert_int_equal(rename(f->file, other), 0);
    store = open_and_load(f);
    must_commit(f, store, &pod, 1);
    take_file_away(f, 1);
    limit(RLIMIT_NOFILE, 0, &old);
    assert_int_equal(commit(f, store, &pod, 1), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(rename(other, f->file), 0);
    assert_int_equal(commit(f, store, &pod, 1), STORE_RESET);
    assert_int_equal(count_set_aside(f), 1);
    must_commit(f, store, &pod, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 1);
    store_close(store);
}

/* ---- the disk's own faults ---- */

/* Fails the write that would cross `n` bytes, for all n until nothing fails. */
static void commits_all_or_nothing_on_a_full_disk(void **state)
{
    struct fixture *f = *state;
    char value[9000];
    bool failed = true;

    memset(value, 'v', sizeof value);
    for (rlim_t bytes = 0; failed; bytes += 1111) {
        struct devicemgr_record records[] = {
            record(DEVICEMGR_RECORD_POD, "one", "", "", "1"),
            {.kind = DEVICEMGR_RECORD_POD,
             .key = {"two", "", ""},
             .value = value,
             .value_bytes = sizeof value},
            record(DEVICEMGR_RECORD_POD, "a/0", "", "", NULL),
        };
        struct store *store;
        struct rlimit old;

        remove_files(f->dir);
        commit_samples(f);
        store = open_and_load(f);
        limit(RLIMIT_FSIZE, bytes, &old);
        failed = commit(f, store, records, 3) < 0;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        if (failed) {
            assert_non_null(strstr(f->error, f->file));
            /* The disk is well again, and so is the store: the same commit, in the same store. */
            store_close(store);
            store = open_and_load(f);
            assert_int_equal(f->loaded.len, SAMPLES);
            assert_non_null(find(f, DEVICEMGR_RECORD_POD, "a/0"));
            limit(RLIMIT_FSIZE, bytes, &old);
            assert_int_equal(commit(f, store, records, 3), -1);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
            must_commit(f, store, records, 3);
        }
        store_close(store);
        store = open_and_load(f);
        assert_int_equal(f->reports, 0);
        assert_int_equal(f->loaded.len, SAMPLES + 1);
        assert_null(find(f, DEVICEMGR_RECORD_POD, "a/0"));
        store_close(store);
    }
}

static void starts_on_a_full_disk_and_recovers(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;
    struct rlimit old;

    for (rlim_t bytes = 0; bytes < 65536; bytes += 4001) {
        bool failed;

        remove_files(f->dir);
        limit(RLIMIT_FSIZE, bytes, &old);
        store = open_and_load(f);
        failed = commit(f, store, &pod, 1) < 0;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        if (failed)
            must_commit(f, store, &pod, 1);
        store_close(store);
        store = open_and_load(f);
        assert_int_equal(f->loaded.len, 1);
        store_close(store);
        if (bytes == 0)
            assert_true(failed);
    }
}

/* A directory that is another's: it works as soon as it may. */
static void starts_without_permission_and_recovers(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;

    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(seteuid(65534), 0);
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "cannot be made (Permission denied)"));
    assert_false(store_lost_rows(store)); /* there was none */
    assert_int_equal(commit(f, store, &pod, 1), -1);
    assert_non_null(strstr(f->error, "Permission denied"));
    assert_int_equal(seteuid(0), 0);
    must_commit(f, store, &pod, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 1);
    store_close(store);
}

/* It cannot be read just now: left as it is, to be tried again. */
static void rows_that_cannot_be_read_are_waited_for(void **state)
{
    struct fixture *f = *state;
    struct store *store;
    struct rlimit old;
    int next = open("/dev/null", O_RDONLY);

    commit_samples(f);
    limit(RLIMIT_NOFILE, (rlim_t)next, &old);
    close(next);
    store = open_store(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_null(store);
    assert_non_null(strstr(f->error, "checkpoint "));
    assert_int_equal(f->reports, 0);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, SAMPLES);
    assert_false(store_lost_rows(store));
    assert_int_equal(count_set_aside(f), 0);
    store_close(store);
}

/* There was nothing; then a disk is mounted, say, with a file on it: what that holds must not be
 * mixed with what came since. */
static void never_writes_over_rows_it_has_not_read(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    char moved[128];
    struct store *store;
    int fd;

    commit_samples(f);
    snprintf(moved, sizeof moved, "%s.moved", f->dir);
    assert_int_equal(rename(f->dir, moved), 0);
    fd = open(f->dir, O_CREAT | O_WRONLY, 0600);
    close(fd);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 0);
    assert_false(store_lost_rows(store)); /* there were none */
    assert_int_equal(f->reports, 1);
    assert_int_equal(commit(f, store, &pod, 1), -1);
    assert_int_equal(unlink(f->dir), 0);
    assert_int_equal(rename(moved, f->dir), 0);
    assert_int_equal(commit(f, store, &pod, 1), STORE_RESET);
    assert_non_null(strstr(f->last_report, "its rows were not read at start"));
    assert_int_equal(count_set_aside(f), 1);
    must_commit(f, store, &pod, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 1);
    store_close(store);
}

/* A small tmpfs over the fixture's directory, seen by this process only. */
static void mount_small_disk(const struct fixture *f)
{
    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", f->dir, "tmpfs", 0, "size=128k") < 0)
        skip();
}

static void remount(const struct fixture *f, unsigned long flags)
{
    assert_int_equal(mount("tmpfs", f->dir, "tmpfs", MS_REMOUNT | flags, NULL), 0);
}

/* Its records are read all the same; writing begins once the disk allows it. */
static void lives_through_a_read_only_disk(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;

    mount_small_disk(f);
    commit_samples(f);
    remount(f, MS_RDONLY);
    store = open_and_load(f);
    assert_int_equal(f->reports, 0);
    assert_int_equal(f->loaded.len, SAMPLES);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(commit(f, store, &pod, 1), -1);
        assert_non_null(strstr(f->error, "readonly"));
    }
    remount(f, 0);
    must_commit(f, store, &pod, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, SAMPLES + 1);
    store_close(store);
    assert_int_equal(umount(f->dir), 0);
}

/* Killed, then the disk turned read-only: part of the records stands in the journal only. */
static void reads_a_journal_on_a_read_only_disk(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;
    pid_t child;

    mount_small_disk(f);
    commit_samples(f);
    child = fork();
    if (child == 0)
        _exit(commit(f, open_and_load(f), &pod, 1) < 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    remount(f, MS_RDONLY);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, SAMPLES + 1);
    store_close(store);
    remount(f, 0);
    assert_int_equal(umount(f->dir), 0);
}

static void makes_its_file_once_the_disk_can_be_written(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;

    mount_small_disk(f);
    remount(f, MS_RDONLY);
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "Read-only file system"));
    assert_int_equal(commit(f, store, &pod, 1), -1);
    assert_non_null(strstr(f->error, "Read-only file system"));
    remount(f, 0);
    must_commit(f, store, &pod, 1);
    store_close(store);
    assert_int_equal(umount(f->dir), 0);
}

/* Until no byte more goes onto the disk; the file is to be emptied and closed. */
static int fill_disk(const struct fixture *f)
{
    char path[256], zeros[4096] = "";
    int fd;

    snprintf(path, sizeof path, "%s/filler", f->dir);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    for (size_t bytes = sizeof zeros; bytes > 0; bytes /= 2) {
        while (write(fd, zeros, bytes) == (ssize_t)bytes)
            continue;
    }
    return fd;
}

static void lives_through_a_full_disk(void **state)
{
    struct fixture *f = *state;
    char value[4096];
    struct devicemgr_record pod = {.kind = DEVICEMGR_RECORD_POD,
                                   .key = {"p", "", ""},
                                   .value = value,
                                   .value_bytes = sizeof value};
    struct store *store;
    int fd;

    mount_small_disk(f);
    memset(value, 'x', sizeof value);
    store = open_and_load(f);
    fd = fill_disk(f);
    assert_int_equal(commit(f, store, &pod, 1), -1);
    assert_non_null(strstr(f->error, "full"));
    assert_int_equal(ftruncate(fd, 0), 0);
    close(fd);
    must_commit(f, store, &pod, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 1);
    store_close(store);
    assert_int_equal(umount(f->dir), 0);
}

/* Also what only the journal holds; then it goes on in the same file. */
static void reads_a_full_disk(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct devicemgr_record more = record(DEVICEMGR_RECORD_POD, "q", "", "", "q");
    struct store *store;
    pid_t child;
    int fd;

    mount_small_disk(f);
    commit_samples(f);
    for (unsigned journal = 0; journal < 2; journal++) {
        if (journal) {
            child = fork();
            if (child == 0)
                _exit(commit(f, open_and_load(f), &pod, 1) < 0);
            assert_int_equal(waitpid(child, NULL, 0), child);
        }
        fd = fill_disk(f);
        store = open_and_load(f);
        assert_int_equal(f->reports, 0);
        assert_int_equal(f->loaded.len, SAMPLES + 2 * journal);
        assert_int_equal(commit(f, store, &more, 1), -1);
        assert_int_equal(ftruncate(fd, 0), 0);
        close(fd);
        must_commit(f, store, &more, 1);
        store_close(store);
    }
    assert_int_equal(count_set_aside(f), 0);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, SAMPLES + 2);
    store_close(store);
    assert_int_equal(umount(f->dir), 0);
}

/* ---- kill -9 ---- */

/* Commits for ever, each time all of RECORDS_MAX pods with the round's number; says each round. */
static void commit_rounds(struct fixture *f, int out)
{
    struct store *store = open_and_load(f);
    struct devicemgr_record records[8];
    char value[16], keys[8][16];

    for (unsigned round = 1;; round++) {
        snprintf(value, sizeof value, "%u", round);
        for (int i = 0; i < 8; i++) {
            snprintf(keys[i], sizeof keys[i], "pod-%d", i);
            records[i] = record(DEVICEMGR_RECORD_POD, keys[i], "", "", value);
        }
        if (commit(f, store, records, 8) < 0 || write(out, &round, sizeof round) < 0)
            _exit(1);
    }
}

static void loses_nothing_acknowledged_to_kill_9(void **state)
{
    struct fixture *f = *state;

    for (unsigned run = 1; run <= 8; run++) {
        int ends[2];
        unsigned round = 0, last = 0;
        struct store *store;
        pid_t child;

        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
            commit_rounds(f, ends[1]);
        close(ends[1]);
        while (last < run * 5 && read(ends[0], &round, sizeof round) == sizeof round)
            last = round;
        assert_int_equal(kill(child, SIGKILL), 0);
        while (read(ends[0], &round, sizeof round) == sizeof round)
            last = round;
        assert_int_equal(waitpid(child, NULL, 0), child);
        close(ends[0]);

        store = open_and_load(f);
        assert_int_equal(f->reports, 0);
        assert_int_equal(f->loaded.len, 8);
        for (int i = 0; i < 8; i++) {
            /* The round under way when the signal came is there whole or not at all. */
            assert_string_equal(f->loaded.rows[i].value, f->loaded.rows[0].value);
            assert_in_range(strtoul(f->loaded.rows[i].value, NULL, 10), last, last + 1);
        }
        store_close(store);
    }
}

static void close_accepts_null(void **state)
{
    (void)state;
    store_close(NULL);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(makes_its_directory_and_file_for_root_alone),
        STORE_TEST(keeps_what_was_committed),
        STORE_TEST(keeps_large_values),
        STORE_TEST(tells_a_reboot),
        STORE_TEST(refuses_a_second_process),
        STORE_TEST(leaves_a_newer_version_alone),
        STORE_TEST(takes_a_version_only_with_its_witness),
        STORE_TEST(drops_only_the_damaged_row),
        STORE_TEST(survives_damage_at_any_offset),
        STORE_TEST(survives_a_file_cut_anywhere),
        STORE_TEST(sets_garbage_aside),
        STORE_TEST(sets_another_programs_database_aside),
        STORE_TEST(sets_a_lone_journal_aside),
        STORE_TEST(makes_a_file_that_was_taken_away_anew),
        STORE_TEST(a_reset_is_told_once_the_new_file_is_there),
        STORE_TEST(rows_of_another_are_not_mixed_into),
        STORE_TEST(commits_all_or_nothing_on_a_full_disk),
        STORE_TEST(starts_on_a_full_disk_and_recovers),
        STORE_TEST(starts_without_permission_and_recovers),
        STORE_TEST(rows_that_cannot_be_read_are_waited_for),
        STORE_TEST(never_writes_over_rows_it_has_not_read),
        STORE_TEST(lives_through_a_read_only_disk),
        STORE_TEST(reads_a_journal_on_a_read_only_disk),
        STORE_TEST(makes_its_file_once_the_disk_can_be_written),
        STORE_TEST(lives_through_a_full_disk),
        STORE_TEST(reads_a_full_disk),
        STORE_TEST(loses_nothing_acknowledged_to_kill_9),
        cmocka_unit_test(close_accepts_null),
    };

    /* A write over RLIMIT_FSIZE is to fail, not to kill. */
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
