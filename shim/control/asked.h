/*
 * What clients of the control socket have asked of the device manager (operator.h) and it has not
 * answered yet: one book, and one row of numbers, for all that ends in its port `steered`. How much
 * of that there can be at once is the device manager's to say (STEERS_MAX): it answers what is too
 * much.
 */
#ifndef SHIM_CONTROL_ASKED_H
#define SHIM_CONTROL_ASKED_H

#include <stdint.h>
#include <sys/types.h>

#include <protobuf-c/protobuf-c.h>

#include "devicemgr/ports.h"
#include "shim/events/limits.h"
#include "shim/rpc/rpc.h"

/* One of them. */
struct asked {
    uint64_t number;           /* for the device manager */
    struct rpc_incoming *call; /* NULL: its client has gone */
    uid_t uid;                 /* the client's */
    ProtobufCMessage *request; /* a copy */

    /* private */
    void (*done)(void *user, const struct asked *asked, const struct devicemgr_steered *steered);
    void *user;
    struct asked *prev, *next;
};

/* A zeroed struct is an empty book. */
struct asked_book {
    uint64_t last_number;
    struct asked *first;
};

/*
 * Takes a call down, from inside its handle(); NULL: its request cannot be kept, and it has been
 * ended. `done` comes once, with `user`, when the device manager has answered: it ends asked->call,
 * if the client is still there, and *asked is freed after it. Borrowed until then.
 */
const struct asked *asked_begin(struct asked_book *book, struct rpc_incoming *call,
                                const ProtobufCMessage *request,
                                void (*done)(void *user, const struct asked *asked,
                                             const struct devicemgr_steered *steered),
                                void *user);
/* As much as an event has. */
#define ASKED_BY_BYTES_MAX (EVENTS_TEXT_BYTES_MAX + 1)
/* Who asks, and why ("": he does not say), as events have it; cut if it does not fit. */
void asked_by(const struct asked *asked, const char *reason, char out[static ASKED_BY_BYTES_MAX]);
/* The port of the device manager: `number` is in the book. */
void asked_done(struct asked_book *book, uint64_t number, const struct devicemgr_steered *steered);
/* Frees them all; the calls are over. */
void asked_fini(struct asked_book *book);

#endif
