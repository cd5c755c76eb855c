/*
 * Waiting for a condition in a test that runs a loop. The guard of the world (rpc_fixture.h)
 * ends a test that waits in vain.
 */
#ifndef TESTS_UNIT_WAITING_H
#define TESTS_UNIT_WAITING_H

#include <poll.h>

#include "tests/unit/rpc_fixture.h"

#define WAIT(world, condition)                                                                     \
    do {                                                                                           \
        while (!(condition))                                                                       \
            wait_turn(world);                                                                      \
    } while (0)

/* One turn of the loop. Not UV_RUN_ONCE: that runs the timers and then waits for more, even if they
 * were what the test waits for. */
static inline void wait_turn(struct world *world)
{
    struct pollfd fd = {.fd = uv_backend_fd(&world->loop), .events = POLLIN};

    poll(&fd, 1, uv_backend_timeout(&world->loop));
    uv_run(&world->loop, UV_RUN_NOWAIT);
}

#endif
