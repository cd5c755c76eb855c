/*
 * The device manager at work: the core (devicemgr/devicemgr.h) bound to its world, which is the
 * checkpoint, the plugins' sockets, the built-in devices, the runtime's lists and the clock.
 *
 * It implements every port of the core except `verdict` and `preferred`, which are its owner's. One
 * loop, one thread; only SQLite runs in libuv's worker.
 */
#ifndef SHIM_PLUGINS_MANAGER_H
#define SHIM_PLUGINS_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "config/config.h"
#include "devicemgr/devicemgr.h"

/* How long the first attempt to read the checkpoint may take before its owner goes on without. */
#define MANAGER_READ_MS 1000

struct manager;

struct manager_ops {
    /* The end of a create that devicemgr_create() left pending (ports.h, verdict); runs from
     * manager_kick() or from the loop, never from inside a devicemgr_ event. */
    void (*verdict)(void *user, uint64_t create, const struct devicemgr_verdict *verdict);
    /* The answer to devicemgr_prefer() (ports.h, preferred), in the same way. May be NULL if nobody
     * asks. */
    void (*preferred)(void *user, uint64_t number, const char *const *ids, size_t ids_len);
    /* The checkpoint is read, and all parts are at work: manager_ready(). Once, from the loop. */
    void (*ready)(void *user);
    /* Not yet: it cannot be read, or that takes longer than MANAGER_READ_MS. Once at most, before
     * ready(), from the loop. May be NULL. */
    void (*delayed)(void *user);
    /* The end of every manager_kick(): what the core shows may have changed. Feeds the core with
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
 * `config` and `ops` are borrowed until the manager has stopped. No callback comes before return.
 */
struct manager *manager_start(uv_loop_t *loop, const struct config *config,
                              const struct manager_ops *ops, void *user);

/* Whether ready() has come. Until then the core takes creates and their ends, and nothing else:
 * what else passed meanwhile it learns from the runtime's list. */
bool manager_ready(const struct manager *manager);

/*
 * The core, to feed with what passes in the relay (devicemgr_create(), devicemgr_sandbox_ran()...).
 * Call manager_kick() once after such events. Valid until manager_stop().
 */
struct devicemgr *manager_core(struct manager *manager);

/* The clock of every `now_ms` and `deadline_ms` of the core: CLOCK_BOOTTIME, in ms. */
uint64_t manager_now_ms(void);

/* Carries out what the events since the last kick asked for, verdicts included, and sets the timer
 * for the core's next deadline. From inside a verdict it returns at once: the outer one goes on. */
void manager_kick(struct manager *manager);

/* Asks the runtime for its whole list (again): for when the relay saw it come back before the
 * manager's own connection did. */
void manager_list_runtime(struct manager *manager);

/*
 * Closes sockets, ends calls, waits for a commit that is under way, closes the checkpoint, frees
 * the manager, then runs `done` from the loop. No verdict comes any more: pending creates are the
 * caller's to end. The manager must not be touched after this call.
 */
void manager_stop(struct manager *manager, void (*done)(void *user), void *user);

#endif
