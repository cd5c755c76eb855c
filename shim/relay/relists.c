#include "shim/relay/relists.h"

#include <stdbool.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "shim/log.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

#define STOPPING "ListContainers: cri-device-shim stops; ask again"

/* A connection of a process that is watched. */
struct watched {
    struct session *session; /* key */
    pid_t pid;
    UT_hash_handle hh;
};

/* A list with the empty filter, from its request to its end; session_call.user. */
struct relist {
    uint64_t hold; /* key */
    struct session *session;
    struct session_call *call;
    pid_t pid;
    bool held;
    UT_hash_handle hh;
};

struct relists {
    struct gate *gate;
    struct watched *sessions;
    struct relist *relists;
    uint64_t hold_last;
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

void relists_bind(struct relists *r, struct gate *gate)
{
    r->gate = gate;
}

/* ---- connections ---- */

static struct watched *watched_find(struct relists *r, const struct session *session)
{
    struct watched *w;

    HASH_FIND_PTR(r->sessions, &session, w);
    return w;
}

static void watched_set_class(const struct relists *r, const struct watched *w)
{
    session_set_class(w->session, CRI_LIST_CONTAINERS,
                      gate_armed(r->gate, w->pid) ? CRI_CLASS_INTERCEPTED : CRI_CLASS_RELAYED);
}

/* The process may have been armed or disarmed, which all its connections must know. */
static void process_changed(struct relists *r, pid_t pid)
{
    struct watched *w, *next;

    HASH_ITER(hh, r->sessions, w, next)
    {
        if (w->pid == pid)
            watched_set_class(r, w);
    }
}

void relists_session_begun(struct relists *r, struct session *session, pid_t pid)
{
    struct watched *w;

    if (!r->gate || pid <= 0 || !gate_watches(r->gate, pid))
        return;
    w = calloc(1, sizeof *w);
    if (w) {
        w->session = session;
        w->pid = pid;
        HASH_ADD_PTR(r->sessions, session, w);
    }
    if (!w || !w->hh.tbl) {
        log_error("gate: a connection of process %d is not watched: out of memory", (int)pid);
        free(w);
        return;
    }
    session_set_class(session, CRI_VERSION, CRI_CLASS_OBSERVED);
    watched_set_class(r, w);
}

void relists_session_gone(struct relists *r, struct session *session)
{
    struct watched *w = watched_find(r, session);

    if (!w)
        return;
    HASH_DEL(r->sessions, w);
    free(w);
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

    relist_free(r, l);
    session_refuse(session, call, RPC_UNAVAILABLE, STOPPING);
}

/* Whether the request has a filter without a field: the relist's form, 0a 00. A field beside it may
 * come with a later version of the API; one inside it, known or not, filters. */
static bool has_empty_filter(const struct session_call *call)
{
    struct message_arena arena = {0};
    int code;
    const Runtime__V1__ListContainersRequest *request =
        (const Runtime__V1__ListContainersRequest *)message_unpack(
            &runtime__v1__list_containers_request__descriptor, call->message, call->message_bytes,
            &arena, &code);
    const Runtime__V1__ContainerFilter *f = request ? request->filter : NULL;
    bool empty = f && !*f->id && !f->state && !*f->pod_sandbox_id && f->n_label_selector == 0 &&
                 f->base.n_unknown_fields == 0;

    message_arena_fini(&arena);
    return empty;
}

static void list_requested(struct relists *r, struct session *session, struct session_call *call,
                           uint64_t deadline_ms)
{
    const struct watched *w = watched_find(r, session);
    struct relist *l = NULL;

    if (w && !gate_armed(r->gate, w->pid))
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
    l->held = gate_hold(r->gate, l->pid, deadline_ms, l->hold);
    if (!l->held)
        let_pass(session, call);
}

/* The first call of a kubelet's life names no version. */
static void version_requested(struct relists *r, const struct session *session,
                              const struct session_call *call)
{
    const struct watched *w = watched_find(r, session);
    struct message_arena arena = {0};
    int code;
    const Runtime__V1__VersionRequest *request =
        (const Runtime__V1__VersionRequest *)message_unpack(
            &runtime__v1__version_request__descriptor, call->message, call->message_bytes, &arena,
            &code);
    bool first = request && !*request->version;

    message_arena_fini(&arena);
    if (!w || !first)
        return;
    gate_announced(r->gate, w->pid);
    process_changed(r, w->pid);
}

void relists_request(struct relists *r, struct session *session, struct session_call *call,
                     uint64_t deadline_ms)
{
    if (call->method == CRI_VERSION)
        version_requested(r, session, call);
    else
        list_requested(r, session, call, deadline_ms);
}

/* A failed one tells the kubelet nothing: it asks again. */
void relists_answered(struct relists *r, struct session_call *call, int status)
{
    struct relist *l = call->user;

    if (!l || l->held || status != RPC_OK)
        return;
    gate_answered(r->gate, l->pid);
    process_changed(r, l->pid);
}

void relists_ended(struct relists *r, struct session_call *call)
{
    struct relist *l = call->user;

    if (!l)
        return;
    if (l->held)
        gate_cancelled(r->gate, l->hold);
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
    HASH_ITER(hh, r->relists, l, next)
    {
        if (!l->held)
            continue;
        gate_cancelled(r->gate, l->hold);
        refuse(r, l);
    }
}
