/* shim/bridge/kept_server.c, kept_connection.c: a client that goes while nothing more can be
 * written to it, one that holds too much, many that ask for nothing, and a service manager that
 * does not read. */
#include "tests/unit/waiting.h"

#include <dirent.h>
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "notify_socket.h"
#include "shim/bridge/kept_connection.h"
#include "shim/bridge/kept_server.h"
#include "shim/bridge/limits.h"

#define PATH "/s/Wait"
#define NAME "s.sock"

struct fixture {
    struct world *world;
    struct kept_server *server;
    struct kept_call *call; /* not answered */
    bool cancelled;
    int fd; /* the client's */
    struct fd_store *store;
    int manager; /* where it keeps descriptors; only with `store` */
};

static void on_cancelled(void *user)
{
    struct fixture *f = user;

    f->call = NULL;
    f->cancelled = true;
}

static void on_wait(struct kept_call *call, const ProtobufCMessage *request, void *user)
{
    struct fixture *f = user;

    (void)request;
    f->call = call;
    kept_call_on_cancel(call, on_cancelled, f);
}

static const struct kept_method METHODS[] = {{PATH, &v1beta1__empty__descriptor, on_wait}};

static int connect_to(const struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/" NAME, f->world->dir);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int setup_with(void **state, struct fd_store *store)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct socket_place place = {.name = NAME};

    f->store = store;
    f->manager = store ? manager_start() : -1;
    f->world = world_new();
    place.dir = f->world->dir;
    f->server = kept_server_new(&f->world->loop, &place, store, METHODS, 1, f);
    assert_non_null(f->server);
    kept_server_go_on(f->server);
    assert_int_equal(kept_server_listen(f->server), 1);
    f->fd = connect_to(f);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int setup_kept(void **state)
{
    return setup_with(state, fd_store_new());
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    kept_server_close(f->server, false);
    world_free(f->world);
    if (f->store)
        manager_stop(f->manager);
    fd_store_free(f->store);
    free(f);
    return 0;
}

static const char *const FIELDS[] = {":method",          "POST", ":path", PATH, "content-type",
                                     "application/grpc", NULL};

static void call(struct fixture *f)
{
    static struct bytes bytes;

    bytes.len = 0;
    bytes_preface(&bytes);
    bytes_headers(&bytes, NGHTTP2_FLAG_NONE, 1, FIELDS);
    bytes_message(&bytes, NGHTTP2_FLAG_END_STREAM, 1, 0, "", 0);
    assert_int_equal(send(f->fd, bytes.data, bytes.len, MSG_NOSIGNAL), bytes.len);
    WAIT(f->world, f->call);
}

static const uint8_t PING[17] = {0, 0, 8, NGHTTP2_PING};

/* Sends PINGs, of whose answers it reads none, until neither end takes any more. */
static void stuff(struct fixture *f)
{
    size_t at = 0;

    for (unsigned in_vain = 0; in_vain < 100; in_vain++) {
        ssize_t n;

        while ((n = send(f->fd, PING + at, sizeof PING - at, MSG_NOSIGNAL)) > 0) {
            at = (at + (size_t)n) % sizeof PING;
            in_vain = 0;
        }
        assert_int_equal(errno, EAGAIN);
        uv_run(&f->world->loop, UV_RUN_NOWAIT);
    }
}

/* The answer comes in the same turn of the loop, and is what finds out first. */
static void goes_while_it_is_answered(void **state)
{
    struct fixture *f = *state;

    call(f);
    stuff(f);
    close(f->fd);
    kept_call_finish(f->call, RPC_OK, NULL);
    WAIT(f->world, !kept_server_is_connected(f->server));
}

static void goes_before_it_is_answered(void **state)
{
    struct fixture *f = *state;

    call(f);
    stuff(f);
    close(f->fd);
    WAIT(f->world, !kept_server_is_connected(f->server));
    assert_true(f->cancelled);
}

#define STREAMS 6
#define FRAMES 768 /* of a stream: 12 MiB; those of all are more than KEPT_HELD_BYTES_MAX */

/* Requests that are never whole, until the server has had enough of them. */
static void begin_large_calls(struct fixture *f, int fd)
{
    static struct bytes bytes;
    static const uint8_t zeros[16384];
    size_t at = 0;

    for (unsigned i = 0; i < STREAMS * (FRAMES + 1); i++) {
        uint32_t stream = 1 + 2 * (i / (FRAMES + 1));

        bytes.len = 0;
        if (i == 0)
            bytes_preface(&bytes);
        if (i % (FRAMES + 1) == 0)
            bytes_headers(&bytes, NGHTTP2_FLAG_NONE, stream, FIELDS);
        else
            bytes_frame(&bytes, NGHTTP2_DATA, 0, stream, zeros, sizeof zeros);
        for (at = 0; at < bytes.len;) {
            ssize_t n = send(fd, bytes.data + at, bytes.len - at, MSG_NOSIGNAL);

            if (n < 0 && errno != EAGAIN)
                return;
            at += n > 0 ? (size_t)n : 0;
            if (n < 0)
                uv_run(&f->world->loop, UV_RUN_NOWAIT);
        }
    }
}

static bool is_ended(int fd)
{
    uint8_t bytes[4096];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        ;
    return n == 0 || errno != EAGAIN;
}

/* Another one's call waits on. */
static void who_holds_most_goes(void **state)
{
    struct fixture *f = *state;
    int fd = connect_to(f);

    call(f);
    begin_large_calls(f, fd);
    WAIT(f->world, is_ended(fd));
    close(fd);
    world_settle(f->world);
    assert_non_null(f->call);
    assert_false(is_ended(f->fd));
    close(f->fd);
    WAIT(f->world, !kept_server_is_connected(f->server));
}

/* Who has a call keeps his connection, though it is the oldest. */
static void who_asks_for_nothing_goes_for_another(void **state)
{
    struct fixture *f = *state;
    int idle[KEPT_CONNECTIONS_MAX], first = f->fd;
    struct kept_call *of_first;

    call(f);
    of_first = f->call;
    for (int i = 0; i < KEPT_CONNECTIONS_MAX; i++)
        idle[i] = connect_to(f);
    f->fd = connect_to(f);
    f->call = NULL;
    call(f);
    assert_false(is_ended(first));
    kept_call_finish(of_first, RPC_OK, NULL);
    kept_call_finish(f->call, RPC_OK, NULL);
    close(first);
    close(f->fd);
    for (int i = 0; i < KEPT_CONNECTIONS_MAX; i++)
        close(idle[i]);
    WAIT(f->world, !kept_server_is_connected(f->server));
}

/* It may send as fast as it is read from. */
static void who_sends_on_and_on_leaves_others_their_turn(void **state)
{
    static const uint8_t UNKNOWN[9 + 16384] = {0, 0x40, 0, 0xee}; /* of no use, and no mistake */
    struct fixture *f = *state;
    int waiting = 1;

    call(f);
    kept_call_finish(f->call, RPC_OK, NULL);
    while (send(f->fd, UNKNOWN, sizeof UNKNOWN, MSG_NOSIGNAL) == (ssize_t)sizeof UNKNOWN)
        ;
    assert_int_equal(errno, EAGAIN);
    uv_run(&f->world->loop, UV_RUN_NOWAIT);
    assert_int_equal(ioctl(f->fd, SIOCOUTQ, &waiting), 0);
    assert_true(waiting > 0);
    while (waiting > 0) {
        uv_run(&f->world->loop, UV_RUN_NOWAIT);
        assert_int_equal(ioctl(f->fd, SIOCOUTQ, &waiting), 0);
    }
}

/* Accepted, but there is no descriptor for what is kept of it. */
static void a_connection_waits_for_a_descriptor_of_its_memory(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, one;
    int first = f->fd, next;

    call(f); /* what is opened on the way is open */
    kept_call_finish(f->call, RPC_OK, NULL);
    f->fd = connect_to(f);
    next = dup(f->fd);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    one = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &one), 0);
    for (int i = 0; i < 3; i++)
        uv_run(&f->world->loop, UV_RUN_NOWAIT);
    assert_false(is_ended(f->fd));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    f->call = NULL;
    call(f);
    kept_call_finish(f->call, RPC_OK, NULL);
    close(first);
}

/* Of the one connection that there is; -1: none. */
static int kept_memory(void)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    int fd = -1;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char target[64] = "";

        if (readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1) > 0 &&
            strstr(target, "memfd:kept-socket"))
            fd = atoi(entry->d_name);
    }
    closedir(dir);
    return fd;
}

/* Whether anything lies in a place of a request or an answer (kept_memory.c, AREAS_AT). */
static bool places_hold_anything(void)
{
    return lseek(kept_memory(), (off_t)32 * 1024 * 1024, SEEK_DATA) >= 0;
}

static void send_ping(const struct fixture *f)
{
    assert_int_equal(send(f->fd, PING, sizeof PING, MSG_NOSIGNAL), sizeof PING);
    world_settle(f->world);
}

/* It goes in one, within the client's window: nobody sees it on its way. */
static void what_an_answer_took_is_given_back(void **state)
{
    V1beta1__RegisterRequest answer = V1BETA1__REGISTER_REQUEST__INIT; /* any with a long text */
    static char text[60000];
    struct fixture *f = *state;

    memset(text, 'x', sizeof text - 1);
    answer.endpoint = text;
    call(f);
    kept_call_answer(f->call, &answer.base);
    assert_true(places_hold_anything());
    assert_false(is_ended(f->fd)); /* all of it is read */
    send_ping(f);
    assert_false(places_hold_anything());
    assert_int_equal(errno, ENXIO);
    close(f->fd);
    WAIT(f->world, !kept_server_is_connected(f->server));
}

/* Whether it was sent this; all that it was sent is read. */
static bool manager_has(const struct fixture *f, const char *text)
{
    char bytes[256];
    bool has = false;
    ssize_t n;

    while ((n = recv(f->manager, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        has = has || memmem(bytes, (size_t)n, text, strlen(text));
    return has;
}

static void a_manager_that_did_not_read_is_told_with_the_next_bytes(void **state)
{
    struct fixture *f = *state;

    while (fd_store_put(f->store, "another/", f->manager) == 0)
        ;
    call(f);
    assert_false(manager_has(f, "FDNAME=" KEPT_CONNECTIONS));
    world_settle(f->world);
    assert_int_equal(send(f->fd, PING, sizeof PING, MSG_NOSIGNAL), sizeof PING);
    world_settle(f->world);
    assert_true(manager_has(f, "FDNAME=" KEPT_CONNECTIONS));
    assert_int_equal(send(f->fd, PING, sizeof PING, MSG_NOSIGNAL), sizeof PING);
    world_settle(f->world);
    assert_false(manager_has(f, "FDNAME=" KEPT_CONNECTIONS)); /* once */
    close(f->fd);
    WAIT(f->world, !kept_server_is_connected(f->server));
    assert_true(manager_has(f, "FDSTOREREMOVE=1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(goes_while_it_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(goes_before_it_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(who_holds_most_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_for_nothing_goes_for_another, setup, teardown),
        cmocka_unit_test_setup_teardown(who_sends_on_and_on_leaves_others_their_turn, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_connection_waits_for_a_descriptor_of_its_memory, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_an_answer_took_is_given_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_manager_that_did_not_read_is_told_with_the_next_bytes,
                                        setup_kept, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
