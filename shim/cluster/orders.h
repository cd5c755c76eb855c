/*
 * What is to be done at the API server, until it is: kept here, carried out by the agent, tried
 * again by a timer of ours.
 *
 *     DUE ──sent──▶ SENT ──done, or refused for good──▶ gone
 *      ▲              │
 *      └───time── LATER ◀── not now, or refused what is wanted for ever
 *
 * DUE waits for an agent, SENT for its answer, LATER for the back-off. One that was sent to an
 * agent that is gone is DUE for the next.
 */
#ifndef SHIM_CLUSTER_ORDERS_H
#define SHIM_CLUSTER_ORDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "cri-proto/agent_v1.pb-c.h"

struct cluster_order;

/* How it ended; once, from cluster_orders_answered(). `answer` is borrowed until return. */
typedef void cluster_order_done(void *user, const Agent__V1__AnswerRequest *answer);

/* Embedded in its owner; private. */
struct cluster_orders {
    TAILQ_HEAD(, cluster_order) all;
    size_t len;
    uint64_t last_id;
    uv_timer_t timer;
    void (*due)(void *user);
    void *user;
};

/* `due` is called, from the loop, when some are to be sent: cluster_orders_fill() has them. */
void cluster_orders_init(struct cluster_orders *orders, uv_loop_t *loop, void (*due)(void *user),
                         void *user);
/* Forgets all without a word; `closed` runs from the loop when it is done with. */
void cluster_orders_fini(struct cluster_orders *orders, uv_close_cb closed);

/* `what` is copied, but its id, which is given. `for_ever`: also what is refused is tried again. 0:
 * there are too many. */
uint64_t cluster_orders_add(struct cluster_orders *orders, const Agent__V1__Order *what,
                            bool for_ever, cluster_order_done *done, void *user);
/* It is another one from now on, which the agent has not: its new id. 0: an agent has it, or it is
 * none. What was waited before it is tried again is waited still, but not for minutes
 * (CLUSTER_BACK_MS): why it was refused may be what is another now. */
uint64_t cluster_orders_change(struct cluster_orders *orders, uint64_t id,
                               const Agent__V1__Order *what);
/* Nobody waits for it any more. True: an agent has it, and is to be told. */
bool cluster_orders_cancel(struct cluster_orders *orders, uint64_t id);

/* Those that are due, as many as fit one message (CLUSTER_BATCH_BYTES_MAX), `max` at most, from now
 * on as SENT; borrowed until something else is called. How many; 0: none. */
size_t cluster_orders_fill(struct cluster_orders *orders, Agent__V1__Order **out, size_t max);

/* False: nobody waits for such an answer. */
bool cluster_orders_answered(struct cluster_orders *orders, const Agent__V1__AnswerRequest *answer);

/* Whether one of that kind was refused, and is tried on. */
bool cluster_orders_refused(const struct cluster_orders *orders, Agent__V1__Order__WhatCase what);

struct cluster_trouble {
    const char *words; /* the agent's, of the last try */
    uint64_t since_ms; /* the first that failed; boot_now_ms() */
    bool refused;      /* one of its tries was */
};
/* Why one is not done yet; borrowed until something else is called. False: it is none, or nothing
 * was said of it. */
bool cluster_orders_trouble(const struct cluster_orders *orders, uint64_t id,
                            struct cluster_trouble *out) __attribute__((warn_unused_result));

/* The agent is another one, or gone: what it had is to be sent again, and what was refused, too:
 * the next may have other credentials. `due` is called, also if there are none. */
void cluster_orders_lost(struct cluster_orders *orders);

/* The API server answers, which it did not: what was not refused is tried again soon
 * (CLUSTER_BACK_MS). */
void cluster_orders_reached(struct cluster_orders *orders);

/* How long `tries` failures make the next one wait, without chance. */
uint64_t cluster_orders_wait_ms(unsigned tries);

#endif
