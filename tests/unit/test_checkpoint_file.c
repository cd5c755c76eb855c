/* shim/kubelet/checkpoint_file.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/kubelet/checkpoint_file.h"
#include "tests/unit/kubelet_files.h"

struct fixture {
    char dir[32];
    char path[96];
    struct kubelet_checkpoint checkpoint;
    time_t written;
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/cds-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/" KUBELET_CHECKPOINT_FILE, f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    kubelet_checkpoint_fini(&f->checkpoint);
    remove(f->path);
    rmdir(f->dir);
    free(f);
    return 0;
}

static enum kubelet_file_state read_it(struct fixture *f)
{
    return checkpoint_file_read(f->path, &f->checkpoint, &f->written, f->err, sizeof f->err);
}

static void what_it_says_and_when(void **state)
{
    struct fixture *f = *state;
    const struct timespec times[2] = {{.tv_sec = 4711}, {.tv_sec = 4711}};

    assert_int_equal(kubelet_file_write(f->dir, KUBELET_FILE_HELD), 0);
    assert_int_equal(utimensat(AT_FDCWD, f->path, times, 0), 0);
    assert_int_equal(read_it(f), KUBELET_FILE_READ);
    assert_int_equal(f->written, 4711);
    assert_int_equal(f->checkpoint.allocations_len, 1);
    assert_string_equal(f->checkpoint.allocations[0].pod_uid, "uid-1");
}

static void none(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(read_it(f), KUBELET_FILE_MISSING);
    assert_string_equal(f->err, strerror(ENOENT));
    strcpy(f->path, "/dev/null/" KUBELET_CHECKPOINT_FILE);
    assert_int_equal(read_it(f), KUBELET_FILE_MISSING);
}

static void damaged(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(kubelet_file_write(f->dir, ""), 0);
    assert_int_equal(read_it(f), KUBELET_FILE_DAMAGED);
    assert_int_not_equal(f->err[0], '\0');
    assert_null(f->checkpoint.allocations);
}

static void a_fifo_or_a_giant_holds_nobody_up(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(read_it(f), KUBELET_FILE_UNREADABLE);
    assert_string_equal(f->err, "it is no file");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(kubelet_file_write(f->dir, ""), 0);
    assert_int_equal(truncate(f->path, (off_t)KUBELET_CHECKPOINT_BYTES_MAX + 1), 0);
    assert_int_equal(read_it(f), KUBELET_FILE_UNREADABLE);
    assert_non_null(strstr(f->err, "more than"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_it_says_and_when, setup, teardown),
        cmocka_unit_test_setup_teardown(none, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fifo_or_a_giant_holds_nobody_up, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
