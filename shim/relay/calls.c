#include "shim/relay/calls.h"

#include <stdbool.h>
#include <stdlib.h>

#include "shim/boot_clock.h"
#include "shim/relay/observed_calls.h"
#include "shim/relay/pending_creates.h"
#include "shim/relay/relists.h"
#include "shim/relay/sandbox_runs.h"

struct calls {
    struct host *host;
    struct relists *relists;
    struct pending_creates *creates;
    struct sandbox_runs *runs;
};

struct calls *calls_new(void)
{
    struct calls *calls = calloc(1, sizeof *calls);

    if (!calls)
        return NULL;
    calls->relists = relists_new();
    calls->creates = pending_creates_new();
    calls->runs = sandbox_runs_new();
    if (calls->relists && calls->creates && calls->runs)
        return calls;
    calls_free(calls);
    return NULL;
}

void calls_bind(struct calls *calls, struct host *host)
{
    calls->host = host;
    pending_creates_bind(calls->creates, host);
    sandbox_runs_bind(calls->runs, host);
}

static void on_kubelet_started(void *user)
{
    struct calls *calls = user;

    devicemgr_kubelet_started(host_core(calls->host), boot_now_ms());
    host_kick(calls->host);
}

static void on_kubelet_listed(void *user)
{
    struct calls *calls = user;

    devicemgr_kubelet_listed(host_core(calls->host), boot_now_ms());
    host_kick(calls->host);
}

static const struct relists_ops RELISTS_OPS = {.started = on_kubelet_started,
                                               .listed = on_kubelet_listed};

void calls_bind_gate(struct calls *calls, const struct relists_gate *gate, void *user)
{
    relists_bind(calls->relists, gate, user, &RELISTS_OPS, calls);
}

void calls_set_redirect(struct calls *calls, const char *from, const char *to)
{
    *pending_creates_mounts(calls->creates) =
        (struct plugin_mounts){.from = from, .to = to, .whose = "device plugin"};
}

void calls_set_driver_redirect(struct calls *calls, const char *from, const char *to,
                               const char *const *pods, size_t pods_len)
{
    *pending_creates_driver_mounts(calls->creates) = (struct plugin_mounts){.from = from,
                                                                            .to = to,
                                                                            .whose = "DRA driver",
                                                                            .named_only = true,
                                                                            .pods = pods,
                                                                            .pods_len = pods_len};
}

const struct create_counts *calls_create_counts(const struct calls *calls)
{
    return pending_creates_counts(calls->creates);
}

void calls_free(struct calls *calls)
{
    if (!calls)
        return;
    relists_free(calls->relists);
    pending_creates_free(calls->creates);
    sandbox_runs_free(calls->runs);
    free(calls);
}

static uint64_t deadline_of(const struct session_call *call)
{
    return call->timeout_ms == UINT64_MAX ? UINT64_MAX : boot_now_ms() + call->timeout_ms;
}

/* ---- the session's events ---- */

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

static void on_begun(void *owner, struct session *session, pid_t client)
{
    struct calls *calls = owner;

    sandbox_runs_session_begun(calls->runs, session);
    relists_session_begun(calls->relists, session, client);
}

static void on_gone(void *owner, struct session *session)
{
    struct calls *calls = owner;

    sandbox_runs_session_gone(calls->runs, session);
    relists_session_gone(calls->relists, session);
}

static void on_request(void *owner, struct session *session, struct session_call *call)
{
    struct calls *calls = owner;

    if (is_relist(call))
        relists_request(calls->relists, session, call, deadline_of(call));
    else if (call->method == CRI_CREATE_CONTAINER)
        pending_creates_request(calls->creates, session, call, deadline_of(call));
    else if (call->method == CRI_RUN_POD_SANDBOX)
        sandbox_runs_request(calls->runs, session, call);
    else if (host_ready(calls->host))
        observed_calls_request(calls->host, call);
}

static void on_answered(void *owner, struct session_call *call, int status, const uint8_t *message,
                        size_t message_bytes)
{
    struct calls *calls = owner;

    if (is_relist(call))
        relists_answered(calls->relists, call, status);
    else if (call->method == CRI_CREATE_CONTAINER)
        pending_creates_answered(calls->creates, call, status, message, message_bytes);
    else
        observed_calls_answered(calls->host, call, status, message, message_bytes);
}

static void on_ended(void *owner, struct session_call *call)
{
    struct calls *calls = owner;

    if (is_relist(call))
        relists_ended(calls->relists, call);
    else if (call->method == CRI_CREATE_CONTAINER)
        pending_creates_ended(calls->creates, call);
    else
        observed_calls_ended(calls->host, call);
}

/* An answer that came before this process did is in the runtime's list. */
static void on_regained(void *owner, struct session *session, struct session_call *call)
{
    struct calls *calls = owner;

    (void)session;
    if (call->method == CRI_CREATE_CONTAINER)
        pending_creates_regained(calls->creates, call);
    else if (!is_relist(call) && call->message && host_ready(calls->host))
        observed_calls_request(calls->host, call);
}

static const struct session_owner_ops OWNER_OPS = {.begun = on_begun,
                                                   .gone = on_gone,
                                                   .request = on_request,
                                                   .answered = on_answered,
                                                   .ended = on_ended,
                                                   .regained = on_regained};

struct session_owner calls_owner(struct calls *calls)
{
    return (struct session_owner){.ops = &OWNER_OPS, .user = calls};
}

/* ---- all else ---- */

void calls_drain(struct calls *calls)
{
    relists_drain(calls->relists);
    pending_creates_drain(calls->creates);
    devicemgr_drain(host_core(calls->host), boot_now_ms());
    host_kick(calls->host);
}

void calls_gate_released(struct calls *calls, uint64_t hold)
{
    relists_released(calls->relists, hold);
}

void calls_known(struct calls *calls)
{
    pending_creates_known(calls->creates);
}

void calls_look(struct calls *calls)
{
    sandbox_runs_look(calls->runs);
}

void calls_runtime_back(struct calls *calls)
{
    host_list_runtime(calls->host);
}

void calls_verdict(struct calls *calls, uint64_t create, const struct devicemgr_verdict *verdict)
{
    pending_creates_verdict(calls->creates, create, verdict);
}
