/*
 * The kubelet behind the bridge: it keeps what is shown while the shim is dead, tells what its own
 * checkpoint says its pods have, and asks for preferences.
 */
#ifndef TESTS_SIM_BRIDGE_H
#define TESTS_SIM_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/sim/resources.h"
#include "tests/sim/rng.h"

struct world;

#define PREFERENCES_MAX 8

struct preference {
    uint64_t number; /* 0: free slot */
    unsigned available;
    size_t size;
    uint64_t until_ms;
};

struct bridge {
    struct rng rng;
    unsigned told[RESOURCES_LEN][DEVICES_MAX]; /* uid of the pod, as told last; 0: none */
    uint64_t last_number;
    struct preference preferences[PREFERENCES_MAX];
};

void bridge_shim_gone(struct world *w);
/* The kubelet's checkpoint changes: the shim is told soon. */
void bridge_report_later(struct world *w);
/* The kubelet asks for a preference, or does not wait for one any more. */
void bridge_ask(struct world *w);
void bridge_give_up(struct world *w);
/* The port. */
void bridge_preferred(struct world *w, uint64_t number, const char *const *ids, size_t ids_len);
/* How many answers are waited for. */
size_t bridge_open(const struct world *w);
/* No question is open for too long. After each event. */
void bridge_check(struct world *w);

#endif
