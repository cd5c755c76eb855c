#include "shim/bridge/dra/health_watch.h"

#include "cri-proto/methods.h"

/* The daemon has taken care of what holds no longer; here all are of one source. */
#define SOURCE 1

void health_watch_init(struct health_watch *watch)
{
    health_words_init(&watch->words);
    watch->call = NULL;
    watch->unknown = false;
}

static bool say(struct health_watch *watch, const Bridge__V1__DeviceHealth *device)
{
    DraHealth__V1alpha1__DeviceHealth *health =
        dra_health__v1alpha1__device_health__unpack(NULL, device->health.len, device->health.data);
    bool is_new = false;

    if (health && device->over)
        is_new = health_words_end_one(&watch->words, device->driver, device->said_ms, health);
    else if (health)
        is_new = health_words_say(&watch->words, device->driver, SOURCE, device->said_ms, health);
    dra_health__v1alpha1__device_health__free_unpacked(health, NULL);
    return is_new;
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__WatchHealthResponse *response = (const void *)message;
    struct health_watch *watch = user;
    bool is_new = false;

    (void)call;
    for (size_t i = 0; i < response->n_devices; i++)
        is_new = say(watch, response->devices[i]) || is_new;
    if (is_new)
        watch->changed(watch->user);
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct health_watch *watch = user;

    (void)call;
    watch->call = NULL;
    watch->unknown = status->code == RPC_UNIMPLEMENTED;
}

void health_watch_look(struct health_watch *watch)
{
    static const struct rpc_call_ops ops = {on_message, on_done};
    Bridge__V1__WatchHealthRequest request = BRIDGE__V1__WATCH_HEALTH_REQUEST__INIT;

    if (!watch->call && !watch->unknown)
        watch->call =
            feed_client_call(watch->feed, BRIDGE_WATCH_HEALTH, &request.base,
                             &bridge__v1__watch_health_response__descriptor, true, 0, &ops, watch);
}

void health_watch_feed_came(struct health_watch *watch)
{
    watch->unknown = false;
    health_watch_look(watch);
}

void health_watch_feed_lost(struct health_watch *watch)
{
    rpc_call_cancel(watch->call);
    watch->call = NULL;
}

void health_watch_fini(struct health_watch *watch)
{
    health_watch_feed_lost(watch);
    health_words_fini(&watch->words);
}
