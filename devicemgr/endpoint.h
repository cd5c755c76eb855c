/*
 * A plugin's endpoint: the connection to its socket and whether it can be used (design §5).
 *
 *                        options and first list
 *        CONNECTING ──────────────────────────────▶ ACTIVE
 *         │   ▲  ▲ │                                  │
 *         │   │  │ └── registered anew, redialled ◀───┘ lost
 *         │   │  │
 *    dial │   │  └─ registered anew
 *  failed │   │
 *         ▼   │
 *        GRACE ──────────────▶ GONE (also from CONNECTING, if it was never active or its time is
 * over) stop grace period over
 *
 * CONNECTING waits for the options, then for the first list; GRACE for a Register call; GONE for
 * nothing. The devices are usable in ACTIVE only. The stop time is the moment the endpoint was lost
 * for the first time since it was active, and stays through later attempts that fail.
 */
#ifndef DEVICEMGR_ENDPOINT_H
#define DEVICEMGR_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/text.h"

enum endpoint_state {
    ENDPOINT_CONNECTING,
    ENDPOINT_ACTIVE,
    ENDPOINT_GRACE,
    ENDPOINT_GONE,
};

/* Why a connection is, or was, made. */
enum endpoint_origin {
    ENDPOINT_REGISTERED,
    ENDPOINT_REDIALLED,
    ENDPOINT_RESTORED,
};

struct endpoint {
    enum endpoint_state state;
    uint64_t number; /* the connection; 0: none */
    enum endpoint_origin origin;
    char *socket_name;     /* what `number` dials, or the last one dialled */
    char *socket_good;     /* the last that gave a list; NULL: none yet */
    uint64_t registration; /* the Register call to be answered; 0: none */
    uint64_t since_ms;     /* when `state` was entered, or anew dialled */
    uint64_t stopped_ms;   /* the stop time; only if `stopped` */
    bool stopped;          /* was active, or restored, and is not now */
    char *stop_reason;     /* NULL: none known */
    bool have_options;     /* of the connection `number` */
    bool pre_start;        /* PreStartContainer is wanted */
    bool preferred;        /* GetPreferredAllocation is offered */
};

/* A zeroed struct is CONNECTING without a connection. */
void endpoint_fini(struct endpoint *endpoint);

/* Asserts that the picture above has the move. */
void endpoint_set_state(struct endpoint *endpoint, uint64_t now_ms, enum endpoint_state state);
/* A connection `number` to `socket_name` is being made: CONNECTING. */
void endpoint_dial(struct endpoint *endpoint, uint64_t now_ms, uint64_t number,
                   enum endpoint_origin origin, const char *socket_name);
/* Sets the stop time, unless it is set already. */
void endpoint_stop(struct endpoint *endpoint, uint64_t now_ms, const char *reason);
/* Whether the lost connection is to be dialled once more before the plugin counts as gone. */
bool endpoint_may_redial(const struct endpoint *endpoint, uint64_t now_ms);
/* When it is GONE if nothing happens; UINT64_MAX: not while active. */
uint64_t endpoint_end_ms(const struct endpoint *endpoint, uint64_t grace_ms);
/* Why it cannot be used, since when and how long yet. */
void endpoint_explain(const struct endpoint *endpoint, uint64_t now_ms, uint64_t grace_ms,
                      struct text *text);

#endif
