/*
 * What the files of the daemon share: who is at work for it.
 */
#ifndef SHIM_DAEMON_INSIDE_H
#define SHIM_DAEMON_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "config/config.h"
#include "shim/fd_store.h"
#include "shim/settings.h"
#include "shim/signals.h"
#include "shim/watchdog.h"

struct daemon {
    uv_loop_t loop;
    struct settings *settings;
    const struct config *config; /* the settings' */
    struct fd_store *store;
    struct calls *calls;
    struct host *host;
    struct feed *feed;       /* NULL: not yet, no more, or no bridge is wanted */
    struct gate *gate;       /* NULL: not yet, or no more */
    struct relay *relay;     /* the same */
    struct keeper *keeper;   /* of the relay's socket */
    struct metrics *metrics; /* NULL: nobody watches, or no more */
    struct page *page;       /* NULL: nobody is shown it */
    struct events *events;
    struct control *control; /* NULL: not yet, no more, or none is wanted */
    struct cluster *cluster; /* the same */
    uint64_t started_ms;     /* boot_now_ms() */
    bool ready;              /* the relay has begun to listen */
    bool restored;           /* the checkpoint is read */
    struct signals signals;
    struct watchdog watchdog;
    bool level_told; /* the log's level by an operator, to this process */
    bool stopping;
};

/* The gate for a kubelet that has just started, between the relay and the feed. */
void daemon_start_gate(struct daemon *daemon);

/* Asked to stop (signals.h): each part after those that feed it; asked again, at once. */
void daemon_on_stop(void *user, int number);

#endif
