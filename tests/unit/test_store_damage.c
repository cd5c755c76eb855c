/* devicemgr/store/store.c on files that are damaged, or none of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "devicemgr/store/store_file.h"
#include "store_fixture.h"

/* Over any number of kills, until the core has said that it knows what runs. */
static void assert_loss_is_remembered(struct fixture *f, size_t rows)
{
    struct devicemgr_record known = store_record(DEVICEMGR_RECORD_LOSS, "rows_lost", "", "", NULL);

    for (int life = 0; life < 3; life++) {
        struct store *store = open_and_load(f);

        assert_int_equal(store_lost_rows(store), life < 2);
        assert_int_equal(f->loaded.len, rows);
        assert_int_equal(f->reports, 0);
        if (life == 1)
            must_commit(f, store, &known, 1);
        store_close(store);
    }
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
        assert_loss_is_remembered(f, SAMPLES - 1);
        assert_int_equal(count_set_aside(f), 0);
    }
}

static void note_seen(void *user, const struct devicemgr_record *record, bool good)
{
    size_t *seen = user;

    assert_non_null(record->value);
    seen[good]++;
}

/* What SQLite has read before is read again. */
static void a_look_sees_damage_and_mends_nothing(void **state)
{
    struct fixture *f = *state;
    struct store_found found;
    size_t seen[2] = {0};
    struct store *store;
    struct bytes bytes;
    unsigned char *at;

    commit_samples(f);
    store = open_and_load(f);
    assert_int_equal(store_look(store, &found, note_seen, seen, f->error, sizeof f->error), 0);
    assert_int_equal(seen[true], SAMPLES);
    assert_int_equal(seen[false] + found.damaged, 0);
    assert_int_equal(found.version, 1);
    assert_string_equal(found.words, "");
    bytes = read_whole(f->file);
    at = memmem(bytes.at, bytes.len, "a/4", 3);
    assert_non_null(at);
    *at ^= 1;
    write_whole(f->file, bytes.at, bytes.len);
    free(bytes.at);
    for (int i = 0; i < 2; i++) { /* it is still there */
        seen[0] = seen[1] = 0;
        assert_int_equal(store_look(store, &found, note_seen, seen, f->error, sizeof f->error), 0);
        assert_true(found.damaged > 0 || found.words[0] != '\0');
    }
    assert_int_equal(f->reports, 0);
    remove(f->file);
    assert_int_equal(store_look(store, &found, note_seen, seen, f->error, sizeof f->error), -1);
    assert_non_null(strstr(f->error, "removed, replaced or cut short while in use"));
    store_close(store);
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
        assert_loss_is_remembered(f, 0);
        assert_int_equal(count_set_aside(f), n);
    }
}

/* As if set aside in one second, one after the other, with a journal. */
static void put_aside(const struct fixture *f, unsigned round)
{
    char path[192], journal[200];

    snprintf(path, sizeof path, "%s.damaged-20260101T000000Z", f->file);
    if (round > 1)
        snprintf(path + strlen(path), sizeof path - strlen(path), ".%u", round);
    snprintf(journal, sizeof journal, "%s-wal", path);
    write_whole(path, "x", 1);
    write_whole(journal, "x", 1);
}

static bool is_aside(const struct fixture *f, const char *end)
{
    char path[192];

    snprintf(path, sizeof path, "%s.damaged-20260101T000000Z%s", f->file, end);
    return access(path, F_OK) == 0;
}

/* A disk that damages each: what was set aside first goes, with its journal, once there are too
 * many. */
static void keeps_no_more_than_some_of_what_is_set_aside(void **state)
{
    struct fixture *f = *state;

    for (unsigned round = 1; round <= STORE_ASIDE_MAX + 3; round++)
        put_aside(f, round);
    write_whole(f->file, "garbage", 7);
    store_close(open_store(f));
    assert_int_equal(count_set_aside(f), 2 * STORE_ASIDE_MAX - 1);
    assert_false(is_aside(f, "") || is_aside(f, "-wal"));
    assert_false(is_aside(f, ".4") || is_aside(f, ".4-wal"));
    assert_true(is_aside(f, ".5") && is_aside(f, ".5-wal"));
    assert_true(is_aside(f, ".11") && is_aside(f, ".11-wal"));
}

/* As before the first answer of NTP, where there is no clock that goes on without power. */
static void what_is_set_aside_now_stays_though_the_clock_is_behind(void **state)
{
    struct fixture *f = *state;
    char path[192], *base, *end;

    for (unsigned i = 0; i < STORE_ASIDE_MAX; i++) {
        snprintf(path, sizeof path, "%s.damaged-21260101T00000%uZ", f->file, i);
        write_whole(path, "x", 1);
    }
    write_whole(f->file, "garbage", 7);
    store_close(open_store(f));
    base = strstr(f->last_report, "set aside as ");
    assert_non_null(base);
    base += strlen("set aside as ");
    end = strstr(base, " and a new one");
    assert_non_null(end);
    *end = '\0';
    assert_int_equal(access(base, F_OK), 0);
    assert_int_equal(count_set_aside(f), STORE_ASIDE_MAX);
    snprintf(path, sizeof path, "%s.damaged-21260101T000000Z", f->file);
    assert_int_equal(access(path, F_OK), -1); /* the oldest of the others */
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

    for (unsigned i = 0; i < STORE_ASIDE_MAX + 2; i++) {
        snprintf(wal, sizeof wal, "%s.damaged-20200101T00000%uZ-wal", f->file, i);
        write_whole(wal, "older", 5);
    }
    snprintf(wal, sizeof wal, "%s-wal", f->file);
    write_whole(wal, "stale", 5);
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "only its journal is there"));
    assert_int_equal(count_set_aside(f), STORE_ASIDE_MAX);
    snprintf(wal, sizeof wal, "%s.damaged-20200101T000003Z-wal", f->file);
    assert_int_equal(access(wal, F_OK), 0); /* the oldest have gone */
    store_close(store);
}

/* With its index it is one. */
static void a_lone_journal_with_its_index_is_one(void **state)
{
    struct fixture *f = *state;
    char part[256];

    for (unsigned i = 0; i < STORE_ASIDE_MAX; i++) {
        snprintf(part, sizeof part, "%s.damaged-20200101T00000%uZ-wal", f->file, i);
        write_whole(part, "older", 5);
        snprintf(part, sizeof part, "%s.damaged-20200101T00000%uZ-shm", f->file, i);
        write_whole(part, "index", 5);
    }
    write_whole(f->file, "garbage", 7);
    store_close(open_store(f));
    assert_int_equal(count_set_aside(f), 2 * STORE_ASIDE_MAX - 1);
}

/* Nor is what cannot be removed tried for ever. */
static void what_is_set_aside_and_cannot_be_removed_stays(void **state)
{
    struct fixture *f = *state;
    char path[256];

    for (unsigned i = 0; i < STORE_ASIDE_MAX; i++) {
        snprintf(path, sizeof path, "%s.damaged-20200101T00000%uZ-wal", f->file, i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    write_whole(f->file, "garbage", 7);
    store_close(open_store(f));
    assert_int_equal(count_set_aside(f), STORE_ASIDE_MAX + 1);
    for (unsigned i = 0; i < STORE_ASIDE_MAX; i++) {
        snprintf(path, sizeof path, "%s.damaged-20200101T00000%uZ-wal", f->file, i);
        assert_int_equal(rmdir(path), 0);
    }
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_look_sees_damage_and_mends_nothing),
        STORE_TEST(drops_only_the_damaged_row),
        STORE_TEST(survives_damage_at_any_offset),
        STORE_TEST(survives_a_file_cut_anywhere),
        STORE_TEST(sets_garbage_aside),
        STORE_TEST(keeps_no_more_than_some_of_what_is_set_aside),
        STORE_TEST(what_is_set_aside_now_stays_though_the_clock_is_behind),
        STORE_TEST(sets_another_programs_database_aside),
        STORE_TEST(sets_a_lone_journal_aside),
        STORE_TEST(a_lone_journal_with_its_index_is_one),
        STORE_TEST(what_is_set_aside_and_cannot_be_removed_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
