#include "tests/unit/driver_fixture.h"

#include "cri-proto/dra_health_v1alpha1.pb-c.h"
#include "cri-proto/dra_v1.pb-c.h"
#include "cri-proto/methods.h"

static void on_cancelled(void *user)
{
    ((struct driver *)user)->held = NULL;
}

/* Claims that it answers for in one call. */
#define CLAIMS_MAX 70

static void note_call(struct driver *d, const char *service, Dra__V1__Claim **claims, size_t len)
{
    size_t used = 0;

    d->service = service;
    d->claims = len;
    assert_in_range(len, 1, CLAIMS_MAX);
    for (size_t i = 0; i < len && used < sizeof d->claim; i++)
        used += (size_t)snprintf(d->claim + used, sizeof d->claim - used, "%s%s/%s %s",
                                 i > 0 ? ", " : "", claims[i]->namespace_, claims[i]->name,
                                 claims[i]->uid);
}

static const char *error_of(const struct driver *d, const char *uid)
{
    return d->error && (!d->error_of || strcmp(d->error_of, uid) == 0) ? d->error : "";
}

/* The uids that it answers for; how many. */
static size_t answered(const struct driver *d, Dra__V1__Claim **claims, size_t len, char **uids)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (!d->skipped || strcmp(claims[i]->uid, d->skipped) != 0)
            uids[n++] = claims[i]->uid;
    }
    if (d->besides)
        uids[n++] = (char *)(uintptr_t)d->besides;
    return n;
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
    Dra__V1__NodePrepareResourceResponse claims[CLAIMS_MAX + 1];
    Dra__V1__NodePrepareResourcesResponse__ClaimsEntry entry[CLAIMS_MAX + 1],
        *entries[CLAIMS_MAX + 1];
    Dra__V1__Device device = DRA__V1__DEVICE__INIT, *devices[] = {&device};
    char *uids[CLAIMS_MAX + 1];

    d->prepares++;
    note_call(d, service, request->claims, request->n_claims);
    device.device_name = (char *)"gpu-0";
    response.n_claims = answered(d, request->claims, request->n_claims, uids);
    response.claims = entries;
    for (size_t i = 0; i < response.n_claims; i++) {
        dra__v1__node_prepare_resource_response__init(&claims[i]);
        claims[i].n_devices = 1;
        claims[i].devices = devices;
        claims[i].error = (char *)(uintptr_t)error_of(d, uids[i]);
        dra__v1__node_prepare_resources_response__claims_entry__init(&entry[i]);
        entry[i].key = uids[i];
        entry[i].value = &claims[i];
        entries[i] = &entry[i];
    }
    answer(d, call, &response.base);
}

static void unprepare(struct driver *d, struct rpc_incoming *call, const char *service,
                      const ProtobufCMessage *message)
{
    const Dra__V1__NodeUnprepareResourcesRequest *request = (const void *)message;
    Dra__V1__NodeUnprepareResourcesResponse response =
        DRA__V1__NODE_UNPREPARE_RESOURCES_RESPONSE__INIT;
    Dra__V1__NodeUnprepareResourceResponse claims[CLAIMS_MAX + 1];
    Dra__V1__NodeUnprepareResourcesResponse__ClaimsEntry entry[CLAIMS_MAX + 1],
        *entries[CLAIMS_MAX + 1];
    char *uids[CLAIMS_MAX + 1];

    d->unprepares++;
    note_call(d, service, request->claims, request->n_claims);
    response.n_claims = answered(d, request->claims, request->n_claims, uids);
    response.claims = entries;
    for (size_t i = 0; i < response.n_claims; i++) {
        dra__v1__node_unprepare_resource_response__init(&claims[i]);
        claims[i].error = (char *)(uintptr_t)error_of(d, uids[i]);
        dra__v1__node_unprepare_resources_response__claims_entry__init(&entry[i]);
        entry[i].key = uids[i];
        entry[i].value = &claims[i];
        entries[i] = &entry[i];
    }
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
    assert_int_equal(serve_at(&world->loop, d->path, METHODS, len, d, &d->server), 0);
}

void driver_end(struct driver *d)
{
    rpc_server_close(d->server);
    d->server = NULL;
    d->held = d->stream = NULL;
}
