#include "shim/core/store_worker.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/store/store_file.h"
#include "shim/boot_clock.h"
#include "shim/deaths.h"
#include "shim/must.h"
#include "shim/point.h"

struct store_worker {
    uv_loop_t *loop;
    struct store_options options;
    struct store *store; /* NULL: not read yet */
    uint64_t bytes;      /* of its file, before it is read */
    const struct store_worker_ops *ops;
    void *user;

    /* What is under way; all of it is the worker thread's until it is done. */
    uv_work_t work;
    bool busy;
    bool held;                        /* a commit, by the look: `records` are its */
    uint64_t commit;                  /* of a commit */
    uint64_t commit_since_ms;         /* boot_now_ms(); 0: none is under way */
    struct devicemgr_record *records; /* to be committed, or those read */
    size_t records_len, records_size;
    int rc;
    char error[STORE_ERROR_BYTES_MAX];

    /* A look; `scratch` NULL: none is wanted. */
    struct devicemgr *scratch;
    struct devicemgr_record *seen; /* good rows */
    size_t seen_len, seen_size;
    struct store_worker_look look;
    void (*looked)(void *user, const struct store_worker_look *look);
    void *looked_user;

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
    size_t len;
    struct devicemgr_record *records = take_records(worker, &len);

    free_records(records, len); /* of a commit that was held */
    devicemgr_free(worker->scratch);
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

static void on_size_work(uv_work_t *work)
{
    struct store_worker *worker = work->data;
    char path[STORE_PATH_BYTES_MAX];

    worker->bytes = store_file_path(worker->options.dir, path) == 0 ? store_file_bytes(path) : 0;
}

static void on_sized(uv_work_t *work, int status)
{
    struct store_worker *worker = work->data;
    uint64_t bytes = worker->bytes;

    assert(status == 0); /* nobody cancels it */
    worker->busy = false;
    if (worker->stopping) {
        finish(worker);
        return;
    }
    start_work(worker, on_read_work, on_read);
    worker->ops->sized(worker->user, bytes);
}

void store_worker_read(struct store_worker *worker)
{
    assert(!worker->store);
    start_work(worker, on_size_work, on_sized);
}

/* ---- a look ---- */

static void start_held(struct store_worker *worker);

static void note_row(void *user, const struct devicemgr_record *record, bool good)
{
    struct store_worker *worker = user;

    if (!good) {
        rows_found_add(&worker->look.findings, ROWS_FINDING_ROW,
                       "the checksum of a row (%s %s %s) does not fit", record->key[0],
                       record->key[1], record->key[2]);
        return;
    }
    worker->look.rows[record->kind]++;
    if (worker->seen_len == worker->seen_size) {
        worker->seen_size = worker->seen_size ? 2 * worker->seen_size : 64;
        worker->seen = must(realloc(worker->seen, worker->seen_size * sizeof *worker->seen));
    }
    worker->seen[worker->seen_len++] = copy_record(record);
}

static void on_look_work(uv_work_t *work)
{
    struct store_worker *worker = work->data;
    struct store_worker_look *look = &worker->look;

    if (store_look(worker->store, &look->found, note_row, worker, worker->error,
                   sizeof worker->error) < 0)
        look->error = worker->error;
    if (look->found.lost)
        rows_found_add(&look->findings, ROWS_FINDING_LOST, "%s", ROWS_LOST_WORDS);
    if (look->found.words[0] != '\0')
        rows_found_add(&look->findings, ROWS_FINDING_FILE, "%s", look->found.words);
    rows_check(worker->scratch, worker->seen, worker->seen_len, &look->findings);
}

static void on_look_worked(uv_work_t *work, int status)
{
    struct store_worker *worker = work->data;

    assert(status == 0); /* nobody cancels it */
    worker->busy = false;
    devicemgr_free(worker->scratch);
    worker->scratch = NULL;
    worker->look.records = worker->seen;
    worker->look.records_len = worker->seen_len;
    if (!worker->stopping && worker->looked)
        worker->looked(worker->looked_user, &worker->look);
    free_records(worker->seen, worker->seen_len);
    worker->seen = NULL;
    worker->seen_len = worker->seen_size = 0;
    rows_found_fini(&worker->look.findings);
    worker->look = (struct store_worker_look){0};
    if (worker->stopping)
        finish(worker);
    else
        start_held(worker);
}

static void look_if_wanted(struct store_worker *worker)
{
    if (worker->scratch && !worker->busy && !worker->stopping)
        start_work(worker, on_look_work, on_look_worked);
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
    worker->commit_since_ms = 0;
    if (worker->stopping) {
        finish(worker);
        return;
    }
    if (worker->rc == STORE_RESET)
        worker->ops->reset(worker->user);
    worker->ops->committed(worker->user, worker->commit, worker->rc < 0 ? worker->error : NULL);
    look_if_wanted(worker);
}

static void start_held(struct store_worker *worker)
{
    if (!worker->held)
        return;
    worker->held = false;
    start_work(worker, on_work, on_worked);
}

void store_worker_commit(struct store_worker *worker, uint64_t commit,
                         const struct devicemgr_record *records, size_t records_len)
{
    assert(worker->store && !worker->held && (!worker->busy || worker->scratch));
    worker->records = must(calloc(records_len + 1, sizeof *worker->records));
    for (size_t i = 0; i < records_len; i++)
        worker->records[i] = copy_record(&records[i]);
    worker->records_len = records_len;
    worker->commit = commit;
    worker->commit_since_ms = boot_now_ms();
    worker->held = worker->scratch != NULL;
    if (!worker->held)
        start_work(worker, on_work, on_worked);
}

uint64_t store_worker_commit_since_ms(const struct store_worker *worker)
{
    return worker->commit_since_ms;
}

bool store_worker_look(struct store_worker *worker, struct devicemgr *scratch,
                       void (*done)(void *user, const struct store_worker_look *look), void *user)
{
    assert(worker->store && !worker->stopping);
    if (worker->scratch)
        return false;
    worker->scratch = scratch;
    worker->looked = done;
    worker->looked_user = user;
    look_if_wanted(worker);
    return true;
}

void store_worker_forget_look(struct store_worker *worker)
{
    worker->looked = NULL;
}

void store_worker_stop(struct store_worker *worker, void (*done)(void *user), void *user)
{
    worker->stopping = true;
    worker->done = done;
    worker->done_user = user;
    if (!worker->busy)
        finish(worker);
}
