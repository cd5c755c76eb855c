/* shim/rpc/call.c: calls, against our own server and against raw bytes. */
#include "tests/unit/rpc_calling.h"

#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

/* A request with an endpoint of so many bytes. */
static struct rpc_call *start_large(struct rpc_channel *channel, const char *path, size_t bytes,
                                    uint64_t deadline_ms, struct result *result)
{
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    struct rpc_call *call;

    request.endpoint = calloc(1, bytes + 1);
    memset(request.endpoint, 'a', bytes);
    request.resource_name = (char *)"behind it";
    call = rpc_channel_call(channel, path, &request.base, &v1beta1__empty__descriptor, false,
                            deadline_ms, &call_ops, result);
    free(request.endpoint);
    assert_non_null(call);
    return call;
}

static int send_list(struct rpc_incoming *call, size_t devices)
{
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device *all = calloc(devices + 1, sizeof *all);
    V1beta1__Device **pointers = calloc(devices + 1, sizeof *pointers);
    char id[64] = "GPU-00000000-0000-0000-0000-000000000000-with-some-more-text";
    int err;

    for (size_t i = 0; i < devices; i++) {
        all[i] = (V1beta1__Device)V1BETA1__DEVICE__INIT;
        all[i].id = id;
        all[i].health = (char *)"Healthy";
        pointers[i] = &all[i];
    }
    list.n_devices = devices;
    list.devices = pointers;
    err = rpc_incoming_send(call, &list.base);
    free(all);
    free(pointers);
    return err;
}

/* ---- against our own server ---- */

/* Calls for a stream, and waits until the test may answer. */
static void call_taken(struct pair *p, struct result *result)
{
    start(p->channel, "/test/Take", STREAM, 0, result);
    world_wait(p->world, &p->served.called);
}

static void calls_and_is_answered(void **state)
{
    struct result result = {0};
    struct pair *p = *state;

    assert_int_equal(call(p, "/test/Answer", &result), RPC_OK);
    assert_true(p->events.connected);
    assert_string_equal(result.text, "");
    assert_int_equal(result.messages, 1);
    assert_string_equal(p->served.resource, "example.com/widget");
    assert_int_equal(p->served.peer.pid, getpid());
}

static void gets_the_servers_status_with_its_text(void **state)
{
    struct result result = {0};

    assert_int_equal(call(*state, "/test/Refuse", &result), RPC_FAILED_PRECONDITION);
    assert_string_equal(result.text, SERVED_REFUSAL);
    assert_int_equal(result.messages, 0);
}

static void a_unary_answer_has_exactly_one_message(void **state)
{
    struct result twice = {0}, none = {0}, after = {0};

    assert_int_equal(call(*state, "/test/Twice", &twice), RPC_INTERNAL);
    assert_int_equal(call(*state, "/test/None", &none), RPC_INTERNAL);
    assert_int_equal(call(*state, "/test/Answer", &after), RPC_OK);
}

static void an_unknown_method_is_unimplemented(void **state)
{
    struct result result = {0};

    assert_int_equal(call(*state, "/test/Nothing", &result), RPC_UNIMPLEMENTED);
}

static void a_stream_brings_messages_as_they_are_sent(void **state)
{
    struct result result = {0};
    struct pair *p = *state;

    call_taken(p, &result);
    for (size_t i = 0; i < 3; i++) {
        result.got = false;
        assert_int_equal(send_list(p->served.call, i), 0);
        world_wait(p->world, &result.got);
        assert_int_equal(result.devices, i);
        assert_int_equal(rpc_incoming_queued(p->served.call), 0);
    }
    rpc_incoming_finish(p->served.call, RPC_ABORTED, "enough");
    world_wait(p->world, &result.over);
    assert_int_equal(result.code, RPC_ABORTED);
    assert_string_equal(result.text, "enough");
    assert_int_equal(result.messages, 3);
    assert_false(p->served.cancelled);
}

static void a_list_of_a_hundred_thousand_devices_comes_whole(void **state)
{
    struct result result = {0};
    struct pair *p = *state;

    call_taken(p, &result);
    assert_int_equal(send_list(p->served.call, 100000), 0);
    assert_true(rpc_incoming_queued(p->served.call) > 6000000);
    rpc_incoming_finish(p->served.call, RPC_OK, NULL);
    world_wait(p->world, &result.over);
    assert_int_equal(result.code, RPC_OK);
    assert_int_equal(result.devices, 100000);
}

static void a_deadline_ends_the_call_on_both_sides(void **state)
{
    struct result result = {0};
    struct pair *p = *state;

    start(p->channel, "/test/Take", UNARY, 20, &result);
    world_wait(p->world, &result.over);
    assert_int_equal(result.code, RPC_DEADLINE_EXCEEDED);
    world_wait(p->world, &p->served.cancelled);
}

static void cancel_reaches_the_server_and_nothing_comes_back(void **state)
{
    struct result result = {0};
    struct pair *p = *state;
    struct rpc_call *call = start(p->channel, "/test/Take", STREAM, 10000, &result);

    world_wait(p->world, &p->served.called);
    rpc_call_cancel(call);
    rpc_call_cancel(NULL);
    world_wait(p->world, &p->served.cancelled);
    assert_false(result.over);
}

static void cancel_before_the_connection_sends_nothing(void **state)
{
    struct result result = {0}, second = {0};
    struct pair *p = *state;

    rpc_call_cancel(start(p->channel, "/test/Take", UNARY, 0, &result));
    assert_int_equal(call(p, "/test/Answer", &second), RPC_OK);
    world_settle(p->world);
    assert_false(result.over);
    assert_false(p->served.cancelled);
}

static void cancel_inside_the_message_callback(void **state)
{
    struct result result = {.cancel_in_message = true};
    struct pair *p = *state;

    call_taken(p, &result);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(send_list(p->served.call, 1), 0);
    world_wait(p->world, &p->served.cancelled);
    assert_int_equal(result.messages, 1);
    assert_false(result.over);
}

static void a_large_request_goes_out_in_many_frames(void **state)
{
    struct result result = {0};
    struct pair *p = *state;

    start_large(p->channel, "/test/Answer", RPC_MESSAGE_BYTES_MAX - 100, UINT64_MAX, &result);
    world_wait(p->world, &result.over);
    assert_int_equal(result.code, RPC_OK);
    assert_string_equal(p->served.resource, "behind it");
}

/* The server refuses by the headers; the request's 15 MiB are still on their
 * way. */
static void a_server_may_answer_before_the_request_is_whole(void **state)
{
    struct result result = {0}, after = {0};
    struct pair *p = *state;

    start_large(p->channel, "/test/Nothing", RPC_MESSAGE_BYTES_MAX - 100, 0, &result);
    world_wait(p->world, &result.over);
    assert_int_equal(result.code, RPC_UNIMPLEMENTED);
    assert_int_equal(call(p, "/test/Answer", &after), RPC_OK);
}

static void a_request_too_large_is_refused_from_the_loop(void **state)
{
    struct result result = {0}, cancelled = {0};
    struct pair *p = *state;

    start_large(p->channel, "/test/Answer", RPC_MESSAGE_BYTES_MAX, 0, &result);
    rpc_call_cancel(start_large(p->channel, "/test/Answer", RPC_MESSAGE_BYTES_MAX, 0, &cancelled));
    assert_false(result.over);
    world_wait(p->world, &result.over);
    assert_int_equal(result.code, RPC_RESOURCE_EXHAUSTED);
    assert_false(cancelled.over);
}

static void too_many_calls_at_once_are_refused(void **state)
{
    struct result many = {0}, last = {0};
    struct pair *p = *state;

    for (size_t i = 0; i < RPC_CALLS_MAX; i++)
        start(p->channel, "/test/Take", UNARY, 0, &many);
    assert_int_equal(call(p, "/test/Take", &last), RPC_RESOURCE_EXHAUSTED);
    assert_false(many.over);
}

/* Those that wait, for a driver that is away perhaps, are in nobody's way. */
static void as_many_calls_as_a_channel_has_are_taken(void **state)
{
    struct result many = {0}, last = {0};
    struct pair *p = *state;

    assert_int_equal(call(p, "/test/Answer", &last), RPC_OK); /* it has said how many it takes */
    last = (struct result){0};
    for (size_t i = 0; i < RPC_CALLS_MAX - 1; i++)
        start(p->channel, "/test/Take", UNARY, 0, &many);
    assert_int_equal(call(p, "/test/Answer", &last), RPC_OK);
    assert_false(many.over);
}

/* Also before the server has said so. */
static void further_ones_than_the_server_takes_wait(void **state)
{
    static const struct rpc_limits limits = {
        .connections = 1, .request_bytes = 1024, .queue_bytes = 1024, .calls = 2};
    struct result many = {0};
    struct pair *p = *state;

    rpc_server_set_limits(p->served.server, &limits);
    for (size_t i = 0; i < 3; i++)
        start(p->channel, "/test/Take", UNARY, 0, &many);
    world_settle(p->world);
    assert_int_equal(p->served.calls, 2);
    start(p->channel, "/test/Take", UNARY, 0, &many); /* it has, now */
    world_settle(p->world);
    assert_int_equal(p->served.calls, 2);
    assert_false(many.over);
    rpc_incoming_finish(p->served.call, RPC_ABORTED, "enough");
    world_settle(p->world);
    assert_int_equal(p->served.calls, 3);
}

/* ---- against a raw server ---- */

static void says_what_a_grpc_client_says(void **state)
{
    struct raw_pair *p = *state;

    open_raw(p);
    start(p->channel, "/test/Raw", UNARY, 1500, &p->result);
    world_wait(p->world, &p->raw.request_whole);
    assert_string_equal(p->raw.fields,
                        ":method=POST\n:scheme=http\n:path=/test/Raw\n"
                        ":authority=localhost\nte=trailers\ncontent-type=application/grpc\n"
                        "user-agent=cri-device-shim/" SHIM_VERSION "\n"
                        "grpc-accept-encoding=identity,gzip\ngrpc-timeout=1500m\n");
    close_raw(p);
}

static void an_answer_may_come_in_any_pieces(void **state)
{
    struct raw_pair *p = *state;

    bytes_headers(&p->answer, 0, 1, headers_ok);
    for (int i = 0; i < 3; i++)
        bytes_message(&p->answer, 0, 1, 0, "\x0a\x04\x0a\x02id", 6);
    bytes_headers(&p->answer, END, 1, trailers_ok);
    for (size_t step = 1; step < p->answer.len; step++) {
        open_raw(p);
        p->raw.step = step;
        assert_int_equal(run_opened(p, STREAM), RPC_OK);
        assert_int_equal(p->result.messages, 3);
        assert_int_equal(p->result.devices, 1);
    }
}

static void messages_may_share_a_frame_or_span_frames(void **state)
{
    static const uint8_t three[] = {0, 0, 0, 0, 2, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x0a, 0};
    struct raw_pair *p = *state;

    for (size_t cut = 0; cut <= sizeof three; cut++) {
        p->answer.len = 0;
        bytes_headers(&p->answer, 0, 1, headers_ok);
        bytes_frame(&p->answer, NGHTTP2_DATA, 0, 1, three, cut);
        bytes_frame(&p->answer, NGHTTP2_DATA, 0, 1, three + cut, sizeof three - cut);
        bytes_headers(&p->answer, END, 1, trailers_ok);
        assert_int_equal(run(p, STREAM), RPC_OK);
        assert_int_equal(p->result.messages, 3);
    }
}

/* An answer made of a first header block, maybe a message, and maybe trailers.
 */
static int code_of(struct raw_pair *p, const char *const *headers, uint8_t headers_flags,
                   const char *message, size_t message_len, uint8_t message_flags,
                   const char *const *trailers)
{
    p->answer.len = 0;
    bytes_headers(&p->answer, headers_flags, 1, headers);
    if (message)
        bytes_frame(&p->answer, NGHTTP2_DATA, message_flags, 1, message, message_len);
    if (trailers)
        bytes_headers(&p->answer, END, 1, trailers);
    return run(p, UNARY);
}

#define NO_MESSAGE NULL, 0, 0
#define EMPTY_MESSAGE "\0\0\0\0\0", 5

static void status_comes_from_the_last_block(void **state)
{
    static const char *const only[] = {":status",          "200",         "content-type",
                                       "application/grpc", "grpc-status", "5",
                                       "grpc-message",     "not%20here%", NULL};
    static const char *const odd[] = {"grpc-status", "seventeen", NULL};
    static const char *const empty[] = {"x-other", "1", NULL};
    static const char *const early[] = {
        ":status", "200", "content-type", "application/grpc", "grpc-status", "0", NULL};
    struct raw_pair *p = *state;

    assert_int_equal(code_of(p, only, END, NO_MESSAGE, NULL), RPC_NOT_FOUND);
    assert_string_equal(p->result.text, "not here%");
    assert_int_equal(code_of(p, headers_ok, 0, EMPTY_MESSAGE, 0, odd), RPC_UNKNOWN);
    assert_int_equal(code_of(p, headers_ok, 0, EMPTY_MESSAGE, 0, empty), RPC_UNKNOWN);
    assert_int_equal(code_of(p, early, 0, EMPTY_MESSAGE, 0, empty), RPC_UNKNOWN);
    assert_int_equal(code_of(p, headers_ok, END, NO_MESSAGE, NULL), RPC_UNKNOWN);
    assert_int_equal(code_of(p, headers_ok, 0, EMPTY_MESSAGE, END, NULL), RPC_INTERNAL);
    assert_int_equal(code_of(p, headers_ok, 0, EMPTY_MESSAGE, 0, trailers_ok), RPC_OK);
}

static void answers_that_are_not_grpc(void **state)
{
    static const char *const unavailable[] = {":status", "503", NULL};
    static const char *const with_status[] = {":status", "503", "grpc-status", "7", NULL};
    static const char *const claims_ok[] = {":status", "404", "grpc-status", "0", NULL};
    static const char *const html[] = {":status", "200", "content-type", "text/html", NULL};
    static const char *const bare[] = {":status", "200", NULL};
    struct raw_pair *p = *state;

    assert_int_equal(code_of(p, unavailable, END, NO_MESSAGE, NULL), RPC_UNAVAILABLE);
    assert_int_equal(code_of(p, unavailable, 0, "<html>", 6, 0, NULL), RPC_UNAVAILABLE);
    assert_int_equal(code_of(p, with_status, END, NO_MESSAGE, NULL), RPC_PERMISSION_DENIED);
    assert_int_equal(code_of(p, claims_ok, END, NO_MESSAGE, NULL), RPC_UNKNOWN);
    assert_int_equal(code_of(p, html, 0, "<html>", 6, END, NULL), RPC_UNKNOWN);
    assert_int_equal(code_of(p, bare, 0, EMPTY_MESSAGE, 0, trailers_ok), RPC_UNKNOWN);
}

static void broken_messages_end_only_their_call(void **state)
{
    struct raw_pair *p = *state;

    /* cut off */
    assert_int_equal(code_of(p, headers_ok, 0, "\0\0\0\0\5ab", 7, 0, trailers_ok), RPC_INTERNAL);
    /* a bad flag, and a compressed message without an encoding */
    assert_int_equal(code_of(p, headers_ok, 0, "\2\0\0\0\0", 5, 0, NULL), RPC_INTERNAL);
    assert_int_equal(code_of(p, headers_ok, 0, "\1\0\0\0\0", 5, 0, NULL), RPC_INTERNAL);
    /* one byte over 16 MiB */
    assert_int_equal(code_of(p, headers_ok, 0, "\0\1\0\0\1", 5, 0, NULL), RPC_RESOURCE_EXHAUSTED);
    /* no protobuf */
    assert_int_equal(code_of(p, headers_ok, 0, "\0\0\0\0\1\xff", 6, 0, NULL), RPC_INTERNAL);
    assert_int_equal(p->result.messages, 0);
}

static void small_garbage_cannot_ask_for_much_memory(void **state)
{
    static uint8_t garbage[16000]; /* field 1, length 0, again and again: 8000
                                      empty devices */
    struct raw_pair *p = *state;

    for (size_t i = 0; i < sizeof garbage; i += 2)
        garbage[i] = 0x0a;
    bytes_headers(&p->answer, 0, 1, headers_ok);
    bytes_message(&p->answer, 0, 1, 0, garbage, sizeof garbage);
    assert_int_equal(run(p, STREAM), RPC_RESOURCE_EXHAUSTED);
    assert_string_equal(p->result.text, "the answer takes more memory to read than its length "
                                        "allows: it has very many parts, or empty ones");
}

static void resets_become_codes(void **state)
{
    static const struct {
        uint8_t error;
        int code;
    } cases[] = {{NGHTTP2_NO_ERROR, RPC_INTERNAL},
                 {NGHTTP2_INTERNAL_ERROR, RPC_INTERNAL},
                 {NGHTTP2_CANCEL, RPC_CANCELLED},
                 {NGHTTP2_ENHANCE_YOUR_CALM, RPC_RESOURCE_EXHAUSTED}};
    struct raw_pair *p = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t payload[4] = {0, 0, 0, cases[i].error};

        p->answer.len = 0;
        bytes_frame(&p->answer, NGHTTP2_RST_STREAM, 0, 1, payload, 4);
        assert_int_equal(run(p, UNARY), cases[i].code);
    }
}

/* The server has not looked at it; what it says of the second time stands. */
static void a_refused_stream_is_asked_once_more(void **state)
{
    struct raw_pair *p = *state;
    struct bytes again = {0};

    bytes_frame(&p->answer, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x07", 4);
    bytes_frame(&again, NGHTTP2_RST_STREAM, 0, 3, "\0\0\0\x07", 4);
    open_raw(p);
    p->raw.answer = &p->answer;
    start(p->channel, "/test/Raw", UNARY, 0, &p->result);
    while (!strstr(p->raw.fields, "/test/Raw") ||
           !strstr(strstr(p->raw.fields, "/test/Raw") + 1, "/test/Raw"))
        uv_run(&p->world->loop, UV_RUN_ONCE);
    assert_false(p->result.over);
    raw_write(&p->raw, &again);
    world_wait(p->world, &p->result.over);
    assert_int_equal(p->result.code, RPC_UNAVAILABLE);
    close_raw(p);
}

/* Lets the deadline pass between the loop's timers and its reads. */
static void let_time_pass(uv_prepare_t *prepare)
{
    const uint64_t *until_ms = prepare->data;

    while (uv_now(prepare->loop) < *until_ms) {
        uv_sleep(1);
        uv_update_time(prepare->loop);
    }
    uv_close((uv_handle_t *)prepare, NULL);
}

/* Both clocks run out; the server's reset comes before our timer has run. */
static void a_cancel_after_the_deadline_is_the_deadline(void **state)
{
    struct raw_pair *p = *state;
    uv_prepare_t prepare;
    uint64_t until_ms;

    bytes_frame(&p->answer, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    open_raw(p);
    start(p->channel, "/test/Raw", UNARY, 50, &p->result);
    until_ms = uv_now(&p->world->loop) + 50;
    world_wait(p->world, &p->raw.request_whole);
    raw_write(&p->raw, &p->answer);
    uv_prepare_init(&p->world->loop, &prepare);
    prepare.data = &until_ms;
    uv_prepare_start(&prepare, let_time_pass);
    world_wait(p->world, &p->result.over);
    assert_int_equal(p->result.code, RPC_DEADLINE_EXCEEDED);
    close_raw(p);
}

static void an_interim_answer_is_passed_over(void **state)
{
    static const char *const interim[] = {":status", "103", NULL};
    struct raw_pair *p = *state;

    bytes_headers(&p->answer, 0, 1, interim);
    bytes_headers(&p->answer, 0, 1, headers_ok);
    bytes_message(&p->answer, 0, 1, 0, "", 0);
    bytes_headers(&p->answer, END, 1, trailers_ok);
    assert_int_equal(run(p, UNARY), RPC_OK);
}

static void endless_headers_end_the_call(void **state)
{
    static char text[121];
    const char *fields[2 * 45 + 1];
    struct raw_pair *p = *state;

    memset(text, 'a', sizeof text - 1);
    for (size_t i = 0; i < 90; i += 2) {
        fields[i] = "x-filler";
        fields[i + 1] = text;
    }
    fields[90] = NULL;
    bytes_headers(&p->answer, 0, 1, (const char *const[]){":status", "103", NULL});
    for (size_t i = 0; i < 10; i++) {
        fields[0] = ":status";
        fields[1] = "103";
        bytes_headers(&p->answer, 0, 1, fields);
    }
    assert_int_equal(run(p, UNARY), RPC_RESOURCE_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(calls_and_is_answered),
        PAIR_TEST(gets_the_servers_status_with_its_text),
        PAIR_TEST(a_unary_answer_has_exactly_one_message),
        PAIR_TEST(an_unknown_method_is_unimplemented),
        PAIR_TEST(a_stream_brings_messages_as_they_are_sent),
        PAIR_TEST(a_list_of_a_hundred_thousand_devices_comes_whole),
        PAIR_TEST(a_deadline_ends_the_call_on_both_sides),
        PAIR_TEST(cancel_reaches_the_server_and_nothing_comes_back),
        PAIR_TEST(cancel_before_the_connection_sends_nothing),
        PAIR_TEST(cancel_inside_the_message_callback),
        PAIR_TEST(a_large_request_goes_out_in_many_frames),
        PAIR_TEST(a_server_may_answer_before_the_request_is_whole),
        PAIR_TEST(a_request_too_large_is_refused_from_the_loop),
        PAIR_TEST(too_many_calls_at_once_are_refused),
        PAIR_TEST(as_many_calls_as_a_channel_has_are_taken),
        PAIR_TEST(further_ones_than_the_server_takes_wait),
        RAW_TEST(says_what_a_grpc_client_says),
        RAW_TEST(an_answer_may_come_in_any_pieces),
        RAW_TEST(messages_may_share_a_frame_or_span_frames),
        RAW_TEST(status_comes_from_the_last_block),
        RAW_TEST(answers_that_are_not_grpc),
        RAW_TEST(broken_messages_end_only_their_call),
        RAW_TEST(small_garbage_cannot_ask_for_much_memory),
        RAW_TEST(resets_become_codes),
        RAW_TEST(a_refused_stream_is_asked_once_more),
        RAW_TEST(a_cancel_after_the_deadline_is_the_deadline),
        RAW_TEST(an_interim_answer_is_passed_over),
        RAW_TEST(endless_headers_end_the_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
