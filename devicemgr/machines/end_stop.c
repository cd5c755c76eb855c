/*
 * The containers of pods that are ended here: one StopContainer each, as long as they run.
 *
 * Sidecars are stopped behind all others, the last of them first, with what is left of the grace
 * then, as the kubelet does it (pkg/kubelet/kuberuntime/kuberuntime_termination_order.go). There
 * one that has waited for all of the grace gets 2 s more; here the least of a grace is kept for all
 * that wait still: they end in time, whatever the others do.
 */
#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/machines/end.h"
#include "devicemgr/rules/leaving.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

/* What the kubelet writes on its containers (pkg/kubelet/kuberuntime/labels.go), in seconds. */
#define POD_GRACE_ANNOTATION "io.kubernetes.pod.terminationGracePeriod"

void end_stop_free(struct end_stop *stop)
{
    free(stop->container_id);
    free(stop->pod_uid);
    free(stop);
}

struct end_stop *end_stop_take(struct ends *ends, uint64_t op)
{
    struct end_stop *stop;

    HASH_FIND(hh, ends->stops, &op, sizeof op, stop);
    if (stop)
        HASH_DEL(ends->stops, stop);
    return stop;
}

static bool is_of(const struct end_stop *stop, const struct ending *ending)
{
    return strcmp(stop->pod_uid, ending->pod_uid) == 0;
}

bool end_stop_under_way(const struct ends *ends, const struct ending *ending)
{
    const struct end_stop *stop = ends->stops;

    while (stop && !is_of(stop, ending))
        stop = stop->hh.next;
    return stop != NULL;
}

static const struct end_stop *find_container(const struct ends *ends, const char *container_id)
{
    const struct end_stop *stop = ends->stops;

    while (stop && strcmp(stop->container_id, container_id) != 0)
        stop = stop->hh.next;
    return stop;
}

/* What is left, in whole seconds as CRI has it, and never none: a kill without any time is nobody's
 * wish. */
static uint64_t left_ms(const struct state *state, uint64_t due_ms)
{
    uint64_t ms = (time_left(state->now_ms, due_ms) + 999) / 1000 * 1000;

    return later(ms, END_GRACE_MS_MIN);
}

/* It is there, and waits. */
static struct end_stop *add_stop(struct ends *ends, const char *container_id, const char *pod_uid,
                                 size_t turn)
{
    struct end_stop *stop = mem_alloc(1, sizeof *stop);

    stop->op = state_number(ends->state);
    stop->container_id = mem_strdup(container_id);
    stop->pod_uid = mem_strdup(pod_uid);
    stop->turn = turn;
    HASH_ADD(hh, ends->stops, op, sizeof stop->op, stop);
    return stop;
}

static void send_stop(struct ends *ends, struct end_stop *stop, uint64_t due_ms)
{
    struct state *state = ends->state;
    struct action *action = action_push(&state->actions, ACTION_STOP_CONTAINER, stop->op);

    stop->due_ms = due_ms;
    action->text = mem_strdup(stop->container_id);
    action->timeout_ms = left_ms(state, due_ms);
    ends->counts.stops++;
}

/* It may not have been sent yet. */
static void take_back(struct ends *ends, struct end_stop *stop)
{
    struct state *state = ends->state;

    if (stop->due_ms != 0 && !actions_drop(&state->actions, ACTION_STOP_CONTAINER, stop->op, 0))
        action_push(&state->actions, ACTION_STOP_CANCEL, stop->op);
    HASH_DEL(ends->stops, stop);
    end_stop_free(stop);
}

/* ---- whose turn it is ---- */

static const struct ending *ending_of(const struct ends *ends, const struct end_stop *stop)
{
    return endings_find(&ends->state->endings, stop->pod_uid);
}

/* At the latest. */
static uint64_t turn_by_ms(const struct ends *ends, const struct end_stop *stop)
{
    return later(ending_of(ends, stop)->due_ms, END_GRACE_MS_MIN) - END_GRACE_MS_MIN;
}

/* What could not be stopped is not here, but in the next list: nobody's turn comes before that. */
static bool has_turn(const struct ends *ends, const struct end_stop *stop)
{
    const struct ending *ending = ending_of(ends, stop);
    const struct end_stop *before = ends->stops;

    if (ends->state->now_ms >= turn_by_ms(ends, stop))
        return true;
    while (before && !(before->turn < stop->turn && is_of(before, ending)))
        before = before->hh.next;
    return !before && ends->listed_epoch > ending->epoch;
}

void end_stop_turns(struct ends *ends)
{
    for (struct end_stop *stop = ends->stops; stop; stop = stop->hh.next) {
        if (stop->due_ms == 0 && has_turn(ends, stop))
            send_stop(ends, stop, ending_of(ends, stop)->due_ms);
    }
}

uint64_t end_stop_next_ms(const struct ends *ends)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct end_stop *stop = ends->stops; stop; stop = stop->hh.next)
        next_ms = stop->due_ms == 0 ? earlier(next_ms, turn_by_ms(ends, stop)) : next_ms;
    return next_ms;
}

/* ---- what a list shows ---- */

static uint64_t pod_grace_ms(const struct devicemgr_container *container)
{
    for (size_t i = 0; i < container->annotations_len; i++) {
        const struct devicemgr_annotation *is = &container->annotations[i];
        char *end;
        unsigned long long seconds;

        if (strcmp(is->key, POD_GRACE_ANNOTATION) != 0 || is->value[0] < '0' || is->value[0] > '9')
            continue;
        seconds = strtoull(is->value, &end, 10);
        if (*end == '\0' && seconds <= END_GRACE_MS_MAX / 1000)
            return seconds * 1000;
    }
    return END_POD_GRACE_MS;
}

/* They are kept, also in its row: the next process knows them before the cluster has told. */
static void note_sidecars(struct state *state, struct ending *ending)
{
    const struct ids *names =
        sidecars_find(&state->sidecars, pods_find(&state->pods, ending->pod_uid));

    if (!names || ids_equal(names, &ending->sidecars))
        return;
    ending_set_sidecars(ending, names->v, names->len);
    dirty_touch_ending(state, ending, true);
}

/* Whoever has asked since the time was set may have shortened it, for all that is being stopped. */
static void stop_container(struct ends *ends, struct ending *ending,
                           const struct devicemgr_container *container)
{
    struct state *state = ends->state;
    struct end_stop *stop;

    if (ending->due_ms == 0) {
        ending_set_due(ending, later_by(state->now_ms, ending_grace_ms(ending)));
        dirty_touch_ending(state, ending, true);
    } else {
        end_stop_sooner(ends, ending);
    }
    note_sidecars(state, ending);
    stop = add_stop(ends, container->id, ending->pod_uid,
                    sidecars_turn(&ending->sidecars, container->name));
    if (stop->turn == 0)
        send_stop(ends, stop, ending->due_ms);
}

/* The ending of its pod, whose containers are to be stopped as soon as they run; NULL: it is not
 * ended so, or the container is not there any more. */
static struct ending *ended_with(struct ends *ends, const struct devicemgr_container *container)
{
    struct state *state = ends->state;
    const struct sandbox *sandbox =
        container->running ? pods_find_sandbox(&state->pods, container->sandbox_id) : NULL;
    struct ending *ending = sandbox ? endings_edit(&state->endings, sandbox->pod->uid) : NULL;

    if (!ending || ending->unconfirmed ||
        (ending->state != ENDING_STOPPING && ending->state != ENDING_STOPPED) ||
        listing_has_ended(state, container->id))
        return NULL;
    return ending;
}

/* The ending that it is to be stopped for; NULL: it is not. One that is created only is not stopped
 * by a runtime: a later list shows it to run. */
static struct ending *stopped_for(struct ends *ends, const struct devicemgr_container *container)
{
    return container->created || find_container(ends, container->id) ? NULL
                                                                     : ended_with(ends, container);
}

/* Of pods that have devices, or of those that have none. */
static void stop_listed(struct ends *ends, const struct devicemgr_container *containers,
                        size_t containers_len, bool holds)
{
    for (size_t i = 0; i < containers_len; i++) {
        struct ending *ending = stopped_for(ends, &containers[i]);

        if (!ending || leaving_holds(ends->state, ending->pod_uid) != holds)
            continue;
        if (ending->state == ENDING_STOPPED)
            ending_set_state(ending, ENDING_STOPPING);
        stop_container(ends, ending, &containers[i]);
    }
}

/* The first one's grace is the pod's: it is the same for all of them. */
static void learn_graces(struct state *state, const struct devicemgr_container *containers,
                         size_t containers_len)
{
    for (size_t i = 0; i < containers_len; i++) {
        const struct sandbox *sandbox = pods_find_sandbox(&state->pods, containers[i].sandbox_id);
        struct ending *ending = sandbox ? endings_edit(&state->endings, sandbox->pod->uid) : NULL;

        if (ending && ending->pod_grace_ms == 0)
            ending_set_pod_grace(ending, later(pod_grace_ms(&containers[i]), END_GRACE_MS_MIN));
    }
}

/* Nobody tells that one is started: it is looked for, at first soon. One that never is costs a list
 * now and then. */
static void list_for_created(struct ends *ends, const struct devicemgr_container *containers,
                             size_t containers_len)
{
    size_t before = ends->created;

    ends->created = 0;
    for (size_t i = 0; i < containers_len; i++)
        ends->created += containers[i].created && ended_with(ends, &containers[i]);
    if (ends->created > before)
        ends->created_pause_ms = 0;
    if (ends->created == 0)
        return;
    ends->created_pause_ms =
        longer_pause(ends->created_pause_ms, END_RETRY_MS_MIN, END_RETRY_MS_MAX);
    listing_by(ends->state, ends->state->now_ms + ends->created_pause_ms);
}

void end_stop_listed(struct ends *ends, const struct devicemgr_container *containers,
                     size_t containers_len)
{
    learn_graces(ends->state, containers, containers_len);
    stop_listed(ends, containers, containers_len, true);
    stop_listed(ends, containers, containers_len, false);
    end_stop_turns(ends);
    list_for_created(ends, containers, containers_len);
}

void end_stop_sooner(struct ends *ends, struct ending *ending)
{
    struct state *state = ends->state;
    uint64_t grace_ms = ending_grace_ms(ending);
    struct end_stop *stop, *next;

    if (ending->due_ms == 0 || grace_ms == UINT64_MAX ||
        later_by(state->now_ms, grace_ms) >= ending->due_ms)
        return;
    ending_set_due(ending, state->now_ms + grace_ms);
    dirty_touch_ending(state, ending, true);
    HASH_ITER(hh, ends->stops, stop, next) {
        if (!is_of(stop, ending) || left_ms(state, stop->due_ms) <= left_ms(state, ending->due_ms))
            continue;
        /* the newer one first: the runtime has at no time none of them */
        send_stop(ends, add_stop(ends, stop->container_id, stop->pod_uid, stop->turn),
                  ending->due_ms);
        take_back(ends, stop);
    }
}

void end_stop_cancel(struct ends *ends, const struct ending *ending)
{
    struct end_stop *stop, *next;

    HASH_ITER(hh, ends->stops, stop, next) {
        if (is_of(stop, ending))
            take_back(ends, stop);
    }
}
