#include "devicemgr/words/reason.h"

#include <string.h>

#include "devicemgr/books/ordered.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"
#include "devicemgr/words/cdi.h"
#include "devicemgr/words/claim.h"
#include "devicemgr/words/ending.h"
#include "devicemgr/words/shutdown.h"

struct kind {
    const char *word;
    int code;
    void (*explain)(const struct state *state, const struct demand *demand,
                    const struct reason *reason, struct text *text);
    const char *sentence; /* or the part of it that differs from its neighbours' */
};

static const struct kind *kind_of(const struct reason *reason);

static void add_ids(const struct ids *ids, struct text *text)
{
    if (ids->len == 0)
        return;
    text_add(text, "; device ids ");
    text_add_ids(text, ids);
}

/* ---- what was asked for ---- */

static void explain_words(const struct state *state, const struct demand *demand,
                          const struct reason *reason, struct text *text)
{
    (void)state, (void)demand;
    text_add(text, "%s%s", kind_of(reason)->sentence, reason->words ? reason->words : "");
}

static void explain_namespace(const struct state *state, const struct demand *demand,
                              const struct reason *reason, struct text *text)
{
    (void)state;
    (void)reason;
    text_add(text,
             "its pod asks for devices by annotation, and namespace %s is not in the setting "
             "annotations.namespaces",
             demand->pod_namespace);
}

static void explain_names(const struct state *state, const struct demand *demand,
                          const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    (void)reason;
    text_add(text,
             "its ids and names and those of its pod and sandbox have more than %d bytes together, "
             "and devices are held by them",
             DEMAND_NAMES_BYTES_MAX);
}

static void explain_changed(const struct state *state, const struct demand *demand,
                            const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    text_add(text, "changed request for resource %s from %zu to %zu", reason->resource,
             reason->held, reason->asked);
}

static void explain_creates(const struct state *state, const struct demand *demand,
                            const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    (void)reason;
    text_add(text, "%d creates wait or are under way already", CREATES_MAX);
}

/* ---- its sandbox ---- */

static void explain_sandbox(const struct state *state, const struct demand *demand,
                            const struct reason *reason, struct text *text)
{
    (void)state;
    if (reason->kind == REASON_SANDBOX_NOT_READY)
        text_add(text, "the runtime lists its sandbox %.12s as not ready", demand->sandbox_id);
    else
        text_add(text, "the pod is terminating: its sandbox %.12s %s", demand->sandbox_id,
                 kind_of(reason)->sentence);
}

static void explain_ended(const struct state *state, const struct demand *demand,
                          const struct reason *reason, struct text *text)
{
    const struct ending *ending = endings_find(&state->endings, demand->pod_uid);

    (void)reason;
    if (ending)
        ending_explain(ending, text);
}

static void explain_shutdown(const struct state *state, const struct demand *demand,
                             const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    (void)reason;
    shutdown_explain(text);
}

static void explain_other_pods(const struct state *state, const struct demand *demand,
                               const struct reason *reason, struct text *text)
{
    (void)state;
    text_add(text, "the pod uid \"");
    text_add_words(text, demand->pod_uid, TEXT_IDS_BYTES_MAX);
    text_add(text, "\" of its sandbox_config is not that of sandbox %.12s, \"", demand->sandbox_id);
    text_add_words(text, reason->words, TEXT_IDS_BYTES_MAX);
    text_add(text, "\"");
}

/* ---- the resource ---- */

static void explain_unknown(const struct state *state, const struct demand *demand,
                            const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    text_add(text, "not registered on this node, or removed; known resources: ");
    if (reason->ids.len == 0)
        text_add(text, "none");
    text_add_ids(text, &reason->ids);
    if (reason->by_token) /* the kubelet has nothing else for this container */
        text_add(text, "; if its plugin registers with the kubelet itself now, make the pod anew");
}

static void explain_grace(const struct endpoint *endpoint, uint64_t now_ms, uint64_t grace_ms,
                          struct text *text)
{
    text_add(text, ", stop grace period ends in ");
    text_add_duration(text, time_left(now_ms, later_by(endpoint->stopped_ms, grace_ms)));
    text_add(text, ", then the resource is removed");
}

void reason_explain_endpoint(const struct endpoint *endpoint, uint64_t now_ms, uint64_t grace_ms,
                             struct text *text)
{
    if (endpoint->socket_name[0] != '\0') {
        text_add(text, "plugin endpoint \"");
        text_add_words(text, endpoint->socket_name, TEXT_WORDS_BYTES_MAX);
        text_add(text, "\"");
    } else {
        text_add(text, "plugin endpoint (imported, has not registered here)");
    }
    if (endpoint->state == ENDPOINT_GRACE) {
        text_add(text, " stopped ");
        text_add_duration(text, now_ms - endpoint->stopped_ms);
        text_add(text, " ago (");
        text_add_words(text, endpoint->stop_reason, TEXT_WORDS_BYTES_MAX / 2);
        text_add(text, ")");
        explain_grace(endpoint, now_ms, grace_ms, text);
        return;
    }
    text_add(text, endpoint->have_options ? " has sent no device list for "
                                          : " has been connecting for ");
    text_add_duration(text, now_ms - endpoint->since_ms);
    if (endpoint->stopped)
        explain_grace(endpoint, now_ms, grace_ms, text);
}

static void explain_away(const struct state *state, const struct demand *demand,
                         const struct reason *reason, struct text *text)
{
    const struct resource *resource = resources_find(state->resources, reason->resource);

    (void)demand;
    reason_explain_endpoint(&resource->endpoint, state->now_ms, ordered_grace_ms(state, resource),
                            text);
    add_ids(&reason->ids, text);
}

static void explain_unhealthy(const struct state *state, const struct demand *demand,
                              const struct reason *reason, struct text *text)
{
    const struct resource *resource = resources_find(state->resources, reason->resource);

    (void)demand;
    if (reason->ids.len > 0) {
        text_add(text, "unhealthy for ");
        text_add_duration(text, state->now_ms - reason->since_ms);
        text_add(text, ": device ids ");
        text_add_ids(text, &reason->ids);
    }
    if (reason->missing.len > 0) {
        text_add(text, "%s%s: device ids ", reason->ids.len > 0 ? "; " : "",
                 resource->builtin ? "no such device node on the host"
                                   : "not listed by the plugin");
        text_add_ids(text, &reason->missing);
    }
    if (reason->kind == REASON_TOO_FEW_ARE_HEALTHY)
        text_add(text, "; asked %zu, free and healthy %zu", reason->asked, reason->free);
    else if (reason->kind == REASON_NO_OTHER_DEVICE)
        text_add(text, "; no other is free to be in their place");
}

static void explain_too_few(const struct state *state, const struct demand *demand,
                            const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    text_add(text, "too few devices: asked %zu, free %zu, healthy %zu of %zu", reason->asked,
             reason->free, reason->healthy, reason->all);
}

static void explain_withdrawn(const struct state *state, const struct demand *demand,
                              const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    text_add(text, "the operator of this node has withdrawn it");
    if (reason->words[0] != '\0')
        text_add(text, ": ");
    text_add_words(text, reason->words, TEXT_WORDS_BYTES_MAX);
}

static void explain_cordoned(const struct state *state, const struct demand *demand,
                             const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    if (reason->kind == REASON_TOO_FEW_ARE_UNCORDONED)
        text_add(text, "too few devices can be used: asked %zu, free and healthy %zu; ",
                 reason->asked, reason->free);
    text_add(text, reason->ids.len > 1 ? "devices " : "device ");
    text_add_ids(text, &reason->ids);
    text_add(text, reason->ids.len > 1 ? " are cordoned" : " is cordoned");
    if (reason->words[0] != '\0')
        text_add(text, ": ");
    text_add_words(text, reason->words, TEXT_WORDS_BYTES_MAX);
}

/* "example.com/broken=x:NoExecute"; key and value are what labels may have. */
static void add_taint(const struct taint *taint, struct text *text)
{
    text_add(text, "%s%s%s:%s", taint->key, taint->value[0] != '\0' ? "=" : "", taint->value,
             taint_effect_name(taint->effect));
}

static void explain_tainted(const struct state *state, const struct demand *demand,
                            const struct reason *reason, struct text *text)
{
    const struct taint *taint = &reason->taint;

    (void)demand;
    if (reason->kind == REASON_TOO_FEW_ARE_UNTAINTED)
        text_add(text, "too few devices can be used: asked %zu, free and healthy %zu; ",
                 reason->asked, reason->free);
    text_add(text, reason->ids.len > 1 ? "devices " : "device ");
    text_add_ids(text, &reason->ids);
    text_add(text, reason->ids.len > 1 ? " are tainted, the first one " : " is tainted ");
    add_taint(taint, text);
    text_add(text, ", which the pod does not tolerate");
    if (taint->end_ms != UINT64_MAX) {
        text_add(text, "; that ends in ");
        text_add_duration(text, taint->end_ms - state->now_ms);
    }
    if (taint->words[0] != '\0')
        text_add(text, taint->source == TAINT_BY_RULE ? ": by the DeviceTaintRule " : ": ");
    text_add_words(text, taint->words, TEXT_WORDS_BYTES_MAX);
}

/* ---- who has it ---- */

static bool is_hidden(const struct state *state, const struct demand *demand,
                      const struct reason *reason)
{
    const struct pod *pod;

    if (!reason->holder || !state->settings.hide_other_namespaces)
        return false;
    pod = pods_find(&state->pods, reason->holder->pod_uid);
    return !pod || strcmp(pod->pod_namespace, demand->pod_namespace) != 0;
}

static void explain_holder(const struct state *state, const struct demand *demand,
                           const struct reason *reason, struct text *text)
{
    text_add(text, "device ");
    text_add_ids(text, &reason->ids);
    text_add(text, " is held by ");
    if (is_hidden(state, demand, reason))
        text_add(text, "a container of another namespace");
    else
        name_holder(&state->pods, reason->holder, text);
    text_add(text, "%s", kind_of(reason)->sentence);
}

static void explain_replacing(const struct state *state, const struct demand *demand,
                              const struct reason *reason, struct text *text)
{
    (reason->holder ? explain_holder : explain_unhealthy)(state, demand, reason, text);
    text_add(text, "; in their place, once the kubelet gives them to nobody: ");
    text_add_ids(text, &reason->others);
}

/* ---- a claim's ---- */

static bool is_user_hidden(const struct state *state, const struct demand *demand,
                           const struct reason *reason)
{
    return state->settings.hide_other_namespaces &&
           !claim_user_is_of(reason->user, demand->pod_namespace);
}

static void explain_claim(const struct state *state, const struct demand *demand,
                          const struct reason *reason, struct text *text)
{
    claim_explain_held(reason->claim, reason->user, &reason->ids, reason->made_of_same,
                       is_user_hidden(state, demand, reason), text);
}

bool reason_explain_hidden(const struct state *state, const struct demand *demand,
                           const struct reason *reason, struct text *text)
{
    if (reason->user && is_user_hidden(state, demand, reason)) {
        claim_explain_held(reason->claim, reason->user, &reason->ids, reason->made_of_same, false,
                           text);
        return true;
    }
    if (!is_hidden(state, demand, reason))
        return false;
    text_add(text, "resource %s: device ", reason->resource);
    text_add_ids(text, &reason->ids);
    text_add(text, " is held by ");
    name_holder(&state->pods, reason->holder, text);
    return true;
}

static void explain_unlisted(const struct state *state, const struct demand *demand,
                             const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    text_add(text,
             "the runtime has not listed its containers %s, so that it is not known who holds "
             "which device",
             kind_of(reason)->sentence);
}

/* ---- calls ---- */

static void explain_call(const struct state *state, const struct demand *demand,
                         const struct reason *reason, struct text *text)
{
    (void)demand;
    text_add(text, "%s of plugin endpoint \"", reason->call);
    text_add_words(text, reason->socket_name, TEXT_WORDS_BYTES_MAX);
    text_add(text, "\"");
    if (reason->kind == REASON_CALL_FAILED) {
        text_add(text, " failed: ");
        text_add_words(text, reason->words ? reason->words : "no reason given",
                       TEXT_WORDS_BYTES_MAX);
    } else if (reason->kind == REASON_ANSWER_TOO_LARGE) {
        text_add(text,
                 " answered too much: with it the answers for all containers would take "
                 "over %zu MiB",
                 OPTIONS_BYTES_MAX / (1024 * 1024));
    } else {
        text_add(text, " was not answered within ");
        text_add_duration(text, state->now_ms - reason->since_ms);
    }
    add_ids(&reason->ids, text);
}

static void explain_store(const struct state *state, const struct demand *demand,
                          const struct reason *reason, struct text *text)
{
    (void)state;
    (void)demand;
    text_add(text, "%s", kind_of(reason)->sentence);
    text_add_words(text, reason->words, TEXT_WORDS_BYTES_MAX);
}

static void explain_for_so_long(const struct state *state, const struct demand *demand,
                                const struct reason *reason, struct text *text)
{
    (void)demand;
    text_add(text, "%s", kind_of(reason)->sentence);
    text_add_duration(text, state->now_ms - reason->since_ms);
}

/* ---- all of them ---- */

static const struct kind KINDS[REASON_KINDS] = {
    [REASON_NONE] = {"none", CODE_UNAVAILABLE, explain_words, ""},
    [REASON_REQUEST_UNREADABLE] = {"request-unreadable", CODE_INVALID_ARGUMENT, explain_words, ""},
    [REASON_ANNOTATIONS_OFF] = {"annotations-off", CODE_FAILED_PRECONDITION, explain_words,
                                "its pod asks for devices by annotation, which is off on this "
                                "node: take the annotation away, or set annotations.enabled, or "
                                "annotations.start_without to have it started without them"},
    [REASON_NAMESPACE_NOT_ALLOWED] = {"namespace-not-allowed", CODE_FAILED_PRECONDITION,
                                      explain_namespace, ""},
    [REASON_PUBLISHED] = {"published", CODE_FAILED_PRECONDITION, explain_words, ""},
    [REASON_NAMES_TOO_LONG] = {"names-too-long", CODE_INVALID_ARGUMENT, explain_names, ""},
    [REASON_NO_POD_UID] = {"no-pod-uid", CODE_INVALID_ARGUMENT, explain_words,
                           "the pod uid \"\" of its sandbox_config is none, and devices are held "
                           "by it"},
    [REASON_OTHER_PODS_SANDBOX] = {"other-pods-sandbox", CODE_INVALID_ARGUMENT, explain_other_pods,
                                   ""},
    [REASON_REQUEST_CHANGED] = {"request-changed", CODE_FAILED_PRECONDITION, explain_changed, ""},
    [REASON_TOKEN_GONE] = {"token-gone", CODE_FAILED_PRECONDITION, explain_words,
                           "the kubelet had devices for it, and asks for it without them now: it "
                           "has taken them back, as from a pod that it removes"},
    [REASON_TAKEN_OVER] = {"taken-over", CODE_ABORTED, explain_words,
                           "taken over by a newer CreateContainer of the same container"},
    [REASON_TOO_MANY_CREATES] = {"too-many-creates", CODE_UNAVAILABLE, explain_creates, ""},
    [REASON_NODE_SHUTS_DOWN] = {"node-shuts-down", CODE_UNAVAILABLE, explain_shutdown, ""},
    [REASON_POD_ENDED] = {"pod-ended", CODE_FAILED_PRECONDITION, explain_ended, ""},
    [REASON_SANDBOX_STOPS] = {"sandbox-stops", CODE_FAILED_PRECONDITION, explain_sandbox,
                              "was told to stop by a client of the runtime"},
    [REASON_SANDBOX_REMOVED] = {"sandbox-removed", CODE_FAILED_PRECONDITION, explain_sandbox,
                                "was removed"},
    [REASON_SANDBOX_NOT_READY] = {"sandbox-not-ready", CODE_UNAVAILABLE, explain_sandbox, ""},
    [REASON_RESOURCE_UNKNOWN] = {"resource-unknown", CODE_FAILED_PRECONDITION, explain_unknown, ""},
    [REASON_PLUGIN_AWAY] = {"plugin-away", CODE_UNAVAILABLE, explain_away, ""},
    [REASON_DEVICES_UNHEALTHY] = {"devices-unhealthy", CODE_UNAVAILABLE, explain_unhealthy, ""},
    [REASON_NO_OTHER_DEVICE] = {"no-other-device", CODE_UNAVAILABLE, explain_unhealthy, ""},
    [REASON_REPLACING] = {"replacing", CODE_UNAVAILABLE, explain_replacing, ""},
    [REASON_TOO_FEW_ARE_HEALTHY] = {"too-few-are-healthy", CODE_UNAVAILABLE, explain_unhealthy, ""},
    [REASON_TOO_FEW_DEVICES] = {"too-few-devices", CODE_RESOURCE_EXHAUSTED, explain_too_few, ""},
    [REASON_RESOURCE_WITHDRAWN] = {"resource-withdrawn", CODE_FAILED_PRECONDITION,
                                   explain_withdrawn, ""},
    [REASON_DEVICES_CORDONED] = {"devices-cordoned", CODE_UNAVAILABLE, explain_cordoned, ""},
    [REASON_TOO_FEW_ARE_UNCORDONED] = {"too-few-are-uncordoned", CODE_UNAVAILABLE, explain_cordoned,
                                       ""},
    [REASON_DEVICES_TAINTED] = {"devices-tainted", CODE_FAILED_PRECONDITION, explain_tainted, ""},
    [REASON_TOO_FEW_ARE_UNTAINTED] = {"too-few-are-untainted", CODE_UNAVAILABLE, explain_tainted,
                                      ""},
    [REASON_HOLDER_RUNS] = {"holder-runs", CODE_UNAVAILABLE, explain_holder, ", which still runs"},
    [REASON_HOLDER_ASKED] = {"holder-asked", CODE_UNAVAILABLE, explain_holder,
                             ", and the runtime has not said yet whether it runs"},
    [REASON_HOLDER_UNKNOWN] = {"holder-unknown", CODE_UNAVAILABLE, explain_holder,
                               ", of which it is not known whether it runs"},
    [REASON_HOLDER_CREATED] = {"holder-created", CODE_UNAVAILABLE, explain_holder,
                               ", which is being created"},
    [REASON_UNLISTED] = {"unlisted", CODE_UNAVAILABLE, explain_unlisted, "yet"},
    [REASON_UNLISTED_AGAIN] = {"unlisted-again", CODE_UNAVAILABLE, explain_unlisted,
                               "again since state was lost"},
    [REASON_CDI_NOT_READ] = {"cdi-not-read", CODE_FAILED_PRECONDITION, cdi_explain_not_read, ""},
    [REASON_CDI_UNHEARD] = {"cdi-unheard", CODE_UNAVAILABLE, cdi_explain_unheard, ""},
    [REASON_CLAIM_HELD] = {"claim-held", CODE_UNAVAILABLE, explain_claim, ""},
    [REASON_CALL_QUEUED] = {"call-queued", CODE_UNAVAILABLE, explain_for_so_long,
                            "the plugin allocates for other containers first, for "},
    [REASON_CALL_UNANSWERED] = {"call-unanswered", CODE_DEADLINE_EXCEEDED, explain_call, ""},
    [REASON_CALL_FAILED] = {"call-failed", CODE_UNAVAILABLE, explain_call, ""},
    [REASON_ANSWER_TOO_LARGE] = {"answer-too-large", CODE_RESOURCE_EXHAUSTED, explain_call, ""},
    [REASON_ROWS_UNREAD] = {"rows-unread", CODE_UNAVAILABLE, explain_store,
                            "the state of this node's devices cannot be read: "},
    [REASON_UNSTORED] = {"unstored", CODE_DEADLINE_EXCEEDED, explain_for_so_long,
                         "state was not stored within "},
    [REASON_STORE_FAILED] = {"store-failed", CODE_UNAVAILABLE, explain_store,
                             "the allocation cannot be stored: "},
};

static const struct kind *kind_of(const struct reason *reason)
{
    return &KINDS[reason->kind];
}

int reason_code(enum reason_kind kind)
{
    return KINDS[kind].code;
}

const char *reason_word(enum reason_kind kind)
{
    return KINDS[kind].word;
}

void reason_explain(const struct state *state, const struct demand *demand,
                    const struct reason *reason, struct text *text)
{
    /* that a request has changed is said in the kubelet's words, which name the resource */
    name_demand(demand, reason->kind == REASON_REQUEST_CHANGED ? NULL : reason->resource, text);
    kind_of(reason)->explain(state, demand, reason, text);
    if (reason->ends == REASON_ENDS_BY_DRAIN)
        text_add(text, "; the shim is being stopped");
    else if (reason->ends == REASON_ENDS_BY_DEADLINE)
        text_add(text, ", and the client's deadline ends");
}
