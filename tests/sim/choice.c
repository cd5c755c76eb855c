#include "tests/sim/choice.h"

#include "tests/sim/check.h"
#include "tests/sim/claim.h"
#include "tests/sim/reason.h"
#include "tests/sim/world.h"

#define NODES 2

int choice_node(size_t device)
{
    static const int NODE_OF[DEVICES_MAX] = {0, 1, -1, 1, 0};

    return NODE_OF[device];
}

/* The only create of the resource, for which the shim chooses from all that is free; NULL: there
 * are several, or none. */
static struct create_sim *sole_chooser(struct world *w, size_t resource)
{
    struct create_sim *found = NULL;

    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        struct create_sim *c = &w->client.creates[i];

        if (!c->number || c->count[resource] == 0)
            continue;
        if (found)
            return NULL;
        found = c;
    }
    if (!found || found->forwarded || found->ids[resource] ||
        claims_of_pod(w, found->uid, POD_CONTAINERS_MAX + 1, resource))
        return NULL;
    return found;
}

/* The question may be for any of them, or the kubelet's. */
static void crowd(struct world *w, size_t resource)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        struct create_sim *c = &w->client.creates[i];

        if (c->number && c->count[resource] > 0 && !c->ids[resource])
            c->crowded[resource] = true;
    }
}

void choice_asked(struct world *w, size_t resource, const struct plugin_call *call)
{
    struct create_sim *c = sole_chooser(w, resource);

    if (!c || call->size != c->count[resource] || bridge_open(w) > 0) {
        crowd(w, resource);
        return;
    }
    c->asked[resource] = call->number;
    c->available[resource] = call->ids;
    c->preferred[resource] = 0;
}

void choice_answered(struct world *w, const struct plugin_call *call, unsigned preferred)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        for (size_t r = 0; r < RESOURCES_LEN; r++) {
            struct create_sim *c = &w->client.creates[i];

            if (c->number && c->asked[r] == call->number)
                c->preferred[r] = preferred & c->available[r];
        }
    }
}

static unsigned on_node(unsigned ids, int node)
{
    unsigned mask = 0;

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        if (ids & 1u << i && choice_node(i) == node)
            mask |= 1u << i;
    }
    return mask;
}

/* As few nodes as can be, and those without one last. */
static void check_nodes(struct world *w, size_t r, unsigned ids, unsigned available)
{
    unsigned count = device_sim_count(ids), nodes = 0;
    bool fits = false;

    for (int n = 0; n < NODES; n++) {
        fits = fits || device_sim_count(on_node(available, n)) >= count;
        nodes += on_node(ids, n) != 0;
    }
    if (!fits)
        return;
    count_add(COUNT_ONE_NODE);
    check_that(w, nodes == 1 && on_node(ids, -1) == 0,
               "devices are of one NUMA node where that can be: %x of %x, resource %zu", ids,
               available, r);
}

void choice_check(struct world *w, size_t r, unsigned ids)
{
    struct create_sim *create = sole_chooser(w, r);
    const struct connection *c = plugin_usable(w, r);
    unsigned available, wanted;

    if (!create || !c || !shim_exclusive(w, r) || device_sim_count(ids) != create->count[r] ||
        create->chosen[r])
        return;
    create->chosen[r] = ids;
    check_that(w, !reason_unlisted(w),
               "nothing new is given out before the runtime has said what it has: resource %zu", r);
    available = c->healthy & ~claims_held(w, create->uid, create->name, r) &
                ~claims_unknown(w, create->uid, create->name, r) &
                ~operator_may_keep_from(w, create->uid, r);
    wanted = create->preferred[r] & available;
    if (create->asked[r]) {
        count_add(COUNT_PREFERRED);
        check_that(w,
                   device_sim_count(ids & create->preferred[r]) >=
                       (device_sim_count(wanted) < create->count[r] ? device_sim_count(wanted)
                                                                    : create->count[r]),
                   "a preference is obeyed: %x, preferred %x of %x", ids, create->preferred[r],
                   available);
        return;
    }
    if (c->preferred && bridge_open(w) == 0 && !create->crowded[r])
        check_that(w, device_sim_count(available) <= create->count[r],
                   "a plugin with a preference is asked for it: %x of %x, resource %zu", ids,
                   available, r);
    if (!c->preferred && !create->crowded[r])
        check_nodes(w, r, ids, available);
}
