#include "devicemgr/machines/prefer.h"

#include <assert.h>
#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"

/* One question, asked of its plugin and not answered yet. */
struct prefer {
    uint64_t call;
    uint64_t number; /* the asker's */
    uint64_t endpoint;
    char *resource;
    struct ids available;
    struct ids own; /* our own answer where the plugin has none; empty: no preference */
    size_t size;
    uint64_t started_ms;
    uint64_t limit_ms;
    UT_hash_handle hh;
};

static struct prefer *find(const struct prefers *prefers, uint64_t call)
{
    struct prefer *prefer;

    HASH_FIND(hh, prefers->by_call, &call, sizeof call, prefer);
    return prefer;
}

static struct prefer *find_number(const struct prefers *prefers, uint64_t number)
{
    struct prefer *prefer = prefers->by_call;

    while (prefer && prefer->number != number)
        prefer = prefer->hh.next;
    return prefer;
}

static void prefer_free(struct prefers *prefers, struct prefer *prefer)
{
    HASH_DEL(prefers->by_call, prefer);
    free(prefer->resource);
    ids_fini(&prefer->available);
    ids_fini(&prefer->own);
    free(prefer);
}

void prefers_fini(struct prefers *prefers)
{
    struct prefer *prefer, *next;

    HASH_ITER(hh, prefers->by_call, prefer, next) {
        prefer_free(prefers, prefer);
    }
}

/* ---- what a container would have to wait for ---- */

static bool is_held(const struct state *state, const char *resource, const char *id)
{
    const struct owners *holders = allocations_holders(&state->allocations, resource, id);

    if (!state_settings_of(state, resource)->exclusive)
        return false;
    if (replacings_meant(&state->replacings, resource, id))
        return true;
    for (size_t i = 0; i < owners_len(holders); i++) {
        if (allocation_life(holders->v[i]) != ALLOCATION_IDLE)
            return true;
    }
    return false;
}

/* What a plugin that serves does not list, or says to be unhealthy: a kubelet that starts is shown
 * it as healthy since a pod has it that it may admit again (rules/shown.c), and takes it for free
 * once that is deleted. */
static bool is_lost(const struct state *state, const char *name, const char *id)
{
    const struct resource *resource = resources_find(state->resources, name);
    const struct device *device = resource ? devices_find(&resource->devices, id) : NULL;

    return resource && resource_usable(resource) && !(device && device->healthy);
}

static struct ids must_include(const struct devicemgr_preference *asked)
{
    return (struct ids){(char **)asked->must_include, asked->must_include_len};
}

static bool is_left_out(const struct state *state, const struct devicemgr_preference *asked,
                        const char *id)
{
    const struct ids must = must_include(asked);

    return !ids_contain(&must, id) &&
           (is_held(state, asked->resource, id) ||
            tainted_or_cordoned(state, asked->resource, id) || is_lost(state, asked->resource, id));
}

/*
 * The kubelet takes devices for free whose containers have not ended yet: of a pod that was removed
 * a moment ago, or of all pods, if it has lost its checkpoint. Such a container would have to wait
 * here, and so would one that is given what has been cordoned just now, is meant for a container
 * that has lost its own, or is lost itself; so the kubelet is led to others: `free_ids` are those
 * that nobody holds, with those that it must include. False, with none in `free_ids`: that are all
 * of them, or too few.
 */
static bool leave_held_out(const struct state *state, const struct devicemgr_preference *asked,
                           struct ids *free_ids)
{
    size_t left_out = 0;

    for (size_t i = 0; i < asked->available_len; i++)
        left_out += is_left_out(state, asked, asked->available[i]);
    if (left_out == 0 || asked->available_len - left_out < asked->size)
        return false;
    for (size_t i = 0; i < asked->available_len; i++) {
        if (!is_left_out(state, asked, asked->available[i]))
            ids_add(free_ids, asked->available[i]);
    }
    return true;
}

static void take_ids(struct ids *to, struct ids *from)
{
    *to = *from;
    *from = (struct ids){0};
}

/* As many as are asked for, those that must be included first. */
static void choose_own(const struct devicemgr_preference *asked, const struct ids *from,
                       struct ids *out)
{
    const struct ids must = must_include(asked);

    for (size_t i = 0; i < must.len && out->len < asked->size; i++)
        ids_add(out, must.v[i]);
    for (size_t i = 0; i < from->len && out->len < asked->size; i++) {
        if (!ids_contain(&must, from->v[i]))
            ids_add(out, from->v[i]);
    }
}

/* ---- the question ---- */

/* Whether it is worth asking. */
static bool askable(const struct prefers *prefers, const struct resource *resource)
{
    return resource && !resource->builtin && resource_usable(resource) &&
           resource->endpoint.has_preference && HASH_COUNT(prefers->by_call) < PREFERS_MAX &&
           (resource->prefer_rest.generation != resource->generation ||
            resource->prefer_rest.until_ms <= prefers->state->now_ms);
}

static struct prefer *prefer_new(struct prefers *prefers, const struct resource *resource,
                                 uint64_t number, uint64_t timeout_ms)
{
    struct state *state = prefers->state;
    struct prefer *prefer = mem_alloc(1, sizeof *prefer);

    prefer->call = state_number(state);
    prefer->number = number;
    prefer->endpoint = resource->endpoint.number;
    prefer->resource = mem_strdup(resource->name);
    prefer->started_ms = state->now_ms;
    prefer->limit_ms = later_by(state->now_ms, timeout_ms);
    HASH_ADD(hh, prefers->by_call, call, sizeof prefer->call, prefer);
    return prefer;
}

/* Which of `available`; `own` is taken. */
static void ask(struct prefers *prefers, uint64_t number, const struct devicemgr_preference *asked,
                const struct ids *available, struct ids *own)
{
    struct state *state = prefers->state;
    const struct resource *resource = resources_find(state->resources, asked->resource);
    const struct ids must = must_include(asked);
    struct action *action;
    struct prefer *prefer;

    if (!askable(prefers, resource) || asked->timeout_ms == 0) {
        take_ids(&action_push(&state->actions, ACTION_PREFERRED, number)->ids, own);
        return;
    }
    prefer = prefer_new(prefers, resource, number, asked->timeout_ms);
    prefer->size = asked->size;
    take_ids(&prefer->own, own);
    ids_copy(&prefer->available, available->v, available->len);
    action = action_push(&state->actions, ACTION_PREFER, prefer->endpoint);
    action->call = prefer->call;
    action->timeout_ms = asked->timeout_ms;
    action->size = asked->size;
    ids_copy(&action->ids, available->v, available->len);
    ids_copy(&action->must_include, must.v, must.len);
}

void prefers_begin(struct prefers *prefers, uint64_t number,
                   const struct devicemgr_preference *asked)
{
    const struct ids all = {(char **)asked->available, asked->available_len};
    struct ids free_ids = {0}, own = {0};
    bool leads;

    assert(!find_number(prefers, number));
    leads = leave_held_out(prefers->state, asked, &free_ids);
    if (leads)
        choose_own(asked, &free_ids, &own);
    ask(prefers, number, asked, leads ? &free_ids : &all, &own);
    ids_fini(&free_ids);
    ids_fini(&own);
}

/* Whether the question was queued only; then it is not asked. */
static bool drop_question(struct state *state, const struct prefer *prefer)
{
    return actions_drop(&state->actions, ACTION_PREFER, prefer->endpoint, prefer->call);
}

static void withdraw(struct state *state, const struct prefer *prefer)
{
    if (!drop_question(state, prefer))
        action_push(&state->actions, ACTION_CALL_CANCEL, 0)->call = prefer->call;
}

void prefers_cancelled(struct prefers *prefers, uint64_t number)
{
    struct prefer *prefer = find_number(prefers, number);

    actions_drop(&prefers->state->actions, ACTION_PREFERRED, number, 0);
    if (!prefer)
        return;
    withdraw(prefers->state, prefer);
    prefer_free(prefers, prefer);
}

/* ---- the answer ---- */

/* What a plugin named, each once. */
struct named {
    const char *id;
    bool available;
    UT_hash_handle hh;
};

/* Those of the plugin's ids that the kubelet could take, as many as it wants; it would drop all
 * others itself, without a word. */
static void filter(const struct prefer *prefer, char *const *ids, size_t ids_len, struct ids *out)
{
    struct named *by_id = NULL, *named, *next;

    for (size_t i = 0; i < ids_len; i++) {
        HASH_FIND_STR(by_id, ids[i], named);
        if (named)
            continue;
        named = mem_alloc(1, sizeof *named);
        named->id = ids[i];
        HASH_ADD_KEYPTR(hh, by_id, named->id, strlen(named->id), named);
    }
    for (size_t i = 0; i < prefer->available.len; i++) {
        HASH_FIND_STR(by_id, prefer->available.v[i], named);
        if (named)
            named->available = true;
    }
    HASH_ITER(hh, by_id, named, next) {
        if (named->available && out->len < prefer->size)
            ids_add(out, named->id);
        HASH_DEL(by_id, named);
        free(named);
    }
}

/* The plugin prefers nothing. */
static void answer_own(struct prefers *prefers, struct prefer *prefer)
{
    take_ids(&action_push(&prefers->state->actions, ACTION_PREFERRED, prefer->number)->ids,
             &prefer->own);
    prefer_free(prefers, prefer);
}

/* So that the kubelet does not fill up a short answer with what is held. */
static void fill_up(struct ids *answer, const struct prefer *prefer)
{
    for (size_t i = 0; i < prefer->own.len && answer->len < prefer->size; i++) {
        if (!ids_contain(answer, prefer->own.v[i]))
            ids_add(answer, prefer->own.v[i]);
    }
}

static void rest(struct state *state, const struct prefer *prefer)
{
    struct resource *resource = resources_edit(&state->resources, prefer->resource);
    struct text text = {0};

    if (resource->prefer_rest.generation == resource->generation &&
        resource->prefer_rest.until_ms > state->now_ms)
        return;
    resource->prefer_rest =
        (struct prefer_rest){state->now_ms + PREFER_REST_MS, resource->generation};
    text_add(&text, "resource %s: GetPreferredAllocation of plugin endpoint \"", resource->name);
    text_add_words(&text, resource->endpoint.socket_name, TEXT_WORDS_BYTES_MAX);
    text_add(&text, "\" was not answered within ");
    text_add_duration(&text, state->now_ms - prefer->started_ms);
    text_add(&text, "; the kubelet goes on without it, and it is not asked again for ");
    text_add_duration(&text, PREFER_REST_MS);
    state_log_about(state, LEVEL_WARNING, name_about_resource(resource->name), &text);
}

bool prefers_answered(struct prefers *prefers, uint64_t call, int code,
                      const V1beta1__PreferredAllocationResponse *response)
{
    struct prefer *prefer = find(prefers, call);
    struct action *action;

    if (!prefer)
        return false;
    if (code == CODE_DEADLINE_EXCEEDED)
        rest(prefers->state, prefer);
    if (code != CODE_OK || response->n_container_responses == 0) {
        answer_own(prefers, prefer);
        return true;
    }
    action = action_push(&prefers->state->actions, ACTION_PREFERRED, prefer->number);
    filter(prefer, response->container_responses[0]->deviceids,
           response->container_responses[0]->n_deviceids, &action->ids);
    fill_up(&action->ids, prefer);
    prefer_free(prefers, prefer);
    return true;
}

void prefers_endpoint_ended(struct prefers *prefers, uint64_t endpoint)
{
    struct prefer *prefer, *next;

    HASH_ITER(hh, prefers->by_call, prefer, next) {
        if (prefer->endpoint != endpoint)
            continue;
        drop_question(prefers->state, prefer);
        answer_own(prefers, prefer);
    }
}

/* ---- time ---- */

void prefers_tick(struct prefers *prefers)
{
    struct state *state = prefers->state;
    struct prefer *prefer, *next;

    HASH_ITER(hh, prefers->by_call, prefer, next) {
        if (prefer->limit_ms > state->now_ms)
            continue;
        rest(state, prefer);
        withdraw(state, prefer);
        answer_own(prefers, prefer);
    }
}

uint64_t prefers_next_ms(const struct prefers *prefers)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct prefer *p = prefers->by_call; p; p = p->hh.next)
        next_ms = earlier(next_ms, p->limit_ms);
    return next_ms;
}
