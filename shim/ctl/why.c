#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/endings.h"
#include "shim/ctl/why_claims.h"

#include <inttypes.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/rpc/rpc.h"

/* ---- for people ---- */

void why_put_step(const struct show *show, Control__V1__Finding__Step number)
{
    static const char *const COLORS[] = {[CONTROL__V1__FINDING__STEP__GO] = "\033[32m",
                                         [CONTROL__V1__FINDING__STEP__ASK] = "\033[33m",
                                         [CONTROL__V1__FINDING__STEP__WAIT] = "\033[33m",
                                         [CONTROL__V1__FINDING__STEP__REFUSE] = "\033[31m"};
    size_t step = (size_t)number;
    bool colors = show->colors && step < sizeof COLORS / sizeof *COLORS;

    fprintf(show->out, "%s%s%s", colors ? COLORS[step] : "", answer_step(number),
            colors ? "\033[0m" : "");
}

static void put_pod(const struct show *show, const Control__V1__Container *container)
{
    show_put(show, container->pod_namespace[0] ? container->pod_namespace : "?");
    fputc('/', show->out);
    show_put(show, container->pod_name[0] ? container->pod_name : container->pod_uid);
}

static bool is_clear(const Control__V1__Container *container)
{
    for (size_t i = 0; i < container->n_findings; i++) {
        if (container->findings[i]->step != CONTROL__V1__FINDING__STEP__GO)
            return false;
    }
    return true;
}

static void put_state(const struct show *show, const Control__V1__Container *container)
{
    const Control__V1__Pending *pending = container->pending;
    char age[SHOW_AGE_BYTES];

    if (pending && pending->forwarded)
        fprintf(show->out, "being made by the runtime for %s", show_age(pending->waited_ms, age));
    else if (pending)
        fprintf(show->out, "its creation waits for %s", show_age(pending->waited_ms, age));
    else if (container->n_findings == 0)
        fputs("no creation is under way", show->out);
    else if (container->findings[0]->has)
        fputs("has its devices; made again now it would", show->out);
    else
        fputs("no creation is under way; one would", show->out);
    if (pending && pending->left_ms > 0)
        fprintf(show->out, ", is refused in %s", show_age(pending->left_ms, age));
    else if (!pending && container->n_findings > 0)
        fputs(is_clear(container) ? " get what it asks for" : " find this:", show->out);
    fputc('\n', show->out);
}

static void put_ids(const struct show *show, const Control__V1__Finding *finding)
{
    for (size_t i = 0; i < finding->n_ids; i++) {
        fputs(i > 0 ? "," : " ", show->out);
        show_put(show, finding->ids[i]);
    }
    if (finding->ids_total > finding->n_ids)
        fprintf(show->out, " (%" PRIu64 " more)", finding->ids_total - finding->n_ids);
}

void why_put_reason(const struct show *show, const Control__V1__Reason *reason)
{
    fprintf(show->out, " [");
    show_put(show, reason->word);
    fprintf(show->out, "]");
    if (reason->text[0]) {
        fputs("\n      why:    ", show->out);
        show_put(show, reason->text);
    }
    fputs("\n      clears: ", show->out);
    show_put(show, reason->clears);
}

static void put_finding(const struct show *show, const Control__V1__Finding *finding)
{
    fputs("    ", show->out);
    why_put_step(show, finding->step);
    fputc(' ', show->out);
    if (finding->resource[0]) {
        show_put(show, finding->resource);
        fprintf(show->out, "=%" PRIu64, finding->asked);
    } else {
        fputs("the container", show->out);
    }
    if (finding->n_ids > 0) {
        fputs(finding->has ? ": has" : ": gets", show->out);
        put_ids(show, finding);
    }
    if (finding->reason)
        why_put_reason(show, finding->reason);
    fputc('\n', show->out);
}

void why_put_refusal(const struct show *show, const Control__V1__Refusal *refusal)
{
    char last[SHOW_AGE_BYTES], first[SHOW_AGE_BYTES];

    fprintf(show->out, "    last refused %s ago, %" PRIu64 " times since %s ago: %s",
            show_age(refusal->last_ms, last), refusal->times, show_age(refusal->first_ms, first),
            rpc_code_name(refusal->code));
    if (refusal->reason)
        why_put_reason(show, refusal->reason);
    fputc('\n', show->out);
}

static void put_container(const struct show *show, const Control__V1__Container *container)
{
    fputs("container ", show->out);
    show_put(show, container->name);
    fputs(" of pod ", show->out);
    put_pod(show, container);
    fputs(" (uid ", show->out);
    show_put(show, container->pod_uid);
    fputs("): ", show->out);
    put_state(show, container);
    for (size_t i = 0; i < container->n_findings; i++)
        put_finding(show, container->findings[i]);
    if (container->refusal)
        why_put_refusal(show, container->refusal);
}

static void put_name(const struct show *show, const Control__V1__Container *container)
{
    fputs("container/", show->out);
    put_pod(show, container);
    fputc('/', show->out);
    show_put(show, container->name);
    fputc('\n', show->out);
}

/* ---- the command ---- */

static bool run(const struct command_run *run, struct client_failure *failure)
{
    const struct show *show = &run->show;
    Control__V1__WhyRequest request = CONTROL__V1__WHY_REQUEST__INIT;
    Control__V1__WhyResponse *response;

    if (run->arguments_len > 0)
        request.pod = run->arguments[0];
    if (run->arguments_len > 1)
        request.container = run->arguments[1];
    response = (Control__V1__WhyResponse *)client_ask(
        run->client, CONTROL_WHY, &request.base, &control__v1__why_response__descriptor, failure);
    if (!response)
        return false;
    if (show->format == SHOW_JSON)
        show_json(show, answer_why(response));
    for (size_t i = 0; show->format != SHOW_JSON && i < response->n_endings; i++)
        ending_put(show, response->endings[i]);
    for (size_t i = 0; show->format != SHOW_JSON && i < response->n_containers; i++) {
        if (show->format == SHOW_NAME)
            put_name(show, response->containers[i]);
        else
            put_container(show, response->containers[i]);
    }
    for (size_t i = 0; show->format != SHOW_JSON && i < response->n_claims; i++) {
        if (show->format == SHOW_NAME)
            why_claim_put_name(show, response->claims[i]);
        else
            why_claim_put(show, response->claims[i]);
    }
    if (response->more && show->format != SHOW_JSON && show->format != SHOW_NAME)
        fputs("there are more: name the pod by its uid, or a container\n", show->out);
    control__v1__why_response__free_unpacked(response, NULL);
    return true;
}

const struct command why_command = {
    .name = "why",
    .arguments = "[POD|CLAIM [CONTAINER]]",
    .summary = "what a container or claim waits for, what would end that, what it was refused",
    .arguments_max = 2,
    .run = run,
};
