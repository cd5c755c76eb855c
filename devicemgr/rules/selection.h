/*
 * Which devices a container gets, or why not yet: the steps of the kubelet's devicesToAllocate
 * (README.md, "Allocation"), for all resources or for none.
 *
 * A selection says what would be done; making one does nothing. Who acts on it asks, drops and
 * takes as it says, and makes another when the world has changed.
 */
#ifndef DEVICEMGR_RULES_SELECTION_H
#define DEVICEMGR_RULES_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/rules/look.h"
#include "devicemgr/things/demand.h"

struct allocation;

enum selection_kind {
    SELECTION_NONE, /* it cannot be had now */
    SELECTION_KEEP, /* what the container has already: `kept` */
    SELECTION_TAKE, /* `ids`, which are free */
};

/* Of one resource. */
struct selection_item {
    enum selection_kind kind;
    const struct allocation *kept;
    struct ids ids;
    const struct allocation *drop; /* what it had before, which is over; NULL: nothing */
    bool ask_plugin;               /* which of `available` it prefers, with all of `must_include` */
    struct ids available;          /* in natural order */
    struct ids must_include;
    const struct allocation **checks; /* of which the runtime is to say whether they run */
    size_t checks_len;
};

struct selection {
    struct look look;             /* at all resources; GO: each is kept or taken */
    struct selection_item *items; /* one for each of the request's */
    size_t items_len;
};

/* What it points to counts until the state changes. */
void selection_make(const struct state *state, const struct demand *demand,
                    struct selection *selection);
void selection_fini(struct selection *selection);

#endif
