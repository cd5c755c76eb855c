/*
 * The list of devices: what the plugins list, and what somebody has that they list no more.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/shown.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

/* So many ids of each list are looked at before the first of them is told: who ends the list then
 * has not paid for the rest. */
#define STRIDE 256

/* Ids that one container has of the resource, in natural order; `at`: told up to there. */
struct source {
    char *const *ids;
    size_t len, at;
};

/* Who asks, about which resource, and how far it is told. */
struct telling {
    const struct state *state;
    const struct resource *resource;
    bool exclusive;
    bool (*each)(void *user, const struct devicemgr_device *device);
    void *user;
    size_t at; /* devices that are listed */
    struct source *sources;
    size_t sources_len;
    const char **unlisted; /* up to the next stride */
    size_t unlisted_len;
    struct devicemgr_holder *holders; /* of one device */
    size_t holders_len;
};

/* ---- one device ---- */

static void add_holder(struct telling *telling, const char *uid, const char *container,
                       const char *state)
{
    struct devicemgr_holder *holder;

    telling->holders = mem_grow(telling->holders, telling->holders_len, sizeof *telling->holders);
    holder = &telling->holders[telling->holders_len++];
    *holder = (struct devicemgr_holder){.pod_uid = uid, .container = container, .state = state};
    meant_names(telling->state, uid, &holder->pod_namespace, &holder->pod_name);
}

/* Whether this container is among them already. */
static bool is_told(const struct telling *telling, const char *uid, const char *container)
{
    size_t i = 0;

    while (i < telling->holders_len && (strcmp(telling->holders[i].pod_uid, uid) != 0 ||
                                        strcmp(telling->holders[i].container, container) != 0))
        i++;
    return i < telling->holders_len;
}

static void find_holders(struct telling *telling, const char *id)
{
    const struct state *state = telling->state;
    const char *resource = telling->resource->name;
    const struct owners *holders = allocations_holders(&state->allocations, resource, id);
    const struct owners *askers = allocations_askers(&state->allocations, resource, id);
    const struct owners *holds = kubelet_holders(state, resource, id);

    telling->holders_len = 0;
    for (size_t i = 0; i < owners_len(holders); i++) {
        const struct allocation *a = holders->v[i];

        if (holders_keeps(state, a))
            add_holder(telling, a->pod_uid, a->container, meant_life(state, a));
    }
    for (size_t i = 0; i < owners_len(askers); i++) {
        const struct allocation *a = askers->v[i];

        if (holders_keeps_asked(state, a) && !is_told(telling, a->pod_uid, a->container))
            add_holder(telling, a->pod_uid, a->container, "promised");
    }
    for (size_t i = 0; i < owners_len(holds); i++) {
        const struct kubelet_hold *hold = holds->v[i];

        if (kubelet_hold_stands(state, hold) && !is_told(telling, hold->pod_uid, hold->container))
            add_holder(telling, hold->pod_uid, hold->container, "promised");
    }
}

/* One that is not listed, that nobody has, and that is not shown either is none. */
static bool tell(struct telling *telling, const char *id, const struct device *device)
{
    const struct state *state = telling->state;
    const struct resource *resource = telling->resource;
    struct devicemgr_shown_device shown = {0};
    const struct order *cordon = orders_cordon(&state->orders, resource->name, id);
    const struct order *withdrawal = orders_withdrawal(&state->orders, resource->name);
    struct devicemgr_device row = {.resource = resource->name, .id = id};

    find_holders(telling, id);
    row.holders = telling->holders;
    row.holders_len = telling->holders_len;
    row.shown = shown_one(state, resource, id, &shown);
    row.shown_healthy = row.shown && shown.healthy;
    if (withdrawal) {
        row.withdrawn = withdrawal->words.reason;
        row.withdrawn_at_s = withdrawal->words.at_s;
    }
    if (cordon) {
        row.cordon = cordon->words.reason;
        row.cordon_at_s = cordon->words.at_s;
    }
    if (device) {
        row.listed = true;
        row.healthy = device->healthy;
        row.since_ms_ago = ago(state->now_ms, device->since_ms);
        row.nodes = device->nodes;
        row.nodes_len = device->nodes_len;
        row.free = device->healthy && resource_usable(resource) && !row.withdrawn &&
                   !tainted_or_cordoned(state, resource->name, id) &&
                   (!telling->exclusive || holders_nobody(state, resource->name, id));
    }
    return (!device && !row.shown && row.holders_len == 0) || telling->each(telling->user, &row);
}

/* ---- those that are not listed any more ---- */

static void add_source(struct telling *telling, const struct ids *ids, const char *after)
{
    telling->sources = mem_grow(telling->sources, telling->sources_len, sizeof *telling->sources);
    telling->sources[telling->sources_len++] =
        (struct source){.ids = ids->v,
                        .len = ids->len,
                        .at = after ? ids_place(ids->v, ids->len, sizeof *ids->v, after, true) : 0};
}

static void find_sources(struct telling *telling, const char *after)
{
    const struct state *state = telling->state;
    const char *resource = telling->resource->name;

    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (strcmp(a->resource, resource) == 0 &&
            (holders_keeps(state, a) || a->shown == SHOWN_HELD))
            add_source(telling, &a->ids, after);
        if (strcmp(a->resource, resource) == 0 && holders_keeps_asked(state, a))
            add_source(telling, &a->asked, after);
    }
    for (const struct kubelet_hold *h = state->kubelet.holds; h; h = h->hh.next) {
        if (strcmp(h->resource, resource) == 0 && (kubelet_hold_stands(state, h) || h->shown))
            add_source(telling, &h->ids, after);
    }
}

static const char *id_before(const char *a, const char *b)
{
    return a && strverscmp(a, b) < 0 ? a : b;
}

/* Up to which id the next stride goes; NULL: to the end. */
static const char *stride_end(const struct telling *telling)
{
    const struct devices *devices = &telling->resource->devices;
    const char *end = NULL;

    if (devices->len - telling->at > STRIDE)
        end = devices->items[telling->at + STRIDE].id;
    for (size_t i = 0; i < telling->sources_len; i++) {
        const struct source *source = &telling->sources[i];

        if (source->len - source->at > STRIDE)
            end = id_before(end, source->ids[source->at + STRIDE]);
    }
    return end;
}

static void find_unlisted(struct telling *telling, const char *end)
{
    const struct devices *devices = &telling->resource->devices;
    size_t kept = 0;

    telling->unlisted_len = 0;
    for (size_t i = 0; i < telling->sources_len; i++) {
        struct source *source = &telling->sources[i];

        for (; source->at < source->len; source->at++) {
            const char *id = source->ids[source->at];

            if (end && strverscmp(id, end) > 0)
                break;
            if (devices_find(devices, id))
                continue;
            telling->unlisted =
                mem_grow(telling->unlisted, telling->unlisted_len, sizeof *telling->unlisted);
            telling->unlisted[telling->unlisted_len++] = id;
        }
    }
    if (telling->unlisted_len > 1)
        qsort(telling->unlisted, telling->unlisted_len, sizeof *telling->unlisted, ids_order);
    for (size_t i = 0; i < telling->unlisted_len; i++) {
        if (i == 0 || strcmp(telling->unlisted[i], telling->unlisted[kept - 1]) != 0)
            telling->unlisted[kept++] = telling->unlisted[i];
    }
    telling->unlisted_len = kept;
}

/* ---- all of a resource ---- */

/* Both up to `end`, NULL: all. False: nobody listens any more. */
static bool tell_stride(struct telling *telling, const char *end)
{
    const struct devices *devices = &telling->resource->devices;
    size_t next = 0;

    find_unlisted(telling, end);
    for (;;) {
        const struct device *device =
            telling->at < devices->len ? &devices->items[telling->at] : NULL;
        const char *unlisted = next < telling->unlisted_len ? telling->unlisted[next] : NULL;

        if (device && end && strverscmp(device->id, end) > 0)
            device = NULL;
        if (!device && !unlisted)
            return true;
        if (device && (!unlisted || strverscmp(device->id, unlisted) < 0)) {
            telling->at++;
            unlisted = NULL;
        } else {
            next++;
            device = NULL;
        }
        if (!tell(telling, device ? device->id : unlisted, device))
            return false;
    }
}

/* `after` NULL: from the first. False: nobody listens any more. */
static bool tell_resource(struct telling *telling, const struct resource *resource,
                          const char *after)
{
    const struct devices *devices = &resource->devices;
    const char *end;
    bool more;

    telling->resource = resource;
    telling->exclusive = state_settings_of(telling->state, resource->name)->exclusive;
    telling->at = after ? devices_place(devices, after, true) : 0;
    telling->sources_len = 0;
    find_sources(telling, after);
    do {
        end = stride_end(telling);
        more = tell_stride(telling, end);
    } while (more && end);
    return more;
}

void devicemgr_devices(const struct devicemgr *mgr, uint64_t now_ms,
                       const struct devicemgr_which *which,
                       bool (*each)(void *user, const struct devicemgr_device *device), void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct telling telling = {.state = state, .each = each, .user = user};
    struct ids names = {0};
    bool more = true;

    resources_names(state->resources, &names);
    for (size_t i = 0; more && i < names.len; i++) {
        int order = which->after ? strverscmp(names.v[i], which->after[0]) : 1;

        if (order >= 0 && (!which->resource || strcmp(which->resource, names.v[i]) == 0))
            more = tell_resource(&telling, resources_find(state->resources, names.v[i]),
                                 order == 0 ? which->after[1] : NULL);
    }
    ids_fini(&names);
    free(telling.sources);
    free(telling.unlisted);
    free(telling.holders);
    free(state);
}

/* ---- one that is looked for ---- */

struct looking {
    bool (*is)(void *user, const char *id);
    void *user;
    const char *found;
};

static void look(struct looking *looking, const char *id)
{
    if (looking->is(looking->user, id) && (!looking->found || strverscmp(id, looking->found) > 0))
        looking->found = id;
}

static void look_at_ids(struct looking *looking, const struct ids *ids)
{
    for (size_t i = 0; i < ids->len; i++)
        look(looking, ids->v[i]);
}

const char *devicemgr_device_find(const struct devicemgr *mgr, const char *resource,
                                  bool (*is)(void *user, const char *id), void *user)
{
    const struct state *state = &mgr->state;
    const struct resource *found = resources_find(state->resources, resource);
    struct looking looking = {.is = is, .user = user};

    for (size_t i = 0; found && i < found->devices.len; i++)
        look(&looking, found->devices.items[i].id);
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (strcmp(a->resource, resource) != 0)
            continue;
        look_at_ids(&looking, &a->ids);
        look_at_ids(&looking, &a->asked);
    }
    for (const struct kubelet_hold *h = state->kubelet.holds; h; h = h->hh.next) {
        if (strcmp(h->resource, resource) == 0)
            look_at_ids(&looking, &h->ids);
    }
    return looking.found;
}
