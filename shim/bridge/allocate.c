#include "shim/bridge/allocate.h"

#include <stdlib.h>

#include "cri-proto/token.h"
#include "shim/must.h"

/* protobuf-c frees what it finds in a message, so all of it is the heap's. */
static V1beta1__ContainerAllocateResponse *
container_answer(const char *resource, const V1beta1__ContainerAllocateRequest *request)
{
    V1beta1__ContainerAllocateResponse *answer;
    V1beta1__ContainerAllocateResponse__AnnotationsEntry *entry;
    char *value =
        token_value(resource, (const char *const *)request->devices_ids, request->n_devices_ids);

    if (!value)
        return NULL;
    entry = must(malloc(sizeof *entry));
    v1beta1__container_allocate_response__annotations_entry__init(entry);
    entry->key = must(token_key(resource));
    entry->value = value;
    answer = must(malloc(sizeof *answer));
    v1beta1__container_allocate_response__init(answer);
    answer->annotations = must(calloc(1, sizeof *answer->annotations));
    answer->annotations[answer->n_annotations++] = entry;
    return answer;
}

V1beta1__AllocateResponse *allocate_answer(const char *resource,
                                           const V1beta1__AllocateRequest *request)
{
    V1beta1__AllocateResponse *answer = must(malloc(sizeof *answer));

    v1beta1__allocate_response__init(answer);
    answer->container_responses =
        must(calloc(request->n_container_requests + 1, sizeof *answer->container_responses));
    for (size_t i = 0; i < request->n_container_requests; i++) {
        V1beta1__ContainerAllocateResponse *one =
            container_answer(resource, request->container_requests[i]);

        if (!one) {
            allocate_answer_free(answer);
            return NULL;
        }
        answer->container_responses[answer->n_container_responses++] = one;
    }
    return answer;
}

void allocate_answer_free(V1beta1__AllocateResponse *answer)
{
    v1beta1__allocate_response__free_unpacked(answer, NULL);
}
