#include "shim/metrics/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 16384

static const char *const TYPES[] = {
    [COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram"};

/* False: it is as large as it may be, or out of memory. */
static bool reserve(struct exposition *e, size_t more)
{
    size_t size = e->size ? e->size : FIRST_BYTES;
    char *text;

    while (size < e->len + more)
        size *= 2;
    if (size > METRICS_BYTES_MAX)
        return false;
    if (size == e->size)
        return true;
    text = realloc(e->text, size);
    if (!text)
        return false;
    e->text = text;
    e->size = size;
    return true;
}

/* A line is there, or is not: `line` has its newline. */
static void put(struct exposition *e, const char *line, size_t len)
{
    if (!reserve(e, len))
        return;
    memcpy(e->text + e->len, line, len);
    e->len += len;
}

void exposition_family(struct exposition *e, const char *name, enum exposition_type type,
                       const char *help)
{
    char line[512];
    int n = snprintf(line, sizeof line,
                     "# HELP " METRICS_PREFIX "%s %s\n# TYPE " METRICS_PREFIX "%s %s\n", name, help,
                     name, TYPES[type]);

    e->name = name;
    e->type = type;
    put(e, line, (size_t)n);
}

/* ---- samples ---- */

#define LABELS_BYTES_MAX 1024

struct labels {
    char text[LABELS_BYTES_MAX]; /* `a="b",c="d"` */
    size_t len;
};

static void put_label(struct labels *l, const char *name, const char *value)
{
    if (l->len + strlen(name) + 2 * strlen(value) + sizeof ",=\"\"" > sizeof l->text)
        return; /* names of ours and of Kubernetes are shorter by far */
    l->len += (size_t)sprintf(l->text + l->len, "%s%s=\"", l->len ? "," : "", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            l->text[l->len++] = '\\';
        l->text[l->len++] = (char)(*value == '\n' ? '?' : *value);
    }
    l->text[l->len++] = '"';
    l->text[l->len] = '\0';
}

static void put_labels(struct labels *l, va_list pairs)
{
    const char *name;

    *l = (struct labels){.text = ""};
    while ((name = va_arg(pairs, const char *)))
        put_label(l, name, va_arg(pairs, const char *));
}

/* Counts are written as what they are. */
static void put_sample(struct exposition *e, const char *suffix, const struct labels *l,
                       double value)
{
    char line[LABELS_BYTES_MAX + 256];
    bool whole = value >= 0 && value < 9e15 && floor(value) == value;
    int n = snprintf(line, sizeof line, METRICS_PREFIX "%s%s%s%s%s ", e->name, suffix,
                     l->len ? "{" : "", l->text, l->len ? "}" : "");

    if (whole)
        n += snprintf(line + n, sizeof line - (size_t)n, "%" PRIu64 "\n", (uint64_t)value);
    else
        n += snprintf(line + n, sizeof line - (size_t)n, "%.6f\n", value);
    put(e, line, (size_t)n);
}

void exposition_sample(struct exposition *e, double value, ...)
{
    struct labels labels;
    va_list pairs;

    va_start(pairs, value);
    put_labels(&labels, pairs);
    va_end(pairs);
    put_sample(e, "", &labels, value);
}

void exposition_histogram(struct exposition *e, const struct histogram *h, ...)
{
    static const uint64_t bounds_us[HISTOGRAM_BOUNDS] = HISTOGRAM_BOUNDS_US;
    struct labels labels, bucket;
    uint64_t count = 0;
    va_list pairs;

    va_start(pairs, h);
    put_labels(&labels, pairs);
    va_end(pairs);
    for (int i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        char bound[32] = "+Inf";

        if (i < HISTOGRAM_BOUNDS)
            snprintf(bound, sizeof bound, "%g", (double)bounds_us[i] / 1e6);
        count += h->counts[i];
        bucket = labels;
        put_label(&bucket, "le", bound);
        put_sample(e, "_bucket", &bucket, (double)count);
    }
    put_sample(e, "_sum", &labels, (double)h->sum_us / 1e6);
    put_sample(e, "_count", &labels, (double)count);
}
