/* shim/rpc/channel.c: the client, against our own server and against raw bytes. */
#include "tests/unit/test_rpc_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/rpc/rpc.h"

/* ---- the client's side ---- */

struct result {
    bool over;
    bool got;
    int code;
    char text[256];
    unsigned messages;
    size_t devices; /* of the last message */
    bool cancel_in_message;
    bool close_in_message;
    bool close_in_done;
    struct rpc_channel *channel;
};

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct result *result = user;

    assert_false(result->over);
    result->got = true;
    result->messages++;
    if (message->descriptor == &v1beta1__list_and_watch_response__descriptor)
        result->devices = ((const V1beta1__ListAndWatchResponse *)message)->n_devices;
    if (result->cancel_in_message)
        rpc_call_cancel(call);
    if (result->close_in_message)
        rpc_channel_close(result->channel);
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct result *result = user;

    assert_false(result->over);
    result->over = true;
    result->code = status->code;
    snprintf(result->text, sizeof result->text, "%s", status->message);
    rpc_call_cancel(call); /* harmless */
    if (result->close_in_done)
        rpc_channel_close(result->channel);
}

static const struct rpc_call_ops call_ops = {.message = on_message, .done = on_done};

struct link_events {
    bool connected;
    bool lost;
    char reason[256];
    bool close_in_lost;
};

static void on_connected(struct rpc_channel *channel, void *user)
{
    struct link_events *events = user;

    (void)channel;
    events->connected = true;
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct link_events *events = user;

    assert_false(events->lost);
    events->lost = true;
    snprintf(events->reason, sizeof events->reason, "%s", reason);
    if (events->close_in_lost)
        rpc_channel_close(channel);
}

static const struct rpc_channel_ops channel_ops = {.connected = on_connected, .lost = on_lost};

static struct rpc_channel *open_channel(struct world *world, struct link_events *events)
{
    struct rpc_channel *channel;

    memset(events, 0, sizeof *events);
    assert_int_equal(rpc_channel_open(&world->loop, world->path, &channel_ops, events, &channel),
                     0);
    return channel;
}

static struct rpc_call *start(struct rpc_channel *channel, const char *path, int stream,
                              uint64_t deadline_ms, struct result *result)
{
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    struct rpc_call *call;

    request.resource_name = (char *)"example.com/widget";
    result->channel = channel;
    call = rpc_channel_call(channel, path, &request.base,
                            stream ? &v1beta1__list_and_watch_response__descriptor
                                   : &v1beta1__empty__descriptor,
                            stream, deadline_ms, &call_ops, result);
    assert_non_null(call);
    assert_false(result->over);
    return call;
}

/* ---- the server's side ---- */

struct served {
    struct rpc_server *server;
    struct rpc_incoming *call;
    bool called;
    bool cancelled;
    char resource[64];
    struct ucred peer;
};

static void on_cancelled(void *user)
{
    struct served *served = user;

    assert_false(served->cancelled);
    served->cancelled = true;
    served->call = NULL;
}

static void take(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
    struct served *served = user;

    served->called = true;
    served->call = call;
    snprintf(served->resource, sizeof served->resource, "%s", request->resource_name);
    rpc_incoming_peer(call, &served->peer);
    rpc_incoming_on_cancel(call, on_cancelled, served);
}

static void answer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    take(call, message, user);
    assert_int_equal(rpc_incoming_send(call, &empty.base), 0);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static void refuse(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    take(call, message, user);
    rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, "no 100% \xc3\xa4\n");
}

static void twice(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    take(call, message, user);
    assert_int_equal(rpc_incoming_send(call, &empty.base), 0);
    assert_int_equal(rpc_incoming_send(call, &empty.base), 0);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static void none(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    take(call, message, user);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static const struct rpc_method methods[] = {
    {"/test/Answer", &v1beta1__register_request__descriptor, answer},
    {"/test/Refuse", &v1beta1__register_request__descriptor, refuse},
    {"/test/Twice", &v1beta1__register_request__descriptor, twice},
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

static void calls_and_is_answered(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;
    uid_t uid;

    serve(world, &served);
    channel = open_channel(world, &events);
    assert_int_equal(rpc_channel_peer_uid(channel, &uid), -1);
    start(channel, "/test/Answer", 0, 0, &result);
    world_wait(world, &result.over);
    assert_true(events.connected);
    assert_int_equal(result.code, RPC_OK);
    assert_string_equal(result.text, "");
    assert_int_equal(result.messages, 1);
    assert_string_equal(served.resource, "example.com/widget");
    assert_int_equal(served.peer.pid, getpid());
    assert_int_equal(rpc_channel_peer_uid(channel, &uid), 0);
    assert_int_equal(uid, getuid());
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void gets_the_servers_status_with_its_text(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Refuse", 0, 0, &result);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_FAILED_PRECONDITION);
    assert_string_equal(result.text, "no 100% \xc3\xa4\n");
    assert_int_equal(result.messages, 0);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void a_unary_answer_has_exactly_one_message(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result_twice = {0}, result_none = {0}, after = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Twice", 0, 0, &result_twice);
    world_wait(world, &result_twice.over);
    assert_int_equal(result_twice.code, RPC_INTERNAL);
    start(channel, "/test/None", 0, 0, &result_none);
    world_wait(world, &result_none.over);
    assert_int_equal(result_none.code, RPC_INTERNAL);
    start(channel, "/test/Answer", 0, 0, &after);
    world_wait(world, &after.over);
    assert_int_equal(after.code, RPC_OK);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void an_unknown_method_is_unimplemented(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Nothing", 0, 0, &result);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_UNIMPLEMENTED);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void a_stream_brings_messages_as_they_are_sent(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Take", 1, 0, &result);
    world_wait(world, &served.called);
    for (size_t i = 0; i < 3; i++) {
        result.got = false;
        assert_int_equal(send_list(served.call, i), 0);
        world_wait(world, &result.got);
        assert_int_equal(result.devices, i);
        assert_int_equal(rpc_incoming_queued(served.call), 0);
    }
    rpc_incoming_finish(served.call, RPC_ABORTED, "enough");
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_ABORTED);
    assert_string_equal(result.text, "enough");
    assert_int_equal(result.messages, 3);
    assert_false(served.cancelled);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void a_list_of_a_hundred_thousand_devices_comes_whole(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Take", 1, 0, &result);
    world_wait(world, &served.called);
    assert_int_equal(send_list(served.call, 100000), 0);
    assert_true(rpc_incoming_queued(served.call) > 6000000);
    rpc_incoming_finish(served.call, RPC_OK, NULL);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_OK);
    assert_int_equal(result.devices, 100000);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void a_deadline_ends_the_call_on_both_sides(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Take", 0, 20, &result);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_DEADLINE_EXCEEDED);
    world_wait(world, &served.cancelled);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void cancel_reaches_the_server_and_nothing_comes_back(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;
    struct rpc_call *call;

    serve(world, &served);
    channel = open_channel(world, &events);
    call = start(channel, "/test/Take", 1, 10000, &result);
    world_wait(world, &served.called);
    rpc_call_cancel(call);
    rpc_call_cancel(NULL);
    world_wait(world, &served.cancelled);
    assert_false(result.over);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void cancel_before_the_connection_sends_nothing(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0}, second = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    rpc_call_cancel(start(channel, "/test/Take", 0, 0, &result));
    start(channel, "/test/Answer", 0, 0, &second);
    world_wait(world, &second.over);
    world_settle(world);
    assert_int_equal(second.code, RPC_OK);
    assert_false(result.over);
    assert_false(served.cancelled);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void cancel_inside_the_message_callback(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {.cancel_in_message = true};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Take", 1, 0, &result);
    world_wait(world, &served.called);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(send_list(served.call, 1), 0);
    world_wait(world, &served.cancelled);
    assert_int_equal(result.messages, 1);
    assert_false(result.over);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void close_inside_the_message_callback(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {.close_in_message = true}, other = {0};
    struct served served;
    struct rpc_channel *channel;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Answer", 0, 0, &result);
    start(channel, "/test/Take", 0, 1000, &other);
    world_wait(world, &result.got);
    world_settle(world);
    assert_false(result.over);
    assert_false(other.over);
    assert_false(events.lost);
    rpc_server_close(served.server);
}

static void close_inside_the_done_callback(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {.close_in_done = true}, other = {0};
    struct served served;

    serve(world, &served);
    start(open_channel(world, &events), "/test/Answer", 0, 0, &result);
    start(result.channel, "/test/Take", 0, 0, &other);
    world_wait(world, &result.over);
    world_settle(world);
    assert_false(other.over);
    assert_false(events.lost);
    rpc_server_close(served.server);
}

static void close_inside_done_when_the_connection_is_lost(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {.close_in_done = true}, other = {.close_in_done = true};
    struct served served;

    serve(world, &served);
    start(open_channel(world, &events), "/test/Take", 0, 0, &result);
    start(result.channel, "/test/Take", 0, 0, &other);
    world_wait(world, &served.called);
    rpc_server_close(served.server);
    while (!result.over && !other.over)
        uv_run(&world->loop, UV_RUN_ONCE);
    world_settle(world);
    assert_true(result.over != other.over);
    assert_false(events.lost);
}

static void a_lost_connection_ends_its_calls(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0}, second = {0};
    struct served served;
    struct rpc_channel *channel;
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    uid_t uid;

    serve(world, &served);
    channel = open_channel(world, &events);
    start(channel, "/test/Take", 0, 0, &result);
    start(channel, "/test/Take", 1, 0, &second);
    world_wait(world, &served.called);
    rpc_server_close(served.server);
    world_wait(world, &events.lost);
    assert_true(result.over && second.over);
    assert_int_equal(result.code, RPC_UNAVAILABLE);
    assert_int_equal(second.code, RPC_UNAVAILABLE);
    assert_string_equal(events.reason, "the peer hung up");
    assert_int_equal(rpc_channel_peer_uid(channel, &uid), -1);
    assert_null(rpc_channel_call(channel, "/test/Answer", &empty.base, &v1beta1__empty__descriptor,
                                 0, 0, &call_ops, &result));
    world_settle(world);
    rpc_channel_close(channel); /* long after the handles are closed */
    assert_false(served.cancelled);
}

static void a_refused_connection_is_told_later(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct rpc_channel *channel = open_channel(world, &events);

    events.close_in_lost = true;
    start(channel, "/test/Take", 0, 1000, &result);
    assert_false(events.lost);
    world_wait(world, &events.lost);
    assert_false(events.connected);
    assert_int_equal(result.code, RPC_UNAVAILABLE);
    assert_string_equal(result.text, "connection lost: no such file or directory");
}

static void bad_paths_are_errors_at_once(void **state)
{
    struct world *world = *state;
    struct rpc_channel *channel;
    char name[200];

    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(rpc_channel_open(&world->loop, name, &channel_ops, NULL, &channel),
                     UV_ENAMETOOLONG);
    assert_int_equal(rpc_channel_open(&world->loop, "", &channel_ops, NULL, &channel), UV_EINVAL);
    rpc_channel_close(NULL);
}

static void works_on_a_descriptor_that_is_connected(void **state)
{
    struct world *world = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct link_events events = {0};
    struct result result = {0};
    struct served served;
    struct rpc_channel *channel;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    serve(world, &served);
    strcpy(address.sun_path, world->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(rpc_channel_open_fd(&world->loop, fd, &channel_ops, &events, &channel), 0);
    start(channel, "/test/Answer", 0, 0, &result);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_OK);
    assert_false(events.connected);
    rpc_server_close(served.server);
    world_wait(world, &events.lost);
    rpc_channel_close(channel);
}

static void a_bad_descriptor_is_an_error_at_once(void **state)
{
    struct world *world = *state;
    struct rpc_channel *channel;

    assert_int_equal(rpc_channel_open_fd(&world->loop, -1, &channel_ops, NULL, &channel), UV_EBADF);
    world_settle(world);
}

static void close_before_anything_happened(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct rpc_channel *channel = open_channel(world, &events);

    start(channel, "/test/Take", 0, 1000, &result);
    rpc_channel_close(channel);
    world_settle(world);
    assert_false(result.over || events.lost || events.connected);
}

static void a_large_request_goes_out_in_many_frames(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct rpc_channel *channel;
    struct served served;
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    size_t len = RPC_MESSAGE_BYTES_MAX - 100;

    serve(world, &served);
    channel = open_channel(world, &events);
    request.endpoint = malloc(len + 1);
    memset(request.endpoint, 'a', len);
    request.endpoint[len] = '\0';
    request.resource_name = (char *)"behind it";
    assert_non_null(rpc_channel_call(channel, "/test/Answer", &request.base,
                                     &v1beta1__empty__descriptor, 0, UINT64_MAX, &call_ops,
                                     &result));
    free(request.endpoint);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_OK);
    assert_string_equal(served.resource, "behind it");
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

/* The server refuses by the headers; the request's 15 MiB are still on their way. */
static void a_server_may_answer_before_the_request_is_whole(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0}, after = {0};
    struct rpc_channel *channel;
    struct served served;
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    size_t len = RPC_MESSAGE_BYTES_MAX - 100;

    serve(world, &served);
    channel = open_channel(world, &events);
    request.endpoint = malloc(len + 1);
    memset(request.endpoint, 'a', len);
    request.endpoint[len] = '\0';
    assert_non_null(rpc_channel_call(channel, "/test/Nothing", &request.base,
                                     &v1beta1__empty__descriptor, 0, 0, &call_ops, &result));
    free(request.endpoint);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_UNIMPLEMENTED);
    start(channel, "/test/Answer", 0, 0, &after);
    world_wait(world, &after.over);
    assert_int_equal(after.code, RPC_OK);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void a_request_too_large_is_refused_from_the_loop(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0}, cancelled = {0};
    struct rpc_channel *channel;
    struct served served;
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    char *text = malloc(RPC_MESSAGE_BYTES_MAX + 1);

    serve(world, &served);
    channel = open_channel(world, &events);
    memset(text, 'a', RPC_MESSAGE_BYTES_MAX);
    text[RPC_MESSAGE_BYTES_MAX] = '\0';
    request.endpoint = text;
    assert_non_null(rpc_channel_call(channel, "/test/Answer", &request.base,
                                     &v1beta1__empty__descriptor, 0, 0, &call_ops, &result));
    rpc_call_cancel(rpc_channel_call(channel, "/test/Answer", &request.base,
                                     &v1beta1__empty__descriptor, 0, 0, &call_ops, &cancelled));
    free(text);
    assert_false(result.over);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_RESOURCE_EXHAUSTED);
    assert_false(cancelled.over);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

static void too_many_calls_at_once_are_refused(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result many = {0}, last = {0};
    struct rpc_channel *channel;
    struct served served;

    serve(world, &served);
    channel = open_channel(world, &events);
    for (size_t i = 0; i < RPC_CALLS_MAX; i++)
        start(channel, "/test/Take", 0, 0, &many);
    start(channel, "/test/Take", 0, 0, &last);
    world_wait(world, &last.over);
    assert_int_equal(last.code, RPC_RESOURCE_EXHAUSTED);
    assert_false(many.over);
    rpc_channel_close(channel);
    rpc_server_close(served.server);
}

/* ---- against a raw server ---- */

#define END NGHTTP2_FLAG_END_STREAM

static const char *const headers_ok[] = {":status", "200", "content-type", "application/grpc+proto",
                                         NULL};
static const char *const trailers_ok[] = {"grpc-status", "0", NULL};

/* One call whose answer is `answer`, in pieces of `step` bytes; then an optional hang-up. */
static void run_raw(struct world *world, const struct bytes *answer, size_t step, bool hang_up,
                    int stream, struct result *result)
{
    static struct raw raw;
    static struct bytes greeting;
    struct link_events events;
    struct rpc_channel *channel;

    memset(&raw, 0, sizeof raw);
    memset(result, 0, sizeof *result);
    greeting.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    raw.greeting = &greeting;
    raw.answer = answer;
    raw.step = step;
    raw.hang_up = hang_up;
    raw_listen(&raw, world);
    channel = open_channel(world, &events);
    start(channel, "/test/Raw", stream, 0, result);
    world_wait(world, &result->over);
    rpc_channel_close(channel);
    world_wait(world, &raw.ended);
    raw_close(&raw);
    uv_run(&world->loop, UV_RUN_NOWAIT);
}

static void says_what_a_grpc_client_says(void **state)
{
    struct world *world = *state;
    struct bytes *answer = calloc(1, sizeof *answer);
    struct raw *raw = calloc(1, sizeof *raw);
    struct link_events events;
    struct result result = {0};
    struct rpc_channel *channel;

    bytes_frame(answer, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    raw->greeting = answer;
    raw_listen(raw, world);
    channel = open_channel(world, &events);
    start(channel, "/test/Raw", 0, 1500, &result);
    world_wait(world, &raw->request_whole);
    assert_string_equal(raw->fields,
                        ":method=POST\n:scheme=http\n:path=/test/Raw\n"
                        ":authority=localhost\nte=trailers\ncontent-type=application/grpc\n"
                        "user-agent=cri-device-shim/" SHIM_VERSION "\n"
                        "grpc-accept-encoding=identity,gzip\ngrpc-timeout=1500m\n");
    rpc_channel_close(channel);
    raw_close(raw);
    uv_run(&world->loop, UV_RUN_NOWAIT);
    free(raw);
    free(answer);
}

static void an_answer_may_come_in_any_pieces(void **state)
{
    static struct bytes answer;
    struct result result;

    answer.len = 0;
    bytes_headers(&answer, 0, 1, headers_ok);
    for (int i = 0; i < 3; i++)
        bytes_message(&answer, 0, 1, 0, "\x0a\x04\x0a\x02id", 6);
    bytes_headers(&answer, END, 1, trailers_ok);
    for (size_t step = 1; step < answer.len; step++) {
        run_raw(*state, &answer, step, false, 1, &result);
        assert_int_equal(result.code, RPC_OK);
        assert_int_equal(result.messages, 3);
        assert_int_equal(result.devices, 1);
    }
}

static void messages_may_share_a_frame_or_span_frames(void **state)
{
    static const uint8_t three[] = {0, 0, 0, 0, 2, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x0a, 0};
    static struct bytes answer;
    struct result result;

    for (size_t cut = 0; cut <= sizeof three; cut++) {
        answer.len = 0;
        bytes_headers(&answer, 0, 1, headers_ok);
        bytes_frame(&answer, NGHTTP2_DATA, 0, 1, three, cut);
        bytes_frame(&answer, NGHTTP2_DATA, 0, 1, three + cut, sizeof three - cut);
        bytes_headers(&answer, END, 1, trailers_ok);
        run_raw(*state, &answer, 0, false, 1, &result);
        assert_int_equal(result.code, RPC_OK);
        assert_int_equal(result.messages, 3);
    }
}

/* An answer made of a first header block, maybe a message, and maybe trailers. */
static int code_of(void **state, const char *const *headers, uint8_t headers_flags,
                   const char *message, size_t message_len, uint8_t message_flags,
                   const char *const *trailers, struct result *result)
{
    static struct bytes answer;

    answer.len = 0;
    bytes_headers(&answer, headers_flags, 1, headers);
    if (message)
        bytes_frame(&answer, NGHTTP2_DATA, message_flags, 1, message, message_len);
    if (trailers)
        bytes_headers(&answer, END, 1, trailers);
    run_raw(*state, &answer, 0, false, 0, result);
    return result->code;
}

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
    struct result result;

    assert_int_equal(code_of(state, only, END, NULL, 0, 0, NULL, &result), RPC_NOT_FOUND);
    assert_string_equal(result.text, "not here%");
    assert_int_equal(code_of(state, headers_ok, 0, EMPTY_MESSAGE, 0, odd, &result), RPC_UNKNOWN);
    assert_int_equal(code_of(state, headers_ok, 0, EMPTY_MESSAGE, 0, empty, &result), RPC_UNKNOWN);
    assert_int_equal(code_of(state, early, 0, EMPTY_MESSAGE, 0, empty, &result), RPC_UNKNOWN);
    assert_int_equal(code_of(state, headers_ok, END, NULL, 0, 0, NULL, &result), RPC_UNKNOWN);
    assert_int_equal(code_of(state, headers_ok, 0, EMPTY_MESSAGE, END, NULL, &result),
                     RPC_INTERNAL);
    assert_int_equal(code_of(state, headers_ok, 0, EMPTY_MESSAGE, 0, trailers_ok, &result), RPC_OK);
}

static void answers_that_are_not_grpc(void **state)
{
    static const char *const unavailable[] = {":status", "503", NULL};
    static const char *const with_status[] = {":status", "503", "grpc-status", "7", NULL};
    static const char *const claims_ok[] = {":status", "404", "grpc-status", "0", NULL};
    static const char *const html[] = {":status", "200", "content-type", "text/html", NULL};
    static const char *const bare[] = {":status", "200", NULL};
    struct result result;

    assert_int_equal(code_of(state, unavailable, END, NULL, 0, 0, NULL, &result), RPC_UNAVAILABLE);
    assert_int_equal(code_of(state, unavailable, 0, "<html>", 6, 0, NULL, &result),
                     RPC_UNAVAILABLE);
    assert_int_equal(code_of(state, with_status, END, NULL, 0, 0, NULL, &result),
                     RPC_PERMISSION_DENIED);
    assert_int_equal(code_of(state, claims_ok, END, NULL, 0, 0, NULL, &result), RPC_UNKNOWN);
    assert_int_equal(code_of(state, html, 0, "<html>", 6, END, NULL, &result), RPC_UNKNOWN);
    assert_int_equal(code_of(state, bare, 0, EMPTY_MESSAGE, 0, trailers_ok, &result), RPC_UNKNOWN);
}

static void broken_messages_end_only_their_call(void **state)
{
    struct result result;

    /* cut off */
    assert_int_equal(code_of(state, headers_ok, 0, "\0\0\0\0\5ab", 7, 0, trailers_ok, &result),
                     RPC_INTERNAL);
    /* a bad flag, and a compressed message without an encoding */
    assert_int_equal(code_of(state, headers_ok, 0, "\2\0\0\0\0", 5, 0, NULL, &result),
                     RPC_INTERNAL);
    assert_int_equal(code_of(state, headers_ok, 0, "\1\0\0\0\0", 5, 0, NULL, &result),
                     RPC_INTERNAL);
    /* one byte over 16 MiB */
    assert_int_equal(code_of(state, headers_ok, 0, "\0\1\0\0\1", 5, 0, NULL, &result),
                     RPC_RESOURCE_EXHAUSTED);
    /* no protobuf */
    assert_int_equal(code_of(state, headers_ok, 0, "\0\0\0\0\1\xff", 6, 0, NULL, &result),
                     RPC_INTERNAL);
    assert_int_equal(result.messages, 0);
}

static void small_garbage_cannot_ask_for_much_memory(void **state)
{
    static struct bytes answer;
    static uint8_t garbage[16000]; /* field 1, length 0, again and again: 8000 empty devices */
    struct result result;

    for (size_t i = 0; i < sizeof garbage; i += 2)
        garbage[i] = 0x0a;
    answer.len = 0;
    bytes_headers(&answer, 0, 1, headers_ok);
    bytes_message(&answer, 0, 1, 0, garbage, sizeof garbage);
    run_raw(*state, &answer, 0, false, 1, &result);
    assert_int_equal(result.code, RPC_RESOURCE_EXHAUSTED);
}

static void resets_become_codes(void **state)
{
    static const struct {
        uint8_t error;
        int code;
    } cases[] = {{NGHTTP2_NO_ERROR, RPC_INTERNAL},
                 {NGHTTP2_INTERNAL_ERROR, RPC_INTERNAL},
                 {NGHTTP2_REFUSED_STREAM, RPC_UNAVAILABLE},
                 {NGHTTP2_CANCEL, RPC_CANCELLED},
                 {NGHTTP2_ENHANCE_YOUR_CALM, RPC_RESOURCE_EXHAUSTED}};
    static struct bytes answer;
    struct result result;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t payload[4] = {0, 0, 0, cases[i].error};

        answer.len = 0;
        bytes_frame(&answer, NGHTTP2_RST_STREAM, 0, 1, payload, 4);
        run_raw(*state, &answer, 0, false, 0, &result);
        assert_int_equal(result.code, cases[i].code);
    }
}

static void a_going_away_server_ends_what_it_does_not_serve(void **state)
{
    static const uint8_t payload[8] = {0}; /* last stream 0, NO_ERROR */
    static struct bytes answer;
    struct result result;

    answer.len = 0;
    bytes_frame(&answer, NGHTTP2_GOAWAY, 0, 0, payload, sizeof payload);
    run_raw(*state, &answer, 0, false, 0, &result);
    assert_int_equal(result.code, RPC_UNAVAILABLE);
}

/* One stream at a time, and none after the first: the second call is never sent. */
static void run_never_sent(struct world *world, bool close_in_done)
{
    static const uint8_t one_stream[6] = {0, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, 0, 0, 1};
    static const uint8_t goaway[8] = {0, 0, 0, 1};
    static struct bytes greeting, answer;
    static struct raw raw;
    struct link_events events;
    struct result first = {0}, second = {.close_in_done = close_in_done};
    struct rpc_channel *channel;

    memset(&raw, 0, sizeof raw);
    greeting.len = 0;
    answer.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, one_stream, sizeof one_stream);
    bytes_frame(&answer, NGHTTP2_GOAWAY, 0, 0, goaway, sizeof goaway);
    bytes_headers(&answer, 0, 1, headers_ok);
    bytes_message(&answer, 0, 1, 0, "", 0);
    bytes_headers(&answer, END, 1, trailers_ok);
    raw.greeting = &greeting;
    raw_listen(&raw, world);
    channel = open_channel(world, &events);
    world_wait(world, &events.connected);
    world_settle(world); /* its SETTINGS have come */
    start(channel, "/test/Raw", 0, 0, &first);
    start(channel, "/test/Raw", 0, 0, &second);
    world_wait(world, &raw.request_whole);
    raw_write(&raw, &answer);
    world_wait(world, &first.over);
    assert_int_equal(first.code, RPC_OK);
    world_wait(world, &second.over);
    assert_int_equal(second.code, RPC_UNAVAILABLE);
    if (!close_in_done) {
        world_wait(world, &events.lost);
        assert_string_equal(events.reason, "the peer is going away: NO_ERROR");
        rpc_channel_close(channel);
    }
    world_wait(world, &raw.ended);
    raw_close(&raw);
    uv_run(&world->loop, UV_RUN_NOWAIT);
}

static void a_going_away_server_ends_what_was_never_sent(void **state)
{
    run_never_sent(*state, false);
}

/* The leak sanitizer would tell of the request. */
static void what_was_never_sent_may_close_the_channel(void **state)
{
    run_never_sent(*state, true);
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
    static struct bytes greeting, reset;
    static struct raw raw;
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct rpc_channel *channel;
    uv_prepare_t prepare;
    uint64_t until_ms;

    memset(&raw, 0, sizeof raw);
    greeting.len = 0;
    reset.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    bytes_frame(&reset, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    raw.greeting = &greeting;
    raw_listen(&raw, world);
    channel = open_channel(world, &events);
    start(channel, "/test/Raw", 0, 50, &result);
    until_ms = uv_now(&world->loop) + 50;
    world_wait(world, &raw.request_whole);
    raw_write(&raw, &reset);
    uv_prepare_init(&world->loop, &prepare);
    prepare.data = &until_ms;
    uv_prepare_start(&prepare, let_time_pass);
    world_wait(world, &result.over);
    assert_int_equal(result.code, RPC_DEADLINE_EXCEEDED);
    rpc_channel_close(channel);
    world_wait(world, &raw.ended);
    raw_close(&raw);
    uv_run(&world->loop, UV_RUN_NOWAIT);
}

static void hanging_up_mid_answer_is_unavailable(void **state)
{
    static struct bytes answer;
    struct result result;

    answer.len = 0;
    bytes_headers(&answer, 0, 1, headers_ok);
    bytes_add(&answer, "\0\0\7\0\0\0\0\0\1\0", 10);
    run_raw(*state, &answer, 0, true, 0, &result);
    assert_int_equal(result.code, RPC_UNAVAILABLE);
}

static void garbage_instead_of_http2_is_unavailable(void **state)
{
    static struct bytes answer;
    struct result result;

    answer.len = 0;
    bytes_add(&answer, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 47);
    run_raw(*state, &answer, 0, false, 0, &result);
    assert_int_equal(result.code, RPC_UNAVAILABLE);
}

static void an_interim_answer_is_passed_over(void **state)
{
    static const char *const interim[] = {":status", "103", NULL};
    static struct bytes answer;
    struct result result;

    answer.len = 0;
    bytes_headers(&answer, 0, 1, interim);
    bytes_headers(&answer, 0, 1, headers_ok);
    bytes_message(&answer, 0, 1, 0, "", 0);
    bytes_headers(&answer, END, 1, trailers_ok);
    run_raw(*state, &answer, 0, false, 0, &result);
    assert_int_equal(result.code, RPC_OK);
}

static void endless_headers_end_the_call(void **state)
{
    static char text[121];
    const char *fields[2 * 45 + 1];
    static struct bytes answer;
    struct result result;

    memset(text, 'a', sizeof text - 1);
    for (size_t i = 0; i < 90; i += 2) {
        fields[i] = "x-filler";
        fields[i + 1] = text;
    }
    fields[90] = NULL;
    answer.len = 0;
    bytes_headers(&answer, 0, 1, (const char *const[]){":status", "103", NULL});
    for (size_t i = 0; i < 10; i++) {
        fields[0] = ":status";
        fields[1] = "103";
        bytes_headers(&answer, 0, 1, fields);
    }
    run_raw(*state, &answer, 0, false, 0, &result);
    assert_int_equal(result.code, RPC_RESOURCE_EXHAUSTED);
}

#define WORLD_TEST(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(calls_and_is_answered),
        WORLD_TEST(gets_the_servers_status_with_its_text),
        WORLD_TEST(a_unary_answer_has_exactly_one_message),
        WORLD_TEST(an_unknown_method_is_unimplemented),
        WORLD_TEST(a_stream_brings_messages_as_they_are_sent),
        WORLD_TEST(a_list_of_a_hundred_thousand_devices_comes_whole),
        WORLD_TEST(a_deadline_ends_the_call_on_both_sides),
        WORLD_TEST(cancel_reaches_the_server_and_nothing_comes_back),
        WORLD_TEST(cancel_before_the_connection_sends_nothing),
        WORLD_TEST(cancel_inside_the_message_callback),
        WORLD_TEST(close_inside_the_message_callback),
        WORLD_TEST(close_inside_the_done_callback),
        WORLD_TEST(close_inside_done_when_the_connection_is_lost),
        WORLD_TEST(a_lost_connection_ends_its_calls),
        WORLD_TEST(a_refused_connection_is_told_later),
        WORLD_TEST(bad_paths_are_errors_at_once),
        WORLD_TEST(works_on_a_descriptor_that_is_connected),
        WORLD_TEST(a_bad_descriptor_is_an_error_at_once),
        WORLD_TEST(close_before_anything_happened),
        WORLD_TEST(a_large_request_goes_out_in_many_frames),
        WORLD_TEST(a_server_may_answer_before_the_request_is_whole),
        WORLD_TEST(a_request_too_large_is_refused_from_the_loop),
        WORLD_TEST(too_many_calls_at_once_are_refused),
        WORLD_TEST(says_what_a_grpc_client_says),
        WORLD_TEST(an_answer_may_come_in_any_pieces),
        WORLD_TEST(messages_may_share_a_frame_or_span_frames),
        WORLD_TEST(status_comes_from_the_last_block),
        WORLD_TEST(answers_that_are_not_grpc),
        WORLD_TEST(broken_messages_end_only_their_call),
        WORLD_TEST(small_garbage_cannot_ask_for_much_memory),
        WORLD_TEST(resets_become_codes),
        WORLD_TEST(a_going_away_server_ends_what_it_does_not_serve),
        WORLD_TEST(a_going_away_server_ends_what_was_never_sent),
        WORLD_TEST(what_was_never_sent_may_close_the_channel),
        WORLD_TEST(a_cancel_after_the_deadline_is_the_deadline),
        WORLD_TEST(hanging_up_mid_answer_is_unavailable),
        WORLD_TEST(garbage_instead_of_http2_is_unavailable),
        WORLD_TEST(an_interim_answer_is_passed_over),
        WORLD_TEST(endless_headers_end_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
