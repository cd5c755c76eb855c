/*
 * That a create waits only for a reason, and no longer than may be; and that a refusal is justified
 * by what is true when it is given.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/check.h"
#include "tests/sim/promise.h"
#include "tests/sim/reason.h"
#include "tests/sim/world.h"

/* Between an event and the run that acts on it (shim_run()). */
#define LATE_MS 5

/* ---- how long it may be held ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t hold_ms_min(const struct world *w, const struct create_sim *create)
{
    uint64_t ms = HOLD_MS_MAX;

    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (create->count[r] > 0)
            ms = smaller(ms, shim_hold_ms(w, r));
    }
    return create->fault == TOKEN_UNKNOWN_RESOURCE ? smaller(ms, w->shim.settings.hold_ms) : ms;
}

static uint64_t hold_ms_max(const struct world *w, const struct create_sim *create)
{
    uint64_t ms = 0;

    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (create->count[r] > 0 && shim_hold_ms(w, r) > ms)
            ms = shim_hold_ms(w, r);
    }
    return smaller(ms, HOLD_MS_MAX);
}

/* ---- one that waits ---- */

static void note_move(struct world *w, struct create_sim *create, bool moving)
{
    if (moving || create->moving)
        create->moved_ms = w->now_ms;
    create->moving = moving;
    create->called = create->called || moving;
}

static void check_waiting(struct world *w, struct create_sim *create)
{
    unsigned reasons = reasons_of(w, create);

    note_move(w, create, reasons & REASONS_MOVE);
    create->held = create->held || !(reasons & REASONS_MOVE);
    check_that(w, !create->stop_told,
               "a create whose sandbox is to stop is refused at once: %" PRIu64, create->number);
    check_that(w, !w->shim.draining || reasons & (REASONS_MOVE & ~REASON_TURN),
               "once the shim is to end nothing is held: create %" PRIu64, create->number);
    check_that(w, reasons & (REASONS_HOLD | REASONS_MOVE | REASON_CHECK),
               "a create that nothing keeps back goes on: %" PRIu64 " (%s)", create->number,
               reasons_text(reasons));
    check_that(w,
               create->moving || w->now_ms <= create->moved_ms + hold_ms_max(w, create) + LATE_MS,
               "a create is held no longer than it may be: %" PRIu64 " for %" PRIu64 " ms (%s)",
               create->number, w->now_ms - create->moved_ms, reasons_text(reasons));
    check_that(w, create->deadline_ms >= w->now_ms + DEADLINE_MARGIN_MS,
               "a create is decided before its client's deadline: %" PRIu64, create->number);
    check_that(w, w->now_ms <= create->started_ms + create_ms_max(w),
               "a create is decided in time: %" PRIu64 " waits for %" PRIu64 " ms", create->number,
               w->now_ms - create->started_ms);
}

uint64_t create_ms_max(const struct world *w)
{
    return HOLD_MS_MAX + PREFER_TIMEOUT_MS + shim_calls_ms_max(w) + 2 * STORE_SLOW_MS_MAX;
}

void check_creates(struct world *w)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        struct create_sim *c = &w->client.creates[i];

        if (c->number && !c->untouched && !c->forwarded)
            check_waiting(w, c);
    }
}

/* ---- one that is refused ---- */

/* What each code may stand for. */
static unsigned reasons_for(int code, unsigned reasons)
{
    switch (code) {
    case CODE_INVALID_ARGUMENT:
        return REASON_TOKEN;
    case CODE_FAILED_PRECONDITION:
        return REASON_ENDED | REASON_NOBODYS | REASON_CHANGED | REASON_GONE | REASON_WITHDRAWN;
    case CODE_RESOURCE_EXHAUSTED:
        return REASON_FEW;
    case CODE_ABORTED:
        return REASON_NEWER;
    case CODE_DEADLINE_EXCEEDED:
        return REASON_LATE | (reasons & REASONS_MOVE ? REASON_DEADLINE : 0);
    case CODE_UNAVAILABLE:
        return REASONS_HOLD | REASON_CHECK | REASON_RUNS | REASON_FAILED | REASON_STORE |
               REASON_TURN;
    default:
        return 0;
    }
}

static void check_hold(struct world *w, const struct create_sim *create, unsigned reasons)
{
    uint64_t hold_ms = hold_ms_min(w, create);

    if (reasons & (REASON_RUNS | REASON_FAILED | REASON_STORE))
        return;
    if (reasons & REASON_DRAIN) {
        count_add(COUNT_HOLD_DRAINED);
        return;
    }
    if (reasons & REASON_DEADLINE) {
        count_add(COUNT_HOLD_DEADLINE);
        return;
    }
    check_that(w, w->now_ms >= create->started_ms + hold_ms,
               "what may come is waited for: create %" PRIu64 " is refused after %" PRIu64
               " ms of %" PRIu64 " (%s)",
               create->number, w->now_ms - create->started_ms, hold_ms, reasons_text(reasons));
    count_add(COUNT_HOLD_TIMEOUT);
}

/* Whether the store has what it asks for by tokens, of all that it asks for. */
static bool is_stored(struct world *w, const struct create_sim *create)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (create->count[r] > 0 && (create->ids[r] == 0 || !check_is_stored(w, create, r)))
            return false;
    }
    return !create->disturbed;
}

void check_refusal(struct world *w, const struct create_sim *create, int code, const char *message)
{
    unsigned reasons = reasons_of(w, create);
    char pod[32];

    snprintf(pod, sizeof pod, "ns/u%u", create->uid);
    if (create->tokenless)
        count_add(COUNT_TOKEN_GONE);
    else if (code == CODE_FAILED_PRECONDITION &&
             !(reasons & (REASON_ENDED | REASON_NOBODYS | REASON_WITHDRAWN)))
        count_add(COUNT_CHANGED);
    if (reasons & REASON_RUNS && runtime_runs_bare(w, create->ids))
        count_add(COUNT_BARE_GUARDED);
    if (message && (strstr(message, "cordoned: dust") || strstr(message, "withdrawn it: moved")))
        count_add(COUNT_KEPT_FROM);
    check_that(w, reasons & reasons_for(code, reasons),
               "a refusal is justified: create %" PRIu64 ", code %d, but %s: %s", create->number,
               code, reasons_text(reasons), message ? message : "nothing");
    check_that(w, (code == CODE_INVALID_ARGUMENT) == (create->fault == TOKEN_MALFORMED),
               "a malformed token is told as such, and nothing else is: %d", code);
    if (code == CODE_UNAVAILABLE)
        check_hold(w, create, reasons);
    if (message && strstr(message, "the allocation cannot be stored"))
        check_that(w, !is_stored(w, create),
                   "who has a row is not refused for a store that fails: %s", message);
    check_that(w,
               message && strlen(message) < TEXT_BYTES_MAX && strstr(message, pod) &&
                   strstr(message, container_sim_name(create->name)),
               "a refusal names the pod and the container: %s", message ? message : "nothing");
}
