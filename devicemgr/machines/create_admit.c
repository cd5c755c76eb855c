/*
 * The arrival of a create: what it asks for, and whether it may.
 */
#include <assert.h>
#include <string.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/ledger.h"
#include "devicemgr/machines/create.h"
#include "devicemgr/rules/claimed.h"
#include "devicemgr/rules/ended.h"
#include "devicemgr/rules/lifted.h"
#include "devicemgr/rules/usable.h"
#include "devicemgr/things/name.h"

static bool has_token(const struct devicemgr_create *said)
{
    for (size_t i = 0; i < said->container_annotations_len; i++) {
        if (request_is_token_key(said->container_annotations[i].key))
            return true;
    }
    return false;
}

/* A device that its claim has (lift.h), as the scheduler has chosen it. */
static bool has_marker(const struct devicemgr_create *said)
{
    for (size_t i = 0; i < said->cdi_devices_len; i++) {
        if (lift_marker_is(said->cdi_devices[i], strlen(said->cdi_devices[i])))
            return true;
    }
    return false;
}

/* Whether what the create is known by may be kept. */
static bool names_fit(const struct demand *demand)
{
    return demand_names_bytes(demand) <= DEMAND_NAMES_BYTES_MAX;
}

static void log_ignored(struct state *state, const struct create *create)
{
    struct text text = {0};
    struct pod *pod;

    if (state->unread || !names_fit(&create->demand) ||
        facts_sandbox_removed(state, create->demand.sandbox_id))
        return; /* no pod to remember it by */
    pod = pods_ensure(&state->pods, create->demand.pod_uid, create->demand.pod_namespace,
                      create->demand.pod_name);
    ledger_pod_changed(state, create->demand.pod_uid);
    if (!pod_ignore_once(pod, create->demand.container))
        return;
    name_demand(&create->demand, NULL, &text);
    text_add(&text, "its pod's request annotation is ignored: annotations are off on this node");
    state_log_about(state, LEVEL_WARNING, name_about_demand(&create->demand, NULL), &text);
}

static bool read_tokens(struct demand *demand, const struct devicemgr_create *said,
                        struct text *error)
{
    for (size_t i = 0; i < said->container_annotations_len; i++) {
        const struct devicemgr_annotation *token = &said->container_annotations[i];

        if (request_is_token_key(token->key) &&
            request_add_token(&demand->request, token->key, token->value, error) < 0)
            return false;
    }
    return true;
}

static bool read_markers(const struct state *state, struct demand *demand,
                         const struct devicemgr_create *said, struct text *error)
{
    for (size_t i = 0; i < said->cdi_devices_len; i++) {
        const char *name = said->cdi_devices[i], *resource, *id;
        struct lift_marker marker;

        if (!lift_marker_is(name, strlen(name)))
            continue;
        if (!lift_marker_read(name, &marker) || !lifted_find(state, &marker, &resource, &id)) {
            text_add(error, "the CDI device ");
            text_add_words(error, name, TEXT_WORDS_BYTES_MAX);
            text_add(error, " stands for no resource that is published from here");
            return false;
        }
        if (request_add_claimed(&demand->request, resource, id, marker.claim_uid, error) < 0)
            return false;
    }
    return true;
}

/* Whether a container of the pod has some of the resource, and not by a claim. */
static bool has_own(const struct state *state, const struct demand *demand, const char *resource)
{
    const struct allocation *a = allocations_of_pod(&state->allocations, demand->pod_uid);

    while (a && (a->claimed || strcmp(a->resource, resource) != 0))
        a = a->pod_next;
    return a != NULL;
}

/* The scheduler gives them away: who asks here would have what it may give to another, but for the
 * pod that has some since before that, as far as it is known who does. */
static bool is_published(const struct state *state, const struct demand *demand, struct text *error)
{
    const struct request *request = &demand->request;

    for (size_t i = 0; i < request->len && !state->unread; i++) {
        const struct request_item *item = &request->items[i];

        if (item->token || has_own(state, demand, item->resource) ||
            !state_settings_of(state, item->resource)->dra)
            continue;
        text_add(error, "resource %s is asked for by ResourceClaims on this node", item->resource);
        return true;
    }
    return false;
}

/* Reads all sources of the request. Why it is refused; `error` is for the reason to point to. */
static enum reason_kind read_request(struct state *state, struct create *create,
                                     const struct devicemgr_create *said, const char *annotation,
                                     struct text *error)
{
    struct demand *demand = &create->demand;

    if (!read_tokens(demand, said, error) || !read_markers(state, demand, said, error))
        return REASON_REQUEST_UNREADABLE;
    if (annotation && !state->settings.annotations && !state->settings.start_without)
        return REASON_ANNOTATIONS_OFF;
    if (annotation && !state->settings.annotations)
        log_ignored(state, create);
    else if (annotation && !state_namespace_allowed(state, demand->pod_namespace))
        return REASON_NAMESPACE_NOT_ALLOWED;
    else if (annotation && request_add_annotation(&demand->request, annotation, error) < 0)
        return REASON_REQUEST_UNREADABLE;
    request_sort(&demand->request);
    if (is_published(state, demand, error))
        return REASON_PUBLISHED;
    return REASON_NONE;
}

static struct create *create_new(struct creates *creates, uint64_t number,
                                 const struct devicemgr_create *said)
{
    struct create *create = mem_alloc(1, sizeof *create);

    create->number = number;
    demand_init(&create->demand, number, creates->state->now_ms, said);
    create->limit_ms = UINT64_MAX;
    if (said->deadline_ms != UINT64_MAX)
        create->limit_ms =
            said->deadline_ms > DEADLINE_MARGIN_MS ? said->deadline_ms - DEADLINE_MARGIN_MS : 0;
    assert(!creates_find(creates, number));
    HASH_ADD(hh, creates->by_number, number, sizeof create->number, create);
    return create;
}

/* A pending create of the same container is of a client that has given it up, or will. */
static void take_over(struct creates *creates, const struct create *create)
{
    const struct reason reason = {.kind = REASON_TAKEN_OVER};
    const struct waiter *older = wakes_find_other(&creates->state->wakes, &create->demand);

    if (older)
        create_refuse(creates, creates_find(creates, older->number), &reason);
}

/* The sandbox may be older than the shim, and the runtime's list still to come. One that was
 * removed stays unknown: the create is late, and is refused for it. Returns the create's pod; NULL:
 * it was removed, too. */
static struct pod *know_sandbox(struct state *state, const struct devicemgr_create *said)
{
    struct pod *pod;
    struct sandbox *sandbox = pods_edit_sandbox(&state->pods, said->sandbox_id);

    if (sandbox)
        return sandbox->pod;
    if (facts_sandbox_removed(state, said->sandbox_id))
        return pods_edit(&state->pods, said->pod_uid);
    pod = pods_ensure(&state->pods, said->pod_uid, said->pod_namespace, said->pod_name);
    sandbox = pods_ensure_sandbox(&state->pods, pod, said->sandbox_id, said->sandbox_attempt);
    sandbox_set_epoch(sandbox, state->listing.epoch);
    pod_set_boot(pod, state->settings.boot_id);
    ledger_pod_changed(state, said->pod_uid);
    return pod;
}

/* A pod's containers want the same as long as it lives, and the kubelet keeps their tokens. But a
 * create of a pod that is being removed, behind a container that took long to end, comes after the
 * kubelet has forgotten what it gave to the pod. */
static bool lost_token(const struct state *state, const struct devicemgr_create *said)
{
    const struct pod *pod = pods_find(&state->pods, said->pod_uid);

    if (pod && pod_had_token(pod, said->container))
        return true;
    /* Since before this start. What was adopted never had a token, nor has it options. */
    for (const struct allocation *a = allocations_of_pod(&state->allocations, said->pod_uid); a;
         a = a->pod_next) {
        if (!a->own_choice && a->options && strcmp(a->container, said->container) == 0)
            return true;
    }
    return false;
}

/* With the one that asks. */
static bool are_too_many(const struct creates *creates)
{
    return HASH_COUNT(creates->by_number) > CREATES_MAX;
}

/* Reads what it asks for, and says why it may not, or not now; REASON_NONE also if it asks for
 * nothing. `error` is for the reason to point to. */
static struct reason judge(struct creates *creates, struct create *create,
                           const struct devicemgr_create *said, const char *annotation, bool token,
                           struct text *error)
{
    struct state *state = creates->state;
    struct reason reason = {.words = error->buf};

    if (are_too_many(creates))
        reason.kind = REASON_TOO_MANY_CREATES;
    else if (!annotation && !token)
        reason.kind = REASON_TOKEN_GONE;
    else
        reason.kind = read_request(state, create, said, annotation, error);
    if (reason.kind != REASON_NONE || create->demand.request.len == 0)
        return reason;
    if (!names_fit(&create->demand))
        return (struct reason){.kind = REASON_NAMES_TOO_LONG};
    if (state->unread) /* what it holds, and who else holds that */
        return (struct reason){.kind = REASON_ROWS_UNREAD,
                               .resource = create->demand.request.items[0].resource,
                               .words = state->unread};
    return usable_pod(state, &create->demand).reason;
}

/* Whether it may get others than a token of it says, or has. */
static bool has_others(const struct state *state, const struct demand *demand)
{
    for (size_t i = 0; i < demand->request.len; i++) {
        const struct allocation *has = allocations_demanded(&state->allocations, demand, i);

        if ((has && allocation_replaced(has)) ||
            state_settings_of(state, demand->request.items[i].resource)->replace)
            return true;
    }
    return false;
}

static bool was_late(const struct state *state, const struct demand *demand)
{
    const struct refusal *last = refused_find(&state->refused, demand->pod_uid, demand->container);

    return last && !last->made && strcmp(last->word, reason_word(REASON_CALL_UNANSWERED)) == 0;
}

/* It is looked at from now on. */
static void join(struct creates *creates, struct create *create)
{
    struct state *state = creates->state;

    create->items = mem_alloc(create->demand.request.len, sizeof *create->items);
    create->wanted = mem_alloc(create->demand.request.len, sizeof *create->wanted);
    take_over(creates, create);
    create->waiter.number = create->number;
    create->waiter.demand = &create->demand;
    create->waiter.replaces = has_others(state, &create->demand);
    create->waiter.late = was_late(state, &create->demand);
    wake_join(&state->wakes, &create->waiter, create->limit_ms);
}

static void admit(struct creates *creates, struct create *create,
                  const struct devicemgr_create *said, bool token)
{
    struct state *state = creates->state;
    struct pod *pod;

    create->demand.read = true;
    pod = know_sandbox(state, said);
    tainted_note_pod(state, pod, said->pod_annotations, said->pod_annotations_len);
    if (pod && token)
        pod_note_token(pod, said->container);
    join(creates, create);
}

void creates_begin_refused(struct creates *creates, uint64_t number,
                           const struct devicemgr_create *said, const struct reason *reason)
{
    const struct reason too_long = {.kind = REASON_NAMES_TOO_LONG};
    struct create *create = create_new(creates, number, said);

    create_refuse(creates, create, names_fit(&create->demand) ? reason : &too_long);
}

bool creates_begin(struct creates *creates, uint64_t number, const struct devicemgr_create *said)
{
    const char *annotation =
        request_annotation_of(said->pod_annotations, said->pod_annotations_len, said->container);
    bool token = has_token(said) || has_marker(said);
    struct text error = {0};
    struct create *create;
    struct reason reason;

    reason = ended_pod(creates->state, said->pod_uid).reason;
    if (reason.kind == REASON_NONE && !annotation && !token && !lost_token(creates->state, said)) {
        if (pods_find(&creates->state->pods, said->pod_uid)) /* else nothing is held by it */
            know_sandbox(creates->state, said);
        return false;
    }
    create = create_new(creates, number, said);
    if (reason.kind == REASON_NONE)
        reason = judge(creates, create, said, annotation, token, &error);
    if (reason.kind == REASON_NONE && create->demand.request.len == 0) {
        create_free(creates, create); /* its annotation was ignored */
        return false;
    }
    if (reason.kind == REASON_NONE)
        admit(creates, create, said, token);
    else
        create_refuse(creates, create, &reason);
    return true;
}

bool creates_begin_claimed(struct creates *creates, uint64_t number,
                           const struct devicemgr_create *said, bool renamed)
{
    bool used = said->cdi_devices_len > 0 &&
                claimed_used(creates->state, said->sandbox_id, said->container);
    struct create *create;
    struct reason reason = {0};

    if (!used && !renamed)
        return false;
    create = create_new(creates, number, said);
    create->unclaimed = !used;
    if (are_too_many(creates))
        reason.kind = REASON_TOO_MANY_CREATES;
    else if (!names_fit(&create->demand))
        reason.kind = REASON_NAMES_TOO_LONG;
    if (reason.kind == REASON_NONE)
        join(creates, create);
    else
        create_refuse(creates, create, &reason);
    return true;
}
