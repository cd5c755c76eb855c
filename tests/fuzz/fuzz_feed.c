/*
 * What the daemon sends its bridge, as the bridge keeps it: names, lists, and the file they are
 * kept in over a restart.
 *
 * Input: a byte of choices, then a packed WatchResponse; with CHOICE_FILE the bridge's own file,
 * whose checksum is made right here. Whatever is in it, what the kubelet would be shown is what the
 * lists say, each endpoint's path fits a socket address and stays in its directory, and the file
 * gives back what was put in.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <zlib.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/resource_name.h"
#include "shim/bridge/names.h"
#include "shim/bridge/offer.h"
#include "shim/bridge/snapshot.h"
#include "tests/fuzz/fuzz.h"

#define CHOICE_FILE 0x01
#define CHOICE_MASKED 0x02
#define BOOT_ID "0d8cd6c6-5be5-4b55-a53e-d8cc7e7e1b24"
/* Of the file: 8 bytes of magic, the checksum of all that follows it. */
#define CHECKSUM_AT 8
#define CHECKED_FROM 16

/* A directory of this process alone; the file within is replaced by each input. */
static const char *snapshot_path(void)
{
    static char path[64];

    if (!path[0]) {
        char directory[] = "/tmp/fuzz_feed.XXXXXX";

        if (!mkdtemp(directory))
            abort();
        snprintf(path, sizeof path, "%s/" SNAPSHOT_NAME, directory);
    }
    return path;
}

static void snapshot_clear(void)
{
    static char directory[64];

    snprintf(directory, sizeof directory, "%s", snapshot_path());
    unlink(directory);
    *strrchr(directory, '/') = '\0';
    rmdir(directory);
}

static void write_file(const uint8_t *bytes, size_t len)
{
    int fd = open(snapshot_path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
        abort();
    close(fd);
}

/* ---- one resource ---- */

static void check_endpoint(const char *dir, const char *resource)
{
    char *endpoint = name_endpoint(dir, resource);
    const char *name;

    if (!endpoint)
        return;
    FUZZ_CHECK(strncmp(endpoint, NAMES_SUBDIRECTORY "/", strlen(NAMES_SUBDIRECTORY) + 1) == 0, "%s",
               endpoint);
    name = endpoint + strlen(NAMES_SUBDIRECTORY) + 1;
    FUZZ_CHECK(!strchr(name, '/') && name[0] != '.', "%s", endpoint);
    FUZZ_CHECK(strlen(dir) + 1 + strlen(endpoint) < sizeof((struct sockaddr_un *)NULL)->sun_path,
               "%s", endpoint);
    free(endpoint);
}

static void check_name(const char *resource)
{
    static const char LONG[] =
        "/var/lib/a-rather-long-prefix-of-a-directory/kubelet/device-plugins";

    if (!resource_name_valid(resource))
        return;
    FUZZ_CHECK(strchr(resource, '/') == strrchr(resource, '/'), "%s", resource);
    check_endpoint("/var/lib/kubelet/device-plugins", resource);
    check_endpoint(LONG, resource);
}

static void check_device(const Bridge__V1__Device *device, const V1beta1__Device *shown,
                         bool masked)
{
    size_t nodes_len = shown->topology ? shown->topology->n_nodes : 0;
    bool healthy = device->healthy && (!masked || device->held);

    FUZZ_CHECK(strcmp(device->id, shown->id) == 0, "%s, %s", device->id, shown->id);
    FUZZ_CHECK(strcmp(shown->health, healthy ? "Healthy" : "Unhealthy") == 0, "%s: %s", shown->id,
               shown->health);
    FUZZ_CHECK(nodes_len == device->n_numa_nodes, "%s: %zu nodes", shown->id, nodes_len);
    for (size_t i = 0; i < nodes_len; i++)
        FUZZ_CHECK(shown->topology->nodes[i]->id == device->numa_nodes[i], "node %zu", i);
}

static void check_answer(const struct list *list, const Bridge__V1__DeviceList *message,
                         bool masked)
{
    uint8_t *health = malloc(list_len(list) + 1);
    V1beta1__ListAndWatchResponse *answer;
    struct packed packed;

    if (!health)
        abort();
    list_health(list, masked, health);
    if (list_answer(list, health, &packed) < 0)
        abort();
    answer = v1beta1__list_and_watch_response__unpack(NULL, packed.len, packed.bytes);
    FUZZ_CHECK(answer && answer->n_devices == message->n_devices, "%zu", message->n_devices);
    for (size_t i = 0; i < message->n_devices; i++)
        check_device(message->devices[i], answer->devices[i], masked);
    v1beta1__list_and_watch_response__free_unpacked(answer, NULL);
    packed_fini(&packed);
    free(health);
}

/* Packed behind its length, and read again, it is the same list. */
static void check_packed(const struct list *list)
{
    Bridge__V1__DeviceList *message;
    struct packed packed, again;
    struct list *same;
    size_t head = 0;

    if (list_pack(list, &packed) < 0)
        abort();
    while (packed.bytes[head++] & 0x80)
        ;
    message = bridge__v1__device_list__unpack(NULL, packed.len - head, packed.bytes + head);
    FUZZ_CHECK(message, "%zu bytes", packed.len);
    same = list_new(message);
    if (!same || list_pack(same, &again) < 0)
        abort();
    FUZZ_CHECK(list_same_devices(list, same), "%zu", list_len(list));
    FUZZ_CHECK(again.len == packed.len && memcmp(again.bytes, packed.bytes, packed.len) == 0,
               "%zu, %zu bytes", packed.len, again.len);
    list_free(same);
    bridge__v1__device_list__free_unpacked(message, NULL);
    packed_fini(&packed);
    packed_fini(&again);
}

static void check_list(const Bridge__V1__DeviceList *message, bool masked)
{
    struct list *list = list_new(message);

    if (!list)
        abort();
    check_answer(list, message, masked);
    check_packed(list);
    list_free(list);
}

/* ---- changes of a list ---- */

/* The bytes of what the bridge has. The caller gives it to packed_fini(). */
static struct packed pack_offer(const struct offer *offer)
{
    struct packed packed;

    if (list_pack(offer->list, &packed) < 0)
        abort();
    return packed;
}

static uint8_t *shown_of(const struct offer *offer)
{
    uint8_t *health = malloc(list_len(offer->list) + 1);

    if (!health)
        abort();
    list_health(offer->list, offer->masked, health);
    return health;
}

static bool fits(const Bridge__V1__Resource *resource)
{
    bool fits = resource->layout != 0;

    for (size_t i = 0; i < resource->n_changes; i++)
        fits = fits && resource->changes[i]->place < resource->list->n_devices;
    return fits;
}

/* What the list is after its changes: each device as the last one of it says. */
static void apply(Bridge__V1__Resource *resource)
{
    for (size_t i = 0; i < resource->n_changes; i++) {
        Bridge__V1__Device *device = resource->list->devices[resource->changes[i]->place];

        device->healthy = resource->changes[i]->healthy;
        device->held = resource->changes[i]->held;
    }
}

static bool each_once(const Bridge__V1__Resource *resource)
{
    for (size_t i = 0; i < resource->n_changes; i++) {
        for (size_t k = 0; k < i; k++) {
            if (resource->changes[i]->place == resource->changes[k]->place)
                return false;
        }
    }
    return true;
}

/* Refused, and it has what it had. */
static void check_stale(struct offer *offer, const Bridge__V1__Resource *changes)
{
    const struct offer was = *offer;
    struct packed before = pack_offer(offer), after;

    FUZZ_CHECK(offer_take(offer, changes) == -ESTALE, "layout %llu",
               (unsigned long long)changes->layout);
    after = pack_offer(offer);
    FUZZ_CHECK(memcmp(&was, offer, sizeof was) == 0 && before.len == after.len &&
                   memcmp(before.bytes, after.bytes, before.len) == 0,
               "%zu, %zu bytes", before.len, after.len);
    packed_fini(&before);
    packed_fini(&after);
}

/* It has what the changes say and else what it had, and tells whether that shows. */
static void check_taken(struct offer *offer, const Bridge__V1__Resource *changes,
                        Bridge__V1__Resource *resource)
{
    const struct offer was = *offer;
    uint8_t *before = shown_of(offer), *after;
    int result = offer_take(offer, changes);
    bool shows;

    after = shown_of(offer);
    shows = memcmp(before, after, list_len(offer->list)) != 0;
    FUZZ_CHECK(result == shows || (result == 1 && !each_once(resource)), "%d, %d", result, shows);
    FUZZ_CHECK(offer->version == changes->version && offer->layout == was.layout &&
                   offer->devices == was.devices && offer->health - was.health == (uint64_t)result,
               "version %llu", (unsigned long long)offer->version);
    apply(resource);
    check_answer(offer->list, resource->list, false);
    check_answer(offer->list, resource->list, true);
    check_packed(offer->list);
    free(before);
    free(after);
}

static void check_changes(Bridge__V1__Resource *resource, bool masked)
{
    Bridge__V1__Resource changes = *resource;
    struct offer offer = {0};

    if (!resource->list)
        return;
    if (offer_take(&offer, resource) != 1)
        abort();
    FUZZ_CHECK(offer.version == resource->version && offer.list, "version");
    offer_set_masked(&offer, masked);
    changes.list = NULL;
    changes.version++;
    if (resource->n_changes == 0) {
        FUZZ_CHECK(offer_take(&offer, &changes) == 0 && offer.version == resource->version,
                   "nothing is said");
    } else {
        changes.layout++; /* of another list */
        check_stale(&offer, &changes);
        changes.layout--;
        if (fits(resource))
            check_taken(&offer, &changes, resource);
        else
            check_stale(&offer, &changes);
    }
    offer_fini(&offer);
}

/* ---- the file ---- */

static void check_state(const Bridge__V1__WatchResponse *state, bool masked)
{
    for (size_t i = 0; i < state->n_resources; i++) {
        check_name(state->resources[i]->name);
        if (state->resources[i]->list)
            check_list(state->resources[i]->list, masked);
        check_changes(state->resources[i], masked);
    }
}

/* Written and read, it is the same. */
static void check_kept(const Bridge__V1__WatchResponse *state, uint64_t lost_ms)
{
    size_t before, after;
    Bridge__V1__WatchResponse *read;
    uint64_t read_ms = ~lost_ms;
    const char *why = "";

    FUZZ_CHECK(snapshot_write(snapshot_path(), BOOT_ID, lost_ms, state) == 0, "write");
    FUZZ_CHECK(!snapshot_read(snapshot_path(), "another", &read_ms, &why) && *why, "of any boot");
    read = snapshot_read(snapshot_path(), BOOT_ID, &read_ms, &why);
    if (!read) /* protobuf-c packs unknown fields that it does not read again */
        return;
    FUZZ_CHECK(read_ms == lost_ms, "lost");
    before = protobuf_c_message_get_packed_size(&state->base);
    after = protobuf_c_message_get_packed_size(&read->base);
    FUZZ_CHECK(before == after, "%zu, %zu bytes", before, after);
    bridge__v1__watch_response__free_unpacked(read, NULL);
}

static void read_file(struct fuzz_input in, bool masked)
{
    uint8_t *file = malloc(in.len + 1);
    Bridge__V1__WatchResponse *state;
    uint64_t sum, lost_ms = 0;
    const char *why = NULL;

    if (!file)
        abort();
    if (in.len > 0)
        memcpy(file, in.bytes, in.len);
    if (in.len >= CHECKED_FROM) {
        sum = crc32_z(crc32_z(0, NULL, 0), file + CHECKED_FROM, in.len - CHECKED_FROM);
        memcpy(file + CHECKSUM_AT, &sum, sizeof sum);
    }
    write_file(file, in.len);
    free(file);
    state = snapshot_read(snapshot_path(), BOOT_ID, &lost_ms, &why);
    if (!state) {
        FUZZ_CHECK(why && *why, "no words");
        return;
    }
    check_state(state, masked);
    check_kept(state, lost_ms);
    bridge__v1__watch_response__free_unpacked(state, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool prepared;
    struct fuzz_input in = {data, size};
    uint8_t choice = fuzz_u8(&in);
    Bridge__V1__WatchResponse *state;

    if (!prepared)
        atexit(snapshot_clear);
    prepared = true;
    if (choice & CHOICE_FILE) {
        read_file(in, choice & CHOICE_MASKED);
        return 0;
    }
    state = bridge__v1__watch_response__unpack(NULL, in.len, in.bytes);
    if (!state)
        return 0;
    check_state(state, choice & CHOICE_MASKED);
    if (choice & 0x80) /* a file each time would be slow */
        check_kept(state, choice);
    bridge__v1__watch_response__free_unpacked(state, NULL);
    return 0;
}
