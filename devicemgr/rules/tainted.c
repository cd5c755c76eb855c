#include "devicemgr/rules/tainted.h"

#include <string.h>

#include "devicemgr/rules/claimed.h"
#include "devicemgr/rules/kept_back.h"
#include "devicemgr/rules/lifted.h"

#include "devicemgr/rules/rule.h"

const struct tolerations *tainted_tolerations(const struct state *state, const char *pod_uid)
{
    static const struct tolerations NONE;
    const struct pod *pod = pods_find(&state->pods, pod_uid);

    return pod ? &pod->tolerations : &NONE;
}

/* ---- which taint counts ---- */

struct seeking {
    const struct state *state;
    const struct tolerations *tolerations;
    const struct tolerations *also; /* of a claim; NULL: none */
    bool untold;                    /* they will be: what it tolerates is not known yet */
    enum taint_effect least;        /* only those, and stronger ones */
    struct taint found;
    bool is;
};

/* An unhealthy device is not to be had by other rules, which wait for it. */
static bool seek(void *user, const struct taint *taint)
{
    struct seeking *seeking = user;

    if (taint->effect < seeking->least || taint->source == TAINT_BY_HEALTH ||
        (seeking->untold && taint_is_the_clusters(taint)) ||
        seeking->state->now_ms < tolerations_until_ms(seeking->tolerations, taint) ||
        (seeking->also && seeking->state->now_ms < tolerations_until_ms(seeking->also, taint)))
        return true;
    seeking->found = *taint;
    seeking->is = true;
    return false;
}

/* Of a claim by which the device of a lifted resource is asked for: what is published the scheduler
 * gives away by that (lift.h). NULL: no such claim is known. */
static const struct tolerations *of_its_claim(const struct state *state,
                                              const struct wanted *wanted, const char *id)
{
    const struct by_claims *by = &wanted->want->by;

    for (size_t i = 0; i < by->len; i++) {
        const struct claim *claim = strcmp(by->v[i].id, id) == 0
                                        ? claims_find(&state->claims, by->v[i].uid, LIFT_DRIVER)
                                        : NULL;

        for (size_t k = 0; claim && k < claim->devices.len; k++) {
            const struct granted_device *device = &claim->devices.v[k];

            if (lifted_is_device(device, wanted->want->resource, id))
                return consumers_tolerations(consumers_find(state->tainted.consumers, claim->uid),
                                             LIFT_DRIVER, device->pool, device->device);
        }
    }
    return NULL;
}

static struct seeking find(const struct state *state, const struct wanted *wanted, const char *id,
                           enum taint_effect least)
{
    struct seeking seeking = {.state = state,
                              .tolerations = tainted_tolerations(state, wanted->demand->pod_uid),
                              .also = of_its_claim(state, wanted, id),
                              .least = least};

    tainted_each(state, wanted->want->resource, id, seek, &seeking);
    return seeking;
}

/* ---- looks ---- */

struct look tainted_of_ids(const struct state *state, const struct wanted *wanted,
                           const struct ids *ids)
{
    struct look look = {0};

    for (size_t i = 0; i < ids->len; i++) {
        struct seeking seeking = find(state, wanted, ids->v[i], TAINT_NO_EXECUTE);

        if (!seeking.is)
            continue;
        look.step = LOOK_REFUSE;
        look.reason.kind = REASON_DEVICES_TAINTED;
        look.reason.resource = wanted->want->resource;
        look.reason.taint = seeking.found;
        ids_add(&look.reason.ids, ids->v[i]);
        break; /* others may have other taints: the first is told */
    }
    return look;
}

/* ---- claims ---- */

static void look_at_granted(struct seeking *seeking, const struct claim *claim,
                            const struct granted_device *device, struct look *look)
{
    const struct state *state = seeking->state;
    const struct consumers *consumers = consumers_find(state->tainted.consumers, claim->uid);
    char *id = granted_device_id(device);

    seeking->untold = state->settings.cluster && !consumers;
    seeking->also = consumers_tolerations(consumers, claim->driver, device->pool, device->device);
    tainted_each(state, claim->driver, id, seek, seeking);
    if (seeking->is) {
        look->step = LOOK_REFUSE;
        look->reason.kind = REASON_DEVICES_TAINTED;
        look->reason.resource = claim->driver;
        look->reason.taint = seeking->found;
        ids_add(&look->reason.ids, id);
    }
    free(id);
}

static void look_at_claim(struct seeking *seeking, const struct claim *claim,
                          const struct devicemgr_create *request, struct look *look)
{
    for (size_t i = 0; i < claim->devices.len && look->step == LOOK_GO; i++) {
        const struct granted_device *device = &claim->devices.v[i];

        if (granted_device_named(device, request->cdi_devices, request->cdi_devices_len) &&
            !claimed_by_another(seeking->state, claim, device, request->pod_uid))
            look_at_granted(seeking, claim, device, look);
    }
}

struct look tainted_of_claims(const struct state *state, const struct devicemgr_create *request)
{
    const struct claim *claim = request->cdi_devices_len > 0 ? state->claims.by_key : NULL;
    struct tolerations tolerations = {0};
    struct seeking seeking = {
        .state = state, .tolerations = &tolerations, .least = TAINT_NO_EXECUTE};
    struct text ignored = {0};
    struct look look = {0};

    if (!claim || !tainted_no_execute(&state->tainted, &state->orders))
        return look;
    for (size_t i = 0; i < request->pod_annotations_len; i++) {
        const struct devicemgr_annotation *is = &request->pod_annotations[i];

        if (tolerations_is_annotation(is->key, is->value) &&
            tolerations_read(&tolerations, is->value, &ignored) < 0)
            tolerations_fini(&tolerations);
    }
    for (; claim && look.step == LOOK_GO; claim = claim->hh.next) {
        if (claim_state_kept(claim->state))
            look_at_claim(&seeking, claim, request, &look);
    }
    tolerations_fini(&tolerations);
    return look;
}

/* ---- what is chosen ---- */

bool tainted_for(const struct state *state, const struct wanted *wanted, const char *id)
{
    if (find(state, wanted, id, TAINT_NO_EXECUTE).is)
        return true;
    return !kept_back_has(state, wanted, id) && find(state, wanted, id, TAINT_NO_SCHEDULE).is;
}

struct look tainted_too_few(const struct state *state, const struct wanted *wanted, size_t free,
                            const struct ids *ids)
{
    struct look look = {.step = LOOK_WAIT,
                        .reason = {.kind = REASON_TOO_FEW_ARE_UNTAINTED,
                                   .resource = wanted->want->resource,
                                   .asked = wanted->want->count,
                                   .free = free}};

    for (size_t i = 0; i < ids->len; i++) {
        struct seeking seeking = find(state, wanted, ids->v[i], TAINT_NO_SCHEDULE);

        if (i == 0)
            look.reason.taint = seeking.found;
        ids_add(&look.reason.ids, ids->v[i]);
    }
    return look;
}
