/* shim/bridge/kept_layout.c: images of two releases. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/bridge/kept_layout.h"

#define IMAGE_BYTES 4096
#define SLOTS_AT 1024
#define SLOT_BYTES 512
#define SLOT(number) (KEPT_TAG_SLOT + (number))

static _Alignas(64) uint8_t before[IMAGE_BYTES], after[IMAGE_BYTES];

/* With the fields that each image has, in front. */
static void image_init(uint8_t *image, uint32_t active_bytes, const struct kept_field *more,
                       size_t len)
{
    struct kept_field fields[16] = {
        {KEPT_TAG_ACTIVE, KEPT_NUMBER, 1000, active_bytes, 1, 0},
        {KEPT_TAG_SLOTS, KEPT_BYTES, SLOTS_AT, SLOT_BYTES, KEPT_SLOTS, SLOT_BYTES},
    };

    memset(image, 0, IMAGE_BYTES);
    memcpy(fields + 2, more, len * sizeof *more);
    kept_layout_write(image, IMAGE_BYTES, fields, len + 2);
}

static uint8_t *slot(uint8_t *image, unsigned i, size_t at)
{
    return image + SLOTS_AT + i * SLOT_BYTES + at;
}

/* `len` of one field on each side, the second slot of `before` in force; 0 or the error. */
static int copied(struct kept_field a, const void *value, struct kept_field b)
{
    image_init(before, 1, &a, 1);
    before[1000] = 1;
    memcpy(slot(before, 1, a.at), value, (a.count - 1) * a.stride + a.bytes);
    image_init(after, 4, &b, 1);
    return kept_layout_copy(before, after);
}

static void numbers_grow_and_shrink_as_long_as_they_fit(void **state)
{
    static const uint32_t SIZES[] = {1, 2, 4, 8};
    const uint64_t small = 200;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            const struct kept_field a = {SLOT(5), KEPT_NUMBER, 3, SIZES[i], 1, 0};
            const struct kept_field b = {SLOT(5), KEPT_NUMBER, 17, SIZES[k], 1, 0};
            const uint8_t u8 = small;
            const uint16_t u16 = small;
            const uint32_t u32 = small;
            const void *value = i == 0 ? &u8 : i == 1 ? &u16 : i == 2 ? &u32 : (const void *)&small;
            const uint64_t large = UINT64_MAX;
            uint64_t out = 0;

            assert_int_equal(copied(a, value, b), 0);
            if (k == 3)
                memcpy(&out, slot(after, 0, 17), 8);
            assert_int_equal(k == 3 ? out : *slot(after, 0, 17),
                             k == 3 || k == 0                            ? small
                             : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? small
                                                                         : 0);
            assert_int_equal(copied(a, &large, b), SIZES[k] >= SIZES[i] ? 0 : -ESTALE);
        }
    }
}

static void bytes_are_cut_or_end_in_zeros(void **state)
{
    const struct kept_field shorter = {SLOT(5), KEPT_BYTES, 0, 4, 1, 0};
    const struct kept_field longer = {SLOT(5), KEPT_BYTES, 9, 6, 1, 0};

    (void)state;
    assert_int_equal(copied(shorter, "abcd", longer), 0);
    assert_memory_equal(slot(after, 0, 9), "abcd\0\0", 6);
    assert_int_equal(copied(longer, "abcdef", shorter), 0);
    assert_memory_equal(slot(after, 0, 0), "abcd\0\0", 6);
}

static void what_must_be_exact_is(void **state)
{
    const struct kept_field four = {SLOT(5), KEPT_EXACT, 0, 4, 1, 0};
    const struct kept_field six = {SLOT(5), KEPT_EXACT, 9, 6, 1, 0};

    (void)state;
    assert_int_equal(copied(four, "abcd", four), 0);
    assert_memory_equal(slot(after, 0, 0), "abcd", 4);
    assert_int_equal(copied(four, "abcd", six), -ESTALE);
    assert_int_equal(copied(six, "abcdef", four), -ESTALE);
}

static void unknown_fields_are_left_out_and_missing_ones_are_zero(void **state)
{
    const struct kept_field a = {SLOT(5), KEPT_BYTES, 0, 4, 1, 0};
    const struct kept_field b = {SLOT(6), KEPT_BYTES, 0, 4, 1, 0};

    (void)state;
    assert_int_equal(copied(a, "abcd", b), 0);
    assert_memory_equal(slot(after, 0, 0), "\0\0\0\0", 4);
}

static void elements_that_exist_have_to_have_a_place(void **state)
{
    const struct kept_field three = {SLOT(5), KEPT_KEY, 0, 1, 3, 4};
    const struct kept_field two = {SLOT(5), KEPT_KEY, 8, 2, 2, 6};

    (void)state;
    assert_int_equal(copied(three, "\1___\2___\0", two), 0);
    assert_int_equal(*slot(after, 0, 8) + *slot(after, 0, 9), 1);
    assert_int_equal(*slot(after, 0, 14) + *slot(after, 0, 15), 2);
    assert_int_equal(copied(three, "\1___\2___\3", two), -ESTALE);
    assert_int_equal(copied(two, "\1\0____\0\0", three), 0);
}

static void the_head_of_an_image_goes_along(void **state)
{
    const struct kept_field here = {9, KEPT_BYTES, 900, 4, 1, 0};
    const struct kept_field there = {9, KEPT_BYTES, 940, 4, 1, 0};

    (void)state;
    image_init(before, 4, &here, 1);
    memcpy(before + 900, "head", 4);
    image_init(after, 4, &there, 1);
    assert_int_equal(kept_layout_copy(before, after), 0);
    assert_memory_equal(after + 940, "head", 4);
    assert_true(kept_layout_image_bytes(after) == IMAGE_BYTES);
}

static void what_is_no_image_is_found_out(void **state)
{
    static const struct kept_field WRONG[] = {
        {SLOT(5), KEPT_BYTES, SLOT_BYTES - 3, 4, 1, 0},
        {SLOT(5), KEPT_BYTES, 0, 4, 3, SLOT_BYTES / 2},
        {SLOT(5), KEPT_BYTES, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
        {SLOT(5), KEPT_BYTES, 0, 4, UINT32_MAX, 0},
        {SLOT(5), KEPT_BYTES, 0, 4, 3, 3},
        {SLOT(5), KEPT_NUMBER, 0, 3, 1, 0},
        {SLOT(5), KEPT_BYTES, 0, 4, 0, 0},
        {9, KEPT_BYTES, IMAGE_BYTES - 3, 4, 1, 0},
    };

    (void)state;
    image_init(after, 4, WRONG, 0);
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        image_init(before, 4, &WRONG[i], 1);
        assert_int_equal(kept_layout_copy(before, after), -EUCLEAN);
    }
    image_init(before, 3, WRONG, 0);
    assert_int_equal(kept_layout_copy(before, after), -EUCLEAN);
    image_init(before, 4, WRONG, 0);
    before[1000] = before[1003] = KEPT_SLOTS;
    assert_int_equal(kept_layout_copy(before, after), -EUCLEAN);
}

/* The sanitizers look on. */
static void any_damage_is_survived(void **state)
{
    const struct kept_field more[] = {{SLOT(5), KEPT_KEY, 0, 1, 3, 4},
                                      {SLOT(6), KEPT_BYTES, 20, 40, 1, 0}};
    const size_t layout = kept_layout_bytes(4);
    unsigned intact = 0;

    (void)state;
    srandom(1);
    for (int i = 0; i < 20000; i++) {
        uint8_t *image = malloc(IMAGE_BYTES);

        image_init(image, 4, more, 2);
        for (long n = random() % 3; n >= 0; n--)
            image[4 + (size_t)random() % (layout - 4)] = (uint8_t)(1 << random() % 8);
        image_init(after, 4, more, 2);
        intact += kept_layout_copy(image, after) == 0;
        free(image);
    }
    assert_in_range(intact, 100, 19900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_grow_and_shrink_as_long_as_they_fit),
        cmocka_unit_test(bytes_are_cut_or_end_in_zeros),
        cmocka_unit_test(what_must_be_exact_is),
        cmocka_unit_test(unknown_fields_are_left_out_and_missing_ones_are_zero),
        cmocka_unit_test(elements_that_exist_have_to_have_a_place),
        cmocka_unit_test(the_head_of_an_image_goes_along),
        cmocka_unit_test(what_is_no_image_is_found_out),
        cmocka_unit_test(any_damage_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
