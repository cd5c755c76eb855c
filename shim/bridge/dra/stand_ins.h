/*
 * The DRA drivers at the kubelet (stand_in.h), as the daemon says by the feed which there are.
 *
 * A daemon that has just started does not know yet which of them serve. One that was shown is shown
 * on until it says so, or until STAND_INS_SETTLE_MS are over; while there is no daemon all are.
 */
#ifndef SHIM_BRIDGE_DRA_STAND_INS_H
#define SHIM_BRIDGE_DRA_STAND_INS_H

#include <stdbool.h>

#include <uv.h>

#include "shim/bridge/dra/stand_in.h"

struct stand_ins;

struct stand_ins_ops {
    /* The daemon has said which there are, and each serves or has had its time to; or that it knows of
     * none. Once for each daemon. */
    void (*told)(void *user);
};

/* `feed_socket`, whose directory is ours, and `registry_dir` are copied; the rest is borrowed until the
 * end. */
struct stand_ins *stand_ins_new(uv_loop_t *loop, struct feed_client *feed, struct fd_store *store,
                                const char *feed_socket, const char *registry_dir,
                                const struct stand_ins_ops *ops, void *user);

/* There is a daemon at the feed, and there is none any more. */
void stand_ins_feed_came(struct stand_ins *stand_ins);
void stand_ins_feed_lost(struct stand_ins *stand_ins);

/* Before the feed's end. `leaves`: what the store keeps is left to the next process. */
void stand_ins_free(struct stand_ins *stand_ins, bool leaves);

#endif
