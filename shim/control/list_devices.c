/*
 * The list of devices, as messages.
 */
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

struct devices {
    struct list *list;
    Control__V1__DevicesResponse *response;
};

static void add_holder(struct list *list, Control__V1__Device *device,
                       const struct devicemgr_holder *is)
{
    Control__V1__Holder *holder = list_alloc(list, 1, sizeof *holder);

    control__v1__holder__init(holder);
    holder->pod_uid = list_text(list, is->pod_uid);
    holder->pod_namespace = list_text(list, is->pod_namespace);
    holder->pod_name = list_text(list, is->pod_name);
    holder->container = list_text(list, is->container);
    holder->state = list_text(list, is->state);
    device->holders[device->n_holders++] = holder;
}

static void add_holders(struct list *list, Control__V1__Device *device,
                        const struct devicemgr_device *is)
{
    size_t len = is->holders_len;

    device->holders_total = len;
    if (len == 0)
        return;
    if (len > CONTROL_HOLDERS_MAX)
        len = CONTROL_HOLDERS_MAX;
    device->holders = list_alloc(list, len, sizeof *device->holders);
    while (device->n_holders < len)
        add_holder(list, device, &is->holders[device->n_holders]);
}

static bool on_device(void *user, const struct devicemgr_device *is)
{
    struct devices *devices = user;
    Control__V1__DevicesResponse *response = devices->response;
    struct list *list = devices->list;
    Control__V1__Device *row = list_alloc(list, 1, sizeof *row);
    const char *key[DEVICEMGR_DEVICE_KEY] = {is->resource};

    control__v1__device__init(row);
    row->resource = list_text(list, is->resource);
    row->id = list_id(list, is->id);
    key[1] = row->id;
    row->listed = is->listed;
    row->healthy = is->healthy;
    row->since_ms = is->since_ms_ago;
    row->free = is->free;
    row->shown = is->shown;
    row->shown_healthy = is->shown_healthy;
    row->numa_nodes = (int64_t *)(uintptr_t)is->nodes; /* only packed */
    row->n_numa_nodes = is->nodes_len;
    list->bytes += is->nodes_len * 2;
    row->cordon = list_cordon(list, is->cordon, is->cordon_at_s);
    row->withdrawn = is->withdrawn != NULL;
    row->withdrawal = list_cordon(list, is->withdrawn, is->withdrawn_at_s);
    add_holders(list, row, is);
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, key, DEVICEMGR_DEVICE_KEY, &response->next, &response->n_next);
}

bool list_devices(struct list *list, const struct list_from *from,
                  const Control__V1__ListRequest *request)
{
    struct devices devices = {.list = list};
    const char *after[DEVICEMGR_DEVICE_KEY];

    devices.response = list_begin(list, request, DEVICEMGR_DEVICE_KEY, CONTROL_PAGE_ROWS_MAX,
                                  &control__v1__devices_response__descriptor);
    if (!devices.response)
        return false;
    if (list->which.after) {
        after[0] = list->which.after[0];
        after[1] = list->which.after[1];
        list->which.after = after;
        if (!list_find_id(from->core, after[0], &after[1]))
            return false;
    }
    devicemgr_devices(from->core, boot_now_ms(), &list->which, on_device, &devices);
    return true;
}
