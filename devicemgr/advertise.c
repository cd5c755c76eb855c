#include "devicemgr/advertise.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/core.h"

/* What one container of a pod has, by the kubelet's own checkpoint. */
struct kubelet_hold {
    char *resource;
    char *pod_uid;
    char *container;
    struct ids ids; /* sorted */
    bool counts;    /* its pod is not over: its ids are shown as held */
};

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
    return mask_ms > UINT64_MAX - stopped_ms ? UINT64_MAX : stopped_ms + mask_ms;
}

static struct advertise_resource look_at_resource(const struct devicemgr *mgr,
                                                  const struct resource *resource)
{
    uint64_t end_ms = mask_end_ms(mgr, resource);
    bool assumed = !resource->builtin && !resource->endpoint.listed;

    return (struct advertise_resource){
        .version = resource->shown.version,
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
        resource->shown.version = ++mgr->advertise.version;
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

/* The kubelet will not make a container of the pod again. One whose sandbox was found dead is not
 * over: after a reboot all are, and the kubelet admits them again. */
static bool pod_over(const struct devicemgr *mgr, const char *pod_uid)
{
    const struct pod *pod = pods_find(&mgr->pods, pod_uid);

    if (!pod)
        return pods_gone(&mgr->pods, pod_uid);
    return core_pod_over(mgr, pod_uid);
}

static enum advertise_hold look_at_allocation(const struct devicemgr *mgr,
                                              const struct allocation *allocation)
{
    bool over = pod_over(mgr, allocation->pod_uid);

    if (!allocation->own_choice)
        return over ? ADVERTISE_NOTHING : ADVERTISE_HELD;
    if (!core_settings_of(mgr, allocation->resource)->exclusive)
        return ADVERTISE_NOTHING;
    return over && allocation_life(allocation) == ALLOCATION_IDLE ? ADVERTISE_NOTHING
                                                                  : ADVERTISE_TAKEN;
}

static void settle_allocation(struct devicemgr *mgr, struct allocation *allocation)
{
    enum advertise_hold shown = look_at_allocation(mgr, allocation);

    mgr->advertise.looks++;
    if (shown == allocation->shown)
        return;
    allocation->shown = shown;
    touch(mgr, allocation->resource);
}

static void settle_allocations(struct devicemgr *mgr)
{
    struct allocations *table = &mgr->allocations;
    struct allocation *a, *next;

    for (size_t i = 0; i < table->dropped.len; i++)
        touch(mgr, table->dropped.v[i]);
    ids_fini(&table->dropped);
    for (a = table->by_key; mgr->advertise.all && a; a = a->hh.next)
        settle_allocation(mgr, a);
    DL_FOREACH_SAFE2(table->stale, a, next, stale_next)
    {
        a->stale = false;
        settle_allocation(mgr, a);
    }
    table->stale = NULL;
}

static void settle_kubelet_holds(struct devicemgr *mgr)
{
    for (size_t i = 0; i < mgr->advertise.holds_len; i++) {
        struct kubelet_hold *hold = &mgr->advertise.holds[i];
        bool counts = !pod_over(mgr, hold->pod_uid);

        if (counts == hold->counts)
            continue;
        hold->counts = counts;
        touch(mgr, hold->resource);
    }
}

static void check(const struct devicemgr *mgr)
{
    for (const struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next)
        assert(a->shown == look_at_allocation(mgr, a));
    for (size_t i = 0; i < mgr->advertise.holds_len; i++)
        assert(mgr->advertise.holds[i].counts != pod_over(mgr, mgr->advertise.holds[i].pod_uid));
}

void advertise_settle(struct devicemgr *mgr)
{
    if (!mgr->advertise.stale)
        return;
    mgr->advertise.stale = false;
    settle_resources(mgr);
    settle_allocations(mgr);
    if (mgr->advertise.all || mgr->advertise.pods_changed)
        settle_kubelet_holds(mgr);
    mgr->advertise.all = mgr->advertise.pods_changed = false;
    if (mgr->settings.checked)
        check(mgr);
}

void advertise_all(struct devicemgr *mgr)
{
    mgr->advertise.all = true;
}

uint64_t advertise_next_ms(const struct devicemgr *mgr)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct resource *r = mgr->resources; r; r = r->hh.next) {
        if (r->shown.mask_end_ms != 0 && r->shown.mask_end_ms < next_ms)
            next_ms = r->shown.mask_end_ms;
    }
    return next_ms;
}

/* ---- the kubelet's checkpoint ---- */

static void holds_free(struct kubelet_hold *holds, size_t holds_len)
{
    for (size_t i = 0; i < holds_len; i++) {
        free(holds[i].resource);
        free(holds[i].pod_uid);
        free(holds[i].container);
        ids_fini(&holds[i].ids);
    }
    free(holds);
}

void advertise_fini(struct advertise *advertise)
{
    holds_free(advertise->holds, advertise->holds_len);
    *advertise = (struct advertise){0};
}

static int compare_ids(const struct ids *a, const struct ids *b)
{
    int by_id = 0;

    for (size_t i = 0; by_id == 0 && i < a->len && i < b->len; i++)
        by_id = strcmp(a->v[i], b->v[i]);
    return by_id != 0 ? by_id : (a->len > b->len) - (a->len < b->len);
}

static int compare_holds(const void *a, const void *b)
{
    const struct kubelet_hold *x = a, *y = b;
    int by = strcmp(x->resource, y->resource);

    if (by == 0)
        by = strcmp(x->pod_uid, y->pod_uid);
    if (by == 0)
        by = strcmp(x->container, y->container);
    return by != 0 ? by : compare_ids(&x->ids, &y->ids);
}

static struct kubelet_hold *holds_new(const struct devicemgr_kubelet_held *held, size_t held_len)
{
    struct kubelet_hold *holds = mem_alloc(held_len, sizeof *holds);

    for (size_t i = 0; i < held_len; i++) {
        holds[i].resource = mem_strdup(held[i].resource);
        holds[i].pod_uid = mem_strdup(held[i].pod_uid);
        holds[i].container = mem_strdup(held[i].container);
        ids_copy(&holds[i].ids, (char *const *)held[i].ids, held[i].ids_len);
        ids_sort(&holds[i].ids);
    }
    if (held_len > 1)
        qsort(holds, held_len, sizeof *holds, compare_holds);
    return holds;
}

bool advertise_kubelet_gave(const struct devicemgr *mgr, const struct allocation *allocation)
{
    const struct kubelet_hold wanted = {.resource = allocation->resource,
                                        .pod_uid = allocation->pod_uid,
                                        .container = allocation->container,
                                        .ids = allocation->ids};

    return mgr->advertise.holds_len > 0 &&
           bsearch(&wanted, mgr->advertise.holds, mgr->advertise.holds_len, sizeof wanted,
                   compare_holds);
}

/* What both have goes on as it was; a resource that loses one is another. */
void devicemgr_kubelet_holds(struct devicemgr *mgr, uint64_t now_ms, uint64_t read_ms,
                             const struct devicemgr_kubelet_held *held, size_t held_len)
{
    struct advertise *advertise = &mgr->advertise;
    struct kubelet_hold *holds = holds_new(held, held_len);
    size_t n = 0;

    core_at(mgr, now_ms);
    for (size_t o = 0; o < advertise->holds_len; o++) {
        const struct kubelet_hold *old = &advertise->holds[o];

        while (n < held_len && compare_holds(&holds[n], old) < 0)
            n++;
        if (n < held_len && compare_holds(&holds[n], old) == 0)
            holds[n++].counts = old->counts;
        else if (old->counts)
            touch(mgr, old->resource);
    }
    holds_free(advertise->holds, advertise->holds_len);
    advertise->holds = holds;
    advertise->holds_len = held_len;
    advertise->pods_changed = true;
    kubelet_judge_tokens(mgr, read_ms);
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
    for (size_t h = 0; h < mgr->advertise.holds_len; h++) {
        const struct kubelet_hold *hold = &mgr->advertise.holds[h];

        if (!hold->counts || strcmp(hold->resource, resource) != 0)
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
        if (mark->held && !devices_find(&resource->devices, mark->id))
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

static struct devicemgr_shown_device shown_device(const struct resource *resource,
                                                  const struct device *device,
                                                  const struct marks *marks)
{
    bool healthy = !resource->shown.away && (resource->shown.assumed || device->healthy);
    const struct mark *mark;

    HASH_FIND_STR(marks->by_id, device->id, mark);
    return (struct devicemgr_shown_device){
        .id = device->id,
        .healthy = mark ? mark->held || (healthy && !mark->taken) : healthy,
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
            shown = shown_device(resource, device, &marks);
            i++;
        }
        each(user, &shown);
    }
    marks_fini(&marks);
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
                                              .mask_end_ms = resource->shown.mask_end_ms,
                                              .expected = resource->shown.expected};

        if (shown.version != 0)
            each(user, &shown);
    }
    ids_fini(&names);
}
