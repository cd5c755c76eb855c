/* devicemgr/things/by_claims.c: by which claims devices are had. */
#include "devicemgr/things/by_claims.h"
#include "devicemgr_world.h"

static void each_pair_is_there_once(void **state)
{
    struct by_claims by = {0};

    (void)state;
    by_claims_add(&by, "g1", "c1", false);
    by_claims_add(&by, "g0", "c2", false);
    by_claims_add(&by, "g0", "c1", false);
    by_claims_add(&by, "g0", "c2", false);
    assert_int_equal(by.len, 3);
    assert_string_equal(by.v[0].id, "g0");
    assert_string_equal(by.v[0].uid, "c1");
    assert_string_equal(by.v[1].uid, "c2");
    assert_string_equal(by.v[2].id, "g1");
    assert_ptr_equal(by_claims_find(&by, "g0", "c2"), &by.v[1]);
    assert_null(by_claims_find(&by, "g1", "c2"));
    by_claims_fini(&by);
}

/* Whoever says it, and however often it is said otherwise. */
static void who_is_known_to_look_looks(void **state)
{
    struct by_claims by = {0}, copy;

    (void)state;
    by_claims_add(&by, "g0", "c1", false);
    by_claims_copy(&copy, &by);
    assert_true(by_claims_equal(&by, &copy));
    by_claims_add(&by, "g0", "c1", true);
    assert_false(by_claims_equal(&by, &copy));
    by_claims_add(&by, "g0", "c1", false);
    assert_true(by.v[0].looks);
    assert_int_equal(by.len, 1);
    by_claims_fini(&by);
    by_claims_fini(&copy);
}

static void what_has_more_is_another(void **state)
{
    struct by_claims none = {0}, one = {0};

    (void)state;
    assert_true(by_claims_equal(&none, &none));
    by_claims_add(&one, "g0", "c1", false);
    assert_false(by_claims_equal(&one, &none));
    assert_false(by_claims_equal(&none, &one));
    by_claims_add(&none, "g0", "c2", false);
    assert_false(by_claims_equal(&none, &one));
    by_claims_fini(&none);
    by_claims_fini(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_is_there_once),
        cmocka_unit_test(who_is_known_to_look_looks),
        cmocka_unit_test(what_has_more_is_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
