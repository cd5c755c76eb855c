/* shim/cluster/orders.c: what is to be done until it is. */
#include "tests/unit/orders_stage.h"

#include "shim/agent/limits.h"
#include "shim/cluster/limits.h"

_Static_assert(CLUSTER_ORDERS_MAX <= ORDERS_MAX, "an agent has no room for some");

struct fixture {
    struct orders_stage stage;
    unsigned done;
    int outcome; /* of the last one that was done */
};

static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct fixture *f = user;

    f->done++;
    f->outcome = (int)answer->outcome;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    orders_stage_init(&f->stage);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;

    result = orders_stage_fini(&f->stage);
    free(f);
    return result;
}

static uint64_t add(struct fixture *f, bool for_ever)
{
    Agent__V1__WipeSlices wipe = AGENT__V1__WIPE_SLICES__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;

    wipe.driver = (char *)"x.example";
    order.what_case = AGENT__V1__ORDER__WHAT_WIPE_SLICES;
    order.wipe_slices = &wipe;
    return cluster_orders_add(&f->stage.orders, &order, for_ever, on_done, f);
}

/* How many are sent now. */
static size_t fill(struct fixture *f)
{
    Agent__V1__Order *out[4];

    return cluster_orders_fill(&f->stage.orders, out, 4);
}

static bool answer(struct fixture *f, uint64_t id, Agent__V1__Outcome outcome)
{
    Agent__V1__AnswerRequest request = AGENT__V1__ANSWER_REQUEST__INIT;

    request.id = id;
    request.outcome = outcome;
    request.message = (char *)"why";
    return cluster_orders_answered(&f->stage.orders, &request);
}

static void it_is_sent_and_done(void **state)
{
    struct fixture *f = *state;
    Agent__V1__Order *out[4];
    uint64_t id = add(f, true);

    assert_true(id > 0);
    assert_int_equal(f->stage.due, 0); /* not from inside */
    WAIT(f->stage.world, f->stage.due == 1);
    assert_int_equal(cluster_orders_fill(&f->stage.orders, out, 4), 1);
    assert_true(out[0]->id == id);
    assert_string_equal(out[0]->wipe_slices->driver, "x.example");
    assert_int_equal(fill(f), 0); /* once */
    assert_true(answer(f, id, AGENT__V1__OUTCOME__DONE));
    assert_int_equal(f->done, 1);
    assert_false(answer(f, id, AGENT__V1__OUTCOME__DONE));
    assert_int_equal(f->done, 1);
}

static void what_did_not_work_is_tried_again(void **state)
{
    struct fixture *f = *state;
    uint64_t id = add(f, true);

    assert_int_equal(fill(f), 1);
    assert_true(answer(f, id, AGENT__V1__OUTCOME__AGAIN));
    assert_int_equal(fill(f), 0); /* later */
    WAIT(f->stage.world, fill(f) == 1);
    assert_int_equal(f->done, 0);
}

static uint64_t change(struct fixture *f, uint64_t id, const char *driver)
{
    Agent__V1__WipeSlices wipe = AGENT__V1__WIPE_SLICES__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;

    wipe.driver = (char *)(uintptr_t)driver;
    order.what_case = AGENT__V1__ORDER__WHAT_WIPE_SLICES;
    order.wipe_slices = &wipe;
    return cluster_orders_change(&f->stage.orders, id, &order);
}

/* By another id: an agent that has done it as it was does it once more. It waits as long as it
 * would have. */
static void what_no_agent_has_may_be_another(void **state)
{
    struct fixture *f = *state;
    Agent__V1__Order *out[4];
    uint64_t id = add(f, true), other = change(f, id, "y.example");

    assert_true(other > id);
    assert_int_equal(cluster_orders_fill(&f->stage.orders, out, 4), 1);
    assert_true(out[0]->id == other);
    assert_string_equal(out[0]->wipe_slices->driver, "y.example");
    assert_true(change(f, other, "z.example") == 0); /* an agent has it */
    assert_true(answer(f, other, AGENT__V1__OUTCOME__AGAIN));
    id = change(f, other, "z.example");
    assert_true(id > other);
    assert_int_equal(fill(f), 0);
    WAIT(f->stage.world, fill(f) == 1);
    assert_true(answer(f, id, AGENT__V1__OUTCOME__DONE));
    assert_int_equal(f->done, 1);
    assert_true(change(f, id, "x.example") == 0); /* it is no more */
}

/* What the agent is told at once has room in one message. */
static void large_ones_go_one_after_the_other(void **state)
{
    ProtobufCBinaryData slice = {.len = CLUSTER_POOL_BYTES_MAX, .data = calloc(1, slice.len)};
    Agent__V1__PublishPool publish = AGENT__V1__PUBLISH_POOL__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;
    struct fixture *f = *state;

    publish.slices = &slice;
    publish.n_slices = 1;
    order.what_case = AGENT__V1__ORDER__WHAT_PUBLISH_POOL;
    order.publish_pool = &publish;
    for (int i = 0; i < 3; i++)
        cluster_orders_add(&f->stage.orders, &order, true, on_done, f);
    free(slice.data);
    assert_int_equal(fill(f), 1);
    assert_int_equal(fill(f), 1);
    assert_int_equal(fill(f), 1);
    assert_int_equal(fill(f), 0);
}

static void what_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t one = add(f, true), other = add(f, false);

    assert_int_equal(fill(f), 2);
    assert_true(answer(f, one, AGENT__V1__OUTCOME__REFUSED)); /* logs a warning */
    assert_int_equal(f->done, 0);
    assert_true(answer(f, other, AGENT__V1__OUTCOME__REFUSED));
    assert_int_equal(f->done, 1);
    assert_int_equal(f->outcome, AGENT__V1__OUTCOME__REFUSED);
    assert_int_equal(f->stage.orders.len, 1);
}

static void another_agent_is_told_again(void **state)
{
    struct fixture *f = *state;
    uint64_t id = add(f, true);

    assert_int_equal(fill(f), 1);
    cluster_orders_lost(&f->stage.orders);
    assert_false(answer(f, id, AGENT__V1__OUTCOME__DONE)); /* the one before */
    assert_int_equal(fill(f), 1);
    assert_true(answer(f, id, AGENT__V1__OUTCOME__DONE));
    id = add(f, true);
    assert_int_equal(fill(f), 1);
    assert_true(answer(f, id, AGENT__V1__OUTCOME__REFUSED)); /* logs a warning */
    assert_int_equal(fill(f), 0);
    cluster_orders_lost(&f->stage.orders); /* the next may be allowed to */
    assert_int_equal(fill(f), 1);
}

static void that_one_has_gone_is_told_without_any(void **state)
{
    struct fixture *f = *state;

    cluster_orders_lost(&f->stage.orders);
    assert_int_equal(f->stage.due, 0); /* it may be inside of whoever waits for that */
    WAIT(f->stage.world, f->stage.due == 1);
}

static void what_is_cancelled(void **state)
{
    struct fixture *f = *state;
    uint64_t waiting = add(f, true), sent;

    assert_false(cluster_orders_cancel(&f->stage.orders, waiting)); /* nobody has it */
    sent = add(f, true);
    assert_int_equal(fill(f), 1);
    assert_true(cluster_orders_cancel(&f->stage.orders, sent));
    assert_false(cluster_orders_cancel(&f->stage.orders, sent));
    assert_false(answer(f, sent, AGENT__V1__OUTCOME__DONE));
    assert_int_equal(f->done, 0);
}

static void there_is_a_most_of_them(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < CLUSTER_ORDERS_MAX; i++)
        assert_true(add(f, true) > 0);
    assert_true(add(f, true) == 0);
    assert_int_equal(fill(f), 4); /* as many as fit one message */
}

/* ---- a clock that jumps to the orders' timer ---- */

static const uv_timer_t *jumping;
static uint64_t jumped_ms;

uint64_t __real_boot_now_ms(void);
uint64_t __wrap_boot_now_ms(void);
int __real_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat);

uint64_t __wrap_boot_now_ms(void)
{
    return __real_boot_now_ms() + jumped_ms;
}

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat)
{
    if (timer != jumping)
        return __real_uv_timer_start(timer, cb, timeout, repeat);
    jumped_ms += timeout;
    return __real_uv_timer_start(timer, cb, 0, repeat);
}

#define HOURS_MS (3 * 3600 * 1000)
#define LONGEST_WAIT_MS (CLUSTER_AGAIN_MS_MAX * 6 / 5 + 1000)

/* Where the kubelet gives up after five minutes. */
static void what_fails_for_hours_is_tried_on(void **state)
{
    struct fixture *f = *state;
    uint64_t begin_ms = __wrap_boot_now_ms(), before_ms, id = add(f, true);
    unsigned tries = 0;

    jumping = &f->stage.orders.timer;
    while ((before_ms = __wrap_boot_now_ms()) < begin_ms + HOURS_MS) {
        WAIT(f->stage.world, fill(f) == 1);
        assert_true(__wrap_boot_now_ms() <= before_ms + LONGEST_WAIT_MS);
        assert_true(
            answer(f, id, ++tries % 10 ? AGENT__V1__OUTCOME__AGAIN : AGENT__V1__OUTCOME__REFUSED));
    }
    WAIT(f->stage.world, fill(f) == 1);
    jumping = NULL;
    jumped_ms = 0;
    assert_int_equal(f->done, 0);
    assert_in_range(tries, HOURS_MS / LONGEST_WAIT_MS, 3 * 12 + 20);
    assert_true(answer(f, id, AGENT__V1__OUTCOME__DONE));
    assert_int_equal(f->done, 1);
}

/* What would be tried in some minutes; but for what was refused. */
static void what_an_api_server_that_was_away_did_not_do_is_tried_soon(void **state)
{
    struct fixture *f = *state;
    uint64_t before_ms, id = add(f, true), refused;

    jumping = &f->stage.orders.timer;
    for (int tries = 0; tries < 8; tries++) {
        WAIT(f->stage.world, fill(f) == 1);
        assert_true(answer(f, id, AGENT__V1__OUTCOME__AGAIN));
    }
    WAIT(f->stage.world, fill(f) == 1);
    jumping = NULL;
    before_ms = __wrap_boot_now_ms();
    assert_true(answer(f, id, AGENT__V1__OUTCOME__AGAIN));
    refused = add(f, true);
    assert_int_equal(fill(f), 1);
    assert_true(answer(f, refused, AGENT__V1__OUTCOME__REFUSED)); /* logs a warning */
    cluster_orders_reached(&f->stage.orders);
    cluster_orders_reached(&f->stage.orders); /* it has come and gone meanwhile */
    WAIT(f->stage.world, fill(f) == 1);
    assert_true(__wrap_boot_now_ms() >= before_ms + CLUSTER_BACK_MS);
    assert_true(answer(f, id, AGENT__V1__OUTCOME__AGAIN)); /* it was not that */
    cluster_orders_reached(&f->stage.orders);
    assert_true(uv_timer_get_due_in(&f->stage.orders.timer) > 2 * CLUSTER_BACK_MS);
    jumped_ms = 0;
}

/* An operator has set right what was refused: he is not to wait for minutes. What changes again and
 * again is not tried the more. */
static void what_was_refused_and_is_another_is_tried_soon(void **state)
{
    struct fixture *f = *state;
    uint64_t before_ms, id = add(f, true);

    assert_int_equal(fill(f), 1);
    assert_true(answer(f, id, AGENT__V1__OUTCOME__REFUSED)); /* logs a warning */
    before_ms = __wrap_boot_now_ms();
    jumping = &f->stage.orders.timer;
    id = change(f, id, "y.example");
    jumping = NULL;
    WAIT(f->stage.world, fill(f) == 1);
    assert_in_range(__wrap_boot_now_ms() - before_ms, CLUSTER_BACK_MS, LONGEST_WAIT_MS / 2);
    for (int tries = 0; tries < 2; tries++) {
        assert_true(answer(f, id, AGENT__V1__OUTCOME__REFUSED));
        before_ms = __wrap_boot_now_ms();
        jumping = &f->stage.orders.timer;
        id = change(f, id, "z.example");
        jumping = NULL;
        WAIT(f->stage.world, fill(f) == 1);
        assert_true((__wrap_boot_now_ms() - before_ms > LONGEST_WAIT_MS / 2) == (tries == 0));
    }
    jumped_ms = 0;
}

static void it_waits_longer_each_time(void **state)
{
    (void)state;
    assert_int_equal(cluster_orders_wait_ms(1), 1000);
    assert_int_equal(cluster_orders_wait_ms(2), 2000);
    assert_int_equal(cluster_orders_wait_ms(9), 256000);
    assert_int_equal(cluster_orders_wait_ms(10), 300000);
    assert_int_equal(cluster_orders_wait_ms(1000000), 300000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_sent_and_done, setup, teardown),
        cmocka_unit_test_setup_teardown(what_did_not_work_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_agent_has_may_be_another, setup, teardown),
        cmocka_unit_test_setup_teardown(large_ones_go_one_after_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(another_agent_is_told_again, setup, teardown),
        cmocka_unit_test_setup_teardown(that_one_has_gone_is_told_without_any, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(there_is_a_most_of_them, setup, teardown),
        cmocka_unit_test_setup_teardown(what_fails_for_hours_is_tried_on, setup, teardown),
        cmocka_unit_test_setup_teardown(what_an_api_server_that_was_away_did_not_do_is_tried_soon,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_refused_and_is_another_is_tried_soon, setup,
                                        teardown),
        cmocka_unit_test(it_waits_longer_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
