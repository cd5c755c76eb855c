/*
 * What the files of this room share: the host, and who is at work for it.
 */
#ifndef SHIM_CORE_HOST_STATE_H
#define SHIM_CORE_HOST_STATE_H

#include "shim/boot.h"
#include "shim/core/drivers.h"
#include "shim/core/host.h"
#include "shim/core/registered_mark.h"
#include "shim/core/restore.h"
#include "shim/core/store_worker.h"
#include "shim/plugins/builtins.h"
#include "shim/plugins/plugin_client.h"
#include "shim/plugins/registrar.h"
#include "shim/runtime/lister.h"
#include "shim/runtime/stopper.h"
#include "shim/stopping.h"

struct host {
    uv_loop_t *loop;
    const struct config *config;
    struct fd_store *store; /* NULL: there is none */
    const struct host_ops *ops;
    void *user;
    struct devicemgr *core;
    bool running; /* it is in devicemgr_run() */
    char boot_id[BOOT_ID_BYTES_MAX];
    struct registrar *registrar; /* this and the next five: NULL until the checkpoint is read */
    struct plugin_clients *clients;
    struct drivers *drivers; /* also NULL where the settings want none */
    struct builtins *builtins;
    struct lister *lister;
    struct stopper *stopper;
    struct store_worker *worker;
    struct restore restore;
    struct registered_mark registered_mark;
    struct host_counts counts;
    enum devicemgr_cdi runtime_cdi; /* as it said last */
    bool knows_cdi;                 /* host_knows_cdi() */
    bool knows_no_rows;             /* and they are awaited no more */
    uv_timer_t timer;               /* of the core's next deadline */
    bool ready;                     /* the checkpoint is read, and all parts are there */
    struct stopping stopping;
};

/* It is so from now on. */
void host_set_knows_cdi(struct host *host);

#endif
