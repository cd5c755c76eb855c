/*
 * The kubelet's ListAndWatch of one resource: what was sent on it, and when the next list may be.
 *
 * A list is sent only if the kubelet does not have it: each costs it a write of its whole
 * checkpoint, with an fsync. One at a time: while the last one is not taken yet, or was sent just
 * now, only the newest waits; so does one for which there is no memory.
 */
#ifndef SHIM_BRIDGE_LIST_STREAM_H
#define SHIM_BRIDGE_LIST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "shim/bridge/kept_call.h"
#include "shim/bridge/offer.h"
#include "shim/file_identity.h"

struct list_stream {
    struct kept_call *call; /* NULL: it is not open */
    uint64_t version;       /* of the list that the kubelet has; 0: none */
    size_t unstored;        /* lists that the kubelet has perhaps not stored yet */
    bool stored;            /* the last one is */

    /* private */
    const char *resource;
    const struct offer *offer;
    void (*changed)(void *user);
    void *user;
    uv_timer_t timer; /* a list waits */
    struct {
        uint8_t *health; /* NULL: nothing was sent */
        size_t len;
        uint64_t devices, seen; /* of the offer: its devices, and its health */
        uint64_t at_ms;         /* the loop's time */
    } sent;
    bool resumed; /* what was sent last is not known to be what is offered */
    bool told_large, told_too_large;
};

/* `resource` (for the log), `offer` and `user` are borrowed until the end. `changed`: `version` or
 * `unstored` may be another one; may run inside list_stream_update(). */
void list_stream_init(struct list_stream *stream, uv_loop_t *loop, const char *resource,
                      const struct offer *offer, void (*changed)(void *user), void *user);

/* What the next process is to know of it: kept_call_note(). */
struct list_note {
    struct file_identity kubelet; /* its socket, when it opened the stream */
    bool stored;                  /* the last list on it */
    bool left;                    /* it was left open beside a newer one */
};
_Static_assert(sizeof(struct list_note) <= KEPT_NOTE_BYTES, "it is a note");

/* The kubelet has opened it; it has none. `call` is borrowed until list_stream_clear(). `resumed`:
 * to a process before this one, and it has the list that was sent last, which is not followed by
 * another until it is known that there is one. */
void list_stream_open(struct list_stream *stream, struct kept_call *call, bool resumed);

/* What is known of it; before it is opened anew, and when that changes. */
struct list_note list_stream_noted(const struct kept_call *call);
void list_stream_note(struct kept_call *call, const struct list_note *note);

/* Sends what is offered if the kubelet does not have it, now or soon. */
void list_stream_update(struct list_stream *stream);

/* The daemon's next life has other versions. */
void list_stream_forget_version(struct list_stream *stream);

/* The kubelet was seen to have stored all lists of all its streams. */
void list_stream_set_stored(struct list_stream *stream);

/* It is not open any more; the call itself is the owner's matter. */
void list_stream_clear(struct list_stream *stream);

/* list_stream_clear(), and closes the timer: `closed` gets it, whose data is `user`. */
void list_stream_fini(struct list_stream *stream, uv_close_cb closed);

#endif
