#include "shim/cluster/cluster.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/endings.h"
#include "shim/boot_clock.h"
#include "shim/cluster/cluster_inside.h"
#include "shim/cluster/limits.h"
#include "shim/cluster/pod_claims.h"
#include "shim/cluster/published.h"
#include "shim/log.h"
#include "shim/must.h"

#define SOCKET_DIRECTORY_MODE 0755
/* Among the listeners in the store. */
#define STORED_NAME "agent"

/* ---- whether it works ---- */

static void set_works(struct cluster *cluster, bool works)
{
    if (works == cluster->works)
        return;
    cluster->works = works;
    log_debug("cluster: the API server %s be told, through the agent", works ? "can" : "cannot");
    cluster->ops->changed(cluster->user);
}

static void on_impatient(uv_timer_t *timer)
{
    set_works(timer->data, false);
}

/* An agent that is started anew, or an answer that went wrong, is no reason to have drivers leave
 * the kubelet; rights that are wanting are one. */
void cluster_judge(struct cluster *cluster)
{
    bool refused = cluster_orders_refused(&cluster->orders, AGENT__V1__ORDER__WHAT_WIPE_SLICES);

    if (cluster->state.connected && cluster->state.reached) {
        uv_timer_stop(&cluster->patience);
        set_works(cluster, !refused);
    } else if (refused) {
        set_works(cluster, false);
    } else if (cluster->works && !uv_is_active((uv_handle_t *)&cluster->patience)) {
        uv_timer_start(&cluster->patience, on_impatient, CLUSTER_PATIENCE_MS, 0);
    }
}

/* ---- who asks ---- */

static size_t count(const struct facts *facts, int kind)
{
    const struct fact *fact = NULL;
    size_t n = 0;

    while ((fact = facts_next(facts, fact)))
        n += fact->kind == kind;
    return n;
}

void cluster_look(struct cluster *cluster)
{
    Agent__V1__WatchResponse response = AGENT__V1__WATCH_RESPONSE__INIT;
    Agent__V1__ShutdownWish wish;

    removed_look(&cluster->removed);
    wipes_look(&cluster->wipes);
    pools_look(&cluster->pools);
    if (!cluster->watch || !shutdown_feed_wish(&cluster->shutdown, &wish))
        return;
    response.daemon_version = (char *)SHIM_VERSION;
    response.shutdown = &wish;
    agent_calls_tell(cluster, &response);
}

const struct shutdown_said *cluster_shutdown(const struct cluster *cluster)
{
    return &cluster->shutdown.said;
}

void cluster_shutdown_now(const struct cluster *cluster,
                          void (*told)(void *to, const struct devicemgr_shutdown_said *said),
                          void *to)
{
    shutdown_feed_now(&cluster->shutdown, &cluster->facts, told, to);
}

void cluster_look_at(const struct cluster *cluster, struct cluster_state *out)
{
    *out = cluster->state;
    agent_calls_look_at_rivals(cluster, out);
    out->pods_known = facts_complete(&cluster->facts, AGENT__V1__KIND__POD);
    out->pods = count(&cluster->facts, AGENT__V1__KIND__POD);
    out->slices = count(&cluster->facts, AGENT__V1__KIND__SLICE);
}

const char *cluster_trouble(const struct cluster *cluster, uint64_t *since_ms)
{
    return keeper_trouble(cluster->keeper, since_ms);
}

void cluster_published(const struct cluster *cluster,
                       void (*each)(void *to, const struct published_pool *pool), void *to)
{
    published_each(&cluster->pools, &cluster->orders, each, to);
}

void cluster_slices(const struct cluster *cluster, const char *pool,
                    void (*each)(void *to, const struct published_slice *slice), void *to)
{
    published_slices(&cluster->facts, pool, each, to);
}

void cluster_claim_look(struct cluster *cluster, const struct devicemgr_claim *claim)
{
    core_news_look_up(&cluster->news, claim);
}

struct lift_driver *cluster_lift_driver(struct cluster *cluster)
{
    return &cluster->lift_driver;
}

void cluster_happened(struct cluster *cluster, const struct devicemgr_event *event)
{
    pod_events_happened(&cluster->pod_events, boot_now_ms(), event);
    eviction_events_happened(&cluster->eviction_events, event);
}

void cluster_evict(struct cluster *cluster, uint64_t number,
                   const struct devicemgr_eviction *eviction)
{
    evictions_ask(&cluster->evictions, number, eviction);
}

void cluster_evict_cancel(struct cluster *cluster, uint64_t number)
{
    evictions_cancel(&cluster->evictions, number);
}

void cluster_pod_claims(const struct cluster *cluster, const char *pod,
                        void (*each)(void *to, const char *pod_namespace, const char *claim),
                        void *to)
{
    pod_claims_each(&cluster->facts, pod, each, to);
}

bool cluster_works(const struct cluster *cluster)
{
    return cluster->works;
}

/* Nobody waits for it any more: the agent stops, if it can. */
static void cancel(void *user, uint64_t order)
{
    struct cluster *cluster = user;
    Agent__V1__WatchResponse response = AGENT__V1__WATCH_RESPONSE__INIT;

    bool sent = cluster_orders_cancel(&cluster->orders, order);

    cluster_judge(cluster);
    if (!sent || !cluster->watch)
        return;
    response.daemon_version = (char *)SHIM_VERSION;
    response.cancelled = &order;
    response.n_cancelled = 1;
    agent_calls_tell(cluster, &response);
}

/* ---- life ---- */

static const struct rpc_limits LIMITS = {.connections = CLUSTER_CONNECTIONS_MAX,
                                         .request_bytes = CLUSTER_REQUEST_BYTES_MAX,
                                         .queue_bytes = RPC_QUEUE_BYTES_MAX,
                                         .calls = RPC_CALLS_MAX,
                                         .private = true};

static int serve(void *user)
{
    struct cluster *cluster = user;

    return listener_look(&cluster->listener);
}

struct cluster *cluster_start(uv_loop_t *loop, const struct config *config, struct host *host,
                              struct fd_store *store, const struct cluster_ops *ops, void *user)
{
    const struct socket_place place = {.dir_mode = SOCKET_DIRECTORY_MODE,
                                       .name = config->cluster.socket};
    struct cluster *cluster = must(calloc(1, sizeof *cluster));
    char what[PATH_MAX + 64];

    cluster->state.since_ms = boot_now_ms();
    cluster_orders_init(&cluster->orders, loop, agent_calls_send_due, cluster);
    cluster->ops = ops;
    cluster->user = user;
    cluster->host = host;
    shutdown_feed_init(&cluster->shutdown, host);
    uv_timer_init(loop, &cluster->patience);
    cluster->patience.data = cluster;
    removed_init(&cluster->removed, loop,
                 &(struct removed_world){.host = host,
                                         .orders = &cluster->orders,
                                         .state_dir = config->state_dir,
                                         .published = ops->published,
                                         .user = user,
                                         .cancel = cancel,
                                         .cluster = cluster});
    pod_events_init(&cluster->pod_events, config, &cluster->orders, cancel, cluster);
    eviction_events_init(&cluster->eviction_events, &cluster->orders);
    core_news_init(&cluster->news, host, &cluster->orders);
    evictions_init(&cluster->evictions, host, &cluster->orders, cancel, cluster);
    wipes_init(&cluster->wipes, loop, config, host, &cluster->orders, cancel, cluster);
    pools_init(&cluster->pools, loop, host, &cluster->orders, cluster, &cluster->facts,
               cluster->state.node);
    lift_driver_init(&cluster->lift_driver, loop, host, &cluster->orders, cancel, cluster);
    if (rpc_server_new(loop, &place, AGENT_CALLS, AGENT_CALLS_LEN, cluster, &cluster->server) < 0)
        abort(); /* out of memory */
    rpc_server_set_limits(cluster->server, &LIMITS);
    rpc_server_set_pings(cluster->server, CLUSTER_PINGS_MS);
    listener_init(&cluster->listener, cluster->server, store, STORED_NAME);
    snprintf(what, sizeof what, "cluster.socket = \"%s\"", config->cluster.socket);
    cluster->keeper = keeper_start(loop, what, serve, cluster);
    devicemgr_cluster_reached(host_core(host), boot_now_ms(), false); /* no agent has come yet */
    return cluster;
}

static void on_orders_closed(uv_handle_t *handle)
{
    const struct cluster_orders *orders = handle->data;
    struct cluster *cluster = orders->user;

    stopping_part(&cluster->stopping);
}

static void on_wipes_closed(uv_handle_t *handle)
{
    const struct wipes *wipes = handle->data;
    struct cluster *cluster = wipes->cluster;

    stopping_part(&cluster->stopping);
}

static void on_pools_closed(uv_handle_t *handle)
{
    const struct pools *pools = handle->data;
    struct cluster *cluster = pools->cluster;

    stopping_part(&cluster->stopping);
}

static void on_lift_driver_closed(uv_handle_t *handle)
{
    const struct lift_driver *driver = handle->data;
    struct cluster *cluster = driver->cluster;

    stopping_part(&cluster->stopping);
}

void cluster_stop(struct cluster *cluster, void (*done)(void *user), void *user)
{
    /* what is removed, wipes, pools, the driver of lifted resources, orders, the timer */
    cluster->stopping = (struct stopping){6, free, cluster, done, user};
    keeper_stop(cluster->keeper);
    listener_fini(&cluster->listener);
    rpc_server_close(cluster->server);
    removed_fini(&cluster->removed, stopping_part, &cluster->stopping);
    wipes_fini(&cluster->wipes, on_wipes_closed);
    pools_fini(&cluster->pools, on_pools_closed);
    lift_driver_fini(&cluster->lift_driver, on_lift_driver_closed);
    pod_events_fini(&cluster->pod_events);
    core_news_fini(&cluster->news);
    evictions_fini(&cluster->evictions);
    cluster_orders_fini(&cluster->orders, on_orders_closed);
    stopping_close(&cluster->stopping, (uv_handle_t *)&cluster->patience);
    facts_fini(&cluster->facts);
}
