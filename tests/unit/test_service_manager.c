/* shim/service_manager.c: readiness and passed sockets, against real sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/service_manager.h"

/* A receiver at `name` ('@' in front: abstract), told to the code under test. */
static int receiver(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    else
        unlink(name);
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

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
    fd = receiver(name);
    assert_int_equal(service_manager_notify("READY=1"), 0);
    receives(fd, "READY=1");
    close(fd);
    unlink(name);
    name[0] = '@';
    fd = receiver(name);
    assert_int_equal(service_manager_notify("STOPPING=1"), 0);
    receives(fd, "STOPPING=1");
    close(fd);
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

/* In a child with `first` and `second` as descriptors 3 and 4: what service_manager_socket() says
 * there. */
static int socket_in_child(const char *pid, const char *fds, int first, int second)
{
    pid_t child = fork();
    char own[16];
    int status;

    if (child == 0) {
        int a = dup2(first, 20), b = dup2(second, 21);

        dup2(a, 3);
        dup2(b, 4);
        snprintf(own, sizeof own, "%d", (int)getpid());
        setenv("LISTEN_PID", pid ? pid : own, 1);
        setenv("LISTEN_FDS", fds, 1);
        status = service_manager_socket();
        _exit(getenv("LISTEN_FDS") ? 99 : status < 0 ? 50 : status);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 50 ? -1 : WEXITSTATUS(status);
}

static void takes_the_first_listening_unix_stream(void **state)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX}; /* autobind, unix(7) */
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    int silent = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(bind(listening, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(socket_in_child(NULL, "2", listening, silent), 3);
    assert_int_equal(socket_in_child(NULL, "2", silent, listening), 4);
    assert_int_equal(socket_in_child(NULL, "1", silent, listening), -1);
    assert_int_equal(socket_in_child(NULL, "0", listening, listening), -1);
    assert_int_equal(socket_in_child(NULL, "two", listening, listening), -1);
    assert_int_equal(socket_in_child(NULL, "-2", listening, listening), -1);
    assert_int_equal(socket_in_child("1", "2", listening, listening), -1);
    assert_int_equal(socket_in_child("", "2", listening, listening), -1);
    close(listening);
    close(silent);
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
        cmocka_unit_test(nobody_to_tell_is_no_error),
        cmocka_unit_test(the_watchdog_is_this_process_s_own),
        cmocka_unit_test(takes_the_first_listening_unix_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
