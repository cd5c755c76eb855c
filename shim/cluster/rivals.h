/*
 * Two agents that are there for long, as from a package and a DaemonSet: the one that came last is
 * served, and whoever was served before comes again at once. One that takes the place of another
 * for good, as in a rolling update, does not have it taken back.
 */
#ifndef SHIM_CLUSTER_RIVALS_H
#define SHIM_CLUSTER_RIVALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Private; all zero: there were none. */
struct rivals {
    pid_t one, other; /* who came last, and whose place that was */
    uint64_t taken_ms;
    uint64_t since_ms, seen_ms; /* that there are two; 0: there are not */
};

/* `pid` takes the place of `before`, which was served. True: they are two, which is to be told. */
bool rivals_came(struct rivals *rivals, pid_t pid, pid_t before, uint64_t now_ms);
/* Whether there are two, by what was seen lately. */
bool rivals_there(const struct rivals *rivals, uint64_t now_ms);

#endif
