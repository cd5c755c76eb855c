/*
 * A process' event loop. One that cannot have it, for want of memory or descriptors, says so and
 * ends, for its service manager to start it again.
 */
#ifndef SHIM_LOOP_H
#define SHIM_LOOP_H

#include <stdlib.h>

#include <uv.h>

#include "shim/log.h"

static inline void loop_init(uv_loop_t *loop)
{
    int err = uv_loop_init(loop);

    if (!err)
        return;
    log_error("the event loop cannot be made: %s", uv_strerror(err));
    exit(EXIT_FAILURE);
}

#endif
