/* shim/bridge/registration.c: kubelets that come, go and are slow, each a server of our own. */
#include "tests/unit/waiting.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/bridge/registration.h"

struct fixture {
    struct world *world;
    struct registration *registration;
    struct rpc_server *kubelet;
    unsigned connected, lost;
    unsigned looks;
    bool (*found)(struct fixture *f, bool *present); /* another file at this look; NULL: none is */
    char asked[128]; /* the last Register: "version endpoint resource options" */
    bool hold;       /* Register is not answered */
    bool called;
    bool done;
    int code;
};

static void on_connected(void *user)
{
    struct fixture *f = user;

    f->connected++;
}

static void on_lost(void *user)
{
    struct fixture *f = user;

    f->lost++;
}

static void on_look(void *user)
{
    struct fixture *f = user;
    bool present;

    f->looks++;
    if (f->found && f->found(f, &present))
        registration_socket(f->registration, present ? KUBELET_SOCKET_NEW : KUBELET_SOCKET_GONE);
}

static const struct registration_ops OPS = {on_look, on_connected, on_lost};

static void ignore(void *user)
{
    (void)user;
}

static void on_register(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    struct fixture *f = user;

    snprintf(f->asked, sizeof f->asked, "%s %s %s %d%d", request->version, request->endpoint,
             request->resource_name, request->options->pre_start_required,
             request->options->get_preferred_allocation_available);
    f->called = true;
    if (f->hold) {
        rpc_incoming_on_cancel(call, ignore, NULL);
        return;
    }
    assert_int_equal(rpc_incoming_send(call, &empty.base), 0);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static const struct rpc_method METHODS[] = {
    {DEVICEPLUGIN_REGISTER, &v1beta1__register_request__descriptor, on_register},
};

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct fixture *f = user;

    (void)call;
    f->done = true;
    f->code = status->code;
}

static const struct rpc_call_ops CALL_OPS = {on_message, on_done};

static void start(struct fixture *f, struct world *world)
{
    memset(f, 0, sizeof *f);
    f->world = world;
    f->registration = registration_new(&world->loop, world->path, &OPS, f);
}

static void serve(struct fixture *f)
{
    assert_int_equal(serve_at(&f->world->loop, f->world->path, METHODS, 1, f, &f->kubelet), 0);
}

static void die(struct fixture *f)
{
    rpc_server_close(f->kubelet);
    f->kubelet = NULL;
}

static void end(struct fixture *f)
{
    registration_free(f->registration);
    registration_free(NULL);
    rpc_server_close(f->kubelet);
}

static void call(struct fixture *f)
{
    f->done = f->called = false;
    assert_non_null(registration_call(f->registration, "v.com/gpu", "sub/gpu.sock", &CALL_OPS, f));
}

static void connects_and_registers(void **state)
{
    struct fixture f;

    start(&f, *state);
    serve(&f);
    world_settle(f.world);
    assert_int_equal(f.connected, 0); /* nobody said that there is a socket */
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    assert_int_equal(f.connected, 0);
    WAIT(f.world, f.connected == 1);
    assert_true(registration_connected(f.registration));
    assert_int_equal(registration_pid(f.registration), getpid());
    assert_int_equal(registration_epoch(f.registration), 1);
    call(&f);
    WAIT(f.world, f.done);
    assert_int_equal(f.code, RPC_OK);
    assert_string_equal(f.asked, "v1beta1 sub/gpu.sock v.com/gpu 01");
    end(&f);
}

static void tries_again_until_somebody_listens(void **state)
{
    struct world *world = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct fixture f;

    start(&f, world);
    strcpy(address.sun_path, world->path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    for (int i = 0; i < 5; i++)
        wait_turn(world); /* each a try */
    assert_int_equal(f.connected, 0);
    assert_int_equal(registration_pid(f.registration), 0);
    assert_int_equal(listen(fd, 1), 0);
    WAIT(world, f.connected == 1);
    close(fd);
    WAIT(world, f.lost == 1);
    unlink(world->path);
    end(&f);
}

static void stops_trying_when_the_socket_is_gone(void **state)
{
    struct fixture f;

    start(&f, *state);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    wait_turn(f.world);
    registration_socket(f.registration, KUBELET_SOCKET_GONE);
    registration_socket(f.registration, KUBELET_SOCKET_GONE);
    serve(&f);
    world_settle(f.world);
    assert_int_equal(f.connected, 0);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    WAIT(f.world, f.connected == 1);
    end(&f);
}

static void a_kubelet_that_dies_ends_its_calls(void **state)
{
    struct fixture f;

    start(&f, *state);
    serve(&f);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    WAIT(f.world, f.connected == 1);
    f.hold = true;
    call(&f);
    WAIT(f.world, f.called);
    die(&f);
    WAIT(f.world, f.lost == 1);
    assert_true(f.done);
    assert_int_equal(f.code, RPC_UNAVAILABLE);
    assert_int_equal(registration_pid(f.registration), 0);
    assert_false(registration_connected(f.registration));
    /* The next one may even have the same file. */
    serve(&f);
    WAIT(f.world, f.connected == 2);
    assert_int_equal(registration_epoch(f.registration), 1);
    end(&f);
}

/* Each connection ends as soon as it stands: a while passes before the next. */
static void one_that_hangs_up_is_not_connected_to_without_pause(void **state)
{
    struct world *world = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t began_ms = uv_now(&world->loop);
    struct fixture f;

    start(&f, world);
    strcpy(address.sun_path, world->path);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    for (unsigned count = 1; count <= 50; count++) {
        WAIT(world, f.connected == count);
        close(accept(listener, NULL, NULL));
        WAIT(world, f.lost == count);
    }
    assert_true(uv_now(&world->loop) - began_ms >= 49);
    close(listener);
    unlink(world->path);
    end(&f);
}

static void another_socket_is_another_kubelet(void **state)
{
    struct fixture f;
    struct rpc_server *old;

    start(&f, *state);
    serve(&f);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    WAIT(f.world, f.connected == 1);
    unlink(f.world->path);
    /* While connected the file does not matter. */
    registration_socket(f.registration, KUBELET_SOCKET_GONE);
    assert_true(registration_connected(f.registration));
    old = f.kubelet;
    serve(&f);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    assert_false(registration_connected(f.registration));
    assert_int_equal(registration_epoch(f.registration), 2);
    WAIT(f.world, f.connected == 2);
    assert_int_equal(f.lost, 0);
    call(&f);
    WAIT(f.world, f.done);
    rpc_server_close(old); /* unlinks */
    end(&f);
}

static void the_same_socket_is_the_same_kubelet(void **state)
{
    struct fixture f;

    start(&f, *state);
    serve(&f);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    WAIT(f.world, f.connected == 1);
    registration_socket(f.registration, KUBELET_SOCKET_GONE);
    registration_socket(f.registration, KUBELET_SOCKET_BACK);
    world_settle(f.world);
    assert_true(registration_connected(f.registration));
    call(&f);
    WAIT(f.world, f.done);
    assert_int_equal(f.code, RPC_OK);
    assert_int_equal(f.connected, 1);
    assert_int_equal(f.lost, 0);
    /* The connection is lost while it is hidden. */
    registration_socket(f.registration, KUBELET_SOCKET_GONE);
    die(&f);
    WAIT(f.world, f.lost == 1);
    registration_socket(f.registration, KUBELET_SOCKET_GONE);
    serve(&f);
    world_settle(f.world);
    assert_int_equal(f.connected, 1);
    registration_socket(f.registration, KUBELET_SOCKET_BACK);
    WAIT(f.world, f.connected == 2);
    assert_int_equal(registration_epoch(f.registration), 1);
    end(&f);
}

/* Another file is found by `found` on the way: connected once, and for good, to that one. */
static void connect_found(struct fixture *f, struct world *world,
                          bool (*found)(struct fixture *f, bool *present))
{
    start(f, world);
    serve(f);
    f->found = found;
    registration_socket(f->registration, KUBELET_SOCKET_NEW);
    WAIT(world, f->connected == 1);
    world_settle(world);
    assert_int_equal(f->connected, 1);
    assert_int_equal(f->lost, 0);
    assert_int_equal(registration_epoch(f->registration), 2);
}

static bool found_before_it_connects(struct fixture *f, bool *present)
{
    *present = true;
    return f->looks == 1;
}

/* What it connects to is the file that the owner has found just then. */
static void a_file_found_just_before_it_connects(void **state)
{
    struct fixture f;

    connect_found(&f, *state, found_before_it_connects);
    assert_int_equal(f.looks, 2);
    end(&f);
}

static bool found_after_it_connected(struct fixture *f, bool *present)
{
    assert_int_equal(f->connected, 0);
    assert_int_equal(registration_pid(f->registration) != 0, f->looks % 2 == 0);
    *present = true;
    return f->looks == 2;
}

/* Who it has connected to may be the one before: that one is not registered with. */
static void a_file_found_just_after_it_connected(void **state)
{
    struct fixture f;

    connect_found(&f, *state, found_after_it_connected);
    assert_int_equal(f.looks, 4);
    end(&f);
}

static bool gone_when_it_connects(struct fixture *f, bool *present)
{
    *present = false;
    return f->looks == 1 || f->looks == 3;
}

/* Before, and after. */
static void a_file_gone_when_it_connects(void **state)
{
    struct fixture f;

    start(&f, *state);
    serve(&f);
    f.found = gone_when_it_connects;
    for (unsigned looks = 1; looks <= 3; looks += 2) {
        registration_socket(f.registration, KUBELET_SOCKET_NEW);
        WAIT(f.world, f.looks >= looks);
        world_settle(f.world);
        assert_int_equal(f.looks, looks);
        assert_int_equal(f.connected, 0);
        assert_int_equal(registration_pid(f.registration), 0);
    }
    end(&f);
}

static void ends_in_any_state(void **state)
{
    struct fixture f;

    start(&f, *state);
    end(&f);
    start(&f, *state);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    wait_turn(f.world);
    end(&f);
    start(&f, *state);
    serve(&f);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    WAIT(f.world, f.connected == 1);
    f.hold = true;
    call(&f);
    WAIT(f.world, f.called);
    end(&f);
    world_settle(f.world);
    assert_false(f.done);
    assert_int_equal(f.lost, 0);
}

static void a_path_too_long_is_no_crash(void **state)
{
    struct world *world = *state;
    char path[200];
    struct fixture f = {.world = world};

    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    f.registration = registration_new(&world->loop, path, &OPS, &f);
    registration_socket(f.registration, KUBELET_SOCKET_NEW);
    wait_turn(world);
    assert_int_equal(f.connected, 0);
    registration_free(f.registration);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(connects_and_registers),
        WORLD_TEST(tries_again_until_somebody_listens),
        WORLD_TEST(stops_trying_when_the_socket_is_gone),
        WORLD_TEST(a_kubelet_that_dies_ends_its_calls),
        WORLD_TEST(one_that_hangs_up_is_not_connected_to_without_pause),
        WORLD_TEST(another_socket_is_another_kubelet),
        WORLD_TEST(the_same_socket_is_the_same_kubelet),
        WORLD_TEST(a_file_found_just_before_it_connects),
        WORLD_TEST(a_file_found_just_after_it_connected),
        WORLD_TEST(a_file_gone_when_it_connects),
        WORLD_TEST(ends_in_any_state),
        WORLD_TEST(a_path_too_long_is_no_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
