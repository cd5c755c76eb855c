#include "shim/relay/calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "shim/log.h"
#include "shim/relay/create_container.h"
#include "shim/relay/limits.h"
#include "shim/relay/mount_redirect.h"
#include "shim/relay/plugin_mounts.h"
#include "shim/relay/refusals.h"
#include "shim/relay/relists.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

/* One looked-at call under way that is not for relists.h; session_call.user. */
struct pending {
    struct session *session;
    struct session_call *call;
    uint64_t create;    /* key of the table; 0: no create */
    uint64_t container; /* of a create: refusals_key() */
    bool forwarded;     /* a create whose answer the core waits for */
    bool stopping;      /* a stop the core knows of, without an answer so far */
    bool redirect;      /* a create that mounts the kubelet's plugin directory */
    uint32_t attempt;
    char *id; /* what is stopped or removed, or the pod's uid; owned, and */
    const char *pod_namespace, *pod_name; /* these lie behind it */
    UT_hash_handle hh;
};

struct calls {
    struct manager *manager;
    struct relists *relists;
    struct refusals *refusals;
    struct plugin_mounts mounts;
    struct pending *creates; /* by number */
    uint64_t create_last;
};

struct calls *calls_new(void)
{
    struct calls *calls = calloc(1, sizeof *calls);

    if (!calls)
        return NULL;
    calls->relists = relists_new();
    calls->refusals = refusals_new();
    if (calls->relists && calls->refusals)
        return calls;
    calls_free(calls);
    return NULL;
}

void calls_bind(struct calls *calls, struct manager *manager)
{
    calls->manager = manager;
}

static void on_kubelet_started(void *user)
{
    struct calls *calls = user;

    devicemgr_kubelet_started(manager_core(calls->manager), manager_now_ms());
    manager_kick(calls->manager);
}

static void on_kubelet_listed(void *user)
{
    struct calls *calls = user;

    devicemgr_kubelet_listed(manager_core(calls->manager), manager_now_ms());
    manager_kick(calls->manager);
}

static const struct relists_ops RELISTS_OPS = {.started = on_kubelet_started,
                                               .listed = on_kubelet_listed};

void calls_bind_gate(struct calls *calls, struct gate *gate)
{
    relists_bind(calls->relists, gate, &RELISTS_OPS, calls);
}

void calls_set_redirect(struct calls *calls, const char *from, const char *to)
{
    calls->mounts.from = from;
    calls->mounts.to = to;
}

void calls_free(struct calls *calls)
{
    if (!calls)
        return;
    relists_free(calls->relists);
    refusals_free(calls->refusals);
    free(calls);
}

static void pending_free(struct calls *calls, struct pending *p)
{
    if (p->hh.tbl)
        HASH_DEL(calls->creates, p);
    p->call->user = NULL;
    free(p->id);
    free(p);
}

static struct pending *pending_new(struct session *session, struct session_call *call)
{
    struct pending *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->session = session;
    p->call = call;
    call->user = p;
    return p;
}

static uint64_t deadline_of(const struct session_call *call)
{
    return call->timeout_ms == UINT64_MAX ? UINT64_MAX : manager_now_ms() + call->timeout_ms;
}

/* ---- CreateContainer ---- */

/* Whether the core may keep what it is known by. */
static bool names_fit(const struct devicemgr_create *request)
{
    return strlen(request->sandbox_id) + strlen(request->pod_uid) + strlen(request->pod_namespace) +
               strlen(request->pod_name) + strlen(request->container) <=
           RELAY_NAMES_BYTES_MAX;
}

static void forward_untouched(struct session *session, struct session_call *call)
{
    if (session_forward(session, call, NULL, 0) < 0)
        session_refuse(session, call, RPC_RESOURCE_EXHAUSTED, "CreateContainer: out of memory");
}

/* Asks the device manager, which borrows `request`; true: the verdict will come for `p`. */
static bool ask(struct calls *calls, struct pending *p, struct create_container *c,
                struct devicemgr_create *request)
{
    p->container = refusals_key(request->pod_uid, request->container);
    p->redirect = plugin_mounts_look(&calls->mounts, c, request);
    request->deadline_ms = deadline_of(p->call);
    return devicemgr_create(manager_core(calls->manager), manager_now_ms(), p->create, request);
}

/* Forwards with what is to be put in front, and with what is to be changed. 0, -ENOMEM, or
 * -EMSGSIZE when it would be too large then; the call is still undecided in both cases. */
static int create_forward(const struct calls *calls, const struct pending *p,
                          const uint8_t *fragment, size_t bytes)
{
    struct buffer changed = {0};
    int r = 0;

    if (p->redirect)
        r = mount_redirect(p->call->message, p->call->message_bytes, calls->mounts.from,
                           calls->mounts.to, &changed);
    if (r == 0)
        return session_forward(p->session, p->call, fragment, bytes);
    if (r > 0)
        r = session_forward_instead(p->session, p->call, fragment, bytes, buffer_data(&changed),
                                    buffer_len(&changed));
    buffer_fini(&changed);
    return r;
}

static const char *forward_error(int r)
{
    return r == -EMSGSIZE ? "CreateContainer: the message is too large with its mounts redirected"
                          : "CreateContainer: out of memory";
}

static struct pending *create_new(struct calls *calls, struct session *session,
                                  struct session_call *call)
{
    struct pending *p = pending_new(session, call);

    if (!p)
        return NULL;
    p->create = ++calls->create_last;
    HASH_ADD(hh, calls->creates, create, sizeof p->create, p);
    if (p->hh.tbl)
        return p;
    pending_free(calls, p);
    return NULL;
}

static void refuse(struct calls *calls, struct pending *p, int code, const char *message)
{
    struct session *session = p->session;
    struct session_call *call = p->call;

    pending_free(calls, p);
    session_refuse(session, call, code, message);
}

/* It asks for no device of ours. */
static void forward_as_is(struct calls *calls, struct pending *p)
{
    int r = create_forward(calls, p, NULL, 0);

    if (r < 0)
        refuse(calls, p, RPC_RESOURCE_EXHAUSTED, forward_error(r));
    else
        pending_free(calls, p);
}

static void create_requested(struct calls *calls, struct session *session,
                             struct session_call *call)
{
    struct devicemgr_create request;
    struct create_container *c;
    struct pending *p;
    bool pending;
    int code = create_container_read(call->message, call->message_bytes, &c);

    if (code == RPC_INTERNAL) { /* no CreateContainerRequest: the runtime says so */
        forward_untouched(session, call);
        return;
    }
    if (code == RPC_OK) {
        create_container_request(c, &request);
        if (!names_fit(&request)) {
            create_container_free(c);
            session_refuse(session, call, RPC_INVALID_ARGUMENT,
                           "CreateContainer: the names of sandbox, pod and container are too long");
            return;
        }
    }
    p = code == RPC_OK ? create_new(calls, session, call) : NULL;
    if (!p) {
        if (code == RPC_OK)
            create_container_free(c);
        session_refuse(session, call, RPC_RESOURCE_EXHAUSTED,
                       "CreateContainer: the request takes too much memory to read");
        return;
    }
    pending = ask(calls, p, c, &request);
    create_container_free(c);
    if (!pending)
        forward_as_is(calls, p);
    manager_kick(calls->manager);
}

void calls_verdict(struct calls *calls, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct pending *p;
    uint8_t *fragment = NULL;
    size_t bytes = 0;
    int r = 0;

    HASH_FIND(hh, calls->creates, &create, sizeof create, p);
    if (!p)
        return;
    if (verdict->code != 0) {
        refusals_add(calls->refusals, p->container, manager_now_ms(), verdict->code,
                     verdict->message);
        refuse(calls, p, verdict->code, verdict->message);
        return;
    }
    refusals_end(calls->refusals, p->container);
    if (verdict->options)
        r = create_container_fragment(verdict->options, &fragment, &bytes);
    if (r == 0)
        r = create_forward(calls, p, fragment, bytes);
    free(fragment);
    if (r == 0) {
        p->forwarded = true;
        return;
    }
    refuse(calls, p, RPC_RESOURCE_EXHAUSTED, forward_error(r));
    devicemgr_create_answered(manager_core(calls->manager), manager_now_ms(), create, NULL);
}

/* A success whose container id cannot be read is no refusal: that container may run. */
static void create_answered(struct calls *calls, struct pending *p, int status,
                            const uint8_t *message, size_t bytes)
{
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    const Runtime__V1__CreateContainerResponse *response = NULL;
    uint64_t create = p->create;
    int code;

    if (status == RPC_OK && message)
        response = (const Runtime__V1__CreateContainerResponse *)message_unpack(
            &runtime__v1__create_container_response__descriptor, message, bytes, &arena, &code);
    pending_free(calls, p);
    if (status == RPC_OK && (!response || !*response->container_id))
        devicemgr_create_cancelled(manager_core(calls->manager), manager_now_ms(), create);
    else
        devicemgr_create_answered(manager_core(calls->manager), manager_now_ms(), create,
                                  response ? response->container_id : NULL);
    message_arena_fini(&arena);
}

/* ---- observed calls ---- */

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
    case CRI_CREATE_CONTAINER:
    case CRI_VERSION:
    case CRI_LIST_POD_SANDBOX:
    case CRI_STREAM_POD_SANDBOXES:
    case CRI_LIST_CONTAINERS:
    case CRI_STREAM_CONTAINERS:
    case CRI_GET_CONTAINER_EVENTS:
    case CRI_OTHER:
        break;
    }
    return NULL;
}

/* Keeps the three texts, of which none may be NULL. False: too long, or no memory. */
static bool keep_names(struct pending *p, const char *id, const char *pod_namespace,
                       const char *pod_name)
{
    size_t ids = strlen(id) + 1, spaces = strlen(pod_namespace) + 1, names = strlen(pod_name) + 1;

    if (ids + spaces + names > RELAY_NAMES_BYTES_MAX)
        return false;
    p->id = malloc(ids + spaces + names);
    if (!p->id)
        return false;
    p->pod_namespace = memcpy(p->id + ids, pod_namespace, spaces);
    p->pod_name = memcpy(p->id + ids + spaces, pod_name, names);
    memcpy(p->id, id, ids);
    return true;
}

/* What will be needed when the call has succeeded. */
static bool keep_request(struct pending *p, const ProtobufCMessage *message)
{
    const Runtime__V1__RunPodSandboxRequest *run;
    const Runtime__V1__PodSandboxMetadata *pod;

    switch (p->call->method) {
    case CRI_RUN_POD_SANDBOX:
        run = (const Runtime__V1__RunPodSandboxRequest *)message;
        pod = run->config ? run->config->metadata : NULL;
        p->attempt = pod ? pod->attempt : 0;
        return pod && keep_names(p, pod->uid, pod->namespace_, pod->name);
    case CRI_STOP_POD_SANDBOX:
        return keep_names(p, ((const Runtime__V1__StopPodSandboxRequest *)message)->pod_sandbox_id,
                          "", "");
    case CRI_REMOVE_POD_SANDBOX:
        return keep_names(
            p, ((const Runtime__V1__RemovePodSandboxRequest *)message)->pod_sandbox_id, "", "");
    case CRI_REMOVE_CONTAINER:
        return keep_names(p, ((const Runtime__V1__RemoveContainerRequest *)message)->container_id,
                          "", "");
    case CRI_CREATE_CONTAINER:
    case CRI_VERSION:
    case CRI_LIST_CONTAINERS:
    case CRI_LIST_POD_SANDBOX:
    case CRI_STREAM_POD_SANDBOXES:
    case CRI_STREAM_CONTAINERS:
    case CRI_GET_CONTAINER_EVENTS:
    case CRI_OTHER:
        break;
    }
    return false;
}

static void observed_requested(struct calls *calls, struct session *session,
                               struct session_call *call)
{
    const ProtobufCMessageDescriptor *descriptor = request_of(call->method);
    struct pending *p = descriptor ? pending_new(session, call) : NULL;
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    const ProtobufCMessage *message;
    bool kept;
    int code;

    if (!p)
        return;
    message = message_unpack(descriptor, call->message, call->message_bytes, &arena, &code);
    kept = message && keep_request(p, message);
    message_arena_fini(&arena);
    if (!kept) {
        pending_free(calls, p);
        return;
    }
    if (call->method == CRI_STOP_POD_SANDBOX) {
        p->stopping = true;
        devicemgr_sandbox_stopping(manager_core(calls->manager), manager_now_ms(), p->id);
        manager_kick(calls->manager);
    }
}

static void sandbox_ran(struct devicemgr *core, const struct pending *p, const uint8_t *message,
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
            .pod_uid = p->id,
            .pod_namespace = p->pod_namespace,
            .pod_name = p->pod_name,
            .attempt = p->attempt,
            .ready = true,
        };
        devicemgr_sandbox_ran(core, manager_now_ms(), &sandbox);
    }
    message_arena_fini(&arena);
}

/* A stop is over, with success or not. */
static void sandbox_stop_over(struct devicemgr *core, struct pending *p, bool stopped)
{
    p->stopping = false;
    if (stopped)
        devicemgr_sandbox_stopped(core, manager_now_ms(), p->id);
    else
        devicemgr_sandbox_stop_failed(core, manager_now_ms(), p->id);
}

static void observed_succeeded(struct devicemgr *core, const struct pending *p,
                               const uint8_t *message, size_t bytes)
{
    switch (p->call->method) {
    case CRI_RUN_POD_SANDBOX:
        sandbox_ran(core, p, message, bytes);
        break;
    case CRI_REMOVE_POD_SANDBOX:
        devicemgr_sandbox_removed(core, manager_now_ms(), p->id);
        break;
    case CRI_REMOVE_CONTAINER:
        devicemgr_container_removed(core, manager_now_ms(), p->id);
        break;
    case CRI_STOP_POD_SANDBOX:
    case CRI_CREATE_CONTAINER:
    case CRI_VERSION:
    case CRI_LIST_POD_SANDBOX:
    case CRI_STREAM_POD_SANDBOXES:
    case CRI_LIST_CONTAINERS:
    case CRI_STREAM_CONTAINERS:
    case CRI_GET_CONTAINER_EVENTS:
    case CRI_OTHER:
        break;
    }
}

static void observed_answered(struct calls *calls, struct pending *p, int status,
                              const uint8_t *message, size_t bytes)
{
    struct devicemgr *core = manager_core(calls->manager);
    bool success = status == RPC_OK && message;

    if (p->stopping)
        sandbox_stop_over(core, p, success);
    else if (success)
        observed_succeeded(core, p, message, bytes);
}

/* ---- the relay's events ---- */

/* Whether the call is for relists.h. */
static bool is_relist(const struct session_call *call)
{
    switch (call->method) {
    case CRI_VERSION:
    case CRI_LIST_POD_SANDBOX:
    case CRI_STREAM_POD_SANDBOXES:
    case CRI_LIST_CONTAINERS:
    case CRI_STREAM_CONTAINERS:
        return true;
    default:
        return false;
    }
}

void calls_begun(struct calls *calls, struct session *session, pid_t pid)
{
    relists_session_begun(calls->relists, session, pid);
}

void calls_gone(struct calls *calls, struct session *session)
{
    relists_session_gone(calls->relists, session);
}

void calls_request(struct calls *calls, struct session *session, struct session_call *call)
{
    if (is_relist(call))
        relists_request(calls->relists, session, call, deadline_of(call));
    else if (call->method == CRI_CREATE_CONTAINER)
        create_requested(calls, session, call);
    else if (manager_ready(calls->manager))
        observed_requested(calls, session, call);
}

void calls_answered(struct calls *calls, struct session_call *call, int status,
                    const uint8_t *message, size_t message_bytes)
{
    struct pending *p = call->user;

    if (is_relist(call)) {
        relists_answered(calls->relists, call, status);
        return;
    }
    if (!p)
        return;
    if (p->create && p->forwarded)
        create_answered(calls, p, status, message, message_bytes);
    else if (p->create)
        return; /* the runtime would not wait for the decision; ended() follows */
    else
        observed_answered(calls, p, status, message, message_bytes);
    manager_kick(calls->manager);
}

void calls_ended(struct calls *calls, struct session_call *call)
{
    struct pending *p = call->user;
    uint64_t create;
    bool stopping;

    if (is_relist(call)) {
        relists_ended(calls->relists, call);
        return;
    }
    if (!p)
        return;
    create = p->create;
    stopping = p->stopping;
    if (stopping)
        sandbox_stop_over(manager_core(calls->manager), p, false);
    pending_free(calls, p);
    if (create)
        devicemgr_create_cancelled(manager_core(calls->manager), manager_now_ms(), create);
    if (create || stopping)
        manager_kick(calls->manager);
}

void calls_drain(struct calls *calls)
{
    relists_drain(calls->relists);
    devicemgr_drain(manager_core(calls->manager), manager_now_ms());
    manager_kick(calls->manager);
}

void calls_gate_released(struct calls *calls, uint64_t hold)
{
    relists_released(calls->relists, hold);
}

void calls_runtime_back(struct calls *calls)
{
    manager_list_runtime(calls->manager);
}
