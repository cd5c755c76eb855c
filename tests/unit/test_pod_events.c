/* shim/cluster/pod_events.c: which refusals are told on their pods, and when. */
#include "tests/unit/orders_stage.h"

#include "shim/cluster/limits.h"
#include "shim/cluster/pod_events.h"

#define MINUTE 60000u
#define BEGIN 1000000u

struct fixture {
    struct orders_stage stage;
    struct config config;
    struct pod_events events;
    unsigned cancelled;
};

static void on_cancel(void *user, uint64_t order)
{
    struct fixture *f = user;

    f->cancelled++;
    cluster_orders_cancel(&f->stage.orders, order);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    orders_stage_init(&f->stage);
    f->config.cluster.events_after_ms = MINUTE;
    pod_events_init(&f->events, &f->config, &f->stage.orders, on_cancel, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;

    pod_events_fini(&f->events);
    result = orders_stage_fini(&f->stage);
    free(f);
    return result;
}

static void happened(struct fixture *f, uint64_t ms, enum devicemgr_event_kind kind,
                     const char *container, const char *word)
{
    const struct devicemgr_event event = {.kind = kind,
                                          .pod_uid = "u1",
                                          .pod_namespace = "ns",
                                          .pod_name = "web",
                                          .container = container,
                                          .word = word,
                                          .text = "because"};

    pod_events_happened(&f->events, BEGIN + ms, &event);
}

static void refuse(struct fixture *f, uint64_t ms, const char *word)
{
    happened(f, ms, DEVICEMGR_EVENT_REFUSED, "main", word);
}

/* The one that is to be told now, which is done with that; NULL: there is none. */
static const char *told(struct fixture *f)
{
    static char text[256];
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;
    Agent__V1__Order *out[2];
    size_t n = cluster_orders_fill(&f->stage.orders, out, 2);

    if (n == 0)
        return NULL;
    assert_int_equal(n, 1);
    assert_string_equal(out[0]->tell->namespace_, "ns");
    assert_string_equal(out[0]->tell->name, "web");
    assert_string_equal(out[0]->tell->uid, "u1");
    assert_true(out[0]->tell->warning);
    snprintf(text, sizeof text, "%s|%s|%s", out[0]->tell->reason, out[0]->tell->series,
             out[0]->tell->message);
    answer.id = out[0]->id;
    answer.outcome = AGENT__V1__OUTCOME__DONE;
    assert_true(cluster_orders_answered(&f->stage.orders, &answer));
    return text;
}

static void what_lasts_is_told(void **state)
{
    struct fixture *f = *state;

    refuse(f, 0, "plugin-away");
    refuse(f, MINUTE - 1, "plugin-away");
    assert_null(told(f));
    refuse(f, 65000, "plugin-away");
    assert_string_equal(told(f),
                        "PluginAway|main|container \"main\" has been refused for 1m05s: because");
    refuse(f, 2 * MINUTE, "plugin-away");
    assert_null(told(f)); /* not again so soon */
    refuse(f, 65000 + 2 * MINUTE, "holder-runs");
    assert_non_null(told(f)); /* but for another reason */
    for (uint64_t ms = 4 * MINUTE; ms < 11 * MINUTE; ms += MINUTE) {
        refuse(f, ms, "holder-runs");
        assert_null(told(f));
    }
    refuse(f, 65000 + 2 * MINUTE + CLUSTER_TELL_AGAIN_MS, "holder-runs"); /* and after a while */
    assert_string_equal(told(f),
                        "HolderRuns|main|container \"main\" has been refused for 11m05s: because");
}

static void what_ends_is_not(void **state)
{
    struct fixture *f = *state;

    refuse(f, 0, "plugin-away");
    refuse(f, MINUTE, "plugin-away");
    happened(f, MINUTE, DEVICEMGR_EVENT_ALLOCATED, "main", NULL);
    assert_int_equal(f->cancelled, 1);
    assert_null(told(f));
    refuse(f, 2 * MINUTE, "plugin-away"); /* another time */
    assert_null(told(f));
    happened(f, 2 * MINUTE, DEVICEMGR_EVENT_ALLOCATED, "other", NULL);
    refuse(f, 2 * MINUTE + CLUSTER_REFUSED_GAP_MS + 1, "plugin-away"); /* and one more */
    assert_null(told(f));
    refuse(f, 3 * MINUTE + CLUSTER_REFUSED_GAP_MS + 1, "plugin-away");
    assert_non_null(told(f));
}

static void one_that_is_under_way_is_enough(void **state)
{
    struct fixture *f = *state;

    refuse(f, 0, "plugin-away");
    for (uint64_t ms = MINUTE; ms < 30 * MINUTE; ms += MINUTE)
        refuse(f, ms, ms % (2 * MINUTE) ? "plugin-away" : "holder-runs");
    assert_int_equal(f->stage.orders.len, 1); /* nobody takes it */
}

static void zero_is_none(void **state)
{
    struct fixture *f = *state;

    f->config.cluster.events_after_ms = 0;
    refuse(f, 0, "plugin-away");
    refuse(f, 4 * MINUTE, "plugin-away");
    assert_null(told(f));
}

static void there_is_a_most_of_them(void **state)
{
    struct fixture *f = *state;
    char name[16];

    refuse(f, 0, "plugin-away");
    refuse(f, MINUTE, "plugin-away");
    for (unsigned i = 0; i < CLUSTER_REFUSED_MAX; i++) {
        snprintf(name, sizeof name, "c%u", i);
        assert_int_equal(f->cancelled, 0);
        happened(f, 2 * MINUTE, DEVICEMGR_EVENT_REFUSED, name, "plugin-away");
    }
    assert_int_equal(f->cancelled, 1); /* the one that was longest ago */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_lasts_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_ends_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_under_way_is_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(zero_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(there_is_a_most_of_them, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
