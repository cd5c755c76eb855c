/*
 * What the kubelet is shown: devicemgr_shown() and its like, which say what they do.
 */
#ifndef DEVICEMGR_RULES_SHOWN_H
#define DEVICEMGR_RULES_SHOWN_H

#include "devicemgr/devicemgr.h"

struct state;

uint64_t shown_version(const struct state *state);
void shown_each(const struct state *state,
                void (*each)(void *user, const struct devicemgr_shown *shown), void *user);
void shown_devices(const struct state *state, const char *name,
                   void (*each)(void *user, const struct devicemgr_shown_device *device),
                   void *user);
bool shown_some(const struct state *state, const char *name, const uint32_t *places, size_t len,
                void (*each)(void *user, uint32_t place,
                             const struct devicemgr_shown_device *device, bool marked),
                void *user);

#endif
