/*
 * How often the bridge has been started lately, in a file that outlives it: one that dies as soon
 * as it has registered, and is started again at once, must not register twenty times a second. Each
 * registration costs the kubelet a write of its whole checkpoint, and fails what it admits just
 * then.
 */
#ifndef SHIM_BRIDGE_STARTS_H
#define SHIM_BRIDGE_STARTS_H

#include <stdint.h>

/* Beside the feed's socket. */
#define STARTS_NAME "bridge.starts"

/* Notes this start. How long it must wait before it registers: not at all until STARTS_FREE others
 * in a row lasted less than STARTS_QUICK_MS each. `now_ms` is CLOCK_BOOTTIME. A file that cannot be
 * read or written counts nothing. */
uint64_t starts_note(const char *path, uint64_t now_ms);

/* This process ends because it was told to: the next one begins a new row. */
void starts_forget(const char *path);

#endif
