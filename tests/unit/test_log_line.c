/* shim/log_line.c: each form of a line, as those who read it take it apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "shim/log_kind.h"
#include "shim/log_line.h"

static char out[LOG_LINE_BYTES_MAX + 1];

static struct log_line line_of(const char *text)
{
    return (struct log_line){.level = LOG_LEVEL_ERROR,
                             .about = {.kind = LOG_KIND_REFUSED,
                                       .resource = "a.b/c",
                                       .pod = "shop/\"cart\"",
                                       .container = "ma=in"},
                             .now = {.tv_sec = 1700000000, .tv_nsec = 7999999},
                             .text = text,
                             .text_len = strlen(text)};
}

static size_t make(enum log_form form, const struct log_line *line)
{
    size_t len = log_line_put(form, line, out);

    assert_in_range(len, 1, LOG_LINE_BYTES_MAX);
    assert_int_equal(out[len - 1], '\n');
    out[len] = '\0';
    return len;
}

static void logfmt(void **state)
{
    struct log_line line = line_of("say \"a\\b\"");

    (void)state;
    make(LOG_FORM_LOGFMT, &line);
    assert_string_equal(out, "ts=2023-11-14T22:13:20.007Z level=error kind=\"refused\" "
                             "resource=\"a.b/c\" pod=\"shop/\\\"cart\\\"\" container=\"ma=in\" "
                             "msg=\"say \\\"a\\\\b\\\"\"\n");
}

static void json(void **state)
{
    struct log_line line = line_of("say \"a\\b\" \xc3\xbc");

    (void)state;
    make(LOG_FORM_JSON, &line);
    assert_string_equal(out, "{\"ts\":\"2023-11-14T22:13:20.007Z\",\"level\":\"error\","
                             "\"kind\":\"refused\",\"resource\":\"a.b/c\","
                             "\"pod\":\"shop/\\\"cart\\\"\",\"container\":\"ma=in\","
                             "\"msg\":\"say \\\"a\\\\b\\\" \xc3\xbc\"}\n");
}

static void no_control_character_gets_through(void **state)
{
    struct log_line line = line_of("text");

    (void)state;
    line.about.pod = "a\n\x1b\xc2\x9b"
                     "31m\xc2\xa0";
    make(LOG_FORM_JOURNAL, &line);
    assert_non_null(strstr(out, "\nPOD=a???31m\xc2\xa0\n"));
    make(LOG_FORM_LOGFMT, &line);
    assert_non_null(strstr(out, " pod=\"a???31m\xc2\xa0\" "));
}

/* Every text of up to three bytes of those that UTF-8 and JSON treat by themselves. */
static void any_bytes_are_json(void **state)
{
    static const uint8_t bytes[] = {'a',  '"',  '\\', 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                    0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 0x7f};
    char text[5] = "", *p = text;

    (void)state;
    for (size_t i = 0; i < sizeof bytes * sizeof bytes * sizeof bytes; i++) {
        struct log_line line;
        json_t *parsed;

        p[0] = (char)bytes[i % sizeof bytes];
        p[1] = (char)bytes[i / sizeof bytes % sizeof bytes];
        p[2] = (char)bytes[i / sizeof bytes / sizeof bytes];
        line = line_of(text);
        line.about.pod = text;
        make(LOG_FORM_JSON, &line);
        parsed = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(parsed);
        assert_string_equal(json_string_value(json_object_get(parsed, "msg")),
                            json_string_value(json_object_get(parsed, "pod")));
        json_decref(parsed);
    }
}

/* However long, and whatever grows when it is escaped: a line in its form, with its end. */
static void what_is_too_long_is_cut(void **state)
{
    char quotes[LOG_TEXT_BYTES_MAX + 1];
    struct log_line line;
    json_t *parsed;

    (void)state;
    memset(quotes, '"', sizeof quotes - 1);
    quotes[sizeof quotes - 1] = '\0';
    line = line_of(quotes);
    line.about.resource = line.about.pod = line.about.container = quotes;
    make(LOG_FORM_JSON, &line);
    parsed = json_loads(out, 0, NULL);
    assert_non_null(parsed);
    assert_int_equal(json_string_length(json_object_get(parsed, "pod")), LOG_NAME_BYTES_MAX);
    assert_in_range(json_string_length(json_object_get(parsed, "msg")), 900, LOG_TEXT_BYTES_MAX);
    json_decref(parsed);
    make(LOG_FORM_LOGFMT, &line);
    assert_non_null(strstr(out, "\\\"\"\n"));
    make(LOG_FORM_JOURNAL, &line);
    assert_int_equal(strlen(strstr(out, "\nMESSAGE=")),
                     strlen("\nMESSAGE=\n") + LOG_TEXT_BYTES_MAX);
}

static void a_kind_has_a_name_and_an_id_of_its_own(void **state)
{
    (void)state;
    for (int i = LOG_KIND_NONE + 1; i < LOG_KINDS; i++) {
        assert_non_null(LOG_KIND_NAMES[i].name);
        assert_int_equal(strlen(LOG_KIND_NAMES[i].id), 32);
        assert_int_equal(strspn(LOG_KIND_NAMES[i].id, "0123456789abcdef"), 32);
        for (int j = i + 1; j < LOG_KINDS; j++) {
            assert_string_not_equal(LOG_KIND_NAMES[i].name, LOG_KIND_NAMES[j].name);
            assert_string_not_equal(LOG_KIND_NAMES[i].id, LOG_KIND_NAMES[j].id);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logfmt),
        cmocka_unit_test(json),
        cmocka_unit_test(no_control_character_gets_through),
        cmocka_unit_test(any_bytes_are_json),
        cmocka_unit_test(what_is_too_long_is_cut),
        cmocka_unit_test(a_kind_has_a_name_and_an_id_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
