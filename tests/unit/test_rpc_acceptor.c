/* shim/rpc/acceptor.c on a listening socket, whose owner has room or has not, and fails when
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/log.h"
#include "shim/rpc/acceptor.h"
#include "shim/rpc/unix_socket.h"
#include "under_valgrind.h"

#define GUARD_S 20
#define CLIENTS_MAX 100

struct world {
    uv_loop_t loop;
    uv_timer_t tick; /* what else there is to do */
    unsigned ticks;
    struct acceptor *acceptor;
    char dir[40];
    char path[64];
    int taken[CLIENTS_MAX];
    int taken_len;
    int room;  /* for so many more */
    int fails; /* so often */
    int offered;
    bool closed;
};

static bool has_room(void *user)
{
    struct world *w = user;

    return w->taken_len < w->room;
}

static int take(void *user, int fd)
{
    struct world *w = user;

    w->offered++;
    if (w->fails > 0) {
        w->fails--;
        return -ENOMEM;
    }
    w->taken[w->taken_len++] = fd;
    return 0;
}

static void on_closed(void *user)
{
    struct world *w = user;

    assert_false(w->closed);
    w->closed = true;
}

static void on_tick(uv_timer_t *timer)
{
    struct world *w = timer->data;

    w->ticks++;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    const struct acceptor_owner owner = {
        .name = "test", .user = w, .has_room = has_room, .take = take, .closed = on_closed};
    int fd;

    w->room = CLIENTS_MAX;
    snprintf(w->dir, sizeof w->dir, "/tmp/acceptor-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
    assert_int_equal(unix_listen(w->path, 0600, &fd), 0);
    uv_loop_init(&w->loop);
    uv_timer_init(&w->loop, &w->tick);
    w->tick.data = w;
    uv_timer_start(&w->tick, on_tick, 1, 1);
    assert_int_equal(acceptor_open(&w->loop, fd, &owner, &w->acceptor), 0);
    assert_int_equal(acceptor_fd(w->acceptor), fd);
    alarm(GUARD_S);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    acceptor_close(w->acceptor);
    uv_close((uv_handle_t *)&w->tick, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_true(w->closed);
    for (int i = 0; i < w->taken_len; i++)
        close(w->taken[i]);
    unlink(w->path);
    rmdir(w->dir);
    free(w);
    alarm(0);
    return 0;
}

static int client_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void connect_to(const struct world *w, int client)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", w->path);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
}

static int connected(const struct world *w)
{
    int client = client_socket();

    connect_to(w, client);
    return client;
}

/* The loop goes round for other things. */
static void go_round(struct world *w, unsigned ticks)
{
    for (unsigned until = w->ticks + ticks; w->ticks < until;)
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void until_taken(struct world *w, int len)
{
    while (w->taken_len < len)
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void takes_all_who_wait(void **state)
{
    struct world *w = *state;
    int clients[CLIENTS_MAX];

    for (int i = 0; i < CLIENTS_MAX; i++)
        clients[i] = connected(w);
    until_taken(w, CLIENTS_MAX);
    for (int i = 0; i < CLIENTS_MAX; i++)
        close(clients[i]);
    assert_int_equal(w->offered, CLIENTS_MAX);
}

/* libuv's own listening would try on and on, and nothing else have its turn. */
static void without_a_descriptor_a_client_waits_and_nothing_else(void **state)
{
    struct world *w = *state;
    struct rlimit before, none;
    int client;

    if (under_valgrind())
        skip();
    client = client_socket();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    connect_to(w, client);
    go_round(w, 3);
    assert_int_equal(w->offered, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    until_taken(w, 1);
    close(client);
}

static void who_could_not_be_taken_is_offered_again(void **state)
{
    struct world *w = *state;
    int first, second;
    char byte;

    w->fails = 2;
    first = connected(w);
    second = connected(w);
    assert_int_equal(send(first, "1", 1, 0), 1);
    assert_int_equal(send(second, "2", 1, 0), 1);
    until_taken(w, 2);
    assert_int_equal(w->offered, 4);
    assert_int_equal(recv(w->taken[0], &byte, 1, 0), 1);
    assert_int_equal(byte, '1');
    assert_int_equal(recv(w->taken[1], &byte, 1, 0), 1);
    assert_int_equal(byte, '2');
    close(first);
    close(second);
}

static void who_finds_no_room_waits_until_there_is(void **state)
{
    struct world *w = *state;
    int first = connected(w), second = connected(w);

    w->room = 1;
    go_round(w, 3);
    assert_int_equal(w->taken_len, 1);
    w->room = 2;
    acceptor_go_on(w->acceptor);
    until_taken(w, 2);
    close(first);
    close(second);
}

/* Its owner need not say so. */
static void room_is_looked_for_again(void **state)
{
    struct world *w = *state;
    int client = connected(w);

    w->room = 0;
    go_round(w, 3);
    assert_int_equal(w->taken_len, 0);
    w->room = 1;
    until_taken(w, 1);
    close(client);
}

/* Neither a descriptor is left of one that could not be taken, nor does it wait on. */
static void closes_who_could_not_be_taken(void **state)
{
    struct world *w = *state;
    int client = connected(w);
    char byte;

    w->fails = 1;
    while (w->offered == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    acceptor_close(w->acceptor);
    w->acceptor = NULL;
    assert_int_equal(acceptor_fd(w->acceptor), -1);
    acceptor_go_on(w->acceptor);
    assert_int_equal(recv(client, &byte, 1, 0), 0);
    close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(takes_all_who_wait),
        TEST(without_a_descriptor_a_client_waits_and_nothing_else),
        TEST(who_could_not_be_taken_is_offered_again),
        TEST(who_finds_no_room_waits_until_there_is),
        TEST(room_is_looked_for_again),
        TEST(closes_who_could_not_be_taken),
    };

    log_set_level(0); /* the tests provoke errors */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
