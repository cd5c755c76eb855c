/* Who has a thing. */
#include "devicemgr/things/owners.h"
#include "devicemgr_world.h"

static void who_came_first_is_first(void **state)
{
    static const char *const device[] = {"a.b/c", "g0"}, *const other[] = {"a.b/cg", "0"};
    struct owners *all = NULL;
    int first, second, third;
    const struct owners *found;

    (void)state;
    assert_int_equal(owners_len(owners_find(all, device, 2)), 0);
    owners_add(&all, device, 2, &first);
    owners_add(&all, device, 2, &second);
    owners_add(&all, device, 2, &third);
    owners_remove(&all, device, 2, &first);
    found = owners_find(all, device, 2);
    assert_int_equal(owners_len(found), 2);
    assert_ptr_equal(found->v[0], &second);
    assert_ptr_equal(found->v[1], &third);
    assert_null(owners_find(all, other, 2));
    owners_remove(&all, device, 2, &third);
    owners_remove(&all, device, 2, &second);
    assert_null(all);
}

static void a_name_may_be_long(void **state)
{
    char name[4096];
    const char *parts[] = {name, "g0"};
    struct owners *all = NULL;
    int owner;

    (void)state;
    for (size_t len = 500; len < sizeof name; len = len < 520 ? len + 1 : 2 * len) {
        memset(name, 'x', len);
        name[len] = '\0';
        owners_add(&all, parts, 2, &owner);
        assert_int_equal(owners_len(owners_find(all, parts, 2)), 1);
        name[0] = 'y';
        assert_null(owners_find(all, parts, 2));
        name[0] = 'x';
        owners_remove(&all, parts, 2, &owner);
    }
    assert_null(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_came_first_is_first),
        cmocka_unit_test(a_name_may_be_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
