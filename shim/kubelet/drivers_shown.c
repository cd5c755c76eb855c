#include "shim/kubelet/drivers_shown.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "devicemgr/dra.h"
#include "shim/boot_clock.h"
#include "shim/must.h"

void drivers_shown_init(struct drivers_shown *shown, const struct config *config, struct host *host)
{
    *shown = (struct drivers_shown){
        .config = config, .host = host, .mask_ms = config->dra.mask_ms, .next_ms = UINT64_MAX};
}

bool drivers_shown_add(struct drivers_shown *shown, struct rpc_incoming *call)
{
    return open_streams_add(&shown->streams, call);
}

void drivers_shown_set_away_too(struct drivers_shown *shown, bool away_too)
{
    shown->away_too = away_too;
}

static uint64_t version_of(const struct drivers_shown *shown)
{
    return 2 * (devicemgr_drivers_version(host_core(shown->host)) + shown->masks) + shown->away_too;
}

/* Whether other drivers are shown by now, with nothing new of any of them. */
static bool masks_differ(const struct drivers_shown *shown)
{
    return shown->mask_ms != shown->config->dra.mask_ms || boot_now_ms() >= shown->next_ms;
}

bool drivers_shown_is_due(const struct drivers_shown *shown)
{
    const struct open_stream *stream;

    LIST_FOREACH(stream, &shown->streams.list, entry) {
        if (stream->sent != version_of(shown) || masks_differ(shown))
            return true;
    }
    return false;
}

struct looking {
    const struct drivers_shown *shown;
    const char *driver;
    bool found;
};

/* When the kubelet is to see that the driver is away; UINT64_MAX: not by time alone. */
static uint64_t masked_until_ms(const struct drivers_shown *shown,
                                const struct devicemgr_driver *driver)
{
    if (driver->moved)
        return 0;
    return driver->connected || shown->away_too ? UINT64_MAX : driver->away_ms + shown->mask_ms;
}

static bool serves(const struct drivers_shown *shown, const struct devicemgr_driver *driver)
{
    return boot_now_ms() < masked_until_ms(shown, driver);
}

static void look(void *user, const struct devicemgr_driver *driver)
{
    struct looking *looking = user;

    looking->found = looking->found ||
                     (strcmp(driver->name, looking->driver) == 0 && serves(looking->shown, driver));
}

bool drivers_shown_has(const struct drivers_shown *shown, const char *driver)
{
    struct looking looking = {.shown = shown, .driver = driver};

    if (!LIST_EMPTY(&shown->streams.list))
        devicemgr_drivers(host_core(shown->host), look, &looking);
    return looking.found;
}

/* ---- the message ---- */

struct filling {
    struct drivers_shown *shown;
    Bridge__V1__WatchDriversResponse message;
};

/* What it points to is the core's, until the next event. */
static void add(void *user, const struct devicemgr_driver *driver)
{
    struct filling *filling = user;
    Bridge__V1__WatchDriversResponse *message = &filling->message;
    Bridge__V1__Driver *out = must(malloc(sizeof *out));

    bridge__v1__driver__init(out);
    out->name = (char *)(uintptr_t)driver->name;
    out->services = (char **)(uintptr_t)driver->services;
    out->n_services = driver->services_len;
    out->serves = serves(filling->shown, driver);
    out->moved = driver->moved;
    out->moved_ms = driver->moved ? driver->moved_ms : 0;
    if (out->serves && masked_until_ms(filling->shown, driver) < filling->shown->next_ms)
        filling->shown->next_ms = masked_until_ms(filling->shown, driver);
    message->drivers =
        must(realloc(message->drivers, (message->n_drivers + 1) * sizeof *message->drivers));
    message->drivers[message->n_drivers++] = out;
}

bool drivers_shown_update(struct drivers_shown *shown)
{
    struct filling filling = {.shown = shown, .message = BRIDGE__V1__WATCH_DRIVERS_RESPONSE__INIT};
    Bridge__V1__WatchDriversResponse *message = &filling.message;
    struct open_stream *stream;
    bool all = true;

    if (!drivers_shown_is_due(shown))
        return true;
    shown->masks += masks_differ(shown);
    shown->mask_ms = shown->config->dra.mask_ms;
    shown->next_ms = UINT64_MAX;
    devicemgr_drivers(host_core(shown->host), add, &filling);
    LIST_FOREACH(stream, &shown->streams.list, entry) {
        if (stream->sent == version_of(shown))
            continue;
        if (rpc_incoming_queued(stream->call) <= DRIVERS_SHOWN_QUEUED_BYTES_MAX &&
            rpc_incoming_send(stream->call, &message->base) == 0)
            stream->sent = version_of(shown);
        else
            all = false;
    }
    for (size_t i = 0; i < message->n_drivers; i++)
        free(message->drivers[i]);
    free(message->drivers);
    return all;
}

uint64_t drivers_shown_next_ms(const struct drivers_shown *shown)
{
    return LIST_EMPTY(&shown->streams.list) ? UINT64_MAX : shown->next_ms;
}

void drivers_shown_fini(struct drivers_shown *shown)
{
    open_streams_fini(&shown->streams);
}
