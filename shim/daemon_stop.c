/*
 * The end of the daemon, part by part.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/cluster/cluster.h"
#include "shim/control/control.h"
#include "shim/core/host.h"
#include "shim/daemon_inside.h"
#include "shim/events/events.h"
#include "shim/kubelet/feed.h"
#include "shim/kubelet/gate.h"
#include "shim/log.h"
#include "shim/metrics/metrics.h"
#include "shim/page/page.h"
#include "shim/relay/relay.h"
#include "shim/rpc/keeper.h"
#include "shim/service_manager.h"

/* What a stop takes besides "drain". */
#define STOP_EXTRA_MS 10000

static void on_events_stopped(void *user)
{
    struct daemon *d = user;

    signals_close(&d->signals);
    watchdog_close(&d->watchdog);
}

static void on_host_stopped(void *user)
{
    struct daemon *d = user;

    events_stop(d->events, on_events_stopped, d);
}

static void stop_host(void *user)
{
    struct daemon *d = user;

    host_stop(d->host, on_host_stopped, d);
}

static void stop_cluster(void *user)
{
    struct daemon *d = user;
    struct cluster *cluster = d->cluster;

    d->cluster = NULL;
    if (cluster)
        cluster_stop(cluster, stop_host, d);
    else
        stop_host(d);
}

static void stop_feed(void *user)
{
    struct daemon *d = user;
    struct feed *feed = d->feed;

    d->feed = NULL;
    if (feed)
        feed_stop(feed, stop_cluster, d);
    else
        stop_cluster(d);
}

static void stop_gate(struct daemon *d)
{
    struct gate *gate = d->gate;

    d->gate = NULL;
    if (gate)
        gate_stop(gate, stop_feed, d);
    else
        stop_feed(d);
}

static void on_relay_stopped(void *user)
{
    struct daemon *d = user;

    d->relay = NULL;
    stop_gate(d);
}

/* systemd is to wait as long as "drain" says, whatever its own limit. */
static void tell_stopping(const struct daemon *d)
{
    char state[64];

    snprintf(state, sizeof state, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
             (d->config->drain_ms + STOP_EXTRA_MS) * 1000);
    service_manager_notify(state);
}

void daemon_on_stop(void *user, int number)
{
    struct daemon *d = user;

    if (!d->stopping) {
        d->stopping = true;
        log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_STOPPING},
                        "stopping: %s", strsignal(number));
        tell_stopping(d);
        keeper_stop(d->keeper);
        d->keeper = NULL;
        metrics_stop(d->metrics);
        page_free(d->page);
        d->page = NULL;
        control_stop(d->control);
        d->control = NULL;
        if (d->relay)
            relay_stop(d->relay, d->config->drain_ms, on_relay_stopped, d);
        else
            stop_gate(d);
    } else if (d->relay) {
        relay_stop_now(d->relay); /* asked twice: at once */
    }
}
