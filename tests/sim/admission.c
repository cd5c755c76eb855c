#include "tests/sim/admission.h"

#include "tests/sim/world.h"

/* What the kubelet thinks is given away. */
static unsigned allocated(const struct world *w, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];

        for (unsigned c = 0; c < pod->containers_len && !pod->released; c++)
            mask |= pod->containers[c].ids[resource] | pod->containers[c].former[resource] |
                    pod->containers[c].bare[resource];
    }
    return mask;
}

/* What annotations ask for at most. */
static unsigned requested(const struct world *w, size_t resource)
{
    unsigned count = 0;

    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];

        for (unsigned c = 0; c < pod->containers_len && !pod->released; c++)
            count += pod->containers[c].edited[resource] ? pod->containers[c].edited[resource]
                                                         : pod->containers[c].count[resource];
    }
    return count;
}

/* Who was deleted by force, and had some without a token; NULL: nobody. */
static const struct pod_sim *released_bare(const struct world *w, size_t resource)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];

        for (unsigned c = 0; pod->released && c < pod->containers_len; c++) {
            if (pod->containers[c].bare[resource])
                return pod;
        }
    }
    return NULL;
}

/* Any; often one that a pod deleted by force had. */
static unsigned first_choice(struct world *w, struct pod_sim *pod, size_t resource)
{
    const struct pod_sim *other = &w->kubelet.pods[rng_below(&pod->rng, PODS_MAX)];
    unsigned start_at = (unsigned)rng_below(&pod->rng, DEVICES_MAX);

    if (released_bare(w, resource))
        other = released_bare(w, resource);
    for (unsigned c = 0; other->released && c < other->containers_len; c++) {
        unsigned had = other->containers[c].ids[resource] | other->containers[c].bare[resource];

        if (had)
            start_at = (unsigned)__builtin_ctz(had);
    }
    return start_at;
}

/* What the kubelet sees as healthy: of its own plugin by that, else as the shim shows it. */
static unsigned seen_healthy(const struct world *w, size_t resource)
{
    const struct plugin *p = &w->plugins[resource];

    if (p->moved)
        return w->shown.resources[resource].healthy;
    return p->up ? p->listed & p->healthy : 0;
}

/* Of those it sees as healthy. Devices of init containers are used again by later ones first
 * (devicesToAllocate in pkg/kubelet/cm/devicemanager/manager.go). */
static void give_ids(struct world *w, struct pod_sim *pod, struct pod_container *container,
                     size_t resource, unsigned *reusable)
{
    unsigned free_ids = seen_healthy(w, resource) & ~allocated(w, resource);
    unsigned start_at = first_choice(w, pod, resource);
    unsigned missing = container->count[resource], mask = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        unsigned from = pass == 0 ? *reusable : free_ids;

        for (unsigned i = 0; i < DEVICES_MAX && missing > 0; i++) {
            unsigned bit = 1u << (start_at + i) % DEVICES_MAX;

            if (from & bit & ~mask) {
                mask |= bit;
                missing--;
            }
        }
    }
    if (missing > 0) {
        container->count[resource] = 0;
        return;
    }
    if (w->plugins[resource].moved) {
        container->ids[resource] = mask;
    } else {
        container->bare[resource] = mask;
        container->count[resource] = 0;
    }
    *reusable = container->init ? *reusable | mask : *reusable & ~mask;
}

static void ask_devices(struct world *w, struct pod_sim *pod, size_t resource)
{
    bool annotation = w->kubelet.mixed ? rng_percent(&pod->rng, 50)
                                       : w->kubelet.source[resource] == SOURCE_ANNOTATION;
    unsigned reusable = 0;

    for (unsigned i = 0; i < pod->containers_len; i++) {
        struct pod_container *c = &pod->containers[i];
        unsigned count = (unsigned)rng_between(&pod->rng, 1, 2);

        if (!rng_percent(&pod->rng, 45))
            continue;
        if (annotation && !w->plugins[resource].moved)
            continue;
        if (annotation &&
            requested(w, resource) + count > device_sim_count(w->plugins[resource].devices))
            continue;
        c->count[resource] = count;
        if (!annotation)
            give_ids(w, pod, c, resource, &reusable);
    }
}

void admission_ask(struct world *w, struct pod_sim *pod)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        ask_devices(w, pod, r);
}

/* As many, and others: the number in a pod's spec cannot change. */
static void decide_anew(struct world *w, struct pod_sim *pod, struct pod_container *container,
                        size_t resource)
{
    unsigned others = w->shown.resources[resource].healthy & ~allocated(w, resource);
    unsigned old = container->ids[resource] & -container->ids[resource];
    unsigned taken = others & -others;

    if (!old || !taken)
        return;
    container->ids[resource] = (container->ids[resource] & ~old) | taken;
    container->former[resource] |= old;
    container->decided_anew = true;
    world_note(w, "kubelet: %s of u%u has %x of resource %zu now",
               container_sim_name((unsigned)(container - pod->containers)), pod->uid,
               container->ids[resource], resource);
}

void admission_decide_anew(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DECIDED_ANEW, 0, 0);
    struct pod_sim *pod = &w->kubelet.pods[rng_below(&rng, PODS_MAX)];

    if (!pod->uid || pod->deleting || w->kubelet.down)
        return;
    for (unsigned i = 0; i < pod->containers_len; i++)
        decide_anew(w, pod, &pod->containers[i], rng_below(&rng, RESOURCES_LEN));
    bridge_file_written(w);
    bridge_report_later(w);
}

/* Whether there was one to change. */
static bool edit(struct world *w, const struct pod_sim *pod, struct pod_container *c)
{
    bool changed = false;

    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        unsigned before = c->count[r];

        if (c->ids[r] || (before < 2 && !c->edited[r]))
            continue;
        c->count[r] = c->edited[r] ? c->edited[r] : before - 1;
        c->edited[r] = c->edited[r] ? 0 : before;
        changed = true;
        world_note(w, "u%u: %s asks for %u of resource %zu now", pod->uid,
                   container_sim_name((unsigned)(c - pod->containers)), c->count[r], r);
    }
    return changed;
}

/* Of the first container, from any on, that asks by an annotation. */
void admission_edit(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_EDITED, 0, 0);
    size_t first = rng_below(&rng, PODS_MAX * POD_CONTAINERS_MAX);

    for (size_t i = 0; i < PODS_MAX * POD_CONTAINERS_MAX; i++) {
        size_t at = (first + i) % (PODS_MAX * POD_CONTAINERS_MAX);
        struct pod_sim *pod = &w->kubelet.pods[at / POD_CONTAINERS_MAX];

        if (pod->uid && edit(w, pod, &pod->containers[at % POD_CONTAINERS_MAX]))
            return;
    }
}

/* As many as it has, or as a create asks for that may get it so many. */
static void edit_ends(struct world *w, const struct pod_sim *pod, struct pod_container *c, size_t r)
{
    unsigned name = (unsigned)(c - pod->containers);
    const struct claim *claim = claims_seek(w, pod->uid, name, r);
    const struct create_sim *create = client_find_of(w, pod->uid, name);

    if (c->count[r] > 0 && !c->ids[r] && c->edited[r])
        c->count[r] = create ? create->count[r] : c->edited[r];
    if (c->count[r] > 0 && !c->ids[r] && claim && claim->own)
        c->count[r] = device_sim_count(claim->mask);
    c->edited[r] = 0;
}

void admission_edits_end(struct world *w)
{
    for (size_t i = 0; i < PODS_MAX * POD_CONTAINERS_MAX; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i / POD_CONTAINERS_MAX];

        for (size_t r = 0; pod->uid && r < RESOURCES_LEN; r++)
            edit_ends(w, pod, &pod->containers[i % POD_CONTAINERS_MAX], r);
    }
}
