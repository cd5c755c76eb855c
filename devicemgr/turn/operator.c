/*
 * What an operator sets.
 */
#include "devicemgr/operator.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

void turn_refuse(struct devicemgr *mgr, uint64_t number, int code, const char *text)
{
    action_steered(&mgr->state.actions, number, code, false, text);
}

void turn_refuse_several(struct devicemgr *mgr, uint64_t number)
{
    turn_refuse(mgr, number, CODE_FAILED_PRECONDITION,
                "several pods are called so: name it by its uid");
}

bool turn_is_full(struct devicemgr *mgr, uint64_t number)
{
    if (mgr->steers.len + mgr->releases.len + mgr->ends.waiters_len < STEERS_MAX)
        return false;
    turn_refuse(mgr, number, CODE_RESOURCE_EXHAUSTED,
                "too many orders wait for their turn: the store or the runtime is slow");
    return true;
}

const char *turn_in_the_way(const struct devicemgr *mgr)
{
    if (mgr->state.unread)
        return "the state of this node's devices cannot be read";
    if (mgr->state.draining)
        return "the shim is being stopped";
    return NULL;
}

static void steer(struct devicemgr *mgr, uint64_t now_ms, const struct steer *said)
{
    state_at(&mgr->state, now_ms);
    if (!turn_is_full(mgr, said->number))
        steers_begin(&mgr->steers, said);
}

void devicemgr_cordon(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *resource,
                      const char *const *ids, size_t ids_len, const char *reason, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_SET,
                               .kind = ORDER_CORDON,
                               .resource = (char *)resource,
                               .ids = {(char **)ids, ids_len},
                               .words = {.reason = (char *)reason, .at_s = at_s}};

    steer(mgr, now_ms, &said);
}

void devicemgr_uncordon(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                        const char *resource, const char *const *ids, size_t ids_len)
{
    const struct steer said = {.number = number,
                               .what = STEER_TAKE_BACK,
                               .kind = ORDER_CORDON,
                               .resource = (char *)resource,
                               .ids = {(char **)ids, ids_len},
                               .words = {.reason = (char *)""}};

    steer(mgr, now_ms, &said);
}

void devicemgr_withdraw(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                        const char *resource, const char *reason, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_SET,
                               .kind = ORDER_WITHDRAWAL,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)reason, .at_s = at_s}};

    steer(mgr, now_ms, &said);
}

void devicemgr_withdraw_undo(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                             const char *resource)
{
    const struct steer said = {.number = number,
                               .what = STEER_TAKE_BACK,
                               .kind = ORDER_WITHDRAWAL,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)""}};

    steer(mgr, now_ms, &said);
}

void devicemgr_grace_extend(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                            const char *resource, uint64_t more_ms, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_GRACE,
                               .kind = ORDER_GRACE,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)"", .at_s = at_s, .more_ms = more_ms}};

    steer(mgr, now_ms, &said);
}

void devicemgr_grace_end(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                         const char *resource, uint64_t at_s)
{
    const struct steer said = {.number = number,
                               .what = STEER_GRACE,
                               .kind = ORDER_GRACE,
                               .resource = (char *)resource,
                               .words = {.reason = (char *)"", .at_s = at_s, .over = true}};

    steer(mgr, now_ms, &said);
}

/* ---- taints ---- */

/* False: it is none, and is refused. */
static bool read_taint(struct devicemgr *mgr, uint64_t number, const char *text,
                       struct taint_said *said)
{
    const char *wrong = taint_said_read(said, text);

    if (wrong)
        turn_refuse(mgr, number, CODE_INVALID_ARGUMENT, wrong);
    return !wrong;
}

void devicemgr_taint(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *resource,
                     const char *id, const char *taint, uint64_t for_ms, const char *reason,
                     uint64_t at_s, bool dry)
{
    struct taint_said said;
    struct steer what = {.number = number,
                         .what = dry ? STEER_LOOK : STEER_SET,
                         .kind = ORDER_TAINT,
                         .resource = (char *)resource,
                         .words = {.reason = (char *)reason, .at_s = at_s, .for_ms = for_ms}};

    state_at(&mgr->state, now_ms);
    if (!read_taint(mgr, number, taint, &said))
        return;
    if (said.any_effect) {
        turn_refuse(mgr, number, CODE_INVALID_ARGUMENT,
                    "a taint has an effect: key=value:NoExecute");
        return;
    }
    what.words.value = said.value;
    what.words.set_ms = mgr->state.now_ms;
    what.ids.v = (char *[]){order_taint_id(said.key, said.effect, id)};
    what.ids.len = 1;
    steer(mgr, now_ms, &what);
    free(what.ids.v[0]);
}

void devicemgr_untaint(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                       const char *resource, const char *id, const char *taint)
{
    struct taint_said said;
    struct steer what = {.number = number,
                         .what = STEER_TAKE_BACK,
                         .kind = ORDER_TAINT,
                         .resource = (char *)resource,
                         .words = {.reason = (char *)"", .value = (char *)""}};

    state_at(&mgr->state, now_ms);
    if (!read_taint(mgr, number, taint, &said))
        return;
    for (int effect = 0; effect < TAINT_EFFECTS; effect++) {
        char *one = order_taint_id(said.key, (enum taint_effect)effect, id);

        if (said.any_effect || said.effect == (enum taint_effect)effect)
            ids_add(&what.ids, one);
        free(one);
    }
    steer(mgr, now_ms, &what);
    ids_fini(&what.ids);
}

/* ---- release ---- */

/* The pod that is meant, of those that hold something; NULL: none, or, with `several`, not one. */
static const char *find_pod(const struct state *state, const char *pod, bool *several)
{
    const char *found = NULL;

    if (allocations_of_pod(&state->allocations, pod))
        return pod; /* a uid, whatever others are called */
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        const char *pod_namespace, *name;

        meant_names(state, a->pod_uid, &pod_namespace, &name);
        if (!meant_pod(pod, a->pod_uid, pod_namespace, name))
            continue;
        if (found && strcmp(found, a->pod_uid) != 0) {
            *several = true;
            return NULL;
        }
        found = a->pod_uid;
    }
    return found;
}

void devicemgr_release(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *pod,
                       const char *by, bool dry)
{
    const char *why = turn_in_the_way(mgr), *uid;
    bool several = false;

    state_at(&mgr->state, now_ms);
    uid = find_pod(&mgr->state, pod, &several);
    if (why)
        turn_refuse(mgr, number, CODE_FAILED_PRECONDITION, why);
    else if (several)
        turn_refuse_several(mgr, number);
    else if (!uid)
        turn_refuse(mgr, number, CODE_NOT_FOUND, "no such pod has any devices");
    else if (!turn_is_full(mgr, number))
        releases_begin(&mgr->releases, number, uid, by, dry);
}
