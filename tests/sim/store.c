#include "tests/sim/store.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/check.h"
#include "tests/sim/heap.h"
#include "tests/sim/move.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* Far over what changes between two commits of this small node. */
#define RECORDS_MAX 200
#define GARBAGE_BYTES_MAX 16

static const char *const KINDS[] = {
    [DEVICEMGR_RECORD_RESOURCE] = "resource", [DEVICEMGR_RECORD_ALLOCATION] = "allocation",
    [DEVICEMGR_RECORD_POD] = "pod",           [DEVICEMGR_RECORD_ORDER] = "order",
    [DEVICEMGR_RECORD_DRIVER] = "driver",     [DEVICEMGR_RECORD_CLAIM] = "claim",
    [DEVICEMGR_RECORD_ENDING] = "ending",     [DEVICEMGR_RECORD_SHUTDOWN] = "shutdown",
    [DEVICEMGR_RECORD_LOSS] = "loss"};

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
    struct store_row *row = heap_alloc(1, sizeof *row);
    uint8_t *value = NULL;

    if (from->value) {
        value = heap_alloc(from->value_bytes, 1);
        memcpy(value, from->value, from->value_bytes);
    }
    row->record = (struct devicemgr_record){
        .kind = from->kind, .value = value, .value_bytes = from->value_bytes};
    for (size_t i = 0; i < 3; i++)
        row->record.key[i] = heap_strdup(from->key[i]);
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

/* The rows are lost, and the file says so from then on. */
static void note_lost(struct store *store)
{
    struct devicemgr_record record = {DEVICEMGR_RECORD_LOSS, {"rows_lost", "", ""}, "1", 1};
    struct store_row *row;

    if (store_find(store, record.kind, record.key[0], "", ""))
        return;
    row = row_new(&record);
    row->next = store->rows;
    store->rows = row;
}

/* Takes the row. */
static void put(struct world *w, struct store_row *row)
{
    struct store *store = &w->store;
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
        claims_row_deleted(w, &row->record);
        row_free(row);
        return;
    }
    claims_row_durable(w, &row->record);
    row->next = store->rows;
    store->rows = row;
}

static void apply(struct world *w)
{
    struct store *store = &w->store;

    while (store->pending) {
        struct store_row *row = store->pending;

        store->pending = row->next;
        put(w, row);
    }
    moves_check_stored(w);
}

/* What a create that is refused for the failure would have had, and nobody else, is not written. */
static bool is_owed(struct world *w, const struct devicemgr_record *record)
{
    const struct claim *claim;

    if (w->store.reset || record->kind == DEVICEMGR_RECORD_RESOURCE ||
        store_find(&w->store, record->kind, record->key[0], record->key[1], record->key[2]))
        return true;
    if (record->kind != DEVICEMGR_RECORD_ALLOCATION || !record->value)
        return false;
    claim = claims_seek(w, (unsigned)strtoul(record->key[0] + 1, NULL, 10),
                        container_sim_find(record->key[1]), resource_sim_find(record->key[2]));
    return claim && claim->kept;
}

static void fail(struct world *w)
{
    dra_judge_by_rows(w);
    w->store.owed = false;
    for (const struct store_row *row = w->store.pending; row; row = row->next)
        w->store.owed = w->store.owed || is_owed(w, &row->record);
    rows_free(&w->store.pending);
    count_add(COUNT_COMMIT_FAILED);
}

static void finish(struct world *w, uint64_t incarnation, uint64_t commit)
{
    struct rng rng = world_draw(w, DRAW_COMMIT_ENDS, 0, 0);
    bool failed = w->store.mode == STORE_FAILING && rng_percent(&rng, 80);

    if (!shim_lives(w, incarnation) || w->store.commit != commit)
        return;
    w->store.commit = 0;
    if (failed)
        fail(w);
    else
        apply(w);
    w->store.failed_ms = failed ? w->now_ms : 0;
    w->store.fails = failed;
    w->store.reset = w->store.reset && failed;
    if (!failed && w->shim.relisted && commit != w->shim.relisted_commit) {
        w->shim.damaged = false;
        kubelet_rows_rebuilt(w);
    }
    world_note(w, "store: commit %s", failed ? "fails" : "is durable");
    if (failed && rng_percent(&rng, 5)) { /* its file was taken away */
        world_note(w, "store: begun anew, it is empty");
        dra_judge_store_reset(w);
        rows_free(&w->store.rows);
        note_lost(&w->store);
        w->store.reset = true;
        devicemgr_store_reset(w->shim.core, shim_now_ms(w));
    }
    devicemgr_committed(w->shim.core, shim_now_ms(w), commit,
                        failed ? "database or disk is full" : NULL);
    shim_run(w);
}

void store_commit(struct world *w, uint64_t commit, const struct devicemgr_record *records,
                  size_t records_len)
{
    struct rng rng = world_draw(w, DRAW_COMMIT, 0, 0);
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
        if (!records[i].value && records[i].kind == DEVICEMGR_RECORD_ALLOCATION)
            check_dropped(w, records[i].key[0], records[i].key[1], records[i].key[2]);
        claims_row_written(w, &records[i]);
        row->next = store->pending;
        store->pending = row;
    }
    store->commit = commit;
    store->begun_ms = w->now_ms;
    store->failed_ms = 0;
    world_after(w, &rng, rng_delay_ms(&rng, slow_ms), finish, w->shim.incarnation, commit);
}

bool store_lose(struct world *w)
{
    bool lost = w->store.rows != NULL;

    world_note(w, "store: set aside, all is lost");
    rows_free(&w->store.rows);
    note_lost(&w->store);
    claims_lost(w);
    return lost;
}

void store_check(struct world *w)
{
    check_that(w,
               !w->store.failed_ms || !w->store.owed ||
                   w->now_ms <= w->store.failed_ms + COMMIT_RETRY_MS_MAX,
               "what could not be stored is tried again");
}

/* Bytes are turned, cut off or added: the value's copy. */
static uint8_t *garble(struct rng *rng, const struct devicemgr_record *record, size_t *bytes_len)
{
    size_t len = record->value_bytes;
    uint8_t *bytes = heap_alloc(len + GARBAGE_BYTES_MAX, 1);

    memcpy(bytes, record->value, len);
    for (uint64_t i = rng_below(rng, 4); i > 0 && len > 0; i--)
        bytes[rng_below(rng, len)] ^= (uint8_t)rng_between(rng, 1, 255);
    if (rng_percent(rng, 30))
        len = rng_below(rng, len + 1);
    for (uint64_t i = rng_percent(rng, 20) ? GARBAGE_BYTES_MAX : 0; i > 0; i--)
        bytes[len++] = (uint8_t)rng_next(rng);
    *bytes_len = len;
    return bytes;
}

/* Whatever the core makes of it: it must not fall. */
static void show_garbled(struct world *w, struct devicemgr *core, const struct store_row *row,
                         struct rng *rng)
{
    struct devicemgr_record record = row->record;
    uint8_t *bytes = garble(rng, &record, &record.value_bytes);
    int r;

    record.value = bytes;
    if (rng_percent(rng, 10))
        record.key[rng_below(rng, 3)] = "other";
    r = devicemgr_restore(core, shim_now_ms(w), &record);
    world_note(w, "store: damaged %s %s %s %s: %s", KINDS[record.kind], record.key[0],
               record.key[1], record.key[2], r < 0 ? "makes no sense" : "would be believed");
    free(bytes);
}

/* The rows are in no order that means anything. */
static struct rng draw_for_row(struct world *w, const struct devicemgr_record *record)
{
    struct rng rng = world_draw(w, DRAW_STORE_DAMAGED, 1, record->kind);

    for (size_t i = 0; i < 3; i++) {
        for (const char *at = record->key[i]; *at; at++)
            rng_mix(&rng, (unsigned char)*at);
    }
    return rng;
}

bool store_damage(struct world *w)
{
    struct devicemgr *scratch = devicemgr_new(&w->shim.settings, NULL, w);
    struct rng rng = world_draw(w, DRAW_STORE_DAMAGED, 0, 0);
    unsigned percent = (unsigned)rng_between(&rng, 5, 60);
    struct store_row **at = &w->store.rows;
    bool damaged = false;

    while (*at) {
        struct store_row *row = *at;
        struct rng draw = draw_for_row(w, &row->record);

        if (row->record.kind == DEVICEMGR_RECORD_LOSS || !rng_percent(&draw, percent)) {
            at = &row->next;
            continue;
        }
        damaged = true;
        show_garbled(w, scratch, row, &draw);
        *at = row->next;
        row_free(row);
    }
    devicemgr_restored(scratch, shim_now_ms(w));
    devicemgr_free(scratch);
    if (damaged) {
        note_lost(&w->store);
        claims_lost(w);
    }
    return damaged;
}

void store_crash(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_STORE_DIES, 0, 0);

    if (w->store.commit)
        count_add(COUNT_COMMIT_CRASH);
    if (w->store.commit && rng_percent(&rng, 50)) {
        apply(w);
        w->store.reset = false;
    }
    rows_free(&w->store.pending);
    w->store.commit = w->store.failed_ms = 0;
    w->store.fails = false;
    if (w->store.reset)
        claims_lost(w);
}
