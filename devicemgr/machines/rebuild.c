#include "devicemgr/machines/rebuild.h"

#include <string.h>

#include "devicemgr/books/ledger.h"
#include "devicemgr/books/state.h"

/* What containerd (2.1 to 2.3) makes of an image that is a checkpoint (CRIU) has, beside this one,
 * the annotations of the container that the checkpoint was taken of in the place of those that it
 * was to be made with. It is written behind them: no image is without. */
#define RESTORED_KEY "checkpointImage"

static bool is_restored(const struct devicemgr_container *container)
{
    size_t i = 0;

    while (i < container->annotations_len &&
           strcmp(container->annotations[i].key, RESTORED_KEY) != 0)
        i++;
    return i < container->annotations_len;
}

void container_tokens_read(struct container_tokens *named, struct state *log,
                           const struct devicemgr_container *container)
{
    bool restored = is_restored(container);

    *named = (struct container_tokens){.unreadable = restored};
    for (size_t i = 0; i < container->annotations_len && !restored; i++) {
        const struct devicemgr_annotation *annotation = &container->annotations[i];
        size_t asked = request_is_asked_key(annotation->key);
        struct text error = {0};

        if (!request_is_own_key(annotation->key))
            continue;
        text_add(&error, "running container %.12s: ", container->id);
        if (request_add_token(asked > 0 ? &named->asked : &named->tokens, annotation->key + asked,
                              annotation->value, &error) == 0)
            continue;
        named->unreadable = true;
        if (log)
            state_log(log, LEVEL_WARNING, &error);
    }
}

void container_tokens_fini(struct container_tokens *named)
{
    request_fini(&named->tokens);
    request_fini(&named->asked);
}

/* What the token's devices are in the place of, as many; else nothing. */
static struct ids asked_of(const struct container_tokens *named, const struct request_item *token)
{
    for (size_t i = 0; i < named->asked.len; i++) {
        const struct request_item *asked = &named->asked.items[i];

        if (strcmp(asked->resource, token->resource) == 0 && asked->ids.len == token->ids.len)
            return asked->ids;
    }
    return (struct ids){0};
}

/* What the shim has chosen is always written on the container. What the kubelet has is not, where
 * it is from before the plugin was moved; but there a container asks for the same as long as its
 * pod lives. */
bool container_tokens_name(const struct container_tokens *named,
                           const struct allocation *allocation)
{
    return named->unreadable || !allocation->own_choice ||
           request_names(&named->tokens, allocation->resource);
}

/* The pod's request annotation for this container; NULL: none, or it counts for nothing. */
static const char *told_request(const struct state *state, const struct listed_sandboxes *told,
                                const struct devicemgr_container *container)
{
    size_t s = 0;

    while (s < told->len && strcmp(told->v[s].id, container->sandbox_id) != 0)
        s++;
    if (s == told->len || !state->settings.annotations ||
        !state_namespace_allowed(state, told->v[s].pod_namespace))
        return NULL;
    return request_annotation_of(told->v[s].annotations, told->v[s].annotations_len,
                                 container->name);
}

/* Whether the shim chose what a container's token names: the token looks the same as the kubelet's,
 * but then its pod has asked for the resource by annotation. */
static bool was_own_choice(const struct state *state, const struct listed_sandboxes *told,
                           const struct devicemgr_container *container, const char *resource)
{
    const char *value = told_request(state, told, container);
    struct request request = {0};
    struct text ignored = {0};
    bool named;

    if (!value || request_add_annotation(&request, value, &ignored) < 0) {
        request_fini(&request);
        return false;
    }
    named = request_names(&request, resource);
    request_fini(&request);
    return named;
}

/* Whether a create has reserved for the container what it runs with already: the checkpoint had
 * lost that, or an earlier attempt was made behind our back. */
static bool is_reserved(const struct allocation *allocation, const struct request_item *token,
                        const struct ids *asked)
{
    return allocation->create && !allocation_durable(allocation) &&
           ids_equal(&allocation->ids, &token->ids) && ids_equal(&allocation->asked, asked);
}

/* Whether the kubelet's checkpoint, too, has what the allocation is: the two count more than a
 * token, which is another container's where the runtime has restored this one (CRI-O does not say
 * so). */
static bool is_vouched_for(const struct state *state, const struct allocation *allocation,
                           const struct ids *asked)
{
    return !allocation->own_choice && !allocation_replaced(allocation) && asked->len == 0 &&
           kubelet_gave(state, allocation);
}

/* A running container holds what its token says, whatever the checkpoint has, but for what the
 * kubelet has, too; not if the list is older than what we have heard of that container name since.
 * While a create for its next attempt has reserved the same, that stays whatever becomes of the
 * create; where it has reserved others, what runs is rebuilt by the first list behind the create's
 * end. */
static bool rebuild_one(struct state *state, const struct listed_sandboxes *told,
                        const struct devicemgr_container *container, const struct sandbox *sandbox,
                        const struct request_item *token, const struct ids *asked)
{
    struct allocation *allocation =
        allocations_edit(&state->allocations, sandbox->pod->uid, container->name, token->resource);
    size_t lives_len = allocation ? allocation->lives_len : 0;

    if (allocation && allocation->epoch < state->listing.epoch &&
        is_reserved(allocation, token, asked)) {
        allocation_set_found(allocation);
        dirty_touch_allocation(state, allocation);
        dirty_touch_pod(state, sandbox->pod->uid);
        return true;
    }
    if (allocation &&
        (allocation->create || allocation->epoch >= state->listing.epoch ||
         (ids_equal(&allocation->ids, &token->ids) && ids_equal(&allocation->asked, asked)) ||
         (lives_len > 0 && allocation->lives[lives_len - 1].attempt > container->attempt) ||
         is_vouched_for(state, allocation, asked)))
        return false;
    if (allocation)
        ledger_drop_allocation(state, allocation);
    allocation = allocations_add(&state->allocations, sandbox->pod->uid, container->name,
                                 token->resource, &token->ids);
    allocation_set_replaced(allocation, asked);
    allocation_set_found(allocation);
    allocation_set_own_choice(allocation, was_own_choice(state, told, container, token->resource));
    allocation_set_live(allocation, container->id, sandbox->id, container->attempt);
    dirty_touch_allocation(state, allocation);
    dirty_touch_pod(state, sandbox->pod->uid);
    return true;
}

size_t rebuild_container(struct state *state, const struct listed_sandboxes *told,
                         const struct devicemgr_container *container, const struct sandbox *sandbox,
                         const struct container_tokens *named)
{
    size_t rebuilt = 0;

    for (size_t i = 0; i < named->tokens.len; i++) {
        const struct request_item *token = &named->tokens.items[i];
        const struct ids asked = asked_of(named, token);

        if (token->ids.len > 0)
            rebuilt += rebuild_one(state, told, container, sandbox, token, &asked);
    }
    return rebuilt;
}
