/* shim/dra/answer.c: what a driver's answer says of one claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/dra/answer.h"
#include "shim/rpc/rpc.h"

#define UNKNOWN                                                                                    \
    "\xc2\x3e\x03"                                                                                 \
    "abc" /* field 1000 */

static const char *const UIDS[] = {"u", "v"};
static const struct answer_asked ASKED = {UIDS, 1}, ASKED_BOTH = {UIDS, 2};

/* A response of the map entries in `bytes`. */
static void prepared(const void *bytes, size_t len, const char *uid, int code, const char *message,
                     const void *response, size_t response_bytes)
{
    Dra__V1__NodePrepareResourcesResponse *r =
        dra__v1__node_prepare_resources_response__unpack(NULL, len, bytes);
    struct driver_answer answer;

    assert_non_null(r);
    if (!answer_prepared_others(r, &(struct answer_asked){&uid, 1}, &answer))
        answer_prepared(r, uid, &answer);
    assert_int_equal(answer.code, code);
    if (message)
        assert_string_equal(answer.message, message);
    assert_int_equal(answer.response_bytes, response_bytes);
    if (code == RPC_OK)
        assert_memory_equal(answer.response, response, response_bytes);
    else
        assert_null(answer.response);
    answer_fini(&answer);
    dra__v1__node_prepare_resources_response__free_unpacked(r, NULL);
}

static void prepared_of_both(const void *bytes, size_t len, const char *uid, int code,
                             const char *message)
{
    Dra__V1__NodePrepareResourcesResponse *r =
        dra__v1__node_prepare_resources_response__unpack(NULL, len, bytes);
    struct driver_answer answer;

    assert_non_null(r);
    if (!answer_prepared_others(r, &ASKED_BOTH, &answer))
        answer_prepared(r, uid, &answer);
    assert_int_equal(answer.code, code);
    if (message)
        assert_string_equal(answer.message, message);
    answer_fini(&answer);
    dra__v1__node_prepare_resources_response__free_unpacked(r, NULL);
}

static void unprepared(const void *bytes, size_t len, int code, const char *message)
{
    Dra__V1__NodeUnprepareResourcesResponse *r =
        dra__v1__node_unprepare_resources_response__unpack(NULL, len, bytes);
    struct driver_answer answer;

    assert_non_null(r);
    if (!answer_unprepared_others(r, &ASKED, &answer))
        answer_unprepared(r, "u", &answer);
    assert_int_equal(answer.code, code);
    if (message)
        assert_string_equal(answer.message, message);
    answer_fini(&answer);
    dra__v1__node_unprepare_resources_response__free_unpacked(r, NULL);
}

/* An entry of the map: key, and value if `value` is given. */
#define ENTRY(len, key, value) "\x0a" len "\x0a\x01" key value
#define BYTES(text) text, sizeof text - 1

static void the_claims_bytes_with_all_that_is_in_them(void **state)
{
    (void)state;
    prepared(BYTES(ENTRY("\x10", "u", "\x12\x0b\x0a\x03\x1a\x01x" UNKNOWN)), "u", RPC_OK, NULL,
             BYTES("\x0a\x03\x1a\x01x" UNKNOWN));
    prepared(BYTES(ENTRY("\x03", "u", "")), "u", RPC_OK, NULL, "", 0);
    prepared(BYTES(ENTRY("\x05", "u", "\x12\x00")), "u", RPC_OK, NULL, "", 0);
}

static void the_last_of_one_key_counts(void **state)
{
    (void)state;
    prepared(BYTES(ENTRY("\x08", "u", "\x12\x03\x12\x01x") ENTRY("\x05", "u", "\x12\x00")), "u",
             RPC_OK, NULL, "", 0);
    prepared(BYTES(ENTRY("\x05", "u", "\x12\x00") ENTRY("\x08", "u", "\x12\x03\x12\x01x")), "u",
             RPC_UNKNOWN, "x", "", 0);
}

static void what_it_says_against_the_claim(void **state)
{
    (void)state;
    prepared(BYTES(ENTRY("\x0a", "u",
                         "\x12\x05\x12\x03"
                         "bad")),
             "u", RPC_UNKNOWN, "bad", "", 0);
    unprepared(BYTES(ENTRY("\x0a", "u",
                           "\x12\x05\x0a\x03"
                           "bad")),
               RPC_UNKNOWN, "bad");
    unprepared(BYTES(ENTRY("\x05", "u", "\x12\x00")), RPC_OK, NULL);
    unprepared(BYTES(ENTRY("\x03", "u", "")), RPC_OK, NULL);
}

static void other_claims_or_none_in_the_kubelets_words(void **state)
{
    (void)state;
    prepared("", 0, "u", RPC_INTERNAL, "NodePrepareResources skipped 1 ResourceClaims", "", 0);
    prepared(BYTES(ENTRY("\x03", "x", "")), "u", RPC_INTERNAL,
             "NodePrepareResources returned result for unknown claim UID x", "", 0);
    prepared(BYTES(ENTRY("\x03", "u", "") ENTRY("\x03", "x", "")), "u", RPC_INTERNAL,
             "NodePrepareResources returned result for unknown claim UID x", "", 0);
    unprepared("", 0, RPC_INTERNAL, "NodeUnprepareResources skipped 1 ResourceClaims");
    unprepared(BYTES(ENTRY("\x03", "x", "")), RPC_INTERNAL,
               "NodeUnprepareResources returned result for unknown claim UID x");
}

static void each_of_several_claims_by_itself(void **state)
{
    static const char both[] = ENTRY("\x0a", "v",
                                     "\x12\x05\x12\x03"
                                     "bad") ENTRY("\x05", "u", "\x12\x00");
    static const char one[] = ENTRY("\x05", "v", "\x12\x00");
    static const char other[] = ENTRY("\x05", "u", "\x12\x00") ENTRY("\x03", "x", "");

    (void)state;
    prepared_of_both(BYTES(both), "u", RPC_OK, NULL);
    prepared_of_both(BYTES(both), "v", RPC_UNKNOWN, "bad");
    prepared_of_both(BYTES(one), "u", RPC_INTERNAL,
                     "NodePrepareResources skipped 1 ResourceClaims");
    prepared_of_both(BYTES(one), "v", RPC_OK, NULL);
    prepared_of_both(BYTES(other), "u", RPC_INTERNAL,
                     "NodePrepareResources returned result for unknown claim UID x");
}

/* What a kubelet could not read at all: the names of what was prepared are the driver's fault, of
 * its other words each byte that is none is a '?'. */
static void what_is_no_text(void **state)
{
    struct driver_answer answer;

    (void)state;
    prepared(BYTES(ENTRY("\x0a", "u", "\x12\x05\x0a\x03\x1a\x01\xe9")), "u", RPC_INTERNAL,
             "the driver's answer is not all UTF-8", "", 0);
    for (char field = '\x0a'; field <= '\x2a'; field += 8) { /* each of a device */
        char bytes[] = ENTRY("\x0a", "u", "\x12\x05\x0a\x03\x00\x01\xe9");

        bytes[9] = field;
        prepared(BYTES(bytes), "u", RPC_INTERNAL, "the driver's answer is not all UTF-8", "", 0);
    }
    prepared(BYTES(ENTRY("\x0a", "u",
                         "\x12\x05\x12\x03"
                         "b\xe9"
                         "d")),
             "u", RPC_UNKNOWN, "b?d", "", 0);
    prepared(BYTES(ENTRY("\x03", "\xe9", "")), "u", RPC_INTERNAL,
             "NodePrepareResources returned result for unknown claim UID ?", "", 0);
    answer_failed(RPC_ABORTED, "caf\xc3\xa9 \xff", &answer);
    assert_int_equal(answer.code, RPC_ABORTED);
    assert_string_equal(answer.message, "caf\xc3\xa9 ?");
    answer_fini(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_claims_bytes_with_all_that_is_in_them),
        cmocka_unit_test(the_last_of_one_key_counts),
        cmocka_unit_test(what_it_says_against_the_claim),
        cmocka_unit_test(other_claims_or_none_in_the_kubelets_words),
        cmocka_unit_test(each_of_several_claims_by_itself),
        cmocka_unit_test(what_is_no_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
