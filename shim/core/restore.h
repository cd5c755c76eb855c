/*
 * How the core gets its checkpoint: it is read in the worker, as often as it takes, and each row is
 * restored.
 *
 *   first attempt ──rows──▶ restored
 *        ├──large─────────▶ delayed, goes on
 *        ├──RESTORE_READ_MS without an end─▶ delayed, given up, goes on
 *        └──unreadable────▶ delayed, given up, pause ──▶ next attempt ──▶ ...
 *
 * Meanwhile the core knows, and says in refusals, why it has no rows.
 */
#ifndef SHIM_CORE_RESTORE_H
#define SHIM_CORE_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/store/store.h"
#include "shim/core/store_worker.h"

/* How long the first attempt may take before its owner goes on without. */
#define RESTORE_READ_MS 1000
/* Of so many bytes, some 15,000 devices, it takes more than 20 ms, for which not all need wait. A
 * smaller one may have as many: the journal of a daemon that was killed. */
#define RESTORE_LARGE_BYTES ((uint64_t)1 << 20)

struct restore_ops {
    /* The rows are the core's. Once, from the loop. */
    void (*restored)(void *user);
    /* Not yet: they cannot be read, or that takes longer than RESTORE_READ_MS, or will take long,
     * since they are large. Once at most, before restored(), from the loop. */
    void (*delayed)(void *user);
    /* Nor soon: they cannot be read, or that takes longer than RESTORE_READ_MS. Once at most,
     * behind delayed() and before restored(), from the loop. */
    void (*given_up)(void *user);
};

/* Embedded in its owner; private. */
struct restore {
    struct devicemgr *core;
    struct store_worker *worker;
    const struct restore_ops *ops;
    void *user;
    uv_timer_t timer;
    bool reading;                       /* in the worker */
    bool delayed, given_up;             /* the owner was told */
    bool lost;                          /* to read: rows may be missing that there once were */
    uint64_t restored_ms;               /* when the core had all rows; to read, too */
    char unread[STORE_ERROR_BYTES_MAX]; /* why it is not read, as it was said last */
    uint64_t pause_ms;                  /* before it is tried again */
    void (*done)(void *user);
};

/* Begins to read the worker's checkpoint. All is borrowed until restore_stop() is done. What the
 * worker says of a read must lead to restore_sized(), restore_rows() and restore_unreadable(). */
void restore_start(struct restore *restore, uv_loop_t *loop, struct devicemgr *core,
                   struct store_worker *worker, const struct restore_ops *ops, void *user);

/* store_worker_ops, as far as it concerns reading. */
void restore_sized(struct restore *restore, uint64_t bytes);
void restore_rows(struct restore *restore, const struct store_worker_rows *rows);
void restore_unreadable(struct restore *restore, const char *error);

/* Closes the timer, then runs `done` from the loop. */
void restore_stop(struct restore *restore, void (*done)(void *user), void *user);

#endif
