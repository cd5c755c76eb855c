/*
 * Calls on drivers, each about one claim and by its caller's number. Those of one batch are sent as
 * one: a driver that is asked for all claims of a pod together may number what it gives within that
 * call, as it can with a kubelet.
 *
 *     add ──▶ waits for the others of its batch ── send ──▶ sent ──▶ ended, each by itself
 */
#ifndef SHIM_DRA_CLAIM_CALLS_H
#define SHIM_DRA_CLAIM_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "shim/dra/answer.h"
#include "shim/rpc/numbered.h"

struct driver_claim {
    const char *pod_namespace;
    const char *name;
    const char *uid;
};

struct claim_call {
    uint64_t number; /* the caller's, not in use */
    uint64_t batch;  /* 0: it is sent by itself, at once */
    size_t place;    /* in its batch: the driver is asked in this order */
    uint64_t timeout_ms;
    struct driver_claim claim; /* copied */
};

/* Embedded in its owner; private. */
struct claim_calls {
    void (*ended)(void *user, uint64_t number, const struct driver_answer *answer);
    void *user;
    struct numbered_calls rpcs;
    uint64_t last_rpc;
    TAILQ_HEAD(, claims_rpc) unsent;
    struct claims_rpc *sent;   /* a table by number */
    struct claim_entry *calls; /* likewise */
};

/* `ended` runs from the loop, once for each call unless it is cancelled; `answer` is borrowed until
 * return, and any function below may be called from inside. `gone`: the words of one that has no
 * connection; borrowed until it is stopped. */
void claim_calls_init(struct claim_calls *calls, uv_loop_t *loop,
                      void (*ended)(void *user, uint64_t number,
                                    const struct driver_answer *answer),
                      void *user, const char *gone);

/* `channel` as of numbered_calls_start(). `method` is one of NodePrepareResources, or of
 * NodeUnprepareResources; borrowed until the end. */
void claim_calls_add(struct claim_calls *calls, struct rpc_channel *channel,
                     const struct numbered_method *method, const struct claim_call *call);

/* Sends what waits: of each batch as many as were added for the same channel, method and time
 * together, but for what is beyond DRIVER_CALL_CLAIMS_MAX. */
void claim_calls_send(struct claim_calls *calls);

/* The driver is not asked for it if it waits yet; else the others that were sent with it go on.
 * One that is over is ignored. */
void claim_calls_cancel(struct claim_calls *calls, uint64_t number);

/* Those that were added for the channel, which may be closed then. */
void claim_calls_cancel_all(struct claim_calls *calls, const struct rpc_channel *channel);

/* As numbered_calls_stop(). */
void claim_calls_stop(struct claim_calls *calls, void (*done)(void *user), void *user);

#endif
