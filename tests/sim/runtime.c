#include "tests/sim/runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/check.h"
#include "tests/sim/world.h"

#define EFFECT_MS_MAX 2000
#define ANSWER_MS_MAX 500
#define RUN_MS_MAX 60000
#define DOWN_MS_MAX 5000

/* ---- what there is ---- */

bool runtime_live(const struct rt_container *container)
{
    return container->id && container->state != CONTAINER_EXITED;
}

struct rt_sandbox *runtime_find_sandbox(struct world *w, unsigned id)
{
    for (size_t i = 0; id && i < SANDBOXES_MAX; i++) {
        if (w->runtime.sandboxes[i].id == id)
            return &w->runtime.sandboxes[i];
    }
    return NULL;
}

struct rt_container *runtime_find_container(struct world *w, unsigned id)
{
    for (size_t i = 0; id && i < CONTAINERS_MAX; i++) {
        if (w->runtime.containers[i].id == id)
            return &w->runtime.containers[i];
    }
    return NULL;
}

struct rt_sandbox *runtime_ready_sandbox(struct world *w, unsigned uid)
{
    struct rt_sandbox *found = NULL;

    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->uid == uid && s->ready && (!found || s->attempt > found->attempt))
            found = s;
    }
    return found;
}

struct rt_container *runtime_newest(struct world *w, unsigned sandbox, unsigned name)
{
    struct rt_container *found = NULL;

    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        struct rt_container *c = &w->runtime.containers[i];

        if (c->id && c->sandbox == sandbox && c->name == name &&
            (!found || c->attempt > found->attempt))
            found = c;
    }
    return found;
}

struct rt_sandbox *runtime_add_sandbox(struct world *w, unsigned uid, unsigned attempt)
{
    struct rt_sandbox *s = w->runtime.sandboxes;

    while (s < w->runtime.sandboxes + SANDBOXES_MAX && s->id)
        s++;
    if (s == w->runtime.sandboxes + SANDBOXES_MAX)
        abort(); /* the world is too small for its seed */
    *s = (struct rt_sandbox){
        .id = ++w->runtime.last_id, .uid = uid, .attempt = attempt, .ready = true};
    lister_event(w, LISTER_CREATED, s->id, true);
    return s;
}

struct rt_container *runtime_add_container(struct world *w, const struct rt_container *made)
{
    struct rt_container *c = w->runtime.containers;

    while (c < w->runtime.containers + CONTAINERS_MAX && c->id)
        c++;
    if (c == w->runtime.containers + CONTAINERS_MAX)
        abort();
    *c = *made;
    c->id = ++w->runtime.last_id;
    c->state = CONTAINER_CREATED;
    lister_event(w, LISTER_CREATED, c->id, false);
    return c;
}

void runtime_exit(struct world *w, struct rt_container *c, const char *how)
{
    if (!runtime_live(c))
        return;
    c->state = CONTAINER_EXITED;
    world_note(w, "runtime: c%u (%s of u%u) %s", c->id, container_sim_name(c->name), c->uid, how);
    lister_event(w, LISTER_ENDED, c->id, false);
}

void runtime_drop_container(struct world *w, struct rt_container *c)
{
    lister_event(w, LISTER_ENDED, c->id, false);
    *c = (struct rt_container){0};
}

void runtime_end_sandbox(struct world *w, struct rt_sandbox *s)
{
    s->ready = false;
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        if (w->runtime.containers[i].id && w->runtime.containers[i].sandbox == s->id)
            runtime_exit(w, &w->runtime.containers[i], "dies with its sandbox");
    }
    lister_event(w, LISTER_ENDED, s->id, true);
}

void runtime_drop_sandbox(struct world *w, struct rt_sandbox *s)
{
    runtime_end_sandbox(w, s);
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        if (w->runtime.containers[i].sandbox == s->id)
            runtime_drop_container(w, &w->runtime.containers[i]);
    }
    lister_event(w, LISTER_ENDED, s->id, true);
    *s = (struct rt_sandbox){0};
}

/* ---- calls: their effect ---- */

static struct runtime_call *find_call(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        if (w->runtime.calls[i].number == number)
            return &w->runtime.calls[i];
    }
    return NULL;
}

static bool name_taken(struct world *w, const struct rt_container *made)
{
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
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
    struct rt_container *c;

    call->failed = !s || !s->ready || name_taken(w, &call->made) ||
                   (w->faults && rng_percent(&w->runtime.rng, 4));
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

    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
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
    if (!s)
        return;
    call->failed = w->faults && rng_percent(&w->runtime.rng, 10);
    if (!call->failed)
        runtime_end_sandbox(w, s);
    for (size_t i = 0; i < CONTAINERS_MAX && call->failed; i++) {
        if (w->runtime.containers[i].sandbox == s->id && rng_percent(&w->runtime.rng, 50))
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

    snprintf(id, sizeof id, "s%u", call->made.sandbox);
    snprintf(uid, sizeof uid, "u%u", call->pod);
    devicemgr_sandbox_ran(w->shim.core, shim_now_ms(w), &told);
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
    devicemgr_sandbox_stop_failed(w->shim.core, shim_now_ms(w), id);
}

static void answer(struct world *w, uint64_t number, uint64_t unused)
{
    struct runtime_call *slot = find_call(w, number), call;

    (void)unused;
    if (!slot)
        return;
    call = *slot;
    slot->number = 0;
    if (!shim_lives(w, call.incarnation))
        return;
    world_note(w, "runtime: %s of u%u (%u) answered%s", CALL_NAMES[call.kind], call.pod,
               call.subject, call.failed ? ": refused" : "");
    if (call.kind == CALL_CREATE_CONTAINER)
        client_answered(w, call.create, call.failed ? 0 : call.made.id);
    else if (!call.failed)
        tell_answer(w, &call);
    else if (call.kind == CALL_STOP_SANDBOX)
        stop_failed(w, call.subject);
    shim_run(w);
}

static void reach(struct world *w, uint64_t number, uint64_t unused)
{
    struct runtime_call *call = find_call(w, number);

    (void)unused;
    if (!call)
        return;
    if (w->now_ms < call->slow_until_ms) {
        world_after(w, call->slow_until_ms - w->now_ms, reach, number, 0);
        return;
    }
    effect(w, call);
    if (!shim_lives(w, call->incarnation))
        w->runtime.unseen = true; /* the shim that passed it on is gone */
    world_after(w, rng_delay_ms(&w->runtime.rng, ANSWER_MS_MAX), answer, number, 0);
}

static struct runtime_call *call_new(struct world *w, enum runtime_call_kind kind, unsigned uid,
                                     unsigned subject)
{
    struct runtime_call *call = w->runtime.calls;

    while (call < w->runtime.calls + RUNTIME_CALLS_MAX && call->number)
        call++;
    if (call == w->runtime.calls + RUNTIME_CALLS_MAX)
        abort();
    *call = (struct runtime_call){.number = ++w->runtime.last_call,
                                  .kind = kind,
                                  .pod = uid,
                                  .subject = subject,
                                  .incarnation = w->shim.incarnation};
    world_after(w, rng_delay_ms(&w->runtime.rng, EFFECT_MS_MAX), reach, call->number, 0);
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
    call_new(w, CALL_RUN_SANDBOX, uid, attempt);
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
    client_stopping(w, sandbox->id, true);
    call_new(w, CALL_STOP_SANDBOX, sandbox->uid, sandbox->id)->foreign = !by_kubelet;
    devicemgr_sandbox_stopping(w->shim.core, shim_now_ms(w), id);
    shim_run(w);
    return true;
}

bool runtime_remove_sandbox(struct world *w, const struct rt_sandbox *sandbox)
{
    if (!can_call(w))
        return false;
    world_note(w, "kubelet: RemovePodSandbox s%u of u%u", sandbox->id, sandbox->uid);
    call_new(w, CALL_REMOVE_SANDBOX, sandbox->uid, sandbox->id);
    return true;
}

bool runtime_remove_container(struct world *w, const struct rt_container *container)
{
    if (!can_call(w))
        return false;
    world_note(w, "kubelet: RemoveContainer c%u of u%u", container->id, container->uid);
    call_new(w, CALL_REMOVE_CONTAINER, container->uid, container->id);
    return true;
}

void runtime_create(struct world *w, uint64_t create, const struct rt_container *made)
{
    struct runtime_call *call = call_new(w, CALL_CREATE_CONTAINER, made->uid, 0);

    call->create = create;
    call->made = *made;
}

/* A cancelled call may have been too late to stop. */
void runtime_create_abandoned(struct world *w, uint64_t create)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        struct runtime_call *call = &w->runtime.calls[i];

        if (!call->number || call->kind != CALL_CREATE_CONTAINER || call->create != create ||
            call->incarnation != w->shim.incarnation)
            continue;
        call->incarnation = 0; /* nobody hears the answer */
        if (!call->effected && rng_percent(&w->runtime.rng, 50))
            call->number = 0;
    }
}

static void exit_later(struct world *w, uint64_t container, uint64_t unused)
{
    struct rt_container *c = runtime_find_container(w, (unsigned)container);

    (void)unused;
    if (c)
        runtime_exit(w, c, "exits");
}

static void start(struct world *w, uint64_t container, uint64_t unused)
{
    struct rt_container *c = runtime_find_container(w, (unsigned)container);
    const struct pod_sim *pod = c ? kubelet_find_pod(w, c->uid) : NULL;

    (void)unused;
    if (!c || c->state != CONTAINER_CREATED)
        return;
    c->state = CONTAINER_RUNNING;
    world_note(w, "runtime: c%u runs", c->id);
    if (pod && c->name < pod->containers_len && pod->containers[c->name].init)
        world_after(w, rng_between(&w->runtime.rng, 10, RUN_MS_MAX / 20), exit_later, container, 0);
}

void runtime_start(struct world *w, unsigned container)
{
    struct rt_container *c = runtime_find_container(w, container);

    if (c)
        c->starting = true;
    world_after(w, rng_delay_ms(&w->runtime.rng, ANSWER_MS_MAX), start, container, 0);
}

/* What was asked for may not have got there; what did goes on, and nobody hears the answer. */
void runtime_shim_gone(struct world *w)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        struct runtime_call *call = &w->runtime.calls[i];

        if (!call->number || call->effected)
            continue;
        if (rng_percent(&w->runtime.rng, 50))
            call->number = 0;
        else if (call->kind == CALL_CREATE_CONTAINER && rng_percent(&w->runtime.rng, 50))
            call->slow_until_ms = w->now_ms + rng_below(&w->runtime.rng, EFFECT_MS_MAX);
    }
}

/* ---- faults ---- */

static void back(struct world *w, uint64_t a, uint64_t b)
{
    (void)a;
    (void)b;
    w->runtime.down = false;
    world_note(w, "runtime: back");
    if (w->shim.core)
        lister_refresh(w);
}

static void lose_calls(struct world *w)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        struct runtime_call *call = &w->runtime.calls[i];

        if (!call->number)
            continue;
        if (!call->effected && rng_percent(&w->runtime.rng, 30))
            effect(w, call);
        call->number = 0;
        if (call->kind == CALL_STOP_SANDBOX && shim_lives(w, call->incarnation))
            stop_failed(w, call->subject);
    }
}

void runtime_restart(struct world *w)
{
    if (w->runtime.down)
        return;
    world_note(w, "runtime: restarts");
    lose_calls(w);
    w->runtime.down = true;
    world_after(w, rng_delay_ms(&w->runtime.rng, DOWN_MS_MAX), back, 0, 0);
    lister_runtime_gone(w);
    client_runtime_gone(w);
}

void runtime_reboot(struct world *w)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++)
        w->runtime.calls[i].number = 0;
    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        if (w->runtime.sandboxes[i].id)
            runtime_end_sandbox(w, &w->runtime.sandboxes[i]);
    }
}

struct rt_container *runtime_any_container(struct world *w, bool live)
{
    size_t start_at = rng_below(&w->runtime.rng, CONTAINERS_MAX);

    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        struct rt_container *c = &w->runtime.containers[(start_at + i) % CONTAINERS_MAX];

        if (c->id && (!live || c->state == CONTAINER_RUNNING))
            return c;
    }
    return NULL;
}

void runtime_crash_one(struct world *w)
{
    struct rt_container *c = runtime_any_container(w, true);

    if (c)
        runtime_exit(w, c, "crashes");
}

void runtime_init(struct world *w)
{
    w->runtime.eventless = rng_percent(&w->runtime.rng, 40);
}
