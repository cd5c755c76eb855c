/*
 * A relayed connection in the service manager's store: both sockets and the journal, under one
 * name, in one message, so that it has all of them or none.
 */
#ifndef SHIM_RELAY_KEPT_H
#define SHIM_RELAY_KEPT_H

#include <stdbool.h>

#include "shim/fd_store.h"
#include "shim/relay/journal.h"

/* What all such names in the store begin with. */
#define KEPT_RELAYED "relayed/"
#define KEPT_NAME_BYTES_MAX 64

/* In each program that goes on with connections that this one leaves (shim/program.h): moved ones
 * of that format, a session's state of that format in them. One that knows more formats has a text
 * for each. */
extern const char KEPT_READER[];

struct kept {
    struct fd_store *store;
    struct journal *journal; /* NULL: it is not kept */
    bool told;               /* the manager has it, or will read of it */
    bool sure;               /* it has promised to keep it */
    char name[KEPT_NAME_BYTES_MAX];
    int sockets[2]; /* by enum session_end, of one that was handed over */
};

/* The connection of these sockets, borrowed, is kept from now on if there is a manager to do
 * that. */
void kept_init(struct kept *kept, struct fd_store *store, const int sockets[2]);

/* Tells the manager, if it has not read for so long that it could not be told. */
void kept_tell(struct kept *kept, const int sockets[2]);

/*
 * The next one that was handed over and can be gone on with; its sockets are the caller's. False:
 * there is none. Those that cannot are ended, with a line in the log.
 */
bool kept_take(struct kept *kept, struct fd_store *store) __attribute__((warn_unused_result));

/* Ends one that was taken: both sockets are shut down and closed. */
void kept_end(struct kept *kept);

/* The manager is to let go of it, if it has it; the sockets live on as long as they are open
 * elsewhere. */
void kept_forget(struct kept *kept);

/* Frees what it takes here. What the manager has stays there. May be called again. */
void kept_leave(struct kept *kept);

#endif
