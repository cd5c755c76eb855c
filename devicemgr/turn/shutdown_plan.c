/*
 * What would be done if the machine went down: by a shutdown that there is not, made as one is.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/machines/shutdown.h"
#include "devicemgr/rules/leaving.h"
#include "devicemgr/shutdown.h"
#include "devicemgr/turn/turn.h"

/* One that would be ended. */
struct leaver {
    const struct pod *pod;
    bool holds;
};

static int by_turn(const void *left, const void *right)
{
    const struct leaver *a = left, *b = right;
    int order = strverscmp(a->pod->pod_namespace, b->pod->pod_namespace);

    if (a->holds != b->holds)
        return a->holds ? -1 : 1;
    return order != 0 ? order : strverscmp(a->pod->name, b->pod->name);
}

/* Those of one group, in their turn; the caller frees them. */
static struct leaver *leavers_of(const struct state *state, const struct shutdown *shutdown,
                                 size_t group, size_t *len)
{
    struct leaver *leavers = mem_alloc(shutdown_group_len(shutdown, group) + 1, sizeof *leavers);

    *len = 0;
    for (const struct shutdown_pod *one = shutdown->pods; one; one = one->hh.next) {
        if (one->group == group)
            leavers[(*len)++] =
                (struct leaver){pods_find(&state->pods, one->uid), leaving_holds(state, one->uid)};
    }
    qsort(leavers, *len, sizeof *leavers, by_turn);
    return leavers;
}

static void tell_group(const struct state *state, const struct shutdown *shutdown, size_t number,
                       void (*group)(void *user, const struct devicemgr_shutdown_planned *group),
                       void (*pod)(void *user, const char *pod_namespace, const char *pod_name),
                       void *user)
{
    struct devicemgr_shutdown_planned planned = {.by_priority = shutdown->by_priority,
                                                 .priority = shutdown->groups[number].priority,
                                                 .grace_ms = shutdown->groups[number].grace_ms};
    struct leaver *leavers = leavers_of(state, shutdown, number, &planned.pods);

    while (planned.holders < planned.pods && leavers[planned.holders].holds)
        planned.holders++;
    group(user, &planned);
    for (size_t i = 0; i < planned.pods; i++)
        pod(user, leavers[i].pod->pod_namespace, leavers[i].pod->name);
    free(leavers);
}

void devicemgr_shutdown_plan(
    const struct devicemgr *mgr, const struct devicemgr_shutdown_said *said,
    void (*group)(void *user, const struct devicemgr_shutdown_planned *group),
    void (*pod)(void *user, const char *pod_namespace, const char *pod_name), void *user)
{
    const struct state *state = &mgr->state;
    struct shutdown shutdown = {.limit_ms = said->limit_ms};

    if (state->settings.shutdown_len == 0 || said->kubelet_locked ||
        shutdown_under_way(&state->shutdown) || !state->listing.listed)
        return;
    if (said->pods)
        shutdown_set_known(&shutdown, said->pods, said->pods_len);
    shutdown_make_groups(state, &shutdown);
    shutdown_take_in(state, &shutdown);
    shutdown_shorten(&shutdown, shutdown_deadline_ms(&shutdown)); /* since 0 */
    for (size_t i = 0; i < shutdown.groups_len; i++)
        tell_group(state, &shutdown, i, group, pod, user);
    shutdown_fini(&shutdown);
}
