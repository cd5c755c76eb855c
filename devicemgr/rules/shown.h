/*
 * What the kubelet is shown: devicemgr_shown() and its like, which say what they do.
 */
#ifndef DEVICEMGR_RULES_SHOWN_H
#define DEVICEMGR_RULES_SHOWN_H

#include "devicemgr/devicemgr.h"

struct resource;
struct state;

uint64_t shown_version(const struct state *state);
void shown_each(const struct state *state,
                void (*each)(void *user, const struct devicemgr_shown *shown), void *user);
void shown_devices(const struct state *state, const char *name,
                   void (*each)(void *user, const struct devicemgr_shown_device *device),
                   void *user);
/* How one device is shown. False: it is not. */
bool shown_one(const struct state *state, const struct resource *resource, const char *id,
               struct devicemgr_shown_device *out);
/* How many devices of the resource are shown, and how many as healthy. It costs as many steps as
 * there are allocations, and devices that somebody has. */
void shown_count(const struct state *state, const struct resource *resource, size_t *devices,
                 size_t *healthy);
bool shown_some(const struct state *state, const char *name, const uint32_t *places, size_t len,
                void (*each)(void *user, uint32_t place,
                             const struct devicemgr_shown_device *device, bool marked),
                void *user);

#endif
