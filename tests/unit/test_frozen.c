/*
 * shim/relay/frozen.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/relay/frozen.h"

static void write_some(struct buffer *out)
{
    struct frozen_writer w = {.out = out};

    frozen_put(&w, UINT64_C(0x0102030405060708));
    frozen_put_bytes(&w, "abc", 3);
    frozen_put_bytes(&w, NULL, 0);
    frozen_put(&w, UINT64_MAX);
    assert_false(w.no_memory);
}

static void a_format_is_the_number_that_its_name_says(void **state)
{
    (void)state;
    assert_int_equal(frozen_format("SHSESS01"), UINT64_C(0x3130535345534853));
}

static void what_is_written_is_read(void **state)
{
    struct buffer out = {0}, copy = {0};
    struct frozen_reader r;
    size_t len;

    (void)state;
    write_some(&out);
    assert_int_equal(buffer_len(&out), 8 + 8 + 3 + 8 + 8);
    assert_int_equal(buffer_data(&out)[0], 8); /* the lowest first, on every machine */
    r = (struct frozen_reader){.at = buffer_data(&out), .left = buffer_len(&out)};
    assert_int_equal(frozen_take(&r), UINT64_C(0x0102030405060708));
    assert_int_equal(frozen_take_buffer(&r, 3, &copy), 0);
    assert_memory_equal(buffer_data(&copy), "abc", 3);
    frozen_take_bytes(&r, 0, &len);
    assert_int_equal(len, 0);
    assert_true(frozen_take(&r) == UINT64_MAX && !r.bad && r.left == 0);
    buffer_fini(&out);
    buffer_fini(&copy);
}

static void an_early_end_is_seen(void **state)
{
    struct buffer out = {0};

    (void)state;
    write_some(&out);
    for (size_t end = 0; end < buffer_len(&out); end++) {
        struct frozen_reader r = {.at = buffer_data(&out), .left = end};
        size_t len;

        frozen_take(&r);
        frozen_take_bytes(&r, 3, &len);
        frozen_take_bytes(&r, 3, &len);
        frozen_take(&r);
        assert_true(r.bad);
        assert_int_equal(frozen_take(&r), 0);
    }
    buffer_fini(&out);
}

static void what_is_too_large_is_seen(void **state)
{
    struct buffer out = {0};
    struct frozen_reader r;
    size_t len;

    (void)state;
    write_some(&out);
    r = (struct frozen_reader){.at = buffer_data(&out), .left = buffer_len(&out)};
    assert_int_equal(frozen_take_most(&r, 7), 0);
    assert_true(r.bad);
    r = (struct frozen_reader){.at = buffer_data(&out) + 8, .left = buffer_len(&out) - 8};
    frozen_take_bytes(&r, 2, &len);
    assert_true(r.bad && len == 0);
    buffer_fini(&out);
}

/* A section in a section, of which one side knows `written` numbers and the other `read`. */
static void sections_of(unsigned written, unsigned read)
{
    struct buffer out = {0};
    struct frozen_writer w = {.out = &out};
    size_t outer = frozen_section_begin(&w), inner = frozen_section_begin(&w);
    struct frozen_reader r;

    for (unsigned i = 0; i < written; i++)
        frozen_put(&w, i);
    frozen_section_end(&w, inner);
    frozen_put(&w, 77);
    frozen_section_end(&w, outer);
    frozen_put(&w, 78);
    r = (struct frozen_reader){.at = buffer_data(&out), .left = buffer_len(&out)};
    outer = frozen_section_enter(&r);
    inner = frozen_section_enter(&r);
    for (unsigned i = 0; i < read; i++) {
        assert_int_equal(frozen_at_end(&r), i >= written);
        if (i < written)
            assert_int_equal(frozen_take(&r), i);
    }
    frozen_section_leave(&r, inner);
    assert_int_equal(frozen_take(&r), 77);
    assert_true(frozen_at_end(&r));
    frozen_section_leave(&r, outer);
    assert_int_equal(frozen_take(&r), 78);
    assert_true(frozen_at_end(&r));
    buffer_fini(&out);
}

static void sections_grow_at_their_ends(void **state)
{
    (void)state;
    for (unsigned written = 0; written < 4; written++) {
        for (unsigned read = 0; read < 4; read++)
            sections_of(written, read);
    }
}

static void a_section_longer_than_what_there_is_is_seen(void **state)
{
    const uint8_t bytes[] = {9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct frozen_reader r = {.at = bytes, .left = sizeof bytes};
    size_t section = frozen_section_enter(&r);

    (void)state;
    assert_true(r.bad && !frozen_at_end(&r));
    frozen_section_leave(&r, section);
    assert_int_equal(frozen_take(&r), 0);
}

static void what_has_no_room_is_said(void **state)
{
    struct buffer out = {0};
    struct frozen_writer w = {.out = &out};

    (void)state;
    alloc_fail_at(1);
    alloc_fail_enable(true);
    frozen_put(&w, 1);
    alloc_fail_enable(false);
    alloc_fail_at(0);
    assert_true(w.no_memory);
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_format_is_the_number_that_its_name_says),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(an_early_end_is_seen),
        cmocka_unit_test(what_is_too_large_is_seen),
        cmocka_unit_test(sections_grow_at_their_ends),
        cmocka_unit_test(a_section_longer_than_what_there_is_is_seen),
        cmocka_unit_test(what_has_no_room_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
