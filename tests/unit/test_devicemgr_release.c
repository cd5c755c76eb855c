/* devicemgr/machines/release.c: an operator takes devices from a pod that should not be there. */
#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "shown_world.h"

static void release(struct world *w, uint64_t number, const char *pod)
{
    devicemgr_release(w->mgr, w->now_ms, number, pod, "by me", false);
    devicemgr_run(w->mgr);
}

static void dry(struct world *w, uint64_t number, const char *pod)
{
    devicemgr_release(w->mgr, w->now_ms, number, pod, "by me", true);
    devicemgr_run(w->mgr);
}

/* The list that it waits for is asked for, and shows this. */
static void listed(struct world *w, const char *list)
{
    pass(w, LIST_EVERY_MS);
    expect(w, "list");
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, list);
}

/* Pod u1, whose main had g0 and has exited, is kept, since its sandbox may be made again. */
static int left_setup(void **state)
{
    struct world *w;

    u1_runs_setup(state);
    w = *state;
    runtime_listed(w, "~u1/main! u2");
    pass(w, 10 * LIST_EVERY_MS);
    ignore_all(w);
    return 0;
}

static void what_should_not_be_there_is_freed(void **state)
{
    struct world *w = *state;

    release(w, 1, "ns/u1");
    listed(w, "~u1/main! u2");
    expect_with(w, "commit ", "-allocation u1 main " GPU, NULL);
    expect_event(w, "taken " GPU " [g0] ns/u1/main -: by me");
    expect_nothing(w); /* answered when it is durable */
    committed(w);
    expect(w, "steered 1: released: " GPU ": g0");
    expect_nothing(w);
    assert_false(world_stored(w, "allocation u1 main " GPU));
    assert_int_equal(logged(w, "by the operator: released from container \"main\" of pod "
                               "\"ns/u1\": resource " GPU ": device ids g0"),
                     1);
    create_token(w, 11, "u2", GPU ":g0");
    expect(w, "allocate g0*");
}

static void who_asks_for_any_may_have_them(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    create_request(w, 11, "u2", "main", GPU "=2");
    expect(w, "verdict 11 refused 8: *"); /* u1 may be made again */
    release(w, 1, "u1");
    listed(w, "~u1/main! u2");
    create_request(w, 12, "u2", "main", GPU "=2");
    ignore_all(w);
    committed(w);
    expect(w, "steered 1: *");
    allocated(w, "A=1");
    expect_with(w, "commit ", "allocation u2 main " GPU, NULL);
}

static void to_be_told_changes_nothing(void **state)
{
    struct world *w = *state;

    dry(w, 1, "u1");
    listed(w, "~u1/main! u2");
    expect(w, "steered 1 as before: ");
    expect_nothing(w);
    expect_no_event(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
    kubelet_holds(w, "u1=" GPU ":g0");
    dry(w, 2, "u1");
    listed(w, "~u1/main! u2");
    expect(w, "steered 2 as before: the kubelet's checkpoint still gives devices to the pod: *");
    dry(w, 3, "u1");
    listed(w, "~u1/main u2");
    expect_with(w, "steer 3 refused 9: ", "container \"main\" of pod \"ns/u1\" runs", NULL);
    expect_nothing(w);
}

static void what_runs_is_not_released(void **state)
{
    struct world *w = *state;

    release(w, 1, "u1");
    listed(w, "~u1/main u2"); /* since somebody started it behind one's back */
    expect_with(w, "steer 1 refused 9: ", "runs, by the runtime's word (c-u1-main)", NULL);
    expect_nothing(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
}

static void a_pod_that_is_there_is_not_released(void **state)
{
    struct world *w = *state;

    release(w, 1, "u1");
    listed(w, "u1/main! u2");
    expect(w, "steer 1 refused 9: the pod is there, by the runtime's word: its sandbox s-u1 is "
              "ready");
    sandbox_stopping(w, "s-u1");
    release(w, 2, "u1");
    listed(w, "u1/main! u2");
    expect(w, "steer 2 refused 9: the pod is there, by the runtime's word: its sandbox s-u1 is not "
              "stopped yet");
    sandbox_stopped(w, "s-u1");
    release(w, 3, "u1");
    listed(w, "~u1/main! u2");
    ignore_all(w);
    committed(w);
    expect(w, "steered 3: released: " GPU ": g0");
}

static void what_is_in_the_making_is_not_released(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main! u2");
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "verdict 11 forward*");
    release(w, 1, "u1");
    listed(w, "~u1/main! u2");
    expect_with(w, "steer 1 refused 9: ", "is being created", NULL);
    create_cancelled(w, 11); /* the runtime may finish it */
    ignore_all(w);
    release(w, 2, "u1");
    listed(w, "u1/main! u2");
    expect_with(w, "steer 2 refused 9: ", "may be in the making", NULL);
}

static void a_pod_that_the_runtime_does_not_know_is_released(void **state)
{
    struct world *w = *state;

    w->settings.kubelet_wait_ms = 120000; /* nothing is dropped before a kubelet has listed */
    world_restart(w);
    plugin_back(w, "g0 g1");
    ignore_all(w);
    release(w, 1, "u1");
    listed(w, "u2");
    expect_with(w, "commit ", "-allocation u1 main " GPU, NULL);
    committed(w);
    expect(w, "steered 1: released: " GPU ": g0");
}

static void a_pod_that_goes_meanwhile_is_free_already(void **state)
{
    struct world *w = *state;

    release(w, 1, "u1");
    expect(w, "list");
    sandbox_removed(w, "s-u1");
    expect_with(w, "commit ", "-allocation u1 main " GPU, NULL);
    committed(w);
    expect_nothing(w); /* another may have it, says who has not heard the runtime */
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, "u2");
    expect(w, "commit -pod u1");
    committed(w);
    expect(w, "steered 1: the runtime knows the pod no more, and its devices are free already");
}

static void a_list_under_way_is_not_enough(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_listing(w->mgr);
    release(w, 1, "u1");
    runtime_listed(w, "~u1/main! u2");
    expect_nothing(w);
    listed(w, "~u1/main! u2");
    expect_with(w, "commit ", "-allocation u1 main " GPU, NULL);
}

static void a_runtime_that_does_not_answer_frees_nothing(void **state)
{
    struct world *w = *state;

    release(w, 1, "u1");
    expect(w, "list");
    pass(w, RELEASE_LIST_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "steer 1 refused 9: nothing has changed: the runtime does not say what runs");
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, "~u1/main! u2");
    expect_nothing(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
}

static void what_cannot_be_stored_is_said(void **state)
{
    struct world *w = *state;

    release(w, 1, "u1");
    listed(w, "~u1/main! u2");
    ignore_all(w);
    commit_failed(w, "disk full");
    expect_with(w, "steer 1 refused 10: ", "not stored yet", "disk full", NULL);
    pass(w, COMMIT_RETRY_MS_MIN);
    expect_with(w, "commit ", "-allocation u1 main " GPU, NULL);
}

/* Its rows, which were not stored, are gone with it: no other commit comes. */
static void who_releases_it_as_that_fails_is_answered(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g1");
    runtime_listed(w, "u2");
    ignore_all(w);
    create_token(w, 11, "u2", GPU ":g1");
    expect(w, "allocate g1*");
    allocated(w, "A=1");
    expect(w, "commit allocation u2 main " GPU ", pod u2");
    create_cancelled(w, 11);
    sandbox_stopping(w, "s-u2");
    sandbox_stopped(w, "s-u2");
    release(w, 1, "u2");
    listed(w, "~u2");
    commit_failed(w, "disk full");
    expect(w, "steered 1: released: " GPU ": g1");
    expect_nothing(w);
}

/* Whatever else is still to be stored then. */
static void nor_is_what_else_is_stored_waited_for(void **state)
{
    const char *const ids[] = {"g2"};
    struct world *w = *state;

    gpus_up(w, "g1 g2");
    runtime_listed(w, "u2");
    ignore_all(w);
    create_token(w, 11, "u2", GPU ":g1");
    expect(w, "allocate g1*");
    allocated(w, "A=1");
    expect(w, "commit allocation u2 main " GPU ", pod u2");
    create_cancelled(w, 11);
    sandbox_stopping(w, "s-u2");
    sandbox_stopped(w, "s-u2");
    release(w, 1, "u2");
    listed(w, "~u2");
    devicemgr_cordon(w->mgr, w->now_ms, 2, GPU, ids, 1, "", 0);
    commit_failed(w, "disk full");
    expect(w, "steered 1: released: " GPU ": g1");
}

static void several_wait_for_one_list(void **state)
{
    struct world *w = *state;

    container_made(w, 21, "u3", "main", GPU ":g1");
    release(w, 1, "u1");
    release(w, 2, "u3");
    ignore_all(w);
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, "~u1/main! ~u3/main!");
    expect_with(w, "commit ", "-allocation u1 main " GPU, "-allocation u3 main " GPU, NULL);
    committed(w);
    expect(w, "steered 1: released: " GPU ": g0");
    expect(w, "steered 2: released: " GPU ": g1");
    expect_nothing(w);
}

static void who_is_meant_must_be_plain(void **state)
{
    struct world *w = *state;

    release(w, 1, "u9");
    expect(w, "steer 1 refused 5: no such pod has any devices");
    release(w, 2, "u2"); /* it has none */
    expect(w, "steer 2 refused 5: *");
    container_made(w, 21, "u3", "main", GPU ":g1");
    ignore_all(w);
    runtime_listed(w, "~u1/main! ~u3/main!");
    pass(w, LIST_EVERY_MS);
    devicemgr_sandbox_ran(w->mgr, w->now_ms,
                          &(struct devicemgr_sandbox){.id = "s-u3",
                                                      .pod_uid = "u3",
                                                      .pod_namespace = "other",
                                                      .pod_name = "u1",
                                                      .ready = true});
    release(w, 3, "other/u1");
    expect(w, "list");
    release(w, 4, "u1"); /* a name, and a uid: that is meant */
    expect_nothing(w);
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, "~u1/main!");
    expect_with(w, "commit ", "-allocation u1 main " GPU, "-allocation u3 main " GPU, NULL);
}

static void a_name_that_two_pods_have_is_not_enough(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 1; i < 4; i += 2)
        devicemgr_sandbox_ran(w->mgr, w->now_ms,
                              &(struct devicemgr_sandbox){.id = i == 1 ? "s-u1" : "s-u3",
                                                          .pod_uid = i == 1 ? "u1" : "u3",
                                                          .pod_namespace = i == 1 ? "a" : "b",
                                                          .pod_name = "web",
                                                          .ready = true});
    container_made(w, 21, "u3", "main", GPU ":g1");
    devicemgr_sandbox_ran(
        w->mgr, w->now_ms,
        &(struct devicemgr_sandbox){
            .id = "s-u3", .pod_uid = "u3", .pod_namespace = "b", .pod_name = "web", .ready = true});
    ignore_all(w);
    release(w, 1, "web");
    expect(w, "steer 1 refused 9: several pods are called so: name it by its uid");
    expect_nothing(w);
    devicemgr_rows_unread(w->mgr, "locked"); /* it says that alone */
    release(w, 2, "web");
    expect(w, "steer 2 refused 9: the state of this node's devices cannot be read");
}

static void nothing_is_released_before_the_rows_are_known_or_at_the_end(void **state)
{
    struct world *w = *state;

    devicemgr_drain(w->mgr, w->now_ms);
    release(w, 1, "u1");
    expect(w, "steer 1 refused 9: the shim is being stopped");
    release(w, 2, "u9"); /* as of whom there is nothing to be released */
    expect(w, "steer 2 refused 9: the shim is being stopped");
    world_fresh_listed(w);
    devicemgr_rows_unread(w->mgr, "locked");
    release(w, 3, "u1");
    expect(w, "steer 3 refused 9: the state of this node's devices cannot be read");
}

/* Of releases and orders together. */
static void there_is_a_most_that_waits(void **state)
{
    static const char *const IDS[] = {"g0"};
    struct world *w = *state;

    for (unsigned i = 1; i <= STEERS_MAX; i++)
        dry(w, i, "u1");
    expect(w, "list");
    release(w, 90, "u1");
    expect(w, "steer 90 refused 8: too many orders wait for their turn*");
    devicemgr_cordon(w->mgr, w->now_ms, 91, GPU, IDS, 1, "dust", 1);
    devicemgr_run(w->mgr);
    expect(w, "steer 91 refused 8: too many orders wait for their turn*");
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, "~u1/main! u2");
    for (unsigned i = 1; i <= STEERS_MAX; i++)
        expect(w, "steered*");
    devicemgr_cordon(w->mgr, w->now_ms, 92, GPU, IDS, 1, "dust", 1); /* there is room again */
    devicemgr_run(w->mgr);
    expect_with(w, "commit ", "order cordon " GPU " g0", NULL);
}

#define LEFT(test) cmocka_unit_test_setup_teardown(test, left_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEFT(what_should_not_be_there_is_freed),
        LEFT(who_asks_for_any_may_have_them),
        LEFT(to_be_told_changes_nothing),
        LEFT(what_runs_is_not_released),
        LEFT(a_pod_that_is_there_is_not_released),
        LEFT(what_is_in_the_making_is_not_released),
        LEFT(a_pod_that_the_runtime_does_not_know_is_released),
        LEFT(a_pod_that_goes_meanwhile_is_free_already),
        LEFT(a_list_under_way_is_not_enough),
        LEFT(a_runtime_that_does_not_answer_frees_nothing),
        LEFT(what_cannot_be_stored_is_said),
        cmocka_unit_test_setup_teardown(who_releases_it_as_that_fails_is_answered, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(nor_is_what_else_is_stored_waited_for, world_setup,
                                        world_teardown),
        LEFT(several_wait_for_one_list),
        LEFT(there_is_a_most_that_waits),
        LEFT(who_is_meant_must_be_plain),
        LEFT(a_name_that_two_pods_have_is_not_enough),
        LEFT(nothing_is_released_before_the_rows_are_known_or_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
