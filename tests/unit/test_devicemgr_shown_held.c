/* What the kubelet gave away is shown as healthy to one that starts. */
#include "devicemgr/things/limits.h"
#include "shown_world.h"

/* ---- healthy if it is held: by an allocation the kubelet made ---- */

static void what_the_kubelet_gave_away_is_healthy_to_one_that_starts(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0 g1");

    expect_shown(w, GPU, "g0+ g1");
    plugin_list(w, gpu, "g0! g1!");
    expect_shown(w, GPU, "g0+ g1!");
    pass_stored(w, MASK_MS - 1);
    expect_shown(w, GPU, "g0+ g1!");
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + 1);
    pass_stored(w, 1);
    expect_shown(w, GPU, "g0!+ g1!");
    plugin_list(w, gpu, "g0 g1!");
    expect_shown(w, GPU, "g0+ g1!");
    plugin_list(w, gpu, "g1");
    expect_shown(w, GPU, "g1"); /* it is gone: the kubelet must not give it to another */
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1");
    lose(w);
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g1!"); /* the outage shows as well by then */
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1!");
    container_removed(w, "c-u1-main"); /* the next attempt gets the same */
    expect_shown(w, GPU, "g0+ g1!");
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g1!");
}

/* Nobody can tell whether a kubelet has started while the shim was away. */
static void a_start_of_the_shim_counts_as_one_of_the_kubelet(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    pass_stored(w, MASK_MS);
    restart(w);
    serve(w, "g1");
    expect_shown(w, GPU, "g0+ g1");
    runtime_listed(w, "u1/main");
    pass_stored(w, MASK_MS - 1);
    expect_shown(w, GPU, "g0+ g1");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g1");
}

static void without_a_mask_the_kubelet_sees_all_as_it_is(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    w->settings.mask_ms = 0;
    world_fresh_listed(w);
    kubelet_starts(w);
    gpu = u1_has_g0(w, "g0 g1");
    plugin_list(w, gpu, "g0! g1");
    expect_shown(w, GPU, "g0!+ g1");
    plugin_list(w, gpu, "g1");
    expect_shown(w, GPU, "g1");
}

/* A pod that was just admitted may take minutes to its first sandbox. */
static void a_pod_that_may_come_holds_its_devices_for_a_time(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u1=" GPU ":g9");
    expect_shown(w, GPU, "g0 g1 g9+");
    pass(w, POD_COMES_MS - 1);
    kubelet_starts(w);
    kubelet_holds(w, "u2=" GPU ":g0 u1=" GPU ":g9"); /* it goes on */
    expect_shown(w, GPU, "g0+ g1 g9+");
    pass(w, 1);
    expect_shown(w, GPU, "g0+ g1"); /* it was deleted before it began */
    sandbox_ran(w, "u1", "s-u1", 0);
    expect_shown(w, GPU, "g0+ g1 g9+"); /* or not */
}

/* What the kubelet's checkpoint had before the runtime's list, of a pod which is not in that list,
 * is of a pod that is gone: the file is written lazily. */
static void a_pod_that_is_not_listed_holds_nothing(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    restart(w);
    kubelet_holds(w, "u1=" GPU ":g9");
    serve(w, "g0 g1");
    expect_shown(w, GPU, "g0 g1 g9+");
    runtime_listed(w, "u2");
    expect_shown(w, GPU, "g0 g1");
    kubelet_holds(w, "u2=" GPU ":g9 u1=" GPU ":g9");
    expect_shown(w, GPU, "g0 g1 g9+"); /* another's */
    kubelet_holds(w, "u3=" GPU ":g8 u1=" GPU ":g9");
    expect_shown(w, GPU, "g0 g1 g8+"); /* told since */
}

/* Its sandbox was made while nobody looked. */
static void a_pod_that_only_a_create_names_is_there(void **state)
{
    struct world *w = *state;

    w->settings.start_without = true;
    w->settings.annotations = false;
    gpus_up(w, "g0 g1");
    restart(w);
    kubelet_holds(w, "u1=" GPU ":g9");
    serve(w, "g0 g1");
    runtime_listed(w, "u2");
    expect_shown(w, GPU, "g0 g1");
    assert_false(create_in(w, 11, "s-u1", "u1", "main", NULL, GPU "=1"));
    expect_shown(w, GPU, "g0 g1 g9+");
}

/* By u1, which was there before. */
static void reboot_with_g0_held(struct world *w)
{
    u1_has_g0(w, "g0 g1");
    w->settings.boot_id = "boot-2";
    restart(w);
}

/* In a new boot it may come as long as the kubelet admits its pods. */
static void a_pod_of_before_a_reboot_may_come(void **state)
{
    struct world *w = *state;

    reboot_with_g0_held(w);
    kubelet_holds(w, "u7=" GPU ":g9");
    serve(w, "g0 g1");
    runtime_listed(w, "");
    expect_shown(w, GPU, "g0+ g1 g9+");
    sandbox_ran(w, "u2", "s-u2", 0);
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g0+ g1");
}

static void static_sandbox_ran(struct world *w)
{
    const struct devicemgr_annotation source = {"kubernetes.io/config.source", "file"};
    const struct devicemgr_sandbox sandbox = {.id = "s-u8",
                                              .pod_uid = "u8",
                                              .pod_namespace = "kube-system",
                                              .pod_name = "apiserver",
                                              .ready = true,
                                              .annotations = &source,
                                              .annotations_len = 1};

    devicemgr_sandbox_ran(w->mgr, w->now_ms, &sandbox);
    devicemgr_run(w->mgr);
}

/* The power was out: the API server comes back long after the node, and the kubelet, which is told
 * of its pods then, admits those from before with their devices; the plugin is one of these. */
static void after_a_reboot_the_kubelet_may_be_told_late_of_its_pods(void **state)
{
    struct world *w = *state;

    reboot_with_g0_held(w);
    kubelet_holds(w, "u1=" GPU ":g0");
    lose(w);
    kubelet_lists(w);
    runtime_listed(w, "~u1/main!");
    static_sandbox_ran(w);
    pass_stored(w, 2 * GRACE_MS);
    expect_shown(w, GPU, "g0+ g1");
    sandbox_ran(w, "u2", "s-u2", 0);
    pass_stored(w, MASK_MS - 1);
    expect_shown(w, GPU, "g0+ g1");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g0!+ g1!");
    pass_stored(w, GRACE_MS - MASK_MS - 1);
    expect_resources(w, GPU);
    pass_stored(w, 1);
    expect_resources(w, "");
}

/* Nor when some pod has come since the reboot: it had been told of its pods when the shim ended. */
static void nor_after_the_first_of_them(void **state)
{
    struct world *w = *state;

    reboot_with_g0_held(w);
    serve(w, "g0 g1");
    kubelet_lists(w);
    runtime_listed(w, "");
    container_made(w, 20, "u2", "main", GPU ":g1");
    restart(w);
    kubelet_holds(w, "u1=" GPU ":g0");
    lose(w);
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g0!+ g1!+");
}

static void but_not_for_ever(void **state)
{
    struct world *w = *state;

    reboot_with_g0_held(w);
    kubelet_holds(w, "u1=" GPU ":g0");
    serve(w, "g1");
    kubelet_lists(w);
    runtime_listed(w, "~u1/main!");
    pass_stored(w, POD_RETURNS_MS + MASK_MS - 1);
    expect_shown(w, GPU, "g0+ g1");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g1");
}

static void what_is_held_is_shown_though_it_is_not_listed_any_more(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g1 g2@1 g10");

    container_made(w, 11, "u1", "main", GPU ":g2,g10");
    expect_shown(w, GPU, "g1 g2+@1 g10+");
    plugin_list(w, gpu, "g1 g3");
    expect_shown(w, GPU, "g1 g2+ g3 g10+");
    plugin_list(w, gpu, "");
    expect_shown(w, GPU, "g2+ g10+");
}

/* By which the kubelet that admits its pod again aligns it. */
static void what_is_not_listed_is_on_the_nodes_that_the_kubelet_knows(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g1@0 g2@1 g10@1"), version;

    container_made(w, 11, "u1", "main", GPU ":g2,g10");
    plugin_list(w, gpu, "g1@0 g3@0");
    expect_shown(w, GPU, "g1@0 g2+ g3@0 g10+");
    version = devicemgr_shown_version(w->mgr);
    kubelet_holds(w, "u1=" GPU ":g10,g2@1");
    expect_shown(w, GPU, "g1@0 g2+@1 g3@0 g10+");
    assert_int_not_equal(devicemgr_shown_version(w->mgr), version);
    version = devicemgr_shown_version(w->mgr);
    kubelet_holds(w, "u1=" GPU ":g10,g2@1");
    assert_int_equal(devicemgr_shown_version(w->mgr), version);
    kubelet_holds(w, "u1=" GPU ":g10,g2@1 u2=" GPU ":g1@1"); /* that one its plugin lists */
    expect_shown(w, GPU, "g1+@0 g2+@1 g3@0 g10+");
    version = devicemgr_shown_version(w->mgr);
    kubelet_holds(w, "");
    expect_shown(w, GPU, "g1@0 g2+ g3@0 g10+");
    assert_int_not_equal(devicemgr_shown_version(w->mgr), version);
}

static void a_create_under_way_holds_already(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0");

    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate *");
    plugin_list(w, gpu, "g0!");
    expect_shown(w, GPU, "g0+");
    create_cancelled(w, 11);
    expect_shown(w, GPU, "g0!");
}

static void what_cannot_be_stored_is_held_no_more(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    create_token(w, 11, "u1", GPU ":g0");
    allocated(w, "A=1");
    expect_shown(w, GPU, "g0+");
    commit_failed(w, "disk full");
    expect_shown(w, GPU, "g0");
}

static void devices_are_held_until_the_pod_is_over(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0");

    plugin_list(w, gpu, "g0!");
    sandbox_stopping(w, "s-u1");
    expect_shown(w, GPU, "g0+");
    sandbox_stopped(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    sandbox_ran(w, "u1", "s-u1-1", 1); /* it was only its sandbox */
    expect_shown(w, GPU, "g0+");
    sandbox_ended(w, "s-u1-1");
    sandbox_removed(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    sandbox_removed(w, "s-u1-1");
    expect_shown(w, GPU, "g0!");
}

/* The runtime lists only the sandbox of u1, which is not ready. */
static void list_dead_sandbox(struct world *w)
{
    const struct devicemgr_sandbox dead = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .ready = false};

    devicemgr_runtime_listed(w->mgr, w->now_ms, &dead, 1, NULL, 0);
    devicemgr_run(w->mgr);
}

/* After a reboot no sandbox is ready, and the kubelet admits all its pods again. */
static void a_pod_whose_sandbox_was_found_dead_is_not_over(void **state)
{
    struct world *w = *state;

    w->settings.grace_ms = 10 * GRACE_MS; /* of the next ones */
    u1_has_g0(w, "g0 g1");
    for (int i = 0; i < 2; i++) {
        restart(w);
        plugin_lost(w, w->endpoint, "refused");
        list_dead_sandbox(w);
        expect_shown(w, GPU, i == 0 ? "g0+ g1" : "g0+ g1!"); /* the plugin is away for long */
        pass_stored(w, MASK_MS);
    }
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1!");
    sandbox_ended(w, "s-u1"); /* the kubelet ends it, or is about to make a new one */
    list_dead_sandbox(w);     /* as is asked for then */
    pass_stored(w, SANDBOX_REMADE_MS - 1);
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1!");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g0! g1!");
}

static void what_was_held_is_after_a_restart(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    restart(w);
    expect_shown(w, GPU, "g0+ g1");
    serve(w, "g0! g1!");
    expect_shown(w, GPU, "g0+ g1!");
    runtime_listed(w, "u1/main=" GPU ":g0");
    expect_shown(w, GPU, "g0+ g1!");
    runtime_listed(w, "");
    expect_shown(w, GPU, "g0! g1!");
}

static void a_pod_that_was_over_is_so_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0");

    sandbox_ended(w, "s-u1");
    plugin_list(w, gpu, "g0! g1"); /* its row takes the pod's along */
    expect(w, "commit pod u1, resource " GPU);
    committed(w);
    restart(w);
    serve(w, "g0! g1");
    expect_shown(w, GPU, "g0+ g1"); /* it may have a newer sandbox */
    list_dead_sandbox(w);
    expect_shown(w, GPU, "g0! g1");
}

static void a_pod_that_may_get_a_new_sandbox_holds_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0");

    list_dead_sandbox(w);
    sandbox_ended(w, "s-u1");
    plugin_list(w, gpu, "g0! g1"); /* its row takes the pod's along */
    expect(w, "commit pod u1, resource " GPU);
    committed(w);
    restart(w);
    serve(w, "g0! g1");
    list_dead_sandbox(w);
    pass_stored(w, SANDBOX_REMADE_MS - 1);
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g0! g1");
}

/* ---- by the kubelet's own checkpoint ---- */

static void what_the_kubelets_checkpoint_has_is_held(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0! g1! g2!");
    kubelet_holds(w, "u1=" GPU ":g1");
    expect_shown(w, GPU, "g0! g1+ g2!");
    kubelet_holds(w, "u1=" GPU ":g1 u1=" GPU ":g2 u2=" GPU ":g9,g0"); /* g9: gone from the list */
    expect_shown(w, GPU, "g0+ g1+ g2+ g9+");
    kubelet_holds(w, "u2=" GPU ":g9 u1=" GPU ":g10");
    expect_shown(w, GPU, "g0! g1! g2! g9+ g10+");
    kubelet_holds(w, "");
    expect_shown(w, GPU, "g0! g1! g2!");
}

static void the_same_checkpoint_again_is_no_change(void **state)
{
    struct world *w = *state;
    uint64_t of_gpu, of_nic;

    gpus_up(w, "g0 g1");
    nics_up(w, "n0");
    kubelet_holds(w, "u1=" GPU ":g0,g1 u2=" NIC ":n0");
    of_gpu = version_of(w, GPU);
    of_nic = version_of(w, NIC);
    kubelet_holds(w, "u2=" NIC ":n0 u1=" GPU ":g1,g0"); /* its order means nothing */
    assert_int_equal(version_of(w, GPU), of_gpu);
    assert_int_equal(version_of(w, NIC), of_nic);
    kubelet_holds(w, "u1=" GPU ":g0,g1");
    assert_int_equal(version_of(w, GPU), of_gpu);
    assert_int_not_equal(version_of(w, NIC), of_nic);
    kubelet_holds(w, "u1=" GPU ":g0");
    assert_int_not_equal(version_of(w, GPU), of_gpu);
}

static void resources_not_shown_are_ignored(void **state)
{
    struct world *w = *state;

    kubelet_holds(w, "u1=" GPU ":g0");
    expect_resources(w, "");
    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    kubelet_holds(w, "u1=" GPU ":g0,g2");
    expect_resources(w, "");
    expect_shown(w, GPU, "");
    plugin_list(w, w->endpoint, "g1");
    expect_shown(w, GPU, "g0+ g1 g2+"); /* until they are */
}

static void a_pod_that_is_over_holds_nothing_whatever_the_file_says(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0!");
    kubelet_holds(w, "u1=" GPU ":g0"); /* never seen: it may be on its way */
    expect_shown(w, GPU, "g0+");
    sandbox_ran(w, "u1", "s-u1", 0);
    expect_shown(w, GPU, "g0+");
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    sandbox_ran(w, "u1", "s-u1-1", 1);
    expect_shown(w, GPU, "g0+");
    sandbox_removed(w, "s-u1-1");
    sandbox_removed(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    kubelet_holds(w, "");
    kubelet_holds(w, "u1=" GPU ":g0"); /* freed pods stay in it until its next write */
    expect_shown(w, GPU, "g0!");
    sandbox_ran(w, "u1", "s-u1-2", 2);
    expect_shown(w, GPU, "g0+");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_kubelet_gave_away_is_healthy_to_one_that_starts),
        TEST(a_start_of_the_shim_counts_as_one_of_the_kubelet),
        TEST(without_a_mask_the_kubelet_sees_all_as_it_is),
        TEST(a_pod_that_may_come_holds_its_devices_for_a_time),
        TEST(a_pod_that_is_not_listed_holds_nothing),
        TEST(a_pod_that_only_a_create_names_is_there),
        TEST(a_pod_of_before_a_reboot_may_come),
        TEST(after_a_reboot_the_kubelet_may_be_told_late_of_its_pods),
        TEST(nor_after_the_first_of_them),
        TEST(but_not_for_ever),
        TEST(what_is_held_is_shown_though_it_is_not_listed_any_more),
        TEST(what_is_not_listed_is_on_the_nodes_that_the_kubelet_knows),
        TEST(a_create_under_way_holds_already),
        TEST(what_cannot_be_stored_is_held_no_more),
        TEST(devices_are_held_until_the_pod_is_over),
        TEST(a_pod_whose_sandbox_was_found_dead_is_not_over),
        TEST(what_was_held_is_after_a_restart),
        TEST(a_pod_that_was_over_is_so_after_a_restart),
        TEST(a_pod_that_may_get_a_new_sandbox_holds_after_a_restart),
        TEST(what_the_kubelets_checkpoint_has_is_held),
        TEST(the_same_checkpoint_again_is_no_change),
        TEST(resources_not_shown_are_ignored),
        TEST(a_pod_that_is_over_holds_nothing_whatever_the_file_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
