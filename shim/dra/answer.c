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

/* ---- of others ---- */

static void fail_unknown(struct driver_answer *out, const char *method, const char *uid)
{
    char key[KEY_BYTES_MAX];

    *out = (struct driver_answer){0};
    utf8_copy(key, sizeof key, uid);
    snprintf(out->words, sizeof out->words, "%s returned result for unknown claim UID %s", method,
             key);
    fail(out, RPC_INTERNAL, out->words);
}

static bool is_asked(const struct answer_asked *asked, const char *uid)
{
    for (size_t i = 0; i < asked->len; i++) {
        if (strcmp(asked->uids[i], uid) == 0)
            return true;
    }
    return false;
}

bool answer_prepared_others(const Dra__V1__NodePrepareResourcesResponse *response,
                            const struct answer_asked *asked, struct driver_answer *out)
{
    for (size_t i = 0; i < response->n_claims; i++) {
        if (is_asked(asked, response->claims[i]->key))
            continue;
        fail_unknown(out, "NodePrepareResources", response->claims[i]->key);
        return true;
    }
    return false;
}

bool answer_unprepared_others(const Dra__V1__NodeUnprepareResourcesResponse *response,
                              const struct answer_asked *asked, struct driver_answer *out)
{
    for (size_t i = 0; i < response->n_claims; i++) {
        if (is_asked(asked, response->claims[i]->key))
            continue;
        fail_unknown(out, "NodeUnprepareResources", response->claims[i]->key);
        return true;
    }
    return false;
}

/* ---- of one ---- */

/* Of map entries with one key the last counts (protobuf's language guide, "Maps"). */
void answer_prepared(const Dra__V1__NodePrepareResourcesResponse *response, const char *uid,
                     struct driver_answer *out)
{
    const Dra__V1__NodePrepareResourceResponse *claim;
    size_t i = response->n_claims;

    *out = (struct driver_answer){0};
    while (i > 0 && strcmp(response->claims[i - 1]->key, uid) != 0)
        i--;
    if (i == 0) {
        fail_skipped(out, "NodePrepareResources");
        return;
    }
    claim = response->claims[i - 1]->value;
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
    size_t i = response->n_claims;

    *out = (struct driver_answer){0};
    while (i > 0 && strcmp(response->claims[i - 1]->key, uid) != 0)
        i--;
    if (i == 0) {
        fail_skipped(out, "NodeUnprepareResources");
        return;
    }
    claim = response->claims[i - 1]->value;
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
