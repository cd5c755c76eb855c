/* shim/file.c, file_identity.c and path.c: small files, read and replaced as a whole, told
 * apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/file.h"
#include "shim/file_identity.h"
#include "shim/path.h"

struct fixture {
    char dir[32], path[64], beside[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/cds-file-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/a", f->dir);
    snprintf(f->beside, sizeof f->beside, "%s/a.new", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    unlink(f->path);
    unlink(f->beside);
    err = rmdir(f->dir);
    free(f);
    return err;
}

static void replaces_the_whole_file(void **state)
{
    const struct fixture *f = *state;
    char text[16];
    struct stat st;

    assert_int_equal(file_replace(f->path, "longer", 6), 0);
    assert_int_equal(file_replace(f->path, "ab", 2), 0);
    assert_int_equal(file_read_text(f->path, text, sizeof text), 2);
    assert_string_equal(text, "ab");
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(access(f->beside, F_OK), -1);
    assert_int_equal(file_replace(f->path, NULL, 0), 0);
    assert_int_equal(file_read_text(f->path, text, sizeof text), 0);
    assert_string_equal(text, "");
}

/* What somebody has put beside it is not written through, and what cannot be replaced stays. */
static void keeps_what_it_cannot_replace(void **state)
{
    const struct fixture *f = *state;
    char text[16], far[PATH_MAX + 1];

    assert_int_equal(file_replace(f->path, "ab", 2), 0);
    assert_int_equal(symlink(f->path, f->beside), 0);
    assert_int_equal(file_replace(f->path, "cd", 2), 0);
    assert_int_equal(file_read_text(f->path, text, sizeof text), 2);
    assert_string_equal(text, "cd");
    assert_int_equal(mkdir(f->beside, 0700), 0);
    assert_int_equal(file_replace(f->path, "ef", 2), -EEXIST);
    assert_int_equal(file_read_text(f->path, text, sizeof text), 2);
    assert_string_equal(text, "cd");
    assert_int_equal(rmdir(f->beside), 0);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_int_equal(file_replace(f->path, "ef", 2), -EISDIR);
    assert_int_equal(access(f->beside, F_OK), -1);
    assert_int_equal(rmdir(f->path), 0);
    memset(far, 'a', sizeof far - 1);
    far[sizeof far - 1] = '\0';
    assert_int_equal(file_replace(far, "ef", 2), -ENAMETOOLONG);
}

/* What was synced, in turn: 'f' a file, 'd' a directory. */
static char synced[8];

/* In the place of the C library's. */
int fsync(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && strlen(synced) < sizeof synced - 1)
        synced[strlen(synced)] = S_ISDIR(st.st_mode) ? 'd' : 'f';
    return (int)syscall(SYS_fsync, fd);
}

/* A name that was not synced may be the old file's after a power loss. */
static void what_outlives_the_kernel_is_synced_with_its_directory(void **state)
{
    const struct fixture *f = *state;

    memset(synced, 0, sizeof synced);
    assert_int_equal(file_replace(f->path, "ab", 2), 0);
    assert_string_equal(synced, "");
    assert_int_equal(file_replace_synced(f->path, "cd", 2), 0);
    assert_string_equal(synced, "fd");
    assert_int_equal(file_remove_synced(f->path), 0);
    assert_string_equal(synced, "fdd");
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(file_remove_synced(f->path), 0); /* it is not there */
    assert_string_equal(synced, "fdd");
    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_int_equal(file_remove_synced(f->path), -EISDIR);
    assert_int_equal(rmdir(f->path), 0);
}

static void reads_the_beginning_of_a_long_one(void **state)
{
    const struct fixture *f = *state;
    char text[4];

    assert_int_equal(file_replace(f->path, "abcdef", 6), 0);
    assert_int_equal(file_read_text(f->path, text, sizeof text), 3);
    assert_string_equal(text, "abc");
}

static void reads_as_much_as_there_is(void **state)
{
    char out[8] = "";
    size_t len = 0;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    assert_int_equal(file_read(ends[0], out, 2, &len), 0);
    assert_int_equal(len, 2);
    close(ends[1]);
    assert_int_equal(file_read(ends[0], out, sizeof out, &len), 0);
    assert_int_equal(len, 1);
    assert_int_equal(out[0], 'c');
    close(ends[0]);
    assert_int_equal(file_read(ends[0], out, sizeof out, &len), -EBADF);
    assert_int_equal(len, 1); /* as it was */
}

/* Neither a symlink nor a pipe that nobody writes to. */
static void reads_no_other_thing(void **state)
{
    const struct fixture *f = *state;
    char text[8];

    assert_int_equal(file_read_text(f->path, text, sizeof text), -ENOENT);
    assert_int_equal(symlink("/proc/self/comm", f->path), 0);
    assert_int_equal(file_read_text(f->path, text, sizeof text), -ELOOP);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(file_read_text(f->path, text, sizeof text), 0);
}

static void a_file_is_itself_until_it_is_written(void **state)
{
    const struct fixture *f = *state;
    struct timespec later[2] = {{.tv_sec = 1}, {.tv_sec = 1, .tv_nsec = 1}};
    struct file_identity first, now = file_identity_at(f->dir, "a", S_IFREG);

    assert_true(file_identity_is_none(&now));
    assert_int_equal(file_replace(f->path, "ab", 2), 0);
    first = file_identity_at(f->dir, "a", S_IFREG);
    assert_false(file_identity_is_none(&first));
    assert_int_equal(chmod(f->path, 0640), 0);
    now = file_identity_at(f->dir, "a", S_IFREG);
    assert_true(file_identity_is(&first, &now));
    now = file_identity_at(f->dir, "a", S_IFSOCK);
    assert_true(file_identity_is_none(&now));
    assert_int_equal(utimensat(AT_FDCWD, f->path, later, 0), 0);
    now = file_identity_at(f->dir, "a", S_IFREG);
    assert_false(file_identity_is(&first, &now));
    assert_int_equal(now.modified_ns, 1000000001);
}

static void paths_are_put_together(void **state)
{
    char *joined = path_join("/a/b", "c"), *beside = path_beside("/a/b", "c");
    char *top = path_beside("/a", "c");

    (void)state;
    assert_string_equal(joined, "/a/b/c");
    assert_string_equal(beside, "/a/c");
    assert_string_equal(top, "/c");
    free(joined);
    free(beside);
    free(top);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(replaces_the_whole_file),
        TEST(keeps_what_it_cannot_replace),
        TEST(what_outlives_the_kernel_is_synced_with_its_directory),
        TEST(reads_the_beginning_of_a_long_one),
        TEST(reads_as_much_as_there_is),
        TEST(reads_no_other_thing),
        TEST(a_file_is_itself_until_it_is_written),
        TEST(paths_are_put_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
