/*
 * The kubelet behind the bridge: it keeps what is shown while the shim is dead, tells what its own
 * checkpoint says its pods have, and asks for preferences.
 */
#ifndef TESTS_SIM_BRIDGE_H
#define TESTS_SIM_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/resources.h"

struct world;

#define PREFERENCES_MAX 8

struct preference {
    uint64_t number; /* 0: free slot */
    unsigned available;
    unsigned wrong; /* what is to be left out of it: containers run with it, and enough others are
                     * free */
    size_t size;
    uint64_t until_ms;
};

#define KUBELET_ROWS_MAX 54 /* of 6 pods of 3 containers with 3 resources */

/* What the kubelet's checkpoint has of one container. */
struct kubelet_row {
    unsigned uid;
    unsigned name;
    size_t resource;
    unsigned mask;
};

/* Of one device: whose it is by the file, as the shim was told last, and since when. */
struct told {
    unsigned uid; /* 0: nobody's */
    uint64_t since_ms;
    bool early;   /* one entry of it at the first time */
    bool late;    /* one later */
    bool in_file; /* while a file is told of */
};

struct bridge {
    struct kubelet_row file[KUBELET_ROWS_MAX]; /* as written last; pods that are gone stay in it */
    size_t file_len;
    struct kubelet_row report[KUBELET_ROWS_MAX]; /* as the shim was told of it in this life */
    size_t report_len;
    struct told told[RESOURCES_LEN][DEVICES_MAX]; /* in this life of the shim */
    bool any_told;
    uint64_t untold_ms; /* when one was told of for the first time no more */
    uint64_t last_number;
    struct preference preferences[PREFERENCES_MAX];
};

void bridge_shim_gone(struct world *w);
/* The kubelet writes its checkpoint: when it has given something out, not when a pod goes. */
void bridge_file_written(struct world *w);
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
