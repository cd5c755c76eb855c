#include "shim/relay/observed_calls.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "shim/boot_clock.h"
#include "shim/relay/limits.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

#define ANNOTATIONS_LEN 2

/* One under way, with what will be needed when it has succeeded; session_call.user. */
struct observed {
    bool stopping;             /* a stop the core knows of, without an answer so far */
    uint32_t attempt;          /* of a sandbox that is run */
    const char *id;            /* what is stopped or removed, or the pod's uid, */
    const char *pod_namespace; /* and of a sandbox that is run these */
    const char *pod_name;
    /* Likewise, those of ANNOTATIONS; owned. */
    struct devicemgr_annotation annotations[ANNOTATIONS_LEN];
    size_t annotations_len;
    char texts[]; /* the three above */
};

/* What must be known of a pod as soon as it is there: what it tolerates, before a device that it
 * was given counts as one whose taint it does not; and whether the API server can evict it. */
static const char *const ANNOTATIONS[ANNOTATIONS_LEN] = {"kubernetes.io/config.source",
                                                         "devices.cri-device-shim/tolerations"};

/* ---- the request ---- */

static const ProtobufCMessageDescriptor *request_of(enum cri_method method)
{
    switch (method) {
    case CRI_RUN_POD_SANDBOX:
        return &runtime__v1__run_pod_sandbox_request__descriptor;
    case CRI_STOP_POD_SANDBOX:
        return &runtime__v1__stop_pod_sandbox_request__descriptor;
    case CRI_REMOVE_POD_SANDBOX:
        return &runtime__v1__remove_pod_sandbox_request__descriptor;
    case CRI_REMOVE_CONTAINER:
        return &runtime__v1__remove_container_request__descriptor;
    default:
        return NULL;
    }
}

/* Keeps copies of the three texts. NULL: they are too long, or no memory. */
static struct observed *observed_new(const char *id, const char *pod_namespace,
                                     const char *pod_name)
{
    size_t ids = strlen(id) + 1, spaces = strlen(pod_namespace) + 1, names = strlen(pod_name) + 1;
    struct observed *o;

    if (ids + spaces + names > RELAY_NAMES_BYTES_MAX)
        return NULL;
    o = calloc(1, sizeof *o + ids + spaces + names);
    if (!o)
        return NULL;
    o->id = memcpy(o->texts, id, ids);
    o->pod_namespace = memcpy(o->texts + ids, pod_namespace, spaces);
    o->pod_name = memcpy(o->texts + ids + spaces, pod_name, names);
    return o;
}

static void observed_free(struct observed *o)
{
    for (size_t i = 0; o && i < o->annotations_len; i++)
        free((char *)o->annotations[i].value);
    free(o);
}

/* Tolerations that are too long are none that could be read; nor are they kept beside a source that
 * is. */
static void keep_annotation(struct observed *o, const char *key, const char *value)
{
    size_t bytes = strlen(value);
    char *copy;

    for (size_t i = 0; i < o->annotations_len; i++)
        bytes += strlen(o->annotations[i].value);
    copy = bytes <= RELAY_TOLERATIONS_BYTES_MAX ? strdup(value) : NULL;
    if (copy)
        o->annotations[o->annotations_len++] = (struct devicemgr_annotation){key, copy};
}

static void keep_annotations(struct observed *o, const Runtime__V1__PodSandboxConfig *config)
{
    for (size_t i = 0; i < ANNOTATIONS_LEN; i++) {
        const char *value = NULL;

        for (size_t k = 0; k < config->n_annotations;
             k++) { /* of a key that is there twice, the last */
            if (strcmp(config->annotations[k]->key, ANNOTATIONS[i]) == 0)
                value = config->annotations[k]->value;
        }
        if (value)
            keep_annotation(o, ANNOTATIONS[i], value);
    }
}

static struct observed *keep_run(const Runtime__V1__RunPodSandboxRequest *run)
{
    const Runtime__V1__PodSandboxMetadata *pod = run->config ? run->config->metadata : NULL;
    struct observed *o = pod ? observed_new(pod->uid, pod->namespace_, pod->name) : NULL;

    if (!o)
        return NULL;
    o->attempt = pod->attempt;
    keep_annotations(o, run->config);
    return o;
}

static struct observed *keep(enum cri_method method, const ProtobufCMessage *request)
{
    switch (method) {
    case CRI_RUN_POD_SANDBOX:
        return keep_run((const Runtime__V1__RunPodSandboxRequest *)request);
    case CRI_STOP_POD_SANDBOX:
        return observed_new(((const Runtime__V1__StopPodSandboxRequest *)request)->pod_sandbox_id,
                            "", "");
    case CRI_REMOVE_POD_SANDBOX:
        return observed_new(((const Runtime__V1__RemovePodSandboxRequest *)request)->pod_sandbox_id,
                            "", "");
    case CRI_REMOVE_CONTAINER:
        return observed_new(((const Runtime__V1__RemoveContainerRequest *)request)->container_id,
                            "", "");
    default:
        return NULL;
    }
}

void observed_calls_request(struct host *host, struct session_call *call)
{
    const ProtobufCMessageDescriptor *descriptor = request_of(call->method);
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    const ProtobufCMessage *request;
    struct observed *o = NULL;
    int code;

    if (!descriptor)
        return;
    request = message_unpack(descriptor, call->message, call->message_bytes, &arena, &code);
    if (request)
        o = keep(call->method, request);
    message_arena_fini(&arena);
    call->user = o;
    if (o && call->method == CRI_STOP_POD_SANDBOX) {
        o->stopping = true;
        devicemgr_sandbox_stopping(host_core(host), boot_now_ms(), o->id);
        host_kick(host);
    }
}

/* ---- its end ---- */

static void sandbox_ran(struct devicemgr *core, const struct observed *o, const uint8_t *message,
                        size_t bytes)
{
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    int code;
    const Runtime__V1__RunPodSandboxResponse *response =
        (const Runtime__V1__RunPodSandboxResponse *)message_unpack(
            &runtime__v1__run_pod_sandbox_response__descriptor, message, bytes, &arena, &code);

    if (response) {
        struct devicemgr_sandbox sandbox = {
            .id = response->pod_sandbox_id,
            .pod_uid = o->id,
            .pod_namespace = o->pod_namespace,
            .pod_name = o->pod_name,
            .attempt = o->attempt,
            .ready = true,
            .annotations = o->annotations,
            .annotations_len = o->annotations_len,
        };
        devicemgr_sandbox_ran(core, boot_now_ms(), &sandbox);
    }
    message_arena_fini(&arena);
}

static void stop_over(struct devicemgr *core, struct observed *o, bool stopped)
{
    o->stopping = false;
    if (stopped)
        devicemgr_sandbox_stopped(core, boot_now_ms(), o->id);
    else
        devicemgr_sandbox_stop_failed(core, boot_now_ms(), o->id);
}

static void succeeded(struct devicemgr *core, const struct session_call *call,
                      const uint8_t *message, size_t bytes)
{
    const struct observed *o = call->user;

    switch (call->method) {
    case CRI_RUN_POD_SANDBOX:
        sandbox_ran(core, o, message, bytes);
        break;
    case CRI_REMOVE_POD_SANDBOX:
        devicemgr_sandbox_removed(core, boot_now_ms(), o->id);
        break;
    case CRI_REMOVE_CONTAINER:
        devicemgr_container_removed(core, boot_now_ms(), o->id);
        break;
    default:
        break;
    }
}

void observed_calls_answered(struct host *host, struct session_call *call, int status,
                             const uint8_t *message, size_t message_bytes)
{
    struct observed *o = call->user;
    /* What of the answer is needed; a copy of one that has begun is not handed over. */
    bool success = status == RPC_OK && (message || call->method != CRI_RUN_POD_SANDBOX);

    if (!o)
        return;
    if (o->stopping)
        stop_over(host_core(host), o, success);
    else if (success)
        succeeded(host_core(host), call, message, message_bytes);
    host_kick(host);
}

const char *observed_calls_pod_uid(const struct session_call *call)
{
    const struct observed *o = call->user;

    return o->id;
}

void observed_calls_ended(struct host *host, struct session_call *call)
{
    struct observed *o = call->user;
    bool stopping = o && o->stopping;

    if (stopping)
        stop_over(host_core(host), o, false);
    call->user = NULL;
    observed_free(o);
    if (stopping)
        host_kick(host);
}
