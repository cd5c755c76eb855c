/*
 * A lock of logind's, which is a descriptor: as long as any copy of it is open, anywhere, the lock
 * is held. One copy is the service manager's (shim/fd_store.h), so that it outlives this process:
 * during a shutdown logind gives no new ones.
 */
#ifndef SHIM_AGENT_DELAY_LOCK_H
#define SHIM_AGENT_DELAY_LOCK_H

#include <stdbool.h>

#include "shim/fd_store.h"

struct delay_lock {
    /* private */
    struct fd_store *store;
    int fd;                                                     /* -1: not held */
    enum { KEEPS_NONE, KEEPS_THIS, KEEPS_ANOTHER } the_manager; /* and is to keep what we hold */
};

/* With the one that was handed over, if there is one. `store` is borrowed until the end. */
void delay_lock_init(struct delay_lock *lock, struct fd_store *store);
/* The manager keeps its copy. */
void delay_lock_fini(struct delay_lock *lock);

bool delay_lock_held(const struct delay_lock *lock);

/* `fd` is the lock's from now on, while none is held. */
void delay_lock_take(struct delay_lock *lock, int fd);
/* Lets go of it. */
void delay_lock_release(struct delay_lock *lock);

/* False: the service manager did not take what it was told, and is to be told again by
 * delay_lock_tell(). */
bool delay_lock_told(const struct delay_lock *lock);
void delay_lock_tell(struct delay_lock *lock);

#endif
