/* shim/kubelet/questions.c: the kubelet's questions, through a real core to a plugin. */
#include "shim/kubelet/questions.h"
#include "tests/unit/feed_fixture.h"

static void a_preference_is_passed_on(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->plugin.prefers = true;
    start_with_list(f, "g0,g1,g2");
    assert_int_equal(ask_answered(f, &q, GPU, 1, 0), RPC_OK);
    assert_int_equal(q.ids, 1);
    assert_int_equal(f->plugin.prefers_seen, 1);
    assert_int_equal(ask_answered(f, &q, "v.com/unknown", 1, 0), RPC_OK);
    assert_int_equal(q.ids, 0);
    assert_int_equal(ask_answered(f, &q, GPU, -1, 0), RPC_INVALID_ARGUMENT);
}

static void questions_given_up_are_over(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->plugin.prefers = true;
    start_with_list(f, "g0,g1,g2");
    f->plugin.hold = true;
    ask(f, &q, GPU, 1, 0);
    WAIT(f->world, f->plugin.held);
    rpc_call_cancel(q.call);
    WAIT(f->world, f->plugin.cancelled == 1);
    assert_int_equal(ask_answered(f, &q, GPU, 1, 30), RPC_DEADLINE_EXCEEDED); /* its deadline */
    WAIT(f->world, f->plugin.cancelled == 2);
}

static void there_is_a_most_of_questions(void **state)
{
    struct question q[QUESTIONS_MAX + 1];
    struct fixture *f = *state;

    f->plugin.prefers = true;
    start_with_list(f, "g0,g1,g2");
    f->plugin.hold = true;
    for (size_t i = 0; i <= QUESTIONS_MAX; i++)
        ask(f, &q[i], GPU, 1, 0);
    WAIT(f->world, q[QUESTIONS_MAX].over);
    assert_int_equal(q[QUESTIONS_MAX].code, RPC_RESOURCE_EXHAUSTED);
    assert_false(q[0].over);
    stop_feed(f); /* ends what is open */
    WAIT(f->world, q[0].over);
    assert_int_equal(q[0].code, RPC_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_preference_is_passed_on),
        TEST(questions_given_up_are_over),
        TEST(there_is_a_most_of_questions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
