/*
 * The machine's shutdown (things/shutdown.h): which pods are ended, in which group, when the next
 * one's turn is, and when all of it is over.
 *
 * After upstream (pkg/kubelet/nodeshutdown/nodeshutdown_manager.go): a pod is of the highest group
 * whose priority is not above its own, all of a group are ended beside each other with their own
 * grace and no more than the group has, and the next one begins when all are over or its seconds
 * are. A group without pods costs no time. Unlike it
 * - the pods of a group that have devices are stopped first;
 * - where the cluster's priorities are not known, only pods with devices are ended, in one group of
 *   all the time there is: what else runs (networks, storage) is not ours to time;
 * - where a kubelet does all that itself nobody is ended, and what it has left is waited for,
 *   unless it has let go of its lock: it is through, or has died, and nobody else ends that;
 * - if the machine does not wait for as long as the settings want, all groups are shortened alike,
 *   which is said;
 * - one that is cancelled leaves pods whose end was not begun as they are. The others come to their
 *   end, and may be made again then.
 *
 * What is to be is found out anew after whatever happens, from the endings that there are then: a
 * process that was killed in the middle of one is followed by one that goes on.
 */
#ifndef DEVICEMGR_MACHINES_SHUTDOWN_H
#define DEVICEMGR_MACHINES_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/books/state.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/shutdown.h"

/* What is to be done about a pod. */
struct shutdown_step {
    bool ask; /* else what was asked for is taken back */
    char *pod_uid;
    uint64_t grace_ms; /* at most; the pod's own if that is shorter */
    struct shutdown_step *prev, *next;
};

struct shutdowns {
    struct state *state;
    struct shutdown_step *steps; /* oldest first */
    bool kubelet_before;         /* a kubelet had a lock when there was none yet */
    uint64_t kubelet_gone_ms;    /* since when none has one in this; UINT64_MAX: one may have */
};

void shutdowns_fini(struct shutdowns *shutdowns);
/* All rows are in: one of another boot is forgotten, and so is what it asked for. */
void shutdowns_restored(struct shutdowns *shutdowns);
/* devicemgr_shutdown() */
void shutdowns_told(struct shutdowns *shutdowns, const struct devicemgr_shutdown_said *said);
/* Others may count; without groups there is no shutdown. */
void shutdowns_settings_changed(struct shutdowns *shutdowns);
/* Finds out what is to be done now: after events and ticks, unless there is no shutdown, and no pod
 * that one may have ended. */
void shutdowns_review(struct shutdowns *shutdowns);
static inline bool shutdowns_quiet(const struct shutdowns *shutdowns)
{
    const struct state *state = shutdowns->state;

    return !shutdown_under_way(&state->shutdown) && !state->endings.by_uid && !shutdowns->steps;
}
/* The oldest step, for shutdown_step_free(); NULL: nothing is to be done. */
struct shutdown_step *shutdowns_take(struct shutdowns *shutdowns);
void shutdown_step_free(struct shutdown_step *step);
/* When something is to be done by time alone; UINT64_MAX: never. */
uint64_t shutdowns_next_ms(const struct shutdowns *shutdowns);

/* ---- also for who asks what would be: of one that is the state's, or not ---- */

/* Its groups, by the settings and what it knows of the cluster's pods; without any pod yet. */
void shutdown_make_groups(const struct state *state, struct shutdown *shutdown);
/* All pods that are there, and not in it yet: who was in the making when it began comes later, and
 * belongs to no group that is over. Whether there are some. */
bool shutdown_take_in(const struct state *state, struct shutdown *shutdown);

#endif
