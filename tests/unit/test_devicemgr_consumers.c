/* devicemgr/things/consumers.c. */
#include <stdio.h>

#include "devicemgr/things/consumers.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static const struct devicemgr_toleration EACH = {
    .key = "", .op = "Exists", .value = "", .effect = ""};

static const struct devicemgr_toleration NONE = {
    .key = "", .op = "no such", .value = "", .effect = ""};

static size_t tolerated(const struct consumers *table, const char *driver, const char *pool,
                        const char *device)
{
    return consumers_tolerations(consumers_find(table, "c1"), driver, pool, device)->len;
}

static void what_is_tolerated_is_of_one_device(void **state)
{
    const struct devicemgr_claim_toleration two[] = {{"d", "p", "gpu-0", EACH},
                                                     {"d", "p", "gpu-0", EACH},
                                                     {"d2", "p", "gpu-0", EACH},
                                                     {"d", "p", "gpu-1", NONE}};
    struct consumers *table = NULL;

    (void)state;
    consumers_set(&table, "c1",
                  &(struct devicemgr_claim_consumers){.tolerations = two, .tolerations_len = 4});
    assert_int_equal(tolerated(table, "d", "p", "gpu-0"), 2);
    assert_int_equal(tolerated(table, "d2", "p", "gpu-0"), 1);
    assert_int_equal(tolerated(table, "d3", "p", "gpu-0"), 0);
    assert_int_equal(tolerated(table, "d", "q", "gpu-0"), 0);
    assert_int_equal(tolerated(table, "d", "p", "gpu-1"), 0); /* it is none */
    assert_int_equal(consumers_tolerations(NULL, "d", "p", "gpu-0")->len, 0);
    consumers_set(&table, "c1", NULL); /* that there are none is known */
    assert_int_equal(tolerated(table, "d", "p", "gpu-0"), 0);
    assert_non_null(consumers_find(table, "c1"));
    consumers_remove(&table, "c1");
    consumers_remove(&table, "c1");
    assert_null(table);
}

static void what_is_over_the_bounds_is_left_out(void **state)
{
    static char names[CLAIM_CONSUMERS_MAX + CLAIM_DEVICES_MAX][16];
    static const char *pods[CLAIM_CONSUMERS_MAX + 1];
    static struct devicemgr_claim_toleration each[CLAIM_DEVICES_MAX + 2];
    const struct consumers *is;
    struct consumers *table = NULL;

    (void)state;
    for (size_t i = 0; i < CLAIM_CONSUMERS_MAX + 1; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        pods[i] = names[i];
    }
    for (size_t i = 0; i < CLAIM_DEVICES_MAX + 1; i++)
        each[i] = (struct devicemgr_claim_toleration){"d", "p", names[i], EACH};
    each[CLAIM_DEVICES_MAX + 1] = each[0]; /* of one that is there */
    consumers_set(&table, "c1",
                  &(struct devicemgr_claim_consumers){.reserved_for = pods,
                                                      .reserved_for_len = CLAIM_CONSUMERS_MAX + 1,
                                                      .tolerations = each,
                                                      .tolerations_len = CLAIM_DEVICES_MAX + 2});
    is = consumers_find(table, "c1");
    assert_int_equal(is->reserved_for.len, CLAIM_CONSUMERS_MAX);
    assert_int_equal(is->devices_len, CLAIM_DEVICES_MAX);
    assert_int_equal(tolerated(table, "d", "p", names[0]), 2);
    assert_int_equal(tolerated(table, "d", "p", names[CLAIM_DEVICES_MAX]), 0);
    consumers_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_tolerated_is_of_one_device),
        cmocka_unit_test(what_is_over_the_bounds_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
