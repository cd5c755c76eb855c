/* Texts for people, made of what peers say. */
#include <stdio.h>

#include <jansson.h>

#include "cri-proto/utf8.h"
#include "devicemgr/things/text.h"
#include "devicemgr_world.h"

static void control_characters_do_not_get_through(void **state)
{
    struct text text = {0};

    (void)state;
    text_add(&text, "%s", "a\x1b[31m\nb\tc\rd\x7f");
    assert_string_equal(text.buf, "a?[31m b c d?");
    text = (struct text){0};
    text_add(&text, "%s",
             "\xc2\x9b"
             "31m\xc2\x85"
             "b\xc2\xa0\xc2");
    assert_string_equal(text.buf, "?31m?b\xc2\xa0?");
}

static void only_utf8_gets_through(void **state)
{
    static const struct {
        const char *in, *out;
    } CASES[] = {
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\x80", "?"},
        {"\xc0\xaf", "??"},      /* overlong */
        {"\xe0\x80\xaf", "???"}, /* overlong */
        {"\xf0\x80\x80\xaf", "????"},
        {"\xed\xa0\x80", "???"},      /* surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* past U+10FFFF */
        {"\xf5x", "?x"},
        {"\xe2\x82", "??"}, /* cut off */
        {"\xc3", "?"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct text text = {0};

        text_add(&text, "%s", CASES[i].in);
        assert_string_equal(text.buf, CASES[i].out);
    }
}

/* At the edges of RFC 3629's ranges, and one byte past them: what is UTF-8 here is so for JSON,
 * too, or a token could not be written. */
static void utf8_is_what_json_takes(void **state)
{
    static const char EDGES[] = "\x01\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed"
                                "\xee\xef\xf0\xf1\xf3\xf4\xf5\xff";
    size_t n = sizeof EDGES, taken = 0; /* with the NUL: shorter texts, too */

    (void)state;
    for (size_t i = 0; i < n * n * n * n; i++) {
        const char s[] = {EDGES[i % n], EDGES[i / n % n], EDGES[i / n / n % n],
                          EDGES[i / n / n / n], '\0'};
        json_t *json = json_string(s);

        assert_int_equal(utf8_is_text(s), json != NULL);
        taken += json != NULL;
        json_decref(json);
    }
    assert_true(taken > 0);
    assert_true(utf8_is_text("\xf4\x8f\xbf\xbf"));
    assert_false(utf8_is_text("\xf4\x90\x80\x80")); /* past U+10FFFF */
    assert_false(utf8_is_text("\xed\xa0\x80"));     /* surrogate */
    assert_false(utf8_is_text("g0\xc3"));           /* cut off */
}

static void what_does_not_fit_is_cut_at_a_character(void **state)
{
    struct text text = {0};

    (void)state;
    while (text.len < TEXT_BYTES_MAX - 2)
        text_add(&text, "x");
    text_add(&text, "\xc3\xa9"); /* two bytes, one is left */
    assert_int_equal(text.len, TEXT_BYTES_MAX - 2);
    text_add(&text, "y");
    text_add(&text, "z");
    assert_int_equal(text.len, TEXT_BYTES_MAX - 1);
    assert_int_equal(text.buf[TEXT_BYTES_MAX - 1], '\0');
}

static void words_are_bounded(void **state)
{
    struct text text = {0};

    (void)state;
    text_add_words(&text, "1234567890", 10);
    text_add_words(&text, "1234567890a", 10);
    assert_string_equal(text.buf, "12345678901234567890...");
}

static void names_have_half_of_that(void **state)
{
    struct text text = {0}, expected = {0};
    char name[TEXT_WORDS_BYTES_MAX];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    text_add_name(&text, "of \"", "n");
    text_add_name(&text, "\"/", name);
    text_add(&expected, "of \"n\"/%.*s...", TEXT_WORDS_BYTES_MAX / 2, name);
    assert_string_equal(text.buf, expected.buf);
}

static void long_lists_of_ids_are_cut(void **state)
{
    struct text text = {0};
    struct ids ids = {0};
    char id[16];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "device-%d", i);
        ids_add(&ids, id);
    }
    text_add_ids(&text, &ids);
    assert_string_equal(text.buf, "device-0,device-1,device-2,device-3,device-4,device-5,device-6,"
                                  "... (93 more)");
    ids_fini(&ids);
}

static void one_endless_id_is_cut_too(void **state)
{
    struct text text = {0};
    struct ids ids = {0};
    char id[300];

    (void)state;
    memset(id, 'x', sizeof id);
    id[sizeof id - 1] = '\0';
    ids_add(&ids, id);
    text_add_ids(&text, &ids);
    assert_int_equal(text.len, TEXT_IDS_BYTES_MAX + 3);
    ids_fini(&ids);
}

static void durations_are_short(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } CASES[] = {{0, "0ms"},      {999, "999ms"},    {1000, "1s"},      {59999, "59s"},
                 {60000, "1m0s"}, {288000, "4m48s"}, {3600000, "1h0m"}, {7383000, "2h3m"}};

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct text text = {0};

        text_add_duration(&text, CASES[i].ms);
        assert_string_equal(text.buf, CASES[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_do_not_get_through),
        cmocka_unit_test(only_utf8_gets_through),
        cmocka_unit_test(utf8_is_what_json_takes),
        cmocka_unit_test(what_does_not_fit_is_cut_at_a_character),
        cmocka_unit_test(words_are_bounded),
        cmocka_unit_test(names_have_half_of_that),
        cmocka_unit_test(long_lists_of_ids_are_cut),
        cmocka_unit_test(one_endless_id_is_cut_too),
        cmocka_unit_test(durations_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
