/*
 * A child process that bears a name, for tests that tell processes apart by it.
 */
#ifndef TESTS_UNIT_NAMED_PROCESS_H
#define TESTS_UNIT_NAMED_PROCESS_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* It has the name when this returns, and waits to be killed; without one the test fails. */
static inline pid_t named_process(const char *name)
{
    int ready[2];
    char byte = 0;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, name);
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static inline void named_process_kill(pid_t pid)
{
    assert_true(pid > 0); /* -1 is everybody */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

#endif
