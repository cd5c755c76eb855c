/*
 * Prometheus' text format 0.0.4: families of samples, one after the other.
 *
 *     exposition_family(&e, "pods", GAUGE, "Pods known.");
 *     exposition_sample(&e, pods, "state", "ready", NULL);
 */
#ifndef SHIM_METRICS_EXPOSITION_H
#define SHIM_METRICS_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>

#include "shim/histogram.h"

/* All of a scrape. Lines beyond that are left out; a test sees to it that none is, however many
 * pods and resources there are. */
#define METRICS_BYTES_MAX (256u * 1024)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_PREFIX "cri_device_shim_"

enum exposition_type { COUNTER, GAUGE, HISTOGRAM };

struct exposition {
    char *text; /* malloc'ed; NULL: nothing yet, or out of memory */
    size_t len, size;
    const char *name;
    enum exposition_type type;
};

/* Begins a family; `name` is a literal, without METRICS_PREFIX, with unit and "_total" as
 * Prometheus' naming asks. */
void exposition_family(struct exposition *e, const char *name, enum exposition_type type,
                       const char *help);

/* A sample of it, with labels as pairs of name and value up to a NULL; a value may be any text. */
void exposition_sample(struct exposition *e, double value, ...) __attribute__((sentinel));

/* The same of a histogram in seconds: its buckets, sum and count. */
void exposition_histogram(struct exposition *e, const struct histogram *h, ...)
    __attribute__((sentinel));

#endif
