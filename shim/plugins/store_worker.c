#include "shim/plugins/store_worker.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

struct store_worker {
    uv_loop_t *loop;
    struct store *store;
    const struct store_worker_ops *ops;
    void *user;

    /* The commit under way; the worker thread reads the records and writes rc and error. */
    uv_work_t work;
    bool busy;
    uint64_t commit;
    struct devicemgr_record *records;
    size_t records_len;
    int rc;
    char error[STORE_ERROR_BYTES_MAX];

    bool stopping;
    void (*done)(void *user);
    void *done_user;
};

struct store_worker *store_worker_new(uv_loop_t *loop, struct store *store,
                                      const struct store_worker_ops *ops, void *user)
{
    struct store_worker *worker = must(calloc(1, sizeof *worker));

    worker->loop = loop;
    worker->store = store;
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

static void free_records(struct store_worker *worker)
{
    for (size_t i = 0; i < worker->records_len; i++) {
        for (size_t k = 0; k < 3; k++)
            free((char *)worker->records[i].key[k]);
        free((void *)worker->records[i].value);
    }
    free(worker->records);
    worker->records = NULL;
    worker->records_len = 0;
}

static void finish(struct store_worker *worker)
{
    void (*done)(void *user) = worker->done;
    void *user = worker->done_user;

    store_close(worker->store);
    free(worker);
    done(user);
}

static void on_work(uv_work_t *work)
{
    struct store_worker *worker = work->data;

    worker->rc = store_commit(worker->store, worker->records, worker->records_len, worker->error,
                              sizeof worker->error);
}

static void on_worked(uv_work_t *work, int status)
{
    struct store_worker *worker = work->data;

    assert(status == 0); /* nobody cancels it */
    free_records(worker);
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
    int rc;

    assert(!worker->busy && !worker->stopping);
    worker->records = must(calloc(records_len + 1, sizeof *worker->records));
    for (size_t i = 0; i < records_len; i++)
        worker->records[i] = copy_record(&records[i]);
    worker->records_len = records_len;
    worker->commit = commit;
    worker->busy = true;
    rc = uv_queue_work(worker->loop, &worker->work, on_work, on_worked);
    assert(rc == 0); /* fails only without a function */
}

void store_worker_stop(struct store_worker *worker, void (*done)(void *user), void *user)
{
    worker->stopping = true;
    worker->done = done;
    worker->done_user = user;
    if (!worker->busy)
        finish(worker);
}
