#include "devicemgr/machines/shutdown.h"

#include <utlist.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/happened.h"
#include "devicemgr/books/state.h"
#include "devicemgr/rules/leaving.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/words/shutdown.h"

/* ---- steps ---- */

static void put_step(struct shutdowns *shutdowns, const char *pod_uid, bool ask, uint64_t grace_ms)
{
    struct shutdown_step *step = mem_alloc(1, sizeof *step);

    step->ask = ask;
    step->pod_uid = mem_strdup(pod_uid);
    step->grace_ms = grace_ms;
    DL_APPEND(shutdowns->steps, step);
}

struct shutdown_step *shutdowns_take(struct shutdowns *shutdowns)
{
    struct shutdown_step *step = shutdowns->steps;

    if (step)
        DL_DELETE(shutdowns->steps, step);
    return step;
}

void shutdown_step_free(struct shutdown_step *step)
{
    free(step->pod_uid);
    free(step);
}

void shutdowns_fini(struct shutdowns *shutdowns)
{
    while (shutdowns->steps)
        shutdown_step_free(shutdowns_take(shutdowns));
}

/* ---- what is said of it ---- */

static void tell(struct state *state, const char *word, int level)
{
    struct text text = {0};

    shutdown_tell(state, word, &text);
    state_log_about(state, level, (struct devicemgr_about){.line = DEVICEMGR_LINE_SHUTDOWN}, &text);
    happened_shutdown(state, word, text.buf);
}

static void note_changed(struct state *state, const char *word)
{
    dirty_touch_shutdown(state);
    tell(state, word, LEVEL_WARNING);
}

/* ---- what was asked for, and is wanted no more ---- */

/* What was sent comes to its end, and is told so, before the pod may be made again. */
static bool is_to_go_on(const struct ending *ending, const struct ending_ask *ask)
{
    bool sent = ending->due_ms != 0 || ending_is_over(ending);

    return sent && !ask->told;
}

static void take_back_left(struct shutdowns *shutdowns)
{
    const struct endings *endings = &shutdowns->state->endings;

    for (const struct ending *e = endings->by_uid; e; e = e->hh.next) {
        const struct ending_ask *ask = ending_find_ask(e, END_SHUTDOWN, END_ONCE);

        if (ask && !is_to_go_on(e, ask))
            put_step(shutdowns, e->pod_uid, false, 0);
    }
}

void shutdowns_restored(struct shutdowns *shutdowns)
{
    struct state *state = shutdowns->state;

    if (shutdown_under_way(&state->shutdown))
        tell(state, "restored", LEVEL_WARNING);
    else if (state->shutdown.stored)
        dirty_touch_shutdown(state);
    shutdowns_settings_changed(shutdowns);
    if (!shutdown_under_way(&state->shutdown))
        take_back_left(shutdowns);
}

/* ---- its beginning and its end ---- */

static void begin(struct shutdowns *shutdowns, uint64_t since_ms,
                  const struct devicemgr_shutdown_said *said)
{
    struct state *state = shutdowns->state;

    shutdown_begin(&state->shutdown, since_ms, said->limit_ms,
                   said->kubelet_locked || shutdowns->kubelet_before);
    note_changed(state, "begun");
    wake_all(&state->wakes); /* who waits is refused */
}

static void end(struct shutdowns *shutdowns, const char *word, bool given_up)
{
    struct state *state = shutdowns->state;

    note_changed(state, word);
    shutdown_end(&state->shutdown, given_up);
}

static void over(struct state *state, const char *word)
{
    shutdown_set_over(&state->shutdown, state->now_ms);
    note_changed(state, word);
}

/* What was not known when it began. */
static void learn(struct state *state, const struct devicemgr_shutdown_said *said)
{
    struct shutdown *shutdown = &state->shutdown;

    if (said->kubelet_locked && shutdown->state == SHUTDOWN_BEGUN && !shutdown->by_kubelet) {
        shutdown_set_by_kubelet(shutdown);
        dirty_touch_shutdown(state);
    }
    if (shutdown->limit_ms != 0 || said->limit_ms == 0)
        return;
    shutdown_set_limit(shutdown, said->limit_ms);
    dirty_touch_shutdown(state);
}

/* Whether it is the one that nobody has ended, told once more. */
static bool is_given_up(const struct shutdown *shutdown, const struct devicemgr_shutdown_said *said)
{
    return shutdown->given_up_ms != 0 && said->since_ms <= shutdown->given_up_ms;
}

static void note_kubelet(struct shutdowns *shutdowns, const struct devicemgr_shutdown_said *said)
{
    bool gone = said->under_way && said->kubelet_gone;

    shutdowns->kubelet_gone_ms =
        gone ? earlier(shutdowns->kubelet_gone_ms, shutdowns->state->now_ms) : UINT64_MAX;
}

void shutdowns_told(struct shutdowns *shutdowns, const struct devicemgr_shutdown_said *said)
{
    struct state *state = shutdowns->state;
    struct shutdown *shutdown = &state->shutdown;
    uint64_t since_ms = said->since_ms != 0 ? earlier(said->since_ms, state->now_ms) : 0;

    if (said->pods)
        shutdown_set_known(shutdown, said->pods, said->pods_len);
    note_kubelet(shutdowns, said);
    if (!said->under_way) {
        shutdowns->kubelet_before = said->kubelet_locked;
        if (shutdown_under_way(shutdown))
            end(shutdowns, "cancelled", false);
        shutdown->given_up_ms = 0;
        return;
    }
    if (state->settings.shutdown_len == 0 || is_given_up(shutdown, said))
        return;
    if (!shutdown_under_way(shutdown))
        begin(shutdowns, since_ms != 0 ? since_ms : state->now_ms, said);
    else if (since_ms > shutdown->since_ms)
        begin(shutdowns, since_ms, said);
    else
        learn(state, said);
}

void shutdowns_settings_changed(struct shutdowns *shutdowns)
{
    if (shutdown_under_way(&shutdowns->state->shutdown) &&
        shutdowns->state->settings.shutdown_len == 0)
        end(shutdowns, "cancelled", false);
}

/* ---- the groups ---- */

bool shutdown_take_in(const struct state *state, struct shutdown *shutdown)
{
    bool some = false;

    for (const struct pod *pod = state->pods.by_uid; pod; pod = pod->hh.next) {
        size_t group;

        if (shutdown_find_pod(shutdown, pod->uid) || !leaving_pod(state, pod) ||
            (!shutdown->by_priority && !leaving_holds(state, pod->uid)))
            continue;
        group = shutdown_group_of(shutdown, leaving_priority(shutdown, pod));
        shutdown_add_pod(shutdown, pod->uid, group > shutdown->group ? group : shutdown->group);
        some = true;
    }
    return some;
}

static void take_in(struct state *state)
{
    if (shutdown_take_in(state, &state->shutdown))
        dirty_touch_shutdown(state);
}

static void begin_group(struct state *state, size_t group)
{
    shutdown_set_group(&state->shutdown, group, state->now_ms);
    dirty_touch_shutdown(state);
    if (shutdown_group_len(&state->shutdown, group) > 0)
        tell(state, "group", LEVEL_WARNING);
}

void shutdown_make_groups(const struct state *state, struct shutdown *shutdown)
{
    const struct devicemgr_settings *settings = &state->settings;
    const struct devicemgr_shutdown_group all = {.priority = INT32_MIN,
                                                 .grace_ms = shutdown_settings_ms(state)};

    if (shutdown->is_known)
        shutdown_set_groups(shutdown, settings->shutdown, settings->shutdown_len, true);
    else
        shutdown_set_groups(shutdown, &all, 1, false);
}

static void make_groups(struct state *state)
{
    struct shutdown *shutdown = &state->shutdown;

    shutdown_make_groups(state, shutdown);
    take_in(state);
    shutdown_set_state(shutdown, SHUTDOWN_GROUPS);
    if (shutdown_shorten(shutdown, time_left(state->now_ms, shutdown_deadline_ms(shutdown))) &&
        shutdown->limit_ms < shutdown_settings_ms(state))
        tell(state, "shortened", LEVEL_WARNING);
    begin_group(state, 0);
}

/* Whether the pod ends by `ends_ms` without being asked once more. What was sent ends at due_ms,
 * and END_GRACE_MS_MIN more is no reason to send it anew. Where nothing was sent yet the time that
 * it was given counts, as long as that is not over. */
static bool comes_in_time(const struct state *state, const struct ending *ending,
                          const struct ending_ask *ask, uint64_t ends_ms)
{
    uint64_t asked_until_ms = later_by(ask->asked_ms, ask->grace_ms);

    if (ending->due_ms != 0)
        return ending->due_ms <= later(ends_ms, state->now_ms) + END_GRACE_MS_MIN;
    return asked_until_ms > state->now_ms &&
           asked_until_ms <= later(ends_ms, state->now_ms + END_GRACE_MS_MIN);
}

/* Whether nothing is to be asked for: it was by an earlier process, or in a shutdown before this
 * one, and comes in time, or has. One whose end has come may have a container in the making as long
 * as it has a sandbox: that is stopped with what was asked for. */
static bool is_asked(const struct state *state, const struct shutdown_pod *pod, uint64_t ends_ms)
{
    const struct ending *ending = endings_find(&state->endings, pod->uid);
    const struct ending_ask *ask = ending ? ending_find_ask(ending, END_SHUTDOWN, END_ONCE) : NULL;

    return ask && (facts_pod_has_left(state, pod) || comes_in_time(state, ending, ask, ends_ms));
}

/* Those of the group whose turn it is. */
static void ask_for_group(struct shutdowns *shutdowns)
{
    struct state *state = shutdowns->state;
    const struct shutdown *shutdown = &state->shutdown;
    uint64_t ends_ms = shutdown_group_ends_ms(shutdown);

    for (struct shutdown_pod *pod = shutdown->pods; pod; pod = pod->hh.next) {
        const struct pod *is = pods_find(&state->pods, pod->uid);

        if (pod->asked || pod->group != shutdown->group)
            continue;
        pod->asked = true;
        if (is && leaving_pod(state, is) && !is_asked(state, pod, ends_ms))
            put_step(shutdowns, pod->uid, true, time_left(state->now_ms, ends_ms));
    }
}

/* Whether somebody of the group is asked for now: what comes of that is seen by the next look. */
static bool is_asking(const struct shutdowns *shutdowns)
{
    const struct shutdown *shutdown = &shutdowns->state->shutdown;
    const struct shutdown_step *step;

    DL_FOREACH(shutdowns->steps, step) {
        const struct shutdown_pod *pod = shutdown_find_pod(shutdown, step->pod_uid);

        if (pod && pod->group == shutdown->group)
            return true;
    }
    return false;
}

static bool group_is_over(const struct shutdowns *shutdowns)
{
    const struct state *state = shutdowns->state;
    const struct shutdown *shutdown = &state->shutdown;
    const struct shutdown_pod *pod = shutdown->pods;

    if (state->now_ms >= shutdown_group_ends_ms(shutdown))
        return true;
    if (is_asking(shutdowns))
        return false;
    while (pod && (pod->group != shutdown->group || facts_pod_has_left(state, pod)))
        pod = pod->hh.next;
    return pod == NULL;
}

static void go_on(struct shutdowns *shutdowns)
{
    struct state *state = shutdowns->state;
    struct shutdown *shutdown = &state->shutdown;

    take_in(state);
    ask_for_group(shutdowns);
    while (group_is_over(shutdowns)) {
        if (shutdown->group + 1 == shutdown->groups_len) {
            over(state, "over");
            return;
        }
        begin_group(state, shutdown->group + 1);
        ask_for_group(shutdowns);
    }
}

/* ---- what is to be done now ---- */

static uint64_t known_by_ms(const struct shutdown *shutdown)
{
    return shutdown->is_known || shutdown->by_kubelet
               ? 0
               : later_by(shutdown->since_ms, SHUTDOWN_KNOW_MS);
}

static void plan(struct state *state)
{
    struct shutdown *shutdown = &state->shutdown;

    if (state->now_ms < known_by_ms(shutdown))
        return;
    if (!shutdown->by_kubelet) {
        make_groups(state);
        return;
    }
    shutdown_set_state(shutdown, SHUTDOWN_KUBELET);
    note_changed(state, "kubelet");
}

/* When what a kubelet has left is ended from here. */
static uint64_t taken_over_ms(const struct shutdowns *shutdowns)
{
    return later_by(shutdowns->kubelet_gone_ms, SHUTDOWN_LEFT_MS);
}

static void take_over(struct state *state)
{
    shutdown_set_left(&state->shutdown);
    tell(state, "left", LEVEL_WARNING);
    make_groups(state);
}

static bool out_of_time(const struct state *state)
{
    return state->shutdown.state != SHUTDOWN_OVER &&
           state->now_ms >= shutdown_deadline_ms(&state->shutdown);
}

static void look(struct shutdowns *shutdowns)
{
    struct state *state = shutdowns->state;
    struct shutdown *shutdown = &state->shutdown;

    if (out_of_time(state))
        over(state, "late");
    if (shutdown->state == SHUTDOWN_OVER &&
        state->now_ms >= later_by(shutdown->over_ms, SHUTDOWN_GIVEN_UP_MS))
        end(shutdowns, "given-up", true);
    if (!state->listing.listed || state->draining) /* nobody knows who is there */
        return;
    if (shutdown->state == SHUTDOWN_BEGUN)
        plan(state);
    if (shutdown->state == SHUTDOWN_KUBELET && !leaving_sandboxes(state))
        over(state, "over");
    else if (shutdown->state == SHUTDOWN_KUBELET && state->now_ms >= taken_over_ms(shutdowns))
        take_over(state);
    if (shutdown->state == SHUTDOWN_GROUPS)
        go_on(shutdowns);
}

void shutdowns_review(struct shutdowns *shutdowns)
{
    if (shutdowns->state->unread || shutdowns->steps)
        return;
    if (shutdown_under_way(&shutdowns->state->shutdown))
        look(shutdowns);
    else
        take_back_left(shutdowns);
}

uint64_t shutdowns_next_ms(const struct shutdowns *shutdowns)
{
    const struct state *state = shutdowns->state;
    const struct shutdown *shutdown = &state->shutdown;

    switch (shutdown->state) {
    case SHUTDOWN_BEGUN:
        return state->now_ms < known_by_ms(shutdown)
                   ? earlier(known_by_ms(shutdown), shutdown_deadline_ms(shutdown))
                   : shutdown_deadline_ms(shutdown);
    case SHUTDOWN_GROUPS:
        return state->draining || !state->listing.listed ? shutdown_deadline_ms(shutdown)
                                                         : shutdown_group_ends_ms(shutdown);
    case SHUTDOWN_KUBELET:
        return state->draining || !state->listing.listed
                   ? shutdown_deadline_ms(shutdown)
                   : earlier(taken_over_ms(shutdowns), shutdown_deadline_ms(shutdown));
    case SHUTDOWN_OVER:
        return later_by(shutdown->over_ms, SHUTDOWN_GIVEN_UP_MS);
    case SHUTDOWN_NONE:
    case SHUTDOWN_STATES:
        break;
    }
    return UINT64_MAX;
}
