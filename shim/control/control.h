/*
 * The control socket (cri-proto/control_v1.proto), for cri-device-shimctl: what there is, and why.
 *
 * It reads: what it answers comes from a const device manager, and from a report of its owner. What
 * an operator sets (steering.h), or takes from a pod (releasing.h), or which he ends (ending.h),
 * the device manager is asked for. The relay does not depend on it: a socket that cannot be made is
 * tried again, and what a client can make it hold is bounded (limits.h).
 */
#ifndef SHIM_CONTROL_CONTROL_H
#define SHIM_CONTROL_CONTROL_H

#include <uv.h>

#include "shim/core/host.h"
#include "shim/events/events.h"
#include "shim/fd_store.h"
#include "shim/report.h"
#include "shim/settings.h"

struct control;
struct list_from;

struct control_ops {
    /* What there is to say of the daemon now; *out is zeroed. */
    void (*report)(void *user, struct report *out);
    /* What answers are made from, besides the device manager (list.h). */
    void (*look)(void *user, struct list_from *out);
    /* settings_reload(), with all that follows. */
    int (*reload)(void *user, struct settings_reloaded *out);
    /* settings_set_level(), likewise. */
    void (*set_level)(void *user, int level);
};

/*
 * Listens at the settings' control_socket (0600; its directory 0755), as long as it takes and as
 * often as that is removed (rpc/keeper.h), kept in `store` (NULL: there is none). `settings`,
 * `host`, `events`, `store`, `ops` and `user` are borrowed until control_stop(). No callback comes
 * before return.
 */
struct control *control_start(uv_loop_t *loop, const struct settings *settings, struct host *host,
                              struct events *events, struct fd_store *store,
                              const struct control_ops *ops, void *user);

/* The port of the core (ports.h, steered). */
void control_steered(struct control *control, uint64_t number,
                     const struct devicemgr_steered *steered);

/* keeper_trouble() of its socket. */
const char *control_trouble(const struct control *control, uint64_t *since_ms);
/* rpc_server_queued_max(), likewise. */
size_t control_queued_max(const struct control *control);

/* Ends all calls, removes the socket, frees. Accepts NULL. */
void control_stop(struct control *control);

#endif
