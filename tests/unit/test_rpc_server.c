/* shim/rpc/server.c: the server against raw bytes; test_rpc_channel.c has it
 * with our client. */
#include "tests/unit/test_rpc_served.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

#define END NGHTTP2_FLAG_END_STREAM

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

#define WHOLE "\0\0\0\0\6" REQUEST, 5 + REQUEST_LEN

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

/* A server, what a client asks it, and that client. */
struct fixture {
    struct world *world;
    struct served served;
    struct bytes request; /* a whole call of /test/Take, if the test does not
                             choose another */
    struct raw *raw;      /* NULL while there is none */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    served_open(&f->served, f->world);
    request_with(&f->request, NULL, NULL, WHOLE);
    *state = f;
    return 0;
}

static void hang_up(struct fixture *f)
{
    if (f->raw)
        raw_close(f->raw);
    world_settle(f->world);
    free(f->raw);
    f->raw = NULL;
}

/* For what must hold after the end. */
static void end(struct fixture *f)
{
    hang_up(f);
    served_close(&f->served);
    world_settle(f->world);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    end(f);
    err = world_free(f->world);
    free(f);
    return err;
}

static void ask(struct fixture *f)
{
    f->raw = raw_client(f->world, &f->request);
}

/* Asks, and waits until the test may answer. */
static void ask_taken(struct fixture *f)
{
    ask(f);
    world_wait(f->world, &f->served.called);
}

/* Asks and waits for the end of the stream; whether `text` came then. */
static bool answers(struct fixture *f, const char *text)
{
    bool found;

    ask(f);
    while (!f->raw->request_whole && !f->raw->reset && !f->raw->ended)
        uv_run(&f->world->loop, UV_RUN_ONCE);
    found = raw_got(f->raw, text);
    hang_up(f);
    return found;
}

static void a_request_may_come_in_any_pieces(void **state)
{
    struct fixture *f = *state;

    f->request.len = 0;
    bytes_preface(&f->request);
    bytes_headers(&f->request, 0, 1, request_fields);
    bytes_message(&f->request, END, 1, 0, REQUEST, REQUEST_LEN);
    for (size_t step = 1; step < f->request.len; step++) {
        f->raw = calloc(1, sizeof *f->raw);
        f->raw->step = step;
        f->raw->greeting = &f->request;
        raw_connect(f->raw, f->world);
        world_wait(f->world, &f->served.called);
        assert_string_equal(f->served.resource, "widg");
        rpc_incoming_finish(f->served.call, RPC_NOT_FOUND, "no such thing");
        world_wait(f->world, &f->raw->request_whole);
        end(f);
        assert_false(f->served.cancelled);
        assert_int_equal(f->served.calls, 1);
        served_open(&f->served, f->world);
    }
}

static void a_request_message_may_span_frames(void **state)
{
    static const uint8_t message[] = {0, 0, 0, 0, 6, 0x1a, 4, 'w', 'i', 'd', 'g'};
    struct fixture *f = *state;

    for (size_t cut = 0; cut <= sizeof message; cut++) {
        f->request.len = 0;
        bytes_headers(&f->request, 0, 1, request_fields);
        bytes_frame(&f->request, NGHTTP2_DATA, 0, 1, message, cut);
        bytes_frame(&f->request, NGHTTP2_DATA, 0, 1, message + cut, sizeof message - cut);
        bytes_frame(&f->request, NGHTTP2_DATA, END, 1, NULL, 0);
        ask_taken(f);
        assert_string_equal(f->served.resource, "widg");
        end(f);
        assert_true(f->served.cancelled);
        served_open(&f->served, f->world);
    }
}

static void bad_requests_are_answered(void **state)
{
    struct fixture *f = *state;

    request_with(&f->request, ":path", "/test/Other", WHOLE);
    assert_true(answers(f, "unknown method"));
    request_with(&f->request, ":path", NULL, WHOLE);
    assert_false(answers(f, "grpc-status"));
    request_with(&f->request, ":method", "GET", WHOLE);
    assert_true(answers(f, "405"));
    request_with(&f->request, "content-type", "text/plain", WHOLE);
    assert_true(answers(f, "415"));
    request_with(&f->request, "grpc-timeout", "soon", WHOLE);
    assert_true(answers(f, "malformed grpc-timeout"));
    request_with(&f->request, "grpc-encoding", "snappy", WHOLE);
    assert_true(answers(f, "unknown grpc-encoding"));
    request_with(&f->request, NULL, NULL, "", 0);
    assert_true(answers(f, "the request has no message"));
    request_with(&f->request, NULL, NULL, "\0\0\0\0\6" REQUEST, 8);
    assert_true(answers(f, "the request ends inside a message"));
    request_with(&f->request, NULL, NULL, "\0\0\0\0\0\0\0\0\0\0", 10);
    assert_true(answers(f, "more than one message"));
    request_with(&f->request, NULL, NULL, "\1\0\0\0\0", 5);
    assert_true(answers(f, "compressed message without"));
    request_with(&f->request, NULL, NULL, "\0\1\0\0\1", 5);
    assert_true(answers(f, "larger than 16 MiB"));
    request_with(&f->request, NULL, NULL, "\0\0\0\0\1\xff", 6);
    assert_true(answers(f, "the request does not parse"));
}

static void a_second_path_is_a_protocol_error(void **state)
{
    static const char *const fields[] = {":method", "POST",         ":path", "/test/Take",
                                         ":path",   "/test/Answer", NULL};
    struct fixture *f = *state;

    f->request.len = 0;
    bytes_headers(&f->request, END, 1, fields);
    ask(f);
    world_wait(f->world, &f->raw->reset);
    assert_int_equal(f->raw->reset_code, NGHTTP2_PROTOCOL_ERROR);
    end(f);
    assert_int_equal(f->served.calls, 0);
}

static void a_small_garbage_request_cannot_ask_for_much_memory(void **state)
{
    static uint8_t garbage[16000]; /* field 15, a varint: 8000 unknown fields */
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof garbage; i += 2)
        garbage[i] = 0x78;
    f->request.len = 0;
    bytes_headers(&f->request, 0, 1, request_fields);
    bytes_message(&f->request, END, 1, 0, garbage, sizeof garbage);
    assert_true(answers(f, "no memory for the request"));
}

static void endless_headers_reset_the_stream(void **state)
{
    const char *fields[2 * 60 + 1];
    char text[121];
    struct fixture *f = *state;

    memset(text, 'a', 120);
    text[120] = '\0';
    for (size_t i = 0; i < 60; i++) {
        fields[2 * i] = "x-filler";
        fields[2 * i + 1] = text;
    }
    fields[120] = NULL;
    f->request.len = 0;
    for (size_t i = 0; i < 8; i++)
        bytes_headers(&f->request, 0, 1, fields);
    ask(f);
    world_wait(f->world, &f->raw->reset);
    end(f);
    assert_int_equal(f->served.calls, 0);
}

static void a_clients_deadline_ends_the_call(void **state)
{
    struct fixture *f = *state;

    request_with(&f->request, "grpc-timeout", "20m", WHOLE);
    ask(f);
    world_wait(f->world, &f->served.cancelled);
    world_wait(f->world, &f->raw->request_whole);
    assert_true(raw_got(f->raw, "deadline"));
}

static void a_deadline_passes_while_the_request_is_still_coming(void **state)
{
    const char *const fields[] = {":method",      "POST",         ":path",
                                  "/test/Take",   "content-type", "application/grpc",
                                  "grpc-timeout", "0n",           NULL};
    struct fixture *f = *state;

    f->request.len = 0;
    bytes_headers(&f->request, 0, 1, fields);
    ask(f);
    world_wait(f->world, &f->raw->reset); /* the answer, and then NO_ERROR: send no more */
    assert_int_equal(f->raw->reset_code, NGHTTP2_NO_ERROR);
    assert_true(raw_got(f->raw, "deadline"));
    end(f);
    assert_false(f->served.called || f->served.cancelled);
}

static void a_reset_cancels(void **state)
{
    static struct bytes reset;
    struct fixture *f = *state;

    bytes_frame(&reset, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    ask_taken(f);
    raw_write(f->raw, &reset);
    world_wait(f->world, &f->served.cancelled);
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

static void a_finished_call_is_not_cancelled(void **state)
{
    struct fixture *f = *state;

    request_with(&f->request, ":path", "/test/Answer", WHOLE);
    ask(f);
    world_wait(f->world, &f->raw->request_whole);
    assert_true(raw_got(f->raw, "grpc-status"));
    end(f);
    assert_int_equal(f->served.calls, 1);
    assert_false(f->served.cancelled);
}

static void a_client_that_does_not_read_fills_a_bounded_queue(void **state)
{
    V1beta1__RegisterRequest big = V1BETA1__REGISTER_REQUEST__INIT;
    struct fixture *f = *state;
    size_t len = 4 * 1024 * 1024;
    unsigned sent = 0;
    int err;

    ask_taken(f);
    big.endpoint = calloc(1, RPC_MESSAGE_BYTES_MAX + 1);
    memset(big.endpoint, 'a', RPC_MESSAGE_BYTES_MAX);
    assert_int_equal(rpc_incoming_send(f->served.call, &big.base), -EMSGSIZE);
    big.endpoint[len] = '\0';
    while ((err = rpc_incoming_send(f->served.call, &big.base)) == 0)
        sent++;
    assert_int_equal(err, -ENOBUFS);
    assert_int_equal(sent, RPC_QUEUE_BYTES_MAX / len);
    assert_true(rpc_incoming_queued(f->served.call) > RPC_QUEUE_BYTES_MAX);
    free(big.endpoint);
    end(f);
    assert_true(f->served.cancelled);
}

static void garbage_ends_only_its_connection(void **state)
{
    static struct bytes garbage;
    struct fixture *f = *state;
    struct raw *bad = calloc(1, sizeof *bad);

    bytes_add(&garbage, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 36);
    ask(f);
    bad->greeting = &garbage;
    raw_connect(bad, f->world);
    world_wait(f->world, &bad->ended);
    world_wait(f->world, &f->served.called);
    assert_false(f->raw->ended || f->served.cancelled);
    raw_close(bad);
    end(f);
    free(bad);
}

static void a_flood_of_pings_is_hung_up_on(void **state)
{
    struct fixture *f = *state;

    f->request.len = 0;
    for (size_t i = 0; i < 15000; i++)
        bytes_frame(&f->request, NGHTTP2_PING, 0, 0, "12345678", 8);
    ask(f);
    uv_read_stop((uv_stream_t *)&f->raw->pipe);
    for (size_t i = 0; i < 4; i++)
        raw_write(f->raw, &f->request);
    while (!f->raw->write_failed)
        uv_run(&f->world->loop, UV_RUN_ONCE);
}

static void more_connections_than_it_takes_wait(void **state)
{
    enum { CONNECTIONS = 256 };
    struct fixture *f = *state;
    struct raw **idle = calloc(CONNECTIONS, sizeof *idle);

    for (size_t i = 0; i < CONNECTIONS; i++) {
        idle[i] = calloc(1, sizeof **idle);
        raw_connect(idle[i], f->world);
    }
    world_settle(f->world);
    ask(f);
    world_settle(f->world);
    assert_false(f->served.called);
    raw_close(idle[0]);
    world_wait(f->world, &f->served.called);
    for (size_t i = 1; i < CONNECTIONS; i++)
        raw_close(idle[i]);
    end(f);
    for (size_t i = 0; i < CONNECTIONS; i++)
        free(idle[i]);
    free(idle);
}

static void the_socket_is_private_and_goes_with_the_server(void **state)
{
    static const struct rpc_method none = {"/test/None", &v1beta1__empty__descriptor, NULL};
    struct fixture *f = *state;
    struct rpc_server *second;
    struct stat st;

    assert_int_equal(stat(f->world->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(rpc_server_open(&f->world->loop, f->world->path, &none, 1, NULL, &second),
                     -EADDRINUSE);
    served_close(&f->served);
    assert_int_equal(access(f->world->path, F_OK), -1);
    rpc_server_close(NULL);
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_may_come_in_any_pieces),
        TEST(a_request_message_may_span_frames),
        TEST(bad_requests_are_answered),
        TEST(a_second_path_is_a_protocol_error),
        TEST(a_small_garbage_request_cannot_ask_for_much_memory),
        TEST(endless_headers_reset_the_stream),
        TEST(a_clients_deadline_ends_the_call),
        TEST(a_deadline_passes_while_the_request_is_still_coming),
        TEST(a_reset_cancels),
        TEST(the_server_may_close_inside_cancelled),
        TEST(the_server_may_close_inside_handle),
        TEST(a_finished_call_is_not_cancelled),
        TEST(a_client_that_does_not_read_fills_a_bounded_queue),
        TEST(garbage_ends_only_its_connection),
        TEST(a_flood_of_pings_is_hung_up_on),
        TEST(more_connections_than_it_takes_wait),
        TEST(the_socket_is_private_and_goes_with_the_server),
        TEST(disconnects_its_clients_and_takes_others),
        TEST(listens_again_where_its_socket_was_removed),
        TEST(a_server_that_cannot_listen_again_keeps_its_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
