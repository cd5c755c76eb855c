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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_cut_off_is_no_character)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
