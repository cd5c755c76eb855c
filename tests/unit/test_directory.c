/* shim/directory.c on a real file system. */
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
#include <unistd.h>

#include <cmocka.h>

#include "shim/directory.h"

struct fixture {
    char dir[64];
    char path[PATH_MAX];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    snprintf(f->dir, sizeof f->dir, "/tmp/test-directory-XXXXXX");
    *state = f;
    return mkdtemp(f->dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];
    int r;

    snprintf(command, sizeof command, "rm -r %s", f->dir);
    r = system(command);
    free(f);
    return r;
}

static const char *in(struct fixture *f, const char *name)
{
    snprintf(f->path, sizeof f->path, "%s/%s", f->dir, name);
    return f->path;
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? st.st_mode & 07777 : 0;
}

static void all_that_is_missing_is_made(void **state)
{
    mode_t mask = umask(077);

    assert_int_equal(directory_make(in(*state, "a//b/c/"), 0755), 0);
    umask(mask);
    assert_int_equal(mode_of(in(*state, "a")), 0755);
    assert_int_equal(mode_of(in(*state, "a/b")), 0755);
    assert_int_equal(mode_of(in(*state, "a/b/c")), 0755);
    assert_int_equal(directory_make("/", 0700), 0);
}

static void one_that_is_there_is_left_as_it_is(void **state)
{
    assert_int_equal(mkdir(in(*state, "a"), 0700), 0);
    assert_int_equal(directory_make(in(*state, "a/b"), 0755), 0);
    assert_int_equal(mode_of(in(*state, "a")), 0700);
    assert_int_equal(directory_make(in(*state, "a"), 0755), 0);
    assert_int_equal(mode_of(in(*state, "a")), 0700);
    assert_int_equal(mode_of(in(*state, "a/b")), 0755);
}

static void something_else_in_the_way(void **state)
{
    int fd = open(in(*state, "file"), O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(directory_make(in(*state, "file"), 0755), -ENOTDIR);
    assert_int_equal(directory_make(in(*state, "file/below"), 0755), -ENOTDIR);
    assert_int_equal(symlink("nowhere", in(*state, "dangling")), 0);
    assert_int_equal(directory_make(in(*state, "dangling"), 0755), -ENOENT);
    assert_int_equal(mkdir(in(*state, "real"), 0755), 0);
    assert_int_equal(symlink("real", in(*state, "link")), 0);
    assert_int_equal(directory_make(in(*state, "link/below"), 0755), 0);
}

static void a_path_too_long(void **state)
{
    char path[PATH_MAX + 2];

    (void)state;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(directory_make(path, 0755), -ENAMETOOLONG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_that_is_missing_is_made),
        TEST(one_that_is_there_is_left_as_it_is),
        TEST(something_else_in_the_way),
        cmocka_unit_test(a_path_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
