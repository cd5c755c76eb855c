#include "killed_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

static bool changes_a_file(uint64_t call)
{
    static const uint64_t CALLS[] = {
        SYS_write,     SYS_pwrite64, SYS_writev,    SYS_pwritev, SYS_ftruncate,
        SYS_fallocate, SYS_fsync,    SYS_fdatasync, SYS_openat,  SYS_renameat,
        SYS_renameat2, SYS_unlinkat, SYS_mkdirat,   SYS_linkat,
#ifdef SYS_rename
        SYS_open,      SYS_rename,   SYS_unlink,    SYS_mkdir,   SYS_link,
#endif
    };

    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++) {
        if (call == CALLS[i])
            return true;
    }
    return false;
}

/* Until it is about to change something, or has ended, of which waitpid(2)'s words are given. */
static int go_on(pid_t pid)
{
    struct __ptrace_syscall_info info;
    int status, signal = 0;

    for (;;) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)signal), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFSTOPPED(status))
            return status;
        signal = WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status);
        if (signal != 0)
            continue;
        assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) > 0);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && changes_a_file(info.entry.nr))
            return status;
    }
}

bool killed_at_call(unsigned n, int (*work)(void *user), void *user)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
            _exit(2);
        _exit(work(user) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(
        ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)),
        0);
    for (unsigned i = 0; i < n; i++) {
        status = go_on(pid);
        if (WIFSTOPPED(status))
            continue;
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    return true;
}
