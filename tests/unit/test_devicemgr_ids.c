/* Lists of device ids. */
#include "devicemgr/things/ids.h"
#include "devicemgr_world.h"

static void ids_sort_the_way_people_count(void **state)
{
    static const char *const SORTED[] = {"g1", "g2", "g10", "x"};
    struct ids ids = {0}, copy;

    (void)state;
    ids_add(&ids, "x");
    ids_add(&ids, "g10");
    ids_add(&ids, "g2");
    ids_add(&ids, "g1");
    ids_copy(&copy, ids.v, ids.len);
    assert_true(ids_equal(&ids, &copy));
    ids_sort(&ids);
    assert_false(ids_equal(&ids, &copy)); /* the order counts */
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(ids.v[i], SORTED[i]);
    assert_true(ids_contain(&ids, "g10"));
    assert_false(ids_contain(&ids, "g"));
    assert_false(ids_repeat(&ids));
    ids_add(&ids, "x");
    assert_true(ids_repeat(&ids));
    assert_false(ids_equal(&ids, &copy));
    ids_fini(&ids);
    ids_fini(&copy);
    assert_int_equal(ids.len, 0);
}

static void an_empty_list_is_fine(void **state)
{
    struct ids ids = {0};

    (void)state;
    ids_sort(&ids);
    assert_false(ids_repeat(&ids));
    assert_false(ids_contain(&ids, ""));
    ids_fini(&ids);
}

/* In the order of people, wherever it comes. */
static void what_is_inserted_finds_its_place(void **state)
{
    static const char *const SORTED[] = {"g1", "g2", "g10", "x"};
    struct ids ids = {0};

    (void)state;
    assert_true(ids_insert(&ids, "g10"));
    assert_true(ids_insert(&ids, "x"));
    assert_true(ids_insert(&ids, "g1"));
    assert_true(ids_insert(&ids, "g2"));
    assert_false(ids_insert(&ids, "g2"));
    assert_int_equal(ids.len, 4);
    for (size_t i = 0; i < ids.len; i++)
        assert_string_equal(ids.v[i], SORTED[i]);
    ids_fini(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_sort_the_way_people_count),
        cmocka_unit_test(what_is_inserted_finds_its_place),
        cmocka_unit_test(an_empty_list_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
