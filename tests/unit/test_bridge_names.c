/* shim/bridge/names.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/bridge/limits.h"
#include "shim/bridge/names.h"

#define DIR "/var/lib/kubelet/device-plugins"

static void the_socket_is_named_after_the_resource(void **state)
{
    char *endpoint = name_endpoint(DIR, "vendor.com/gpu");

    (void)state;
    assert_string_equal(endpoint, "cri-device-shim/vendor.com_gpu.sock");
    free(endpoint);
}

/* The endpoint of a resource "a/xxx" of `bytes` bytes that ends in `end`. */
static char *long_one(const char *dir, size_t bytes, char end)
{
    char name[RESOURCE_NAME_BYTES_MAX + 1];

    memset(name, 'x', bytes);
    memcpy(name, "a/", 2);
    name[bytes - 1] = end;
    name[bytes] = '\0';
    return name_endpoint(dir, name);
}

static size_t path_bytes(const char *endpoint)
{
    return strlen(DIR "/") + strlen(endpoint);
}

static void a_long_name_is_shortened_at_the_last_moment(void **state)
{
    size_t room = 107 - strlen(DIR "/cri-device-shim/.sock");
    char *fits = long_one(DIR, room, 'x'), *one = long_one(DIR, room + 1, '1'),
         *again = long_one(DIR, room + 1, '1'), *other = long_one(DIR, room + 1, '2');

    (void)state;
    assert_int_equal(path_bytes(fits), 107);
    assert_null(strchr(fits + strlen("cri-device-shim"), '-'));
    assert_int_equal(path_bytes(one), 107);
    assert_int_equal(path_bytes(other), 107);
    assert_string_equal(one, again);
    assert_string_not_equal(one, other);
    assert_memory_equal(one, "cri-device-shim/a_xxx", 20);
    assert_string_equal(one + strlen(one) - 5, ".sock");
    free(fits);
    free(one);
    free(again);
    free(other);
}

static void a_directory_may_leave_no_room(void **state)
{
    char dir[200];
    char *endpoint;

    (void)state;
    memset(dir, 'd', sizeof dir);
    dir[107 - strlen("/cri-device-shim/.sock") - 18] = '\0';
    endpoint = long_one(dir, 100, 'x');
    assert_int_equal(strlen(dir) + 1 + strlen(endpoint), 107);
    free(endpoint);
    dir[strlen(dir)] = 'd';
    dir[107 - strlen("/cri-device-shim/.sock") - 17] = '\0';
    assert_null(long_one(dir, 100, 'x'));
    endpoint = long_one(dir, 17, 'x'); /* in full it does fit */
    assert_non_null(endpoint);
    free(endpoint);
    memset(dir, 'd', sizeof dir);
    dir[sizeof dir - 1] = '\0';
    assert_null(long_one(dir, 3, 'x'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_socket_is_named_after_the_resource),
        cmocka_unit_test(a_long_name_is_shortened_at_the_last_moment),
        cmocka_unit_test(a_directory_may_leave_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
