/*
 * A runtime that only lists and tells events: pods and containers as the test sets them, on the
 * project's gRPC server.
 */
#ifndef TESTS_UNIT_RUNTIME_FIXTURE_H
#define TESTS_UNIT_RUNTIME_FIXTURE_H

#include <stdbool.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "shim/rpc/rpc.h"
#include "tests/unit/waiting.h"

#define RUNTIME_ITEMS_MAX 8

struct runtime {
    /* set by the test */
    struct {
        const char *id, *uid, *name;
        bool ready;
        const char *key, *value; /* an annotation; NULL: none */
    } pods[RUNTIME_ITEMS_MAX];
    size_t pods_len;
    struct {
        const char *id, *pod, *name;
        Runtime__V1__ContainerState state;
        const char *key, *value; /* an annotation; NULL: none */
    } containers[RUNTIME_ITEMS_MAX];
    size_t containers_len;
    bool bare;    /* items without metadata */
    size_t pairs; /* so many annotations of each pod in place of its own; 0: its own */
    int pods_code, containers_code, streams_code; /* the last is of both lists as streams */
    int version_code;
    bool hold;            /* ListContainers stays open, in `held` */
    const char *name;     /* its own; NULL: "a runtime\n" */
    const char *version;  /* NULL: "1.2" */
    const char *settings; /* what Status says of them; NULL: it fails */
    bool hold_status;     /* Status stays open, in `status` */
    int events_code; /* how GetContainerEvents ends at once; RPC_OK: it stays open, in `events` */

    /* seen */
    struct rpc_server *server;
    struct rpc_incoming *held;
    struct rpc_incoming *status;
    struct rpc_incoming *events;
    unsigned pod_lists, container_lists, pod_streams, container_streams, events_calls, versions,
        statuses;
    char filter[64]; /* the last ListContainers's id; "none" without a filter */
};

void runtime_serve(struct runtime *runtime, struct world *world);
/* Answers the held call. */
void runtime_answer_held(struct runtime *runtime);
/* On the open stream; `sandbox` NULL: without its status. */
void runtime_send_event(struct runtime *runtime, Runtime__V1__ContainerEventType type,
                        const char *container_id, const char *sandbox);
void runtime_stop(struct runtime *runtime);

#endif
