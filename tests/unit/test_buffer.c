/* shim/relay/buffer.c: bytes come out as they went in, whatever the order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "h2_script.h"
#include "shim/relay/buffer.h"

static void random_puts_and_consumes(void **state)
{
    struct h2_random r = {7};
    struct buffer b = {0};
    uint8_t in = 0, out = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[300];
        size_t n = h2_random(&r, sizeof bytes);

        if (h2_random(&r, 2)) {
            for (size_t k = 0; k < n; k++)
                bytes[k] = in++;
            assert_int_equal(buffer_put(&b, bytes, n), 0);
        } else {
            n = n < buffer_len(&b) ? n : buffer_len(&b);
            for (size_t k = 0; k < n; k++)
                assert_int_equal(buffer_data(&b)[k], out++);
            buffer_consume(&b, n);
        }
    }
    assert_int_equal((uint8_t)(in - out), (uint8_t)buffer_len(&b));
    buffer_fini(&b);
    assert_int_equal(buffer_len(&b), 0);
    assert_int_equal(buffer_put(&b, "again", 5), 0);
    buffer_fini(&b);
}

static void a_queue_that_is_consumed_does_not_grow(void **state)
{
    struct buffer b = {0};

    (void)state;
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(buffer_put(&b, "0123456789", 10), 0);
        if (i >= 10)
            buffer_consume(&b, 10);
    }
    assert_true(b.capacity <= 1024);
    buffer_fini(&b);
}

static void reserved_room_is_not_lost(void **state)
{
    struct buffer b = {0};

    (void)state;
    assert_int_equal(buffer_put(&b, "ab", 2), 0);
    assert_int_equal(buffer_reserve(&b, 5000), 0);
    assert_true(b.capacity - b.end >= 5000);
    assert_memory_equal(buffer_data(&b), "ab", 2);
    alloc_fail_at(1);
    alloc_fail_enable(true);
    for (int i = 0; i < 5; i++)
        assert_int_equal(buffer_put(&b, (uint8_t[1000]){0}, 1000), 0);
    alloc_fail_enable(false);
    assert_false(alloc_failed());
    buffer_fini(&b);
}

static void without_memory_it_is_as_before(void **state)
{
    struct buffer b = {0};

    (void)state;
    assert_int_equal(buffer_put(&b, "kept", 4), 0);
    alloc_fail_at(1);
    alloc_fail_enable(true);
    assert_int_equal(buffer_put(&b, (uint8_t[1000]){0}, 1000), -ENOMEM);
    assert_int_equal(buffer_reserve(&b, SIZE_MAX - 100), -ENOMEM);
    alloc_fail_enable(false);
    assert_int_equal(buffer_len(&b), 4);
    assert_memory_equal(buffer_data(&b), "kept", 4);
    buffer_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_puts_and_consumes),
        cmocka_unit_test(a_queue_that_is_consumed_does_not_grow),
        cmocka_unit_test(reserved_room_is_not_lost),
        cmocka_unit_test(without_memory_it_is_as_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
