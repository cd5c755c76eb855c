#include "shim/core/core_settings.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

/* pkg/apis/scheduling/types.go */
#define SYSTEM_CRITICAL_PRIORITY 2000000000

static enum devicemgr_refresh refresh_of(enum config_refresh refresh)
{
    switch (refresh) {
    case CONFIG_REFRESH_PLUGIN:
        return DEVICEMGR_REFRESH_PLUGIN;
    case CONFIG_REFRESH_NEVER:
        return DEVICEMGR_REFRESH_NEVER;
    default:
        return DEVICEMGR_REFRESH_REBOOT;
    }
}

/* Its texts are the config's, but that of a value, whose quotes go: ours. */
static const struct devicemgr_settings_attribute *attributes_of(const struct config_resource *from)
{
    struct devicemgr_settings_attribute *attributes =
        must(calloc(from->attributes_len + 1, sizeof *attributes));

    for (size_t i = 0; i < from->attributes_len; i++) {
        const char *value = from->attributes[i].value;
        struct devicemgr_attribute *to = &attributes[i].attribute;

        attributes[i].device = from->attributes[i].device;
        to->name = from->attributes[i].name;
        if (*value == '"') {
            to->kind = from->attributes[i].version ? DEVICEMGR_ATTRIBUTE_VERSION
                                                   : DEVICEMGR_ATTRIBUTE_TEXT;
            to->text = must(strndup(value + 1, strlen(value) - 2));
        } else if (*value == 't' || *value == 'f') {
            to->kind = DEVICEMGR_ATTRIBUTE_FLAG;
            to->flag = *value == 't';
        } else {
            to->kind = DEVICEMGR_ATTRIBUTE_NUMBER;
            to->number = strtoll(value, NULL, 10);
        }
    }
    return attributes;
}

static void attributes_free(const struct devicemgr_resource_settings *of)
{
    for (size_t i = 0; i < of->attributes_len; i++)
        free((char *)of->attributes[i].attribute.text);
    free((void *)of->attributes);
}

/* Its texts are the config's. */
static const struct devicemgr_resource_settings *resources_of(const struct config *config)
{
    struct devicemgr_resource_settings *resources =
        must(calloc(config->resources_len + 1, sizeof *resources));

    for (size_t i = 0; i < config->resources_len; i++) {
        const struct config_resource *from = &config->resources[i];

        resources[i] = (struct devicemgr_resource_settings){
            .name = from->name,
            .grace_ms = from->grace_ms,
            .hold_ms = from->hold_ms,
            .allocate_timeout_ms = from->allocate_timeout_ms,
            .allocates_at_once = from->allocates_at_once,
            .refresh = refresh_of(from->refresh_options),
            .exclusive = from->exclusive,
            .taint_unhealthy_after_ms = from->taint_unhealthy_after_ms,
            .dra = from->dra,
            .replace = from->replace,
            .replace_after_ms = from->replace_after_ms,
            .attributes = attributes_of(from),
            .attributes_len = from->attributes_len,
        };
    }
    return resources;
}

/* Those of the settings that say so. */
static size_t cached_prepare_of(const struct config *config, const char *const **out)
{
    const char **names = must(calloc(config->drivers_len + 1, sizeof *names));
    size_t len = 0;

    for (size_t i = 0; i < config->drivers_len; i++) {
        if (config->drivers[i].cached_prepare)
            names[len++] = config->drivers[i].name;
    }
    *out = names;
    return len;
}

static const struct devicemgr_settings_taint *taints_of(const struct config *config)
{
    struct devicemgr_settings_taint *taints = must(calloc(config->taints_len + 1, sizeof *taints));

    for (size_t i = 0; i < config->taints_len; i++) {
        const struct config_taint *from = &config->taints[i];

        taints[i] = (struct devicemgr_settings_taint){.resource = from->resource,
                                                      .id = from->id,
                                                      .key = from->key,
                                                      .value = from->value ? from->value : "",
                                                      .effect = from->effect};
    }
    return taints;
}

static int by_priority(const void *a, const void *b)
{
    const struct devicemgr_shutdown_group *x = a, *y = b;

    return (x->priority > y->priority) - (x->priority < y->priority);
}

/* The pair is two groups, as the kubelet has it (pkg/kubelet/nodeshutdown/nodeshutdown_manager.go,
 * migrateConfig). */
static size_t shutdown_of(const struct config_shutdown *config,
                          const struct devicemgr_shutdown_group **out)
{
    struct devicemgr_shutdown_group *groups = must(calloc(config->periods_len + 2, sizeof *groups));
    size_t len = config->periods_len;

    *out = groups;
    for (size_t i = 0; i < len; i++) {
        groups[i].priority = config->periods[i].priority;
        groups[i].grace_ms = config->periods[i].grace_ms;
    }
    qsort(groups, len, sizeof *groups, by_priority);
    if (len > 0 || config->grace_ms == 0)
        return len;
    groups[0].grace_ms = config->grace_ms - config->critical_grace_ms;
    groups[1].priority = SYSTEM_CRITICAL_PRIORITY;
    groups[1].grace_ms = config->critical_grace_ms;
    return 2;
}

void core_settings_init(struct devicemgr_settings *settings, const struct config *config,
                        const char *boot_id)
{
    *settings = (struct devicemgr_settings){
        .grace_ms = config->grace_ms,
        .hold_ms = config->hold_ms,
        .allocate_timeout_ms = config->allocate_timeout_ms,
        .allocates_at_once = config->allocates_at_once,
        .prestart_timeout_ms = config->prestart_timeout_ms,
        .mask_ms = config->bridge.mask_ms,
        .kubelet_wait_ms = config->kubelet_wait_ms,
        .refresh = refresh_of(config->refresh_options),
        .hide_other_namespaces = config->hide_other_namespaces,
        .annotations = config->annotations_enabled,
        .start_without = config->start_without,
        .namespaces = (const char *const *)config->annotation_namespaces,
        .namespaces_len = config->annotation_namespaces_len,
        .boot_id = boot_id,
        .cluster = config->cluster.enabled,
        .evict_force_after_ms = config->cluster.evict_force_after_ms,
        .resources = resources_of(config),
        .resources_len = config->resources_len,
        .taint_unhealthy_after_ms = config->taint_unhealthy_after_ms,
        .evict_per_minute = config->evict_per_minute,
        .taints = taints_of(config),
        .taints_len = config->taints_len,
        .claim_call_ms = config->dra.call_timeout_ms,
    };
    settings->shutdown_len = shutdown_of(&config->shutdown, &settings->shutdown);
    settings->cached_prepare_len = cached_prepare_of(config, &settings->cached_prepare);
}

void core_settings_fini(struct devicemgr_settings *settings)
{
    for (size_t i = 0; i < settings->resources_len; i++)
        attributes_free(&settings->resources[i]);
    free((void *)settings->resources);
    free((void *)settings->taints);
    free((void *)settings->shutdown);
    free((void *)settings->cached_prepare);
}
