/* shim/boot.c: this boot's id and beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <sys/sysinfo.h>

#include <cmocka.h>

#include "shim/boot.h"

static void the_id_is_the_kernels_and_stays(void **state)
{
    char id[BOOT_ID_BYTES_MAX], again[BOOT_ID_BYTES_MAX];

    (void)state;
    boot_id_read(id);
    boot_id_read(again);
    assert_int_equal(strlen(id), 36); /* a UUID, without the line's end */
    assert_string_equal(id, again);
}

static void the_boot_is_as_long_ago_as_the_uptime(void **state)
{
    time_t before = time(NULL);
    struct sysinfo info;
    time_t began = boot_time();

    (void)state;
    assert_int_equal(sysinfo(&info), 0);
    assert_in_range(before - began, info.uptime - 2, info.uptime + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_id_is_the_kernels_and_stays),
        cmocka_unit_test(the_boot_is_as_long_ago_as_the_uptime),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
