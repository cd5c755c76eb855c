/*
 * One resource shown to the kubelet: its socket in the sub-directory, the device plugin service on
 * it, its registration and the list's stream.
 *
 *     WAITING ──▶ REGISTERING ──OK──▶ ACCEPTED ──the stream opens──▶ SERVING
 *        ▲             │                 │                              │
 *        │             └──── failed ─────┴── no stream ──▶ BACKING_OFF ◀┘ the stream ends
 *        └───────────────────── later ────────────────────────┘
 *
 * WAITING waits for a kubelet, a list and the socket; REGISTERING for the kubelet's answer;
 * ACCEPTED for its ListAndWatch, for a while; SERVING for the stream's end; BACKING_OFF for a
 * timer. A kubelet that goes, or another one, brings every state back to WAITING, but for SERVING
 * when it is the same kubelet after all; and that one, if it was at Register, is left in peace in
 * BACKING_OFF before it is asked again.
 */
#ifndef SHIM_BRIDGE_SHOWN_H
#define SHIM_BRIDGE_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/bridge/feed_client.h"
#include "shim/bridge/list.h"
#include "shim/bridge/registration.h"

struct shown;

/* What all resources have in common; borrowed by each until its end. */
struct shown_world {
    uv_loop_t *loop;
    const char *kubelet_dir;
    struct registration *registration;
    struct feed_client *feed;
    uint64_t preferred_timeout_ms;
    /* What shown_report() says may have changed. */
    void (*changed)(void *user);
    void *user;
};

/* NULL: `resource` cannot be the name of one, or the directory's path is too long; said in the log.
 */
struct shown *shown_new(const struct shown_world *world, const char *resource);

/* Ends stream, connections and calls at once, removes the socket, frees. Accepts NULL. */
void shown_free(struct shown *shown);

const char *shown_resource(const struct shown *shown);

/* ---- from the feed ---- */

/*
 * What to show from now on, sent if it differs from what the kubelet has. `list`: another one, of
 * this version, copied; NULL: the same. `masked`: the mask has run out, see list_answer().
 */
void shown_update(struct shown *shown, const Bridge__V1__DeviceList *list, uint64_t version,
                  bool masked);
/* The daemon's next life has other versions. */
void shown_forget_version(struct shown *shown);

/* The list; without bytes before the first. Borrowed until the next. */
const struct packed *shown_list(const struct shown *shown);
uint64_t shown_list_version(const struct shown *shown);

/* ---- from the kubelet's directory ---- */

/* Sees to it that the socket is there; may be called at any time. */
void shown_listen(struct shown *shown);

/* The kubelet can be registered with: one that is new to it, or the same after a lost connection.
 */
void shown_kubelet_came(struct shown *shown);
void shown_kubelet_went(struct shown *shown);

/* The kubelet has lost it, and does not know: ends the list's stream and registers again, unless
 * that is under way. */
void shown_register_anew(struct shown *shown);

/* ---- to the daemon ---- */

struct shown_report {
    bool registered;
    uint64_t version;
    bool stored;
    bool refused; /* this kubelet has answered Register with an error, not with OK since */
};
void shown_report(const struct shown *shown, struct shown_report *out);

/* Lists sent since the kubelet was last seen to have stored all of them. */
size_t shown_unstored(const struct shown *shown);
void shown_set_stored(struct shown *shown);

#endif
