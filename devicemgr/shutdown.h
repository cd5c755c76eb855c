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
    bool kubelet_gone;   /* none does now, of one that is under way */
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

/* A group of pods that would be ended. */
struct devicemgr_shutdown_planned {
    bool by_priority;  /* else it is the only one, of those with devices */
    int32_t priority;  /* its lowest */
    uint64_t grace_ms; /* how long it would have */
    size_t pods;
    size_t holders; /* of them: have devices */
};
/* What would be done by the pods that there are, if the machine went down now, and this were told
 * of it then. Calls `group` for each, in their order, and behind it `pod` for each of its pods,
 * those with devices first, before it returns; neither must send events. Calls nothing where nobody
 * would be ended from here: settings.shutdown has no groups, a kubelet ends its pods itself, the
 * machine goes down already, or the runtime has not listed its containers yet. */
void devicemgr_shutdown_plan(
    const struct devicemgr *mgr, const struct devicemgr_shutdown_said *said,
    void (*group)(void *user, const struct devicemgr_shutdown_planned *group),
    void (*pod)(void *user, const char *pod_namespace, const char *pod_name), void *user);

/* Calls `each` for those that remain, those of the lowest group first, before it returns; what it
 * is given is borrowed until `each` returns. It must not send events. */
void devicemgr_shutdown_remaining(const struct devicemgr *mgr,
                                  void (*each)(void *user, const char *pod_namespace,
                                               const char *pod_name, size_t group),
                                  void *user);

#endif
