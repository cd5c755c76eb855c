/* The table of allocations and its two indexes. */
#include "devicemgr/allocation.h"
#include "devicemgr/options.h"
#include "devicemgr_world.h"

static struct allocation *add(struct allocations *table, const char *uid, const char *container,
                              const char *id)
{
    struct ids ids = {0};
    struct allocation *allocation;

    ids_add(&ids, id);
    ids_add(&ids, "shared");
    allocation = allocations_add(table, uid, container, GPU, &ids);
    ids_fini(&ids);
    return allocation;
}

static void a_device_knows_its_holders(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "init", "g0"), *b = add(&table, "u1", "main", "g1");
    struct allocation *const *holders;
    size_t len;

    (void)state;
    holders = allocations_holders(&table, GPU, "shared", &len);
    assert_int_equal(len, 2);
    assert_ptr_equal(holders[0], a);
    assert_ptr_equal(holders[1], b);
    assert_null(allocations_holders(&table, NIC, "shared", &len));
    assert_int_equal(len, 0);
    add(&table, "u1", "last", "g2");
    allocations_remove(&table, allocations_find(&table, "u1", "last", GPU)); /* not the first */
    allocations_remove(&table, a);
    assert_null(allocations_holders(&table, GPU, "g0", &len));
    holders = allocations_holders(&table, GPU, "shared", &len);
    assert_int_equal(len, 1);
    assert_ptr_equal(holders[0], b);
    allocations_fini(&table);
}

static void a_pod_knows_its_allocations(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "init", "g0"), *b = add(&table, "u1", "main", "g1");

    (void)state;
    add(&table, "u2", "main", "g2");
    assert_ptr_equal(allocations_of_pod(&table, "u1"), b);
    assert_ptr_equal(b->pod_next, a);
    assert_null(a->pod_next);
    allocations_remove(&table, a);
    assert_null(b->pod_next);
    allocations_remove(&table, b);
    assert_null(allocations_of_pod(&table, "u1"));
    assert_non_null(allocations_find(&table, "u2", "main", GPU));
    assert_null(allocations_find(&table, "u1", "main", GPU));
    allocations_fini(&table);
    assert_null(table.by_key);
    assert_null(table.claims);
    assert_null(table.pods);
}

static void its_life_is_what_is_known_of_its_containers(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");

    (void)state;
    assert_int_equal(allocation_life(a), ALLOCATION_IDLE);
    allocation_set_unknown(a, "s1", 4711);
    assert_int_equal(allocation_life(a), ALLOCATION_UNKNOWN);
    a->check = 5;
    allocation_set_live(a, "c2", "s1", 0);
    assert_int_equal(allocation_life(a), ALLOCATION_LIVE);
    assert_int_equal(a->check, 0); /* its answer would be about another container */
    assert_false(allocation_set_ended(a, "c1"));
    assert_int_equal(allocation_life(a), ALLOCATION_LIVE);
    assert_true(allocation_set_ended(a, "c2")); /* the one nobody named may still come */
    assert_int_equal(allocation_life(a), ALLOCATION_UNKNOWN);
    assert_string_equal(a->unknown_in, "s1");
    assert_int_equal(a->unknown_until_ms, 4711);
    a->create = 7;
    assert_int_equal(allocation_life(a), ALLOCATION_BUSY);
    a->create = 0;
    allocation_set_idle(a);
    assert_int_equal(allocation_life(a), ALLOCATION_IDLE);
    assert_null(a->unknown_in);
    allocations_fini(&table);
}

static void it_lives_as_long_as_any_of_its_containers(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");

    (void)state;
    allocation_set_live(a, "c1", "s1", 1);
    allocation_set_live(a, "c2", "s2", 2);
    allocation_set_live(a, "c0", "s0", 0);
    allocation_set_live(a, "c1", "s1", 1); /* told again */
    assert_int_equal(a->lives_len, 3);
    assert_string_equal(allocation_live_id(a), "c2");
    assert_true(allocation_set_ended(a, "c2"));
    assert_string_equal(allocation_live_id(a), "c1");
    allocation_set_unknown(a, "s1", 4711);
    a->check = 5;
    allocation_set_sandbox_ended(a, "s2"); /* nothing of it is left */
    assert_int_equal(a->check, 5);
    allocation_set_sandbox_ended(a, "s1");
    assert_int_equal(a->check, 0);
    assert_string_equal(allocation_live_id(a), "c0");
    allocation_set_sandbox_ended(a, "s0");
    assert_int_equal(allocation_life(a), ALLOCATION_IDLE);
    assert_null(allocation_live_id(a));
    allocations_fini(&table);
}

static void fresh_options_are_in_force_once_durable(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");
    V1beta1__ContainerAllocateResponse *first = options_new(), *second = options_new();

    (void)state;
    allocation_set_fresh(a, options_new(), 1);
    allocation_set_fresh(a, first, 2); /* the last answer counts */
    allocation_confirm(a, "boot-1");
    assert_ptr_equal(a->options, first);
    assert_string_equal(a->boot_id, "boot-1");
    assert_int_equal(a->generation, 2);
    assert_true(a->durable);
    allocation_set_fresh(a, second, 3);
    allocation_revert(a);
    assert_ptr_equal(a->options, first);
    assert_null(a->fresh);
    allocation_confirm(a, "boot-2"); /* nothing fresh: the options stay of boot-1 */
    assert_string_equal(a->boot_id, "boot-1");
    allocations_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_knows_its_holders),
        cmocka_unit_test(a_pod_knows_its_allocations),
        cmocka_unit_test(its_life_is_what_is_known_of_its_containers),
        cmocka_unit_test(it_lives_as_long_as_any_of_its_containers),
        cmocka_unit_test(fresh_options_are_in_force_once_durable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
