/*
 * What the device manager knows: its settings, the time, and the tables that all parts share, of
 * what there is (things) and of what is to be done about it. Who may read it all is given a const
 * one. What only one part has to know is in that part's own table (turn.h).
 */
#ifndef DEVICEMGR_BOOKS_STATE_H
#define DEVICEMGR_BOOKS_STATE_H

#include <assert.h>

#include "devicemgr/books/action.h"
#include "devicemgr/books/capacity.h"
#include "devicemgr/books/checkpoint.h"
#include "devicemgr/books/claim_refused.h"
#include "devicemgr/books/dirty.h"
#include "devicemgr/books/kubelet.h"
#include "devicemgr/books/listing.h"
#include "devicemgr/books/outbox.h"
#include "devicemgr/books/refused.h"
#include "devicemgr/books/replacing.h"
#include "devicemgr/books/showing.h"
#include "devicemgr/books/tainted.h"
#include "devicemgr/books/wake.h"
#include "devicemgr/codes.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/dra.h"
#include "devicemgr/things/allocation.h"
#include "devicemgr/things/claim.h"
#include "devicemgr/things/driver.h"
#include "devicemgr/things/ending.h"
#include "devicemgr/things/order.h"
#include "devicemgr/things/pod.h"
#include "devicemgr/things/resource.h"
#include "devicemgr/things/shutdown.h"
#include "devicemgr/things/sidecars.h"
#include "devicemgr/things/slice.h"
#include "devicemgr/things/text.h"

struct state {
    struct devicemgr_settings settings;         /* its texts are owned; `resources` sorted */
    struct devicemgr_resource_settings general; /* for a resource that is not among them */

    uint64_t now_ms;      /* of the latest event */
    uint64_t last_number; /* of all that leaves and is answered: one series, never 0 */
    bool draining;        /* nothing is held any more */
    bool watched;         /* somebody wants to hear what comes to pass (happened.h) */
    char *unread;         /* why the checkpoint's rows are not known yet; NULL: they are */

    struct resource *resources;
    struct ids removed; /* resources, oldest first, until seen or published again */
    struct allocations allocations;
    struct pods pods;
    struct orders orders;
    struct endings endings;
    struct shutdown shutdown;
    struct sidecars sidecars;
    struct drivers drivers;
    struct claims claims;
    struct slices slices; /* as the cluster has them */
    struct tainted tainted;
    enum devicemgr_cdi cdi; /* what the runtime makes of CDI devices */
    bool cdi_told;          /* that nobody knows: to the operator */
    uint64_t replaced; /* how often devices were given in the place of what was lost; for metrics */
    struct {
        size_t untold;    /* refused, and not logged */
        uint64_t paid_ms; /* the lines there were are paid for by then */
    } registrations;      /* registration.c's */
    struct kubelet_view kubelet;
    struct replacings replacings;
    struct listing listing;
    struct dirty dirty;
    struct checkpoint checkpoint;
    struct showing showing;
    struct wakes wakes;
    struct outbox outbox;
    struct refused refused; /* for who asks why, with the next; nothing is decided by them */
    struct claim_refused claim_refused;
    struct action_queue actions;
};

/* Copies the settings. */
void state_init(struct state *state, const struct devicemgr_settings *settings);
/* The tables are over by then. */
void state_fini(struct state *state);
/* Others from now on, copied; of the same boot. */
void state_set_settings(struct state *state, const struct devicemgr_settings *settings);
/* Takes the event's time over; time never goes back. */
static inline void state_at(struct state *state, uint64_t now_ms)
{
    assert(!state->outbox.first); /* what the event before brought about was handed out */
    if (now_ms > state->now_ms)
        state->now_ms = now_ms;
    state->showing.stale = true;
}
static inline uint64_t state_number(struct state *state)
{
    return ++state->last_number;
}
/* Why the checkpoint's rows are not known yet, copied; NULL: they are. */
void state_set_unread(struct state *state, const char *why);
/* What holds for a resource. */
const struct devicemgr_resource_settings *state_settings_of(const struct state *state,
                                                            const char *resource);
/* Whether pods of this namespace may ask by annotation, if any may. */
bool state_namespace_allowed(const struct state *state, const char *pod_namespace);
void state_log(struct state *state, int level, const struct text *text);
/* The same of a line about somebody; `about` copied. */
void state_log_about(struct state *state, int level, struct devicemgr_about about,
                     const struct text *text);

#endif
