/*
 * The machine goes down: what the core is told of that, and what it does (things/shutdown.h has the
 * picture). Off unless settings.shutdown has groups.
 *
 * As in devicemgr.h: `now_ms` is a clock that never steps back, and arguments are copied.
 */
#ifndef DEVICEMGR_SHUTDOWN_H
#define DEVICEMGR_SHUTDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct devicemgr;

/* A pod, as the cluster has it. */
struct devicemgr_priority {
    const char *pod_uid;
    const char *pod_namespace;
    const char *pod_name;
    bool mirror; /* of a static pod, which has another uid */
    int32_t priority;
};

/* What is known of it now. */
struct devicemgr_shutdown_said {
    bool under_way; /* else it was cancelled, or there is none */
    uint64_t
        since_ms; /* when it was heard of first; another one is another shutdown. 0: not known */
    uint64_t limit_ms;   /* how long the machine waits for us; 0: not known */
    bool kubelet_locked; /* a kubelet ends its pods itself, or did until this began */
    /* All pods of the node; NULL: they are not known, or as they were told. */
    const struct devicemgr_priority *pods;
    size_t pods_len;
};

/* As it is now, as often as one likes; after devicemgr_restored(). */
void devicemgr_shutdown(struct devicemgr *mgr, uint64_t now_ms,
                        const struct devicemgr_shutdown_said *said);

struct devicemgr_shutdown_view {
    const char *state;      /* none, begun, groups, kubelet, over; static */
    bool under_way;         /* any but "none": nothing is made */
    bool over;              /* what is done here is: the machine may go down */
    uint64_t since_ms;      /* as it was told, or the time of that */
    uint64_t limit_ms;      /* as it was told; 0: not known */
    uint64_t settings_ms;   /* what the settings' groups come to */
    bool by_kubelet;        /* it ends them */
    bool by_priority;       /* with "groups": by priority; else those with devices only */
    size_t group, groups;   /* with "groups": the one under way, from 1, and how many there are */
    int32_t priority;       /* likewise: its lowest, unless there is one group of all */
    uint64_t group_ends_ms; /* likewise: when its time is over */
    size_t pods;            /* that are ended, or were, or are to be */
    size_t remaining;       /* of them: not yet */
};
void devicemgr_shutdown_look(const struct devicemgr *mgr, struct devicemgr_shutdown_view *out);
/* Calls `each` for those that remain, those of the lowest group first, before it returns; what it
 * is given is borrowed until `each` returns. It must not send events. */
void devicemgr_shutdown_remaining(const struct devicemgr *mgr,
                                  void (*each)(void *user, const char *pod_namespace,
                                               const char *pod_name, size_t group),
                                  void *user);

#endif
