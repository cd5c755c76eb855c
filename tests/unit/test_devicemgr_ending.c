/* devicemgr/things/ending.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "devicemgr/things/ending.h"
#include "devicemgr/things/limits.h"

struct fixture {
    struct endings table;
    struct ending *ending;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    f.ending = endings_add(&f.table, "u1", "ns", "web");
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    endings_fini(&f->table);
    return 0;
}

static struct ending_ask *ask(struct fixture *f, enum end_asker asker, uint64_t token,
                              uint64_t grace_ms)
{
    const struct ending_ask said = {
        .asker = asker, .token = token, .grace_ms = grace_ms, .why = (char *)"it is to"};

    return ending_ask(f->ending, &said);
}

static void the_shortest_grace_counts(void **state)
{
    struct fixture *f = *state;

    ask(f, END_OPERATOR, 0, ENDING_POD_GRACE);
    assert_int_equal(ending_grace_ms(f->ending), ENDING_POD_GRACE); /* which nobody knows */
    assert_false(ending_grace_is_open(f->ending));
    ask(f, END_EVICTION, 1, 60000);
    assert_int_equal(ending_grace_ms(f->ending), 60000);
    assert_true(ending_grace_is_open(f->ending));
    ending_set_pod_grace(f->ending, 30000);
    assert_int_equal(ending_grace_ms(f->ending), 30000);
    assert_false(ending_grace_is_open(f->ending));
    ask(f, END_SHUTDOWN, 1, 10000);
    assert_int_equal(ending_grace_ms(f->ending), 10000);
    ask(f, END_SHUTDOWN, 1, 20000); /* it only gets shorter */
    assert_int_equal(ending_grace_ms(f->ending), 10000);
    assert_int_equal(f->ending->asks_len, 3);
    ending_drop_ask(f->ending, ending_find_ask(f->ending, END_SHUTDOWN, 1));
    assert_int_equal(ending_grace_ms(f->ending), 30000);
    assert_null(ending_find_ask(f->ending, END_SHUTDOWN, 1));
}

static void who_asks_for_the_pods_own_and_another_has_the_shorter(void **state)
{
    struct fixture *f = *state;

    ask(f, END_OPERATOR, 0, 60000);
    ask(f, END_OPERATOR, 0, ENDING_POD_GRACE);
    assert_int_equal(ending_grace_ms(f->ending), 60000);
    ending_set_pod_grace(f->ending, 30000);
    assert_int_equal(ending_grace_ms(f->ending), 30000);
    ask(f, END_EVICTION, 0, ENDING_POD_GRACE);
    ask(f, END_EVICTION, 0, 20000);
    assert_int_equal(ending_grace_ms(f->ending), 20000);
    ending_set_pod_grace(f->ending, 10000);
    assert_int_equal(ending_grace_ms(f->ending), 10000);
}

static void an_order_may_be_longer_than_it_is_to_be(void **state)
{
    struct fixture *f = *state;

    ask(f, END_OPERATOR, 0, 60000);
    f->ending->order_grace_ms = 60000;
    ask(f, END_EVICTION, 0, ENDING_POD_GRACE);
    assert_false(ending_grace_is_shorter(f->ending));
    ending_set_pod_grace(f->ending, 30000);
    assert_true(ending_grace_is_shorter(f->ending));
    f->ending->order_grace_ms = ENDING_POD_GRACE;
    assert_false(ending_grace_is_shorter(f->ending)); /* is just that */
    ask(f, END_SHUTDOWN, 0, 10000);
    assert_true(ending_grace_is_shorter(f->ending));
}

static void there_is_a_most_of_askers(void **state)
{
    struct fixture *f = *state;

    for (uint64_t i = 0; i < ENDING_ASKS_MAX; i++)
        assert_non_null(ask(f, END_EVICTION, i, 1000));
    assert_null(ask(f, END_EVICTION, ENDING_ASKS_MAX, 1000));
    assert_non_null(ask(f, END_EVICTION, 7, 1000)); /* is one of them */
}

static void only_who_asks_still_has_asked(void **state)
{
    struct fixture *f = *state;
    struct ending_ask said = {.asker = END_OPERATOR, .why = (char *)"it is to", .asked_ms = 5};

    assert_true(ending_asked_ms(f->ending) == UINT64_MAX);
    ending_ask(f->ending, &said);
    said.asked_ms = 7; /* once more */
    ending_ask(f->ending, &said);
    said.asker = END_EVICTION;
    ending_ask(f->ending, &said);
    assert_int_equal(ending_asked_ms(f->ending), 5);
    ending_drop_ask(f->ending, ending_find_ask(f->ending, END_OPERATOR, 0));
    assert_int_equal(ending_asked_ms(f->ending), 7);
}

static void who_asks_again_is_told_again(void **state)
{
    struct fixture *f = *state;
    struct ending_ask *own = ask(f, END_OPERATOR, 0, 1000);

    assert_false(ending_told(f->ending));
    ending_ask_set_told(own);
    assert_true(ending_told(f->ending));
    ask(f, END_OPERATOR, 0, 1000);
    assert_false(ending_told(f->ending));
}

static void a_deadline_does_not_move_back(void **state)
{
    struct fixture *f = *state;

    ending_set_due(f->ending, 500);
    ending_set_due(f->ending, 800);
    assert_int_equal(f->ending->due_ms, 500);
    ending_set_due(f->ending, 300);
    assert_int_equal(f->ending->due_ms, 300);
}

/* The picture in ending.h. */
static void it_goes_every_way_there_is(void **state)
{
    static const enum ending_state WAYS[][6] = {
        {ENDING_GONE},
        {ENDING_STOPPING, ENDING_GONE},
        {ENDING_STOPPING, ENDING_STOPPED, ENDING_GONE},
        {ENDING_STOPPING, ENDING_STOPPED, ENDING_STOPPING, ENDING_GONE},
        {ENDING_EVICTING, ENDING_GONE},
        {ENDING_EVICTING, ENDING_STOPPING, ENDING_GONE},
        {ENDING_EVICTING, ENDING_EVICTED, ENDING_GONE},
        {ENDING_EVICTING, ENDING_EVICTED, ENDING_STOPPING, ENDING_STOPPED, ENDING_GONE},
    };
    struct endings table = {0};

    (void)state;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        struct ending *ending = endings_add(&table, "u1", "ns", "web");

        assert_int_equal(ending->state, ENDING_ASKED);
        for (const enum ending_state *to = WAYS[i]; ending->state != ENDING_GONE; to++) {
            ending_set_state(ending, *to);
            assert_int_equal(ending->state, *to);
        }
        endings_remove(&table, ending);
    }
}

static void names_are_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < END_ASKERS; i++) {
        enum end_asker asker;

        assert_true(end_asker_find(end_asker_name((enum end_asker)i), &asker));
        assert_int_equal(asker, i);
    }
    for (int i = 0; i < ENDING_STATES; i++) {
        enum ending_state found;

        assert_true(ending_state_find(ending_state_name((enum ending_state)i), &found));
        assert_int_equal(found, i);
    }
    assert_false(end_asker_find("nobody", &(enum end_asker){0}));
    assert_false(ending_state_find("", &(enum ending_state){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_shortest_grace_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_for_the_pods_own_and_another_has_the_shorter,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_order_may_be_longer_than_it_is_to_be, setup, teardown),
        cmocka_unit_test_setup_teardown(there_is_a_most_of_askers, setup, teardown),
        cmocka_unit_test_setup_teardown(only_who_asks_still_has_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_again_is_told_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deadline_does_not_move_back, setup, teardown),
        cmocka_unit_test(it_goes_every_way_there_is),
        cmocka_unit_test(names_are_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
