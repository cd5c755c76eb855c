/* shim/watchdog.c: what a service manager is told, from the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "rpc_fixture.h"
#include "shim/service_manager.h"
#include "shim/watchdog.h"

struct fixture {
    struct world *world;
    uv_poll_t manager;
    int fd;
    unsigned fed;
    bool enough;
    bool closed;
};

static void on_said(uv_poll_t *handle, int status, int events)
{
    struct fixture *f = handle->data;
    char said[64] = {0};

    (void)events;
    assert_int_equal(status, 0);
    assert_true(recv(f->fd, said, sizeof said - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(said, "WATCHDOG=1");
    f->enough = ++f->fed == 6; /* more than once a period, and again */
}

static void on_closed(uv_handle_t *handle)
{
    struct fixture *f = handle->data;

    close(f->fd);
    f->closed = true;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    f->world = world_new();
    snprintf(address.sun_path, sizeof address.sun_path, "%s", f->world->path);
    f->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (bind(f->fd, (struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    setenv("NOTIFY_SOCKET", f->world->path, 1);
    uv_poll_init(&f->world->loop, &f->manager, f->fd);
    f->manager.data = f;
    uv_poll_start(&f->manager, UV_READABLE, on_said);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int result;

    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    uv_close((uv_handle_t *)&f->manager, on_closed);
    world_wait(f->world, &f->closed);
    unlink(f->world->path);
    result = world_free(f->world);
    free(f);
    return result;
}

static void it_is_fed_again_and_again(void **state)
{
    struct fixture *f = *state;
    struct watchdog watchdog;

    setenv("WATCHDOG_USEC", "40000", 1);
    watchdog_start(&watchdog, &f->world->loop);
    assert_int_equal(uv_timer_get_repeat(&watchdog.timer), 10);
    world_wait(f->world, &f->enough);
    watchdog_close(&watchdog);
    world_settle(f->world);
}

static void without_one_nothing_wakes_the_loop(void **state)
{
    struct fixture *f = *state;
    struct watchdog watchdog;

    watchdog_start(&watchdog, &f->world->loop);
    assert_false(uv_is_active((uv_handle_t *)&watchdog.timer));
    world_settle(f->world);
    assert_int_equal(f->fed, 0);
    watchdog_close(&watchdog);
    world_settle(f->world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_fed_again_and_again),
        TEST(without_one_nothing_wakes_the_loop),
    };

    setenv("NOTIFY_SOCKET", "/nobody", 1); /* the first time takes a descriptor */
    assert_true(service_manager_notify("READY=1") < 0);
    unsetenv("NOTIFY_SOCKET");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
