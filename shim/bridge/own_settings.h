/*
 * The bridge's settings, as the daemon has read them of the same file.
 */
#ifndef SHIM_BRIDGE_OWN_SETTINGS_H
#define SHIM_BRIDGE_OWN_SETTINGS_H

#include <stdbool.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/settings.h"

/* Takes over what may change without a restart, if the daemon has read the file later; and if all
 * else is as it was, its own are no longer degraded. Logs what has changed. False: all is as
 * before. */
bool own_settings_take(struct settings *own, const Bridge__V1__Settings *daemons);

#endif
