/* Tokens and request annotations, and what is wrong with bad ones. */
#include <stdio.h>
#include <stdlib.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/request.h"
#include "devicemgr_world.h"

#define KEY "devices.cri-device-shim/vendor.com_gpu"

static void refused_token(const char *key, const char *value, const char *why)
{
    struct request request = {0};
    struct text error = {0};

    assert_int_equal(request_add_token(&request, key, value, &error), -1);
    if (!strstr(error.buf, why))
        fail_msg("\"%s\" is not in \"%s\"", why, error.buf);
    request_fini(&request);
}

static void refused(const char *text, const char *why)
{
    struct request request = {0};
    struct text error = {0};

    assert_int_equal(request_add_annotation(&request, text, &error), -1);
    if (!strstr(error.buf, why))
        fail_msg("\"%s\" is not in \"%s\"", why, error.buf);
    request_fini(&request);
}

static void a_token_says_resource_and_ids(void **state)
{
    struct request request = {0};
    struct text error = {0};

    (void)state;
    assert_int_equal(
        request_add_token(&request, KEY,
                          "{\"ids\": [\"g10\",\"g2\"], \"resource\": \"vendor.com/gpu\"}", &error),
        0);
    assert_int_equal(request.len, 1);
    assert_true(request.items[0].token);
    assert_int_equal(request.items[0].count, 2);
    assert_string_equal(request.items[0].ids.v[0], "g2"); /* in natural order */
    request_fini(&request);
}

static void what_is_written_can_be_read(void **state)
{
    struct request request = {0};
    struct text error = {0};
    struct ids ids = {0};
    char *key = request_token_key(GPU), *value;

    (void)state;
    ids_add(&ids, "quote\" slash\\ tab\t line\n \xc3\xa9 \xf0\x9f\x8e\x9b");
    value = request_token_value(GPU, &ids);
    assert_string_equal(key, KEY);
    assert_int_equal(request_add_token(&request, key, value, &error), 0);
    assert_true(ids_equal(&request.items[0].ids, &ids));
    request_fini(&request);
    ids_fini(&ids);
    free(key);
    free(value);
}

static void garbage_is_no_token(void **state)
{
    (void)state;
    refused_token(KEY, "", "at position");
    refused_token(KEY, "{", "at position");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",}", "at position 30");
    refused_token(KEY, "[]", "expected {\"resource\"");
    refused_token(KEY, "7", "at position"); /* neither object nor array */
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\"}", "expected {");
    refused_token(KEY, "{\"resource\":1,\"ids\":[\"g0\"]}", "expected {");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",\"ids\":\"g0\"}", "expected {");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",\"ids\":[]}", "expected {");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"],\"x\":1}", "expected {");
    refused_token(KEY, "{\"ids\":[\"g0\"],\"ids\":[\"g1\"],\"resource\":\"vendor.com/gpu\"}",
                  "duplicate");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\",1]}",
                  "ids[1] is no device");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"\"]}", "ids[0] is no device");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\",\"g0\"]}", "named twice");
    refused_token(KEY, "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"\\u0000\"]}", "at position");
    refused_token(KEY, "{\"resource\":\"gpu\",\"ids\":[\"g0\"]}", "\"gpu\" is invalid");
    refused_token(KEY, "\xff\xfe", "at position");
}

static void a_token_names_so_many_ids_at_most(void **state)
{
    size_t room = 32 + (REQUEST_COUNT_MAX + 1) * sizeof "\"g65535\",";
    char *value = mem_alloc(room, 1);
    struct request request = {0};
    struct text error = {0};

    (void)state;
    for (size_t n = REQUEST_COUNT_MAX; n <= REQUEST_COUNT_MAX + 1; n++) {
        size_t len = (size_t)snprintf(value, room, "{\"resource\":\"vendor.com/gpu\",\"ids\":[");

        for (size_t i = 0; i < n; i++)
            len += (size_t)snprintf(value + len, room - len, "%s\"g%zu\"", i ? "," : "", i);
        snprintf(value + len, room - len, "]}");
        if (n > REQUEST_COUNT_MAX)
            refused_token(KEY, value, "65536 device ids, more than 65535");
        else
            assert_int_equal(request_add_token(&request, KEY, value, &error), 0);
    }
    assert_int_equal(request.items[0].ids.len, REQUEST_COUNT_MAX);
    request_fini(&request);
    free(value);
}

static void the_key_must_be_the_resources(void **state)
{
    (void)state;
    refused_token("devices.cri-device-shim/other.com_gpu",
                  "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}",
                  "the key of resource vendor.com/gpu is " KEY);
}

static void a_resource_has_one_token(void **state)
{
    struct request request = {0};
    struct text error = {0};
    const char *value = "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}";

    (void)state;
    assert_int_equal(request_add_token(&request, KEY, value, &error), 0);
    assert_int_equal(request_add_token(&request, KEY, value, &error), -1);
    request_fini(&request);
}

static void keys_are_told_apart(void **state)
{
    (void)state;
    assert_true(request_is_token_key(KEY));
    assert_false(request_is_token_key("devices.cri-device-shim"));
}

static void a_pod_asks_for_each_container_by_name(void **state)
{
    const struct devicemgr_annotation annotations[] = {
        {"main", "a=1"},
        {REQUEST_KEY_PREFIX "main2", "b=1"},
        {REQUEST_KEY_PREFIX "main", "c=1"},
        {REQUEST_KEY_PREFIX "tolerations", "[]"},
        {REQUEST_KEY_PREFIX "tolerations", "d=1"},
    };

    (void)state;
    assert_string_equal(request_annotation_of(annotations, 5, "main"), "c=1");
    assert_string_equal(request_annotation_of(annotations, 5, "main2"), "b=1");
    assert_null(request_annotation_of(annotations, 2, "main"));
    assert_null(request_annotation_of(annotations, 4, "tolerations"));
    assert_string_equal(request_annotation_of(annotations, 5, "tolerations"), "d=1");
}

static void an_annotation_names_counts(void **state)
{
    struct request request = {0};
    struct text error = {0};

    (void)state;
    assert_int_equal(
        request_add_annotation(&request, " vendor.com/gpu=2 \t\n,\n\tother.com/nic=65535", &error),
        0);
    request_sort(&request);
    assert_int_equal(request.len, 2);
    assert_string_equal(request.items[0].resource, "other.com/nic");
    assert_int_equal(request.items[0].count, 65535);
    assert_string_equal(request.items[1].resource, "vendor.com/gpu");
    assert_int_equal(request.items[1].count, 2);
    assert_false(request.items[1].token);
    request_fini(&request);
}

static void a_bad_annotation_is_told_with_its_place(void **state)
{
    (void)state;
    refused("", "\"\": expected resource=count at position 1");
    refused("vendor.com/gpu", "expected resource=count at position 1");
    refused("vendor.com/gpu=1,", "expected resource=count at position 18");
    refused("vendor.com/gpu=1, ,b/c=1", "expected resource=count at position 19");
    refused("vendor.com/gpu=0", "expected a count from 1 to 65535 at position 16");
    refused("vendor.com/gpu=-1", "at position 16");
    refused("vendor.com/gpu=+1", "at position 16");
    refused("vendor.com/gpu= 1", "at position 16");
    refused("vendor.com/gpu=01", "at position 16");
    refused("vendor.com/gpu=1x", "at position 16");
    refused("vendor.com/gpu=65536", "at position 16");
    refused("vendor.com/gpu=99999999999999999999999", "at position 16");
    refused("vendor.com/gpu=", "at position 16");
    refused("a/b=1, gpu=1", "not a resource name at position 8");
    refused("a/b=1,a/b=2", "the resource is named twice at position 7");
    refused("=1", "not a resource name at position 1");
}

static void long_texts_are_bounded(void **state)
{
    size_t len = REQUEST_BYTES_MAX + 1;
    char *text = mem_alloc(len + 1, 1), *end = text;
    struct request request = {0};
    struct text error = {0};

    (void)state;
    memset(text, 'a', len);
    refused(text, "too long a text at position 24577");
    for (unsigned i = 0; i < REQUEST_RESOURCES_MAX; i++)
        end += sprintf(end, "%sa/r%u=1", i ? "," : "", i);
    assert_int_equal(request_add_annotation(&request, text, &error), 0);
    assert_int_equal(request.len, REQUEST_RESOURCES_MAX);
    request_fini(&request);
    sprintf(end, ",a/one-more=1");
    refused(text, "more than 64 resources");
    free(text);
}

static void the_token_wins(void **state)
{
    struct request request = {0};
    struct text error = {0};

    (void)state;
    assert_int_equal(request_add_token(&request, KEY,
                                       "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}",
                                       &error),
                     0);
    assert_int_equal(request_add_annotation(&request, "vendor.com/gpu=3,a/b=1", &error), 0);
    assert_int_equal(request.len, 2);
    assert_int_equal(request.items[0].count, 1);
    request_fini(&request);
}

static void there_is_a_most_of_claimed_resources(void **state)
{
    struct request request = {0};
    struct text error = {0};
    char name[32];

    (void)state;
    for (unsigned i = 0; i <= REQUEST_RESOURCES_MAX; i++) {
        snprintf(name, sizeof name, "a/r%u", i);
        assert_int_equal(request_add_claimed(&request, name, "g0", "c1", &error),
                         i < REQUEST_RESOURCES_MAX ? 0 : -1);
    }
    assert_int_equal(request.len, REQUEST_RESOURCES_MAX);
    request_fini(&request);
}

/* By how many claims, too. */
static void there_is_a_most_of_what_claims_have(void **state)
{
    struct request request = {0};
    struct text error = {0};
    char uid[32];

    (void)state;
    for (unsigned i = 0; i <= REQUEST_CLAIMED_MAX; i++) {
        snprintf(uid, sizeof uid, "c%u", i);
        assert_int_equal(request_add_claimed(&request, GPU, "g0", uid, &error),
                         i < REQUEST_CLAIMED_MAX ? 0 : -1);
    }
    assert_int_equal(request.items[0].count, 1);
    assert_int_equal(request.items[0].by.len, REQUEST_CLAIMED_MAX);
    request_fini(&request);
}

static void there_is_a_most_of_tokens(void **state)
{
    struct request request = {0};
    struct text error = {0};
    char key[64], value[64];

    (void)state;
    for (unsigned i = 0; i <= REQUEST_RESOURCES_MAX; i++) {
        snprintf(key, sizeof key, "devices.cri-device-shim/a_r%u", i);
        snprintf(value, sizeof value, "{\"resource\":\"a/r%u\",\"ids\":[\"g0\"]}", i);
        assert_int_equal(request_add_token(&request, key, value, &error),
                         i < REQUEST_RESOURCES_MAX ? 0 : -1);
    }
    assert_int_equal(request.len, REQUEST_RESOURCES_MAX);
    request_fini(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_says_resource_and_ids),
        cmocka_unit_test(what_is_written_can_be_read),
        cmocka_unit_test(garbage_is_no_token),
        cmocka_unit_test(a_token_names_so_many_ids_at_most),
        cmocka_unit_test(the_key_must_be_the_resources),
        cmocka_unit_test(a_resource_has_one_token),
        cmocka_unit_test(keys_are_told_apart),
        cmocka_unit_test(a_pod_asks_for_each_container_by_name),
        cmocka_unit_test(an_annotation_names_counts),
        cmocka_unit_test(a_bad_annotation_is_told_with_its_place),
        cmocka_unit_test(long_texts_are_bounded),
        cmocka_unit_test(the_token_wins),
        cmocka_unit_test(there_is_a_most_of_claimed_resources),
        cmocka_unit_test(there_is_a_most_of_what_claims_have),
        cmocka_unit_test(there_is_a_most_of_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
