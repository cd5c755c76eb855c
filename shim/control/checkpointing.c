#include "shim/control/checkpointing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "cri-proto/control_v1.pb-c.h"
#include "shim/must.h"

/* One that waits for the look that is under way. */
struct asker {
    struct checkpointing *checkpointing;
    struct rpc_incoming *call;
    struct asker *prev, *next;
};

struct checkpointing {
    struct host *host;
    const char *state_dir;
    struct asker *askers;
    bool looking;
};

struct checkpointing *checkpointing_new(struct host *host, const char *state_dir)
{
    struct checkpointing *checkpointing = must(calloc(1, sizeof *checkpointing));

    checkpointing->host = host;
    checkpointing->state_dir = state_dir;
    return checkpointing;
}

static void forget(struct asker *asker)
{
    DL_DELETE(asker->checkpointing->askers, asker);
    free(asker);
}

void checkpointing_free(struct checkpointing *checkpointing)
{
    while (checkpointing->askers)
        forget(checkpointing->askers);
    if (checkpointing->looking)
        host_forget_look(checkpointing->host);
    free(checkpointing);
}

static void on_cancelled(void *user)
{
    forget(user);
}

/* ---- answering ---- */

static void add_finding(Control__V1__CheckpointVerifyResponse *response,
                        const struct rows_finding *finding)
{
    static const char *const KINDS[] = {
        [ROWS_FINDING_FILE] = "file", [ROWS_FINDING_ROW] = "row", [ROWS_FINDING_DEVICE] = "device"};
    Control__V1__CheckpointFinding *out = must(malloc(sizeof *out));

    control__v1__checkpoint_finding__init(out);
    out->kind = (char *)(uintptr_t)KINDS[finding->kind];
    out->text = finding->text;
    response->findings[response->n_findings++] = out;
}

static void fill(Control__V1__CheckpointVerifyResponse *response,
                 const struct store_worker_look *look)
{
    const struct rows_found *found = &look->findings;

    response->schema_version = (uint32_t)look->found.version;
    response->resources = look->rows[DEVICEMGR_RECORD_RESOURCE];
    response->allocations = look->rows[DEVICEMGR_RECORD_ALLOCATION];
    response->pods = look->rows[DEVICEMGR_RECORD_POD];
    response->orders = look->rows[DEVICEMGR_RECORD_ORDER];
    response->sound = found->against == 0;
    response->findings_total = found->total;
    response->findings = must(calloc(found->len + 1, sizeof *response->findings));
    for (size_t i = 0; i < found->len; i++)
        add_finding(response, &found->v[i]);
}

static void answer(struct rpc_incoming *call, const struct store_worker_look *look,
                   const Control__V1__CheckpointVerifyResponse *response)
{
    if (look->error)
        rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, look->error);
    else if (rpc_incoming_send(call, &response->base) < 0)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too much waits for this client already");
    else
        rpc_incoming_finish(call, RPC_OK, NULL);
}

static void on_looked(void *user, const struct store_worker_look *look)
{
    struct checkpointing *checkpointing = user;
    Control__V1__CheckpointVerifyResponse response = CONTROL__V1__CHECKPOINT_VERIFY_RESPONSE__INIT;
    char path[PATH_MAX];

    checkpointing->looking = false;
    snprintf(path, sizeof path, "%s/" STORE_FILE, checkpointing->state_dir);
    response.path = path;
    fill(&response, look);
    while (checkpointing->askers) {
        struct rpc_incoming *call = checkpointing->askers->call;

        forget(checkpointing->askers);
        answer(call, look, &response);
    }
    for (size_t i = 0; i < response.n_findings; i++)
        free(response.findings[i]);
    free(response.findings);
}

/* ---- asking ---- */

void checkpointing_verify(struct checkpointing *checkpointing, struct rpc_incoming *call)
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
    DL_APPEND(checkpointing->askers, asker);
    rpc_incoming_on_cancel(call, on_cancelled, asker);
}
