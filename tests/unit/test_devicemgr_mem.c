/* Memory: growth, and keys that cannot be mistaken for one another. */
#include "devicemgr/things/mem.h"
#include "devicemgr_world.h"

static void an_array_grows_with_each_append(void **state)
{
    size_t *array = NULL;

    (void)state;
    for (size_t len = 0; len < 1000; len++) {
        array = mem_grow(array, len, sizeof *array);
        array[len] = len;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(array[i], i);
    free(array);
}

static void nothing_is_still_memory(void **state)
{
    (void)state;
    free(mem_alloc(0, 0));
}

static void keys_of_different_parts_differ(void **state)
{
    const char *a[] = {"x", "yz"}, *b[] = {"xy", "z"};
    size_t a_len, b_len;
    char *a_key = mem_key(a, 2, &a_len), *b_key = mem_key(b, 2, &b_len);

    (void)state;
    assert_int_equal(a_len, 5);
    assert_int_equal(b_len, 5);
    assert_memory_not_equal(a_key, b_key, 5);
    free(a_key);
    free(b_key);
}

/* On the stack, and longer than has room there. */
static void a_key_that_was_sought_may_be_kept(void **state)
{
    char long_text[1000];

    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (int i = 0; i < 2; i++) {
        const char *parts[] = {"pod", i ? long_text : "u1"};
        size_t made_len, kept_len;
        char *made = mem_key(parts, 2, &made_len), *kept;
        struct mem_sought sought;

        mem_seek(&sought, parts, 2);
        kept = mem_sought_take(&sought, &kept_len);
        memset(&sought, 'y', sizeof sought);
        assert_int_equal(kept_len, made_len);
        assert_memory_equal(kept, made, made_len);
        free(made);
        free(kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_grows_with_each_append),
        cmocka_unit_test(nothing_is_still_memory),
        cmocka_unit_test(keys_of_different_parts_differ),
        cmocka_unit_test(a_key_that_was_sought_may_be_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
