#include "devicemgr/machines/evict.h"

#include <string.h>

#include <utlist.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/state.h"
#include "devicemgr/rules/evictable.h"
#include "devicemgr/things/moment.h"

#define MINUTE_MS 60000

/* ---- steps ---- */

static void put_step(struct evicts *evicts, const struct eviction *eviction,
                     enum eviction_step_kind kind)
{
    struct eviction_step *step = mem_alloc(1, sizeof *step);

    step->kind = kind;
    step->pod_uid = mem_strdup(eviction->pod_uid);
    step->why = mem_strdup(eviction->why);
    DL_APPEND(evicts->steps, step);
}

struct eviction_step *evicts_take(struct evicts *evicts)
{
    struct eviction_step *step = evicts->steps;

    if (step)
        DL_DELETE(evicts->steps, step);
    return step;
}

void eviction_step_free(struct eviction_step *step)
{
    free(step->pod_uid);
    free(step->why);
    free(step);
}

/* ---- the table ---- */

static struct eviction *ensure(struct evicts *evicts, const char *pod_uid)
{
    struct eviction *eviction;

    HASH_FIND_STR(evicts->by_uid, pod_uid, eviction);
    if (eviction)
        return eviction;
    eviction = mem_alloc(1, sizeof *eviction);
    eviction->pod_uid = mem_strdup(pod_uid);
    eviction->why = mem_strdup("");
    HASH_ADD_KEYPTR(hh, evicts->by_uid, eviction->pod_uid, strlen(eviction->pod_uid), eviction);
    return eviction;
}

static void drop(struct evicts *evicts, struct eviction *eviction)
{
    HASH_DEL(evicts->by_uid, eviction);
    free(eviction->pod_uid);
    free(eviction->why);
    free(eviction);
}

void evicts_fini(struct evicts *evicts)
{
    while (evicts->by_uid)
        drop(evicts, evicts->by_uid);
    while (evicts->steps)
        eviction_step_free(evicts_take(evicts));
}

size_t evicts_len(const struct evicts *evicts, enum eviction_state state)
{
    size_t len = 0;

    for (const struct eviction *e = evicts->by_uid; e; e = e->hh.next)
        len += e->state == state;
    return len;
}

/* ---- who is to go ---- */

static void set_why(struct eviction *eviction, const struct evictable *evictable)
{
    struct text text = {0};

    text_add(&text, "device ");
    text_add_words(&text, evictable->id, TEXT_IDS_BYTES_MAX);
    text_add(&text, " of %s is tainted %s%s%s:NoExecute", evictable->resource, evictable->taint.key,
             evictable->taint.value[0] != '\0' ? "=" : "", evictable->taint.value);
    if (evictable->taint.words[0] != '\0') {
        text_add(&text, ": ");
        text_add_words(&text, evictable->taint.words, TEXT_WORDS_BYTES_MAX);
    }
    if (strcmp(eviction->why, text.buf) == 0)
        return;
    free(eviction->why);
    eviction->why = mem_strdup(text.buf);
}

static void note(void *user, const struct evictable *evictable)
{
    struct evicts *evicts = user;
    struct eviction *eviction;

    if (evictable->over && !facts_pod_evicted(evicts->state, evictable->pod_uid))
        return;
    eviction = ensure(evicts, evictable->pod_uid);
    eviction->clusters = eviction->clusters || taint_is_the_clusters(&evictable->taint);
    if (eviction->found && eviction->at_ms <= evictable->at_ms)
        return;
    eviction->found = true;
    eviction->at_ms = evictable->at_ms;
    set_why(eviction, evictable);
}

static void note_asked(struct evicts *evicts, uint64_t ms)
{
    evicts->asked_ms[evicts->asked++ % EVICT_PER_MINUTE_MAX] = ms;
}

static int by_moment(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x != *y ? (*x < *y ? -1 : 1) : 0;
}

/* What an earlier process has asked for is asked for still: what is to be goes on, all else is
 * taken back. It counts among those of its minute, too: a process that is restarted over and over
 * asks for no more. */
static void adopt(struct evicts *evicts)
{
    const struct endings *endings = &evicts->state->endings;
    uint64_t *asked_ms = mem_alloc(endings_len(endings), sizeof *asked_ms);
    size_t len = 0;

    evicts->adopted = true;
    for (const struct ending *e = endings->by_uid; e; e = e->hh.next) {
        const struct ending_ask *ask = ending_find_ask(e, END_EVICTION, END_ONCE);
        struct eviction *eviction = ask ? ensure(evicts, e->pod_uid) : NULL;

        if (!eviction)
            continue;
        asked_ms[len++] = ask->asked_ms;
        eviction->state = EVICTION_ASKED;
        eviction->adopted = true;
        eviction->clusters = true;
    }
    if (len > 1)
        qsort(asked_ms, len, sizeof *asked_ms, by_moment);
    for (size_t i = 0; i < len; i++)
        note_asked(evicts, asked_ms[i]);
    evicts->asked_before = len;
    free(asked_ms);
}

void evicts_doubt(struct evicts *evicts)
{
    for (struct eviction *e = evicts->by_uid; e; e = e->hh.next)
        e->adopted = e->state == EVICTION_ASKED;
}

bool evicts_in_doubt(const struct evicts *evicts, const char *pod_uid)
{
    const struct eviction *eviction;

    HASH_FIND_STR(evicts->by_uid, pod_uid, eviction);
    return !evicts->adopted || (eviction && eviction->adopted);
}

static void confirm(struct evicts *evicts, struct eviction *eviction)
{
    if (!eviction->adopted || eviction->at_ms > evicts->state->now_ms)
        return;
    eviction->adopted = false;
    put_step(evicts, eviction, EVICTION_CONFIRM);
}

static void take_back(struct evicts *evicts, struct eviction *eviction)
{
    if (eviction->state != EVICTION_ASKED)
        return;
    eviction->state = EVICTION_WAITS;
    eviction->adopted = false;
    evicts->taken_back += !facts_pod_over(evicts->state, eviction->pod_uid);
    put_step(evicts, eviction, EVICTION_TAKE_BACK);
}

static void look(struct evicts *evicts)
{
    uint64_t now_ms = evicts->state->now_ms;
    struct eviction *eviction, *next;
    struct evictable_looked looked;

    for (eviction = evicts->by_uid; eviction; eviction = eviction->hh.next) {
        eviction->found = false;
        eviction->clusters = eviction->clusters && eviction->adopted;
    }
    looked = evictable_each(evicts->state, note, evicts);
    evicts->stale = looked.stale;
    evicts->looks += looked.claims;
    HASH_ITER(hh, evicts->by_uid, eviction, next) {
        if (!eviction->found && eviction->clusters && !evictable_all_known(evicts->state))
            continue; /* it may be for a taint that is not told yet */
        /* One whose taint is being set anew, or taken back, stays as it is until that is durable;
         * one that may be tolerated until that is told. */
        if (!eviction->found || (eviction->at_ms > now_ms && eviction->at_ms != UINT64_MAX))
            take_back(evicts, eviction);
        if (eviction->found)
            confirm(evicts, eviction);
        else
            drop(evicts, eviction);
    }
}

/* ---- who may use a claim ---- */

/* What was never told is being asked for already, but for what was refused. `tainted`: some device
 * of its driver is, from here. */
static void look_up(struct evicts *evicts, struct claim *claim, bool tainted)
{
    struct state *state = evicts->state;
    bool told, refused;

    if (!tainted && claim->refused_ms == 0 && claim->look_again_ms <= state->now_ms)
        return;
    evicts->looks++;
    told = consumers_find(state->tainted.consumers, claim->uid);
    refused = claim->refused_ms > 0 && !told;
    if (claim->look_again_ms <= state->now_ms && (refused || evictable_claim(state, claim))) {
        claim->look_again_ms = state->now_ms + CLAIM_LOOK_AGAIN_MS;
        if (told || refused)
            action_push(&state->actions, ACTION_CLAIM_LOOK, 0)->claim = action_claim(claim);
    }
    if (claim->look_again_ms > state->now_ms)
        evicts->look_ms = earlier(evicts->look_ms, claim->look_again_ms);
}

static void look_up_all(struct evicts *evicts)
{
    struct state *state = evicts->state;

    evicts->look_ms = UINT64_MAX;
    if (!state->settings.cluster)
        return;
    for (const struct claims_of *of = state->claims.by_driver; of; of = of->hh.next) {
        bool tainted = tainted_any(state, of->driver);

        for (struct claim *claim = of->first; claim; claim = claim->next)
            look_up(evicts, claim, tainted);
    }
}

void evicts_look_at(struct evicts *evicts, uint64_t at_ms)
{
    evicts->look_ms = earlier(evicts->look_ms, at_ms);
}

/* ---- when ---- */

/* From when on one more may be asked for. */
static uint64_t free_ms(const struct evicts *evicts)
{
    uint64_t most = evicts->state->settings.evict_per_minute;

    if (most > EVICT_PER_MINUTE_MAX)
        most = EVICT_PER_MINUTE_MAX;
    if (most == 0 || evicts->asked < most)
        return 0;
    return evicts->asked_ms[(evicts->asked - most) % EVICT_PER_MINUTE_MAX] + MINUTE_MS;
}

static bool is_due(const struct evicts *evicts, const struct eviction *eviction)
{
    return eviction->state == EVICTION_WAITS && eviction->at_ms <= evicts->state->now_ms;
}

static int by_time(const void *a, const void *b)
{
    const struct eviction *x = *(const struct eviction *const *)a;
    const struct eviction *y = *(const struct eviction *const *)b;

    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return strcmp(x->pod_uid, y->pod_uid);
}

/* Of pods that are ended there is a most: who finds no room waits until one of them is over. */
static size_t room(const struct state *state)
{
    return ENDINGS_MAX - endings_len(&state->endings);
}

/* Who has been due for longest is asked for first. */
static void ask_for_due(struct evicts *evicts)
{
    uint64_t now_ms = evicts->state->now_ms;
    struct eviction **due = mem_alloc(HASH_COUNT(evicts->by_uid), sizeof *due);
    size_t len = 0;

    for (struct eviction *e = evicts->by_uid; e; e = e->hh.next) {
        if (is_due(evicts, e))
            due[len++] = e;
    }
    if (len > 1)
        qsort(due, len, sizeof *due, by_time);
    for (size_t i = 0; i < len && i < room(evicts->state) && free_ms(evicts) <= now_ms; i++) {
        note_asked(evicts, now_ms);
        due[i]->state = EVICTION_ASKED;
        put_step(evicts, due[i], EVICTION_ASK);
    }
    free(due);
}

static bool may_ask(const struct state *state)
{
    return !state->unread && state->listing.listed && !state->draining && room(state) > 0;
}

void evicts_review(struct evicts *evicts)
{
    const struct state *state = evicts->state;

    if (state->unread || !state->listing.listed) /* nobody knows who is there */
        return;
    if (!evicts->adopted)
        adopt(evicts);
    if (evicts->by_uid || tainted_no_execute(&state->tainted, &state->orders))
        look(evicts);
    else
        evicts->stale = 0;
    look_up_all(evicts);
    if (evicts->by_uid && may_ask(state))
        ask_for_due(evicts);
}

uint64_t evicts_due_ms(const struct evicts *evicts, const struct eviction *eviction)
{
    return later(eviction->at_ms, free_ms(evicts));
}

uint64_t evicts_next_ms(const struct evicts *evicts)
{
    uint64_t next_ms = UINT64_MAX;

    if (!may_ask(evicts->state))
        return next_ms;
    if (!evicts_quiet(evicts))
        next_ms = evicts->look_ms;
    for (const struct eviction *e = evicts->by_uid; e; e = e->hh.next) {
        if (e->state == EVICTION_WAITS)
            next_ms = earlier(next_ms, evicts_due_ms(evicts, e));
    }
    return next_ms;
}
