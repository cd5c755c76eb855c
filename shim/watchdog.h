/*
 * The service manager's watchdog (sd_watchdog_enabled(3)), fed from the loop: a process whose loop
 * hangs, or that is stopped, is killed and started again. Without one, nothing.
 */
#ifndef SHIM_WATCHDOG_H
#define SHIM_WATCHDOG_H

#include <uv.h>

struct watchdog {
    uv_timer_t timer;
};

/* Feeds it from now on, four times as often as it takes. `watchdog` is the loop's until that has
 * run its close callbacks. */
void watchdog_start(struct watchdog *watchdog, uv_loop_t *loop);
/* At the very end: what stops is fed, too. */
void watchdog_close(struct watchdog *watchdog);

#endif
