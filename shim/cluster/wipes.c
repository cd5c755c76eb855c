#include "shim/cluster/wipes.h"

#include "devicemgr/dra.h"
#include "shim/boot_clock.h"
#include "shim/log.h"

/* Of what is ordered by name the whole node's slices are "". */
#define WHOLE_NODE ""

static void on_done(void *user, const char *name)
{
    struct wipes *wipes = user;

    if (*name) {
        log_info("DRA driver %s: its ResourceSlices of this node are gone, until it is back", name);
        devicemgr_driver_wiped(host_core(wipes->host), boot_now_ms(), name);
        host_kick(wipes->host);
    } else {
        log_info("the ResourceSlices of this node are gone (dra.wipe_at_start)");
    }
}

static void order(struct wipes *wipes, const char *name)
{
    Agent__V1__WipeSlices wipe = AGENT__V1__WIPE_SLICES__INIT;
    Agent__V1__Order what = AGENT__V1__ORDER__INIT;

    wipe.driver = (char *)(uintptr_t)name;
    what.what_case = AGENT__V1__ORDER__WHAT_WIPE_SLICES;
    what.wipe_slices = &wipe;
    standing_give(standing_want(&wipes->ordered, name), &what);
}

struct look {
    struct wipes *wipes;
    uint64_t now_ms, next_ms; /* UINT64_MAX: not by time alone */
};

static void on_each(void *user, const struct devicemgr_driver *is)
{
    struct look *look = user;
    uint64_t due_ms = is->away_ms + look->wipes->config->dra.wipe_after_ms;

    if (is->connected || is->wiped || is->moved)
        return;
    if (look->now_ms >= due_ms || standing_find(&look->wipes->ordered, is->name))
        order(look->wipes, is->name);
    else if (due_ms < look->next_ms)
        look->next_ms = due_ms;
}

static void on_taken_back(void *user, const struct standing_order *order)
{
    (void)user;
    log_info("DRA driver %s: is back, with the kubelet, or forgotten: its ResourceSlices stay",
             order->name);
}

static void on_look(uv_timer_t *timer)
{
    struct look look = {.wipes = timer->data, .now_ms = boot_now_ms(), .next_ms = UINT64_MAX};
    struct wipes *wipes = look.wipes;

    standing_look(&wipes->ordered);
    if (standing_find(&wipes->ordered, WHOLE_NODE))
        order(wipes, WHOLE_NODE); /* of no driver */
    if (host_ready(wipes->host))
        devicemgr_drivers(host_core(wipes->host), on_each, &look);
    standing_looked(&wipes->ordered, on_taken_back);
    if (look.next_ms != UINT64_MAX)
        uv_timer_start(timer, on_look, look.next_ms - look.now_ms, 0);
}

void wipes_look(struct wipes *wipes)
{
    uint64_t version =
        host_ready(wipes->host) ? devicemgr_drivers_version(host_core(wipes->host)) : 0;

    if (version != wipes->version || wipes->config->dra.wipe_after_ms != wipes->after_ms)
        uv_timer_start(&wipes->timer, on_look, 0, 0);
    wipes->version = version;
    wipes->after_ms = wipes->config->dra.wipe_after_ms;
}

void wipes_init(struct wipes *wipes, uv_loop_t *loop, const struct config *config,
                struct host *host, struct cluster_orders *orders,
                void (*cancel)(void *cluster, uint64_t order), void *cluster)
{
    *wipes = (struct wipes){.host = host, .config = config, .cluster = cluster};
    standing_init(&wipes->ordered, orders, cancel, cluster, on_done, wipes);
    uv_timer_init(loop, &wipes->timer);
    wipes->timer.data = wipes;
    if (config->dra.enabled && config->dra.wipe_at_start)
        order(wipes, WHOLE_NODE);
    wipes_look(wipes);
}

void wipes_fini(struct wipes *wipes, uv_close_cb closed)
{
    standing_fini(&wipes->ordered);
    uv_close((uv_handle_t *)&wipes->timer, closed);
}
