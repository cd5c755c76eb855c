/*
 * Drivers of dynamic resource allocation come and go (driver.h): who may register, what is kept of
 * one that has gone, and for how long. What follows for its claims is another machine's (task.h).
 */
#ifndef DEVICEMGR_MACHINES_ENROLL_H
#define DEVICEMGR_MACHINES_ENROLL_H

#include <stdbool.h>
#include <stdint.h>

struct devicemgr_driver_instance;
struct state;

/* devicemgr_driver_register() */
void enroll_begin(struct state *state, uint64_t number, const struct devicemgr_driver_instance *is);
/* Whether something has changed by it. */
bool enroll_connected(struct state *state, uint64_t number);
/* Likewise; what is called on the instance is over before. */
bool enroll_lost(struct state *state, uint64_t number, const char *why);
/* devicemgr_driver_moved() */
bool enroll_moved(struct state *state, uint64_t number, const struct devicemgr_driver_instance *is)
    __attribute__((warn_unused_result));
/* devicemgr_driver_deregister(); its connection is over. */
void enroll_end(struct state *state, uint64_t number);
/* The slices of the driver of this name are gone; nothing for one that is not away. */
void enroll_wiped(struct state *state, const char *name);
/* Forgets those of which nothing is kept any more. */
void enroll_tick(struct state *state);
uint64_t enroll_next_ms(const struct state *state);

#endif
