#include "tests/sim/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/token.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/heap.h"
#include "tests/sim/move.h"
#include "tests/sim/pod_requests.h"
#include "tests/sim/promise.h"
#include "tests/sim/reason.h"
#include "tests/sim/world.h"

#define RETRY_MS_MAX 5000
#define DEADLINE_MS 120000 /* the kubelet's own */
#define DEADLINE_SHORT_MS_MAX 15000
#define BAD_TOKEN_PERCENT 2
#define CRASH_PERCENT 4 /* of the shim, before it can hear the answer */

/* ---- tables ---- */

struct create_sim *client_find(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (number && w->client.creates[i].number == number)
            return &w->client.creates[i];
    }
    return NULL;
}

size_t client_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < CREATES_SIM_MAX; i++)
        open += w->client.creates[i].number && !w->client.creates[i].untouched;
    return open + dra_creates_open(w);
}

const struct create_sim *client_find_of(const struct world *w, unsigned uid, unsigned name)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *c = &w->client.creates[i];

        if (c->number && c->uid == uid && (name == POD_CONTAINERS_MAX || c->name == name))
            return c;
    }
    return NULL;
}

void client_stopping(struct world *w, unsigned sandbox, bool stopping)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (w->client.creates[i].sandbox == sandbox)
            w->client.creates[i].stop_told = stopping;
    }
}

void client_disturb(struct world *w, unsigned uid)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (uid == 0 || w->client.creates[i].uid == uid)
            w->client.creates[i].disturbed = true;
    }
}

/* ---- CreateContainer ---- */

static void retry_later(struct world *w, unsigned uid, unsigned name, const char *why,
                        unsigned reasons)
{
    struct rng rng = world_draw(w, DRAW_CREATE_RETRIED, uid, name);
    struct pod_sim *pod = kubelet_find_pod(w, uid);

    if (!pod)
        return;
    pod->containers[name].not_before_ms = w->now_ms + rng_below(&rng, RETRY_MS_MAX);
    pod->containers[name].refusals++;
    pod->containers[name].reasons = reasons;
    snprintf(pod->containers[name].why, sizeof pod->containers[name].why, "%s", why);
}

void client_cancel(struct world *w, struct create_sim *create, const char *why)
{
    struct create_sim gone = *create;
    struct rng rng = world_draw(w, DRAW_CREATE_CANCELLED, gone.uid, gone.name);

    world_note(w, "kubelet: create %" PRIu64 " %s", gone.number, why);
    decision_add(w, &gone, why);
    *create = (struct create_sim){0};
    retry_later(w, gone.uid, gone.name, why, 0);
    if (gone.forwarded) {
        count_add(COUNT_UNHEARD);
        claims_unsure(w, gone.uid, gone.name);
    }
    if (gone.forwarded && w->faults && rng_percent(&rng, 30))
        kubelet_replace(w, gone.uid);
    if (gone.forwarded || gone.untouched)
        runtime_create_abandoned(w, gone.number);
    if (!gone.untouched && w->shim.core)
        devicemgr_create_cancelled(w->shim.core, shim_now_ms(w), gone.number);
    shim_run(w);
}

static void expire(struct world *w, uint64_t number, uint64_t incarnation)
{
    struct create_sim *create = client_find(w, number);

    if (create && (shim_lives(w, incarnation) || create->earlier))
        client_cancel(w, create, "over its deadline");
}

void client_cancel_one(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_CREATE_CANCELLED, 0, 0);
    struct create_sim *create = &w->client.creates[rng_below(&rng, 4)];

    if (create->number)
        client_cancel(w, create, "cancelled");
}

void client_shim_gone(struct world *w)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        struct create_sim *create = &w->client.creates[i];

        if (!create->number)
            continue;
        if (w->shim.resumes && (create->forwarded || create->untouched)) {
            create->untouched = create->earlier = true;
            create->forwarded = false;
            continue;
        }
        decision_add(w, create, "the shim is gone");
        retry_later(w, create->uid, create->name, "the shim is gone", 0);
        if (w->shim.resumes && kubelet_find_pod(w, create->uid)) /* the next one asks by itself */
            kubelet_find_pod(w, create->uid)->containers[create->name].not_before_ms = 0;
        *create = (struct create_sim){0};
    }
}

void client_runtime_gone(struct world *w)
{
    for (size_t i = 0; i < CREATES_SIM_MAX && w->shim.core; i++) {
        if (w->client.creates[i].number)
            client_cancel(w, &w->client.creates[i], "lost its connection");
    }
}

/* What a create names: texts that live as long as the call. */
struct create_texts {
    char sandbox[16], uid[16];
    struct devicemgr_annotation tokens[RESOURCES_LEN + 1];
    size_t tokens_len;
    struct pod_requests requests;
};

static void add_token(struct create_texts *texts, char *key, char *value)
{
    texts->tokens[texts->tokens_len++] = (struct devicemgr_annotation){key, value};
}

/* As many ids, none of which was ever listed. */
static void make_unknown(struct id_list *ids)
{
    char name[32];

    for (size_t i = 0; i < ids->len; i++) {
        snprintf(name, sizeof name, "nobody-%zu", i);
        free(ids->v[i]);
        ids->v[i] = heap_strdup(name);
    }
}

static void fill_tokens(const struct pod_container *container, enum token_fault fault,
                        struct create_texts *texts)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct id_list ids = device_sim_ids(container->ids[r]);

        if (fault == TOKEN_UNKNOWN_ID && texts->tokens_len == 0)
            make_unknown(&ids);
        if (ids.len > 0)
            add_token(texts, token_key(resource_sim_name(r)),
                      token_value(resource_sim_name(r), (const char *const *)ids.v, ids.len));
        id_list_fini(&ids);
    }
}

/* One more token, of a resource that the container has not asked for, or of none. */
static void add_bad_token(struct rng *rng, enum token_fault fault, struct create_texts *texts)
{
    static const char *const MALFORMED[] = {
        "",
        "{",
        "[]",
        "{\"resource\":\"bad.example/x\",\"ids\":[]}",
        "{\"resource\":\"bad.example/x\",\"ids\":[1]}",
        "{\"resource\":\"bad.example/x\",\"ids\":[\"\"]}",
        "{\"resource\":\"bad.example/x\",\"ids\":[\"a\",\"a\"]}",
        "{\"resource\":\"bad.example/y\",\"ids\":[\"a\"]}",
        "{\"resource\":\"bad.example/x\",\"ids\":[\"\\ud800\"]}",
        "{\"resource\":\"bad.example/x\",\"resource\":\"bad.example/x\",\"ids\":[\"a\"]}",
    };
    const char *value = "{\"resource\":\"bad.example/x\",\"ids\":[\"a\"]}";

    if (fault == TOKEN_MALFORMED)
        value = MALFORMED[rng_below(rng, sizeof MALFORMED / sizeof MALFORMED[0])];
    if (fault == TOKEN_MALFORMED || fault == TOKEN_UNKNOWN_RESOURCE)
        add_token(texts, heap_strdup(TOKEN_KEY_PREFIX "bad.example_x"), heap_strdup(value));
}

static void texts_fini(struct create_texts *texts)
{
    for (size_t i = 0; i < texts->tokens_len; i++) {
        free((char *)texts->tokens[i].key);
        free((char *)texts->tokens[i].value);
    }
}

static bool tell_create(struct world *w, const struct pod_sim *pod, const struct create_sim *create,
                        struct rng *rng)
{
    struct create_texts texts = {0};
    const struct rt_sandbox *sandbox = runtime_find_sandbox(w, create->sandbox);
    struct devicemgr_create request = {.sandbox_id = texts.sandbox,
                                       .sandbox_attempt = sandbox->attempt,
                                       .pod_uid = texts.uid,
                                       .pod_namespace = "ns",
                                       .pod_name = texts.uid,
                                       .container = container_sim_name(create->name),
                                       .attempt = create->attempt,
                                       .container_annotations = texts.tokens,
                                       .pod_annotations = texts.requests.v,
                                       .deadline_ms = UINT64_MAX};
    bool decided;

    snprintf(texts.sandbox, sizeof texts.sandbox, "s%u", create->sandbox);
    snprintf(texts.uid, sizeof texts.uid, "u%u", create->uid);
    if (!create->tokenless)
        fill_tokens(&pod->containers[create->name], create->fault, &texts);
    add_bad_token(rng, create->fault, &texts);
    pod_requests_fill(pod, &texts.requests);
    request.container_annotations_len = texts.tokens_len;
    request.pod_annotations_len = texts.requests.len;
    if (create->deadline_ms != UINT64_MAX)
        request.deadline_ms = create->deadline_ms - w->now_ms + shim_now_ms(w);
    releaser_note_create(w, create->uid);
    decided = devicemgr_create(w->shim.core, shim_now_ms(w), create->number, &request);
    texts_fini(&texts);
    return decided;
}

/* Creates of two pods for one resource: either may drop what the other, if idle, has. */
static void disturb_rivals(struct world *w, struct create_sim *create)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        struct create_sim *other = &w->client.creates[i];

        for (size_t r = 0; r < RESOURCES_LEN; r++) {
            if (other->number && other->uid != create->uid && other->count[r] && create->count[r])
                other->disturbed = create->disturbed = true;
            if (other != create && other->number && other->count[r] && create->count[r])
                other->crowded[r] = create->crowded[r] = true;
        }
    }
}

static uint64_t pick_deadline(const struct world *w, struct rng *rng)
{
    uint64_t kind = rng_below(rng, 10);

    if (kind < 2)
        return UINT64_MAX;
    return w->now_ms + (kind < 6 ? DEADLINE_MS : rng_between(rng, 1000, DEADLINE_SHORT_MS_MAX));
}

static void pick_bad_token(struct world *w, struct create_sim *create, struct rng *rng)
{
    create->fault = (enum token_fault)rng_between(rng, TOKEN_GOOD + 1, TOKEN_FAULTS_LEN - 1);
    if (create->fault == TOKEN_UNKNOWN_ID && !create->ids[0] && !create->ids[1] && !create->ids[2])
        create->fault = TOKEN_UNKNOWN_RESOURCE; /* no token whose ids could be others */
    create->disturbed = true;
    if (create->fault == TOKEN_UNKNOWN_ID)
        claims_contested(w, create->uid, create->name);
    world_note(w, "kubelet: create %" PRIu64 " gets a bad token, %d", create->number,
               (int)create->fault);
}

static struct create_sim *create_new(struct world *w, const struct pod_sim *pod, unsigned name,
                                     const struct rt_sandbox *sandbox, bool tokenless,
                                     struct rng *rng)
{
    static const struct pod_container nothing;
    const struct pod_container *container = tokenless ? &nothing : &pod->containers[name];
    const struct rt_container *newest = runtime_newest(w, sandbox->id, name);
    struct create_sim *create = w->client.creates;
    bool second = false;

    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (create[i].uid == pod->uid && create[i].name == name)
            create[i].overtaken = second = true;
    }
    while (create < w->client.creates + CREATES_SIM_MAX && create->number)
        create++;
    if (create == w->client.creates + CREATES_SIM_MAX)
        abort();
    *create = (struct create_sim){.number = ++w->client.last_create,
                                  .uid = pod->uid,
                                  .name = name,
                                  .attempt = newest ? newest->attempt + 1 : 0,
                                  .sandbox = sandbox->id,
                                  .untouched = true,
                                  .tokenless = tokenless,
                                  .disturbed = second,
                                  .second = second,
                                  .stop_told = runtime_stopping(w, sandbox->id),
                                  .started_ms = w->now_ms,
                                  .moved_ms = w->now_ms,
                                  .deadline_ms = pick_deadline(w, rng)};
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        create->count[r] = container->count[r];
        create->ids[r] = container->ids[r];
        create->bare[r] = container->bare[r];
        create->registered[r] = w->plugins[r].registered;
        create->untouched = create->untouched && container->count[r] == 0;
        if (container->count[r] > 0 && !kubelet_contended(pod, r))
            create->serial[r] = check_serial_in_force(w, pod->uid, name, r, container->ids[r]);
    }
    if (!create->untouched && w->faults && rng_percent(rng, BAD_TOKEN_PERCENT))
        pick_bad_token(w, create, rng);
    return create;
}

static void begin(struct world *w, struct pod_sim *pod, unsigned name,
                  const struct rt_sandbox *sandbox, bool tokenless)
{
    struct rng rng = world_draw(w, DRAW_CREATE, pod->uid, name);
    struct create_sim *c = create_new(w, pod, name, sandbox, tokenless, &rng);
    struct rt_container made = {
        .sandbox = c->sandbox, .uid = c->uid, .name = name, .attempt = c->attempt};
    bool untouched = c->untouched, decided;

    world_note(w,
               "kubelet: create %" PRIu64 ": %s of u%u, attempt %u in s%u, ids %x %x %x, %u %u %u",
               c->number, container_sim_name(name), c->uid, c->attempt, c->sandbox, c->ids[0],
               c->ids[1], c->ids[2], c->count[0], c->count[1], c->count[2]);
    disturb_rivals(w, c);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        made.held[r] = made.bare[r] = c->bare[r];
    runtime_note_bare(w, c->uid, name, c->bare);
    if (c->deadline_ms != UINT64_MAX)
        world_after(w, &rng, c->deadline_ms - w->now_ms, expire, c->number, w->shim.incarnation);
    decided = tell_create(w, pod, c, &rng);
    check_that(w, decided != untouched || tokenless,
               "a create that names devices is decided, and no other is");
    check_that(w, decided || !tokenless,
               "a container that came with a token is not made without: %s of u%u",
               container_sim_name(name), c->uid);
    c->untouched = !decided;
    if (!decided) {
        decision_add(w, c, "untouched");
        moves_note_made(w, &made);
        runtime_create(w, c->number, &made);
    }
    shim_run(w);
}

void client_create(struct world *w, struct pod_sim *pod, unsigned name,
                   const struct rt_sandbox *sandbox)
{
    begin(w, pod, name, sandbox, false);
}

void client_create_tokenless(struct world *w, struct pod_sim *pod, unsigned name,
                             const struct rt_sandbox *sandbox)
{
    begin(w, pod, name, sandbox, true);
}

static void note_token(struct world *w, const struct create_sim *create)
{
    struct pod_sim *pod = kubelet_find_pod(w, create->uid);

    for (size_t r = 0; pod && r < RESOURCES_LEN; r++) {
        if (create->ids[r])
            pod->containers[create->name].token_in = create->sandbox;
    }
}

static void note_decision(struct world *w, const struct create_sim *create, const unsigned *held,
                          int code, const char *message)
{
    char what[1024];

    snprintf(what, sizeof what, "code %d, ids %x %x %x%s%s", code, held[0], held[1], held[2],
             message ? ": " : "", message ? message : "");
    decision_add(w, create, what);
}

/* The runtime refused it: what the shim had chosen for it is free again. */
static void give_back(struct world *w, const struct create_sim *create)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (create->count[r] > 0 && create->fresh[r] && create->ids[r] == 0)
            claims_forget(w, create->uid, create->name, r);
    }
}

/* The shim is killed before it hears the answer; perhaps the pod is over for the kubelet just now,
 * and another pod gets its devices while its container is in the making. */
static void crash(struct world *w, const struct create_sim *create, struct rng *rng)
{
    w->shim.crash_in = (unsigned)rng_between(rng, 1, 3);
    if (rng_percent(rng, 50))
        kubelet_replace(w, create->uid);
}

static void forward(struct world *w, struct create_sim *create,
                    const V1beta1__ContainerAllocateResponse *options)
{
    struct rt_container made = {.sandbox = create->sandbox,
                                .uid = create->uid,
                                .name = create->name,
                                .attempt = create->attempt,
                                .through_shim = true};
    struct rng rng = world_draw(w, DRAW_CREATE_FORWARDED, create->uid, create->name);

    for (size_t r = 0; r < RESOURCES_LEN; r++)
        made.held[r] = made.bare[r] = create->bare[r];
    check_forward(w, create, options, &made);
    moves_note_made(w, &made);
    note_token(w, create);
    note_decision(w, create, made.held, 0, NULL);
    if (kubelet_find_pod(w, create->uid))
        kubelet_find_pod(w, create->uid)->containers[create->name].reasons = 0;
    create->forwarded = true;
    count_add(COUNT_FORWARDED);
    if (create->held)
        count_add(COUNT_HOLD_WOKEN);
    if (w->faults && rng_percent(&rng, 1)) { /* the relay has no memory for it */
        uint64_t number = create->number;

        retry_later(w, create->uid, create->name, "out of memory", 0);
        give_back(w, create);
        *create = (struct create_sim){0};
        devicemgr_create_answered(w->shim.core, shim_now_ms(w), number, NULL);
        return;
    }
    runtime_create(w, create->number, &made);
    if (w->faults && rng_percent(&rng, CRASH_PERCENT))
        crash(w, create, &rng);
}

static void count_refusal(int code)
{
    static const enum count COUNTS_OF[] = {
        [CODE_INVALID_ARGUMENT] = COUNT_INVALID_ARGUMENT,
        [CODE_DEADLINE_EXCEEDED] = COUNT_DEADLINE_EXCEEDED,
        [CODE_RESOURCE_EXHAUSTED] = COUNT_RESOURCE_EXHAUSTED,
        [CODE_FAILED_PRECONDITION] = COUNT_FAILED_PRECONDITION,
        [CODE_ABORTED] = COUNT_ABORTED,
        [CODE_UNAVAILABLE] = COUNT_UNAVAILABLE,
    };

    if (code > 0 && (size_t)code < sizeof COUNTS_OF / sizeof COUNTS_OF[0])
        count_add(COUNTS_OF[code]);
}

void client_verdict(struct world *w, uint64_t number, const struct devicemgr_verdict *verdict)
{
    struct create_sim *create = client_find(w, number);
    unsigned reasons;

    if (!create && dra_verdict(w, number, verdict))
        return;
    check_that(w, create && !create->untouched && !create->forwarded,
               "one verdict per create, none after it was cancelled (%" PRIu64 ")", number);
    if (!create)
        return;
    world_note(w, "shim: verdict on create %" PRIu64 ": %d %s", number, verdict->code,
               verdict->message ? verdict->message : "forward");
    if (verdict->code == 0) {
        forward(w, create, verdict->options);
        return;
    }
    note_decision(w, create, create->ids, verdict->code, verdict->message);
    reasons = reasons_of(w, create);
    check_refusal(w, create, verdict->code, verdict->message);
    count_refusal(verdict->code);
    claims_answered(w, create->uid, create->name); /* what another token named may be given up */
    retry_later(w, create->uid, create->name, verdict->message, reasons);
    *create = (struct create_sim){0};
}

void client_answered(struct world *w, uint64_t number, unsigned container)
{
    struct create_sim *create = client_find(w, number);
    char id[16];

    if (!create)
        return;
    snprintf(id, sizeof id, "c%u", container);
    if (!create->earlier)
        claims_answered(w, create->uid, create->name);
    if (container)
        runtime_start(w, container);
    else
        retry_later(w, create->uid, create->name, "the runtime refused", 0);
    if (!container && !create->earlier)
        give_back(w, create);
    if (!create->untouched)
        devicemgr_create_answered(w->shim.core, shim_now_ms(w), number, container ? id : NULL);
    *create = (struct create_sim){0};
}
