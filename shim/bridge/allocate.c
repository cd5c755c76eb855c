#include "shim/bridge/allocate.h"

#include <stdlib.h>

#include "cri-proto/token.h"
#include "cri-proto/utf8.h"

bool allocate_is_text(const V1beta1__AllocateRequest *request)
{
    for (size_t i = 0; i < request->n_container_requests; i++) {
        const V1beta1__ContainerAllocateRequest *one = request->container_requests[i];

        for (size_t k = 0; k < one->n_devices_ids; k++) {
            if (!utf8_is_text(one->devices_ids[k]))
                return false;
        }
    }
    return true;
}

/* No must() here: what is to be done without memory depends on the call's connection. protobuf-c
 * frees what it finds in a message, so all of it is the heap's. */

static bool put_token(V1beta1__ContainerAllocateResponse *answer, const char *resource,
                      const V1beta1__ContainerAllocateRequest *request)
{
    V1beta1__ContainerAllocateResponse__AnnotationsEntry *entry = malloc(sizeof *entry);
    char *key = token_key(resource);
    char *value =
        token_value(resource, (const char *const *)request->devices_ids, request->n_devices_ids);

    answer->annotations = calloc(1, sizeof *answer->annotations);
    if (!entry || !key || !value || !answer->annotations) {
        free(entry);
        free(key);
        free(value);
        return false;
    }
    v1beta1__container_allocate_response__annotations_entry__init(entry);
    entry->key = key;
    entry->value = value;
    answer->annotations[answer->n_annotations++] = entry;
    return true;
}

static bool add_container(V1beta1__AllocateResponse *answer, const char *resource,
                          const V1beta1__ContainerAllocateRequest *request)
{
    V1beta1__ContainerAllocateResponse *one = malloc(sizeof *one);

    if (!one)
        return false;
    v1beta1__container_allocate_response__init(one);
    answer->container_responses[answer->n_container_responses++] = one;
    return put_token(one, resource, request);
}

V1beta1__AllocateResponse *allocate_answer(const char *resource,
                                           const V1beta1__AllocateRequest *request)
{
    V1beta1__AllocateResponse *answer = malloc(sizeof *answer);
    size_t len = request->n_container_requests;
    bool good;

    if (!answer)
        return NULL;
    v1beta1__allocate_response__init(answer);
    answer->container_responses = calloc(len + 1, sizeof *answer->container_responses);
    good = answer->container_responses;
    for (size_t i = 0; good && i < len; i++)
        good = add_container(answer, resource, request->container_requests[i]);
    if (good)
        return answer;
    allocate_answer_free(answer);
    return NULL;
}

void allocate_answer_free(V1beta1__AllocateResponse *answer)
{
    v1beta1__allocate_response__free_unpacked(answer, NULL);
}
