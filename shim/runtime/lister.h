/*
 * The runtime's own view: which pods and containers there are, and whether one container runs.
 *
 * One connection to the runtime, kept: it tells when the runtime restarts, and then everything is
 * listed again. A runtime that is away is asked with a growing pause until it answers.
 */
#ifndef SHIM_RUNTIME_LISTER_H
#define SHIM_RUNTIME_LISTER_H

#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "devicemgr/devicemgr.h"

/* Pause before the runtime is tried again: doubled from the first to the last. */
#define LISTER_RETRY_MS_MIN 100
#define LISTER_RETRY_MS_MAX 3000
/* Deadline of one list. The kubelet gives the runtime 2 min; the runtime answers from memory. */
#define LISTER_CALL_MS_MAX 30000
/* Checks that wait for the connection or the answer. */
#define LISTER_CHECKS_MAX 1024

struct lister;

enum lister_finding {
    LISTER_UNKNOWN, /* the runtime did not answer */
    LISTER_GONE,    /* no such container */
    LISTER_STOPPED, /* it is there, and does not run */
    LISTER_RUNNING, /* created or running */
};

struct lister_ops {
    /* A list is being asked for: what changes from now on may or may not be in it. A list that
     * fails is begun again. */
    void (*begins)(void *user);
    /* The whole list; borrowed until return. */
    void (*listed)(void *user, const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                   const struct devicemgr_container *containers, size_t containers_len);
    /* The end of lister_check(). */
    void (*checked)(void *user, uint64_t check, enum lister_finding finding);
};

/* Starts to connect and to list. `endpoint` (a plain path), `ops` and `user` are borrowed until
 * lister_stop(). Everything comes from the loop. */
struct lister *lister_start(uv_loop_t *loop, const char *endpoint, const struct lister_ops *ops,
                            void *user);

/* Lists again, also if a list is under way, which may have missed what the caller knows of. */
void lister_refresh(struct lister *lister);

/* Asks about one container; ends in checked() in any case. `check` is the caller's number. */
void lister_check(struct lister *lister, uint64_t check, const char *container_id);

/* Ends without further callbacks, frees, then runs `done` from the loop. */
void lister_stop(struct lister *lister, void (*done)(void *user), void *user);

#endif
