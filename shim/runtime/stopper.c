#include "shim/runtime/stopper.h"

#include <stdlib.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/must.h"
#include "shim/rpc/numbered.h"
#include "shim/rpc/rpc.h"
#include "shim/stopping.h"

struct stopper {
    uv_loop_t *loop;
    const char *endpoint;
    const struct stopper_ops *ops;
    void *user;
    struct rpc_channel *channel; /* NULL: the next stop makes it */
    struct rpc_channel *before;  /* takes no more of them, and has some yet; NULL: none */
    struct numbered_calls calls;
    struct stopping stopping; /* its calls */
};

static const struct numbered_method STOP = {CRI_STOP_CONTAINER_PATH,
                                            &runtime__v1__stop_container_response__descriptor};
static const struct numbered_method STOP_SANDBOX = {
    CRI_STOP_POD_SANDBOX_PATH, &runtime__v1__stop_pod_sandbox_response__descriptor};

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct stopper *stopper = user;

    (void)reason; /* each stop was told */
    if (channel == stopper->before)
        stopper->before = NULL;
    else
        stopper->channel = NULL;
    rpc_channel_close(channel);
}

static void connect_to_runtime(struct stopper *stopper);

/* A runtime that goes away keeps a connection until the stops on it are through. */
static struct rpc_channel *on_instead(struct rpc_channel *channel, void *user)
{
    struct stopper *stopper = user;

    if (channel == stopper->channel && stopper->before)
        return NULL;
    if (channel == stopper->channel) {
        stopper->before = channel;
        stopper->channel = NULL;
    }
    connect_to_runtime(stopper);
    return stopper->channel;
}

static void connect_to_runtime(struct stopper *stopper)
{
    static const struct rpc_channel_ops ops = {.lost = on_lost, .instead = on_instead};

    if (!stopper->channel &&
        rpc_channel_open(stopper->loop, stopper->endpoint, &ops, stopper, &stopper->channel) < 0)
        stopper->channel = NULL;
}

static void on_ended(void *user, const struct numbered_end *end)
{
    const struct stopper *stopper = user;
    stopper_ended *ended =
        end->method == &STOP ? stopper->ops->container_ended : stopper->ops->sandbox_ended;

    ended(stopper->user, end->number, end->code, end->message ? end->message : "");
}

struct stopper *stopper_start(uv_loop_t *loop, const char *endpoint, const struct stopper_ops *ops,
                              void *user)
{
    struct stopper *stopper = must(calloc(1, sizeof *stopper));

    stopper->loop = loop;
    stopper->endpoint = endpoint;
    stopper->ops = ops;
    stopper->user = user;
    numbered_calls_init(&stopper->calls, loop, on_ended, stopper, "the runtime cannot be reached");
    return stopper;
}

static void call(struct stopper *stopper, const struct numbered_method *method, uint64_t number,
                 const ProtobufCMessage *request, uint64_t timeout_ms)
{
    connect_to_runtime(stopper);
    numbered_calls_start(&stopper->calls, stopper->channel, method, number, NULL, request,
                         timeout_ms);
}

void stopper_container(struct stopper *stopper, uint64_t number, const char *container_id,
                       uint64_t grace_ms)
{
    Runtime__V1__StopContainerRequest request = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;

    request.container_id = (char *)(uintptr_t)container_id;
    request.timeout = (int64_t)((grace_ms + 999) / 1000);
    call(stopper, &STOP, number, &request.base, grace_ms + STOPPER_MORE_MS);
}

void stopper_sandbox(struct stopper *stopper, uint64_t number, const char *sandbox_id)
{
    Runtime__V1__StopPodSandboxRequest request = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;

    request.pod_sandbox_id = (char *)(uintptr_t)sandbox_id;
    call(stopper, &STOP_SANDBOX, number, &request.base, STOPPER_SANDBOX_MS);
}

void stopper_cancel(struct stopper *stopper, uint64_t number)
{
    numbered_calls_cancel(&stopper->calls, number);
}

void stopper_stop(struct stopper *stopper, void (*done)(void *user), void *user)
{
    stopper->stopping = (struct stopping){1, free, stopper, done, user};
    rpc_channel_close(stopper->channel);
    rpc_channel_close(stopper->before);
    numbered_calls_stop(&stopper->calls, stopping_part, &stopper->stopping);
}
