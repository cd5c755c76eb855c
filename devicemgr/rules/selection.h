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

#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/look.h"
#include "devicemgr/rules/wanted.h"

enum selection_kind {
    SELECTION_NONE, /* it cannot be had now */
    SELECTION_KEEP, /* what the container has already */
    SELECTION_TAKE, /* `ids`, which are free */
};

/* Of one resource. */
struct selection_item {
    enum selection_kind kind;
    struct ids ids;
    struct ids instead;   /* what they are in the place of; empty: of nothing */
    struct ids mark;      /* what is to be, once the kubelet has let go of it; sorted */
    bool drop;            /* what the container had before is over */
    bool ask_plugin;      /* which of `available` it prefers, with all of `must_include` */
    struct ids available; /* in natural order */
    struct ids must_include;
    size_t looks;          /* at devices, to choose among them */
    struct holders checks; /* of which the runtime is to say whether they run */
};

struct selection {
    struct look look;             /* at all resources; GO: each is kept or taken */
    struct selection_item *items; /* one for each that is wanted */
    size_t items_len;
};

/* Of one resource by itself; `answer` is zeroed, and given to selection_item_fini(). */
struct look selection_look_at(const struct state *state, const struct wanted *wanted,
                              struct selection_item *answer);
void selection_item_fini(struct selection_item *item);

/* What it points to counts until the state changes. */
void selection_make(const struct state *state, const struct wanted *wanted,
                    struct selection *selection);
void selection_fini(struct selection *selection);

#endif
