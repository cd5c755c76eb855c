/*
 * What is published of a resource as that of a DRA driver: devicemgr_lifted() and its like
 * (lift.h), which say what they do.
 */
#ifndef DEVICEMGR_RULES_LIFTED_H
#define DEVICEMGR_RULES_LIFTED_H

#include "devicemgr/lift.h"

struct state;

uint64_t lifted_version(const struct state *state);
void lifted_each(const struct state *state,
                 void (*each)(void *user, const struct devicemgr_lifted *lifted), void *user);
void lifted_devices(const struct state *state, const char *name,
                    void (*each)(void *user, const struct devicemgr_lifted_device *device),
                    void *user);

#endif
