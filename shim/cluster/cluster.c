#include "shim/cluster/cluster.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "cri-proto/utf8.h"
#include "shim/boot_clock.h"
#include "shim/cluster/core_news.h"
#include "shim/cluster/eviction_events.h"
#include "shim/cluster/evictions.h"
#include "shim/cluster/lift_driver.h"
#include "shim/cluster/limits.h"
#include "shim/cluster/pod_claims.h"
#include "shim/cluster/pod_events.h"
#include "shim/cluster/pools.h"
#include "shim/cluster/published.h"
#include "shim/cluster/removed.h"
#include "shim/cluster/rivals.h"
#include "shim/cluster/shutdown_feed.h"
#include "shim/cluster/wipes.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/listener.h"
#include "shim/rpc/rpc.h"

#define SOCKET_DIRECTORY_MODE 0755
/* Among the listeners in the store. */
#define STORED_NAME "agent"

struct cluster {
    struct host *host;
    struct rpc_server *server;
    struct listener listener;
    struct keeper *keeper;
    struct cluster_orders orders;
    struct removed removed;
    struct pod_events pod_events;
    struct eviction_events eviction_events;
    struct core_news news;
    struct evictions evictions;
    struct wipes wipes;
    struct pools pools;
    struct lift_driver lift_driver;
    struct shutdown_feed shutdown;
    struct facts facts;
    bool listing[FACT_KINDS_MAX]; /* all of it is being told anew, and was not yet */
    const struct cluster_ops *ops;
    void *user;                 /* its */
    bool works;                 /* cluster_works() */
    uv_timer_t patience;        /* until it does not any more */
    struct rpc_incoming *watch; /* the agent's; NULL: there is none */
    struct rivals rivals;
    struct cluster_state state;
    unsigned parts; /* still to be stopped */
    void (*done)(void *user);
    void *done_user;
};

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
static void judge(struct cluster *cluster)
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

/* ---- the agent ---- */

static void agent_gone(struct cluster *cluster)
{
    cluster->watch = NULL;
    cluster->state.connected = cluster->state.reported = false;
    cluster->state.since_ms = boot_now_ms();
    shutdown_feed_lost(&cluster->shutdown);
    cluster_orders_lost(&cluster->orders);
    judge(cluster);
}

static void on_cancelled(void *user)
{
    struct cluster *cluster = user;

    log_warning("cluster: the agent is gone");
    agent_gone(cluster);
}

/* False: it does not take it, and is served no more. */
static bool tell_agent(struct cluster *cluster, Agent__V1__WatchResponse *response)
{
    int err = rpc_incoming_send(cluster->watch, &response->base);
    struct rpc_incoming *watch = cluster->watch;

    if (!err)
        return true;
    agent_gone(cluster);
    rpc_incoming_finish(watch, RPC_RESOURCE_EXHAUSTED, strerror(-err));
    return false;
}

static void send_due(void *user)
{
    struct cluster *cluster = user;
    Agent__V1__Order *orders[CLUSTER_BATCH_MAX];
    Agent__V1__WatchResponse response = AGENT__V1__WATCH_RESPONSE__INIT;

    response.daemon_version = (char *)SHIM_VERSION;
    response.orders = orders;
    while (cluster->watch && (response.n_orders = cluster_orders_fill(&cluster->orders, orders,
                                                                      CLUSTER_BATCH_MAX)) > 0) {
        if (!tell_agent(cluster, &response))
            return;
    }
}

#define TWO_AGENTS "two agents take over from each other, processes %d and %d: one of them is to go"

/* Who was served before is in the state still. */
static void take_place(struct cluster *cluster, pid_t pid)
{
    if (rivals_came(&cluster->rivals, pid, cluster->state.pid, boot_now_ms()))
        log_warning("cluster: " TWO_AGENTS, (int)cluster->state.pid, (int)pid);
}

/* Whatever each of them has to say of the API server. */
static void look_at_rivals(const struct rivals *rivals, struct cluster_state *out)
{
    if (!rivals_there(rivals, boot_now_ms()))
        return;
    snprintf(out->trouble, sizeof out->trouble, TWO_AGENTS, (int)rivals->other, (int)rivals->one);
    out->since_ms = rivals->since_ms;
}

static void on_watch(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    static Agent__V1__Kind KINDS[] = {AGENT__V1__KIND__NODE, AGENT__V1__KIND__POD,
                                      AGENT__V1__KIND__SLICE, AGENT__V1__KIND__TAINT_RULE};
    const Agent__V1__WatchRequest *request = (const Agent__V1__WatchRequest *)message;
    Agent__V1__WatchResponse response = AGENT__V1__WATCH_RESPONSE__INIT;
    Agent__V1__ShutdownWish wish;
    struct cluster *cluster = user;
    struct rpc_incoming *before = cluster->watch;
    struct ucred peer;

    rpc_incoming_peer(call, &peer);
    if (before) {
        agent_gone(cluster);
        rpc_incoming_finish(before, RPC_ABORTED, "another agent has come");
        take_place(cluster, peer.pid);
    }
    rpc_incoming_on_cancel(call, on_cancelled, cluster);
    cluster->watch = call;
    cluster->state.connected = true;
    cluster->state.since_ms = boot_now_ms();
    cluster->state.pid = peer.pid;
    utf8_copy(cluster->state.version, sizeof cluster->state.version, request->agent_version);
    log_info("cluster: agent %s (process %d)", cluster->state.version, peer.pid);
    response.daemon_version = (char *)SHIM_VERSION;
    response.kinds = KINDS;
    response.n_kinds = sizeof KINDS / sizeof *KINDS;
    response.shutdown = shutdown_feed_wish(&cluster->shutdown, &wish) ? &wish : NULL;
    if (tell_agent(cluster, &response))
        send_due(cluster);
}

/* ---- what it tells ---- */

static size_t count(const struct facts *facts, int kind)
{
    const struct fact *fact = NULL;
    size_t n = 0;

    while ((fact = facts_next(facts, fact)))
        n += fact->kind == kind;
    return n;
}

/* What was known before, of an agent that has not listed it yet, say, counts until all of its kind is
 * told. */
static void end_lists(struct cluster *cluster, const Agent__V1__ReportRequest *report)
{
    for (size_t i = 0; report->state && i < report->state->n_complete; i++) {
        unsigned kind = report->state->complete[i];

        if (kind >= FACT_KINDS_MAX || !cluster->listing[kind])
            continue;
        facts_list_end(&cluster->facts, (int)kind);
        cluster->listing[kind] = false;
    }
}

static void take_facts(struct cluster *cluster, const Agent__V1__ReportRequest *report)
{
    struct facts *facts = &cluster->facts;

    for (int kind = 0; report->whole && kind < FACT_KINDS_MAX; kind++) {
        facts_list_begin(facts, kind);
        cluster->listing[kind] = true;
    }
    for (size_t i = 0; i < report->n_facts; i++) {
        const Agent__V1__Fact *fact = report->facts[i];

        if ((unsigned)fact->kind >= FACT_KINDS_MAX)
            continue;
        if (fact->value.len == 0)
            facts_remove(facts, fact->kind, fact->key);
        else if (facts_put(facts, fact->kind, fact->key, fact->value.data, fact->value.len) < 0)
            log_warning("cluster: the agent tells more than can be kept");
    }
    end_lists(cluster, report);
    core_news_facts(&cluster->news, facts);
    pools_reported(&cluster->pools, report);
}

static void take_state(struct cluster *cluster, const Agent__V1__State *state)
{
    bool complete[FACT_KINDS_MAX] = {false};

    for (size_t i = 0; i < state->n_complete; i++) {
        if ((unsigned)state->complete[i] < FACT_KINDS_MAX)
            complete[state->complete[i]] = true;
    }
    for (int kind = 0; kind < FACT_KINDS_MAX; kind++)
        facts_set_complete(&cluster->facts, kind, complete[kind]);
    if (complete[AGENT__V1__KIND__SLICE] && complete[AGENT__V1__KIND__TAINT_RULE])
        core_news_taints_told(&cluster->news);
    pools_complete(&cluster->pools, complete[AGENT__V1__KIND__SLICE]);
    if (state->reached && !cluster->state.reached)
        cluster_orders_reached(&cluster->orders);
    cluster->state.reached = state->reached;
    utf8_copy(cluster->state.node, sizeof cluster->state.node, state->node_name);
    utf8_copy(cluster->state.trouble, sizeof cluster->state.trouble, state->trouble);
}

/* Whether it is of the agent that is served. */
static bool is_served(struct cluster *cluster, struct rpc_incoming *call)
{
    struct ucred peer;

    rpc_incoming_peer(call, &peer);
    if (cluster->watch && peer.pid == cluster->state.pid)
        return true;
    rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, "Watch first; another agent is served");
    return false;
}

static void on_report(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    static const Agent__V1__ReportResponse response = AGENT__V1__REPORT_RESPONSE__INIT;
    const Agent__V1__ReportRequest *report = (const Agent__V1__ReportRequest *)message;
    struct cluster *cluster = user;

    if (!is_served(cluster, call))
        return;
    if (!report->whole && !cluster->state.reported) {
        rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, "all of it first");
        return;
    }
    if (report->state)
        core_news_clock(&cluster->news, report->state->server_boot_ms);
    take_facts(cluster, report);
    if (report->state)
        take_state(cluster, report->state);
    cluster->state.reported = true;
    shutdown_feed_reported(&cluster->shutdown, report->shutdown, &cluster->facts);
    rpc_incoming_answer(call, &response.base);
    judge(cluster);
    host_kick(cluster->host);
}

static void on_answer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    static const Agent__V1__AnswerResponse response = AGENT__V1__ANSWER_RESPONSE__INIT;
    struct cluster *cluster = user;

    if (!is_served(cluster, call))
        return;
    cluster_orders_answered(&cluster->orders, (const Agent__V1__AnswerRequest *)message);
    pools_answered(&cluster->pools);
    judge(cluster);
    rpc_incoming_answer(call, &response.base);
}

static const struct rpc_method METHODS[] = {
    {AGENT_WATCH, &agent__v1__watch_request__descriptor, on_watch},
    {AGENT_REPORT, &agent__v1__report_request__descriptor, on_report},
    {AGENT_ANSWER, &agent__v1__answer_request__descriptor, on_answer},
};

/* ---- who asks ---- */

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
    tell_agent(cluster, &response);
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
    look_at_rivals(&cluster->rivals, out);
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

    judge(cluster);
    if (!sent || !cluster->watch)
        return;
    response.daemon_version = (char *)SHIM_VERSION;
    response.cancelled = &order;
    response.n_cancelled = 1;
    tell_agent(cluster, &response);
}

/* ---- life ---- */

static const struct rpc_limits LIMITS = {.connections = CLUSTER_CONNECTIONS_MAX,
                                         .request_bytes = CLUSTER_REQUEST_BYTES_MAX,
                                         .queue_bytes = RPC_QUEUE_BYTES_MAX,
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
    cluster_orders_init(&cluster->orders, loop, send_due, cluster);
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
    if (rpc_server_new(loop, &place, METHODS, sizeof METHODS / sizeof *METHODS, cluster,
                       &cluster->server) < 0)
        abort(); /* out of memory */
    rpc_server_set_limits(cluster->server, &LIMITS);
    rpc_server_set_pings(cluster->server, CLUSTER_PINGS_MS);
    listener_init(&cluster->listener, cluster->server, store, STORED_NAME);
    snprintf(what, sizeof what, "cluster.socket = \"%s\"", config->cluster.socket);
    cluster->keeper = keeper_start(loop, what, serve, cluster);
    return cluster;
}

static void part_stopped(struct cluster *cluster)
{
    void (*done)(void *user) = cluster->done;
    void *done_user = cluster->done_user;

    if (--cluster->parts > 0)
        return;
    free(cluster);
    done(done_user);
}

static void on_patience_closed(uv_handle_t *handle)
{
    part_stopped(handle->data);
}

static void on_orders_closed(uv_handle_t *handle)
{
    const struct cluster_orders *orders = handle->data;

    part_stopped(orders->user);
}

static void on_removed_closed(uv_handle_t *handle)
{
    const struct removed *removed = handle->data;

    part_stopped(removed->cluster);
}

static void on_wipes_closed(uv_handle_t *handle)
{
    const struct wipes *wipes = handle->data;

    part_stopped(wipes->cluster);
}

static void on_pools_closed(uv_handle_t *handle)
{
    const struct pools *pools = handle->data;

    part_stopped(pools->cluster);
}

static void on_lift_driver_closed(uv_handle_t *handle)
{
    const struct lift_driver *driver = handle->data;

    part_stopped(driver->cluster);
}

void cluster_stop(struct cluster *cluster, void (*done)(void *user), void *user)
{
    cluster->done = done;
    cluster->done_user = user;
    cluster->parts = 6;
    keeper_stop(cluster->keeper);
    listener_fini(&cluster->listener);
    rpc_server_close(cluster->server);
    removed_fini(&cluster->removed, on_removed_closed);
    wipes_fini(&cluster->wipes, on_wipes_closed);
    pools_fini(&cluster->pools, on_pools_closed);
    lift_driver_fini(&cluster->lift_driver, on_lift_driver_closed);
    pod_events_fini(&cluster->pod_events);
    core_news_fini(&cluster->news);
    evictions_fini(&cluster->evictions);
    cluster_orders_fini(&cluster->orders, on_orders_closed);
    uv_close((uv_handle_t *)&cluster->patience, on_patience_closed);
    facts_fini(&cluster->facts);
}
