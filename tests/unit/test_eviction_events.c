/* shim/cluster/eviction_events.c: what is told of pods that go for taints, and of those that need
 * not. */
#include "tests/unit/orders_stage.h"

#include "shim/cluster/eviction_events.h"
#include "shim/cluster/limits.h"

struct fixture {
    struct orders_stage stage;
    struct eviction_events events;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    orders_stage_init(&f->stage);
    eviction_events_init(&f->events, &f->stage.orders);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result = orders_stage_fini(&f->stage);

    free(f);
    return result;
}

static void happened(struct fixture *f, enum devicemgr_event_kind kind, const char *name,
                     const char *asker)
{
    const struct devicemgr_event event = {.kind = kind,
                                          .pod_uid = "u1",
                                          .pod_namespace = "ns",
                                          .pod_name = name,
                                          .word = asker,
                                          .text = "device g0 is tainted"};

    eviction_events_happened(&f->events, &event);
}

/* The only order that is due. */
static Agent__V1__Tell *told(struct fixture *f)
{
    Agent__V1__Order *orders[2];

    assert_int_equal(cluster_orders_fill(&f->stage.orders, orders, 2), 1);
    assert_int_equal(orders[0]->what_case, AGENT__V1__ORDER__WHAT_TELL);
    return orders[0]->tell;
}

static void both_are_told_as_upstream_does(void **state)
{
    struct fixture *f = *state;
    const Agent__V1__Tell *tell;
    char *marking;

    happened(f, DEVICEMGR_EVENT_ENDING, "web", "eviction");
    tell = told(f);
    assert_string_equal(tell->namespace_, "ns");
    assert_string_equal(tell->name, "web");
    assert_string_equal(tell->uid, "u1");
    assert_string_equal(tell->reason, "CRIDeviceShimEviction");
    assert_string_equal(tell->message, "Marking for deletion: device g0 is tainted");
    assert_false(tell->warning);
    marking = strdup(tell->series);
    happened(f, DEVICEMGR_EVENT_SPARED, "web", "eviction");
    tell = told(f);
    assert_string_equal(tell->message, "Cancelling deletion: device g0 is tainted");
    assert_string_not_equal(tell->series, marking); /* it is another Event */
    free(marking);
}

static void of_other_ends_nothing_is_told(void **state)
{
    struct fixture *f = *state;

    happened(f, DEVICEMGR_EVENT_ENDING, "web", "operator");
    happened(f, DEVICEMGR_EVENT_ENDED, "web", "stopped");
    happened(f, DEVICEMGR_EVENT_ENDED, "web", NULL);
    happened(f, DEVICEMGR_EVENT_ENDING, "", "eviction"); /* what is not known has no Event */
    assert_int_equal(f->stage.orders.len, 0);
}

/* Without an agent, that is: what is to be done there must find room. */
static void there_is_a_most_of_them(void **state)
{
    static const Agent__V1__AnswerRequest none = AGENT__V1__ANSWER_REQUEST__INIT;
    struct fixture *f = *state;
    Agent__V1__AnswerRequest answer = none;
    Agent__V1__Order *first;

    for (size_t i = 0; i < CLUSTER_EVICTION_EVENTS_MAX + 5; i++)
        happened(f, DEVICEMGR_EVENT_ENDING, "web", "eviction");
    assert_int_equal(f->stage.orders.len, CLUSTER_EVICTION_EVENTS_MAX);
    assert_int_equal(cluster_orders_fill(&f->stage.orders, &first, 1), 1);
    answer.id = first->id;
    answer.outcome = AGENT__V1__OUTCOME__REFUSED;
    assert_true(cluster_orders_answered(&f->stage.orders, &answer));
    happened(f, DEVICEMGR_EVENT_ENDING, "web", "eviction");
    assert_int_equal(f->stage.orders.len, CLUSTER_EVICTION_EVENTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_are_told_as_upstream_does, setup, teardown),
        cmocka_unit_test_setup_teardown(of_other_ends_nothing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(there_is_a_most_of_them, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
