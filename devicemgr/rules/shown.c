/*
 * What the kubelet is shown: the list of one resource, and of them all.
 */
#include "devicemgr/rules/shown.h"

#include <string.h>

#include "devicemgr/rules/rule.h"

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

/* Of what the allocation has: it is held if the kubelet gave it, else the shim took it. */
static void mark_allocation(struct mark *mark, const struct state *state,
                            const struct allocation *a)
{
    if (a->shown == SHOWN_TAKEN)
        mark->taken = true;
    else if (!allocation_replaced(a) || ids_contain_sorted(&a->asked, mark->id))
        mark->held = true;
    else if (state_settings_of(state, a->resource)->exclusive)
        mark->taken = true;
}

static void marks_add_allocations(struct marks *marks, const struct state *state,
                                  const char *resource)
{
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (a->shown == SHOWN_NOTHING || strcmp(a->resource, resource) != 0)
            continue;
        for (size_t i = 0; i < a->ids.len; i++)
            mark_allocation(marks_add(marks, a->ids.v[i]), state, a);
        for (size_t i = 0; i < a->asked.len && a->shown == SHOWN_HELD; i++)
            marks_add(marks, a->asked.v[i])->held = true;
    }
}

/* The kubelet is to let go of what is meant for a container of ours. */
static void marks_add_replacings(struct marks *marks, const struct state *state,
                                 const char *resource)
{
    for (const struct replacing *r = state->replacings.by_key; r; r = r->hh.next) {
        for (size_t i = 0; i < r->ids.len && strcmp(r->resource, resource) == 0; i++)
            marks_add(marks, r->ids.v[i])->taken = true;
    }
}

static void marks_add_kubelet_holds(struct marks *marks, const struct state *state,
                                    const char *resource)
{
    for (const struct kubelet_hold *hold = state->kubelet.holds; hold; hold = hold->hh.next) {
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

static void marks_init(struct marks *marks, const struct state *state,
                       const struct resource *resource)
{
    *marks = (struct marks){0};
    marks_add_allocations(marks, state, resource->name);
    marks_add_replacings(marks, state, resource->name);
    marks_add_kubelet_holds(marks, state, resource->name);
    marks->unlisted = mem_alloc(HASH_COUNT(marks->by_id), sizeof(struct mark *));
    for (struct mark *mark = marks->by_id; mark; mark = mark->hh.next) {
        if (state->showing.starting && mark->held && !devices_find(&resource->devices, mark->id))
            marks->unlisted[marks->unlisted_len++] = mark;
    }
    if (marks->unlisted_len > 1)
        qsort(marks->unlisted, marks->unlisted_len, sizeof(struct mark *), by_id);
}

static void marks_fini(struct marks *marks)
{
    struct mark *mark, *next;

    HASH_ITER(hh, marks->by_id, mark, next) {
        HASH_DEL(marks->by_id, mark);
        free(mark);
    }
    free(marks->unlisted);
}

/* All of it is kept from the kubelet, but for what its pods have: by an operator, or since it is
 * published otherwise (lifted.h). */
static bool is_withheld(const struct state *state, const struct resource *resource)
{
    return orders_withdrawal(&state->orders, resource->name) ||
           state_settings_of(state, resource->name)->dra;
}

static bool is_kept_back(const struct state *state, const struct resource *resource, const char *id)
{
    return is_withheld(state, resource) || tainted_or_cordoned(state, resource->name, id);
}

/* If nobody had it, nor an operator kept it back. */
static bool is_healthy(const struct state *state, const struct resource *resource,
                       const struct device *device)
{
    return !resource->shown.away && (resource->shown.assumed || device->healthy) &&
           !is_kept_back(state, resource, device->id);
}

/* Of what is published otherwise nothing is given away by that list. With nodes in it a topology
 * manager would look for what is free on them, and a strict one refuse whom the scheduler has given
 * some of it by a claim. */
static size_t nodes_shown(const struct state *state, const struct resource *resource,
                          const struct device *device)
{
    return state_settings_of(state, resource->name)->dra ? 0 : device->nodes_len;
}

/* What is held is healthy to a kubelet that admits its pods again, whatever the plugin says; what
 * only the shim gave away, or is about to, is unhealthy; all else is as is_healthy() says. `mark`
 * NULL: nobody has it. */
static struct devicemgr_shown_device shown_as(const struct state *state,
                                              const struct resource *resource,
                                              const struct device *device, const struct mark *mark)
{
    bool healthy = is_healthy(state, resource, device);

    if (mark && mark->held)
        healthy = healthy || state->showing.starting;
    else if (mark && mark->taken)
        healthy = false;
    return (struct devicemgr_shown_device){
        .id = device->id,
        .healthy = healthy,
        .held = mark && mark->held,
        .numa_nodes = device->nodes,
        .numa_nodes_len = nodes_shown(state, resource, device),
    };
}

/* What is held and not listed. The kubelet that admits its pod again aligns it by its nodes, if
 * others of the resource have some, and only its checkpoint still knows them. */
static struct devicemgr_shown_device shown_unlisted(const struct state *state,
                                                    const struct resource *resource, const char *id)
{
    const struct device *device = kubelet_device_on_nodes(state, resource->name, id);

    return (struct devicemgr_shown_device){
        .id = id,
        .healthy = true,
        .held = true,
        .numa_nodes = device ? device->nodes : NULL,
        .numa_nodes_len = device ? nodes_shown(state, resource, device) : 0,
    };
}

static struct devicemgr_shown_device shown_device(const struct state *state,
                                                  const struct resource *resource,
                                                  const struct device *device,
                                                  const struct marks *marks)
{
    const struct mark *mark;

    HASH_FIND_STR(marks->by_id, device->id, mark);
    return shown_as(state, resource, device, mark);
}

static struct mark mark_of(const struct state *state, const char *resource, const char *id)
{
    const struct owners *holders = allocations_holders(&state->allocations, resource, id);
    const struct owners *askers = allocations_askers(&state->allocations, resource, id);
    const struct owners *holds = kubelet_holders(state, resource, id);
    struct mark mark = {.id = id, .taken = replacings_meant(&state->replacings, resource, id)};

    for (size_t i = 0; i < owners_len(holders); i++) {
        const struct allocation *holder = holders->v[i];

        if (holder->shown != SHOWN_NOTHING)
            mark_allocation(&mark, state, holder);
    }
    for (size_t i = 0; i < owners_len(askers); i++)
        mark.held = mark.held || ((const struct allocation *)askers->v[i])->shown == SHOWN_HELD;
    for (size_t i = 0; i < owners_len(holds); i++)
        mark.held = mark.held || ((const struct kubelet_hold *)holds->v[i])->shown;
    return mark;
}

bool shown_one(const struct state *state, const struct resource *resource, const char *id,
               struct devicemgr_shown_device *out)
{
    const struct device *device = devices_find(&resource->devices, id);
    struct mark mark;

    if (resource->shown.version == 0)
        return false;
    mark = mark_of(state, resource->name, id);
    if (device)
        *out = shown_as(state, resource, device, &mark);
    else
        *out = shown_unlisted(state, resource, id);
    if (device && !mark.held && is_withheld(state, resource))
        return false;
    return device || (state->showing.starting && mark.held);
}

void shown_devices(const struct state *state, const char *name,
                   void (*each)(void *user, const struct devicemgr_shown_device *device),
                   void *user)
{
    const struct resource *resource = resources_find(state->resources, name);
    struct marks marks;
    size_t i = 0, u = 0;
    bool withheld;

    if (!resource || resource->shown.version == 0)
        return;
    marks_init(&marks, state, resource);
    withheld = is_withheld(state, resource);
    while (i < resource->devices.len || u < marks.unlisted_len) {
        const struct device *device =
            i < resource->devices.len ? &resource->devices.items[i] : NULL;
        struct devicemgr_shown_device shown;

        if (u < marks.unlisted_len &&
            (!device || strverscmp(marks.unlisted[u]->id, device->id) < 0)) {
            shown = shown_unlisted(state, resource, marks.unlisted[u++]->id);
        } else {
            shown = shown_device(state, resource, device, &marks);
            i++;
        }
        if (shown.held || !withheld)
            each(user, &shown);
    }
    marks_fini(&marks);
}

struct tally {
    size_t *devices, *healthy;
};

static void tally_one(void *user, const struct devicemgr_shown_device *device)
{
    const struct tally *tally = user;

    ++*tally->devices;
    *tally->healthy += device->healthy;
}

void shown_count(const struct state *state, const struct resource *resource, size_t *devices,
                 size_t *healthy)
{
    struct marks marks;

    *devices = *healthy = 0;
    if (resource->shown.version == 0)
        return;
    if (tainted_or_ordered(state, resource->name) ||
        is_withheld(state, resource)) { /* any of them may be kept back */
        struct tally tally = {devices, healthy};

        shown_devices(state, resource->name, tally_one, &tally);
        return;
    }
    marks_init(&marks, state, resource);
    *devices = resource->devices.len + marks.unlisted_len;
    *healthy = marks.unlisted_len;
    if (!resource->shown.away)
        *healthy += resource->shown.assumed ? resource->devices.len : resource->devices.healthy;
    for (const struct mark *mark = marks.by_id; mark; mark = mark->hh.next) {
        const struct device *device = devices_find(&resource->devices, mark->id);

        if (device && is_healthy(state, resource, device))
            --*healthy;
        if (device && shown_as(state, resource, device, mark).healthy)
            ++*healthy;
    }
    marks_fini(&marks);
}

bool shown_some(const struct state *state, const char *name, const uint32_t *places, size_t len,
                void (*each)(void *user, uint32_t place,
                             const struct devicemgr_shown_device *device, bool marked),
                void *user)
{
    const struct resource *resource = resources_find(state->resources, name);
    struct devicemgr_shown_device shown;
    struct marks marks;
    bool plain;

    if (!resource || resource->shown.version == 0)
        return false;
    marks_init(&marks, state, resource);
    plain = marks.unlisted_len == 0 && !is_withheld(state, resource);
    for (size_t i = 0; plain && i < len && places[i] < resource->devices.len; i++) {
        shown = shown_device(state, resource, &resource->devices.items[places[i]], &marks);
        each(user, places[i], &shown, false);
    }
    for (struct mark *mark = marks.by_id; plain && mark; mark = mark->hh.next) {
        const struct device *device = devices_find(&resource->devices, mark->id);

        if (!device)
            continue;
        shown = shown_device(state, resource, device, &marks);
        each(user, (uint32_t)(device - resource->devices.items), &shown, true);
    }
    marks_fini(&marks);
    return plain;
}

/* ---- all of them ---- */

/* One that is withheld is shown as long as the kubelet's pods have some of it: after a reboot it
 * admits them again. */
static bool is_offered(const struct state *state, const struct resource *resource)
{
    struct marks marks;
    bool held;

    if (!is_withheld(state, resource))
        return true;
    marks_init(&marks, state, resource);
    held = marks.unlisted_len > 0;
    for (const struct mark *mark = marks.by_id; mark && !held; mark = mark->hh.next)
        held = mark->held && devices_find(&resource->devices, mark->id);
    marks_fini(&marks);
    return held;
}

uint64_t shown_version(const struct state *state)
{
    return state->showing.version + 1;
}

void shown_each(const struct state *state,
                void (*each)(void *user, const struct devicemgr_shown *shown), void *user)
{
    struct ids names = {0};

    resources_names(state->resources, &names);
    for (size_t i = 0; i < names.len; i++) {
        const struct resource *resource = resources_find(state->resources, names.v[i]);
        const struct devicemgr_shown shown = {.resource = resource->name,
                                              .version = resource->shown.version,
                                              .base = resource->shown.base,
                                              .mask_end_ms = resource->shown.mask_end_ms,
                                              .expected = resource->shown.expected};

        if (shown.version != 0 && is_offered(state, resource))
            each(user, &shown);
    }
    ids_fini(&names);
}
