#include "devicemgr/things/shutdown.h"

#include <assert.h>

#include "devicemgr/things/enum.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

static const char *const NAMES[SHUTDOWN_STATES] = {[SHUTDOWN_NONE] = "none",
                                                   [SHUTDOWN_BEGUN] = "begun",
                                                   [SHUTDOWN_GROUPS] = "groups",
                                                   [SHUTDOWN_KUBELET] = "kubelet",
                                                   [SHUTDOWN_OVER] = "over"};

const char *shutdown_state_name(enum shutdown_state state)
{
    return NAMES[state];
}

bool shutdown_state_find(const char *name, enum shutdown_state *out)
{
    return ENUM_FIND(NAMES, name, out);
}

/* ---- life ---- */

static void drop_pods(struct shutdown *shutdown)
{
    struct shutdown_pod *pod, *next;

    HASH_ITER(hh, shutdown->pods, pod, next) {
        HASH_DEL(shutdown->pods, pod);
        free(pod->uid);
        free(pod);
    }
}

static void drop_known(struct shutdown *shutdown)
{
    struct shutdown_known *known, *next;

    HASH_ITER(hh, shutdown->known, known, next) {
        HASH_DEL(shutdown->known, known);
        free(known->uid);
        free(known->name);
        free(known);
    }
}

void shutdown_fini(struct shutdown *shutdown)
{
    drop_pods(shutdown);
    drop_known(shutdown);
    free(shutdown->groups);
}

/* ---- the states ---- */

static bool may_move(enum shutdown_state from, enum shutdown_state to)
{
    switch (from) {
    case SHUTDOWN_BEGUN:
        return to == SHUTDOWN_GROUPS || to == SHUTDOWN_KUBELET || to == SHUTDOWN_OVER;
    case SHUTDOWN_KUBELET:
        return to == SHUTDOWN_GROUPS || to == SHUTDOWN_OVER;
    case SHUTDOWN_GROUPS:
        return to == SHUTDOWN_OVER;
    case SHUTDOWN_NONE: /* shutdown_begin() */
    case SHUTDOWN_OVER:
    case SHUTDOWN_STATES:
        break;
    }
    return false;
}

void shutdown_set_state(struct shutdown *shutdown, enum shutdown_state state)
{
    assert(may_move(shutdown->state, state));
    shutdown->state = state;
}

void shutdown_set_over(struct shutdown *shutdown, uint64_t now_ms)
{
    shutdown_set_state(shutdown, SHUTDOWN_OVER);
    shutdown->over_ms = now_ms;
}

static void forget_plan(struct shutdown *shutdown)
{
    drop_pods(shutdown);
    shutdown_set_groups(shutdown, NULL, 0, false);
    shutdown->group = 0;
    shutdown->group_since_ms = shutdown->over_ms = 0;
}

void shutdown_begin(struct shutdown *shutdown, uint64_t since_ms, uint64_t limit_ms,
                    bool by_kubelet)
{
    forget_plan(shutdown);
    shutdown->state = SHUTDOWN_BEGUN;
    shutdown->since_ms = since_ms;
    shutdown->limit_ms = limit_ms;
    shutdown->by_kubelet = by_kubelet;
    shutdown->given_up_ms = 0;
}

void shutdown_set_restored(struct shutdown *shutdown, enum shutdown_state state, uint64_t over_ms)
{
    shutdown->state = state;
    shutdown->over_ms = over_ms;
    for (struct shutdown_pod *pod = shutdown->pods; pod; pod = pod->hh.next)
        pod->asked = pod->group < shutdown->group || state == SHUTDOWN_OVER;
}

void shutdown_end(struct shutdown *shutdown, bool given_up)
{
    forget_plan(shutdown);
    drop_known(shutdown);
    shutdown->is_known = false;
    shutdown->given_up_ms = given_up ? shutdown->since_ms : 0;
    shutdown->state = SHUTDOWN_NONE;
}

void shutdown_set_by_kubelet(struct shutdown *shutdown)
{
    assert(shutdown->state == SHUTDOWN_BEGUN);
    shutdown->by_kubelet = true;
}

void shutdown_set_left(struct shutdown *shutdown)
{
    assert(shutdown->state == SHUTDOWN_KUBELET);
    shutdown->by_kubelet = false;
}

void shutdown_set_limit(struct shutdown *shutdown, uint64_t limit_ms)
{
    shutdown->limit_ms = limit_ms;
}

/* ---- time ---- */

void shutdown_set_groups(struct shutdown *shutdown, const struct devicemgr_shutdown_group *groups,
                         size_t len, bool by_priority)
{
    free(shutdown->groups);
    shutdown->groups = NULL;
    shutdown->groups_len = len;
    shutdown->by_priority = by_priority;
    if (len == 0)
        return;
    shutdown->groups = mem_alloc(len, sizeof *groups);
    memcpy(shutdown->groups, groups, len * sizeof *groups);
}

size_t shutdown_group_len(const struct shutdown *shutdown, size_t group)
{
    size_t len = 0;

    for (const struct shutdown_pod *pod = shutdown->pods; pod; pod = pod->hh.next)
        len += pod->group == group;
    return len;
}

bool shutdown_shorten(struct shutdown *shutdown, uint64_t all_ms)
{
    uint64_t sum_ms = 0;

    for (size_t i = 0; i < shutdown->groups_len; i++)
        sum_ms += shutdown_group_len(shutdown, i) > 0 ? shutdown->groups[i].grace_ms : 0;
    if (sum_ms <= all_ms)
        return false;
    for (size_t i = 0; i < shutdown->groups_len; i++)
        shutdown->groups[i].grace_ms = shutdown->groups[i].grace_ms * all_ms / sum_ms;
    return true;
}

void shutdown_set_group(struct shutdown *shutdown, size_t group, uint64_t now_ms)
{
    shutdown->group = group;
    shutdown->group_since_ms = now_ms;
}

size_t shutdown_group_of(const struct shutdown *shutdown, int32_t priority)
{
    size_t group = 0;

    while (group + 1 < shutdown->groups_len && shutdown->groups[group + 1].priority <= priority)
        group++;
    return group;
}

/* A moment of it is left for the end to be told; of a very short one, half. */
uint64_t shutdown_deadline_ms(const struct shutdown *shutdown)
{
    uint64_t limit_ms = shutdown->limit_ms;

    if (limit_ms == 0)
        return UINT64_MAX;
    return later_by(shutdown->since_ms, limit_ms > 2 * SHUTDOWN_MARGIN_MS
                                            ? limit_ms - SHUTDOWN_MARGIN_MS
                                            : limit_ms / 2);
}

uint64_t shutdown_group_ends_ms(const struct shutdown *shutdown)
{
    return earlier(shutdown_deadline_ms(shutdown),
                   later_by(shutdown->group_since_ms, shutdown->groups[shutdown->group].grace_ms));
}

/* ---- pods ---- */

struct shutdown_pod *shutdown_find_pod(const struct shutdown *shutdown, const char *uid)
{
    struct shutdown_pod *pod;

    HASH_FIND_STR(shutdown->pods, uid, pod);
    return pod;
}

void shutdown_add_pod(struct shutdown *shutdown, const char *uid, size_t group)
{
    struct shutdown_pod *pod = mem_alloc(1, sizeof *pod);

    assert(!shutdown_find_pod(shutdown, uid) && group < shutdown->groups_len);
    pod->uid = mem_strdup(uid);
    pod->group = group;
    HASH_ADD_KEYPTR(hh, shutdown->pods, pod->uid, strlen(pod->uid), pod);
}

static char *whole_name(const char *pod_namespace, const char *pod_name)
{
    char *name = mem_alloc(strlen(pod_namespace) + strlen(pod_name) + 2, 1);

    stpcpy(stpcpy(stpcpy(name, pod_namespace), "/"), pod_name);
    return name;
}

void shutdown_set_known(struct shutdown *shutdown, const struct devicemgr_priority *pods,
                        size_t len)
{
    drop_known(shutdown);
    shutdown->is_known = true;
    for (size_t i = 0; i < len && i < SHUTDOWN_KNOWN_MAX; i++) {
        struct shutdown_known *known;

        HASH_FIND_STR(shutdown->known, pods[i].pod_uid, known);
        if (known)
            continue;
        known = mem_alloc(1, sizeof *known);
        known->uid = mem_strdup(pods[i].pod_uid);
        known->name = whole_name(pods[i].pod_namespace, pods[i].pod_name);
        known->mirror = pods[i].mirror;
        known->priority = pods[i].priority;
        HASH_ADD_KEYPTR(hh, shutdown->known, known->uid, strlen(known->uid), known);
    }
}

const struct shutdown_known *shutdown_find_known(const struct shutdown *shutdown, const char *uid,
                                                 const char *pod_namespace, const char *pod_name,
                                                 bool mirror)
{
    struct shutdown_known *known;
    char *name;

    HASH_FIND_STR(shutdown->known, uid, known);
    if (known || !mirror)
        return known;
    name = whole_name(pod_namespace, pod_name);
    known = shutdown->known;
    while (known && !(known->mirror && strcmp(known->name, name) == 0))
        known = known->hh.next;
    free(name);
    return known;
}
