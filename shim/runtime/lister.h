/*
 * The runtime's own view: which pods and containers there are, and whether one container runs.
 *
 * One connection to the runtime, kept: it tells when the runtime restarts, and then everything is
 * listed again. A runtime that is away is asked with a growing pause until it answers.
 *
 * What happens to containers without a call through the shim (they exit, or another client of the
 * runtime makes and removes them) is told by GetContainerEvents where the runtime has it and tells
 * all who listen (event_sharing.h), which is known before the first list. An event that ends a
 * container counts as it is; one that may mean a container the core has not heard of leads to a
 * list. The stream is opened before each list, so nothing falls between them; one that ends is
 * asked for again with the next list, unless the runtime does not know the method. Of a runtime
 * that goes away it is ended, so that the connection ends, and another is made.
 */
#ifndef SHIM_RUNTIME_LISTER_H
#define SHIM_RUNTIME_LISTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "devicemgr/devicemgr.h"
#include "shim/runtime/identity.h"

/* Pause before the runtime is tried again: doubled from the first to the last. */
#define LISTER_RETRY_MS_MIN 100
#define LISTER_RETRY_MS_MAX 3000
/* Deadline of one list. The kubelet gives the runtime 2 min; the runtime answers from memory. */
#define LISTER_CALL_MS_MAX 30000
/* Of both lists, as they are kept (listed_bytes()). One that does not fit into a message (pods'
 * annotations may have 256 KiB each) comes as a stream, where the runtime has that: kubelets with
 * CRIListStreaming get it so, too. */
#define LISTER_LIST_BYTES_MAX (128u * 1024 * 1024)
/* Between two lists of a runtime without events, or without any for us. A tenth of the load that
 * the kubelet's own relist, every second, is to it; and soon enough, since no device is refused or
 * given away on old news: the holder is asked about first (lister_check()). */
#define LISTER_POLL_MS 10000
/* The same with events: what the kubelet's evented relist takes, in case one was lost. */
#define LISTER_EVENTED_MS 300000
/* Events are collected for so long before the list they lead to: a pod's start sends several. */
#define LISTER_SETTLE_MS 1000
/* Checks that wait for the connection or the answer. */
#define LISTER_CHECKS_MAX 1024

struct lister;

enum lister_finding {
    LISTER_UNKNOWN, /* it was not asked, or did not answer */
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
    /* The container runs no more, and never will again: it exited or was removed. */
    void (*ended)(void *user, const char *container_id);
    /* What it makes of CDI devices, by what it says on each connection. */
    void (*cdi)(void *user, enum devicemgr_cdi cdi);
    /* Its connection is gone, or could not be made: what cdi() said was of the runtime that was
     * there. */
    void (*lost)(void *user);
    /* The end of lister_check(). */
    void (*checked)(void *user, uint64_t check, enum lister_finding finding);
};

/* How often, in ms: see LISTER_POLL_MS and those that follow it. */
struct lister_pace {
    uint64_t poll_ms;
    uint64_t evented_ms;
    uint64_t settle_ms;
};
extern const struct lister_pace LISTER_PACE;

/* Starts to connect and to list. `endpoint` (a plain path), `pace`, `ops` and `user` are borrowed
 * until lister_stop(). Everything comes from the loop. */
struct lister *lister_start(uv_loop_t *loop, const char *endpoint, const struct lister_pace *pace,
                            const struct lister_ops *ops, void *user);

/* Lists again, also if a list is under way, which may have missed what the caller knows of. */
void lister_refresh(struct lister *lister);

/* Asks about one container; ends in checked() in any case. `check` is the caller's number. */
void lister_check(struct lister *lister, uint64_t check, const char *container_id);

#define LISTER_FAILING_BYTES_MAX 256

struct lister_state {
    bool connected;
    uint64_t since_ms; /* that it is, or is not: boot_now_ms() */
    /* As the runtime says of itself, printable; empty: it has not said yet on this connection. */
    char name[IDENTITY_NAME_BYTES_MAX];
    char version[IDENTITY_NAME_BYTES_MAX];
    /* Of one that is connected: why its lists have failed since then; empty: they come. */
    char failing[LISTER_FAILING_BYTES_MAX];
    uint64_t failing_ms;
};
/* A copy. */
void lister_look(const struct lister *lister, struct lister_state *out);

/* Ends without further callbacks, frees, then runs `done` from the loop. */
void lister_stop(struct lister *lister, void (*done)(void *user), void *user);

#endif
