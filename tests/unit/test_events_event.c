/* shim/events/event.c: an event as a value, and as a record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/events/event.h"

static const struct event_moment NOW = {.wall_ms = 1000000, .boot_ms = 5000, .boot_id = "b1"};
static const char *const IDS[] = {"g0", "g1"};
static const struct event_said SAID = {.kind = "refused",
                                       .resource = "vendor.com/gpu",
                                       .ids = IDS,
                                       .ids_len = 2,
                                       .ids_total = 5,
                                       .pod_uid = "u1",
                                       .pod_namespace = "ns",
                                       .pod_name = "web",
                                       .container = "main",
                                       .word = "plugin-away",
                                       .text = "it is away for 3s"};

static void what_is_said_is_copied(void **state)
{
    struct event *event = event_new(&SAID, &NOW);

    (void)state;
    assert_string_equal(event->kind, "refused");
    assert_string_equal(event->resource, "vendor.com/gpu");
    assert_string_equal(event->pod_uid, "u1");
    assert_string_equal(event->pod_namespace, "ns");
    assert_string_equal(event->pod_name, "web");
    assert_string_equal(event->container, "main");
    assert_string_equal(event->word, "plugin-away");
    assert_string_equal(event->text, "it is away for 3s");
    assert_int_equal(event->ids_len, 2);
    assert_string_equal(event->ids[1], "g1");
    assert_int_equal(event->ids_total, 5);
    assert_int_equal(event->times, 1);
    event_free(event);
}

static void texts_are_printable_whole_and_bounded(void **state)
{
    char text[2 * EVENTS_TEXT_BYTES_MAX], name[2 * EVENTS_NAME_BYTES_MAX];
    struct event_said said = {.kind = "lost", .text = text, .resource = name};
    struct event *event;

    (void)state;
    memset(text, 'a', sizeof text - 1);
    memcpy(text + EVENTS_TEXT_BYTES_MAX - 1, "\xc3\xa4", 2); /* cut within a character */
    text[sizeof text - 1] = '\0';
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name, "a\nb\xff", 4);
    event = event_new(&said, &NOW);
    assert_int_equal(strlen(event->text), EVENTS_TEXT_BYTES_MAX - 1);
    assert_int_equal(strlen(event->resource), EVENTS_NAME_BYTES_MAX);
    assert_memory_equal(event->resource, "a?b?", 4);
    assert_string_equal(event->pod_uid, "");
    event_free(event);
    said = (struct event_said){.kind = "lost",
                               .text = "\xc2\x9b"
                                       "31m\xc3\xa4"};
    event = event_new(&said, &NOW);
    assert_string_equal(event->text, "??31m\xc3\xa4");
    event_free(event);
}

static void ids_that_do_not_fit_are_counted(void **state)
{
    char id[200];
    const char *ids[64];
    struct event_said said = {.kind = "allocated", .ids = ids, .ids_len = 64, .ids_total = 64};
    struct event *event;

    (void)state;
    memset(id, 'i', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    for (size_t i = 0; i < 64; i++)
        ids[i] = id;
    event = event_new(&said, &NOW);
    assert_int_equal(event->ids_len, 2);
    assert_int_equal(event->ids_total, 64);
    event_free(event);
}

static void the_same_is_the_same_whatever_the_words(void **state)
{
    struct event_said said = SAID;
    struct event *one = event_new(&SAID, &NOW), *other;

    (void)state;
    said.text = "it is away for 13s";
    other = event_new(&said, &NOW);
    assert_int_equal(one->same, other->same);
    assert_true(event_about_same(one, other));
    event_free(other);
    said.word = "too-few-devices";
    other = event_new(&said, &NOW);
    assert_int_not_equal(one->same, other->same);
    assert_true(event_about_same(one, other));
    event_free(other);
    said = SAID;
    said.container = "other";
    other = event_new(&said, &NOW);
    assert_int_not_equal(one->same, other->same);
    assert_false(event_about_same(one, other));
    event_free(other);
    event_free(one);
}

static void age_is_by_the_clock_that_nobody_sets(void **state)
{
    struct event_moment now = {.wall_ms = 10, .boot_ms = 6000, .boot_id = "b1"};

    (void)state;
    assert_int_equal(event_ago_ms(&NOW, &now), 1000); /* whatever the wall clock was set to */
    strcpy(now.boot_id, "b2");
    assert_int_equal(event_ago_ms(&NOW, &now), 0); /* it is said to lie ahead */
    now.wall_ms = NOW.wall_ms + 70;
    assert_int_equal(event_ago_ms(&NOW, &now), 70);
}

/* Cut and changed at every byte. */
static void a_record_is_what_it_was_or_nothing(void **state)
{
    struct event *event = event_new(&SAID, &NOW), *back;
    uint8_t *bytes = NULL;
    size_t len = 0, first;

    (void)state;
    event->id = 77;
    event->times = 3;
    event->first.wall_ms = 5;
    event_pack(event, &bytes, &len);
    first = len;
    event_pack(event, &bytes, &len);
    assert_int_equal(len, 2 * first);
    assert_int_equal(event_unpack(bytes, len, &back), first);
    assert_int_equal(back->id, 77);
    assert_int_equal(back->times, 3);
    assert_int_equal(back->first.wall_ms, 5);
    assert_int_equal(back->last.boot_ms, NOW.boot_ms);
    assert_string_equal(back->last.boot_id, "b1");
    assert_int_equal(back->same, event->same);
    assert_string_equal(back->text, event->text);
    assert_int_equal(back->ids_total, 5);
    event_free(back);
    for (size_t i = 0; i < first; i++)
        assert_int_equal(event_unpack(bytes, i, &back), 0);
    for (size_t i = 0; i < first; i++) {
        bytes[i] ^= 0x10;
        assert_int_equal(event_unpack(bytes, first, &back), 0);
        bytes[i] ^= 0x10;
    }
    free(bytes);
    event_free(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_is_copied),
        cmocka_unit_test(texts_are_printable_whole_and_bounded),
        cmocka_unit_test(ids_that_do_not_fit_are_counted),
        cmocka_unit_test(the_same_is_the_same_whatever_the_words),
        cmocka_unit_test(age_is_by_the_clock_that_nobody_sets),
        cmocka_unit_test(a_record_is_what_it_was_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
