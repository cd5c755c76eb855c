/*
 * Commits to the checkpoint in libuv's worker, so that no fsync blocks the loop.
 */
#ifndef SHIM_PLUGINS_STORE_WORKER_H
#define SHIM_PLUGINS_STORE_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "devicemgr/ports.h"
#include "devicemgr/store.h"

struct store_worker;

struct store_worker_ops {
    /* The end of a commit, from the loop. `error` NULL: durable; else the store's words, borrowed
     * until return. The next commit may be started from here. */
    void (*committed)(void *user, uint64_t commit, const char *error);
    /* Comes right before a committed() that failed: STORE_RESET. */
    void (*reset)(void *user);
};

/* Takes `store`. `ops` and `user` are borrowed until the worker is stopped. */
struct store_worker *store_worker_new(uv_loop_t *loop, struct store *store,
                                      const struct store_worker_ops *ops, void *user);

/* Starts one commit; the records are copied before return. One at a time: not again before
 * committed(). */
void store_worker_commit(struct store_worker *worker, uint64_t commit,
                         const struct devicemgr_record *records, size_t records_len);

/* Lets a commit under way come to its end (committed() does not run), closes the store, frees the
 * worker, then runs `done`: from the loop, or before return if nothing is under way. */
void store_worker_stop(struct store_worker *worker, void (*done)(void *user), void *user);

#endif
