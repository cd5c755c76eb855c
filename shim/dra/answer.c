#include "shim/dra/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/message_text.h"
#include "cri-proto/utf8.h"
#include "shim/rpc/rpc.h"

#define KEY_BYTES_MAX 129

/* In words that a kubelet can read: Go's protobuf takes no text that is not UTF-8. */
static void fail(struct driver_answer *out, int code, const char *message)
{
    out->code = code;
    out->message = message;
    if (utf8_is_text(message))
        return;
    utf8_copy(out->words, sizeof out->words, message);
    out->message = out->words;
}

/* The kubelet's words. */
static void fail_skipped(struct driver_answer *out, const char *method)
{
    snprintf(out->words, sizeof out->words, "%s skipped 1 ResourceClaims", method);
    fail(out, RPC_INTERNAL, out->words);
}

static void fail_unknown(struct driver_answer *out, const char *method, const char *uid)
{
    char key[KEY_BYTES_MAX];

    utf8_copy(key, sizeof key, uid);
    snprintf(out->words, sizeof out->words, "%s returned result for unknown claim UID %s", method,
             key);
    fail(out, RPC_INTERNAL, out->words);
}

static void keep(struct driver_answer *out, const ProtobufCMessage *claim)
{
    size_t bytes = claim ? protobuf_c_message_get_packed_size(claim) : 0;

    out->response = malloc(bytes + 1);
    if (!out->response) {
        fail(out, RPC_RESOURCE_EXHAUSTED, "no memory for the answer");
        return;
    }
    if (claim)
        out->response_bytes = protobuf_c_message_pack(claim, out->response);
}

void answer_prepared(const Dra__V1__NodePrepareResourcesResponse *response, const char *uid,
                     struct driver_answer *out)
{
    const Dra__V1__NodePrepareResourceResponse *claim;

    *out = (struct driver_answer){0};
    for (size_t i = 0; i < response->n_claims; i++) {
        if (strcmp(response->claims[i]->key, uid) != 0) {
            fail_unknown(out, "NodePrepareResources", response->claims[i]->key);
            return;
        }
    }
    if (response->n_claims == 0) {
        fail_skipped(out, "NodePrepareResources");
        return;
    }
    /* Of map entries with one key the last counts (protobuf's language guide, "Maps"). */
    claim = response->claims[response->n_claims - 1]->value;
    if (claim && claim->error[0])
        fail(out, RPC_UNKNOWN, claim->error);
    else if (claim && !message_is_text(&claim->base))
        fail(out, RPC_INTERNAL, "the driver's answer is not all UTF-8");
    else
        keep(out, claim ? &claim->base : NULL);
}

void answer_unprepared(const Dra__V1__NodeUnprepareResourcesResponse *response, const char *uid,
                       struct driver_answer *out)
{
    const Dra__V1__NodeUnprepareResourceResponse *claim;

    *out = (struct driver_answer){0};
    for (size_t i = 0; i < response->n_claims; i++) {
        if (strcmp(response->claims[i]->key, uid) != 0) {
            fail_unknown(out, "NodeUnprepareResources", response->claims[i]->key);
            return;
        }
    }
    if (response->n_claims == 0) {
        fail_skipped(out, "NodeUnprepareResources");
        return;
    }
    claim = response->claims[response->n_claims - 1]->value;
    if (claim && claim->error[0])
        fail(out, RPC_UNKNOWN, claim->error);
}

void answer_failed(int code, const char *message, struct driver_answer *out)
{
    *out = (struct driver_answer){0};
    fail(out, code, message);
}

void answer_fini(struct driver_answer *answer)
{
    free(answer->response);
    answer->response = NULL;
}
