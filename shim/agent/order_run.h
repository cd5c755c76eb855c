/*
 * An order that is being carried out: what the files of the kinds of orders share.
 */
#ifndef SHIM_AGENT_ORDER_RUN_H
#define SHIM_AGENT_ORDER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <jansson.h>
#include <uv.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "shim/agent/answer.h"
#include "shim/agent/api_client.h"
#include "shim/agent/limits.h"
#include "shim/agent/query.h"
#include "shim/agent/served.h"
#include "shim/agent/spam.h"

struct run {
    struct orders *orders;
    TAILQ_ENTRY(run) entry;
    Agent__V1__Order *order;
    bool begun;
    struct api_request *request;     /* NULL: none is under way */
    struct answer answer;            /* the one under way */
    bool too_large;                  /* that is, and it is not read */
    const char *version;             /* that is asked for, of resource.k8s.io */
    char event[SPAM_NAME_BYTES_MAX]; /* the one that is being made */
    struct publishing *publishing;   /* order_publish.c's; NULL: it is no such order */
};

struct orders {
    struct api_client *client;
    struct served *served;
    const char *node;
    void (*answer)(void *user, const Agent__V1__AnswerRequest *answer);
    void *user;
    TAILQ_HEAD(, run) runs;
    size_t runs_len, begun_len;
    uint64_t done[ORDERS_DONE_MAX]; /* a ring of those that were done; 0: none */
    size_t done_next;
    struct spam spam;
    uv_timer_t timer; /* begins what is to be begun */
};

/* ---- its end, after which the run is gone; never from inside orders_take() ---- */

void run_end(struct run *run, Agent__V1__Outcome outcome, const char *words,
             uint64_t retry_after_ms);
/* By an answer that has more; its id is filled in. Borrowed until return. */
void run_end_by(struct run *run, Agent__V1__AnswerRequest *answer);
/* By what did not work. */
void run_fail(struct run *run, const struct api_result *result);

/* ---- its requests, one after the other ---- */

/* `ops` are told of the run. */
void run_ask(struct run *run, const char *method, const struct query *query, const char *type,
             const char *body, const struct api_ops *ops);
/* Likewise with `body` as text, which is taken: unless there is none (NULL; what it is made of is
 * no UTF-8), or the path is none; the run has ended then, the former with the words `no_text`. */
void run_ask_json(struct run *run, const char *method, const struct query *query, const char *type,
                  json_t *body, const char *no_text, const struct api_ops *ops);
/* An api_ops's body, for those who read the answer. */
bool run_body(void *user, const char *bytes, size_t len);
/* Whether that path is none; the run has ended then. */
bool run_too_long(struct run *run, const struct query *query);

/* In which version the server has such objects, from now on run->version. NULL: in none, as far as
 * is known; the run has ended then, with `none` if the server has said so. */
const char *run_version(struct run *run, enum served_kind kind, Agent__V1__Outcome none);

/* ---- how each kind begins ---- */

void run_set_capacity(struct run *run);
void run_wipe_slices(struct run *run);
void run_get_claim(struct run *run);
void run_tell(struct run *run);
void run_evict_pod(struct run *run);
void run_publish_pool(struct run *run);
/* Its own; accepts NULL. */
void publishing_free(struct publishing *publishing);

#endif
