/*
 * What all parts need of the state: its settings, the time, numbers, the log.
 */
#include "devicemgr/books/state.h"

#include <string.h>

/* ---- settings ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct devicemgr_resource_settings *)a)->name,
                  ((const struct devicemgr_resource_settings *)b)->name);
}

static const struct devicemgr_settings_attribute *
copy_attributes(const struct devicemgr_resource_settings *from)
{
    struct devicemgr_settings_attribute *attributes =
        mem_alloc(from->attributes_len, sizeof *attributes);

    for (size_t i = 0; i < from->attributes_len; i++) {
        const struct devicemgr_settings_attribute *is = &from->attributes[i];

        attributes[i] = *is;
        attributes[i].device = mem_strdup(is->device);
        attributes[i].attribute.name = mem_strdup(is->attribute.name);
        if (is->attribute.text)
            attributes[i].attribute.text = mem_strdup(is->attribute.text);
    }
    return attributes;
}

static void free_attributes(const struct devicemgr_resource_settings *of)
{
    for (size_t i = 0; i < of->attributes_len; i++) {
        free((char *)of->attributes[i].device);
        free((char *)of->attributes[i].attribute.name);
        free((char *)of->attributes[i].attribute.text);
    }
    free((void *)of->attributes);
}

static void copy_resources(struct devicemgr_settings *to, const struct devicemgr_settings *from)
{
    struct devicemgr_resource_settings *resources =
        mem_alloc(from->resources_len, sizeof *resources);

    for (size_t i = 0; i < from->resources_len; i++) {
        resources[i] = from->resources[i];
        resources[i].name = mem_strdup(from->resources[i].name);
        resources[i].attributes = copy_attributes(&from->resources[i]);
    }
    if (from->resources_len > 1)
        qsort(resources, from->resources_len, sizeof *resources, compare_names);
    to->resources = resources;
}

static const char *const *copy_names(const char *const *names, size_t len)
{
    char **copy = mem_alloc(len, sizeof *copy);

    for (size_t i = 0; i < len; i++)
        copy[i] = mem_strdup(names[i]);
    return (const char *const *)copy;
}

static void free_names(const char *const *names, size_t len)
{
    for (size_t i = 0; i < len; i++)
        free((char *)names[i]);
    free((char **)names);
}

static const struct devicemgr_settings_taint *copy_taints(const struct devicemgr_settings *from)
{
    struct devicemgr_settings_taint *taints = mem_alloc(from->taints_len, sizeof *taints);

    for (size_t i = 0; i < from->taints_len; i++) {
        const struct devicemgr_settings_taint *is = &from->taints[i];

        taints[i].resource = mem_strdup(is->resource);
        taints[i].id = is->id ? mem_strdup(is->id) : NULL;
        taints[i].key = mem_strdup(is->key);
        taints[i].value = mem_strdup(is->value);
        taints[i].effect = mem_strdup(is->effect);
    }
    return taints;
}

static void free_taints(const struct devicemgr_settings_taint *taints, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        free((char *)taints[i].resource);
        free((char *)taints[i].id);
        free((char *)taints[i].key);
        free((char *)taints[i].value);
        free((char *)taints[i].effect);
    }
    free((void *)taints);
}

static const struct devicemgr_shutdown_group *copy_groups(const struct devicemgr_settings *from)
{
    struct devicemgr_shutdown_group *groups = mem_alloc(from->shutdown_len, sizeof *groups);

    if (from->shutdown_len > 0)
        memcpy(groups, from->shutdown, from->shutdown_len * sizeof *groups);
    return groups;
}

static void copy_settings(struct devicemgr_settings *to, const struct devicemgr_settings *from)
{
    *to = *from;
    to->namespaces = copy_names(from->namespaces, from->namespaces_len);
    to->cached_prepare = copy_names(from->cached_prepare, from->cached_prepare_len);
    to->boot_id = mem_strdup(from->boot_id);
    to->taints = copy_taints(from);
    to->shutdown = copy_groups(from);
    copy_resources(to, from);
}

static void take_settings(struct state *state, const struct devicemgr_settings *settings)
{
    copy_settings(&state->settings, settings);
    state->general = (struct devicemgr_resource_settings){
        .grace_ms = settings->grace_ms,
        .hold_ms = settings->hold_ms,
        .allocate_timeout_ms = settings->allocate_timeout_ms,
        .allocates_at_once = settings->allocates_at_once,
        .refresh = settings->refresh,
        .exclusive = true,
        .taint_unhealthy_after_ms = settings->taint_unhealthy_after_ms,
    };
}

void state_init(struct state *state, const struct devicemgr_settings *settings)
{
    take_settings(state, settings);
    state->listing.due_ms = state->listing.next_ms = UINT64_MAX;
    state->showing.all_ms = state->checkpoint.by_ms = UINT64_MAX;
}

static void free_settings(struct devicemgr_settings *settings)
{
    free_names(settings->namespaces, settings->namespaces_len);
    free_names(settings->cached_prepare, settings->cached_prepare_len);
    free((char *)settings->boot_id);
    free_taints(settings->taints, settings->taints_len);
    free((void *)settings->shutdown);
    for (size_t i = 0; i < settings->resources_len; i++) {
        free((char *)settings->resources[i].name);
        free_attributes(&settings->resources[i]);
    }
    free((void *)settings->resources);
}

void state_set_settings(struct state *state, const struct devicemgr_settings *settings)
{
    struct devicemgr_settings before = state->settings;

    take_settings(state, settings);
    free_settings(&before);
}

void state_fini(struct state *state)
{
    free_settings(&state->settings);
    free(state->unread);
}

const struct devicemgr_resource_settings *state_settings_of(const struct state *state,
                                                            const char *resource)
{
    const struct devicemgr_resource_settings wanted = {.name = resource};
    const struct devicemgr_resource_settings *own = NULL;

    if (state->settings.resources_len > 0)
        own = bsearch(&wanted, state->settings.resources, state->settings.resources_len,
                      sizeof wanted, compare_names);
    return own ? own : &state->general;
}

bool state_namespace_allowed(const struct state *state, const char *pod_namespace)
{
    for (size_t i = 0; i < state->settings.namespaces_len; i++) {
        if (strcmp(state->settings.namespaces[i], "*") == 0 ||
            strcmp(state->settings.namespaces[i], pod_namespace) == 0)
            return true;
    }
    return false;
}

/* ---- time, numbers, log ---- */

void state_set_unread(struct state *state, const char *why)
{
    free(state->unread);
    state->unread = why ? mem_strdup(why) : NULL;
}

void state_log(struct state *state, int level, const struct text *text)
{
    state_log_about(state, level, (struct devicemgr_about){0}, text);
}

/* In one piece with its texts; NULL: it is about nothing. */
static struct devicemgr_about *copy_of(const struct devicemgr_about *from)
{
    size_t bytes = mem_text_bytes(from->resource) + mem_text_bytes(from->pod_namespace) +
                   mem_text_bytes(from->pod_name) + mem_text_bytes(from->container);
    struct devicemgr_about *to;
    char *end;

    if (bytes == 0 && from->line == DEVICEMGR_LINE_OTHER)
        return NULL;
    to = mem_alloc(sizeof *to + bytes, 1);
    to->line = from->line;
    end = (char *)(to + 1);
    to->resource = mem_text_move(&end, from->resource);
    to->pod_namespace = mem_text_move(&end, from->pod_namespace);
    to->pod_name = mem_text_move(&end, from->pod_name);
    to->container = mem_text_move(&end, from->container);
    return to;
}

void state_log_about(struct state *state, int level, struct devicemgr_about about,
                     const struct text *text)
{
    struct action *action = action_push(&state->actions, ACTION_LOG, 0);

    action->code = level;
    action->text = mem_strdup(text->buf);
    action->about = copy_of(&about);
}
