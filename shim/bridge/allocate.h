/*
 * What the kubelet's Allocate is answered: nothing but the token. No I/O.
 */
#ifndef SHIM_BRIDGE_ALLOCATE_H
#define SHIM_BRIDGE_ALLOCATE_H

#include <stdbool.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

/* Whether all ids are UTF-8, as a token's must be. */
bool allocate_is_text(const V1beta1__AllocateRequest *request);

/* One container in the answer for each in the request, its ids as they are. NULL: an id is not
 * UTF-8, or out of memory. The caller gives it to allocate_answer_free(). */
V1beta1__AllocateResponse *allocate_answer(const char *resource,
                                           const V1beta1__AllocateRequest *request);
void allocate_answer_free(V1beta1__AllocateResponse *answer);

#endif
