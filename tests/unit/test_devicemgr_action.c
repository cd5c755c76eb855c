/* The queue of actions. That each kind reaches its port with all it carries is seen in every other
 * test; here is its order and its end. */
#include "devicemgr/books/action.h"
#include "devicemgr_world.h"

struct heard {
    struct action_queue queue;
    uint64_t last; /* call that was cancelled */
};

/* In answer to the first one another is asked for. */
static void on_cancel(void *user, uint64_t call)
{
    struct heard *heard = user;

    assert_int_equal(call, heard->last + 1);
    heard->last = call;
    if (call == 1)
        action_push(&heard->queue, ACTION_CALL_CANCEL, 0)->call = 4;
}

static void actions_come_out_in_order(void **state)
{
    const struct devicemgr_ports ports = {.call_cancel = on_cancel};
    struct heard heard = {0};

    (void)state;
    for (int round = 0; round < 2; round++) {
        heard.last = 0;
        for (uint64_t i = 1; i <= 3; i++)
            action_push(&heard.queue, ACTION_CALL_CANCEL, 0)->call = i;
        actions_carry_out(&heard.queue, &ports, &heard);
        assert_int_equal(heard.last, 4);
        assert_null(heard.queue.first);
    }
}

static void one_called_off_reaches_no_port(void **state)
{
    struct devicemgr_ports none = {0}; /* any call would crash */
    struct action_queue queue = {0};

    (void)state;
    action_push(&queue, ACTION_VERDICT, 1)->call = 0;
    action_push(&queue, ACTION_PREFER, 1)->call = 7;
    assert_false(actions_drop(&queue, ACTION_VERDICT, 2, 0));
    assert_false(actions_drop(&queue, ACTION_PREFER, 1, 8));
    assert_true(actions_drop(&queue, ACTION_VERDICT, 1, 0));
    assert_true(actions_drop(&queue, ACTION_PREFER, 1, 7));
    assert_false(actions_drop(&queue, ACTION_PREFER, 1, 7)); /* it is called off */
    actions_carry_out(&queue, &none, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_come_out_in_order),
        cmocka_unit_test(one_called_off_reaches_no_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
