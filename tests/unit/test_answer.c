/* shim/agent/answer.c: answers of one object each, with what others may put into one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/answer.h"

static const char *const NAMES[] = {"data", "parameters", NULL};

/* Without what is left out; NULL: it is no JSON. */
static char *left_of(const char *text)
{
    struct answer answer = {0};
    json_t *json;
    char *left;

    assert_true(answer_add(&answer, text, strlen(text)));
    answer_leave_out(&answer, NAMES);
    json = answer_json(&answer);
    left = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    answer_fini(&answer);
    return left;
}

static void assert_left(const char *text, const char *expected)
{
    char *left = left_of(text);

    assert_non_null(left);
    assert_string_equal(left, expected);
    free(left);
}

static void what_has_no_such_names_is_as_it_was(void **state)
{
    (void)state;
    assert_left("{\"a\": {\"b\": [1, \"x\\\"y\", null, true]}, \"c\": -1.5}",
                "{\"a\":{\"b\":[1,\"x\\\"y\",null,true]},\"c\":-1.5}");
    assert_left("{\"a\": \"data\", \"b\": [\"parameters\", \"data\"]}",
                "{\"a\":\"data\",\"b\":[\"parameters\",\"data\"]}");
    assert_left("{\"data2\": 1, \"dat\": 2, \"\": 3}", "{\"data2\":1,\"dat\":2,\"\":3}");
}

static void what_stands_under_them_is_left_out(void **state)
{
    static const char *const VALUES[] = {
        "18446744073709551615",
        "-1e999",
        "\"\\ud800\"",
        "{\"\\u0000\": 1}",
        "\"}],\\\\\\\"\"",
        "\"\\\\\"",
        "null",
        "[[], {\"a\": \"]\"}]",
        "{}",
        "0",
        "{\"data\": \"\xff\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        char text[256];

        snprintf(text, sizeof text,
                 "{\"a\": [{\"data\": %s, \"b\": 1}, {\"parameters\" : %s }], \"c\":2,\"data\":%s}",
                 VALUES[i], VALUES[i], VALUES[i]);
        assert_left(text, "{\"a\":[{\"data\":0,\"b\":1},{\"parameters\":0}],\"c\":2,\"data\":0}");
    }
}

/* Deeper than a reader of it may go. */
static void however_deep_it_is(void **state)
{
    const size_t deep = 5000;
    char *text = calloc(2 * deep + 32, 1);

    (void)state;
    assert_non_null(text);
    strcpy(text, "{\"data\":");
    memset(text + strlen(text), '[', deep);
    memset(text + strlen(text), ']', deep);
    strcat(text, ",\"a\":1}");
    assert_left(text, "{\"data\":0,\"a\":1}");
    free(text);
}

/* Cut off anywhere it is none, and nothing behind its end is looked at. */
static void what_is_cut_off_is_no_json(void **state)
{
    const char *text = "{\"a\":[{\"data\":{\"b\":\"\\\"x\"}}],\"parameters\":[\"y\"]}";

    (void)state;
    for (size_t len = 0; len < strlen(text); len++) {
        char *cut = strndup(text, len);

        assert_non_null(cut);
        assert_null(left_of(cut));
        free(cut);
    }
    assert_left(text, "{\"a\":[{\"data\":0}],\"parameters\":0}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_such_names_is_as_it_was),
        cmocka_unit_test(what_stands_under_them_is_left_out),
        cmocka_unit_test(however_deep_it_is),
        cmocka_unit_test(what_is_cut_off_is_no_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
