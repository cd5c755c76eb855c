#include "shim/cluster/rivals.h"

#include "shim/cluster/limits.h"

bool rivals_there(const struct rivals *rivals, uint64_t now_ms)
{
    return rivals->seen_ms != 0 && now_ms - rivals->seen_ms < CLUSTER_RIVALS_MS;
}

/* One that is connected twice is none, nor are those that have no number here. */
bool rivals_came(struct rivals *rivals, pid_t pid, pid_t before, uint64_t now_ms)
{
    bool known = rivals_there(rivals, now_ms);
    bool back = pid != before && pid == rivals->other && before == rivals->one &&
                now_ms - rivals->taken_ms < CLUSTER_RIVALS_MS;

    rivals->one = pid;
    rivals->other = before;
    rivals->taken_ms = now_ms;
    if (!back)
        return false;
    rivals->seen_ms = now_ms;
    if (!known)
        rivals->since_ms = now_ms;
    return !known;
}
