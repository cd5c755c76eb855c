#include "shim/bridge/service.h"

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/bridge/allocate.h"
#include "shim/bridge/limits.h"
#include "shim/rpc/rpc.h"

static void on_options(struct kept_call *call, const ProtobufCMessage *request, void *user)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    (void)request;
    (void)user;
    /* Always, so that a plugin that changes its mind needs no new registration. */
    options.get_preferred_allocation_available = true;
    kept_call_answer(call, &options.base);
}

static void on_list_and_watch(struct kept_call *call, const ProtobufCMessage *request, void *user)
{
    const struct service *service = user;

    service->watch(service->user, call, !request);
}

static void on_allocate(struct kept_call *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__AllocateRequest *request = (const V1beta1__AllocateRequest *)message;
    const struct service *service = user;
    V1beta1__AllocateResponse *answer;

    if (request->n_container_requests > CONTAINERS_MAX) {
        kept_call_finish(call, RPC_RESOURCE_EXHAUSTED, "too many containers in one request");
        return;
    }
    if (!allocate_is_text(request)) {
        kept_call_finish(call, RPC_INVALID_ARGUMENT, "a device id is not UTF-8");
        return;
    }
    answer = allocate_answer(service->resource, request);
    if (!answer) {
        kept_call_without_memory(call);
        kept_call_finish(call, RPC_RESOURCE_EXHAUSTED, "no memory for the answer");
        return;
    }
    kept_call_answer(call, &answer->base);
    allocate_answer_free(answer);
}

static void on_preferred(struct kept_call *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__PreferredAllocationRequest *request =
        (const V1beta1__PreferredAllocationRequest *)message;
    struct service *service = user;

    if (request->n_container_requests > CONTAINERS_MAX)
        kept_call_finish(call, RPC_RESOURCE_EXHAUSTED, "too many containers in one request");
    else
        preference_start(&service->preferences, service->feed, service->resource, request,
                         *service->preferred_timeout_ms + PREFER_MARGIN_MS, call);
}

/* The real one is made in CreateContainer; our options say that the kubelet need not ask. */
static void on_pre_start(struct kept_call *call, const ProtobufCMessage *request, void *user)
{
    V1beta1__PreStartContainerResponse answer = V1BETA1__PRE_START_CONTAINER_RESPONSE__INIT;

    (void)request;
    (void)user;
    kept_call_answer(call, &answer.base);
}

const struct kept_method SERVICE_METHODS[SERVICE_METHODS_LEN] = {
    {DEVICEPLUGIN_GET_OPTIONS, &v1beta1__empty__descriptor, on_options},
    {DEVICEPLUGIN_LIST_AND_WATCH, &v1beta1__empty__descriptor, on_list_and_watch},
    {DEVICEPLUGIN_ALLOCATE, &v1beta1__allocate_request__descriptor, on_allocate},
    {DEVICEPLUGIN_GET_PREFERRED_ALLOCATION, &v1beta1__preferred_allocation_request__descriptor,
     on_preferred},
    {DEVICEPLUGIN_PRE_START_CONTAINER, &v1beta1__pre_start_container_request__descriptor,
     on_pre_start},
};

void service_clear(struct service *service)
{
    preference_list_clear(&service->preferences);
}
