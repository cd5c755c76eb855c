/*
 * What is found in a checkpoint, as it is shown: by the program that asks the daemon, and by the
 * daemon's own where no daemon runs.
 */
#ifndef SHIM_CHECKPOINT_REPORT_H
#define SHIM_CHECKPOINT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct checkpoint_finding {
    const char *kind; /* file, row, device */
    const char *text; /* may have any bytes */
};

/* All texts are borrowed. */
struct checkpoint_report {
    const char *path;
    uint64_t schema_version;
    bool sound;
    uint64_t resources, allocations, pods, orders, drivers, claims, endings; /* rows */
    const struct checkpoint_finding *findings;
    size_t findings_len;
    uint64_t findings_total; /* these are the first of them */
};

/* Lines for people. */
void checkpoint_report_put(FILE *out, const struct checkpoint_report *report);
/* One line, "checkpoint/sound" or "checkpoint/damaged". */
void checkpoint_report_put_name(FILE *out, const struct checkpoint_report *report);
/* Out of memory ends the process. */
json_t *checkpoint_report_json(const struct checkpoint_report *report);

/* "2 resources, 1 allocations, 1 pods, 0 orders, 0 drivers, 0 claims, 0 endings" */
void checkpoint_report_put_counts(FILE *out, const struct checkpoint_report *report);
/* A line for each, and how many more there are. */
void checkpoint_report_put_findings(FILE *out, const struct checkpoint_report *report);
/* A text that may have any bytes. */
void checkpoint_report_put_text(FILE *out, const char *text);

#endif
