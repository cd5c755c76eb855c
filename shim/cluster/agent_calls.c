#include <stdio.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "cri-proto/utf8.h"
#include "shim/boot_clock.h"
#include "shim/cluster/cluster_inside.h"
#include "shim/cluster/limits.h"
#include "shim/log.h"

/* ---- the agent ---- */

static void agent_gone(struct cluster *cluster)
{
    cluster->watch = NULL;
    cluster->lost = true;
    cluster->state.connected = cluster->state.reported = false;
    cluster->state.since_ms = boot_now_ms();
    shutdown_feed_lost(&cluster->shutdown);
    cluster_orders_lost(&cluster->orders);
    cluster_judge(cluster);
}

/* What may have come to pass inside one of the core's ports is told from the loop. */
static void tell_core(struct cluster *cluster)
{
    const struct cluster_state *state = &cluster->state;
    bool reached = state->connected && state->reported && state->reached;

    if (cluster->lost)
        core_news_taints_doubted(&cluster->news);
    cluster->lost = false;
    if (reached != cluster->told_reached)
        core_news_reached(&cluster->news, reached);
    cluster->told_reached = reached;
}

static void on_cancelled(void *user)
{
    struct cluster *cluster = user;

    log_warning("cluster: the agent is gone");
    agent_gone(cluster);
}

bool agent_calls_tell(struct cluster *cluster, Agent__V1__WatchResponse *response)
{
    int err = rpc_incoming_send(cluster->watch, &response->base);
    struct rpc_incoming *watch = cluster->watch;

    if (!err)
        return true;
    agent_gone(cluster);
    rpc_incoming_finish(watch, RPC_RESOURCE_EXHAUSTED, strerror(-err));
    return false;
}

void agent_calls_send_due(void *user)
{
    struct cluster *cluster = user;
    Agent__V1__Order *orders[CLUSTER_BATCH_MAX];
    Agent__V1__WatchResponse response = AGENT__V1__WATCH_RESPONSE__INIT;

    tell_core(cluster); /* before the next agent has what may not be wanted any more */
    response.daemon_version = (char *)SHIM_VERSION;
    response.orders = orders;
    while (cluster->watch && (response.n_orders = cluster_orders_fill(&cluster->orders, orders,
                                                                      CLUSTER_BATCH_MAX)) > 0) {
        if (!agent_calls_tell(cluster, &response))
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

void agent_calls_look_at_rivals(const struct cluster *cluster, struct cluster_state *out)
{
    const struct rivals *rivals = &cluster->rivals;

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
    if (agent_calls_tell(cluster, &response))
        agent_calls_send_due(cluster);
}

/* ---- what it tells ---- */

/* What was known before, of an agent that has not listed it yet, say, counts until all of its kind
 * is told. */
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
    tell_core(cluster);
    shutdown_feed_reported(&cluster->shutdown, report->shutdown, &cluster->facts);
    rpc_incoming_answer(call, &response.base);
    cluster_judge(cluster);
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
    cluster_judge(cluster);
    rpc_incoming_answer(call, &response.base);
}

const struct rpc_method AGENT_CALLS[AGENT_CALLS_LEN] = {
    {AGENT_WATCH, &agent__v1__watch_request__descriptor, on_watch},
    {AGENT_REPORT, &agent__v1__report_request__descriptor, on_report},
    {AGENT_ANSWER, &agent__v1__answer_request__descriptor, on_answer},
};
