#include "shim/bridge/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct device {
    uint32_t id;    /* where it begins in the text, with its NUL: up to that of the next device */
    uint32_t nodes; /* likewise among the nodes */
    bool healthy;
    bool held;
};

/* All in one piece of memory. A message of the feed has at most RPC_MESSAGE_BYTES_MAX, so that 32
 * bits do for every place in it. */
struct list {
    size_t len;
    size_t nodes_len;
    size_t text_len;
    int64_t *nodes;
    char *text;
    struct device devices[]; /* and one more, which says where the last one ends */
};

/* ---- made, compared, changed ---- */

static struct list *list_of_size(size_t len, size_t nodes_len, size_t text_len)
{
    size_t devices_bytes = (len + 1) * sizeof(struct device);
    struct list *list;

    devices_bytes += -devices_bytes % sizeof(int64_t);
    list = malloc(sizeof *list + devices_bytes + nodes_len * sizeof(int64_t) + text_len);
    if (!list)
        return NULL;
    list->len = len;
    list->nodes_len = nodes_len;
    list->text_len = text_len;
    list->nodes = (int64_t *)((char *)list->devices + devices_bytes);
    list->text = (char *)(list->nodes + nodes_len);
    return list;
}

struct list *list_new(const Bridge__V1__DeviceList *message)
{
    size_t nodes_len = 0, text_len = 0, nodes = 0, text = 0;
    struct list *list;

    for (size_t i = 0; i < message->n_devices; i++) {
        nodes_len += message->devices[i]->n_numa_nodes;
        text_len += strlen(message->devices[i]->id) + 1;
    }
    list = list_of_size(message->n_devices, nodes_len, text_len);
    for (size_t i = 0; list && i < list->len; i++) {
        const Bridge__V1__Device *from = message->devices[i];
        size_t id_bytes = strlen(from->id) + 1;

        list->devices[i] = (struct device){.id = (uint32_t)text,
                                           .nodes = (uint32_t)nodes,
                                           .healthy = from->healthy,
                                           .held = from->held};
        memcpy(list->text + text, from->id, id_bytes);
        text += id_bytes;
        for (size_t k = 0; k < from->n_numa_nodes; k++)
            list->nodes[nodes++] = from->numa_nodes[k];
    }
    if (list)
        list->devices[list->len] = (struct device){.id = (uint32_t)text, .nodes = (uint32_t)nodes};
    return list;
}

void list_free(struct list *list)
{
    free(list);
}

size_t list_len(const struct list *list)
{
    return list->len;
}

bool list_same_devices(const struct list *a, const struct list *b)
{
    if (a->len != b->len || a->nodes_len != b->nodes_len || a->text_len != b->text_len ||
        memcmp(a->text, b->text, a->text_len) != 0 ||
        (a->nodes_len > 0 && memcmp(a->nodes, b->nodes, a->nodes_len * sizeof *a->nodes) != 0))
        return false;
    for (size_t i = 0; i < a->len; i++) {
        if (a->devices[i].nodes != b->devices[i].nodes)
            return false;
    }
    return true;
}

bool list_takes(const struct list *list, Bridge__V1__Change *const *changes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (changes[i]->place >= list->len)
            return false;
    }
    return true;
}

static bool is_shown_healthy(const struct device *device, bool masked)
{
    return device->healthy && (device->held || !masked);
}

bool list_change(struct list *list, Bridge__V1__Change *const *changes, size_t len, bool masked)
{
    bool shows = false;

    for (size_t i = 0; i < len; i++) {
        struct device *device = &list->devices[changes[i]->place];
        bool before = is_shown_healthy(device, masked);

        device->healthy = changes[i]->healthy;
        device->held = changes[i]->held;
        shows = shows || is_shown_healthy(device, masked) != before;
    }
    return shows;
}

void list_health(const struct list *list, bool masked, uint8_t *out)
{
    for (size_t i = 0; i < list->len; i++)
        out[i] = is_shown_healthy(&list->devices[i], masked);
}

/* ---- packed ---- */

void packed_fini(struct packed *packed)
{
    free(packed->bytes);
    *packed = (struct packed){0};
}

/* Protobuf's wire format: a tag is a field's number and its wire type, 0 for a varint and 2 for
 * what has a length. */
#define TAG_VARINT(field) ((uint8_t)((field) << 3))
#define TAG_BYTES(field) ((uint8_t)((field) << 3 | 2))
#define VARINT_BYTES_MAX 10
/* Of a length: nothing here is longer than 32 bits say. */
#define LENGTH_BYTES_MAX 5
/* The most that a device takes beside its id and its nodes, and a node: what follows, each with a
 * length of that many bytes. */
#define DEVICE_BYTES_MAX (4 * (1 + LENGTH_BYTES_MAX) + sizeof "Unhealthy" + 2 * 2)
#define NODE_BYTES_MAX (1 + LENGTH_BYTES_MAX + 1 + VARINT_BYTES_MAX)

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_flag(uint8_t *at, unsigned field, bool value)
{
    *at++ = TAG_VARINT(field);
    *at++ = value;
    return at;
}

static uint8_t *put_text(uint8_t *at, unsigned field, const char *text, size_t len)
{
    *at++ = TAG_BYTES(field);
    at = put_varint(at, len);
    memcpy(at, text, len);
    return at + len;
}

/* Room for a length; what follows up to put_end() has it. */
static uint8_t *put_begin(uint8_t *at)
{
    return at + LENGTH_BYTES_MAX;
}

static uint8_t *put_end(uint8_t *begin, uint8_t *end)
{
    size_t len = (size_t)(end - begin);
    uint8_t *at = put_varint(begin - LENGTH_BYTES_MAX, len);

    memmove(at, begin, len);
    return at + len;
}

static uint8_t *put_id(uint8_t *at, const struct list *list, const struct device *device)
{
    return put_text(at, 1, list->text + device->id, device[1].id - device->id - 1);
}

/* TopologyInfo of NUMANodes, whose number is not written where it is zero. */
static uint8_t *put_topology(uint8_t *at, const struct list *list, const struct device *device)
{
    for (size_t n = device->nodes; n < device[1].nodes; n++) {
        uint8_t *begin;

        *at++ = TAG_BYTES(1);
        begin = at = put_begin(at);
        if (list->nodes[n] != 0) {
            *at++ = TAG_VARINT(1);
            at = put_varint(at, (uint64_t)list->nodes[n]);
        }
        at = put_end(begin, at);
    }
    return at;
}

typedef uint8_t *put_device(uint8_t *at, const struct list *list, const struct device *device,
                            bool healthy);

static uint8_t *put_kubelets(uint8_t *at, const struct list *list, const struct device *device,
                             bool healthy)
{
    const char *health = healthy ? "Healthy" : "Unhealthy";
    uint8_t *begin;

    at = put_id(at, list, device);
    at = put_text(at, 2, health, strlen(health));
    if (device->nodes == device[1].nodes)
        return at;
    *at++ = TAG_BYTES(3);
    begin = put_begin(at);
    return put_end(begin, put_topology(begin, list, device));
}

static uint8_t *put_feeds(uint8_t *at, const struct list *list, const struct device *device,
                          bool healthy)
{
    uint8_t *begin;

    at = put_flag(put_id(at, list, device), 2, healthy);
    if (device->nodes < device[1].nodes) {
        *at++ = TAG_BYTES(3);
        begin = at = put_begin(at);
        for (size_t n = device->nodes; n < device[1].nodes; n++)
            at = put_varint(at, (uint64_t)list->nodes[n]);
        at = put_end(begin, at);
    }
    return put_flag(at, 4, device->held);
}

/* Where everything fits. */
static uint8_t *pack_new(const struct list *list)
{
    return malloc(list->text_len + list->len * DEVICE_BYTES_MAX + list->nodes_len * NODE_BYTES_MAX +
                  LENGTH_BYTES_MAX);
}

/* Both lists have the devices in their field 1. `health`: NULL: as each is. */
static uint8_t *put_list(uint8_t *at, const struct list *list, const uint8_t *health,
                         put_device *put)
{
    for (size_t i = 0; i < list->len; i++) {
        const struct device *device = &list->devices[i];
        uint8_t *begin;

        *at++ = TAG_BYTES(1);
        begin = put_begin(at);
        at = put_end(begin, put(begin, list, device, health ? health[i] : device->healthy));
    }
    return at;
}

int list_answer(const struct list *list, const uint8_t *health, struct packed *out)
{
    uint8_t *bytes = pack_new(list);

    if (!bytes)
        return -ENOMEM;
    *out = (struct packed){bytes, (size_t)(put_list(bytes, list, health, put_kubelets) - bytes)};
    return 0;
}

int list_pack(const struct list *list, struct packed *out)
{
    uint8_t *bytes = pack_new(list), *begin;

    if (!bytes)
        return -ENOMEM;
    begin = put_begin(bytes);
    *out = (struct packed){
        bytes, (size_t)(put_end(begin, put_list(begin, list, NULL, put_feeds)) - bytes)};
    return 0;
}
