/* shim/page/authority.c: whom a browser may be sent by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/page/authority.h"

static void addresses_and_localhost_are_answered(void **state)
{
    static const char *const HOSTS[] = {
        "localhost", "LocalHost:9100", "127.0.0.1",   "127.0.0.1:9100", "127.255.3.4:1",
        "[::1]",     "[::1]:65535",    "10.0.0.7:80", "[fe80::1]",      "localhost:"};

    (void)state;
    for (size_t i = 0; i < sizeof HOSTS / sizeof *HOSTS; i++)
        assert_true(authority_is_local(HOSTS[i]));
}

/* Each is a name that somebody may have resolved to us, or what no browser sends. */
static void names_are_not(void **state)
{
    static const char *const HOSTS[] = {
        "",
        "evil.example",
        "evil.example:9100",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:127.0.0.1",
        "127.0.0.1:9100.evil.example",
        "127.0.0.1:80:80",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "user@127.0.0.1",
        "127.0.0.1, evil.example",
        " 127.0.0.1",
        "[::1",
        "[::1].evil.example",
        "[::1]x:80",
        "[]",
        "::1",
        "[127.0.0.1]",
        "[evil.example]",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };

    (void)state;
    for (size_t i = 0; i < sizeof HOSTS / sizeof *HOSTS; i++)
        assert_false(authority_is_local(HOSTS[i]));
}

int main(void)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(addresses_and_localhost_are_answered),
        cmocka_unit_test(names_are_not),
    };

    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
