#include "shim/bridge/list.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

void packed_fini(struct packed *packed)
{
    free(packed->bytes);
    *packed = (struct packed){0};
}

bool packed_equal(const struct packed *a, const struct packed *b)
{
    return a->bytes && b->bytes && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

void packed_move(struct packed *to, struct packed *from)
{
    packed_fini(to);
    *to = *from;
    *from = (struct packed){0};
}

void packed_make(struct packed *out, const ProtobufCMessage *message)
{
    out->len = protobuf_c_message_get_packed_size(message);
    out->bytes = must(malloc(out->len + 1));
    protobuf_c_message_pack(message, out->bytes);
}

void list_pack(struct packed *out, const Bridge__V1__DeviceList *list)
{
    Bridge__V1__DeviceList known = BRIDGE__V1__DEVICE_LIST__INIT;
    Bridge__V1__Device *devices = must(calloc(list->n_devices + 1, sizeof *devices));

    known.devices = must(calloc(list->n_devices + 1, sizeof *known.devices));
    known.n_devices = list->n_devices;
    for (size_t i = 0; i < list->n_devices; i++) {
        devices[i] = *list->devices[i];
        devices[i].base.n_unknown_fields = 0;
        devices[i].base.unknown_fields = NULL;
        known.devices[i] = &devices[i];
    }
    packed_make(out, &known.base);
    free(known.devices);
    free(devices);
}

Bridge__V1__DeviceList *list_unpack(const struct packed *list)
{
    return must(bridge__v1__device_list__unpack(NULL, list->len, list->bytes));
}

static V1beta1__TopologyInfo *topology(const int64_t *nodes, size_t len)
{
    V1beta1__TopologyInfo *info = must(malloc(sizeof *info));
    V1beta1__NUMANode *each = must(calloc(len, sizeof *each));

    v1beta1__topology_info__init(info);
    info->nodes = must(calloc(len, sizeof *info->nodes));
    info->n_nodes = len;
    for (size_t i = 0; i < len; i++) {
        v1beta1__numanode__init(&each[i]);
        each[i].id = nodes[i];
        info->nodes[i] = &each[i];
    }
    return info;
}

static void topology_free(V1beta1__TopologyInfo *info)
{
    if (!info)
        return;
    free(info->nodes[0]);
    free(info->nodes);
    free(info);
}

static void fill(V1beta1__Device *out, const Bridge__V1__Device *device, bool masked)
{
    v1beta1__device__init(out);
    out->id = device->id;
    out->health = (char *)(device->healthy && (device->held || !masked) ? "Healthy" : "Unhealthy");
    if (device->n_numa_nodes > 0)
        out->topology = topology(device->numa_nodes, device->n_numa_nodes);
}

V1beta1__ListAndWatchResponse *list_answer(const Bridge__V1__DeviceList *list, bool masked)
{
    V1beta1__ListAndWatchResponse *answer = must(malloc(sizeof *answer));
    V1beta1__Device *devices;

    v1beta1__list_and_watch_response__init(answer);
    if (list->n_devices == 0)
        return answer;
    devices = must(calloc(list->n_devices, sizeof *devices));
    answer->devices = must(calloc(list->n_devices, sizeof *answer->devices));
    answer->n_devices = list->n_devices;
    for (size_t i = 0; i < list->n_devices; i++) {
        fill(&devices[i], list->devices[i], masked);
        answer->devices[i] = &devices[i];
    }
    return answer;
}

void list_answer_free(V1beta1__ListAndWatchResponse *answer)
{
    for (size_t i = 0; i < answer->n_devices; i++)
        topology_free(answer->devices[i]->topology);
    if (answer->n_devices > 0)
        free(answer->devices[0]);
    free(answer->devices);
    free(answer);
}
