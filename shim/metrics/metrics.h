/*
 * What those who watch the node are told, over HTTP: /metrics (Prometheus), /healthz, /readyz and
 * /status.json; with others beside, of who starts it.
 *
 * Nothing is kept for it: rooms count as they go, in plain integers, and a scrape gathers. Labels
 * are bounded: methods, codes, states and resources, never pods, devices or addresses.
 */
#ifndef SHIM_METRICS_METRICS_H
#define SHIM_METRICS_METRICS_H

#include <stdbool.h>

#include <uv.h>

#include "shim/core/host.h"
#include "shim/kubelet/gate.h"
#include "shim/metrics/http_server.h"
#include "shim/relay/relay.h"
#include "shim/report.h"

/* Of more than so many resources each, the first by name: no node has as many. */
#define METRICS_RESOURCES_MAX 64

/* The daemon's parts as they are at this moment, all borrowed until return; NULL: not there. */
struct metrics_view {
    struct host *host;
    const struct relay_counts *relay;
    const struct create_counts *creates; /* never NULL */
    const struct gate_counts *gate;
    unsigned gate_holds;
    uint64_t started_ms;                        /* boot_now_ms() */
    bool bridge;                                /* one is connected */
    size_t feed_queued_max, control_queued_max; /* bytes; rpc_server_queued_max() */
    const char *not_ready;                      /* why; NULL: it is ready */
};

struct metrics_ops {
    void (*look)(void *user, struct metrics_view *out);
    /* What there is to say of the daemon now; *out is zeroed. */
    void (*report)(void *user, struct report *out);
    /* Other paths, as in http_server.h; NULL: there are none. */
    bool (*get)(void *user, const struct http_request *request, struct http_answer *out);
};

struct metrics;

/* Serves at `address`, a right [metrics] listen. `ops` and `user` are borrowed until
 * metrics_stop(), `address` is copied. */
struct metrics *metrics_start(uv_loop_t *loop, const char *address, const struct metrics_ops *ops,
                              void *user);
/* Accepts NULL. */
void metrics_stop(struct metrics *metrics);

#endif
