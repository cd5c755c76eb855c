#include "devicemgr/things/devices.h"

#include <string.h>

#include "cri-proto/utf8.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/limits.h"

static void device_fini(struct device *device)
{
    free(device->id);
    free(device->nodes);
}

void devices_fini(struct devices *devices)
{
    HASH_CLEAR(hh, devices->by_id);
    for (size_t i = 0; i < devices->len; i++)
        device_fini(&devices->items[i]);
    free(devices->items);
    free(devices->order);
    *devices = (struct devices){0};
}

const struct device *devices_find(const struct devices *devices, const char *id)
{
    struct device *device;

    HASH_FIND_STR(devices->by_id, id, device);
    return device;
}

void devices_set_since(struct devices *devices, const char *id, uint64_t since_ms)
{
    struct device *device;

    HASH_FIND_STR(devices->by_id, id, device);
    if (device)
        device->since_ms = since_ms;
}

_Static_assert(offsetof(struct device, id) == 0, "ids_place() takes it for its id");

size_t devices_place(const struct devices *devices, const char *id, bool behind)
{
    return ids_place(devices->items, devices->len, sizeof *devices->items, id, behind);
}

size_t devices_bytes_of(const char *id, size_t nodes_len)
{
    return sizeof(struct device) + strlen(id) + 1 + nodes_len * sizeof(int64_t);
}

/* The nodes of an entry that count. */
struct nodes {
    int64_t v[NUMA_NODES_MAX];
    size_t len;
};

static void nodes_take(struct nodes *nodes, const struct device_entry *entry,
                       struct devices_change *change)
{
    uint64_t seen[NUMA_NODES_MAX / 64];

    nodes->len = 0;
    if (entry->nodes_len == 0)
        return;
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < entry->nodes_len; i++) {
        int64_t number = entry->nodes[i];
        uint64_t bit = 1ull << (number & 63);

        if (number < 0 || number >= NUMA_NODES_MAX || (seen[number / 64] & bit)) {
            change->nodes++;
            continue;
        }
        seen[number / 64] |= bit;
        nodes->v[nodes->len++] = number;
    }
}

static bool nodes_equal(const struct device *device, const struct nodes *nodes)
{
    return device->nodes_len == nodes->len &&
           (nodes->len == 0 || memcmp(device->nodes, nodes->v, nodes->len * sizeof *nodes->v) == 0);
}

static void nodes_set(struct device *device, const struct nodes *nodes)
{
    free(device->nodes);
    device->nodes = NULL;
    device->nodes_len = nodes->len;
    if (nodes->len == 0)
        return;
    device->nodes = mem_alloc(nodes->len, sizeof *nodes->v);
    memcpy(device->nodes, nodes->v, nodes->len * sizeof *nodes->v);
}

static bool same_ids(const struct devices *devices, const struct device_entry *entries,
                     size_t entries_len)
{
    if (!devices->order || devices->order_len != entries_len)
        return false;
    for (size_t i = 0; i < entries_len; i++) {
        if (strcmp(devices->items[devices->order[i]].id, entries[i].id) != 0)
            return false;
    }
    return true;
}

/* The ids are those known, in the order known: only health and topology can differ. */
static void update_in_place(struct devices *devices, uint64_t now_ms,
                            const struct device_entry *entries, size_t entries_len,
                            struct devices_change *change)
{
    for (size_t i = 0; i < entries_len; i++) {
        struct device *device = &devices->items[devices->order[i]];
        struct nodes nodes;

        nodes_take(&nodes, &entries[i], change);
        if (device->healthy != entries[i].healthy) {
            device->healthy = entries[i].healthy;
            device->since_ms = now_ms;
            devices->healthy += entries[i].healthy ? 1 : (size_t)-1;
            change->health++;
        }
        if (!nodes_equal(device, &nodes)) {
            devices->bytes -= devices_bytes_of(device->id, device->nodes_len);
            devices->on_nodes -= device->nodes_len > 0;
            nodes_set(device, &nodes);
            devices->bytes += devices_bytes_of(device->id, device->nodes_len);
            devices->on_nodes += device->nodes_len > 0;
            change->topology++;
        }
    }
}

static int order_by_id(const void *a, const void *b, void *user)
{
    const struct device_entry *entries = user;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int by_id = strverscmp(entries[x].id, entries[y].id);

    return by_id != 0 ? by_id : (x > y) - (x < y);
}

/* As a list is that was written down, and most of those that plugins send. */
static bool is_in_order(const struct device_entry *entries, size_t entries_len)
{
    for (size_t i = 1; i < entries_len; i++) {
        if (strverscmp(entries[i - 1].id, entries[i].id) > 0)
            return false;
    }
    return true;
}

static void device_carry_over(struct device *device, const struct devices *old, uint64_t now_ms,
                              const struct nodes *nodes, struct devices_change *change)
{
    const struct device *before = devices_find(old, device->id);

    device->since_ms = now_ms;
    if (!before) {
        change->added++;
        return;
    }
    if (before->healthy == device->healthy)
        device->since_ms = before->since_ms;
    else
        change->health++;
    if (!nodes_equal(before, nodes))
        change->topology++;
}

/* Makes the table anew from entries[sorted[]], and its `order` unless entries were dropped. */
static void build(struct devices *devices, const struct devices *old, uint64_t now_ms,
                  const struct device_entry *entries, const uint32_t *sorted, size_t sorted_len,
                  struct devices_change *change)
{
    devices->items = mem_alloc(sorted_len, sizeof *devices->items);
    devices->order = mem_alloc(sorted_len, sizeof *devices->order);
    devices->order_len = sorted_len;
    for (size_t i = 0; i < sorted_len; i++) {
        const struct device_entry *entry = &entries[sorted[i]];
        struct device *device = &devices->items[devices->len];
        struct nodes nodes;

        if (entry->id[0] == '\0' || !utf8_is_text(entry->id) ||
            (i + 1 < sorted_len && strcmp(entry->id, entries[sorted[i + 1]].id) == 0)) {
            change->dropped++;
            continue;
        }
        devices->order[sorted[i]] = (uint32_t)devices->len++;
        device->id = mem_strdup(entry->id);
        device->healthy = entry->healthy;
        devices->healthy += entry->healthy;
        nodes_take(&nodes, entry, change);
        nodes_set(device, &nodes);
        devices->bytes += devices_bytes_of(device->id, nodes.len);
        devices->on_nodes += nodes.len > 0;
        device_carry_over(device, old, now_ms, &nodes, change);
        HASH_ADD_KEYPTR(hh, devices->by_id, device->id, strlen(device->id), device);
    }
    if (change->dropped > 0) {
        free(devices->order);
        devices->order = NULL;
    }
}

static void rebuild(struct devices *devices, uint64_t now_ms, const struct device_entry *entries,
                    size_t entries_len, struct devices_change *change)
{
    uint32_t *sorted = mem_alloc(entries_len, sizeof *sorted);
    struct devices old = *devices;

    for (size_t i = 0; i < entries_len; i++)
        sorted[i] = (uint32_t)i;
    if (!is_in_order(entries, entries_len))
        qsort_r(sorted, entries_len, sizeof *sorted, order_by_id, (void *)entries);
    *devices = (struct devices){.changes = old.changes, .shrunk_ms = old.shrunk_ms};
    build(devices, &old, now_ms, entries, sorted, entries_len, change);
    change->removed = old.len - (devices->len - change->added);
    if (change->removed > 0)
        devices->shrunk_ms = now_ms;
    devices_fini(&old);
    free(sorted);
}

bool devices_update(struct devices *devices, uint64_t now_ms, const struct device_entry *entries,
                    size_t entries_len, struct devices_change *change)
{
    *change = (struct devices_change){0};
    if (same_ids(devices, entries, entries_len))
        update_in_place(devices, now_ms, entries, entries_len, change);
    else
        rebuild(devices, now_ms, entries, entries_len, change);
    if (change->added + change->removed + change->health + change->topology == 0)
        return false;
    devices->changes++;
    return true;
}
