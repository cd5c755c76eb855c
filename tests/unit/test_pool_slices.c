/* shim/agent/pool_slices.c: which generation a pool's slices get, and what is written of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/agent/limits.h"
#include "shim/agent/pool_slices.h"

/* All there, right, of generation 7. */
static struct pool_slices right(size_t len)
{
    struct pool_slices slices;

    pool_slices_init(&slices, len);
    for (size_t i = 0; i < len; i++)
        slices.wanted[i] = (struct pool_slice){
            .there = true, .named = true, .same = true, .counted = true, .generation = 7};
    return slices;
}

#define assert_next(slices, write, at)                                                             \
    do {                                                                                           \
        size_t index_;                                                                             \
        assert_int_equal(pool_slices_next(&(slices), pool_slices_generation(&(slices)), &index_),  \
                         write);                                                                   \
        assert_int_equal(index_, at);                                                              \
    } while (0)

static void what_is_right_is_left(void **state)
{
    struct pool_slices slices = right(2);
    size_t index;

    (void)state;
    assert_int_equal(pool_slices_generation(&slices), 7);
    assert_int_equal(pool_slices_next(&slices, 7, &index), POOL_DONE);
    pool_slices_fini(&slices);
}

static void a_first_one_begins_with_one(void **state)
{
    struct pool_slices slices;

    (void)state;
    pool_slices_init(&slices, 2);
    assert_int_equal(pool_slices_generation(&slices), 1);
    assert_next(slices, POOL_MAKE, 0);
    slices.wanted[0].done = true;
    assert_next(slices, POOL_MAKE, 1);
    pool_slices_fini(&slices);
}

static void none_at_all_is_no_work(void **state)
{
    struct pool_slices slices;
    size_t index;

    (void)state;
    pool_slices_init(&slices, 0);
    assert_int_equal(pool_slices_next(&slices, 1, &index), POOL_DONE);
    pool_slices_fini(&slices);
}

/* Each by itself is seen before or after. */
static void taints_and_attributes_need_no_generation(void **state)
{
    struct pool_slices slices = right(3);

    (void)state;
    slices.wanted[0].same = slices.wanted[1].same = slices.wanted[2].same = false;
    assert_int_equal(pool_slices_generation(&slices), 7);
    assert_next(slices, POOL_CHANGE, 0);
    pool_slices_fini(&slices);
}

static void other_devices_in_one_slice_need_none(void **state)
{
    struct pool_slices slices = right(2);

    (void)state;
    slices.wanted[1].same = slices.wanted[1].named = false;
    assert_int_equal(pool_slices_generation(&slices), 7);
    assert_next(slices, POOL_CHANGE, 1);
    pool_slices_fini(&slices);
}

/* A device that goes from one to the other would be in both, or in none. */
static void other_devices_in_two_need_one(void **state)
{
    struct pool_slices slices = right(3);

    (void)state;
    slices.wanted[0].same = slices.wanted[0].named = false;
    slices.wanted[1].same = slices.wanted[1].named = false;
    assert_int_equal(pool_slices_generation(&slices), 8);
    assert_next(slices, POOL_CHANGE, 0);
    slices.wanted[0].done = slices.wanted[1].done = true;
    assert_next(slices, POOL_COUNT, 2); /* which has the old generation */
    pool_slices_fini(&slices);
}

static void another_number_of_slices_needs_one(void **state)
{
    struct pool_slices slices = right(2);

    (void)state;
    slices.wanted[1] = (struct pool_slice){.there = false};
    slices.wanted[0].counted = false;
    assert_int_equal(pool_slices_generation(&slices), 8);
    assert_next(slices, POOL_COUNT, 0);
    slices.wanted[0].done = true;
    assert_next(slices, POOL_MAKE, 1);
    pool_slices_fini(&slices);
}

/* One that somebody has deleted: the pool is not whole until it is there again. */
static void what_is_missing_alone_needs_none(void **state)
{
    struct pool_slices slices = right(2);

    (void)state;
    slices.wanted[1] = (struct pool_slice){.there = false};
    assert_int_equal(pool_slices_generation(&slices), 7);
    assert_next(slices, POOL_MAKE, 1);
    pool_slices_fini(&slices);
}

/* With it the pool would be whole before the other one is right. */
static void what_is_missing_beside_other_devices_needs_one(void **state)
{
    struct pool_slices slices = right(2);

    (void)state;
    slices.wanted[0] = (struct pool_slice){.there = false};
    slices.wanted[1].same = slices.wanted[1].named = false;
    assert_int_equal(pool_slices_generation(&slices), 8);
    assert_next(slices, POOL_MAKE, 0);
    slices.wanted[0].done = true;
    assert_next(slices, POOL_CHANGE, 1);
    pool_slices_fini(&slices);
}

static void what_is_stale_counts_no_more(void **state)
{
    struct pool_slices slices = right(1);

    (void)state;
    assert_true(pool_slices_add_stale(&slices, "other", "uid", 7));
    assert_int_equal(pool_slices_generation(&slices), 8);
    assert_next(slices, POOL_COUNT, 0);
    pool_slices_fini(&slices);

    slices = right(1);
    assert_true(pool_slices_add_stale(&slices, "older", "uid", 6));
    assert_int_equal(pool_slices_generation(&slices), 7);
    assert_next(slices, POOL_DONE, 0);
    pool_slices_fini(&slices);
}

/* Who did it before was killed in the middle: it is brought to its end, without another one. */
static void what_is_half_done_is_done(void **state)
{
    struct pool_slices slices = right(3);

    (void)state;
    slices.wanted[0].generation = 8;
    slices.wanted[1].same = slices.wanted[1].named = false; /* of 7: nobody looks at it */
    slices.wanted[2].counted = false;
    assert_int_equal(pool_slices_generation(&slices), 8);
    assert_next(slices, POOL_CHANGE, 1);
    slices.wanted[1].done = true;
    assert_next(slices, POOL_COUNT, 2);
    pool_slices_fini(&slices);
}

static void there_is_a_most_of_stale_ones(void **state)
{
    struct pool_slices slices = right(1);

    (void)state;
    for (int i = 0; i < POOL_SLICES_MAX; i++)
        assert_true(pool_slices_add_stale(&slices, "other", "uid", 1));
    assert_false(pool_slices_add_stale(&slices, "other", "uid", 9));
    assert_int_equal(pool_slices_generation(&slices), 10); /* that it is there counts */
    pool_slices_fini(&slices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_is_left),
        cmocka_unit_test(a_first_one_begins_with_one),
        cmocka_unit_test(none_at_all_is_no_work),
        cmocka_unit_test(taints_and_attributes_need_no_generation),
        cmocka_unit_test(other_devices_in_one_slice_need_none),
        cmocka_unit_test(other_devices_in_two_need_one),
        cmocka_unit_test(another_number_of_slices_needs_one),
        cmocka_unit_test(what_is_missing_alone_needs_none),
        cmocka_unit_test(what_is_missing_beside_other_devices_needs_one),
        cmocka_unit_test(what_is_stale_counts_no_more),
        cmocka_unit_test(what_is_half_done_is_done),
        cmocka_unit_test(there_is_a_most_of_stale_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
