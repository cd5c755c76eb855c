/* What the runtime is seen to do: sandboxes that come and go, containers that end. */
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static void a_stopped_sandbox_frees_its_containers_devices(void **state)
{
    struct world *w = *state;

    sandbox_stopped(w, "s-u1");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL)); /* without asking the runtime */
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
}

static void a_new_sandbox_of_the_uid_revives_the_pod(void **state)
{
    struct world *w = *state;

    sandbox_stopped(w, "s-u1");
    sandbox_ran(w, "u1", "s-u1-again", 1);
    sandbox_removed(w, "s-u1"); /* the old one: not the end of the pod */
    expect_nothing(w);
    sandbox_removed(w, "unheard-of");
    sandbox_stopped(w, "unheard-of");
    sandbox_stopping(w, "unheard-of");
    expect_nothing(w);
    world_restart(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
}

static void the_end_of_an_old_sandbox_does_not_touch_the_new_ones_containers(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u2", "s-u2", 5);
    container_made(w, 2, "u2", "main", GPU ":g1");
    sandbox_ran(w, "u2", "s-old", 4);
    sandbox_stopped(w, "s-old");
    assert_true(create(w, 11, "u1", "other", GPU ":g1", NULL));
    expect(w, "check c-u2-main");
}

static void a_removed_newest_sandbox_ends_the_pod(void **state)
{
    struct world *w = *state;

    sandbox_removed(w, "s-u1");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    committed(w);
    assert_false(world_stored(w, "allocation u1 main " GPU));
    assert_false(world_stored(w, "pod u1"));
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* It was run for an earlier shim, and the first list was asked for before. */
static void a_create_without_devices_tells_of_its_sandbox(void **state)
{
    struct devicemgr_create request = {.sandbox_id = "s-u1-again",
                                       .sandbox_attempt = 1,
                                       .pod_uid = "u1",
                                       .pod_namespace = "ns",
                                       .pod_name = "u1",
                                       .container = "side",
                                       .deadline_ms = UINT64_MAX};
    struct world *w = *state;

    world_restart(w);
    runtime_listed(w, "u1/main");
    assert_false(devicemgr_create(w->mgr, w->now_ms, 11, &request));
    devicemgr_run(w->mgr);
    sandbox_removed(w, "s-u1"); /* not the end of the pod */
    committed(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
    sandbox_removed(w, "s-u1-again");
    committed(w);
    assert_false(world_stored(w, "allocation u1 main " GPU));
}

static void a_create_in_a_removed_sandbox_is_refused(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    expect(w, "allocate *");
    sandbox_removed(w, "s-u1");
    expect_with(w, "verdict 11 refused 9:", "the pod is terminating", "was removed", NULL);
    expect(w, "cancel");
}

static void an_answer_from_a_stopped_sandbox_holds_nothing(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    allocated(w, "A=1");
    committed(w);
    ignore_all(w);
    sandbox_stopped(w, "s-u1");
    create_answered(w, 11, "c-second");
    assert_true(create(w, 12, "u2", "main", GPU ":g1", NULL));
    expect(w, "allocate g1 *");
}

static void an_answer_after_the_pods_end_is_ignored(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 11 forward *");
    sandbox_removed(w, "s-u1");
    expect(w, "commit *");
    create_answered(w, 11, "c2");
    create_answered(w, 11, "c2");
    create_cancelled(w, 11);
    expect_nothing(w);
}

static void a_removed_container_holds_nothing(void **state)
{
    struct world *w = *state;

    devicemgr_container_removed(w->mgr, w->now_ms, "some-other");
    devicemgr_container_removed(w->mgr, w->now_ms, "c-u1-main");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

static void pod_rows_ride_along(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u9", "s-u9", 0);
    sandbox_stopped(w, "s-u1");
    expect_nothing(w); /* no commit of their own */
    sandbox_ran(w, "u1", "s-u1b", 1);
    assert_true(create(w, 11, "u2", "main", GPU ":g1", NULL));
    expect(w, "allocate *");
    allocated(w, "A=1");
    expect(w, "commit allocation u2 main vendor.com/gpu, pod u1, pod u2");
}

/* Nothing else may follow for long, and nobody stops a sandbox again whose pod has finished. */
static void what_was_stopped_is_stored_after_a_while_in_one_commit(void **state)
{
    struct world *w = *state;

    container_made(w, 1, "u2", "main", GPU ":g1");
    sandbox_ran(w, "u9", "s-u9", 0); /* holds nothing */
    ignore_all(w);
    for (unsigned i = 0; i < 2; i++) {
        sandbox_stopped(w, "s-u1");
        sandbox_stopped(w, "s-u9");
        pass(w, STOPPED_STORE_MS - 1);
        sandbox_stopped(w, "s-u2");
        expect_nothing(w);
        pass(w, 1);
        expect_stored(w, "commit pod u1, pod u2");
    }
    sandbox_stopped(w, "s-u9");
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

/* What goes to the disk in between has it, too. */
static void with_another_commit_it_is_stored_by_that(void **state)
{
    struct world *w = *state;

    sandbox_stopped(w, "s-u1");
    sandbox_removed(w, "s-u1");
    expect_stored(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
    pass(w, STOPPED_STORE_MS);
    expect_nothing(w);
}

/* A disk that is full may be slow to say so. */
static void nothing_is_stored_at_the_end_where_the_store_fails(void **state)
{
    struct world *w = *state;

    sandbox_stopped(w, "s-u1");
    pass(w, STOPPED_STORE_MS);
    expect(w, "commit pod u1");
    commit_failed(w, "database or disk is full");
    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_nothing(w);
    pass(w, COMMIT_RETRY_MS_MIN);
    expect_stored(w, "commit pod u1");
}

static void nor_where_nothing_is_to_be(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1b", 1); /* which rides along */
    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

static void what_is_stopped_as_the_process_ends_is_stored_at_once(void **state)
{
    struct world *w = *state;

    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_nothing(w);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit pod u1");
}

static void a_create_after_the_removal_does_not_bring_the_pod_back(void **state)
{
    struct world *w = *state;

    sandbox_removed(w, "s-u1");
    committed(w);
    ignore_all(w);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 11 refused 9:", "the pod is terminating: its sandbox s-u1 was removed",
                NULL);
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
    allocated(w, "A=1");
    expect(w, "commit allocation u2 main vendor.com/gpu, pod u2"); /* no row of u1 */
}

static void a_removal_of_a_sandbox_not_known_yet_counts(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    sandbox_removed(w, "s-u9");
    assert_true(create(w, 11, "u9", "main", GPU ":g1", NULL));
    expect_with(w, "verdict 11 refused 9:", "sandbox s-u9 was removed", NULL);
}

static void a_stop_of_a_sandbox_not_known_yet_counts(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    sandbox_stopping(w, "s-u8");
    sandbox_stopped(w, "s-u9");
    sandbox_stopping(w, "s-u9");
    for (uint64_t i = 8; i <= 9; i++) {
        assert_true(create(w, i, i == 8 ? "u8" : "u9", "main", GPU ":g1", NULL));
        expect_with(w, "verdict ", "refused 9:", "was told to stop", NULL);
    }
}

static void a_create_in_a_sandbox_the_list_had_no_more_is_late(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "");
    committed(w);
    ignore_all(w);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 11 refused 9:", "sandbox s-u1 was removed", NULL);
}

static void a_create_that_the_stop_overtakes_holds_nothing(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    allocated(w, "A=1");
    committed(w);
    ignore_all(w);
    sandbox_stopping(w, "s-u1");
    create_answered(w, 11, "c-second"); /* made, in a sandbox that is being stopped */
    assert_true(create(w, 12, "u2", "main", GPU ":g1", NULL));
    expect(w, "check c-second");
    sandbox_stopped(w, "s-u1");
    expect(w, "allocate g1 *");
}

static void an_answer_of_the_old_sandbox_does_not_touch_the_new_ones_allocation(void **state)
{
    struct devicemgr_sandbox again = {"s-new", "u1", "ns", "u1", 1, true, NULL, 0};
    struct devicemgr_annotation token = {"devices.cri-device-shim/vendor.com_gpu",
                                         "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}"};
    struct devicemgr_create request = {.sandbox_id = "s-new",
                                       .pod_uid = "u1",
                                       .pod_namespace = "ns",
                                       .pod_name = "u1",
                                       .container = "main",
                                       .deadline_ms = UINT64_MAX,
                                       .container_annotations = &token,
                                       .container_annotations_len = 1};
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    sandbox_removed(w, "s-u1");
    committed(w);
    ignore_all(w);
    devicemgr_sandbox_ran(w->mgr, w->now_ms, &again);
    assert_true(devicemgr_create(w->mgr, w->now_ms, 12, &request));
    devicemgr_run(w->mgr);
    allocated(w, "A=1");
    committed(w);
    create_answered(w, 12, "c-new");
    ignore_all(w);
    create_answered(w, 11, "c-old"); /* at last */
    assert_true(create(w, 13, "u2", "main", GPU ":g0", NULL));
    expect(w, "check c-new");
}

static void stop_fails(struct world *w, const char *sandbox)
{
    sandbox_stopping(w, sandbox);
    devicemgr_sandbox_stop_failed(w->mgr, w->now_ms, sandbox);
    devicemgr_run(w->mgr);
}

static void a_sandbox_whose_stop_failed_is_open_again_once_it_is_listed_ready(void **state)
{
    struct world *w = *state;

    stop_fails(w, "s-u1");
    runtime_listed(w, "u1/main"); /* the runtime may be at it still */
    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    expect_with(w, "verdict 11 refused 9:", "terminating", NULL);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    expect_nothing(w);
    runtime_listed(w, "u1/main");
    assert_true(create(w, 12, "u1", "second", GPU ":g1", NULL));
    expect(w, "allocate g1 *");
    create_cancelled(w, 12);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

static void a_sandbox_whose_stop_failed_may_be_stopped(void **state)
{
    struct devicemgr_sandbox sandbox = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1"};
    struct world *w = *state;

    stop_fails(w, "s-u1");
    pass(w, OUTCOME_MS);
    expect(w, "list");
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, NULL, 0);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 11 refused 9:", "terminating", NULL);
    devicemgr_sandbox_stop_failed(w->mgr, w->now_ms, "s-u1"); /* a second stop of it */
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

static void a_new_stop_counts_anew(void **state)
{
    struct world *w = *state;

    stop_fails(w, "s-u1");
    pass(w, OUTCOME_MS - 1);
    sandbox_stopping(w, "s-u1");
    pass(w, 1);
    expect(w, "list");
    runtime_listed(w, "u1/main");
    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    expect_with(w, "verdict 11 refused 9:", "terminating", NULL);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

static void a_failed_stop_of_a_sandbox_not_known_yet_is_forgotten(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    stop_fails(w, "s-u9");
    assert_true(create(w, 11, "u9", "main", GPU ":g1", NULL));
    expect_nothing(w); /* waits for the list, and is not refused */
    sandbox_stopped(w, "s-u8");
    devicemgr_sandbox_stop_failed(w->mgr, w->now_ms, "s-u8");
    assert_true(create(w, 12, "u8", "main", GPU ":g1", NULL));
    expect_with(w, "verdict 12 refused 9:", "terminating", NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, u1_runs_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_sandbox_frees_its_containers_devices),
        TEST(a_new_sandbox_of_the_uid_revives_the_pod),
        TEST(the_end_of_an_old_sandbox_does_not_touch_the_new_ones_containers),
        TEST(a_removed_newest_sandbox_ends_the_pod),
        TEST(a_create_without_devices_tells_of_its_sandbox),
        TEST(a_create_in_a_removed_sandbox_is_refused),
        TEST(an_answer_from_a_stopped_sandbox_holds_nothing),
        TEST(an_answer_after_the_pods_end_is_ignored),
        TEST(a_removed_container_holds_nothing),
        TEST(pod_rows_ride_along),
        TEST(what_was_stopped_is_stored_after_a_while_in_one_commit),
        TEST(with_another_commit_it_is_stored_by_that),
        TEST(nothing_is_stored_at_the_end_where_the_store_fails),
        TEST(nor_where_nothing_is_to_be),
        TEST(what_is_stopped_as_the_process_ends_is_stored_at_once),
        TEST(a_create_after_the_removal_does_not_bring_the_pod_back),
        TEST(a_removal_of_a_sandbox_not_known_yet_counts),
        TEST(a_stop_of_a_sandbox_not_known_yet_counts),
        TEST(a_create_in_a_sandbox_the_list_had_no_more_is_late),
        TEST(a_create_that_the_stop_overtakes_holds_nothing),
        TEST(an_answer_of_the_old_sandbox_does_not_touch_the_new_ones_allocation),
        TEST(a_sandbox_whose_stop_failed_is_open_again_once_it_is_listed_ready),
        TEST(a_sandbox_whose_stop_failed_may_be_stopped),
        TEST(a_new_stop_counts_anew),
        TEST(a_failed_stop_of_a_sandbox_not_known_yet_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
