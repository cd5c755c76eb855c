#include "shim/watchdog.h"

#include "shim/log.h"
#include "shim/service_manager.h"

/* A feed that does not arrive, or comes late on a busy node, must not be the end. */
#define FEEDS_PER_PERIOD 4

static void feed(uv_timer_t *timer)
{
    (void)timer;
    service_manager_notify("WATCHDOG=1");
    log_tell_counts(); /* by now the journal may be there again */
}

void watchdog_start(struct watchdog *watchdog, uv_loop_t *loop)
{
    uint64_t pause_ms = service_manager_watchdog_ms() / FEEDS_PER_PERIOD;

    uv_timer_init(loop, &watchdog->timer);
    if (pause_ms > 0)
        uv_timer_start(&watchdog->timer, feed, 0, pause_ms);
}

void watchdog_close(struct watchdog *watchdog)
{
    uv_close((uv_handle_t *)&watchdog->timer, NULL);
}
