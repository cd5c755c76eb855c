/*
 * The lists of resources and of plugins, as messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

/* ---- resources ---- */

/*
 * A resource of which very many devices are held is counted device by device, over several pages:
 * where the next one begins is then its name, the device behind which it goes on, and what was
 * counted so far.
 */
enum counted {
    HELD,
    FREE,
    SHOWN,
    SHOWN_HEALTHY,
    COUNTED,
};
#define PART_KEY (DEVICEMGR_DEVICE_KEY + COUNTED)
#define NUMBER_BYTES 24

struct resources {
    struct list *list;
    Control__V1__ResourcesResponse *response;
    const struct devicemgr *core;
    const char *const *part; /* the request's place, if it is in a resource; NULL: none */
    const char *part_id;     /* of it: the device */
    size_t steps;            /* of the page */
};

struct counting {
    size_t counts[COUNTED];
    size_t left;    /* devices that may be looked at yet */
    const char *id; /* it goes on behind this one; NULL: all were counted */
};

static bool on_counted(void *user, const struct devicemgr_device *device)
{
    struct counting *counting = user;

    counting->counts[HELD] += device->holders_len > 0;
    counting->counts[FREE] += device->free;
    counting->counts[SHOWN] += device->shown;
    counting->counts[SHOWN_HEALTHY] += device->shown_healthy;
    if (--counting->left > 0)
        return true;
    counting->id = device->id;
    return false;
}

static char *number_text(struct list *list, size_t number)
{
    char *text = list_alloc(list, 1, NUMBER_BYTES);

    snprintf(text, NUMBER_BYTES, "%zu", number);
    return text;
}

static void set_next(struct resources *resources, const char *name, const struct counting *counting)
{
    Control__V1__ResourcesResponse *response = resources->response;
    struct list *list = resources->list;

    response->next = list_alloc(list, PART_KEY, sizeof *response->next);
    response->n_next = PART_KEY;
    response->next[0] = list_text(list, name);
    response->next[1] = list_id(list, counting->id);
    for (size_t i = 0; i < COUNTED; i++)
        response->next[DEVICEMGR_DEVICE_KEY + i] = number_text(list, counting->counts[i]);
}

/* False: it goes on in the next page. */
static bool count_devices(struct resources *resources, struct devicemgr_resource *row)
{
    const char *after[DEVICEMGR_DEVICE_KEY] = {row->name, ""};
    const struct devicemgr_which which = {.resource = row->name, .after = after};
    struct counting counting = {.left = CONTROL_PAGE_COUNTED_MAX};

    if (resources->part && strcmp(resources->part[0], row->name) == 0) {
        after[1] = resources->part_id;
        for (size_t i = 0; i < COUNTED; i++)
            counting.counts[i] = strtoull(resources->part[DEVICEMGR_DEVICE_KEY + i], NULL, 10);
    }
    if (resources->steps > 0)
        counting.id = after[1]; /* it begins in the next page */
    else
        devicemgr_devices(resources->core, boot_now_ms(), &which, on_counted, &counting);
    if (counting.id) {
        set_next(resources, row->name, &counting);
        return false;
    }
    row->held = counting.counts[HELD];
    row->free = counting.counts[FREE];
    row->shown_devices = counting.counts[SHOWN];
    row->shown_healthy = counting.counts[SHOWN_HEALTHY];
    row->steps = CONTROL_PAGE_COUNTED_MAX;
    return true;
}

static bool on_resource(void *user, const struct devicemgr_resource *found)
{
    struct devicemgr_resource told = *found, *is = &told;
    struct resources *resources = user;
    Control__V1__ResourcesResponse *response = resources->response;
    struct list *list = resources->list;
    Control__V1__Resource *row;

    if (is->uncounted && !count_devices(resources, is))
        return false;
    resources->steps += is->steps;
    row = list_alloc(list, 1, sizeof *row);

    control__v1__resource__init(row);
    row->name = list_text(list, is->name);
    row->state = list_text(list, is->state);
    row->exclusive = is->exclusive;
    row->devices = is->devices;
    row->healthy = is->healthy;
    row->held = is->held;
    row->free = is->free;
    row->cordoned = is->cordoned;
    row->withdrawn = is->withdrawn != NULL;
    row->withdrawal = list_cordon(list, is->withdrawn, is->withdrawn_at_s);
    row->shown = is->shown;
    row->shown_devices = is->shown_devices;
    row->shown_healthy = is->shown_healthy;
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    if (resources->steps >= CONTROL_PAGE_COUNTED_MAX)
        list->rows_max = list->rows;
    return list_goes_on(list, &is->name, DEVICEMGR_RESOURCE_KEY, &response->next,
                        &response->n_next);
}

bool list_resources(struct list *list, const struct list_from *from,
                    const Control__V1__ListRequest *request)
{
    bool part = request->n_after == PART_KEY;
    struct resources resources = {.list = list, .core = from->core};

    resources.response =
        list_begin(list, request, part ? PART_KEY : DEVICEMGR_RESOURCE_KEY,
                   CONTROL_PAGE_RESOURCES_MAX, &control__v1__resources_response__descriptor);
    if (!resources.response)
        return false;
    list->which.again = part;
    if (part) {
        resources.part = list->which.after;
        resources.part_id = resources.part[1];
        if (!list_find_id(from->core, resources.part[0], &resources.part_id))
            return false;
    }
    devicemgr_resources(from->core, boot_now_ms(), &list->which, on_resource, &resources);
    return true;
}

/* ---- plugins ---- */

struct plugins {
    struct list *list;
    Control__V1__PluginsResponse *response;
};

static bool on_plugin(void *user, const struct devicemgr_plugin *is)
{
    struct plugins *plugins = user;
    Control__V1__PluginsResponse *response = plugins->response;
    struct list *list = plugins->list;
    Control__V1__Plugin *row = list_alloc(list, 1, sizeof *row);

    control__v1__plugin__init(row);
    row->resource = list_text(list, is->resource);
    row->socket = list_text(list, is->socket);
    row->state = list_text(list, is->state);
    row->since_ms = is->since_ms_ago;
    row->away = is->stopped;
    row->away_ms = is->stopped_ms_ago;
    row->grace_left_ms = is->grace_left_ms;
    row->grace_more_ms = is->grace_more_ms;
    row->error = list_text(list, is->error ? is->error : "");
    row->options_known = is->have_options;
    row->preferred_allocation = is->preferred;
    row->pre_start = is->pre_start;
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, &is->resource, DEVICEMGR_PLUGIN_KEY, &response->next,
                        &response->n_next);
}

bool list_plugins(struct list *list, const struct list_from *from,
                  const Control__V1__ListRequest *request)
{
    struct plugins plugins = {.list = list};

    plugins.response = list_begin(list, request, DEVICEMGR_PLUGIN_KEY, CONTROL_PAGE_ROWS_MAX,
                                  &control__v1__plugins_response__descriptor);
    if (plugins.response)
        devicemgr_plugins(from->core, boot_now_ms(), &list->which, on_plugin, &plugins);
    return plugins.response;
}
