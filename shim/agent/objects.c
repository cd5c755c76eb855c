#include "shim/agent/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/object_counters.h"
#include "shim/agent/slice_json.h"
#include "shim/must.h"

/* Of claims that the scheduler makes for extended resources
 * (staging/src/k8s.io/api/resource/v1/types.go). */
#define EXTENDED_RESOURCE_CLAIM "resource.kubernetes.io/extended-resource-claim"

static const json_t *at(const json_t *object, const char *a, const char *b)
{
    return json_object_get(json_object_get(object, a), b);
}

/* A copy, or "" where there is none: what protobuf-c takes for its own default. */
static char *text(const json_t *value)
{
    const char *string = json_string_value(value);

    return string && *string ? must(strdup(string)) : (char *)protobuf_c_empty_string;
}

static void *array_of(size_t n, size_t bytes)
{
    return n > 0 ? must(calloc(n, bytes)) : NULL;
}

const char *object_uid(const json_t *object)
{
    const char *uid = json_string_value(at(object, "metadata", "uid"));

    return uid && *uid ? uid : NULL;
}

/* ---- Node ---- */

static ProtobufCMessage *node(const json_t *object)
{
    Agent__V1__Node *out = must(malloc(sizeof *out));

    agent__v1__node__init(out);
    out->name = text(at(object, "metadata", "name"));
    out->uid = text(at(object, "metadata", "uid"));
    return &out->base;
}

/* ---- Pod ---- */

/* The claim's name as the status has it, where it was made from a template. */
static char *claim_name(const json_t *object, const json_t *claim)
{
    const char *name = json_string_value(json_object_get(claim, "name"));
    const json_t *status;
    size_t i;

    if (json_object_get(claim, "resourceClaimName"))
        return text(json_object_get(claim, "resourceClaimName"));
    json_array_foreach(at(object, "status", "resourceClaimStatuses"), i, status) {
        const char *its = json_string_value(json_object_get(status, "name"));

        if (name && its && strcmp(name, its) == 0)
            return text(json_object_get(status, "resourceClaimName"));
    }
    return text(NULL);
}

/* Takes both names. */
static void add_claim(Agent__V1__Pod *out, char *pod_name, char *its_name)
{
    Agent__V1__PodClaim *one = must(malloc(sizeof *one));

    agent__v1__pod_claim__init(one);
    one->pod_name = pod_name;
    one->claim_name = its_name;
    out->claims[out->n_claims++] = one;
}

/* What the scheduler has made for extended resources is in the status alone. */
static void read_claims(const json_t *object, Agent__V1__Pod *out)
{
    const json_t *claims = at(object, "spec", "resourceClaims"), *claim;
    const json_t *extended =
        json_object_get(at(object, "status", "extendedResourceClaimStatus"), "resourceClaimName");
    size_t i;

    out->claims = array_of(json_array_size(claims) + (extended ? 1 : 0), sizeof *out->claims);
    json_array_foreach(claims, i, claim)
        add_claim(out, text(json_object_get(claim, "name")), claim_name(object, claim));
    if (extended)
        add_claim(out, text(NULL), text(extended));
}

static void read_sidecars(const json_t *containers, Agent__V1__Pod *out)
{
    const json_t *container;
    size_t i;

    out->sidecars = array_of(json_array_size(containers), sizeof *out->sidecars);
    json_array_foreach(containers, i, container) {
        const char *name = json_string_value(json_object_get(container, "name"));
        const char *restarts = json_string_value(json_object_get(container, "restartPolicy"));

        if (name && *name && restarts && strcmp(restarts, "Always") == 0)
            out->sidecars[out->n_sidecars++] = must(strdup(name));
    }
}

static ProtobufCMessage *pod(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *annotations = json_object_get(metadata, "annotations");
    const json_t *grace = at(object, "spec", "terminationGracePeriodSeconds");
    Agent__V1__Pod *out = must(malloc(sizeof *out));

    agent__v1__pod__init(out);
    out->uid = text(json_object_get(metadata, "uid"));
    out->namespace_ = text(json_object_get(metadata, "namespace"));
    out->name = text(json_object_get(metadata, "name"));
    out->priority = (int32_t)json_integer_value(at(object, "spec", "priority"));
    out->grace_seconds = grace ? json_integer_value(grace) : -1;
    out->mirror = json_object_get(annotations, "kubernetes.io/config.mirror") != NULL;
    read_claims(object, out);
    read_sidecars(at(object, "spec", "initContainers"), out);
    return &out->base;
}

bool object_is_over(Agent__V1__Kind kind, const json_t *object)
{
    const char *phase = json_string_value(at(object, "status", "phase"));

    return kind == AGENT__V1__KIND__POD && phase &&
           (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
}

/* ---- taints ---- */

static Agent__V1__Taint *taint(const json_t *object)
{
    Agent__V1__Taint *out = must(malloc(sizeof *out));

    agent__v1__taint__init(out);
    out->key = text(json_object_get(object, "key"));
    out->value = text(json_object_get(object, "value"));
    out->effect = text(json_object_get(object, "effect"));
    out->time_added = text(json_object_get(object, "timeAdded"));
    return out;
}

static Agent__V1__TaintSelector *selector(const json_t *object)
{
    Agent__V1__TaintSelector *out = must(malloc(sizeof *out));
    const char *name;
    json_t *value;

    agent__v1__taint_selector__init(out);
    out->driver = text(json_object_get(object, "driver"));
    out->pool = text(json_object_get(object, "pool"));
    out->device = text(json_object_get(object, "device"));
    json_object_foreach((json_t *)object, name, value)
        out->more |=
            strcmp(name, "driver") != 0 && strcmp(name, "pool") != 0 && strcmp(name, "device") != 0;
    return out;
}

static ProtobufCMessage *taint_rule(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec");
    const json_t *selects = json_object_get(spec, "deviceSelector");
    Agent__V1__TaintRule *out = must(malloc(sizeof *out));

    agent__v1__taint_rule__init(out);
    out->name = text(at(object, "metadata", "name"));
    out->uid = text(at(object, "metadata", "uid"));
    out->selector = json_is_object(selects) ? selector(selects) : NULL;
    out->taint = taint(json_object_get(spec, "taint"));
    return &out->base;
}

/* ---- ResourceSlice ---- */

static void read_taints(const json_t *devices, Agent__V1__Slice *out)
{
    const json_t *device, *one;
    size_t i, k, n = 0;

    json_array_foreach(devices, i, device)
        n += json_array_size(slice_json_said(device, "taints"));
    out->taints = array_of(n, sizeof *out->taints);
    json_array_foreach(devices, i, device) {
        json_array_foreach(slice_json_said(device, "taints"), k, one) {
            Agent__V1__DeviceTaint *to = must(malloc(sizeof *to));

            agent__v1__device_taint__init(to);
            to->device = text(json_object_get(device, "name"));
            to->taint = taint(one);
            out->taints[out->n_taints++] = to;
        }
    }
}

/* Devices that are made of the same, as partitions are, draw on the same counters. */
static bool are_apart(const json_t *devices)
{
    const json_t *device;
    size_t i;

    json_array_foreach(devices, i, device) {
        if (json_array_size(slice_json_said(device, "consumesCounters")) > 0)
            return false;
    }
    return true;
}

static ProtobufCMessage *slice(const json_t *object)
{
    const json_t *pool = at(object, "spec", "pool"), *devices = at(object, "spec", "devices"), *one;
    Agent__V1__Slice *out = must(malloc(sizeof *out));
    size_t i;

    agent__v1__slice__init(out);
    out->name = text(at(object, "metadata", "name"));
    out->uid = text(at(object, "metadata", "uid"));
    out->driver = text(at(object, "spec", "driver"));
    out->pool = text(json_object_get(pool, "name"));
    out->generation = json_integer_value(json_object_get(pool, "generation"));
    out->devices = array_of(json_array_size(devices), sizeof *out->devices);
    json_array_foreach(devices, i, one) /* of a list each is freed */
        out->devices[out->n_devices++] = must(strdup(slice_json_name(one)));
    out->apart = are_apart(devices);
    read_taints(devices, out);
    object_read_counters(json_object_get(object, "spec"), FACT_BYTES_MAX, out);
    return &out->base;
}

/* ---- ResourceClaim ---- */

static Agent__V1__Toleration *toleration(const json_t *object)
{
    const json_t *seconds = json_object_get(object, "tolerationSeconds");
    Agent__V1__Toleration *out = must(malloc(sizeof *out));

    agent__v1__toleration__init(out);
    out->key = text(json_object_get(object, "key"));
    out->operator_ = text(json_object_get(object, "operator"));
    out->value = text(json_object_get(object, "value"));
    out->effect = text(json_object_get(object, "effect"));
    out->limited = json_is_integer(seconds);
    out->seconds = json_integer_value(seconds);
    return out;
}

static Agent__V1__ClaimDevice *claim_device(const json_t *result)
{
    const json_t *tolerations = json_object_get(result, "tolerations"), *one;
    Agent__V1__ClaimDevice *out = must(malloc(sizeof *out));
    size_t i;

    agent__v1__claim_device__init(out);
    out->request = text(json_object_get(result, "request"));
    out->driver = text(json_object_get(result, "driver"));
    out->pool = text(json_object_get(result, "pool"));
    out->device = text(json_object_get(result, "device"));
    out->admin_access = json_is_true(json_object_get(result, "adminAccess"));
    out->share_id = text(json_object_get(result, "shareID"));
    out->tolerations = array_of(json_array_size(tolerations), sizeof *out->tolerations);
    json_array_foreach(tolerations, i, one)
        out->tolerations[out->n_tolerations++] = toleration(one);
    return out;
}

/* Only pods: others are of a group. */
static void read_reserved(const json_t *reserved, Agent__V1__Claim *out)
{
    const json_t *one;
    size_t i;

    out->reserved_for = array_of(json_array_size(reserved), sizeof *out->reserved_for);
    json_array_foreach(reserved, i, one) {
        const char *uid = json_string_value(json_object_get(one, "uid"));
        const char *group = json_string_value(json_object_get(one, "apiGroup"));

        if (uid && (!group || !*group))
            out->reserved_for[out->n_reserved_for++] = must(strdup(uid));
    }
}

static bool says_true(const json_t *annotations, const char *name)
{
    const char *value = json_string_value(json_object_get(annotations, name));

    return value && strcmp(value, "true") == 0;
}

Agent__V1__Claim *object_claim(const json_t *object)
{
    const json_t *allocation = at(object, "status", "allocation");
    const json_t *results = at(allocation, "devices", "results"), *result;
    Agent__V1__Claim *out = must(malloc(sizeof *out));
    size_t i;

    agent__v1__claim__init(out);
    out->uid = text(at(object, "metadata", "uid"));
    out->allocated = json_is_object(allocation);
    out->devices = array_of(json_array_size(results), sizeof *out->devices);
    json_array_foreach(results, i, result)
        out->devices[out->n_devices++] = claim_device(result);
    out->extended = says_true(at(object, "metadata", "annotations"), EXTENDED_RESOURCE_CLAIM);
    read_reserved(at(object, "status", "reservedFor"), out);
    return out;
}

/* ---- all of them ---- */

int object_put(struct facts *facts, Agent__V1__Kind kind, const json_t *object)
{
    const char *uid = object_uid(object);
    ProtobufCMessage *message;
    uint8_t *packed;
    size_t len;
    int result;

    if (!uid)
        return -EINVAL;
    message = kind == AGENT__V1__KIND__NODE    ? node(object)
              : kind == AGENT__V1__KIND__POD   ? pod(object)
              : kind == AGENT__V1__KIND__SLICE ? slice(object)
                                               : taint_rule(object);
    packed = must(malloc(protobuf_c_message_get_packed_size(message) + 1));
    len = protobuf_c_message_pack(message, packed);
    result = facts_put(facts, kind, uid, packed, len);
    free(packed);
    protobuf_c_message_free_unpacked(message, NULL);
    return result;
}
