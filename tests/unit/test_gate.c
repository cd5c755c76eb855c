/* shim/kubelet/gate.c: what is held, and until when. */
#include "tests/unit/gate_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shim/boot_clock.h"

/* In the place of the clock, which this is, and what the test has skipped. */
static uint64_t skipped_ms;

uint64_t boot_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + skipped_ms;
}

static void only_kubelets_are_watched(void **state)
{
    struct fixture *f = *state;
    pid_t crictl = named_process("crictl");

    assert_true(gate_watches(f->gate, f->kubelet));
    assert_false(gate_watches(f->gate, crictl));
    assert_false(gate_watches(f->gate, 0));
    gate_announced(f->gate, crictl);
    gate_announced(f->gate, 0);
    assert_false(gate_armed(f->gate, crictl));
    assert_false(gate_armed(f->gate, 0));
    assert_false(gate_hold(f->gate, crictl, NEVER, 1));
    assert_false(gate_hold(f->gate, 0, NEVER, 1));
    assert_false(has_file(f));
    named_process_kill(crictl);
}

static void a_kubelet_that_has_not_just_started_passes(void **state)
{
    struct fixture *f = *state;

    assert_false(gate_armed(f->gate, f->kubelet));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 1));
    gate_answered(f->gate, f->kubelet);
    assert_int_equal(f->asked, 0);
}

static void holds_until_all_is_taken(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_armed(f->gate, f->kubelet));
    assert_true(has_file(f));
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 7));
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 8));
    gate_changed(f->gate);
    assert_held(f);
    assert_int_equal(f->asked, 3);
    f->taken.all = true;
    gate_changed(f->gate);
    assert_int_equal(f->released_len, 0); /* from the loop only */
    WAIT(f->world, f->released_len == 2);
    assert_int_equal(f->released[0], 7);
    assert_int_equal(f->released[1], 8);
    assert_false(has_file(f));
    /* And that is all for this process. */
    f->taken.all = false;
    gate_announced(f->gate, f->kubelet);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 9));
    gate_answered(f->gate, f->kubelet);
}

static void the_kubelet_that_came_last_is_told_of(void **state)
{
    struct fixture *f = *state;
    struct gate_kubelet kubelet;

    gate_look(f->gate, &kubelet);
    assert_int_equal(kubelet.pid, 0);
    gate_announced(f->gate, f->kubelet);
    gate_look(f->gate, &kubelet);
    assert_int_equal(kubelet.pid, f->kubelet);
    assert_true(kubelet.armed && !kubelet.holds);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 7));
    skipped_ms += 50;
    gate_look(f->gate, &kubelet);
    assert_true(kubelet.holds && !kubelet.armed);
    assert_in_range(kubelet.held_ms, 50, 60000);
    f->taken.all = true;
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == 1);
    gate_look(f->gate, &kubelet);
    assert_int_equal(kubelet.pid, f->kubelet);
    assert_false(kubelet.holds || kubelet.armed);
}

static void what_is_taken_already_is_not_held(void **state)
{
    struct fixture *f = *state;

    f->taken.all = true;
    gate_announced(f->gate, f->kubelet);
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_held(f);
}

/* Seen when a second call comes: the first goes on, too. */
static void one_that_finds_it_taken_frees_the_others(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    f->taken.all = true;
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 2));
    assert_int_equal(f->released_len, 0);
    WAIT(f->world, f->released_len == 1);
    assert_int_equal(f->released[0], 1);
}

/* kubelet.sock, as a kubelet that starts makes it: without what was there before. */
static void make_socket(struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/kubelet.sock", f->world->dir);
    unlink(address.sun_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd); /* its name stays, as after a crash */
}

static void remove_socket(struct fixture *f)
{
    char path[64];

    snprintf(path, sizeof path, "%s/kubelet.sock", f->world->dir);
    assert_int_equal(unlink(path), 0);
}

/* Held for some times the limit and the looks at the socket, whatever comes and goes. */
static void assert_held_on(struct fixture *f)
{
    uint64_t end_ms = boot_now_ms() + 3 * GATE_LOOK_MS;

    while (boot_now_ms() < end_ms) {
        gate_changed(f->gate);
        uv_run(&f->world->loop, UV_RUN_NOWAIT);
        assert_int_equal(f->released_len, 0);
    }
}

static void the_time_limit_counts_from_the_socket(void **state)
{
    struct fixture *f = *state;
    uint64_t made_ms;

    f->config.bridge.gate_timeout_ms = 30;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    made_ms = boot_now_ms();
    make_socket(f);
    WAIT(f->world, f->released_len == 1);
    assert_true(boot_now_ms() - made_ms >= 30);
    assert_false(has_file(f));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 2));
    remove_socket(f);
}

/* An earlier kubelet's is no sign, also not to a daemon that was started in between. */
static void a_socket_from_before_does_not_count(void **state)
{
    struct fixture *f = *state;

    f->config.bridge.gate_timeout_ms = 30;
    make_socket(f);
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    again(f);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    make_socket(f);
    WAIT(f->world, f->released_len == 1);
    remove_socket(f);
}

/* The bridge has seen it where the daemon does not, in another mount namespace perhaps. */
static void a_bridge_that_has_reached_it_has_seen_the_socket(void **state)
{
    struct fixture *f = *state;

    f->config.bridge.gate_timeout_ms = 30;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    f->taken.reached = true;
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == 1);
}

static void without_a_bridge_the_time_limit_counts_at_once(void **state)
{
    struct fixture *f = *state;
    uint64_t gone_ms;

    f->config.bridge.gate_timeout_ms = 30;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_held_on(f);
    gone_ms = boot_now_ms();
    f->taken.bridge = false;
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == 1);
    assert_true(boot_now_ms() - gone_ms >= 30);
}

/* A bridge that comes back in time ends that. */
static void a_bridge_that_restarts_is_waited_for(void **state)
{
    struct fixture *f = *state;

    f->config.bridge.gate_timeout_ms = 3 * GATE_LOOK_MS;
    f->taken.bridge = false;
    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    f->taken.bridge = true;
    gate_changed(f->gate);
    assert_held_on(f);
    assert_held_on(f);
}

/* It counts from the first call, also if that is given up. */
static void the_time_limit_goes_on_between_calls(void **state)
{
    struct fixture *f = *state;
    uint64_t number = 0;

    f->config.bridge.gate_timeout_ms = 30;
    f->taken.reached = true;
    gate_announced(f->gate, f->kubelet);
    while (gate_hold(f->gate, f->kubelet, NEVER, ++number))
        gate_cancelled(f->gate, number);
    assert_true(number > 1);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_held(f);
}

static void a_clients_deadline_comes_first(void **state)
{
    struct fixture *f = *state;
    uint64_t now_ms = boot_now_ms();

    gate_announced(f->gate, f->kubelet);
    /* Too near to be worth it: passes, and nothing else changes. */
    assert_false(gate_hold(f->gate, f->kubelet, 0, 1));
    assert_false(gate_hold(f->gate, f->kubelet, now_ms + GATE_MARGIN_MS - 1, 1));
    assert_true(gate_armed(f->gate, f->kubelet));
    /* One that was given up counts no more. */
    assert_true(gate_hold(f->gate, f->kubelet, now_ms + GATE_MARGIN_MS + 10000, 2));
    gate_cancelled(f->gate, 2);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 3));
    assert_held(f);
    while (!gate_hold(f->gate, f->kubelet, boot_now_ms() + GATE_MARGIN_MS + 30, 4)) {
        /* 30 ms passed within the call */
    }
    WAIT(f->world, f->released_len == 2); /* all together */
    assert_false(gate_armed(f->gate, f->kubelet));
}

/* One that has no deadline is not held for ever. */
static void without_a_deadline_there_is_a_limit(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    skipped_ms += GATE_HOLD_MS_MAX / 2;
    gate_changed(f->gate);
    assert_held(f);
    skipped_ms += GATE_HOLD_MS_MAX / 2;
    WAIT(f->world, f->released_len == 1);
    assert_string_equal(f->told, "expired");
}

/* While it is held, whatever happens, and once more when it is let go. */
static void that_a_kubelet_waits_is_told(void **state)
{
    struct fixture *f = *state;
    unsigned waits;

    f->taken.reached = true;
    gate_announced(f->gate, f->kubelet);
    assert_int_equal(f->waits, 0);
    assert_string_equal(f->told, "armed");
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    assert_int_equal(f->waits, 1);
    WAIT(f->world, f->waits == 4);
    assert_held(f);
    f->taken.all = true;
    waits = f->waits;
    gate_changed(f->gate);
    WAIT(f->world, f->released_len == 1);
    assert_string_equal(f->told, "opened");
    assert_int_equal(f->waits, waits + 1);
    world_settle(f->world);
    gate_changed(f->gate);
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, 2));
    world_settle(f->world);
    assert_int_equal(f->waits, waits + 1);
}

static void an_answered_relist_disarms(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 1));
    gate_answered(f->gate, f->kubelet);
    assert_false(gate_armed(f->gate, f->kubelet));
    assert_false(has_file(f));
    WAIT(f->world, f->released_len == 1);
}

static void there_is_a_most_of_held_calls(void **state)
{
    struct fixture *f = *state;

    gate_announced(f->gate, f->kubelet);
    for (uint64_t hold = 1; hold <= GATE_HOLDS_MAX; hold++)
        assert_true(gate_hold(f->gate, f->kubelet, NEVER, hold));
    assert_false(gate_hold(f->gate, f->kubelet, NEVER, GATE_HOLDS_MAX + 1));
    gate_cancelled(f->gate, 5);
    assert_true(gate_hold(f->gate, f->kubelet, NEVER, 5));
}

/* Who is a kubelet is known all the same. */
static void there_may_be_no_gate(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        stop(f);
        f->config.bridge.gate = i == 0;
        f->config.bridge.enabled = i == 1;
        start(f);
        assert_true(gate_watches(f->gate, f->kubelet));
        assert_true(gate_announced(f->gate, f->kubelet));
        assert_false(gate_announced(f->gate, f->kubelet));
        assert_false(gate_armed(f->gate, f->kubelet));
        assert_false(gate_hold(f->gate, f->kubelet, NEVER, 1));
        gate_answered(f->gate, f->kubelet);
        assert_false(has_file(f));
    }
    assert_int_equal(f->asked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_kubelets_are_watched),
        TEST(a_kubelet_that_has_not_just_started_passes),
        TEST(holds_until_all_is_taken),
        TEST(the_kubelet_that_came_last_is_told_of),
        TEST(what_is_taken_already_is_not_held),
        TEST(one_that_finds_it_taken_frees_the_others),
        TEST(the_time_limit_counts_from_the_socket),
        TEST(a_socket_from_before_does_not_count),
        TEST(a_bridge_that_has_reached_it_has_seen_the_socket),
        TEST(without_a_bridge_the_time_limit_counts_at_once),
        TEST(a_bridge_that_restarts_is_waited_for),
        TEST(the_time_limit_goes_on_between_calls),
        TEST(a_clients_deadline_comes_first),
        TEST(without_a_deadline_there_is_a_limit),
        TEST(that_a_kubelet_waits_is_told),
        TEST(an_answered_relist_disarms),
        TEST(there_is_a_most_of_held_calls),
        TEST(there_may_be_no_gate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
