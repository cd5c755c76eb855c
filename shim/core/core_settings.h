/*
 * The core's settings, of what the configuration says.
 */
#ifndef SHIM_CORE_CORE_SETTINGS_H
#define SHIM_CORE_CORE_SETTINGS_H

#include "config/config.h"
#include "devicemgr/devicemgr.h"

/* `config` and `boot_id` are borrowed until core_settings_fini(). */
void core_settings_init(struct devicemgr_settings *settings, const struct config *config,
                        const char *boot_id);
void core_settings_fini(struct devicemgr_settings *settings);

#endif
