/* When the runtime is listed, and what may be in the making until it was. */
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

#include <stdio.h>

/* The shim was killed after it had forwarded a create, and the runtime goes on with it. */
static void after_a_restart_a_container_may_be_in_the_making(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    runtime_listed(w, "u1 u2");
    assert_int_equal(logged(w, "runtime listed: 2 pods, 1 allocations kept (0 of them rebuilt"), 1);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    pass(w, OUTCOME_MS - 1);
    runtime_listed(w, "u1 u2"); /* too early */
    expect_nothing(w);
    pass(w, LIST_EVERY_MS);
    expect(w, "list");
    runtime_listed(w, "u1/main u2");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 11 refused 14:", "which still runs", NULL);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

static void what_a_later_list_does_not_show_either_is_free(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    runtime_listed(w, "u1/main! u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    pass(w, OUTCOME_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "list");
    devicemgr_runtime_listing(w->mgr);
    pass(w, HOLD_MS - OUTCOME_MS - 1);
    expect_nothing(w);
    runtime_listed(w, "u1/main! u2"); /* in the time of the default hold */
    expect(w, "allocate g0 *");
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

/* The connection outlived the shim, and the create goes on as long as it takes. */
static void an_earlier_create_is_in_the_making_until_it_is_over(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    devicemgr_earlier_creates(w->mgr, w->now_ms, true);
    runtime_listed(w, "u1 u2");
    pass(w, OUTCOME_MS + LIST_EVERY_MS);
    runtime_listed(w, "u1 u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
    devicemgr_earlier_creates(w->mgr, w->now_ms, false); /* perhaps its client gave it up */
    pass(w, LIST_EVERY_MS);
    expect(w, "list");
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, "u1 u2");
    pass(w, OUTCOME_MS - LIST_EVERY_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "list");
    runtime_listed(w, "u1/main u2");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 11 refused 14:", "which still runs", NULL);
}

/* The next container of the same pod with the same device: the kubelet has seen this one exit. */
static void what_the_kubelet_hands_on_is_not_in_the_making(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    runtime_listed(w, "u1 u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    runtime_listed(w, "u1/main! u2");
    expect_nothing(w); /* not for another pod */
    devicemgr_create_cancelled(w->mgr, w->now_ms, 11);
    runtime_listed(w, "u1 u2");
    assert_true(create(w, 12, "u1", "next", GPU ":g0", NULL));
    expect_nothing(w); /* nobody has seen it exit */
    runtime_listed(w, "u1/main! u2");
    expect(w, "allocate g0 *");
}

static void a_first_list_that_comes_late_is_enough(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    pass(w, 60000);
    runtime_listed(w, "u1 u2");
    expect_nothing(w); /* asked for once */
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

static void a_container_that_ends_is_not_the_one_in_the_making(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    runtime_listed(w, "u1/main u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "check c-u1-main");
    container_checked(w, false);
    expect_nothing(w); /* another may follow it */
    runtime_listed(w, "u1/main u2");
    expect(w, "check c-u1-main");
    devicemgr_container_removed(w->mgr, w->now_ms, "c-u1-main");
    devicemgr_run(w->mgr);
    expect_nothing(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u1 u2");
    expect(w, "allocate g0 *");
}

static void nothing_is_in_the_making_in_a_stopped_sandbox(void **state)
{
    const struct devicemgr_sandbox sandboxes[] = {
        {"s-u1", "u1", "ns", "u1", 0, false, NULL, 0},
        {"s-u2", "u2", "ns", "u2", 0, true, NULL, 0},
    };
    struct world *w = *state;

    restart_serving(w);
    runtime_listed(w, "u1 u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
    sandbox_stopped(w, "s-u1");
    expect(w, "allocate g0 *");
    create_cancelled(w, 11);
    restart_serving(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, NULL, 0); /* dead, perhaps */
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
    pass(w, OUTCOME_MS);
    ignore_all(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, NULL, 0);
    devicemgr_run(w->mgr);
    expect(w, "allocate g0 *");
}

/* All sandboxes are dead after a reboot, and the kubelet makes new ones, maybe before the first
 * list: no container of before is in the making in those. */
static void after_a_reboot_nothing_is_in_the_making(void **state)
{
    struct devicemgr_sandbox sandboxes[] = {
        {"s-dead", "u1", "ns", "u1", 0, false, NULL, 0},
        {"s-new", "u1", "ns", "u1", 1, true, NULL, 0},
        {"s-u2", "u2", "ns", "u2", 0, true, NULL, 0},
    };
    struct world *w = *state;

    w->settings.boot_id = "boot-2";
    restart_serving(w);
    sandbox_ran(w, "u1", "s-new", 1);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 3, NULL, 0);
    devicemgr_run(w->mgr);
    expect(w, "allocate g0 *");
    create_cancelled(w, 11);
    restart_serving(
        w); /* not this shim ran it: one that was killed may have forwarded a create into it */
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 3, NULL, 0);
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
}

static void lists_are_asked_for_once_a_second_at_most(void **state)
{
    struct world *w = *state;
    char devices[1024] = "";
    unsigned lists = 0;

    for (size_t i = 0, n = 0; i < 100; i++)
        n += (size_t)snprintf(devices + n, sizeof devices - n, "g%zu ", i);
    plugin_list(w, w->endpoint, devices);
    for (uint64_t i = 0; i < 100; i++) {
        char container[8], token[32];

        snprintf(container, sizeof container, "m%u", (unsigned)i);
        snprintf(token, sizeof token, GPU ":g%u", (unsigned)i);
        assert_true(create(w, 100 + i, "u1", container, token, NULL));
        allocated(w, "A=1");
        if (w->pending)
            committed(w);
        create_cancelled(w, 100 + i);
        ignore_all(w);
        pass(w, 100);
        if (!w->lines)
            continue;
        expect(w, "list");
        runtime_listed(w, "u1");
        lists++;
    }
    assert_in_range(lists, 5, 10000 / LIST_EVERY_MS);
}

/* The plugin serves on, the pods run on, and nothing is known of them but what the runtime
 * tells. */
static void begin_without_rows(struct world *w)
{
    devicemgr_restored(w->mgr, w->now_ms);
    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    runtime_listed(w, "u1 u2");
}

static void without_rows_nothing_new_is_given_out_before_a_later_list(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    devicemgr_rows_lost(w->mgr);
    begin_without_rows(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    assert_true(create(w, 12, "u2", "second", GPU ":g1", NULL));
    expect_nothing(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u1/main=" GPU ":g0 u2");
    expect(w, "check c-u1-main");
    expect(w, "allocate g1 *");
    expect(w, "commit -loss rows_lost, allocation u1 main vendor.com/gpu, pod u1");
}

/* By then there are rows again: of what was made known since, and of nothing before. */
static void that_rows_were_lost_is_remembered_over_a_restart(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    devicemgr_rows_lost(w->mgr);
    begin_without_rows(w);
    assert_true(world_stored(w, "loss rows_lost"));
    pass(w, OUTCOME_MS - 1);
    restart_serving(w);
    runtime_listed(w, "u1 u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    pass(w, OUTCOME_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "list");
    runtime_listed(w, "u1/main=" GPU ":g0 u2");
    expect(w, "check c-u1-main");
    expect(w, "commit -loss rows_lost, allocation u1 main vendor.com/gpu, pod u1");
    assert_true(world_stored(w, "loss rows_lost"));
    committed(w);
    assert_false(world_stored(w, "loss rows_lost"));
}

static void a_new_file_is_told_whether_rows_are_lost(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    devicemgr_rows_lost(w->mgr);
    begin_without_rows(w);
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect(w, "commit loss rows_lost, resource vendor.com/gpu");
    committed(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u1 u2");
    expect(w, "commit -loss rows_lost");
    commit_failed(w, "disk full");
    devicemgr_store_reset(w->mgr, w->now_ms);
    ignore_all(w);
    pass(w, COMMIT_RETRY_MS_MIN);
    expect(w, "commit -loss rows_lost, resource vendor.com/gpu");
}

static void without_rows_the_hold_may_end_before_the_list(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    devicemgr_rows_lost(w->mgr);
    begin_without_rows(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    pass(w, HOLD_MS);
    expect(w, "list");
    expect_with(w, "verdict 11 refused 14:", "has not listed its containers again since state was",
                NULL);
}

static void a_row_that_makes_no_sense_is_a_lost_row(void **state)
{
    const struct devicemgr_record garbage = {
        DEVICEMGR_RECORD_ALLOCATION, {"u1", "main", GPU}, "\xff", 1};
    struct world *w = *state;

    world_fresh(w);
    assert_int_equal(devicemgr_restore(w->mgr, w->now_ms, &garbage), -1);
    begin_without_rows(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
}

static void a_new_node_waits_for_one_list_only(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    begin_without_rows(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, u1_runs_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(after_a_restart_a_container_may_be_in_the_making),
        TEST(an_earlier_create_is_in_the_making_until_it_is_over),
        TEST(what_the_kubelet_hands_on_is_not_in_the_making),
        TEST(what_a_later_list_does_not_show_either_is_free),
        TEST(a_first_list_that_comes_late_is_enough),
        TEST(a_container_that_ends_is_not_the_one_in_the_making),
        TEST(nothing_is_in_the_making_in_a_stopped_sandbox),
        TEST(after_a_reboot_nothing_is_in_the_making),
        TEST(lists_are_asked_for_once_a_second_at_most),
        TEST(without_rows_nothing_new_is_given_out_before_a_later_list),
        TEST(that_rows_were_lost_is_remembered_over_a_restart),
        TEST(a_new_file_is_told_whether_rows_are_lost),
        TEST(without_rows_the_hold_may_end_before_the_list),
        TEST(a_row_that_makes_no_sense_is_a_lost_row),
        TEST(a_new_node_waits_for_one_list_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
