/* cri-proto/lift_marker.c: names of CDI devices that stand for devices here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/lift_marker.h"

#define CLAIM "0e8d5c0f-2f5a-4f3e-9d1c-0a1b2c3d4e5f"

static void what_is_put_is_read(void **state)
{
    char name[LIFT_MARKER_BYTES_MAX];
    struct lift_marker marker;

    (void)state;
    assert_true(lift_marker_put(name, "vendor.com/gpu", "gpu-0", CLAIM));
    assert_string_equal(name, "plugins.cri-device-shim/device=vendor.com:gpu:gpu-0:" CLAIM);
    assert_true(lift_marker_is(name, strlen(name)));
    assert_true(lift_marker_read(name, &marker));
    assert_string_equal(marker.pool, "vendor.com/gpu");
    assert_string_equal(marker.device, "gpu-0");
}

static void the_longest_fits(void **state)
{
    char pool[253 + 1 + 63 + 1], device[64], uid[65], name[LIFT_MARKER_BYTES_MAX];
    struct lift_marker marker;

    (void)state;
    memset(pool, 'a', sizeof pool - 1);
    pool[253] = '/';
    pool[sizeof pool - 1] = '\0';
    memset(device, 'b', 63);
    device[63] = '\0';
    memset(uid, 'c', 64);
    uid[64] = '\0';
    assert_true(lift_marker_put(name, pool, device, uid));
    assert_int_equal(strlen(name), LIFT_MARKER_BYTES_MAX - 1);
    assert_true(lift_marker_read(name, &marker));
    assert_string_equal(marker.pool, pool);
    assert_string_equal(marker.device, device);
}

/* What the cluster says may be anything. */
static void what_would_not_be_a_name_is_none(void **state)
{
    static const struct {
        const char *pool, *device, *uid;
    } NONE[] = {{"gpu", "g0", CLAIM},
                {"/gpu", "g0", CLAIM},
                {"vendor.com/", "g0", CLAIM},
                {"vendor.com/a/b", "g0", CLAIM},
                {"vendor.com/a:b", "g0", CLAIM},
                {"vendor.com/gpu", "", CLAIM},
                {"vendor.com/gpu", "g,0", CLAIM},
                {"vendor.com/gpu", "g:0", CLAIM},
                {"vendor.com/gpu", "g0", ""},
                {"vendor.com/gpu", "g0", "a b"},
                {"vendor.com/gpu", "g0", CLAIM CLAIM}};
    char name[LIFT_MARKER_BYTES_MAX] = "as it was";

    (void)state;
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
        assert_false(lift_marker_put(name, NONE[i].pool, NONE[i].device, NONE[i].uid));
    assert_string_equal(name, "as it was");
}

static void what_was_not_put_is_not_read(void **state)
{
    static const char *const NONE[] = {"",
                                       "vendor.com/gpu=0",
                                       LIFT_MARKER_PREFIX,
                                       LIFT_MARKER_PREFIX "x",
                                       LIFT_MARKER_PREFIX "x.com:y",
                                       LIFT_MARKER_PREFIX "x.com:y:",
                                       LIFT_MARKER_PREFIX ":y:z:c",
                                       LIFT_MARKER_PREFIX "x.com::z:c",
                                       LIFT_MARKER_PREFIX "x/y:y:z:c"};
    struct lift_marker marker;

    (void)state;
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
        assert_false(lift_marker_read(NONE[i], &marker));
    assert_false(lift_marker_is("plugins.cri-device-shim/device", 30));
    assert_false(lift_marker_is("plugins.cri-device-shim/other=x", 31));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_read),
        cmocka_unit_test(the_longest_fits),
        cmocka_unit_test(what_would_not_be_a_name_is_none),
        cmocka_unit_test(what_was_not_put_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
