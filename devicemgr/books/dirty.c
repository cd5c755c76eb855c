#include "devicemgr/books/dirty.h"

#include <string.h>

#include "devicemgr/books/state.h"

static const char *const KIND_NAMES[] = {
    [DEVICEMGR_RECORD_RESOURCE] = "resource", [DEVICEMGR_RECORD_ALLOCATION] = "allocation",
    [DEVICEMGR_RECORD_POD] = "pod",           [DEVICEMGR_RECORD_ORDER] = "order",
    [DEVICEMGR_RECORD_DRIVER] = "driver",     [DEVICEMGR_RECORD_CLAIM] = "claim",
    [DEVICEMGR_RECORD_ENDING] = "ending",     [DEVICEMGR_RECORD_SHUTDOWN] = "shutdown",
    [DEVICEMGR_RECORD_LOSS] = "loss",
};

void dirty_row_free(struct dirty_row *row)
{
    free(row->key);
    free(row);
}

void dirty_rows_free(struct dirty_row **rows)
{
    struct dirty_row *row, *next;

    HASH_ITER(hh, *rows, row, next) {
        HASH_DEL(*rows, row);
        dirty_row_free(row);
    }
}

struct dirty_row *dirty_find(const struct dirty *dirty, const char *key, size_t key_bytes)
{
    struct dirty_row *row;

    HASH_FIND(hh, dirty->rows, key, key_bytes, row);
    return row;
}

static char *key_of(enum devicemgr_record_kind kind, const char *const *parts, size_t *key_bytes)
{
    const char *all[] = {KIND_NAMES[kind], parts[0], parts[1], parts[2]};

    return mem_key(all, DIRTY_KEYS_LEN + 1, key_bytes);
}

struct dirty_row *dirty_ensure(struct state *state, enum devicemgr_record_kind kind,
                               const char *const *parts)
{
    size_t key_bytes;
    char *key = key_of(kind, parts, &key_bytes);
    struct dirty_row *row = dirty_find(&state->dirty, key, key_bytes);

    if (row) {
        free(key);
        return row;
    }
    row = mem_alloc(1, sizeof *row);
    row->kind = kind;
    row->key = key;
    mem_parts(key + strlen(key) + 1, row->parts, DIRTY_KEYS_LEN);
    row->key_bytes = key_bytes;
    HASH_ADD_KEYPTR(hh, state->dirty.rows, row->key, row->key_bytes, row);
    return row;
}

struct dirty_thing dirty_thing(struct state *state, const struct dirty_row *row)
{
    const char *const *parts = row->parts;
    struct dirty_thing thing = {0};
    enum order_kind order_kind;

    switch (row->kind) {
    case DEVICEMGR_RECORD_RESOURCE:
        thing.resource = resources_edit(&state->resources, parts[0]);
        thing.stored = thing.resource ? &thing.resource->stored : NULL;
        break;
    case DEVICEMGR_RECORD_ALLOCATION:
        thing.allocation = allocations_edit(&state->allocations, parts[0], parts[1], parts[2]);
        thing.stored = thing.allocation ? &thing.allocation->stored : NULL;
        break;
    case DEVICEMGR_RECORD_POD:
        thing.pod = pods_edit(&state->pods, parts[0]);
        thing.stored = thing.pod ? &thing.pod->stored : NULL;
        break;
    case DEVICEMGR_RECORD_ORDER:
        if (order_kind_find(parts[0], &order_kind))
            thing.order = orders_edit(&state->orders, order_kind, parts[1], parts[2]);
        thing.stored = thing.order ? &thing.order->stored : NULL;
        break;
    case DEVICEMGR_RECORD_DRIVER:
        thing.driver = drivers_edit(&state->drivers, parts[0]);
        thing.stored = thing.driver ? &thing.driver->stored : NULL;
        break;
    case DEVICEMGR_RECORD_CLAIM:
        thing.claim = claims_edit(&state->claims, parts[0], parts[1]);
        thing.stored = thing.claim ? &thing.claim->stored : NULL;
        break;
    case DEVICEMGR_RECORD_LOSS:
        thing.loss = true;
        break;
    case DEVICEMGR_RECORD_SHUTDOWN:
        thing.shutdown = true;
        thing.stored = &state->shutdown.stored;
        break;
    case DEVICEMGR_RECORD_ENDING:
        thing.ending = endings_edit(&state->endings, parts[0]);
        thing.stored = thing.ending ? &thing.ending->stored : NULL;
        break;
    }
    return thing;
}

/* `stored`: whether the store may have its row. */
static void touch(struct state *state, enum devicemgr_record_kind kind, const char *k0,
                  const char *k1, const char *k2, bool stored)
{
    struct dirty_row *row = dirty_ensure(state, kind, (const char *const[]){k0, k1, k2});

    row->stored = row->stored || stored;
}

void dirty_touch_resource(struct state *state, const char *resource, bool due)
{
    const struct resource *is = resources_find(state->resources, resource);

    touch(state, DEVICEMGR_RECORD_RESOURCE, resource, "", "", is && is->stored);
    state->dirty.due = state->dirty.due || due;
}

void dirty_touch_allocation(struct state *state, const struct allocation *allocation)
{
    touch(state, DEVICEMGR_RECORD_ALLOCATION, allocation->pod_uid, allocation->container,
          allocation->resource, allocation->stored);
    state->dirty.due = true;
}

void dirty_touch_pod(struct state *state, const char *pod_uid)
{
    const struct pod *pod = pods_find(&state->pods, pod_uid);

    touch(state, DEVICEMGR_RECORD_POD, pod_uid, "", "", pod && pod->stored);
}

void dirty_touch_pod_gone(struct state *state, const char *pod_uid)
{
    dirty_touch_pod(state, pod_uid);
    state->dirty.due = true;
}

void dirty_touch_order(struct state *state, const struct order *order)
{
    touch(state, DEVICEMGR_RECORD_ORDER, order_kind_name(order->kind), order->resource, order->id,
          order->stored);
    state->dirty.due = true;
}

void dirty_touch_driver(struct state *state, const struct driver *driver)
{
    touch(state, DEVICEMGR_RECORD_DRIVER, driver->name, "", "", driver->stored);
    state->dirty.due = true;
}

void dirty_touch_claim(struct state *state, const struct claim *claim)
{
    touch(state, DEVICEMGR_RECORD_CLAIM, claim->uid, claim->driver, "", claim->stored);
    state->dirty.due = true;
}

bool dirty_claim_unstored(const struct state *state, const struct claim *claim)
{
    size_t key_bytes;
    char *key =
        key_of(DEVICEMGR_RECORD_CLAIM, (const char *[]){claim->uid, claim->driver, ""}, &key_bytes);
    const struct dirty_row *row = dirty_find(&state->dirty, key, key_bytes);

    if (!row)
        HASH_FIND(hh, state->checkpoint.carried, key, key_bytes, row);
    free(key);
    return row;
}

bool dirty_any_of(const struct dirty *dirty, enum devicemgr_record_kind kind, const char *first)
{
    const struct dirty_row *row = dirty->rows;

    while (row && !(row->kind == kind && strcmp(row->parts[0], first) == 0))
        row = row->hh.next;
    return row;
}

void dirty_touch_ending(struct state *state, const struct ending *ending, bool due)
{
    touch(state, DEVICEMGR_RECORD_ENDING, ending->pod_uid, "", "", ending->stored);
    state->dirty.due = state->dirty.due || due;
}

void dirty_touch_shutdown(struct state *state)
{
    touch(state, DEVICEMGR_RECORD_SHUTDOWN, DIRTY_SHUTDOWN_KEY, "", "", state->shutdown.stored);
    state->dirty.due = true;
}

/* The store may have written it by itself. */
void dirty_touch_loss(struct state *state, bool due)
{
    touch(state, DEVICEMGR_RECORD_LOSS, "rows_lost", "", "", true);
    state->dirty.due = state->dirty.due || due;
}
