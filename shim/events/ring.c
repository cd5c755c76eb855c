#include "shim/events/ring.h"

#include <string.h>

void ring_init(struct ring *ring)
{
    *ring = (struct ring){0};
    TAILQ_INIT(&ring->events);
}

static void take_out(struct ring *ring, struct event *event)
{
    TAILQ_REMOVE(&ring->events, event, entry);
    HASH_DEL(ring->by_same, event);
    ring->len--;
    ring->bytes -= event->bytes;
}

static void drop_oldest(struct ring *ring)
{
    struct event *event = TAILQ_FIRST(&ring->events);

    take_out(ring, event);
    ring->gone_id = event->id;
    event_free(event);
}

void ring_fini(struct ring *ring)
{
    while (ring->len > 0)
        drop_oldest(ring);
}

static void add(struct ring *ring, struct event *event)
{
    ring->last_id = event->id;
    TAILQ_INSERT_TAIL(&ring->events, event, entry);
    HASH_ADD(hh, ring->by_same, same, sizeof event->same, event);
    ring->len++;
    ring->bytes += event->bytes;
    while (ring->len > 1 && (ring->len > EVENTS_MAX || ring->bytes > EVENTS_BYTES_MAX))
        drop_oldest(ring);
}

/* ---- what may have been told before ---- */

static const char *opposite_of(const char *kind)
{
    static const char *const PAIRS[][2] = {{"allocated", "released"},
                                           {"lost", "back"},
                                           {"driver-came", "driver-went"},
                                           {"claim-prepared", "claim-unprepared"}};

    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        if (strcmp(kind, PAIRS[i][0]) == 0)
            return PAIRS[i][1];
        if (strcmp(kind, PAIRS[i][1]) == 0)
            return PAIRS[i][0];
    }
    return "";
}

/* Of these two kinds, about the same. */
static const struct event *find_latest(const struct ring *ring, const struct event *event)
{
    const char *opposite = opposite_of(event->kind);
    const struct event *one;

    TAILQ_FOREACH_REVERSE(one, &ring->events, event_list, entry)
    {
        if (event_about_same(one, event) &&
            (strcmp(one->kind, event->kind) == 0 || strcmp(one->kind, opposite) == 0))
            return one;
    }
    return NULL;
}

/* That something ended, of which nobody has heard, is no news. */
static bool is_news(const struct ring *ring, const struct event *event)
{
    const struct event *latest = find_latest(ring, event);

    if (!latest)
        return strcmp(event->kind, "allocated") == 0 || strcmp(event->kind, "driver-came") == 0 ||
               strcmp(event->kind, "claim-prepared") == 0;
    return strcmp(latest->kind, event->kind) != 0;
}

/* ---- in, and out ---- */

const struct event *ring_put(struct ring *ring, struct event *event, bool again)
{
    struct event *before;

    if (again && !is_news(ring, event)) {
        event_free(event);
        return NULL;
    }
    HASH_FIND(hh, ring->by_same, &event->same, sizeof event->same, before);
    if (before) {
        event->times = before->times + 1;
        event->first = before->first;
        take_out(ring, before);
        event_free(before);
    }
    event->id = ring->last_id + 1;
    add(ring, event);
    return event;
}

void ring_restore(struct ring *ring, struct event *event)
{
    struct event *before;

    HASH_FIND(hh, ring->by_same, &event->same, sizeof event->same, before);
    if (before) {
        take_out(ring, before);
        event_free(before);
    }
    if (event->id <= ring->last_id)
        event->id = ring->last_id + 1;
    if (ring->len == 0 && ring->gone_id == 0)
        ring->gone_id = event->id - 1;
    add(ring, event);
}

void ring_begin_behind(struct ring *ring, uint64_t id)
{
    if (id <= ring->last_id)
        return;
    ring->last_id = id;
    if (ring->len == 0)
        ring->gone_id = id;
}

void ring_expire(struct ring *ring, const struct event_moment *now)
{
    while (ring->len > 0 &&
           event_ago_ms(&TAILQ_FIRST(&ring->events)->last, now) > EVENTS_AGE_MS_MAX)
        drop_oldest(ring);
}

const struct event *ring_after(const struct ring *ring, uint64_t id)
{
    const struct event *first = NULL, *one;

    TAILQ_FOREACH_REVERSE(one, &ring->events, event_list, entry)
    {
        if (one->id <= id)
            break;
        first = one;
    }
    return first;
}
