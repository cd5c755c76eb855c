#include "shim/control/why.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/why.h"
#include "shim/boot_clock.h"
#include "shim/control/told_id.h"
#include "shim/must.h"

static char *copy(const char *text)
{
    return must(strdup(text));
}

Control__V1__Reason *why_reason(const char *word, const char *text, const char *clears)
{
    Control__V1__Reason *reason = must(malloc(sizeof *reason));

    control__v1__reason__init(reason);
    reason->word = copy(word);
    reason->text = copy(text);
    reason->clears = copy(clears);
    return reason;
}

static char *copy_id(const char *id)
{
    char told[TOLD_ID_BYTES_MAX];

    if (!told_id_is_cut(id))
        return copy(id);
    told_id_cut(id, told);
    return copy(told);
}

static void copy_ids(struct why *why, Control__V1__Finding *to,
                     const struct devicemgr_why_finding *finding)
{
    size_t len = finding->ids_len < CONTROL_WHY_IDS_MAX ? finding->ids_len : CONTROL_WHY_IDS_MAX;

    to->ids_total = finding->ids_len;
    to->ids = must(calloc(len + 1, sizeof *to->ids));
    while (to->n_ids < len && why->id_bytes < CONTROL_PAGE_BYTES_MAX) {
        to->ids[to->n_ids] = copy_id(finding->ids[to->n_ids]);
        why->id_bytes += strlen(to->ids[to->n_ids++]);
    }
}

static Control__V1__Finding *finding_of(struct why *why,
                                        const struct devicemgr_why_finding *finding)
{
    static const Control__V1__Finding__Step STEPS[] = {
        [DEVICEMGR_WHY_GO] = CONTROL__V1__FINDING__STEP__GO,
        [DEVICEMGR_WHY_ASK] = CONTROL__V1__FINDING__STEP__ASK,
        [DEVICEMGR_WHY_WAIT] = CONTROL__V1__FINDING__STEP__WAIT,
        [DEVICEMGR_WHY_REFUSE] = CONTROL__V1__FINDING__STEP__REFUSE};
    Control__V1__Finding *to = must(malloc(sizeof *to));

    control__v1__finding__init(to);
    to->resource = copy(finding->resource ? finding->resource : "");
    to->asked = finding->asked;
    to->step = STEPS[finding->step];
    to->has = finding->has;
    copy_ids(why, to, finding);
    if (finding->word)
        to->reason = why_reason(finding->word, finding->text, finding->clears);
    return to;
}

static Control__V1__Refusal *refusal_of(const struct devicemgr_why *why)
{
    Control__V1__Refusal *refusal = must(malloc(sizeof *refusal));

    control__v1__refusal__init(refusal);
    refusal->reason = why_reason(why->refused_word, why->refused_text, why->refused_clears);
    refusal->code = why->refused_code;
    refusal->times = why->refused_times;
    refusal->first_ms = why->refused_first_ms_ago;
    refusal->last_ms = why->refused_last_ms_ago;
    return refusal;
}

static Control__V1__Pending *pending_of(const struct devicemgr_why *why)
{
    Control__V1__Pending *pending = must(malloc(sizeof *pending));

    control__v1__pending__init(pending);
    pending->waited_ms = why->waited_ms;
    pending->left_ms = why->left_ms;
    pending->forwarded = why->forwarded;
    return pending;
}

static Control__V1__Container *container_of(struct why *answer, const struct devicemgr_why *why)
{
    Control__V1__Container *container = must(malloc(sizeof *container));

    control__v1__container__init(container);
    container->pod_uid = copy(why->pod_uid);
    container->pod_namespace = copy(why->pod_namespace);
    container->pod_name = copy(why->pod_name);
    container->name = copy(why->container);
    container->findings = must(calloc(why->findings_len + 1, sizeof *container->findings));
    while (container->n_findings < why->findings_len) {
        container->findings[container->n_findings] =
            finding_of(answer, &why->findings[container->n_findings]);
        container->n_findings++;
    }
    if (why->pending)
        container->pending = pending_of(why);
    if (why->refused_word)
        container->refusal = refusal_of(why);
    return container;
}

static void on_why(void *user, const struct devicemgr_why *why)
{
    struct why *answer = user;
    Control__V1__WhyResponse *response = &answer->response;

    if (answer->waiting && !why->pending && (!why->refused_word || why->refused_over))
        return;
    if (response->n_containers == CONTROL_WHY_CONTAINERS_MAX) {
        response->more = true;
        return;
    }
    response->containers[response->n_containers++] = container_of(answer, why);
}

void why_init(struct why *why, const struct list_from *from, const Control__V1__WhyRequest *request)
{
    const char *pod = request->pod[0] ? request->pod : NULL;
    const char *container = request->container[0] ? request->container : NULL;

    *why = (struct why){0};
    control__v1__why_response__init(&why->response);
    why->response.containers =
        must(calloc(CONTROL_WHY_CONTAINERS_MAX, sizeof *why->response.containers));
    why->waiting = !pod;
    devicemgr_why(from->core, boot_now_ms(), pod, container, on_why, why);
    why_add_claims(why, from, pod, container);
    why_add_endings(why, from->core, pod);
}

void why_fini(struct why *why)
{
    for (size_t i = 0; i < why->response.n_containers; i++)
        control__v1__container__free_unpacked(why->response.containers[i], NULL);
    free(why->response.containers);
    why_free_claims(why);
    why_free_endings(why);
}
