/*
 * Every family of /metrics, gathered from what the rooms have counted.
 */
#ifndef SHIM_METRICS_FAMILIES_H
#define SHIM_METRICS_FAMILIES_H

#include "shim/metrics/exposition.h"
#include "shim/metrics/metrics.h"

void families_put(struct exposition *e, const struct metrics_view *view,
                  const struct report *report);

#endif
