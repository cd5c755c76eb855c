#include "shim/control/steering.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devicemgr/operator.h"
#include "shim/boot_clock.h"
#include "shim/must.h"

struct steering {
    struct host *host;
    struct events *events;
    struct asked_book *asked;
};

struct steering *steering_new(struct host *host, struct events *events, struct asked_book *asked)
{
    struct steering *steering = must(calloc(1, sizeof *steering));

    steering->host = host;
    steering->events = events;
    steering->asked = asked;
    return steering;
}

void steering_free(struct steering *steering)
{
    free(steering);
}

/* ---- changing ---- */

static uint64_t now_s(void)
{
    return (uint64_t)time(NULL);
}

/* A taint is of one device; "" is none, and is refused as that. */
static const char *device_of(const Control__V1__SteerRequest *request)
{
    return request->n_ids == 1 ? request->ids[0] : "";
}

static void ask(const struct steering *steering, uint64_t number,
                const Control__V1__SteerRequest *request)
{
    struct devicemgr *core = host_core(steering->host);
    const char *const *ids = (const char *const *)request->ids;
    uint64_t now_ms = boot_now_ms();

    switch (request->what) {
    case CONTROL__V1__STEER_REQUEST__WHAT__CORDON:
        devicemgr_cordon(core, now_ms, number, request->resource, ids, request->n_ids,
                         request->reason, now_s());
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__UNCORDON:
        devicemgr_uncordon(core, now_ms, number, request->resource, ids, request->n_ids);
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW:
        devicemgr_withdraw(core, now_ms, number, request->resource, request->reason, now_s());
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW_UNDO:
        devicemgr_withdraw_undo(core, now_ms, number, request->resource);
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__TAINT:
        devicemgr_taint(core, now_ms, number, request->resource, device_of(request), request->taint,
                        request->for_ms, request->reason, now_s(), request->dry);
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__UNTAINT:
        devicemgr_untaint(core, now_ms, number, request->resource, device_of(request),
                          request->taint);
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__GRACE_EXTEND:
        devicemgr_grace_extend(core, now_ms, number, request->resource, request->more_ms, now_s());
        break;
    default:
        devicemgr_grace_end(core, now_ms, number, request->resource, now_s());
        break;
    }
}

/* Who did it, and why. */
static void say(struct steering *steering, const struct asked *asked)
{
    static const char *const KINDS[] = {
        [CONTROL__V1__STEER_REQUEST__WHAT__CORDON] = "cordoned",
        [CONTROL__V1__STEER_REQUEST__WHAT__UNCORDON] = "uncordoned",
        [CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW] = "withdrawn",
        [CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW_UNDO] = "given-back",
        [CONTROL__V1__STEER_REQUEST__WHAT__GRACE_EXTEND] = "grace-extended",
        [CONTROL__V1__STEER_REQUEST__WHAT__GRACE_END] = "grace-ended",
        [CONTROL__V1__STEER_REQUEST__WHAT__TAINT] = "tainted",
        [CONTROL__V1__STEER_REQUEST__WHAT__UNTAINT] = "untainted",
    };
    const Control__V1__SteerRequest *request = (const void *)asked->request;
    char text[ASKED_BY_BYTES_MAX];
    const struct event_said said = {.kind = KINDS[request->what],
                                    .resource = request->resource,
                                    .ids = (const char *const *)request->ids,
                                    .ids_len = request->n_ids,
                                    .ids_total = request->n_ids,
                                    .text = text};

    if (request->taint[0] != '\0')
        snprintf(text, sizeof text, "by uid %u: %s%s%s", asked->uid, request->taint,
                 request->reason[0] != '\0' ? ": " : "", request->reason);
    else if (request->more_ms > 0)
        snprintf(text, sizeof text, "by uid %u: %" PRIu64 " s longer", asked->uid,
                 request->more_ms / 1000);
    else
        asked_by(asked, request->reason, text);
    events_say(steering->events, &said);
}

static void answer(struct rpc_incoming *call, const struct devicemgr_steered *steered)
{
    Control__V1__SteerResponse response = CONTROL__V1__STEER_RESPONSE__INIT;

    response.text = (char *)(uintptr_t)steered->message;
    if (steered->code != RPC_OK)
        rpc_incoming_finish(call, steered->code, steered->message);
    else
        rpc_incoming_answer(call, &response.base);
}

static void on_done(void *user, const struct asked *asked, const struct devicemgr_steered *steered)
{
    struct steering *steering = user;

    if (steered->changed)
        say(steering, asked);
    if (asked->call)
        answer(asked->call, steered);
}

void steering_call(struct steering *steering, struct rpc_incoming *call,
                   const Control__V1__SteerRequest *request)
{
    const struct asked *asked;

    if (request->what > CONTROL__V1__STEER_REQUEST__WHAT__UNTAINT) {
        rpc_incoming_finish(call, RPC_UNIMPLEMENTED, "of another release");
        return;
    }
    asked = asked_begin(steering->asked, call, &request->base, on_done, steering);
    if (!asked)
        return;
    ask(steering, asked->number, request);
    host_kick(steering->host);
}
