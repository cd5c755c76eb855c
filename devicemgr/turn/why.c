/*
 * Why a container waits, was refused, or has what it has. The rules are asked as a create asks
 * them; nothing here is given a state that it could change.
 */
#include "devicemgr/why.h"

#include <string.h>

#include "devicemgr/machines/create.h"
#include "devicemgr/rules/selection.h"
#include "devicemgr/rules/usable.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr/words/remedy.h"

/* Who asks, about what. */
struct asking {
    const struct devicemgr *mgr;
    const struct state *state; /* with the time of the question */
    const char *pod;
    const char *container;
    void (*each)(void *user, const struct devicemgr_why *why);
    void *user;
};

/* One finding, and what it points to. */
struct found {
    struct text text;
    struct ids ids;
};

/* What is found of one container: of the whole, then of each resource. */
struct answer {
    struct devicemgr_why why;
    struct devicemgr_why_finding *findings;
    struct found *found;
};

/* ---- who is meant ---- */

static bool is_meant(const struct asking *asking, const char *uid, const char *pod_namespace,
                     const char *name, const char *container)
{
    return (!asking->container || strcmp(asking->container, container) == 0) &&
           meant_pod(asking->pod, uid, pod_namespace, name);
}

static bool is_demand_meant(const struct asking *asking, const struct demand *demand)
{
    return is_meant(asking, demand->pod_uid, demand->pod_namespace, demand->pod_name,
                    demand->container);
}

static const struct create *find_pending(const struct asking *asking, const char *uid,
                                         const char *container)
{
    const struct create *create = asking->mgr->creates.by_number;

    while (create && (strcmp(create->demand.pod_uid, uid) != 0 ||
                      strcmp(create->demand.container, container) != 0))
        create = create->hh.next;
    return create;
}

/* ---- what is found ---- */

static void add(const struct asking *asking, struct answer *answer, const struct demand *demand,
                const struct request_item *want, const struct look *look,
                const struct selection_item *selected)
{
    static const enum devicemgr_why_step STEPS[] = {[LOOK_GO] = DEVICEMGR_WHY_GO,
                                                    [LOOK_ASK] = DEVICEMGR_WHY_ASK,
                                                    [LOOK_WAIT] = DEVICEMGR_WHY_WAIT,
                                                    [LOOK_REFUSE] = DEVICEMGR_WHY_REFUSE};
    size_t index = answer->why.findings_len++;
    struct devicemgr_why_finding *finding = &answer->findings[index];
    struct found *found = &answer->found[index];

    finding->step = STEPS[look->step];
    finding->resource = want ? want->resource : NULL;
    finding->asked = want ? want->count : 0;
    if (selected) {
        finding->has = selected->kind == SELECTION_KEEP;
        ids_copy(&found->ids, selected->ids.v, selected->ids.len);
        finding->ids = (const char *const *)found->ids.v;
        finding->ids_len = found->ids.len;
    }
    if (look->step == LOOK_GO)
        return;
    finding->clears = remedy_of(look->reason.kind);
    finding->word = reason_word(look->reason.kind);
    finding->text = found->text.buf;
    if (look->reason.kind == REASON_NONE)
        finding->word = "preference";
    else
        reason_explain(asking->state, demand, &look->reason, &found->text);
}

/* The rules' word on devices that are to be found, or were: of one that is not decided yet, and of
 * one that would come now. */
static void select_one(const struct asking *asking, struct answer *answer,
                       const struct wanted *wanted)
{
    struct selection_item selected = {0};
    struct look look = selection_look_at(asking->state, wanted, &selected);

    if (selected.kind == SELECTION_KEEP) {
        ids_fini(&selected.ids);
        ids_copy(&selected.ids, wanted->has->ids.v, wanted->has->ids.len);
    }
    add(asking, answer, wanted->demand, wanted->want, &look, &selected);
    selection_item_fini(&selected);
    look_fini(&look);
}

/* Of a create that has its devices: whether they can be used, and what is being asked. */
static void look_on(const struct asking *asking, struct answer *answer, const struct create *create,
                    size_t index, const struct wanted *wanted)
{
    struct selection_item selected = {.kind = SELECTION_KEEP};
    const V1beta1__ContainerAllocateResponse *given =
        wanted->has->fresh ? wanted->has->fresh : wanted->has->options;
    struct look look = usable_ids(asking->state, wanted, &wanted->has->ids);

    if (look.step == LOOK_GO && (create->items[index].call || create->items[index].queued_ms > 0))
        look = create_call_look(create, index);
    else if (look.step == LOOK_GO && given)
        look = usable_given(asking->state, wanted, given);
    ids_copy(&selected.ids, wanted->has->ids.v, wanted->has->ids.len);
    add(asking, answer, wanted->demand, wanted->want, &look, &selected);
    selection_item_fini(&selected);
    look_fini(&look);
}

static void look_at_items(const struct asking *asking, struct answer *answer,
                          const struct demand *demand, const struct create *create)
{
    struct wanted *wanted = mem_alloc(demand->request.len, sizeof *wanted);

    wanted_look_up(asking->state, demand, wanted);
    for (size_t i = 0; i < demand->request.len; i++) {
        if (create && create->state != CREATE_SELECTING && wanted[i].has)
            look_on(asking, answer, create, i, &wanted[i]);
        else
            select_one(asking, answer, &wanted[i]);
    }
    free(wanted);
}

/* `create` NULL: none is pending. */
static struct look look_at_store(const struct create *create)
{
    struct look look = {0};

    if (!create || create->state != CREATE_COMMITTING)
        return look;
    look.step = LOOK_ASK;
    look.reason = (struct reason){.kind = REASON_UNSTORED, .since_ms = create->demand.started_ms};
    return look;
}

/* Of one with claims only: there is nothing else that it waits for. */
static void look_at_claims(const struct asking *asking, struct answer *answer,
                           const struct create *create)
{
    struct look look = look_at_store(create);

    if (look.step != LOOK_GO)
        add(asking, answer, &create->demand, NULL, &look, NULL);
    look_fini(&look);
}

/* What concerns the container as a whole. */
static void look_at_whole(const struct asking *asking, struct answer *answer,
                          const struct demand *demand, const struct create *create)
{
    const struct wanted first = {
        .demand = demand,
        .want = &demand->request.items[0],
        .settings = state_settings_of(asking->state, demand->request.items[0].resource)};
    struct look look = {0};

    if (asking->state->unread) {
        look.step = LOOK_REFUSE;
        look.reason = (struct reason){.kind = REASON_ROWS_UNREAD, .words = asking->state->unread};
    } else if (demand->sandbox_id[0] != '\0') {
        look = usable_sandbox(asking->state, &first);
    }
    if (look.step == LOOK_GO)
        look = look_at_store(create);
    if (look.step != LOOK_GO)
        add(asking, answer, demand, NULL, &look, NULL);
    look_fini(&look);
}

/* ---- one container ---- */

static bool is_of(const struct allocation *a, const char *container)
{
    return strcmp(a->container, container) == 0;
}

/* Whether what was refused then was made later, or is asked for no more. */
static bool is_over(const struct state *state, const struct devicemgr_why *why,
                    const struct refusal *refusal)
{
    if (why->pending)
        return false;
    if (refusal->made)
        return true;
    for (const struct allocation *a = allocations_of_pod(&state->allocations, why->pod_uid); a;
         a = a->pod_next) {
        if (is_of(a, why->container) && a->known == ALLOCATION_LIVE &&
            a->known_ms >= refusal->last_ms) /* nobody saw it being made */
            return true;
    }
    return pods_gone(&state->pods, why->pod_uid);
}

static void tell_refusal(const struct asking *asking, struct devicemgr_why *why,
                         const struct refusal *refusal)
{
    if (!refusal)
        return;
    why->refused_word = refusal->word;
    why->refused_text = refusal->text;
    why->refused_clears = refusal->clears;
    why->refused_code = refusal->code;
    why->refused_times = refusal->times;
    why->refused_first_ms_ago = asking->state->now_ms - refusal->first_ms;
    why->refused_last_ms_ago = asking->state->now_ms - refusal->last_ms;
    why->refused_over = is_over(asking->state, why, refusal);
}

static void tell_pending(const struct asking *asking, struct devicemgr_why *why,
                         const struct create *create)
{
    uint64_t now_ms = asking->state->now_ms;

    why->pending = true;
    why->forwarded = create->state == CREATE_FORWARDED;
    why->waited_ms = now_ms - create->demand.started_ms;
    if (create->waiting && create->hold_until_ms > now_ms)
        why->left_ms = create->hold_until_ms - now_ms;
}

/* `create` NULL: none is pending. */
static void tell(const struct asking *asking, const struct demand *demand,
                 const struct create *create)
{
    size_t most = 1 + demand->request.len;
    struct answer answer = {.findings = mem_alloc(most, sizeof *answer.findings),
                            .found = mem_alloc(most, sizeof *answer.found)};
    struct devicemgr_why *why = &answer.why;

    why->pod_uid = demand->pod_uid;
    why->pod_namespace = demand->pod_namespace;
    why->pod_name = demand->pod_name;
    why->container = demand->container;
    why->findings = answer.findings;
    if (create)
        tell_pending(asking, why, create);
    tell_refusal(asking, why,
                 refused_find(&asking->state->refused, demand->pod_uid, demand->container));
    if (demand->read && demand->request.len > 0 && !why->forwarded)
        look_at_whole(asking, &answer, demand, create);
    if (demand->request.len == 0)
        look_at_claims(asking, &answer, create);
    if (demand->read && !asking->state->unread)
        look_at_items(asking, &answer, demand, create);
    asking->each(asking->user, why);
    for (size_t i = 0; i < why->findings_len; i++)
        ids_fini(&answer.found[i].ids);
    free(answer.findings);
    free(answer.found);
}

/* ---- one that has devices ---- */

/* Whether this is the first of its container's, which stands for all. */
static bool is_first(const struct state *state, const struct allocation *a)
{
    const struct allocation *first = allocations_of_pod(&state->allocations, a->pod_uid);

    while (!is_of(first, a->container))
        first = first->pod_next;
    return first == a;
}

static bool has_any(const struct state *state, const char *uid, const char *container)
{
    for (const struct allocation *a = allocations_of_pod(&state->allocations, uid); a;
         a = a->pod_next) {
        if (is_of(a, container) && allocation_life(a) != ALLOCATION_IDLE)
            return true;
    }
    return false;
}

/* What a create of the container would ask for: what it has. Its names are borrowed. */
static void demand_of(const struct state *state, const struct allocation *first,
                      struct demand *demand)
{
    const struct pod *pod = pods_find(&state->pods, first->pod_uid);

    *demand = (struct demand){
        .create = DEMAND_OF_NO_CREATE,
        .sandbox_id = pod && pod->newest ? pod->newest->id : "",
        .pod_uid = first->pod_uid,
        .pod_namespace = pod ? pod->pod_namespace : "",
        .pod_name = pod ? pod->name : "",
        .container = first->container,
        .started_ms = state->now_ms,
    };
    for (const struct allocation *a = first; a; a = a->pod_next) {
        struct request *request = &demand->request;
        struct request_item *item;

        if (!is_of(a, first->container))
            continue;
        request->items = mem_grow(request->items, request->len, sizeof *request->items);
        item = &request->items[request->len++];
        *item = (struct request_item){.resource = mem_strdup(a->resource),
                                      .count = a->ids.len,
                                      .token = !a->own_choice,
                                      .claimed = a->claimed};
        if (item->token)
            ids_copy(&item->ids, allocation_asked(a)->v, allocation_asked(a)->len);
    }
    request_sort(&demand->request);
    demand->read = true;
}

static void tell_holders(const struct asking *asking)
{
    const struct state *state = asking->state;

    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        const struct pod *pod = pods_find(&state->pods, a->pod_uid);
        struct demand demand;

        if (!is_meant(asking, a->pod_uid, pod ? pod->pod_namespace : "", pod ? pod->name : "",
                      a->container) ||
            !is_first(state, a) || find_pending(asking, a->pod_uid, a->container) ||
            (refused_find(&state->refused, a->pod_uid, a->container) &&
             !has_any(state, a->pod_uid, a->container)))
            continue;
        demand_of(state, a, &demand);
        tell(asking, &demand, NULL);
        demand_fini(&demand);
    }
}

/* ---- all that are meant ---- */

static void tell_refused(const struct asking *asking)
{
    const struct refusal *refusal = asking->state->refused.by_key;

    for (; refusal; refusal = refusal->hh.next) {
        const struct demand *demand = &refusal->demand;

        if (is_demand_meant(asking, demand) &&
            !find_pending(asking, demand->pod_uid, demand->container) &&
            !has_any(asking->state, demand->pod_uid, demand->container))
            tell(asking, demand, NULL);
    }
}

void devicemgr_why(const struct devicemgr *mgr, uint64_t now_ms, const char *pod,
                   const char *container, void (*each)(void *user, const struct devicemgr_why *why),
                   void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    const struct asking asking = {
        .mgr = mgr, .state = state, .pod = pod, .container = container, .each = each, .user = user};

    for (const struct create *c = mgr->creates.by_number; c; c = c->hh.next) {
        if (is_demand_meant(&asking, &c->demand))
            tell(&asking, &c->demand, c);
    }
    tell_refused(&asking);
    tell_holders(&asking);
    free(state);
}
