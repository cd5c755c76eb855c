/* cri-proto/token.c: what both processes write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cri-proto/token.h"

static void the_key_is_a_valid_annotation_name(void **state)
{
    char *key = token_key("vendor.com/gpu");

    (void)state;
    assert_string_equal(key, "devices.cri-device-shim/vendor.com_gpu");
    free(key);
}

static void gives(const char *const *ids, size_t len, const char *expected)
{
    char *value = token_value("v.com/gpu", ids, len);

    assert_string_equal(value, expected);
    free(value);
}

static void the_value_keeps_ids_as_they_are(void **state)
{
    const char *const ids[] = {"g1", "g0", "g0", ""};
    const char *const odd[] = {"\"a\\b/", "\n\x01\x7f", "\xc3\xbc\xf0\x9f\x99\x82"};

    (void)state;
    gives(ids, 4, "{\"resource\":\"v.com/gpu\",\"ids\":[\"g1\",\"g0\",\"g0\",\"\"]}");
    gives(odd, 3,
          "{\"resource\":\"v.com/gpu\",\"ids\":[\"\\\"a\\\\b/\",\"\\n\\u0001\x7f\","
          "\"\xc3\xbc\xf0\x9f\x99\x82\"]}");
    gives(NULL, 0, "{\"resource\":\"v.com/gpu\",\"ids\":[]}");
}

static void what_is_not_utf_8_has_no_value(void **state)
{
    const char *const bad[] = {"g0", "\xff"}, *const good[] = {"g0"};

    (void)state;
    assert_null(token_value("v.com/gpu", bad, 2));
    assert_null(token_value("v.com/\xc3", good, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_is_a_valid_annotation_name),
        cmocka_unit_test(the_value_keeps_ids_as_they_are),
        cmocka_unit_test(what_is_not_utf_8_has_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
