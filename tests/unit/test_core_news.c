/* shim/cluster/core_news.c: what the core asks of the cluster. */
#include "tests/unit/orders_stage.h"

#include "devicemgr/things/limits.h"
#include "shim/cluster/core_news.h"
#include "shim/cluster/limits.h"

#define MORE 10

struct fixture {
    struct orders_stage stage;
    struct core_news news;
};

/* Without a host: nothing is answered here. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    orders_stage_init(&f->stage);
    core_news_init(&f->news, NULL, &f->stage.orders);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;

    core_news_fini(&f->news);
    result = orders_stage_fini(&f->stage);
    free(f);
    return result;
}

static void look_up(struct fixture *f, unsigned number)
{
    char uid[16];

    snprintf(uid, sizeof uid, "c-%u", number);
    core_news_look_up(
        &f->news, &(struct devicemgr_claim){.pod_namespace = "default", .name = "gpu", .uid = uid});
}

static void a_claim_is_looked_up_once_at_a_time(void **state)
{
    struct fixture *f = *state;

    look_up(f, 1);
    look_up(f, 2);
    look_up(f, 1);
    assert_int_equal(f->stage.orders.len, 2);
}

/* It may have been allocated anew since the agent has read it. */
static void what_was_read_before_it_is_asked_is_no_answer(void **state)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;
    struct fixture *f = *state;
    Agent__V1__Order *order;

    look_up(f, 1);
    assert_int_equal(cluster_orders_fill(&f->stage.orders, &order, 1), 1);
    answer.id = order->id;
    answer.outcome = AGENT__V1__OUTCOME__DONE;
    look_up(f, 1);
    assert_false(cluster_orders_answered(&f->stage.orders, &answer));
    assert_int_equal(cluster_orders_fill(&f->stage.orders, &order, 1), 1);
    assert_string_equal(order->get_claim->uid, "c-1");
    assert_int_not_equal(order->id, answer.id);
}

/* As it does when it starts, before there is an agent; and it asks for none of them again. */
static void as_many_as_the_core_has_are_looked_up(void **state)
{
    struct fixture *f = *state;
    Agent__V1__Order *first;

    for (unsigned i = 0; i < CLAIMS_MAX; i++)
        look_up(f, i);
    assert_int_equal(f->stage.orders.len, CLAIMS_MAX);
    assert_int_equal(cluster_orders_fill(&f->stage.orders, &first, 1), 1);
    assert_string_equal(first->get_claim->uid, "c-0");
}

/* Without an agent, that is: what is to be done there must find room when one comes. */
static void the_oldest_make_room(void **state)
{
    struct fixture *f = *state;
    Agent__V1__Order *first;

    for (unsigned i = 0; i < CLUSTER_CLAIMS_MAX + MORE; i++)
        look_up(f, i);
    assert_int_equal(f->stage.orders.len, CLUSTER_CLAIMS_MAX);
    assert_true(CLUSTER_CLAIMS_MAX < CLUSTER_ORDERS_MAX);
    assert_int_equal(cluster_orders_fill(&f->stage.orders, &first, 1), 1);
    assert_string_equal(first->get_claim->uid, "c-10");
    look_up(f, 0); /* it may be asked anew */
    assert_int_equal(f->stage.orders.len, CLUSTER_CLAIMS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_claim_is_looked_up_once_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_read_before_it_is_asked_is_no_answer, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(as_many_as_the_core_has_are_looked_up, setup, teardown),
        cmocka_unit_test_setup_teardown(the_oldest_make_room, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
