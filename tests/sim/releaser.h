/*
 * The operator who takes devices from pods that should not be there, or seem so: any pod, at any
 * time; and the judge of what comes of it.
 */
#ifndef TESTS_SIM_RELEASER_H
#define TESTS_SIM_RELEASER_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/ports.h"

struct world;

/* Numbers from here on are its own. */
#define RELEASER_NUMBERS ((uint64_t)1 << 32)

#define RELEASER_UIDS_MAX 2048

struct releaser {
    uint64_t last_number;
    uint64_t number; /* of what is asked; 0: nothing is */
    unsigned uid;
    bool dry;
    bool created; /* the pod has asked for a container since */
    uint64_t asked_ms;
    bool asked[RELEASER_UIDS_MAX]; /* of which pods it ever was to take some */
};

/* In some of the worlds, now and then, until the faults stop. */
void releaser_init(struct world *w);
/* The port. */
void releaser_answered(struct world *w, uint64_t number, const struct devicemgr_steered *steered);
/* A shim starts: what was asked of the one before is not answered. */
void releaser_shim_started(struct world *w);
/* The pod asks for a container. */
void releaser_note_create(struct world *w, unsigned uid);
/* Whether the pod may be losing its devices. */
bool releaser_takes(const struct world *w, unsigned uid);
/* Or may have: what cannot be stored at once goes later. */
bool releaser_took(const struct world *w, unsigned uid);

#endif
