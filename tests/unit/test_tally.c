/* shim/relay/tally.c: which calls are counted, and how long they took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shim/relay/tally.h"

static uint64_t now;
static unsigned asked; /* the clock, how often */
static struct tally_counts counts;
static struct tally tally;

static uint64_t now_us(void)
{
    asked++;
    return now;
}

static int set_up(void **state)
{
    (void)state;
    memset(&counts, 0, sizeof counts);
    tally = (struct tally){.counts = &counts, .now_us = now_us};
    now = 1000;
    asked = 0;
    return 0;
}

static uint64_t sum(const uint64_t *values, size_t len)
{
    uint64_t total = 0;

    for (size_t i = 0; i < len; i++)
        total += values[i];
    return total;
}

static void a_call_is_counted_once(void **state)
{
    (void)state;
    tally_begin(&tally, 1, CRI_VERSION);
    tally_begin(&tally, 1, CRI_OTHER); /* its trailers */
    now += 700;
    tally_end(&tally, 1, 0);
    tally_end(&tally, 1, 1);
    assert_int_equal(sum(counts.begun, CRI_METHODS), 1);
    assert_int_equal(counts.ended[CRI_VERSION][0], 1);
    assert_int_equal(sum(&counts.ended[0][0], CRI_METHODS * TALLY_CODES), 1);
    assert_int_equal(counts.took[CRI_VERSION].sum_us, 700);
    assert_int_equal(counts.took[CRI_VERSION].counts[1], 1);
}

static void what_was_not_seen_to_begin_counts_for_nothing(void **state)
{
    (void)state;
    tally_end(&tally, 1, 0);
    tally_end(&tally, 0, 0);
    tally_begin(&tally, 0, CRI_OTHER);
    assert_int_equal(sum(&counts.ended[0][0], CRI_METHODS * TALLY_CODES), 0);
    assert_int_equal(sum(counts.begun, CRI_METHODS), 0);
}

static void numbers_that_are_no_code_have_a_place(void **state)
{
    static const int codes[] = {-1, 17, 18, 1000000};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        tally_begin(&tally, 2 * i + 1, CRI_OTHER);
        tally_end(&tally, 2 * i + 1, codes[i]);
    }
    assert_int_equal(counts.ended[CRI_OTHER][TALLY_CODES - 1], 4);
}

/* A stream of events, as long as the connection. */
static void one_that_goes_on_is_in_nobodys_way(void **state)
{
    (void)state;
    tally_begin(&tally, 1, CRI_GET_CONTAINER_EVENTS);
    for (uint32_t stream = 3; stream < 20000; stream += 2) {
        tally_begin(&tally, stream, CRI_OTHER);
        tally_end(&tally, stream, 0);
    }
    assert_int_equal(counts.ended[CRI_OTHER][0], 9999);
    assert_int_equal(sum(counts.untimed, CRI_METHODS), 0);
    tally_end_all(&tally, 1);
    assert_int_equal(counts.ended[CRI_GET_CONTAINER_EVENTS][1], 1);
    tally_end_all(&tally, 1);
    assert_int_equal(sum(&counts.ended[0][0], CRI_METHODS * TALLY_CODES), 10000);
}

static void more_than_have_places_are_counted_without_their_time(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3 * TALLY_PLACES; i++)
        tally_begin(&tally, 2 * i + 1, CRI_OTHER);
    assert_int_equal(counts.begun[CRI_OTHER], 3 * TALLY_PLACES);
    assert_int_equal(sum(counts.untimed, CRI_METHODS), 2 * TALLY_PLACES);
    for (uint32_t i = 0; i < 3 * TALLY_PLACES; i++)
        tally_end(&tally, 2 * i + 1, 0);
    assert_int_equal(counts.ended[CRI_OTHER][0], TALLY_PLACES);
}

/* It has a place elsewhere, whose first one is free by the time of its trailers and of its end. */
static void one_that_gave_way_is_counted_once(void **state)
{
    uint32_t later = 1 + 2 * TALLY_PLACES;

    (void)state;
    tally_begin(&tally, 1, CRI_OTHER);
    tally_begin(&tally, later, CRI_VERSION);
    tally_end(&tally, 1, 0);
    tally_begin(&tally, later, CRI_OTHER); /* its trailers */
    assert_int_equal(sum(counts.begun, CRI_METHODS), 2);
    tally_end(&tally, later, 0);
    tally_end(&tally, later, 0);
    assert_int_equal(counts.ended[CRI_VERSION][0], 1);
    assert_int_equal(sum(&counts.ended[0][0], CRI_METHODS * TALLY_CODES), 2);
    tally_begin(&tally, later, CRI_OTHER); /* its first place again */
    tally_end(&tally, later, 0);
    assert_int_equal(counts.ended[CRI_OTHER][0], 2);
    assert_int_equal(sum(counts.untimed, CRI_METHODS), 0);
}

static void what_is_read_at_once_came_at_one_time(void **state)
{
    (void)state;
    tally_read_begins(&tally);
    tally_read_ends(&tally);
    assert_int_equal(asked, 0);
    tally_read_begins(&tally);
    for (uint32_t i = 0; i < 64; i++)
        tally_begin(&tally, 2 * i + 1, CRI_OTHER);
    now += 300; /* while that was read */
    tally_end(&tally, 1, 0);
    tally_read_ends(&tally);
    assert_int_equal(asked, 1);
    assert_int_equal(counts.took[CRI_OTHER].sum_us, 0);
    now += 400;
    tally_read_begins(&tally);
    tally_end(&tally, 3, 0);
    tally_read_ends(&tally);
    assert_int_equal(asked, 2);
    assert_int_equal(counts.took[CRI_OTHER].sum_us, 700);
    now += 200; /* one that ends by itself, between reads */
    tally_end(&tally, 5, 0);
    now += 100;
    tally_end(&tally, 7, 0);
    assert_int_equal(counts.took[CRI_OTHER].sum_us, 700 + 900 + 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_call_is_counted_once, set_up),
        cmocka_unit_test_setup(what_was_not_seen_to_begin_counts_for_nothing, set_up),
        cmocka_unit_test_setup(numbers_that_are_no_code_have_a_place, set_up),
        cmocka_unit_test_setup(one_that_goes_on_is_in_nobodys_way, set_up),
        cmocka_unit_test_setup(more_than_have_places_are_counted_without_their_time, set_up),
        cmocka_unit_test_setup(one_that_gave_way_is_counted_once, set_up),
        cmocka_unit_test_setup(what_is_read_at_once_came_at_one_time, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
