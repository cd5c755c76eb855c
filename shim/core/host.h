/*
 * The core's host: the core (devicemgr/devicemgr.h) bound to its world, which is the checkpoint,
 * the plugins' sockets, the built-in devices, the runtime's lists and the clock.
 *
 *   events.h   what those say, as events of the core
 *   ports.h    what the core asks of them
 *   drivers.h  both, of DRA drivers and of what else registers by a socket
 *   restore.h  the checkpoint's way into the core; store_worker.h: how it is read and written
 *
 * It implements every port of the core but those that struct host_ops has, which are its owner's.
 * One loop, one thread; only SQLite runs in libuv's worker. Times are boot_now_ms().
 */
#ifndef SHIM_CORE_HOST_H
#define SHIM_CORE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "config/config.h"
#include "cri-proto/dra_health_v1alpha1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/dra.h"
#include "devicemgr/endings.h"
#include "shim/core/host_counts.h"
#include "shim/core/store_worker.h"
#include "shim/fd_store.h"
#include "shim/runtime/lister.h"

struct host;

struct host_ops {
    /* The end of a create that devicemgr_create() left pending (ports.h, verdict); runs from
     * host_kick() or from the loop, never from inside a devicemgr_ event. */
    void (*verdict)(void *user, uint64_t create, const struct devicemgr_verdict *verdict);
    /* The answer to devicemgr_prefer() (ports.h, preferred), in the same way. May be NULL if nobody
     * asks. */
    void (*preferred)(void *user, uint64_t number, const char *const *ids, size_t ids_len);
    /* What has come to pass (ports.h, event), likewise. May be NULL if nobody watches. */
    void (*event)(void *user, const struct devicemgr_event *event);
    /* What became of what an operator asked for (ports.h, steered), likewise. May be NULL
     * if nobody does. */
    void (*steered)(void *user, uint64_t number, const struct devicemgr_steered *steered);
    /* What is allocated to a claim is wanted (ports.h, claim_look), likewise. May be NULL if nobody
     * can tell. */
    void (*claim_look)(void *user, const struct devicemgr_claim *claim);
    /* A pod is to be evicted by the cluster; it is not any more (ports.h, evict_pod), likewise.
     * Only with config->cluster.enabled. */
    void (*evict_pod)(void *user, uint64_t order, const struct devicemgr_eviction *eviction);
    void (*evict_cancel)(void *user, uint64_t order);
    /* A claim is to be prepared by the driver of lifted resources (ports.h, driver_prepare), and is
     * not any more (call_cancel; also of calls that are none of its), likewise. May be NULL, both:
     * there is no such driver. */
    void (*lift_prepare)(void *user, uint64_t call, const struct devicemgr_claim *claim,
                         uint64_t timeout_ms);
    void (*lift_cancel)(void *user, uint64_t call);
    /* What became of a claim (ports.h, claim_done), likewise. May be NULL if nobody asks. */
    void (*claim_done)(void *user, uint64_t number, const struct devicemgr_claim_done *done);
    /* What an instance of the DRA driver of this name says of its devices' health; NULL: it is not
     * connected any more, or is over, and its word counts no longer. From the loop. May be NULL:
     * they are not asked. */
    void (*driver_health)(void *user, const char *driver, uint64_t instance,
                          const DraHealth__V1alpha1__NodeWatchResourcesResponse *health);
    /* The checkpoint is read, and all parts are at work: host_ready(). Once, from the loop. */
    void (*ready)(void *user);
    /* Not yet: it cannot be read, or that takes long (restore.h). Once at most, before ready(),
     * from the loop. May be NULL. */
    void (*delayed)(void *user);
    /* host_knows_rows() has become so, or host_knows_cdi(): from the loop. May be NULL. */
    void (*known)(void *user);
    /* The end of every host_kick(): what the core shows may have changed. Feeds the core with
     * nothing, not before the loop's next turn. May be NULL. */
    void (*kicked)(void *user);
};

/*
 * Begins to read the checkpoint, in libuv's worker. When that is done it restores the core, makes
 * the plugin directory and listens on its kubelet.sock, looks for the built-in devices and starts
 * to ask the runtime what runs; all of these go on trying by themselves. A checkpoint that cannot
 * be read (the disk, another process, another version) is tried again for as long as it takes: rows
 * that nobody has read say who holds what, so that until then creates that name devices are refused
 * with that reason. One that is damaged is set aside, one that cannot be written is no error here.
 * kubelet.sock is kept in `store` (NULL: there is none). `config`, `store` and `ops` are borrowed
 * until the host has stopped. No callback comes before return.
 */
struct host *host_start(uv_loop_t *loop, const struct config *config, struct fd_store *store,
                        const struct host_ops *ops, void *user);

/* Whether ready() has come. Until then the core takes creates and their ends, and nothing else:
 * what else passed meanwhile it learns from the runtime's list. */
bool host_ready(const struct host *host);

/*
 * The core, to feed with what passes in the relay (devicemgr_create(), devicemgr_sandbox_ran()...).
 * Call host_kick() once after such events. Valid until host_stop().
 */
struct devicemgr *host_core(struct host *host);

/* Carries out what the events since the last kick asked for, verdicts included, and sets the timer
 * for the core's next deadline. From inside a verdict it returns at once: the outer one goes on. */
void host_kick(struct host *host);

/* Asks the runtime for its whole list (again): for when the relay saw it come back before the
 * host's own connection did. */
void host_list_runtime(struct host *host);

/* The runtime, as far as its lister knows it; until host_ready() nothing is known of it. */
void host_look_at_runtime(const struct host *host, struct lister_state *out);
/* What the runtime makes of CDI devices, as far as it has said. */
enum devicemgr_cdi host_runtime_cdi(const struct host *host);
/* Whether it has, or does not say, on the connection that there is to it; or nobody asks it yet,
 * since the checkpoint is awaited no more. Before that, for some ms at the start, it is not known
 * either which devices are claims'. */
bool host_knows_cdi(const struct host *host);
/* Whether the checkpoint is read, or is awaited no more (RESTORE_READ_MS). Before that, on a node
 * with very many devices, the core would refuse for want of rows that are being read. */
bool host_knows_rows(const struct host *host);
/* Why plugins cannot register, and since when (boot_now_ms()); NULL: they can. */
const char *host_registrar_trouble(const struct host *host, uint64_t *since_ms);
/* The same of those that register by a socket. */
const char *host_registry_trouble(const struct host *host, uint64_t *since_ms);

/* Its `config` has changed, in what may (config/compare.h): the core goes by it from now on. */
void host_settings_changed(struct host *host);

/* Since when a commit of the checkpoint is under way (boot_now_ms()); 0: none is. */
uint64_t host_commit_since_ms(const struct host *host);

/* Borrowed as long as the host is there. */
const struct host_counts *host_counts(const struct host *host);

/* Looks at the checkpoint's file and its rows (store_worker_look()), which changes nothing; commits
 * wait meanwhile. Ends in `done`, from the loop, not after host_stop(). False: the checkpoint is
 * not read yet, or one is under way already. */
bool host_look_at_checkpoint(struct host *host,
                             void (*done)(void *user, const struct store_worker_look *look),
                             void *user);

/* Nobody waits for the look that is under way any more: `done` does not come. */
void host_forget_look(struct host *host);

/*
 * Closes sockets, ends calls, waits for a commit that is under way, closes the checkpoint, frees
 * the host, then runs `done` from the loop. No verdict comes any more: pending creates are the
 * caller's to end. The host must not be touched after this call.
 */
void host_stop(struct host *host, void (*done)(void *user), void *user);

#endif
