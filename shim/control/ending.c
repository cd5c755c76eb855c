#include "shim/control/ending.h"

#include <time.h>

#include "devicemgr/operator.h"
#include "shim/boot_clock.h"

static void on_done(void *user, const struct asked *asked, const struct devicemgr_steered *steered)
{
    Control__V1__EndResponse response = CONTROL__V1__END_RESPONSE__INIT;

    (void)user;
    response.text = (char *)(uintptr_t)steered->message;
    if (!asked->call)
        return; /* its client has gone */
    if (steered->code != RPC_OK)
        rpc_incoming_finish(asked->call, steered->code, steered->message);
    else
        rpc_incoming_answer(asked->call, &response.base);
}

void ending_call(struct host *host, struct asked_book *book, struct rpc_incoming *call,
                 const Control__V1__EndRequest *request)
{
    const struct asked *asked = asked_begin(book, call, &request->base, on_done, NULL);
    uint64_t grace_ms = request->own_grace ? DEVICEMGR_POD_GRACE : request->grace_ms;

    if (!asked)
        return;
    if (request->cancel)
        devicemgr_end_cancel(host_core(host), boot_now_ms(), asked->number, request->pod);
    else
        devicemgr_end(host_core(host), boot_now_ms(), asked->number, request->pod, grace_ms,
                      request->here, request->reason, (uint64_t)time(NULL));
    host_kick(host);
}
