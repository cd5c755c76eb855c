/*
 * The kubelet's NodePrepareResources and NodeUnprepareResources, as the bridge passes them on: each
 * claim is a question to the core, and the call is answered when all of them are.
 */
#ifndef SHIM_KUBELET_CLAIM_QUESTIONS_H
#define SHIM_KUBELET_CLAIM_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "devicemgr/dra.h"
#include "shim/core/host.h"
#include "shim/rpc/rpc.h"

/* Claims asked for at once, of all calls: as many as the core takes (devicemgr/things/limits.h,
 * CLAIM_REQUESTS_MAX), and a bridge's most in one call, so that it is the core that refuses what is
 * beyond, and can say why. Their answers are bounded by the server's queues. */
#define CLAIMS_OPEN_MAX (4096 + 256)

struct claim_question;

/* Embedded in its owner; private. */
struct claim_questions {
    struct host *host;
    LIST_HEAD(, claims_call) calls;
    struct claim_question *by_number;
    uint64_t last_number;
};

/* `host` is borrowed until claim_questions_fini(). */
void claim_questions_init(struct claim_questions *questions, struct host *host);
/* A call of BRIDGE_PREPARE_CLAIMS, or of BRIDGE_UNPREPARE_CLAIMS; answered from host_kick(). */
void claim_questions_ask(struct claim_questions *questions, struct rpc_incoming *call, bool prepare,
                         const Bridge__V1__ClaimsRequest *request);
/* The core's answer (host_ops.claim_done); does nothing for one that nobody waits for. */
void claim_questions_answer(struct claim_questions *questions, uint64_t number,
                            const struct devicemgr_claim_done *done);
/* The server must be closed: the calls are gone. */
void claim_questions_fini(struct claim_questions *questions);

#endif
