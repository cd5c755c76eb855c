#include "shim/agent/order_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/objects.h"

/* ---- WipeSlices ---- */

static void on_wiped(void *user, const struct api_result *result)
{
    struct run *run = user;

    if (result->outcome == API_DONE) {
        run_end(run, AGENT__V1__OUTCOME__DONE, "", 0);
    } else if (result->outcome == API_NOT_FOUND) { /* it may have them in another version */
        served_missing(run->orders->served, SERVED_SLICES, run->version);
        run_end(run, AGENT__V1__OUTCOME__AGAIN, result->words, 0);
    } else {
        run_fail(run, result);
    }
}

/* Terms in the order of their names, as the kubelet has them
 * (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go). */
void run_wipe_slices(struct run *run)
{
    static const struct api_ops ops = {.done = on_wiped};
    const char *driver = run->order->wipe_slices->driver;
    const char *version = run_version(run, SERVED_SLICES, AGENT__V1__OUTCOME__DONE);
    struct query query;
    char *selector;

    if (!version)
        return;
    if (asprintf(&selector, "%s%s%sspec.nodeName=%s", *driver ? "spec.driver=" : "", driver,
                 *driver ? "," : "", run->orders->node) < 0)
        abort();
    query_begin(&query, SERVED_GROUP_PATH);
    query_segment(&query, version);
    query_segment(&query, "resourceslices");
    query_add(&query, "fieldSelector", selector);
    if (strpbrk(driver, ",=\\")) /* it would select something else */
        run_end(run, AGENT__V1__OUTCOME__REFUSED, "that is no driver's name", 0);
    else if (!run_too_long(run, &query))
        run_ask(run, "DELETE", &query, "application/json",
                "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"}", &ops);
    free(selector);
}

/* ---- GetClaim ---- */

static void tell_claim(struct run *run, const json_t *object)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;
    Agent__V1__Claim *claim = object_claim(object);

    if (strcmp(claim->uid, run->order->get_claim->uid) != 0) {
        run_end(run, AGENT__V1__OUTCOME__REFUSED, "another claim has that name", 0);
    } else {
        answer.outcome = AGENT__V1__OUTCOME__DONE;
        answer.claim = claim;
        run_end_by(run, &answer);
    }
    agent__v1__claim__free_unpacked(claim, NULL);
}

/* What users say to drivers, and drivers of devices (runtime.RawExtension), and who has said which
 * of it. */
static const char *const FOREIGN[] = {"parameters", "data", "managedFields", NULL};

static void on_claim(void *user, const struct api_result *result)
{
    struct run *run = user;
    json_t *object;

    answer_leave_out(&run->answer, FOREIGN);
    object = result->outcome == API_DONE ? answer_json(&run->answer) : NULL;
    if (result->outcome != API_DONE)
        run_fail(run, result);
    else if (!object)
        run_end(run, AGENT__V1__OUTCOME__AGAIN, "the claim that was answered is no JSON", 0);
    else
        tell_claim(run, object);
    json_decref(object);
}

void run_get_claim(struct run *run)
{
    static const struct api_ops ops = {.body = run_body, .done = on_claim};
    const Agent__V1__GetClaim *what = run->order->get_claim;
    const char *version = run_version(run, SERVED_CLAIMS, AGENT__V1__OUTCOME__REFUSED);
    struct query query;

    if (!version)
        return;
    query_begin(&query, SERVED_GROUP_PATH);
    query_segment(&query, version);
    query_segment(&query, "namespaces");
    query_segment(&query, what->namespace_);
    query_segment(&query, "resourceclaims");
    query_segment(&query, what->name);
    if (!run_too_long(run, &query))
        run_ask(run, "GET", &query, NULL, NULL, &ops);
}
