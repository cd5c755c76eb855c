/* shim/events/events_file.c: records behind records; nothing that is half there. */
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
#include <unistd.h>

#include <cmocka.h>

#include "shim/events/events_file.h"
#include "shim/events/limits.h"

struct fixture {
    char dir[32], path[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/cds-events-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/events", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    unlink(f->path);
    err = rmdir(f->dir);
    free(f);
    return err;
}

static int append(struct fixture *f, size_t before, const char *text)
{
    return events_file_append(f->path, before, (const uint8_t *)text, strlen(text));
}

static void expect_text(struct fixture *f, const char *text)
{
    uint8_t *bytes;
    size_t len;

    assert_int_equal(events_file_read(f->path, &bytes, &len), 0);
    assert_int_equal(len, strlen(text));
    if (len > 0)
        assert_memory_equal(bytes, text, len);
    free(bytes);
}

static void it_grows(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    expect_text(f, "");
    assert_int_equal(append(f, 0, "one"), 0);
    assert_int_equal(append(f, 3, "two"), 0);
    expect_text(f, "onetwo");
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void one_that_is_another_is_left_alone(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(append(f, 5, "one"), -ESTALE);
    assert_int_equal(append(f, 0, "one"), 0);
    assert_int_equal(append(f, 2, "two"), -ESTALE);
    expect_text(f, "one");
}

static void what_does_not_fit_is_taken_back(void **state)
{
    const struct rlimit small = {8, RLIM_INFINITY};
    struct fixture *f = *state;
    struct rlimit before;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(append(f, 0, "first"), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(append(f, 5, "second"), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_text(f, "first");
}

static void what_is_no_file_of_ours_is_not_read(void **state)
{
    struct fixture *f = *state;
    uint8_t *bytes;
    size_t len;
    int fd;

    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_int_equal(events_file_read(f->path, &bytes, &len), -EINVAL);
    assert_null(bytes);
    assert_true(append(f, 0, "x") < 0);
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(events_file_read(f->path, &bytes, &len), -EINVAL);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink("/dev/null", f->path), 0);
    assert_int_equal(events_file_read(f->path, &bytes, &len), -ELOOP);
    assert_int_equal(append(f, 0, "x"), -ELOOP);
    assert_int_equal(unlink(f->path), 0);
    fd = open(f->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, EVENTS_FILE_BYTES_MAX + 1), 0);
    close(fd);
    assert_int_equal(events_file_read(f->path, &bytes, &len), -EFBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_another_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_file_of_ours_is_not_read, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
