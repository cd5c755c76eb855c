/*
 * The sandboxes of pods whose containers were stopped since the machine goes down: one
 * StopPodSandbox each, so that their networks are taken down in order. A pod that is ended for
 * anything else keeps its own: a kubelet that finds it stopped makes another.
 */
#include <string.h>

#include "devicemgr/books/ledger.h"
#include "devicemgr/books/state.h"
#include "devicemgr/machines/end.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/words/ending.h"

static bool under_way(const struct ends *ends, const char *sandbox_id)
{
    const struct end_sandbox *stop = ends->sandboxes;

    while (stop && strcmp(stop->sandbox_id, sandbox_id) != 0)
        stop = stop->hh.next;
    return stop != NULL;
}

static void send_stop(struct ends *ends, struct sandbox *sandbox)
{
    struct state *state = ends->state;
    struct end_sandbox *stop = mem_alloc(1, sizeof *stop);
    struct action *action;

    stop->op = state_number(state);
    stop->sandbox_id = mem_strdup(sandbox->id);
    stop->pod_uid = mem_strdup(sandbox->pod->uid);
    HASH_ADD(hh, ends->sandboxes, op, sizeof stop->op, stop);
    action = action_push(&state->actions, ACTION_STOP_SANDBOX, stop->op);
    action->text = mem_strdup(sandbox->id);
    sandbox_set_stopping(sandbox);
    ledger_pod_changed(state, sandbox->pod->uid);
}

/* One that failed is open again by a later list, if that shows it to be ready still. */
void end_sandbox_stop(struct ends *ends, const struct ending *ending)
{
    struct state *state = ends->state;
    const struct pod *pod = pods_find(&state->pods, ending->pod_uid);

    if (!pod || ending->state != ENDING_STOPPED || !shutdown_under_way(&state->shutdown) ||
        !ending_find_ask(ending, END_SHUTDOWN, END_ONCE))
        return;
    for (struct sandbox *is = pod->sandboxes; is; is = is->pod_next) {
        if (is->state == SANDBOX_OPEN && !is->dead && !under_way(ends, is->id))
            send_stop(ends, is);
    }
}

struct end_sandbox *end_sandbox_take(struct ends *ends, uint64_t op)
{
    struct end_sandbox *stop;

    HASH_FIND(hh, ends->sandboxes, &op, sizeof op, stop);
    if (stop)
        HASH_DEL(ends->sandboxes, stop);
    return stop;
}

struct end_sandbox *ends_sandbox_stopped(struct ends *ends, uint64_t op, int code,
                                         const char *message)
{
    struct end_sandbox *stop = end_sandbox_take(ends, op);
    const struct ending *ending = stop ? endings_find(&ends->state->endings, stop->pod_uid) : NULL;
    struct text text = {0};

    if (code == CODE_OK || code == CODE_NOT_FOUND || !ending)
        return stop;
    text_add(&text, "sandbox %.12s was not stopped, which is tried again: ", stop->sandbox_id);
    text_add_words(&text, message, TEXT_WORDS_BYTES_MAX);
    state_log_about(ends->state, LEVEL_WARNING, ending_about(ending), &text);
    return stop;
}

void end_sandbox_free(struct end_sandbox *stop)
{
    if (!stop)
        return;
    free(stop->sandbox_id);
    free(stop->pod_uid);
    free(stop);
}
