#include "shim/kubelet/shown.h"

#include <stdlib.h>
#include <string.h>

#include "shim/log.h"
#include "shim/must.h"

/* Protobuf's wire format: a tag is the field's number and its wire type, 2 for what has a length;
 * the length is a varint. */
#define DEVICES_TAG ((1 << 3) | 2) /* DeviceList.devices */
#define RESOURCE_LIST_FIELD 3      /* Resource.list */
#define VARINT_BYTES_MAX 10

/* ---- packing a list ---- */

struct packing {
    uint8_t *bytes;
    size_t len;
    size_t room;
    size_t healthy; /* devices */
};

static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

static uint8_t *packing_room(struct packing *packing, size_t bytes)
{
    if (packing->room - packing->len < bytes) {
        packing->room = packing->room * 2 + bytes;
        packing->bytes = must(realloc(packing->bytes, packing->room));
    }
    return packing->bytes + packing->len;
}

/* Device by device, with no copy of any: a list may have 100,000. */
static void pack_device(void *user, const struct devicemgr_shown_device *from)
{
    struct packing *packing = user;
    Bridge__V1__Device device = BRIDGE__V1__DEVICE__INIT;
    size_t bytes;
    uint8_t *out;

    device.id = (char *)from->id;
    device.healthy = from->healthy;
    device.held = from->held;
    device.numa_nodes = (int64_t *)from->numa_nodes;
    device.n_numa_nodes = from->numa_nodes_len;
    bytes = bridge__v1__device__get_packed_size(&device);
    out = packing_room(packing, 1 + VARINT_BYTES_MAX + bytes);
    *out++ = DEVICES_TAG;
    out += put_varint(out, bytes);
    out += bridge__v1__device__pack(&device, out);
    packing->len = (size_t)(out - packing->bytes);
    packing->healthy += from->healthy;
}

Bridge__V1__DeviceList *shown_unpack(const struct shown_list *list)
{
    return must(bridge__v1__device_list__unpack(NULL, list->len, list->bytes + list->head));
}

/* ---- taking over from the core ---- */

struct update {
    struct shown *shown;
    const struct devicemgr *core;
    struct shown_list *lists; /* so far */
    size_t len;
    size_t room;
    size_t old; /* of shown->lists: those before are in `lists`, or gone */
    bool expected;
    enum shown_change change;
};

static void list_fini(struct shown_list *list)
{
    free(list->resource);
    free(list->bytes);
}

static void drop_old(struct update *update)
{
    list_fini(&update->shown->lists[update->old++]);
    update->change = SHOWN_NAMES;
}

/* The list of that name: the old one, or a new one. Both lists are in the order of names. */
static struct shown_list *take_list(struct update *update, const char *resource)
{
    struct shown *shown = update->shown;
    struct shown_list *list;
    int order = 1;

    if (update->len == update->room) {
        update->room = update->room * 2 + 8;
        update->lists = must(realloc(update->lists, update->room * sizeof *update->lists));
    }
    list = &update->lists[update->len++];
    while (update->old < shown->len &&
           (order = strcmp(shown->lists[update->old].resource, resource)) < 0)
        drop_old(update);
    if (update->old < shown->len && order == 0) {
        *list = shown->lists[update->old++];
    } else {
        *list = (struct shown_list){.resource = must(strdup(resource))};
        update->change = SHOWN_NAMES;
    }
    return list;
}

static bool list_is(const struct shown_list *list, const struct packing *packing)
{
    size_t bytes = list->head + list->len;

    return list->bytes && bytes == packing->len &&
           memcmp(list->bytes + list->head, packing->bytes + list->head, list->len) == 0;
}

/* Takes the bytes: a hole of VARINT_BYTES_MAX, at the end of which the length goes, and the list.
 */
static void list_set(struct shown_list *list, const struct packing *packing)
{
    uint8_t prefix[VARINT_BYTES_MAX];

    free(list->bytes);
    list->bytes = packing->bytes;
    list->head = VARINT_BYTES_MAX;
    list->len = packing->len - VARINT_BYTES_MAX;
    list->prefix = put_varint(prefix, list->len);
    memcpy(list->bytes + list->head - list->prefix, prefix, list->prefix);
    list->healthy = packing->healthy;
}

/* True: it is another one. */
static bool list_pack(struct shown_list *list, const struct devicemgr *core)
{
    struct packing packing = {0};
    bool was_too_long = list->too_long;

    packing_room(&packing, VARINT_BYTES_MAX);
    packing.len = VARINT_BYTES_MAX;
    devicemgr_shown_devices(core, list->resource, pack_device, &packing);
    if (list_is(list, &packing)) {
        free(packing.bytes);
        return false;
    }
    list_set(list, &packing);
    list->too_long = 1 + list->prefix + list->len > SHOWN_LISTS_BYTES_MAX;
    if (list->too_long && !was_too_long)
        log_error("%s: its list of devices takes %zu bytes, more than a message: the kubelet is "
                  "not shown it",
                  list->resource, list->len);
    return true;
}

static void take(void *user, const struct devicemgr_shown *from)
{
    struct update *update = user;
    struct shown_list *list = take_list(update, from->resource);

    update->expected = update->expected || from->expected;
    if (list->mask_end_ms != from->mask_end_ms && update->change == SHOWN_SAME)
        update->change = SHOWN_CHANGED;
    list->mask_end_ms = from->mask_end_ms;
    if (list->core_version == from->version)
        return;
    list->core_version = from->version;
    if (!list_pack(list, update->core))
        return;
    list->version = ++update->shown->version;
    if (update->change == SHOWN_SAME)
        update->change = SHOWN_CHANGED;
}

enum shown_change shown_update(struct shown *shown, const struct devicemgr *core)
{
    uint64_t core_version = devicemgr_shown_version(core);
    struct update update = {.shown = shown, .core = core, .change = SHOWN_SAME};

    if (shown->core_version == core_version)
        return SHOWN_SAME;
    devicemgr_shown(core, take, &update);
    while (update.old < shown->len)
        drop_old(&update);
    free(shown->lists);
    shown->lists = update.lists;
    shown->len = update.len;
    shown->expected = update.expected;
    if (update.change != SHOWN_SAME || shown->core_version == 0)
        shown->version++;
    shown->core_version = core_version;
    return update.change;
}

void shown_set_lost(struct shown *shown, struct shown_list *list)
{
    list->lost++;
    shown->version++;
}

void shown_fini(struct shown *shown)
{
    for (size_t i = 0; i < shown->len; i++)
        list_fini(&shown->lists[i]);
    free(shown->lists);
    *shown = (struct shown){0};
}

/* ---- messages ---- */

struct pick {
    const struct shown_list *list;
    size_t resource; /* its index in the message */
};

static int compare_versions(const void *a, const void *b)
{
    uint64_t one = ((const struct pick *)a)->list->version;
    uint64_t other = ((const struct pick *)b)->list->version;

    return one < other ? -1 : one > other;
}

/*
 * A packed list is put in as it is: as a field that protobuf-c does not know, which it writes as
 * the bytes behind the tag. So they are the length and the list.
 */
static void attach(struct shown_message *message, size_t index, const struct pick *pick)
{
    Bridge__V1__Resource *resource = &message->resources[pick->resource];
    const struct shown_list *list = pick->list;

    message->lists[index] =
        (ProtobufCMessageUnknownField){.tag = RESOURCE_LIST_FIELD,
                                       .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                       .len = list->prefix + list->len,
                                       .data = list->bytes + list->head - list->prefix};
    resource->base.unknown_fields = &message->lists[index];
    resource->base.n_unknown_fields = 1;
}

static void attach_lists(struct shown_message *message, const struct shown *shown,
                         struct pick *picks, size_t len)
{
    size_t bytes = 0, i = 0;

    if (len > 1)
        qsort(picks, len, sizeof *picks, compare_versions);
    for (; i < len; i++) {
        bytes += 1 + picks[i].list->prefix + picks[i].list->len;
        if (bytes > SHOWN_LISTS_BYTES_MAX)
            break;
        attach(message, i, &picks[i]);
        message->through = picks[i].list->version;
    }
    if (i == len)
        message->through = shown->version;
}

void shown_message_init(struct shown_message *message, const struct shown *shown, uint64_t through,
                        uint64_t mask_ms)
{
    struct pick *picks = must(calloc(shown->len + 1, sizeof *picks));
    Bridge__V1__WatchResponse *response = &message->response;
    size_t picked = 0;

    bridge__v1__watch_response__init(response);
    response->daemon_version = (char *)SHIM_VERSION;
    response->mask_ms = mask_ms;
    response->resources = must(calloc(shown->len + 1, sizeof(Bridge__V1__Resource *)));
    message->resources = must(calloc(shown->len + 1, sizeof *message->resources));
    message->lists = must(calloc(shown->len + 1, sizeof *message->lists));
    message->through = through;
    for (size_t i = 0; i < shown->len; i++) {
        const struct shown_list *list = &shown->lists[i];
        Bridge__V1__Resource *resource = &message->resources[response->n_resources];

        if (list->too_long)
            continue;
        bridge__v1__resource__init(resource);
        resource->name = list->resource;
        resource->version = list->version;
        resource->mask_end_ms = list->mask_end_ms;
        resource->lost = list->lost;
        if (list->version > through)
            picks[picked++] = (struct pick){list, response->n_resources};
        response->resources[response->n_resources++] = resource;
    }
    attach_lists(message, shown, picks, picked);
    free(picks);
}

void shown_message_fini(struct shown_message *message)
{
    free(message->lists);
    free(message->resources);
    free(message->response.resources);
}
