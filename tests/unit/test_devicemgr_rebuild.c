/* What a listed container says that it has. */
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static void a_lost_checkpoint_is_rebuilt_from_running_containers(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main!=" GPU ":g1");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    assert_true(create(w, 11, "u3", "main", GPU ":g0", NULL));
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect(w, "verdict 11 refused 14:*");
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");                                /* its options are asked for again */
    assert_true(create(w, 13, "u3", "main", GPU ":g1", NULL)); /* u2's had exited */
    expect(w, "allocate g1 *");
}

static void a_running_container_is_believed_more_than_the_checkpoint(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main=" GPU ":g1");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g1", NULL));
    expect(w, "check c-u1-main");
    runtime_listed(w, "u1/main=" GPU ":g1 u2");
    assert_int_equal(logged(w, "kept (0 of them rebuilt"), 0);
}

/* A runtime without events is listed every few seconds. */
static void a_garbage_token_on_a_running_container_is_told_once(void **state)
{
    struct devicemgr_sandbox sandbox = {"s-u5", "u5", "ns", "u5", 0, true, NULL, 0};
    struct devicemgr_annotation bad = {"devices.cri-device-shim/vendor.com_gpu", "[]"};
    struct devicemgr_container container = {"c5", "s-u5", "main", 0, true, &bad, 1, false};
    struct world *w = *state;

    for (int i = 0; i < 3; i++) {
        devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
        devicemgr_run(w->mgr);
    }
    assert_int_equal(logged(w, "running container c5: annotation devices.cri-device-shim/"), 1);
    container.id = "c6";
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
    assert_int_equal(logged(w, "running container c6: annotation devices.cri-device-shim/"), 1);
}

static void a_container_of_a_dead_sandbox_is_rebuilt(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    runtime_listed(w, "~u1/main=" GPU ":g0 u2");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    create_token(w, 11, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
}

static void u2_waits_for_u1(struct world *w)
{
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
}

/* Found by tests/sim (seed 507453): the row was lost, and what the create had reserved went with
 * it, though the container runs. */
static void what_a_listed_container_has_outlives_a_refused_create(void **state)
{
    struct world *w = *state;

    world_fresh_listed(w);
    gpus_up(w, "g0");
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate g0 *");
    runtime_listed(w, "u1/main=" GPU ":g0 u2");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    assert_int_equal(logged(w, "kept (1 of them rebuilt from containers)"), 1);
    allocate_failed(w, 2, "no");
    expect(w, "verdict 11 refused 14:*");
    expect_nothing(w);
    assert_true(world_stored(w, "allocation u1 main vendor.com/gpu"));
    u2_waits_for_u1(w);
}

/* It is committed for the create just then. */
static void what_a_listed_container_has_outlives_a_failed_commit(void **state)
{
    struct world *w = *state;

    world_fresh_listed(w);
    gpus_up(w, "g0");
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate g0 *");
    allocated(w, "A=1");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    runtime_listed(w, "u1/main=" GPU ":g0 u2");
    commit_failed(w, "disk full");
    expect(w, "verdict 11 refused 14:*");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    u2_waits_for_u1(w);
}

/* The older list's container ran when the runtime looked, and is gone. */
static void a_list_older_than_a_container_does_not_rebuild_its_predecessor(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_listing(w->mgr);
    devicemgr_container_removed(w->mgr, w->now_ms, "c-u1-main");
    assert_true(create(w, 11, "u1", "main", GPU ":g1", NULL));
    expect(w, "allocate g1 *");
    allocated(w, "A=1");
    committed(w);
    committed(w);
    create_answered(w, 11, "c-new");
    ignore_all(w);
    forget_logs(w);
    runtime_listed(w, "u1/main=" GPU ":g0 u2");
    assert_int_equal(logged(w, "rebuilt"), 0);
    expect_nothing(w);
    assert_true(create(w, 12, "u2", "main", GPU ":g1", NULL));
    expect(w, "check c-new");
    assert_true(create(w, 13, "u3", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* Found by tests/sim: attempt 0 was created for a client that had given up and never started; its
 * removal freed the device of attempt 1. */
static void of_two_listed_attempts_the_later_one_holds(void **state)
{
    struct world *w = *state;
    const struct devicemgr_sandbox sandbox = {"s-u1", "u1", "ns", "u1", 0, true, NULL, 0};
    const struct devicemgr_container containers[] = {
        {.id = "c-1", .sandbox_id = "s-u1", .name = "main", .attempt = 1, .running = true},
        {.id = "c-0", .sandbox_id = "s-u1", .name = "main", .attempt = 0, .running = true},
    };

    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, containers, 2);
    devicemgr_container_removed(w->mgr, w->now_ms, "c-0");
    devicemgr_run(w->mgr);
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect(w, "check c-1");
}

/* Found by tests/sim: the same, with nothing known but what the containers say. */
static void of_two_listed_attempts_the_later_one_is_rebuilt(void **state)
{
    const struct devicemgr_annotation g0 = {"devices.cri-device-shim/vendor.com_gpu",
                                            "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}"};
    const struct devicemgr_annotation g1 = {"devices.cri-device-shim/vendor.com_gpu",
                                            "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g1\"]}"};
    struct devicemgr_sandbox sandbox = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .ready = true};
    struct devicemgr_container containers[] = {
        {.id = "c-0", .sandbox_id = "s-u1", .name = "main", .attempt = 0, .running = true},
        {.id = "c-1", .sandbox_id = "s-u1", .name = "main", .attempt = 1, .running = true},
    };
    struct world *w = *state;

    for (int i = 0; i < 4; i++) {
        int later = i % 2; /* in either order, with equal devices and with others */

        world_fresh(w);
        plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
        containers[later] =
            (struct devicemgr_container){"c-1", "s-u1", "main", 1, true, &g1, 1, false};
        containers[!later] = (struct devicemgr_container){
            "c-0", "s-u1", "main", 0, true, i < 2 ? &g1 : &g0, 1, false};
        devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, containers, 2);
        devicemgr_container_removed(w->mgr, w->now_ms, "c-0");
        devicemgr_run(w->mgr);
        expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
        committed(w);
        assert_true(create(w, 12, "u2", "main", GPU ":g1", NULL));
        expect(w, "check c-1");
    }
}

static void annotations_on(struct world *w)
{
    static const char *const ALL[] = {"*"};

    w->settings.annotations = true;
    w->settings.namespaces = ALL;
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    nics_up(w, "n0");
}

/* u1's "main" was made with what the shim chose of both, and runs. */
static void u1_has_both(struct world *w)
{
    create_request(w, 11, "u1", "main", GPU "=1, " NIC "=1");
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
    allocated(w, "G=1");
    w->call--;
    allocated_stored(w, "N=1");
    expect(w, "verdict 11 forward*");
    create_answered(w, 11, "c-u1-main");
    forget_logs(w);
}

static void what_an_edited_annotation_leaves_is_free(void **state)
{
    struct world *w = *state;

    annotations_on(w);
    u1_has_both(w);
    container_removed(w, "c-u1-main");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "verdict 12 forward G=1*");
    expect_nothing(w); /* it may not come to be */
    create_answered(w, 12, "c-u1-main");
    expect(w, "commit -allocation u1 main other.com/nic, pod u1");
    committed(w);
    assert_int_equal(logged(w, "container \"main\" of pod \"ns/u1\": its pod's annotation asks for "
                               "resource other.com/nic no more: device ids n0 are free"),
                     1);
    container_chosen(w, 13, "u2", "main", NIC "=1", "n0");
}

static void a_listed_container_has_what_its_tokens_name(void **state)
{
    struct world *w = *state;

    annotations_on(w);
    u1_has_both(w);
    world_restart(w);
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    plugin_options(w, w->endpoint - 1, false, false);
    plugin_list(w, w->endpoint - 1, "n0");
    ignore_all(w);
    pass(w, OUTCOME_MS);                     /* nothing is in the making any more */
    runtime_listed(w, "u1/main=" GPU ":g0"); /* made anew meanwhile, by an edited annotation */
    expect(w, "list");
    expect_with(w, "commit ", "-allocation u1 main other.com/nic", "pod u1", NULL);
    committed(w);
    container_chosen(w, 13, "u2", "main", NIC "=1", "n0");
    create_request(w, 14, "u3", "main", GPU "=1");
    expect_with(w, "verdict 14 refused 8:", "too few devices", NULL);
}

/* It may name what it seems to have no more. */
static void what_an_unreadable_token_may_name_is_not_free(void **state)
{
    const struct devicemgr_sandbox sandbox = {"s-u1", "u1", "ns", "u1", 0, true, NULL, 0};
    const struct devicemgr_annotation says[] = {
        {"devices.cri-device-shim/other.com_nic", "{\"resource\":\"" NIC "\",\"ids\":[\"n0\"]}"},
        {"devices.cri-device-shim/vendor.com_gpu", "[]"}};
    const struct devicemgr_container container = {"c-u1-main", "s-u1", "main", 1,
                                                  true,        says,   2,      false};
    struct world *w = *state;

    annotations_on(w);
    u1_has_both(w);
    pass(w, OUTCOME_MS);
    ignore_all(w);
    devicemgr_runtime_listing(w->mgr);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
    ignore_all(w);
    create_request(w, 14, "u3", "main", GPU "=1");
    expect_with(w, "verdict 14 refused 8:", "too few devices", NULL);
    assert_true(world_stored(w, "allocation u1 main " GPU));
}

static void what_an_older_attempt_runs_with_is_not_free(void **state)
{
    struct world *w = *state;

    annotations_on(w);
    u1_has_both(w);
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "verdict 12 forward G=1*");
    create_answered(w, 12, "c-2"); /* nobody has told that the first one ended */
    expect_nothing(w);
    create_request(w, 13, "u2", "main", NIC "=1");
    expect_with(w, "verdict 13 refused 8:", "too few devices", NULL);
}

/* It is from before the plugin was moved, and was taken over with the kubelet's checkpoint. */
static void a_container_without_a_token_has_what_the_kubelet_gave_it(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    runtime_listed(w, "u1/main u2");
    ignore_all(w);
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
}

/* Its pod is being removed, and the kubelet has forgotten what it gave to that. */
static void what_was_rebuilt_with_a_token_is_not_made_without(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u1=" GPU ":g0");
    runtime_listed(w, "u1/main=" GPU ":g0");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    kubelet_holds(w, "");
    assert_true(create(w, 11, "u1", "main", NULL, NULL));
    expect(w, "verdict 11 refused 9:*");
    world_restart(w);
    ignore_all(w);
    assert_true(create(w, 12, "u1", "main", NULL, NULL));
    expect(w, "verdict 12 refused 9:*");
}

/* The kubelet's file may be read later than the first list. */
static void so_it_is_where_the_kubelet_is_heard_of_later(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    gpus_up(w, "g0 g1");
    runtime_listed(w, "u1/main=" GPU ":g0");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    kubelet_holds(w, "u1=" GPU ":g0");
    runtime_listed(w, "u1/main=" GPU ":g0");
    expect_nothing(w); /* its row rides along with the next commit */
    kubelet_holds(w, "");
    assert_true(create(w, 11, "u1", "main", NULL, NULL));
    expect(w, "verdict 11 refused 9:*");
}

/* It may be of an annotation that the pod has not any more. */
static void what_the_kubelet_does_not_know_of_may_be_made_without_a_token(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u1=" GPU ":g1");
    runtime_listed(w, "u1/main=" GPU ":g0");
    ignore_all(w);
    committed(w);
    assert_false(create(w, 11, "u1", "main", NULL, NULL));
}

/* By CRIU: containerd gives it the annotations of the container that the checkpoint is of. */
static void list_u2_restored_of_u1(struct world *w)
{
    const struct devicemgr_sandbox sandboxes[] = {{"s-u1", "u1", "ns", "u1", 0, true, NULL, 0},
                                                  {"s-u2", "u2", "ns", "u2", 0, true, NULL, 0}};
    const struct devicemgr_annotation says[] = {
        {"devices.cri-device-shim/vendor.com_gpu", "{\"resource\":\"" GPU "\",\"ids\":[\"g0\"]}"},
        {"checkpointImage", "localhost/of-u1:1"}};
    const struct devicemgr_container containers[] = {
        {"c-u1-main", "s-u1", "main", 0, true, says, 1, false},
        {"c-u2-main", "s-u2", "main", 0, true, says, 2, false}};

    devicemgr_runtime_listing(w->mgr);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, containers, 2);
    devicemgr_run(w->mgr);
}

static void what_a_restored_container_says_is_anothers(void **state)
{
    struct world *w = *state;

    container_made(w, 12, "u2", "main", GPU ":g1");
    ignore_all(w);
    list_u2_restored_of_u1(w);
    expect_nothing(w); /* all is as it was */
    create_token(w, 13, "u3", GPU ":g1");
    expect(w, "check c-u2-main");
    create_token(w, 14, "u1", GPU ":g0");
    expect(w, "verdict 14 forward*"); /* u2 is not in its way */
}

static void what_it_was_given_it_has(void **state)
{
    struct world *w = *state;

    annotations_on(w);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    container_chosen(w, 12, "u2", "main", GPU "=1", "g1");
    restart_serving(w);
    list_u2_restored_of_u1(w);
    ignore_all(w);
    create_request(w, 13, "u3", "main", GPU "=1");
    expect_with(w, "verdict 13 refused 8:", "too few devices", NULL);
}

/* CRI-O, which does so too, says nothing of it. */
static void nor_does_what_it_says_count_beside_the_kubelets_word(void **state)
{
    struct world *w = *state;

    container_made(w, 12, "u2", "main", GPU ":g1");
    kubelet_holds(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    ignore_all(w);
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main=" GPU ":g0");
    expect_nothing(w);
    create_token(w, 13, "u3", GPU ":g1");
    expect(w, "check c-u2-main");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, u1_runs_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_checkpoint_is_rebuilt_from_running_containers),
        TEST(a_running_container_is_believed_more_than_the_checkpoint),
        TEST(a_garbage_token_on_a_running_container_is_told_once),
        TEST(a_container_of_a_dead_sandbox_is_rebuilt),
        TEST(what_a_listed_container_has_outlives_a_refused_create),
        TEST(what_a_listed_container_has_outlives_a_failed_commit),
        TEST(a_list_older_than_a_container_does_not_rebuild_its_predecessor),
        TEST(of_two_listed_attempts_the_later_one_holds),
        TEST(of_two_listed_attempts_the_later_one_is_rebuilt),
        TEST(what_an_edited_annotation_leaves_is_free),
        TEST(a_listed_container_has_what_its_tokens_name),
        TEST(what_an_unreadable_token_may_name_is_not_free),
        TEST(what_an_older_attempt_runs_with_is_not_free),
        TEST(a_container_without_a_token_has_what_the_kubelet_gave_it),
        TEST(what_was_rebuilt_with_a_token_is_not_made_without),
        TEST(so_it_is_where_the_kubelet_is_heard_of_later),
        TEST(what_the_kubelet_does_not_know_of_may_be_made_without_a_token),
        TEST(what_a_restored_container_says_is_anothers),
        TEST(what_it_was_given_it_has),
        TEST(nor_does_what_it_says_count_beside_the_kubelets_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
