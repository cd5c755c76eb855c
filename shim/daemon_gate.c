/*
 * The gate: what it asks of the feed, and what of the relay's calls it holds.
 */
#include "shim/boot_clock.h"
#include "shim/core/host.h"
#include "shim/daemon_events.h"
#include "shim/daemon_inside.h"
#include "shim/kubelet/feed.h"
#include "shim/kubelet/gate.h"
#include "shim/relay/calls.h"

static void on_gate_asks(void *user, pid_t kubelet, struct taken *out)
{
    struct daemon *d = user;

    if (d->feed)
        feed_taken(d->feed, kubelet, out);
    else
        *out = (struct taken){.words = "nothing serves the bridge"};
}

static void on_gate_release(void *user, uint64_t hold)
{
    struct daemon *d = user;

    calls_gate_released(d->calls, hold);
}

/* What is shown to a kubelet that has just started is shown until it has admitted its pods. */
static void on_gate_waits(void *user)
{
    struct daemon *d = user;

    devicemgr_kubelet_started(host_core(d->host), boot_now_ms());
    host_kick(d->host);
}

static void on_gate_told(void *user, const char *word, const char *words)
{
    struct daemon *d = user;

    daemon_event_of_gate(d->events, word, words);
}

static const struct gate_ops GATE_OPS = {.taken = on_gate_asks,
                                         .release = on_gate_release,
                                         .waits = on_gate_waits,
                                         .told = on_gate_told};

static bool is_kubelet(void *user, pid_t pid)
{
    const struct daemon *d = user;

    return gate_watches(d->gate, pid);
}

static bool is_armed(void *user, pid_t pid)
{
    const struct daemon *d = user;

    return gate_armed(d->gate, pid);
}

static bool on_announced(void *user, pid_t pid)
{
    struct daemon *d = user;

    return gate_announced(d->gate, pid);
}

static bool on_relist(void *user, pid_t pid, uint64_t deadline_ms, uint64_t hold)
{
    struct daemon *d = user;

    return gate_hold(d->gate, pid, deadline_ms, hold);
}

static void on_relist_cancelled(void *user, uint64_t hold)
{
    struct daemon *d = user;

    gate_cancelled(d->gate, hold);
}

static void on_relist_answered(void *user, pid_t pid)
{
    struct daemon *d = user;

    gate_answered(d->gate, pid);
}

static const struct relists_gate RELISTS_GATE = {.watches = is_kubelet,
                                                 .armed = is_armed,
                                                 .announced = on_announced,
                                                 .hold = on_relist,
                                                 .cancelled = on_relist_cancelled,
                                                 .answered = on_relist_answered};

void daemon_start_gate(struct daemon *d)
{
    d->gate = gate_start(&d->loop, d->config, &GATE_OPS, d);
    calls_bind_gate(d->calls, &RELISTS_GATE, d);
}
