/* shim/plugins/registrar.c: the Registration service, called as a plugin does. */
#include "tests/unit/rpc_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/plugins/limits.h"
#include "shim/plugins/registrar.h"
#include "shim/rpc/rpc.h"
#include "tests/unit/waiting.h"

struct fixture {
    struct world *world;
    char dir[64];
    char path[96];
    struct registrar *registrar;
    struct rpc_channel *channel;
    unsigned registered, cancelled, answered;
    uint64_t number;
    char version[32], socket_name[32], resource[32];
    uid_t uid;
    unsigned messages;
    int code;
    char message[128];
};

static void on_registered(void *user, uint64_t registration, const char *version,
                          const char *socket_name, uid_t uid, const char *resource)
{
    struct fixture *f = user;

    f->registered++;
    f->number = registration;
    snprintf(f->version, sizeof f->version, "%s", version);
    snprintf(f->socket_name, sizeof f->socket_name, "%s", socket_name);
    f->uid = uid;
    snprintf(f->resource, sizeof f->resource, "%s", resource);
}

static void on_cancelled(void *user, uint64_t registration)
{
    struct fixture *f = user;

    f->cancelled++;
    assert_int_equal(registration, f->number);
}

static const struct registrar_ops OPS = {.registered = on_registered, .cancelled = on_cancelled};

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct fixture *f = user;

    (void)call;
    (void)message;
    f->messages++;
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct fixture *f = user;

    (void)call;
    f->answered++;
    f->code = status->code;
    snprintf(f->message, sizeof f->message, "%s", status->message);
}

static const struct rpc_call_ops CALL_OPS = {.message = on_message, .done = on_done};
static const struct rpc_channel_ops CHANNEL_OPS = {0};

static void start(struct fixture *f, void **state)
{
    memset(f, 0, sizeof *f);
    f->world = *state;
    snprintf(f->dir, sizeof f->dir, "%s/plugins", f->world->dir);
    snprintf(f->path, sizeof f->path, "%s/kubelet.sock", f->dir);
    f->registrar = registrar_start(&f->world->loop, f->dir, NULL, &OPS, f);
    assert_int_equal(rpc_channel_open(&f->world->loop, f->path, &CHANNEL_OPS, NULL, &f->channel),
                     0);
}

static void stop(struct fixture *f)
{
    rpc_channel_close(f->channel);
    registrar_stop(f->registrar);
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(rmdir(f->dir), 0);
}

static struct rpc_call *call_register(struct fixture *f)
{
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    struct rpc_call *call;

    request.version = (char *)"v1beta1";
    request.endpoint = (char *)"gpu.sock";
    request.resource_name = (char *)"v.com/gpu";
    call = rpc_channel_call(f->channel, DEVICEPLUGIN_REGISTER, &request.base,
                            &v1beta1__empty__descriptor, false, 0, &CALL_OPS, f);
    assert_non_null(call);
    return call;
}

static void makes_the_directory_and_its_socket(void **state)
{
    struct fixture f;
    struct stat st;

    start(&f, state);
    assert_int_equal(stat(f.dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(lstat(f.path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
    stop(&f);
}

static void answers_with_success(void **state)
{
    struct fixture f;

    start(&f, state);
    call_register(&f);
    WAIT(f.world, f.registered == 1);
    assert_string_equal(f.version, "v1beta1");
    assert_string_equal(f.socket_name, "gpu.sock");
    assert_string_equal(f.resource, "v.com/gpu");
    assert_int_equal(f.uid, getuid());
    assert_true(registrar_waits(f.registrar, "gpu.sock"));
    assert_false(registrar_waits(f.registrar, "other.sock"));
    registrar_answer(f.registrar, f.number, RPC_OK, NULL);
    assert_false(registrar_waits(f.registrar, "gpu.sock"));
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_OK);
    assert_int_equal(f.messages, 1);
    stop(&f);
}

static void answers_with_the_reason(void **state)
{
    struct fixture f;

    start(&f, state);
    call_register(&f);
    WAIT(f.world, f.registered == 1);
    registrar_answer(f.registrar, f.number + 1, RPC_OK, NULL); /* not pending */
    registrar_answer(f.registrar, f.number, RPC_UNKNOWN, "the ResourceName \"x\" is invalid");
    registrar_answer(f.registrar, f.number, RPC_OK, NULL); /* not any more */
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_UNKNOWN);
    assert_string_equal(f.message, "the ResourceName \"x\" is invalid");
    stop(&f);
}

static void tells_that_the_caller_is_gone(void **state)
{
    struct fixture f;

    start(&f, state);
    rpc_call_cancel(NULL);
    for (unsigned i = 1; i <= 2; i++) {
        struct rpc_call *call = call_register(&f);

        WAIT(f.world, f.registered == i);
        rpc_call_cancel(call);
        WAIT(f.world, f.cancelled == i);
        registrar_answer(f.registrar, f.number, RPC_OK, NULL);
    }
    assert_int_equal(f.answered, 0);
    stop(&f);
}

static void open_another(struct fixture *f)
{
    assert_int_equal(rpc_channel_open(&f->world->loop, f->path, &CHANNEL_OPS, NULL, &f->channel),
                     0);
}

static void bounds_the_calls_that_wait(void **state)
{
    struct rpc_channel *full[REGISTRAR_PENDING_MAX / REGISTRAR_CALLS_MAX];
    struct fixture f;

    start(&f, state);
    for (unsigned i = 0; i < sizeof full / sizeof *full; i++) {
        for (unsigned k = 0; k <= REGISTRAR_CALLS_MAX; k++)
            call_register(&f); /* the last one waits with us */
        WAIT(f.world, f.registered == (i + 1) * REGISTRAR_CALLS_MAX);
        full[i] = f.channel;
        open_another(&f);
    }
    assert_int_equal(f.registered, REGISTRAR_PENDING_MAX);
    call_register(&f);
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_RESOURCE_EXHAUSTED);
    assert_int_equal(f.registered, REGISTRAR_PENDING_MAX);
    for (unsigned i = 0; i < sizeof full / sizeof *full; i++)
        rpc_channel_close(full[i]);
    stop(&f);
}

static void stops_with_calls_waiting(void **state)
{
    struct fixture f;

    start(&f, state);
    call_register(&f);
    WAIT(f.world, f.registered == 1);
    registrar_stop(f.registrar);
    f.registrar = NULL;
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_UNAVAILABLE);
    assert_int_equal(f.cancelled, 0);
    stop(&f);
}

/* Says that it waits, and for what. */
static void waits_for_a_socket_in_use(void **state)
{
    struct registrar *second;
    struct fixture f;

    start(&f, state);
    second = registrar_start(&f.world->loop, f.dir, NULL, &OPS, &f);
    call_register(&f);
    WAIT(f.world, f.registered == 1);
    registrar_stop(f.registrar);
    f.registrar = second;
    WAIT(f.world, access(f.path, F_OK) == 0);
    stop(&f);
}

/* Says so. */
static void waits_for_a_directory(void **state)
{
    struct fixture f = {.world = *state};
    char dir[64];

    snprintf(dir, sizeof dir, "%s/plugins", f.world->dir);
    close(open(dir, O_CREAT | O_WRONLY, 0600));
    start(&f, state);
    unlink(dir);
    WAIT(f.world, access(f.path, F_OK) == 0);
    stop(&f);
}

/* `rm -rf` of the whole directory, as people do to make a kubelet forget. Says so. */
static void comes_back_when_it_is_removed(void **state)
{
    struct fixture f;

    start(&f, state);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(rmdir(f.dir), 0);
    WAIT(f.world, access(f.path, F_OK) == 0);
    rpc_channel_close(f.channel);
    assert_int_equal(rpc_channel_open(&f.world->loop, f.path, &CHANNEL_OPS, NULL, &f.channel), 0);
    call_register(&f);
    WAIT(f.world, f.registered == 1);
    stop(&f);
}

static void bind_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static bool is_known(void *user, const char *name)
{
    return strcmp(name, user) == 0;
}

/* Says so of what it removes, and of a directory that is none. */
static void removes_plugins_sockets_and_nothing_else(void **state)
{
    static const char *const stay[] = {"kubelet.sock", "known.sock",
                                       "below/a.sock", "kubelet_internal_checkpoint",
                                       "link.sock",    "below"};
    struct fixture f = {.world = *state};
    char path[128], known[] = "known.sock";

    snprintf(f.dir, sizeof f.dir, "%s/plugins", f.world->dir);
    registrar_remove_sockets(f.dir, is_known, known); /* there is none yet */
    assert_int_equal(mkdir(f.dir, 0755), 0);
    snprintf(path, sizeof path, "%s/below", f.dir);
    assert_int_equal(mkdir(path, 0755), 0);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", f.dir, stay[i]);
        bind_socket(path);
    }
    snprintf(path, sizeof path, "%s/%s", f.dir, stay[3]);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "%s/%s", f.dir, stay[4]);
    assert_int_equal(symlink("below/a.sock", path), 0);
    snprintf(path, sizeof path, "%s/gpu.sock", f.dir);
    bind_socket(path);
    registrar_remove_sockets(f.dir, is_known, known);
    assert_int_equal(access(path, F_OK), -1);
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++) {
        snprintf(path, sizeof path, "%s/%s", f.dir, stay[i]);
        if (i == 3)
            registrar_remove_sockets(path, is_known, known);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(f.dir), 0);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(makes_the_directory_and_its_socket),
        WORLD_TEST(answers_with_success),
        WORLD_TEST(answers_with_the_reason),
        WORLD_TEST(tells_that_the_caller_is_gone),
        WORLD_TEST(bounds_the_calls_that_wait),
        WORLD_TEST(stops_with_calls_waiting),
        WORLD_TEST(waits_for_a_socket_in_use),
        WORLD_TEST(waits_for_a_directory),
        WORLD_TEST(comes_back_when_it_is_removed),
        WORLD_TEST(removes_plugins_sockets_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
