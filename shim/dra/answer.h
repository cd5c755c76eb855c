/*
 * What a driver's answer says of one claim, held against what the kubelet accepts
 * (pkg/kubelet/cm/dra/manager.go). Messages in, values out; no state.
 */
#ifndef SHIM_DRA_ANSWER_H
#define SHIM_DRA_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/dra_v1.pb-c.h"

#define ANSWER_WORDS_BYTES_MAX 256

struct driver_answer {
    int code;            /* RPC_OK; what the driver says against it is UNKNOWN */
    const char *message; /* with another code why, UTF-8; in `words`, or borrowed */
    /* Of a claim that is prepared: its bytes of dra.v1.NodePrepareResourceResponse, unknown fields
     * and all. */
    uint8_t *response;
    size_t response_bytes;
    char words[ANSWER_WORDS_BYTES_MAX];
};

/* The claims that a driver was asked for in one call. */
struct answer_asked {
    const char *const *uids;
    size_t len;
};

/* Whether it says anything of a claim that was not asked for, and so is wrong about all: `out` is
 * that, and to be given to answer_fini(). Else `out` is untouched. */
bool answer_prepared_others(const Dra__V1__NodePrepareResourcesResponse *response,
                            const struct answer_asked *asked, struct driver_answer *out);
bool answer_unprepared_others(const Dra__V1__NodeUnprepareResourcesResponse *response,
                              const struct answer_asked *asked, struct driver_answer *out);

/* What it says of the claim `uid`, one of those that were asked for. `out` lives no longer than
 * `response`, and is to be given to answer_fini(). */
void answer_prepared(const Dra__V1__NodePrepareResourcesResponse *response, const char *uid,
                     struct driver_answer *out);
void answer_unprepared(const Dra__V1__NodeUnprepareResourcesResponse *response, const char *uid,
                       struct driver_answer *out);

/* The call ended so; `message` is borrowed. */
void answer_failed(int code, const char *message, struct driver_answer *out);

void answer_fini(struct driver_answer *answer);

#endif
