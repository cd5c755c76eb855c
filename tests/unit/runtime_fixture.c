#include "tests/unit/runtime_fixture.h"

#include "cri-proto/methods.h"

/* A list, or a part of a stream. */
static void give(struct rpc_incoming *call, const ProtobufCMessage *list, int code, bool part)
{
    if (part)
        assert_int_equal(rpc_incoming_send(call, list), 0);
    else
        incoming_answer(call, list, code, "the runtime says no");
}

/* So many times the same, to be freed. NULL: none. */
static Runtime__V1__PodSandbox__AnnotationsEntry **many_pairs(size_t len)
{
    static Runtime__V1__PodSandbox__AnnotationsEntry entry =
        RUNTIME__V1__POD_SANDBOX__ANNOTATIONS_ENTRY__INIT;
    Runtime__V1__PodSandbox__AnnotationsEntry **pairs =
        len > 0 ? malloc(len * sizeof(void *)) : NULL;

    assert_true(pairs || len == 0);
    entry.key = (char *)"k";
    entry.value = (char *)"v";
    for (size_t i = 0; i < len; i++)
        pairs[i] = &entry;
    return pairs;
}

/* Some of its pods. */
static void give_pods(const struct runtime *runtime, struct rpc_incoming *call, size_t first,
                      size_t end, bool part)
{
    Runtime__V1__PodSandbox items[RUNTIME_ITEMS_MAX], *pointers[RUNTIME_ITEMS_MAX];
    Runtime__V1__PodSandboxMetadata metadata[RUNTIME_ITEMS_MAX];
    Runtime__V1__PodSandbox__AnnotationsEntry entries[RUNTIME_ITEMS_MAX],
        *annotations[RUNTIME_ITEMS_MAX], **pairs = many_pairs(runtime->pairs);
    Runtime__V1__ListPodSandboxResponse response = RUNTIME__V1__LIST_POD_SANDBOX_RESPONSE__INIT;

    for (size_t i = first; i < end; i++) {
        runtime__v1__pod_sandbox__init(&items[i]);
        runtime__v1__pod_sandbox_metadata__init(&metadata[i]);
        metadata[i].uid = (char *)runtime->pods[i].uid;
        metadata[i].name = (char *)runtime->pods[i].name;
        metadata[i].namespace_ = (char *)"default";
        metadata[i].attempt = 1;
        items[i].id = (char *)runtime->pods[i].id;
        items[i].state = runtime->pods[i].ready ? RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY
                                                : RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
        items[i].metadata = runtime->bare ? NULL : &metadata[i];
        if (runtime->pods[i].key) {
            runtime__v1__pod_sandbox__annotations_entry__init(&entries[i]);
            entries[i].key = (char *)runtime->pods[i].key;
            entries[i].value = (char *)runtime->pods[i].value;
            annotations[i] = &entries[i];
            items[i].annotations = &annotations[i];
            items[i].n_annotations = 1;
        }
        if (pairs) {
            items[i].annotations = pairs;
            items[i].n_annotations = runtime->pairs;
        }
        pointers[i] = &items[i];
    }
    response.items = pointers + first;
    response.n_items = end - first;
    give(call, &response.base, runtime->pods_code, part);
    free(pairs);
}

static void on_pods(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct runtime *runtime = user;

    (void)message;
    runtime->pod_lists++;
    give_pods(runtime, call, 0, runtime->pods_len, false);
}

static void on_pods_stream(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct runtime *runtime = user;

    (void)message;
    runtime->pod_streams++;
    for (size_t i = 0; runtime->streams_code == RPC_OK && i < runtime->pods_len; i++)
        give_pods(runtime, call, i, i + 1, true);
    rpc_incoming_finish(call, runtime->streams_code, NULL);
}

/* Those of its containers that it was asked for, of some. */
static void give_containers(const struct runtime *runtime, struct rpc_incoming *call, size_t first,
                            size_t end, bool part)
{
    Runtime__V1__Container items[RUNTIME_ITEMS_MAX], *pointers[RUNTIME_ITEMS_MAX];
    Runtime__V1__ContainerMetadata metadata[RUNTIME_ITEMS_MAX];
    Runtime__V1__Container__AnnotationsEntry entries[RUNTIME_ITEMS_MAX],
        *annotations[RUNTIME_ITEMS_MAX];
    Runtime__V1__ListContainersResponse response = RUNTIME__V1__LIST_CONTAINERS_RESPONSE__INIT;

    response.containers = pointers;
    for (size_t i = first; i < end; i++) {
        /* As the runtimes do: any prefix of the id matches. */
        if (strcmp(runtime->filter, "none") != 0 &&
            strncmp(runtime->containers[i].id, runtime->filter, strlen(runtime->filter)) != 0)
            continue;
        runtime__v1__container__init(&items[i]);
        runtime__v1__container_metadata__init(&metadata[i]);
        runtime__v1__container__annotations_entry__init(&entries[i]);
        metadata[i].name = (char *)runtime->containers[i].name;
        items[i].id = (char *)runtime->containers[i].id;
        items[i].pod_sandbox_id = (char *)runtime->containers[i].pod;
        items[i].state = runtime->containers[i].state;
        items[i].metadata = runtime->bare ? NULL : &metadata[i];
        if (runtime->containers[i].key) {
            entries[i].key = (char *)runtime->containers[i].key;
            entries[i].value = (char *)runtime->containers[i].value;
            annotations[i] = &entries[i];
            items[i].annotations = &annotations[i];
            items[i].n_annotations = 1;
        }
        pointers[response.n_containers++] = &items[i];
    }
    give(call, &response.base, runtime->containers_code, part);
}

static void answer_containers(const struct runtime *runtime, struct rpc_incoming *call)
{
    give_containers(runtime, call, 0, runtime->containers_len, false);
}

static void on_containers_stream(struct rpc_incoming *call, const ProtobufCMessage *message,
                                 void *user)
{
    struct runtime *runtime = user;

    (void)message;
    runtime->container_streams++;
    strcpy(runtime->filter, "none");
    for (size_t i = 0; runtime->streams_code == RPC_OK && i < runtime->containers_len; i++)
        give_containers(runtime, call, i, i + 1, true);
    rpc_incoming_finish(call, runtime->streams_code, NULL);
}

static void on_held_cancelled(void *user)
{
    struct runtime *runtime = user;

    runtime->held = NULL;
}

static void on_containers(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Runtime__V1__ListContainersRequest *request = (const void *)message;
    struct runtime *runtime = user;

    runtime->container_lists++;
    snprintf(runtime->filter, sizeof runtime->filter, "%s",
             request->filter ? request->filter->id : "none");
    if (!runtime->hold) {
        answer_containers(runtime, call);
        return;
    }
    runtime->held = call;
    rpc_incoming_on_cancel(call, on_held_cancelled, runtime);
}

static void on_events_cancelled(void *user)
{
    struct runtime *runtime = user;

    runtime->events = NULL;
}

static void on_events(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct runtime *runtime = user;

    (void)message;
    runtime->events_calls++;
    if (runtime->events_code != RPC_OK) {
        rpc_incoming_finish(call, runtime->events_code, "no events here");
        return;
    }
    runtime->events = call;
    rpc_incoming_on_cancel(call, on_events_cancelled, runtime);
}

void runtime_send_event(struct runtime *runtime, Runtime__V1__ContainerEventType type,
                        const char *container_id, const char *sandbox)
{
    Runtime__V1__ContainerEventResponse event = RUNTIME__V1__CONTAINER_EVENT_RESPONSE__INIT;
    Runtime__V1__PodSandboxStatus status = RUNTIME__V1__POD_SANDBOX_STATUS__INIT;

    event.container_id = (char *)container_id;
    event.container_event_type = type;
    status.id = (char *)sandbox;
    event.pod_sandbox_status = sandbox ? &status : NULL;
    assert_non_null(runtime->events);
    assert_int_equal(rpc_incoming_send(runtime->events, &event.base), 0);
}

static void on_version(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    Runtime__V1__VersionResponse response = RUNTIME__V1__VERSION_RESPONSE__INIT;
    struct runtime *runtime = user;

    (void)message;
    runtime->versions++;
    response.runtime_name = (char *)(runtime->name ? runtime->name : "a runtime\n");
    response.runtime_version = (char *)(runtime->version ? runtime->version : "1.2");
    incoming_answer(call, &response.base, runtime->version_code, "the runtime says no");
}

static void on_status(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    Runtime__V1__StatusResponse response = RUNTIME__V1__STATUS_RESPONSE__INIT;
    Runtime__V1__StatusResponse__InfoEntry info = RUNTIME__V1__STATUS_RESPONSE__INFO_ENTRY__INIT,
                                           *infos[] = {&info};
    struct runtime *runtime = user;

    assert_true(((const Runtime__V1__StatusRequest *)message)->verbose);
    runtime->statuses++;
    if (runtime->hold_status) {
        runtime->status = call;
        return;
    }
    info.key = (char *)"config";
    info.value = (char *)runtime->settings;
    response.n_info = 1;
    response.info = infos;
    if (runtime->settings)
        incoming_answer(call, &response.base, RPC_OK, NULL);
    else
        incoming_answer(call, NULL, RPC_INTERNAL, "no");
}

static const struct rpc_method METHODS[] = {
    {CRI_STATUS_PATH, &runtime__v1__status_request__descriptor, on_status},
    {CRI_VERSION_PATH, &runtime__v1__version_request__descriptor, on_version},
    {CRI_LIST_POD_SANDBOX_PATH, &runtime__v1__list_pod_sandbox_request__descriptor, on_pods},
    {CRI_LIST_CONTAINERS_PATH, &runtime__v1__list_containers_request__descriptor, on_containers},
    {CRI_STREAM_POD_SANDBOXES_PATH, &runtime__v1__stream_pod_sandboxes_request__descriptor,
     on_pods_stream},
    {CRI_STREAM_CONTAINERS_PATH, &runtime__v1__stream_containers_request__descriptor,
     on_containers_stream},
    {CRI_GET_CONTAINER_EVENTS_PATH, &runtime__v1__get_events_request__descriptor, on_events},
};

void runtime_serve(struct runtime *runtime, struct world *world)
{
    assert_int_equal(serve_at(&world->loop, world->path, METHODS, sizeof METHODS / sizeof *METHODS,
                              runtime, &runtime->server),
                     0);
}

void runtime_answer_held(struct runtime *runtime)
{
    struct rpc_incoming *call = runtime->held;

    assert_non_null(call);
    runtime->held = NULL;
    runtime->hold = false;
    answer_containers(runtime, call);
}

void runtime_stop(struct runtime *runtime)
{
    rpc_server_close(runtime->server);
    runtime->server = NULL;
    runtime->held = NULL;
    runtime->events = NULL;
}
