/*
 * A plugin's ListAndWatch lists, one after the other on one stream.
 *
 * Input: a byte of choices and a length, and as many bytes of a packed ListAndWatchResponse, again
 * and again. Or, with CHOICE_MADE, two bytes make one device of a list: few names, so that they
 * come back, repeat and go. Whatever was listed before, a list must leave the table that it leaves
 * in an empty one; what it is said to have changed must be the difference.
 */
#include <string.h>

#include "cri-proto/utf8.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/resource.h"
#include "devicemgr/things/text.h"
#include "tests/fuzz/fuzz.h"

#define CHOICE_MADE 0x01
#define LISTS_MAX 16
#define MADE_MAX 64

/* What is known of a device without the table: the last entry that names it. */
static bool entry_counts(const V1beta1__ListAndWatchResponse *list, size_t at)
{
    const char *id = list->devices[at]->id;

    if (id[0] == '\0' || !utf8_is_text(id))
        return false;
    for (size_t i = at + 1; i < list->n_devices; i++) {
        if (strcmp(list->devices[i]->id, id) == 0)
            return false;
    }
    return true;
}

static bool node_counts(const V1beta1__TopologyInfo *topology, size_t at)
{
    int64_t number = topology->nodes[at]->id;

    if (number < 0 || number >= NUMA_NODES_MAX)
        return false;
    for (size_t i = 0; i < at; i++) {
        if (topology->nodes[i]->id == number)
            return false;
    }
    return true;
}

/* Those that there can be, each once, as they are listed. */
static void check_nodes(const struct device *device, const V1beta1__Device *entry)
{
    const V1beta1__TopologyInfo *topology = entry->topology;
    size_t len = 0;

    for (size_t i = 0; topology && i < topology->n_nodes; i++) {
        if (!node_counts(topology, i))
            continue;
        FUZZ_CHECK(len < device->nodes_len && device->nodes[len] == topology->nodes[i]->id,
                   "node %zu of %zu", len, device->nodes_len);
        len++;
    }
    FUZZ_CHECK(device->nodes_len == len, "%zu of %zu nodes", device->nodes_len, len);
}

/* The table is what the list says, in the natural order of ids. */
static void check_table(const struct devices *devices, const V1beta1__ListAndWatchResponse *list)
{
    size_t len = 0, healthy = 0;

    for (size_t i = 0; i < list->n_devices; i++) {
        const V1beta1__Device *entry = list->devices[i];
        const struct device *device;
        bool is_healthy = strcmp(entry->health, "Healthy") == 0;

        if (!entry_counts(list, i))
            continue;
        device = devices_find(devices, entry->id);
        FUZZ_CHECK(device, "%s is missing", entry->id);
        FUZZ_CHECK(device->healthy == is_healthy, "%s: health", entry->id);
        check_nodes(device, entry);
        len++;
        healthy += is_healthy;
    }
    FUZZ_CHECK(devices->len == len && devices->healthy == healthy, "%zu of %zu, %zu of %zu",
               devices->healthy, devices->len, healthy, len);
    for (size_t i = 1; i < devices->len; i++)
        FUZZ_CHECK(strverscmp(devices->items[i - 1].id, devices->items[i].id) < 0, "%s",
                   devices->items[i].id);
}

static void take_list(struct resource *resource, const V1beta1__ListAndWatchResponse *list,
                      uint64_t now_ms)
{
    struct devices_change change, again;
    size_t before = resource->devices.len;
    uint64_t changes = resource->devices.changes;
    bool changed = resource_list(resource, now_ms, list, &change);

    check_table(&resource->devices, list);
    FUZZ_CHECK(before + change.added == resource->devices.len + change.removed,
               "%zu + %zu - %zu = %zu", before, change.added, change.removed,
               resource->devices.len);
    FUZZ_CHECK(resource->devices.changes == changes + changed, "changes");
    FUZZ_CHECK(changed == (change.added + change.removed + change.health + change.topology > 0),
               "changed");
    for (size_t i = 0; i < resource->devices.len; i++)
        FUZZ_CHECK(resource->devices.items[i].since_ms <= now_ms, "since");
    FUZZ_CHECK(!resource_list(resource, now_ms + 1, list, &again), "the same list is another one");
}

static void take_packed(struct resource *resource, struct fuzz_input bytes, uint64_t now_ms)
{
    V1beta1__ListAndWatchResponse *list =
        v1beta1__list_and_watch_response__unpack(NULL, bytes.len, bytes.bytes);

    if (!list)
        return;
    take_list(resource, list, now_ms);
    v1beta1__list_and_watch_response__free_unpacked(list, NULL);
}

static void take_made(struct resource *resource, struct fuzz_input bytes, uint64_t now_ms)
{
    static const char *const IDS[] = {"",   "a",   "b",   "a0", "a00",  "a1",       "a10", "a2",
                                      "g1", "g01", "g10", "g9", "\xff", "\xc3\xa4", " ",   "a/b"};
    V1beta1__Device made[MADE_MAX], *devices[MADE_MAX];
    V1beta1__TopologyInfo topology[MADE_MAX];
    V1beta1__NUMANode node[MADE_MAX], *nodes[MADE_MAX];
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;

    list.devices = devices;
    while (bytes.len > 0 && list.n_devices < MADE_MAX) {
        size_t i = list.n_devices++;
        uint8_t choice = fuzz_u8(&bytes);

        v1beta1__device__init(&made[i]);
        devices[i] = &made[i];
        made[i].id = (char *)IDS[choice % 16];
        made[i].health = (char *)(choice & 0x10 ? "Healthy" : choice & 0x20 ? "" : "healthy");
        if (!(choice & 0x40))
            continue;
        v1beta1__topology_info__init(&topology[i]);
        v1beta1__numanode__init(&node[i]);
        node[i].id = choice >> 7;
        nodes[i] = &node[i];
        topology[i].nodes = &nodes[i];
        topology[i].n_nodes = 1;
        made[i].topology = &topology[i];
    }
    take_list(resource, &list, now_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct resource *table = NULL;
    struct resource *resource = resources_add(&table, "vendor.com/gpu");

    for (uint64_t lists = 1; in.len > 0 && lists <= LISTS_MAX; lists++) {
        uint8_t choice = fuzz_u8(&in);
        struct fuzz_input bytes = fuzz_bytes(&in, fuzz_u16(&in));

        if (choice & CHOICE_MADE)
            take_made(resource, bytes, 10 * lists);
        else
            take_packed(resource, bytes, 10 * lists);
    }
    resources_remove(&table, resource);
    return 0;
}
