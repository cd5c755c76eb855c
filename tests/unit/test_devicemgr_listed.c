/* The runtime's list: what is there, what is no more, who runs. */
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

#define WAIT_MS 120000

static void nothing_is_dropped_before_the_first_list(void **state)
{
    struct world *w = *state;

    restart_serving(w);
    sandbox_removed(w, "s-u1"); /* a newer one may exist */
    expect_nothing(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
    runtime_listed(w, "u2");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

static void who_held_a_device_is_waited_for_until_the_list(void **state)
{
    struct world *w = *state;

    restart_serving(w);
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

static void what_the_list_does_not_show_does_not_run(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1 u2");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

static void pods_the_runtime_does_not_know_are_dropped(void **state)
{
    struct world *w = *state;

    restart_serving(w);
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

/* Its pause process was killed, and it does not end by itself. */
static void a_container_outlives_its_sandbox(void **state)
{
    struct world *w = *state;

    for (int restarted = 0; restarted < 2; restarted++) {
        if (restarted)
            restart_serving(w);
        runtime_listed(w, "~u1/main u2");
        create_token(w, 11, "u2", GPU ":g0");
        expect(w, "check c-u1-main");
        container_checked(w, true);
        expect_with(w, "verdict 11 refused 14:", "held by container \"main\" of pod \"ns/u1\"",
                    "which still runs", NULL);
    }
    pass(w, OUTCOME_MS); /* nothing is in the making any more */
    ignore_all(w);
    runtime_listed(w, "~u1/main u2/x!");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    container_removed(w, "c-u1-main");
    expect(w, "allocate g0 *");
}

/* CRI-O stops no container in a sandbox whose pause process has ended, and says that it has. */
static void the_stop_of_a_dead_sandbox_ends_none(void **state)
{
    struct world *w = *state;

    pass(w, OUTCOME_MS); /* nothing is in the making any more */
    ignore_all(w);
    runtime_listed(w, "~u1/main u2");
    ignore_all(w);
    sandbox_stopping(w, "s-u1");
    sandbox_stopped(w, "s-u1");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused 14:", "held by container \"main\" of pod \"ns/u1\"", NULL);
    pass(w, LIST_EVERY_MS);
    expect(w, "list");
    create_token(w, 13, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    runtime_listed(w, "~u1/main! u2");
    expect(w, "allocate g0 *");
}

/* The machine went down before it was started: containerd lists it so for ever. */
static void but_nobody_starts_what_was_only_created_in_it(void **state)
{
    const struct devicemgr_sandbox sandboxes[] = {
        {.id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1"},
        {.id = "s-u2", .pod_uid = "u2", .pod_namespace = "ns", .pod_name = "u2", .ready = true}};
    const struct devicemgr_container created = {
        .id = "c-u1-main", .sandbox_id = "s-u1", .name = "main", .running = true, .created = true};
    struct world *w = *state;

    pass(w, OUTCOME_MS);
    ignore_all(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, &created, 1);
    create_token(w, 11, "u2", GPU ":g0"); /* its pod may come back */
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 11 refused 14:", "held by container \"main\" of pod \"ns/u1\"", NULL);
    sandbox_stopped(w, "s-u1");
    pass(w, LIST_EVERY_MS);
    ignore_all(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, &created, 1);
    devicemgr_run(w->mgr);
    ignore_all(w);
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

static void nor_in_a_dead_one_that_has_a_newer_beside_it(void **state)
{
    struct devicemgr_sandbox sandboxes[] = {
        {.id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1"},
        {.id = "s-u2", .pod_uid = "u2", .pod_namespace = "ns", .pod_name = "u2", .ready = true},
        {.id = "s-u1-1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .attempt = 1}};
    const struct devicemgr_container created = {
        .id = "c-u1-main", .sandbox_id = "s-u1", .name = "main", .running = true, .created = true};
    struct world *w = *state;

    pass(w, OUTCOME_MS);
    ignore_all(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, &created, 1);
    create_token(w, 11, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    create_cancelled(w, 11);
    pass(w, LIST_EVERY_MS);
    ignore_all(w);
    sandboxes[2].ready = true;
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 3, &created, 1);
    devicemgr_run(w->mgr);
    ignore_all(w);
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

static void nor_does_a_list_from_before_open_it_again(void **state)
{
    struct world *w = *state;

    pass(w, OUTCOME_MS);
    ignore_all(w);
    runtime_listed(w, "~u1/main u2");
    sandbox_stopping(w, "s-u1");
    devicemgr_runtime_listing(w->mgr);
    sandbox_stopped(w, "s-u1");
    runtime_listed(w, "u1/main u2"); /* asked for before the stop */
    ignore_all(w);
    assert_true(create(w, 11, "u1", "second", GPU ":g1", NULL));
    expect_with(w, "verdict 11 refused 9:", "terminating", NULL);
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

static void takes_annotations(struct world *w)
{
    static const char *const all[] = {"*"};

    w->settings.annotations = true;
    w->settings.namespaces = all;
    w->settings.namespaces_len = 1;
}

static void a_pod_whose_sandbox_died_is_not_over(void **state)
{
    struct world *w = *state;

    takes_annotations(w);
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
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
    create_cancelled(w, 13);
    ignore_all(w);
    sandbox_stopping(w, "s-u1"); /* once over, over */
    create_request(w, 14, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
}

/* The kubelet waits 2 min for a stop and 4 min for a new sandbox, and comes again 15 s later at
 * most. */
static void nor_while_the_runtime_hangs_in_its_network(void **state)
{
    struct world *w = *state;

    takes_annotations(w);
    world_fresh_listed(w);
    gpus_up(w, "g0");
    container_made(w, 1, "u1", "main", GPU ":g0");
    runtime_listed(w, "~u1/main! u2");
    for (int i = 0; i < 3; i++) {
        sandbox_stopping(w, "s-u1");
        pass(w, 120000);
        devicemgr_sandbox_stop_failed(w->mgr, w->now_ms, "s-u1");
        devicemgr_run(w->mgr);
        pass(w, 15000);
        ignore_all(w);
        create_request(w, 12, "u2", "main", GPU "=1");
        expect_with(w, "verdict 12 refused 8:", "asked 1, free 0", NULL);
    }
    sandbox_stopping(w, "s-u1");
    sandbox_stopped(w, "s-u1");
    pass(w, 240000 + 15000);
    ignore_all(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect_with(w, "verdict 13 refused 8:", "asked 1, free 0", NULL);
}

/* The runtime lists u1's dead sandbox; then u2 asks for all devices, g0 too, which u1's had. */
static void u2_asks(struct world *w, uint64_t number, const char *verdict)
{
    runtime_listed(w, "~u1/main! u2");
    ignore_all(w);
    create_request(w, number, "u2", "main", GPU "=2");
    expect(w, verdict);
}

static void a_pod_whose_sandbox_died_is_not_over_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    takes_annotations(w);
    world_fresh_listed(w);
    gpu = gpus_up(w, "g0");
    container_made(w, 1, "u1", "main", GPU ":g0");
    runtime_listed(w, "~u1/main! u2");
    sandbox_stopping(w, "s-u1"); /* the kubelet is about to make a new one */
    sandbox_stopped(w, "s-u1");
    plugin_list(w, gpu, "g0 g1"); /* its row takes the pod's along */
    expect(w, "commit pod u1, resource " GPU);
    committed(w);
    world_restart(w);
    plugin_back(w, "g0 g1");
    u2_asks(w, 11, "verdict 11 refused 8:*");
    pass(w, SANDBOX_REMADE_MS - 1);
    u2_asks(w, 12, "verdict 12 refused 8:*");
    pass(w, 1);
    u2_asks(w, 13, "allocate g0,g1 *");
}

static void nothing_is_dropped_before_a_kubelet_has_listed(void **state)
{
    struct world *w = *state;

    w->settings.kubelet_wait_ms = WAIT_MS;
    for (int told = 0; told < 2; told++) { /* before the list, or after it */
        restart_serving(w);
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
    restart_serving(w);
    runtime_listed(w, "u2");
    expect_nothing(w);
    kubelet_lists(w);
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

static void without_a_kubelet_it_is_not_waited_for_ever(void **state)
{
    struct world *w = *state;

    w->settings.kubelet_wait_ms = WAIT_MS;
    restart_serving(w);
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
    restart_serving(w);
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
        restart_serving(w);
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
        restart_serving(w);
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
        restart_serving(w);
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
    restart_serving(w);
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
    struct devicemgr_container old = {"c-old", "s-u1", "main", 0, true, &note, 1, false};
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
    forget_logs(w);
    runtime_listed(w, "u4 u5");
    expect(w, "commit -allocation u3 *");
    assert_int_equal(logged(w, "2 pods, 0 allocations kept (0 of them rebuilt from containers), 3 "
                               "pods are gone since the last such line"),
                     1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, u1_runs_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_dropped_before_the_first_list),
        TEST(who_held_a_device_is_waited_for_until_the_list),
        TEST(what_the_list_does_not_show_does_not_run),
        TEST(pods_the_runtime_does_not_know_are_dropped),
        TEST(what_happens_while_the_list_is_made_is_newer_than_it),
        TEST(a_container_outlives_its_sandbox),
        TEST(the_stop_of_a_dead_sandbox_ends_none),
        TEST(but_nobody_starts_what_was_only_created_in_it),
        TEST(nor_in_a_dead_one_that_has_a_newer_beside_it),
        TEST(nor_does_a_list_from_before_open_it_again),
        TEST(a_container_of_a_sandbox_not_listed_holds_its_device),
        TEST(an_end_of_the_old_sandbox_is_needed_for_its_containers),
        TEST(a_dead_sandbox_may_be_ready_again),
        TEST(a_stopped_sandbox_that_is_listed_ready_is_open_again),
        TEST(a_list_older_than_a_containers_end_does_not_bring_it_back),
        TEST(a_pod_whose_sandbox_died_is_not_over),
        TEST(nor_while_the_runtime_hangs_in_its_network),
        TEST(a_pod_whose_sandbox_died_is_not_over_after_a_restart),
        TEST(nothing_is_dropped_before_a_kubelet_has_listed),
        TEST(nor_is_an_allocation_without_a_pod_row),
        TEST(without_a_kubelet_it_is_not_waited_for_ever),
        TEST(what_is_not_dropped_yet_is_the_kubelets_to_give_away),
        TEST(after_a_reboot_the_runtime_may_know_no_pod),
        TEST(a_pod_that_does_not_come_back_after_a_reboot_is_dropped),
        TEST(a_pod_whose_sandbox_outlived_a_reboot_does_not_come_back_without),
        TEST(an_allocation_without_a_pod_row_is_named_by_uid_and_dropped_with_its_pod),
        TEST(a_list_older_than_a_container_says_nothing_of_it),
        TEST(a_list_older_than_a_removal_does_not_bring_the_pod_back),
        TEST(pods_that_hold_nothing_go_without_a_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
