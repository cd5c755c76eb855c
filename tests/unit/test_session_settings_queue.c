/*
 * shim/relay/session/settings_queue.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>

#include <cmocka.h>

#include "shim/relay/limits.h"
#include "shim/relay/session/settings_queue.h"

static void push(struct settings_queue *q, struct settings_sent sent)
{
    assert_int_equal(settings_queue_push(q, &sent), 0);
}

static void acks_come_in_the_order_of_the_settings(void **state)
{
    struct settings_queue q = {0};
    struct settings_sent sent;

    (void)state;
    assert_false(settings_queue_pop(&q, &sent));
    for (uint32_t i = 0; i < 100; i++) {
        push(&q, (struct settings_sent){.barrier = 2 * i});
        push(&q, (struct settings_sent){.barrier = 2 * i + 1});
        assert_true(settings_queue_pop(&q, &sent));
        assert_int_equal(sent.barrier, i);
    }
    for (uint32_t i = 100; i < 200; i++) {
        assert_true(settings_queue_pop(&q, &sent));
        assert_int_equal(sent.barrier, i);
    }
    assert_false(settings_queue_pop(&q, &sent));
    settings_queue_fini(&q);
}

static void an_end_and_we_have_a_bound_each(void **state)
{
    const struct settings_sent own = {0}, barrier = {.barrier = 1};
    struct settings_queue q = {0};
    struct settings_sent sent;

    (void)state;
    for (size_t i = 0; i < RELAY_SETTINGS_PENDING_MAX; i++)
        push(&q, own);
    assert_int_equal(settings_queue_push(&q, &own), -EPROTO);
    for (size_t i = 0; i < RELAY_STREAMS_MAX; i++)
        push(&q, barrier);
    assert_int_equal(settings_queue_push(&q, &barrier), -EPROTO);
    assert_true(settings_queue_pop(&q, &sent));
    assert_int_equal(sent.barrier, 0);
    assert_int_equal(settings_queue_push(&q, &barrier), -EPROTO);
    push(&q, own);
    assert_int_equal(settings_queue_push(&q, &own), -EPROTO);
    settings_queue_fini(&q);
}

static void one_that_is_acknowledged_before_it_is_whole_is_written_nowhere(void **state)
{
    struct settings_queue q = {0};
    struct settings_sent sent;

    (void)state;
    push(&q, (struct settings_sent){.barrier = 1});
    push(&q, (struct settings_sent){0});
    settings_queue_begin(&q);
    push(&q, (struct settings_sent){.barrier = 3}); /* while it is under way */
    settings_queue_under_way(&q)->window = 77;
    assert_true(settings_queue_pop(&q, &sent));
    assert_int_equal(sent.barrier, 1);
    settings_queue_under_way(&q)->has_window = true;
    assert_true(settings_queue_pop(&q, &sent));
    assert_true(sent.has_window && sent.window == 77 && sent.barrier == 0);
    assert_null(settings_queue_under_way(&q));
    settings_queue_fini(&q);
}

static void the_smallest_window_that_is_announced(void **state)
{
    struct settings_queue q = {0};
    struct settings_sent sent;

    (void)state;
    assert_int_equal(settings_queue_window_min(&q, 10), 10);
    push(&q, (struct settings_sent){.has_window = true, .window = 7});
    push(&q, (struct settings_sent){.window = 1}); /* says none */
    push(&q, (struct settings_sent){.has_window = true, .window = 9});
    assert_int_equal(settings_queue_window_min(&q, 10), 7);
    assert_int_equal(settings_queue_window_min(&q, 5), 5);
    assert_true(settings_queue_pop(&q, &sent));
    assert_int_equal(settings_queue_window_min(&q, 10), 9);
    settings_queue_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acks_come_in_the_order_of_the_settings),
        cmocka_unit_test(an_end_and_we_have_a_bound_each),
        cmocka_unit_test(one_that_is_acknowledged_before_it_is_whole_is_written_nowhere),
        cmocka_unit_test(the_smallest_window_that_is_announced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
