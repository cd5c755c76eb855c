/* The queue of actions. That each kind reaches its port with all it carries is seen in every other
 * test; here is its order and its end. */
#include "devicemgr/books/action.h"
#include "devicemgr_world.h"

static void actions_come_out_in_order(void **state)
{
    struct action_queue queue = {0};
    struct action *action;

    (void)state;
    assert_null(action_take(&queue));
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 1; i <= 3; i++)
            action_push(&queue, ACTION_CALL_CANCEL, i);
        for (uint64_t i = 1; i <= 3; i++) {
            action = action_take(&queue);
            assert_int_equal(action->subject, i);
            action_free(action);
        }
        assert_null(action_take(&queue));
    }
}

static void one_called_off_reaches_no_port(void **state)
{
    struct devicemgr_ports none = {0}; /* any call would crash */
    struct action_queue queue = {0};
    struct action *action;

    (void)state;
    action_push(&queue, ACTION_VERDICT, 1)->call = 0;
    action_push(&queue, ACTION_PREFER, 1)->call = 7;
    assert_false(actions_drop(&queue, ACTION_VERDICT, 2, 0));
    assert_false(actions_drop(&queue, ACTION_PREFER, 1, 8));
    assert_true(actions_drop(&queue, ACTION_VERDICT, 1, 0));
    assert_true(actions_drop(&queue, ACTION_PREFER, 1, 7));
    assert_false(actions_drop(&queue, ACTION_PREFER, 1, 7)); /* it is called off */
    while ((action = action_take(&queue))) {
        action_carry_out(action, &none, NULL);
        action_free(action);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_come_out_in_order),
        cmocka_unit_test(one_called_off_reaches_no_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
