/*
 * The list of devices, as messages.
 */
#include <stdlib.h>
#include <string.h>

#include "cri-proto/lifted_name.h"
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"

struct devices {
    struct list *list;
    const struct list_from *from;
    Control__V1__DevicesResponse *response;
    const char *resource; /* of the row before; NULL: there is none */
    char *pool;           /* that it is published in; NULL: in none */
};

/* ---- what is published ---- */

struct finding {
    struct devices *devices;
    const char *resource;
};

static void on_pool(void *to, const struct published_pool *is)
{
    const struct finding *finding = to;
    struct devices *devices = finding->devices;
    char *pool;

    if (strcmp(is->resource, finding->resource) != 0)
        return;
    pool = list_alloc(devices->list, strlen(is->name) + 1, 1);
    strcpy(pool, is->name);
    devices->pool = pool;
}

/* The pool of the resource; rows come resource by resource. */
static char *pool_of(struct devices *devices, const char *resource)
{
    struct finding finding = {devices, resource};

    if (!devices->from->published)
        return NULL;
    if (!devices->resource || strcmp(devices->resource, resource) != 0) {
        devices->pool = NULL;
        devices->from->published(devices->from->user, on_pool, &finding);
    }
    devices->resource = resource;
    return devices->pool;
}

/* Its slice is looked up once the page is whole. */
static void add_published(struct devices *devices, Control__V1__Device *row, const char *id)
{
    char *pool = row->listed ? pool_of(devices, row->resource) : NULL;
    Control__V1__Published *published;

    if (!pool)
        return;
    published = list_alloc(devices->list, 1, sizeof *published);
    control__v1__published__init(published);
    published->pool = list_text(devices->list, pool);
    published->name = list_alloc(devices->list, 1, LIFTED_NAME_BYTES);
    lifted_name_device(id, published->name);
    devices->list->bytes += LIFTED_NAME_BYTES + LIFTED_CLASS_BYTES; /* a slice's name, too */
    row->published = published;
}

/* Those of one pool, by their names. */
struct looking {
    struct list *list;
    Control__V1__Published **rows;
    size_t len;
};

static int compare_rows(const void *a, const void *b)
{
    return strcmp((*(Control__V1__Published *const *)a)->name,
                  (*(Control__V1__Published *const *)b)->name);
}

static int compare_name(const void *name, const void *row)
{
    return strcmp(name, (*(Control__V1__Published *const *)row)->name);
}

static void on_slice(void *to, const struct published_slice *slice)
{
    struct looking *looking = to;
    char *name = NULL;

    for (size_t i = 0; i < slice->len; i++) {
        Control__V1__Published **row = bsearch(slice->devices[i], looking->rows, looking->len,
                                               sizeof *looking->rows, compare_name);

        if (!row)
            continue;
        if (!name) {
            name = list_alloc(looking->list, strlen(slice->name) + 1, 1);
            strcpy(name, slice->name);
        }
        (*row)->slice = name;
    }
}

static void find_slices(struct devices *devices)
{
    const Control__V1__DevicesResponse *response = devices->response;
    const struct list_from *from = devices->from;
    struct looking looking = {.list = devices->list};

    looking.rows = list_alloc(devices->list, response->n_rows + 1, sizeof *looking.rows);
    for (size_t i = 0; i < response->n_rows; i++) {
        Control__V1__Published *published = response->rows[i]->published;

        if (published)
            looking.rows[looking.len++] = published;
        if (looking.len > 0 &&
            (i + 1 == response->n_rows ||
             strcmp(response->rows[i]->resource, response->rows[i + 1]->resource) != 0)) {
            const char *pool = looking.rows[0]->pool;

            qsort(looking.rows, looking.len, sizeof *looking.rows, compare_rows);
            from->slices(from->user, pool, on_slice, &looking);
            looking.len = 0;
        }
    }
}

/* ---- rows ---- */

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
    add_published(devices, row, is->id);
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, key, DEVICEMGR_DEVICE_KEY, &response->next, &response->n_next);
}

bool list_devices(struct list *list, const struct list_from *from,
                  const Control__V1__ListRequest *request)
{
    struct devices devices = {.list = list, .from = from};
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
    if (from->slices)
        find_slices(&devices);
    return true;
}
