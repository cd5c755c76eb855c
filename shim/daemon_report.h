/*
 * What the daemon's rooms say of themselves, for whoever asks.
 */
#ifndef SHIM_DAEMON_REPORT_H
#define SHIM_DAEMON_REPORT_H

#include <stdint.h>

#include "shim/cluster/cluster.h"
#include "shim/control/control.h"
#include "shim/core/host.h"
#include "shim/events/events.h"
#include "shim/kubelet/feed.h"
#include "shim/kubelet/gate.h"
#include "shim/report.h"
#include "shim/rpc/keeper.h"
#include "shim/settings.h"

/* All borrowed; feed, gate, cluster, keeper and control may be NULL: not yet, or no more. */
struct daemon_rooms {
    const struct settings *settings;
    uint64_t started_ms; /* boot_now_ms() at its start */
    struct host *host;
    const struct events *events;
    const struct feed *feed;
    const struct gate *gate;
    const struct cluster *cluster;
    const struct keeper *keeper; /* of the relay's socket */
    const struct control *control;
};

/* Fills in *out, which is zeroed. */
void daemon_report(const struct daemon_rooms *rooms, struct report *out);

#endif
