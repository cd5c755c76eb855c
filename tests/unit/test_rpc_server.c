/* shim/rpc/server.c: its socket and its clients, which speak raw bytes. */
#include "tests/unit/rpc_asked.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

static const struct rpc_limits ONE_CONNECTION = {
    .connections = 1, .request_bytes = 1024, .queue_bytes = 1024, .calls = 16};
static const struct rpc_limits TWO_CONNECTIONS = {
    .connections = 2, .request_bytes = 1024, .queue_bytes = 1024, .calls = 16};

/* With a call, which is the one that is served; another one's waits. */
static struct raw *take_the_only_place(struct fixture *f)
{
    struct raw *first;

    rpc_server_set_limits(f->served.server, &ONE_CONNECTION);
    ask_taken(f);
    first = f->raw;
    f->served.called = false;
    ask(f);
    world_settle(f->world);
    return first;
}

static void more_connections_than_it_takes_wait(void **state)
{
    struct fixture *f = *state;
    struct raw *first;

    first = take_the_only_place(f);
    assert_false(f->served.called);
    raw_close(first);
    world_wait(f->world, &f->served.called);
    f->served.cancelled = false;
    end(f);
    free(first);
}

/* As those of a process that registers anew and anew, and closes no connection. */
static void idle_connections_do_not_keep_others_out(void **state)
{
    struct fixture *f = *state;
    struct raw *first, *idle = calloc(1, sizeof *idle);
    struct rpc_incoming *held;

    rpc_server_set_limits(f->served.server, &TWO_CONNECTIONS);
    ask_taken(f);
    first = f->raw;
    held = f->served.call;
    raw_connect(idle, f->world);
    world_settle(f->world);
    f->served.called = false;
    ask(f);
    world_wait(f->world, &f->served.called);
    world_wait(f->world, &idle->ended);
    assert_false(first->ended);
    rpc_incoming_finish(held, RPC_OK, NULL);
    world_settle(f->world);
    assert_false(first->ended);
    raw_close(first);
    raw_close(idle);
    end(f);
    free(first);
    free(idle);
}

/* Its calls are over when the next comes. */
static void a_connection_is_idle_when_its_calls_are_over(void **state)
{
    struct fixture *f = *state;
    struct raw *first;

    first = take_the_only_place(f);
    rpc_incoming_finish(f->served.call, RPC_OK, NULL);
    world_wait(f->world, &f->served.called);
    assert_true(first->request_whole); /* it had its answer */
    raw_close(first);
    end(f);
    free(first);
}

static uint64_t later_ms; /* the loop's clock, as this server sees it */

uint64_t __real_uv_now(const uv_loop_t *loop);
uint64_t __wrap_uv_now(const uv_loop_t *loop);

uint64_t __wrap_uv_now(const uv_loop_t *loop)
{
    return __real_uv_now(loop) + later_ms;
}

/* Nobody waits behind him for whom another would have to go. */
static void the_last_place_is_taken_at_nobodys_cost(void **state)
{
    struct fixture *f = *state;
    struct raw *first;

    rpc_server_set_limits(f->served.server, &TWO_CONNECTIONS);
    ask_taken(f);
    first = f->raw;
    rpc_incoming_finish(f->served.call, RPC_OK, NULL);
    world_settle(f->world);
    later_ms = 2000;
    f->served.called = false;
    ask_taken(f);
    world_settle(f->world);
    assert_false(first->ended);
    later_ms = 0;
    raw_close(first);
    end(f);
    free(first);
}

/* Both places are taken, one by a call that is served, one by what `request` begins: the latter is
 * for who comes after ten seconds. */
static void only_the_served_one_stays(struct fixture *f, const struct bytes *request)
{
    struct raw *first, *stuck;

    rpc_server_set_limits(f->served.server, &TWO_CONNECTIONS);
    ask_taken(f);
    first = f->raw;
    stuck = ask_with(f, request);
    world_settle(f->world);
    f->served.called = false;
    ask(f);
    later_ms = 9000;
    world_settle(f->world);
    assert_false(f->served.called || stuck->ended);
    later_ms = 10000;
    world_wait(f->world, &stuck->ended);
    world_wait(f->world, &f->served.called);
    assert_false(first->ended);
    later_ms = 0;
    raw_close(first);
    raw_close(stuck);
    world_wait(f->world, &f->served.cancelled);
    f->served.cancelled = false;
    end(f);
    free(first);
    free(stuck);
}

static void a_call_that_is_never_whole_does_not_keep_others_out(void **state)
{
    static struct bytes half;

    half.len = 0;
    bytes_headers(&half, 0, 1, request_fields);
    bytes_frame(&half, NGHTTP2_DATA, 0, 1, WHOLE - 1);
    only_the_served_one_stays(*state, &half);
}

static void an_answer_that_is_never_taken_does_not_keep_others_out(void **state)
{
    static const uint8_t no_window[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0, 0};
    struct fixture *f = *state;
    static struct bytes request, whole;

    request_with(&whole, ":path", "/test/Answer", WHOLE);
    request.len = 0;
    bytes_frame(&request, NGHTTP2_SETTINGS, 0, 0, no_window, sizeof no_window);
    bytes_add(&request, whole.data, whole.len);
    only_the_served_one_stays(f, &request);
}

static void the_socket_is_private_and_goes_with_the_server(void **state)
{
    static const struct rpc_method none = {"/test/None", &v1beta1__empty__descriptor, NULL};
    struct fixture *f = *state;
    struct rpc_server *second;
    struct stat st;

    assert_int_equal(stat(f->world->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(serve_at(&f->world->loop, f->world->path, &none, 1, NULL, &second),
                     -EADDRINUSE);
    served_close(&f->served);
    assert_int_equal(access(f->world->path, F_OK), -1);
    rpc_server_close(NULL);
}

static void the_server_may_close_inside_cancelled(void **state)
{
    struct fixture *f = *state;

    f->served.close_in_cancelled = true;
    ask_taken(f);
    raw_close(f->raw);
    world_wait(f->world, &f->served.cancelled);
}

static void the_server_may_close_inside_handle(void **state)
{
    struct fixture *f = *state;

    f->served.close_in_handle = true;
    ask(f);
    world_wait(f->world, &f->raw->ended);
    end(f);
    assert_true(f->served.called);
    assert_false(f->served.cancelled);
}

static void disconnects_its_clients_and_takes_others(void **state)
{
    struct fixture *f = *state;

    ask_taken(f);
    rpc_server_disconnect(f->served.server);
    world_wait(f->world, &f->raw->ended);
    assert_false(f->served.cancelled);
    hang_up(f);
    f->served.called = false;
    ask_taken(f);
}

static void listens_again_where_its_socket_was_removed(void **state)
{
    struct fixture *f = *state;
    struct raw *first;

    ask_taken(f);
    first = f->raw;
    unlink(f->world->path);
    assert_int_equal(rpc_server_listen(f->served.server), 1);
    assert_int_equal(rpc_server_listen(f->served.server), 0);
    f->served.called = false;
    ask_taken(f);
    assert_false(first->ended || f->served.cancelled);
    raw_close(first);
    world_wait(f->world, &f->served.cancelled);
    free(first);
    f->served.cancelled = false;
    end(f);
    assert_int_equal(access(f->world->path, F_OK), -1);
}

static void a_server_that_cannot_listen_again_keeps_its_clients(void **state)
{
    struct fixture *f = *state;
    char inner[96];

    ask_taken(f);
    unlink(f->world->path);
    snprintf(inner, sizeof inner, "%s/x", f->world->path);
    assert_int_equal(mkdir(f->world->path, 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(rpc_server_listen(f->served.server), -ENOTEMPTY);
    assert_int_equal(rpc_server_listen(f->served.server), -ENOTEMPTY);
    world_settle(f->world);
    assert_false(f->raw->ended || f->served.cancelled);
    end(f);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(rmdir(f->world->path), 0); /* not the server's: it stands yet */
}

static void a_request_over_what_the_owner_allows_is_refused(void **state)
{
    static const struct rpc_limits limits = {
        .connections = 16, .request_bytes = REQUEST_LEN - 1, .queue_bytes = 1024, .calls = 16};
    struct fixture *f = *state;

    rpc_server_set_limits(f->served.server, &limits);
    assert_true(answers(f, "no room for the message beside others"));
    assert_false(f->served.called);
}

static void more_answers_than_the_owner_allows_are_not_taken(void **state)
{
    static const struct rpc_limits limits = {
        .connections = 16, .request_bytes = 1024, .queue_bytes = 100, .calls = 16};
    V1beta1__RegisterRequest message = V1BETA1__REGISTER_REQUEST__INIT;
    struct fixture *f = *state;
    char words[120];

    rpc_server_set_limits(f->served.server, &limits);
    memset(words, 'a', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    message.endpoint = words;
    ask_taken(f);
    assert_int_equal(rpc_incoming_send(f->served.call, &message.base), 0);
    assert_int_equal(rpc_incoming_send(f->served.call, &message.base), -ENOBUFS);
}

static uid_t peer_uid; /* as the kernel would say it; 0: as it does */

int __real_unix_peer(int fd, struct ucred *out);
int __wrap_unix_peer(int fd, struct ucred *out);

int __wrap_unix_peer(int fd, struct ucred *out)
{
    int err = __real_unix_peer(fd, out);

    if (peer_uid != 0)
        out->uid = peer_uid;
    return err;
}

static void a_private_server_answers_no_stranger(void **state)
{
    static const struct rpc_limits limits = {.connections = 16,
                                             .request_bytes = 1024,
                                             .queue_bytes = 1024,
                                             .calls = 16,
                                             .private = true};
    struct fixture *f = *state;

    rpc_server_set_limits(f->served.server, &limits);
    peer_uid = 65534;
    ask(f);
    world_wait(f->world, &f->raw->ended);
    assert_true(raw_got(f->raw, "only for root and the user of this process"));
    assert_false(f->served.called);
    hang_up(f);
    peer_uid = geteuid();
    ask_taken(f);
    peer_uid = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(more_connections_than_it_takes_wait),
        TEST(idle_connections_do_not_keep_others_out),
        TEST(a_connection_is_idle_when_its_calls_are_over),
        TEST(the_last_place_is_taken_at_nobodys_cost),
        TEST(a_call_that_is_never_whole_does_not_keep_others_out),
        TEST(an_answer_that_is_never_taken_does_not_keep_others_out),
        TEST(a_request_over_what_the_owner_allows_is_refused),
        TEST(more_answers_than_the_owner_allows_are_not_taken),
        TEST(a_private_server_answers_no_stranger),
        TEST(the_socket_is_private_and_goes_with_the_server),
        TEST(the_server_may_close_inside_cancelled),
        TEST(the_server_may_close_inside_handle),
        TEST(disconnects_its_clients_and_takes_others),
        TEST(listens_again_where_its_socket_was_removed),
        TEST(a_server_that_cannot_listen_again_keeps_its_clients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
