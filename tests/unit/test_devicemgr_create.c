/* A create from arrival to answer. */
#include "devicemgr/machines/create.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

/* GPU g0 is there, and its plugin asked to allocate it for "main" of u1, number 11. The endpoint's
 * number. */
static uint64_t u1_allocating(struct world *w)
{
    uint64_t endpoint = gpus_up(w, "g0");

    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate *");
    return endpoint;
}

/* Another boot, of which only pod u1 is known; its plugin is back with g0. */
static void reboot_into(struct world *w, const char *boot_id)
{
    w->settings.boot_id = boot_id;
    world_restart(w);
    plugin_back(w, "g0");
    runtime_listed(w, "u1");
    ignore_all(w);
}

static void reboot(struct world *w)
{
    reboot_into(w, "boot-2");
}

/* ---- the way of a create ---- */

static void a_container_without_a_request_is_none_of_ours(void **state)
{
    struct world *w = *state;

    assert_false(create(w, 11, "u1", "main", NULL, NULL));
    expect_nothing(w);
}

static void a_token_is_allocated_committed_and_forwarded(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    create_token(w, 11, "u1", GPU ":g1,g0");
    expect(w, "allocate g0,g1 in 10000ms");
    expect_nothing(w);
    allocated(w, "GPUS=0,1 /dev/gpu0 note:vendor.com/x=y");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    expect_nothing(w);
    committed(w);
    expect(w, "verdict 11 forward GPUS=0,1 /dev/gpu0</dev/gpu0:rw vendor.com/x=y");
    expect_nothing(w);
}

static void the_next_attempt_uses_the_cached_options(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward MADE=1");
    expect_nothing(w);
}

static void a_restart_of_the_shim_loses_no_options(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_back(w, "g0");
    runtime_listed(w, "u1/main");
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward MADE=1");
    expect_nothing(w);
}

static void a_reboot_makes_the_options_stale(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    reboot(w);
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "allocate g0 in 10000ms");
    allocated_stored(w, "MADE=2");
    expect(w, "verdict 12 forward MADE=2");
}

/* It cannot be read, before the restart as after it: that is no proof of one boot. */
static void a_boot_that_is_not_known_is_another(void **state)
{
    struct world *w = *state;

    w->settings.boot_id = "";
    world_fresh_listed(w);
    u1_has_g0(w, "g0");
    reboot_into(w, "");
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "allocate g0 in 10000ms");
    allocated_stored(w, "MADE=2");
    expect(w, "verdict 12 forward MADE=2");
    reboot_into(w, "known");
    create_token(w, 13, "u1", GPU ":g0");
    expect(w, "allocate g0 in 10000ms");
}

static void never_refreshing_is_the_kubelets_own_rule(void **state)
{
    struct world *w = *state;

    w->settings.refresh = DEVICEMGR_REFRESH_NEVER;
    world_fresh_listed(w);
    u1_has_g0(w, "g0");
    reboot(w);
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward MADE=1");
}

static void with_refresh_plugin_a_new_registration_makes_them_stale(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    w->settings.refresh = DEVICEMGR_REFRESH_PLUGIN;
    world_fresh_listed(w);
    endpoint = u1_has_g0(w, "g0");
    plugin_lost(w, endpoint, "stream ended"); /* a redial alone does not */
    plugin_back(w, "g0");
    ignore_all(w);
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward MADE=1");
    create_answered(w, 12, "c2");
    gpus_up(w, "g0");
    create_token(w, 13, "u1", GPU ":g0");
    expect(w, "allocate g0 in 10000ms");
}

/* Found by tests/sim: the count of registrations began anew with the removed resource. */
static void with_refresh_plugin_a_removed_resource_registered_again_makes_them_stale(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    w->settings.refresh = DEVICEMGR_REFRESH_PLUGIN;
    world_fresh_listed(w);
    endpoint = u1_has_g0(w, "g0");
    plugin_lost(w, endpoint, "stream ended");
    plugin_lost(w, w->endpoint, "no such file");
    pass(w, GRACE_MS);
    committed(w);
    gpus_up(w, "g0");
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "allocate g0 in 10000ms");
}

static void pre_start_is_called_every_time_and_after_the_commit(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", true, false);
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate *");
    allocated_stored(w, "A=1");
    expect(w, "prestart g0 in 30000ms");
    prestarted(w, 0, NULL);
    expect(w, "verdict 11 forward A=1");
    create_answered(w, 11, "c1");
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "prestart g0 in 30000ms");
    prestarted(w, 2, "reset failed\nbadly");
    expect(w,
           "verdict 12 refused 14: container \"main\" of pod \"ns/u1\": resource vendor.com/gpu: "
           "PreStartContainer of plugin endpoint \"gpu.sock\" failed: reset failed badly; device "
           "ids g0");
}

static void options_of_several_resources_are_merged_in_name_order(void **state)
{
    struct world *w = *state;
    uint64_t nic, gpu;

    gpus_up(w, "g0");
    nics_up(w, "n0");
    create_token(w, 11, "u1", GPU ":g0 " NIC ":n0");
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
    gpu = w->call;
    nic = gpu - 1;
    allocated(w, "WHO=gpu G=1");
    expect_nothing(w);
    w->call = nic;
    allocated(w, "WHO=nic N=1");
    expect(w, "commit allocation u1 main other.com/nic, allocation u1 main vendor.com/gpu, pod u1");
    forget_logs(w);
    committed(w);
    expect(w, "verdict 11 forward WHO=nic N=1 G=1");
    assert_int_equal(logged(w, "disagree about 1 runtime options, the first wins: WHO"), 1);
    create_answered(w, 11, "c1");
    create_token(w, 12, "u1", GPU ":g0 " NIC ":n0");
    assert_int_equal(logged(w, "disagree"), 0); /* once is enough */
}

static void what_the_shim_chose_is_written_on_the_container(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"ns"};
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    gpus_up(w, "g0 g1");
    create_request(w, 11, "u1", "main", GPU "=2");
    expect(w, "allocate g0,g1 *");
    allocated_stored(w, "note:devices.cri-device-shim/vendor.com_gpu=forged A=1");
    expect(w, "verdict 11 forward A=1 devices.cri-device-shim/vendor.com_gpu="
              "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\",\"g1\"]}");
}

/* ---- hold ---- */

/* It would be listed as who holds them. */
static void a_plugin_names_no_devices_of_others(void **state)
{
    struct world *w = *state;
    const char *planted = "note:devices.cri-device-shim/other.com_nic=forged "
                          "note:devices.cri-device-shim/main=vendor.com/gpu=1 note:mine=1 A=1";

    gpus_up(w, "g0 g1");
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate g0 *");
    allocated_stored(w, planted);
    expect(w, "verdict 11 forward A=1 mine=1");
    assert_int_equal(logged(w, "annotations under \"devices.cri-device-shim/\""), 1);
    create_answered(w, 11, "c1");
    world_restart(w);
    runtime_listed(w, "u1");
    plugin_back(w, "g0 g1");
    ignore_all(w);
    create_token(w, 12, "u1", GPU ":g0"); /* by the checkpoint */
    expect(w, "verdict 12 forward A=1 mine=1");
    create_token(w, 13, "u2", GPU ":g1");
    expect(w, "allocate g1 *");
    allocated_stored(w, planted);
    expect(w, "verdict 13 forward A=1 mine=1");
    assert_int_equal(logged(w, "annotations under"), 1); /* once is enough */
}

static void a_create_is_held_until_the_plugin_is_back(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0");

    plugin_lost(w, endpoint, "connection closed");
    expect(w, "open vendor.com/gpu gpu.sock");
    create_token(w, 11, "u1", GPU ":g0");
    plugin_stop_stored(w, GPU);
    pass(w, HOLD_MS - STOP_STORE_MS - 1);
    expect_nothing(w);
    plugin_options(w, w->endpoint, false, false);
    expect_nothing(w);
    plugin_list(w, w->endpoint, "g0");
    expect(w, "allocate g0 in 10000ms");
}

static void a_held_create_is_refused_with_all_that_is_known(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_lost(w, endpoint, "connection closed");
    plugin_lost(w, w->endpoint, "connection refused");
    ignore_all(w);
    plugin_stop_stored(w, GPU);
    pass(w, 7000 - STOP_STORE_MS);
    create_token(w, 11, "u1", GPU ":g0,g1");
    pass(w, HOLD_MS);
    expect(w,
           "verdict 11 refused 14: container \"main\" of pod \"ns/u1\": resource vendor.com/gpu: "
           "plugin endpoint \"gpu.sock\" stopped 12s ago (connection closed), stop grace period "
           "ends in 4m48s, then the resource is removed; device ids g0,g1");
    expect_nothing(w);
}

/* The kubelet tries again, and finds the next daemon. */
static void a_drain_ends_what_waits_and_nothing_else(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    create_token(w, 10, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
    create_token(w, 11, "u1", GPU ":g9");
    ignore_all(w);
    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_with(w, "verdict 11 refused 14:", "not listed by the plugin: device ids g9",
                "; the shim is being stopped", NULL);
    create_token(w, 12, "u1", GPU ":g9");
    expect_with(w, "verdict 12 refused 14:", "; the shim is being stopped", NULL);
    allocated_stored(w, "A=1");
    expect_with(w, "verdict 10 forward", NULL);
}

static void an_unhealthy_device_is_waited_for(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0! g1");

    create_token(w, 11, "u1", GPU ":g0,g1");
    create_token(w, 12, "u2", GPU ":g9");
    pass(w, 1000);
    expect_nothing(w);
    plugin_list(w, endpoint, "g0 g1");
    expect(w, "allocate g0,g1 *");
    pass(w, HOLD_MS);
    expect_with(w, "verdict 12 refused 14:", "u2", GPU, "not listed by the plugin: device ids g9",
                NULL);
}

static void an_unhealthy_device_is_refused_with_since_when(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_list(w, endpoint, "g0! g1");
    pass(w, 60000);
    create_token(w, 11, "u1", GPU ":g0,g1");
    pass(w, HOLD_MS);
    expect_with(w, "verdict 11 refused 14:", "unhealthy for 1m5s: device ids g0", NULL);
}

static void a_hold_ends_before_the_clients_deadline(void **state)
{
    struct world *w = *state;

    plugin_register(w, 1, GPU, "gpu.sock");
    ignore_all(w);
    w->deadline_ms = w->now_ms + 2000;
    create_token(w, 11, "u1", GPU ":g0");
    pass(w, 2000 - DEADLINE_MARGIN_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect_with(w, "verdict 11 refused 14:", "\"gpu.sock\" has been connecting for 1s", NULL);
}

static void a_hold_never_lasts_longer_than_a_minute(void **state)
{
    struct world *w = *state;

    w->settings.hold_ms = 3600000;
    world_fresh(w);
    plugin_register(w, 1, GPU, "gpu.sock");
    ignore_all(w);
    create_token(w, 11, "u1", GPU ":g0");
    pass(w, HOLD_MS_MAX - 1);
    expect_nothing(w);
    pass(w, 1);
    expect_with(w, "verdict 11 refused 14:", NULL);
}

static void a_plugin_without_a_list_is_waited_for(void **state)
{
    struct world *w = *state;

    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    create_token(w, 11, "u1", GPU ":g0");
    pass(w, HOLD_MS);
    expect_with(w, "verdict 11 refused 14:", "\"gpu.sock\" has sent no device list for 5s", NULL);
}

static void a_removed_resource_ends_the_hold(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0");

    plugin_lost(w, endpoint, "gone");
    plugin_lost(w, w->endpoint, "gone");
    pass(w, GRACE_MS - 1000);
    ignore_all(w);
    create_token(w, 11, "u1", GPU ":g0");
    pass(w, 999);
    expect_nothing(w);
    pass(w, 1);
    expect_with(w, "verdict 11 refused 9:", GPU, "not registered on this node", "none", NULL);
}

/* ---- settings of one resource ---- */

static void the_shortest_hold_of_what_is_waited_for_counts(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;
    uint64_t gpu;

    own.hold_ms = 1000;
    world_fresh_with(w, &own);
    plugin_register(w, 1, NIC, "nic.sock");
    plugin_register(w, 2, GPU, "gpu.sock");
    gpu = w->endpoint;
    ignore_all(w);
    create_token(w, 11, "u1", GPU ":g0 " NIC ":n0");
    create_token(w, 12, "u2", NIC ":n0");
    pass(w, 999);
    expect_nothing(w);
    pass(w, 1);
    expect_with(w, "verdict 11 refused 14:", "connecting for 1s", NULL);
    pass(w, HOLD_MS - 1001);
    expect_nothing(w);
    pass(w, 1);
    expect_with(w, "verdict 12 refused 14:", NIC, NULL);
    plugin_options(w, gpu, false, false);
    plugin_list(w, gpu, "g0");
    ignore_all(w);
    create_token(w, 13, "u1", GPU ":g0 " NIC ":n0");
    pass(w, 1001); /* the GPU is there, the other is waited for in its own time */
    expect_nothing(w);
}

static void a_hold_of_zero_refuses_at_once(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.hold_ms = 0;
    world_fresh_with(w, &own);
    plugin_register(w, 1, GPU, "gpu.sock");
    ignore_all(w);
    create_token(w, 11, "u1", GPU ":g0");
    expect_with(w, "verdict 11 refused 14:", GPU, NULL);
}

static void a_resource_may_have_its_own_allocate_timeout(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.allocate_timeout_ms = 700;
    world_fresh_with(w, &own);
    gpus_up(w, "g0");
    nics_up(w, "n0");
    create_token(w, 11, "u1", GPU ":g0 " NIC ":n0");
    expect(w, "allocate n0 in 10000ms");
    expect(w, "allocate g0 in 700ms");
}

static void a_resource_may_have_its_own_refresh_rule(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.refresh = DEVICEMGR_REFRESH_NEVER;
    world_fresh_with(w, &own);
    gpus_up(w, "g0");
    nics_up(w, "n0");
    container_made(w, 11, "u1", "main", GPU ":g0");
    container_made(w, 12, "u1", "other", NIC ":n0");
    w->settings.boot_id = "boot-2";
    world_restart(w);
    runtime_listed(w, "u1");
    gpus_up(w, "g0");
    nics_up(w, "n0");
    create_token(w, 13, "u1", GPU ":g0");
    expect(w, "verdict 13 forward MADE=1");
    assert_true(create(w, 14, "u1", "other", NIC ":n0", NULL));
    expect(w, "allocate n0 *");
}

/* ---- refusals by the plugin, the pod, the client ---- */

static void the_plugins_own_words_are_passed_on(void **state)
{
    struct world *w = *state;

    u1_allocating(w);
    allocate_failed(w, 2, "no\x01 such card\nsorry");
    expect(w,
           "verdict 11 refused 14: container \"main\" of pod \"ns/u1\": resource vendor.com/gpu: "
           "Allocate of plugin endpoint \"gpu.sock\" failed: no? such card sorry; device ids g0");
    /* nothing stays reserved */
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

static void a_late_plugin_is_named_with_how_late(void **state)
{
    struct world *w = *state;

    u1_allocating(w);
    pass(w, ALLOCATE_TIMEOUT_MS);
    allocate_failed(w, 4, "deadline exceeded");
    expect_with(w, "verdict 11 refused 4:",
                "Allocate of plugin endpoint \"gpu.sock\" was not "
                "answered within 10s",
                "g0", NULL);
}

static void allocate_never_waits_past_the_clients_deadline(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    w->deadline_ms = w->now_ms + 3000;
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate g0 in 2800ms");
    pass(w, 2800);
    expect_with(w, "verdict 11 refused 4:", "Allocate", "within 2s", "client's deadline", NULL);
    expect(w, "cancel");
    allocated(w, "A=1"); /* too late: no one is interested */
    expect_nothing(w);
}

static void an_expired_deadline_is_not_waited_for(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    w->deadline_ms = 100; /* long over */
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate g0 in 1ms");
    expect_with(w, "verdict 11 refused 4:", NULL);
    expect(w, "cancel");
}

static void a_pod_that_stops_gets_no_container(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    sandbox_ran(w, "u1", "s-u1", 0);
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate *");
    sandbox_stopping(w, "s-u1");
    expect_with(w, "verdict 11 refused 9:", "the pod is terminating: its sandbox s-u1", NULL);
    expect(w, "cancel");
    create_token(w, 12, "u1", GPU ":g0");
    expect_with(w, "verdict 12 refused 9:", "terminating", NULL);
}

static void the_clients_retry_takes_over(void **state)
{
    struct world *w = *state;

    u1_allocating(w);
    create_token(w, 12, "u1", GPU ":g0");
    expect_with(w, "verdict 11 refused 10:", "taken over", NULL);
    expect(w, "cancel");
    expect(w, "allocate g0 *");
    allocated_stored(w, "A=1");
    expect(w, "verdict 12 forward A=1");
}

static void a_cancel_in_allocate_gives_the_devices_back(void **state)
{
    struct world *w = *state;

    u1_allocating(w);
    create_cancelled(w, 11);
    expect(w, "cancel");
    expect_nothing(w);
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

static void a_cancel_in_commit_leaves_the_allocation_for_the_retry(void **state)
{
    struct world *w = *state;

    u1_allocating(w);
    allocated(w, "A=1");
    expect(w, "commit *");
    create_cancelled(w, 11);
    create_token(w, 12, "u1", GPU ":g0");
    expect_nothing(w); /* waits for that commit */
    committed(w);
    expect(w, "verdict 12 forward A=1");
}

static void a_cancel_before_the_verdict_is_told_stops_it(void **state)
{
    struct world *w = *state;
    struct devicemgr_annotation bad = {"devices.cri-device-shim/x", "{"};
    struct devicemgr_create request = {.sandbox_id = "s",
                                       .pod_uid = "u",
                                       .pod_namespace = "n",
                                       .pod_name = "p",
                                       .container = "c",
                                       .deadline_ms = UINT64_MAX,
                                       .container_annotations = &bad,
                                       .container_annotations_len = 1};

    assert_true(devicemgr_create(w->mgr, w->now_ms, 11, &request));
    devicemgr_create_cancelled(w->mgr, w->now_ms, 11);
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

static void an_unknown_outcome_keeps_the_devices(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_forwarded(w, 11, "u1", "main", GPU ":g0");
    create_cancelled(w, 11);
    runtime_listed(w, "u1 u2"); /* the runtime may be at it still */
    create_token(w, 12, "u2", GPU ":g0");
    pass(w, OUTCOME_MS);
    expect(w, "list");
    pass(w, HOLD_MS - OUTCOME_MS);
    expect_with(w, "verdict 12 refused 14:",
                "device g0 is held by container \"main\" of pod "
                "\"ns/u1\"",
                "not known whether it runs", NULL);
    runtime_listed(w, "u1/main! u2");
    create_token(w, 13, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

static void a_plugin_lost_in_allocate_holds_the_create(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = u1_allocating(w), first = w->call;

    plugin_lost(w, endpoint, "killed");
    expect(w, "open *");
    allocate_failed(w, 14, "a late result of the lost endpoint");
    expect_nothing(w);
    plugin_back(w, "g0");
    expect(w, "allocate g0 *");
    assert_int_not_equal(w->call, first);
    allocated_stored(w, "A=1");
    expect(w, "verdict 11 forward A=1");
}

static void a_plugin_lost_before_the_verdict_holds_the_create(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", true, false);

    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate *");
    allocated(w, "A=1");
    expect(w, "commit *");
    plugin_lost(w, endpoint, "killed");
    expect(w, "open *");
    committed(w);
    expect_nothing(w);
    plugin_options(w, w->endpoint, true, false);
    plugin_list(w, w->endpoint, "g0");
    expect(w, "prestart g0 *");
    prestarted(w, 0, NULL);
    expect(w, "verdict 11 forward A=1");
}

static void the_late_one_of_several_plugins_is_named(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    nics_up(w, "n0");
    w->deadline_ms = w->now_ms + 3000;
    create_token(w, 11, "u1", GPU ":g0 " NIC ":n0");
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
    w->call--;
    allocated(w, "N=1");
    pass(w, 3000);
    expect_with(w, "verdict 11 refused 4:", "resource " GPU,
                "Allocate of plugin endpoint "
                "\"gpu.sock\" was not answered",
                NULL);
    expect(w, "cancel");
    expect_nothing(w);
}

static void a_hold_is_logged_once(void **state)
{
    struct world *w = *state;

    plugin_register(w, 1, GPU, "gpu.sock");
    create_token(w, 11, "u1", GPU ":g0");
    pass(w, 1000);
    plugin_options(w, w->endpoint, false, false);
    assert_int_equal(logged(w, "held: container \"main\" of pod \"ns/u1\": resource " GPU), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_container_without_a_request_is_none_of_ours),
        TEST(a_token_is_allocated_committed_and_forwarded),
        TEST(the_next_attempt_uses_the_cached_options),
        TEST(a_restart_of_the_shim_loses_no_options),
        TEST(a_reboot_makes_the_options_stale),
        TEST(a_boot_that_is_not_known_is_another),
        TEST(never_refreshing_is_the_kubelets_own_rule),
        TEST(with_refresh_plugin_a_new_registration_makes_them_stale),
        TEST(with_refresh_plugin_a_removed_resource_registered_again_makes_them_stale),
        TEST(pre_start_is_called_every_time_and_after_the_commit),
        TEST(options_of_several_resources_are_merged_in_name_order),
        TEST(what_the_shim_chose_is_written_on_the_container),
        TEST(a_plugin_names_no_devices_of_others),
        TEST(a_create_is_held_until_the_plugin_is_back),
        TEST(a_held_create_is_refused_with_all_that_is_known),
        TEST(a_drain_ends_what_waits_and_nothing_else),
        TEST(an_unhealthy_device_is_waited_for),
        TEST(an_unhealthy_device_is_refused_with_since_when),
        TEST(a_hold_ends_before_the_clients_deadline),
        TEST(a_hold_never_lasts_longer_than_a_minute),
        TEST(a_plugin_without_a_list_is_waited_for),
        TEST(a_removed_resource_ends_the_hold),
        TEST(the_plugins_own_words_are_passed_on),
        TEST(a_late_plugin_is_named_with_how_late),
        TEST(allocate_never_waits_past_the_clients_deadline),
        TEST(an_expired_deadline_is_not_waited_for),
        TEST(a_pod_that_stops_gets_no_container),
        TEST(the_clients_retry_takes_over),
        TEST(a_cancel_in_allocate_gives_the_devices_back),
        TEST(a_cancel_in_commit_leaves_the_allocation_for_the_retry),
        TEST(a_cancel_before_the_verdict_is_told_stops_it),
        TEST(an_unknown_outcome_keeps_the_devices),
        TEST(a_plugin_lost_in_allocate_holds_the_create),
        TEST(a_plugin_lost_before_the_verdict_holds_the_create),
        TEST(the_late_one_of_several_plugins_is_named),
        TEST(a_hold_is_logged_once),
        TEST(the_shortest_hold_of_what_is_waited_for_counts),
        TEST(a_hold_of_zero_refuses_at_once),
        TEST(a_resource_may_have_its_own_allocate_timeout),
        TEST(a_resource_may_have_its_own_refresh_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
