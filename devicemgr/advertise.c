#include "devicemgr/advertise.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/core.h"
#include "devicemgr/limits.h"
#include "devicemgr/moment.h"

static void touch(struct devicemgr *mgr, const char *name)
{
    struct resource *resource = resources_find(mgr->resources, name);

    if (resource && resource->shown.version != 0)
        resource->shown.version = ++mgr->advertise.version;
}

/* ---- what contributes: resources ---- */

/* UINT64_MAX: the plugin does not count as away. */
static uint64_t mask_end_ms(const struct devicemgr *mgr, const struct resource *resource)
{
    uint64_t stopped_ms = resource->endpoint.stopped_ms, mask_ms = mgr->settings.mask_ms;

    if (!resource->endpoint.stopped)
        return UINT64_MAX;
    return later_by(stopped_ms, mask_ms);
}

static struct advertise_resource look_at_resource(const struct devicemgr *mgr,
                                                  const struct resource *resource)
{
    uint64_t end_ms = mask_end_ms(mgr, resource);
    bool assumed = !resource->builtin && !resource->endpoint.listed;

    return (struct advertise_resource){
        .version = resource->shown.version,
        .base = resource->shown.base,
        .changes = resource->devices.changes,
        .mask_end_ms = end_ms == UINT64_MAX || end_ms <= mgr->now_ms ? 0 : end_ms,
        .away = end_ms <= mgr->now_ms,
        .assumed = assumed,
        .expected = assumed && resource->endpoint.state == ENDPOINT_CONNECTING,
    };
}

static void settle_resource(struct devicemgr *mgr, struct resource *resource)
{
    const struct advertise_resource before = resource->shown;
    const struct advertise_resource now = look_at_resource(mgr, resource);

    resource->shown = now;
    if (before.version == 0 || now.away != before.away || now.changes != before.changes ||
        (now.assumed != before.assumed && resource->devices.healthy < resource->devices.len))
        resource->shown.version = resource->shown.base = ++mgr->advertise.version;
    else if (now.mask_end_ms != before.mask_end_ms || now.expected != before.expected)
        mgr->advertise.version++;
}

/* One that was shown and is no more is seen by the number of those that are: a new one in its place
 * has been counted as such. */
static void settle_resources(struct devicemgr *mgr)
{
    size_t len = 0;

    for (struct resource *r = mgr->resources; r; r = r->hh.next) {
        if (!r->builtin && !r->endpoint.socket_good)
            continue; /* it never had a list */
        settle_resource(mgr, r);
        len++;
    }
    if (len < mgr->advertise.resources_len)
        mgr->advertise.version++;
    mgr->advertise.resources_len = len;
}

/* ---- allocations, and what the kubelet says ---- */

static enum advertise_hold look_at_allocation(const struct devicemgr *mgr,
                                              const struct allocation *allocation)
{
    bool over = core_pod_over(mgr, allocation->pod_uid);

    if (!allocation->own_choice)
        return over ? ADVERTISE_NOTHING : ADVERTISE_HELD;
    if (!core_settings_of(mgr, allocation->resource)->exclusive)
        return ADVERTISE_NOTHING;
    return over && allocation_life(allocation) == ALLOCATION_IDLE ? ADVERTISE_NOTHING
                                                                  : ADVERTISE_TAKEN;
}

/*
 * The kubelet writes down what it gives a container, and the token of that makes an allocation of
 * the same: one of the two comes first, and goes last. While the one is shown, the other changes
 * nothing, and a list of 100,000 devices is not to be made anew to find that.
 */
static bool is_held_by_kubelet(const struct devicemgr *mgr, const struct allocation *allocation)
{
    const struct kubelet_hold *hold = kubelet_hold_of(mgr, allocation);

    return hold && hold->shown;
}

void advertise_changed(struct devicemgr *mgr, const char *resource)
{
    touch(mgr, resource);
}

static void settle_allocation(struct devicemgr *mgr, struct allocation *allocation, bool flips)
{
    enum advertise_hold shown = look_at_allocation(mgr, allocation);
    bool doubled;

    mgr->advertise.looks++;
    if (shown == allocation->shown && !(flips && shown == ADVERTISE_HELD))
        return;
    doubled = !flips && shown != ADVERTISE_TAKEN && allocation->shown != ADVERTISE_TAKEN &&
              is_held_by_kubelet(mgr, allocation);
    allocation_set_shown(allocation, shown);
    if (!doubled)
        touch(mgr, allocation->resource);
}

/* `flips`: whether a kubelet is starting has changed, and with it what held devices look like. */
static void settle_allocations(struct devicemgr *mgr, bool flips)
{
    struct allocations *table = &mgr->allocations;
    struct allocation *a;

    for (size_t i = 0; i < table->dropped.len; i++)
        touch(mgr, table->dropped.v[i]);
    ids_fini(&table->dropped);
    for (a = table->by_key; mgr->advertise.all && a; a = a->hh.next)
        settle_allocation(mgr, a, flips);
    while ((a = allocations_take_stale(table)))
        settle_allocation(mgr, a, flips);
}

static void settle_kubelet_hold(struct devicemgr *mgr, struct kubelet_hold *hold, bool flips)
{
    bool shown = kubelet_hold_counts(mgr, hold);

    mgr->advertise.looks++;
    if (shown == hold->shown && !(flips && shown))
        return;
    hold->shown = shown;
    if (flips || !kubelet_hold_doubled(mgr, hold))
        touch(mgr, hold->resource);
}

static void settle_kubelet_holds(struct devicemgr *mgr, bool flips)
{
    struct kubelet_view *kubelet = &mgr->kubelet;
    struct kubelet_hold *hold = kubelet->holds;
    struct kubelet_pod *pod;

    for (; mgr->advertise.all && hold; hold = hold->hh.next)
        settle_kubelet_hold(mgr, hold, flips);
    while ((pod = kubelet_take_stale(kubelet))) {
        for (size_t i = 0; !mgr->advertise.all && i < pod->holds_len; i++)
            settle_kubelet_hold(mgr, pod->holds[i], flips);
    }
}

static void check(const struct devicemgr *mgr)
{
    for (const struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next)
        assert(a->shown == look_at_allocation(mgr, a));
    for (const struct kubelet_hold *hold = mgr->kubelet.holds; hold; hold = hold->hh.next)
        assert(hold->shown == kubelet_hold_counts(mgr, hold));
}

void advertise_times(struct devicemgr *mgr)
{
    mgr->advertise.all_ms = 0;
    for (const struct kubelet_hold *hold = mgr->kubelet.holds; hold; hold = hold->hh.next)
        advertise_all_at(mgr, hold->since_ms + POD_COMES_MS);
    for (const struct sandbox *sandbox = mgr->pods.sandboxes; sandbox; sandbox = sandbox->hh.next)
        advertise_all_at(mgr, sandbox->remade_by_ms);
}

void advertise_pass(struct devicemgr *mgr)
{
    if (mgr->advertise.all_ms == 0 || mgr->now_ms < mgr->advertise.all_ms)
        return;
    advertise_times(mgr);
    advertise_all(mgr);
    wake_all(mgr);
}

void advertise_settle(struct devicemgr *mgr)
{
    bool starting = kubelet_is_starting(mgr), flips = starting != mgr->advertise.starting;

    if (!mgr->advertise.stale)
        return;
    mgr->advertise.stale = false;
    mgr->advertise.starting = starting;
    if (flips)
        advertise_all(mgr);
    settle_resources(mgr);
    settle_allocations(mgr, flips);
    settle_kubelet_holds(mgr, flips);
    mgr->advertise.all = false;
    if (mgr->settings.checked)
        check(mgr);
}

void advertise_all_at(struct devicemgr *mgr, uint64_t at_ms)
{
    struct advertise *advertise = &mgr->advertise;

    if (at_ms > mgr->now_ms && (advertise->all_ms == 0 || at_ms < advertise->all_ms))
        advertise->all_ms = at_ms;
}

void advertise_all(struct devicemgr *mgr)
{
    mgr->advertise.all = true;
}

/* Whether anything is shown otherwise to a kubelet that starts. */
static bool any_held(const struct devicemgr *mgr)
{
    const struct allocation *a = mgr->allocations.by_key;
    const struct kubelet_hold *hold = mgr->kubelet.holds;

    if (!mgr->advertise.starting)
        return false;
    while (a && a->shown != ADVERTISE_HELD)
        a = a->hh.next;
    while (hold && !hold->shown)
        hold = hold->hh.next;
    return a || hold;
}

uint64_t advertise_next_ms(const struct devicemgr *mgr)
{
    uint64_t next_ms = any_held(mgr) ? kubelet_started_until_ms(mgr) : UINT64_MAX;
    uint64_t all_ms = mgr->advertise.all_ms;

    for (const struct resource *r = mgr->resources; r; r = r->hh.next) {
        if (r->shown.mask_end_ms != 0 && r->shown.mask_end_ms < next_ms)
            next_ms = r->shown.mask_end_ms;
    }
    return all_ms > 0 && all_ms < next_ms ? all_ms : next_ms;
}

/* ---- the list of one resource ---- */

/* A device that somebody has. */
struct mark {
    const char *id;
    bool held;
    bool taken;
    bool listed;
    UT_hash_handle hh;
};

struct marks {
    struct mark *by_id;
    struct mark **unlisted; /* held, and not in the list; in natural order of ids */
    size_t unlisted_len;
};

static struct mark *marks_add(struct marks *marks, const char *id)
{
    struct mark *mark;

    HASH_FIND_STR(marks->by_id, id, mark);
    if (mark)
        return mark;
    mark = mem_alloc(1, sizeof *mark);
    mark->id = id;
    HASH_ADD_KEYPTR(hh, marks->by_id, mark->id, strlen(mark->id), mark);
    return mark;
}

static void marks_add_allocations(struct marks *marks, const struct devicemgr *mgr,
                                  const char *resource)
{
    for (const struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next) {
        if (a->shown == ADVERTISE_NOTHING || strcmp(a->resource, resource) != 0)
            continue;
        for (size_t i = 0; i < a->ids.len; i++) {
            struct mark *mark = marks_add(marks, a->ids.v[i]);

            if (a->shown == ADVERTISE_HELD)
                mark->held = true;
            else
                mark->taken = true;
        }
    }
}

static void marks_add_kubelet_holds(struct marks *marks, const struct devicemgr *mgr,
                                    const char *resource)
{
    for (const struct kubelet_hold *hold = mgr->kubelet.holds; hold; hold = hold->hh.next) {
        if (!hold->shown || strcmp(hold->resource, resource) != 0)
            continue;
        for (size_t i = 0; i < hold->ids.len; i++)
            marks_add(marks, hold->ids.v[i])->held = true;
    }
}

static int by_id(const void *a, const void *b)
{
    return strverscmp((*(struct mark *const *)a)->id, (*(struct mark *const *)b)->id);
}

static void marks_init(struct marks *marks, const struct devicemgr *mgr,
                       const struct resource *resource)
{
    *marks = (struct marks){0};
    marks_add_allocations(marks, mgr, resource->name);
    marks_add_kubelet_holds(marks, mgr, resource->name);
    marks->unlisted = mem_alloc(HASH_COUNT(marks->by_id), sizeof(struct mark *));
    for (struct mark *mark = marks->by_id; mark; mark = mark->hh.next) {
        if (mgr->advertise.starting && mark->held && !devices_find(&resource->devices, mark->id))
            marks->unlisted[marks->unlisted_len++] = mark;
    }
    if (marks->unlisted_len > 1)
        qsort(marks->unlisted, marks->unlisted_len, sizeof(struct mark *), by_id);
}

static void marks_fini(struct marks *marks)
{
    struct mark *mark, *next;

    HASH_ITER(hh, marks->by_id, mark, next)
    {
        HASH_DEL(marks->by_id, mark);
        free(mark);
    }
    free(marks->unlisted);
}

/* As it is; what is held is healthy to a kubelet that admits its pods again, and what the shim gave
 * away is unhealthy, or the kubelet gave it away as well. */
static struct devicemgr_shown_device shown_device(const struct devicemgr *mgr,
                                                  const struct resource *resource,
                                                  const struct device *device,
                                                  const struct marks *marks)
{
    bool healthy = !resource->shown.away && (resource->shown.assumed || device->healthy);
    const struct mark *mark;

    HASH_FIND_STR(marks->by_id, device->id, mark);
    if (mark && mark->held)
        healthy = healthy || mgr->advertise.starting;
    else if (mark && mark->taken)
        healthy = false;
    return (struct devicemgr_shown_device){
        .id = device->id,
        .healthy = healthy,
        .held = mark && mark->held,
        .numa_nodes = device->nodes,
        .numa_nodes_len = device->nodes_len,
    };
}

void devicemgr_shown_devices(const struct devicemgr *mgr, const char *name,
                             void (*each)(void *user, const struct devicemgr_shown_device *device),
                             void *user)
{
    const struct resource *resource = resources_find(mgr->resources, name);
    struct marks marks;
    size_t i = 0, u = 0;

    if (!resource || resource->shown.version == 0)
        return;
    marks_init(&marks, mgr, resource);
    while (i < resource->devices.len || u < marks.unlisted_len) {
        const struct device *device =
            i < resource->devices.len ? &resource->devices.items[i] : NULL;
        struct devicemgr_shown_device shown = {.healthy = true, .held = true};

        if (u < marks.unlisted_len &&
            (!device || strverscmp(marks.unlisted[u]->id, device->id) < 0)) {
            shown.id = marks.unlisted[u++]->id;
        } else {
            shown = shown_device(mgr, resource, device, &marks);
            i++;
        }
        each(user, &shown);
    }
    marks_fini(&marks);
}

bool devicemgr_shown_some(const struct devicemgr *mgr, const char *name, const uint32_t *places,
                          size_t len,
                          void (*each)(void *user, uint32_t place,
                                       const struct devicemgr_shown_device *device, bool marked),
                          void *user)
{
    const struct resource *resource = resources_find(mgr->resources, name);
    struct devicemgr_shown_device shown;
    struct marks marks;
    bool plain;

    if (!resource || resource->shown.version == 0)
        return false;
    marks_init(&marks, mgr, resource);
    plain = marks.unlisted_len == 0;
    for (size_t i = 0; plain && i < len && places[i] < resource->devices.len; i++) {
        shown = shown_device(mgr, resource, &resource->devices.items[places[i]], &marks);
        each(user, places[i], &shown, false);
    }
    for (struct mark *mark = marks.by_id; plain && mark; mark = mark->hh.next) {
        const struct device *device = devices_find(&resource->devices, mark->id);

        if (!device)
            continue;
        shown = shown_device(mgr, resource, device, &marks);
        each(user, (uint32_t)(device - resource->devices.items), &shown, true);
    }
    marks_fini(&marks);
    return plain;
}

/* ---- all of them ---- */

uint64_t devicemgr_shown_version(const struct devicemgr *mgr)
{
    return mgr->advertise.version + 1;
}

void devicemgr_shown(const struct devicemgr *mgr,
                     void (*each)(void *user, const struct devicemgr_shown *shown), void *user)
{
    struct ids names = {0};

    resources_names(mgr->resources, &names);
    for (size_t i = 0; i < names.len; i++) {
        const struct resource *resource = resources_find(mgr->resources, names.v[i]);
        const struct devicemgr_shown shown = {.resource = resource->name,
                                              .version = resource->shown.version,
                                              .base = resource->shown.base,
                                              .mask_end_ms = resource->shown.mask_end_ms,
                                              .expected = resource->shown.expected};

        if (shown.version != 0)
            each(user, &shown);
    }
    ids_fini(&names);
}
