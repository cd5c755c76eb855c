/* shim/rpc/field.c: header fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shim/rpc/field.h"

static bool grpc_type(const char *value)
{
    return field_is_grpc_type((const uint8_t *)value, strlen(value));
}

static void grpc_content_types(void **state)
{
    (void)state;
    assert_true(grpc_type("application/grpc"));
    assert_true(grpc_type("application/grpc+proto"));
    assert_true(grpc_type("application/grpc;charset=utf-8"));
    assert_false(grpc_type("application/grpc-web"));
    assert_false(grpc_type("application/grp"));
    assert_false(grpc_type("text/html"));
    assert_false(grpc_type(""));
}

static void compares_whole_values(void **state)
{
    (void)state;
    assert_true(field_is((const uint8_t *)"POSTER", 4, "POST"));
    assert_false(field_is((const uint8_t *)"POSTER", 6, "POST"));
    assert_false(field_is((const uint8_t *)"POS", 3, "POST"));
    assert_true(field_is((const uint8_t *)"", 0, ""));
}

static void makes_fields_with_their_lengths(void **state)
{
    nghttp2_nv field = field_make("te", "trailers");

    (void)state;
    assert_memory_equal(field.name, "te", field.namelen);
    assert_memory_equal(field.value, "trailers", field.valuelen);
    assert_int_equal(field.namelen, 2);
    assert_int_equal(field.valuelen, 8);
    assert_int_equal(field_bytes(field.namelen, field.valuelen), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grpc_content_types),
        cmocka_unit_test(compares_whole_values),
        cmocka_unit_test(makes_fields_with_their_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
