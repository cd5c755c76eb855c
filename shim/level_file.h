/*
 * The log's level that an operator has set, in a file of state_dir: it outlives restarts.
 */
#ifndef SHIM_LEVEL_FILE_H
#define SHIM_LEVEL_FILE_H

#include <uv.h>

#define LEVEL_FILE "log-level"

/* Reads it in libuv's worker. `done` is told from the loop; `level` 0: none is set. A file that is
 * no level's is told in the log, and counts for nothing. */
void level_file_read(uv_loop_t *loop, const char *state_dir, void (*done)(void *user, int level),
                     void *user);

/* Writes it in libuv's worker, or removes it (`level` 0). `done` is told from the loop: 0, or a
 * negative errno, with which nothing has changed. */
void level_file_write(uv_loop_t *loop, const char *state_dir, int level,
                      void (*done)(void *user, int level, int err), void *user);

#endif
