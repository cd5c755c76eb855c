/*
 * What the core's host counts: calls of plugins, commits and registrations.
 */
#ifndef SHIM_CORE_HOST_COUNTS_H
#define SHIM_CORE_HOST_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/histogram.h"

/* gRPC's, and one for numbers that are none. */
#define HOST_CODES 18
/* Allocates that are timed at once; the core makes no more than there are creates. */
#define HOST_ALLOCATES_MAX 64

/* Plain integers; zeroed nothing was counted. */
struct host_counts {
    uint64_t registrations[HOST_CODES]; /* Register calls, as they were answered */
    uint64_t allocates[HOST_CODES];     /* as they ended */
    struct histogram allocate;          /* those that were answered or failed, not cancelled */
    struct histogram commit;            /* from its asking to its being durable, or failed */
    uint64_t commits_failed;
    uint64_t commit_begun_us;
    struct {
        uint64_t call; /* 0: free */
        uint64_t begun_us;
    } under_way[HOST_ALLOCATES_MAX];
};

void host_counts_registration(struct host_counts *counts, int code);
void host_counts_allocate(struct host_counts *counts, uint64_t call);
void host_counts_allocated(struct host_counts *counts, uint64_t call, int code);
/* It is of no interest any more how it ends. */
void host_counts_cancel(struct host_counts *counts, uint64_t call);
void host_counts_commit(struct host_counts *counts);
void host_counts_committed(struct host_counts *counts, bool failed);

#endif
