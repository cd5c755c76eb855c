/*
 * The settings a process starts with; daemon and bridge read the same file.
 */
#ifndef SHIM_SETTINGS_H
#define SHIM_SETTINGS_H

#include "config/config.h"

/* Reads `path`; NULL: CONFIG_PATH_DEFAULT if it is there, else the defaults. 0 and *out, which the
 * caller gives to config_fini(), or -1, said in the log. */
int settings_load(const char *path, struct config *out) __attribute__((warn_unused_result));

#endif
