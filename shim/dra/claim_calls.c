#include "shim/dra/claim_calls.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "shim/dra/limits.h"
#include "shim/must.h"

/* One call. */
struct claim_entry {
    struct claims_rpc *rpc;
    UT_hash_handle hh; /* while somebody waits for its end */
    bool open;         /* likewise */
    uint64_t number;
    size_t place;
    char *pod_namespace;
    char *name;
    char *uid;
};

enum progress {
    WAITS,
    SENT,
    ENDS,
};

/* What is sent for some of them. */
struct claims_rpc {
    struct claim_calls *set;
    enum progress progress;
    TAILQ_ENTRY(claims_rpc) unsent;
    UT_hash_handle hh; /* once it is sent */
    uint64_t number;
    struct rpc_channel *channel;
    const struct numbered_method *method;
    uint64_t batch;
    uint64_t timeout_ms;
    struct claim_entry *claims[DRIVER_CALL_CLAIMS_MAX]; /* by their places */
    size_t len;
    size_t open; /* of them */
};

/* ---- one call ---- */

static struct claim_entry *entry_find(struct claim_calls *set, uint64_t number)
{
    struct claim_entry *entry;

    HASH_FIND(hh, set->calls, &number, sizeof number, entry);
    return entry;
}

static struct claim_entry *entry_new(struct claims_rpc *rpc, const struct claim_call *call)
{
    struct claim_entry *entry = must(calloc(1, sizeof *entry));

    entry->rpc = rpc;
    entry->open = true;
    entry->number = call->number;
    entry->place = call->place;
    entry->pod_namespace = must(strdup(call->claim.pod_namespace));
    entry->name = must(strdup(call->claim.name));
    entry->uid = must(strdup(call->claim.uid));
    HASH_ADD(hh, rpc->set->calls, number, sizeof entry->number, entry);
    rpc->open++;
    return entry;
}

/* Nobody waits for its end any more. */
static void entry_close(struct claim_entry *entry)
{
    if (!entry->open)
        return;
    entry->open = false;
    HASH_DELETE(hh, entry->rpc->set->calls, entry);
    entry->rpc->open--;
}

static void entry_free(struct claim_entry *entry)
{
    entry_close(entry);
    free(entry->pod_namespace);
    free(entry->name);
    free(entry->uid);
    free(entry);
}

/* ---- what is sent ---- */

static struct claims_rpc *rpc_new(struct claim_calls *set, struct rpc_channel *channel,
                                  const struct numbered_method *method,
                                  const struct claim_call *call)
{
    struct claims_rpc *rpc = must(calloc(1, sizeof *rpc));

    *rpc = (struct claims_rpc){.set = set,
                               .channel = channel,
                               .method = method,
                               .batch = call->batch,
                               .timeout_ms = call->timeout_ms};
    TAILQ_INSERT_TAIL(&set->unsent, rpc, unsent);
    return rpc;
}

static void rpc_free(struct claims_rpc *rpc)
{
    if (rpc->progress == WAITS)
        TAILQ_REMOVE(&rpc->set->unsent, rpc, unsent);
    for (size_t i = 0; i < rpc->len; i++)
        entry_free(rpc->claims[i]);
    free(rpc);
}

static void rpc_add(struct claims_rpc *rpc, const struct claim_call *call)
{
    size_t at = rpc->len++;

    for (; at > 0 && rpc->claims[at - 1]->place > call->place; at--)
        rpc->claims[at] = rpc->claims[at - 1];
    rpc->claims[at] = entry_new(rpc, call);
}

/* One that is not asked for after all. */
static void rpc_remove(struct claims_rpc *rpc, struct claim_entry *entry)
{
    size_t at = 0;

    while (rpc->claims[at] != entry)
        at++;
    rpc->len--;
    memmove(&rpc->claims[at], &rpc->claims[at + 1], (rpc->len - at) * sizeof *rpc->claims);
    entry_free(entry);
}

static bool is_prepare(const struct claims_rpc *rpc)
{
    return rpc->method->response == &dra__v1__node_prepare_resources_response__descriptor;
}

static void start(struct claims_rpc *rpc, const ProtobufCMessage *request)
{
    numbered_calls_start(&rpc->set->rpcs, rpc->channel, rpc->method, rpc->number, NULL, request,
                         rpc->timeout_ms);
}

static void rpc_send(struct claims_rpc *rpc)
{
    Dra__V1__NodePrepareResourcesRequest prepare = DRA__V1__NODE_PREPARE_RESOURCES_REQUEST__INIT;
    Dra__V1__NodeUnprepareResourcesRequest unprepare =
        DRA__V1__NODE_UNPREPARE_RESOURCES_REQUEST__INIT;
    Dra__V1__Claim claims[DRIVER_CALL_CLAIMS_MAX], *pointers[DRIVER_CALL_CLAIMS_MAX];

    for (size_t i = 0; i < rpc->len; i++) {
        dra__v1__claim__init(&claims[i]);
        claims[i].namespace_ = rpc->claims[i]->pod_namespace;
        claims[i].name = rpc->claims[i]->name;
        claims[i].uid = rpc->claims[i]->uid;
        pointers[i] = &claims[i];
    }
    prepare.n_claims = unprepare.n_claims = rpc->len;
    prepare.claims = unprepare.claims = pointers;
    TAILQ_REMOVE(&rpc->set->unsent, rpc, unsent);
    rpc->progress = SENT;
    rpc->number = ++rpc->set->last_rpc;
    HASH_ADD(hh, rpc->set->sent, number, sizeof rpc->number, rpc);
    start(rpc, is_prepare(rpc) ? &prepare.base : &unprepare.base);
}

/* One that ends goes by itself. */
static void rpc_drop(struct claims_rpc *rpc)
{
    if (rpc->progress == ENDS)
        return;
    if (rpc->progress == SENT) {
        HASH_DELETE(hh, rpc->set->sent, rpc);
        numbered_calls_cancel(&rpc->set->rpcs, rpc->number);
    }
    rpc_free(rpc);
}

/* ---- its end ---- */

/* Whether it is one for all of them: `out` is their answer. */
static bool is_failed(const struct claims_rpc *rpc, const struct numbered_end *end,
                      struct driver_answer *out)
{
    const char *uids[DRIVER_CALL_CLAIMS_MAX];
    const struct answer_asked asked = {uids, rpc->len};

    for (size_t i = 0; i < rpc->len; i++)
        uids[i] = rpc->claims[i]->uid;
    if (end->code != RPC_OK) {
        answer_failed(end->code, end->message, out);
        return true;
    }
    return is_prepare(rpc) ? answer_prepared_others((const void *)end->response, &asked, out)
                           : answer_unprepared_others((const void *)end->response, &asked, out);
}

static void tell_own(const struct claims_rpc *rpc, const struct claim_entry *entry,
                     const struct numbered_end *end)
{
    struct driver_answer answer;

    if (is_prepare(rpc))
        answer_prepared((const void *)end->response, entry->uid, &answer);
    else
        answer_unprepared((const void *)end->response, entry->uid, &answer);
    rpc->set->ended(rpc->set->user, entry->number, &answer);
    answer_fini(&answer);
}

/* Who is told may cancel those that come behind. */
static void on_ended(void *user, const struct numbered_end *end)
{
    struct claim_calls *set = user;
    struct driver_answer failure;
    struct claims_rpc *rpc;
    bool failed;

    HASH_FIND(hh, set->sent, &end->number, sizeof end->number, rpc);
    HASH_DELETE(hh, set->sent, rpc);
    rpc->progress = ENDS;
    failed = is_failed(rpc, end, &failure);
    for (size_t i = 0; i < rpc->len; i++) {
        struct claim_entry *entry = rpc->claims[i];

        if (!entry->open)
            continue;
        entry_close(entry);
        if (failed)
            set->ended(set->user, entry->number, &failure);
        else
            tell_own(rpc, entry, end);
    }
    if (failed)
        answer_fini(&failure);
    rpc_free(rpc);
}

/* ---- all of them ---- */

void claim_calls_init(struct claim_calls *calls, uv_loop_t *loop,
                      void (*ended)(void *user, uint64_t number,
                                    const struct driver_answer *answer),
                      void *user, const char *gone)
{
    *calls = (struct claim_calls){.ended = ended, .user = user};
    TAILQ_INIT(&calls->unsent);
    numbered_calls_init(&calls->rpcs, loop, on_ended, calls, gone);
}

/* One that waits and has room for it. NULL: there is none. */
static struct claims_rpc *find_unsent(const struct claim_calls *calls,
                                      const struct rpc_channel *channel,
                                      const struct numbered_method *method,
                                      const struct claim_call *call)
{
    struct claims_rpc *rpc;

    TAILQ_FOREACH(rpc, &calls->unsent, unsent) {
        if (rpc->batch == call->batch && rpc->channel == channel && rpc->method == method &&
            rpc->timeout_ms == call->timeout_ms && rpc->len < DRIVER_CALL_CLAIMS_MAX)
            break;
    }
    return rpc;
}

void claim_calls_add(struct claim_calls *calls, struct rpc_channel *channel,
                     const struct numbered_method *method, const struct claim_call *call)
{
    struct claims_rpc *rpc = find_unsent(calls, channel, method, call);

    if (!rpc)
        rpc = rpc_new(calls, channel, method, call);
    rpc_add(rpc, call);
    if (call->batch == 0)
        rpc_send(rpc);
}

void claim_calls_send(struct claim_calls *calls)
{
    while (!TAILQ_EMPTY(&calls->unsent))
        rpc_send(TAILQ_FIRST(&calls->unsent));
}

static void cancel(struct claim_entry *entry)
{
    struct claims_rpc *rpc = entry->rpc;

    if (rpc->progress == WAITS)
        rpc_remove(rpc, entry);
    else
        entry_close(entry); /* its uid is known in the answer yet */
    if (rpc->open == 0)
        rpc_drop(rpc);
}

void claim_calls_cancel(struct claim_calls *calls, uint64_t number)
{
    struct claim_entry *entry = entry_find(calls, number);

    if (entry)
        cancel(entry);
}

void claim_calls_cancel_all(struct claim_calls *calls, const struct rpc_channel *channel)
{
    struct claim_entry *entry, *next;

    HASH_ITER(hh, calls->calls, entry, next) {
        if (entry->rpc->channel == channel)
            cancel(entry);
    }
}

void claim_calls_stop(struct claim_calls *calls, void (*done)(void *user), void *user)
{
    struct claim_entry *entry, *next;

    HASH_ITER(hh, calls->calls, entry, next) {
        cancel(entry);
    }
    numbered_calls_stop(&calls->rpcs, done, user);
}
