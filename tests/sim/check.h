/*
 * The invariants. The first that is broken is kept in the world and ends the run.
 */
#ifndef TESTS_SIM_CHECK_H
#define TESTS_SIM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/ports.h"
#include "tests/sim/client.h"
#include "tests/sim/property.h"
#include "tests/sim/runtime.h"

struct world;

/* Nothing the core should have let go of is left, its queues are as long as what is under way, it
 * is not due again already. After each event. */
void check_settled(struct world *w);
/* A create is forwarded: exactly its options, durable, from this boot, usable. Fills in what the
 * container will hold, and what is its pod's from now on. */
void check_forward(struct world *w, struct create_sim *create,
                   const V1beta1__ContainerAllocateResponse *options, struct rt_container *made);
void check_refusal(struct world *w, const struct create_sim *create, int code, const char *message);
/* Creates that are being decided. After each event. */
void check_creates(struct world *w);
/* Longest that one without a deadline of its own can stay undecided: held as long as may be, then
 * each call to its end, and two commits, the second of which carries it. */
uint64_t create_ms_max(const struct world *w);
/* A container has come to life: nobody else holds its devices. */
void check_exclusive(struct world *w, const struct rt_container *container);
/* It is about to be made: nobody makes another one with its devices. */
void check_making(struct world *w, const struct rt_container *container);
/* An allocation of the pod is dropped: it is known to be over. */
void check_dropped(struct world *w, const char *uid, const char *container, const char *resource);
/* An allocation is dropped: no container made with it lives. */
void check_freed(struct world *w, const char *uid, const char *container, const char *resource);
/* The serial of the durable options of an allocation, if they are in force for exactly `ids` (0:
 * any); 0: none. */
uint64_t check_serial_in_force(struct world *w, unsigned uid, unsigned name, size_t resource,
                               unsigned ids);
/* Whether the store has a row, with options, of what the create asks for by its token, and had it
 * before. */
bool check_is_stored(struct world *w, const struct create_sim *create, size_t resource);
/* Everything that is over is forgotten. */
void check_nothing_left(struct world *w);

#endif
