/*
 * What the bridge serves the kubelet for one resource: its socket in the sub-directory, with the
 * device plugin service on it (service.h), the list's stream (list_stream.h), and its enrolment
 * (enrolment.h).
 */
#ifndef SHIM_BRIDGE_ENDPOINT_H
#define SHIM_BRIDGE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/bridge/feed_client.h"
#include "shim/bridge/offer.h"
#include "shim/bridge/registration.h"
#include "shim/fd_store.h"

struct endpoint;

/* What all resources have in common; borrowed by each until its end. */
struct endpoint_world {
    uv_loop_t *loop;
    const char *kubelet_dir;
    struct registration *registration;
    struct feed_client *feed;
    struct fd_store *store;
    bool leaves; /* endpoint_free() leaves to the next process what the store keeps */
    const uint64_t *preferred_timeout_ms; /* it may change */
    /* What endpoint_report() says may have changed. */
    void (*changed)(void *user);
    void *user;
};

/* NULL: `resource` cannot be the name of one, or the directory's path is too long; said in the
 * log. */
struct endpoint *endpoint_new(const struct endpoint_world *world, const char *resource);

/* Ends stream, connections and calls at once, removes the socket, frees; see also `leaves`. Accepts
 * NULL. */
void endpoint_free(struct endpoint *endpoint);

/* ---- from the feed ---- */

/*
 * What to show from now on, sent if it differs from what the kubelet has. 1: it may differ; 0: not;
 * or the errors of offer_take(). `masked`: the mask has run out, see list_health().
 */
int endpoint_update(struct endpoint *endpoint, const Bridge__V1__Resource *message, bool masked)
    __attribute__((warn_unused_result));
void endpoint_set_masked(struct endpoint *endpoint, bool masked);
/* The daemon's next life has other versions. */
void endpoint_forget_version(struct endpoint *endpoint);

/* Borrowed. */
const struct offer *endpoint_offer(const struct endpoint *endpoint);

/* ---- from the kubelet's directory ---- */

/* Sees to it that the socket is there; may be called at any time. */
void endpoint_listen(struct endpoint *endpoint);

/* The kubelet can be registered with: one that is new to it, or the same after a lost
 * connection. */
void endpoint_kubelet_came(struct endpoint *endpoint);
void endpoint_kubelet_went(struct endpoint *endpoint);

/* The kubelet has lost it, and does not know: registers again, unless that is under way. The list's
 * stream stays open beside the next one: a kubelet that works its end off later than the Register
 * forgets whom it has registered then, and takes the devices for healthy when that one goes. */
void endpoint_register_anew(struct endpoint *endpoint);

/* ---- to the daemon ---- */

struct endpoint_report {
    bool registered;
    uint64_t version;
    bool stored;
    bool refused; /* this kubelet has answered Register with an error, not with OK since */
};
void endpoint_report(const struct endpoint *endpoint, struct endpoint_report *out);

/* Lists sent since the kubelet was last seen to have stored all of them. */
size_t endpoint_unstored(const struct endpoint *endpoint);
void endpoint_set_stored(struct endpoint *endpoint);

#endif
