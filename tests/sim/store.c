#include "tests/sim/store.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/mem.h"
#include "tests/sim/check.h"
#include "tests/sim/world.h"

/* Far over what changes between two commits of this small node. */
#define RECORDS_MAX 200

static const char *const KINDS[] = {"resource", "allocation", "pod"};

static void row_free(struct store_row *row)
{
    for (size_t i = 0; i < 3; i++)
        free((char *)row->record.key[i]);
    free((void *)row->record.value);
    free(row);
}

static void rows_free(struct store_row **rows)
{
    while (*rows) {
        struct store_row *row = *rows;

        *rows = row->next;
        row_free(row);
    }
}

void store_fini(struct store *store)
{
    rows_free(&store->rows);
    rows_free(&store->pending);
}

static struct store_row *row_new(const struct devicemgr_record *from)
{
    struct store_row *row = mem_alloc(1, sizeof *row);
    uint8_t *value = NULL;

    if (from->value) {
        value = mem_alloc(from->value_bytes, 1);
        memcpy(value, from->value, from->value_bytes);
    }
    row->record = (struct devicemgr_record){
        .kind = from->kind, .value = value, .value_bytes = from->value_bytes};
    for (size_t i = 0; i < 3; i++)
        row->record.key[i] = mem_strdup(from->key[i]);
    return row;
}

static bool row_is(const struct store_row *row, enum devicemgr_record_kind kind, const char *k0,
                   const char *k1, const char *k2)
{
    return row->record.kind == kind && strcmp(row->record.key[0], k0) == 0 &&
           strcmp(row->record.key[1], k1) == 0 && strcmp(row->record.key[2], k2) == 0;
}

const struct store_row *store_find(const struct store *store, enum devicemgr_record_kind kind,
                                   const char *k0, const char *k1, const char *k2)
{
    for (const struct store_row *row = store->rows; row; row = row->next) {
        if (row_is(row, kind, k0, k1, k2))
            return row;
    }
    return NULL;
}

size_t store_count(const struct store *store, enum devicemgr_record_kind kind)
{
    size_t count = 0;

    for (const struct store_row *row = store->rows; row; row = row->next)
        count += row->record.kind == kind;
    return count;
}

/* Takes the row. */
static void put(struct store *store, struct store_row *row)
{
    struct store_row **at = &store->rows;

    while (*at && !row_is(*at, row->record.kind, row->record.key[0], row->record.key[1],
                          row->record.key[2]))
        at = &(*at)->next;
    if (*at) {
        struct store_row *old = *at;

        *at = old->next;
        row_free(old);
    }
    if (!row->record.value) {
        row_free(row);
        return;
    }
    row->next = store->rows;
    store->rows = row;
}

static void apply(struct store *store)
{
    while (store->pending) {
        struct store_row *row = store->pending;

        store->pending = row->next;
        put(store, row);
    }
}

static void finish(struct world *w, uint64_t incarnation, uint64_t commit)
{
    bool failed = w->store.mode == STORE_FAILING && rng_percent(&w->rng, 80);

    if (!shim_lives(w, incarnation) || w->store.commit != commit)
        return;
    w->store.commit = 0;
    if (failed)
        rows_free(&w->store.pending);
    else
        apply(&w->store);
    world_note(w, "store: commit %s", failed ? "fails" : "is durable");
    devicemgr_committed(w->shim.core, shim_now_ms(w), commit,
                        failed ? "database or disk is full" : NULL);
    shim_run(w);
}

void store_commit(struct world *w, uint64_t commit, const struct devicemgr_record *records,
                  size_t records_len)
{
    struct store *store = &w->store;
    uint64_t slow_ms = store->mode == STORE_SLOW ? STORE_SLOW_MS_MAX : 200;

    check_that(w, store->commit == 0, "one commit is under way at a time");
    check_that(w, records_len > 0 && records_len <= RECORDS_MAX, "a commit has %zu rows",
               records_len);
    rows_free(&store->pending);
    for (size_t i = 0; i < records_len; i++) {
        struct store_row *row = row_new(&records[i]);

        world_note(w, "store: %s %s %s %s %s", records[i].value ? "write" : "delete",
                   KINDS[records[i].kind], records[i].key[0], records[i].key[1], records[i].key[2]);
        if (!records[i].value && records[i].kind == DEVICEMGR_RECORD_ALLOCATION)
            check_freed(w, records[i].key[0], records[i].key[1], records[i].key[2]);
        row->next = store->pending;
        store->pending = row;
    }
    store->commit = commit;
    world_after(w, rng_delay_ms(&w->rng, slow_ms), finish, w->shim.incarnation, commit);
}

void store_lose(struct world *w)
{
    world_note(w, "store: set aside, all is lost");
    rows_free(&w->store.rows);
    memset(w->kubelet.owner, 0, sizeof w->kubelet.owner);
}

void store_crash(struct world *w)
{
    if (w->store.commit && rng_percent(&w->rng, 50))
        apply(&w->store);
    rows_free(&w->store.pending);
    w->store.commit = 0;
}
