#include "shim/agent/object_counters.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/slice_json.h"
#include "shim/must.h"

/* What there may be behind the number of a quantity; without any it is 1
 * (staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go). */
static const struct {
    const char *suffix;
    long double times;
} SUFFIXES[] = {
    {"", 1},         {"n", 1e-9L},    {"u", 1e-6L},    {"m", 1e-3L},
    {"k", 1e3L},     {"M", 1e6L},     {"G", 1e9L},     {"T", 1e12L},
    {"P", 1e15L},    {"E", 1e18L},    {"Ki", 0x1p10L}, {"Mi", 0x1p20L},
    {"Gi", 0x1p30L}, {"Ti", 0x1p40L}, {"Pi", 0x1p50L}, {"Ei", 0x1p60L},
};

/* As much as can be told. */
#define THOUSANDTHS_MAX 0x1p63L

/* False: it is none, or less than nothing, or too much. */
static bool thousandths(const json_t *quantity, uint64_t *out)
{
    const char *text = json_string_value(quantity);
    long double value;
    char *end;
    size_t i;

    if (!text || *text == '\0' || text[strspn(text, "+0123456789.EPTGMKkmunieE-")] != '\0')
        return false;
    value = strtold(text, &end);
    for (i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        if (strcmp(SUFFIXES[i].suffix, end) == 0)
            break;
    }
    if (end == text || i == sizeof SUFFIXES / sizeof *SUFFIXES)
        return false;
    value *= SUFFIXES[i].times * 1000;
    if (!(value >= 0 && value <= THOUSANDTHS_MAX))
        return false;
    *out = (uint64_t)(value + 0.5L);
    return true;
}

/* ---- counters ---- */

static char *name_of(const char *set, const char *counter)
{
    char *name = must(malloc(strlen(set) + strlen(counter) + 2));

    strcpy(name, set);
    strcat(name, "/");
    return strcat(name, counter);
}

/* Which one has that name, which is taken; it is added if there is none. */
static uint32_t counter_of(Agent__V1__Slice *out, char *name)
{
    size_t i = 0;

    while (i < out->n_counters && strcmp(out->counters[i]->name, name) != 0)
        i++;
    if (i < out->n_counters) {
        free(name);
        return (uint32_t)i;
    }
    out->counters = must(realloc(out->counters, (i + 1) * sizeof *out->counters));
    out->counters[i] = must(malloc(sizeof *out->counters[i]));
    agent__v1__counter__init(out->counters[i]);
    out->counters[i]->name = name;
    out->n_counters++;
    return (uint32_t)i;
}

static void add_there(Agent__V1__Counter *counter, uint64_t much)
{
    counter->there = true;
    counter->thousandths = much;
}

static void add_draw(Agent__V1__Draw *draw, uint32_t counter, uint64_t much)
{
    size_t len = draw->n_counters;

    draw->counters = must(realloc(draw->counters, (len + 1) * sizeof *draw->counters));
    draw->thousandths = must(realloc(draw->thousandths, (len + 1) * sizeof *draw->thousandths));
    draw->counters[len] = counter;
    draw->thousandths[len] = much;
    draw->n_counters = draw->n_thousandths = len + 1;
}

/* Counters of sets, whose names are under `key`: what a device draws on them; `draw` NULL: what
 * there is. */
static void read_sets(const json_t *sets, const char *key, Agent__V1__Slice *out,
                      Agent__V1__Draw *draw)
{
    const json_t *set;
    const char *name;
    json_t *counter;
    size_t i;

    json_array_foreach(sets, i, set) {
        const char *of = json_string_value(json_object_get(set, key));

        json_object_foreach(json_object_get(set, "counters"), name, counter) {
            uint64_t much;
            uint32_t at;

            if (!of || !thousandths(json_object_get(counter, "value"), &much))
                continue;
            at = counter_of(out, name_of(of, name));
            if (draw)
                add_draw(draw, at, much);
            else
                add_there(out->counters[at], much);
        }
    }
}

/* ---- devices ---- */

static void drop(Agent__V1__Slice *out)
{
    for (size_t i = 0; i < out->n_counters; i++)
        agent__v1__counter__free_unpacked(out->counters[i], NULL);
    free(out->counters);
    for (size_t i = 0; i < out->n_draws; i++)
        agent__v1__draw__free_unpacked(out->draws[i], NULL);
    free(out->draws);
    out->counters = NULL;
    out->draws = NULL;
    out->n_counters = out->n_draws = 0;
}

void object_read_counters(const json_t *spec, size_t bytes_max, Agent__V1__Slice *out)
{
    const json_t *devices = json_object_get(spec, "devices"), *device;
    size_t i;

    read_sets(json_object_get(spec, "sharedCounters"), "name", out, NULL);
    out->draws = must(calloc(json_array_size(devices) + 1, sizeof *out->draws));
    json_array_foreach(devices, i, device) {
        Agent__V1__Draw *draw;

        if (json_array_size(slice_json_said(device, "consumesCounters")) == 0)
            continue;
        draw = must(malloc(sizeof *draw));
        agent__v1__draw__init(draw);
        draw->device = (uint32_t)i;
        out->draws[out->n_draws++] = draw;
        read_sets(slice_json_said(device, "consumesCounters"), "counterSet", out, draw);
    }
    if (agent__v1__slice__get_packed_size(out) > bytes_max)
        drop(out);
}
