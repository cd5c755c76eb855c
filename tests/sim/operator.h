/*
 * The operator of the simulated node: cordons, withdraws, lengthens and ends grace periods, and
 * takes it all back; and the judge of what that means, by what was answered and what is durable.
 */
#ifndef TESTS_SIM_OPERATOR_H
#define TESTS_SIM_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"
#include "tests/sim/resources.h"

struct world;

#define REQUESTS_MAX 3
#define HOLDER_UIDS_MAX 2048

enum request_kind {
    REQUEST_CORDON,
    REQUEST_UNCORDON,
    REQUEST_WITHDRAW,
    REQUEST_UNDO,
    REQUEST_EXTEND,
    REQUEST_END,
    REQUEST_KINDS,
};

/* One that is not answered yet; at most one for each resource. */
struct request {
    uint64_t number; /* 0: free slot */
    enum request_kind kind;
    size_t resource;
    unsigned mask;    /* of devices */
    uint64_t more_ms; /* of a grace period */
    bool served;      /* its plugin was there meanwhile: the grace period may be another one */
};

/* What is set of one resource for certain: it was answered, or a shim has started with its row. */
struct set_sim {
    unsigned cordoned;
    bool withdrawn;
    uint64_t more_ms;                       /* of the grace period under way, at least */
    uint64_t more_ms_max;                   /* and at most: it may be of an earlier one */
    uint64_t over_ms;                       /* when it was ended; 0: it was not */
    bool over_perhaps;                      /* it may have been; or an earlier one was */
    bool had[DEVICES_MAX][HOLDER_UIDS_MAX]; /* pods that had it when it was set */
};

struct operator_sim {
    uint64_t last_number;
    bool heals; /* takes all back */
    struct request requests[REQUESTS_MAX];
    struct set_sim set[RESOURCES_LEN];
};

/* Begins to act. */
void operator_init(struct world *w);
/* From now on takes all back. */
void operator_heals(struct world *w);
/* Nothing is set any more. */
bool operator_is_done(const struct world *w);
/* The port. */
void operator_answered(struct world *w, uint64_t number, const struct devicemgr_steered *steered);
/* One starts with the rows that the store has, of which some are `lost`. */
void operator_shim_started(struct world *w, bool lost);
/* The resource's plugin is there. */
void operator_served(struct world *w, size_t resource);
/* After each event. */
void operator_check(struct world *w);

/* Devices that are cordoned or withdrawn for certain; and those that may be. */
unsigned operator_keeps(const struct world *w, size_t resource);
unsigned operator_may_keep(const struct world *w, size_t resource);
bool operator_withdrew(const struct world *w, size_t resource);
bool operator_may_have_withdrawn(const struct world *w, size_t resource);
/* Of the first those that this pod did not have when that was set; of the second those that the
 * shim need not know that it has. */
unsigned operator_keeps_from(const struct world *w, unsigned uid, size_t resource);
unsigned operator_may_keep_from(const struct world *w, unsigned uid, size_t resource);
/* How long after its plugin was there last a resource is removed, at least and at most. */
uint64_t operator_grace_ms_min(const struct world *w, size_t resource);
uint64_t operator_grace_ms_max(const struct world *w, size_t resource, uint64_t served_ms);

#endif
