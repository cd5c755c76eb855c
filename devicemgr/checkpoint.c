#include "devicemgr/checkpoint.h"

#include <assert.h>

#include "devicemgr/core.h"
#include "devicemgr/limits.h"
#include "devicemgr/record.h"

#define KEYS_LEN 3

struct dirty_row {
    enum devicemgr_record_kind kind;
    char *parts[KEYS_LEN];
    char *key;
    size_t key_bytes;
    bool stored; /* the store may have a row under this key */
    bool put;    /* of one that is carried: with a value, else as deleted */
    UT_hash_handle hh;
};

static const char *const KIND_NAMES[] = {
    [DEVICEMGR_RECORD_RESOURCE] = "resource",
    [DEVICEMGR_RECORD_ALLOCATION] = "allocation",
    [DEVICEMGR_RECORD_POD] = "pod",
};

static void row_free(struct dirty_row *row)
{
    for (size_t i = 0; i < KEYS_LEN; i++)
        free(row->parts[i]);
    free(row->key);
    free(row);
}

static void rows_clear(struct dirty_row **rows)
{
    struct dirty_row *row, *next;

    HASH_ITER(hh, *rows, row, next)
    {
        HASH_DEL(*rows, row);
        row_free(row);
    }
}

void checkpoint_fini(struct checkpoint *checkpoint)
{
    rows_clear(&checkpoint->dirty);
    rows_clear(&checkpoint->carried);
    free(checkpoint->error);
}

static struct dirty_row *find_dirty(struct devicemgr *mgr, const char *key, size_t key_bytes)
{
    struct dirty_row *row;

    HASH_FIND(hh, mgr->checkpoint.dirty, key, key_bytes, row);
    return row;
}

/* `parts` has KEYS_LEN. */
static struct dirty_row *ensure_dirty(struct devicemgr *mgr, enum devicemgr_record_kind kind,
                                      const char *const *parts)
{
    const char *all[] = {KIND_NAMES[kind], parts[0], parts[1], parts[2]};
    size_t key_bytes;
    char *key = mem_key(all, KEYS_LEN + 1, &key_bytes);
    struct dirty_row *row = find_dirty(mgr, key, key_bytes);

    if (row) {
        free(key);
        return row;
    }
    row = mem_alloc(1, sizeof *row);
    row->kind = kind;
    for (size_t i = 0; i < KEYS_LEN; i++)
        row->parts[i] = mem_strdup(parts[i]);
    row->key = key;
    row->key_bytes = key_bytes;
    HASH_ADD_KEYPTR(hh, mgr->checkpoint.dirty, row->key, row->key_bytes, row);
    return row;
}

/* Where a thing remembers that the store may have its row; NULL: there is no such thing. */
static bool *find_stored(struct devicemgr *mgr, enum devicemgr_record_kind kind,
                         const char *const *parts)
{
    struct allocation *allocation;
    struct resource *resource;
    struct pod *pod;

    switch (kind) {
    case DEVICEMGR_RECORD_RESOURCE:
        resource = resources_find(mgr->resources, parts[0]);
        return resource ? &resource->stored : NULL;
    case DEVICEMGR_RECORD_ALLOCATION:
        allocation = allocations_find(&mgr->allocations, parts[0], parts[1], parts[2]);
        return allocation ? &allocation->stored : NULL;
    case DEVICEMGR_RECORD_POD:
        pod = pods_find(&mgr->pods, parts[0]);
        return pod ? &pod->stored : NULL;
    }
    return NULL;
}

static void touch(struct devicemgr *mgr, enum devicemgr_record_kind kind, const char *k0,
                  const char *k1, const char *k2)
{
    const char *const parts[KEYS_LEN] = {k0, k1, k2};
    struct dirty_row *row = ensure_dirty(mgr, kind, parts);
    const bool *stored = find_stored(mgr, kind, parts);

    row->stored = row->stored || (stored && *stored);
}

void checkpoint_touch_resource(struct devicemgr *mgr, const char *resource, bool due)
{
    touch(mgr, DEVICEMGR_RECORD_RESOURCE, resource, "", "");
    mgr->checkpoint.due = mgr->checkpoint.due || due;
}

void checkpoint_touch_allocation(struct devicemgr *mgr, const struct allocation *allocation)
{
    touch(mgr, DEVICEMGR_RECORD_ALLOCATION, allocation->pod_uid, allocation->container,
          allocation->resource);
    mgr->checkpoint.due = true;
}

void checkpoint_touch_pod(struct devicemgr *mgr, const char *pod_uid)
{
    touch(mgr, DEVICEMGR_RECORD_POD, pod_uid, "", "");
}

static struct allocation *row_allocation(struct devicemgr *mgr, const struct dirty_row *row)
{
    if (row->kind != DEVICEMGR_RECORD_ALLOCATION)
        return NULL;
    return allocations_find(&mgr->allocations, row->parts[0], row->parts[1], row->parts[2]);
}

/* Whether the checkpoint has, or is about to have, an allocation of the pod: a reservation that is
 * given up takes no row of its pod along. */
static bool pod_kept(const struct devicemgr *mgr, const struct pod *pod)
{
    const struct allocation *a = allocations_of_pod(&mgr->allocations, pod->uid);

    while (a && a->row == ALLOCATION_RESERVED)
        a = a->pod_next;
    return a != NULL;
}

/* The resource whose row is to be kept; NULL: none. */
static const struct resource *row_resource(const struct devicemgr *mgr, const struct dirty_row *row)
{
    const struct resource *resource = row->kind == DEVICEMGR_RECORD_RESOURCE
                                          ? resources_find(mgr->resources, row->parts[0])
                                          : NULL;

    return resource && !resource->builtin && resource->endpoint.socket_good ? resource : NULL;
}

/* Likewise. */
static const struct pod *row_pod(const struct devicemgr *mgr, const struct dirty_row *row)
{
    const struct pod *pod =
        row->kind == DEVICEMGR_RECORD_POD ? pods_find(&mgr->pods, row->parts[0]) : NULL;

    return pod && pod_kept(mgr, pod) ? pod : NULL;
}

/* NULL: there is nothing to be kept under this key. */
static uint8_t *row_value(struct devicemgr *mgr, const struct dirty_row *row, size_t *bytes_len)
{
    struct allocation *allocation = row_allocation(mgr, row);
    const struct resource *resource;
    const struct pod *pod;

    *bytes_len = 0;
    if (allocation && (allocation_durable(allocation) || allocation->row == ALLOCATION_CARRIED))
        return record_of_allocation(allocation, mgr->settings.boot_id, bytes_len);
    resource = row_resource(mgr, row);
    if (resource)
        return record_of_resource(resource, mgr->settings.boot_id, bytes_len);
    pod = row_pod(mgr, row);
    return pod ? record_of_pod(pod, mgr->now_ms, bytes_len) : NULL;
}

/* Whether there is something to be kept under this key, or will be when a commit begins. */
static bool row_wanted(struct devicemgr *mgr, const struct dirty_row *row)
{
    const struct allocation *a = row_allocation(mgr, row);

    return (a && a->row != ALLOCATION_RESERVED) || row_resource(mgr, row) || row_pod(mgr, row);
}

uint64_t checkpoint_next_ms(const struct devicemgr *mgr)
{
    return mgr->checkpoint.retry_ms > 0 ? mgr->checkpoint.retry_ms : UINT64_MAX;
}

void checkpoint_tick(struct devicemgr *mgr)
{
    if (mgr->now_ms < checkpoint_next_ms(mgr))
        return;
    mgr->checkpoint.retry_ms = 0;
    mgr->checkpoint.due = true;
}

bool checkpoint_ready(const struct devicemgr *mgr)
{
    return mgr->checkpoint.due && mgr->checkpoint.dirty && !mgr->checkpoint.commit;
}

static void note_stored(struct devicemgr *mgr, const struct dirty_row *row, bool is_stored)
{
    bool *stored = find_stored(mgr, row->kind, (const char *const *)row->parts);

    if (stored)
        *stored = is_stored;
}

uint64_t checkpoint_begin(struct devicemgr *mgr)
{
    struct checkpoint *checkpoint = &mgr->checkpoint;
    uint64_t commit = core_number(mgr);
    struct action *action = action_push(&mgr->actions, ACTION_COMMIT, commit);

    assert(!checkpoint->commit && !checkpoint->carried);
    checkpoint->commit = commit;
    checkpoint->carried = checkpoint->dirty;
    checkpoint->dirty = NULL;
    checkpoint->due = false;
    checkpoint->retry_ms = 0;
    action->rows = mem_alloc(HASH_COUNT(checkpoint->carried), sizeof *action->rows);
    for (struct dirty_row *row = checkpoint->carried; row; row = row->hh.next) {
        struct action_row *out = &action->rows[action->rows_len++];
        struct allocation *allocation = row_allocation(mgr, row);

        if (allocation && allocation->row == ALLOCATION_QUEUED)
            allocation_carry(allocation, commit);
        out->kind = row->kind;
        for (size_t i = 0; i < KEYS_LEN; i++)
            out->key[i] = mem_strdup(row->parts[i]);
        out->value = row_value(mgr, row, &out->value_bytes);
        row->put = out->value != NULL;
        note_stored(mgr, row, row->stored || row->put);
    }
    return commit;
}

/* The store has what it had before: whatever became of the row meanwhile is to be written, if there
 * is anything to write or to delete. */
static void take_back_row(struct devicemgr *mgr, const struct dirty_row *row)
{
    struct dirty_row *dirty;

    note_stored(mgr, row, row->stored);
    if (row->stored || row_wanted(mgr, row)) {
        ensure_dirty(mgr, row->kind, (const char *const *)row->parts)->stored = row->stored;
        return;
    }
    dirty = find_dirty(mgr, row->key, row->key_bytes);
    if (!dirty)
        return;
    HASH_DEL(mgr->checkpoint.dirty, dirty);
    row_free(dirty);
}

static void finish_row(struct devicemgr *mgr, const struct dirty_row *row, uint64_t commit,
                       bool durable)
{
    struct allocation *allocation = row_allocation(mgr, row);

    if (durable)
        note_stored(mgr, row, row->put);
    if (row->kind == DEVICEMGR_RECORD_ALLOCATION)
        wake_pod(mgr, row->parts[0]); /* the container's next create waits for it */
    if (!allocation || allocation->commit != commit)
        return;
    if (durable)
        allocation_confirm(allocation, mgr->settings.boot_id);
    else if (allocation_durable(allocation))
        allocation_revert(allocation);
    else
        core_remove_allocation(mgr, allocation);
}

/* The store may be full for hours: its attempts get rarer, and those of new creates come besides.
 */
static void retry_later(struct devicemgr *mgr)
{
    struct checkpoint *checkpoint = &mgr->checkpoint;
    uint64_t pause_ms = 2 * checkpoint->pause_ms;

    if (pause_ms < COMMIT_RETRY_MS_MIN)
        pause_ms = COMMIT_RETRY_MS_MIN;
    if (pause_ms > COMMIT_RETRY_MS_MAX)
        pause_ms = COMMIT_RETRY_MS_MAX;
    checkpoint->pause_ms = pause_ms;
    checkpoint->retry_ms = mgr->now_ms + pause_ms;
}

static void rows_unstored(struct dirty_row *rows)
{
    for (struct dirty_row *row = rows; row; row = row->hh.next)
        row->stored = false;
}

void devicemgr_store_reset(struct devicemgr *mgr, uint64_t now_ms)
{
    struct checkpoint *checkpoint = &mgr->checkpoint;

    core_at(mgr, now_ms);
    rows_unstored(checkpoint->dirty);
    rows_unstored(checkpoint->carried);
    for (struct pod *pod = mgr->pods.by_uid; pod; pod = pod->hh.next)
        pod->stored = false;
    for (struct resource *r = mgr->resources; r; r = r->hh.next) {
        r->stored = false;
        checkpoint_touch_resource(mgr, r->name, true);
    }
    for (struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next) {
        a->stored = false;
        checkpoint_touch_allocation(mgr, a);
        checkpoint_touch_pod(mgr, a->pod_uid);
    }
}

/* A store may fail for hours: it is said when that begins, when it is for another reason, and when
 * it ends. */
static void log_error(struct devicemgr *mgr, const char *error)
{
    struct checkpoint *checkpoint = &mgr->checkpoint;
    struct text text = {0};

    if (error && (!checkpoint->error || strcmp(checkpoint->error, error) != 0)) {
        text_add(&text, "state cannot be stored: ");
        text_add_words(&text, error, TEXT_WORDS_BYTES_MAX);
        core_log(mgr, LEVEL_ERROR, &text);
    } else if (!error && checkpoint->error) {
        text_add(&text, "state can be stored again");
        core_log(mgr, LEVEL_INFO, &text);
    }
    free(checkpoint->error);
    checkpoint->error = error ? mem_strdup(error) : NULL;
}

bool checkpoint_finish(struct devicemgr *mgr, uint64_t commit, const char *error)
{
    struct checkpoint *checkpoint = &mgr->checkpoint;

    if (commit != checkpoint->commit)
        return false;
    checkpoint->commit = 0;
    for (struct dirty_row *row = checkpoint->carried; row; row = row->hh.next)
        finish_row(mgr, row, commit, !error);
    for (struct dirty_row *row = checkpoint->carried; error && row; row = row->hh.next)
        take_back_row(mgr, row);
    rows_clear(&checkpoint->carried);
    log_error(mgr, error);
    if (error && checkpoint->dirty)
        retry_later(mgr);
    if (!error)
        checkpoint->pause_ms = 0;
    return true;
}
