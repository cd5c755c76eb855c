#include "shim/cluster/wipes.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "devicemgr/dra.h"
#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"

/* One whose slices are ordered to go; with "" those of all. */
struct wipes_driver {
    struct wipes *wipes;
    char *name;
    uint64_t order;
    bool is_away; /* still; only while all are looked at */
    UT_hash_handle hh;
};

static void driver_free(struct wipes_driver *driver)
{
    HASH_DEL(driver->wipes->ordered, driver);
    free(driver->name);
    free(driver);
}

static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct wipes_driver *driver = user;
    struct wipes *wipes = driver->wipes;

    (void)answer; /* it is wanted for ever: done */
    if (*driver->name) {
        log_info("DRA driver %s: its ResourceSlices of this node are gone, until it is back",
                 driver->name);
        devicemgr_driver_wiped(host_core(wipes->host), boot_now_ms(), driver->name);
        host_kick(wipes->host);
    } else {
        log_info("the ResourceSlices of this node are gone (dra.wipe_at_start)");
    }
    driver_free(driver);
}

static void order(struct wipes *wipes, const char *name)
{
    Agent__V1__WipeSlices wipe = AGENT__V1__WIPE_SLICES__INIT;
    Agent__V1__Order what = AGENT__V1__ORDER__INIT;
    struct wipes_driver *driver = must(calloc(1, sizeof *driver));

    wipe.driver = (char *)(uintptr_t)name;
    what.what_case = AGENT__V1__ORDER__WHAT_WIPE_SLICES;
    what.wipe_slices = &wipe;
    driver->wipes = wipes;
    driver->name = must(strdup(name));
    driver->is_away = true;
    HASH_ADD_KEYPTR(hh, wipes->ordered, driver->name, strlen(driver->name), driver);
    driver->order = cluster_orders_add(wipes->orders, &what, true, on_done, driver);
    if (driver->order == 0)
        driver_free(driver); /* looked for again */
}

struct look {
    struct wipes *wipes;
    uint64_t now_ms, next_ms; /* UINT64_MAX: not by time alone */
};

static void on_each(void *user, const struct devicemgr_driver *is)
{
    struct look *look = user;
    uint64_t due_ms = is->away_ms + look->wipes->config->dra.wipe_after_ms;
    struct wipes_driver *driver;

    if (is->connected || is->wiped)
        return;
    HASH_FIND_STR(look->wipes->ordered, is->name, driver);
    if (driver)
        driver->is_away = true;
    else if (look->now_ms >= due_ms)
        order(look->wipes, is->name);
    else if (due_ms < look->next_ms)
        look->next_ms = due_ms;
}

static void on_look(uv_timer_t *timer)
{
    struct look look = {.wipes = timer->data, .now_ms = boot_now_ms(), .next_ms = UINT64_MAX};
    struct wipes *wipes = look.wipes;
    struct wipes_driver *driver, *next;

    for (driver = wipes->ordered; driver; driver = driver->hh.next)
        driver->is_away = !*driver->name; /* what is wanted of the whole node is of no driver */
    if (host_ready(wipes->host))
        devicemgr_drivers(host_core(wipes->host), on_each, &look);
    for (driver = wipes->ordered; driver; driver = next) {
        next = driver->hh.next;
        if (driver->is_away)
            continue;
        log_info("DRA driver %s: is back, its ResourceSlices stay", driver->name);
        wipes->cancel(wipes->user, driver->order);
        driver_free(driver);
    }
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
                void (*cancel)(void *user, uint64_t order), void *user)
{
    *wipes = (struct wipes){
        .host = host, .config = config, .orders = orders, .cancel = cancel, .user = user};
    uv_timer_init(loop, &wipes->timer);
    wipes->timer.data = wipes;
    if (config->dra.enabled && config->dra.wipe_at_start)
        order(wipes, "");
    wipes_look(wipes);
}

void wipes_fini(struct wipes *wipes, uv_close_cb closed)
{
    while (wipes->ordered)
        driver_free(wipes->ordered);
    uv_close((uv_handle_t *)&wipes->timer, closed);
}
