#include "shim/agent/backoff.h"

#include <stdbool.h>
#include <sys/random.h>

#include "shim/agent/limits.h"

uint64_t backoff_spread(uint64_t bound_ms)
{
    uint64_t number = 0;

    if (bound_ms == 0 || getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        return 0;
    return number % bound_ms;
}

uint64_t backoff_failed(struct backoff *backoff, uint64_t now_ms, uint64_t at_least_ms,
                        uint64_t max_ms)
{
    bool quiet = backoff->next_ms == 0 ||
                 now_ms - backoff->failed_at_ms > backoff->next_ms + BACKOFF_QUIET_MS;
    uint64_t wait_ms = quiet ? BACKOFF_MS_MIN : backoff->next_ms;

    if (wait_ms > max_ms)
        wait_ms = max_ms;
    backoff->failed_at_ms = now_ms;
    backoff->next_ms = wait_ms * 2 < max_ms ? wait_ms * 2 : max_ms;
    wait_ms += backoff_spread(wait_ms);
    return wait_ms < at_least_ms ? at_least_ms + backoff_spread(BACKOFF_MS_MIN) : wait_ms;
}
