/* shim/kubelet/kubelets.c: the kubelets that a real gate knows, and their calls. */
#include "shim/kubelet/kubelets.h"
#include "tests/unit/gate_fixture.h"

static void kubelets_are_apart(void **state)
{
    struct fixture *f = *state;
    pid_t other = named_process("kubelet");

    gate_announced(f->gate, f->kubelet);
    gate_announced(f->gate, other);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_true(gate_hold(f->gate, other, NEVER, 2));
    gate_answered(f->gate, other);
    WAIT(f->world, f->released_len == 1);
    assert_int_equal(f->released[0], 2);
    assert_true(gate_armed(f->gate, f->kubelet));
    named_process_kill(other);
    assert_false(gate_armed(f->gate, other));
}

static void a_dead_kubelet_is_forgotten(void **state)
{
    struct fixture *f = *state;
    pid_t dead = named_process("kubelet");

    gate_announced(f->gate, dead);
    assert_true(has_file(f));
    named_process_kill(dead);
    assert_false(gate_armed(f->gate, dead));
    assert_false(gate_hold(f->gate, dead, NEVER, 1));
    again(f);
    assert_false(has_file(f));
}

/* More of them than are kept. */
static void kubelets_that_crash_at_once_take_no_room(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    for (int i = 0; i < 3 * KUBELETS_MAX; i++) {
        pid_t pid = named_process("kubelet");

        gate_announced(f->gate, pid);
        assert_true(gate_armed(f->gate, pid));
        named_process_kill(pid);
    }
    assert_true(gate_armed(f->gate, f->kubelet));
}

static void the_oldest_goes_when_too_many_live(void **state)
{
    struct fixture *f = *state;
    pid_t pids[KUBELETS_MAX];

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    for (size_t i = 0; i < KUBELETS_MAX; i++) {
        pids[i] = named_process("kubelet");
        gate_announced(f->gate, pids[i]);
        assert_true(gate_armed(f->gate, pids[i]));
    }
    assert_true(gate_armed(f->gate, f->kubelet)); /* it waits */
    assert_false(gate_armed(f->gate, pids[0]));
    assert_true(gate_armed(f->gate, pids[1]));
    for (size_t i = 0; i < KUBELETS_MAX; i++)
        named_process_kill(pids[i]);
}

/* A node cannot have that; the one too many goes on without a gate. */
static void nobody_goes_while_all_wait(void **state)
{
    struct fixture *f = *state;
    pid_t pids[KUBELETS_MAX];

    for (size_t i = 0; i < KUBELETS_MAX; i++) {
        pids[i] = named_process("kubelet");
        gate_announced(f->gate, pids[i]);
        assert_true(gate_hold(f->gate, pids[i], NEVER, i + 1));
    }
    gate_announced(f->gate, f->kubelet);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_true(gate_armed(f->gate, pids[0]));
    for (size_t i = 0; i < KUBELETS_MAX; i++)
        named_process_kill(pids[i]);
    f->taken.all = true; /* also of those that are dead, as long as their calls are there */
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == KUBELETS_MAX);
}

static void a_call_given_up_is_not_released(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    for (uint64_t hold = 1; hold <= 4; hold++)
        assert_true(gate_hold(f->gate, f->kubelet, NEVER, hold));
    gate_cancelled(f->gate, 2);
    gate_cancelled(f->gate, 99); /* never heard of */
    f->taken.all = true;
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 5));
    gate_cancelled(f->gate, 1); /* let go, but not told yet */
    f->cancels = 4;             /* and while it is told */
    WAIT(f->world, f->released_len == 1);
    world_settle(f->world);
    assert_int_equal(f->released_len, 1);
    assert_int_equal(f->released[0], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kubelets_are_apart),
        TEST(a_dead_kubelet_is_forgotten),
        TEST(kubelets_that_crash_at_once_take_no_room),
        TEST(the_oldest_goes_when_too_many_live),
        TEST(nobody_goes_while_all_wait),
        TEST(a_call_given_up_is_not_released),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
