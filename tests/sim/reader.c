#include "tests/sim/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "tests/sim/count.h"
#include "tests/sim/property.h"
#include "tests/sim/world.h"

#define READS_PERCENT 2
#define PAGE_MAX 4

/* What the rows of one resource add up to. */
struct sums {
    size_t listed, healthy, held, free, shown, shown_healthy;
};

/* Who reads, and what was read last. */
struct reading {
    struct world *w;
    struct rng rng;
    uint64_t now_ms;
    const char *key[DEVICEMGR_ALLOCATION_KEY];
    size_t rows; /* so far */
    size_t left; /* of this page; 0: it is full */
    struct sums sums;
    size_t ids; /* all that allocations have */
};

/* Keys are the core's own texts, and nothing happens meanwhile: the next page begins with them. */
static bool read_on(struct reading *reading, const char *const *key, size_t parts)
{
    int order = 0;

    for (size_t i = 0; reading->rows > 0 && order == 0 && i < parts; i++)
        order = strverscmp(reading->key[i], key[i]);
    check_that(reading->w, reading->rows == 0 || order < 0,
               "rows are listed in natural order, each once: %s", key[0]);
    memcpy(reading->key, key, parts * sizeof *key);
    reading->rows++;
    return --reading->left > 0;
}

/* The next page, if there was one before that was full. */
static bool turns(struct reading *reading, struct devicemgr_which *which)
{
    if (reading->left > 0)
        return false;
    reading->left = 1 + rng_below(&reading->rng, PAGE_MAX);
    which->after = reading->rows > 0 ? reading->key : NULL;
    return true;
}

static void begin(struct reading *reading)
{
    reading->rows = reading->left = 0;
}

/* ---- devices ---- */

static bool on_device(void *user, const struct devicemgr_device *device)
{
    struct reading *reading = user;
    struct sums *sums = &reading->sums;

    check_that(reading->w, device->listed || device->holders_len > 0 || device->shown,
               "what is not listed any more is held by somebody, or shown");
    check_that(reading->w, device->listed || !device->free, "what is free is listed");
    sums->listed += device->listed;
    sums->healthy += device->healthy;
    sums->held += device->holders_len > 0;
    sums->free += device->free;
    sums->shown += device->shown;
    sums->shown_healthy += device->shown_healthy;
    return read_on(reading, (const char *const[]){device->resource, device->id},
                   DEVICEMGR_DEVICE_KEY);
}

static void on_shown(void *user, const struct devicemgr_shown_device *device)
{
    struct sums *sums = user;

    sums->shown++;
    sums->shown_healthy += device->healthy;
}

static bool on_resource(void *user, const struct devicemgr_resource *row)
{
    struct reading *reading = user,
                   devices = {.w = reading->w, .rng = reading->rng, .now_ms = reading->now_ms};
    struct devicemgr_which which = {.resource = row->name};
    const struct sums *sums = &devices.sums;
    struct sums shown = {0};

    while (turns(&devices, &which))
        devicemgr_devices(reading->w->shim.core, reading->now_ms, &which, on_device, &devices);
    check_that(reading->w, sums->listed == row->devices && sums->healthy == row->healthy,
               "a resource has as many devices as are listed");
    check_that(reading->w, row->uncounted || (sums->held == row->held && sums->free == row->free),
               "as many are held and free as are said to be: %zu %zu, %zu %zu", sums->held,
               row->held, sums->free, row->free);
    devicemgr_shown_devices(reading->w->shim.core, row->name, on_shown, &shown);
    check_that(reading->w,
               (row->uncounted ||
                (sums->shown == row->shown_devices && sums->shown_healthy == row->shown_healthy)) &&
                   sums->shown == shown.shown && sums->shown_healthy == shown.shown_healthy,
               "as many devices are said to be shown as are: %zu %zu, %zu %zu, %zu %zu",
               sums->shown, row->shown_devices, shown.shown, sums->shown_healthy,
               row->shown_healthy, shown.shown_healthy);
    count_add(COUNT_LISTED_RESOURCES);
    return read_on(reading, &row->name, DEVICEMGR_RESOURCE_KEY);
}

/* ---- the others ---- */

static bool on_plugin(void *user, const struct devicemgr_plugin *row)
{
    struct reading *reading = user;

    check_that(reading->w, row->stopped || (!row->error && row->grace_left_ms == 0),
               "only a plugin that is away has a grace period");
    return read_on(reading, &row->resource, DEVICEMGR_PLUGIN_KEY);
}

static bool on_allocation(void *user, const struct devicemgr_allocation *row)
{
    struct reading *reading = user;
    bool over = strcmp(row->state, "over") == 0;

    check_that(reading->w, row->ids_len > 0, "an allocation has devices");
    reading->ids += over ? 0 : row->ids_len;
    return read_on(reading,
                   (const char *const[]){row->pod_namespace, row->pod_name, row->pod_uid,
                                         row->container, row->resource},
                   DEVICEMGR_ALLOCATION_KEY);
}

static bool on_pod(void *user, const struct devicemgr_pod *row)
{
    struct reading *reading = user;

    for (size_t i = 0; i < row->containers_len; i++) {
        const struct devicemgr_pod_container *one = &row->containers[i];
        bool promised = strcmp(one->state, "promised") == 0;

        check_that(reading->w, one->devices > 0 || one->waits || one->refused_word,
                   "a container that is listed holds, waits or was refused");
        check_that(reading->w, (one->devices > 0) == (one->state[0] != '\0'),
                   "who has devices has a state");
        reading->ids -= one->devices > reading->ids ? reading->ids : one->devices;
        count_add(one->waits         ? COUNT_LISTED_WAITS
                  : promised         ? COUNT_LISTED_PROMISED
                  : one->devices > 0 ? COUNT_LISTED_HOLDS
                                     : COUNT_LISTED_REFUSED);
    }
    return read_on(reading, (const char *const[]){row->pod_namespace, row->name, row->uid},
                   DEVICEMGR_POD_KEY);
}

static void read_all(struct reading *reading)
{
    const struct devicemgr *core = reading->w->shim.core;
    struct devicemgr_which which = {0};

    begin(reading);
    while (turns(reading, &which))
        devicemgr_resources(core, reading->now_ms, &which, on_resource, reading);
    begin(reading);
    while (turns(reading, &which))
        devicemgr_plugins(core, reading->now_ms, &which, on_plugin, reading);
    begin(reading);
    while (turns(reading, &which))
        devicemgr_allocations(core, reading->now_ms, &which, on_allocation, reading);
    begin(reading);
    while (turns(reading, &which))
        devicemgr_pods(core, reading->now_ms, &which, on_pod, reading);
    check_that(reading->w, reading->ids == 0, "pods have what the allocations say");
}

/* Not by world_draw() and shim_now_ms(): neither world nor core may notice. */
void reader_reads(struct world *w)
{
    struct reading reading = {
        .w = w, .rng = {w->play.seed}, .now_ms = w->now_ms - w->shim.boot_ms + 1};

    rng_mix(&reading.rng, DRAW_LISTS);
    rng_mix(&reading.rng, w->steps);
    if (!w->play.unasked && w->shim.core && rng_percent(&reading.rng, READS_PERCENT))
        read_all(&reading);
}
