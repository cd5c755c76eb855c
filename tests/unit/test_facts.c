/* shim/facts.c: what is known, what has changed, and the bounds of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "shim/facts.h"

enum { PODS, SLICES };

struct told {
    char text[512]; /* "a=1 b- ": b is no more */
};

static void on_fact(void *user, const struct fact *fact)
{
    struct told *told = user;
    size_t used = strlen(told->text);

    snprintf(told->text + used, sizeof told->text - used, "%s%s%.*s ", fact->key,
             fact->value ? "=" : "-", (int)fact->len, fact->value ? (char *)fact->value : "");
}

static const char *tell(struct facts *facts, bool all)
{
    static struct told told;

    told.text[0] = '\0';
    facts_tell(facts, all, on_fact, &told);
    return told.text;
}

static int put(struct facts *facts, int kind, const char *key, const char *value)
{
    return facts_put(facts, kind, key, (const uint8_t *)value, strlen(value));
}

static void what_changes_is_told_once(void **state)
{
    struct facts facts = {0};

    (void)state;
    assert_int_equal(put(&facts, PODS, "a", "1"), 1);
    assert_int_equal(put(&facts, SLICES, "a", "2"), 1); /* another kind, another fact */
    assert_string_equal(tell(&facts, false), "a=1 a=2 ");
    assert_string_equal(tell(&facts, false), "");
    assert_int_equal(put(&facts, PODS, "a", "1"), 0);
    assert_string_equal(tell(&facts, false), "");
    assert_int_equal(put(&facts, PODS, "a", "3"), 1);
    assert_true(facts_remove(&facts, SLICES, "a"));
    assert_false(facts_remove(&facts, SLICES, "a"));
    assert_null(facts_find(&facts, SLICES, "a"));
    assert_string_equal(tell(&facts, false), "a=3 a- ");
    assert_string_equal(tell(&facts, true), "a=3 ");
    facts_fini(&facts);
}

static void one_that_is_back_before_it_was_told(void **state)
{
    struct facts facts = {0};

    (void)state;
    put(&facts, PODS, "a", "1");
    tell(&facts, false);
    facts_remove(&facts, PODS, "a");
    assert_int_equal(put(&facts, PODS, "a", "1"), 1);
    assert_string_equal(tell(&facts, false), "a=1 ");
    facts_fini(&facts);
}

static void a_list_ends_what_it_does_not_name(void **state)
{
    struct facts facts = {0};

    (void)state;
    put(&facts, PODS, "a", "1");
    put(&facts, PODS, "b", "1");
    put(&facts, SLICES, "c", "1");
    tell(&facts, false);
    assert_false(facts_complete(&facts, PODS));
    facts_list_begin(&facts, PODS);
    put(&facts, PODS, "b", "1");
    assert_true(facts_list_end(&facts, PODS));
    assert_true(facts_complete(&facts, PODS));
    assert_false(facts_complete(&facts, SLICES));
    assert_string_equal(tell(&facts, false), "a- ");
    /* One that was begun and not ended has changed nothing. */
    facts_list_begin(&facts, PODS);
    facts_list_begin(&facts, PODS);
    put(&facts, PODS, "b", "1");
    assert_false(facts_list_end(&facts, PODS));
    assert_non_null(facts_find(&facts, PODS, "b"));
    facts_fini(&facts);
}

static void there_is_a_most_of_it(void **state)
{
    static uint8_t large[FACT_BYTES_MAX + 1];
    char key[FACT_KEY_BYTES_MAX + 2];
    struct facts facts = {0};
    size_t n = 0;

    (void)state;
    assert_int_equal(facts_put(&facts, PODS, "a", large, FACT_BYTES_MAX), 1);
    /* What is too large is not known as it was before either. */
    assert_int_equal(facts_put(&facts, PODS, "a", large, FACT_BYTES_MAX + 1), -ENOSPC);
    assert_null(facts_find(&facts, PODS, "a"));
    memset(key, 'x', sizeof key);
    key[FACT_KEY_BYTES_MAX + 1] = '\0';
    assert_int_equal(put(&facts, PODS, key, "1"), -ENOSPC);
    tell(&facts, false);
    do
        snprintf(key, sizeof key, "%zu", ++n);
    while (put(&facts, PODS, key, "1") == 1);
    assert_int_equal(n, FACTS_MAX + 1);
    assert_int_equal(put(&facts, PODS, "1", "2"), 1);   /* one that is there may change */
    assert_int_equal(put(&facts, SLICES, "x", "1"), 1); /* and another kind has room of its own */
    assert_int_equal(facts_len(&facts), FACTS_MAX + 1);
    facts_fini(&facts);
    for (n = 0; snprintf(key, sizeof key, "%zu", n) > 0; n++) {
        if (facts_put(&facts, PODS, key, large, FACT_BYTES_MAX) < 0)
            break;
    }
    assert_int_equal(n, FACTS_BYTES_MAX / FACT_BYTES_MAX);
    assert_int_equal(facts_put(&facts, SLICES, "x", large, FACT_BYTES_MAX), 1);
    facts_fini(&facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_is_told_once),
        cmocka_unit_test(one_that_is_back_before_it_was_told),
        cmocka_unit_test(a_list_ends_what_it_does_not_name),
        cmocka_unit_test(there_is_a_most_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
