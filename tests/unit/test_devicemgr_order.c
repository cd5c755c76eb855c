/* devicemgr/things/order.c: what is set, and what becomes of it. */
#include "devicemgr/things/order.h"
#include "devicemgr_world.h"

static const struct order_words DUST = {.reason = (char *)"dust", .at_s = 7};
static const struct order_words RUST = {.reason = (char *)"rust", .at_s = 8};

static void one_that_is_durable_is_set(void **state)
{
    struct orders table = {0};
    struct order *order;

    (void)state;
    order = orders_set(&table, ORDER_CORDON, GPU, "g0", &DUST);
    assert_int_equal(order->state, ORDER_SETTING);
    assert_ptr_equal(orders_cordon(&table, GPU, "g0"), order);
    order_carry(order, 3);
    assert_int_equal(order->commit, 3);
    orders_confirm(&table, order);
    assert_int_equal(order->state, ORDER_SET);
    assert_int_equal(order->commit, 0);
    order_carry(order, 4); /* as one that is set, no commit changes it */
    assert_int_equal(order->commit, 0);
    orders_fini(&table);
}

static void one_that_cannot_be_stored_is_as_before(void **state)
{
    struct orders table = {0};
    struct order *order;

    (void)state;
    orders_revert(&table, orders_set(&table, ORDER_WITHDRAWAL, GPU, "", &DUST));
    assert_null(orders_withdrawal(&table, GPU));
    assert_null(orders_of(&table, GPU));
    orders_confirm(&table, orders_set(&table, ORDER_WITHDRAWAL, GPU, "", &DUST));
    order = orders_set(&table, ORDER_WITHDRAWAL, GPU, "", &RUST);
    assert_string_equal(order->words.reason, "rust");
    orders_revert(&table, order);
    assert_string_equal(order->words.reason, "dust");
    assert_int_equal(order->state, ORDER_SET);
    order_end(order);
    assert_non_null(orders_withdrawal(&table, GPU)); /* in force until that is durable */
    orders_revert(&table, order);
    assert_int_equal(order->state, ORDER_SET);
    order_end(order);
    orders_confirm(&table, order);
    assert_null(orders_withdrawal(&table, GPU));
    orders_fini(&table);
}

static void each_is_of_its_resource_and_id(void **state)
{
    struct orders table = {0};

    (void)state;
    orders_set(&table, ORDER_CORDON, GPU, "g1", &DUST);
    assert_null(orders_cordon(&table, GPU, "g0"));
    assert_null(orders_cordon(&table, NIC, "g1"));
    assert_null(orders_withdrawal(&table, GPU));
    assert_null(orders_find(&table, ORDER_GRACE, GPU, ""));
    orders_set(&table, ORDER_GRACE, GPU, "", &RUST);
    assert_non_null(orders_of(&table, GPU)->grace);
    assert_int_equal(orders_of(&table, GPU)->cordons, 1);
    orders_fini(&table);
    assert_null(orders_of(&table, GPU));
}

static void they_come_in_natural_order(void **state)
{
    static const char *const IDS[] = {"g10", "g9", "g1"};
    const struct order **sorted;
    struct orders table = {0};
    size_t len;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        orders_set(&table, ORDER_CORDON, GPU, IDS[i], &DUST);
    orders_set(&table, ORDER_CORDON, NIC, "n0", &DUST);
    orders_set(&table, ORDER_WITHDRAWAL, GPU, "", &DUST);
    sorted = orders_sorted(&table, ORDER_CORDON, NULL, &len);
    assert_int_equal(len, 4);
    assert_string_equal(sorted[0]->id, "n0");
    assert_string_equal(sorted[1]->id, "g1");
    assert_string_equal(sorted[3]->id, "g10");
    free(sorted);
    sorted = orders_sorted(&table, ORDER_CORDON, GPU, &len);
    assert_int_equal(len, 3);
    free(sorted);
    orders_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_durable_is_set),
        cmocka_unit_test(one_that_cannot_be_stored_is_as_before),
        cmocka_unit_test(each_is_of_its_resource_and_id),
        cmocka_unit_test(they_come_in_natural_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
