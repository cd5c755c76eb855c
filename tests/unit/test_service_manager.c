/* shim/service_manager.c: readiness and passed sockets, against real sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "notify_socket.h"
#include "shim/service_manager.h"

static void receives(int fd, const char *state)
{
    char got[64] = {0};

    assert_int_equal(recv(fd, got, sizeof got - 1, MSG_DONTWAIT), strlen(state));
    assert_string_equal(got, state);
}

static void tells_the_manager_by_path_and_by_abstract_name(void **state)
{
    char name[64];
    int fd;

    (void)state;
    snprintf(name, sizeof name, "/tmp/test-notify-%d", (int)getpid());
    fd = manager_at(name);
    assert_int_equal(service_manager_notify("READY=1"), 0);
    receives(fd, "READY=1");
    close(fd);
    unlink(name);
    name[0] = '@';
    fd = manager_at(name);
    assert_int_equal(service_manager_notify("STOPPING=1"), 0);
    receives(fd, "STOPPING=1");
    close(fd);
}

/* It would be taken to hang, and killed. */
static void without_a_descriptor_left_it_is_told_on(void **state)
{
    int manager = manager_start(), one = dup(manager);
    struct rlimit before, none;

    (void)state;
    assert_int_equal(service_manager_notify("READY=1"), 0);
    receives(manager, "READY=1");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(dup(manager), -1);
    assert_int_equal(service_manager_notify("WATCHDOG=1"), 0);
    assert_int_equal(service_manager_notify_with("FDSTORE=1", &one, 1), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    receives(manager, "WATCHDOG=1");
    receives(manager, "FDSTORE=1");
    close(one);
    manager_stop(manager);
}

static void nobody_to_tell_is_no_error(void **state)
{
    char name[200];

    (void)state;
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(service_manager_notify("READY=1"), 0);
    setenv("NOTIFY_SOCKET", "/tmp/nobody/listens/here", 1);
    assert_true(service_manager_notify("READY=1") < 0);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    assert_true(service_manager_notify("READY=1") < 0);
    unsetenv("NOTIFY_SOCKET");
}

static void the_watchdog_is_this_process_s_own(void **state)
{
    char own[16];

    (void)state;
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "2500000", 1);
    assert_int_equal(service_manager_watchdog_ms(), 0); /* nobody to tell */
    setenv("NOTIFY_SOCKET", "/tmp/nobody", 1);
    assert_int_equal(service_manager_watchdog_ms(), 2500);
    snprintf(own, sizeof own, "%d", (int)getpid());
    setenv("WATCHDOG_PID", own, 1);
    assert_int_equal(service_manager_watchdog_ms(), 2500);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(service_manager_watchdog_ms(), 0);
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(service_manager_watchdog_ms(), 0);
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(service_manager_watchdog_ms(), 0);
    unsetenv("NOTIFY_SOCKET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_the_manager_by_path_and_by_abstract_name),
        cmocka_unit_test(without_a_descriptor_left_it_is_told_on),
        cmocka_unit_test(nobody_to_tell_is_no_error),
        cmocka_unit_test(the_watchdog_is_this_process_s_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
