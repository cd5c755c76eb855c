/*
 * What the runtime at the other end of a connection is: its name and version, and what it makes of
 * CDI devices (cdi_support.h).
 */
#ifndef SHIM_RUNTIME_IDENTITY_H
#define SHIM_RUNTIME_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/dra.h"
#include "shim/rpc/rpc.h"

/* Longest name and version that are kept. */
#define IDENTITY_NAME_BYTES_MAX 128

/* For embedding; zeroed but for `known`, `cdi` and `user` it knows nothing. */
struct identity {
    /* Its name, or that it does not say: once each time it is asked. */
    void (*known)(void *user);
    /* What it makes of CDI devices, once for each connection on which it says so; and that it does
     * not, where it has listed there. */
    void (*cdi)(void *user, enum devicemgr_cdi cdi);
    void *user;
    struct rpc_channel *channel;
    uint64_t timeout_ms; /* of each call */
    bool asked;          /* on this connection, as the next two */
    bool listed;         /* anything, so it makes containers; the owner's to set */
    bool told;           /* cdi() */
    /* Printable; empty: it has not said yet on this connection. */
    char name[IDENTITY_NAME_BYTES_MAX];
    char version[IDENTITY_NAME_BYTES_MAX];
};

/* Asks, unless it has said on this connection, or is being asked; borrows the channel until
 * identity_forget(). One that did not answer is asked again by the next call of this, which comes
 * behind each list, also behind one that failed. */
void identity_ask(struct identity *identity, struct rpc_channel *channel, uint64_t timeout_ms);
/* The connection is over, and the calls on it. */
void identity_forget(struct identity *identity);

#endif
