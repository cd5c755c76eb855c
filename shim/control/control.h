/*
 * The control socket (cri-proto/control_v1.proto), for cri-device-shimctl: what there is, and why.
 *
 * It reads: what it answers comes from a const device manager, and from a report of its owner. The
 * relay does not depend on it: a socket that cannot be made is tried again, and what a client can
 * make it hold is bounded (limits.h).
 */
#ifndef SHIM_CONTROL_CONTROL_H
#define SHIM_CONTROL_CONTROL_H

#include <uv.h>

#include "config/config.h"
#include "shim/core/host.h"
#include "shim/events/events.h"
#include "shim/fd_store.h"
#include "shim/report.h"

struct control;

struct control_ops {
    /* What there is to say of the daemon now; *out is zeroed. */
    void (*report)(void *user, struct report *out);
};

/*
 * Listens at config->control_socket (0600; its directory 0755), as long as it takes and as often as
 * that is removed (rpc/keeper.h), kept in `store` (NULL: there is none). `config`, `host`, `events`,
 * `store`, `ops` and `user` are borrowed until control_stop(). No callback comes before return.
 */
struct control *control_start(uv_loop_t *loop, const struct config *config, struct host *host,
                              struct events *events, struct fd_store *store,
                              const struct control_ops *ops, void *user);

/* keeper_trouble() of its socket. */
const char *control_trouble(const struct control *control, uint64_t *since_ms);

/* Ends all calls, removes the socket, frees. Accepts NULL. */
void control_stop(struct control *control);

#endif
