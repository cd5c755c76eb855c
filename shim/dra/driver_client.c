#include "shim/dra/driver_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/dra/answer.h"
#include "shim/dra/claim_calls.h"
#include "shim/dra/limits.h"
#include "shim/must.h"
#include "shim/plugins/extra_channels.h"
#include "shim/plugins/plugin_socket.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"
#include "shim/stopping.h"

#define REASON_BYTES_MAX 256

struct driver_client {
    struct driver_clients *set;
    UT_hash_handle hh;
    uint64_t number;
    bool told; /* that it is away */
    char *path;
    uid_t uid;
    enum driver_service service;
    bool wants_health;
    bool has_health; /* as far as this connection has shown */
    uint64_t pause_ms;
    uint64_t connected_ms; /* on the loop's clock */
    uv_timer_t dial_timer;
    uv_timer_t health_timer;
    unsigned timers;              /* still to be closed */
    struct message_budget budget; /* of all channels */
    struct rpc_channel *channel;  /* NULL: AWAY */
    struct extra_channels extra;  /* for calls that `channel` takes no more */
    struct rpc_call *watch;       /* of its health; NULL: none */
};

/* The end of a call, still to be told. */
struct unavailable {
    STAILQ_ENTRY(unavailable) entry;
    uint64_t call;
    char message[];
};

struct driver_clients {
    uv_loop_t *loop;
    const struct driver_clients_ops *ops;
    void *user;
    struct driver_client *clients;
    struct claim_calls calls;
    STAILQ_HEAD(, unavailable) unavailable;
    uv_timer_t unavailable_timer;
    size_t shared;            /* DRIVERS_SHARED_BYTES, less what is drawn */
    struct stopping stopping; /* of clients, while there are any, the calls and the timer */
};

static struct driver_client *find(struct driver_clients *set, uint64_t instance)
{
    struct driver_client *client;

    HASH_FIND(hh, set->clients, &instance, sizeof instance, client);
    return client;
}

/* ---- calls ---- */

enum method {
    METHOD_PREPARE,
    METHOD_UNPREPARE,
};

/* By the driver's service, and then by `enum method`. */
static const struct numbered_method METHODS[][2] = {
    [DRIVER_V1] = {{DRA_V1_PREPARE, &dra__v1__node_prepare_resources_response__descriptor},
                   {DRA_V1_UNPREPARE, &dra__v1__node_unprepare_resources_response__descriptor}},
    [DRIVER_V1BETA1] = {{DRA_V1BETA1_PREPARE,
                         &dra__v1__node_prepare_resources_response__descriptor},
                        {DRA_V1BETA1_UNPREPARE,
                         &dra__v1__node_unprepare_resources_response__descriptor}},
    [DRIVER_ALPHA] = {{DRA_ALPHA_PREPARE, &dra__v1__node_prepare_resources_response__descriptor},
                      {DRA_ALPHA_UNPREPARE,
                       &dra__v1__node_unprepare_resources_response__descriptor}},
};

static void tell(struct driver_clients *set, uint64_t call, const struct driver_answer *answer)
{
    set->ops->answered(set->user, call, answer->code, answer->message, answer->response,
                       answer->response_bytes);
}

/* One at a time: the callback may add and take away others. */
static void on_unavailable(uv_timer_t *timer)
{
    struct driver_clients *set = timer->data;
    struct unavailable *one = STAILQ_FIRST(&set->unavailable);

    if (!one)
        return;
    STAILQ_REMOVE_HEAD(&set->unavailable, entry);
    uv_timer_start(timer, on_unavailable, 0, 0);
    tell(set, one->call, &(struct driver_answer){RPC_UNAVAILABLE, one->message, NULL, 0, ""});
    free(one);
}

/* Told in a later turn of the loop: behind lost(), if that is why. */
static void tell_unavailable(struct driver_clients *set, uint64_t call, const char *message)
{
    struct unavailable *one = must(malloc(sizeof *one + strlen(message) + 1));

    one->call = call;
    strcpy(one->message, message);
    STAILQ_INSERT_TAIL(&set->unavailable, one, entry);
    uv_timer_start(&set->unavailable_timer, on_unavailable, 0, 0);
}

static void on_call_ended(void *user, uint64_t call, const struct driver_answer *answer)
{
    struct driver_clients *set = user;

    if (answer->code == RPC_UNAVAILABLE)
        tell_unavailable(set, call, answer->message);
    else
        tell(set, call, answer);
}

static void add_call(struct driver_clients *set, uint64_t instance, enum method method,
                     const struct claim_call *call)
{
    struct driver_client *client = find(set, instance);

    claim_calls_add(&set->calls, client ? client->channel : NULL,
                    &METHODS[client ? client->service : DRIVER_V1][method], call);
}

void driver_clients_prepare(struct driver_clients *clients, uint64_t instance,
                            const struct claim_call *call)
{
    add_call(clients, instance, METHOD_PREPARE, call);
}

void driver_clients_unprepare(struct driver_clients *clients, uint64_t instance,
                              const struct claim_call *call)
{
    add_call(clients, instance, METHOD_UNPREPARE, call);
}

void driver_clients_send(struct driver_clients *clients)
{
    claim_calls_send(&clients->calls);
}

void driver_clients_cancel(struct driver_clients *clients, uint64_t call)
{
    struct unavailable *one;

    claim_calls_cancel(&clients->calls, call);
    STAILQ_FOREACH(one, &clients->unavailable, entry) {
        if (one->call == call)
            break;
    }
    if (one)
        STAILQ_REMOVE(&clients->unavailable, one, unavailable, entry);
    free(one);
}

/* ---- health ---- */

static void on_health_timer(uv_timer_t *timer);

static void on_health(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct driver_client *client = user;

    (void)call;
    client->set->ops->health(client->set->user, client->number,
                             (const DraHealth__V1alpha1__NodeWatchResourcesResponse *)message);
}

static void on_health_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct driver_client *client = user;

    (void)call;
    client->watch = NULL;
    client->set->ops->health(client->set->user, client->number, NULL);
    client->has_health = client->has_health && status->code != RPC_UNIMPLEMENTED;
    if (client->has_health)
        uv_timer_start(&client->health_timer, on_health_timer, DRIVER_HEALTH_MS, 0);
}

static void watch_health(struct driver_client *client)
{
    static const struct rpc_call_ops ops = {.message = on_health, .done = on_health_done};
    DraHealth__V1alpha1__NodeWatchResourcesRequest request =
        DRA_HEALTH__V1ALPHA1__NODE_WATCH_RESOURCES_REQUEST__INIT;

    client->watch = rpc_channel_call(
        client->channel, DRA_HEALTH_V1ALPHA1_WATCH, &request.base,
        &dra_health__v1alpha1__node_watch_resources_response__descriptor, true, 0, &ops, client);
    if (!client->watch)
        uv_timer_start(&client->health_timer, on_health_timer, DRIVER_HEALTH_MS, 0);
}

static void on_health_timer(uv_timer_t *timer)
{
    struct driver_client *client = timer->data;

    if (client->channel && !client->watch)
        watch_health(client);
}

/* ---- its connection ---- */

static void on_dial(uv_timer_t *timer);
static struct rpc_channel *on_instead(struct rpc_channel *channel, void *user);

static void dial_in(struct driver_client *client, uint64_t pause_ms)
{
    uv_timer_start(&client->dial_timer, on_dial, pause_ms, 0);
}

static void dial_again(struct driver_client *client, uint64_t most_ms)
{
    if (client->pause_ms > most_ms)
        client->pause_ms = most_ms;
    dial_in(client, client->pause_ms);
    client->pause_ms *= 2;
}

/* Once, until it was connected. */
static void tell_away(struct driver_client *client, const char *reason)
{
    if (client->told)
        return;
    client->told = true;
    client->set->ops->lost(client->set->user, client->number, reason);
}

/* Ends calls without a callback. */
static void hang_up(struct driver_client *client)
{
    if (client->channel)
        claim_calls_cancel_all(&client->set->calls, client->channel); /* they all began there */
    rpc_channel_close(client->channel);
    client->channel = NULL;
    client->watch = NULL;
    for (size_t i = 0; i < EXTRA_CHANNELS_MAX; i++)
        rpc_channel_close(client->extra.v[i]);
    client->extra = (struct extra_channels){0};
}

/* Of the first: its calls have ended before it, and those on others end with it. */
static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct driver_client *client = user;
    struct rpc_channel **extra = extra_channels_find(&client->extra, channel);

    if (extra) {
        *extra = NULL;
        rpc_channel_close(channel);
        return;
    }
    hang_up(client);
    uv_timer_stop(&client->health_timer);
    if (uv_now(client->set->loop) - client->connected_ms >= DRIVER_REDIAL_MS_MAX)
        client->pause_ms = DRIVER_REDIAL_MS_MIN;
    dial_again(client, DRIVER_FLAP_MS_MAX);
    tell_away(client, reason);
}

/* 0 or a negative error; `wrong` as plugin_socket_connect() says it. */
static int connect_to(struct driver_client *client, struct rpc_channel **out, const char **wrong)
{
    static const struct rpc_channel_ops ops = {.lost = on_lost, .instead = on_instead};
    int fd = plugin_socket_connect(client->path, client->uid, wrong), err;

    if (fd < 0)
        return fd;
    err = rpc_channel_open_fd(client->set->loop, fd, &ops, client, out);
    if (err)
        *out = NULL;
    else
        rpc_channel_set_budget(*out, &client->budget);
    return err;
}

static struct rpc_channel *on_instead(struct rpc_channel *channel, void *user)
{
    struct driver_client *client = user;
    struct rpc_channel *open = extra_channels_open(&client->extra);
    struct rpc_channel **room = extra_channels_find(&client->extra, NULL);
    const char *wrong;

    (void)channel;
    if (open || !room)
        return open;
    return connect_to(client, room, &wrong) < 0 ? NULL : *room;
}

static void on_dial(uv_timer_t *timer)
{
    struct driver_client *client = timer->data;
    char text[REASON_BYTES_MAX];
    const char *wrong = NULL;
    int err = connect_to(client, &client->channel, &wrong);

    if (err < 0) {
        dial_again(client, DRIVER_REDIAL_MS_MAX);
        snprintf(text, sizeof text, "cannot connect: %s", wrong ? wrong : strerror(-err));
        tell_away(client, text);
        return;
    }
    client->told = false;
    client->connected_ms = uv_now(client->set->loop);
    client->has_health = client->wants_health;
    if (client->has_health)
        watch_health(client);
    client->set->ops->connected(client->set->user, client->number);
}

/* ---- life ---- */

static void set_free(void *thing)
{
    struct driver_clients *set = thing;
    struct unavailable *one;

    while ((one = STAILQ_FIRST(&set->unavailable))) {
        STAILQ_REMOVE_HEAD(&set->unavailable, entry);
        free(one);
    }
    free(set);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct driver_client *client = handle->data;
    struct driver_clients *set = client->set;

    if (--client->timers > 0)
        return;
    free(client->path);
    free(client);
    stopping_part(&set->stopping);
}

struct driver_clients *driver_clients_new(uv_loop_t *loop, const struct driver_clients_ops *ops,
                                          void *user)
{
    struct driver_clients *set = must(calloc(1, sizeof *set));

    set->loop = loop;
    set->ops = ops;
    set->user = user;
    set->shared = DRIVERS_SHARED_BYTES;
    claim_calls_init(&set->calls, loop, on_call_ended, set, "the driver is not connected");
    STAILQ_INIT(&set->unavailable);
    uv_timer_init(loop, &set->unavailable_timer);
    set->unavailable_timer.data = set;
    set->stopping = (struct stopping){.parts = 2, .free = set_free, .thing = set};
    return set;
}

static void timer_init(struct driver_client *client, uv_timer_t *timer)
{
    uv_timer_init(client->set->loop, timer);
    timer->data = client;
    client->timers++;
}

void driver_clients_open(struct driver_clients *clients, uint64_t instance,
                         const struct driver_instance *is)
{
    struct driver_client *client = must(calloc(1, sizeof *client));

    client->set = clients;
    client->number = instance;
    client->path = must(strdup(is->endpoint));
    client->uid = is->uid;
    client->service = is->service;
    client->wants_health = is->health;
    client->pause_ms = DRIVER_REDIAL_MS_MIN;
    client->budget = (struct message_budget){
        .left = DRIVER_RECEIVED_BYTES_MAX, .own = DRIVER_OWN_BYTES, .shared = &clients->shared};
    timer_init(client, &client->dial_timer);
    timer_init(client, &client->health_timer);
    clients->stopping.parts++;
    HASH_ADD(hh, clients->clients, number, sizeof client->number, client);
    dial_in(client, 0);
}

static void client_close(struct driver_client *client)
{
    HASH_DELETE(hh, client->set->clients, client);
    hang_up(client);
    uv_close((uv_handle_t *)&client->dial_timer, on_timer_closed);
    uv_close((uv_handle_t *)&client->health_timer, on_timer_closed);
}

void driver_clients_close(struct driver_clients *clients, uint64_t instance)
{
    struct driver_client *client = find(clients, instance);

    if (client)
        client_close(client);
}

void driver_clients_stop(struct driver_clients *clients, void (*done)(void *user), void *user)
{
    struct driver_client *client, *next;

    clients->stopping.done = done;
    clients->stopping.user = user;
    HASH_ITER(hh, clients->clients, client, next) {
        client_close(client);
    }
    stopping_close(&clients->stopping, (uv_handle_t *)&clients->unavailable_timer);
    claim_calls_stop(&clients->calls, stopping_part, &clients->stopping);
}
