/* shim/core/host_counts.c: calls of plugins and commits, counted and timed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/core/host_counts.h"

static uint64_t timed(const struct histogram *h)
{
    uint64_t n = 0;

    for (int i = 0; i <= HISTOGRAM_BOUNDS; i++)
        n += h->counts[i];
    return n;
}

static void allocates(void **state)
{
    struct host_counts counts = {0};

    (void)state;
    host_counts_allocate(&counts, 7);
    host_counts_allocate(&counts, 8);
    host_counts_cancel(&counts, 8);
    host_counts_cancel(&counts, 9); /* another kind of call */
    host_counts_allocated(&counts, 7, 14);
    assert_int_equal(counts.allocates[14], 1);
    assert_int_equal(timed(&counts.allocate), 1);
}

static void those_beyond_the_places_are_counted(void **state)
{
    struct host_counts counts = {0};

    (void)state;
    for (uint64_t call = 1; call <= HOST_ALLOCATES_MAX + 5; call++)
        host_counts_allocate(&counts, call);
    for (uint64_t call = 1; call <= HOST_ALLOCATES_MAX + 5; call++)
        host_counts_allocated(&counts, call, 0);
    assert_int_equal(counts.allocates[0], HOST_ALLOCATES_MAX + 5);
    assert_int_equal(timed(&counts.allocate), HOST_ALLOCATES_MAX);
    host_counts_allocate(&counts, 1); /* places are free again */
    host_counts_allocated(&counts, 1, 99);
    assert_int_equal(counts.allocates[HOST_CODES - 1], 1);
    assert_int_equal(timed(&counts.allocate), HOST_ALLOCATES_MAX + 1);
}

static void commits_and_registrations(void **state)
{
    struct host_counts counts = {0};

    (void)state;
    host_counts_commit(&counts);
    host_counts_committed(&counts, false);
    host_counts_commit(&counts);
    host_counts_committed(&counts, true);
    host_counts_registration(&counts, 0);
    host_counts_registration(&counts, 3);
    host_counts_registration(&counts, -5);
    assert_int_equal(timed(&counts.commit), 2);
    assert_int_equal(counts.commits_failed, 1);
    assert_true(counts.commit.sum_us < 60000000);
    assert_int_equal(counts.registrations[0], 1);
    assert_int_equal(counts.registrations[3], 1);
    assert_int_equal(counts.registrations[HOST_CODES - 1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocates),
        cmocka_unit_test(those_beyond_the_places_are_counted),
        cmocka_unit_test(commits_and_registrations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
