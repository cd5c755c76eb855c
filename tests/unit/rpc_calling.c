#include "tests/unit/rpc_calling.h"

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct result *result = user;

    assert_false(result->over);
    result->got = true;
    result->messages++;
    if (message->descriptor == &v1beta1__list_and_watch_response__descriptor)
        result->devices = ((const V1beta1__ListAndWatchResponse *)message)->n_devices;
    if (result->in_message)
        result->in_message(result);
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

const struct rpc_call_ops call_ops = {.message = on_message, .done = on_done};

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

const struct rpc_channel_ops channel_ops = {.connected = on_connected, .lost = on_lost};

struct rpc_channel *open_channel(struct world *world, struct link_events *events)
{
    struct rpc_channel *channel;

    memset(events, 0, sizeof *events);
    assert_int_equal(rpc_channel_open(&world->loop, world->path, &channel_ops, events, &channel),
                     0);
    return channel;
}

struct rpc_call *start(struct rpc_channel *channel, const char *path, enum answers answers,
                       uint64_t deadline_ms, struct result *result)
{
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    struct rpc_call *call;

    request.resource_name = (char *)"example.com/widget";
    result->channel = channel;
    call = rpc_channel_call(channel, path, &request.base,
                            answers == STREAM ? &v1beta1__list_and_watch_response__descriptor
                                              : &v1beta1__empty__descriptor,
                            answers == STREAM, deadline_ms, &call_ops, result);
    assert_non_null(call);
    assert_false(result->over);
    return call;
}

/* ---- against our own server ---- */

int pair_setup(void **state)
{
    struct pair *p = calloc(1, sizeof *p);

    p->world = world_new();
    served_open(&p->served, p->world);
    p->channel = open_channel(p->world, &p->events);
    *state = p;
    return 0;
}

void close_channel(struct pair *p)
{
    rpc_channel_close(p->channel);
    p->channel = NULL;
}

int pair_teardown(void **state)
{
    struct pair *p = *state;
    int err;

    close_channel(p);
    served_close(&p->served);
    err = world_free(p->world);
    free(p);
    return err;
}

int call(struct pair *p, const char *path, struct result *result)
{
    start(p->channel, path, UNARY, 0, result);
    world_wait(p->world, &result->over);
    return result->code;
}

/* ---- against a raw server ---- */

const char *const headers_ok[] = {":status", "200", "content-type", "application/grpc+proto", NULL};
const char *const trailers_ok[] = {"grpc-status", "0", NULL};

int raw_setup(void **state)
{
    struct raw_pair *p = calloc(1, sizeof *p);

    p->world = world_new();
    bytes_settings(&p->greeting);
    *state = p;
    return 0;
}

int raw_teardown(void **state)
{
    struct raw_pair *p = *state;
    int err = world_free(p->world);

    free(p);
    return err;
}

void open_raw(struct raw_pair *p)
{
    memset(&p->raw, 0, sizeof p->raw);
    memset(&p->result, 0, sizeof p->result);
    p->raw.greeting = &p->greeting;
    raw_listen(&p->raw, p->world);
    p->channel = open_channel(p->world, &p->events);
}

void close_raw(struct raw_pair *p)
{
    rpc_channel_close(p->channel);
    world_wait(p->world, &p->raw.ended);
    raw_close(&p->raw);
    uv_run(&p->world->loop, UV_RUN_NOWAIT);
}

int run_opened(struct raw_pair *p, enum answers answers)
{
    p->raw.answer = &p->answer;
    start(p->channel, "/test/Raw", answers, 0, &p->result);
    world_wait(p->world, &p->result.over);
    close_raw(p);
    return p->result.code;
}

int run(struct raw_pair *p, enum answers answers)
{
    open_raw(p);
    return run_opened(p, answers);
}
