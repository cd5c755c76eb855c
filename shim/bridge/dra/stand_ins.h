/*
 * The DRA drivers at the kubelet (stand_in.h), as the daemon says by the feed which there are.
 *
 * A daemon that has just started does not know yet which of them serve. One that was shown is shown
 * on until it says so, or until STAND_INS_SETTLE_MS are over; while there is no daemon all are,
 * also by a process that goes on with them.
 *
 * One that has registered with the kubelet itself is withdrawn once the kubelet has had the time to
 * take that one, and it has answered what it was asked: the kubelet tries what failed again only
 * after more than a minute. Of two it asks the newest. Its streams of health end at once: with a
 * stream the kubelet forgets what it knows of the driver's devices, whoever has said it. What a
 * process that was killed meanwhile has left of that is the next one's to do.
 */
#ifndef SHIM_BRIDGE_DRA_STAND_INS_H
#define SHIM_BRIDGE_DRA_STAND_INS_H

#include <stdbool.h>

#include <uv.h>

#include "shim/bridge/dra/stand_in.h"
#include "shim/bridge/limits.h"

struct stand_ins;

struct stand_ins_ops {
    /* The daemon has said which there are, and each serves or has had its time to; or that it knows
     * of none. Once for each daemon. */
    void (*told)(void *user);
    /* What stand_ins_registered() says may be another; not from inside a stand_ins_ call. */
    void (*registered)(void *user);
    /* What stand_ins_shown() says is another; also from inside a stand_ins_ call. */
    void (*shown)(void *user);
};

/* `feed_socket`, whose directory is ours, and `registry_dir` are copied; the rest is borrowed until
 * the end. */
struct stand_ins *stand_ins_new(uv_loop_t *loop, struct feed_client *feed, struct fd_store *store,
                                const char *feed_socket, const char *registry_dir,
                                const struct stand_ins_ops *ops, void *user);

/* There is a daemon at the feed, and there is none any more. */
void stand_ins_feed_came(struct stand_ins *stand_ins);
void stand_ins_feed_lost(struct stand_ins *stand_ins);

/* Shows what a process before has shown and left to this one, until a daemon says. Before there is
 * one. */
void stand_ins_restore(struct stand_ins *stand_ins, Bridge__V1__Driver *const *drivers, size_t len);
/* Those that the next process is to show; borrowed until the loop goes on. How many. */
size_t stand_ins_shown(const struct stand_ins *stand_ins,
                       Bridge__V1__Driver *drivers[static STAND_INS_MAX]);

/* The names of those that the kubelet has registered, as was looked a second ago; borrowed until
 * the loop goes on. How many. */
size_t stand_ins_registered(const struct stand_ins *stand_ins, char *names[static STAND_INS_MAX]);

/* Before the feed's end. `leaves`: what the store keeps is left to the next process. */
void stand_ins_free(struct stand_ins *stand_ins, bool leaves);

#endif
