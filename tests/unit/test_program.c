/* shim/program.c: this program's own file, and what takes its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/program.h"

/* In this program. */
#define IN_IT "a text that this program has"

static char dir[32], copy[64];

static int set_up(void **state)
{
    char command[128];

    (void)state;
    strcpy(dir, "/tmp/cds-program-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(copy, sizeof copy, "%s/program", dir);
    snprintf(command, sizeof command, "cp /proc/%d/exe %s", (int)getpid(), copy);
    return system(command);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(copy);
    return rmdir(dir);
}

static void replace(const char *bytes, size_t len)
{
    int fd;

    unlink(copy);
    fd = open(copy, O_WRONLY | O_CREAT | O_EXCL, 0700);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

/* The copy as a process that does as main() says. */
static bool copy_has(const char *what)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        execl(copy, copy, what, NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status);
}

static void a_program_is_read_as_it_is_by_now(void **state)
{
    (void)state;
    assert_true(copy_has("same"));
    assert_false(copy_has("replaced"));
}

static void one_that_is_not_there_may_have_all(void **state)
{
    (void)state;
    assert_true(copy_has("gone"));
    assert_true(program_has("never noted"));
}

/* What a copy of this program does: it notes its file, which then changes. */
static int as_copy(const char *self, const char *what)
{
    static const char other[] = "another program, without it";

    strcpy(copy, self);
    program_note();
    if (strcmp(what, "replaced") == 0)
        replace(other, sizeof other);
    else if (strcmp(what, "gone") == 0)
        unlink(copy);
    return program_has(IN_IT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_program_is_read_as_it_is_by_now),
        TEST(one_that_is_not_there_may_have_all),
    };

    if (argc == 2)
        return as_copy(argv[0], argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
