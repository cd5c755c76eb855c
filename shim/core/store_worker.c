#include "shim/core/store_worker.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/deaths.h"
#include "shim/must.h"
#include "shim/point.h"

struct store_worker {
    uv_loop_t *loop;
    struct store_options options;
    struct store *store; /* NULL: not read yet */
    const struct store_worker_ops *ops;
    void *user;

    /* What is under way; all of it is the worker thread's until it is done. */
    uv_work_t work;
    bool busy;
    uint64_t commit;                  /* of a commit */
    struct devicemgr_record *records; /* to be committed, or those read */
    size_t records_len, records_size;
    int rc;
    char error[STORE_ERROR_BYTES_MAX];

    bool stopping;
    void (*done)(void *user);
    void *done_user;
};

struct store_worker *store_worker_new(uv_loop_t *loop, const struct store_options *options,
                                      const struct store_worker_ops *ops, void *user)
{
    struct store_worker *worker = must(calloc(1, sizeof *worker));

    worker->loop = loop;
    worker->options = *options;
    worker->ops = ops;
    worker->user = user;
    worker->work.data = worker;
    return worker;
}

static struct devicemgr_record copy_record(const struct devicemgr_record *from)
{
    struct devicemgr_record to = *from;

    for (size_t i = 0; i < sizeof to.key / sizeof *to.key; i++)
        to.key[i] = must(strdup(from->key[i]));
    if (from->value) {
        void *value = must(malloc(from->value_bytes + 1)); /* never a malloc of nothing */

        memcpy(value, from->value, from->value_bytes);
        to.value = value;
    }
    return to;
}

static void free_records(struct devicemgr_record *records, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        for (size_t k = 0; k < 3; k++)
            free((char *)records[i].key[k]);
        free((void *)records[i].value);
    }
    free(records);
}

/* The caller frees them. */
static struct devicemgr_record *take_records(struct store_worker *worker, size_t *len)
{
    struct devicemgr_record *records = worker->records;

    *len = worker->records_len;
    worker->records = NULL;
    worker->records_len = worker->records_size = 0;
    return records;
}

static void start_work(struct store_worker *worker, uv_work_cb work, uv_after_work_cb worked)
{
    int rc;

    assert(!worker->busy && !worker->stopping);
    worker->busy = true;
    rc = uv_queue_work(worker->loop, &worker->work, work, worked);
    assert(rc == 0); /* fails only without a function */
}

static void finish(struct store_worker *worker)
{
    void (*done)(void *user) = worker->done;
    void *user = worker->done_user;

    store_close(worker->store);
    free(worker);
    done(user);
}

/* ---- reading ---- */

static void keep_record(void *user, const struct devicemgr_record *record)
{
    struct store_worker *worker = user;

    if (worker->records_len == worker->records_size) {
        worker->records_size = worker->records_size ? 2 * worker->records_size : 64;
        worker->records =
            must(realloc(worker->records, worker->records_size * sizeof *worker->records));
    }
    worker->records[worker->records_len++] = copy_record(record);
}

static void on_read_work(uv_work_t *work)
{
    struct store_worker *worker = work->data;
    uint64_t before = deaths_enter(DEATHS_CHECKPOINT);

    worker->rc = store_open(&worker->options, &worker->store, worker->error, sizeof worker->error);
    if (worker->rc == 0)
        store_load(worker->store, keep_record, worker);
    deaths_enter(before);
}

static void tell_read(struct store_worker *worker, const struct devicemgr_record *records,
                      size_t len)
{
    const struct store_worker_rows rows = {.v = records,
                                           .len = len,
                                           .made = store_made(worker->store),
                                           .lost = store_lost_rows(worker->store),
                                           .rebooted = store_rebooted(worker->store)};

    worker->ops->read(worker->user, &rows);
}

static void on_read(uv_work_t *work, int status)
{
    struct store_worker *worker = work->data;
    size_t len;
    struct devicemgr_record *records = take_records(worker, &len);

    assert(status == 0); /* nobody cancels it */
    worker->busy = false;
    if (worker->stopping)
        finish(worker);
    else if (worker->rc < 0)
        worker->ops->unreadable(worker->user, worker->error);
    else
        tell_read(worker, records, len);
    free_records(records, len);
}

void store_worker_read(struct store_worker *worker)
{
    assert(!worker->store);
    start_work(worker, on_read_work, on_read);
}

/* ---- commits ---- */

static void on_work(uv_work_t *work)
{
    struct store_worker *worker = work->data;

    POINT("before commit");
    worker->rc = store_commit(worker->store, worker->records, worker->records_len, worker->error,
                              sizeof worker->error);
    POINT("committed");
}

static void on_worked(uv_work_t *work, int status)
{
    struct store_worker *worker = work->data;
    size_t len;
    struct devicemgr_record *records = take_records(worker, &len);

    assert(status == 0); /* nobody cancels it */
    free_records(records, len);
    worker->busy = false;
    if (worker->stopping) {
        finish(worker);
        return;
    }
    if (worker->rc == STORE_RESET)
        worker->ops->reset(worker->user);
    worker->ops->committed(worker->user, worker->commit, worker->rc < 0 ? worker->error : NULL);
}

void store_worker_commit(struct store_worker *worker, uint64_t commit,
                         const struct devicemgr_record *records, size_t records_len)
{
    assert(worker->store && !worker->busy);
    worker->records = must(calloc(records_len + 1, sizeof *worker->records));
    for (size_t i = 0; i < records_len; i++)
        worker->records[i] = copy_record(&records[i]);
    worker->records_len = records_len;
    worker->commit = commit;
    start_work(worker, on_work, on_worked);
}

void store_worker_stop(struct store_worker *worker, void (*done)(void *user), void *user)
{
    worker->stopping = true;
    worker->done = done;
    worker->done_user = user;
    if (!worker->busy)
        finish(worker);
}
