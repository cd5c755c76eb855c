/*
 * A plugin's endpoint: the connection to its socket and whether it can be used.
 *
 *                        options and first list
 *        CONNECTING ──────────────────────────────▶ ACTIVE
 *         │   ▲  ▲ │                                  │
 *         │   │  │ └── registered anew, redialled ◀───┘ lost
 *         │   │  │
 *    dial │   │  └─ registered anew
 *  failed │   │
 *         ▼   │
 *        GRACE ──────────────▶ GONE
 *         stop grace period over
 *
 * GONE is also reached from CONNECTING, if the endpoint was never active or its time is over.
 *
 * CONNECTING waits for the options, then for the first list; GRACE for a Register call; GONE for
 * nothing. The devices are usable in ACTIVE only. (ACTIVE goes to GRACE at once when it is lost and
 * not redialled, since it flaps or its dials must wait; and to GONE when the name becomes a
 * built-in device's.)
 *
 * The stop time is the moment the endpoint was lost for the first time since it was active, and
 * stays through later attempts that fail. One that is connected, and connected anew, without a list
 * for FIRST_LIST_MS counts as stopped, too: the connection stays, since a slow plugin would not
 * know that it should register again, but its grace period runs.
 *
 * Dials have a bound in time (DIALS_AT_ONCE, DIAL_EVERY_MS). A Register call over it waits for its
 * turn; what there is of an older connection serves on until then, and a newer call takes its
 * place.
 *
 * A plugin that was told it is registered would not know either that it is not any more, and one
 * that is still being dialled would fail for what became of the one before it. If its time is over
 * before its first list can have come, the resource is removed as it must be, so that nobody holds
 * a name by registering again and again, and the connection begins a new one.
 */
#ifndef DEVICEMGR_THINGS_ENDPOINT_H
#define DEVICEMGR_THINGS_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

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

/* Written by endpoint.c alone. */
struct endpoint {
    enum endpoint_state state;
    uint64_t number; /* the connection; 0: none */
    enum endpoint_origin origin;
    char *socket_name;     /* what `number` dials, or the last one dialled */
    char *socket_good;     /* the last that gave a list; NULL: none yet, "": imported, unknown */
    uint32_t uid;          /* the user who registered `socket_name`; 0: root, or not known */
    uint32_t uid_good;     /* who registered `socket_good` */
    uint64_t registration; /* the Register call to be answered; 0: none */
    uint64_t since_ms;     /* when `state` was entered, or anew dialled */
    uint64_t unlisted_ms;  /* when it was active for the last time, or dialled for the first */
    uint64_t dials_ms;     /* the dials there were are paid for by then */
    uint64_t stopped_ms;   /* the stop time; only if `stopped` */
    bool stopped;          /* it is away: was active or restored, or has not listed in time */
    bool listed;           /* has been active since the shim started */
    bool stop_stored;      /* the stop time is in the checkpoint, or on its way there */
    char *stop_reason;     /* NULL: none known */
    struct {
        char *socket_name;     /* NULL: there is none */
        uint32_t uid;          /* who registered it */
        uint64_t registration; /* its Register call; 0: none waits */
    } put_off;                 /* a dial that must wait for its turn */
    bool hasty;                /* dials have had to wait, and have not been few since */
    bool have_options;         /* of the connection `number` */
    bool pre_start;            /* PreStartContainer is wanted */
    bool has_preference;       /* GetPreferredAllocation is offered */
};

/* A zeroed struct is CONNECTING without a connection. */
void endpoint_fini(struct endpoint *endpoint);

/* Of a row: `socket_good` of the user `uid` was good last ("": it is not known which), nothing is
 * dialled yet. */
void endpoint_restore(struct endpoint *endpoint, const char *socket_good, uint32_t uid,
                      bool pre_start, bool has_preference);

/* Asserts that the picture above has the move. */
void endpoint_set_state(struct endpoint *endpoint, uint64_t now_ms, enum endpoint_state state);
/* A connection `number` to `socket_name`, which `uid` registered, is being made: CONNECTING. */
void endpoint_dial(struct endpoint *endpoint, uint64_t now_ms, uint64_t number,
                   enum endpoint_origin origin, const char *socket_name, uint32_t uid);
/* The connection is over, or was ended. */
void endpoint_set_disconnected(struct endpoint *endpoint);
/* What the plugin answered to the question for its options. */
void endpoint_set_options(struct endpoint *endpoint, bool pre_start, bool has_preference);

/* This Register call waits for the connection's options. */
void endpoint_set_registration(struct endpoint *endpoint, uint64_t registration);
/* It is to be answered now; 0: none waits. */
uint64_t endpoint_take_registration(struct endpoint *endpoint);
/* A dial for this Register call must wait for its turn, in the place of one that does already. True
 * if it is the first that must since dials were few. */
bool endpoint_put_off(struct endpoint *endpoint, uint64_t registration, const char *socket_name,
                      uint32_t uid);
/* The socket of that dial, which is made now, for the caller to free. */
char *endpoint_take_put_off(struct endpoint *endpoint, uint64_t *registration, uint32_t *uid);
/* That Register call is to be answered now; 0: none waits, or its caller has gone. */
uint64_t endpoint_take_put_off_registration(struct endpoint *endpoint);
/* Who made this Register call has gone; the plugin may serve all the same. */
void endpoint_forget_registration(struct endpoint *endpoint, uint64_t registration);

/* When the next dial may be, now or later. */
uint64_t endpoint_dial_ms(const struct endpoint *endpoint, uint64_t now_ms);
/* When it counts as stopped for want of a list; UINT64_MAX: not so. */
uint64_t endpoint_unlisted_ms(const struct endpoint *endpoint);
/* Sets the stop time, unless it is set already. */
void endpoint_stop(struct endpoint *endpoint, uint64_t now_ms, const char *reason);
/* Whether the lost connection is to be dialled once more before the plugin counts as gone. */
bool endpoint_may_redial(const struct endpoint *endpoint, uint64_t now_ms);
/* When it is GONE if nothing happens; UINT64_MAX: something is to happen before. An attempt at the
 * end of the grace period still gets FIRST_LIST_MS, but many get no more. */
uint64_t endpoint_end_ms(const struct endpoint *endpoint, uint64_t grace_ms);
/* Whether the plugin has registered, dialled already or not, and may still list in time. */
bool endpoint_may_list(const struct endpoint *endpoint, uint64_t now_ms);
/* Whether the plugin was told that it is registered, and that connection has given no list yet. */
bool endpoint_awaits_first_list(const struct endpoint *endpoint);
/* Makes `to`, which is nothing yet, the endpoint of a plugin never seen before that has the
 * connection of `from`, and its Register call. */
void endpoint_move(struct endpoint *from, struct endpoint *to);
/* When its stop time is to be stored; UINT64_MAX: not now. */
uint64_t endpoint_store_ms(const struct endpoint *endpoint);
/* It is in the checkpoint, or on its way there; or no more. */
void endpoint_set_stop_stored(struct endpoint *endpoint, bool stop_stored);

#endif
