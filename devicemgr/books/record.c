#include "devicemgr/books/record.h"

#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/resource_name.h"
#include "cri-proto/utf8.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/options.h"
#include "devicemgr/things/text.h"

uint8_t *record_pack(const struct ProtobufCMessage *row, size_t *bytes_len)
{
    uint8_t *bytes;

    *bytes_len = protobuf_c_message_get_packed_size(row);
    bytes = mem_alloc(*bytes_len, 1);
    protobuf_c_message_pack(row, bytes);
    return bytes;
}

/* ---- resource ---- */

static void put_stop(const struct endpoint *endpoint, const char *boot_id,
                     Checkpoint__V1__Resource *row)
{
    if (!endpoint->stop_stored)
        return;
    row->stopped = true;
    row->stopped_ms = endpoint->stopped_ms;
    row->stopped_boot_id = (char *)boot_id;
    row->stop_reason = endpoint->stop_reason;
}

/* What is closed has all of them: who is held back is not forgotten by a restart. */
static uint64_t unhealthy_since_ms(const struct resource *resource, const struct device *device)
{
    bool kept = resource->health_closed || ids_contain_sorted(&resource->no_execute, device->id);

    return kept && !device->healthy ? device->since_ms : 0;
}

uint8_t *record_of_resource(const struct resource *resource, const char *boot_id, size_t *bytes_len)
{
    const struct devices *devices = &resource->devices;
    Checkpoint__V1__Resource row = CHECKPOINT__V1__RESOURCE__INIT;
    Checkpoint__V1__Device *items = mem_alloc(devices->len, sizeof *items);
    uint8_t *bytes;

    row.name = resource->name;
    row.endpoint = resource->endpoint.socket_good;
    row.uid = resource->endpoint.uid_good;
    row.pre_start_required = resource->endpoint.pre_start;
    row.get_preferred_allocation_available = resource->endpoint.has_preference;
    put_stop(&resource->endpoint, boot_id, &row);
    row.no_execute_ids = resource->no_execute.v;
    row.n_no_execute_ids = resource->no_execute.len;
    row.health_closed = resource->health_closed;
    if (resource->no_execute.len > 0 || resource->health_closed)
        row.no_execute_boot_id = (char *)boot_id;
    row.devices = mem_alloc(devices->len, sizeof *row.devices);
    row.n_devices = devices->len;
    for (size_t i = 0; i < devices->len; i++) {
        checkpoint__v1__device__init(&items[i]);
        items[i].id = devices->items[i].id;
        items[i].healthy = devices->items[i].healthy;
        items[i].numa_nodes = devices->items[i].nodes;
        items[i].n_numa_nodes = devices->items[i].nodes_len;
        items[i].unhealthy_since_ms = unhealthy_since_ms(resource, &devices->items[i]);
        row.devices[i] = &items[i];
    }
    bytes = record_pack(&row.base, bytes_len);
    free(row.devices);
    free(items);
    return bytes;
}

static void restore_devices(struct resource *resource, uint64_t now_ms,
                            const Checkpoint__V1__Resource *row)
{
    struct device_entry *entries = mem_alloc(row->n_devices, sizeof *entries);
    struct devices_change change;

    for (size_t i = 0; i < row->n_devices; i++)
        entries[i] =
            (struct device_entry){row->devices[i]->id, row->devices[i]->healthy,
                                  row->devices[i]->numa_nodes, row->devices[i]->n_numa_nodes};
    devices_update(&resource->devices, now_ms, entries, row->n_devices, &change);
    free(entries);
}

static void restore_health(struct resource *resource, uint64_t now_ms, const char *boot_id,
                           const Checkpoint__V1__Resource *row)
{
    if (!same_boot(row->no_execute_boot_id, boot_id))
        return;
    ids_copy(&resource->no_execute, row->no_execute_ids, row->n_no_execute_ids);
    ids_sort(&resource->no_execute);
    resource->health_closed = row->health_closed;
    for (size_t i = 0; i < row->n_devices; i++) {
        const Checkpoint__V1__Device *device = row->devices[i];

        if (!device->healthy && device->unhealthy_since_ms > 0)
            devices_set_since(&resource->devices, device->id,
                              earlier(device->unhealthy_since_ms, now_ms));
    }
}

static void restore_stop(struct endpoint *endpoint, uint64_t now_ms, const char *boot_id,
                         const Checkpoint__V1__Resource *row)
{
    if (!row->stopped || !same_boot(row->stopped_boot_id, boot_id) || row->stopped_ms > now_ms)
        return;
    endpoint_stop(endpoint, row->stopped_ms, row->stop_reason);
    endpoint_set_stop_stored(endpoint, true);
}

int record_restore_resource(struct resource **table, uint64_t now_ms, const char *boot_id,
                            const struct devicemgr_record *record)
{
    Checkpoint__V1__Resource *row =
        checkpoint__v1__resource__unpack(NULL, record->value_bytes, record->value);
    struct resource *resource;

    if (!row || strcmp(row->name, record->key[0]) != 0 || !resource_name_valid(row->name) ||
        resources_find(*table, row->name) || HASH_COUNT(*table) >= RESOURCES_MAX) {
        checkpoint__v1__resource__free_unpacked(row, NULL);
        return -1;
    }
    resource = resources_add(table, row->name);
    resource->stored = true;
    endpoint_restore(&resource->endpoint, row->endpoint, row->uid, row->pre_start_required,
                     row->get_preferred_allocation_available);
    restore_stop(&resource->endpoint, now_ms, boot_id, row);
    restore_devices(resource, now_ms, row);
    restore_health(resource, now_ms, boot_id, row);
    checkpoint__v1__resource__free_unpacked(row, NULL);
    return 0;
}

/* ---- allocation ---- */

/* The pairs as they stand in a row; in one piece, which the caller frees. */
static Checkpoint__V1__ByClaim **pack_by_claims(const struct by_claims *by)
{
    Checkpoint__V1__ByClaim **pointers, *pairs;

    pointers = mem_alloc(by->len, sizeof *pointers + sizeof *pairs);
    pairs = (Checkpoint__V1__ByClaim *)(pointers + by->len);
    for (size_t i = 0; i < by->len; i++) {
        checkpoint__v1__by_claim__init(&pairs[i]);
        pairs[i].device_id = by->v[i].id;
        pairs[i].claim_uid = by->v[i].uid;
        pairs[i].looks = by->v[i].looks;
        pointers[i] = &pairs[i];
    }
    return pointers;
}

uint8_t *record_of_allocation(const struct allocation *allocation, const char *boot_id,
                              size_t *bytes_len)
{
    const V1beta1__ContainerAllocateResponse *options = allocation->options;
    bool replaces = allocation->row == ALLOCATION_RESERVED && allocation->before.len > 0;
    const struct ids *ids = replaces ? &allocation->before : &allocation->ids;
    const struct ids *asked = replaces ? &allocation->before_asked : &allocation->asked;
    Checkpoint__V1__Allocation row = CHECKPOINT__V1__ALLOCATION__INIT;
    uint8_t *bytes;

    row.pod_uid = (char *)allocation->pod_uid;
    row.container = (char *)allocation->container;
    row.resource = (char *)allocation->resource;
    row.device_ids = ids->v;
    row.n_device_ids = ids->len;
    row.asked_ids = asked->v;
    row.n_asked_ids = asked->len;
    row.boot_id = allocation->boot_id;
    row.own_choice = allocation->own_choice;
    row.claimed = allocation->claimed;
    row.by_claims = pack_by_claims(&allocation->by);
    row.n_by_claims = allocation->by.len;
    if (allocation->row == ALLOCATION_CARRIED && allocation->fresh) {
        options = allocation->fresh;
        row.boot_id = (char *)boot_id;
    }
    if (options) {
        row.has_options = true;
        row.options.data = options_pack(options, &row.options.len);
    }
    bytes = record_pack(&row.base, bytes_len);
    free(row.options.data);
    free(row.by_claims);
    return bytes;
}

static bool ids_valid(char *const *v, size_t len)
{
    struct ids ids;
    bool valid = true;

    ids_copy(&ids, v, len);
    ids_sort(&ids);
    for (size_t i = 0; i < ids.len; i++)
        valid = valid && ids.v[i][0] != '\0' && utf8_is_text(ids.v[i]);
    valid = valid && !ids_repeat(&ids);
    ids_fini(&ids);
    return valid;
}

static bool by_claims_valid(const Checkpoint__V1__Allocation *row)
{
    bool valid = row->claimed || row->n_by_claims == 0;

    for (size_t i = 0; i < row->n_by_claims; i++)
        valid = valid && utf8_is_text(row->by_claims[i]->device_id) &&
                utf8_is_text(row->by_claims[i]->claim_uid);
    return valid;
}

static bool allocation_row_valid(const Checkpoint__V1__Allocation *row,
                                 const struct devicemgr_record *record)
{
    if (strcmp(row->pod_uid, record->key[0]) != 0 || strcmp(row->container, record->key[1]) != 0 ||
        strcmp(row->resource, record->key[2]) != 0 || row->pod_uid[0] == '\0' ||
        row->container[0] == '\0' || !resource_name_valid(row->resource) ||
        row->n_device_ids == 0 || (row->n_asked_ids > 0 && row->n_asked_ids != row->n_device_ids))
        return false;
    return ids_valid(row->device_ids, row->n_device_ids) &&
           ids_valid(row->asked_ids, row->n_asked_ids) && by_claims_valid(row);
}

static void restore_allocation(struct allocations *table, uint64_t unknown_until_ms,
                               const Checkpoint__V1__Allocation *row,
                               V1beta1__ContainerAllocateResponse *options)
{
    struct ids ids = {row->device_ids, row->n_device_ids};
    struct ids asked = {row->asked_ids, row->n_asked_ids};
    struct by_claims by = {0};
    struct allocation *allocation =
        allocations_add(table, row->pod_uid, row->container, row->resource, &ids);

    allocation_set_replaced(allocation, &asked);
    allocation_set_restored(allocation, options, row->boot_id);
    allocation_set_own_choice(allocation, row->own_choice);
    for (size_t i = 0; i < row->n_by_claims; i++)
        by_claims_add(&by, row->by_claims[i]->device_id, row->by_claims[i]->claim_uid,
                      row->by_claims[i]->looks);
    allocation_set_claimed(allocation, row->claimed ? &by : NULL);
    by_claims_fini(&by);
    allocation->stored = true;
    allocation_set_unknown(allocation, "", unknown_until_ms);
}

int record_restore_allocation(struct allocations *table, uint64_t unknown_until_ms,
                              const struct devicemgr_record *record)
{
    Checkpoint__V1__Allocation *row =
        checkpoint__v1__allocation__unpack(NULL, record->value_bytes, record->value);
    V1beta1__ContainerAllocateResponse *options = NULL;
    int result = -1;

    if (!row || !allocation_row_valid(row, record) ||
        allocations_find(table, row->pod_uid, row->container, row->resource))
        goto out;
    if (row->has_options) {
        options = options_unpack(row->options.data, row->options.len);
        if (!options)
            goto out;
    }
    if (options && !allocations_have_room(table, options_bytes(options))) {
        options_free(options); /* the plugin is asked again when they are needed */
        options = NULL;
    }
    restore_allocation(table, unknown_until_ms, row, options);
    result = 0;
out:
    checkpoint__v1__allocation__free_unpacked(row, NULL);
    return result;
}

/* ---- pod ---- */

uint8_t *record_of_pod(const struct pod *pod, uint64_t now_ms, size_t *bytes_len)
{
    Checkpoint__V1__Pod row = CHECKPOINT__V1__POD__INIT;

    row.uid = pod->uid;
    row.namespace_ = pod->pod_namespace;
    row.name = pod->name;
    row.boot_id = pod->boot_id;
    row.tokens = pod->tokens.v;
    row.n_tokens = pod->tokens.len;
    if (pod->newest) {
        row.sandbox_id = pod->newest->id;
        row.attempt = pod->newest->attempt;
        row.stopped = pod->newest->state == SANDBOX_STOPPED || pod->newest->dead;
        row.died = row.stopped && pod->newest->state == SANDBOX_OPEN;
        row.remade = row.stopped && !row.died && now_ms < pod->newest->remade_by_ms;
    }
    return record_pack(&row.base, bytes_len);
}

static void restore_sandbox(struct sandbox *sandbox, uint64_t now_ms,
                            const Checkpoint__V1__Pod *row)
{
    bool stopped = row->stopped && !row->died, remade = stopped && row->remade;

    if (stopped)
        sandbox_set_stopped(sandbox, 0);
    if (remade)
        sandbox_set_remade_by(sandbox, now_ms + SANDBOX_REMADE_MS);
    sandbox_set_ready(sandbox, 0, !remade && !(row->stopped && row->died));
}

int record_restore_pod(struct pods *pods, uint64_t now_ms, const struct devicemgr_record *record)
{
    Checkpoint__V1__Pod *row =
        checkpoint__v1__pod__unpack(NULL, record->value_bytes, record->value);
    struct pod *pod;

    if (!row || strcmp(row->uid, record->key[0]) != 0 || row->uid[0] == '\0' ||
        pods_find(pods, row->uid) || pods_find_sandbox(pods, row->sandbox_id)) {
        checkpoint__v1__pod__free_unpacked(row, NULL);
        return -1;
    }
    pod = pods_ensure(pods, row->uid, row->namespace_, row->name);
    pod->stored = true;
    pod_set_boot(pod, row->boot_id);
    for (size_t i = 0; i < row->n_tokens; i++)
        pod_note_token(pod, row->tokens[i]);
    if (row->sandbox_id[0] != '\0')
        restore_sandbox(pods_ensure_sandbox(pods, pod, row->sandbox_id, row->attempt), now_ms, row);
    checkpoint__v1__pod__free_unpacked(row, NULL);
    return 0;
}

/* ---- order ---- */

uint8_t *record_of_order(const struct order *order, const char *boot_id, size_t *bytes_len)
{
    Checkpoint__V1__Order row = CHECKPOINT__V1__ORDER__INIT;

    row.kind = (char *)order_kind_name(order->kind);
    row.resource = order->resource;
    row.id = order->id;
    row.reason = order->words.reason;
    row.at_s = order->words.at_s;
    row.more_ms = order->words.more_ms;
    row.over = order->words.over;
    if (order->kind == ORDER_TAINT) {
        row.value = order->words.value;
        row.for_ms = order->words.for_ms;
        row.set_ms = order->words.set_ms;
        row.boot_id = (char *)boot_id;
    }
    return record_pack(&row.base, bytes_len);
}

/* What its id says of it, and nothing else. */
static bool order_id_valid(const Checkpoint__V1__Order *row, enum order_kind kind)
{
    struct taint_said said;
    const char *device;

    if (kind == ORDER_TAINT)
        return order_taint_parts(row->id, &said, &device) && kube_name_is_label_value(row->value) &&
               (resource_name_valid(row->resource) || taint_device_of(row->resource, device));
    return resource_name_valid(row->resource) && (row->id[0] != '\0') == (kind == ORDER_CORDON);
}

static bool order_row_valid(const struct orders *orders, const Checkpoint__V1__Order *row,
                            const struct devicemgr_record *record, enum order_kind *kind)
{
    if (strcmp(row->kind, record->key[0]) != 0 || strcmp(row->resource, record->key[1]) != 0 ||
        strcmp(row->id, record->key[2]) != 0 || !order_kind_find(row->kind, kind))
        return false;
    return order_id_valid(row, *kind) && utf8_is_text(row->id) &&
           !orders_find(orders, *kind, row->resource, row->id);
}

int record_restore_order(struct orders *orders, uint64_t now_ms, const char *boot_id,
                         const struct devicemgr_record *record)
{
    Checkpoint__V1__Order *row =
        checkpoint__v1__order__unpack(NULL, record->value_bytes, record->value);
    enum order_kind kind;
    int result = -1;

    if (row && order_row_valid(orders, row, record, &kind)) {
        /* in another boot its time begins anew, as that of a grace period */
        bool anew = !same_boot(row->boot_id, boot_id) || row->set_ms > now_ms;
        const struct order_words words = {
            .reason = row->reason,
            .at_s = row->at_s,
            .more_ms = row->more_ms,
            .over = row->over,
            .value = kind == ORDER_TAINT ? row->value : NULL,
            .for_ms = row->for_ms,
            .set_ms = anew ? now_ms : row->set_ms,
        };
        struct order *order = orders_restore(orders, kind, row->resource, row->id, &words);

        order->stored = true;
        order->anew = anew && kind == ORDER_TAINT;
        result = 0;
    }
    checkpoint__v1__order__free_unpacked(row, NULL);
    return result;
}
