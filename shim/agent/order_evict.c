/*
 * A pod that is to be evicted: it is looked at, then evicted, or deleted, and marked for who asks
 * why it went: before a DELETE, as upstream's controllers do; after an eviction, which leaves a
 * mark of the API server's own (pkg/registry/core/pod/storage/eviction.go), and before which a
 * budget may have it stay for ever.
 */
#include "shim/agent/order_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/log.h"

#define CONDITION "DisruptionTarget"
/* Beside those of upstream (staging/src/k8s.io/api/core/v1/types.go): whose doing it is. */
#define CONDITION_REASON "DeletionByCRIDeviceShim"
/* On a static pod's mirror (pkg/kubelet/types/pod_update.go). */
#define MIRROR "kubernetes.io/config.mirror"

static void pod_path(const struct run *run, struct query *query, const char *sub)
{
    const Agent__V1__EvictPod *what = run->order->evict_pod;

    query_begin(query, "/api/v1/namespaces");
    query_segment(query, what->namespace_);
    query_segment(query, "pods");
    query_segment(query, what->name);
    if (sub)
        query_segment(query, sub);
}

static void end(struct run *run, Agent__V1__Evicted evicted)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;

    answer.outcome = AGENT__V1__OUTCOME__DONE;
    answer.evicted = evicted;
    run_end_by(run, &answer);
}

/* For `sub` of the pod; the JSON is taken. */
static void send_json(struct run *run, const char *method, const char *sub, const char *type,
                      json_t *json, const struct api_ops *ops)
{
    struct query query;

    pod_path(run, &query, sub);
    run_ask_json(run, method, &query, type, json, "its words are not UTF-8", ops);
}

/* ---- its condition ---- */

static void mark(struct run *run, const struct api_ops *ops)
{
    const Agent__V1__EvictPod *what = run->order->evict_pod;
    time_t now = time(NULL);
    struct tm utc;
    char at[32];

    gmtime_r(&now, &utc);
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &utc);
    send_json(run, "PATCH", "status", "application/strategic-merge-patch+json",
              json_pack("{s:{s:s}, s:{s:[{s:s, s:s, s:s, s:s, s:s}]}}", "metadata", "uid",
                        what->uid, "status", "conditions", "type", CONDITION, "status", "True",
                        "reason", CONDITION_REASON, "message", what->why, "lastTransitionTime", at),
              ops);
}

/* ---- the eviction ---- */

/* It goes with that mark or without. */
static void on_marked_after(void *user, const struct api_result *result)
{
    struct run *run = user;

    (void)result;
    run->request = NULL;
    end(run, AGENT__V1__EVICTED__DELETED);
}

/* That another pod has the name by now is seen when it is looked for again. A budget that allows
 * none is answered 429, several for one pod 500, which more than one may have ended by then. */
static void on_evicted(void *user, const struct api_result *result)
{
    static const struct api_ops ops = {.done = on_marked_after};
    struct run *run = user;

    run->request = NULL;
    if (result->outcome == API_DONE)
        mark(run, &ops);
    else if (result->outcome == API_NOT_FOUND)
        end(run, AGENT__V1__EVICTED__NOT_THERE);
    else
        run_fail(run, result);
}

static json_t *delete_options(const Agent__V1__EvictPod *what)
{
    json_t *options = json_pack("{s:s, s:s, s:{s:s}}", "kind", "DeleteOptions", "apiVersion", "v1",
                                "preconditions", "uid", what->uid);

    if (options && !what->own_grace &&
        json_object_set_new(options, "gracePeriodSeconds",
                            json_integer((json_int_t)what->grace_seconds)) < 0)
        abort(); /* out of memory */
    return options;
}

static void ask_eviction(struct run *run)
{
    static const struct api_ops ops = {.done = on_evicted};
    const Agent__V1__EvictPod *what = run->order->evict_pod;

    send_json(run, "POST", "eviction", "application/json",
              json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "policy/v1", "kind",
                        "Eviction", "metadata", "name", what->name, "namespace", what->namespace_,
                        "deleteOptions", delete_options(what)),
              &ops);
}

/* By an admission policy, which answers 422 unless it says otherwise
 * (staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating), or for want of the
 * right. */
static bool is_denied(const struct api_result *result)
{
    return result->outcome == API_REFUSED || result->status == 422;
}

/* Who may not delete it may still evict it: budgets may allow that by now. */
static void on_deleted(void *user, const struct api_result *result)
{
    struct run *run = user;
    const Agent__V1__EvictPod *what = run->order->evict_pod;

    run->request = NULL;
    if (result->outcome == API_DONE) {
        end(run, AGENT__V1__EVICTED__DELETED);
    } else if (result->outcome == API_NOT_FOUND) {
        end(run, AGENT__V1__EVICTED__NOT_THERE);
    } else if (is_denied(result)) {
        log_warning("pod %s/%s: it may not be deleted: %s; its eviction is asked for",
                    what->namespace_, what->name, result->words);
        ask_eviction(run);
    } else {
        run_fail(run, result);
    }
}

static void evict(struct run *run)
{
    static const struct api_ops ops = {.done = on_deleted};
    const Agent__V1__EvictPod *what = run->order->evict_pod;

    if (what->forced)
        send_json(run, "DELETE", NULL, "application/json", delete_options(what), &ops);
    else
        ask_eviction(run);
}

/* Who may not mark it may still delete it. */
static void on_marked_before(void *user, const struct api_result *result)
{
    struct run *run = user;

    run->request = NULL;
    if (result->outcome == API_DONE || is_denied(result))
        evict(run);
    else if (result->outcome == API_NOT_FOUND)
        end(run, AGENT__V1__EVICTED__NOT_THERE);
    else
        run_fail(run, result);
}

/* ---- the pod ---- */

static bool is_marked(const json_t *pod)
{
    const json_t *conditions = json_object_get(json_object_get(pod, "status"), "conditions");
    const json_t *one;
    size_t i;

    json_array_foreach(conditions, i, one) {
        const char *type = json_string_value(json_object_get(one, "type"));
        const char *reason = json_string_value(json_object_get(one, "reason"));
        const char *status = json_string_value(json_object_get(one, "status"));

        if (type && strcmp(type, CONDITION) == 0 && reason &&
            strcmp(reason, CONDITION_REASON) == 0 && status && strcmp(status, "True") == 0)
            return true;
    }
    return false;
}

/* Whether it is being deleted with no more time than it is to have. */
static bool is_ending(const json_t *metadata, const Agent__V1__EvictPod *what)
{
    const json_t *grace = json_object_get(metadata, "deletionGracePeriodSeconds");

    return json_is_string(json_object_get(metadata, "deletionTimestamp")) &&
           (what->own_grace || !json_is_integer(grace) ||
            json_integer_value(grace) <= (json_int_t)what->grace_seconds);
}

static void judge(struct run *run, const json_t *pod)
{
    static const struct api_ops marked = {.done = on_marked_before};
    const Agent__V1__EvictPod *what = run->order->evict_pod;
    const json_t *metadata = json_object_get(pod, "metadata");
    const char *uid = json_string_value(json_object_get(metadata, "uid"));

    if (json_object_get(json_object_get(metadata, "annotations"), MIRROR))
        end(run, AGENT__V1__EVICTED__MIRROR);
    else if (!uid || strcmp(uid, what->uid) != 0)
        end(run, AGENT__V1__EVICTED__NOT_THERE);
    else if (is_ending(metadata, what))
        end(run, AGENT__V1__EVICTED__DELETED);
    else if (!what->forced || is_marked(pod))
        evict(run);
    else
        mark(run, &marked);
}

/* One that is too large to be looked into is no mirror: who made it is to have no pod that stays.
 * The uid is a precondition in any case. */
static void on_pods(void *user, const struct api_result *result)
{
    struct run *run = user;
    json_t *list = result->outcome == API_DONE ? answer_json(&run->answer) : NULL;
    const json_t *pods = json_object_get(list, "items");

    run->request = NULL;
    if (run->too_large)
        evict(run);
    else if (result->outcome != API_DONE)
        run_fail(run, result);
    else if (!json_is_array(pods))
        run_end(run, AGENT__V1__OUTCOME__AGAIN, "the pods that were answered are no list", 0);
    else if (json_array_size(pods) == 0)
        end(run, AGENT__V1__EVICTED__NOT_THERE);
    else
        judge(run, json_array_get(pods, 0));
    json_decref(list);
}

/* By a list with a selector: one that is not there, or not bound here any more, a node's
 * credentials may not get by its name, and that is no different from what they may never
 * (plugin/pkg/auth/authorizer/node/node_authorizer.go). */
void run_evict_pod(struct run *run)
{
    static const struct api_ops ops = {.body = run_body, .done = on_pods};
    const Agent__V1__EvictPod *what = run->order->evict_pod;
    struct query query;
    char *selector;

    if (asprintf(&selector, "spec.nodeName=%s,metadata.name=%s", run->orders->node, what->name) < 0)
        abort();
    query_begin(&query, "/api/v1/namespaces");
    query_segment(&query, what->namespace_);
    query_segment(&query, "pods");
    query_add(&query, "fieldSelector", selector);
    if (strpbrk(what->name, ",=\\")) /* it would select something else */
        run_end(run, AGENT__V1__OUTCOME__REFUSED, "that is no pod's name", 0);
    else if (!run_too_long(run, &query))
        run_ask(run, "GET", &query, NULL, NULL, &ops);
    free(selector);
}
