/*
 * The lists of resources and of plugins, as messages.
 */
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

/* ---- resources ---- */

struct resources {
    struct list *list;
    Control__V1__ResourcesResponse *response;
};

static bool on_resource(void *user, const struct devicemgr_resource *is)
{
    struct resources *resources = user;
    Control__V1__ResourcesResponse *response = resources->response;
    struct list *list = resources->list;
    Control__V1__Resource *row = list_alloc(list, 1, sizeof *row);

    control__v1__resource__init(row);
    row->name = list_text(list, is->name);
    row->state = list_text(list, is->state);
    row->exclusive = is->exclusive;
    row->devices = is->devices;
    row->healthy = is->healthy;
    row->held = is->held;
    row->free = is->free;
    row->cordoned = is->cordoned;
    row->withdrawn = is->withdrawn;
    row->shown = is->shown;
    row->shown_devices = is->shown_devices;
    row->shown_healthy = is->shown_healthy;
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, &is->name, DEVICEMGR_RESOURCE_KEY, &response->next,
                        &response->n_next);
}

bool list_resources(struct list *list, const struct devicemgr *core,
                    const Control__V1__ListRequest *request)
{
    struct resources resources = {.list = list};

    resources.response =
        list_begin(list, request, DEVICEMGR_RESOURCE_KEY, CONTROL_PAGE_RESOURCES_MAX,
                   &control__v1__resources_response__descriptor);
    if (resources.response)
        devicemgr_resources(core, boot_now_ms(), &list->which, on_resource, &resources);
    return resources.response;
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

bool list_plugins(struct list *list, const struct devicemgr *core,
                  const Control__V1__ListRequest *request)
{
    struct plugins plugins = {.list = list};

    plugins.response = list_begin(list, request, DEVICEMGR_PLUGIN_KEY, CONTROL_PAGE_ROWS_MAX,
                                  &control__v1__plugins_response__descriptor);
    if (plugins.response)
        devicemgr_plugins(core, boot_now_ms(), &list->which, on_plugin, &plugins);
    return plugins.response;
}
