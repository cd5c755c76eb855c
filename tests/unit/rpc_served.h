/*
 * A server of ours for the gRPC tests. Its methods take a RegisterRequest and
 * do as they are called: /test/Answer sends one message and ends OK,
 * /test/Twice two, /test/None none; /test/Refuse ends FAILED_PRECONDITION with
 * SERVED_REFUSAL; /test/Take leaves the call to the test.
 */
#ifndef TESTS_UNIT_RPC_SERVED_H
#define TESTS_UNIT_RPC_SERVED_H

#include <sys/socket.h>

#include "shim/rpc/rpc.h"
#include "tests/unit/rpc_fixture.h"

#define SERVED_REFUSAL "no 100% \xc3\xa4\n"

struct served {
    struct rpc_server *server;
    struct rpc_incoming *call; /* the last one; NULL once cancelled */
    unsigned calls;
    bool called;
    bool cancelled;
    char resource[64];
    struct ucred peer;
    bool close_in_handle; /* set by the test */
    bool close_in_cancelled;
};

/* Serves at the world's path; *served is made anew. */
void served_open(struct served *served, struct world *world);
/* May come twice. */
void served_close(struct served *served);

#endif
