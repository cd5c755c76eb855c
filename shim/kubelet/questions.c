#include "shim/kubelet/questions.h"

#include "shim/boot_clock.h"
#include "shim/must.h"

struct question {
    LIST_ENTRY(question) entry;
    struct questions *questions;
    struct rpc_incoming *call;
    uint64_t number;
};

void questions_init(struct questions *questions, struct host *host, uint64_t timeout_ms)
{
    *questions = (struct questions){.host = host, .timeout_ms = timeout_ms};
    LIST_INIT(&questions->open);
}

static void question_free(struct question *question)
{
    LIST_REMOVE(question, entry);
    question->questions->len--;
    free(question);
}

static void on_cancelled(void *user)
{
    struct question *question = user;
    struct host *host = question->questions->host;

    devicemgr_prefer_cancelled(host_core(host), question->number);
    question_free(question);
    host_kick(host);
}

void questions_ask(struct questions *questions, struct rpc_incoming *call,
                   const Bridge__V1__PreferRequest *request)
{
    struct devicemgr_preference asked;
    struct question *question;

    if (request->size < 0) {
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT, "a negative size");
        return;
    }
    if (questions->len >= QUESTIONS_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many questions at once");
        return;
    }
    question = must(calloc(1, sizeof *question));
    question->questions = questions;
    question->call = call;
    question->number = ++questions->last_number;
    LIST_INSERT_HEAD(&questions->open, question, entry);
    questions->len++;
    rpc_incoming_on_cancel(call, on_cancelled, question);
    asked = (struct devicemgr_preference){
        .resource = request->resource,
        .available = (const char *const *)request->available,
        .available_len = request->n_available,
        .must_include = (const char *const *)request->must_include,
        .must_include_len = request->n_must_include,
        .size = (size_t)request->size,
        .timeout_ms = questions->timeout_ms,
    };
    devicemgr_prefer(host_core(questions->host), boot_now_ms(), question->number, &asked);
    host_kick(questions->host);
}

void questions_answer(struct questions *questions, uint64_t number, const char *const *ids,
                      size_t ids_len)
{
    Bridge__V1__PreferResponse response = BRIDGE__V1__PREFER_RESPONSE__INIT;
    struct question *question;

    LIST_FOREACH(question, &questions->open, entry) {
        if (question->number == number)
            break;
    }
    if (!question)
        return;
    response.ids = (char **)ids;
    response.n_ids = ids_len;
    rpc_incoming_answer(question->call, &response.base);
    question_free(question);
}

void questions_fini(struct questions *questions)
{
    while (!LIST_EMPTY(&questions->open)) {
        devicemgr_prefer_cancelled(host_core(questions->host),
                                   LIST_FIRST(&questions->open)->number);
        question_free(LIST_FIRST(&questions->open));
    }
}
