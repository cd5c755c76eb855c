#include "tests/sim/publisher.h"

#include <string.h>

#include "tests/sim/check.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* What the core reports at one time. */
struct report {
    struct world *w;
    const char *before; /* the name of the last; NULL: none */
    bool there[RESOURCES_LEN];
    struct devicemgr_capacity is[RESOURCES_LEN];
};

static void each(void *user, const struct devicemgr_capacity *capacity)
{
    struct report *report = user;
    size_t r = resource_sim_find(capacity->resource);

    check_that(report->w, r < RESOURCES_LEN, "only known resources have a capacity: %s",
               capacity->resource);
    check_that(report->w, !report->before || strcmp(report->before, capacity->resource) < 0,
               "capacities come in the order of names, each once");
    if (r == RESOURCES_LEN)
        return;
    report->before = resource_sim_name(r);
    report->there[r] = true;
    report->is[r] = *capacity;
}

static enum published published(const struct report *report, size_t r)
{
    if (!report->there[r])
        return PUBLISHED_NOT;
    return report->is[r].removed ? PUBLISHED_REMOVED : PUBLISHED_THERE;
}

/* Its devices are usable: as listed. */
static void check_usable(struct world *w, const struct report *report, size_t r, size_t capacity,
                         unsigned healthy)
{
    const struct devicemgr_capacity *is = &report->is[r];
    unsigned most = device_sim_count(healthy & ~operator_keeps(w, r));
    unsigned least = device_sim_count(healthy & ~operator_may_keep(w, r));

    w->publisher.capacity[r] = capacity;
    w->publisher.usable_ms[r] = w->now_ms;
    check_that(w,
               report->there[r] && !is->removed && is->capacity == capacity &&
                   is->healthy == device_sim_count(healthy),
               "capacity of %s: %zu and %zu, listed %zu and %u healthy", resource_sim_name(r),
               is->capacity, is->healthy, capacity, device_sim_count(healthy));
    check_that(w, is->allocatable >= least && is->allocatable <= most,
               "what an operator keeps back is not allocatable: %zu of %s, %u to %u",
               is->allocatable, resource_sim_name(r), least, most);
}

bool publisher_saw_no(const struct world *w, size_t resource)
{
    return w->publisher.last[resource] == PUBLISHED_REMOVED ||
           w->publisher.last[resource] == PUBLISHED_NOT;
}

/* Whether it may be there still, `latest_ms` being the last end of its grace period: a dial under
 * way has its time, and a period that has become shorter just now ends with the tick that is
 * due. */
static bool may_be_there(const struct world *w, size_t r, uint64_t latest_ms)
{
    return plugin_connected(w, r) || w->now_ms <= latest_ms + 2 * FIRST_LIST_MS ||
           shim_next_ms(w) <= w->now_ms;
}

/* Of an earlier life: its grace period goes on where that was stored, or begins anew. */
static void check_restored(struct world *w, const struct report *report, size_t r)
{
    uint64_t served_ms = shown_since_ms(w, r), grace_ms = operator_grace_ms_min(w, r);
    uint64_t end_ms = grace_ms > 0 ? served_ms + grace_ms : 0; /* it is ended by the operator */
    uint64_t latest_ms = served_ms + operator_grace_ms_max(w, r, served_ms);

    if (served_ms == 0)
        return;
    if (report->is[r].removed)
        check_that(w, w->now_ms >= end_ms || publisher_saw_no(w, r),
                   "a restored resource is removed after its grace period, not before: %s",
                   resource_sim_name(r));
    else if (report->there[r])
        check_that(w, may_be_there(w, r, latest_ms),
                   "the grace period of a restored resource goes on: %s", resource_sim_name(r));
    if (w->shown.served_ms[r] < w->shim.started_ms)
        count_add(COUNT_GRACE_GOES_ON);
}

/* The plugin is away: nothing is allocatable, and after the grace period nothing is there. */
static void check_away(struct world *w, const struct report *report, size_t r)
{
    const struct devicemgr_capacity *is = &report->is[r];
    uint64_t usable_ms = w->publisher.usable_ms[r], grace_ms = operator_grace_ms_min(w, r);
    uint64_t latest_ms = usable_ms + operator_grace_ms_max(w, r, usable_ms);

    check_that(w, is->allocatable == 0 && is->healthy == 0,
               "nothing is allocatable while the plugin is away");
    if (usable_ms == 0) {
        check_restored(w, report, r);
        return;
    }
    if (is->removed)
        check_that(
            w, (w->now_ms >= usable_ms + grace_ms || publisher_saw_no(w, r)) && is->capacity == 0,
            "a resource is removed after its grace period, not before: %s", resource_sim_name(r));
    else if (report->there[r])
        check_that(w, is->capacity == w->publisher.capacity[r] && may_be_there(w, r, latest_ms),
                   "a resource is there, as it was, until its grace period is over: %s",
                   resource_sim_name(r));
}

/* What is removed is reported until it is seen, or published again. */
static void check_move(struct world *w, size_t r, enum published is)
{
    enum published was = w->publisher.last[r];

    if (was == PUBLISHED_REMOVED)
        check_that(w, is != PUBLISHED_NOT, "a removed resource is reported until seen: %s",
                   resource_sim_name(r));
    if (was == PUBLISHED_THERE)
        check_that(w, is != PUBLISHED_NOT, "a resource that goes is reported as removed: %s",
                   resource_sim_name(r));
    if (was == PUBLISHED_NOT || was == PUBLISHED_UNKNOWN)
        check_that(
            w, is != PUBLISHED_REMOVED || w->publisher.usable_ms[r] > 0 || was == PUBLISHED_UNKNOWN,
            "what was not there is not removed: %s", resource_sim_name(r));
    w->publisher.last[r] = is;
}

void publisher_check(struct world *w)
{
    struct report report = {.w = w};

    devicemgr_capacity(w->shim.core, each, &report);
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        const struct plugin *builtin = &w->plugins[RESOURCE_BUILTIN];
        const struct connection *c = plugin_usable(w, r);

        if (r == RESOURCE_BUILTIN && w->shim.builtin_told)
            check_usable(w, &report, r, device_sim_count(builtin->listed),
                         builtin->listed & builtin->healthy);
        else if (r != RESOURCE_BUILTIN && c)
            check_usable(w, &report, r, c->capacity, c->healthy);
        else if (r != RESOURCE_BUILTIN)
            check_away(w, &report, r);
        check_move(w, r, published(&report, r));
    }
}

void publisher_sees(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_PUBLISHER, 0, 0);
    size_t r = rng_below(&rng, RESOURCES_LEN);

    devicemgr_removed_seen(w->shim.core, resource_sim_name(r));
    if (w->publisher.last[r] == PUBLISHED_REMOVED)
        w->publisher.last[r] = PUBLISHED_UNKNOWN;
    publisher_check(w);
    check_that(w, w->publisher.last[r] != PUBLISHED_REMOVED, "what is seen is reported no more: %s",
               resource_sim_name(r));
}

void publisher_shim_started(struct world *w)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        w->publisher.last[r] = PUBLISHED_UNKNOWN;
        w->publisher.usable_ms[r] = 0;
    }
}
