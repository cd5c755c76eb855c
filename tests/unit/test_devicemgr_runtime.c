/* Pods, sandboxes and the runtime's list. */
#include "devicemgr/limits.h"
#include "devicemgr_world.h"

#include <stdio.h>

/* Pod u1's container "main" runs with g0. */
static int setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    sandbox_ran(w, "u1", "s-u1", 0);
    container_made(w, 1, "u1", "main", GPU ":g0");
    logged(w, "");
    return 0;
}

/* The shim is killed and started; the plugin serves on. */
static void restart(struct world *w)
{
    world_restart(w);
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0 g1");
    ignore_all(w);
}

static void kubelet_lists(struct world *w)
{
    devicemgr_kubelet_listed(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

/* ---- sandboxes ---- */

static void a_stopped_sandbox_frees_its_containers_devices(void **state)
{
    struct world *w = *state;

    sandbox_stopped(w, "s-u1");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL)); /* without asking the runtime */
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
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

/* ---- before the first list ---- */

static void nothing_is_dropped_before_the_first_list(void **state)
{
    struct world *w = *state;

    restart(w);
    sandbox_removed(w, "s-u1"); /* a newer one may exist */
    expect_nothing(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
    runtime_listed(w, "u2");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

static void who_held_a_device_is_waited_for_until_the_list(void **state)
{
    struct world *w = *state;

    restart(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    pass(w, HOLD_MS - 1);
    expect(w, "list");
    expect_nothing(w);
    runtime_listed(w, "u1/main u2");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect(w, "verdict 11 refused 14:*");
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL)); /* its own container may go on */
    expect(w, "verdict 12 forward MADE=1");
}

/* ---- the list ---- */

static void what_the_list_does_not_show_does_not_run(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1 u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* The shim was killed after it had forwarded a create, and the runtime goes on with it. */
static void after_a_restart_a_container_may_be_in_the_making(void **state)
{
    struct world *w = *state;

    restart(w);
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

    restart(w);
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

/* The next container of the same pod with the same device: the kubelet has seen this one exit. */
static void what_the_kubelet_hands_on_is_not_in_the_making(void **state)
{
    struct world *w = *state;

    restart(w);
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

    restart(w);
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

    restart(w);
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
    struct devicemgr_sandbox sandbox = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1"};
    struct world *w = *state;

    restart(w);
    runtime_listed(w, "u1 u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
    sandbox_stopped(w, "s-u1");
    expect(w, "allocate g0 *");
    create_cancelled(w, 11);
    restart(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, NULL, 0);
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
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
    restart(w);
    sandbox_ran(w, "u1", "s-new", 1);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect_nothing(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 3, NULL, 0);
    devicemgr_run(w->mgr);
    expect(w, "allocate g0 *");
    create_cancelled(w, 11);
    restart(w); /* not this shim ran it: one that was killed may have forwarded a create into it */
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

/* ---- rows that are lost ---- */

/* The plugin serves on, the pods run on, and nothing is known of them but what the runtime tells.
 */
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
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
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

static void pods_the_runtime_does_not_know_are_dropped(void **state)
{
    struct world *w = *state;

    restart(w);
    runtime_listed(w, "");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

static void what_happens_while_the_list_is_made_is_newer_than_it(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_listing(w->mgr);
    sandbox_ran(w, "u2", "s-u2", 0);
    container_made(w, 2, "u2", "main", GPU ":g1");
    runtime_listed(w, "u1/main");
    expect_nothing(w);
    assert_true(create(w, 11, "u1", "other", GPU ":g1", NULL));
    expect(w, "check c-u2-main");
}

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

static void a_garbage_token_on_a_running_container_is_told(void **state)
{
    struct devicemgr_sandbox sandbox = {"s-u5", "u5", "ns", "u5", 0, true, NULL, 0};
    struct devicemgr_annotation bad = {"devices.cri-device-shim/vendor.com_gpu", "[]"};
    struct devicemgr_container container = {"c5", "s-u5", "main", 0, true, &bad, 1};
    struct world *w = *state;

    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
    assert_int_equal(logged(w, "running container c5: annotation devices.cri-device-shim/"), 1);
}

/* ---- sandboxes that die, and containers that do not ---- */

/* Its pause process was killed, and it does not end by itself. */
static void a_container_outlives_its_sandbox(void **state)
{
    struct world *w = *state;

    for (int restarted = 0; restarted < 2; restarted++) {
        if (restarted)
            restart(w);
        runtime_listed(w, "~u1/main u2");
        create_token(w, 11, "u2", GPU ":g0");
        expect(w, "check c-u1-main");
        container_checked(w, true);
        expect_with(w, "verdict 11 refused 14:", "held by container \"main\" of pod \"ns/u1\"",
                    "which still runs", NULL);
    }
    runtime_listed(w, "~u1/main u2/x!");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    container_removed(w, "c-u1-main");
    expect(w, "allocate g0 *");
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

static void a_container_of_a_sandbox_not_listed_holds_its_device(void **state)
{
    const struct devicemgr_container container = {
        .id = "c-u1-main", .sandbox_id = "s-u1", .name = "main", .running = true};
    struct world *w = *state;

    devicemgr_runtime_listed(w->mgr, w->now_ms, NULL, 0, &container, 1);
    sandbox_ran(w, "u2", "s-u2", 0);
    create_token(w, 11, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    runtime_listed(w, "u2"); /* not listed either */
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

static void an_end_of_the_old_sandbox_is_needed_for_its_containers(void **state)
{
    const struct devicemgr_sandbox sandboxes[] = {
        {"s-u1", "u1", "ns", "u1", 0, false, NULL, 0},
        {"s-again", "u1", "ns", "u1", 1, true, NULL, 0},
        {"s-u2", "u2", "ns", "u2", 0, true, NULL, 0},
    };
    const struct devicemgr_container containers[] = {
        {.id = "c-u1-main", .sandbox_id = "s-u1", .name = "main", .running = true},
        {.id = "c-again", .sandbox_id = "s-again", .name = "main", .attempt = 1, .running = true},
    };
    struct world *w = *state;

    for (size_t i = 0; i < 2; i++) { /* told in either order */
        const struct devicemgr_container told[] = {containers[i], containers[!i]};

        devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 3, told, 2);
        devicemgr_run(w->mgr);
        create_token(w, 11, "u2", GPU ":g0");
        expect(w, "check c-again");
        container_checked(w, false);
        expect(w, "check c-u1-main"); /* the one before it, too */
        create_cancelled(w, 11);
    }
    sandbox_removed(w, "s-again"); /* the newest of the pod, which is not gone for that */
    expect_nothing(w);
    create_token(w, 12, "u2", GPU ":g0");
    container_checked(w, true); /* what was asked before, by another */
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused 14:", "held by", NULL);
    container_removed(w, "c-u1-main");
    expect_nothing(w);
    runtime_listed(w, "~u1/main! u2");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

/* As when the runtime itself has just started. */
static void a_dead_sandbox_may_be_ready_again(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "~u1/main");
    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    expect_nothing(w); /* it was listed a moment ago */
    pass(w, LIST_EVERY_MS);
    expect(w, "list");
    expect_nothing(w); /* once */
    runtime_listed(w, "u1/main");
    expect(w, "allocate g1 *");
    create_cancelled(w, 11);
    ignore_all(w);
    runtime_listed(w, "~u1/main");
    pass(w, LIST_EVERY_MS);
    assert_true(create(w, 12, "u1", "second", GPU ":g1", NULL));
    expect(w, "list");
    devicemgr_runtime_listing(w->mgr);
    runtime_listed(w, "~u1/main");
    pass(w, HOLD_MS);
    expect(w, "list"); /* as long as it is held */
    expect_with(w, "verdict 12 refused 14:", "the runtime lists its sandbox s-u1 as not ready",
                NULL);
    assert_int_equal(logged(w, "held: "), 2);
}

static void a_stopped_sandbox_that_is_listed_ready_is_open_again(void **state)
{
    struct world *w = *state;

    sandbox_stopping(w, "s-u1");
    devicemgr_runtime_listing(w->mgr);
    sandbox_stopped(w, "s-u1");
    runtime_listed(w, "u1/main"); /* asked for before the stop */
    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    expect_with(w, "verdict 11 refused 9:", "terminating", NULL);
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *"); /* nor does its container run, as that list says */
    create_cancelled(w, 12);
    ignore_all(w);
    runtime_listed(w, "u1");
    assert_true(create(w, 13, "u1", "second", GPU ":g1", NULL));
    expect(w, "allocate g1 *");
}

static void a_list_older_than_a_containers_end_does_not_bring_it_back(void **state)
{
    struct world *w = *state;

    for (int checked = 0; checked < 2; checked++) {
        runtime_listed(w, "u1/main=" GPU ":g0 u2");
        ignore_all(w);
        create_token(w, 11, "u2", GPU ":g0");
        expect(w, "check c-u1-main");
        devicemgr_runtime_listing(w->mgr);
        if (checked)
            container_checked(w, false);
        else
            container_removed(w, "c-u1-main");
        expect(w, "allocate g0 *");
        create_cancelled(w, 11);
        ignore_all(w);
        container_removed(w, "c-u1-main"); /* told again */
        runtime_listed(w, "u1/main=" GPU ":g0 u2");
        create_token(w, 12, "u2", GPU ":g0");
        expect(w, "allocate g0 *");
        create_cancelled(w, 12);
        ignore_all(w);
        runtime_listed(w, "u1/main=" GPU ":g0 u2"); /* it is there after all */
        committed(w);
        ignore_all(w);
        create_token(w, 13, "u2", GPU ":g0");
        expect(w, "check c-u1-main");
        create_cancelled(w, 13);
        ignore_all(w);
    }
}

static void a_pod_whose_sandbox_died_is_not_over(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    container_made(w, 1, "u1", "main", GPU ":g0");
    runtime_listed(w, "~u1/main! u2");
    create_request(w, 11, "u2", "main", GPU "=1");
    expect_with(w, "verdict 11 refused 8:", "asked 1, free 0", NULL);
    for (int i = 0; i < 3; i++) { /* the kubelet tries to make a new one */
        sandbox_stopping(w, "s-u1");
        sandbox_stopped(w, "s-u1");
        pass(w, SANDBOX_REMADE_MS - 1);
        ignore_all(w);
        create_request(w, 12, "u2", "main", GPU "=1");
        expect_with(w, "verdict 12 refused 8:", "asked 1, free 0", NULL);
    }
    pass(w, 1);
    expect(w, "list"); /* what is shown may be another list */
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
    create_cancelled(w, 13);
    ignore_all(w);
    sandbox_stopping(w, "s-u1"); /* once over, over */
    create_request(w, 14, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
}

/* ---- the sources: the runtime's list, and a kubelet ---- */

#define WAIT_MS 120000

static void nothing_is_dropped_before_a_kubelet_has_listed(void **state)
{
    struct world *w = *state;

    w->settings.kubelet_wait_ms = WAIT_MS;
    for (int told = 0; told < 2; told++) { /* before the list, or after it */
        restart(w);
        if (told == 0)
            kubelet_lists(w);
        else
            runtime_listed(w, "u2");
        expect_nothing(w);
        assert_true(world_stored(w, "allocation u1 main " GPU));
        if (told == 1)
            kubelet_lists(w);
        else
            runtime_listed(w, "u2");
        expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    }
    committed(w);
    kubelet_lists(w);
    expect_nothing(w);
}

static void nor_is_an_allocation_without_a_pod_row(void **state)
{
    struct world *w = *state;

    w->settings.kubelet_wait_ms = WAIT_MS;
    world_store(w, DEVICEMGR_RECORD_POD, "u1", "", "", NULL, 0); /* lost */
    restart(w);
    runtime_listed(w, "u2");
    expect_nothing(w);
    kubelet_lists(w);
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

static void without_a_kubelet_it_is_not_waited_for_ever(void **state)
{
    struct world *w = *state;

    w->settings.kubelet_wait_ms = WAIT_MS;
    restart(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u2");
    pass(w, WAIT_MS - OUTCOME_MS - 1);
    expect_nothing(w);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + 1);
    pass(w, 1);
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    committed(w);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

/* What the kubelet gives to another pod is that one's: the older pod is over, to the kubelet. */
static void what_is_not_dropped_yet_is_the_kubelets_to_give_away(void **state)
{
    struct world *w = *state;

    w->settings.kubelet_wait_ms = WAIT_MS;
    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    restart(w);
    runtime_listed(w, "u2");
    create_request(w, 11, "u2", "main", GPU "=2");
    expect_with(w, "verdict 11 refused 8:", "asked 2, free 1", NULL);
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

/* Some runtimes know no sandbox of before a reboot. The kubelet makes new ones for its pods once it
 * knows them, which may take its time. */
static void after_a_reboot_the_runtime_may_know_no_pod(void **state)
{
    struct world *w = *state;

    kubelet_holds(w, "u1=" GPU ":g0");
    w->settings.boot_id = "boot-2";
    for (int i = 0; i < 2; i++) { /* also if the shim is started again */
        restart(w);
        kubelet_lists(w);
        kubelet_holds(w, "u1=" GPU ":g0");
        runtime_listed(w, "");
        expect_nothing(w);
    }
    pass(w, POD_RETURNS_MS - 1);
    expect_nothing(w);
    sandbox_ran(w, "u1", "s-u1", 1);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *"); /* it is another boot */
    create_cancelled(w, 11);
    ignore_all(w);
    runtime_listed(w, "u1");
    pass(w, POD_RETURNS_MS);
    ignore_all(w);
    runtime_listed(w, "");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1"); /* it was of this boot then */
}

static void a_pod_that_does_not_come_back_after_a_reboot_is_dropped(void **state)
{
    struct world *w = *state;

    w->settings.boot_id = "boot-2";
    for (int named = 0; named < 2; named++) {
        restart(w);
        pass(w, OUTCOME_MS);
        ignore_all(w);
        if (named)
            kubelet_holds(w, "u1=" GPU ":g0");
        runtime_listed(w, "u2");
        pass(w, (named ? POD_RETURNS_MS : POD_COMES_MS) - 1);
        expect_nothing(w);
        pass(w, 1);
        expect(w, "list");
        runtime_listed(w, "u2");
        expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    }
}

/* A runtime that has a sandbox of before a reboot forgets none by that: one that it has no more was
 * removed, and the kubelet removes the last one only of a pod that is gone. */
static void a_pod_whose_sandbox_outlived_a_reboot_does_not_come_back_without(void **state)
{
    static const char *const GONE = "commit -allocation u1 main vendor.com/gpu, -pod u1";
    struct world *w = *state;

    w->settings.boot_id = "boot-2";
    for (int told = 0; told < 2; told++) {
        restart(w);
        kubelet_lists(w);
        if (told) {
            sandbox_removed(w, "s-u1"); /* before the first list */
        } else {
            pass(w, OUTCOME_MS);
            ignore_all(w);
            runtime_listed(w, "~u1 u2");
        }
        expect_nothing(w);
        runtime_listed(w, "u2");
        expect(w, GONE);
    }
}

static void an_allocation_without_a_pod_row_is_named_by_uid_and_dropped_with_its_pod(void **state)
{
    struct world *w = *state;

    world_store(w, DEVICEMGR_RECORD_POD, "u1", "", "", NULL, 0); /* lost */
    restart(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    pass(w, HOLD_MS);
    expect(w, "list");
    expect_with(w, "verdict 11 refused 14:", "held by container \"main\" of pod \"u1\"", NULL);
    runtime_listed(w, "u2");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

static void a_list_older_than_a_container_says_nothing_of_it(void **state)
{
    struct devicemgr_annotation note = {"some.other/note", "{"};
    struct devicemgr_sandbox sandbox = {"s-u1", "u1", "ns", "u1", 0, true, NULL, 0};
    struct devicemgr_container old = {"c-old", "s-u1", "main", 0, true, &note, 1};
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 11 forward *");
    devicemgr_runtime_listing(w->mgr);
    create_answered(w, 11, "c-new");
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &old, 1);
    devicemgr_run(w->mgr);
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect(w, "check c-new");
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
    logged(w, "");
    runtime_listed(w, "u1/main=" GPU ":g0 u2");
    assert_int_equal(logged(w, "rebuilt"), 0);
    expect_nothing(w);
    assert_true(create(w, 12, "u2", "main", GPU ":g1", NULL));
    expect(w, "check c-new");
    assert_true(create(w, 13, "u3", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* ---- creates that come late ---- */

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

    restart(w);
    sandbox_removed(w, "s-u9");
    assert_true(create(w, 11, "u9", "main", GPU ":g1", NULL));
    expect_with(w, "verdict 11 refused 9:", "sandbox s-u9 was removed", NULL);
}

static void a_stop_of_a_sandbox_not_known_yet_counts(void **state)
{
    struct world *w = *state;

    restart(w);
    sandbox_stopping(w, "s-u8");
    sandbox_stopped(w, "s-u9");
    sandbox_stopping(w, "s-u9");
    for (uint64_t i = 8; i <= 9; i++) {
        assert_true(create(w, i, i == 8 ? "u8" : "u9", "main", GPU ":g1", NULL));
        expect_with(w, "verdict ", "refused 9:", "was told to stop", NULL);
    }
}

static void a_list_older_than_a_removal_does_not_bring_the_pod_back(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_listing(w->mgr);
    sandbox_removed(w, "s-u1");
    committed(w);
    ignore_all(w);
    runtime_listed(w, "u1/main=" GPU ":g0");
    expect_nothing(w);
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
    create_cancelled(w, 11);
    ignore_all(w);
    runtime_listed(w, "u1/main=" GPU ":g0"); /* a newer one is believed */
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
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
        containers[later] = (struct devicemgr_container){"c-1", "s-u1", "main", 1, true, &g1, 1};
        containers[!later] =
            (struct devicemgr_container){"c-0", "s-u1", "main", 0, true, i < 2 ? &g1 : &g0, 1};
        devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, containers, 2);
        devicemgr_container_removed(w->mgr, w->now_ms, "c-0");
        devicemgr_run(w->mgr);
        expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
        committed(w);
        assert_true(create(w, 12, "u2", "main", GPU ":g1", NULL));
        expect(w, "check c-1");
    }
}

/* ---- a stop that fails ---- */

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

    restart(w);
    stop_fails(w, "s-u9");
    assert_true(create(w, 11, "u9", "main", GPU ":g1", NULL));
    expect_nothing(w); /* waits for the list, and is not refused */
    sandbox_stopped(w, "s-u8");
    devicemgr_sandbox_stop_failed(w->mgr, w->now_ms, "s-u8");
    assert_true(create(w, 12, "u8", "main", GPU ":g1", NULL));
    expect_with(w, "verdict 12 refused 9:", "terminating", NULL);
}

/* ---- what a container's tokens do not name ---- */

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
    logged(w, "");
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

    restart(w);
    runtime_listed(w, "u1/main u2");
    ignore_all(w);
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
}

/* Where others use the runtime that is many times a minute. */
static void pods_that_hold_nothing_go_without_a_word(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    runtime_listed(w, "u1 u2");
    assert_int_equal(logged(w, "runtime listed: 2 pods, 0 allocations kept (0 of them rebuilt from "
                               "containers), 0 pods are gone"),
                     1);
    runtime_listed(w, "u1");
    runtime_listed(w, "u3 u4");
    assert_int_equal(logged(w, "runtime listed"), 0);
    gpus_up(w, "g0");
    container_made(w, 11, "u3", "main", GPU ":g0");
    logged(w, "");
    runtime_listed(w, "u4 u5");
    expect(w, "commit -allocation u3 *");
    assert_int_equal(logged(w, "2 pods, 0 allocations kept (0 of them rebuilt from containers), 3 "
                               "pods are gone since the last such line"),
                     1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_sandbox_frees_its_containers_devices),
        TEST(a_new_sandbox_of_the_uid_revives_the_pod),
        TEST(the_end_of_an_old_sandbox_does_not_touch_the_new_ones_containers),
        TEST(a_removed_newest_sandbox_ends_the_pod),
        TEST(a_create_in_a_removed_sandbox_is_refused),
        TEST(an_answer_from_a_stopped_sandbox_holds_nothing),
        TEST(an_answer_after_the_pods_end_is_ignored),
        TEST(a_removed_container_holds_nothing),
        TEST(pod_rows_ride_along),
        TEST(nothing_is_dropped_before_the_first_list),
        TEST(who_held_a_device_is_waited_for_until_the_list),
        TEST(what_the_list_does_not_show_does_not_run),
        TEST(after_a_restart_a_container_may_be_in_the_making),
        TEST(what_the_kubelet_hands_on_is_not_in_the_making),
        TEST(what_a_later_list_does_not_show_either_is_free),
        TEST(a_first_list_that_comes_late_is_enough),
        TEST(a_container_that_ends_is_not_the_one_in_the_making),
        TEST(nothing_is_in_the_making_in_a_stopped_sandbox),
        TEST(after_a_reboot_nothing_is_in_the_making),
        TEST(lists_are_asked_for_once_a_second_at_most),
        TEST(without_rows_nothing_new_is_given_out_before_a_later_list),
        TEST(without_rows_the_hold_may_end_before_the_list),
        TEST(a_row_that_makes_no_sense_is_a_lost_row),
        TEST(a_new_node_waits_for_one_list_only),
        TEST(pods_the_runtime_does_not_know_are_dropped),
        TEST(what_happens_while_the_list_is_made_is_newer_than_it),
        TEST(a_lost_checkpoint_is_rebuilt_from_running_containers),
        TEST(a_running_container_is_believed_more_than_the_checkpoint),
        TEST(a_garbage_token_on_a_running_container_is_told),
        TEST(a_container_outlives_its_sandbox),
        TEST(a_container_of_a_dead_sandbox_is_rebuilt),
        TEST(a_container_of_a_sandbox_not_listed_holds_its_device),
        TEST(an_end_of_the_old_sandbox_is_needed_for_its_containers),
        TEST(a_dead_sandbox_may_be_ready_again),
        TEST(a_stopped_sandbox_that_is_listed_ready_is_open_again),
        TEST(a_list_older_than_a_containers_end_does_not_bring_it_back),
        TEST(a_pod_whose_sandbox_died_is_not_over),
        TEST(nothing_is_dropped_before_a_kubelet_has_listed),
        TEST(nor_is_an_allocation_without_a_pod_row),
        TEST(without_a_kubelet_it_is_not_waited_for_ever),
        TEST(what_is_not_dropped_yet_is_the_kubelets_to_give_away),
        TEST(after_a_reboot_the_runtime_may_know_no_pod),
        TEST(a_pod_that_does_not_come_back_after_a_reboot_is_dropped),
        TEST(a_pod_whose_sandbox_outlived_a_reboot_does_not_come_back_without),
        TEST(an_allocation_without_a_pod_row_is_named_by_uid_and_dropped_with_its_pod),
        TEST(a_list_older_than_a_container_says_nothing_of_it),
        TEST(a_list_older_than_a_container_does_not_rebuild_its_predecessor),
        TEST(a_create_after_the_removal_does_not_bring_the_pod_back),
        TEST(a_removal_of_a_sandbox_not_known_yet_counts),
        TEST(a_stop_of_a_sandbox_not_known_yet_counts),
        TEST(a_list_older_than_a_removal_does_not_bring_the_pod_back),
        TEST(a_create_in_a_sandbox_the_list_had_no_more_is_late),
        TEST(a_create_that_the_stop_overtakes_holds_nothing),
        TEST(an_answer_of_the_old_sandbox_does_not_touch_the_new_ones_allocation),
        TEST(of_two_listed_attempts_the_later_one_holds),
        TEST(of_two_listed_attempts_the_later_one_is_rebuilt),
        TEST(a_sandbox_whose_stop_failed_is_open_again_once_it_is_listed_ready),
        TEST(a_sandbox_whose_stop_failed_may_be_stopped),
        TEST(a_new_stop_counts_anew),
        TEST(a_failed_stop_of_a_sandbox_not_known_yet_is_forgotten),
        TEST(what_an_edited_annotation_leaves_is_free),
        TEST(a_listed_container_has_what_its_tokens_name),
        TEST(what_an_older_attempt_runs_with_is_not_free),
        TEST(a_container_without_a_token_has_what_the_kubelet_gave_it),
        TEST(pods_that_hold_nothing_go_without_a_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
