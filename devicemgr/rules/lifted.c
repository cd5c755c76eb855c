/*
 * What is published of a resource as that of a DRA driver.
 */
#include "devicemgr/rules/lifted.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/lifted_name.h"
#include "devicemgr/things/limits.h"

#include "devicemgr/rules/rule.h"

#define KEY_AWAY "devices.cri-device-shim/plugin-away"
#define KEY_CORDONED "devices.cri-device-shim/cordoned"
#define KEY_HELD "devices.cri-device-shim/held"
#define KEY_WITHDRAWN "devices.cri-device-shim/withdrawn"

/* ---- which resources ---- */

/* Those that are shown: it is the same book. */
bool lifted_is(const struct state *state, const struct resource *resource)
{
    return resource && resource->shown.version != 0 &&
           state_settings_of(state, resource->name)->dra;
}

static struct devicemgr_lifted lifted_of(const struct resource *resource,
                                         char pool[LIFTED_POOL_BYTES])
{
    size_t len = resource->devices.len;
    size_t devices = len < LIFTED_DEVICES_MAX ? len : LIFTED_DEVICES_MAX;

    lifted_name_pool(resource->name, pool);
    return (struct devicemgr_lifted){
        .resource = resource->name, .pool = pool, .devices = devices, .left_out = len - devices};
}

/* Whatever differs has a newer base than all had before, and one that goes makes them fewer: so the
 * newest and their number are enough. */
uint64_t lifted_version(const struct state *state)
{
    uint64_t newest = 0, len = 0;

    for (const struct resource *r = state->resources; r; r = r->hh.next) {
        if (!lifted_is(state, r))
            continue;
        newest = r->shown.base > newest ? r->shown.base : newest;
        len++;
    }
    return newest * (RESOURCES_MAX + 1) + len + 1;
}

void lifted_each(const struct state *state,
                 void (*each)(void *user, const struct devicemgr_lifted *lifted), void *user)
{
    struct ids names = {0};
    char pool[LIFTED_POOL_BYTES];

    resources_names(state->resources, &names);
    for (size_t i = 0; i < names.len; i++) {
        const struct resource *resource = resources_find(state->resources, names.v[i]);

        if (lifted_is(state, resource)) {
            const struct devicemgr_lifted lifted = lifted_of(resource, pool);

            each(user, &lifted);
        }
    }
    ids_fini(&names);
}

/* ---- one device ---- */

/* What is said of one device, one after the other. */
struct said {
    const struct state *state;
    const struct resource *resource;
    const struct devicemgr_resource_settings *settings;
    struct devicemgr_attribute attributes[LIFTED_ATTRIBUTES_MAX];
    size_t attributes_len;
    struct devicemgr_lifted_taint taints[LIFTED_TAINTS_MAX];
    size_t taints_len;
    char nodes[LIFTED_TEXT_BYTES_MAX + 1];
};

static void add_text(struct said *said, const char *name, const char *text)
{
    if (strlen(text) > LIFTED_TEXT_BYTES_MAX)
        return;
    said->attributes[said->attributes_len++] =
        (struct devicemgr_attribute){.name = name, .kind = DEVICEMGR_ATTRIBUTE_TEXT, .text = text};
}

/* As "0,2"; nothing where there are too many for a text. */
static void add_nodes(struct said *said, const struct device *device)
{
    size_t len = 0;

    if (device->nodes_len == 1) {
        said->attributes[said->attributes_len++] = (struct devicemgr_attribute){
            .name = "numaNode", .kind = DEVICEMGR_ATTRIBUTE_NUMBER, .number = device->nodes[0]};
        return;
    }
    for (size_t i = 0; i < device->nodes_len && len < sizeof said->nodes; i++)
        len += (size_t)snprintf(said->nodes + len, sizeof said->nodes - len, "%s%lld",
                                i > 0 ? "," : "", (long long)device->nodes[i]);
    if (len > 0 && len < sizeof said->nodes)
        add_text(said, "numaNodes", said->nodes);
}

static bool has_attribute(const struct said *said, const char *name)
{
    for (size_t i = 0; i < said->attributes_len; i++) {
        if (strcmp(said->attributes[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Of several of one name the first that is for the device. */
static void add_own(struct said *said, const struct device *device)
{
    for (size_t i = 0; i < said->settings->attributes_len; i++) {
        const struct devicemgr_settings_attribute *own = &said->settings->attributes[i];

        if (said->attributes_len < LIFTED_ATTRIBUTES_MAX &&
            fnmatch(own->device, device->id, 0) == 0 && !has_attribute(said, own->attribute.name))
            said->attributes[said->attributes_len++] = own->attribute;
    }
}

static void add_taint(struct said *said, const char *key, const char *value, const char *effect)
{
    const struct devicemgr_lifted_taint taint = {.key = key, .value = value, .effect = effect};

    for (size_t i = 0; i < said->taints_len; i++) {
        const struct devicemgr_lifted_taint *other = &said->taints[i];

        if (strcmp(other->key, key) == 0 && strcmp(other->value, value) == 0 &&
            strcmp(other->effect, effect) == 0)
            return;
    }
    if (said->taints_len < LIFTED_TAINTS_MAX)
        said->taints[said->taints_len++] = taint;
}

/* What was restored and not listed since counts as healthy, as the kubelet is shown it. */
static bool is_outdated(const struct said *said, const struct taint *taint)
{
    return taint->source == TAINT_BY_HEALTH && taint->effect != TAINT_NO_EXECUTE &&
           said->resource->shown.assumed;
}

static bool add_no_execute(void *user, const struct taint *taint)
{
    if (taint->effect == TAINT_NO_EXECUTE && !taint->unstored)
        add_taint(user, taint->key, taint->value, taint_effect_name(taint->effect));
    return true;
}

static bool add_no_schedule(void *user, const struct taint *taint)
{
    if (taint->effect == TAINT_NO_SCHEDULE && !is_outdated(user, taint))
        add_taint(user, taint->key, taint->value, taint_effect_name(taint->effect));
    return true;
}

/* Whether a pod has it of which the scheduler does not know: the kubelet gave it away before the
 * resource was published. */
static bool is_held(const struct said *said, const char *id)
{
    const char *resource = said->resource->name;
    const struct owners *holders = allocations_holders(&said->state->allocations, resource, id);
    const struct owners *askers = allocations_askers(&said->state->allocations, resource, id);
    const struct owners *holds = kubelet_holders(said->state, resource, id);
    bool held = false;

    for (size_t i = 0; i < owners_len(holders); i++)
        held = held || ((const struct allocation *)holders->v[i])->shown != SHOWN_NOTHING;
    for (size_t i = 0; i < owners_len(askers); i++)
        held = held || ((const struct allocation *)askers->v[i])->shown == SHOWN_HELD;
    for (size_t i = 0; i < owners_len(holds); i++)
        held = held || ((const struct kubelet_hold *)holds->v[i])->shown;
    return held;
}

static void add_taints(struct said *said, const struct device *device)
{
    const char *no_schedule = taint_effect_name(TAINT_NO_SCHEDULE);
    const char *resource = said->resource->name;

    tainted_each(said->state, resource, device->id, add_no_execute, said);
    if (said->resource->shown.away)
        add_taint(said, KEY_AWAY, "", no_schedule);
    if (orders_withdrawal(&said->state->orders, resource))
        add_taint(said, KEY_WITHDRAWN, "", no_schedule);
    if (is_held(said, device->id))
        add_taint(said, KEY_HELD, "", no_schedule);
    if (orders_cordon(&said->state->orders, resource, device->id))
        add_taint(said, KEY_CORDONED, "", no_schedule);
    tainted_each(said->state, resource, device->id, add_no_schedule, said);
}

void lifted_devices(const struct state *state, const char *name,
                    void (*each)(void *user, const struct devicemgr_lifted_device *device),
                    void *user)
{
    const struct resource *resource = resources_find(state->resources, name);
    char attribute[LIFTED_POOL_BYTES], device_name[LIFTED_NAME_BYTES];
    struct said said = {.state = state, .resource = resource};
    bool has;

    if (!lifted_is(state, resource))
        return;
    has = lifted_name_attribute(name, attribute);
    said.settings = state_settings_of(state, name);
    for (size_t i = 0; i < resource->devices.len && i < LIFTED_DEVICES_MAX; i++) {
        const struct device *device = &resource->devices.items[i];

        said.attributes_len = said.taints_len = 0;
        if (has)
            add_text(&said, "resource", attribute);
        add_text(&said, "id", device->id);
        add_nodes(&said, device);
        add_own(&said, device);
        add_taints(&said, device);
        lifted_name_device(device->id, device_name);
        each(user, &(struct devicemgr_lifted_device){.id = device->id,
                                                     .name = device_name,
                                                     .attributes = said.attributes,
                                                     .attributes_len = said.attributes_len,
                                                     .taints = said.taints,
                                                     .taints_len = said.taints_len});
    }
}

/* ---- by a name ---- */

static bool is_pool_of(const char *resource, const char *pool)
{
    char name[LIFTED_POOL_BYTES];

    lifted_name_pool(resource, name);
    return strcmp(name, pool) == 0;
}

/* By the settings, or, of one that they have no more, by what there is. NULL: none. */
static const char *find_resource(const struct state *state, const char *pool)
{
    for (size_t i = 0; i < state->settings.resources_len; i++) {
        const struct devicemgr_resource_settings *is = &state->settings.resources[i];

        if (is->dra && is_pool_of(is->name, pool))
            return is->name;
    }
    for (const struct resource *r = state->resources; r; r = r->hh.next) {
        if (is_pool_of(r->name, pool))
            return r->name;
    }
    return NULL;
}

/* What is such a name already is that of no other id. */
static const char *find_id(const struct resource *resource, const char *name)
{
    const struct devices *devices = &resource->devices;
    char device[LIFTED_NAME_BYTES];

    lifted_name_device(name, device);
    if (strcmp(device, name) == 0)
        return name;
    for (size_t i = 0; i < devices->len; i++) {
        lifted_name_device(devices->items[i].id, device);
        if (strcmp(device, name) == 0)
            return devices->items[i].id;
    }
    return name;
}

bool lifted_find(const struct state *state, const struct lift_marker *marker, const char **resource,
                 const char **id)
{
    const char *name = find_resource(state, marker->pool);
    const struct resource *is = name ? resources_find(state->resources, name) : NULL;

    *resource = name;
    *id = is ? find_id(is, marker->device) : marker->device;
    return name;
}

const char *lifted_resource(const struct state *state, const struct granted_device *granted)
{
    const char *pool = strchr(granted->pool, '/'); /* behind the node's name */

    return pool ? find_resource(state, pool + 1) : NULL;
}

const char *lifted_id(const struct state *state, const struct granted_device *granted,
                      const char *resource)
{
    const struct resource *is = resources_find(state->resources, resource);

    return is ? find_id(is, granted->device) : granted->device;
}

bool lifted_resource_known(const struct state *state, const char *resource)
{
    return state_settings_of(state, resource)->dra || resources_find(state->resources, resource);
}

void lifted_called_init(struct lifted_called *called, const char *resource, const char *id)
{
    lifted_name_pool(resource, called->pool);
    called->device[0] = '\0';
    if (id)
        lifted_name_device(id, called->device);
}

bool lifted_is_called(const struct granted_device *granted, const struct lifted_called *called)
{
    const char *pool = strchr(granted->pool, '/'); /* behind the node's name */

    return pool && strcmp(pool + 1, called->pool) == 0 &&
           (called->device[0] == '\0' || strcmp(granted->device, called->device) == 0);
}

bool lifted_is_device(const struct granted_device *granted, const char *resource, const char *id)
{
    struct lifted_called called;

    lifted_called_init(&called, resource, id);
    return lifted_is_called(granted, &called);
}
