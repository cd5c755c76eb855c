/* shim/offline/replace.c: other rows in the place of those that are there, all of them or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "killed_calls.h"
#include "shim/offline/replace.h"
#include "store_fixture.h"

/* Of what is put in their place: one that stays as it was, one with another value, a new one. */
#define NEW_ROWS 3
#define REPLACED "checkpoint.db.replaced-"

static int replace_with(struct fixture *f, const char *value, char kept[STORE_ASIDE_BYTES_MAX])
{
    const char *const NEW[NEW_ROWS][2] = {{"a/1", "a/1"}, {"a/2", "other"}, {"new", value}};
    struct rows rows = {0};
    int rc;

    for (size_t i = 0; i < NEW_ROWS; i++) {
        struct devicemgr_record row =
            store_record(DEVICEMGR_RECORD_POD, NEW[i][0], "", "", NEW[i][1]);

        rows_add(&rows, &row);
    }
    rc = replace_rows(&rows, true, f->dir, kept, &(bool){false}, f->error, sizeof f->error);
    rows_fini(&rows);
    return rc;
}

static int replace(struct fixture *f, char kept[STORE_ASIDE_BYTES_MAX])
{
    return replace_with(f, "new", kept);
}

/* How many files there are whose names begin so. */
static unsigned count_named(const char *dir, const char *beginning)
{
    DIR *stream = opendir(dir);
    unsigned n = 0;

    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        n += strncmp(entry->d_name, beginning, strlen(beginning)) == 0;
    closedir(stream);
    return n;
}

static bool is_new(const struct fixture *f)
{
    const char *changed = find_loaded(f, DEVICEMGR_RECORD_POD, "a/2");

    return f->loaded.len == NEW_ROWS && changed && strcmp(changed, "other") == 0 &&
           find_loaded(f, DEVICEMGR_RECORD_POD, "a/1") &&
           find_loaded(f, DEVICEMGR_RECORD_POD, "new");
}

static bool is_old(const struct fixture *f)
{
    const char *changed = find_loaded(f, DEVICEMGR_RECORD_POD, "a/2");

    return f->loaded.len == SAMPLES && changed && strcmp(changed, "a/2") == 0;
}

/* What a daemon would find; whether rows may be missing for it. */
static bool load(struct fixture *f)
{
    struct store *store = open_and_load(f);
    bool lost = store_lost_rows(store);

    assert_int_equal(f->reports, 0);
    store_close(store);
    return lost;
}

static void all_rows_are_the_new_ones(void **state)
{
    struct fixture *f = *state;
    char kept[STORE_ASIDE_BYTES_MAX];
    struct stat st;

    commit_samples(f);
    assert_int_equal(replace(f, kept), 0);
    assert_true(load(f)); /* until the runtime has been asked */
    assert_true(is_new(f));
    assert_int_equal(stat(kept, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(rename(kept, f->file), 0);
    assert_false(load(f));
    assert_true(is_old(f));
}

static void nothing_is_kept_of_nothing(void **state)
{
    struct fixture *f = *state;
    char kept[STORE_ASIDE_BYTES_MAX];

    assert_int_equal(replace(f, kept), 0);
    assert_string_equal(kept, "");
    assert_true(load(f));
    assert_true(is_new(f));
    assert_int_equal(count_named(f->dir, "checkpoint.db."), 0);
}

/* Damage is not repaired before it is kept. */
static void a_damaged_row_is_kept_as_it_was(void **state)
{
    struct fixture *f = *state;
    char kept[STORE_ASIDE_BYTES_MAX];

    commit_samples(f);
    run_sql(f->file, "UPDATE pods SET checksum = checksum + 1 WHERE uid = 'a/4'");
    assert_int_equal(replace(f, kept), 0);
    assert_true(load(f));
    assert_true(is_new(f));
    assert_int_equal(rename(kept, f->file), 0);
    store_close(open_and_load(f)); /* which says so */
    assert_int_equal(f->loaded.len, SAMPLES - 1);
    assert_int_equal(f->reports, 1);
}

static void a_store_in_use_is_left_alone(void **state)
{
    struct fixture *f = *state;
    char kept[STORE_ASIDE_BYTES_MAX];
    struct store *store;

    commit_samples(f);
    store = open_and_load(f);
    assert_int_equal(replace(f, kept), -1);
    assert_non_null(strstr(f->error, "another process has it open"));
    store_close(store);
    assert_false(load(f));
    assert_true(is_old(f));
    assert_int_equal(count_named(f->dir, "checkpoint.db."), 0);
}

static int replace_alone(void *user)
{
    char kept[STORE_ASIDE_BYTES_MAX];

    return replace(user, kept);
}

static void count_good(void *user, const struct devicemgr_record *record, bool good)
{
    (void)record;
    *(size_t *)user += good;
}

/* How many copies there are, each of which has all that was there. */
static unsigned count_copies(const struct fixture *f)
{
    DIR *stream = opendir(f->dir);
    unsigned n = 0;

    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char path[PATH_MAX], error[STORE_ERROR_BYTES_MAX];
        struct store_found found;
        size_t rows = 0;

        if (strncmp(entry->d_name, REPLACED, strlen(REPLACED)) != 0)
            continue;
        n++;
        snprintf(path, sizeof path, "%s/%s", f->dir, entry->d_name);
        if (store_look_at(path, &found, count_good, &rows, error, sizeof error) < 0)
            fail_msg("%s", error);
        assert_int_equal(rows, SAMPLES);
        assert_string_equal(found.words, "");
    }
    closedir(stream);
    return n;
}

/* Whichever is there, each name has a whole file: the one that counts, and the copies. */
static void killed_at_any_call_it_is_old_or_new(void **state)
{
    struct fixture *f = *state;
    unsigned old = 0, new = 0, copies;

    for (unsigned n = 1;; n++) {
        bool killed;

        remove_files(f->dir);
        commit_samples(f);
        killed = killed_at_call(n, replace_alone, f);
        load(f);
        if (!is_old(f) && !is_new(f))
            fail_msg("killed at call %u: %zu rows", n, f->loaded.len);
        old += is_old(f);
        new += is_new(f);
        copies = count_copies(f);
        assert_true(copies == 1 || (copies == 0 && is_old(f)));
        if (!killed)
            break;
        if (n % 4 != 0) /* a disk takes its time */
            continue;
        assert_int_equal(replace_alone(f), 0); /* nothing that was left is in the way */
        load(f);
        assert_true(is_new(f));
        assert_int_equal(count_named(f->dir, "checkpoint.db.copy"), 0);
    }
    assert_true(old > 10 && new > 1); /* before its commit, and after */
}

static void killed_at_any_call_an_empty_directory_is_empty_or_new(void **state)
{
    struct fixture *f = *state;

    for (unsigned n = 1;; n++) {
        bool killed;

        remove_files(f->dir);
        killed = killed_at_call(n, replace_alone, f);
        load(f);
        assert_true(f->loaded.len == 0 || is_new(f));
        if (!killed)
            break;
    }
    assert_true(is_new(f));
}

/* Fails the write that would cross `n` bytes, for all n until nothing fails. What is new is more
 * than what was there: where the copy fits, the commit may not. */
static void a_full_disk_leaves_what_was_there(void **state)
{
    struct fixture *f = *state;
    static char large[100001];
    bool failed = true;
    unsigned failures = 0;

    memset(large, 'x', sizeof large - 1);
    for (rlim_t bytes = 0; failed; bytes += 3777) {
        char kept[STORE_ASIDE_BYTES_MAX];
        struct rlimit old;

        remove_files(f->dir);
        commit_samples(f);
        lower_limit(RLIMIT_FSIZE, bytes, &old);
        failed = replace_with(f, large, kept) < 0;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        failures += failed;
        load(f);
        assert_true(failed ? is_old(f) : is_new(f));
        assert_int_equal(count_named(f->dir, "checkpoint.db."), failed ? 0 : 1);
    }
    assert_true(failures > 10);
}

static int ignore_signal(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    return 0;
}

#define REPLACE_TEST(test) cmocka_unit_test_setup_teardown(test, store_setup, store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPLACE_TEST(all_rows_are_the_new_ones),
        REPLACE_TEST(nothing_is_kept_of_nothing),
        REPLACE_TEST(a_damaged_row_is_kept_as_it_was),
        REPLACE_TEST(a_store_in_use_is_left_alone),
        REPLACE_TEST(killed_at_any_call_it_is_old_or_new),
        REPLACE_TEST(killed_at_any_call_an_empty_directory_is_empty_or_new),
        REPLACE_TEST(a_full_disk_leaves_what_was_there),
    };

    return cmocka_run_group_tests(tests, ignore_signal, NULL);
}
