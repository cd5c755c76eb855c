/* devicemgr/store/store.c: the checkpoint on real files: kept, lifted, taken away, killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "store_fixture.h"

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

static void a_directory_whose_name_is_too_long_is_refused(void **state)
{
    struct fixture *f = *state;
    char dir[STORE_PATH_BYTES_MAX] = "/", path[STORE_PATH_BYTES_MAX] = "as it was";
    const size_t longest = sizeof dir - sizeof "/" STORE_FILE;
    struct store_options options = {.dir = dir, .boot_id = "b", .report = note_report, .user = f};
    struct store *store;

    memset(dir + 1, 'd', longest);
    assert_int_equal(store_file_path(dir, path), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_string_equal(path, "as it was");
    assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), -1);
    assert_string_equal(f->error, "checkpoint directory: File name too long");
    dir[longest] = '\0';
    assert_int_equal(store_file_path(dir, path), 0);
    assert_int_equal(strlen(path), sizeof path - 1);
    assert_string_equal(path + longest, "/" STORE_FILE);
}

static bool has_orders(const struct fixture *f)
{
    struct bytes file = read_whole(f->file);
    char wal[160];
    struct bytes journal;
    bool has = memmem(file.at, file.len, "TABLE orders", 12) != NULL;

    snprintf(wal, sizeof wal, "%s-wal", f->file);
    journal = read_whole(wal);
    has = has || memmem(journal.at, journal.len, "TABLE orders", 12) != NULL;
    free(file.at);
    free(journal.at);
    return has;
}

/* The table of what an operator sets is made with its first row: until then the file is as an older
 * release made it. */
static void a_table_is_made_when_it_is_needed(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record order =
        store_record(DEVICEMGR_RECORD_ORDER, "cordon", "v.com/gpu", "g0", "dust");
    struct devicemgr_record gone =
        store_record(DEVICEMGR_RECORD_ORDER, "cordon", "v.com/gpu", "g0", NULL);
    struct store *store = open_and_load(f);

    must_commit(f, store, &gone, 1);
    assert_false(has_orders(f));
    store_close(store);
    store = open_and_load(f);
    must_commit(f, store, &order, 1);
    assert_true(has_orders(f));
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->reports, 0);
    assert_string_equal(find_loaded(f, DEVICEMGR_RECORD_ORDER, "cordon"), "dust");
    must_commit(f, store, &gone, 1);
    store_close(store);
    store = open_and_load(f);
    assert_null(find_loaded(f, DEVICEMGR_RECORD_ORDER, "cordon"));
    store_close(store);
}

/* Those of drivers and claims likewise; a claim's row is one of its driver's. */
static void rows_of_drivers_and_claims_are_kept(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record records[] = {
        store_record(DEVICEMGR_RECORD_DRIVER, "d.com", "", "", "driver"),
        store_record(DEVICEMGR_RECORD_CLAIM, "c1", "d.com", "", "one"),
        store_record(DEVICEMGR_RECORD_CLAIM, "c1", "e.com", "", "two")};
    struct devicemgr_record gone = store_record(DEVICEMGR_RECORD_CLAIM, "c1", "d.com", "", NULL);
    struct store *store = open_and_load(f);

    must_commit(f, store, records, 3);
    must_commit(f, store, &gone, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->reports, 0);
    assert_string_equal(find_loaded(f, DEVICEMGR_RECORD_DRIVER, "d.com"), "driver");
    assert_string_equal(find_loaded(f, DEVICEMGR_RECORD_CLAIM, "c1"), "two");
    store_close(store);
}

/* An older release does not look at that table, and leaves it; with it gone, rows are. */
static void an_older_release_leaves_the_table(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record records[] = {
        store_record(DEVICEMGR_RECORD_ORDER, "cordon", "v.com/gpu", "g0", "dust"),
        store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p")};
    struct store *store = open_and_load(f);

    must_commit(f, store, records, 2);
    store_close(store);
    run_sql(f->file, "PRAGMA user_version = 1; DELETE FROM pods");
    store = open_and_load(f);
    assert_int_equal(f->reports, 0);
    assert_string_equal(find_loaded(f, DEVICEMGR_RECORD_ORDER, "cordon"), "dust");
    store_close(store);
    run_sql(f->file, "DROP TABLE orders");
    store = open_and_load(f);
    assert_int_equal(f->reports, 1);
    assert_true(store_lost_rows(store));
    store_close(store);
}

static void keeps_what_was_committed(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record first[] = {
        store_record(DEVICEMGR_RECORD_RESOURCE, "v.com/gpu", "", "", "resource"),
        store_record(DEVICEMGR_RECORD_ALLOCATION, "uid", "main", "v.com/gpu", "one"),
        store_record(DEVICEMGR_RECORD_ALLOCATION, "uid", "side", "v.com/gpu", "two"),
        store_record(DEVICEMGR_RECORD_POD, "uid", "", "", ""),
        store_record(DEVICEMGR_RECORD_POD, "gone", "", "", "x"),
    };
    struct devicemgr_record second[] = {
        store_record(DEVICEMGR_RECORD_ALLOCATION, "uid", "main", "v.com/gpu", "three"),
        store_record(DEVICEMGR_RECORD_POD, "gone", "", "", NULL),
        store_record(DEVICEMGR_RECORD_POD, "never there", "", "", NULL),
    };
    struct store *store = open_and_load(f);

    assert_int_equal(f->loaded.len, 0);
    assert_true(store_made(store));
    must_commit(f, store, first, 5);
    must_commit(f, store, second, 3);
    must_commit(f, store, NULL, 0);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->reports, 0);
    assert_int_equal(f->loaded.len, 4);
    assert_false(store_lost_rows(store));
    assert_false(store_made(store));
    assert_string_equal(find_loaded(f, DEVICEMGR_RECORD_RESOURCE, "v.com/gpu"), "resource");
    assert_string_equal(find_loaded(f, DEVICEMGR_RECORD_POD, "uid"), "");
    assert_null(find_loaded(f, DEVICEMGR_RECORD_POD, "gone"));
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
    assert_true(store_file_bytes(f->file) < 1 << 20);
    must_commit(f, store, &big, 1);
    assert_true(store_file_bytes(f->file) > bytes); /* in the journal, */
    store_close(store);
    assert_true(store_file_bytes(f->file) > bytes); /* and then in the file */
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 1);
    assert_int_equal(f->loaded.rows[0].value_bytes, bytes);
    store_close(store);
    free(value);
}

static void count_row(void *user, const struct devicemgr_record *record)
{
    (void)record;
    ++*(int *)user;
}

/* A path may begin with more slashes than one, and is the same. */
static void a_path_is_no_authority(void **state)
{
    struct fixture *f = *state;
    char dir[80];
    const struct store_options options = {
        .dir = dir, .boot_id = "boot-1", .report = note_report, .user = f};
    struct store *store;

    commit_samples(f);
    for (const char *slashes = "//"; *slashes; slashes++) {
        int rows = 0;

        snprintf(dir, sizeof dir, "%s%s", slashes, f->dir);
        assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
        store_load(store, count_row, &rows);
        store_close(store);
        assert_int_equal(rows, SAMPLES);
        assert_int_equal(f->reports + count_set_aside(f), 0);
    }
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

/* It says so twice: in SQLite's header 2, and `text`. */
static void set_version(struct fixture *f, const char *text)
{
    char sql[256];

    commit_samples(f);
    snprintf(sql, sizeof sql,
             "PRAGMA user_version = 2; UPDATE meta SET value = CAST('%s' AS BLOB), checksum = %u"
             " WHERE key = 'schema_version'",
             text, meta_checksum("schema_version", text));
    run_sql(f->file, sql);
}

/* As it is: the release that knows it may come back. */
static void sets_a_newer_version_aside(void **state)
{
    struct fixture *f = *state;
    struct bytes before, after;
    struct store *store;
    char base[256];
    const char *path, *end;

    set_version(f, "2");
    before = read_whole(f->file);
    store = open_store(f);
    assert_non_null(store);
    assert_true(store_lost_rows(store));
    assert_int_equal(count_set_aside(f), 0); /* it is not damaged */
    path = strstr(f->last_report, "was set aside as ") + strlen("was set aside as ");
    end = strchr(path, ' ');
    snprintf(base, sizeof base, "%.*s", (int)(end - path), path);
    assert_non_null(strstr(base, STORE_FILE ".newer-"));
    after = read_whole(base);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.at, after.at, before.len);
    store_close(store);
    free(before.at);
    free(after.at);
}

static void a_version_too_large_for_an_int_is_not_taken_for_its_rest(void **state)
{
    struct fixture *f = *state;
    struct store *store;

    set_version(f, "4294967298"); /* 2^32 + 2 */
    store = open_store(f);
    assert_non_null(store);
    assert_int_equal(count_set_aside(f), 1); /* as damaged */
    store_close(store);
}

/* However good it looks; one that is not there is made as ever. */
static void what_has_ended_its_reader_is_set_aside(void **state)
{
    struct fixture *f = *state;
    struct store_options options = {
        .dir = f->dir, .boot_id = "boot-1", .discard = true, .report = note_report, .user = f};
    struct store *store;

    for (unsigned asides = 0; asides < 2; asides++) {
        assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
        assert_int_equal(count_set_aside(f), asides);
        assert_int_equal(store_lost_rows(store), asides > 0);
        store_close(store);
        if (asides == 0)
            commit_samples(f);
    }
    assert_non_null(
        strstr(f->last_report, "is not read again (the process has crashed reading it)"));
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 0);
    store_close(store);
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

/* Removed alone, with its journal, with the directory, replaced by another, by a broken one; its
 * journal alone removed, or cut; itself cut. */
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
    case 5:
        assert_int_equal(unlink(wal), 0);
        break;
    case 6:
        assert_int_equal(truncate(wal, 0), 0);
        break;
    case 7:
        assert_int_equal(truncate(f->file, 0), 0);
        break;
    default:
        assert_int_equal(unlink(f->file), 0);
        write_whole(f->file, "garbage", 7);
        break;
    }
}

static void makes_a_file_that_was_taken_away_anew(void **state)
{
    static const unsigned SET_ASIDE[] = {1, 0, 0, 1, 2, 1, 2, 2}; /* file, journal */
    struct fixture *f = *state;
    struct devicemgr_record first = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p"),
                            next = store_record(DEVICEMGR_RECORD_POD, "q", "", "", "q");

    for (int way = 0; way < 8; way++) {
        unsigned set_aside = count_set_aside(f);
        struct store *store = open_and_load(f);

        must_commit(f, store, &first, 1);
        take_file_away(f, way);
        set_aside = way == 2 ? 0 : set_aside;
        assert_int_equal(try_commit(f, store, &next, 1), STORE_RESET);
        assert_non_null(strstr(f->error, "was lost, and is written anew"));
        assert_non_null(strstr(f->last_report, "was removed, replaced or cut short while in use"));
        assert_int_equal(count_set_aside(f), set_aside + SET_ASIDE[way]);
        store_close(store); /* killed before it could write what it has */
        store = open_and_load(f);
        assert_true(store_lost_rows(store));
        must_commit(f, store, &next, 1);
        store_close(store);
        store = open_and_load(f);
        assert_int_equal(f->loaded.len, 1); /* the first was not told again */
        assert_non_null(find_loaded(f, DEVICEMGR_RECORD_POD, "q"));
        store_close(store);
        assert_int_equal(unlink(f->file), 0);
    }
}

static void a_reset_is_told_once_the_new_file_is_there(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store = open_and_load(f);
    struct rlimit old;
    int next;

    must_commit(f, store, &pod, 1);
    take_file_away(f, 1);
    next = open("/dev/null", O_RDONLY);
    lower_limit(RLIMIT_NOFILE, 0, &old);
    assert_int_equal(try_commit(f, store, &pod, 1), -1);
    assert_int_equal(try_commit(f, store, &pod, 1), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    close(next);
    assert_int_equal(try_commit(f, store, &pod, 1), STORE_RESET);
    must_commit(f, store, &pod, 1);
    store_close(store);
}

/* Whatever comes to have its name before the disk allows a new file. */
static void rows_of_another_are_not_mixed_into(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;
    char other[256];
    struct rlimit old;

    snprintf(other, sizeof other, "%s/other", f->dir);
    commit_samples(f);
    assert_int_equal(rename(f->file, other), 0);
    store = open_and_load(f);
    must_commit(f, store, &pod, 1);
    take_file_away(f, 1);
    lower_limit(RLIMIT_NOFILE, 0, &old);
    assert_int_equal(try_commit(f, store, &pod, 1), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(rename(other, f->file), 0);
    assert_int_equal(try_commit(f, store, &pod, 1), STORE_RESET);
    assert_int_equal(count_set_aside(f), 1);
    must_commit(f, store, &pod, 1);
    store_close(store);
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, 1);
    store_close(store);
}

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
            records[i] = store_record(DEVICEMGR_RECORD_POD, keys[i], "", "", value);
        }
        if (try_commit(f, store, records, 8) < 0 || write(out, &round, sizeof round) < 0)
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

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(makes_its_directory_and_file_for_root_alone),
        STORE_TEST(a_directory_whose_name_is_too_long_is_refused),
        STORE_TEST(a_table_is_made_when_it_is_needed),
        STORE_TEST(rows_of_drivers_and_claims_are_kept),
        STORE_TEST(an_older_release_leaves_the_table),
        STORE_TEST(keeps_what_was_committed),
        STORE_TEST(keeps_large_values),
        STORE_TEST(a_path_is_no_authority),
        STORE_TEST(tells_a_reboot),
        STORE_TEST(refuses_a_second_process),
        STORE_TEST(sets_a_newer_version_aside),
        STORE_TEST(a_version_too_large_for_an_int_is_not_taken_for_its_rest),
        STORE_TEST(what_has_ended_its_reader_is_set_aside),
        STORE_TEST(takes_a_version_only_with_its_witness),
        STORE_TEST(makes_a_file_that_was_taken_away_anew),
        STORE_TEST(a_reset_is_told_once_the_new_file_is_there),
        STORE_TEST(rows_of_another_are_not_mixed_into),
        STORE_TEST(loses_nothing_acknowledged_to_kill_9),
        cmocka_unit_test(close_accepts_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
