/*
 * Who publishes what the node has: reads the capacity after each event, checks it against what the
 * plugins last listed, and sees now and then what is removed.
 */
#ifndef TESTS_SIM_PUBLISHER_H
#define TESTS_SIM_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/resources.h"

struct world;

enum published {
    PUBLISHED_NOT,
    PUBLISHED_THERE,
    PUBLISHED_REMOVED,
    PUBLISHED_UNKNOWN, /* of a shim that has just started */
};

struct publisher {
    enum published last[RESOURCES_LEN];
    size_t capacity[RESOURCES_LEN];    /* of the last list in this life of the shim */
    uint64_t usable_ms[RESOURCES_LEN]; /* when it last was, in this life; 0: not yet */
};

void publisher_shim_started(struct world *w);
/* After each event. */
void publisher_check(struct world *w);
/* It was removed before this event; a grace period that is longer now does not bring it back. */
bool publisher_saw_no(const struct world *w, size_t resource);
/* Somebody has seen what is removed, or what is not. */
void publisher_sees(struct world *w);

#endif
