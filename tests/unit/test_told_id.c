/* shim/control/told_id.c: ids of devices that are told cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/control/told_id.h"

#define LONG (CONTROL_ID_BYTES_MAX + 500)

static char *id_of(size_t len, const char *end)
{
    char *id = malloc(len + 1);

    assert_non_null(id);
    memset(id, 'x', len);
    memcpy(id + len - strlen(end), end, strlen(end));
    id[len] = '\0';
    return id;
}

static void what_is_no_longer_than_that_is_told_whole(void **state)
{
    char *id = id_of(CONTROL_ID_BYTES_MAX, "");

    (void)state;
    assert_false(told_id_is_cut(""));
    assert_false(told_id_is_cut(id));
    free(id);
    id = id_of(CONTROL_ID_BYTES_MAX + 1, "");
    assert_true(told_id_is_cut(id));
    free(id);
}

static void what_is_told_is_of_one_id(void **state)
{
    char *id = id_of(LONG, "1"), *other = id_of(LONG, "2"), *longer = id_of(LONG + 1, "1");
    char told[TOLD_ID_BYTES_MAX];

    (void)state;
    told_id_cut(id, told);
    assert_true(told_id_is_cut(told)); /* no id that is told whole looks like it */
    assert_memory_equal(told, id, CONTROL_ID_BYTES_MAX);
    assert_non_null(strstr(told, "x...(1524 bytes, "));
    assert_true(told_id_is_of(told, id));
    assert_false(told_id_is_of(told, other));
    assert_false(told_id_is_of(told, longer));
    assert_false(told_id_is_of(told, "x"));
    free(id);
    free(other);
    free(longer);
}

/* Of 2, 3 and 4 bytes, at every place across the end. */
static void no_character_is_cut(void **state)
{
    static const char *const CHARACTERS[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82"};
    char told[TOLD_ID_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        size_t bytes = strlen(CHARACTERS[i]);

        for (size_t at = CONTROL_ID_BYTES_MAX - bytes; at <= CONTROL_ID_BYTES_MAX; at++) {
            bool fits = at + bytes <= CONTROL_ID_BYTES_MAX;
            char *id = id_of(LONG, "");

            memcpy(id + at, CHARACTERS[i], bytes);
            told_id_cut(id, told);
            assert_memory_equal(told, id, fits ? CONTROL_ID_BYTES_MAX : at);
            assert_memory_equal(told + (fits ? CONTROL_ID_BYTES_MAX : at), "...(", 4);
            assert_true(told_id_is_cut(told) && told_id_is_of(told, id));
            free(id);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_longer_than_that_is_told_whole),
        cmocka_unit_test(what_is_told_is_of_one_id),
        cmocka_unit_test(no_character_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
