/*
 * The resources of the feed, each with its endpoint: which there are, for how long those stay that
 * a new daemon does not know (yet), and when the mask of each runs out.
 */
#ifndef SHIM_BRIDGE_ROSTER_H
#define SHIM_BRIDGE_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/bridge/endpoint.h"

struct roster_row {
    char *resource;
    struct endpoint *endpoint; /* NULL: it cannot be shown */
    uint64_t mask_end_ms;
    uint64_t lost; /* of the feed's */
    bool named;    /* in the message that is being read */
    /* Since when the daemon, a new one, does not know it, CLOCK_BOOTTIME; 0: it does. It may have
     * lost its state, and the plugin is about to register anew: shown for as long as the mask. */
    uint64_t unknown_ms;
};

/* To read only. */
struct roster {
    struct roster_row *rows; /* in the order of names, except while a message is being read */
    size_t len;
    uint64_t mask_ms;
    uint64_t lost_ms; /* since when the feed is lost, CLOCK_BOOTTIME; 0: it is not */

    /* private */
    const struct endpoint_world *world;
    void (*changed)(void *user);
    void *user;
    uv_timer_t mask_timer;
};

/* Empty. `world` and `user` are borrowed until the end. `changed`: one is shown no more. */
void roster_init(struct roster *roster, const struct endpoint_world *world,
                 void (*changed)(void *user), void *user);
/* Ends all endpoints. `closed` gets the timer, whose data is `user`. */
void roster_fini(struct roster *roster, uv_close_cb closed);

/* A message of the feed. `first`: of a daemon that may be another one than before. 1: the kubelet
 * is perhaps to be shown something else; 0: not; or a negative errno: not all of it could be
 * taken. */
int roster_take(struct roster *roster, const Bridge__V1__WatchResponse *message, bool first)
    __attribute__((warn_unused_result));

/* There is no daemon since then, CLOCK_BOOTTIME: masks count from there. Versions are another
 * daemon's. */
void roster_feed_lost(struct roster *roster, uint64_t since_ms);
/* There is one; a message follows. */
void roster_feed_found(struct roster *roster);

/* For all that can be shown. */
void roster_each(const struct roster *roster, void (*each)(struct endpoint *endpoint));

#endif
