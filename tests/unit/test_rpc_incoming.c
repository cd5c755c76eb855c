/* shim/rpc/incoming.c: a call against raw bytes; test_rpc_call.c has it with our client. */
#include "tests/unit/rpc_asked.h"

#include <errno.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

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
    assert_true(answers(f, "the request takes more memory to read than its length allows"));
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

static void a_reset_cancels(void **state)
{
    static struct bytes reset;
    struct fixture *f = *state;

    bytes_frame(&reset, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    ask_taken(f);
    raw_write(f->raw, &reset);
    world_wait(f->world, &f->served.cancelled);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_may_come_in_any_pieces),
        TEST(a_request_message_may_span_frames),
        TEST(bad_requests_are_answered),
        TEST(a_second_path_is_a_protocol_error),
        TEST(a_small_garbage_request_cannot_ask_for_much_memory),
        TEST(a_clients_deadline_ends_the_call),
        TEST(a_reset_cancels),
        TEST(a_finished_call_is_not_cancelled),
        TEST(a_client_that_does_not_read_fills_a_bounded_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
