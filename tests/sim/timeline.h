/*
 * What is going to happen, in order of time; equals in an order of their own, and at last as they
 * were added.
 */
#ifndef TESTS_SIM_TIMELINE_H
#define TESTS_SIM_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

struct event {
    uint64_t at_ms;
    uint64_t order; /* among equals */
    uint64_t sequence;
    void (*fire)(struct world *w, uint64_t a, uint64_t b);
    uint64_t a;
    uint64_t b;
};

/* A zeroed struct is empty. */
struct timeline {
    struct event *heap;
    size_t len;
    size_t size;
    uint64_t sequence;
};

void timeline_fini(struct timeline *timeline);
/* `event.sequence` is set here. */
void timeline_add(struct timeline *timeline, struct event event);
/* When the next one happens; UINT64_MAX: never. */
uint64_t timeline_next_ms(const struct timeline *timeline);
/* The next one; there must be one. */
struct event timeline_take(struct timeline *timeline);

#endif
