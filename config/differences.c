#include "config/differences.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"
#include "config/values.h"

/* The sections of which there is one. */
static const struct {
    enum schema_section section;
    const char *prefix;
} SECTIONS_OF_ONE[] = {{SECTION_TOP, ""},
                       {SECTION_LOG, "log."},
                       {SECTION_METRICS, "metrics."},
                       {SECTION_PLUGINS, "plugins."},
                       {SECTION_ANNOTATIONS, "annotations."},
                       {SECTION_BRIDGE, "bridge."},
                       {SECTION_CONTROL, "control."}};

/* ---- values as texts ---- */

static void put_duration(uint64_t ms, char *out, size_t size)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } UNITS[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t used = 0;

    snprintf(out, size, "0s");
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
        if (ms / UNITS[i].ms > 0)
            used += (size_t)snprintf(out + used, size - used, "%" PRIu64 "%s", ms / UNITS[i].ms,
                                     UNITS[i].name);
        ms %= UNITS[i].ms;
    }
}

static void put_names(const struct schema_key *key, void *slot, char *out, size_t size)
{
    char **names = *(char ***)slot;
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < *value_len(key, slot) && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? "," : "", names[i]);
}

static void put_choice(const struct schema_key *key, int value, char *out, size_t size)
{
    for (const struct schema_choice *choice = key->choices; choice->name; choice++) {
        if (choice->value == value)
            snprintf(out, size, "%s", choice->name);
    }
}

static void put(const struct schema_key *key, void *slot, char out[DIFFERENCE_BYTES_MAX])
{
    const size_t size = DIFFERENCE_BYTES_MAX;

    switch (key->type) {
    case VALUE_TEXT:
    case VALUE_SOCKET:
    case VALUE_DIRECTORY:
        snprintf(out, size, "%s", *(char **)slot ? *(char **)slot : "");
        return;
    case VALUE_DURATION:
        put_duration(*(uint64_t *)slot, out, size);
        return;
    case VALUE_CHOICE:
        put_choice(key, *(int *)slot, out, size);
        return;
    case VALUE_FLAG:
        snprintf(out, size, "%s", *(bool *)slot ? "true" : "false");
        return;
    case VALUE_COUNT:
        snprintf(out, size, "%u", *(unsigned *)slot);
        return;
    case VALUE_NAMES:
        put_names(key, slot, out, size);
        return;
    case VALUE_TABLES:
        if (*value_len(key, slot) > 0)
            snprintf(out, size, "%zu", *value_len(key, slot));
        return;
    case VALUE_ENVIRONMENT:
    case VALUE_TABLE:
        break;
    }
}

/* ---- what they are without a file ---- */

/* Durations in the table are written as put_duration() does it. Sockets but `listen` and the
 * runtime's are beside `listen`. */
static void put_initial(const struct config *config, enum schema_section section,
                        const struct schema_key *key, char out[DIFFERENCE_BYTES_MAX])
{
    int dir_bytes = (int)(strrchr(config->listen, '/') - config->listen);

    if (section != SECTION_TOP && key->type == VALUE_SOCKET)
        snprintf(out, DIFFERENCE_BYTES_MAX, "%.*s%s", dir_bytes, config->listen,
                 strrchr(key->initial, '/'));
    else
        snprintf(out, DIFFERENCE_BYTES_MAX, "%s", key->initial ? key->initial : "");
}

/* Of a key before it, which has the default. */
static bool is_other_name(const struct schema_key *key)
{
    return key->type == VALUE_CHOICE && !key->initial;
}

void config_differences(const struct config *config,
                        void (*each)(void *user, const struct config_difference *difference),
                        void *user)
{
    for (size_t i = 0; i < sizeof SECTIONS_OF_ONE / sizeof *SECTIONS_OF_ONE; i++) {
        enum schema_section section = SECTIONS_OF_ONE[i].section;
        const struct schema_key *key = NULL;

        while ((key = schema_next(section, key))) {
            struct config_difference difference = {0};

            if (key->type == VALUE_TABLE || is_other_name(key))
                continue;
            put(key, schema_slot(key, section, (void *)(uintptr_t)config), difference.value);
            put_initial(config, section, key, difference.initial);
            snprintf(difference.key, sizeof difference.key,
                     key->type == VALUE_TABLES ? "[[%s%s]]" : "%s%s", SECTIONS_OF_ONE[i].prefix,
                     key->name);
            if (strcmp(difference.value, difference.initial) != 0)
                each(user, &difference);
        }
    }
}
