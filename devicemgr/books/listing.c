#include "devicemgr/books/listing.h"

#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

void listing_by(struct state *state, uint64_t at_ms)
{
    state->listing.due_ms = earlier(state->listing.due_ms, at_ms);
    state->listing.next_ms = earlier(state->listing.next_ms, at_ms);
}

void listing_rows_lost(struct state *state)
{
    state->listing.rows_lost = true;
    dirty_touch_loss(state, false);
}

void listing_restored(struct state *state)
{
    state->listing.rows_lost_until_ms = state->now_ms + OUTCOME_MS;
    if (state->listing.rows_lost || state->allocations.by_key)
        listing_by(state, state->listing.rows_lost_until_ms);
}

static void ask_list(struct state *state)
{
    state->listing.due_ms = state->listing.next_ms = UINT64_MAX;
    state->listing.asked = true;
    action_push(&state->actions, ACTION_RUNTIME_LIST, 0);
}

void listing_soon(struct state *state)
{
    if (!state->listing.under_way)
        listing_anew(state);
}

void listing_anew(struct state *state)
{
    if (state->listing.asked)
        return;
    if (state->now_ms < state->listing.begun_ms + LIST_EVERY_MS)
        listing_by(state, state->listing.begun_ms + LIST_EVERY_MS);
    else
        ask_list(state);
}

void listing_earlier_creates(struct state *state, bool under_way)
{
    state->listing.earlier_until_ms = under_way ? UINT64_MAX : state->now_ms + OUTCOME_MS;
    if (!under_way)
        listing_soon(state);
}

void listing_tick(struct state *state)
{
    if (state->now_ms >= state->listing.due_ms)
        ask_list(state);
}

/* ---- what ended meanwhile ---- */

/* A container that ended while a list is being asked for, which may name it as one that runs. */
struct ended {
    char *container_id;
    UT_hash_handle hh;
};

bool listing_has_ended(const struct state *state, const char *container_id)
{
    const struct ended *ended;

    HASH_FIND_STR(state->listing.ended, container_id, ended);
    return ended != NULL;
}

void listing_note_ended(struct state *state, const char *container_id)
{
    struct ended *ended;

    if (!state->listing.under_way || listing_has_ended(state, container_id))
        return;
    ended = mem_alloc(1, sizeof *ended);
    ended->container_id = mem_strdup(container_id);
    HASH_ADD_KEYPTR(hh, state->listing.ended, ended->container_id, strlen(ended->container_id),
                    ended);
}

void listing_forget_ended(struct state *state)
{
    struct ended *ended, *next;

    HASH_ITER(hh, state->listing.ended, ended, next) {
        HASH_DEL(state->listing.ended, ended);
        free(ended->container_id);
        free(ended);
    }
}

uint64_t listing_shows_from(const struct state *state, uint64_t until_ms)
{
    return later(until_ms, state->listing.earlier_until_ms);
}

/* ---- a list begins, and has come ---- */

void listing_begin(struct state *state)
{
    listing_forget_ended(state); /* it will not name what has ended by now */
    state->listing.epoch++;
    state->listing.under_way = true;
    state->listing.asked = false;
    state->listing.begun_ms = state->now_ms;
    state->listing.next_ms = UINT64_MAX;
}

void listing_come(struct state *state)
{
    struct listing *listing = &state->listing;
    bool rows_lost = listing->rows_lost;

    if (!listing->under_way)
        listing_begin(state);
    listing->under_way = false;
    listing->rows_lost =
        rows_lost && listing->begun_ms < listing_shows_from(state, listing->rows_lost_until_ms);
    if (rows_lost && !listing->rows_lost)
        dirty_touch_loss(state, true);
}

void listing_read(struct state *state)
{
    state->listing.listed = true;
}

/* Of what was wanted before it was asked for only that which it was too early for. */
void listing_again(struct state *state)
{
    uint64_t at_ms = state->listing.next_ms;

    if (state->listing.rows_lost)
        at_ms = earlier(at_ms, listing_shows_from(state, state->listing.rows_lost_until_ms));
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (a->unknown_in)
            at_ms = earlier(at_ms, listing_shows_from(state, a->unknown_until_ms));
    }
    for (const struct sandbox *s = state->pods.sandboxes; s; s = s->hh.next) {
        if (s->state == SANDBOX_DOUBTED && !s->dead)
            at_ms = earlier(at_ms, s->reopen_ms);
    }
    state->listing.due_ms = later(at_ms, state->listing.begun_ms + LIST_EVERY_MS);
}
