/*
 * The checkpoint in libuv's worker, so that no disk blocks the loop: read once, then written.
 */
#ifndef SHIM_CORE_STORE_WORKER_H
#define SHIM_CORE_STORE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "devicemgr/ports.h"
#include "devicemgr/store/store.h"
#include "shim/core/rows_check.h"

struct store_worker;

/* What store_worker_read() found; borrowed until the callback's return. */
struct store_worker_rows {
    const struct devicemgr_record *v;
    size_t len;
    bool made;     /* store_made() */
    bool lost;     /* store_lost_rows() */
    bool rebooted; /* store_rebooted() */
};

/* What store_worker_look() found; borrowed until the callback's return. */
struct store_worker_look {
    const char *error; /* why there is no answer; NULL: there is one */
    struct store_found found;
    size_t rows[DEVICEMGR_RECORD_LOSS]; /* good ones, by kind */
    struct rows_found findings;
    const struct devicemgr_record *records; /* the good ones */
    size_t records_len;
};

struct store_worker_ops {
    /* How large the file is that store_worker_read() has begun to read (0: not known), from the
     * loop, before its end. */
    void (*sized)(void *user, uint64_t bytes);
    /* The ends of store_worker_read(), from the loop: now commits can be made; or the store's words
     * (borrowed until return), and it is to be read again. */
    void (*read)(void *user, const struct store_worker_rows *rows);
    void (*unreadable)(void *user, const char *error);
    /* The end of a commit, from the loop. `error` NULL: durable; else the store's words, borrowed
     * until return. The next commit may be started from here. */
    void (*committed)(void *user, uint64_t commit, const char *error);
    /* Comes right before a committed() that failed: STORE_RESET. */
    void (*reset)(void *user);
};

/* Opens nothing yet. What `options` points to, `ops` and `user` are borrowed until the worker is
 * stopped; options->report runs in the worker's thread. */
struct store_worker *store_worker_new(uv_loop_t *loop, const struct store_options *options,
                                      const struct store_worker_ops *ops, void *user);

/* Opens the store and reads its rows. Once, until read(). */
void store_worker_read(struct store_worker *worker);

/* Starts one commit, after read(); the records are copied before return. One at a time: not again
 * before committed(). */
void store_worker_commit(struct store_worker *worker, uint64_t commit,
                         const struct devicemgr_record *records, size_t records_len);

/* Since when a commit is under way (boot_now_ms()); 0: none is. */
uint64_t store_worker_commit_since_ms(const struct store_worker *worker);

/* Looks at the whole file (store_look()) and whether its rows make sense, to `scratch`
 * (rows_check()), which it takes, between commits: one that is asked for meanwhile waits. Ends in
 * `done`, from the loop; not after a stop. After read(). False: one is under way already, and
 * nothing was taken. */
bool store_worker_look(struct store_worker *worker, struct devicemgr *scratch,
                       void (*done)(void *user, const struct store_worker_look *look), void *user);

/* `done` of the one under way does not come. */
void store_worker_forget_look(struct store_worker *worker);

/* Lets what is under way come to its end (no callback runs), closes the store, frees the
 * worker, then runs `done`: from the loop, or before return if nothing is under way. */
void store_worker_stop(struct store_worker *worker, void (*done)(void *user), void *user);

#endif
