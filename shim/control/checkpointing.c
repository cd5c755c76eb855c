#include "shim/control/checkpointing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/control_v1.pb-c.h"
#include "shim/control/limits.h"
#include "shim/must.h"

/* A row as it is sent. */
struct row {
    const char *kind; /* static */
    uint8_t *value;
    size_t bytes;
};

/* One that waits for the look that is under way; or, of an export, for its client to read. */
struct asker {
    struct checkpointing *checkpointing;
    struct rpc_incoming *call;
    bool exports;
    struct row *rows; /* NULL: the look is not through */
    size_t rows_len, sent;
    struct asker *prev, *next;
};

struct checkpointing {
    struct host *host;
    const char *state_dir;
    struct asker *askers;
    bool looking;
    uv_timer_t *timer; /* of a client that does not read */
};

static void on_timer(uv_timer_t *timer);

struct checkpointing *checkpointing_new(uv_loop_t *loop, struct host *host, const char *state_dir)
{
    struct checkpointing *checkpointing = must(calloc(1, sizeof *checkpointing));

    checkpointing->host = host;
    checkpointing->state_dir = state_dir;
    checkpointing->timer = must(malloc(sizeof *checkpointing->timer));
    uv_timer_init(loop, checkpointing->timer);
    checkpointing->timer->data = checkpointing;
    return checkpointing;
}

static void forget(struct asker *asker)
{
    DL_DELETE(asker->checkpointing->askers, asker);
    for (size_t i = 0; asker->rows && i < asker->rows_len; i++)
        free(asker->rows[i].value);
    free(asker->rows);
    free(asker);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

void checkpointing_free(struct checkpointing *checkpointing)
{
    while (checkpointing->askers)
        forget(checkpointing->askers);
    if (checkpointing->looking)
        host_forget_look(checkpointing->host);
    uv_close((uv_handle_t *)checkpointing->timer, on_closed);
    free(checkpointing);
}

static void on_cancelled(void *user)
{
    forget(user);
}

/* ---- what is found ---- */

static void add_finding(Control__V1__CheckpointVerifyResponse *response,
                        const struct rows_finding *finding)
{
    static const char *const KINDS[] = {[ROWS_FINDING_FILE] = "file",
                                        [ROWS_FINDING_ROW] = "row",
                                        [ROWS_FINDING_LOST] = "lost",
                                        [ROWS_FINDING_DEVICE] = "device"};
    Control__V1__CheckpointFinding *out = must(malloc(sizeof *out));

    control__v1__checkpoint_finding__init(out);
    out->kind = (char *)(uintptr_t)KINDS[finding->kind];
    out->text = finding->text;
    response->findings[response->n_findings++] = out;
}

static void answer_findings(const struct asker *asker, const struct store_worker_look *look)
{
    Control__V1__CheckpointVerifyResponse response = CONTROL__V1__CHECKPOINT_VERIFY_RESPONSE__INIT;
    const struct rows_found *found = &look->findings;
    char path[STORE_PATH_BYTES_MAX];
    int rc = store_file_path(asker->checkpointing->state_dir, path);

    assert(rc == 0); /* it was looked at */
    response.path = path;
    response.schema_version = (uint32_t)look->found.version;
    response.resources = look->rows[DEVICEMGR_RECORD_RESOURCE];
    response.allocations = look->rows[DEVICEMGR_RECORD_ALLOCATION];
    response.pods = look->rows[DEVICEMGR_RECORD_POD];
    response.orders = look->rows[DEVICEMGR_RECORD_ORDER];
    response.drivers = look->rows[DEVICEMGR_RECORD_DRIVER];
    response.claims = look->rows[DEVICEMGR_RECORD_CLAIM];
    response.endings = look->rows[DEVICEMGR_RECORD_ENDING];
    response.sound = found->against == 0;
    response.findings_total = found->total;
    response.findings = must(calloc(found->len + 1, sizeof *response.findings));
    for (size_t i = 0; i < found->len; i++)
        add_finding(&response, &found->v[i]);
    rpc_incoming_answer(asker->call, &response.base);
    for (size_t i = 0; i < response.n_findings; i++)
        free(response.findings[i]);
    free(response.findings);
}

/* ---- the rows ---- */

/* What a plugin gave to a container has its environment in it: nobody's but the container's. */
static struct row row_of_allocation(const struct devicemgr_record *record)
{
    struct row row = {.kind = "allocation"};
    Checkpoint__V1__Allocation *allocation =
        checkpoint__v1__allocation__unpack(NULL, record->value_bytes, record->value);

    if (!allocation)
        return row; /* it makes no sense, and is a finding */
    free(allocation->options.data);
    allocation->options = (ProtobufCBinaryData){0};
    row.value = must(malloc(checkpoint__v1__allocation__get_packed_size(allocation) + 1));
    row.bytes = checkpoint__v1__allocation__pack(allocation, row.value);
    checkpoint__v1__allocation__free_unpacked(allocation, NULL);
    return row;
}

static struct row row_of(const struct devicemgr_record *record)
{
    static const char *const KINDS[] = {
        [DEVICEMGR_RECORD_RESOURCE] = "resource", [DEVICEMGR_RECORD_POD] = "pod",
        [DEVICEMGR_RECORD_ORDER] = "order",       [DEVICEMGR_RECORD_DRIVER] = "driver",
        [DEVICEMGR_RECORD_CLAIM] = "claim",       [DEVICEMGR_RECORD_ENDING] = "ending"};
    struct row row = {0};

    if (record->kind == DEVICEMGR_RECORD_ALLOCATION)
        return row_of_allocation(record);
    row.kind = KINDS[record->kind];
    row.value = must(malloc(record->value_bytes + 1));
    memcpy(row.value, record->value, record->value_bytes);
    row.bytes = record->value_bytes;
    return row;
}

static int send_row(struct rpc_incoming *call, const struct row *row)
{
    Control__V1__CheckpointExportResponse response = CONTROL__V1__CHECKPOINT_EXPORT_RESPONSE__INIT;

    response.kind = (char *)(uintptr_t)row->kind;
    response.value.data = row->value;
    response.value.len = row->bytes;
    return rpc_incoming_send(call, &response.base);
}

/* As much as the client reads; it is gone with the last row. */
static void send_rows(struct asker *asker)
{
    struct checkpointing *checkpointing = asker->checkpointing;

    while (asker->sent < asker->rows_len) {
        const struct row *row = &asker->rows[asker->sent];

        if (rpc_incoming_queued(asker->call) > CONTROL_EXPORT_QUEUE_BYTES) {
            uv_timer_start(checkpointing->timer, on_timer, CONTROL_EXPORT_LOOK_MS, 0);
            return;
        }
        if (row->value && send_row(asker->call, row) < 0) {
            rpc_incoming_finish(asker->call, RPC_RESOURCE_EXHAUSTED,
                                "a row is too large, or too much waits for this client");
            forget(asker);
            return;
        }
        asker->sent++;
    }
    rpc_incoming_finish(asker->call, RPC_OK, NULL);
    forget(asker);
}

static void on_timer(uv_timer_t *timer)
{
    const struct checkpointing *checkpointing = timer->data;
    struct asker *asker, *next;

    DL_FOREACH_SAFE(checkpointing->askers, asker, next) {
        if (asker->rows)
            send_rows(asker);
    }
}

static void begin_rows(struct asker *asker, const struct store_worker_look *look)
{
    Control__V1__CheckpointExportResponse first = CONTROL__V1__CHECKPOINT_EXPORT_RESPONSE__INIT;

    first.schema_version = (uint32_t)look->found.version;
    first.sound = look->findings.against == 0;
    asker->rows = must(calloc(look->records_len + 1, sizeof *asker->rows));
    for (size_t i = 0; i < look->records_len; i++) {
        if (look->records[i].kind !=
            DEVICEMGR_RECORD_SHUTDOWN) /* of this boot, and of no other node */
            asker->rows[asker->rows_len++] = row_of(&look->records[i]);
    }
    if (rpc_incoming_send(asker->call, &first.base) == 0) {
        send_rows(asker);
        return;
    }
    rpc_incoming_finish(asker->call, RPC_RESOURCE_EXHAUSTED,
                        "too much waits for this client already");
    forget(asker);
}

/* ---- asking ---- */

static void on_looked(void *user, const struct store_worker_look *look)
{
    struct checkpointing *checkpointing = user;
    struct asker *asker, *next;

    checkpointing->looking = false;
    DL_FOREACH_SAFE(checkpointing->askers, asker, next) {
        if (asker->rows)
            continue; /* of a look before */
        if (asker->exports && !look->error) {
            begin_rows(asker, look);
            continue;
        }
        if (look->error)
            rpc_incoming_finish(asker->call, RPC_FAILED_PRECONDITION, look->error);
        else
            answer_findings(asker, look);
        forget(asker);
    }
}

static void ask(struct checkpointing *checkpointing, struct rpc_incoming *call, bool exports)
{
    struct asker *asker;

    if (!checkpointing->looking &&
        !host_look_at_checkpoint(checkpointing->host, on_looked, checkpointing)) {
        rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, "the checkpoint is not read yet");
        return;
    }
    checkpointing->looking = true;
    asker = must(calloc(1, sizeof *asker));
    asker->checkpointing = checkpointing;
    asker->call = call;
    asker->exports = exports;
    DL_APPEND(checkpointing->askers, asker);
    rpc_incoming_on_cancel(call, on_cancelled, asker);
}

void checkpointing_verify(struct checkpointing *checkpointing, struct rpc_incoming *call)
{
    ask(checkpointing, call, false);
}

void checkpointing_export(struct checkpointing *checkpointing, struct rpc_incoming *call)
{
    const struct asker *asker = checkpointing->askers;

    while (asker && !asker->exports)
        asker = asker->next;
    if (asker)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "another export is under way");
    else
        ask(checkpointing, call, true);
}
