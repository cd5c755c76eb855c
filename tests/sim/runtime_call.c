/*
 * Calls on the runtime: how they take effect, and how they are answered.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/check.h"
#include "tests/sim/over.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

#define EFFECT_MS_MAX 2000
#define ANSWER_MS_MAX 500
#define OUTLIVED_WORLDS 8   /* in one of so many: */
#define OUTLIVED_PERCENT 15 /* of creates that are forwarded */
#define OUTLIVED_MS_MAX 300
#define EARLIER_MS_MAX 20000 /* longer than any list is asked for again by chance */

/* ---- calls: their effect ---- */

static struct runtime_call *find_call(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        if (w->runtime.calls[i].number == number)
            return &w->runtime.calls[i];
    }
    return NULL;
}

/* What the call is about, whatever numbers it has. */
static struct rng draw_for(struct world *w, enum draw what, const struct runtime_call *call)
{
    bool create = call->kind == CALL_CREATE_CONTAINER;
    uint64_t subject =
        create ? (uint64_t)call->made.name << 24 | call->made.attempt : call->subject;

    return world_draw(w, what, call->pod, (uint64_t)call->kind << 48 | subject);
}

static bool name_taken(struct world *w, const struct rt_container *made)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (c->id && c->sandbox == made->sandbox && c->name == made->name &&
            c->attempt == made->attempt)
            return true;
    }
    return false;
}

static void effect_create(struct world *w, struct runtime_call *call)
{
    const struct rt_sandbox *s = runtime_find_sandbox(w, call->made.sandbox);
    struct rng rng = draw_for(w, DRAW_RUNTIME_ACTS, call);
    struct rt_container *c;

    call->failed =
        !s || !s->ready || name_taken(w, &call->made) || (w->faults && rng_percent(&rng, 4));
    if (call->failed)
        return;
    c = runtime_add_container(w, &call->made);
    call->made.id = c->id;
    world_note(w, "runtime: c%u made: %s of u%u, attempt %u in s%u, devices %x %x %x", c->id,
               container_sim_name(c->name), c->uid, c->attempt, c->sandbox, c->held[0], c->held[1],
               c->held[2]);
    check_exclusive(w, c);
}

static void effect_run_sandbox(struct world *w, struct runtime_call *call)
{
    struct rt_sandbox *s;

    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        s = &w->runtime.sandboxes[i];
        if (s->id && s->uid == call->pod && s->attempt == call->subject)
            call->failed = true; /* its name is taken */
    }
    if (call->failed)
        return;
    s = runtime_add_sandbox(w, call->pod, call->subject);
    if (kubelet_find_pod(w, call->pod))
        kubelet_find_pod(w, call->pod)->over_ms = w->now_ms;
    world_note(w, "runtime: s%u made for u%u, attempt %u", s->id, s->uid, s->attempt);
    call->made.sandbox = s->id;
}

/* It may fail half-way: some containers are killed, the sandbox stays. */
static void effect_stop_sandbox(struct world *w, struct runtime_call *call, struct rt_sandbox *s)
{
    struct rng rng = draw_for(w, DRAW_RUNTIME_ACTS, call);

    if (!s)
        return;
    call->failed = w->faults && rng_percent(&rng, call->foreign ? 40 : 10);
    if (!call->failed)
        runtime_end_sandbox(w, s);
    for (size_t i = 0; i < w->runtime.containers_end && call->failed; i++) {
        if (w->runtime.containers[i].sandbox == s->id && rng_percent(&rng, 50))
            runtime_exit(w, &w->runtime.containers[i], "is killed by a stop that fails");
    }
}

static void effect(struct world *w, struct runtime_call *call)
{
    struct rt_sandbox *s = runtime_find_sandbox(w, call->subject);
    struct rt_container *c = runtime_find_container(w, call->subject);

    call->effected = true;
    switch (call->kind) {
    case CALL_RUN_SANDBOX:
        effect_run_sandbox(w, call);
        break;
    case CALL_STOP_SANDBOX:
        effect_stop_sandbox(w, call, s);
        break;
    case CALL_REMOVE_SANDBOX:
        if (s)
            runtime_drop_sandbox(w, s);
        break;
    case CALL_CREATE_CONTAINER:
        effect_create(w, call);
        break;
    case CALL_REMOVE_CONTAINER:
        if (c)
            runtime_drop_container(w, c);
        break;
    }
}

/* ---- calls: their answer, which the shim sees as it passes ---- */

static void tell_sandbox_ran(struct world *w, const struct runtime_call *call)
{
    char id[16], uid[16];
    struct devicemgr_sandbox told = {.id = id,
                                     .pod_uid = uid,
                                     .pod_namespace = "ns",
                                     .pod_name = uid,
                                     .attempt = call->subject,
                                     .ready = true};

    if (runtime_find_sandbox(w, call->made.sandbox))
        runtime_find_sandbox(w, call->made.sandbox)->told_in = w->shim.incarnation;
    snprintf(id, sizeof id, "s%u", call->made.sandbox);
    snprintf(uid, sizeof uid, "u%u", call->pod);
    devicemgr_sandbox_ran(w->shim.core, shim_now_ms(w), &told);
    shown_pods_told(w);
}

static void tell_answer(struct world *w, const struct runtime_call *call)
{
    struct rt_sandbox *s = runtime_find_sandbox(w, call->subject);
    char id[16];

    snprintf(id, sizeof id, "%c%u", call->kind == CALL_REMOVE_CONTAINER ? 'c' : 's', call->subject);
    switch (call->kind) {
    case CALL_RUN_SANDBOX:
        tell_sandbox_ran(w, call);
        break;
    case CALL_STOP_SANDBOX:
        if (s)
            over_stop_told(w, s);
        if (s && !call->foreign)
            s->stop_told = true;
        devicemgr_sandbox_stopped(w->shim.core, shim_now_ms(w), id);
        break;
    case CALL_REMOVE_SANDBOX:
        client_disturb(w, call->pod);
        devicemgr_sandbox_removed(w->shim.core, shim_now_ms(w), id);
        break;
    case CALL_REMOVE_CONTAINER:
        devicemgr_container_removed(w->shim.core, shim_now_ms(w), id);
        break;
    case CALL_CREATE_CONTAINER:
        break;
    }
}

static const char *const CALL_NAMES[] = {"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox",
                                         "CreateContainer", "RemoveContainer"};

/* It may be stopped all the same. Another stop of it may be under way. */
static void stop_failed(struct world *w, unsigned sandbox)
{
    char id[16];

    snprintf(id, sizeof id, "s%u", sandbox);
    if (!runtime_stopping(w, sandbox))
        client_stopping(w, sandbox, false);
    if (runtime_find_sandbox(w, sandbox))
        runtime_find_sandbox(w, sandbox)->open_ms = w->now_ms + OUTCOME_MS;
    devicemgr_sandbox_stop_failed(w->shim.core, shim_now_ms(w), id);
}

static bool is_earlier(const struct world *w, const struct runtime_call *call)
{
    return call->number && call->earlier && shim_lives(w, call->incarnation);
}

/* Whether the last of them has ended. */
static void look_at_earlier(struct world *w)
{
    bool under_way = !w->shim.core || !w->shim.earlier;

    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++)
        under_way = under_way || is_earlier(w, &w->runtime.calls[i]);
    if (!under_way)
        shim_earlier_over(w);
}

static void answer(struct world *w, uint64_t number, uint64_t unused)
{
    struct runtime_call *slot = find_call(w, number), call;

    (void)unused;
    if (!slot)
        return;
    if (slot->earlier && !w->shim.core) { /* it waits in the socket */
        struct rng rng = draw_for(w, DRAW_RUNTIME_ANSWERS, slot);

        world_after(w, &rng, rng_between(&rng, 1, ANSWER_MS_MAX), answer, number, 0);
        return;
    }
    call = *slot;
    slot->number = 0;
    if (!shim_lives(w, call.incarnation))
        return;
    world_note(w, "runtime: %s of u%u (%u) answered%s", CALL_NAMES[call.kind], call.pod,
               call.subject, call.failed ? ": refused" : "");
    if (call.kind == CALL_CREATE_CONTAINER && call.made.claimant)
        dra_answered(w, call.create, call.failed ? 0 : call.made.id);
    else if (call.kind == CALL_CREATE_CONTAINER)
        client_answered(w, call.create, call.failed ? 0 : call.made.id);
    else if (!call.failed)
        tell_answer(w, &call);
    else if (call.kind == CALL_STOP_SANDBOX)
        stop_failed(w, call.subject);
    look_at_earlier(w);
    shim_run(w);
}

static void reach(struct world *w, uint64_t number, uint64_t unused)
{
    struct runtime_call *call = find_call(w, number);
    struct rng rng;

    (void)unused;
    if (!call || call->effected)
        return;
    rng = draw_for(w, DRAW_RUNTIME_ANSWERS, call);
    if (w->now_ms < call->slow_until_ms) {
        world_after(w, &rng, call->slow_until_ms - w->now_ms, reach, number, 0);
        return;
    }
    effect(w, call);
    if (!shim_lives(w, call->incarnation) || call->earlier)
        w->runtime.unseen = true; /* the shim that passed it on is gone */
    world_after(w, &rng, rng_delay_ms(&rng, ANSWER_MS_MAX), answer, number, 0);
}

static struct runtime_call *call_new(struct world *w, const struct runtime_call *made)
{
    struct runtime_call *call = w->runtime.calls;
    struct rng rng = draw_for(w, DRAW_RUNTIME_CALLED, made);

    while (call < w->runtime.calls + RUNTIME_CALLS_MAX && call->number)
        call++;
    if (call == w->runtime.calls + RUNTIME_CALLS_MAX)
        abort();
    *call = *made;
    call->number = ++w->runtime.last_call;
    call->incarnation = w->shim.incarnation;
    world_after(w, &rng, rng_delay_ms(&rng, EFFECT_MS_MAX), reach, call->number, 0);
    return call;
}

static bool can_call(const struct world *w)
{
    return w->shim.core && !w->runtime.down;
}

bool runtime_busy(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        const struct runtime_call *call = &w->runtime.calls[i];

        if (call->number && call->pod == uid && call->kind != CALL_CREATE_CONTAINER &&
            !call->foreign)
            return true;
    }
    return false;
}

bool runtime_stopping(const struct world *w, unsigned sandbox)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        const struct runtime_call *call = &w->runtime.calls[i];

        if (call->number && call->kind == CALL_STOP_SANDBOX && call->subject == sandbox &&
            shim_lives(w, call->incarnation))
            return true;
    }
    return false;
}

bool runtime_run_sandbox(struct world *w, unsigned uid, unsigned attempt)
{
    if (!can_call(w))
        return false;
    world_note(w, "kubelet: RunPodSandbox u%u attempt %u", uid, attempt);
    call_new(w, &(struct runtime_call){.kind = CALL_RUN_SANDBOX, .pod = uid, .subject = attempt});
    return true;
}

bool runtime_stop_sandbox(struct world *w, struct rt_sandbox *sandbox, bool by_kubelet)
{
    char id[16];

    if (!can_call(w))
        return false;
    world_note(w, "%s: StopPodSandbox s%u of u%u", by_kubelet ? "kubelet" : "another client",
               sandbox->id, sandbox->uid);
    snprintf(id, sizeof id, "s%u", sandbox->id);
    sandbox->doomed = sandbox->doomed || by_kubelet;
    over_stop_asked(w, sandbox);
    client_stopping(w, sandbox->id, true);
    call_new(w, &(struct runtime_call){.kind = CALL_STOP_SANDBOX,
                                       .pod = sandbox->uid,
                                       .subject = sandbox->id,
                                       .foreign = !by_kubelet});
    devicemgr_sandbox_stopping(w->shim.core, shim_now_ms(w), id);
    shim_run(w);
    return true;
}

bool runtime_remove_sandbox(struct world *w, const struct rt_sandbox *sandbox)
{
    if (!can_call(w))
        return false;
    world_note(w, "kubelet: RemovePodSandbox s%u of u%u", sandbox->id, sandbox->uid);
    call_new(w, &(struct runtime_call){
                    .kind = CALL_REMOVE_SANDBOX, .pod = sandbox->uid, .subject = sandbox->id});
    return true;
}

bool runtime_remove_container(struct world *w, const struct rt_container *container)
{
    if (!can_call(w))
        return false;
    world_note(w, "kubelet: RemoveContainer c%u of u%u", container->id, container->uid);
    call_new(w, &(struct runtime_call){.kind = CALL_REMOVE_CONTAINER,
                                       .pod = container->uid,
                                       .subject = container->id});
    return true;
}

static void outlived(struct world *w, uint64_t incarnation, uint64_t unused)
{
    (void)unused;
    if (shim_lives(w, incarnation))
        shim_kill(w, false);
}

/* In some worlds the shim often ends at once, with its connections, while the runtime takes its
 * time. */
void runtime_create(struct world *w, uint64_t create, const struct rt_container *made)
{
    struct runtime_call *call = call_new(
        w, &(struct runtime_call){
               .kind = CALL_CREATE_CONTAINER, .pod = made->uid, .create = create, .made = *made});
    struct rng rng = draw_for(w, DRAW_SHIM_OUTLIVED, call);

    if (!w->faults || w->play.seed % OUTLIVED_WORLDS != 0 || !rng_percent(&rng, OUTLIVED_PERCENT))
        return;
    call->outlives = true;
    call->slow_until_ms = w->now_ms + rng_between(&rng, EFFECT_MS_MAX / 2, EFFECT_MS_MAX);
    world_after(w, &rng, rng_between(&rng, 1, OUTLIVED_MS_MAX), outlived, call->incarnation, 0);
}

/* Nobody waits any more for what its connection kept going, however long it would have taken: it
 * has its effect soon, or never. */
static void hurry(struct world *w, struct runtime_call *call, struct rng *rng)
{
    call->slow_until_ms = w->now_ms + rng_below(rng, EFFECT_MS_MAX);
    world_after(w, rng, call->slow_until_ms - w->now_ms, reach, call->number, 0);
}

/* A cancelled call may have been too late to stop. */
void runtime_create_abandoned(struct world *w, uint64_t create)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        struct runtime_call *call = &w->runtime.calls[i];
        struct rng rng;

        if (!call->number || call->kind != CALL_CREATE_CONTAINER || call->create != create ||
            call->incarnation != w->shim.incarnation)
            continue;
        rng = draw_for(w, DRAW_CALL_LOST, call);
        call->incarnation = 0; /* nobody hears the answer */
        if (!call->effected && rng_percent(&rng, 50))
            call->number = 0;
        else if (call->earlier && !call->effected)
            hurry(w, call, &rng);
    }
    look_at_earlier(w);
}

/* What was asked for may not have got there; what did goes on, and nobody hears the answer. */
void runtime_shim_gone(struct world *w)
{
    for (size_t i = 0; w->runtime.leaves_created && i < w->runtime.sandboxes_end; i++)
        w->runtime.sandboxes[i].stop_told = false; /* a kubelet stops them whenever it looks */
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        struct runtime_call *call = &w->runtime.calls[i];
        bool was_earlier = call->earlier;
        struct rng rng;

        if (call->outlives)
            continue;
        call->earlier = w->shim.resumes && call->kind == CALL_CREATE_CONTAINER &&
                        call->incarnation + 1 == w->shim.incarnation;
        if (!call->number || call->effected)
            continue;
        rng = draw_for(w, DRAW_CALL_LOST, call);
        if (call->earlier)
            call->slow_until_ms = w->now_ms + rng_below(&rng, EARLIER_MS_MAX);
        else if (rng_percent(&rng, 50))
            call->number = 0;
        else if (was_earlier)
            hurry(w, call, &rng);
        else if (call->kind == CALL_CREATE_CONTAINER && rng_percent(&rng, 50))
            call->slow_until_ms = w->now_ms + rng_below(&rng, EFFECT_MS_MAX);
    }
}

bool runtime_outlives(const struct world *w)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        const struct runtime_call *call = &w->runtime.calls[i];

        if (call->number && call->outlives && call->incarnation == w->shim.incarnation)
            return true;
    }
    return false;
}

bool runtime_shim_resumes(struct world *w)
{
    bool any = false;

    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        struct runtime_call *call = &w->runtime.calls[i];

        if (call->number && call->earlier)
            call->incarnation = w->shim.incarnation;
        any = any || is_earlier(w, call);
    }
    return any;
}

void runtime_lose_calls(struct world *w)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        struct runtime_call *call = &w->runtime.calls[i];
        struct rng rng;

        if (!call->number)
            continue;
        rng = draw_for(w, DRAW_CALL_LOST, call);
        if (!call->effected && rng_percent(&rng, 30))
            effect(w, call);
        call->number = 0;
        if (call->kind == CALL_STOP_SANDBOX && shim_lives(w, call->incarnation))
            stop_failed(w, call->subject);
    }
    look_at_earlier(w);
}
