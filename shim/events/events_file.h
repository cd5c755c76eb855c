/*
 * The file of events, in state_dir: records one behind the other (event.h), the newest last.
 * Appended to, and written anew when it has grown too long, or when it is not what it was.
 *
 * All of it blocks: it is for libuv's worker. Nothing is synced: it outlives the process, and an
 * orderly end of the kernel.
 */
#ifndef SHIM_EVENTS_EVENTS_FILE_H
#define SHIM_EVENTS_EVENTS_FILE_H

#include <stddef.h>
#include <stdint.h>

#define EVENTS_FILE "events"

/* All of it, for the caller to free; *len 0: there is none. 0 or a negative errno: -EFBIG for one
 * over EVENTS_FILE_BYTES_MAX, -EINVAL for what is no file. */
int events_file_read(const char *path, uint8_t **bytes, size_t *len)
    __attribute__((warn_unused_result));

/* Appends to a file that has `before` bytes: all, or nothing. 0 or a negative errno; -ESTALE: it
 * has not so many. */
int events_file_append(const char *path, size_t before, const uint8_t *bytes, size_t len)
    __attribute__((warn_unused_result));

#endif
