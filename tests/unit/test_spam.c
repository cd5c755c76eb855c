/* shim/agent/spam.c: how often one object may be told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shim/agent/spam.h"

#define NOW 1000000

static void a_burst_and_then_one_each_five_minutes(void **state)
{
    static struct spam spam;
    unsigned allowed = 0;

    (void)state;
    while (spam_allows(&spam, 1, NOW))
        allowed++;
    assert_int_equal(allowed, SPAM_BURST);
    assert_true(spam_allows(&spam, 3, NOW)); /* another object */
    assert_false(spam_allows(&spam, 1, NOW + SPAM_REFILL_MS / 2));
    assert_true(spam_allows(&spam, 1, NOW + SPAM_REFILL_MS));
    assert_false(spam_allows(&spam, 1, NOW + SPAM_REFILL_MS));
    for (allowed = 0; spam_allows(&spam, 1, NOW + (uint64_t)1000 * SPAM_REFILL_MS); allowed++)
        continue;
    assert_int_equal(allowed, SPAM_BURST); /* no more than that is saved up */
}

static void the_oldest_object_is_forgotten(void **state)
{
    static struct spam spam;

    (void)state;
    while (spam_allows(&spam, 1, NOW))
        continue;
    for (uint64_t other = 2; other <= SPAM_OBJECTS_MAX; other++)
        assert_true(spam_allows(&spam, other, NOW + other));
    assert_false(spam_allows(&spam, 1, NOW + 1000));
    for (uint64_t other = 2; other <= SPAM_OBJECTS_MAX + 1; other++)
        assert_true(spam_allows(&spam, other + 1000, NOW + 2000 + other));
    assert_true(spam_allows(&spam, 1, NOW + 5000));
}

static void what_is_the_same_is_found_for_ten_minutes(void **state)
{
    static struct spam spam;
    struct spam_event *event;

    (void)state;
    assert_null(spam_find(&spam, 0, NOW)); /* a free place is none */
    assert_null(spam_find(&spam, 7, NOW));
    spam_note(&spam, 7, "a.1", NOW);
    event = spam_find(&spam, 7, NOW + SPAM_ALIKE_MS);
    assert_non_null(event);
    assert_string_equal(event->name, "a.1");
    assert_int_equal(event->count, 1);
    assert_null(spam_find(&spam, 7, NOW + SPAM_ALIKE_MS + 1));
    spam_note(&spam, 7, "a.2", NOW + 1); /* in its place */
    assert_string_equal(spam_find(&spam, 7, NOW + 1)->name, "a.2");
    for (uint64_t other = 100; other < 100 + SPAM_EVENTS_MAX; other++)
        spam_note(&spam, other, "b", NOW + other);
    assert_null(spam_find(&spam, 7, NOW + 1000)); /* the oldest */
    assert_non_null(spam_find(&spam, 100, NOW + 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_and_then_one_each_five_minutes),
        cmocka_unit_test(the_oldest_object_is_forgotten),
        cmocka_unit_test(what_is_the_same_is_found_for_ten_minutes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
