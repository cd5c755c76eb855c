#include "devicemgr/questions/calls.h"

#include "devicemgr/books/state.h"

static const char *const NAMES[] = {
    [CALL_ALLOCATE] = "Allocate",
    [CALL_PREFER] = "GetPreferredAllocation",
    [CALL_PRESTART] = "PreStartContainer",
};

static const enum action_kind ACTIONS[] = {
    [CALL_ALLOCATE] = ACTION_ALLOCATE,
    [CALL_PREFER] = ACTION_PREFER,
    [CALL_PRESTART] = ACTION_PRESTART,
};

const char *call_name(enum call_kind kind)
{
    return NAMES[kind];
}

void call_free(struct call *call)
{
    ids_fini(&call->ids);
    free(call->socket_name);
    free(call);
}

size_t calls_len(const struct calls *calls)
{
    return HASH_COUNT(calls->by_number);
}

void calls_fini(struct calls *calls)
{
    struct call *call, *next;

    HASH_ITER(hh, calls->by_number, call, next) {
        HASH_DEL(calls->by_number, call);
        call_free(call);
    }
}

static void push(struct state *state, const struct call *call, const struct call_question *asks)
{
    struct action *action = action_push(&state->actions, ACTIONS[call->kind], call->endpoint);

    action->call = call->number;
    action->timeout_ms = asks->timeout_ms;
    ids_copy(&action->ids, asks->ids->v, asks->ids->len);
    action->size = asks->size;
    if (asks->must_include)
        ids_copy(&action->must_include, asks->must_include->v, asks->must_include->len);
}

static size_t count(const struct calls *calls, uint64_t endpoint, enum call_kind kind)
{
    size_t len = 0;

    for (const struct call *call = calls->by_number; call; call = call->hh.next)
        len += call->endpoint == endpoint && call->kind == kind;
    return len;
}

struct call *calls_start(struct calls *calls, const struct call_question *asks,
                         const struct resource *resource)
{
    struct state *state = calls->state;
    struct call *call;

    if (asks->at_once > 0 && count(calls, resource->endpoint.number, asks->kind) >= asks->at_once)
        return NULL;
    call = mem_alloc(1, sizeof *call);
    call->number = state_number(state);
    call->kind = asks->kind;
    call->create = asks->create;
    call->item = asks->item;
    ids_copy(&call->ids, asks->ids->v, asks->ids->len);
    call->endpoint = resource->endpoint.number;
    call->socket_name = mem_strdup(resource->endpoint.socket_name);
    call->generation = resource->generation;
    call->started_ms = state->now_ms;
    HASH_ADD(hh, calls->by_number, number, sizeof call->number, call);
    push(state, call, asks);
    return call;
}

struct call *calls_take(struct calls *calls, uint64_t number, enum call_kind kind)
{
    struct call *call;

    HASH_FIND(hh, calls->by_number, &number, sizeof number, call);
    if (!call || call->kind != kind)
        return NULL;
    HASH_DEL(calls->by_number, call);
    return call;
}

struct call *calls_take_of_endpoint(struct calls *calls, uint64_t endpoint)
{
    struct call *call = calls->by_number;

    while (call && call->endpoint != endpoint)
        call = call->hh.next;
    if (call)
        HASH_DEL(calls->by_number, call);
    return call;
}

void calls_cancel(struct calls *calls, struct call *call)
{
    action_push(&calls->state->actions, ACTION_CALL_CANCEL, 0)->call = call->number;
    HASH_DEL(calls->by_number, call);
    call_free(call);
}
