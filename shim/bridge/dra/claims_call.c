#include "shim/bridge/dra/claims_call.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/must.h"

struct claims_call {
    LIST_ENTRY(claims_call) entry;
    struct claims_calls *calls;
    struct kept_call *call; /* the kubelet's */
    bool prepare;
    Bridge__V1__ClaimsRequest *request;
    struct rpc_call *asked; /* NULL: it waits for a daemon */
    uint64_t begun_ms;      /* the loop's time */
};

static void call_free(struct claims_call *one)
{
    LIST_REMOVE(one, entry);
    rpc_call_cancel(one->asked);
    bridge__v1__claims_request__free_unpacked(one->request, NULL);
    free(one);
}

static void on_cancelled(void *user)
{
    call_free(user);
}

static void fail(struct claims_call *one, int code, const char *text)
{
    kept_call_finish(one->call, code, text);
    call_free(one);
}

/* ---- the answer, with an entry for each claim ---- */

/* Never empty, which tells the kubelet of a success: a driver may fail without a word. */
static const char *error_of(const Bridge__V1__ClaimAnswer *answer)
{
    if (answer->code == RPC_OK)
        return "the answer is garbled";
    return answer->message[0] ? answer->message : rpc_code_name(answer->code);
}

static void answer_prepared(const struct claims_call *one,
                            const Bridge__V1__ClaimsResponse *response)
{
    Dra__V1__NodePrepareResourcesResponse out = DRA__V1__NODE_PREPARE_RESOURCES_RESPONSE__INIT;
    Dra__V1__NodePrepareResourcesResponse__ClaimsEntry *entries;
    size_t len = response->n_answers;

    entries = must(calloc(len + 1, sizeof *entries));
    out.claims = must(calloc(len + 1, sizeof *out.claims));
    for (size_t i = 0; i < len; i++) {
        const Bridge__V1__ClaimAnswer *answer = response->answers[i];
        Dra__V1__NodePrepareResourceResponse *value = NULL;

        if (answer->code == RPC_OK)
            value = dra__v1__node_prepare_resource_response__unpack(NULL, answer->response.len,
                                                                    answer->response.data);
        if (!value) {
            value = must(malloc(sizeof *value));
            dra__v1__node_prepare_resource_response__init(value);
            value->error = must(strdup(error_of(answer)));
        }
        dra__v1__node_prepare_resources_response__claims_entry__init(&entries[i]);
        entries[i].key = one->request->claims[i]->uid;
        entries[i].value = value;
        out.claims[out.n_claims++] = &entries[i];
    }
    kept_call_answer(one->call, &out.base);
    for (size_t i = 0; i < len; i++)
        dra__v1__node_prepare_resource_response__free_unpacked(entries[i].value, NULL);
    free(out.claims);
    free(entries);
}

static void answer_unprepared(const struct claims_call *one,
                              const Bridge__V1__ClaimsResponse *response)
{
    Dra__V1__NodeUnprepareResourcesResponse out = DRA__V1__NODE_UNPREPARE_RESOURCES_RESPONSE__INIT;
    Dra__V1__NodeUnprepareResourcesResponse__ClaimsEntry *entries;
    Dra__V1__NodeUnprepareResourceResponse *values;
    size_t len = response->n_answers;

    entries = must(calloc(len + 1, sizeof *entries));
    values = must(calloc(len + 1, sizeof *values));
    out.claims = must(calloc(len + 1, sizeof *out.claims));
    for (size_t i = 0; i < len; i++) {
        dra__v1__node_unprepare_resource_response__init(&values[i]);
        if (response->answers[i]->code != RPC_OK)
            values[i].error = (char *)error_of(response->answers[i]);
        dra__v1__node_unprepare_resources_response__claims_entry__init(&entries[i]);
        entries[i].key = one->request->claims[i]->uid;
        entries[i].value = &values[i];
        out.claims[out.n_claims++] = &entries[i];
    }
    kept_call_answer(one->call, &out.base);
    free(out.claims);
    free(values);
    free(entries);
}

/* ---- asking ---- */

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__ClaimsResponse *response = (const Bridge__V1__ClaimsResponse *)message;
    struct claims_call *one = user;

    (void)call;
    if (response->n_answers != one->request->n_claims)
        return; /* done() ends it */
    if (one->prepare)
        answer_prepared(one, response);
    else
        answer_unprepared(one, response);
    one->call = NULL;
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct claims_call *one = user;

    (void)call;
    one->asked = NULL;
    if (!one->call) {
        call_free(one);
    } else if (status->code == RPC_UNAVAILABLE) {
        log_debug("driver %s: a call waits for the daemon: %s", one->calls->driver,
                  status->message);
    } else if (status->code == RPC_OK) {
        fail(one, RPC_INTERNAL, "cri-device-shim answered otherwise than it was asked");
    } else {
        fail(one, status->code, status->message);
    }
}

static void ask(struct claims_call *one)
{
    static const struct rpc_call_ops ops = {on_message, on_done};
    uint64_t gone_ms = uv_now(one->calls->loop) - one->begun_ms;

    one->asked = feed_client_call(
        one->calls->feed, one->prepare ? BRIDGE_PREPARE_CLAIMS : BRIDGE_UNPREPARE_CLAIMS,
        &one->request->base, &bridge__v1__claims_response__descriptor, false,
        gone_ms < CLAIMS_TIMEOUT_MS ? CLAIMS_TIMEOUT_MS - gone_ms : 1, &ops, one);
}

static Bridge__V1__ClaimsRequest *request_of(const char *driver, Dra__V1__Claim *const *claims,
                                             size_t len)
{
    Bridge__V1__ClaimsRequest *request = must(malloc(sizeof *request));

    bridge__v1__claims_request__init(request);
    request->driver = must(strdup(driver));
    request->claims = must(calloc(len + 1, sizeof *request->claims));
    for (size_t i = 0; i < len; i++) {
        Bridge__V1__Claim *claim = request->claims[request->n_claims++] =
            must(malloc(sizeof *claim));

        bridge__v1__claim__init(claim);
        claim->namespace_ = must(strdup(claims[i]->namespace_));
        claim->uid = must(strdup(claims[i]->uid));
        claim->name = must(strdup(claims[i]->name));
    }
    return request;
}

/* Those that wait are asked for in the order in which they came: a claim's unprepare never before
 * its prepare. */
static void append(struct claims_call_list *list, struct claims_call *one)
{
    struct claims_call *last = LIST_FIRST(list);

    if (!last) {
        LIST_INSERT_HEAD(list, one, entry);
        return;
    }
    while (LIST_NEXT(last, entry))
        last = LIST_NEXT(last, entry);
    LIST_INSERT_AFTER(last, one, entry);
}

void claims_call_start(struct claims_calls *calls, bool prepare, Dra__V1__Claim *const *claims,
                       size_t claims_len, struct kept_call *call)
{
    struct claims_call *one;

    if (claims_len > CLAIMS_MAX) {
        kept_call_finish(call, RPC_RESOURCE_EXHAUSTED, "too many claims in one request");
        return;
    }
    one = must(calloc(1, sizeof *one));
    one->calls = calls;
    one->call = call;
    one->prepare = prepare;
    one->request = request_of(calls->driver, claims, claims_len);
    one->begun_ms = uv_now(calls->loop);
    append(&calls->list, one);
    kept_call_on_cancel(call, on_cancelled, one);
    ask(one);
}

void claims_calls_look(struct claims_calls *calls)
{
    struct claims_call *one, *next;

    for (one = LIST_FIRST(&calls->list); one; one = next) {
        next = LIST_NEXT(one, entry);
        if (!one->asked && uv_now(calls->loop) - one->begun_ms >= CLAIMS_WAIT_MS)
            fail(one, RPC_UNAVAILABLE, "cri-device-shim is not running on this node");
        else if (!one->asked)
            ask(one);
    }
}

void claims_calls_clear(struct claims_calls *calls)
{
    while (!LIST_EMPTY(&calls->list))
        call_free(LIST_FIRST(&calls->list));
}
