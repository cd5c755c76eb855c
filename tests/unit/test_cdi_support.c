/* shim/runtime/cdi_support.c: by the words of runtimes that there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/runtime/cdi_support.h"

#define ON                                                                                         \
    "{\"containerd\":{\"enableCDI\":false},\"enableCDI\":true,\"cdiSpecDirs\":[\"/etc/cdi\"]}"
#define OFF "{\"enableCDI\":false,\"cdiSpecDirs\":[\"/etc/cdi\",\"/var/run/cdi\"]}"
#define NO_WORD "{\"containerdRootDir\":\"/var/lib/containerd\"}"

static void as_its_version_and_settings_have_it(void **state)
{
    static const struct {
        const char *name, *version, *settings;
        enum devicemgr_cdi expected;
    } cases[] = {
        {"containerd", "1.6.20~ds1", NO_WORD, DEVICEMGR_CDI_NONE},
        {"containerd", "v1.6.36", NULL, DEVICEMGR_CDI_NONE},
        {"containerd", "1.7.0", OFF, DEVICEMGR_CDI_NONE},
        {"containerd", "v1.7.1", ON, DEVICEMGR_CDI_ANNOTATED},
        {"containerd", "1.7.2", ON, DEVICEMGR_CDI_READ},
        {"containerd", "1.7.28+unknown", ON, DEVICEMGR_CDI_READ},
        {"containerd", "1.7.28", NULL, DEVICEMGR_CDI_UNKNOWN},
        {"containerd", "v2.1.9", ON, DEVICEMGR_CDI_READ},
        {"containerd", "v2.2.0", OFF, DEVICEMGR_CDI_NONE},
        {"containerd", "v2.2.0", "{\"enableCDI\":null}", DEVICEMGR_CDI_READ},
        {"containerd", "v2.4.0", NO_WORD, DEVICEMGR_CDI_READ},
        {"containerd", "v2.4.0", NULL, DEVICEMGR_CDI_UNKNOWN},
        {"containerd", "main", ON, DEVICEMGR_CDI_READ},
        {"containerd", "main", NO_WORD, DEVICEMGR_CDI_UNKNOWN},
        {"containerd", "", "no JSON", DEVICEMGR_CDI_UNKNOWN},
        {"containerd", "v2.1.9", "[]", DEVICEMGR_CDI_READ},
        {"containerd", "v2.1.9", "{\"enableCDI\":\"false\"}", DEVICEMGR_CDI_READ},
        {"cri-o", "1.23.5", NULL, DEVICEMGR_CDI_NONE},
        {"cri-o", "1.27.8", NULL, DEVICEMGR_CDI_ANNOTATED},
        {"cri-o", "1.28.0", NULL, DEVICEMGR_CDI_READ},
        {"cri-o", "1.36.2-dev", "{}", DEVICEMGR_CDI_READ},
        {"cri-o", "?", NULL, DEVICEMGR_CDI_UNKNOWN},
        {"docker", "29.0.0", ON, DEVICEMGR_CDI_UNKNOWN},
        {"", "", NULL, DEVICEMGR_CDI_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cdi_support(cases[i].name, cases[i].version, cases[i].settings) != cases[i].expected)
            fail_msg("%s %s %s", cases[i].name, cases[i].version, cases[i].settings);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_its_version_and_settings_have_it)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
