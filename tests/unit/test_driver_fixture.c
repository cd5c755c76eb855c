#include "tests/unit/test_driver_fixture.h"

#include "cri-proto/dra_health_v1alpha1.pb-c.h"
#include "cri-proto/dra_v1.pb-c.h"
#include "cri-proto/methods.h"

static void on_cancelled(void *user)
{
    ((struct driver *)user)->held = NULL;
}

static void note_call(struct driver *d, const char *service, Dra__V1__Claim **claims, size_t len)
{
    d->service = service;
    assert_int_equal(len, 1);
    snprintf(d->claim, sizeof d->claim, "%s/%s %s", claims[0]->namespace_, claims[0]->name,
             claims[0]->uid);
}

static void answer(struct driver *d, struct rpc_incoming *call, const ProtobufCMessage *response)
{
    if (d->hold) {
        d->held = call;
        rpc_incoming_on_cancel(call, on_cancelled, d);
        return;
    }
    incoming_answer(call, response, d->code, "the driver says no");
}

static void prepare(struct driver *d, struct rpc_incoming *call, const char *service,
                    const ProtobufCMessage *message)
{
    const Dra__V1__NodePrepareResourcesRequest *request = (const void *)message;
    Dra__V1__NodePrepareResourcesResponse response = DRA__V1__NODE_PREPARE_RESOURCES_RESPONSE__INIT;
    Dra__V1__NodePrepareResourceResponse claim = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__NodePrepareResourcesResponse__ClaimsEntry
        entry = DRA__V1__NODE_PREPARE_RESOURCES_RESPONSE__CLAIMS_ENTRY__INIT,
        *entries[] = {&entry};
    Dra__V1__Device device = DRA__V1__DEVICE__INIT, *devices[] = {&device};

    d->prepares++;
    note_call(d, service, request->claims, request->n_claims);
    device.device_name = (char *)"gpu-0";
    claim.n_devices = 1;
    claim.devices = devices;
    if (d->error)
        claim.error = (char *)d->error;
    entry.key = request->claims[0]->uid;
    entry.value = &claim;
    response.n_claims = 1;
    response.claims = entries;
    answer(d, call, &response.base);
}

static void unprepare(struct driver *d, struct rpc_incoming *call, const char *service,
                      const ProtobufCMessage *message)
{
    const Dra__V1__NodeUnprepareResourcesRequest *request = (const void *)message;
    Dra__V1__NodeUnprepareResourcesResponse response =
        DRA__V1__NODE_UNPREPARE_RESOURCES_RESPONSE__INIT;
    Dra__V1__NodeUnprepareResourceResponse claim = DRA__V1__NODE_UNPREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__NodeUnprepareResourcesResponse__ClaimsEntry
        entry = DRA__V1__NODE_UNPREPARE_RESOURCES_RESPONSE__CLAIMS_ENTRY__INIT,
        *entries[] = {&entry};

    d->unprepares++;
    note_call(d, service, request->claims, request->n_claims);
    if (d->error)
        claim.error = (char *)d->error;
    entry.key = request->claims[0]->uid;
    entry.value = &claim;
    response.n_claims = 1;
    response.claims = entries;
    answer(d, call, &response.base);
}

#define HANDLERS(service)                                                                          \
    static void on_##service##_prepare(struct rpc_incoming *call, const ProtobufCMessage *message, \
                                       void *user)                                                 \
    {                                                                                              \
        prepare(user, call, #service, message);                                                    \
    }                                                                                              \
    static void on_##service##_unprepare(struct rpc_incoming *call,                                \
                                         const ProtobufCMessage *message, void *user)              \
    {                                                                                              \
        unprepare(user, call, #service, message);                                                  \
    }
HANDLERS(v1)
HANDLERS(v1beta1)
HANDLERS(alpha)

static void on_stream_cancelled(void *user)
{
    ((struct driver *)user)->stream = NULL;
}

static void on_watch(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    DraHealth__V1alpha1__NodeWatchResourcesResponse response =
        DRA_HEALTH__V1ALPHA1__NODE_WATCH_RESOURCES_RESPONSE__INIT;
    DraHealth__V1alpha1__DeviceHealth health = DRA_HEALTH__V1ALPHA1__DEVICE_HEALTH__INIT,
                                      *healths[] = {&health};
    struct driver *d = user;

    (void)message;
    d->streams++;
    health.health = DRA_HEALTH__V1ALPHA1__HEALTH_STATUS__UNHEALTHY;
    response.n_devices = 1;
    response.devices = healths;
    assert_int_equal(rpc_incoming_send(call, &response.base), 0);
    d->stream = call;
    rpc_incoming_on_cancel(call, on_stream_cancelled, d);
}

static const struct rpc_method METHODS[] = {
    {DRA_V1_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_v1_prepare},
    {DRA_V1_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor, on_v1_unprepare},
    {DRA_V1BETA1_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_v1beta1_prepare},
    {DRA_V1BETA1_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor,
     on_v1beta1_unprepare},
    {DRA_ALPHA_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_alpha_prepare},
    {DRA_ALPHA_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor,
     on_alpha_unprepare},
    {DRA_HEALTH_V1ALPHA1_WATCH, &dra_health__v1alpha1__node_watch_resources_request__descriptor,
     on_watch}, /* the last */
};

void driver_serve(struct driver *d, struct world *world, const char *name)
{
    size_t len = sizeof METHODS / sizeof *METHODS - d->without_health;

    snprintf(d->path, sizeof d->path, "%s/%s", world->dir, name);
    assert_int_equal(rpc_server_open(&world->loop, d->path, METHODS, len, d, &d->server), 0);
}

void driver_end(struct driver *d)
{
    rpc_server_close(d->server);
    d->server = NULL;
    d->held = d->stream = NULL;
}
