/*
 * What is published of a resource as that of a DRA driver: devicemgr_lifted() and its like
 * (lift.h), which say what they do.
 */
#ifndef DEVICEMGR_RULES_LIFTED_H
#define DEVICEMGR_RULES_LIFTED_H

#include <stdbool.h>

#include "cri-proto/lifted_name.h"
#include "devicemgr/lift.h"

struct granted_device;
struct resource;
struct state;

/* Whether it is published; NULL: there is none. */
bool lifted_is(const struct state *state, const struct resource *resource);

uint64_t lifted_version(const struct state *state);
void lifted_each(const struct state *state,
                 void (*each)(void *user, const struct devicemgr_lifted *lifted), void *user);
void lifted_devices(const struct state *state, const char *name,
                    void (*each)(void *user, const struct devicemgr_lifted_device *device),
                    void *user);

/* What a name of a CDI device means that stands for a device here: its resource, and its id, which
 * is the name's own text where the device is not listed. False: it means none. Borrowed from the
 * state, or from `marker`. */
bool lifted_find(const struct state *state, const struct lift_marker *marker, const char **resource,
                 const char **id) __attribute__((warn_unused_result));
/* Of what is allocated to a claim of the driver: its resource, NULL: none that is known; and its id
 * in that, as lifted_find() has it. */
const char *lifted_resource(const struct state *state, const struct granted_device *granted);
const char *lifted_id(const struct state *state, const struct granted_device *granted,
                      const char *resource);
/* Whether lifted_resource() knows it by name. */
bool lifted_resource_known(const struct state *state, const char *resource);

/* What a device is called where it is published: who looks for it among many makes that once. */
struct lifted_called {
    char pool[LIFTED_POOL_BYTES];   /* behind the node's name */
    char device[LIFTED_NAME_BYTES]; /* "": any of the resource's */
};

/* `id` NULL: all of the resource. */
void lifted_called_init(struct lifted_called *called, const char *resource, const char *id);
bool lifted_is_called(const struct granted_device *granted, const struct lifted_called *called);
/* Whether it is this device. */
bool lifted_is_device(const struct granted_device *granted, const char *resource, const char *id);

#endif
