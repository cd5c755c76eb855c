/*
 * /status.json: the daemon in a few words, for people and scripts.
 */
#ifndef SHIM_METRICS_STATUS_H
#define SHIM_METRICS_STATUS_H

#include "shim/metrics/metrics.h"

/* malloc'ed, the caller's; NULL: out of memory. */
char *status_text(const struct metrics_view *view, const struct report *report);

#endif
