#include "shim/relay/relists.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "shim/log.h"
#include "shim/process.h"
#include "shim/relay/limits.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

#define STOPPING "%s: cri-device-shim stops; ask again"
/* Names of processes that were told to look like a kubelet; no more are told then. */
#define TOLD_MAX 16
/* Relists of one connection after which its process looks like one: `crictl ps -a` does the same
 * once, in a process of its own. */
#define RELISTS_OF_A_KUBELET 2

struct watched {
    struct session *session; /* key */
    pid_t pid;               /* 0: not known */
    bool kubelet;
    bool listed; /* a kubelet that was given the list of all sandboxes on it */
    /* Of any other process, as long as it may look like a kubelet. */
    bool announced;   /* it called Version{version: ""} */
    bool sandboxes;   /* the first half of a relist has come */
    unsigned relists; /* whole ones */
    UT_hash_handle hh;
};

/* A list of all sandboxes, or a list of containers with the empty filter, of a kubelet, from its
 * request to its end; session_call.user. */
struct relist {
    uint64_t hold; /* key */
    struct session *session;
    struct session_call *call;
    pid_t pid;
    bool held;
    UT_hash_handle hh;
};

struct relists {
    const struct relists_gate *gate; /* NULL: nobody is watched */
    void *gate_user;
    const struct relists_ops *ops;
    void *user;
    struct watched *sessions;
    struct relist *relists;
    uint64_t hold_last;
    char told[TOLD_MAX][PROCESS_NAME_BYTES_MAX];
    size_t told_len;
    bool draining;
};

struct relists *relists_new(void)
{
    return calloc(1, sizeof(struct relists));
}

void relists_free(struct relists *r)
{
    free(r);
}

void relists_bind(struct relists *r, const struct relists_gate *gate, void *gate_user,
                  const struct relists_ops *ops, void *user)
{
    r->gate = gate;
    r->gate_user = gate_user;
    r->ops = ops;
    r->user = user;
}

static bool is_of_sandboxes(enum cri_method method)
{
    return method == CRI_LIST_POD_SANDBOX || method == CRI_STREAM_POD_SANDBOXES;
}

/* ---- connections ---- */

static struct watched *watched_find(struct relists *r, const struct session *session)
{
    struct watched *w;

    HASH_FIND_PTR(r->sessions, &session, w);
    return w;
}

/* How calls that begin from now on are looked at. */
static void watched_set_classes(const struct relists *r, const struct watched *w)
{
    bool looks = !w->kubelet && w->announced;
    bool armed = w->kubelet && r->gate->armed(r->gate_user, w->pid);
    enum cri_method_class containers = armed   ? CRI_CLASS_INTERCEPTED
                                       : looks ? CRI_CLASS_OBSERVED
                                               : CRI_CLASS_RELAYED;
    enum cri_method_class sandboxes =
        looks || (w->kubelet && !w->listed) ? CRI_CLASS_OBSERVED : CRI_CLASS_RELAYED;

    session_set_class(w->session, CRI_LIST_CONTAINERS, containers);
    session_set_class(w->session, CRI_STREAM_CONTAINERS, containers);
    session_set_class(w->session, CRI_LIST_POD_SANDBOX, sandboxes);
    session_set_class(w->session, CRI_STREAM_POD_SANDBOXES, sandboxes);
}

/* The process may have been armed or disarmed, which all its connections must know. */
static void process_changed(struct relists *r, pid_t pid)
{
    struct watched *w, *next;

    HASH_ITER(hh, r->sessions, w, next) {
        if (w->pid == pid)
            watched_set_classes(r, w);
    }
}

/* At its first connection, or the first since it had none. */
static void tell_kubelet(struct relists *r, pid_t pid)
{
    char name[PROCESS_NAME_BYTES_MAX];
    struct watched *w, *next;

    HASH_ITER(hh, r->sessions, w, next) {
        if (w->pid == pid)
            return;
    }
    process_name(pid, name);
    log_info("process %d (%s) is taken for the kubelet", (int)pid, name);
}

void relists_session_begun(struct relists *r, struct session *session, pid_t pid)
{
    struct watched *w;
    bool kubelet;

    if (!r->gate)
        return;
    kubelet = pid > 0 && r->gate->watches(r->gate_user, pid);
    if (kubelet)
        tell_kubelet(r, pid);
    w = calloc(1, sizeof *w);
    if (w) {
        w->session = session;
        w->pid = pid;
        w->kubelet = kubelet;
        HASH_ADD_PTR(r->sessions, session, w);
    }
    if (!w || !w->hh.tbl) {
        log_error("a connection of process %d is not watched: out of memory", (int)pid);
        free(w);
        return;
    }
    session_set_class(session, CRI_VERSION, CRI_CLASS_OBSERVED);
    watched_set_classes(r, w);
}

void relists_session_gone(struct relists *r, struct session *session)
{
    struct watched *w = watched_find(r, session);

    if (!w)
        return;
    HASH_DEL(r->sessions, w);
    free(w);
}

/* ---- processes that look like a kubelet, and are not known as one ---- */

/* False: there is no more room to remember it. */
static bool remember(struct relists *r, const char *name)
{
    if (r->told_len == TOLD_MAX)
        return false;
    snprintf(r->told[r->told_len++], PROCESS_NAME_BYTES_MAX, "%s", name);
    return true;
}

/* Once for each name. */
static void tell_stranger(struct relists *r, pid_t pid)
{
    char name[PROCESS_NAME_BYTES_MAX];

    process_name(pid, name);
    for (size_t i = 0; i < r->told_len; i++) {
        if (strcmp(r->told[i], name) == 0)
            return;
    }
    if (!remember(r, name))
        return;
    if (pid <= 0)
        log_warning(
            "a client of another pid namespace calls the runtime as a kubelet does: it cannot "
            "be known as one, and may admit pods before it has the devices");
    else
        log_warning("process %d (%s) calls the runtime as a kubelet does, and is not in "
                    "bridge.kubelet_processes: if it is one, add \"%s\" there; until then it may "
                    "admit pods before it has the devices",
                    (int)pid, name, name);
}

static void stranger_listed(struct relists *r, struct watched *w, enum cri_method method)
{
    if (is_of_sandboxes(method)) {
        w->sandboxes = true;
        return;
    }
    w->relists += w->sandboxes;
    w->sandboxes = false;
    if (w->relists < RELISTS_OF_A_KUBELET)
        return;
    w->announced = false; /* nothing of it is looked at any more */
    watched_set_classes(r, w);
    tell_stranger(r, w->pid);
}

/* ---- lists ---- */

static struct relist *relist_new(struct relists *r, struct session *session,
                                 struct session_call *call, pid_t pid)
{
    struct relist *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->hold = ++r->hold_last;
    l->session = session;
    l->call = call;
    l->pid = pid;
    HASH_ADD(hh, r->relists, hold, sizeof l->hold, l);
    if (!l->hh.tbl) {
        free(l);
        return NULL;
    }
    call->user = l;
    return l;
}

static void relist_free(struct relists *r, struct relist *l)
{
    HASH_DEL(r->relists, l);
    l->call->user = NULL;
    free(l);
}

/* Nothing of ours is put in, so that it cannot fail. */
static void let_pass(struct session *session, struct session_call *call)
{
    if (session_forward(session, call, NULL, 0) < 0)
        abort();
}

static void refuse(struct relists *r, struct relist *l)
{
    struct session *session = l->session;
    struct session_call *call = l->call;
    char reason[128];

    snprintf(reason, sizeof reason, STOPPING, cri_method_name(call->method));
    relist_free(r, l);
    session_refuse(session, call, RPC_UNAVAILABLE, reason);
}

static const ProtobufCMessage *unpack(const struct session_call *call,
                                      const ProtobufCMessageDescriptor *type,
                                      struct message_arena *arena)
{
    int code;

    return message_unpack(type, call->message, call->message_bytes, arena, &code);
}

/*
 * Whether the request has a filter without a field: the relist's form, 0a 00. A field beside it may
 * come with a later version of the API; one inside it, known or not, filters. StreamContainers
 * takes the same request, field by field.
 */
static bool has_empty_filter(const struct session_call *call)
{
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    const Runtime__V1__ListContainersRequest *request =
        (const Runtime__V1__ListContainersRequest *)unpack(
            call, &runtime__v1__list_containers_request__descriptor, &arena);
    const Runtime__V1__ContainerFilter *f = request ? request->filter : NULL;
    bool empty = f && !*f->id && !f->state && !*f->pod_sandbox_id && f->n_label_selector == 0 &&
                 f->base.n_unknown_fields == 0;

    message_arena_fini(&arena);
    return empty;
}

/* Whether a list of sandboxes is one of all; kubelets before 1.36 send no filter, later ones one
 * without a field. */
static bool is_of_all(const struct session_call *call)
{
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    const Runtime__V1__ListPodSandboxRequest *request =
        (const Runtime__V1__ListPodSandboxRequest *)unpack(
            call, &runtime__v1__list_pod_sandbox_request__descriptor, &arena);
    const Runtime__V1__PodSandboxFilter *f = request ? request->filter : NULL;
    bool all =
        request &&
        (!f || (!*f->id && !f->state && f->n_label_selector == 0 && f->base.n_unknown_fields == 0));

    message_arena_fini(&arena);
    return all;
}

/* Observed. */
static void sandboxes_requested(struct relists *r, struct watched *w, struct session_call *call)
{
    if (!is_of_all(call))
        return;
    if (!w->kubelet)
        stranger_listed(r, w, call->method);
    else if (!relist_new(r, w->session, call, w->pid))
        log_error("%s of the kubelet is not looked at: out of memory",
                  cri_method_name(call->method));
}

/* Observed; or held by a process before this one, which took its client for a kubelet. */
static void stranger_requested(struct relists *r, struct watched *w, struct session *session,
                               struct session_call *call)
{
    if (has_empty_filter(call))
        stranger_listed(r, w, call->method);
    if (session_waits(call))
        let_pass(session, call);
}

/* Intercepted. */
static void containers_requested(struct relists *r, struct watched *w, struct session *session,
                                 struct session_call *call, uint64_t deadline_ms)
{
    struct relist *l = NULL;

    if (w && !r->gate->armed(r->gate_user, w->pid))
        process_changed(r, w->pid);
    else if (w && has_empty_filter(call))
        l = relist_new(r, session, call, w->pid);
    if (!l) {
        let_pass(session, call);
        return;
    }
    if (r->draining) {
        refuse(r, l);
        return;
    }
    l->held = r->gate->hold(r->gate_user, l->pid, deadline_ms, l->hold);
    if (!l->held)
        let_pass(session, call);
}

/* The first call of a kubelet's life names no version. */
static void version_requested(struct relists *r, struct watched *w, const struct session_call *call)
{
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    const Runtime__V1__VersionRequest *request = (const Runtime__V1__VersionRequest *)unpack(
        call, &runtime__v1__version_request__descriptor, &arena);
    bool first = request && !*request->version, fresh;

    message_arena_fini(&arena);
    if (!first)
        return;
    if (!w->kubelet) {
        w->announced = true;
        watched_set_classes(r, w);
        return;
    }
    fresh = r->gate->announced(r->gate_user, w->pid);
    process_changed(r, w->pid);
    if (fresh)
        r->ops->started(r->user);
}

void relists_request(struct relists *r, struct session *session, struct session_call *call,
                     uint64_t deadline_ms)
{
    struct watched *w = watched_find(r, session);

    if (w && call->method == CRI_VERSION)
        version_requested(r, w, call);
    else if (w && is_of_sandboxes(call->method))
        sandboxes_requested(r, w, call);
    else if (w && !w->kubelet)
        stranger_requested(r, w, session, call);
    else if (session_waits(call)) /* or it has passed, as a stranger's in an earlier process */
        containers_requested(r, w, session, call, deadline_ms);
}

static void sandboxes_listed(struct relists *r, const struct relist *l)
{
    struct watched *w = watched_find(r, l->session);

    if (!w || w->listed)
        return;
    w->listed = true;
    watched_set_classes(r, w);
    r->ops->listed(r->user);
}

/* A failed one tells the kubelet nothing: it asks again. */
void relists_answered(struct relists *r, struct session_call *call, int status)
{
    struct relist *l = call->user;

    if (!l || l->held || status != RPC_OK)
        return;
    if (is_of_sandboxes(call->method)) {
        sandboxes_listed(r, l);
        return;
    }
    r->gate->answered(r->gate_user, l->pid);
    process_changed(r, l->pid);
}

void relists_ended(struct relists *r, struct session_call *call)
{
    struct relist *l = call->user;

    if (!l)
        return;
    if (l->held)
        r->gate->cancelled(r->gate_user, l->hold);
    relist_free(r, l);
}

void relists_released(struct relists *r, uint64_t hold)
{
    struct relist *l;

    HASH_FIND(hh, r->relists, &hold, sizeof hold, l);
    if (!l || !l->held)
        return;
    l->held = false;
    let_pass(l->session, l->call);
}

void relists_drain(struct relists *r)
{
    struct relist *l, *next;

    r->draining = true;
    HASH_ITER(hh, r->relists, l, next) {
        if (!l->held)
            continue;
        r->gate->cancelled(r->gate_user, l->hold);
        refuse(r, l);
    }
}
