#include "shim/control/releasing.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/operator.h"
#include "shim/boot_clock.h"
#include "shim/control/list.h"
#include "shim/must.h"

struct releasing {
    struct host *host;
    struct asked_book *asked;
};

struct releasing *releasing_new(struct host *host, struct asked_book *asked)
{
    struct releasing *releasing = must(calloc(1, sizeof *releasing));

    releasing->host = host;
    releasing->asked = asked;
    return releasing;
}

void releasing_free(struct releasing *releasing)
{
    free(releasing);
}

/* ---- answering ---- */

/* A pod's uid is that pod, whatever others are called, as where it is released. */
static void keep_meant(Control__V1__ReleaseResponse *response, const char *pod)
{
    size_t kept = 0;

    for (size_t i = 0; i < response->n_rows; i++) {
        if (strcmp(response->rows[i]->pod_uid, pod) == 0)
            response->rows[kept++] = response->rows[i];
    }
    if (kept > 0)
        response->n_rows = kept;
}

/* What is in the way of one that is only to be told is no error, and what it has is told with
 * it. */
static void answer_dry(const struct releasing *releasing, const struct asked *asked,
                       const struct devicemgr_steered *steered)
{
    Control__V1__ListRequest request = CONTROL__V1__LIST_REQUEST__INIT;
    Control__V1__ReleaseResponse response = CONTROL__V1__RELEASE_RESPONSE__INIT;
    const struct list_from from = {.core = host_core(releasing->host)};
    const Control__V1__AllocationsResponse *page;
    struct list list;

    request.pod = ((const Control__V1__ReleaseRequest *)asked->request)->pod;
    if (!list_allocations(&list, &from, &request))
        abort(); /* a first page can be made */
    page = (const void *)list.response;
    response.rows = page->rows;
    response.n_rows = page->n_rows;
    response.more = page->n_next > 0;
    keep_meant(&response, request.pod);
    *(steered->code == RPC_OK ? &response.text : &response.refused) =
        (char *)(uintptr_t)steered->message;
    rpc_incoming_answer(asked->call, &response.base);
    list_fini(&list);
}

static void answer_real(const struct asked *asked, const struct devicemgr_steered *steered)
{
    Control__V1__ReleaseResponse response = CONTROL__V1__RELEASE_RESPONSE__INIT;

    response.text = (char *)(uintptr_t)steered->message;
    if (steered->code != RPC_OK)
        rpc_incoming_finish(asked->call, steered->code, steered->message);
    else
        rpc_incoming_answer(asked->call, &response.base);
}

static void on_done(void *user, const struct asked *asked, const struct devicemgr_steered *steered)
{
    const Control__V1__ReleaseRequest *request = (const void *)asked->request;

    if (!asked->call)
        return; /* its client has gone */
    if (request->dry_run && steered->code != RPC_NOT_FOUND)
        answer_dry(user, asked, steered);
    else
        answer_real(asked, steered);
}

/* ---- asking ---- */

void releasing_call(struct releasing *releasing, struct rpc_incoming *call,
                    const Control__V1__ReleaseRequest *request)
{
    const struct asked *asked =
        asked_begin(releasing->asked, call, &request->base, on_done, releasing);
    char by[ASKED_BY_BYTES_MAX];

    if (!asked)
        return;
    asked_by(asked, request->reason, by);
    devicemgr_release(host_core(releasing->host), boot_now_ms(), asked->number, request->pod, by,
                      request->dry_run);
    host_kick(releasing->host);
}
