#include "shim/core/host_counts.h"

#include <uv.h>

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

static unsigned index_of(int code)
{
    return code >= 0 && code < HOST_CODES - 1 ? (unsigned)code : HOST_CODES - 1;
}

void host_counts_registration(struct host_counts *counts, int code)
{
    counts->registrations[index_of(code)]++;
}

/* The place of that call; of 0: one that is free. -1: there is none. */
static int find(const struct host_counts *counts, uint64_t call)
{
    for (int i = 0; i < HOST_ALLOCATES_MAX; i++) {
        if (counts->under_way[i].call == call)
            return i;
    }
    return -1;
}

void host_counts_allocate(struct host_counts *counts, uint64_t call)
{
    int place = find(counts, 0);

    if (place < 0)
        return;
    counts->under_way[place].call = call;
    counts->under_way[place].begun_us = now_us();
}

void host_counts_cancel(struct host_counts *counts, uint64_t call)
{
    int place = find(counts, call);

    if (place >= 0)
        counts->under_way[place].call = 0;
}

void host_counts_allocated(struct host_counts *counts, uint64_t call, int code)
{
    int place = find(counts, call);

    counts->allocates[index_of(code)]++;
    if (place < 0)
        return;
    histogram_add(&counts->allocate, now_us() - counts->under_way[place].begun_us);
    counts->under_way[place].call = 0;
}

void host_counts_commit(struct host_counts *counts)
{
    counts->commit_begun_us = now_us();
}

void host_counts_committed(struct host_counts *counts, bool failed)
{
    histogram_add(&counts->commit, now_us() - counts->commit_begun_us);
    counts->commits_failed += failed;
}
