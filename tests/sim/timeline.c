#include "tests/sim/timeline.h"

#include <stdlib.h>

#define SIZE_MIN 64

void timeline_fini(struct timeline *timeline)
{
    free(timeline->heap);
    *timeline = (struct timeline){0};
}

static bool earlier(const struct event *a, const struct event *b)
{
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms;
    return a->order != b->order ? a->order < b->order : a->sequence < b->sequence;
}

static void swap(struct event *a, struct event *b)
{
    struct event kept = *a;

    *a = *b;
    *b = kept;
}

void timeline_add(struct timeline *timeline, struct event event)
{
    size_t at = timeline->len;

    if (timeline->len == timeline->size) {
        timeline->size = timeline->size ? 2 * timeline->size : SIZE_MIN;
        timeline->heap = reallocarray(timeline->heap, timeline->size, sizeof *timeline->heap);
        if (!timeline->heap)
            abort();
    }
    event.sequence = ++timeline->sequence;
    timeline->heap[timeline->len++] = event;
    while (at > 0 && earlier(&timeline->heap[at], &timeline->heap[(at - 1) / 2])) {
        swap(&timeline->heap[at], &timeline->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

uint64_t timeline_next_ms(const struct timeline *timeline)
{
    return timeline->len ? timeline->heap[0].at_ms : UINT64_MAX;
}

struct event timeline_take(struct timeline *timeline)
{
    struct event taken = timeline->heap[0];
    size_t at = 0;

    timeline->heap[0] = timeline->heap[--timeline->len];
    for (;;) {
        size_t first = at, child = 2 * at + 1;

        for (size_t i = child; i < child + 2 && i < timeline->len; i++) {
            if (earlier(&timeline->heap[i], &timeline->heap[first]))
                first = i;
        }
        if (first == at)
            return taken;
        swap(&timeline->heap[at], &timeline->heap[first]);
        at = first;
    }
}
