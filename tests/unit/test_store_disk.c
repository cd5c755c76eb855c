/* devicemgr/store/store.c on a disk that is full, read-only, or not to be entered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
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

#include "store_fixture.h"

static const char *hidden; /* of which the disk does not say whether it is there */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
    if (!hidden || strcmp(path, hidden) != 0)
        return __real_access(path, mode);
    errno = EIO;
    return -1;
}

int __real_stat(const char *path, struct stat *out);
int __wrap_stat(const char *path, struct stat *out);

int __wrap_stat(const char *path, struct stat *out)
{
    if (!hidden || strcmp(path, hidden) != 0)
        return __real_stat(path, out);
    errno = EIO;
    return -1;
}

/* A new one in its place would be the end of who holds what. */
static void a_file_that_the_disk_does_not_tell_of_is_not_replaced(void **state)
{
    struct fixture *f = *state;
    struct store *store;

    commit_samples(f);
    hidden = f->file;
    assert_null(open_store(f));
    hidden = NULL;
    assert_non_null(strstr(f->error, strerror(EIO)));
    store = open_and_load(f);
    assert_int_equal(f->loaded.len, SAMPLES);
    store_close(store);
    assert_int_equal(count_set_aside(f), 0);
}

/* Nor is it for another one, nor cut short. */
static void nor_is_one_that_is_in_use_let_go(void **state)
{
    struct fixture *f = *state;
    const struct devicemgr_record record = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "1");
    char journal[sizeof f->file + 8];
    struct store *store;

    snprintf(journal, sizeof journal, "%s-wal", f->file);
    commit_samples(f);
    store = open_and_load(f);
    must_commit(f, store, &record, 1);
    for (unsigned i = 0; i < 2; i++) {
        hidden = i ? journal : f->file;
        must_commit(f, store, &record, 1);
        hidden = NULL;
        must_commit(f, store, &record, 1);
    }
    assert_int_equal(f->reports, 0);
    assert_int_equal(count_set_aside(f), 0);
    assert_int_equal(unlink(f->file), 0); /* it is looked at again */
    assert_int_equal(try_commit(f, store, &record, 1), STORE_RESET);
    store_close(store);
}

/* Nor is one made for a journal that may be another's. */
static void nor_is_one_made_beside_such_a_journal(void **state)
{
    struct fixture *f = *state;
    const struct devicemgr_record record = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "1");
    char journal[sizeof f->file + 8];
    struct store *store;

    snprintf(journal, sizeof journal, "%s-wal", f->file);
    hidden = journal;
    store = open_and_load(f);
    assert_int_equal(try_commit(f, store, &record, 1), -1);
    assert_non_null(strstr(f->error, strerror(EIO)));
    hidden = NULL;
    must_commit(f, store, &record, 1);
    store_close(store);
}

/* Fails the write that would cross `n` bytes, for all n until nothing fails. */
static void commits_all_or_nothing_on_a_full_disk(void **state)
{
    struct fixture *f = *state;
    char value[9000];
    bool failed = true;

    memset(value, 'v', sizeof value);
    for (rlim_t bytes = 0; failed; bytes += 1111) {
        struct devicemgr_record records[] = {
            store_record(DEVICEMGR_RECORD_POD, "one", "", "", "1"),
            {.kind = DEVICEMGR_RECORD_POD,
             .key = {"two", "", ""},
             .value = value,
             .value_bytes = sizeof value},
            store_record(DEVICEMGR_RECORD_POD, "a/0", "", "", NULL),
        };
        struct store *store;
        struct rlimit old;

        remove_files(f->dir);
        commit_samples(f);
        store = open_and_load(f);
        lower_limit(RLIMIT_FSIZE, bytes, &old);
        failed = try_commit(f, store, records, 3) < 0;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        if (failed) {
            assert_non_null(strstr(f->error, f->file));
            /* The disk is well again, and so is the store: the same commit, in the same store. */
            store_close(store);
            store = open_and_load(f);
            assert_int_equal(f->loaded.len, SAMPLES);
            assert_non_null(find_loaded(f, DEVICEMGR_RECORD_POD, "a/0"));
            lower_limit(RLIMIT_FSIZE, bytes, &old);
            assert_int_equal(try_commit(f, store, records, 3), -1);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
            must_commit(f, store, records, 3);
        }
        store_close(store);
        store = open_and_load(f);
        assert_int_equal(f->reports, 0);
        assert_int_equal(f->loaded.len, SAMPLES + 1);
        assert_null(find_loaded(f, DEVICEMGR_RECORD_POD, "a/0"));
        store_close(store);
    }
}

static void starts_on_a_full_disk_and_recovers(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;
    struct rlimit old;

    for (rlim_t bytes = 0; bytes < 65536; bytes += 4001) {
        bool failed;

        remove_files(f->dir);
        lower_limit(RLIMIT_FSIZE, bytes, &old);
        store = open_and_load(f);
        failed = try_commit(f, store, &pod, 1) < 0;
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
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;

    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(seteuid(65534), 0);
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "cannot be made (Permission denied)"));
    assert_false(store_lost_rows(store)); /* there was none */
    assert_int_equal(try_commit(f, store, &pod, 1), -1);
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
    lower_limit(RLIMIT_NOFILE, (rlim_t)next, &old);
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
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
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
    assert_int_equal(try_commit(f, store, &pod, 1), -1);
    assert_int_equal(unlink(f->dir), 0);
    assert_int_equal(rename(moved, f->dir), 0);
    assert_int_equal(try_commit(f, store, &pod, 1), STORE_RESET);
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
    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) < 0 ||
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
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;

    mount_small_disk(f);
    commit_samples(f);
    remount(f, MS_RDONLY);
    store = open_and_load(f);
    assert_int_equal(f->reports, 0);
    assert_int_equal(f->loaded.len, SAMPLES);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(try_commit(f, store, &pod, 1), -1);
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

/* Nothing holds the one that could be read only, so that it can be unmounted: what is there then is
 * another's, or empty, and all there is must be written into it. */
static void another_disk_in_place_of_one_that_was_read_only(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");

    for (unsigned older = 0; older < 2; older++) {
        struct store *store;

        mount_small_disk(f);
        commit_samples(f);
        remount(f, MS_RDONLY);
        store = open_and_load(f);
        assert_int_equal(try_commit(f, store, &pod, 1), -1);
        assert_int_equal(umount(f->dir), 0);
        assert_int_equal(mount("tmpfs", f->dir, "tmpfs", 0, "size=128k"), 0);
        if (older)
            commit_samples(f);
        assert_int_equal(try_commit(f, store, &pod, 1), STORE_RESET);
        must_commit(f, store, &pod, 1);
        store_close(store);
        store = open_and_load(f);
        assert_int_equal(f->loaded.len, 1);
        assert_true(store_lost_rows(store)); /* until the core has said that it knows all */
        store_close(store);
        assert_int_equal(count_set_aside(f), older);
        assert_int_equal(umount(f->dir), 0);
    }
}

/* Killed, then the disk turned read-only: part of the records stands in the journal only. */
static void reads_a_journal_on_a_read_only_disk(void **state)
{
    struct fixture *f = *state;
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;
    pid_t child;

    mount_small_disk(f);
    commit_samples(f);
    child = fork();
    if (child == 0)
        _exit(try_commit(f, open_and_load(f), &pod, 1) < 0);
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
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct store *store;

    mount_small_disk(f);
    remount(f, MS_RDONLY);
    store = open_and_load(f);
    assert_non_null(strstr(f->last_report, "Read-only file system"));
    assert_int_equal(try_commit(f, store, &pod, 1), -1);
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
    assert_int_equal(try_commit(f, store, &pod, 1), -1);
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
    struct devicemgr_record pod = store_record(DEVICEMGR_RECORD_POD, "p", "", "", "p");
    struct devicemgr_record more = store_record(DEVICEMGR_RECORD_POD, "q", "", "", "q");
    struct store *store;
    pid_t child;
    int fd;

    mount_small_disk(f);
    commit_samples(f);
    for (unsigned journal = 0; journal < 2; journal++) {
        if (journal) {
            child = fork();
            if (child == 0)
                _exit(try_commit(f, open_and_load(f), &pod, 1) < 0);
            assert_int_equal(waitpid(child, NULL, 0), child);
        }
        fd = fill_disk(f);
        store = open_and_load(f);
        assert_int_equal(f->reports, 0);
        assert_int_equal(f->loaded.len, SAMPLES + 2 * journal);
        assert_int_equal(try_commit(f, store, &more, 1), -1);
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

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(commits_all_or_nothing_on_a_full_disk),
        STORE_TEST(starts_on_a_full_disk_and_recovers),
        STORE_TEST(a_file_that_the_disk_does_not_tell_of_is_not_replaced),
        STORE_TEST(nor_is_one_that_is_in_use_let_go),
        STORE_TEST(nor_is_one_made_beside_such_a_journal),
        STORE_TEST(starts_without_permission_and_recovers),
        STORE_TEST(rows_that_cannot_be_read_are_waited_for),
        STORE_TEST(never_writes_over_rows_it_has_not_read),
        STORE_TEST(lives_through_a_read_only_disk),
        STORE_TEST(another_disk_in_place_of_one_that_was_read_only),
        STORE_TEST(reads_a_journal_on_a_read_only_disk),
        STORE_TEST(makes_its_file_once_the_disk_can_be_written),
        STORE_TEST(lives_through_a_full_disk),
        STORE_TEST(reads_a_full_disk),
    };

    /* A write over RLIMIT_FSIZE is to fail, not to kill. */
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
