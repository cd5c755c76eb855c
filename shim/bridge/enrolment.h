/*
 * The enrolment of one resource with the kubelet: Register, until the kubelet has opened the list's
 * stream, and again once that has ended. The stream itself is the owner's, who tells of it.
 *
 *     WAITING ──all there──▶ ASKING ───────────OK──────────▶ ACCEPTED ─stream opens─┐
 *        ▲                    │  │                               │                  ▼
 *        │                    │  └─stream opens─▶ OPENED ──any answer──────────▶ SERVING
 *        │                    │             stream │  ▲ another   │                  │
 *        │                    │               ends ▼  │ opens     │                  │
 *        │                 an error              FORFEIT       none comes        stream ends
 *        │                    │                     │ any answer │                  │
 *        │                    ▼                     ▼            ▼                  ▼
 *        └────── later ── BACKING_OFF ◀─────────────┴────────────┴──────────────────┘
 *
 * WAITING waits for a kubelet, a list and the socket. ASKING waits for the kubelet's answer, during
 * which its stream may open, OPENED, and end, FORFEIT. ACCEPTED waits for its ListAndWatch, for a
 * while; SERVING for the stream's end; BACKING_OFF for a timer. From WAITING and BACKING_OFF a
 * stream that opens leads to SERVING, too. A kubelet that goes, or another one, brings every state
 * back to WAITING, from where SERVING follows at once if it is the same kubelet after all, with the
 * same stream; and that one, if it was at Register, is left in peace in BACKING_OFF before it is
 * asked again.
 */
#ifndef SHIM_BRIDGE_ENROLMENT_H
#define SHIM_BRIDGE_ENROLMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "shim/bridge/registration.h"

enum enrolment_state {
    ENROLMENT_WAITING,
    ENROLMENT_ASKING,
    ENROLMENT_OPENED,
    ENROLMENT_FORFEIT,
    ENROLMENT_ACCEPTED,
    ENROLMENT_SERVING,
    ENROLMENT_BACKING_OFF,
};

/* What an enrolment waits for. */
enum enrolment_wait {
    ENROLMENT_KUBELET = 1 << 0,
    ENROLMENT_LIST = 1 << 1,
    ENROLMENT_SOCKET = 1 << 2,
    ENROLMENT_ANSWER = 1 << 3, /* to Register */
    ENROLMENT_STREAM = 1 << 4, /* to be opened */
    ENROLMENT_END = 1 << 5,    /* of the stream */
    ENROLMENT_TIME = 1 << 6,
};
#define ENROLMENT_WAITS_TEXT_BYTES_MAX 128

struct enrolment_ops {
    /* Ends every connection and stream of the kubelet's: it looks a stream that ended up by its
     * resource, and would disconnect the newer. For how long, in ms, it is to be left alone
     * then. */
    uint64_t (*disconnect)(void *user);
    /* enrolment_refused() may say something else. */
    void (*changed)(void *user);
};

struct enrolment {
    enum enrolment_state state; /* to read only */

    /* private */
    const struct enrolment_ops *ops;
    void *user;
    struct registration *registration;
    const char *resource;
    const char *endpoint;
    unsigned lacks; /* of the first three */
    struct rpc_call *register_call;
    pid_t asked_pid; /* of the kubelet that Register was last called of; -1: none */
    bool told;       /* that the last answer, of whichever kubelet, was an error */
    bool refused;    /* by this one */
    uint64_t again_ms;
    uv_timer_t timer; /* of ACCEPTED and BACKING_OFF */
};

/* Lacks a kubelet, a list and the socket. The texts, `registration`, `ops` and `user` are borrowed
 * until the end. No callback comes but from enrolment_ functions and the loop. */
void enrolment_init(struct enrolment *enrolment, uv_loop_t *loop, struct registration *registration,
                    const char *resource, const char *endpoint, const struct enrolment_ops *ops,
                    void *user);
/* `closed` gets the timer, whose data is `user`. */
void enrolment_fini(struct enrolment *enrolment, uv_close_cb closed);

/* One of the first three is there now, or is not: what is registered stays so without it. */
void enrolment_set_list(struct enrolment *enrolment);
void enrolment_set_socket(struct enrolment *enrolment, bool there);

/* The kubelet can be registered with: one that is new to it, or the same after a lost connection.
 * `streams`: it has the list's stream open from before. */
void enrolment_kubelet_came(struct enrolment *enrolment, bool streams);
void enrolment_kubelet_went(struct enrolment *enrolment);

/* The list's stream, of the kubelet that is there. It may open and end at any time. */
void enrolment_stream_opened(struct enrolment *enrolment);
void enrolment_stream_ended(struct enrolment *enrolment, uint64_t lived_ms);
/* Of what is served: it is open yet, and none of ours any more. Registers at once, beside it. */
void enrolment_stream_left(struct enrolment *enrolment);

/* This kubelet has answered Register with an error, not with OK since. */
bool enrolment_refused(const struct enrolment *enrolment);

/* enum enrolment_wait, together, and in words: "a list, the socket"; "nothing". */
unsigned enrolment_waits(const struct enrolment *enrolment);
const char *enrolment_waits_text(unsigned waits, char text[ENROLMENT_WAITS_TEXT_BYTES_MAX]);

#endif
