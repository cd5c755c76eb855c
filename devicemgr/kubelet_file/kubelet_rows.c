#include "devicemgr/kubelet_file/kubelet_rows.h"

#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/resource_name.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/options.h"
#include "devicemgr/things/request.h"

static void add_row(struct kubelet_rows *rows, enum devicemgr_record_kind kind,
                    const char *const key[3], const ProtobufCMessage *message,
                    const struct kubelet_row *about)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *value = mem_alloc(bytes, 1);
    struct kubelet_row *row;

    protobuf_c_message_pack(message, value);
    rows->v = mem_grow(rows->v, rows->len, sizeof *rows->v);
    row = &rows->v[rows->len++];
    *row = *about;
    row->record = (struct devicemgr_record){
        .kind = kind, .key = {key[0], key[1], key[2]}, .value = value, .value_bytes = bytes};
}

/* ---- resources ---- */

struct known {
    const char *id;
    bool healthy;
    const struct kubelet_device *device; /* as some allocation has it; NULL: in none */
    UT_hash_handle hh;
};

static struct known *know(struct known **table, const char *id)
{
    struct known *known;

    HASH_FIND_STR(*table, id, known);
    if (known)
        return known;
    known = mem_alloc(1, sizeof *known);
    known->id = id;
    HASH_ADD_KEYPTR(hh, *table, known->id, strlen(known->id), known);
    return known;
}

static struct known *know_devices(const struct kubelet_checkpoint *from,
                                  const struct kubelet_resource *resource)
{
    struct known *table = NULL;

    for (size_t i = 0; i < resource->healthy.len; i++) {
        if (resource->healthy.v[i][0] != '\0')
            know(&table, resource->healthy.v[i])->healthy = true;
    }
    for (size_t i = 0; i < from->allocations_len; i++) {
        const struct kubelet_allocation *allocation = &from->allocations[i];

        if (strcmp(allocation->resource, resource->name) != 0)
            continue;
        for (size_t n = 0; n < allocation->devices_len; n++) {
            if (allocation->devices[n].id[0] != '\0')
                know(&table, allocation->devices[n].id)->device = &allocation->devices[n];
        }
    }
    return table;
}

static void fill_devices(Checkpoint__V1__Resource *row, Checkpoint__V1__Device *items,
                         const struct known *table)
{
    for (const struct known *known = table; known; known = known->hh.next) {
        Checkpoint__V1__Device *item = &items[row->n_devices];

        checkpoint__v1__device__init(item);
        item->id = (char *)known->id;
        item->healthy = known->healthy;
        if (known->device) {
            item->numa_nodes = known->device->nodes;
            item->n_numa_nodes = known->device->nodes_len;
        }
        row->devices[row->n_devices++] = item;
    }
}

static void add_resource(struct kubelet_rows *rows, const struct kubelet_checkpoint *from,
                         const struct kubelet_resource *resource)
{
    Checkpoint__V1__Resource row = CHECKPOINT__V1__RESOURCE__INIT;
    struct known *table = know_devices(from, resource), *known, *next;
    Checkpoint__V1__Device *items = mem_alloc(HASH_COUNT(table), sizeof *items);

    row.name = resource->name;
    row.devices = mem_alloc(HASH_COUNT(table), sizeof *row.devices);
    fill_devices(&row, items, table);
    add_row(rows, DEVICEMGR_RECORD_RESOURCE, (const char *const[]){resource->name, "", ""},
            &row.base, &(struct kubelet_row){.devices = row.n_devices});
    free(row.devices);
    free(items);
    HASH_ITER(hh, table, known, next) {
        HASH_DEL(table, known);
        free(known);
    }
}

/* ---- allocations ---- */

static bool is_valid(const struct kubelet_allocation *allocation)
{
    bool valid = allocation->pod_uid[0] != '\0' && allocation->container[0] != '\0' &&
                 resource_name_valid(allocation->resource) && allocation->devices_len > 0;

    for (size_t i = 0; i < allocation->devices_len; i++)
        valid = valid && allocation->devices[i].id[0] != '\0';
    return valid;
}

/* The plugin's own words, not the bridge's stand-in for them. */
static bool options_usable(const V1beta1__ContainerAllocateResponse *options)
{
    if (!options)
        return false;
    for (size_t i = 0; i < options->n_annotations; i++) {
        if (request_is_token_key(options->annotations[i]->key))
            return false;
    }
    return true;
}

static void add_allocation(struct kubelet_rows *rows, const struct kubelet_allocation *allocation,
                           const char *boot_id)
{
    Checkpoint__V1__Allocation row = CHECKPOINT__V1__ALLOCATION__INIT;
    struct kubelet_row about = {.devices = allocation->devices_len,
                                .with_options = options_usable(allocation->options)};

    row.pod_uid = allocation->pod_uid;
    row.container = allocation->container;
    row.resource = allocation->resource;
    row.device_ids = mem_alloc(allocation->devices_len, sizeof *row.device_ids);
    for (size_t i = 0; i < allocation->devices_len; i++)
        row.device_ids[row.n_device_ids++] = allocation->devices[i].id;
    if (about.with_options) {
        row.has_options = true;
        row.boot_id = (char *)boot_id;
        row.options.data = options_pack(allocation->options, &row.options.len);
    }
    add_row(rows, DEVICEMGR_RECORD_ALLOCATION,
            (const char *const[]){row.pod_uid, row.container, row.resource}, &row.base, &about);
    free(row.options.data);
    free(row.device_ids);
}

void kubelet_rows_init(struct kubelet_rows *rows, const struct kubelet_checkpoint *from,
                       const char *boot_id)
{
    *rows = (struct kubelet_rows){0};
    for (size_t i = 0; i < from->resources_len; i++) {
        if (resource_name_valid(from->resources[i].name))
            add_resource(rows, from, &from->resources[i]);
        else
            rows->left_out++;
    }
    for (size_t i = 0; i < from->allocations_len; i++) {
        if (is_valid(&from->allocations[i]))
            add_allocation(rows, &from->allocations[i], boot_id);
        else
            rows->left_out++;
    }
}

void kubelet_rows_fini(struct kubelet_rows *rows)
{
    for (size_t i = 0; i < rows->len; i++)
        free((void *)rows->v[i].record.value);
    free(rows->v);
    *rows = (struct kubelet_rows){0};
}
