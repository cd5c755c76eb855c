/* shim/runtime/event_sharing.c and version_number.c: by the words of runtimes that there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/runtime/event_sharing.h"

static void as_its_version_has_it(void **state)
{
    static const struct {
        const char *name, *version;
        bool expected;
    } cases[] = {
        {"containerd", "1.6.20~ds1", true}, /* it says that it has none */
        {"containerd", "1.7.0", false},
        {"containerd", "1.7.24~ds1", false},
        {"containerd", "v1.7.29-k3s1", false},
        {"containerd", "v2.0.0", true},
        {"containerd", "v2.2.0", true},
        {"containerd", "main", false},
        {"containerd", "", false},
        {"cri-o", "1.27.8", false},
        {"cri-o", "1.28.0", true},
        {"cri-o", "1.36.2-dev", true},
        {"cri-o", "?", false},
        {"docker", "29.0.0", true},
        {"", "", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (event_sharing(cases[i].name, cases[i].version) != cases[i].expected)
            fail_msg("%s %s", cases[i].name, cases[i].version);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_its_version_has_it)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
