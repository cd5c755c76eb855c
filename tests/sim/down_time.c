/*
 * Whether a pod that is being ended comes to its end in time for another shutdown: then it is not
 * asked for again.
 */
#include "tests/sim/down_world.h"

#define GRACE_MS_MIN 1000
#define ROUNDED_MS 999

/* Who was asked for in a shutdown before this one, and has this long from then on, comes in time,
 * and is not asked for again; unless nothing was sent in that time. Of what was sent it is known
 * when it kills, to the second that a stop is rounded up to. */
static bool comes_in_time(const struct down_world *d, const struct dw_pod *pod, uint64_t grace_ms,
                          uint64_t end_ms, uint64_t due_ms)
{
    uint64_t soon_ms = d->now_ms + GRACE_MS_MIN;

    if (due_ms)
        return due_ms <= (end_ms > d->now_ms ? end_ms : d->now_ms) + GRACE_MS_MIN;
    return pod->asked_ms + grace_ms > d->now_ms &&
           pod->asked_ms + grace_ms <= (end_ms > soon_ms ? end_ms : soon_ms);
}

/* When a stop kills that the list which is being taken may bring. */
static uint64_t due_by_list_ms(const struct down_world *d, const struct dw_pod *pod,
                               uint64_t grace_ms)
{
    grace_ms = earlier_ms(grace_ms, pod->grace_ms);
    if (pod->asks[DW_OPERATOR] != DW_NOT_ASKED)
        grace_ms = earlier_ms(grace_ms, pod->end_grace_ms);
    return d->now_ms + grace_ms;
}

bool down_surely_comes_in_time(const struct down_world *d, const struct dw_pod *pod,
                               uint64_t end_ms)
{
    return comes_in_time(d, pod, pod->most_ms, end_ms, pod->due_ms) &&
           (pod->due_ms || !d->taking_list ||
            comes_in_time(d, pod, 0, end_ms, due_by_list_ms(d, pod, pod->most_ms)));
}

bool down_may_come_in_time(const struct down_world *d, const struct dw_pod *pod, uint64_t end_ms)
{
    uint64_t due_ms = pod->due_ms ? pod->due_ms - ROUNDED_MS : 0;

    return comes_in_time(d, pod, pod->least_ms, end_ms, due_ms) ||
           (!pod->due_ms && d->taking_list &&
            comes_in_time(d, pod, 0, end_ms, due_by_list_ms(d, pod, pod->least_ms)));
}
