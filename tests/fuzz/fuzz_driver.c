/*
 * What a plugin says of itself, and what a DRA driver answers.
 *
 * Input: a byte that chooses the message, and the message: a PluginInfo, or the answer to a prepare
 * or an unprepare of the claims "u" and "v". What is said to the plugin or to people is ASCII; a
 * driver or plugin that may be registered has a name and an endpoint within bounds; an answer is
 * one of words or one of bytes, which are a claim's that parses again to the same.
 */
#include <string.h>

#include "cri-proto/kube_name.h"
#include "shim/dra/answer.h"
#include "shim/dra/services.h"
#include "shim/registry/info.h"
#include "shim/registry/limits.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"
#include "tests/fuzz/fuzz.h"

#define SOCKET "/registry/x-reg.sock"

static const char *const UIDS[] = {"u", "v"};
static const struct answer_asked ASKED = {UIDS, 2};

static void check_words(const char *words, size_t room)
{
    size_t len = strnlen(words, room);

    FUZZ_CHECK(len > 0 && len < room, "%zu bytes", len);
    for (size_t i = 0; i < len; i++)
        FUZZ_CHECK(words[i] >= ' ' && words[i] <= '~', "%s", words);
}

static void check_info(const ProtobufCMessage *message)
{
    const Pluginregistration__PluginInfo *info = (const void *)message;
    const char *const *services = (const char *const *)info->supported_versions;
    char wrong[INFO_WORDS_BYTES_MAX], words[SERVICES_WORDS_BYTES_MAX];
    enum driver_service service;

    if (info_kind(info) == INFO_OTHER)
        return;
    if (!info_check(info, SOCKET, wrong)) {
        check_words(wrong, sizeof wrong);
        return;
    }
    FUZZ_CHECK(info->name[0] && strlen(info->name) <= 2 * KUBE_SUBDOMAIN_BYTES_MAX, "%s",
               info->name);
    FUZZ_CHECK(info_endpoint(info, SOCKET)[0] == '/', "%s", info->endpoint);
    FUZZ_CHECK(strlen(info_endpoint(info, SOCKET)) <= 107, "%s", info->endpoint);
    FUZZ_CHECK(info->n_supported_versions <= REGISTRY_VERSIONS_MAX, "%zu",
               info->n_supported_versions);
    if (info_kind(info) == INFO_DRIVER &&
        !services_choose(services, info->n_supported_versions, &service, words))
        check_words(words, sizeof words);
}

/* Its bytes, which `descriptor` describes; `response` NULL: none. */
static void check_answer(const struct driver_answer *answer, bool prepared)
{
    struct message_arena arena = {0};
    int code;

    FUZZ_CHECK((answer->code == RPC_OK) == (answer->message == NULL), "%d", answer->code);
    FUZZ_CHECK((answer->response != NULL) == (prepared && answer->code == RPC_OK), "%d",
               answer->code);
    if (answer->response)
        FUZZ_CHECK(message_unpack(&dra__v1__node_prepare_resource_response__descriptor,
                                  answer->response, answer->response_bytes, &arena, &code) ||
                       code == RPC_RESOURCE_EXHAUSTED,
                   "%zu bytes", answer->response_bytes);
    message_arena_fini(&arena);
}

static void check_prepared(const ProtobufCMessage *message)
{
    struct driver_answer answer;

    for (size_t i = 0; i < ASKED.len; i++) {
        if (!answer_prepared_others((const void *)message, &ASKED, &answer))
            answer_prepared((const void *)message, UIDS[i], &answer);
        check_answer(&answer, true);
        answer_fini(&answer);
    }
}

static void check_unprepared(const ProtobufCMessage *message)
{
    struct driver_answer answer;

    for (size_t i = 0; i < ASKED.len; i++) {
        if (!answer_unprepared_others((const void *)message, &ASKED, &answer))
            answer_unprepared((const void *)message, UIDS[i], &answer);
        check_answer(&answer, false);
        answer_fini(&answer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const ProtobufCMessageDescriptor *descriptor;
        void (*check)(const ProtobufCMessage *message);
    } KINDS[] = {
        {&pluginregistration__plugin_info__descriptor, check_info},
        {&dra__v1__node_prepare_resources_response__descriptor, check_prepared},
        {&dra__v1__node_unprepare_resources_response__descriptor, check_unprepared},
    };
    struct fuzz_input in = {data, size};
    size_t kind = fuzz_u8(&in) % (sizeof KINDS / sizeof *KINDS);
    struct message_arena arena = {0};
    const ProtobufCMessage *message;
    int code;

    message = message_unpack(KINDS[kind].descriptor, in.bytes, in.len, &arena, &code);
    if (message)
        KINDS[kind].check(message);
    message_arena_fini(&arena);
    return 0;
}
