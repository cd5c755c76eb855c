/*
 * The log's level, asked for and set by clients: one is answered when its level is in the file, and
 * counts.
 */
#ifndef SHIM_CONTROL_LOG_LEVELS_H
#define SHIM_CONTROL_LOG_LEVELS_H

#include <uv.h>

#include "cri-proto/control_v1.pb-c.h"
#include "shim/rpc/rpc.h"
#include "shim/settings.h"

struct log_levels;

/* All borrowed until log_levels_free(); `set` is called when a level is to count, 0: the
 * settings'. */
struct log_levels *log_levels_new(uv_loop_t *loop, const struct settings *settings,
                                  void (*set)(void *user, int level), void *user);
/* Answers it, now or when the disk has. One is set at a time. */
void log_levels_call(struct log_levels *levels, struct rpc_incoming *call,
                     const Control__V1__LogLevelRequest *request);
/* The call under way is over already (rpc_server_close()). */
void log_levels_free(struct log_levels *levels);

#endif
