#include "shim/kubelet/advertised_list.h"

#include <stdlib.h>
#include <string.h>

#include "shim/log.h"
#include "shim/must.h"

/* Protobuf's wire format: a tag is the field's number and its wire type, 0 for a varint and 2 for
 * what has a length, which is a varint. */
#define DEVICES_TAG ((1 << 3) | 2) /* DeviceList.devices; those below: of Device */
#define DEVICE_ID_TAG ((1 << 3) | 2)
#define DEVICE_HEALTHY_TAG (2 << 3)
#define DEVICE_NODES_TAG ((3 << 3) | 2)
#define DEVICE_HELD_TAG (4 << 3)
#define VARINT_BYTES_MAX 10

/* ---- packing a list ---- */

struct packing {
    uint8_t *bytes;
    size_t len;
    size_t room;
    size_t healthy; /* devices */
    uint32_t *at;   /* of each: advertised_list.at */
    size_t at_len;
    size_t at_room;
};

static void add_place(struct packing *packing, size_t at)
{
    if (packing->at_len == packing->at_room) {
        packing->at_room = packing->at_room * 2 + 8;
        packing->at = must(realloc(packing->at, packing->at_room * sizeof *packing->at));
    }
    packing->at[packing->at_len++] = (uint32_t)at;
}

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

static size_t device_bytes_max(const struct devicemgr_shown_device *device, size_t id_bytes)
{
    return id_bytes + VARINT_BYTES_MAX * (device->numa_nodes_len + 2) + 6;
}

static size_t put_nodes(uint8_t *out, const struct devicemgr_shown_device *device)
{
    size_t n = 0;

    for (size_t i = 0; i < device->numa_nodes_len; i++)
        n += put_varint(out + n, (uint64_t)device->numa_nodes[i]);
    return n;
}

/*
 * A Device. Both flags are written out where they are false, too: one that changes leaves all bytes
 * behind it where they are.
 */
struct device_bytes {
    uint8_t *at;
    size_t len;
    size_t healthy; /* where that flag is */
    size_t held;
};

static void put_device(struct device_bytes *out, const struct devicemgr_shown_device *device,
                       size_t id_bytes)
{
    uint8_t *at = out->at, *nodes;
    size_t nodes_bytes;

    *at++ = DEVICE_ID_TAG;
    at += put_varint(at, id_bytes);
    memcpy(at, device->id, id_bytes);
    at += id_bytes;
    *at++ = DEVICE_HEALTHY_TAG;
    out->healthy = (size_t)(at - out->at);
    *at++ = device->healthy;
    if (device->numa_nodes_len > 0) {
        *at++ = DEVICE_NODES_TAG;
        nodes = at + VARINT_BYTES_MAX; /* the length comes in front, when it is known */
        nodes_bytes = put_nodes(nodes, device);
        at += put_varint(at, nodes_bytes);
        memmove(at, nodes, nodes_bytes);
        at += nodes_bytes;
    }
    *at++ = DEVICE_HELD_TAG;
    out->held = (size_t)(at - out->at);
    *at++ = device->held;
    out->len = (size_t)(at - out->at);
}

/* Device by device, with no copy of any: a list may have 100,000. */
static void pack_device(void *user, const struct devicemgr_shown_device *from)
{
    struct packing *packing = user;
    size_t id_bytes = strlen(from->id), most = device_bytes_max(from, id_bytes);
    uint8_t *out = packing_room(packing, 1 + VARINT_BYTES_MAX + most), *at = out;
    struct device_bytes bytes = {.at = out + 1 + VARINT_BYTES_MAX};

    put_device(&bytes, from, id_bytes);
    *at++ = DEVICES_TAG;
    add_place(packing, packing->len + 1);
    at += put_varint(at, bytes.len);
    memmove(at, bytes.at, bytes.len);
    packing->len += (size_t)(at - out) + bytes.len;
    packing->healthy += from->healthy;
}

Bridge__V1__DeviceList *advertised_list_unpack(const struct advertised_list *list)
{
    return must(bridge__v1__device_list__unpack(NULL, list->len, list->bytes + list->head));
}

/* ---- what is another than before ---- */

struct comparing {
    struct advertised_list *list;
    size_t at;      /* in the list: the next device */
    uint32_t place; /* of it */
    bool other;     /* it has other devices, or nodes */
    struct device_bytes now;
    size_t room;
    struct advertised_difference found[ADVERTISED_LATEST_MAX];
    size_t found_len; /* may be more */
};

static size_t get_varint(const uint8_t *at, size_t *value)
{
    size_t n = 0;

    *value = 0;
    do
        *value |= (size_t)(at[n] & 0x7f) << (7 * n);
    while (at[n++] & 0x80);
    return n;
}

/* The flags of a device in the list become those of now. */
static void set_flags(struct comparing *comparing, uint32_t place, uint8_t *healthy, uint8_t *held,
                      const struct devicemgr_shown_device *now)
{
    if (*healthy == now->healthy && *held == now->held)
        return;
    comparing->list->healthy += now->healthy;
    comparing->list->healthy -= *healthy;
    *healthy = now->healthy;
    *held = now->held;
    if (comparing->found_len < ADVERTISED_LATEST_MAX)
        comparing->found[comparing->found_len] = (struct advertised_difference){
            .place = place, .healthy = now->healthy, .held = now->held};
    comparing->found_len++;
}

/* Whether the list's next device is this one but for its flags, which are `now`. */
static bool is_same_device(struct comparing *comparing, uint8_t *before, size_t before_len,
                           const struct devicemgr_shown_device *from)
{
    struct device_bytes *now = &comparing->now;

    if (before_len != now->len)
        return false;
    now->at[now->healthy] = before[now->healthy];
    now->at[now->held] = before[now->held];
    if (memcmp(before, now->at, now->len) != 0)
        return false;
    set_flags(comparing, comparing->place, &before[now->healthy], &before[now->held], from);
    return true;
}

static void compare_device(void *user, const struct devicemgr_shown_device *from)
{
    struct comparing *comparing = user;
    const struct advertised_list *list = comparing->list;
    size_t id_bytes = strlen(from->id), most = device_bytes_max(from, id_bytes), len;

    if (comparing->other || comparing->at == list->head + list->len) {
        comparing->other = true;
        return;
    }
    if (comparing->room < most) {
        comparing->room = most * 2;
        comparing->now.at = must(realloc(comparing->now.at, comparing->room));
    }
    put_device(&comparing->now, from, id_bytes);
    comparing->at += 1 + get_varint(list->bytes + comparing->at + 1, &len);
    comparing->other = !is_same_device(comparing, list->bytes + comparing->at, len, from);
    comparing->at += len;
    comparing->place++;
}

/* Whether it has the same devices as before, in the same places. */
static bool compare(struct comparing *comparing, const struct devicemgr *core)
{
    const struct advertised_list *list = comparing->list;

    if (!list->bytes)
        return false;
    comparing->at = list->head;
    devicemgr_shown_devices(core, list->resource, compare_device, comparing);
    free(comparing->now.at);
    return !comparing->other && comparing->at == list->head + list->len;
}

/* ---- only those that somebody holds, or held ---- */

static void mark(struct advertised_list *list, uint32_t place)
{
    if (list->marked_len == list->marked_room) {
        list->marked_room = list->marked_room * 2 + 8;
        list->marked = must(realloc(list->marked, list->marked_room * sizeof *list->marked));
    }
    list->marked[list->marked_len++] = place;
}

static void look_at_device(void *user, uint32_t place, const struct devicemgr_shown_device *from,
                           bool marked)
{
    struct comparing *comparing = user;
    struct advertised_list *list = comparing->list;
    uint8_t *device = list->bytes + list->at[place];
    size_t len, id_bytes;

    device += get_varint(device, &len);
    set_flags(comparing, place, device + 1 + get_varint(device + 1, &id_bytes) + id_bytes + 1,
              device + len - 1, from);
    if (marked)
        mark(list, place);
}

/* Whether it was enough to look at those. */
static bool look(struct comparing *comparing, const struct devicemgr *core, uint64_t base)
{
    struct advertised_list *list = comparing->list;
    uint32_t *before = list->marked;
    size_t before_len;
    bool enough;

    if (list->base == 0 || list->base != base)
        return false;
    list->marked = NULL;
    list->marked_room = 0;
    before_len = list->marked_len;
    list->marked_len = 0;
    enough =
        devicemgr_shown_some(core, list->resource, before, before_len, look_at_device, comparing);
    free(before);
    return enough;
}

static void note_mark(void *user, uint32_t place, const struct devicemgr_shown_device *from,
                      bool marked)
{
    (void)from, (void)marked;
    mark(user, place);
}

/* All of it was looked at: which are held, so that the next time those will do. */
static void remember(struct advertised_list *list, const struct devicemgr *core, uint64_t base)
{
    list->marked_len = 0;
    list->base = devicemgr_shown_some(core, list->resource, NULL, 0, note_mark, list) ? base : 0;
}

/* ---- the latest ---- */

static void drop_latest(struct advertised_list *list, size_t i)
{
    memmove(&list->latest[i], &list->latest[i + 1],
            (list->latest_len - i - 1) * sizeof *list->latest);
    list->latest_len--;
}

static void add_latest(struct advertised_list *list, const struct advertised_difference *difference)
{
    size_t i = 0;

    if (!list->latest) {
        list->latest = must(malloc(ADVERTISED_LATEST_MAX * sizeof *list->latest));
        list->latest_len = 0;
    }
    while (i < list->latest_len && list->latest[i].place != difference->place)
        i++;
    if (i < list->latest_len) {
        drop_latest(list, i);
    } else if (list->latest_len == ADVERTISED_LATEST_MAX) {
        list->known = list->latest[0].version;
        drop_latest(list, 0);
    }
    list->latest[list->latest_len] = *difference;
    list->latest[list->latest_len++].version = list->version;
}

/* The list has its new version. */
static void list_note(struct advertised_list *list, const struct comparing *comparing)
{
    if (comparing->found_len > ADVERTISED_LATEST_MAX) {
        list->known = list->version;
        list->latest_len = 0;
        return;
    }
    for (size_t i = 0; i < comparing->found_len; i++)
        add_latest(list, &comparing->found[i]);
}

/* ---- the list ---- */

/* Takes the bytes: a hole of VARINT_BYTES_MAX, at the end of which the length goes, and the
 * list. */
static void list_set(struct advertised_list *list, const struct packing *packing)
{
    uint8_t prefix[VARINT_BYTES_MAX];

    free(list->bytes);
    list->bytes = packing->bytes;
    list->head = VARINT_BYTES_MAX;
    list->len = packing->len - VARINT_BYTES_MAX;
    list->prefix = put_varint(prefix, list->len);
    memcpy(list->bytes + list->head - list->prefix, prefix, list->prefix);
    list->healthy = packing->healthy;
    free(list->at);
    list->at = packing->at;
}

/* All of it is another. */
static void list_pack(struct advertised_list *list, const struct devicemgr *core)
{
    struct packing packing = {0};
    bool was_too_long = list->too_long;

    packing_room(&packing, VARINT_BYTES_MAX);
    packing.len = VARINT_BYTES_MAX;
    devicemgr_shown_devices(core, list->resource, pack_device, &packing);
    list_set(list, &packing);
    list->layout = list->known = list->version;
    list->latest_len = 0;
    list->too_long = 1 + list->prefix + list->len > ADVERTISED_LISTS_BYTES_MAX;
    if (list->too_long && !was_too_long)
        log_error("%s: its list of devices takes %zu bytes, more than a message: the kubelet is "
                  "not shown it",
                  list->resource, list->len);
}

bool advertised_list_update(struct advertised_list *list, const struct devicemgr *core,
                            uint64_t base, uint64_t version)
{
    struct comparing comparing = {.list = list};
    bool some = look(&comparing, core, base), same = some || compare(&comparing, core);

    if (!same || comparing.found_len > 0)
        list->version = version;
    if (!same)
        list_pack(list, core);
    else
        list_note(list, &comparing);
    if (!some)
        remember(list, core, base);
    return list->version == version;
}

void advertised_list_fini(struct advertised_list *list)
{
    free(list->resource);
    free(list->bytes);
    free(list->latest);
    free(list->at);
    free(list->marked);
}
