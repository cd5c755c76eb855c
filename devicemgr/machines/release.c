#include "devicemgr/machines/release.h"

#include <utlist.h>

#include "devicemgr/books/happened.h"
#include "devicemgr/books/ledger.h"
#include "devicemgr/books/state.h"
#include "devicemgr/rules/releasable.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"

struct release {
    uint64_t number; /* the caller's */
    char *pod_uid;
    char *by;          /* who asks, and why */
    bool dry;          /* to be told only */
    bool storing;      /* the rows are removed */
    uint64_t epoch;    /* LISTING: a list after this one is wanted */
    uint64_t until_ms; /* LISTING: it is waited for so long */
    uint64_t commit;   /* STORING: the one that carries it; 0: none yet */
    struct text said;  /* STORING: what will be so */
    struct release *prev, *next;
};

static void release_free(struct release *release)
{
    free(release->pod_uid);
    free(release->by);
    free(release);
}

void releases_fini(struct releases *releases)
{
    struct release *release, *next;

    DL_FOREACH_SAFE(releases->first, release, next) {
        release_free(release);
    }
}

static void finish(struct releases *releases, struct release *release, int code,
                   const struct text *text)
{
    action_steered(&releases->state->actions, release->number, code,
                   code == CODE_OK && release->storing, text->buf);
    DL_DELETE(releases->first, release);
    releases->len--;
    release_free(release);
}

/* ---- what is removed ---- */

static void log_one(struct state *state, const struct allocation *a)
{
    struct text text = {0};

    text_add(&text, "by the operator: released from ");
    name_holder(&state->pods, a, &text);
    text_add_name(&text, ": resource ", a->resource);
    text_add(&text, ": device ids ");
    text_add_ids(&text, &a->ids);
    state_log_about(state, LEVEL_WARNING, name_about_holder(&state->pods, a), &text);
}

/* For the operator: "released: vendor.com/gpu: g0,g1; ..." */
static void tell(const struct state *state, const char *pod_uid, struct text *text)
{
    const struct allocation *a = allocations_of_pod(&state->allocations, pod_uid);

    if (!a)
        text_add(text, "the runtime knows the pod no more, and its devices are free already");
    for (const char *before = "released: "; a; a = a->pod_next, before = "; ") {
        text_add_name(text, before, a->resource);
        text_add(text, ": ");
        text_add_ids(text, &a->ids);
    }
}

/* Its row is written, or deleted, in any case, so that a commit comes that can be waited for. */
static void remove_rows(struct state *state, struct release *release)
{
    tell(state, release->pod_uid, &release->said);
    for (const struct allocation *a = allocations_of_pod(&state->allocations, release->pod_uid); a;
         a = a->pod_next) {
        log_one(state, a);
        happened_taken(state, a, release->by);
    }
    ledger_drop_allocations(state, release->pod_uid);
    dirty_touch_pod_gone(state, release->pod_uid);
    release->storing = true;
}

/* ---- one that waits for a list ---- */

static void decide(struct releases *releases, struct release *release)
{
    struct state *state = releases->state;
    struct release_look look = releasable(state, release->pod_uid);
    struct text text = {0};

    if (look.bar == RELEASE_BAR_NONE && !release->dry) {
        remove_rows(state, release);
        return;
    }
    release_explain(state, &look, &text);
    finish(releases, release, look.bar == RELEASE_BAR_NONE ? CODE_OK : CODE_FAILED_PRECONDITION,
           &text);
}

void releases_begin(struct releases *releases, uint64_t number, const char *pod_uid, const char *by,
                    bool dry)
{
    struct state *state = releases->state;
    struct release *release = mem_alloc(1, sizeof *release);

    release->number = number;
    release->pod_uid = mem_strdup(pod_uid);
    release->by = mem_strdup(by);
    release->dry = dry;
    release->epoch = state->listing.epoch;
    release->until_ms = state->now_ms + RELEASE_LIST_MS;
    DL_APPEND(releases->first, release);
    releases->len++;
    listing_anew(state);
}

void releases_listed(struct releases *releases)
{
    struct state *state = releases->state;
    struct release *release, *next;

    DL_FOREACH_SAFE(releases->first, release, next) {
        if (release->storing)
            continue;
        if (state->listing.epoch > release->epoch)
            decide(releases, release);
        else
            listing_anew(state);
    }
}

uint64_t releases_next_ms(const struct releases *releases)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct release *release = releases->first; release; release = release->next) {
        if (!release->storing)
            next_ms = earlier(next_ms, release->until_ms);
    }
    return next_ms;
}

void releases_tick(struct releases *releases)
{
    struct release *release, *next;

    DL_FOREACH_SAFE(releases->first, release, next) {
        struct text text = {0};

        if (release->storing || releases->state->now_ms < release->until_ms)
            continue;
        text_add(&text, "nothing has changed: the runtime does not say what runs");
        finish(releases, release, CODE_FAILED_PRECONDITION, &text);
    }
}

/* ---- one that is being stored ---- */

void releases_commit_began(struct releases *releases, uint64_t commit)
{
    for (struct release *release = releases->first; release; release = release->next) {
        if (release->storing && release->commit == 0)
            release->commit = commit;
    }
}

/* What was taken as its first row failed has none: nothing is to be stored of it. */
static bool is_none(const struct releases *releases, const struct release *release)
{
    const struct dirty *dirty = &releases->state->dirty;

    return !dirty_any_of(dirty, DEVICEMGR_RECORD_ALLOCATION, release->pod_uid) &&
           !dirty_any_of(dirty, DEVICEMGR_RECORD_POD, release->pod_uid);
}

void releases_committed(struct releases *releases, uint64_t commit, const char *error)
{
    struct release *release, *next;

    DL_FOREACH_SAFE(releases->first, release, next) {
        bool none = error && release->storing && is_none(releases, release);
        struct text text = {0};

        if (!release->storing || (release->commit != commit && !none))
            continue;
        if (error && !none) {
            text_add(&text,
                     "not stored yet, which is tried again: until then a restart of the shim "
                     "brings it back: ");
            text_add_words(&text, error, TEXT_WORDS_BYTES_MAX);
        }
        finish(releases, release, text.len > 0 ? CODE_ABORTED : CODE_OK,
               text.len > 0 ? &text : &release->said);
    }
}
