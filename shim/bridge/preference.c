#include "shim/bridge/preference.h"

#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"

/* The part of one container. */
struct part {
    struct preference *preference;
    struct rpc_call *call; /* NULL: it is over */
    V1beta1__ContainerPreferredAllocationResponse answer;
};

struct preference {
    LIST_ENTRY(preference) entry;
    struct kept_call *call;
    size_t waiting; /* for so many parts, and for the start itself */
    size_t parts_len;
    struct part parts[];
};

static void ids_free(V1beta1__ContainerPreferredAllocationResponse *answer)
{
    for (size_t i = 0; i < answer->n_deviceids; i++)
        free(answer->deviceids[i]);
    free(answer->deviceids);
    answer->deviceids = NULL;
    answer->n_deviceids = 0;
}

static void preference_free(struct preference *preference)
{
    LIST_REMOVE(preference, entry);
    for (size_t i = 0; i < preference->parts_len; i++) {
        rpc_call_cancel(preference->parts[i].call);
        ids_free(&preference->parts[i].answer);
    }
    free(preference);
}

static void on_cancelled(void *user)
{
    preference_free(user);
}

static void send_answer(struct kept_call *call,
                        V1beta1__ContainerPreferredAllocationResponse **parts, size_t parts_len)
{
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;

    response.container_responses = parts;
    response.n_container_responses = parts_len;
    kept_call_answer(call, &response.base);
}

/* Without memory none is preferred: an error would cost the pod its admission (the kubelet's
 * pkg/kubelet/cm/devicemanager/manager.go, devicesToAllocate). */
static void answer(struct preference *preference)
{
    V1beta1__ContainerPreferredAllocationResponse **parts =
        calloc(preference->parts_len + 1, sizeof *parts);

    for (size_t i = 0; parts && i < preference->parts_len; i++)
        parts[i] = &preference->parts[i].answer;
    send_answer(preference->call, parts, parts ? preference->parts_len : 0);
    free(parts);
    preference_free(preference);
}

static void part_over(struct preference *preference)
{
    if (--preference->waiting == 0)
        answer(preference);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__PreferResponse *response = (const Bridge__V1__PreferResponse *)message;
    struct part *part = user;

    (void)call;
    part->answer.deviceids = calloc(response->n_ids + 1, sizeof *part->answer.deviceids);
    for (size_t i = 0; part->answer.deviceids && i < response->n_ids; i++) {
        char *id = strdup(response->ids[i]);

        if (!id) {
            ids_free(&part->answer);
            return;
        }
        part->answer.deviceids[part->answer.n_deviceids++] = id;
    }
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct part *part = user;

    (void)call;
    part->call = NULL;
    if (status->code != RPC_OK)
        ids_free(&part->answer);
    part_over(part->preference);
}

static void part_start(struct part *part, struct feed_client *feed, const char *resource,
                       const V1beta1__ContainerPreferredAllocationRequest *request,
                       uint64_t timeout_ms)
{
    static const struct rpc_call_ops ops = {on_message, on_done};
    Bridge__V1__PreferRequest prefer = BRIDGE__V1__PREFER_REQUEST__INIT;

    prefer.resource = (char *)resource;
    prefer.available = request->available_deviceids;
    prefer.n_available = request->n_available_deviceids;
    prefer.must_include = request->must_include_deviceids;
    prefer.n_must_include = request->n_must_include_deviceids;
    prefer.size = request->allocation_size;
    v1beta1__container_preferred_allocation_response__init(&part->answer);
    part->call =
        feed_client_call(feed, BRIDGE_PREFER, &prefer.base,
                         &bridge__v1__prefer_response__descriptor, false, timeout_ms, &ops, part);
    if (part->call)
        part->preference->waiting++;
}

void preference_start(struct preference_list *list, struct feed_client *feed, const char *resource,
                      const V1beta1__PreferredAllocationRequest *request, uint64_t timeout_ms,
                      struct kept_call *call)
{
    size_t len = request->n_container_requests;
    struct preference *preference = calloc(1, sizeof *preference + len * sizeof *preference->parts);

    if (!preference) {
        send_answer(call, NULL, 0);
        return;
    }
    preference->call = call;
    preference->parts_len = len;
    preference->waiting = 1;
    LIST_INSERT_HEAD(list, preference, entry);
    kept_call_on_cancel(call, on_cancelled, preference);
    for (size_t i = 0; i < len; i++) {
        preference->parts[i].preference = preference;
        part_start(&preference->parts[i], feed, resource, request->container_requests[i],
                   timeout_ms);
    }
    part_over(preference);
}

void preference_list_clear(struct preference_list *list)
{
    while (!LIST_EMPTY(list))
        preference_free(LIST_FIRST(list));
}
