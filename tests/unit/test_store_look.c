/* devicemgr/store/store_look.c: a file that no store has open, looked at and left as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_fixture.h"

struct seen {
    struct store_found found;
    size_t rows[2]; /* damaged, good */
};

static void on_row(void *user, const struct devicemgr_record *record, bool good)
{
    struct seen *seen = user;

    assert_non_null(record->value);
    seen->rows[good]++;
}

static int look(struct fixture *f, struct seen *seen)
{
    *seen = (struct seen){0};
    return store_look_at(f->file, &seen->found, on_row, seen, f->error, sizeof f->error);
}

static void assert_same(const char *path, const struct bytes *before)
{
    struct bytes now = read_whole(path);

    assert_int_equal(now.len, before->len);
    assert_memory_equal(now.at, before->at, now.len);
    free(now.at);
}

static bool has(const struct fixture *f, const char *suffix)
{
    char path[160];

    snprintf(path, sizeof path, "%s%s", f->file, suffix);
    return access(path, F_OK) == 0;
}

static void one_that_was_closed(void **state)
{
    struct fixture *f = *state;
    struct bytes before;
    struct seen seen;

    commit_samples(f);
    before = read_whole(f->file);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(look(f, &seen), 0);
        assert_int_equal(seen.rows[true], SAMPLES);
        assert_int_equal(seen.rows[false] + seen.found.damaged, 0);
        assert_int_equal(seen.found.version, store_version());
        assert_string_equal(seen.found.words, "");
        assert_same(f->file, &before);
        assert_false(has(f, "-wal") || has(f, "-shm") || has(f, "-journal"));
    }
    free(before.at);
}

/* What was committed last is in the journal only, and stays there. */
static void one_whose_owner_was_killed(void **state)
{
    struct fixture *f = *state;
    char wal[160];
    struct bytes file, journal;
    struct store *store;
    struct seen seen;
    struct devicemgr_record more = store_record(DEVICEMGR_RECORD_POD, "more", "", "", "more");

    commit_samples(f);
    snprintf(wal, sizeof wal, "%s-wal", f->file);
    store = open_and_load(f);
    must_commit(f, store, &more, 1);
    file = read_whole(f->file);
    journal = read_whole(wal);
    store_close(store);
    write_whole(f->file, file.at, file.len);
    write_whole(wal, journal.at, journal.len);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(look(f, &seen), 0);
        assert_int_equal(seen.rows[true], SAMPLES + 1);
        assert_same(f->file, &file);
        assert_same(wal, &journal);
        assert_false(has(f, "-shm"));
    }
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, SAMPLES + 1);
    assert_int_equal(f->reports, 0);
    store_close(store);
    free(file.at);
    free(journal.at);
}

static void one_that_is_in_use(void **state)
{
    struct fixture *f = *state;
    struct store *store;
    struct seen seen;

    commit_samples(f);
    store = open_and_load(f);
    assert_int_equal(look(f, &seen), STORE_IN_USE_ELSEWHERE);
    assert_non_null(strstr(f->error, "another process has it open"));
    store_close(store);
    assert_int_equal(look(f, &seen), 0);
}

static void damage_is_seen_and_not_mended(void **state)
{
    struct fixture *f = *state;
    struct bytes before;
    struct seen seen;

    commit_samples(f);
    run_sql(f->file, "UPDATE pods SET checksum = checksum + 1 WHERE uid = 'a/4'");
    before = read_whole(f->file);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(look(f, &seen), 0);
        assert_int_equal(seen.rows[false], 1);
        assert_int_equal(seen.found.damaged, 1);
        assert_int_equal(seen.rows[true], SAMPLES - 1);
        assert_same(f->file, &before);
    }
    free(before.at);
}

/* One byte wrong, all over the file: it is said, or does not matter. */
static void damage_at_any_offset(void **state)
{
    struct fixture *f = *state;
    struct bytes good;
    unsigned refused = 0, found = 0;

    commit_samples(f);
    good = read_whole(f->file);
    for (size_t at = 0; at < good.len; at += at < 108 ? 1 : 31) {
        struct seen seen;

        good.at[at] ^= 0x15;
        write_whole(f->file, good.at, good.len);
        if (look(f, &seen) < 0)
            refused++;
        else if (seen.found.damaged > 0 || seen.found.words[0] != '\0')
            found++;
        else
            assert_int_equal(seen.rows[true], SAMPLES);
        assert_same(f->file, &good);
        good.at[at] ^= 0x15;
        remove_files(f->dir);
    }
    assert_true(refused > 5 && found > 5);
    free(good.at);
}

static void one_that_is_none(void **state)
{
    static const char *const OTHERS[] = {
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 0",
        "UPDATE meta SET value = '2', checksum = 0; PRAGMA user_version = 2",
    };
    struct fixture *f = *state;
    struct seen seen;

    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++) {
        remove_files(f->dir);
        commit_samples(f);
        run_sql(f->file, OTHERS[i]);
        assert_int_equal(look(f, &seen), -1);
        assert_non_null(strstr(f->error, i < 2 ? "it is not a checkpoint" : "makes no sense"));
        assert_int_equal(seen.rows[true], 0);
    }
    remove_files(f->dir);
    assert_int_equal(look(f, &seen), -1);
    assert_false(has(f, "")); /* nor made */
    write_whole(f->file, "{}", 2);
    assert_int_equal(look(f, &seen), -1);
    assert_non_null(strstr(f->error, f->file));
}

static void a_path_that_none_can_have(void **state)
{
    struct fixture *f = *state;
    static char path[64 * 1024];
    struct seen seen = {0};

    memset(path, '#', sizeof path - 1); /* three characters each in a URI */
    *path = '/';
    assert_int_equal(store_look_at(path, &seen.found, on_row, &seen, f->error, sizeof f->error),
                     -1);
    assert_non_null(strstr(f->error, strerror(ENAMETOOLONG)));
}

#define LOOK_TEST(test) cmocka_unit_test_setup_teardown(test, store_setup, store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOK_TEST(one_that_was_closed),       LOOK_TEST(one_whose_owner_was_killed),
        LOOK_TEST(one_that_is_in_use),        LOOK_TEST(damage_is_seen_and_not_mended),
        LOOK_TEST(a_path_that_none_can_have), LOOK_TEST(damage_at_any_offset),
        LOOK_TEST(one_that_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
