/*
 * Orders that are wanted as long as something is so: one for each name of which it is, looked at
 * again and again. What is no more so is taken back, and the agent told of that, so that it stops
 * if it still can.
 */
#ifndef SHIM_CLUSTER_STANDING_H
#define SHIM_CLUSTER_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "shim/cluster/orders.h"

/* Of one name; what is not named here is private. */
struct standing_order {
    struct standing *standing;
    char *name;
    uint64_t order; /* 0: not given yet */
    bool wanted;    /* still; only while all are looked at */
    bool kept;      /* its owner's */
    UT_hash_handle hh;
};

/* Embedded in its owner; private, but `by_name`, to walk through, and `version`. */
struct standing {
    struct cluster_orders *orders;
    void (*cancel)(void *cluster, uint64_t order);
    void *cluster;
    void (*done)(void *user, const char *name);
    void *user;
    struct standing_order *by_name; /* a uthash */
    unsigned version;               /* another one whenever a name comes or goes */
};

/* `cancel` takes an order back, with word to the agent. `done`: what is ordered for that name is
 * done, and it is none of ours any more. All is borrowed until the end. */
void standing_init(struct standing *standing, struct cluster_orders *orders,
                   void (*cancel)(void *cluster, uint64_t order), void *cluster,
                   void (*done)(void *user, const char *name), void *user);
/* Before its orders. */
void standing_fini(struct standing *standing);

/* A look begins: nothing is wanted. */
void standing_look(struct standing *standing);
/* NULL: nothing was wanted for that name before. */
struct standing_order *standing_find(struct standing *standing, const char *name);
/* It is wanted, as before or from now on. */
struct standing_order *standing_want(struct standing *standing, const char *name);
/* Gives the order, unless that is done; while there are too many it is not, and is tried with the
 * next look. `what` is copied. */
void standing_give(struct standing_order *order, const Agent__V1__Order *what);
/* It is wanted still, but not now: what was given is taken back. */
void standing_withhold(struct standing_order *order);
/* What is not wanted any more is taken back, and gone. `taken_back` is told of each first; NULL:
 * nobody. */
void standing_looked(struct standing *standing,
                     void (*taken_back)(void *user, const struct standing_order *order));

#endif
