#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "devicemgr/kubelet_file/base64.h"

/* RFC 4648 §10, and what those do not reach. */
static void what_was_encoded_is_read(void **state)
{
    static const char *const CASES[][2] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm9vYmE=", "fooba"},
        {"Zm9vYmFy", "foobar"},
        {"+/+/", "\xfb\xff\xbf"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t *out = NULL;
        size_t len = 99;

        assert_int_equal(base64_decode(CASES[i][0], &out, &len), 0);
        assert_int_equal(len, strlen(CASES[i][1]));
        assert_memory_equal(out, CASES[i][1], len);
        free(out);
    }
}

static void what_no_encoder_writes_is_refused(void **state)
{
    static const char *const CASES[] = {
        "Z",     "Zg",       "Zg=",        "=",    "====", "Z===",
        "Zm9v=", "Zg==Zg==", "Zm9v\nZm8=", "Zm-_", "Zh==", "Zm9=",
    };

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint8_t *out = NULL;
        size_t len = 99;

        assert_int_equal(base64_decode(CASES[i], &out, &len), -1);
        assert_null(out);
        assert_int_equal(len, 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_encoded_is_read),
        cmocka_unit_test(what_no_encoder_writes_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
