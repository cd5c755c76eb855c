/*
 * What is counted of it, for metrics: looked up when it is asked for, but for refusals.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/counts.h"
#include "devicemgr/dra.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr/words/claim.h"
#include "devicemgr/words/reason.h"

void devicemgr_refusals(const struct devicemgr *mgr,
                        void (*each)(void *user, const char *reason, int code, uint64_t count),
                        void *user)
{
    for (int kind = REASON_NONE + 1; kind < REASON_KINDS; kind++)
        each(user, reason_word((enum reason_kind)kind), reason_code((enum reason_kind)kind),
             mgr->creates.refused[kind]);
}

size_t devicemgr_creates_held(const struct devicemgr *mgr)
{
    size_t held = 0;

    for (const struct create *c = mgr->creates.by_number; c; c = c->hh.next)
        held += c->waiting;
    return held;
}

void devicemgr_endpoints(const struct devicemgr *mgr, struct devicemgr_endpoints *out)
{
    *out = (struct devicemgr_endpoints){0};
    for (const struct resource *r = mgr->state.resources; r; r = r->hh.next) {
        if (r->builtin)
            continue;
        out->connecting += r->endpoint.state == ENDPOINT_CONNECTING;
        out->active += r->endpoint.state == ENDPOINT_ACTIVE;
        out->grace += r->endpoint.state == ENDPOINT_GRACE;
        out->gone += r->endpoint.state == ENDPOINT_GONE;
    }
}

/* ---- drivers and claims ---- */

static size_t count_claims(const struct state *state, enum claim_state in)
{
    size_t len = 0;

    for (const struct claim *c = state->claims.by_key; c; c = c->hh.next)
        len += c->state == in;
    return len;
}

void devicemgr_dra_count(const struct devicemgr *mgr, struct devicemgr_dra_counts *out)
{
    const struct state *state = &mgr->state;

    *out = (struct devicemgr_dra_counts){
        .drivers = drivers_len(&state->drivers),
        .claims = claims_len(&state->claims),
        .prepared = count_claims(state, CLAIM_PREPARED),
        .owed = count_claims(state, CLAIM_OWED),
        .waits = HASH_COUNT(mgr->tasks.by_number),
        .prepares_done = mgr->tasks.counts.done[TASK_PREPARE],
        .unprepares_done = mgr->tasks.counts.done[TASK_UNPREPARE],
        .unprepares_put_off = mgr->tasks.counts.put_off,
        .wipes = state->drivers.wipes,
    };
    for (const struct driver *d = state->drivers.by_name; d; d = d->hh.next) {
        out->connected += driver_usable(d) != NULL;
        out->moved += d->moved;
        out->gone += !d->moved && !d->instances;
    }
}

void devicemgr_claims_by_state(const struct devicemgr *mgr,
                               void (*each)(void *user, const char *state, size_t claims),
                               void *user)
{
    for (int in = 0; in < CLAIM_STATES; in++) {
        if (claim_state_kept((enum claim_state)in))
            each(user, claim_state_name((enum claim_state)in),
                 count_claims(&mgr->state, (enum claim_state)in));
    }
}

void devicemgr_claims_refused(const struct devicemgr *mgr,
                              void (*each)(void *user, bool unprepare, const char *reason,
                                           uint64_t count),
                              void *user)
{
    const struct task_counts *counts = &mgr->tasks.counts;

    for (int kind = 0; kind < CLAIM_REFUSALS; kind++) {
        const char *word = claim_refusal_word((enum claim_refusal_kind)kind);

        each(user, false, word, counts->refused[TASK_PREPARE][kind]);
        each(user, true, word, counts->refused[TASK_UNPREPARE][kind]);
    }
}

/* ---- held devices ---- */

struct tally {
    const char *resource;
    size_t held;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tally *)a)->resource, ((const struct tally *)b)->resource);
}

static void add(struct tally *tallies, size_t len, const struct allocation *a)
{
    const struct tally wanted = {.resource = a->resource};
    struct tally *found = bsearch(&wanted, tallies, len, sizeof wanted, by_name);

    if (found && allocation_life(a) != ALLOCATION_IDLE)
        found->held += a->ids.len;
}

void devicemgr_held(const struct devicemgr *mgr,
                    void (*each)(void *user, const char *resource, size_t devices), void *user)
{
    const struct state *state = &mgr->state;
    size_t len = HASH_COUNT(state->resources), n = 0;
    struct tally *tallies = mem_alloc(len, sizeof *tallies);

    for (const struct resource *r = state->resources; r; r = r->hh.next)
        tallies[n++].resource = r->name;
    qsort(tallies, len, sizeof *tallies, by_name);
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next)
        add(tallies, len, a);
    for (size_t i = 0; i < len; i++)
        each(user, tallies[i].resource, tallies[i].held);
    free(tallies);
}

static bool is_held_twice(const struct state *state, const struct owners *device)
{
    const struct allocation *first = device->v[0];
    const char *id = owners_part(device, 1);

    if (!state_settings_of(state, first->resource)->exclusive)
        return false;
    for (size_t i = 1; i < device->len; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct allocation *one = device->v[i], *other = device->v[k];

            if (allocation_life(one) == ALLOCATION_LIVE &&
                allocation_life(other) == ALLOCATION_LIVE && !holders_share(state, one, other, id))
                return true;
        }
    }
    return false;
}

size_t devicemgr_held_twice(const struct devicemgr *mgr)
{
    const struct state *state = &mgr->state;
    size_t twice = 0;

    for (const struct owners *o = state->allocations.devices; o; o = o->hh.next)
        twice += o->len > 1 && is_held_twice(state, o);
    return twice;
}

uint64_t devicemgr_replaced(const struct devicemgr *mgr)
{
    return mgr->state.replaced;
}
