#include "shim/agent/agent.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/api_client.h"
#include "shim/agent/daemon_feed.h"
#include "shim/agent/limits.h"
#include "shim/agent/objects.h"
#include "shim/agent/orders.h"
#include "shim/agent/query.h"
#include "shim/agent/reflector.h"
#include "shim/agent/served.h"
#include "shim/agent/shutdown.h"
#include "shim/facts.h"
#include "shim/library.h"
#include "shim/log.h"
#include "shim/must.h"

#define KINDS (AGENT__V1__KIND__TAINT_RULE + 1)
_Static_assert(KINDS < CONNECTIONS_MAX, "orders would wait for a watch to end");
/* The credentials may come, or name another node, while nobody knows whose node this is. */
#define NODE_AGAIN_MS 5000

/* One kind of objects, watched. */
struct watched {
    struct agent *agent;
    Agent__V1__Kind kind;
    struct reflector *reflector; /* NULL: nobody wants it, or it is not served, or not yet */
    const char *version;         /* of resource.k8s.io, in which that asks */
    bool told_refused;
    char words[ERROR_WORDS_BYTES_MAX];
};

struct agent {
    uv_loop_t *loop;
    const struct config_cluster *config;
    struct api_client *client;
    struct daemon_feed *feed;
    struct shutdown *shutdown;
    struct served *served; /* NULL: the node's name is not known yet, */
    struct orders *orders; /* and likewise */
    struct facts facts;
    struct watched watched[KINDS];
    bool wanted[KINDS];
    char node[NODE_NAME_BYTES_MAX];
    bool reached;
    char words[ERROR_WORDS_BYTES_MAX]; /* why not */
    uv_timer_t node_timer, report_timer;
    bool whole;   /* the next report is to have all */
    bool changed; /* there is something to be told */
    bool reporting;
    bool told_full;
    unsigned handles;
};

/* ---- reports ---- */

static void report(uv_timer_t *timer);

static void report_within(struct agent *agent, uint64_t wait_ms)
{
    agent->changed = true;
    if (!agent->reporting && daemon_feed_alive(agent->feed) &&
        !uv_is_active((uv_handle_t *)&agent->report_timer))
        uv_timer_start(&agent->report_timer, report, wait_ms, 0);
}

static void report_soon(struct agent *agent)
{
    report_within(agent, 0);
}

struct told {
    Agent__V1__ReportRequest request;
    Agent__V1__Fact *facts;
};

static void tell_fact(void *user, const struct fact *fact)
{
    struct told *told = user;
    Agent__V1__Fact *out = &told->facts[told->request.n_facts];

    agent__v1__fact__init(out);
    out->kind = (Agent__V1__Kind)fact->kind;
    out->key = must(strdup(fact->key)); /* one that is no more goes */
    out->value = (ProtobufCBinaryData){fact->len, (uint8_t *)fact->value};
    told->request.facts[told->request.n_facts++] = out;
}

static void fill_state(struct agent *agent, Agent__V1__State *state,
                       Agent__V1__Kind complete[KINDS])
{
    agent__v1__state__init(state);
    state->node_name = agent->node;
    state->reached = agent->reached;
    state->trouble = agent->words;
    state->server_boot_ms = api_client_server_boot_ms(agent->client);
    state->complete = complete;
    for (Agent__V1__Kind kind = 0; kind < KINDS; kind++) {
        if (facts_complete(&agent->facts, kind))
            complete[state->n_complete++] = kind;
        if (agent->reached && agent->watched[kind].words[0])
            state->trouble = agent->watched[kind].words;
    }
}

static void report(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    struct told told = {.request = AGENT__V1__REPORT_REQUEST__INIT};
    Agent__V1__Kind complete[KINDS];
    Agent__V1__Shutdown shutdown;
    Agent__V1__State state;

    told.facts = must(calloc(facts_len(&agent->facts) + 1, sizeof *told.facts));
    told.request.facts = must(calloc(facts_len(&agent->facts) + 1, sizeof *told.request.facts));
    told.request.whole = agent->whole;
    told.request.state = &state;
    fill_state(agent, &state, complete);
    if (shutdown_tell(agent->shutdown, &shutdown))
        told.request.shutdown = &shutdown;
    facts_tell(&agent->facts, agent->whole, tell_fact, &told);
    agent->reporting = daemon_feed_report(agent->feed, &told.request);
    agent->whole = !agent->reporting;
    agent->changed = false;
    if (!agent->reporting)
        report_within(agent, REPORT_AGAIN_MS);
    for (size_t i = 0; i < told.request.n_facts; i++)
        free(told.facts[i].key);
    free(told.request.facts);
    free(told.facts);
}

static void on_reported(void *user, bool taken)
{
    struct agent *agent = user;

    agent->reporting = false;
    agent->whole |= !taken;
    if (agent->whole)
        report_within(agent, REPORT_AGAIN_MS);
    else if (agent->changed)
        report_soon(agent);
}

/* ---- objects ---- */

static void on_list_began(void *user)
{
    struct watched *watched = user;

    facts_list_begin(&watched->agent->facts, watched->kind);
}

static void forget(void *user, const struct fact *fact)
{
    (void)user;
    (void)fact;
}

/* Without a daemon what has gone is not kept to be told, and takes no room of what comes: the first
 * report is of all that is there. */
static void report_gone(struct agent *agent)
{
    if (!daemon_feed_alive(agent->feed))
        facts_tell(&agent->facts, false, forget, NULL);
    report_soon(agent);
}

static void put(struct watched *watched, const json_t *object)
{
    struct agent *agent = watched->agent;
    int result = object_put(&agent->facts, watched->kind, object);

    if (result == -ENOSPC && !agent->told_full) {
        agent->told_full = true;
        log_warning("there is more in the cluster of this node than can be kept");
    }
    if (result == 1)
        report_soon(agent);
    else if (result == -ENOSPC)
        report_gone(agent); /* what was known of it */
}

static void on_deleted(void *user, const json_t *object)
{
    struct watched *watched = user;
    const char *uid = object_uid(object);

    if (uid && facts_remove(&watched->agent->facts, watched->kind, uid))
        report_gone(watched->agent);
}

static void on_object(void *user, const json_t *object)
{
    struct watched *watched = user;

    if (object_is_over(watched->kind, object))
        on_deleted(watched, object);
    else
        put(watched, object);
}

/* A list is large, and what is left of it small; and of the libraries' pages most are wanted for
 * the start and for lists alone. */
static void on_list_ended(void *user)
{
    struct watched *watched = user;

    if (facts_list_end(&watched->agent->facts, watched->kind))
        report_gone(watched->agent);
    malloc_trim(0);
    library_let_go();
}

static void on_trouble(void *user, const char *words)
{
    struct watched *watched = user;

    snprintf(watched->words, sizeof watched->words, "%s", words);
    report_soon(watched->agent);
}

static const struct of_kind {
    const char *collection; /* of resource.k8s.io behind its version */
    bool grouped;
    enum served_kind served;
    const char *field; /* that is to be the node's name; NULL: they are of no node */
} OF[KINDS] = {
    [AGENT__V1__KIND__NODE] = {.collection = "/api/v1/nodes", .field = "metadata.name"},
    [AGENT__V1__KIND__POD] = {.collection = "/api/v1/pods", .field = "spec.nodeName"},
    [AGENT__V1__KIND__SLICE] = {.collection = "resourceslices",
                                .grouped = true,
                                .served = SERVED_SLICES,
                                .field = "spec.nodeName"},
    [AGENT__V1__KIND__TAINT_RULE] = {.collection = "devicetaintrules",
                                     .grouped = true,
                                     .served = SERVED_TAINT_RULES},
};

/* What cannot be had is not waited for. */
static void note_no_rules(struct watched *watched)
{
    struct agent *agent = watched->agent;

    if (watched->kind != AGENT__V1__KIND__TAINT_RULE ||
        facts_complete(&agent->facts, watched->kind))
        return;
    facts_set_complete(&agent->facts, watched->kind, true);
    report_soon(agent);
}

/* What is in one version only may be in another. Rules are nothing that a node's own credentials
 * may see (plugin/pkg/auth/authorizer/node/node_authorizer.go), and few clusters have them. */
static bool on_excused(void *user, enum api_outcome why)
{
    struct watched *watched = user;

    if (why == API_NOT_FOUND && OF[watched->kind].grouped) {
        served_missing(watched->agent->served, OF[watched->kind].served, watched->version);
        return true;
    }
    if (why != API_REFUSED || watched->kind != AGENT__V1__KIND__TAINT_RULE)
        return false;
    if (!watched->told_refused)
        log_info(
            "DeviceTaintRules may not be seen by these credentials: their taints are not known");
    watched->told_refused = true;
    note_no_rules(watched);
    return true;
}

static const struct reflector_ops REFLECTOR_OPS = {.list_began = on_list_began,
                                                   .object = on_object,
                                                   .deleted = on_deleted,
                                                   .list_ended = on_list_ended,
                                                   .trouble = on_trouble,
                                                   .excused = on_excused};

/* Only what is of this node, where that can be said: nothing else is asked for, nor would the node
 * authorizer allow it. */
static void watch_kind(struct watched *watched)
{
    const struct of_kind *of = &OF[watched->kind];
    struct agent *agent = watched->agent;
    char selector[NODE_NAME_BYTES_MAX + 32];
    struct query query;

    query_begin(&query, of->grouped ? SERVED_GROUP_PATH : of->collection);
    if (of->grouped) {
        query_segment(&query, watched->version);
        query_segment(&query, of->collection);
    }
    if (of->field) {
        snprintf(selector, sizeof selector, "%s=%s", of->field, agent->node);
        query_add(&query, "fieldSelector", selector);
    }
    watched->reflector =
        reflector_start(agent->loop, agent->client, query.text, &REFLECTOR_OPS, watched);
}

/* What is not served any more is known on as it was. */
static void look_at_version(struct watched *watched)
{
    const char *version = served_version(watched->agent->served, OF[watched->kind].served);

    if (!version && served_known(watched->agent->served))
        note_no_rules(watched);
    if (version == watched->version)
        return;
    reflector_stop(watched->reflector);
    watched->reflector = NULL;
    watched->version = version;
    watched->words[0] = '\0';
    if (version)
        log_debug("%s: asked for in resource.k8s.io/%s", OF[watched->kind].collection, version);
    report_soon(watched->agent);
}

static void watch_wanted(struct agent *agent)
{
    for (Agent__V1__Kind kind = 0; agent->orders && kind < KINDS; kind++) {
        struct watched *watched = &agent->watched[kind];

        if (!agent->wanted[kind])
            continue;
        if (OF[kind].grouped)
            look_at_version(watched);
        if (!watched->reflector && (!OF[kind].grouped || watched->version))
            watch_kind(watched);
    }
}

static void on_served(void *user)
{
    watch_wanted(user);
}

/* ---- the node's name ---- */

static void on_answer(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct agent *agent = user;

    daemon_feed_answer(agent->feed, answer);
}

static void tell_no_node(struct agent *agent, const char *why)
{
    char words[sizeof agent->words];

    snprintf(words, sizeof words, "%s", why);
    if (*words && strcmp(words, agent->words) != 0)
        log_warning("%s", words);
    memcpy(agent->words, words, sizeof words);
    report_soon(agent);
}

static void look_for_node(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    const char *words;

    if (*agent->config->node_name)
        snprintf(agent->node, sizeof agent->node, "%s", agent->config->node_name);
    else if (!api_client_node(agent->client, agent->node, &words)) {
        tell_no_node(agent, words);
        uv_timer_start(timer, look_for_node, NODE_AGAIN_MS, 0);
        return;
    }
    agent->words[0] = '\0';
    log_info("node %s, by %s", agent->node, agent->config->kubeconfig);
    agent->served = served_start(agent->loop, agent->client, on_served, agent);
    agent->orders =
        orders_new(agent->loop, agent->client, agent->served, agent->node, on_answer, agent);
    watch_wanted(agent);
    report_soon(agent);
}

/* ---- the feed ---- */

/* Without the node's name there is nothing that can be done. */
static void take_order(struct agent *agent, const Agent__V1__Order *order)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;

    if (agent->orders) {
        orders_take(agent->orders, order);
        return;
    }
    answer.id = order->id;
    answer.outcome = AGENT__V1__OUTCOME__AGAIN;
    answer.message = agent->words;
    daemon_feed_answer(agent->feed, &answer);
}

static void on_watched(void *user, const Agent__V1__WatchResponse *message, bool first)
{
    struct agent *agent = user;

    shutdown_wish(agent->shutdown, message->shutdown, first);
    if (first) {
        for (size_t i = 0; i < message->n_kinds; i++) {
            if ((unsigned)message->kinds[i] < KINDS)
                agent->wanted[message->kinds[i]] = true;
        }
        agent->whole = true;
        report_soon(agent);
        watch_wanted(agent);
    }
    for (size_t i = 0; agent->orders && i < message->n_cancelled; i++)
        orders_cancel(agent->orders, message->cancelled[i]);
    for (size_t i = 0; i < message->n_orders; i++)
        take_order(agent, message->orders[i]);
}

static void on_feed_lost(void *user)
{
    struct agent *agent = user;

    agent->reporting = false;
    uv_timer_stop(&agent->report_timer);
    if (agent->orders)
        orders_daemon_lost(agent->orders);
    shutdown_daemon_lost(agent->shutdown);
}

static const struct daemon_feed_ops FEED_OPS = {
    .watched = on_watched, .reported = on_reported, .lost = on_feed_lost};

static void on_shutdown(void *user)
{
    report_soon(user);
}

static void on_reached(void *user, bool reached, const char *words)
{
    struct agent *agent = user;

    if (reached)
        log_info("the API server answers");
    else
        log_warning("the API server: %s", words);
    agent->reached = reached;
    snprintf(agent->words, sizeof agent->words, "%s", words);
    report_soon(agent);
}

/* ---- life ---- */

struct agent *agent_start(uv_loop_t *loop, const struct config_cluster *config,
                          struct fd_store *store)
{
    static const struct api_client_ops client_ops = {.reached = on_reached};
    struct agent *agent = must(calloc(1, sizeof *agent));

    agent->loop = loop;
    agent->config = config;
    agent->client = api_client_new(loop, config->kubeconfig, config->insecure_skip_tls_verify,
                                   &client_ops, agent);
    if (!agent->client) {
        free(agent);
        return NULL;
    }
    for (Agent__V1__Kind kind = 0; kind < KINDS; kind++)
        agent->watched[kind] = (struct watched){.agent = agent, .kind = kind};
    agent->wanted[AGENT__V1__KIND__NODE] = true;
    agent->whole = true;
    uv_timer_init(loop, &agent->node_timer);
    uv_timer_init(loop, &agent->report_timer);
    agent->node_timer.data = agent->report_timer.data = agent;
    agent->handles = 2;
    agent->shutdown = shutdown_new(loop, store, on_shutdown, agent);
    agent->feed = daemon_feed_start(loop, config->socket, &FEED_OPS, agent);
    look_for_node(&agent->node_timer);
    return agent;
}

static void on_closed(uv_handle_t *handle)
{
    struct agent *agent = handle->data;

    if (--agent->handles == 0)
        free(agent);
}

void agent_stop(struct agent *agent)
{
    if (!agent)
        return;
    for (Agent__V1__Kind kind = 0; kind < KINDS; kind++)
        reflector_stop(agent->watched[kind].reflector);
    orders_free(agent->orders);
    served_stop(agent->served);
    daemon_feed_stop(agent->feed);
    shutdown_free(agent->shutdown);
    api_client_free(agent->client);
    facts_fini(&agent->facts);
    uv_close((uv_handle_t *)&agent->node_timer, on_closed);
    uv_close((uv_handle_t *)&agent->report_timer, on_closed);
}
