/*
 * The list of pods that are ended from here, or are to be for taints of their devices.
 */
#include <stdlib.h>

#include "devicemgr/lists.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

/* One of both is set. */
struct entry {
    const struct ending *ending;
    const struct eviction *eviction; /* which is not asked for yet */
    const char *key[DEVICEMGR_ENDING_KEY];
};

struct entries {
    const struct devicemgr_which *which;
    struct entry *v;
    size_t len;
};

/* ---- who is in it ---- */

static void add(struct entries *entries, struct entry entry)
{
    const struct devicemgr_which *which = entries->which;

    if ((which->pod_namespace && strcmp(which->pod_namespace, entry.key[0]) != 0) ||
        !meant_pod(which->pod, entry.key[2], entry.key[0], entry.key[1]) ||
        (which->after && meant_order(entry.key, which->after, DEVICEMGR_ENDING_KEY) <= 0))
        return;
    entries->v = mem_grow(entries->v, entries->len, sizeof *entries->v);
    entries->v[entries->len++] = entry;
}

static void add_all(const struct devicemgr *mgr, struct entries *entries)
{
    const struct state *state = &mgr->state;

    for (const struct ending *e = state->endings.by_uid; e; e = e->hh.next)
        add(entries,
            (struct entry){.ending = e, .key = {e->pod_namespace, e->pod_name, e->pod_uid}});
    for (const struct eviction *e = mgr->evicts.by_uid; e; e = e->hh.next) {
        struct entry entry = {.eviction = e, .key = {"", "", e->pod_uid}};

        if (e->state != EVICTION_WAITS || endings_find(&state->endings, e->pod_uid))
            continue;
        meant_names(state, e->pod_uid, &entry.key[0], &entry.key[1]);
        add(entries, entry);
    }
}

static int by_key(const void *a, const void *b)
{
    return meant_order(((const struct entry *)a)->key, ((const struct entry *)b)->key,
                       DEVICEMGR_ENDING_KEY);
}

/* ---- what is said of them ---- */

static void set_due(struct devicemgr_ending_row *row, uint64_t now_ms, uint64_t at_ms)
{
    row->due = at_ms != UINT64_MAX;
    row->due_in_ms = row->due ? time_left(now_ms, at_ms) : 0;
}

static bool tell_waiting(const struct devicemgr *mgr, uint64_t now_ms, const struct entry *entry,
                         bool (*each)(void *user, const struct devicemgr_ending_row *row),
                         void *user)
{
    const struct devicemgr_ending_ask ask = {
        .asker = DEVICEMGR_ASKER_EVICTION, .why = entry->eviction->why, .own_grace = true};
    struct devicemgr_ending_row row = {.pod_namespace = entry->key[0],
                                       .name = entry->key[1],
                                       .uid = entry->key[2],
                                       .state = "waits",
                                       .asks = &ask,
                                       .asks_len = 1};

    set_due(&row, now_ms, evicts_due_ms(&mgr->evicts, entry->eviction));
    return each(user, &row);
}

static bool tell_ending(uint64_t now_ms, const struct entry *entry,
                        bool (*each)(void *user, const struct devicemgr_ending_row *row),
                        void *user)
{
    const struct ending *ending = entry->ending;
    struct devicemgr_ending_ask *asks = mem_alloc(ending->asks_len, sizeof *asks);
    struct devicemgr_ending_row row = {.pod_namespace = entry->key[0],
                                       .name = entry->key[1],
                                       .uid = entry->key[2],
                                       .state = ending_state_name(ending->state),
                                       .asked_ms_ago = ago(now_ms, ending_asked_ms(ending)),
                                       .asks = asks};
    bool more;

    for (const struct ending_ask *is = ending->asks; is; is = is->next)
        asks[row.asks_len++] = (struct devicemgr_ending_ask){
            .asker = end_asker_name(is->asker),
            .why = is->why,
            .own_grace = is->grace_ms == ENDING_POD_GRACE,
            .grace_ms = is->grace_ms == ENDING_POD_GRACE ? 0 : is->grace_ms,
            .here = is->force_local};
    if (ending->state == ENDING_STOPPING && ending->due_ms > 0)
        set_due(&row, now_ms, ending->due_ms);
    more = each(user, &row);
    free(asks);
    return more;
}

void devicemgr_ending_rows(const struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_which *which,
                           bool (*each)(void *user, const struct devicemgr_ending_row *row),
                           void *user)
{
    struct entries entries = {.which = which};
    bool more = true;

    now_ms = later(now_ms, mgr->state.now_ms);
    add_all(mgr, &entries);
    if (entries.len > 1)
        qsort(entries.v, entries.len, sizeof *entries.v, by_key);
    for (size_t i = 0; more && i < entries.len; i++)
        more = entries.v[i].ending ? tell_ending(now_ms, &entries.v[i], each, user)
                                   : tell_waiting(mgr, now_ms, &entries.v[i], each, user);
    free(entries.v);
}
