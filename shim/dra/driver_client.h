/*
 * The client side of a DRA driver: one connection for each instance that has registered.
 *
 *             connected
 *     AWAY ─────────────▶ CONNECTED
 *       ▲                     │
 *       └──── it is lost ◀────┘
 *
 * AWAY waits for its timer: it dials after pauses that are doubled from DRIVER_REDIAL_MS_MIN to
 * DRIVER_REDIAL_MS_MAX, for as long as the instance is open, where the kubelet's library waits up
 * to two minutes. They begin anew after a connection that has held for DRIVER_REDIAL_MS_MAX; after
 * others they go on up to DRIVER_FLAP_MS_MAX.
 */
#ifndef SHIM_DRA_DRIVER_CLIENT_H
#define SHIM_DRA_DRIVER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "cri-proto/dra_health_v1alpha1.pb-c.h"
#include "shim/dra/claim_calls.h"
#include "shim/dra/services.h"

#define DRIVER_REDIAL_MS_MIN 5
#define DRIVER_REDIAL_MS_MAX 1000
/* Each connection that is made and lost is two lines of the log, and two events. */
#define DRIVER_FLAP_MS_MAX 10000
/* Between the end of a stream of health and the next; the kubelet's. One that is not implemented is
 * not asked for again on the same connection. */
#define DRIVER_HEALTH_MS 5000

struct driver_clients;

/* Everything comes from the loop; pointers are borrowed until return. Any function below may be
 * called from inside. */
struct driver_clients_ops {
    void (*connected)(void *user, uint64_t instance);
    /* It is not connected any more, for that reason, and dialled again. Its calls end UNAVAILABLE
     * behind it, or not at all. Also where the first dial fails, and then once. */
    void (*lost)(void *user, uint64_t instance, const char *reason);
    /* The end of a call about one claim: `code` RPC_OK, or a gRPC code with the driver's words;
     * what it says of the claim (`error`) is UNKNOWN. `response` is its bytes of
     * dra.v1.NodePrepareResourceResponse, unknown fields and all; NULL unless it is prepared. */
    void (*answered)(void *user, uint64_t call, int code, const char *message, const void *response,
                     size_t response_bytes);
    /* What it says of its devices' health; NULL: its stream has ended, what it has said holds no
     * longer. */
    void (*health)(void *user, uint64_t instance,
                   const DraHealth__V1alpha1__NodeWatchResourcesResponse *response);
};

struct driver_instance {
    const char *endpoint; /* the absolute path of its socket; copied */
    uid_t uid;            /* beside root, who may own and serve it (plugins/plugin_socket.h) */
    enum driver_service service;
    bool health; /* it is asked for that */
};

/* `ops` and `user` are borrowed until the set is stopped. */
struct driver_clients *driver_clients_new(uv_loop_t *loop, const struct driver_clients_ops *ops,
                                          void *user);

/* `instance` is the caller's number, not in use. connected() or lost() follows. */
void driver_clients_open(struct driver_clients *clients, uint64_t instance,
                         const struct driver_instance *is);

/* Ends the instance and its calls without any callback. One that is not open is ignored. */
void driver_clients_close(struct driver_clients *clients, uint64_t instance);

/*
 * Calls about one claim each; of a batch, they wait for driver_clients_send(). Each ends in
 * answered(), unless cancelled or its instance is closed; one that is not connected ends it
 * UNAVAILABLE. A timeout of 0 counts as 1 ms.
 */
void driver_clients_prepare(struct driver_clients *clients, uint64_t instance,
                            const struct claim_call *call);
void driver_clients_unprepare(struct driver_clients *clients, uint64_t instance,
                              const struct claim_call *call);

/* Those of one batch and instance go to the driver in one. */
void driver_clients_send(struct driver_clients *clients);

/* One that is over is ignored. */
void driver_clients_cancel(struct driver_clients *clients, uint64_t call);

/* Closes all instances, frees the set, then runs `done` from the loop. */
void driver_clients_stop(struct driver_clients *clients, void (*done)(void *user), void *user);

#endif
