#include "devicemgr/turn/meant.h"

#include <string.h>

#include "devicemgr/rules/holders.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/turn.h"

struct state *meant_state(const struct devicemgr *mgr, uint64_t now_ms)
{
    struct state *state = mem_alloc(1, sizeof *state);

    *state = mgr->state;
    state->now_ms = later(state->now_ms, now_ms);
    return state;
}

bool meant_pod(const char *pod, const char *uid, const char *pod_namespace, const char *name)
{
    size_t len = strlen(pod_namespace);

    return !pod || strcmp(pod, uid) == 0 || strcmp(pod, name) == 0 ||
           (strncmp(pod, pod_namespace, len) == 0 && pod[len] == '/' &&
            strcmp(pod + len + 1, name) == 0);
}

const char *meant_user_uid(const struct state *state, const struct claim_user *user)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, user->sandbox_id);

    return sandbox ? sandbox->pod->uid : user->pod_uid;
}

static bool is_of_pod(const struct state *state, const char *pod, const struct claim_user *user)
{
    const char *slash = strchr(user->pod, '/');

    return strcmp(pod, user->pod) == 0 || (slash && strcmp(pod, slash + 1) == 0) ||
           strcmp(pod, meant_user_uid(state, user)) == 0;
}

bool meant_uses(const struct state *state, const char *pod, const char *container,
                const struct claim *claim)
{
    for (size_t i = 0; i < claim->users_len; i++) {
        const struct claim_user *user = &claim->users[i];

        if ((!container || strcmp(container, user->container) == 0) && is_of_pod(state, pod, user))
            return true;
    }
    return false;
}

void meant_names(const struct state *state, const char *uid, const char **pod_namespace,
                 const char **name)
{
    const struct pod *pod = pods_find(&state->pods, uid);

    *pod_namespace = pod ? pod->pod_namespace : "";
    *name = pod ? pod->name : "";
}

int meant_order(const char *const *a, const char *const *b, size_t parts)
{
    int order = 0;

    for (size_t i = 0; order == 0 && i < parts; i++)
        order = strverscmp(a[i], b[i]);
    return order;
}

const char *meant_life(const struct state *state, const struct allocation *allocation)
{
    switch (allocation_life(allocation)) {
    case ALLOCATION_BUSY:
        return "creating";
    case ALLOCATION_LIVE:
        return "running";
    case ALLOCATION_UNKNOWN:
        return "unknown";
    default:
        return holders_keeps(state, allocation) ? "kept" : "over";
    }
}
