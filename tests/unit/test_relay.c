/*
 * shim/relay/relay.c on a real socket, with a listening socket for the runtime and nothing behind
 * the calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/log.h"
#include "shim/relay/relay.h"

#define GUARD_MS 20000
#define BACKLOG 16

struct world {
    uv_loop_t loop;
    struct relay *relay;
    char dir[40];
    char front[64];
    char back[64];
    int back_fd;
    bool stopped;
};

/* ---- stand-ins for calls.c ---- */

static void on_begun(void *owner, struct session *session, pid_t client)
{
    (void)owner, (void)session, (void)client;
}

static void on_gone(void *owner, struct session *session)
{
    (void)owner, (void)session;
}

struct session_owner calls_owner(struct calls *calls)
{
    static const struct session_owner_ops OPS = {.begun = on_begun, .gone = on_gone};

    return (struct session_owner){&OPS, calls};
}

void calls_drain(struct calls *calls)
{
    (void)calls;
}

void calls_runtime_back(struct calls *calls)
{
    (void)calls;
}

/* ---- the world ---- */

static int unix_socket(const char *path, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (listens) {
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(listen(fd, BACKLOG), 0);
    } else {
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    }
    return fd;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    *state = w;
    snprintf(w->dir, sizeof w->dir, "/tmp/test-relay-XXXXXX");
    if (!mkdtemp(w->dir))
        return -1;
    snprintf(w->front, sizeof w->front, "%s/front", w->dir);
    snprintf(w->back, sizeof w->back, "%s/back", w->dir);
    w->back_fd = unix_socket(w->back, true);
    uv_loop_init(&w->loop);
    w->relay = relay_start(&w->loop, w->front, -1, NULL, w->back, NULL, false);
    return relay_listen(w->relay) == 1 ? 0 : -1;
}

static void on_stopped(void *user)
{
    ((struct world *)user)->stopped = true;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    relay_stop(w->relay, 0, on_stopped, w);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_true(w->stopped);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    close(w->back_fd);
    unlink(w->back);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

/* Waits until the relay has connected to the runtime; its end of that. */
static int runtime_accepts(struct world *w)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = uv_backend_fd(&w->loop), .events = POLLIN},
                               {.fd = w->back_fd, .events = POLLIN}};
        int timeout, fd;

        uv_run(&w->loop, UV_RUN_NOWAIT);
        fd = accept4(w->back_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            return fd;
        timeout = uv_backend_timeout(&w->loop);
        assert_true(poll(fds, 2, timeout < 0 ? GUARD_MS : timeout) > 0 || timeout >= 0);
    }
}

/* ---- tests ---- */

/* Each allocation fails once: that client waits a little, and those behind it are served too. */
static void without_memory_a_client_waits(void **state)
{
    struct world *w = *state;
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        int clients[2], servers[2];

        alloc_fail_at(n);
        for (int i = 0; i < 2; i++)
            clients[i] = unix_socket(w->front, false);
        alloc_fail_enable(true);
        for (int i = 0; i < 2; i++)
            servers[i] = runtime_accepts(w);
        alloc_fail_enable(false);
        failed = alloc_failed();
        for (int i = 0; i < 2; i++) {
            close(clients[i]);
            close(servers[i]);
        }
        assert_true(failed || n > 1);
    }
    alloc_fail_at(0);
}

/* It has not been cut off. */
static void assert_waits(int client)
{
    char byte;

    assert_int_equal(recv(client, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

/* Some turns; none of them is for who waits, but the timer's. */
static void run_while_some_wait(struct world *w)
{
    for (int i = 0; i < 10; i++) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        uv_sleep(20);
    }
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_in_range(uv_backend_timeout(&w->loop), 1, 100);
    assert_int_equal(poll(&(struct pollfd){.fd = uv_backend_fd(&w->loop), .events = POLLIN}, 1, 0),
                     0);
    assert_false(relay_counts(w->relay)->runtime_away);
}

/* There is one for the client, and none for the runtime's side. */
static void without_a_descriptor_a_client_waits(void **state)
{
    struct world *w = *state;
    int client = unix_socket(w->front, false), next = dup(client), server;
    struct rlimit before, one;

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    one = (struct rlimit){(rlim_t)next + 1, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &one), 0);
    run_while_some_wait(w);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_waits(client);
    server = runtime_accepts(w);
    assert_waits(client);
    close(client);
    close(server);
}

static void while_the_runtimes_backlog_is_full_clients_wait(void **state)
{
    struct world *w = *state;
    int others[BACKLOG + 1], clients[2], servers[2];

    for (int i = 0; i <= BACKLOG; i++)
        others[i] = unix_socket(w->back, false);
    for (int i = 0; i < 2; i++)
        clients[i] = unix_socket(w->front, false);
    run_while_some_wait(w);
    for (int i = 0; i <= BACKLOG; i++) {
        close(accept(w->back_fd, NULL, NULL));
        close(others[i]);
    }
    for (int i = 0; i < 2; i++)
        servers[i] = runtime_accepts(w);
    for (int i = 0; i < 2; i++) {
        assert_waits(clients[i]);
        close(clients[i]);
        close(servers[i]);
    }
}

/* Stopped while a client waits for memory. */
static void stopped_without_memory(void **state)
{
    struct world *w = *state;
    int client = unix_socket(w->front, false);

    alloc_fail_at(1);
    alloc_fail_enable(true);
    while (!alloc_failed())
        uv_run(&w->loop, UV_RUN_NOWAIT);
    alloc_fail_enable(false);
    alloc_fail_at(0);
    close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_memory_a_client_waits),
        TEST(without_a_descriptor_a_client_waits),
        TEST(while_the_runtimes_backlog_is_full_clients_wait),
        TEST(stopped_without_memory),
    };

    log_set_level(0); /* the tests provoke errors */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
