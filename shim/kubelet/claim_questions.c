#include "shim/kubelet/claim_questions.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "shim/boot_clock.h"
#include "shim/must.h"

/* One claim of a call. */
struct claim_question {
    struct claims_call *call;
    uint64_t number; /* in the table while it is open */
    Bridge__V1__ClaimAnswer answer;
    UT_hash_handle hh;
};

struct claims_call {
    LIST_ENTRY(claims_call) entry;
    struct claim_questions *owner;
    struct rpc_incoming *incoming;
    size_t open; /* not answered */
    char *
        stops; /* why one of them was not by this process, but may be by the next; NULL: all were */
    size_t len;
    struct claim_question parts[];
};

void claim_questions_init(struct claim_questions *questions, struct host *host)
{
    *questions = (struct claim_questions){.host = host};
    LIST_INIT(&questions->calls);
}

static void question_close(struct claim_question *question)
{
    HASH_DEL(question->call->owner->by_number, question);
    question->number = 0;
    question->call->open--;
}

static void call_free(struct claims_call *call)
{
    LIST_REMOVE(call, entry);
    for (size_t i = 0; i < call->len; i++) {
        struct claim_question *question = &call->parts[i];

        if (question->number) {
            devicemgr_claim_cancelled(host_core(call->owner->host), boot_now_ms(),
                                      question->number);
            question_close(question);
        }
        free(question->answer.response.data);
        if (question->answer.code != RPC_OK)
            free(question->answer.message);
    }
    free(call->stops);
    free(call);
}

static void on_cancelled(void *user)
{
    struct claims_call *call = user;
    struct host *host = call->owner->host;

    call_free(call);
    host_kick(host);
}

/* A kubelet that is refused a claim asks again after a minute or more: of what only this process
 * refuses it is not to hear. What it may have done for the call is done for whoever asks next. */
static void leave_to_the_next(struct claims_call *call)
{
    rpc_incoming_finish(call->incoming, RPC_UNAVAILABLE, call->stops);
    call_free(call);
}

static void answer(struct claims_call *call)
{
    Bridge__V1__ClaimsResponse response = BRIDGE__V1__CLAIMS_RESPONSE__INIT;

    if (call->stops) {
        leave_to_the_next(call);
        return;
    }
    response.answers = must(calloc(call->len + 1, sizeof *response.answers));
    for (size_t i = 0; i < call->len; i++)
        response.answers[response.n_answers++] = &call->parts[i].answer;
    rpc_incoming_answer(call->incoming, &response.base);
    free(response.answers);
    call_free(call);
}

void claim_questions_answer(struct claim_questions *questions, uint64_t number,
                            const struct devicemgr_claim_done *done)
{
    struct claim_question *question;

    HASH_FIND(hh, questions->by_number, &number, sizeof number, question);
    if (!question)
        return;
    if (done->stops && !question->call->stops)
        question->call->stops = must(strdup(done->message));
    question->answer.code = done->code;
    if (done->code != RPC_OK) {
        question->answer.message = must(strdup(done->message));
    } else if (done->response_bytes > 0) {
        question->answer.response.data = must(malloc(done->response_bytes));
        question->answer.response.len = done->response_bytes;
        memcpy(question->answer.response.data, done->response, done->response_bytes);
    }
    question_close(question);
    if (question->call->open == 0)
        answer(question->call);
}

static void ask(struct claims_call *call, size_t i, bool prepare,
                const Bridge__V1__ClaimsRequest *request)
{
    struct claim_questions *questions = call->owner;
    struct claim_question *question = &call->parts[i];
    const struct devicemgr_claim claim = {.pod_namespace = request->claims[i]->namespace_,
                                          .name = request->claims[i]->name,
                                          .uid = request->claims[i]->uid};
    struct devicemgr_batch batch;

    question->call = call;
    question->number = ++questions->last_number;
    batch = (struct devicemgr_batch){.number = call->parts[0].number, .place = i};
    bridge__v1__claim_answer__init(&question->answer);
    HASH_ADD(hh, questions->by_number, number, sizeof question->number, question);
    if (prepare)
        devicemgr_claim_prepare(host_core(questions->host), boot_now_ms(), question->number, batch,
                                request->driver, &claim);
    else
        devicemgr_claim_unprepare(host_core(questions->host), boot_now_ms(), question->number,
                                  batch, request->driver, &claim);
}

void claim_questions_ask(struct claim_questions *questions, struct rpc_incoming *incoming,
                         bool prepare, const Bridge__V1__ClaimsRequest *request)
{
    size_t len = request->n_claims;
    struct claims_call *call;

    if (HASH_COUNT(questions->by_number) + len > CLAIMS_OPEN_MAX) {
        rpc_incoming_finish(incoming, RPC_RESOURCE_EXHAUSTED, "too many claims at once");
        return;
    }
    call = must(calloc(1, sizeof *call + len * sizeof *call->parts));
    call->owner = questions;
    call->incoming = incoming;
    call->len = call->open = len;
    LIST_INSERT_HEAD(&questions->calls, call, entry);
    if (len == 0) {
        answer(call);
        return;
    }
    rpc_incoming_on_cancel(incoming, on_cancelled, call);
    for (size_t i = 0; i < len; i++)
        ask(call, i, prepare, request);
    host_kick(questions->host);
}

void claim_questions_fini(struct claim_questions *questions)
{
    while (!LIST_EMPTY(&questions->calls))
        call_free(LIST_FIRST(&questions->calls));
}
