/*
 * One turn: an event comes in, who is concerned takes it, in this order, and hears what came of it;
 * what is to be done leaves.
 */
#include "devicemgr/turn/turn.h"

#include <stdlib.h>

#include "devicemgr/books/ledger.h"
#include "devicemgr/machines/advertise.h"
#include "devicemgr/machines/enroll.h"
#include "devicemgr/machines/listed.h"
#include "devicemgr/machines/plugin.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

struct devicemgr *devicemgr_new(const struct devicemgr_settings *settings,
                                const struct devicemgr_ports *ports, void *user)
{
    struct devicemgr *mgr = mem_alloc(1, sizeof *mgr);
    struct state *state = &mgr->state;

    state_init(state, settings);
    tainted_settings_changed(state);
    state->watched = ports && ports->event;
    mgr->calls.state = mgr->checks.state = mgr->prefers.state = state;
    mgr->runtime.state = mgr->runtime.adopt.state = mgr->steers.state = state;
    mgr->releases.state = mgr->tasks.state = mgr->ends.state = mgr->evicts.state = state;
    mgr->shutdowns = (struct shutdowns){.state = state, .kubelet_gone_ms = UINT64_MAX};
    mgr->creates = (struct creates){.state = state, .calls = &mgr->calls, .checks = &mgr->checks};
    mgr->ports = ports;
    mgr->user = user;
    return mgr;
}

static void tables_fini(struct state *state)
{
    actions_fini(&state->actions);
    wakes_fini(&state->wakes);
    outbox_fini(&state->outbox);
    refused_fini(&state->refused);
    claim_refused_fini(&state->claim_refused);
    listing_forget_ended(state);
    kubelet_fini(&state->kubelet);
    replacings_fini(&state->replacings);
    dirty_rows_free(&state->dirty.rows);
    checkpoint_fini(&state->checkpoint);
    allocations_fini(&state->allocations);
    pods_fini(&state->pods);
    orders_fini(&state->orders);
    endings_fini(&state->endings);
    shutdown_fini(&state->shutdown);
    sidecars_fini(&state->sidecars);
    claims_fini(&state->claims);
    drivers_fini(&state->drivers);
    slices_fini(&state->slices);
    tainted_fini(&state->tainted);
    ids_fini(&state->removed);
    resources_fini(&state->resources);
}

void devicemgr_free(struct devicemgr *mgr)
{
    if (!mgr)
        return;
    creates_fini(&mgr->creates);
    calls_fini(&mgr->calls);
    checks_fini(&mgr->checks);
    runtime_fini(&mgr->runtime);
    prefers_fini(&mgr->prefers);
    steers_fini(&mgr->steers);
    releases_fini(&mgr->releases);
    tasks_fini(&mgr->tasks);
    ends_fini(&mgr->ends);
    evicts_fini(&mgr->evicts);
    shutdowns_fini(&mgr->shutdowns);
    tables_fini(&mgr->state);
    state_fini(&mgr->state);
    free(mgr);
}

/* ---- what has come to pass in one part, told to others ---- */

static void tell(struct devicemgr *mgr, const struct outbox_event *event)
{
    switch (event->kind) {
    case OUTBOX_ENDPOINT_ENDED:
        prefers_endpoint_ended(&mgr->prefers, event->number);
        creates_endpoint_ended(&mgr->creates, event->number);
        break;
    case OUTBOX_RESOURCE_SERVED:
        adopt_served(&mgr->runtime.adopt, event->name);
        break;
    }
}

/* Before the next event. What has come to pass is put there by plugins alone, so only what may
 * concern these is followed by it; state_at() sees that nothing is left. */
static void hand_out(struct devicemgr *mgr)
{
    while (mgr->state.outbox.first) {
        struct outbox_event *event = outbox_take(&mgr->state.outbox);

        tell(mgr, event);
        outbox_event_free(event);
    }
}

/* ---- what is to be done ---- */

/* False: some are left for the next turn, since those before took long enough for one. */
static bool advance_woken(struct devicemgr *mgr)
{
    struct wakes *wakes = &mgr->state.wakes;
    const uint64_t looks_max =
        mgr->state.draining ? UINT64_MAX : wakes->device_looks + TURN_DEVICE_LOOKS_MAX;
    size_t len, i;
    uint64_t *numbers = wakes_take(wakes, &len);

    for (i = 0; i < len && wakes->device_looks < looks_max; i++) {
        const struct demand *passes = creates_advance(&mgr->creates, numbers[i]);

        if (passes)
            adopt_created(&mgr->state, passes->sandbox_id, passes->pod_uid, passes->container);
    }
    wakes_put_back(wakes, numbers + i, len - i);
    free(numbers);
    return i == len;
}

static void begin_commit(struct devicemgr *mgr)
{
    uint64_t commit = checkpoint_begin(&mgr->state);

    creates_commit_began(&mgr->creates, commit);
    steers_commit_began(&mgr->steers, commit);
    releases_commit_began(&mgr->releases, commit);
    tasks_commit_began(&mgr->tasks);
    ends_commit_began(&mgr->ends, commit);
}

static void review_ends(struct devicemgr *mgr)
{
    tainted_review(&mgr->state);
    turn_evict(mgr);
    turn_shut_down(mgr);
    turn_doubt_evictions(mgr);
}

/* A commit begins only when nothing else is left to do, so that it takes all rows there are. */
void devicemgr_run(struct devicemgr *mgr)
{
    struct state *state = &mgr->state;
    bool unchecked = state->settings.checked;

    if (mgr->running)
        return;
    mgr->running = true;
    mgr->left = false;
    tasks_asked(&mgr->tasks);
    for (;;) {
        if (!turn_ends_nobody(mgr))
            review_ends(mgr); /* who is not to go any more has nothing sent */
        if (state->actions.first)
            actions_carry_out(&state->actions, mgr->ports, mgr->user);
        if (state->allocations.changed)
            ledger_tell_changes(state);
        if (state->now_ms >= state->showing.all_ms)
            advertise_pass(state);
        if (mgr->left)
            break;
        if (state->wakes.woken_len > 0) {
            mgr->left = !advance_woken(mgr);
        } else if (checkpoint_ready(&state->checkpoint, &state->dirty)) {
            begin_commit(mgr);
        } else if (unchecked) {
            unchecked = false;
            creates_verify(&mgr->creates);
        } else if (!state->actions.first) {
            break;
        }
    }
    if (state->showing.stale)
        advertise_review(state);
    mgr->running = false;
}

/* ---- time ---- */

uint64_t devicemgr_next_ms(const struct devicemgr *mgr)
{
    const struct state *state = &mgr->state;
    const uint64_t due_ms[] = {plugin_next_ms(state),          wakes_next_ms(&state->wakes),
                               prefers_next_ms(&mgr->prefers), advertise_next_ms(state),
                               checkpoint_next_ms(state),      kubelet_next_ms(state),
                               state->listing.due_ms,          releases_next_ms(&mgr->releases),
                               enroll_next_ms(state),          tasks_next_ms(&mgr->tasks),
                               ends_next_ms(&mgr->ends),       tainted_next_ms(state),
                               evicts_next_ms(&mgr->evicts),   shutdowns_next_ms(&mgr->shutdowns)};
    uint64_t next_ms = mgr->left ? state->now_ms : UINT64_MAX;

    for (size_t i = 0; i < sizeof due_ms / sizeof due_ms[0]; i++)
        next_ms = earlier(next_ms, due_ms[i]);
    return next_ms;
}

void devicemgr_tick(struct devicemgr *mgr, uint64_t now_ms)
{
    struct state *state = &mgr->state;

    state_at(state, now_ms);
    plugin_tick(state);
    hand_out(mgr);
    listing_tick(state);
    listed_when_ready(&mgr->runtime);
    checkpoint_tick(state);
    prefers_tick(&mgr->prefers);
    releases_tick(&mgr->releases);
    tasks_tick(&mgr->tasks);
    enroll_tick(state);
    ends_tick(&mgr->ends);
    wake_tick(&state->wakes, state->now_ms);
}

/* ---- plugins ---- */

void devicemgr_register(struct devicemgr *mgr, uint64_t now_ms, uint64_t registration,
                        const char *version, const char *socket_name, uint32_t uid,
                        const char *resource)
{
    state_at(&mgr->state, now_ms);
    registration_begin(&mgr->state, registration, version, socket_name, uid, false, resource);
    hand_out(mgr);
}

void devicemgr_register_at(struct devicemgr *mgr, uint64_t now_ms, uint64_t registration,
                           const char *version, const char *path, uint32_t uid,
                           const char *resource)
{
    state_at(&mgr->state, now_ms);
    registration_begin(&mgr->state, registration, version, path, uid, true, resource);
    hand_out(mgr);
}

void devicemgr_register_cancelled(struct devicemgr *mgr, uint64_t registration)
{
    registration_cancelled(&mgr->state, registration);
}

void devicemgr_endpoint_options(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                                const V1beta1__DevicePluginOptions *options)
{
    state_at(&mgr->state, now_ms);
    plugin_take_options(&mgr->state, endpoint, options);
    hand_out(mgr);
}

void devicemgr_endpoint_list(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                             const V1beta1__ListAndWatchResponse *list)
{
    state_at(&mgr->state, now_ms);
    plugin_take_list(&mgr->state, endpoint, list);
    hand_out(mgr);
}

void devicemgr_endpoint_lost(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                             const char *reason)
{
    state_at(&mgr->state, now_ms);
    plugin_take_loss(&mgr->state, endpoint, reason);
    hand_out(mgr);
}

void devicemgr_builtin(struct devicemgr *mgr, uint64_t now_ms, const char *resource,
                       const struct devicemgr_builtin_device *devices, size_t devices_len)
{
    state_at(&mgr->state, now_ms);
    builtin_listed(&mgr->state, resource, devices, devices_len);
    hand_out(mgr);
}

void devicemgr_allocated(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                         const char *message, const V1beta1__AllocateResponse *response)
{
    state_at(&mgr->state, now_ms);
    creates_allocated(&mgr->creates, call, code, message, response);
}

/* Asked for by the kubelet, or for a create. An advice that is not given is not missed. */
void devicemgr_preferred(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                         const char *message, const V1beta1__PreferredAllocationResponse *response)
{
    (void)message;
    state_at(&mgr->state, now_ms);
    if (!prefers_answered(&mgr->prefers, call, code, response))
        creates_preferred(&mgr->creates, call, code, response);
}

void devicemgr_prestarted(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                          const char *message)
{
    state_at(&mgr->state, now_ms);
    creates_prestarted(&mgr->creates, call, code, message);
}

/* ---- containers ---- */

void devicemgr_create_cancelled(struct devicemgr *mgr, uint64_t now_ms, uint64_t create)
{
    state_at(&mgr->state, now_ms);
    turn_claims_made(mgr, create);
    creates_cancelled(&mgr->creates, create);
}

void devicemgr_set_settings(struct devicemgr *mgr, uint64_t now_ms,
                            const struct devicemgr_settings *settings)
{
    state_at(&mgr->state, now_ms);
    state_set_settings(&mgr->state, settings);
    tainted_settings_changed(&mgr->state);
    shutdowns_settings_changed(&mgr->shutdowns);
    wake_all(&mgr->state.wakes);
}

void devicemgr_drain(struct devicemgr *mgr, uint64_t now_ms)
{
    state_at(&mgr->state, now_ms);
    mgr->state.draining = true;
    wake_all(&mgr->state.wakes);
    checkpoint_drain(&mgr->state);
    tasks_drain(&mgr->tasks);
}

void devicemgr_create_answered(struct devicemgr *mgr, uint64_t now_ms, uint64_t create,
                               const char *container_id)
{
    state_at(&mgr->state, now_ms);
    if (container_id)
        turn_claims_made(mgr, create);
    creates_answered(&mgr->creates, create, container_id);
}

void devicemgr_container_removed(struct devicemgr *mgr, uint64_t now_ms, const char *container_id)
{
    state_at(&mgr->state, now_ms);
    runtime_container_ended(&mgr->runtime, container_id);
}

void devicemgr_container_checked(struct devicemgr *mgr, uint64_t now_ms, uint64_t check,
                                 enum devicemgr_checked answer)
{
    char *ended;

    state_at(&mgr->state, now_ms);
    ended = checks_answered(&mgr->checks, check, answer);
    if (ended)
        runtime_container_ended(&mgr->runtime, ended);
    free(ended);
}

/* ---- pods ---- */

void devicemgr_sandbox_ran(struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_sandbox *sandbox)
{
    state_at(&mgr->state, now_ms);
    runtime_sandbox_ran(&mgr->state, sandbox);
}

void devicemgr_sandbox_stopping(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    state_at(&mgr->state, now_ms);
    runtime_sandbox_stopping(&mgr->state, sandbox_id);
}

void devicemgr_sandbox_stop_failed(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    state_at(&mgr->state, now_ms);
    runtime_sandbox_stop_failed(&mgr->state, sandbox_id);
}

void devicemgr_sandbox_stopped(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    const struct sandbox *sandbox;

    state_at(&mgr->state, now_ms);
    runtime_sandbox_stopped(&mgr->runtime, sandbox_id);
    sandbox = pods_find_sandbox(&mgr->state.pods, sandbox_id);
    if (!sandbox || !sandbox->stopped_dead) /* else the next list tells who uses claims in it */
        tasks_sandbox_ended(&mgr->tasks, sandbox_id);
}

void devicemgr_sandbox_removed(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    state_at(&mgr->state, now_ms);
    runtime_sandbox_removed(&mgr->runtime, sandbox_id);
    tasks_sandbox_ended(&mgr->tasks, sandbox_id);
    ends_look(&mgr->ends);
}

void devicemgr_earlier_creates(struct devicemgr *mgr, uint64_t now_ms, bool under_way)
{
    state_at(&mgr->state, now_ms);
    listing_earlier_creates(&mgr->state, under_way);
}

void devicemgr_runtime_listing(struct devicemgr *mgr)
{
    listing_begin(&mgr->state);
}

void devicemgr_runtime_listed(struct devicemgr *mgr, uint64_t now_ms,
                              const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                              const struct devicemgr_container *containers, size_t containers_len)
{
    state_at(&mgr->state, now_ms);
    listed_take(&mgr->runtime, sandboxes, sandboxes_len, containers, containers_len);
    releases_listed(&mgr->releases);
    tasks_listed(&mgr->tasks, containers, containers_len);
    ends_listed(&mgr->ends, containers, containers_len);
}

/* ---- the kubelet ---- */

void devicemgr_kubelet_started(struct devicemgr *mgr, uint64_t now_ms)
{
    state_at(&mgr->state, now_ms);
    kubelet_started(&mgr->state);
}

void devicemgr_kubelet_listed(struct devicemgr *mgr, uint64_t now_ms)
{
    state_at(&mgr->state, now_ms);
    kubelet_listed(&mgr->state);
    listed_when_ready(&mgr->runtime);
    ends_look(&mgr->ends);
}

void devicemgr_kubelet_holds(struct devicemgr *mgr, uint64_t now_ms, uint64_t read_ms,
                             const struct devicemgr_kubelet_held *held, size_t held_len)
{
    state_at(&mgr->state, now_ms);
    kubelet_take_holds(&mgr->state, held, held_len);
    showing_times(&mgr->state);
    kubelet_judge_tokens(&mgr->state, read_ms);
    adopt_all(&mgr->runtime.adopt);
}

void devicemgr_prefer(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                      const struct devicemgr_preference *asked)
{
    state_at(&mgr->state, now_ms);
    prefers_begin(&mgr->prefers, number, asked);
}

void devicemgr_prefer_cancelled(struct devicemgr *mgr, uint64_t number)
{
    prefers_cancelled(&mgr->prefers, number);
}

/* ---- store ---- */

void devicemgr_committed(struct devicemgr *mgr, uint64_t now_ms, uint64_t commit, const char *error)
{
    bool steered;

    state_at(&mgr->state, now_ms);
    if (!checkpoint_finish(&mgr->state, commit, error))
        return;
    creates_committed(&mgr->creates, commit, error);
    steered = steers_committed(&mgr->steers, commit, error);
    releases_committed(&mgr->releases, commit, error);
    tasks_committed(&mgr->tasks, commit, error);
    ends_committed(&mgr->ends, commit, error);
    if (!steered)
        return;
    plugin_tick(&mgr->state); /* a grace period may have been ended */
    hand_out(mgr);
    steers_next(&mgr->steers);
}

void devicemgr_store_reset(struct devicemgr *mgr, uint64_t now_ms)
{
    state_at(&mgr->state, now_ms);
    checkpoint_store_reset(&mgr->state);
}

/* ---- capacity ---- */

void devicemgr_removed_seen(struct devicemgr *mgr, const char *resource)
{
    capacity_published(&mgr->state, resource);
}
