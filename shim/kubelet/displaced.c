#include "shim/kubelet/displaced.h"

#include "shim/pause.h"

bool displaced_step(struct displaced *displaced, enum displaced_seen seen, uint64_t now_ms)
{
    if (seen == DISPLACED_UNKNOWN)
        return false;
    if (seen == DISPLACED_NO) {
        *displaced = (struct displaced){0};
        return false;
    }
    if (displaced->pause_ms == 0) {
        *displaced = (struct displaced){.pause_ms = DISPLACED_PAUSE_MS_MIN, .since_ms = now_ms};
        return false;
    }
    if (now_ms - displaced->since_ms < displaced->pause_ms)
        return false;
    displaced->since_ms = now_ms;
    displaced->pause_ms =
        pause_longer(displaced->pause_ms, DISPLACED_PAUSE_MS_MIN, DISPLACED_PAUSE_MS_MAX);
    return true;
}

uint64_t displaced_next_ms(const struct displaced *displaced)
{
    return displaced->pause_ms ? displaced->since_ms + displaced->pause_ms : UINT64_MAX;
}
