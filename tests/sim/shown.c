#include "tests/sim/shown.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "shim/hash.h"
#include "tests/sim/check.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* Between an event and the run that acts on it (shim_run()). */
#define LATE_MS 5
/* A connection that gives no list counts as away so much later at most. */
#define SILENT_MS (2 * FIRST_LIST_MS)

/* ---- reading ---- */

struct reading {
    struct world *w;
    const char *before; /* the name, or the id, that came last; NULL: none */
    struct shown_resource *into;
    struct shown_resource resources[RESOURCES_LEN];
};

static void each_device(void *user, const struct devicemgr_shown_device *device)
{
    struct reading *reading = user;
    struct shown_resource *into = reading->into;
    size_t i = device_sim_find(device->id);
    unsigned bit = i < DEVICES_MAX ? 1u << i : 0;

    check_that(reading->w, !reading->before || strverscmp(reading->before, device->id) < 0,
               "devices are shown in natural order, each once: %s", device->id);
    reading->before = device->id;
    into->hash = hash_text(into->hash, device->id);
    into->hash = hash_word(into->hash, device->healthy);
    into->hash = hash_word(into->hash, device->held);
    into->hash = hash_bytes(into->hash, device->numa_nodes,
                            device->numa_nodes_len * sizeof *device->numa_nodes);
    into->listed |= bit;
    into->healthy |= device->healthy ? bit : 0;
    into->held |= device->held ? bit : 0;
    into->others += bit == 0;
}

static void each_resource(void *user, const struct devicemgr_shown *shown)
{
    struct reading *reading = user;
    size_t r = resource_sim_find(shown->resource);

    check_that(reading->w, r < RESOURCES_LEN && shown->version != 0, "known resources are shown");
    check_that(reading->w, !reading->before || strcmp(reading->before, shown->resource) < 0,
               "resources are shown in the order of names, each once");
    if (r == RESOURCES_LEN)
        return;
    reading->before = resource_sim_name(r);
    reading->resources[r] = (struct shown_resource){.there = true,
                                                    .version = shown->version,
                                                    .mask_end_ms = shown->mask_end_ms,
                                                    .hash = HASH_BEGIN};
}

static void read_all(struct world *w, struct reading *reading)
{
    *reading = (struct reading){.w = w};
    devicemgr_shown(w->shim.core, each_resource, reading);
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        reading->before = NULL;
        reading->into = &reading->resources[r];
        devicemgr_shown_devices(w->shim.core, resource_sim_name(r), each_device, reading);
        check_that(w, reading->into->there || reading->into->listed == 0,
                   "a resource that is not shown has no devices");
    }
}

/* ---- versions ---- */

static void check_version(struct world *w, size_t r, const struct shown_resource *is,
                          uint64_t version)
{
    const struct shown_resource *was = &w->shown.resources[r];
    bool moved = version != w->shown.version;

    if (was->there && is->there && was->hash != is->hash)
        check_that(w, was->version != is->version && moved,
                   "another list has another version: %s, %" PRIu64, resource_sim_name(r),
                   is->version);
    if (was->there != is->there || was->version != is->version ||
        was->mask_end_ms != is->mask_end_ms)
        check_that(w, moved, "the version says that something is shown otherwise: %s",
                   resource_sim_name(r));
}

/* ---- health ---- */

/* Whether the shim may give devices of it away by itself. */
static bool by_annotation(const struct world *w, size_t r)
{
    return w->kubelet.mixed || w->kubelet.source[r] == SOURCE_ANNOTATION;
}

/* What the shim gave to containers that asked by annotation, or is about to. One whose devices an
 * operator has released may have been made since, by a call that was still with the runtime, or be
 * listed as created only. A pod of which one is being made is not over, although its sandbox was
 * stopped. */
static unsigned given_away(struct world *w, size_t r)
{
    unsigned mask = claims_own(w, r);

    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if ((runtime_live(c) && releaser_took(w, c->uid)) || runtime_may_be_started(w, c))
            mask |= c->noted[r];
    }
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *c = &w->client.creates[i];

        if (c->number && c->count[r] > 0 && c->ids[r] == 0)
            mask |= w->plugins[r].ever; /* any of them may be reserved */
        if (c->number)
            mask |= claims_of_pod(w, c->uid, POD_CONTAINERS_MAX + 1, r);
    }
    return mask;
}

/* What need not look healthy though it is. */
static unsigned not_offered(struct world *w, size_t r)
{
    return given_away(w, r) | operator_may_keep(w, r);
}

/* What the plugin listed last. */
static unsigned listed(const struct world *w, size_t r)
{
    const struct connection *c = plugin_usable(w, r);

    return r == RESOURCE_BUILTIN ? w->plugins[r].listed : c ? c->devices : 0;
}

/* Sets *healthy only then. */
static bool usable(const struct world *w, size_t r, unsigned *healthy)
{
    const struct connection *c = plugin_usable(w, r);
    const struct plugin *p = &w->plugins[r];

    if (r == RESOURCE_BUILTIN ? !w->shim.builtin_told : !c)
        return false;
    *healthy = r == RESOURCE_BUILTIN ? p->listed & p->healthy : c->healthy;
    return true;
}

static uint64_t later(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

uint64_t shown_since_ms(const struct world *w, size_t r)
{
    uint64_t served_ms = w->shown.served_ms[r];

    return served_ms == 0 || w->shown.usable_ms[r] > 0 ? served_ms
                                                       : later(served_ms, w->shown.pods_ms);
}

/* A kubelet may just have started: for `mask`, and so long more or less. */
static bool starting(const struct world *w, uint64_t more_ms, uint64_t less_ms)
{
    uint64_t mask_ms = w->shim.settings.mask_ms;
    uint64_t began_ms = later(w->shown.started_ms, mask_ms > 0 ? w->shown.pods_ms : 0);

    return w->now_ms + less_ms < began_ms + mask_ms + more_ms;
}

/* It has not been usable in this life: as it was listed last, all of it healthy, until the mask
 * that began before is over. */
static void check_restored(struct world *w, size_t r, const struct shown_resource *is)
{
    uint64_t mask_ms = w->shim.settings.mask_ms;
    uint64_t end_ms = mask_ms > 0 ? shown_since_ms(w, r) + mask_ms : w->shown.served_ms[r];
    unsigned held = starting(w, LATE_MS, 0) ? is->held : 0;

    if (w->now_ms + LATE_MS < end_ms)
        check_that(w, (w->shown.stored[r] & ~is->healthy & ~not_offered(w, r)) == 0,
                   "what was listed is healthy until the mask is over, also after a restart: %s, "
                   "%x of %x",
                   resource_sim_name(r), is->healthy, w->shown.stored[r]);
    if (w->now_ms > end_ms + LATE_MS)
        check_that(w, (is->healthy & ~held) == 0,
                   "the mask goes on over a restart, and ends: %s, %x", resource_sim_name(r),
                   is->healthy);
}

/* As the plugin lists it, or, while it is away and that is masked, as it was last. */
static void check_health(struct world *w, size_t r, const struct shown_resource *is, bool serves)
{
    uint64_t away_ms = w->now_ms - w->shown.away_ms[r], mask_ms = w->shim.settings.mask_ms;
    uint64_t lost_ms = w->shown.lost_ms[r];
    bool known = w->shown.usable_ms[r] > 0;
    bool told = known || w->now_ms > w->shown.pods_ms + mask_ms + SILENT_MS;
    unsigned base = w->shown.base[r];
    unsigned held = starting(w, LATE_MS, 0) ? is->held : 0;

    if (known && (serves || away_ms + LATE_MS < mask_ms))
        check_that(w, (base & ~is->healthy & ~not_offered(w, r)) == 0,
                   "what is healthy is shown so, also while a plugin is away for a while: %s, %x "
                   "of %x",
                   resource_sim_name(r), is->healthy, base);
    if (known && serves)
        check_that(w, (is->healthy & ~base & ~held) == 0,
                   "what is not healthy is not shown so, unless it is held, and a kubelet may just "
                   "have started: %s, %x of %x",
                   resource_sim_name(r), is->healthy, base);
    if (known && serves)
        check_that(
            w, (is->listed & ~listed(w, r) & ~held) == 0,
            "what is not listed is not shown, unless it is held, and a kubelet may just have "
            "started: %s, %x of %x",
            resource_sim_name(r), is->listed, listed(w, r));
    if (!known && !serves && w->shown.served_ms[r] > 0)
        check_restored(w, r, is);
    if (!serves && told &&
        (away_ms > mask_ms + SILENT_MS || (lost_ms > 0 && w->now_ms > lost_ms + mask_ms + LATE_MS)))
        check_that(w, (is->healthy & ~held) == 0, "a plugin that is away too long shows: %s, %x",
                   resource_sim_name(r), is->healthy);
}

void shown_listed(struct world *w, const struct connection *connection)
{
    w->shown.last[connection->resource] = connection->devices;
    w->shown.last_len[connection->resource] = connection->capacity;
}

/* False: the plugin is away, from the first time this is said. */
static bool note_usable(struct world *w, size_t r)
{
    bool serves = usable(w, r, &w->shown.base[r]);

    if (serves)
        operator_served(w, r);
    if (serves) {
        w->shown.usable_ms[r] = w->shown.served_ms[r] = w->now_ms;
        w->shown.lost_ms[r] = 0;
    }
    if (serves || w->shown.served[r])
        w->shown.away_ms[r] = w->now_ms;
    w->shown.served[r] = serves;
    return serves;
}

/* ---- what is held ---- */

/* Its pod has a sandbox. One to come counts as long as it cannot be told from one that is gone. */
static bool surely_begun(struct world *w, unsigned uid)
{
    const struct pod_sim *pod = kubelet_find_pod(w, uid);
    char name[16];

    snprintf(name, sizeof name, "u%u", uid);
    return kubelet_surely_there(w, uid) &&
           (pod->sandbox_attempt > 0 ||
            (pod->forgotten && !pod->row_lost &&
             store_find(&w->store, DEVICEMGR_RECORD_POD, name, "", "")));
}

/* By the kubelet's checkpoint, as the shim was told of it; or by the shim. */
static void check_held(struct world *w, size_t r, const struct shown_resource *is)
{
    unsigned kept = shim_exclusive(w, r) ? claims_kept(w, 0, r) : 0;

    check_that(w, (is->held & ~claims_kubelets(w, r)) == 0,
               "what is held is held by a pod that runs, or can be admitted again: %x of %s",
               is->held & ~claims_kubelets(w, r), resource_sim_name(r));
    kept &= ~claims_strangers(w, r); /* given away both ways it is healthy */
    if (!w->kubelet.mixed)
        check_that(w, (is->healthy & kept) == 0,
                   "what the shim gave away is not shown healthy: %x of %s", is->healthy & kept,
                   resource_sim_name(r));
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        unsigned told = w->bridge.told[r][i].uid, bit = 1u << i;

        if (!told || !surely_begun(w, told))
            continue;
        if (starting(w, 0, LATE_MS))
            check_that(w, is->healthy & bit,
                       "what a pod of the kubelet holds is healthy to one that starts: %s of %s",
                       device_sim_id(i), resource_sim_name(r));
        if (is->listed & bit)
            check_that(w, is->held & bit, "what a pod of the kubelet has is held: %s of %s",
                       device_sim_id(i), resource_sim_name(r));
    }
}

/* Containers that run with what the kubelet gave them, known to the shim by their creation, the
 * checkpoint, or the runtime's list. */
static void check_running(struct world *w)
{
    for (size_t n = 0; n < w->runtime.containers_end && !w->shim.damaged; n++) {
        const struct rt_container *c = &w->runtime.containers[n];
        const struct pod_sim *pod = c->id ? kubelet_find_pod(w, c->uid) : NULL;

        if (!pod || !c->through_shim || c->state != CONTAINER_RUNNING ||
            !kubelet_surely_there(w, c->uid))
            continue;
        for (size_t r = 0; r < RESOURCES_LEN; r++) {
            const struct shown_resource *is = &w->shown.resources[r];

            if (is->there && pod->containers[c->name].ids[r] == c->held[r])
                check_that(w, (c->held[r] & is->listed & ~is->held) == 0,
                           "what a running container has is held: %x of %s, c%u", c->held[r],
                           resource_sim_name(r), c->id);
        }
    }
}

static void check_bare(struct world *w)
{
    for (size_t i = 0; i < w->runtime.containers_end * RESOURCES_LEN; i++) {
        const struct rt_container *c = &w->runtime.containers[i / RESOURCES_LEN];
        size_t r = i % RESOURCES_LEN;
        const struct shown_resource *is = &w->shown.resources[r];

        if (runtime_live(c) && c->known[r] && is->there)
            check_that(w, (c->bare[r] & is->listed & ~is->held) == 0,
                       "what a container without a token runs with is held: %x of %s, c%u",
                       c->bare[r], resource_sim_name(r), c->id);
    }
}

/* ---- what an operator keeps back ---- */

static void check_kept_back(struct world *w, size_t r, const struct shown_resource *is)
{
    unsigned held = starting(w, LATE_MS, 0) ? is->held : 0;

    check_that(w, (is->healthy & operator_keeps(w, r) & ~held) == 0,
               "what is cordoned is not shown healthy, unless it is held, and a kubelet may just "
               "have started: %s, %x",
               resource_sim_name(r), is->healthy & operator_keeps(w, r));
    if (operator_withdrew(w, r))
        check_that(w, is->held && is->listed == is->held && is->others == 0,
                   "what is withdrawn is shown no more, but what pods of the kubelet have: %s, %x",
                   resource_sim_name(r), is->listed);
}

/* A resource that is not shown. */
static void check_withdrawn(struct world *w, size_t r, bool serves)
{
    check_that(w, !serves || operator_may_have_withdrawn(w, r),
               "a resource that is usable is shown");
    for (size_t i = 0; serves && i < DEVICES_MAX; i++) {
        unsigned told = w->bridge.told[r][i].uid;

        check_that(w, !told || !surely_begun(w, told) || !(listed(w, r) & 1u << i),
                   "a resource of which the kubelet's pods have some is shown: %s",
                   resource_sim_name(r));
    }
}

/* ---- all of it ---- */

void shown_check(struct world *w)
{
    uint64_t version = devicemgr_shown_version(w->shim.core);
    struct reading reading;

    read_all(w, &reading);
    check_that(w, version != 0, "the version is never 0");
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        const struct shown_resource *is = &reading.resources[r];

        bool serves = note_usable(w, r);

        if (w->shown.fresh)
            check_version(w, r, is, version);
        if (!is->there) {
            check_withdrawn(w, r, serves);
            continue;
        }
        check_health(w, r, is, serves);
        check_held(w, r, is);
        check_kept_back(w, r, is);
    }
    memcpy(w->shown.resources, reading.resources, sizeof reading.resources);
    w->shown.version = version;
    w->shown.fresh = true;
    check_running(w);
    check_bare(w);
}

void shown_check_rest(struct world *w, bool idle)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        const struct shown_resource *is = &w->shown.resources[r];
        unsigned devices = w->plugins[r].devices;
        unsigned extra = starting(w, LATE_MS, 0) ? is->held & ~devices : 0;

        check_that(w, is->there && is->mask_end_ms == 0, "every resource is shown");
        check_that(w, (is->listed & ~extra) == (devices & ~extra) && is->others == 0,
                   "what is shown is what the plugin lists: %x of %x", is->listed, devices);
        if (idle || !by_annotation(w, r))
            check_that(w, (is->healthy & devices) == devices, "all that is there is healthy");
        if (idle)
            check_that(w, is->held == 0, "nothing is held: %x of %s", is->held,
                       resource_sim_name(r));
    }
}

/* Since when a resource is away, as its row has it, or else from now on; 0: there is no row. */
static uint64_t read_row(struct world *w, size_t r)
{
    const struct store_row *row =
        store_find(&w->store, DEVICEMGR_RECORD_RESOURCE, resource_sim_name(r), "", "");
    Checkpoint__V1__Resource *resource;
    uint64_t ms = w->now_ms;

    w->shown.stored[r] = w->shown.last[r] = 0;
    w->shown.last_len[r] = 0;
    if (!row)
        return 0;
    resource = checkpoint__v1__resource__unpack(NULL, row->record.value_bytes, row->record.value);
    for (size_t i = 0; i < resource->n_devices; i++) {
        size_t d = device_sim_find(resource->devices[i]->id);

        w->shown.stored[r] |= d < DEVICES_MAX ? 1u << d : 0;
    }
    w->shown.last[r] = w->shown.stored[r];
    w->shown.last_len[r] = resource->n_devices;
    if (resource->stopped && strcmp(resource->stopped_boot_id, w->shim.boot_id) == 0)
        ms = w->shim.boot_ms + resource->stopped_ms - 1;
    checkpoint__v1__resource__free_unpacked(resource, NULL);
    return ms;
}

/* Whether all pods that there are rows of were last known in an earlier boot. */
static bool pods_are_of_before(const struct world *w)
{
    size_t before = 0, all = 0;

    for (const struct store_row *row = w->store.rows; row; row = row->next) {
        Checkpoint__V1__Pod *pod;

        if (row->record.kind != DEVICEMGR_RECORD_POD)
            continue;
        pod = checkpoint__v1__pod__unpack(NULL, row->record.value_bytes, row->record.value);
        before += pod->boot_id[0] != '\0' && strcmp(pod->boot_id, w->shim.boot_id) != 0;
        all++;
        checkpoint__v1__pod__free_unpacked(pod, NULL);
    }
    return before > 0 && before == all;
}

void shown_pods_told(struct world *w)
{
    if (w->now_ms < w->shown.pods_ms)
        w->shown.pods_ms = w->now_ms;
}

void shown_rows(struct world *w)
{
    w->shown.pods_ms = pods_are_of_before(w) ? w->now_ms + POD_RETURNS_MS : 0;
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        w->shown.served_ms[r] = read_row(w, r);
}

void shown_shim_started(struct world *w)
{
    w->shown.fresh = false;
    w->shown.started_ms = w->now_ms;
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        w->shown.usable_ms[r] = 0;
        w->shown.away_ms[r] = w->now_ms;
        w->shown.lost_ms[r] = 0;
        w->shown.served[r] = false;
    }
}

/* A list that came just before is what the plugin is away with, though nobody was shown it. */
void shown_connection_lost(struct world *w, const struct connection *connection)
{
    size_t resource = connection->resource;

    if (connection->listed) {
        w->shown.base[resource] = connection->healthy;
        shown_listed(w, connection);
    }
    if (w->shown.lost_ms[resource] == 0)
        w->shown.lost_ms[resource] = w->now_ms;
}
