/*
 * Why a claim is not prepared, or unprepared, or not yet: as a value, and in words.
 */
#ifndef DEVICEMGR_WORDS_CLAIM_H
#define DEVICEMGR_WORDS_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/things/text.h"

struct claim;
struct claim_user;
struct granted_device;
struct ids;
struct state;

enum claim_refusal_kind {
    CLAIM_REFUSED_NAMES, /* they are too long, or no UTF-8 */
    CLAIM_REFUSED_MANY,  /* claims are kept */
    CLAIM_REFUSED_QUEUE, /* wait */
    CLAIM_REFUSED_UNREAD,
    CLAIM_REFUSED_DRAIN,
    CLAIM_REFUSED_AWAY,     /* the driver is */
    CLAIM_REFUSED_OWED,     /* another claim's unprepare is owed to the driver: `words`: its name */
    CLAIM_REFUSED_USED,     /* by a container that runs, or may come to: `words`: which */
    CLAIM_REFUSED_TURN,     /* something else is being done for the claim */
    CLAIM_REFUSED_UNSTORED, /* within the time */
    CLAIM_REFUSED_STORE,    /* `words`: the store's */
    CLAIM_REFUSED_ANSWER,   /* the driver's is too large */
    CLAIM_REFUSED_DRIVER,   /* by the driver itself, in its `words` */
    CLAIM_REFUSED_LOST,     /* it has ended each time that it was asked */
    CLAIM_WAITS_DRIVER,     /* this and the next are no refusals: it is being asked */
    CLAIM_WAITS_OWED,       /* its unprepare is owed; `words`: the driver's, or NULL */
    CLAIM_REFUSAL_KINDS,    /* how many there are */
};

#define CLAIM_REFUSALS CLAIM_WAITS_DRIVER /* how many of them are refusals */

/* All borrowed. */
struct claim_refusal {
    enum claim_refusal_kind kind;
    const char *driver;
    const char *pod_namespace, *name, *uid; /* of the claim */
    bool unprepare;                         /* that is asked for */
    const char *words;
    uint64_t waited_ms;
};

/* Of a claim that is kept; without words, and time. */
struct claim_refusal claim_refusal_of(const struct claim *claim, enum claim_refusal_kind kind,
                                      bool unprepare);
/* The gRPC code of the refusal. */
int claim_refusal_code(enum claim_refusal_kind kind);
/* One word for it, and what would end it; static. */
const char *claim_refusal_word(enum claim_refusal_kind kind);
const char *claim_refusal_clears(enum claim_refusal_kind kind);
/* Adds the whole sentence. */
void claim_refusal_explain(const struct state *state, const struct claim_refusal *refusal,
                           struct text *text);

/* "claim ns/name, driver d: it is prepared, with 2 devices" and so on: what is said of it, by
 * `what`. */
void claim_explain_done(const struct claim *claim, const char *what, struct text *text);
/* Who uses a claim: `container "c" of pod ns/name`. */
void claim_explain_user(const char *container, const char *pod, struct text *text);
/* One that is owed was refused by the driver; adds the whole sentence. */
void claim_explain_owed(const struct claim *claim, const char *words, struct text *text);
/* The runtime cannot resolve a CDI device, and the driver is asked to prepare the claim anew; not
 * again within `pause_ms`. Adds the whole sentence. */
void claim_explain_anew(const struct claim *claim, const char *cdi, uint64_t pause_ms,
                        struct text *text);
/* What came of that: `words`, why not; NULL: it is prepared. */
void claim_explain_renewed(const struct claim *claim, const char *words, struct text *text);
/* Another pod's container may have a device (`ids`) of the claim, or one that is made of the same
 * (`made_of_same`; NULL: the device itself); `hidden`: who it is is not told. Adds the whole
 * sentence. */
void claim_explain_held(const struct claim *claim, const struct claim_user *user,
                        const struct ids *ids, const struct granted_device *made_of_same,
                        bool hidden, struct text *text);
/* Whether the user's pod is of the namespace. */
bool claim_user_is_of(const struct claim_user *user, const char *pod_namespace);
/* The kubelet's words for an endpoint that is registered already. */
void claim_explain_registered(const char *endpoint, const char *driver, struct text *text);

#endif
