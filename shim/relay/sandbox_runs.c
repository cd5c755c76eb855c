#include "shim/relay/sandbox_runs.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1 /* no memory: hh.tbl is NULL */
#include <uthash.h>

#include "devicemgr/endings.h"
#include "shim/log.h"
#include "shim/relay/observed_calls.h"
#include "shim/rpc/rpc.h"

struct session_entry {
    struct session *session;
    UT_hash_handle hh;
};

struct sandbox_runs {
    struct host *host;
    struct session_entry *sessions;
    bool looks; /* some pod is ended: calls wait */
};

struct sandbox_runs *sandbox_runs_new(void)
{
    return calloc(1, sizeof(struct sandbox_runs));
}

void sandbox_runs_free(struct sandbox_runs *runs)
{
    free(runs);
}

void sandbox_runs_bind(struct sandbox_runs *runs, struct host *host)
{
    runs->host = host;
}

static void set_class(const struct sandbox_runs *runs, struct session *session)
{
    session_set_class(session, CRI_RUN_POD_SANDBOX,
                      runs->looks ? CRI_CLASS_INTERCEPTED : CRI_CLASS_OBSERVED);
}

void sandbox_runs_session_begun(struct sandbox_runs *runs, struct session *session)
{
    struct session_entry *entry;

    HASH_FIND_PTR(runs->sessions, &session, entry);
    if (entry) {
        set_class(runs, session);
        return;
    }
    entry = calloc(1, sizeof *entry);
    if (entry) {
        entry->session = session;
        HASH_ADD_PTR(runs->sessions, session, entry);
    }
    if (!entry || !entry->hh.tbl) {
        log_error("new sandboxes on a connection are not looked at: out of memory");
        free(entry);
    }
    set_class(runs, session);
}

void sandbox_runs_session_gone(struct sandbox_runs *runs, struct session *session)
{
    struct session_entry *entry;

    HASH_FIND_PTR(runs->sessions, &session, entry);
    if (!entry)
        return;
    HASH_DEL(runs->sessions, entry);
    free(entry);
}

void sandbox_runs_look(struct sandbox_runs *runs)
{
    bool looks = devicemgr_refuses_sandboxes(host_core(runs->host));

    if (looks == runs->looks)
        return;
    runs->looks = looks;
    for (struct session_entry *e = runs->sessions; e; e = e->hh.next)
        set_class(runs, e->session);
}

/* What cannot be read is the runtime's to refuse. */
void sandbox_runs_request(struct sandbox_runs *runs, struct session *session,
                          struct session_call *call)
{
    struct devicemgr_refusal refusal;

    if (host_ready(runs->host))
        observed_calls_request(runs->host, call);
    if (!session_waits(call))
        return;
    if (call->user &&
        devicemgr_sandbox_refused(host_core(runs->host), observed_calls_pod_uid(call), &refusal)) {
        log_info("RunPodSandbox refused: %s", refusal.words);
        observed_calls_ended(runs->host, call);
        session_refuse(session, call, refusal.code, refusal.words);
    } else if (session_forward(session, call, NULL, 0) < 0) {
        abort(); /* nothing of ours is put in, so that it cannot fail */
    }
}
