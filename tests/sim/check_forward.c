/*
 * What a forwarded create is checked for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/token.h"
#include "tests/sim/answer_options.h"
#include "tests/sim/check.h"
#include "tests/sim/coming.h"
#include "tests/sim/world.h"

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

/* Whether the kubelet has given what was chosen for the container to another: it is not kept
 * then. */
static bool is_given(struct world *w, const struct claim *claim)
{
    return claim->own && shim_exclusive(w, claim->resource) &&
           (claim->mask & coming_told(w, claim->uid, claim->resource));
}

/* A row whose allocation was dropped already says nothing, nor does one that is to be dropped. */
uint64_t check_serial_in_force(struct world *w, unsigned uid, unsigned name, size_t resource,
                               unsigned ids)
{
    const struct store_row *row = row_of(w, uid, name, resource);
    const struct claim *claim = claims_seek(w, uid, name, resource);
    Checkpoint__V1__Allocation *allocation;
    V1beta1__ContainerAllocateResponse *options;
    const struct answer *answer;
    uint64_t serial;

    if (!row || !claim || !claim->kept || is_given(w, claim) || resource == RESOURCE_BUILTIN ||
        shim_refresh(w, resource) == DEVICEMGR_REFRESH_PLUGIN)
        return 0;
    allocation =
        checkpoint__v1__allocation__unpack(NULL, row->record.value_bytes, row->record.value);
    options = v1beta1__container_allocate_response__unpack(NULL, allocation->options.len,
                                                           allocation->options.data);
    serial = allocation->has_options ? serial_of(options, resource) : 0;
    answer_options_free(options);
    checkpoint__v1__allocation__free_unpacked(allocation, NULL);
    answer = answer_of(w, serial);
    if (!answer || (ids && ids != answer->ids))
        return 0;
    if (shim_refresh(w, resource) == DEVICEMGR_REFRESH_REBOOT && answer->boot != w->shim.boot)
        return 0;
    return serial;
}

bool check_is_stored(struct world *w, const struct create_sim *create, size_t resource)
{
    const struct store_row *row = row_of(w, create->uid, create->name, resource);
    const struct claim *claim = claims_seek(w, create->uid, create->name, resource);
    Checkpoint__V1__Allocation *allocation;
    bool same;

    if (!row || !claim || !claim->kept || create->fresh[resource])
        return false;
    allocation =
        checkpoint__v1__allocation__unpack(NULL, row->record.value_bytes, row->record.value);
    same = allocation->has_options &&
           device_sim_mask((const char *const *)allocation->device_ids, allocation->n_device_ids) ==
               create->ids[resource];
    checkpoint__v1__allocation__free_unpacked(allocation, NULL);
    return same;
}

static void check_row(struct world *w, const struct create_sim *create, size_t resource,
                      unsigned ids, uint64_t hash)
{
    const struct store_row *row = row_of(w, create->uid, create->name, resource);
    Checkpoint__V1__Allocation *allocation;
    V1beta1__ContainerAllocateResponse *options;

    if (!row && w->store.reset)
        return; /* it was, and will be with the next commit */
    check_that(w, row != NULL, "what is forwarded is durable: %s of u%u, %s",
               container_sim_name(create->name), create->uid, resource_sim_name(resource));
    if (!row)
        return;
    allocation =
        checkpoint__v1__allocation__unpack(NULL, row->record.value_bytes, row->record.value);
    options = v1beta1__container_allocate_response__unpack(NULL, allocation->options.len,
                                                           allocation->options.data);
    check_that(w,
               device_sim_mask((const char *const *)allocation->device_ids,
                               allocation->n_device_ids) == ids,
               "the durable row has the devices of what is forwarded");
    check_that(w,
               w->store.fails ||
                   (allocation->has_options && (!hash || answer_options_hash(options) == hash)),
               "the durable row has the options that are forwarded, or will if the store fails");
    answer_options_free(options);
    checkpoint__v1__allocation__free_unpacked(allocation, NULL);
}

/* A create goes by the settings that are when it is looked at: they may have been others since. */
static void check_fresh(struct world *w, const struct create_sim *create, size_t resource,
                        const struct answer *answer, uint64_t serial)
{
    uint64_t registrations = answer->incarnation == w->shim.incarnation ? answer->registrations : 0;
    const struct answer *before = answer_of(w, create->serial[resource]);

    if (w->shim.refreshed_ms >= create->started_ms)
        return;
    if (shim_refresh(w, resource) != DEVICEMGR_REFRESH_NEVER)
        check_that(w, answer->boot == w->shim.boot, "options are of this boot");
    if (shim_refresh(w, resource) == DEVICEMGR_REFRESH_PLUGIN)
        check_that(w, registrations >= create->registered[resource],
                   "options are newer than the plugin's registration");
    if (before && before->ids == answer->ids && !create->disturbed)
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

    check_that(w, answer && answer->resource == resource && !answer->none,
               "options are what the plugin answered");
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
    struct id_list ids = device_sim_ids(mask);
    char *key = token_key(resource_sim_name(resource));
    char *value = token_value(resource_sim_name(resource), (const char *const *)ids.v, ids.len);
    const char *found = annotation_of(options, key);

    check_that(w, found && strcmp(found, value) == 0, "what the shim chose is on the container: %s",
               found ? found : "nothing");
    free(key);
    free(value);
    id_list_fini(&ids);
}

static void check_promises(struct world *w, const struct create_sim *create, size_t r, unsigned ids)
{
    unsigned promised = coming_promised(w, create->uid, r, create->started_ms);

    if (promised)
        count_add(COUNT_BESIDE_PROMISED);
    check_that(w, (ids & promised) == 0,
               "what the kubelet gave to a pod that lives is not chosen for another: %x of "
               "resource %zu",
               ids & promised, r);
}

/* What the shim chose for a container stays its own, and its pod's, while the pod lives. */
static void check_kept(struct world *w, struct create_sim *create, size_t r, unsigned ids)
{
    const struct claim *own = claims_seek(w, create->uid, create->name, r);
    const struct pod_sim *pod = kubelet_find_pod(w, create->uid);
    unsigned others = claims_kept(w, create->uid, r);
    bool given = own && is_given(w, own);

    if (own && own->kept && create->ids[r] == 0 && pod && !kubelet_contended(pod, r) && !given)
        check_that(w, own->mask == ids,
                   "a container that is made again has the devices it had: %x, not %x", own->mask,
                   ids);
    if (own && own->back && create->ids[r] == 0 && !given)
        check_that(w, own->back == ids,
                   "a pod that comes back after a reboot has the devices it had: %x, not %x",
                   own->back, ids);
    if (!w->kubelet.mixed && shim_exclusive(w, r) && create->ids[r] == 0)
        check_that(w, (ids & claims_back(w, create->uid, r)) == 0,
                   "what a pod has that is still to come back is not chosen for another: %x of "
                   "resource %zu",
                   ids & claims_back(w, create->uid, r), r);
    if (!w->kubelet.mixed && shim_exclusive(w, r))
        check_that(w, (ids & others) == 0,
                   "what the shim gave to a pod that lives stays the pod's: %x of resource %zu",
                   ids & others, r);
    if (create->ids[r] == 0 && shim_exclusive(w, r))
        check_promises(w, create, r, ids);
    create->fresh[r] = !own || !own->kept;
}

static void check_counts(struct world *w, const struct create_sim *create,
                         const V1beta1__ContainerAllocateResponse *options,
                         const struct rt_container *made)
{
    size_t plugins = 0, chosen = 0, devices = 0;
    const char *common = env_of(options, "COMMON");

    for (size_t r = RESOURCES_LEN; r-- > 0;) {
        chosen += create->count[r] > 0 && create->ids[r] == 0;
        devices += device_sim_count(made->noted[r]);
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
    check_that(w, create->fault == TOKEN_GOOD && !create->tokenless,
               "a bad token is never forwarded, nor is a container without its own");
    made->begun_ms = create->started_ms;
    made->damaged = w->shim.damaged;
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
        check_that(w, (ids & operator_keeps_from(w, create->uid, r)) == 0,
                   "nobody new gets what is cordoned or withdrawn: %x of resource %zu",
                   ids & operator_keeps_from(w, create->uid, r), r);
        if (ids & operator_keeps(w, r))
            count_add(COUNT_KEPT_BY);
        check_kept(w, create, r, ids);
        claims_forwarded(w, create->uid, create->name, r, ids, create->ids[r] == 0);
        made->held[r] |= ids;
        made->noted[r] = ids;
    }
    check_counts(w, create, options, made);
    check_making(w, made);
}
