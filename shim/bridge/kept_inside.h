/*
 * What kept_connection.c and kept_call.c have in common: a connection, and the calls on it.
 */
#ifndef SHIM_BRIDGE_KEPT_INSIDE_H
#define SHIM_BRIDGE_KEPT_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/bridge/h2_state.h"
#include "shim/bridge/kept_connection.h"

struct kept_call {
    struct kept_connection *connection;
    uint32_t id; /* of the stream that its place has; 0: none that was asked */
    bool held;   /* by who answers */
    void (*cancelled)(void *user);
    void *user;
};

struct kept_connection {
    const struct kept_service *service;
    LIST_ENTRY(kept_connection) entry;
    LIST_ENTRY(kept_connection) of_all; /* of the process */
    size_t held_bytes;                  /* its part of KEPT_HELD_BYTES_MAX */
    struct kept_socket *kept;
    struct h2_reader reader;
    uv_poll_t poll;
    uint64_t idle_since_ms; /* the last call's end, or its beginning; the loop's time */
    bool resumed, ended;
    bool told; /* the manager has it, or will read of it, or never keeps it */
    struct ucred peer;
    struct kept_call calls[H2_STREAMS_MAX];
    bool large[H2_STREAMS_MAX]; /* what its place has taken is worth giving back */
};

static inline const struct h2_state *kept_state_of(const struct kept_connection *connection)
{
    return kept_socket_state(connection->kept);
}

/* ---- the calls' ---- */

/* Asks for an answer to each request that has come and was not asked about. Any of them may end the
 * connection. */
void kept_calls_ask(struct kept_connection *connection);
/* Those whose streams are over: ended by us, or by the client, which who answers is told. */
void kept_calls_forget(struct kept_connection *connection);
/* Gives back what large requests have taken whose streams are over; how many bytes the others
 * hold. */
size_t kept_calls_hold(struct kept_connection *connection);
/* Whether there is a call, if only the beginning of one. */
bool kept_calls_any(const struct kept_connection *connection);
/* Those of a process before this have taken such places, too. */
void kept_calls_resume(struct kept_connection *connection);
/* Ends all of them: who answers is told. */
void kept_calls_cancel(struct kept_connection *connection);

/* ---- the connection's ---- */

/* There is something to be written: a call's answer, or a part of it. */
void kept_connection_answered(struct kept_connection *connection);
/* A call has ended: from now on it may be idle. */
void kept_connection_used(struct kept_connection *connection);

#endif
