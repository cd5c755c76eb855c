/*
 * What one look at a create, or at one of the resources it asks for, has found.
 */
#ifndef DEVICEMGR_RULES_LOOK_H
#define DEVICEMGR_RULES_LOOK_H

#include <stdint.h>

#include "devicemgr/words/reason.h"

/* The worst counts: the later ones are worse. */
enum look_step {
    LOOK_GO,     /* nothing is in the way */
    LOOK_ASK,    /* somebody is being asked, or to be asked, and answers in time */
    LOOK_WAIT,   /* the world must change first */
    LOOK_REFUSE, /* it never will */
};

/* A zeroed struct has found nothing in the way. */
struct look {
    enum look_step step;
    struct reason reason; /* none with LOOK_GO */
    uint64_t hold_ms;     /* of LOOK_WAIT: how long it may last, all in all */
    uint64_t again_ms;    /* likewise: by time alone it is another then; 0 or never: not so */
};

static inline void look_fini(struct look *look)
{
    reason_fini(&look->reason);
    *look = (struct look){0};
}

/* Adds what was found of one resource, which it takes: the worst counts; of several to wait for the
 * first reason, and the shortest time, `hold_ms` of each: none of them can be missed. */
void look_add(struct look *look, struct look *of_one, uint64_t hold_ms);

#endif
