/*
 * What the plugins are asked for a create, and what they answer.
 */
#include <string.h>

#include "devicemgr/machines/create.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/options.h"

/* With less time left who has waited for a turn has it no more: the plugin would be asked in vain,
 * and for the next one while it goes on with that. */
#define TURN_LEFT_MS 1000

static uint64_t cut_timeout(const struct create *create, uint64_t now_ms, uint64_t timeout_ms)
{
    uint64_t left_ms = create->limit_ms > now_ms ? create->limit_ms - now_ms : 1;

    return earlier(timeout_ms, left_ms);
}

void create_call(struct creates *creates, struct create *create, size_t index,
                 const struct resource *resource, struct call_question asks)
{
    struct create_item *item = &create->items[index];
    uint64_t timeout_ms = cut_timeout(create, creates->state->now_ms, asks.timeout_ms);

    if (item->call || (item->queued_ms > 0 && timeout_ms < earlier(asks.timeout_ms, TURN_LEFT_MS)))
        return;
    asks.create = create->number;
    asks.item = index;
    asks.timeout_ms = timeout_ms;
    item->call = calls_start(creates->calls, &asks, resource);
    if (item->call)
        item->queued_ms = 0;
    else if (item->queued_ms == 0)
        item->queued_ms = creates->state->now_ms;
}

struct look create_call_look(const struct create *create, size_t index)
{
    const struct create_item *item = &create->items[index];
    const struct call *call = item->call;
    const char *resource = create->demand.request.items[index].resource;

    if (!call)
        return (struct look){.step = LOOK_ASK,
                             .reason = {.kind = REASON_CALL_QUEUED,
                                        .resource = resource,
                                        .since_ms = item->queued_ms}};
    return (struct look){.step = LOOK_ASK,
                         .reason = {.kind = REASON_CALL_UNANSWERED,
                                    .resource = resource,
                                    .call = call_name(call->kind),
                                    .socket_name = call->socket_name,
                                    .since_ms = call->started_ms}};
}

void creates_endpoint_ended(struct creates *creates, uint64_t endpoint)
{
    struct call *call;

    while ((call = calls_take_of_endpoint(creates->calls, endpoint))) {
        struct create *create = creates_find(creates, call->create);

        create->items[call->item].call = NULL;
        if (call->kind == CALL_PREFER) /* nothing is preferred, then */
            create->demand.request.items[call->item].prefer = PREFER_ANSWERED;
        call_free(call);
    }
}

/* ---- answers ---- */

/* The create whose call this was, which is to be looked at. */
static struct create *answered(struct creates *creates, const struct call *call)
{
    struct create *create = creates_find(creates, call->create);

    create->items[call->item].call = NULL;
    wake_one(&creates->state->wakes, &create->waiter);
    creates_call_over(creates, create->demand.request.items[call->item].resource);
    return create;
}

/* The create is refused for what became of its call. */
static void fail(struct creates *creates, struct create *create, const struct call *call,
                 enum reason_kind kind, const char *words)
{
    const struct allocation *allocation =
        allocations_demanded(&creates->state->allocations, &create->demand, call->item);
    struct reason reason = {
        .kind = kind,
        .resource = create->demand.request.items[call->item].resource,
        .call = call_name(call->kind),
        .socket_name = call->socket_name,
        .since_ms = call->started_ms,
        .words = words && words[0] ? words : NULL,
    };

    if (allocation)
        ids_copy(&reason.ids, allocation->ids.v, allocation->ids.len);
    create_refuse(creates, create, &reason);
    reason_fini(&reason);
}

/* The plugin did not do what it was asked: in its words. */
static void fail_with(struct creates *creates, struct create *create, const struct call *call,
                      int code, const char *message)
{
    fail(creates, create, call,
         code == CODE_DEADLINE_EXCEEDED ? REASON_CALL_UNANSWERED : REASON_CALL_FAILED, message);
}

/* What it answered for the container is kept, if there is room. */
static void keep_answer(struct creates *creates, struct create *create, const struct call *call,
                        const V1beta1__ContainerAllocateResponse *answer)
{
    struct allocations *table = &creates->state->allocations;
    struct allocation *allocation =
        allocations_mutable(table, allocations_demanded(table, &create->demand, call->item));

    if (allocation && !allocations_have_room(table, options_bytes(answer)))
        fail(creates, create, call, REASON_ANSWER_TOO_LARGE, NULL);
    else if (allocation)
        allocation_set_fresh(allocation, options_copy(answer), call->generation);
}

/* One container is asked for. Of several answers the first counts, as with a kubelet: Akri has one
 * for each device. */
void creates_allocated(struct creates *creates, uint64_t number, int code, const char *message,
                       const V1beta1__AllocateResponse *response)
{
    struct call *call = calls_take(creates->calls, number, CALL_ALLOCATE);
    struct create *create;

    if (!call)
        return;
    create = answered(creates, call);
    if (code != CODE_OK) {
        fail_with(creates, create, call, code, message);
    } else if (response->n_container_responses == 0) {
        fail(creates, create, call, REASON_CALL_FAILED, "it answered for no container");
    } else if (!options_are_text(response->container_responses[0])) {
        fail(creates, create, call, REASON_CALL_FAILED, "its answer is not all UTF-8");
    } else {
        keep_answer(creates, create, call, response->container_responses[0]);
    }
    call_free(call);
}

static int compare_ids(const void *id, const void *asked)
{
    return strverscmp(id, *(char *const *)asked);
}

/* What it was not asked about counts for nothing, also if it is free by now. */
static void note_preferred(const struct call *call, struct ids *preferred,
                           const V1beta1__ContainerPreferredAllocationResponse *answer)
{
    for (size_t i = 0; i < answer->n_deviceids; i++) {
        if (bsearch(answer->deviceids[i], call->ids.v, call->ids.len, sizeof *call->ids.v,
                    compare_ids))
            ids_add(preferred, answer->deviceids[i]);
    }
}

void creates_preferred(struct creates *creates, uint64_t number, int code,
                       const V1beta1__PreferredAllocationResponse *response)
{
    struct call *call = calls_take(creates->calls, number, CALL_PREFER);
    struct create *create;
    struct request_item *item;

    if (!call)
        return;
    create = answered(creates, call);
    item = &create->demand.request.items[call->item];
    item->prefer = PREFER_ANSWERED;
    if (code == CODE_OK && response->n_container_responses > 0)
        note_preferred(call, &item->preferred, response->container_responses[0]);
    call_free(call);
}

void creates_prestarted(struct creates *creates, uint64_t number, int code, const char *message)
{
    struct call *call = calls_take(creates->calls, number, CALL_PRESTART);
    struct create *create;

    if (!call)
        return;
    create = answered(creates, call);
    if (code == CODE_OK)
        create->items[call->item].prestarted = call->endpoint;
    else
        fail_with(creates, create, call, code, message);
    call_free(call);
}
