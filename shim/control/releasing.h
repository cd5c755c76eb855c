/*
 * Pods whose devices an operator takes from them, through the control socket.
 */
#ifndef SHIM_CONTROL_RELEASING_H
#define SHIM_CONTROL_RELEASING_H

#include <stdbool.h>

#include "cri-proto/control_v1.pb-c.h"
#include "shim/core/host.h"
#include "shim/rpc/rpc.h"

struct releasing;

/* `host` is borrowed until releasing_free(). */
struct releasing *releasing_new(struct host *host);
/* Ends the call when that is durable, or refused; a dry run when that is known. Its client may go: it is
 * done all the same. */
void releasing_call(struct releasing *releasing, struct rpc_incoming *call,
                    const Control__V1__ReleaseRequest *request);
/* The port of the core. False: the number is not one of these. */
bool releasing_done(struct releasing *releasing, uint64_t number,
                    const struct devicemgr_steered *steered);
/* The calls are over. */
void releasing_free(struct releasing *releasing);

#endif
