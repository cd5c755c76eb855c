/* shim/relay/flow.c: the sums of the ledger, step by step and at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "h2_script.h"
#include "shim/relay/flow.h"

static void what_passes_needs_no_ledger(void **state)
{
    struct flow f;

    (void)state;
    flow_init(&f, 65535);
    flow_passed(&f, 1000);
    flow_shift(&f, -60000);
    assert_int_equal(f.send, 4535);
    assert_int_equal(flow_update(&f, 1000), 1000);
    assert_int_equal(flow_owed(&f), 0);
    assert_int_equal(flow_lag(&f), 0);
    assert_true(flow_check(&f));
}

static void added_bytes_are_paid_back_by_updates(void **state)
{
    struct flow f;

    (void)state;
    flow_init(&f, 100);
    flow_withheld(&f, 50, 50);
    flow_added(&f, 30);
    flow_sent(&f, 80);
    assert_int_equal(f.send, 20);
    assert_int_equal(f.client, 50);
    assert_int_equal(flow_update(&f, 10), 0);
    assert_int_equal(flow_update(&f, 70), 50);
    assert_int_equal(f.send, 100);
    assert_int_equal(f.client, 100);
    assert_true(flow_check(&f));
}

static void dropped_bytes_are_owed(void **state)
{
    struct flow f;

    (void)state;
    flow_init(&f, 100);
    flow_withheld(&f, 60, 40); /* 20 of padding */
    assert_int_equal(flow_owed(&f), 20);
    assert_int_equal(flow_lag(&f), 60);
    flow_dropped(&f, 40);
    assert_int_equal(flow_owed(&f), 60);
    flow_credit(&f, 60);
    assert_int_equal(flow_owed(&f), 0);
    assert_int_equal(f.client, 100);
    assert_true(flow_check(&f));
}

static void no_increment_is_larger_than_a_frame_can_say(void **state)
{
    struct flow f;

    (void)state;
    flow_init(&f, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(flow_update(&f, INT32_MAX), INT32_MAX);
    f.client -= INT64_C(4) << 31;
    f.surplus -= INT64_C(4) << 31;
    assert_int_equal(flow_owed(&f), INT32_MAX);
    assert_int_equal(flow_lag(&f), INT32_MAX);
    assert_true(flow_check(&f));
}

/* Whatever happens: once all is sent or dropped, owed and updated, both ends agree. */
static void any_order_ends_in_agreement(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 500; seed++) {
        struct h2_random r = {seed};
        struct flow f;

        flow_init(&f, 65535);
        for (int i = 0; i < 200; i++) {
            uint32_t n = h2_random(&r, 500);

            switch (h2_random(&r, 8)) {
            case 0:
                flow_passed(&f, n);
                break;
            case 1:
                flow_withheld(&f, n, h2_random(&r, n + 1));
                break;
            case 2:
                flow_added(&f, n);
                break;
            case 3:
                flow_sent(&f, h2_random(&r, (uint32_t)f.pending + 1));
                break;
            case 4:
                flow_dropped(&f, h2_random(&r, (uint32_t)f.pending + 1));
                break;
            case 5:
                assert_true(flow_update(&f, n) <= n);
                break;
            case 6:
                flow_credit(&f, flow_owed(&f));
                break;
            default:
                flow_shift(&f, (int64_t)n - 250);
                break;
            }
            assert_true(flow_check(&f));
        }
        flow_sent(&f, (uint64_t)f.pending);
        flow_credit(&f, flow_owed(&f));
        flow_update(&f, (uint32_t)f.surplus);
        assert_int_equal(f.surplus, 0);
        assert_int_equal(f.client, f.send);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_passes_needs_no_ledger),
        cmocka_unit_test(added_bytes_are_paid_back_by_updates),
        cmocka_unit_test(dropped_bytes_are_owed),
        cmocka_unit_test(no_increment_is_larger_than_a_frame_can_say),
        cmocka_unit_test(any_order_ends_in_agreement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
