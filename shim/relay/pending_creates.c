#include "shim/relay/pending_creates.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "devicemgr/dra.h"
#include "shim/boot_clock.h"
#include "shim/deaths.h"
#include "shim/log.h"
#include "shim/point.h"
#include "shim/relay/buffer.h"
#include "shim/relay/create_changes.h"
#include "shim/relay/create_container.h"
#include "shim/relay/refusals.h"
#include "shim/rpc/rpc.h"

/* So many crashes at a create are enough. */
#define FATAL_TIMES 3

/* One under way; session_call.user. */
struct pending_create {
    struct session *session;
    struct session_call *call;
    uint64_t create;    /* its number, and key of the table */
    uint64_t container; /* refusals_key() */
    char *pod;          /* "namespace/name"; NULL: not known */
    char *name;         /* the container's; the same */
    uint64_t begun_us;
    uint64_t job;   /* deaths.h; held until it is forwarded */
    bool forwarded; /* the device manager waits for the runtime's answer */
    struct create_changes changes;
    bool earlier; /* an earlier process's; of the others nothing is known */
    bool waits;   /* the device manager is not asked yet, until knows_enough() */
    uint64_t deadline_ms;
    UT_hash_handle hh;
};

struct pending_creates {
    struct host *host;
    struct create_counts counts;
    struct refusals *refusals;
    struct plugin_mounts mounts;        /* of device plugins, */
    struct plugin_mounts driver_mounts; /* of DRA drivers */
    struct pending_create *table;       /* by number */
    uint64_t last;
    size_t earlier; /* how many such, */
    size_t waiting; /* and such that wait */
    bool draining;
};

struct pending_creates *pending_creates_new(void)
{
    struct pending_creates *creates = calloc(1, sizeof *creates);

    if (!creates)
        return NULL;
    creates->refusals = refusals_new();
    if (creates->refusals)
        return creates;
    free(creates);
    return NULL;
}

void pending_creates_free(struct pending_creates *creates)
{
    if (!creates)
        return;
    refusals_free(creates->refusals);
    free(creates);
}

void pending_creates_bind(struct pending_creates *creates, struct host *host)
{
    creates->host = host;
}

struct plugin_mounts *pending_creates_mounts(struct pending_creates *creates)
{
    return &creates->mounts;
}

struct plugin_mounts *pending_creates_driver_mounts(struct pending_creates *creates)
{
    return &creates->driver_mounts;
}

static struct devicemgr *core_of(const struct pending_creates *creates)
{
    return host_core(creates->host);
}

/* What becomes of it is the runtime's matter for now. */
static void out_of_danger(struct pending_create *p)
{
    if (!p->forwarded)
        deaths_release(p->job);
    p->forwarded = true;
}

static void pending_free(struct pending_creates *creates, struct pending_create *p)
{
    out_of_danger(p);
    creates->waiting -= p->waits;
    if (p->hh.tbl)
        HASH_DEL(creates->table, p);
    p->call->user = NULL;
    free(p->pod);
    free(p->name);
    free(p);
}

static struct pending_create *pending_new(struct pending_creates *creates, struct session *session,
                                          struct session_call *call, uint64_t job)
{
    struct pending_create *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->session = session;
    p->call = call;
    p->create = ++creates->last;
    p->begun_us = uv_hrtime() / 1000;
    p->job = job;
    deaths_hold(job);
    call->user = p;
    HASH_ADD(hh, creates->table, create, sizeof p->create, p);
    if (p->hh.tbl)
        return p;
    pending_free(creates, p);
    return NULL;
}

/* ---- the request ---- */

static void forward_untouched(struct session *session, struct session_call *call)
{
    if (session_forward(session, call, NULL, 0) < 0)
        session_refuse(session, call, RPC_RESOURCE_EXHAUSTED, "CreateContainer: out of memory");
}

/* Asks the device manager, which borrows `request`; true: the verdict will come for `p`. */
static bool ask(struct pending_creates *creates, struct pending_create *p,
                struct create_container *c, struct devicemgr_create *request)
{
    p->container = refusals_key(request->pod_uid, request->container);
    if (asprintf(&p->pod, "%s/%s", request->pod_namespace, request->pod_name) < 0)
        p->pod = NULL;
    p->name = strdup(request->container);
    p->changes = (struct create_changes){
        .mounts = plugin_mounts_look(&creates->mounts, c, request) ? &creates->mounts : NULL,
        .driver_mounts = plugin_mounts_look(&creates->driver_mounts, c, request)
                             ? &creates->driver_mounts
                             : NULL,
        .cdi = p->changes.cdi,
        .cdi_field_read = host_runtime_cdi(creates->host) == DEVICEMGR_CDI_READ,
    };
    return devicemgr_create(core_of(creates), boot_now_ms(), p->create, request);
}

static void say_repeats(const struct pending_create *p, size_t repeats)
{
    if (repeats > 0)
        log_info("pod %s, container %s: CDI devices that are named twice are passed on once (%zu "
                 "names are left out)",
                 p->pod ? p->pod : "", p->name ? p->name : "", repeats);
}

static void say_renames(const struct pending_create *p, const struct create_changes *changes)
{
    for (size_t i = 0; i < changes->renames_len; i++) {
        const struct devicemgr_rename *is = &changes->renames[i];

        log_info(
            "pod %s, container %s: CDI device %s, which its claim had before, is not passed on "
            "(in its place: %s%s)",
            p->pod ? p->pod : "", p->name ? p->name : "", is->name,
            is->to_len > 0 ? is->to[0] : "none", is->to_len > 1 ? " and others" : "");
    }
}

/* Forwards with what is to be put in front, and with what is to be changed. 0, or what
 * create_changes_make() says; the call is still undecided then. */
static int create_forward(const struct pending_create *p, const struct devicemgr_verdict *verdict,
                          const uint8_t *fragment, size_t bytes)
{
    struct create_changes changes = p->changes;
    struct buffer changed = {0};
    size_t repeats = 0;
    int r;

    changes.renames = verdict->renames;
    changes.renames_len = verdict->renames_len;
    r = create_changes_make(&changes, p->call->message, p->call->message_bytes, verdict->options,
                            &changed, &repeats);
    if (r == 0)
        return session_forward(p->session, p->call, fragment, bytes);
    if (r > 0) {
        say_repeats(p, repeats);
        say_renames(p, &changes);
        r = session_forward_instead(p->session, p->call, fragment, bytes, buffer_data(&changed),
                                    buffer_len(&changed));
    }
    buffer_fini(&changed);
    return r;
}

static const char *forward_error(int r)
{
    if (r == -EBADMSG)
        return "CreateContainer: it names CDI devices that its claims have no more, and cannot be "
               "read";
    return r == -EMSGSIZE ? "CreateContainer: the message is too large with what is changed in it"
                          : "CreateContainer: out of memory";
}

static void refuse(struct pending_creates *creates, struct pending_create *p, int code,
                   const char *message)
{
    struct session *session = p->session;
    struct session_call *call = p->call;

    pending_free(creates, p);
    session_refuse(session, call, code, message);
}

/* It asks for no device of ours. */
static void forward_as_is(struct pending_creates *creates, struct pending_create *p)
{
    static const struct devicemgr_verdict as_is;
    int r = create_forward(p, &as_is, NULL, 0);

    if (r < 0)
        refuse(creates, p, RPC_RESOURCE_EXHAUSTED, forward_error(r));
    else
        pending_free(creates, p);
}

#define UNREAD "CreateContainer: the request takes too much memory to read"

static void refuse_unread(struct session *session, struct session_call *call)
{
    session_refuse(session, call, RPC_RESOURCE_EXHAUSTED, UNREAD);
}

/* Whether it can be decided. */
static bool knows_enough(const struct pending_creates *creates, const struct pending_create *p)
{
    return creates->draining ||
           (host_knows_rows(creates->host) && (!p->changes.cdi || host_knows_cdi(creates->host)));
}

static void ask_or_forward(struct pending_creates *creates, struct pending_create *p,
                           struct create_container *c, struct devicemgr_create *request)
{
    request->deadline_ms = p->deadline_ms;
    if (!ask(creates, p, c, request))
        forward_as_is(creates, p);
    host_kick(creates->host);
}

static void requested(struct pending_creates *creates, struct session *session,
                      struct session_call *call, struct create_container *c, uint64_t job,
                      uint64_t deadline_ms)
{
    struct devicemgr_create request;
    struct pending_create *p;

    create_container_request(c, &request);
    p = pending_new(creates, session, call, job);
    if (!p) {
        refuse_unread(session, call);
        return;
    }
    p->deadline_ms = deadline_ms;
    p->changes.cdi = request.cdi_devices_len > 0;
    p->waits = !knows_enough(creates, p);
    creates->waiting += p->waits;
    if (!p->waits)
        ask_or_forward(creates, p, c, &request);
}

static void decide(struct pending_creates *creates, struct session *session,
                   struct session_call *call, uint64_t job, uint64_t deadline_ms)
{
    struct create_container *c;

    switch (create_container_read(call->message, call->message_bytes, &c)) {
    case RPC_OK:
        requested(creates, session, call, c, job, deadline_ms);
        create_container_free(c);
        break;
    case RPC_INTERNAL: /* no CreateContainerRequest: the runtime says so */
        forward_untouched(session, call);
        break;
    case RPC_INVALID_ARGUMENT: /* the runtime need not say so */
        session_refuse(session, call, RPC_INVALID_ARGUMENT,
                       "CreateContainer: an annotation, a label or a CDI device is malformed");
        break;
    default:
        refuse_unread(session, call);
        break;
    }
}

/* It would be the next one's end, too. Nobody can tell what it asks for. */
static void refuse_fatal(struct session *session, struct session_call *call)
{
    static const char words[] =
        "CreateContainer: cri-device-shim has crashed or hung three times within a minute while it "
        "was deciding this request; it is refused for five minutes: please report it";

    log_error("%s", words);
    session_refuse(session, call, RPC_UNAVAILABLE, words);
}

void pending_creates_request(struct pending_creates *creates, struct session *session,
                             struct session_call *call, uint64_t deadline_ms)
{
    uint64_t job = deaths_digest(call->message, call->message_bytes), before;

    if (deaths_of(job, FATAL_TIMES)) {
        refuse_fatal(session, call);
        return;
    }
    before = deaths_enter(job);
    POINT("begun");
    decide(creates, session, call, job, deadline_ms);
    deaths_enter(before);
}

/* ---- one that has waited ---- */

static void decide_late(struct pending_creates *creates, struct pending_create *p)
{
    uint64_t before = deaths_enter(p->job);
    struct devicemgr_create request;
    struct create_container *c;

    p->waits = false;
    creates->waiting--;
    if (create_container_read(p->call->message, p->call->message_bytes, &c) != RPC_OK) {
        refuse(creates, p, RPC_RESOURCE_EXHAUSTED, UNREAD); /* it could be read before */
    } else {
        create_container_request(c, &request);
        ask_or_forward(creates, p, c, &request);
        create_container_free(c);
    }
    deaths_enter(before);
}

void pending_creates_known(struct pending_creates *creates)
{
    struct pending_create *p = creates->table;

    while (creates->waiting > 0 && p) {
        bool due = p->waits && knows_enough(creates, p);

        if (due)
            decide_late(creates, p); /* which may take others of its session along */
        p = due ? creates->table : p->hh.next;
    }
}

void pending_creates_drain(struct pending_creates *creates)
{
    creates->draining = true;
    pending_creates_known(creates);
}

/* ---- the verdict ---- */

static struct refusals_name name_of(const struct pending_create *p, const char *resource)
{
    return (struct refusals_name){.pod = p->pod, .container = p->name, .resource = resource};
}

const struct create_counts *pending_creates_counts(const struct pending_creates *creates)
{
    return &creates->counts;
}

static void decided(struct pending_creates *creates, struct pending_create *p,
                    const struct devicemgr_verdict *verdict)
{
    struct create_counts *counts = &creates->counts;
    bool forwarded = verdict->code == 0;
    uint64_t create = p->create;
    uint8_t *fragment = NULL;
    size_t bytes = 0;
    int r = 0;

    histogram_add(forwarded ? &counts->forwarded : &counts->refused,
                  uv_hrtime() / 1000 - p->begun_us);
    if (verdict->held_ms > 0)
        histogram_add(forwarded ? &counts->forwarded_held : &counts->refused_held,
                      verdict->held_ms * 1000);
    if (verdict->code != 0) {
        refusals_add(creates->refusals, p->container, name_of(p, verdict->resource), boot_now_ms(),
                     verdict->code, verdict->message);
        refuse(creates, p, verdict->code, verdict->message);
        return;
    }
    refusals_end(creates->refusals, p->container, name_of(p, NULL));
    if (verdict->options)
        r = create_container_fragment(verdict->options, p->call->message, p->call->message_bytes,
                                      &fragment, &bytes);
    if (r == 0)
        r = create_forward(p, verdict, fragment, bytes);
    free(fragment);
    if (r == 0) {
        out_of_danger(p);
        return;
    }
    refuse(creates, p, RPC_RESOURCE_EXHAUSTED, forward_error(r));
    devicemgr_create_answered(core_of(creates), boot_now_ms(), create, NULL);
}

void pending_creates_verdict(struct pending_creates *creates, uint64_t create,
                             const struct devicemgr_verdict *verdict)
{
    struct pending_create *p;
    uint64_t before;

    HASH_FIND(hh, creates->table, &create, sizeof create, p);
    if (!p)
        return;
    before = deaths_enter(p->job);
    decided(creates, p, verdict);
    deaths_enter(before);
}

/* ---- the answer ---- */

/* A success whose container id cannot be read is no refusal: that container may run. */
static void forwarded_answered(struct pending_creates *creates, struct pending_create *p,
                               int status, const uint8_t *message, size_t bytes)
{
    char *id = status == RPC_OK && message ? create_container_id(message, bytes) : NULL;
    uint64_t create = p->create;

    pending_free(creates, p);
    if (create_container_may_be(status) || (status == RPC_OK && !id))
        devicemgr_create_cancelled(core_of(creates), boot_now_ms(), create);
    else
        devicemgr_create_answered(core_of(creates), boot_now_ms(), create, id);
    free(id);
}

/* Also one that we had no part in: it may have named a claim's devices. */
static void tell_refused(struct pending_creates *creates, const struct session_call *call,
                         int status)
{
    if (status == RPC_OK || !call->status_text)
        return;
    devicemgr_create_refused(core_of(creates), boot_now_ms(), call->status_text);
    host_kick(creates->host);
}

void pending_creates_answered(struct pending_creates *creates, struct session_call *call,
                              int status, const uint8_t *message, size_t message_bytes)
{
    struct pending_create *p = call->user;
    uint64_t before;

    tell_refused(creates, call, status);
    if (!p || !p->forwarded)
        return; /* the runtime would not wait for the decision; ended() follows */
    before = deaths_enter(p->job);
    forwarded_answered(creates, p, status, message, message_bytes);
    deaths_enter(before);
    host_kick(creates->host);
}

/* ---- creates of an earlier process ---- */

void pending_creates_regained(struct pending_creates *creates, struct session_call *call)
{
    struct pending_create *p = calloc(1, sizeof *p);

    if (!p) { /* its end would not be known: it lasts as long as the process */
        devicemgr_earlier_creates(core_of(creates), boot_now_ms(), true);
        creates->earlier++;
        return;
    }
    p->call = call;
    p->earlier = true;
    call->user = p;
    if (creates->earlier++ == 0)
        devicemgr_earlier_creates(core_of(creates), boot_now_ms(), true);
}

static void earlier_ended(struct pending_creates *creates, struct pending_create *p)
{
    pending_free(creates, p);
    if (--creates->earlier > 0)
        return;
    devicemgr_earlier_creates(core_of(creates), boot_now_ms(), false);
    host_kick(creates->host);
}

void pending_creates_ended(struct pending_creates *creates, struct session_call *call)
{
    struct pending_create *p = call->user;
    uint64_t create;

    if (!p)
        return;
    if (p->earlier) {
        earlier_ended(creates, p);
        return;
    }
    create = p->create;
    pending_free(creates, p);
    devicemgr_create_cancelled(core_of(creates), boot_now_ms(), create);
    host_kick(creates->host);
}
