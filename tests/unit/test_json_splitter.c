/* shim/agent/json_splitter.c: streams and lists, cut at every byte, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/agent/json_splitter.h"

#define TEXT_BYTES_MAX 4096

struct seen {
    char text[TEXT_BYTES_MAX]; /* each object behind '|', and a head behind '#' */
    size_t refuse_at;          /* the object that is not taken, from 1; 0: all are */
    size_t values;
};

static bool on_value(void *user, const char *text, size_t len, bool head)
{
    struct seen *seen = user;

    assert_true(strlen(seen->text) + len + 2 < TEXT_BYTES_MAX);
    strcat(seen->text, head ? "#" : "|");
    strncat(seen->text, text, len);
    return ++seen->values != seen->refuse_at;
}

/* In two pieces, cut at `at`. False: it has failed, or is not whole. */
static bool split_at(enum json_split split, const char *text, size_t at, struct seen *seen)
{
    struct json_splitter splitter;
    bool whole;

    memset(seen, 0, sizeof *seen);
    json_splitter_init(&splitter, split, on_value, seen);
    whole = json_splitter_feed(&splitter, text, at) &&
            json_splitter_feed(&splitter, text + at, strlen(text) - at) &&
            json_splitter_whole(&splitter);
    json_splitter_fini(&splitter);
    return whole;
}

static void assert_split(enum json_split split, const char *text, const char *expected)
{
    struct seen seen;

    for (size_t at = 0; at <= strlen(text); at++) {
        assert_true(split_at(split, text, at, &seen));
        assert_string_equal(seen.text, expected);
    }
}

static void objects_that_follow_one_another(void **state)
{
    (void)state;
    assert_split(JSON_SPLIT_VALUES, "{\"a\":1}\n{\"b\":[{}]} {}\r\n", "|{\"a\":1}|{\"b\":[{}]}|{}");
    assert_split(JSON_SPLIT_VALUES, "{}{}", "|{}|{}");
    assert_split(JSON_SPLIT_VALUES, "", "");
}

static void brackets_in_texts_are_none(void **state)
{
    (void)state;
    assert_split(JSON_SPLIT_VALUES, "{\"a}\":\"]{\\\"}\"}{\"\\\\\":0}",
                 "|{\"a}\":\"]{\\\"}\"}|{\"\\\\\":0}");
}

static void items_of_a_list(void **state)
{
    (void)state;
    assert_split(
        JSON_SPLIT_LIST,
        "{\"kind\":\"L\",\"metadata\":{\"items\":[7]},\"items\":[{\"a\":[]} , {}],\"x\":1}\n",
        "|{\"a\":[]}|{}#{\"kind\":\"L\",\"metadata\":{\"items\":[7]},\"items\":[],\"x\":1}");
    assert_split(JSON_SPLIT_LIST, "{\"items\":[]}", "#{\"items\":[]}");
    assert_split(JSON_SPLIT_LIST, "{\"items\":null,\"y\":\"items\"}",
                 "#{\"items\":null,\"y\":\"items\"}");
}

static void what_is_not_whole(void **state)
{
    static const char *const cases[] = {"{", "{\"a", "{\"a\":1", "{\"items\":[{}",
                                        "{\"items\":[{}]"};
    struct seen seen;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(split_at(JSON_SPLIT_VALUES, cases[i], 0, &seen));
        assert_false(split_at(JSON_SPLIT_LIST, cases[i], 0, &seen));
    }
    assert_false(split_at(JSON_SPLIT_LIST, "", 0, &seen)); /* a list is there, or it is none */
}

static void what_is_refused(void **state)
{
    static const struct {
        enum json_split split;
        const char *text;
    } cases[] = {
        {JSON_SPLIT_VALUES, "[]"},
        {JSON_SPLIT_VALUES, "1"},
        {JSON_SPLIT_VALUES, "\"a\""},
        {JSON_SPLIT_VALUES, "{}x"},
        {JSON_SPLIT_VALUES, "}"},
        {JSON_SPLIT_VALUES, "{\"a\":[}]"},
        {JSON_SPLIT_VALUES, "{},{}"},
        {JSON_SPLIT_LIST, "{\"items\":[1]}"},
        {JSON_SPLIT_LIST, "{\"items\":[[]]}"},
        {JSON_SPLIT_LIST, "{\"items\":[{}}"},
        {JSON_SPLIT_LIST, "{\"items\":[]}{}"},
        {JSON_SPLIT_LIST, "<html>"},
    };
    struct seen seen;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t at = 0; at <= strlen(cases[i].text); at++)
            assert_false(split_at(cases[i].split, cases[i].text, at, &seen));
    }
}

/* Feeds `text` again and again until it is refused; how many bytes were taken. */
static size_t feed_until_refused(enum json_split split, const char *begin, const char *text,
                                 const char **words)
{
    static struct seen seen;
    struct json_splitter splitter;
    size_t fed = strlen(begin);

    json_splitter_init(&splitter, split, on_value, &seen);
    assert_true(json_splitter_feed(&splitter, begin, strlen(begin)));
    while (json_splitter_feed(&splitter, text, strlen(text)))
        fed += strlen(text);
    *words = json_splitter_trouble(&splitter);
    assert_false(json_splitter_feed(&splitter, "}", 1)); /* for good */
    json_splitter_fini(&splitter);
    return fed;
}

static void everything_has_its_limit(void **state)
{
    const char *words;

    (void)state;
    assert_in_range(feed_until_refused(JSON_SPLIT_VALUES, "{\"a\":\"", "xxxxxxxx", &words),
                    OBJECT_SKIPPED_BYTES_MAX - 8, OBJECT_SKIPPED_BYTES_MAX);
    assert_string_equal(words, "an object is too large");
    assert_in_range(
        feed_until_refused(JSON_SPLIT_LIST, "{\"items\":[{\"a\":\"", "xxxxxxxx", &words),
        OBJECT_SKIPPED_BYTES_MAX, OBJECT_SKIPPED_BYTES_MAX + 16);
    assert_in_range(feed_until_refused(JSON_SPLIT_LIST, "{\"a\":\"", "xxxxxxxx", &words),
                    LIST_HEAD_BYTES_MAX - 8, LIST_HEAD_BYTES_MAX);
    assert_in_range(feed_until_refused(JSON_SPLIT_VALUES, "", "{\"a\":", &words),
                    5 * (JSON_DEPTH_MAX - 1), 5 * (JSON_DEPTH_MAX + 1));
    assert_string_equal(words, "it is nested too deep");
    assert_in_range(feed_until_refused(JSON_SPLIT_VALUES, "{\"a\":[", "{},", &words),
                    OBJECT_SKIPPED_BYTES_MAX - 8, OBJECT_SKIPPED_BYTES_MAX);
}

/* `begin`, so often `text` that it is too much, `end`: all but that object is told. */
static void assert_left_out(enum json_split split, const char *begin, const char *text,
                            size_t times, const char *end, const char *expected)
{
    struct seen seen = {0};
    struct json_splitter splitter;

    json_splitter_init(&splitter, split, on_value, &seen);
    assert_true(json_splitter_feed(&splitter, begin, strlen(begin)));
    while (times-- > 0)
        assert_true(json_splitter_feed(&splitter, text, strlen(text)));
    assert_true(json_splitter_feed(&splitter, end, strlen(end)));
    assert_true(json_splitter_whole(&splitter));
    assert_string_equal(seen.text, expected);
    assert_int_equal(json_splitter_left_out(&splitter), 1);
    json_splitter_fini(&splitter);
}

static void one_that_is_too_large_is_left_out(void **state)
{
    (void)state;
    assert_left_out(JSON_SPLIT_VALUES, "{}{\"a\":\"", "xxxxxxxx", OBJECT_BYTES_MAX / 8,
                    "}\"}{\"b\":1}", "|{}|{\"b\":1}");
    assert_left_out(JSON_SPLIT_VALUES, "{}{\"a\":[", "{},", JSON_VALUES_MAX / 2, "{}]}{\"b\":1}",
                    "|{}|{\"b\":1}");
    assert_left_out(JSON_SPLIT_LIST, "{\"items\":[{},{\"a\":\"", "xxxxxxxx", OBJECT_BYTES_MAX / 8,
                    "\"},{\"b\":1}]}", "|{}|{\"b\":1}#{\"items\":[]}");
    assert_left_out(JSON_SPLIT_LIST, "{\"items\":[{},{\"a\":[", "1,", JSON_VALUES_MAX,
                    "1]},{\"b\":1}]}", "|{}|{\"b\":1}#{\"items\":[]}");
}

static void values_are_of_one_object(void **state)
{
    struct seen seen = {0};
    struct json_splitter splitter;

    (void)state;
    json_splitter_init(&splitter, JSON_SPLIT_VALUES, on_value, &seen);
    for (size_t i = 0; i < JSON_VALUES_MAX / 2; i++) {
        seen.text[0] = '\0';
        assert_true(json_splitter_feed(&splitter, "{\"a,{[\":[1,2,3]}", 16));
    }
    assert_true(json_splitter_whole(&splitter));
    json_splitter_fini(&splitter);
}

static void one_that_is_not_taken_ends_it(void **state)
{
    struct seen seen = {.refuse_at = 2};
    struct json_splitter splitter;

    (void)state;
    json_splitter_init(&splitter, JSON_SPLIT_VALUES, on_value, &seen);
    assert_false(json_splitter_feed(&splitter, "{}{}{}", 6));
    assert_int_equal(seen.values, 2);
    assert_string_equal(json_splitter_trouble(&splitter), "");
    json_splitter_fini(&splitter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_that_follow_one_another),
        cmocka_unit_test(brackets_in_texts_are_none),
        cmocka_unit_test(items_of_a_list),
        cmocka_unit_test(what_is_not_whole),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(everything_has_its_limit),
        cmocka_unit_test(one_that_is_too_large_is_left_out),
        cmocka_unit_test(values_are_of_one_object),
        cmocka_unit_test(one_that_is_not_taken_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
