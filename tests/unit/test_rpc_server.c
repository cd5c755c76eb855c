/* shim/rpc/server.c: the server against raw bytes; test_rpc_channel.c has it with our client. */
#include "tests/unit/test_rpc_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/rpc/rpc.h"

#define END NGHTTP2_FLAG_END_STREAM

struct served {
    struct rpc_server *server;
    struct rpc_incoming *call;
    unsigned calls;
    bool called;
    bool cancelled;
    bool close_in_handle;
    bool close_in_cancelled;
    char resource[64];
};

static void on_cancelled(void *user)
{
    struct served *served = user;

    assert_false(served->cancelled);
    served->cancelled = true;
    if (served->close_in_cancelled) {
        rpc_server_close(served->server);
        served->server = NULL;
    }
}

static void take(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
    struct served *served = user;

    served->called = true;
    served->calls++;
    served->call = call;
    snprintf(served->resource, sizeof served->resource, "%s", request->resource_name);
    rpc_incoming_on_cancel(call, on_cancelled, served);
    if (served->close_in_handle) {
        rpc_server_close(served->server);
        served->server = NULL;
    }
}

static void answer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    take(call, message, user);
    options.pre_start_required = 1;
    assert_int_equal(rpc_incoming_send(call, &options.base), 0);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static void none(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    take(call, message, user);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static const struct rpc_method methods[] = {
    {"/test/Answer", &v1beta1__register_request__descriptor, answer},
    {"/test/None", &v1beta1__register_request__descriptor, none},
    {"/test/Take", &v1beta1__register_request__descriptor, take},
};

static void serve(struct world *world, struct served *served)
{
    memset(served, 0, sizeof *served);
    assert_int_equal(rpc_server_open(&world->loop, world->path, methods,
                                     sizeof methods / sizeof *methods, served, &served->server),
                     0);
}

static const char *const request_fields[] = {":method",
                                             "POST",
                                             ":scheme",
                                             "http",
                                             ":path",
                                             "/test/Take",
                                             ":authority",
                                             "%2Ftmp%2Fsock",
                                             "content-type",
                                             "application/grpc",
                                             "te",
                                             "trailers",
                                             NULL};

#define REQUEST "\x1a\x04widg"
#define REQUEST_LEN 6

/* A client with its preface sent and then `request`. */
static struct raw *raw_client(struct world *world, const struct bytes *request)
{
    struct raw *raw = calloc(1, sizeof *raw);
    static struct bytes preface;

    preface.len = 0;
    bytes_preface(&preface);
    raw_connect(raw, world);
    raw_write(raw, &preface);
    raw_write(raw, request);
    return raw;
}

static void end(struct raw *raw, struct world *world, struct served *served)
{
    raw_close(raw);
    world_settle(world);
    rpc_server_close(served->server);
    world_settle(world);
    free(raw);
}

/* Sends one request and waits for the end of its stream; whether `text` came then. */
static bool answers(struct world *world, const struct bytes *request, const char *text)
{
    struct served served;
    struct raw *raw;
    bool found;

    serve(world, &served);
    raw = raw_client(world, request);
    while (!raw->request_whole && !raw->reset && !raw->ended)
        uv_run(&world->loop, UV_RUN_ONCE);
    found = raw_got(raw, text);
    end(raw, world, &served);
    return found;
}

/* The request above with one of its fields replaced. */
static void request_with(struct bytes *request, const char *name, const char *value,
                         const char *message, size_t len)
{
    const char *fields[sizeof request_fields / sizeof *request_fields + 2];
    size_t n = 0;
    bool found = false;

    for (size_t i = 0; request_fields[i]; i += 2) {
        bool this = name && strcmp(request_fields[i], name) == 0;

        fields[n++] = request_fields[i];
        fields[n++] = this ? value : request_fields[i + 1];
        found |= this;
        if (this && !value)
            n -= 2;
    }
    if (name && !found) {
        fields[n++] = name;
        fields[n++] = value;
    }
    fields[n] = NULL;
    request->len = 0;
    bytes_headers(request, 0, 1, fields);
    bytes_frame(request, NGHTTP2_DATA, END, 1, message, len);
}

#define WHOLE "\0\0\0\0\6" REQUEST, 5 + REQUEST_LEN

static void a_request_may_come_in_any_pieces(void **state)
{
    static struct bytes request;
    struct world *world = *state;

    request.len = 0;
    bytes_preface(&request);
    bytes_headers(&request, 0, 1, request_fields);
    bytes_message(&request, END, 1, 0, REQUEST, REQUEST_LEN);
    for (size_t step = 1; step < request.len; step++) {
        struct raw *raw = calloc(1, sizeof *raw);
        struct served served;

        serve(world, &served);
        raw->step = step;
        raw->greeting = &request;
        raw_connect(raw, world);
        world_wait(world, &served.called);
        assert_string_equal(served.resource, "widg");
        rpc_incoming_finish(served.call, RPC_NOT_FOUND, "no such thing");
        world_wait(world, &raw->request_whole);
        end(raw, world, &served);
        assert_false(served.cancelled);
        assert_int_equal(served.calls, 1);
    }
}

static void a_request_message_may_span_frames(void **state)
{
    static const uint8_t message[] = {0, 0, 0, 0, 6, 0x1a, 4, 'w', 'i', 'd', 'g'};
    static struct bytes request;
    struct world *world = *state;

    for (size_t cut = 0; cut <= sizeof message; cut++) {
        struct served served;
        struct raw *raw;

        request.len = 0;
        bytes_headers(&request, 0, 1, request_fields);
        bytes_frame(&request, NGHTTP2_DATA, 0, 1, message, cut);
        bytes_frame(&request, NGHTTP2_DATA, 0, 1, message + cut, sizeof message - cut);
        bytes_frame(&request, NGHTTP2_DATA, END, 1, NULL, 0);
        serve(world, &served);
        raw = raw_client(world, &request);
        world_wait(world, &served.called);
        assert_string_equal(served.resource, "widg");
        end(raw, world, &served);
        assert_true(served.cancelled);
    }
}

static void bad_requests_are_answered(void **state)
{
    static struct bytes request;

    request_with(&request, ":path", "/test/Other", WHOLE);
    assert_true(answers(*state, &request, "unknown method"));
    request_with(&request, ":path", NULL, WHOLE);
    assert_false(answers(*state, &request, "grpc-status"));
    request_with(&request, ":method", "GET", WHOLE);
    assert_true(answers(*state, &request, "405"));
    request_with(&request, "content-type", "text/plain", WHOLE);
    assert_true(answers(*state, &request, "415"));
    request_with(&request, "grpc-timeout", "soon", WHOLE);
    assert_true(answers(*state, &request, "malformed grpc-timeout"));
    request_with(&request, "grpc-encoding", "snappy", WHOLE);
    assert_true(answers(*state, &request, "unknown grpc-encoding"));
    request_with(&request, NULL, NULL, "", 0);
    assert_true(answers(*state, &request, "the request has no message"));
    request_with(&request, NULL, NULL, "\0\0\0\0\6" REQUEST, 8);
    assert_true(answers(*state, &request, "the request ends inside a message"));
    request_with(&request, NULL, NULL, "\0\0\0\0\0\0\0\0\0\0", 10);
    assert_true(answers(*state, &request, "more than one message"));
    request_with(&request, NULL, NULL, "\1\0\0\0\0", 5);
    assert_true(answers(*state, &request, "compressed message without"));
    request_with(&request, NULL, NULL, "\0\1\0\0\1", 5);
    assert_true(answers(*state, &request, "larger than 16 MiB"));
    request_with(&request, NULL, NULL, "\0\0\0\0\1\xff", 6);
    assert_true(answers(*state, &request, "the request does not parse"));
}

static void a_second_path_is_a_protocol_error(void **state)
{
    static const char *const fields[] = {":method", "POST",         ":path", "/test/Take",
                                         ":path",   "/test/Answer", NULL};
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request.len = 0;
    bytes_headers(&request, END, 1, fields);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &raw->reset);
    assert_int_equal(raw->reset_code, NGHTTP2_PROTOCOL_ERROR);
    end(raw, world, &served);
    assert_int_equal(served.calls, 0);
}

static void a_small_garbage_request_cannot_ask_for_much_memory(void **state)
{
    static struct bytes request;
    static uint8_t garbage[16000]; /* field 15, a varint: 8000 unknown fields */

    for (size_t i = 0; i < sizeof garbage; i += 2)
        garbage[i] = 0x78;
    request.len = 0;
    bytes_headers(&request, 0, 1, request_fields);
    bytes_message(&request, END, 1, 0, garbage, sizeof garbage);
    assert_true(answers(*state, &request, "no memory for the request"));
}

static void endless_headers_reset_the_stream(void **state)
{
    static struct bytes request;
    const char *fields[2 * 60 + 1];
    char text[121];
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    memset(text, 'a', 120);
    text[120] = '\0';
    for (size_t i = 0; i < 60; i++) {
        fields[2 * i] = "x-filler";
        fields[2 * i + 1] = text;
    }
    fields[120] = NULL;
    request.len = 0;
    for (size_t i = 0; i < 8; i++)
        bytes_headers(&request, 0, 1, fields);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &raw->reset);
    end(raw, world, &served);
    assert_int_equal(served.calls, 0);
}

static void a_clients_deadline_ends_the_call(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request_with(&request, "grpc-timeout", "20m", WHOLE);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &served.cancelled);
    world_wait(world, &raw->request_whole);
    assert_true(raw_got(raw, "deadline"));
    end(raw, world, &served);
}

static void a_deadline_passes_while_the_request_is_still_coming(void **state)
{
    static struct bytes request;
    const char *const fields[] = {":method",      "POST",         ":path",
                                  "/test/Take",   "content-type", "application/grpc",
                                  "grpc-timeout", "0n",           NULL};
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request.len = 0;
    bytes_headers(&request, 0, 1, fields);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &raw->reset); /* the answer, and then NO_ERROR: send no more */
    assert_int_equal(raw->reset_code, NGHTTP2_NO_ERROR);
    assert_true(raw_got(raw, "deadline"));
    end(raw, world, &served);
    assert_false(served.called || served.cancelled);
}

static void a_reset_cancels(void **state)
{
    static struct bytes request, reset;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request_with(&request, NULL, NULL, WHOLE);
    reset.len = 0;
    bytes_frame(&reset, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &served.called);
    raw_write(raw, &reset);
    world_wait(world, &served.cancelled);
    end(raw, world, &served);
}

static void the_server_may_close_inside_cancelled(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    served.close_in_cancelled = true;
    raw = raw_client(world, &request);
    world_wait(world, &served.called);
    raw_close(raw);
    world_wait(world, &served.cancelled);
    end(raw, world, &served);
}

static void the_server_may_close_inside_handle(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    served.close_in_handle = true;
    raw = raw_client(world, &request);
    world_wait(world, &raw->ended);
    end(raw, world, &served);
    assert_true(served.called);
    assert_false(served.cancelled);
}

static void a_finished_call_is_not_cancelled(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request_with(&request, ":path", "/test/Answer", WHOLE);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &raw->request_whole);
    assert_true(raw_got(raw, "grpc-status"));
    end(raw, world, &served);
    assert_int_equal(served.calls, 1);
    assert_false(served.cancelled);
}

static void a_client_that_does_not_read_fills_a_bounded_queue(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;
    V1beta1__RegisterRequest big = V1BETA1__REGISTER_REQUEST__INIT;
    size_t len = 4 * 1024 * 1024;
    unsigned sent = 0;
    int err;

    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &served.called);
    big.endpoint = calloc(1, RPC_MESSAGE_BYTES_MAX + 1);
    memset(big.endpoint, 'a', RPC_MESSAGE_BYTES_MAX);
    assert_int_equal(rpc_incoming_send(served.call, &big.base), -EMSGSIZE);
    big.endpoint[len] = '\0';
    while ((err = rpc_incoming_send(served.call, &big.base)) == 0)
        sent++;
    assert_int_equal(err, -ENOBUFS);
    assert_int_equal(sent, RPC_QUEUE_BYTES_MAX / len);
    assert_true(rpc_incoming_queued(served.call) > RPC_QUEUE_BYTES_MAX);
    free(big.endpoint);
    end(raw, world, &served);
    assert_true(served.cancelled);
}

static void garbage_ends_only_its_connection(void **state)
{
    static struct bytes garbage, request;
    struct world *world = *state;
    struct served served;
    struct raw *bad = calloc(1, sizeof *bad), *good;

    garbage.len = 0;
    bytes_add(&garbage, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 36);
    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    good = raw_client(world, &request);
    bad->greeting = &garbage;
    raw_connect(bad, world);
    world_wait(world, &bad->ended);
    world_wait(world, &served.called);
    assert_false(good->ended || served.cancelled);
    raw_close(bad);
    end(good, world, &served);
    free(bad);
}

static void a_flood_of_pings_is_hung_up_on(void **state)
{
    static struct bytes pings;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    pings.len = 0;
    for (size_t i = 0; i < 15000; i++)
        bytes_frame(&pings, NGHTTP2_PING, 0, 0, "12345678", 8);
    serve(world, &served);
    raw = raw_client(world, &pings);
    uv_read_stop((uv_stream_t *)&raw->pipe);
    for (size_t i = 0; i < 4; i++)
        raw_write(raw, &pings);
    while (!raw->write_failed)
        uv_run(&world->loop, UV_RUN_ONCE);
    end(raw, world, &served);
}

static void more_connections_than_it_takes_wait(void **state)
{
    enum { CONNECTIONS = 256 };
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw **idle = calloc(CONNECTIONS, sizeof *idle), *late;

    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        idle[i] = calloc(1, sizeof **idle);
        raw_connect(idle[i], world);
    }
    world_settle(world);
    late = raw_client(world, &request);
    world_settle(world);
    assert_false(served.called);
    raw_close(idle[0]);
    world_wait(world, &served.called);
    for (size_t i = 1; i < CONNECTIONS; i++)
        raw_close(idle[i]);
    end(late, world, &served);
    for (size_t i = 0; i < CONNECTIONS; i++)
        free(idle[i]);
    free(idle);
}

static void the_socket_is_private_and_goes_with_the_server(void **state)
{
    struct world *world = *state;
    struct served served;
    struct rpc_server *second;
    struct stat st;

    serve(world, &served);
    assert_int_equal(stat(world->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(rpc_server_open(&world->loop, world->path, methods, 1, NULL, &second),
                     -EADDRINUSE);
    rpc_server_close(served.server);
    assert_int_equal(access(world->path, F_OK), -1);
    rpc_server_close(NULL);
}

static void disconnects_its_clients_and_takes_others(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &served.called);
    rpc_server_disconnect(served.server);
    world_wait(world, &raw->ended);
    assert_false(served.cancelled);
    raw_close(raw);
    free(raw);
    served.called = false;
    raw = raw_client(world, &request);
    world_wait(world, &served.called);
    end(raw, world, &served);
}

static void listens_again_where_its_socket_was_removed(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *first, *second;

    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    first = raw_client(world, &request);
    world_wait(world, &served.called);
    unlink(world->path);
    assert_int_equal(rpc_server_listen_again(served.server), 0);
    served.called = false;
    second = raw_client(world, &request);
    world_wait(world, &served.called);
    assert_false(first->ended || served.cancelled);
    raw_close(first);
    world_wait(world, &served.cancelled);
    free(first);
    served.cancelled = false;
    end(second, world, &served);
    assert_int_equal(access(world->path, F_OK), -1);
}

static void a_server_that_cannot_listen_again_keeps_its_clients(void **state)
{
    static struct bytes request;
    struct world *world = *state;
    struct served served;
    struct raw *raw;

    request_with(&request, NULL, NULL, WHOLE);
    serve(world, &served);
    raw = raw_client(world, &request);
    world_wait(world, &served.called);
    unlink(world->path);
    assert_int_equal(mkdir(world->path, 0700), 0);
    assert_int_equal(rpc_server_listen_again(served.server), -EEXIST);
    assert_int_equal(rpc_server_listen_again(served.server), -EEXIST);
    world_settle(world);
    assert_false(raw->ended || served.cancelled);
    end(raw, world, &served);
    assert_int_equal(rmdir(world->path), 0); /* not the server's: it stands yet */
}

#define WORLD_TEST(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_request_may_come_in_any_pieces),
        WORLD_TEST(a_request_message_may_span_frames),
        WORLD_TEST(bad_requests_are_answered),
        WORLD_TEST(a_second_path_is_a_protocol_error),
        WORLD_TEST(a_small_garbage_request_cannot_ask_for_much_memory),
        WORLD_TEST(endless_headers_reset_the_stream),
        WORLD_TEST(a_clients_deadline_ends_the_call),
        WORLD_TEST(a_deadline_passes_while_the_request_is_still_coming),
        WORLD_TEST(a_reset_cancels),
        WORLD_TEST(the_server_may_close_inside_cancelled),
        WORLD_TEST(the_server_may_close_inside_handle),
        WORLD_TEST(a_finished_call_is_not_cancelled),
        WORLD_TEST(a_client_that_does_not_read_fills_a_bounded_queue),
        WORLD_TEST(garbage_ends_only_its_connection),
        WORLD_TEST(a_flood_of_pings_is_hung_up_on),
        WORLD_TEST(more_connections_than_it_takes_wait),
        WORLD_TEST(the_socket_is_private_and_goes_with_the_server),
        WORLD_TEST(disconnects_its_clients_and_takes_others),
        WORLD_TEST(listens_again_where_its_socket_was_removed),
        WORLD_TEST(a_server_that_cannot_listen_again_keeps_its_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
