#include "tests/sim/plugin_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/answer_options.h"
#include "tests/sim/check.h"
#include "tests/sim/choice.h"
#include "tests/sim/heap.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

#define ALL_DEVICES ((1u << DEVICES_MAX) - 1)
#define ANSWER_MS_MAX 400

/* How a call on a plugin goes. */
enum outcome {
    OUTCOME_GOOD,
    OUTCOME_ERROR,
    OUTCOME_EMPTY, /* an answer for no container */
    OUTCOME_TWO,   /* or for two, of which the first counts */
    OUTCOME_DIES,
    OUTCOME_TIMEOUT,
    OUTCOME_LEN,
};

static struct plugin_call *find_call(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++) {
        if (number && w->shim.net.calls[i].number == number)
            return &w->shim.net.calls[i];
    }
    return NULL;
}

size_t plugin_calls_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++)
        open += w->shim.net.calls[i].number != 0;
    return open;
}

size_t plugin_allocates_open(const struct world *w, uint64_t connection)
{
    const struct plugin_call *calls = w->shim.net.calls;
    size_t open = 0;

    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++)
        open += calls[i].number != 0 && calls[i].kind == PLUGIN_ALLOCATE &&
                calls[i].connection == connection;
    return open;
}

void plugin_calls_drop(struct world *w, uint64_t connection)
{
    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++) {
        if (w->shim.net.calls[i].connection == connection)
            w->shim.net.calls[i] = (struct plugin_call){0};
    }
}

static void add_env(V1beta1__ContainerAllocateResponse *options, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    answer_options_add_env(options, key, text);
}

static V1beta1__ContainerAllocateResponse *make_options(struct world *w, size_t resource,
                                                        unsigned ids)
{
    struct plugin_net *net = &w->shim.net;
    V1beta1__ContainerAllocateResponse *options = answer_options_new();
    struct answer *answer;
    char key[24], path[64], host[64], serial[24];

    net->answers = heap_grow(net->answers, net->answers_len, sizeof *net->answers);
    answer = &net->answers[net->answers_len++];
    snprintf(key, sizeof key, "S%zu", resource);
    add_env(options, key, net->answers_len);
    add_env(options, "COMMON", resource);
    snprintf(key, sizeof key, "a%zu", resource);
    snprintf(serial, sizeof serial, "%zu", net->answers_len);
    answer_options_add_annotation(options, key, serial);
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        snprintf(path, sizeof path, "/dev/%zu-%zu", resource, i);
        snprintf(host, sizeof host, "/dev/host-%zu-%zu", resource, i);
        if (ids & 1u << i)
            answer_options_add_device(options, path, host);
    }
    *answer = (struct answer){.resource = resource,
                              .ids = ids,
                              .boot = w->shim.boot,
                              .registrations = w->plugins[resource].registered,
                              .incarnation = w->shim.incarnation,
                              .hash = answer_options_hash(options)};
    return options;
}

static void answer_allocate(struct world *w, const struct plugin_call *call, size_t resource,
                            enum outcome outcome)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *options = make_options(w, resource, call->ids);
    V1beta1__ContainerAllocateResponse *second = answer_options_new();
    V1beta1__ContainerAllocateResponse *both[] = {options, second};

    add_env(second, "SECOND", resource);
    response.container_responses = both;
    response.n_container_responses = outcome == OUTCOME_TWO ? 2 : outcome == OUTCOME_GOOD;
    w->shim.net.answers[w->shim.net.answers_len - 1].none = outcome == OUTCOME_EMPTY;
    world_note(w, "plugin %zu: Allocate of %x answered, serial %zu", resource, call->ids,
               w->shim.net.answers_len);
    devicemgr_allocated(w->shim.core, shim_now_ms(w), call->number, 0, NULL, &response);
    answer_options_free(options);
    answer_options_free(second);
}

/* Any ids: the advice may be nonsense. */
static void answer_prefer(struct world *w, const struct connection *c,
                          const struct plugin_call *call)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_PREFERS, c->resource, call->ids);
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse one =
        V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse *list = &one;
    unsigned mask = (unsigned)rng_below(&rng, ALL_DEVICES + 1);
    struct id_list ids = device_sim_ids(mask);

    choice_answered(w, call, mask);
    id_list_add(&ids, "nonsense");
    one.deviceids = ids.v;
    one.n_deviceids = ids.len;
    response.container_responses = &list;
    response.n_container_responses = 1;
    devicemgr_preferred(w->shim.core, shim_now_ms(w), call->number, 0, NULL, &response);
    id_list_fini(&ids);
}

static void answer_prestart(struct world *w, struct connection *c, const struct plugin_call *call)
{
    c->prestarted_ms[call->ids] = w->now_ms;
    devicemgr_prestarted(w->shim.core, shim_now_ms(w), call->number, 0, NULL);
}

static void answer_failed(struct world *w, const struct plugin_call *call, int code)
{
    world_note(w, "plugin: call %" PRIu64 " fails with %d", call->number, code);
    switch (call->kind) {
    case PLUGIN_ALLOCATE:
        devicemgr_allocated(w->shim.core, shim_now_ms(w), call->number, code, "out of order", NULL);
        break;
    case PLUGIN_PREFER:
        devicemgr_preferred(w->shim.core, shim_now_ms(w), call->number, code, "out of order", NULL);
        break;
    case PLUGIN_PRESTART:
        devicemgr_prestarted(w->shim.core, shim_now_ms(w), call->number, code, "out of order");
        break;
    }
}

static bool is_good(enum outcome outcome)
{
    return outcome == OUTCOME_GOOD || outcome == OUTCOME_TWO;
}

static void call_ends(struct world *w, uint64_t number, uint64_t incarnation_and_outcome)
{
    struct plugin_call *slot = find_call(w, number), call;
    enum outcome outcome = (enum outcome)(incarnation_and_outcome % OUTCOME_LEN);
    struct connection *c;

    if (!shim_lives(w, incarnation_and_outcome / OUTCOME_LEN) || !slot)
        return;
    c = plugin_find_connection(w, slot->connection);
    if (outcome == OUTCOME_DIES) {
        plugin_die(w, &w->plugins[c->resource]);
        return;
    }
    call = *slot;
    *slot = (struct plugin_call){0};
    if (!is_good(outcome))
        count_add(outcome == OUTCOME_TIMEOUT ? COUNT_CALL_LATE : COUNT_CALL_FAILED);
    if (outcome == OUTCOME_TIMEOUT)
        w->shim.net.late_ms[c->resource] = w->now_ms;
    else if (!is_good(outcome))
        w->shim.net.failed_ms[c->resource] = w->now_ms;
    if (outcome == OUTCOME_TIMEOUT)
        answer_failed(w, &call, CODE_DEADLINE_EXCEEDED);
    else if (outcome == OUTCOME_ERROR)
        answer_failed(w, &call, 2);
    else if (call.kind == PLUGIN_ALLOCATE)
        answer_allocate(w, &call, c->resource, outcome);
    else if (call.kind == PLUGIN_PREFER)
        answer_prefer(w, c, &call);
    else
        answer_prestart(w, c, &call);
    shim_run(w);
}

static void check_call(struct world *w, enum plugin_call_kind kind, const struct connection *c,
                       uint64_t number, unsigned ids, unsigned must, size_t size,
                       uint64_t timeout_ms)
{
    check_that(w, c && c->listed, "a plugin is called on an open connection that has a list");
    check_that(w, number != 0 && !find_call(w, number), "a call has a number of its own");
    check_that(w, timeout_ms > 0 && timeout_ms <= 10000, "a call has a deadline");
    check_that(w, ids != 0 && (must & ~ids) == 0 && size <= device_sim_count(ids),
               "a call names known devices, each once");
    check_that(w,
               kind != PLUGIN_ALLOCATE || shim_allocates_at_once(w) == 0 ||
                   plugin_allocates_open(w, c ? c->number : 0) < shim_allocates_at_once(w),
               "a plugin is asked Allocate no more at once than the settings say");
    check_that(w, kind != PLUGIN_PREFER || !c || c->preferred,
               "a plugin is asked for a preference only if it offers that");
    check_that(w, kind != PLUGIN_PRESTART || !c || c->pre_start,
               "PreStartContainer is called only where the plugin wants it");
    if (kind == PLUGIN_PREFER)
        return; /* the kubelet may ask about any */
    check_that(w, c && (ids & ~c->healthy) == 0, "only healthy devices are asked for: %x of %x",
               ids, c ? c->healthy : 0);
}

void plugin_call(struct world *w, enum plugin_call_kind kind, uint64_t connection, uint64_t number,
                 unsigned ids, unsigned must, size_t size, uint64_t timeout_ms)
{
    static const char *const NAMES[] = {"Allocate", "GetPreferredAllocation", "PreStartContainer"};
    struct connection *c = plugin_find_connection(w, connection);
    struct plugin_call *slot = w->shim.net.calls;
    enum outcome outcome = OUTCOME_GOOD;
    uint64_t delay_ms;
    const struct plugin *p;
    struct rng rng;

    check_call(w, kind, c, number, ids, must, size, timeout_ms);
    while (slot < w->shim.net.calls + PLUGIN_CALLS_MAX && slot->number)
        slot++;
    check_that(w, slot < w->shim.net.calls + PLUGIN_CALLS_MAX, "calls under way are bounded");
    if (!c || slot == w->shim.net.calls + PLUGIN_CALLS_MAX)
        return;
    p = &w->plugins[c->resource];
    rng = world_draw(w, DRAW_PLUGIN_CALLED, c->resource, (uint64_t)kind << 32 | ids);
    delay_ms = rng_delay_ms(&rng, ANSWER_MS_MAX);
    *slot = (struct plugin_call){number, kind, connection, ids, must, size};
    if (kind == PLUGIN_PREFER)
        choice_asked(w, c->resource, slot);
    else if (kind == PLUGIN_ALLOCATE)
        choice_check(w, c->resource, ids);
    world_note(w, "plugin %zu: %s of %x, call %" PRIu64, c->resource, NAMES[kind], ids, number);
    if (p->hung || p->instance != c->instance)
        outcome = OUTCOME_TIMEOUT;
    else if (rng_percent(&rng, p->trouble))
        outcome = (enum outcome)rng_below(&rng, OUTCOME_LEN);
    if (outcome == OUTCOME_TIMEOUT || delay_ms > timeout_ms)
        delay_ms = timeout_ms, outcome = OUTCOME_TIMEOUT;
    else if (rng_percent(&rng, p->trouble))
        delay_ms = rng_below(&rng, timeout_ms);
    world_after(w, &rng, delay_ms, call_ends, number, w->shim.incarnation * OUTCOME_LEN + outcome);
}

void plugin_call_cancel(struct world *w, uint64_t number)
{
    struct plugin_call *call = find_call(w, number);

    check_that(w, call || w->shim.late, "only a call under way is cancelled");
    if (call)
        *call = (struct plugin_call){0};
}
