#include "tests/sim/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/core.h"
#include "devicemgr/create.h"
#include "devicemgr/options.h"
#include "devicemgr/request.h"
#include "tests/sim/world.h"

/* Far over what PODS_MAX pods can have at once, and have had since the last commit. */
#define ALLOCATIONS_MAX 100

/* Until the shim has heard of a new sandbox: by the answer, or the list after it was lost. */
#define OVER_LAG_MS 20000

void check_that(struct world *w, bool holds, const char *invariant, ...)
{
    va_list args;

    if (holds || w->broken[0])
        return;
    va_start(args, invariant);
    vsnprintf(w->broken, sizeof w->broken, invariant, args);
    va_end(args);
    world_note(w, "BROKEN: %s", w->broken);
}

/* ---- the core's own tables ---- */

/* Longest that a create without a deadline of its own can stay undecided: held as long as may be,
 * then each call to its end, and two commits, the second of which carries it. */
static uint64_t decide_ms_max(const struct world *w)
{
    return HOLD_MS_MAX + PREFER_TIMEOUT_MS + shim_allocate_ms_max(w) +
           w->shim.settings.prestart_timeout_ms + 2 * STORE_SLOW_MS_MAX;
}

static void check_creates(struct world *w)
{
    uint64_t max_ms = decide_ms_max(w);

    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *c = &w->kubelet.creates[i];

        if (!c->number || c->untouched || c->forwarded)
            continue;
        check_that(w, w->now_ms - c->started_ms <= max_ms,
                   "a create is decided in time: %" PRIu64 " waits for %" PRIu64 " ms", c->number,
                   w->now_ms - c->started_ms);
        check_that(w, c->deadline_ms >= w->now_ms + DEADLINE_MARGIN_MS,
                   "a create is decided before its client's deadline: %" PRIu64, c->number);
    }
}

static size_t count_calls(const struct devicemgr *core)
{
    size_t calls = 0;

    for (const struct create *c = core->creates; c; c = c->hh.next) {
        for (size_t i = 0; i < c->request.len; i++)
            calls += c->items[i].call != 0;
    }
    return calls;
}

static size_t count_checks(const struct devicemgr *core)
{
    size_t checks = 0;

    for (const struct allocation *a = core->allocations.by_key; a; a = a->hh.next)
        checks += a->check != 0;
    return checks;
}

static bool core_holds(const struct world *w, size_t resource, size_t device, unsigned uid)
{
    size_t len;
    struct allocation *const *holders = allocations_holders(
        &w->shim.core->allocations, resource_sim_name(resource), device_sim_id(device), &len);
    char pod[16];

    snprintf(pod, sizeof pod, "u%u", uid);
    for (size_t i = 0; i < len; i++) {
        if (strcmp(holders[i]->pod_uid, pod) == 0)
            return true;
    }
    return false;
}

/* What the shim chose for a pod stays the pod's until it is over: gone, or without a ready sandbox
 * not long ago, for the shim learns of a new one later. */
static void check_owners(struct world *w)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        for (size_t i = 0; i < DEVICES_MAX; i++) {
            unsigned *owner = &w->kubelet.owner[r][i];
            const struct pod_sim *pod = kubelet_find_pod(w, *owner);

            if (*owner == 0 || core_holds(w, r, i, *owner))
                continue;
            check_that(w,
                       w->kubelet.mixed || w->kubelet.source[r] == SOURCE_TOKEN ||
                           !shim_exclusive(w, r) || !pod || !runtime_ready_sandbox(w, *owner) ||
                           pod->over_ms + OVER_LAG_MS >= w->now_ms,
                       "devices are freed when their pod is over: %s of %s was u%u's",
                       device_sim_id(i), resource_sim_name(r), *owner);
            *owner = 0;
        }
    }
}

void check_settled(struct world *w)
{
    const struct devicemgr *core = w->shim.core;
    size_t creates = HASH_COUNT(core->creates), open = kubelet_creates_open(w);
    size_t calls = count_calls(core), checks = count_checks(core);

    check_that(w, !core->actions.first, "every action was carried out");
    check_that(w, creates == open, "creates: the core knows %zu, the kubelet waits for %zu",
               creates, open);
    check_that(w, calls == plugin_calls_open(w),
               "calls: the core waits for %zu, the plugins have %zu", calls, plugin_calls_open(w));
    check_that(w, checks <= shim_checks_open(w),
               "checks: the core waits for %zu, the runtime has %zu", checks, shim_checks_open(w));
    check_that(w, core->checkpoint.commit == w->store.commit,
               "the commit under way is the store's");
    check_that(w, HASH_COUNT(core->allocations.by_key) <= ALLOCATIONS_MAX,
               "allocations are bounded");
    check_that(w, w->shim.port_calls <= PORT_CALLS_MAX, "one event makes %u port calls",
               w->shim.port_calls);
    check_creates(w);
    check_owners(w);
}

void check_nothing_left(struct world *w)
{
    const struct devicemgr *core = w->shim.core;

    for (const struct allocation *a = core->allocations.by_key; a; a = a->hh.next)
        check_that(w, false, "an allocation is left: %s of %s, %s", a->container, a->pod_uid,
                   a->resource);
    check_that(w, HASH_COUNT(core->pods.by_uid) == 0, "%u pods are left",
               HASH_COUNT(core->pods.by_uid));
    check_that(w, HASH_COUNT(core->pods.sandboxes) == 0, "%u sandboxes are left",
               HASH_COUNT(core->pods.sandboxes));
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_ALLOCATION) == 0,
               "%zu allocations are left in the checkpoint",
               store_count(&w->store, DEVICEMGR_RECORD_ALLOCATION));
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_POD) == 0,
               "%zu pods are left in the checkpoint", store_count(&w->store, DEVICEMGR_RECORD_POD));
    check_that(w, plugin_registrations_open(w) == 0, "%zu Register calls were never answered",
               plugin_registrations_open(w));
    check_that(w, shim_next_ms(w) == UINT64_MAX, "a node at rest waits for nothing");
}

/* ---- a forwarded create ---- */

static const struct store_row *row_of(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    char pod[16];

    snprintf(pod, sizeof pod, "u%u", uid);
    return store_find(&w->store, DEVICEMGR_RECORD_ALLOCATION, pod, container_sim_name(name),
                      resource_sim_name(resource));
}

static const char *env_of(const V1beta1__ContainerAllocateResponse *options, const char *key)
{
    for (size_t i = 0; i < options->n_envs; i++) {
        if (strcmp(options->envs[i]->key, key) == 0)
            return options->envs[i]->value;
    }
    return NULL;
}

static const char *annotation_of(const V1beta1__ContainerAllocateResponse *options, const char *key)
{
    for (size_t i = 0; i < options->n_annotations; i++) {
        if (strcmp(options->annotations[i]->key, key) == 0)
            return options->annotations[i]->value;
    }
    return NULL;
}

/* The serial its env tells; 0: none. */
static uint64_t serial_of(const V1beta1__ContainerAllocateResponse *options, size_t resource)
{
    const char *value;
    char key[24];

    snprintf(key, sizeof key, "S%zu", resource);
    value = env_of(options, key);
    return value ? strtoul(value, NULL, 10) : 0;
}

static unsigned devices_of(const V1beta1__ContainerAllocateResponse *options, size_t resource)
{
    unsigned mask = 0;
    char path[64];

    for (size_t d = 0; d < options->n_devices; d++) {
        for (size_t i = 0; i < DEVICES_MAX; i++) {
            snprintf(path, sizeof path, "/dev/%zu-%zu", resource, i);
            if (strcmp(options->devices[d]->container_path, path) == 0)
                mask |= 1u << i;
        }
    }
    return mask;
}

static const struct answer *answer_of(const struct world *w, uint64_t serial)
{
    return serial > 0 && serial <= w->shim.net.answers_len ? &w->shim.net.answers[serial - 1]
                                                           : NULL;
}

/* A row whose allocation was dropped already says nothing. */
uint64_t check_serial_in_force(struct world *w, unsigned uid, unsigned name, size_t resource,
                               unsigned ids)
{
    const struct store_row *row = row_of(w, uid, name, resource);
    Checkpoint__V1__Allocation *allocation;
    V1beta1__ContainerAllocateResponse *options;
    const struct answer *answer;
    uint64_t serial;
    char pod[16];

    snprintf(pod, sizeof pod, "u%u", uid);
    if (!row ||
        !allocations_find(&w->shim.core->allocations, pod, container_sim_name(name),
                          resource_sim_name(resource)) ||
        resource == RESOURCE_BUILTIN || shim_refresh(w, resource) == DEVICEMGR_REFRESH_PLUGIN)
        return 0;
    allocation =
        checkpoint__v1__allocation__unpack(NULL, row->record.value_bytes, row->record.value);
    options = options_unpack(allocation->options.data, allocation->options.len);
    serial = allocation->has_options ? serial_of(options, resource) : 0;
    options_free(options);
    checkpoint__v1__allocation__free_unpacked(allocation, NULL);
    answer = answer_of(w, serial);
    if (!answer || (ids && ids != answer->ids))
        return 0;
    if (shim_refresh(w, resource) == DEVICEMGR_REFRESH_REBOOT && answer->boot != w->shim.boot)
        return 0;
    return serial;
}

static void check_row(struct world *w, const struct create_sim *create, size_t resource,
                      unsigned ids, uint64_t hash)
{
    const struct store_row *row = row_of(w, create->uid, create->name, resource);
    Checkpoint__V1__Allocation *allocation;
    V1beta1__ContainerAllocateResponse *options;

    check_that(w, row != NULL, "what is forwarded is durable: %s of u%u, %s",
               container_sim_name(create->name), create->uid, resource_sim_name(resource));
    if (!row)
        return;
    allocation =
        checkpoint__v1__allocation__unpack(NULL, row->record.value_bytes, row->record.value);
    options = options_unpack(allocation->options.data, allocation->options.len);
    check_that(w,
               device_sim_mask((const char *const *)allocation->device_ids,
                               allocation->n_device_ids) == ids,
               "the durable row has the devices of what is forwarded");
    check_that(w, allocation->has_options && (!hash || plugin_options_hash(options) == hash),
               "the durable row has the options that are forwarded");
    options_free(options);
    checkpoint__v1__allocation__free_unpacked(allocation, NULL);
}

static void check_fresh(struct world *w, const struct create_sim *create, size_t resource,
                        const struct answer *answer, uint64_t serial)
{
    uint64_t registrations = answer->incarnation == w->shim.incarnation ? answer->registrations : 0;

    if (shim_refresh(w, resource) != DEVICEMGR_REFRESH_NEVER)
        check_that(w, answer->boot == w->shim.boot, "options are of this boot");
    if (shim_refresh(w, resource) == DEVICEMGR_REFRESH_PLUGIN)
        check_that(w, registrations >= create->registered[resource],
                   "options are newer than the plugin's registration");
    if (create->serial[resource] && !create->disturbed)
        check_that(w, serial == create->serial[resource],
                   "durable options in force are used again: serial %" PRIu64 ", not %" PRIu64,
                   create->serial[resource], serial);
}

static unsigned check_plugin_options(struct world *w, const struct create_sim *create,
                                     const V1beta1__ContainerAllocateResponse *options,
                                     size_t resource)
{
    uint64_t serial = serial_of(options, resource);
    const struct answer *answer = answer_of(w, serial);
    const struct connection *c = plugin_usable(w, resource);
    const char *annotation;
    char key[24];

    check_that(w, answer && answer->resource == resource, "options are what the plugin answered");
    if (!answer)
        return 0;
    check_that(w, devices_of(options, resource) == answer->ids,
               "device nodes are those of the devices");
    snprintf(key, sizeof key, "a%zu", resource);
    annotation = annotation_of(options, key);
    check_that(w, annotation && strtoul(annotation, NULL, 10) == serial,
               "the plugin's annotation is there");
    check_that(w, c && (answer->ids & ~c->healthy) == 0,
               "devices are healthy on an active endpoint when they are given");
    check_that(w, !c || !c->pre_start || c->prestarted_ms[answer->ids] >= create->started_ms,
               "PreStartContainer comes before every start, where the plugin wants it");
    check_fresh(w, create, resource, answer, serial);
    check_row(w, create, resource, answer->ids, answer->hash);
    return answer->ids;
}

static unsigned check_builtin_options(struct world *w, const struct create_sim *create,
                                      const V1beta1__ContainerAllocateResponse *options)
{
    const struct plugin *p = &w->plugins[RESOURCE_BUILTIN];
    unsigned ids = devices_of(options, RESOURCE_BUILTIN);
    char end[24];

    snprintf(end, sizeof end, "-v%u", p->version);
    for (size_t i = 0; i < options->n_devices; i++) {
        const V1beta1__DeviceSpec *device = options->devices[i];

        if (strncmp(device->container_path, "/dev/0-", 7) == 0)
            check_that(w, strcmp(strrchr(device->host_path, '-'), end) == 0,
                       "a built-in device is as the config has it: %s", device->host_path);
    }
    check_that(w, (ids & ~(p->listed & p->healthy)) == 0, "built-in devices are healthy");
    check_row(w, create, RESOURCE_BUILTIN, ids, 0);
    return ids;
}

static void check_token(struct world *w, const V1beta1__ContainerAllocateResponse *options,
                        size_t resource, unsigned mask)
{
    struct ids ids = device_sim_ids(mask);
    char *key = request_token_key(resource_sim_name(resource));
    char *value = request_token_value(resource_sim_name(resource), &ids);
    const char *found = annotation_of(options, key);

    check_that(w, found && strcmp(found, value) == 0, "what the shim chose is on the container: %s",
               found ? found : "nothing");
    free(key);
    free(value);
    ids_fini(&ids);
}

static void note_owner(struct world *w, struct create_sim *create, size_t resource, unsigned ids)
{
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        unsigned *owner = &w->kubelet.owner[resource][i];

        if (!(ids & 1u << i))
            continue;
        if (*owner != create->uid)
            create->taken[resource] |= 1u << i;
        *owner = create->uid;
    }
}

static void check_counts(struct world *w, const struct create_sim *create,
                         const V1beta1__ContainerAllocateResponse *options,
                         const struct rt_container *made)
{
    size_t plugins = 0, chosen = 0, devices = 0;
    const char *common = env_of(options, "COMMON");

    for (size_t r = RESOURCES_LEN; r-- > 0;) {
        chosen += create->count[r] > 0 && create->ids[r] == 0;
        devices += device_sim_count(made->held[r]);
        if (create->count[r] == 0 || r == RESOURCE_BUILTIN)
            continue;
        plugins++;
        if (r == 1 || create->count[1] == 0)
            check_that(w, common && strtoul(common, NULL, 10) == r,
                       "of options in conflict the first resource's are taken");
    }
    check_that(w,
               options->n_envs == plugins + (plugins > 0) && options->n_devices == devices &&
                   options->n_annotations == plugins + chosen && options->n_mounts == 0 &&
                   options->n_cdi_devices == 0,
               "options are exactly those of its resources");
}

void check_forward(struct world *w, struct create_sim *create,
                   const V1beta1__ContainerAllocateResponse *options, struct rt_container *made)
{
    check_that(w, options != NULL, "a forwarded create has its options");
    check_that(w, !create->stop_told, "no create is forwarded into a sandbox that is to stop");
    if (!options)
        return;
    check_owners(w);
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        unsigned ids;

        if (create->count[r] == 0)
            continue;
        ids = r == RESOURCE_BUILTIN ? check_builtin_options(w, create, options)
                                    : check_plugin_options(w, create, options, r);
        check_that(
            w, create->ids[r] ? ids == create->ids[r] : device_sim_count(ids) == create->count[r],
            "it gets the devices it asked for: %x, asked %x or %u", ids, create->ids[r],
            create->count[r]);
        if (create->ids[r] == 0)
            check_token(w, options, r, ids);
        note_owner(w, create, r, ids);
        made->held[r] = made->noted[r] = ids;
    }
    check_counts(w, create, options, made);
}

void check_refusal(struct world *w, const struct create_sim *create, int code, const char *message)
{
    char pod[32];

    snprintf(pod, sizeof pod, "ns/u%u", create->uid);
    check_that(w,
               code == CODE_DEADLINE_EXCEEDED || code == CODE_RESOURCE_EXHAUSTED ||
                   code == CODE_FAILED_PRECONDITION || code == CODE_ABORTED ||
                   code == CODE_UNAVAILABLE,
               "a refusal's code is one of design §8: %d", code);
    check_that(w,
               message && strlen(message) < TEXT_BYTES_MAX && strstr(message, pod) &&
                   strstr(message, container_sim_name(create->name)),
               "a refusal names the pod and the container: %s", message ? message : "nothing");
}

/* ---- what truly runs ---- */

/* The next attempt of the same container; or one that was made for a client who had given up, and
 * which nobody will ever start: the core knows one container per allocation, the last. */
static bool may_share(const struct rt_container *a, const struct rt_container *b)
{
    return (a->uid == b->uid && a->name == b->name) || a->abandoned || b->abandoned;
}

void check_exclusive(struct world *w, const struct rt_container *container)
{
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        const struct rt_container *other = &w->runtime.containers[i];

        if (other == container || !runtime_live(other) || may_share(other, container))
            continue;
        for (size_t r = 0; r < RESOURCES_LEN; r++)
            check_that(w, (other->held[r] & container->held[r]) == 0 || !shim_exclusive(w, r),
                       "no device in two live containers: %x of resource %zu in c%u of u%u and "
                       "c%u of u%u",
                       other->held[r] & container->held[r], r, other->id, other->uid, container->id,
                       container->uid);
    }
}

void check_freed(struct world *w, const char *uid, const char *container, const char *resource)
{
    size_t r = resource_sim_find(resource);

    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (!runtime_live(c) || c->abandoned || c->held[r] == 0 ||
            strtoul(uid + 1, NULL, 10) != c->uid ||
            strcmp(container_sim_name(c->name), container) != 0)
            continue;
        check_that(w, false, "a device is freed when its container is gone: c%u of %s, %s", c->id,
                   uid, resource);
    }
}
