/*
 * Directories the daemon makes for its sockets.
 */
#ifndef SHIM_DIRECTORY_H
#define SHIM_DIRECTORY_H

#include <sys/types.h>

/* Makes `path` and what is missing above it, each with `mode` whatever the umask. One that is there
 * is left as it is. 0 or a negative errno (-ENOTDIR: something else is in the way). */
int directory_make(const char *path, mode_t mode) __attribute__((warn_unused_result));

#endif
