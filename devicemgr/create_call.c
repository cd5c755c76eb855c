#include "devicemgr/create.h"

#include <stdio.h>

#include "devicemgr/options.h"

/* One call on a plugin under way. */
struct call {
    uint64_t number;
    enum call_kind kind;
    uint64_t create;
    size_t item;
    uint64_t endpoint;
    char *socket_name;
    uint64_t generation; /* of the resource when it was made */
    uint64_t started_ms;
    UT_hash_handle hh;
};

static const char *const CALL_NAMES[] = {
    [CALL_ALLOCATE] = "Allocate",
    [CALL_PREFER] = "GetPreferredAllocation",
    [CALL_PRESTART] = "PreStartContainer",
};

static const enum action_kind CALL_ACTIONS[] = {
    [CALL_ALLOCATE] = ACTION_ALLOCATE,
    [CALL_PREFER] = ACTION_PREFER,
    [CALL_PRESTART] = ACTION_PRESTART,
};

static struct call *find(const struct devicemgr *mgr, uint64_t number)
{
    struct call *call;

    HASH_FIND(hh, mgr->calls, &number, sizeof number, call);
    return call;
}

static void call_free(struct devicemgr *mgr, struct call *call)
{
    HASH_DEL(mgr->calls, call);
    free(call->socket_name);
    free(call);
}

size_t calls_len(const struct devicemgr *mgr)
{
    return HASH_COUNT(mgr->calls);
}

void calls_fini(struct devicemgr *mgr)
{
    struct call *call, *next;

    HASH_ITER(hh, mgr->calls, call, next)
    {
        call_free(mgr, call);
    }
}

static uint64_t cut_timeout(const struct devicemgr *mgr, const struct create *create,
                            uint64_t timeout_ms)
{
    uint64_t left_ms = create->limit_ms > mgr->now_ms ? create->limit_ms - mgr->now_ms : 1;

    return timeout_ms < left_ms ? timeout_ms : left_ms;
}

struct action *create_call(struct devicemgr *mgr, struct create *create, size_t index,
                           enum call_kind kind, const struct resource *resource,
                           const struct ids *ids, uint64_t timeout_ms)
{
    struct call *call = mem_alloc(1, sizeof *call);
    struct action *action;

    call->number = core_number(mgr);
    call->kind = kind;
    call->create = create->number;
    call->item = index;
    call->endpoint = resource->endpoint.number;
    call->socket_name = mem_strdup(resource->endpoint.socket_name);
    call->generation = resource->generation;
    call->started_ms = mgr->now_ms;
    HASH_ADD(hh, mgr->calls, number, sizeof call->number, call);
    create->items[index].call = call->number;
    action = action_push(&mgr->actions, CALL_ACTIONS[kind], call->endpoint);
    action->call = call->number;
    action->timeout_ms = cut_timeout(mgr, create, timeout_ms);
    ids_copy(&action->ids, ids->v, ids->len);
    return action;
}

void create_call_cancel(struct devicemgr *mgr, struct create_item *item)
{
    if (!item->call)
        return;
    action_push(&mgr->actions, ACTION_CALL_CANCEL, 0)->call = item->call;
    call_free(mgr, find(mgr, item->call));
    item->call = 0;
}

struct look create_call_look(const struct devicemgr *mgr, const struct create *create, size_t index)
{
    const struct call *call = find(mgr, create->items[index].call);

    return (struct look){.step = LOOK_ASK,
                         .reason = {.kind = REASON_CALL_UNANSWERED,
                                    .resource = create->demand.items[index].want->resource,
                                    .call = CALL_NAMES[call->kind],
                                    .socket_name = call->socket_name,
                                    .since_ms = call->started_ms}};
}

void calls_drop(struct devicemgr *mgr, uint64_t endpoint)
{
    struct call *call, *next;

    HASH_ITER(hh, mgr->calls, call, next)
    {
        if (call->endpoint != endpoint)
            continue;
        struct create *create = creates_find(mgr, call->create);

        create->items[call->item].call = 0;
        if (call->kind == CALL_PREFER) /* nothing is preferred, then */
            create->demand.items[call->item].prefer = DEMAND_PREFER_ANSWERED;
        call_free(mgr, call);
    }
}

/* The create and item a result belongs to; NULL: of no interest any more. The call is over. */
static struct create *finish(struct devicemgr *mgr, uint64_t number, enum call_kind kind,
                             struct call *ended)
{
    struct call *call = find(mgr, number);
    struct create *create;

    if (!call || call->kind != kind)
        return NULL;
    create = creates_find(mgr, call->create);
    create->items[call->item].call = 0;
    *ended = *call;
    ended->socket_name = mem_strdup(call->socket_name);
    call_free(mgr, call);
    wake_create(mgr, create);
    return create;
}

/* The plugin did not do what it was asked: the create is refused in its words. */
static void fail(struct devicemgr *mgr, struct create *create, const struct call *call, int code,
                 const char *message)
{
    const char *resource = create->demand.items[call->item].want->resource;
    const struct allocation *allocation = allocations_find(
        &mgr->allocations, create->demand.pod_uid, create->demand.container, resource);
    struct reason reason = {
        .kind = code == CODE_DEADLINE_EXCEEDED ? REASON_CALL_UNANSWERED : REASON_CALL_FAILED,
        .resource = resource,
        .call = CALL_NAMES[call->kind],
        .socket_name = call->socket_name,
        .since_ms = call->started_ms,
        .words = message && message[0] ? message : NULL,
    };

    if (allocation)
        ids_copy(&reason.ids, allocation->ids.v, allocation->ids.len);
    create_refuse(mgr, create, &reason);
    reason_fini(&reason);
}

void devicemgr_allocated(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, int code,
                         const char *message, const V1beta1__AllocateResponse *response)
{
    struct call call;
    struct create *create;
    struct allocation *allocation;
    char answers[64];

    core_at(mgr, now_ms);
    create = finish(mgr, number, CALL_ALLOCATE, &call);
    if (!create)
        return;
    allocation =
        allocations_find(&mgr->allocations, create->demand.pod_uid, create->demand.container,
                         create->demand.items[call.item].want->resource);
    if (code != CODE_OK) {
        fail(mgr, create, &call, code, message);
    } else if (response->n_container_responses != 1) {
        snprintf(answers, sizeof answers, "it answered for %zu containers instead of one",
                 response->n_container_responses);
        fail(mgr, create, &call, CODE_UNAVAILABLE, answers);
    } else if (allocation) {
        allocation_set_fresh(allocation, options_copy(response->container_responses[0]),
                             call.generation);
    }
    free(call.socket_name);
}

static int compare_ids(const void *id, const void *offered)
{
    return strverscmp(id, *(char *const *)offered);
}

/* What was not offered counts for nothing, also if it is free by now. */
static void note_preferred(struct create_item *item, struct ids *preferred,
                           const V1beta1__ContainerPreferredAllocationResponse *answer)
{
    for (size_t i = 0; item->offered.len > 0 && i < answer->n_deviceids; i++) {
        if (bsearch(answer->deviceids[i], item->offered.v, item->offered.len,
                    sizeof *item->offered.v, compare_ids))
            ids_add(preferred, answer->deviceids[i]);
    }
    ids_fini(&item->offered);
}

void call_preferred(struct devicemgr *mgr, uint64_t number, int code,
                    const V1beta1__PreferredAllocationResponse *response)
{
    struct create *create;
    struct demand_item *item;
    struct call call;

    create = finish(mgr, number, CALL_PREFER, &call);
    if (!create)
        return;
    item = &create->demand.items[call.item];
    item->prefer = DEMAND_PREFER_ANSWERED;
    if (code == CODE_OK && response->n_container_responses == 1)
        note_preferred(&create->items[call.item], &item->preferred,
                       response->container_responses[0]);
    free(call.socket_name);
}

void devicemgr_prestarted(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, int code,
                          const char *message)
{
    struct call call;
    struct create *create;

    core_at(mgr, now_ms);
    create = finish(mgr, number, CALL_PRESTART, &call);
    if (!create)
        return;
    if (code == CODE_OK)
        create->items[call.item].prestarted = call.endpoint;
    else
        fail(mgr, create, &call, code, message);
    free(call.socket_name);
}
