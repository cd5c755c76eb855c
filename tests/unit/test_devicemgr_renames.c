/* devicemgr/things/renames.c. */
#include "devicemgr/things/renames.h"

#include "devicemgr_world.h"

static void names_go_on_as_they_are_renamed(void **state)
{
    static const char *const names[] = {"a", "old", "gone", "b", "old"};
    struct renames renames = {0}, copy;
    const char *out[7];

    (void)state;
    ids_add(&renames_add(&renames, "old")->to, "x");
    ids_add(&renames.v[0].to, "y");
    renames_add(&renames, "gone");
    renames_copy(&copy, &renames);
    renames_fini(&renames);
    assert_int_equal(renames_apply(&renames, names, 5, NULL), 5);
    assert_null(renames_find(&copy, "a"));
    assert_int_equal(renames_find(&copy, "gone")->to.len, 0);
    assert_int_equal(renames_apply(&copy, names, 5, NULL), 6);
    assert_int_equal(renames_apply(&copy, names, 5, out), 6);
    assert_string_equal(out[0], "a");
    assert_string_equal(out[1], "x");
    assert_string_equal(out[2], "y");
    assert_string_equal(out[3], "b");
    assert_string_equal(out[5], "y");
    assert_int_equal(renames_apply(&copy, names, 0, NULL), 0);
    renames_fini(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_on_as_they_are_renamed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
