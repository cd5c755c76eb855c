#include "shim/control/releasing.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/operator.h"
#include "shim/boot_clock.h"
#include "shim/control/list.h"
#include "shim/must.h"

/* What is asked of the core here has numbers from there on, and what steering.c asks others. */
#define NUMBERS ((uint64_t)1 << 63)

/* One that the core has not answered yet. */
struct pending {
    struct releasing *releasing;
    uint64_t number;
    struct rpc_incoming *call;
    char *pod;
    bool dry;
    struct pending *prev, *next;
};

struct releasing {
    struct host *host;
    uint64_t last_number;
    struct pending *pending;
};

struct releasing *releasing_new(struct host *host)
{
    struct releasing *releasing = must(calloc(1, sizeof *releasing));

    releasing->host = host;
    releasing->last_number = NUMBERS;
    return releasing;
}

static void forget(struct pending *pending)
{
    DL_DELETE(pending->releasing->pending, pending);
    free(pending->pod);
    free(pending);
}

void releasing_free(struct releasing *releasing)
{
    struct pending *pending, *next;

    DL_FOREACH_SAFE(releasing->pending, pending, next)
    {
        forget(pending);
    }
    free(releasing);
}

/* ---- asking ---- */

static void on_cancelled(void *user)
{
    forget(user);
}

void releasing_call(struct releasing *releasing, struct rpc_incoming *call,
                    const Control__V1__ReleaseRequest *request)
{
    struct pending *pending = must(calloc(1, sizeof *pending));

    pending->releasing = releasing;
    pending->number = ++releasing->last_number;
    pending->call = call;
    pending->pod = must(strdup(request->pod));
    pending->dry = request->dry_run;
    DL_APPEND(releasing->pending, pending);
    rpc_incoming_on_cancel(call, on_cancelled, pending);
    devicemgr_release(host_core(releasing->host), boot_now_ms(), pending->number, request->pod,
                      request->dry_run);
    host_kick(releasing->host);
}

/* ---- answering ---- */

/* What is in the way of one that is only to be told is no error, and what it has is told with it. */
static void answer_dry(const struct pending *pending, const struct devicemgr_steered *steered)
{
    Control__V1__ListRequest request = CONTROL__V1__LIST_REQUEST__INIT;
    Control__V1__ReleaseResponse response = CONTROL__V1__RELEASE_RESPONSE__INIT;
    const Control__V1__AllocationsResponse *page;
    struct list list;

    request.pod = pending->pod;
    if (!list_allocations(&list, host_core(pending->releasing->host), &request))
        abort(); /* a first page can be made */
    page = (const void *)list.response;
    response.rows = page->rows;
    response.n_rows = page->n_rows;
    response.more = page->n_next > 0;
    *(steered->code == RPC_OK ? &response.text : &response.refused) =
        (char *)(uintptr_t)steered->message;
    rpc_incoming_answer(pending->call, &response.base);
    list_fini(&list);
}

static void answer_real(const struct pending *pending, const struct devicemgr_steered *steered)
{
    Control__V1__ReleaseResponse response = CONTROL__V1__RELEASE_RESPONSE__INIT;

    response.text = (char *)(uintptr_t)steered->message;
    if (steered->code != RPC_OK)
        rpc_incoming_finish(pending->call, steered->code, steered->message);
    else
        rpc_incoming_answer(pending->call, &response.base);
}

bool releasing_done(struct releasing *releasing, uint64_t number,
                    const struct devicemgr_steered *steered)
{
    struct pending *pending = releasing->pending;

    while (pending && pending->number != number)
        pending = pending->next;
    if (pending && pending->dry && steered->code != RPC_NOT_FOUND)
        answer_dry(pending, steered);
    else if (pending)
        answer_real(pending, steered);
    if (pending) /* else its client has gone */
        forget(pending);
    return number > NUMBERS;
}
