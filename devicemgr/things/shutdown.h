/*
 * The machine's shutdown: from BEGUN on no container and no sandbox is made, and pods are ended in
 * groups, those of the lowest priority first.
 *
 *         told         it is known what runs         each group is over, or its time is
 *   NONE ──────▶ BEGUN ────────┬────────────▶ GROUPS ────────────────────────┬──▶ OVER
 *    ▲                         │                                             │
 *    │                         │                ▲ it does no more           │
 *    │                         └────────────▶ KUBELET ───────────────────────┘
 *    │                     a kubelet ends them            no sandbox is ready
 *    └── cancelled, from any
 *
 * BEGUN, GROUPS and KUBELET go to OVER when there is no time left, too; and one that is told later
 * begins anew, from any.
 */
#ifndef DEVICEMGR_THINGS_SHUTDOWN_H
#define DEVICEMGR_THINGS_SHUTDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/shutdown.h"
#include "devicemgr/things/mem.h"

enum shutdown_state {
    SHUTDOWN_NONE,
    SHUTDOWN_BEGUN,
    SHUTDOWN_GROUPS,
    SHUTDOWN_KUBELET,
    SHUTDOWN_OVER,
    SHUTDOWN_STATES, /* how many there are */
};

/* One that is ended in it. */
struct shutdown_pod {
    char *uid;
    size_t group;
    bool asked; /* its end was asked for, here or in an earlier process, or it had come already */
    UT_hash_handle hh;
};

/* One of the cluster's. */
struct shutdown_known {
    char *uid;
    char *name; /* "namespace/name" */
    bool mirror;
    int32_t priority;
    UT_hash_handle hh;
};

/* Written by shutdown.c alone, but for `asked` and `stored`. A zeroed struct is none. */
struct shutdown {
    enum shutdown_state state;
    uint64_t since_ms; /* when it began */
    uint64_t limit_ms; /* how long the machine waits from then on; 0: not known */
    bool by_kubelet;
    uint64_t over_ms; /* OVER: since when */
    /* GROUPS: as they are in this one. */
    bool by_priority; /* else there is one, of those with devices */
    struct devicemgr_shutdown_group *groups;
    size_t groups_len;
    size_t group; /* the one under way */
    uint64_t group_since_ms;
    struct shutdown_pod *pods;    /* by uid */
    struct shutdown_known *known; /* by uid; what the cluster said last */
    bool is_known;                /* it has said something, if only that there is none */
    uint64_t given_up_ms;         /* `since_ms` of the last one that nobody has ended; 0: none */
    bool stored;                  /* the store may have a row of it; checkpoint.c's */
};

/* "none", "begun" and the like; static. */
const char *shutdown_state_name(enum shutdown_state state);
/* False: there is none of that name. */
bool shutdown_state_find(const char *name, enum shutdown_state *out);

void shutdown_fini(struct shutdown *shutdown);
static inline bool shutdown_under_way(const struct shutdown *shutdown)
{
    return shutdown->state != SHUTDOWN_NONE;
}

/* Another one, in place of any before; what is known of the cluster's pods stays. */
void shutdown_begin(struct shutdown *shutdown, uint64_t since_ms, uint64_t limit_ms,
                    bool by_kubelet);
/* Moves along the picture. */
void shutdown_set_state(struct shutdown *shutdown, enum shutdown_state state);
/* Of a row. Whose end was asked for in earlier groups has it, or had. */
void shutdown_set_restored(struct shutdown *shutdown, enum shutdown_state state, uint64_t over_ms);
/* There is none, and what was known of the cluster's pods is old. `given_up`: though nobody has
 * said so. */
void shutdown_end(struct shutdown *shutdown, bool given_up);
void shutdown_set_over(struct shutdown *shutdown, uint64_t now_ms);
/* Of one that has BEGUN. */
void shutdown_set_by_kubelet(struct shutdown *shutdown);
/* Of KUBELET: it does no more; for GROUPS. */
void shutdown_set_left(struct shutdown *shutdown);
void shutdown_set_limit(struct shutdown *shutdown, uint64_t limit_ms);

/* How they are grouped; copied. Replaces what was. */
void shutdown_set_groups(struct shutdown *shutdown, const struct devicemgr_shutdown_group *groups,
                         size_t len, bool by_priority);
/* Times of the groups that have pods are shortened alike, to `all_ms` in all, if they are more.
 * Whether. */
bool shutdown_shorten(struct shutdown *shutdown, uint64_t all_ms);
void shutdown_set_group(struct shutdown *shutdown, size_t group, uint64_t now_ms);
/* How many pods are of it. */
size_t shutdown_group_len(const struct shutdown *shutdown, size_t group);
/* The highest of those whose priority is not above; below the lowest: that one. */
size_t shutdown_group_of(const struct shutdown *shutdown, int32_t priority);
/* When everything has to be over; UINT64_MAX: not said. */
uint64_t shutdown_deadline_ms(const struct shutdown *shutdown);
/* GROUPS: when the time of the one under way is. */
uint64_t shutdown_group_ends_ms(const struct shutdown *shutdown);

/* NULL: it is none of them. */
struct shutdown_pod *shutdown_find_pod(const struct shutdown *shutdown, const char *uid);
/* It is not there yet. */
void shutdown_add_pod(struct shutdown *shutdown, const char *uid, size_t group);

/* In place of all that was known; the first SHUTDOWN_KNOWN_MAX of them. */
void shutdown_set_known(struct shutdown *shutdown, const struct devicemgr_priority *pods,
                        size_t len);
/* NULL: the cluster does not know it. Of a static pod (`mirror`) its mirror is. */
const struct shutdown_known *shutdown_find_known(const struct shutdown *shutdown, const char *uid,
                                                 const char *pod_namespace, const char *pod_name,
                                                 bool mirror);

#endif
