/* cri-proto/utf8.c. What is a character is shown against JSON's in test_devicemgr_text.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cri-proto/utf8.h"

static void what_is_cut_off_is_no_character(void **state)
{
    static const char *const WHOLE[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};

    (void)state;
    for (size_t bytes = 1; bytes <= 4; bytes++) {
        for (size_t len = 0; len <= 5; len++)
            assert_int_equal(utf8_character_bytes(WHOLE[bytes - 1], len), len < bytes ? 0 : bytes);
    }
}

static void control_characters_are_those_above_ascii_too(void **state)
{
    (void)state;
    assert_int_equal(utf8_control_bytes("", 1), 1);
    assert_int_equal(utf8_control_bytes("\x1b", SIZE_MAX), 1);
    assert_int_equal(utf8_control_bytes("\x7f", SIZE_MAX), 1);
    assert_int_equal(utf8_control_bytes("\xc2\x80", SIZE_MAX), 2);
    assert_int_equal(utf8_control_bytes("\xc2\x9f", SIZE_MAX), 2);
    assert_int_equal(utf8_control_bytes("\xc2\x9f", 1), 0);
    assert_int_equal(utf8_control_bytes("\xc2\xa0", SIZE_MAX), 0);
    assert_int_equal(utf8_control_bytes("\xc3\x85", SIZE_MAX), 0);
    assert_int_equal(utf8_control_bytes("\xc2", SIZE_MAX), 0);
    assert_int_equal(utf8_control_bytes(" ", SIZE_MAX), 0);
    assert_int_equal(utf8_control_bytes("\n", 0), 0);
}

/* "cab" after U+202E is read as "bac". */
static void what_turns_the_order_of_text_is_a_control_character(void **state)
{
    (void)state;
    assert_int_equal(utf8_control_bytes("\xe2\x80\xa7", SIZE_MAX), 0);
    for (char last = '\xa8'; last <= '\xae'; last++)
        assert_int_equal(utf8_control_bytes((char[]){'\xe2', '\x80', last, '\0'}, SIZE_MAX), 3);
    assert_int_equal(utf8_control_bytes("\xe2\x80\xaf", SIZE_MAX), 0);
    assert_int_equal(utf8_control_bytes("\xe2\x81\xa5", SIZE_MAX), 0);
    for (char last = '\xa6'; last <= '\xa9'; last++)
        assert_int_equal(utf8_control_bytes((char[]){'\xe2', '\x81', last, '\0'}, SIZE_MAX), 3);
    assert_int_equal(utf8_control_bytes("\xe2\x81\xaa", SIZE_MAX), 0);
    assert_int_equal(utf8_control_bytes("\xe2\x82\xac", SIZE_MAX), 0);
    assert_int_equal(utf8_control_bytes("\xe2\x80\xae", 2), 0);
    assert_int_equal(utf8_control_bytes("\xe2", SIZE_MAX), 0);
}

static void a_copy_ends_at_a_character(void **state)
{
    char out[8];

    (void)state;
    utf8_copy(out, sizeof out, "");
    assert_string_equal(out, "");
    utf8_copy(out, sizeof out, "1234567");
    assert_string_equal(out, "1234567");
    utf8_copy(out, sizeof out, "12345678");
    assert_string_equal(out, "1234567");
    utf8_copy(out, sizeof out, "12345\xc3\xa9");
    assert_string_equal(out, "12345\xc3\xa9");
    utf8_copy(out, sizeof out, "123456\xc3\xa9");
    assert_string_equal(out, "123456");
    utf8_copy(out, sizeof out, "1234\xf0\x9f\x98\x80");
    assert_string_equal(out, "1234");
    utf8_copy(out, sizeof out, "1\xff\xe2\x82z\xc3");
    assert_string_equal(out, "1???z?");
    utf8_copy(out, 1, "1");
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_cut_off_is_no_character),
        cmocka_unit_test(control_characters_are_those_above_ascii_too),
        cmocka_unit_test(what_turns_the_order_of_text_is_a_control_character),
        cmocka_unit_test(a_copy_ends_at_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
