#include "devicemgr/machines/adopt.h"

#include <string.h>

#include "devicemgr/books/ledger.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/name.h"

/* A container that runs, as far as is known; by container id. */
struct running {
    char *container_id;
    char *sandbox_id;
    char *pod_uid;
    char *name;
    uint32_t attempt;
    uint64_t epoch; /* of the last list that showed it */
    UT_hash_handle hh;
};

/* ---- what runs ---- */

static void running_free(struct adopt *adopt, struct running *running)
{
    HASH_DEL(adopt->runnings, running);
    free(running->container_id);
    free(running->sandbox_id);
    free(running->pod_uid);
    free(running->name);
    free(running);
}

static struct running *running_find(const struct adopt *adopt, const char *container_id)
{
    struct running *running;

    HASH_FIND_STR(adopt->runnings, container_id, running);
    return running;
}

bool adopt_running(struct adopt *adopt, const struct devicemgr_container *container,
                   const struct sandbox *sandbox)
{
    struct running *running = running_find(adopt, container->id);
    bool is_new = !running;

    if (running)
        running_free(adopt, running); /* its sandbox may be another pod's now */
    running = mem_alloc(1, sizeof *running);
    running->container_id = mem_strdup(container->id);
    running->sandbox_id = mem_strdup(sandbox->id);
    running->pod_uid = mem_strdup(sandbox->pod->uid);
    running->name = mem_strdup(container->name);
    running->attempt = container->attempt;
    running->epoch = adopt->state->listing.epoch;
    HASH_ADD_KEYPTR(hh, adopt->runnings, running->container_id, strlen(running->container_id),
                    running);
    return is_new;
}

void adopt_forget_unlisted(struct adopt *adopt)
{
    struct running *running, *next;

    HASH_ITER(hh, adopt->runnings, running, next) {
        if (running->epoch < adopt->state->listing.epoch)
            running_free(adopt, running);
    }
}

void adopt_container_ended(struct adopt *adopt, const char *container_id)
{
    struct running *running = running_find(adopt, container_id);

    if (running)
        running_free(adopt, running);
}

void adopt_sandbox_ended(struct adopt *adopt, const char *sandbox_id)
{
    struct running *running, *next;

    HASH_ITER(hh, adopt->runnings, running, next) {
        if (strcmp(running->sandbox_id, sandbox_id) == 0)
            running_free(adopt, running);
    }
}

void adopt_fini(struct adopt *adopt)
{
    struct running *running, *next;

    HASH_ITER(hh, adopt->runnings, running, next) {
        running_free(adopt, running);
    }
}

/* ---- adopting ---- */

/* Other resources' devices are the kubelet's own affair. */
static bool is_served_here(const struct state *state, const char *name)
{
    const struct resource *resource = resources_find(state->resources, name);

    return resource && (resource->builtin || resource->endpoint.socket_good);
}

static bool is_to_adopt(const struct state *state, const struct kubelet_hold *hold,
                        const char *container)
{
    return strcmp(hold->container, container) == 0 && hold->ids.len > 0 &&
           is_served_here(state, hold->resource) &&
           !allocations_find(&state->allocations, hold->pod_uid, hold->container, hold->resource);
}

static struct allocation *adopt_one(struct state *state, const struct kubelet_hold *hold)
{
    struct allocation *allocation = allocations_add(&state->allocations, hold->pod_uid,
                                                    hold->container, hold->resource, &hold->ids);
    struct text text = {0};

    allocation_set_found(allocation); /* in the kubelet's checkpoint, and soon in ours */
    dirty_touch_allocation(state, allocation);
    dirty_touch_pod(state, hold->pod_uid);
    name_holder(&state->pods, allocation, &text);
    text_add(&text, ": runs without a token, and has by the kubelet's checkpoint device ids ");
    text_add_ids(&text, &allocation->ids);
    text_add_name(&text, " of resource ", allocation->resource);
    state_log_about(state, LEVEL_INFO,
                    name_line(DEVICEMGR_LINE_ADOPTED, name_about_holder(&state->pods, allocation)),
                    &text);
    return allocation;
}

/* What runs is known by the last list: one that was made since may have it, too, or be in the
 * making. */
static void note_unseen(struct state *state, struct allocation *allocation)
{
    const struct pod *pod = pods_find(&state->pods, allocation->pod_uid);

    if (pod && pod->newest && pod->newest->state != SANDBOX_STOPPED)
        ledger_outcome_unknown(state, allocation, pod->newest->id);
}

/* An older attempt may still run beside the latest. */
static void adopt_for_all(struct adopt *adopt, const struct kubelet_hold *hold)
{
    struct allocation *allocation = adopt_one(adopt->state, hold);

    note_unseen(adopt->state, allocation);
    for (const struct running *r = adopt->runnings; r; r = r->hh.next) {
        if (strcmp(r->name, hold->container) == 0 && strcmp(r->pod_uid, hold->pod_uid) == 0)
            allocation_set_live(allocation, r->container_id, r->sandbox_id, r->attempt);
    }
}

void adopt_all(struct adopt *adopt)
{
    for (const struct running *r = adopt->runnings; r; r = r->hh.next) {
        size_t holds_len;
        const struct kubelet_hold *const *holds =
            kubelet_holds_of_pod(adopt->state, r->pod_uid, &holds_len);

        for (size_t i = 0; i < holds_len; i++) {
            if (is_to_adopt(adopt->state, holds[i], r->name))
                adopt_for_all(adopt, holds[i]);
        }
    }
}

/* A container that was made since the last list may have it, too. */
void adopt_served(struct adopt *adopt, const char *resource)
{
    struct state *state = adopt->state;
    const struct kubelet_hold *hold = state->kubelet.holds;

    adopt_all(adopt);
    while (hold && strcmp(hold->resource, resource) != 0)
        hold = hold->hh.next;
    if (state->listing.listed && hold)
        listing_soon(state);
}

/* Before the first list nothing new is given out, and there may be rows that are not read yet. */
void adopt_created(struct state *state, const char *sandbox_id, const char *pod_uid,
                   const char *container)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, sandbox_id);
    const struct kubelet_hold *const *holds;
    size_t holds_len;

    if (!sandbox || sandbox->state == SANDBOX_STOPPED || strcmp(sandbox->pod->uid, pod_uid) != 0)
        return;
    holds = kubelet_holds_of_pod(state, pod_uid, &holds_len);
    for (size_t i = 0; state->listing.listed && i < holds_len; i++) {
        if (is_to_adopt(state, holds[i], container))
            adopt_one(state, holds[i]);
    }
    for (struct allocation *a = allocations_edit_of_pod(&state->allocations, pod_uid); a;
         a = a->pod_next) {
        if (!a->own_choice && !a->create && strcmp(a->container, container) == 0)
            ledger_outcome_unknown(state, a, sandbox_id);
    }
}
