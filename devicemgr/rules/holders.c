#include "devicemgr/rules/holders.h"

#include <string.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/rules/lifted_claims.h"

#include "devicemgr/rules/rule.h"

static bool same_pod(const struct demand *demand, const struct allocation *holder)
{
    return strcmp(demand->pod_uid, holder->pod_uid) == 0;
}

/* Whether the runtime has said that the holder's container runs, in answer to this create or, for
 * its own pod, too late for one before. */
static bool said_to_run(const struct state *state, const struct demand *demand,
                        const struct allocation *holder)
{
    return holder->said.to == demand->create ||
           (same_pod(demand, holder) && state->now_ms < holder->said.late_until_ms);
}

/* The kubelet makes the containers of a pod one after the other, and hands a device on only when
 * the init container that had it has done its work: when it asks for the next one, none of an
 * exited one, of which nothing else is known, is in the making. */
static bool handed_on_by_kubelet(const struct demand *demand, const struct allocation *holder)
{
    return same_pod(demand, holder) && !holder->own_choice && holder->said.exited;
}

/* Whether the container and the holder may both have it by their claims. */
static bool share_claims(const struct state *state, const struct wanted *wanted,
                         const struct allocation *holder, const char *id)
{
    struct by_claims by;
    bool shared;

    if (!wanted->want->claimed || !holder->claimed)
        return false;
    by = lifted_claims_wanted(state, wanted, id);
    shared = lifted_claims_shared(state, wanted->want->resource, id, &by, &holder->by);
    by_claims_fini(&by);
    return shared;
}

/* One that has several of what is wanted is asked about once. */
static void add(struct holders *holders, const struct allocation *holder)
{
    for (size_t i = 0; i < holders->len; i++) {
        if (holders->v[i] == holder)
            return;
    }
    holders->v = mem_grow(holders->v, holders->len, sizeof *holders->v);
    holders->v[holders->len++] = holder;
}

/* Of one with containers that may run. */
static void look_at_live(const struct state *state, const struct demand *demand,
                         const struct allocation *holder, struct look *look, struct holders *ask)
{
    if (said_to_run(state, demand, holder)) {
        look->step = LOOK_REFUSE;
        look->reason.kind = REASON_HOLDER_RUNS;
        return;
    }
    look->reason.kind = REASON_HOLDER_ASKED;
    if (state->now_ms < holder->said.again_ms)
        look->again_ms = holder->said.again_ms;
    else if (!holder->said.check)
        add(ask, holder);
}

struct look holders_look_at(const struct state *state, const struct demand *demand,
                            const struct allocation *holder, const char *id, struct holders *ask)
{
    enum allocation_life life = allocation_life(holder);
    struct look look = {.step = LOOK_WAIT,
                        .reason = {.kind = life == ALLOCATION_UNKNOWN ? REASON_HOLDER_UNKNOWN
                                                                      : REASON_HOLDER_CREATED,
                                   .resource = holder->resource,
                                   .holder = holder}};

    if (life == ALLOCATION_IDLE ||
        (life == ALLOCATION_UNKNOWN && handed_on_by_kubelet(demand, holder)))
        return (struct look){0};
    ids_add(&look.reason.ids, id);
    if (life == ALLOCATION_LIVE)
        look_at_live(state, demand, holder, &look, ask);
    return look;
}

struct look holders_of_ids(const struct state *state, const struct wanted *wanted,
                           const struct ids *ids, struct holders *ask)
{
    struct look look = {0};

    for (size_t i = 0; wanted->settings->exclusive && i < ids->len; i++) {
        const struct owners *holders =
            allocations_holders(&state->allocations, wanted->want->resource, ids->v[i]);

        for (size_t h = 0; h < owners_len(holders); h++) {
            if (holders->v[h] != wanted->has &&
                !share_claims(state, wanted, holders->v[h], ids->v[i]))
                look = holders_look_at(state, wanted->demand, holders->v[h], ids->v[i], ask);
            if (look.step != LOOK_GO)
                return look;
        }
    }
    return look;
}

struct look holders_of_pod(const struct state *state, const struct wanted *wanted,
                           struct holders *ask)
{
    struct look look = {0};

    if (!wanted->settings->exclusive || wanted->want->claimed)
        return look; /* nothing is handed on */
    for (const struct allocation *a =
             allocations_of_pod(&state->allocations, wanted->demand->pod_uid);
         a; a = a->pod_next) {
        struct look of_one;

        if (a == wanted->has || strcmp(a->resource, wanted->want->resource) != 0 ||
            allocation_life(a) != ALLOCATION_LIVE)
            continue;
        of_one = holders_look_at(state, wanted->demand, a, a->ids.v[0], ask);
        if (of_one.step == LOOK_WAIT) {
            look_fini(&look);
            look = of_one;
        } else {
            look_fini(&of_one); /* it runs, and keeps what it has */
        }
    }
    return look;
}

bool holders_handed_on(const struct state *state, const struct wanted *wanted)
{
    const struct allocation *has = wanted->has;

    for (size_t i = 0; i < has->ids.len; i++) {
        const struct owners *holders =
            allocations_holders(&state->allocations, has->resource, has->ids.v[i]);

        for (size_t h = 0; h < owners_len(holders); h++) {
            const struct allocation *holder = holders->v[h];

            if (holder != has && same_pod(wanted->demand, holder) &&
                said_to_run(state, wanted->demand, holder) &&
                !share_claims(state, wanted, holder, has->ids.v[i]))
                return true;
        }
    }
    return false;
}

bool holders_promised(const struct state *state, const struct wanted *wanted)
{
    const struct demand *demand = wanted->demand;
    const struct ids *ids = &wanted->has->ids;

    for (size_t i = 0; wanted->settings->exclusive && i < ids->len; i++) {
        if (ids_contain_sorted(&wanted->has->asked, ids->v[i]))
            continue; /* which the kubelet has given to this one, beside what is replaced */
        if (kubelet_promised(state, wanted->want->resource, ids->v[i], demand->pod_uid,
                             demand->container))
            return true;
    }
    return false;
}

bool holders_stand_in(const struct allocation *holder, const char *id)
{
    return allocation_replaced(holder) && !ids_contain_sorted(&holder->asked, id) &&
           allocation_life(holder) != ALLOCATION_IDLE;
}

bool holders_displaced(const struct state *state, const struct wanted *wanted, const char *id)
{
    const struct owners *holders =
        allocations_holders(&state->allocations, wanted->want->resource, id);
    size_t i = 0;

    while (i < owners_len(holders) &&
           (holders->v[i] == wanted->has || !holders_stand_in(holders->v[i], id)))
        i++;
    return wanted->settings->exclusive && i < owners_len(holders);
}

bool holders_share(const struct state *state, const struct allocation *one,
                   const struct allocation *other, const char *id)
{
    return one->claimed && other->claimed &&
           lifted_claims_shared(state, one->resource, id, &one->by, &other->by);
}

bool holders_keeps(const struct state *state, const struct allocation *holder)
{
    return allocation_life(holder) != ALLOCATION_IDLE || !facts_pod_over(state, holder->pod_uid);
}

bool holders_keeps_asked(const struct state *state, const struct allocation *asker)
{
    return allocation_promised(asker) && !facts_pod_over(state, asker->pod_uid);
}

/* Whether the kubelet has given it to another container of a pod that is not over, which has
 * another in its place: it is still theirs in the kubelet's books. `container` NULL: to another
 * pod's. */
static bool asked_for(const struct state *state, const char *resource, const char *id,
                      const char *pod_uid, const char *container)
{
    const struct owners *askers = allocations_askers(&state->allocations, resource, id);

    for (size_t i = 0; i < owners_len(askers); i++) {
        const struct allocation *asker = askers->v[i];

        if (holders_keeps_asked(state, asker) &&
            (strcmp(asker->pod_uid, pod_uid) != 0 ||
             (container && strcmp(asker->container, container) != 0)))
            return true;
    }
    return false;
}

/* Whether it is to be in the place of what another container has lost. */
static bool is_meant(const struct state *state, const char *resource, const char *id,
                     const char *pod_uid, const char *container)
{
    const struct replacing *meant = replacings_meant(&state->replacings, resource, id);

    return meant &&
           (strcmp(meant->pod_uid, pod_uid) != 0 || strcmp(meant->container, container) != 0);
}

/* Whether the kubelet has handed on to this container what it gave the holder: what that has in the
 * place of it is handed on, too. */
static bool handed_on(const struct wanted *wanted, const struct allocation *holder)
{
    const struct ids *asked = allocation_asked(holder);
    size_t i = 0;

    if (!wanted->want->token || allocation_life(holder) != ALLOCATION_UNKNOWN ||
        !handed_on_by_kubelet(wanted->demand, holder))
        return false;
    while (i < asked->len && !ids_contain_sorted(&wanted->want->ids, asked->v[i]))
        i++;
    return i < asked->len;
}

bool holders_none(const struct state *state, const struct wanted *wanted, const char *id,
                  bool *reused)
{
    const struct demand *demand = wanted->demand;
    const char *resource = wanted->want->resource, *container = demand->container;
    const struct owners *holders;

    *reused = false;
    if (!wanted->settings->exclusive)
        return true;
    holders = allocations_holders(&state->allocations, resource, id);
    for (size_t i = 0; i < owners_len(holders); i++) {
        const struct allocation *holder = holders->v[i];

        if (holder == wanted->has)
            continue;
        if (allocation_life(holder) != ALLOCATION_IDLE && !handed_on(wanted, holder))
            return false;
        if (same_pod(demand, holder))
            *reused = true;
        else if (holders_keeps(state, holder))
            return false;
    }
    if (ids_contain_sorted(&wanted->want->ids, id))
        container = NULL; /* the kubelet has handed it on to this one */
    return !asked_for(state, resource, id, demand->pod_uid, container) &&
           !is_meant(state, resource, id, demand->pod_uid, demand->container) &&
           !kubelet_promised(state, resource, id, demand->pod_uid, container);
}

bool holders_nobody(const struct state *state, const char *resource, const char *id)
{
    const struct owners *holders = allocations_holders(&state->allocations, resource, id);

    for (size_t i = 0; i < owners_len(holders); i++) {
        if (holders_keeps(state, holders->v[i]))
            return false;
    }
    return !asked_for(state, resource, id, "", "") && !is_meant(state, resource, id, "", "") &&
           !kubelet_promised(state, resource, id, "", "");
}

struct look holders_listed(const struct state *state, const struct wanted *wanted)
{
    if ((state->listing.listed && !state->listing.rows_lost) || !wanted->settings->exclusive)
        return (struct look){0};
    return (struct look){
        .step = LOOK_WAIT,
        .reason = {.kind = state->listing.listed ? REASON_UNLISTED_AGAIN : REASON_UNLISTED,
                   .resource = wanted->want->resource}};
}
