/* shim/bridge/bridge.c: kubelets that end and begin while nothing of the bridge runs. */
#include "tests/unit/waiting.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/bridge/bridge.h"
#include "shim/bridge/kubelet_dir.h"

struct fixture {
    struct world *world;
    struct settings settings;
    struct fd_store *store;
    struct bridge *bridge;
    char dir[64], socket[96], feed[64];
    int listener;
};

/* ---- kubelets, of which only the connections count ---- */

static void kubelet_bind(struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, f->socket);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&address, sizeof address), 0);
}

/* As at a kubelet's start: what is left of the one before goes first. */
static void kubelet_start(struct fixture *f)
{
    unlink(f->socket);
    kubelet_bind(f);
    assert_int_equal(listen(f->listener, 8), 0);
}

/* The next connection, or -1. */
static int kubelet_accept(const struct fixture *f)
{
    return accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
}

static int kubelet_connected(const struct fixture *f)
{
    int fd;

    WAIT(f->world, (fd = kubelet_accept(f)) >= 0);
    world_settle(f->world);
    assert_int_equal(kubelet_accept(f), -1);
    return fd;
}

/* Its end is handled, and what follows from it has not begun: an end of the connection comes with
 * the polling, and the timer that it starts is due in the next turn. */
static void kubelet_die(struct fixture *f, int connection)
{
    struct pollfd fd = {.fd = uv_backend_fd(&f->world->loop), .events = POLLIN};

    close(f->listener);
    world_settle(f->world);
    close(connection);
    poll(&fd, 1, -1);
    uv_run(&f->world->loop, UV_RUN_NOWAIT);
}

static bool ended(int connection)
{
    char bytes[4096];
    ssize_t n;

    while ((n = recv(connection, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* ---- the bridge ---- */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    f->listener = -1;
    snprintf(f->dir, sizeof f->dir, "%s/d", f->world->dir);
    snprintf(f->socket, sizeof f->socket, "%s/" KUBELET_SOCKET_NAME, f->dir);
    snprintf(f->feed, sizeof f->feed, "%s/feed", f->world->dir);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    f->settings.config.dra.kubelet_registry_dir = f->dir;
    f->settings.config.bridge =
        (struct config_bridge){.enabled = true, .socket = f->feed, .kubelet_plugin_dir = f->dir};
    kubelet_start(f);
    f->store = fd_store_new();
    f->bridge = bridge_start(&f->world->loop, &f->settings, f->store);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    bridge_stop(f->bridge);
    close(f->listener);
    unlink(f->socket);
    assert_int_equal(rmdir(f->dir), 0);
    err = world_free(f->world);
    fd_store_free(f->store);
    free(f);
    return err;
}

/* ---- tests ---- */

/* Its file is there before the next try, the event that tells of it is read after that: without a
 * look at the try the connection to the new kubelet would be made, dropped and made again, and a
 * kubelet takes the end of what was registered over the first for that of the second. */
static void a_new_kubelet_is_connected_to_once(void **state)
{
    struct fixture *f = *state;
    int old = kubelet_connected(f);

    kubelet_die(f, old);
    kubelet_start(f);
    old = kubelet_connected(f);
    assert_false(ended(old));
    close(old);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_kubelet_is_connected_to_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
