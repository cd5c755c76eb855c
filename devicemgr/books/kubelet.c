/*
 * What the core knows of the kubelet: when it started, and whether it has listed.
 */
#include "devicemgr/books/facts.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"

/*
 * A token names resource and ids, and no container: the kubelet copies it into whichever container
 * it was given for, and nobody but the kubelet's checkpoint says which one that was. A pod's author
 * cannot write one (the kubelet takes no annotation of the container from the pod), another client
 * of the runtime, or a plugin that serves the kubelet itself, can. So what a token names is
 * compared with the file: the kubelet writes it before it makes the container, so that a reading
 * which began after the create had come has it. Late readings must not cry wolf: pods that are over
 * go from the file, with their containers ended.
 */
void kubelet_note_token(struct state *state, struct allocation *allocation, uint64_t since_ms)
{
    if (allocation->token != ALLOCATION_TOKEN_NONE)
        return;
    if (kubelet_gave(state, allocation)) {
        allocation_set_token(allocation, ALLOCATION_TOKEN_JUDGED, 0);
        return;
    }
    allocation_set_token(allocation, ALLOCATION_TOKEN_WAITS, since_ms);
    state->kubelet.unproven = true;
}

static void warn_of_token(struct state *state, const struct allocation *allocation)
{
    struct text text = {0};

    name_holder(&state->pods, allocation, &text);
    text_add_name(&text, " came with a token for resource ", allocation->resource);
    text_add(&text, ", device ids ");
    text_add_ids(&text, allocation_asked(allocation));
    text_add(&text, ", that the kubelet's checkpoint does not give it: another container's token, "
                    "or not the kubelet's");
    state_log_about(
        state, LEVEL_WARNING,
        name_line(DEVICEMGR_LINE_STRANGE_TOKEN, name_about_holder(&state->pods, allocation)),
        &text);
}

void kubelet_judge_tokens(struct state *state, uint64_t read_ms)
{
    if (!state->kubelet.unproven)
        return;
    state->kubelet.unproven = false;
    for (struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (a->token != ALLOCATION_TOKEN_WAITS)
            continue;
        if (a->token_ms > read_ms) {
            state->kubelet.unproven = true; /* the next reading tells */
            continue;
        }
        if (kubelet_gave(state, a)) {
            allocation_set_token(a, ALLOCATION_TOKEN_JUDGED, 0);
        } else if (allocation_life(a) == ALLOCATION_IDLE) {
            allocation_set_token(a, ALLOCATION_TOKEN_NONE, 0);
        } else {
            warn_of_token(state, a);
            allocation_set_token(a, ALLOCATION_TOKEN_JUDGED, 0);
        }
    }
}

/* ---- its start ---- */

static uint64_t start_end_ms(const struct state *state)
{
    uint64_t started_ms = later(state->kubelet.started_ms, state->kubelet.pods_ms);

    return later_by(started_ms, state->settings.mask_ms);
}

uint64_t kubelet_started_until_ms(const struct state *state)
{
    return kubelet_is_starting(state) ? start_end_ms(state) : UINT64_MAX;
}

bool kubelet_is_starting(const struct state *state)
{
    return state->settings.mask_ms > 0 && state->now_ms < start_end_ms(state);
}

void kubelet_started(struct state *state)
{
    state->kubelet.started_ms = state->now_ms;
}

/* ---- the sources ---- */

void kubelet_restored(struct state *state)
{
    uint64_t wait_ms = state->settings.kubelet_wait_ms;
    size_t before = 0;

    state->kubelet.started_ms = state->now_ms; /* nobody can tell whether one just has */
    state->kubelet.wait_ms = later_by(state->now_ms, wait_ms);
    for (const struct pod *pod = state->pods.by_uid; pod; pod = pod->hh.next)
        before += facts_pod_of_earlier_boot(state, pod);
    state->kubelet.new_boot = before > 0;
    if (before > 0 && before == HASH_COUNT(state->pods.by_uid))
        state->kubelet.pods_ms = state->now_ms + POD_RETURNS_MS;
}

/*
 * After a reboot the kubelet admits its pods when the API server has told it of them, which may
 * itself be long in coming; and a plugin that is a pod is made no sooner. Until then the time of
 * none of them has begun.
 */
void kubelet_runs_pods(struct state *state)
{
    state->kubelet.pods_ms = earlier(state->kubelet.pods_ms, state->now_ms);
}

uint64_t kubelet_away_ms(const struct state *state, const struct resource *resource)
{
    const struct endpoint *endpoint = &resource->endpoint;

    return endpoint->listed ? endpoint->stopped_ms
                            : later(endpoint->stopped_ms, state->kubelet.pods_ms);
}

void kubelet_listed(struct state *state)
{
    state->kubelet.listed = true;
}

bool kubelet_become_ready(struct state *state)
{
    struct kubelet_view *kubelet = &state->kubelet;

    if (kubelet->ready || !state->listing.listed ||
        !(kubelet->listed || state->now_ms >= kubelet->wait_ms))
        return false;
    kubelet->ready = true;
    kubelet->ready_ms = state->now_ms;
    return true;
}

uint64_t kubelet_next_ms(const struct state *state)
{
    return state->listing.listed && !state->kubelet.ready ? state->kubelet.wait_ms : UINT64_MAX;
}
