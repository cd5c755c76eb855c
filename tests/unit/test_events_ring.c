/* shim/events/ring.c: which events are kept, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/events/ring.h"

static struct event_moment now;

static int setup(void **state)
{
    struct ring *ring = calloc(1, sizeof *ring);

    now = (struct event_moment){.wall_ms = 1000, .boot_ms = 10, .boot_id = "b"};
    ring_init(ring);
    *state = ring;
    return 0;
}

static int teardown(void **state)
{
    ring_fini(*state);
    free(*state);
    return 0;
}

static const struct event *say(struct ring *ring, const char *kind, const char *resource,
                               bool again)
{
    const struct event_said said = {.kind = kind, .resource = resource, .text = "words"};

    now.boot_ms++;
    return ring_put(ring, event_new(&said, &now), again);
}

static void say_many(struct ring *ring, size_t n)
{
    char resource[32];

    for (size_t i = 0; i < n; i++) {
        snprintf(resource, sizeof resource, "r%zu", i);
        say(ring, "lost", resource, false);
    }
}

static void they_are_numbered_in_their_order(void **state)
{
    struct ring *ring = *state;

    assert_null(ring_after(ring, 0));
    assert_int_equal(say(ring, "lost", "a", false)->id, 1);
    assert_int_equal(say(ring, "back", "a", false)->id, 2);
    assert_int_equal(ring_after(ring, 0)->id, 1);
    assert_int_equal(ring_after(ring, 1)->id, 2);
    assert_null(ring_after(ring, 2));
}

static void what_comes_again_is_counted_and_moves_to_the_end(void **state)
{
    struct ring *ring = *state;
    const struct event *event;

    say(ring, "lost", "a", false);
    say(ring, "lost", "b", false);
    event = say(ring, "lost", "a", false);
    assert_int_equal(event->id, 3);
    assert_int_equal(event->times, 2);
    assert_int_equal(event->first.boot_ms, 11);
    assert_int_equal(event->last.boot_ms, 13);
    assert_int_equal(ring->len, 2);
    assert_int_equal(ring_after(ring, 0)->id, 2);
    assert_int_equal(ring->gone_id, 0);
}

static void no_more_are_kept_than_there_may_be(void **state)
{
    struct ring *ring = *state;

    say_many(ring, EVENTS_MAX + 10);
    assert_true(ring->len <= EVENTS_MAX && ring->bytes <= EVENTS_BYTES_MAX);
    assert_int_equal(ring->gone_id + ring->len, EVENTS_MAX + 10);
    assert_int_equal(ring_after(ring, 0)->id, ring->gone_id + 1);
}

static void large_ones_are_fewer(void **state)
{
    struct ring *ring = *state;
    char text[EVENTS_TEXT_BYTES_MAX], resource[32];
    struct event_said said = {.kind = "lost", .resource = resource, .text = text};

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        snprintf(resource, sizeof resource, "r%zu", i);
        ring_put(ring, event_new(&said, &now), false);
    }
    assert_true(ring->bytes <= EVENTS_BYTES_MAX);
    assert_in_range(ring->len, EVENTS_BYTES_MAX / 2048, EVENTS_MAX - 1);
}

static void a_day_ends(void **state)
{
    struct ring *ring = *state;

    say(ring, "lost", "a", false);
    say(ring, "lost", "b", false);
    now.boot_ms += EVENTS_AGE_MS_MAX - 1;
    ring_expire(ring, &now);
    assert_int_equal(ring->len, 2);
    now.boot_ms += 1;
    ring_expire(ring, &now);
    assert_int_equal(ring->len, 1);
    assert_int_equal(ring->gone_id, 1);
    now.boot_ms += 1;
    ring_expire(ring, &now);
    assert_int_equal(ring->len, 0);
    assert_int_equal(say(ring, "lost", "a", false)->id, 3); /* none has an id of before */
}

/* As an earlier process left it. */
static void what_may_have_been_told_is_told_if_it_is_news(void **state)
{
    struct ring *ring = *state;

    assert_null(say(ring, "released", "a", true)); /* of what nobody has heard */
    assert_null(say(ring, "back", "a", true));
    assert_non_null(say(ring, "allocated", "a", true));
    assert_null(say(ring, "allocated", "a", true));
    assert_non_null(say(ring, "refused", "a", false)); /* says nothing of either */
    assert_non_null(say(ring, "released", "a", true));
    assert_null(say(ring, "released", "a", true));
    assert_non_null(say(ring, "released", "a", false));
    assert_non_null(say(ring, "allocated", "a", true));
    assert_non_null(say(ring, "lost", "a", false));
    assert_non_null(say(ring, "back", "a", true));
    assert_null(say(ring, "back", "a", true));
}

static void restore(struct ring *ring, uint64_t id, const char *resource)
{
    const struct event_said said = {.kind = "lost", .resource = resource};
    struct event *event = event_new(&said, &now);

    event->id = id;
    ring_restore(ring, event);
}

static void ids_go_on_after_a_restart(void **state)
{
    struct ring *ring = *state;

    restore(ring, 7, "a");
    restore(ring, 9, "b");
    restore(ring, 12, "a"); /* once more */
    assert_int_equal(ring->len, 2);
    assert_int_equal(ring->gone_id, 6);
    assert_int_equal(ring_after(ring, 0)->id, 9);
    assert_int_equal(say(ring, "lost", "b", false)->id, 13);
}

static void ids_of_a_strange_file_grow_all_the_same(void **state)
{
    struct ring *ring = *state;

    restore(ring, 7, "a");
    restore(ring, 3, "b");
    restore(ring, 8, "c");
    assert_int_equal(ring_after(ring, 7)->id, 8);
    assert_int_equal(ring_after(ring, 8)->id, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_are_numbered_in_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(what_comes_again_is_counted_and_moves_to_the_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_more_are_kept_than_there_may_be, setup, teardown),
        cmocka_unit_test_setup_teardown(large_ones_are_fewer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_day_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(what_may_have_been_told_is_told_if_it_is_news, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(ids_go_on_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_of_a_strange_file_grow_all_the_same, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
