#include "tests/sim/reason.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/claim.h"
#include "tests/sim/coming.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* Between an event and the run that acts on it (shim_run()). */
#define LATE_MS 5
/* With less nobody who has waited for a turn is asked for (create_call.c). */
#define TURN_LEFT_MS 1000

static const char *const NAMES[] = {
    "token",  "ended",    "nobody's", "newer",   "few",       "runs",     "failed",    "late",
    "store",  "deadline", "drain",    "away",    "unhealthy", "unknown",  "unlisted",  "call",
    "commit", "check",    "dead",     "changed", "gone",      "cordoned", "withdrawn", "turn",
};

const char *reasons_text(unsigned reasons)
{
    static char text[256];
    size_t used = 0;

    snprintf(text, sizeof text, "none");
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (reasons & 1u << i)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                                     NAMES[i]);
    }
    return text;
}

static bool just(const struct world *w, uint64_t ms)
{
    return ms > 0 && ms + LATE_MS >= w->now_ms;
}

/* ---- the sandbox ---- */

static unsigned reasons_of_sandbox(struct world *w, const struct create_sim *create)
{
    const struct rt_sandbox *s = runtime_find_sandbox(w, create->sandbox);
    bool dead =
        s && (!s->ready || s->hidden || (s->seen_ms > 0 && s->seen_ms >= w->lister.heard_ms));
    unsigned reasons = dead ? REASON_DEAD : 0;

    if (create->stop_told || !s || !s->ready || s->open_ms > w->lister.heard_ms)
        reasons |= REASON_ENDED;
    if (dead && s->open_ms > 0) /* a list that shows it ready says that it was not stopped */
        reasons |= REASON_ENDED;
    return reasons;
}

/* ---- one resource ---- */

bool reason_resource_known(const struct world *w, size_t resource)
{
    uint64_t served_ms = w->shown.served_ms[resource];

    if (resource == RESOURCE_BUILTIN)
        return true;
    if (plugin_usable(w, resource))
        return true;
    return served_ms > 0 && w->now_ms < served_ms + operator_grace_ms_min(w, resource) &&
           !publisher_saw_no(w, resource);
}

bool reason_unlisted(const struct world *w)
{
    return w->lister.heard_ms == 0 ||
           (w->shim.rows_lost && (w->lister.heard_ms < shim_earlier_until_ms(w) ||
                                  w->lister.heard_ms < w->shim.started_ms + OUTCOME_MS));
}

/* The plugin calls of this create, as far as they can be told from others'. */
static bool calls_open(const struct world *w, size_t resource, unsigned ids)
{
    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++) {
        const struct plugin_call *call = &w->shim.net.calls[i];
        const struct connection *c = NULL;

        if (!call->number)
            continue;
        c = plugin_find_connection((struct world *)w, call->connection);
        if (c && c->resource == resource && (!ids || call->ids == ids))
            return true;
    }
    return false;
}

/* Its plugin allocates for as many others as it may, or did until there was hardly any time
 * left. */
static bool waits_for_turn(const struct world *w, const struct create_sim *create, size_t resource)
{
    size_t most = shim_allocates_at_once(w);

    if (most > 0 && create->deadline_ms != UINT64_MAX &&
        w->now_ms + TURN_LEFT_MS + DEADLINE_MARGIN_MS >= create->deadline_ms)
        return true;
    for (size_t i = 0; most > 0 && i < CONNECTIONS_MAX; i++) {
        const struct connection *c = &w->shim.net.connections[i];

        if (c->number && c->resource == resource && plugin_allocates_open(w, c->number) >= most)
            return true;
    }
    return false;
}

unsigned reason_reserved(const struct world *w, const struct create_sim *create, size_t resource,
                         unsigned *number)
{
    unsigned ids = 0;

    *number = 0;
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *other = &w->client.creates[i];

        if (!other->number || other == create)
            continue;
        ids |= other->bare[resource];
        if (other->untouched)
            continue;
        ids |= other->ids[resource];
        if (!other->ids[resource])
            *number += other->count[resource];
    }
    return ids;
}

/* What containers have of which the runtime has said that they run, to this create, or not long ago
 * to one of their own pod; they have ended since, and the shim does not know. And what those have
 * that were created only, as far as it knows. */
static unsigned taken_to_run(const struct world *w, const struct create_sim *create, size_t r)
{
    unsigned ids = 0;

    for (size_t i = 0; i < RANS_MAX; i++) {
        const struct ran *ran = &w->lister.ran[i];

        if (ran->ms > 0 && !lister_heard_since(w, runtime_ended_ms(w, ran->uid) + 1) &&
            (ran->ms >= create->started_ms ||
             (ran->uid == create->uid && w->now_ms < ran->ms + LATE_ANSWER_MS)))
            ids |= ran->ids[r];
    }
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (c->id && runtime_may_be_started(w, c))
            ids |= c->held[r] | c->noted[r];
    }
    return ids;
}

/* What a rival's containers before this one had: they all have one name, and one that has no token
 * is taken for one with that of the name. */
static unsigned rivals_had(const struct world *w, size_t r)
{
    unsigned ids = 0;

    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];
        const struct claim *claim =
            c->rival && runtime_live(c) ? claims_seek(w, c->uid, c->name, r) : NULL;

        if (claim)
            ids |= claim->mask;
    }
    return ids;
}

/* Of one that has these, or wants these. */
static unsigned reasons_of_ids(struct world *w, const struct create_sim *create, size_t r,
                               unsigned ids)
{
    unsigned reasons = 0, number, others = reason_reserved(w, create, r, &number);
    const struct connection *c = plugin_usable(w, r);
    unsigned healthy = r == RESOURCE_BUILTIN ? w->plugins[r].listed & w->plugins[r].healthy
                       : c                   ? c->healthy
                                             : 0;

    if ((r == RESOURCE_BUILTIN ? w->shim.builtin_told : c != NULL) && (ids & ~healthy))
        reasons |= REASON_UNHEALTHY;
    if (!shim_exclusive(w, r))
        return reasons;
    if (ids & (claims_live(w, create->uid, create->name, r) | rivals_had(w, r) |
               taken_to_run(w, create, r)))
        reasons |= REASON_RUNS;
    if (ids & (claims_unknown(w, create->uid, create->name, r) | others) || number > 0)
        reasons |= REASON_UNKNOWN;
    return reasons;
}

/* Of one for which the shim is to choose. */
static unsigned reasons_of_choice(struct world *w, const struct create_sim *create, size_t r)
{
    const struct connection *c = plugin_usable(w, r);
    const struct plugin *p = &w->plugins[r];
    unsigned listed = p->listed, healthy = p->listed & p->healthy, held = 0, number = 0;
    size_t all = device_sim_count(listed), count = create->count[r];
    unsigned reasons = 0;

    if (r != RESOURCE_BUILTIN && !c) { /* by the last list, which may be an old one */
        listed = w->shown.last[r];
        all = w->shown.last_len[r];
    }
    if (c) {
        healthy = c->healthy;
        listed = c->devices;
        all = c->capacity;
    }
    if (shim_exclusive(w, r)) {
        held = claims_held(w, create->uid, create->name, r);
        held |= taken_to_run(w, create, r);
        held |= reason_reserved(w, create, r, &number);
        held |= claims_unknown(w, create->uid, create->name, r);
    }
    if (all < count + number + device_sim_count(listed & held))
        reasons |= REASON_FEW;
    if (r != RESOURCE_BUILTIN && !c)
        return reasons;
    if (device_sim_count(healthy & ~held) < count + number)
        reasons |= all > device_sim_count(healthy) ? REASON_UNHEALTHY : 0;
    if (create->called && (p->ever & ~healthy)) /* chosen before, and unhealthy or gone now */
        reasons |= REASON_UNHEALTHY;
    return reasons;
}

/* Of one whose kubelet has decided anew, or given what was chosen for it to another: what it had
 * before is waited for. */
static unsigned reasons_of_former(struct world *w, const struct create_sim *create, size_t r)
{
    const struct claim *claim = claims_seek(w, create->uid, create->name, r);
    unsigned reasons = 0;

    if (!claim ||
        (create->ids[r] && (claim->mask | claim->former) == create->ids[r] &&
         create->fault != TOKEN_UNKNOWN_ID) ||
        (!create->ids[r] &&
         !(shim_exclusive(w, r) && claim->mask & coming_told(w, create->uid, r))))
        return 0;
    if (claim->unsure_ms > 0)
        reasons |= REASON_UNKNOWN;
    if ((claim->mask | claim->former) & claims_live(w, create->uid, POD_CONTAINERS_MAX + 1, r))
        reasons |= REASON_RUNS;
    return reasons;
}

/* What an operator may keep from it. Whoever has a device keeps it, as long as it asks for the
 * same: of a container that comes with another token that it had one of those before is forgotten
 * with the rest. */
static unsigned kept_from(const struct world *w, const struct create_sim *create, size_t r)
{
    const struct claim *own = claims_seek(w, create->uid, create->name, r);
    unsigned kept = operator_may_keep_from(w, create->uid, r);

    if (own && create->ids[r] && own->mask != create->ids[r])
        kept |= operator_may_keep(w, r) & own->mask;
    return kept;
}

/* What keeps it from this pod, which need not be known to have it. */
static unsigned reasons_of_operator(struct world *w, const struct create_sim *create, size_t r,
                                    unsigned ids)
{
    unsigned kept = kept_from(w, create, r), number;
    unsigned healthy = 0, held = 0; /* of a plugin that is away: nobody knows any more */
    const struct connection *c = plugin_usable(w, r);
    bool chosen;

    if (!kept)
        return 0;
    if (c)
        healthy = c->healthy;
    else if (r == RESOURCE_BUILTIN)
        healthy = w->plugins[r].listed & w->plugins[r].healthy;
    if (shim_exclusive(w, r))
        held = claims_held(w, create->uid, create->name, r) | taken_to_run(w, create, r) |
               claims_unknown(w, create->uid, create->name, r);
    held |= reason_reserved(w, create, r, &number);
    chosen = create->ids[r] == 0 && (create->called || device_sim_count(healthy & ~held & ~kept) <
                                                           create->count[r] + number);
    if ((ids & kept) == 0 && !chosen && create->fault != TOKEN_UNKNOWN_ID)
        return 0;
    return operator_may_have_withdrawn(w, r) ? REASON_CORDONED | REASON_WITHDRAWN : REASON_CORDONED;
}

static unsigned reasons_of_resource(struct world *w, const struct create_sim *create, size_t r)
{
    const struct claim *claim = claims_seek(w, create->uid, create->name, r);
    unsigned ids = create->ids[r] ? create->ids[r] : claim ? claim->mask : 0, reasons = 0;

    if (!reason_resource_known(w, r))
        reasons |= REASON_NOBODYS;
    if (r == RESOURCE_BUILTIN ? !w->shim.builtin_told : !plugin_usable(w, r))
        reasons |= REASON_AWAY;
    reasons |= reasons_of_former(w, create, r) | reasons_of_operator(w, create, r, ids);
    if (ids)
        reasons |= reasons_of_ids(w, create, r, ids);
    if (!create->ids[r])
        reasons |= reasons_of_choice(w, create, r);
    if (claim && claim->own && device_sim_count(claim->mask) != create->count[r])
        reasons |= REASON_CHANGED;
    if (shim_exclusive(w, r) && reason_unlisted(w))
        reasons |= REASON_UNLISTED;
    if (calls_open(w, r, create->ids[r]))
        reasons |= REASON_CALL;
    if (waits_for_turn(w, create, r))
        reasons |= REASON_TURN;
    if (just(w, w->shim.net.failed_ms[r]))
        reasons |= REASON_FAILED;
    if (just(w, w->shim.net.late_ms[r]))
        reasons |= REASON_LATE;
    return reasons;
}

/* ---- all of it ---- */

/* One before it of the same container was forwarded, and is not answered yet. */
static bool first_open(const struct world *w, const struct create_sim *create)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *other = &w->client.creates[i];

        if (other->number && other->number < create->number && other->uid == create->uid &&
            other->name == create->name)
            return true;
    }
    return false;
}

unsigned reasons_of(struct world *w, const struct create_sim *create)
{
    unsigned reasons = reasons_of_sandbox(w, create);

    if (create->tokenless)
        reasons |= REASON_GONE;
    if (create->fault == TOKEN_MALFORMED)
        reasons |= REASON_TOKEN;
    if (create->fault == TOKEN_UNKNOWN_RESOURCE)
        reasons |= REASON_NOBODYS;
    if (create->fault == TOKEN_UNKNOWN_ID)
        reasons |= REASON_UNHEALTHY;
    if (create->overtaken)
        reasons |= REASON_NEWER;
    if (create->deadline_ms != UINT64_MAX && w->now_ms + DEADLINE_MARGIN_MS >= create->deadline_ms)
        reasons |= REASON_DEADLINE;
    if (create->second && first_open(w, create))
        reasons |= REASON_UNKNOWN;
    if (w->shim.draining)
        reasons |= REASON_DRAIN;
    if (just(w, w->store.failed_ms))
        reasons |= REASON_STORE;
    if (w->store.commit)
        reasons |= REASON_COMMIT;
    if (lister_checks_open(w) > 0 ||
        (w->lister.unanswered_ms > 0 &&
         w->now_ms <= w->lister.unanswered_ms + CHECK_AGAIN_MS + LATE_MS))
        reasons |= REASON_CHECK;
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (create->count[r] > 0)
            reasons |= reasons_of_resource(w, create, r);
    }
    return reasons;
}
