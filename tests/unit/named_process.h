/*
 * A child process that bears a name, for tests that tell processes apart by it.
 */
#ifndef TESTS_UNIT_NAMED_PROCESS_H
#define TESTS_UNIT_NAMED_PROCESS_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* It has the name when this returns, and waits to be killed. */
static inline pid_t named_process(const char *name)
{
    int ready[2];
    char byte = 0;
    pid_t pid;

    if (pipe(ready) < 0 || (pid = fork()) < 0)
        return -1;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, name);
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        pid = -1;
    close(ready[0]);
    return pid;
}

static inline void named_process_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

#endif
