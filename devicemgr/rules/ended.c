#include "devicemgr/rules/ended.h"

#include "devicemgr/rules/rule.h"

struct look ended_pod(const struct state *state, const char *pod_uid)
{
    const struct ending *ending = endings_find(&state->endings, pod_uid);
    struct look look = {0};

    if (shutdown_under_way(&state->shutdown)) {
        look.step = LOOK_REFUSE;
        look.reason.kind = REASON_NODE_SHUTS_DOWN;
    } else if (ending && ending_refuses(ending)) {
        look.step = LOOK_REFUSE;
        look.reason.kind = REASON_POD_ENDED;
    }
    return look;
}

struct look ended_sandbox(const struct state *state, const char *pod_uid,
                          const struct sandbox *sandbox)
{
    struct look look = ended_pod(state, pod_uid);

    if (look.step == LOOK_GO && (!sandbox || sandbox->state != SANDBOX_OPEN)) {
        look.step = LOOK_REFUSE;
        look.reason.kind = sandbox ? REASON_SANDBOX_STOPS : REASON_SANDBOX_REMOVED;
    }
    return look;
}
