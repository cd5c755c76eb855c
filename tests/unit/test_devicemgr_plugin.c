/* The life of the plugins' endpoints, and their lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static void a_lost_endpoint_is_dialled_once_more_at_once(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "stream ended");
    assert_string_equal(w->about, GPU " -/- -");
    expect(w, "open vendor.com/gpu gpu.sock");
    assert_int_not_equal(w->endpoint, endpoint);
    plugin_lost(w, w->endpoint, "connection refused");
    expect_nothing(w);
    plugin_stop_stored(w, GPU);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms - STOP_STORE_MS + GRACE_MS);
}

static void a_plugin_that_flaps_is_not_dialled_for_ever(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "stream ended");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    ignore_all(w);
    pass(w, REDIAL_AGAIN_MS - 1);
    plugin_lost(w, w->endpoint, "stream ended");
    expect_nothing(w);
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    plugin_lost(w, w->endpoint, "stream ended");
    expect(w, "open *");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    pass(w, REDIAL_AGAIN_MS);
    plugin_lost(w, w->endpoint, "stream ended");
    expect(w, "open *");
}

static void after_the_grace_the_resource_is_gone(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    container_made(w, 11, "u1", "main", GPU ":g0");
    plugin_lost(w, endpoint, "killed");
    plugin_lost(w, w->endpoint, "connection refused");
    ignore_all(w);
    forget_logs(w);
    plugin_stop_stored(w, GPU);
    pass(w, GRACE_MS - STOP_STORE_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "commit -resource vendor.com/gpu");
    committed(w);
    assert_int_equal(logged(w, "removed, its plugin has not come back within 5m0s"), 1);
    assert_false(world_stored(w, "resource " GPU));
    assert_true(world_stored(w, "allocation u1 main " GPU)); /* allocations stay */
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 12 forward MADE=1");
    assert_string_equal(w->about, "- ns/u1 main");
}

static void a_resource_may_have_its_own_grace(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;
    uint64_t endpoint;

    own.grace_ms = 2000;
    world_fresh_with(w, &own);
    plugin_up(w, NIC, "nic.sock", "n0", false, false);
    plugin_lost(w, w->endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    plugin_stop_stored(w, NIC);
    endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    plugin_lost(w, endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    assert_int_equal(logged(w, "stop grace period ends in 2s"), 1);
    plugin_stop_stored(w, GPU);
    pass(w, 999);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "commit -resource vendor.com/gpu");
    assert_int_equal(logged(w, "has not come back within 2s"), 1);
    assert_true(world_stored(w, "resource " NIC));
}

static void the_stop_time_is_that_of_the_first_loss(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
    pass(w, GRACE_MS / 2);
    plugin_register(w, 8, GPU, "gpu.sock"); /* fails, too: the clock runs on */
    plugin_lost(w, w->endpoint, "refused");
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + GRACE_MS / 2);
}

static void a_plugin_that_never_lists_counts_as_stopped_in_time(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    pass(w, FIRST_LIST_MS - 1);
    forget_logs(w);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    pass(w, HOLD_MS);
    assert_int_equal(logged(w, "has sent no device list for 30s, stop grace period ends in 5m0s"),
                     1);
    expect_with(w, "verdict 11 refused 14:", "\"gpu.sock\" has sent no device list for 34s",
                "then the resource is removed", NULL);
    expect_nothing(w); /* its connection stays, and nothing is worth storing */
    pass(w, GRACE_MS - HOLD_MS);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "close");
    expect_nothing(w);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 12 refused 9:", "not registered on this node",
                "with the kubelet itself now, make the pod anew", NULL);
}

static void a_first_list_is_welcome_late(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    pass(w, FIRST_LIST_MS + GRACE_MS - 1);
    ignore_all(w);
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu");
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* The plugin of a resource in its grace registers so often that the resource's last moment comes
 * `before_ms` after the last of them, without a list. The endpoint's number. */
static uint64_t register_until_the_end(struct world *w, uint64_t before_ms)
{
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    container_made(w, 11, "u1", "main", GPU ":g0");
    plugin_lost(w, w->endpoint, "killed");
    plugin_lost(w, w->endpoint, "connection refused");
    ignore_all(w);
    plugin_stop_stored(w, GPU);
    pass(w, GRACE_MS - STOP_STORE_MS - 1);
    plugin_register(w, 8, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    pass(w, 1 + FIRST_LIST_MS - before_ms - 1);
    plugin_register(w, 9, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    return w->endpoint;
}

static void one_that_registered_well_is_not_cut_off(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = register_until_the_end(w, 1000);

    forget_logs(w);
    pass(w, 1000);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "commit -resource " GPU); /* removed in time, and waited for as a new one */
    expect_nothing(w);
    committed(w);
    assert_int_equal(logged(w, "its plugin registered 1s ago, and is waited for as a new one"), 1);
    plugin_list(w, endpoint, "g0");
    expect(w, "commit resource " GPU);
    committed(w);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 12 forward MADE=1"); /* its pods' allocations stay */
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

static void one_that_only_registers_again_and_again_holds_nothing(void **state)
{
    struct world *w = *state;

    register_until_the_end(w, 1000);
    for (uint64_t i = 0; i < 2; i++) {
        pass(w, FIRST_LIST_MS - 1);
        plugin_register(w, 20 + i, GPU, "gpu.sock");
        plugin_options(w, w->endpoint, false, false);
    }
    committed(w);
    assert_false(world_stored(w, "resource " GPU)); /* others may publish the name */
    ignore_all(w);
    pass(w, GRACE_MS + FIRST_LIST_MS);
    expect(w, "close");
    expect_nothing(w);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 12 refused 9:", "not registered on this node", NULL);
}

static void one_that_is_being_dialled_at_the_end_is_waited_for(void **state)
{
    struct world *w = *state;

    register_until_the_end(w, 1000);
    plugin_register(w, 10, GPU, "gpu.sock");
    ignore_all(w);
    forget_logs(w);
    pass(w, 1001);
    expect(w, "commit -resource " GPU);
    expect_nothing(w); /* neither hung up nor told that it failed */
    committed(w);
    assert_int_equal(logged(w, "its plugin registered 1s ago, and is waited for as a new one"), 1);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect_nothing(w);
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 10");
    plugin_list(w, w->endpoint, "g0");
    expect(w, "verdict 12 forward MADE=1");
    expect(w, "commit resource " GPU);
}

static void one_that_is_being_dialled_at_the_end_may_fail(void **state)
{
    struct world *w = *state;

    register_until_the_end(w, 1000);
    plugin_register(w, 10, GPU, "gpu.sock");
    ignore_all(w);
    pass(w, 1001);
    expect(w, "commit -resource " GPU);
    committed(w);
    plugin_lost(w, w->endpoint, "connection refused");
    expect(w, "register 10 refused 2: failed to dial device plugin: connection refused");
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 12 refused 9:", "not registered on this node", NULL);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

static void a_plugin_that_drops_only_its_stream_is_back_at_once(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    container_made(w, 11, "u1", "main", GPU ":g0");
    for (int i = 0; i < 3; i++) {
        plugin_lost(w, w->endpoint, "stream ended");
        expect(w, "open vendor.com/gpu gpu.sock");
        plugin_options(w, w->endpoint, false, false);
        plugin_list(w, w->endpoint, "g0");
        pass(w, REDIAL_AGAIN_MS);
    }
    expect_nothing(w); /* nothing to store, nobody refused */
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 12 forward MADE=1");
}

static void a_plugin_whose_socket_is_replaced_may_list_other_devices(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    container_made(w, 11, "u1", "main", GPU ":g0");
    plugin_lost(w, w->endpoint, "reset");
    expect(w, "open vendor.com/gpu gpu.sock"); /* by name: whoever serves there now */
    plugin_options(w, w->endpoint, true, false);
    plugin_list(w, w->endpoint, "g1 g2");
    expect(w, "commit resource vendor.com/gpu");
    committed(w);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    pass(w, HOLD_MS);
    expect_with(w, "verdict 12 refused 14:", "not listed by the plugin: device ids g0", NULL);
}

static void restored_resources_start_in_grace_and_are_dialled(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, w->endpoint, "connection refused");
    expect_nothing(w);
    plugin_stop_stored(w, GPU);
    pass(w, GRACE_MS - STOP_STORE_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "commit -resource vendor.com/gpu");
}

/* Lost, refused at the redial, and stored as that: STOP_STORE_MS of the grace are over. */
static void lose_gpu(struct world *w)
{
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    plugin_stop_stored(w, GPU);
}

/* Root's is told from another's by the port, which refuses what is neither's. */
static void a_socket_is_dialled_as_that_of_who_registered_it(void **state)
{
    struct world *w = *state;

    w->uid = 1234;
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open vendor.com/gpu gpu.sock of 1234");
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock of 1234");
    w->uid = 0;
    plugin_register(w, 8, GPU, "other.sock");
    expect(w, "close");
    expect(w, "open vendor.com/gpu other.sock");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    ignore_all(w);
    committed(w);
    plugin_register(w, 9, GPU, "gpu.sock");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    world_restart(w);
    expect(w, "open vendor.com/gpu other.sock"); /* which listed last */
}

static void one_socket_may_be_registered_by_another_user(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    w->uid = 1234;
    plugin_register(w, 8, GPU, "gpu.sock");
    ignore_all(w);
    plugin_lost(w, w->endpoint, "refused");
    expect(w, "register 8 refused 2:*");
    expect(w, "open vendor.com/gpu gpu.sock"); /* as it was good last */
    plugin_register(w, 9, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu");
    committed(w);
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock of 1234");
}

static void the_grace_goes_on_through_a_restart(void **state)
{
    struct world *w = *state;

    lose_gpu(w);
    pass(w, GRACE_MS / 2);
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, w->endpoint, "refused");
    w->now_ms += 1000; /* the shim is away itself: the clock goes on */
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, w->endpoint, "refused");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    pass(w, HOLD_MS);
    expect_with(w, "verdict 11 refused 14:", "stopped 2m37s ago (killed)",
                "grace period ends in 2m23s", NULL);
    pass(w, GRACE_MS / 2 - HOLD_MS - 1000 - STOP_STORE_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "commit -resource vendor.com/gpu");
}

static void a_grace_that_ended_during_a_restart_is_over_unless_the_plugin_serves(void **state)
{
    struct world *w = *state;

    lose_gpu(w);
    w->now_ms += GRACE_MS;
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock"); /* it may have come back meanwhile */
    pass(w, 0);
    expect_nothing(w);
    plugin_lost(w, w->endpoint, "refused");
    pass(w, 0);
    expect(w, "commit -resource vendor.com/gpu");
}

static void a_plugin_that_came_back_has_no_stop_time(void **state)
{
    struct world *w = *state;

    lose_gpu(w);
    plugin_register(w, 2, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "open *");
    expect(w, "registered 2");
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu"); /* at once: a crash now must not end its grace */
    committed(w);
    w->now_ms += 2 * GRACE_MS;
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, w->endpoint, "refused");
    plugin_stop_stored(w, GPU);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms - STOP_STORE_MS + GRACE_MS);
}

static void another_boot_begins_a_fresh_grace(void **state)
{
    struct world *w = *state;

    lose_gpu(w);
    pass(w, GRACE_MS / 2);
    w->settings.boot_id = "boot-2";
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, w->endpoint, "refused");
    plugin_stop_stored(w, GPU);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms - STOP_STORE_MS + GRACE_MS);
}

static void a_short_loss_is_not_stored(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    for (int i = 0; i < 3; i++) {
        plugin_lost(w, endpoint, "stream ended");
        pass(w, STOP_STORE_MS - 1);
        endpoint = w->endpoint;
        plugin_options(w, endpoint, false, false);
        plugin_list(w, endpoint, "g0");
        pass(w, REDIAL_AGAIN_MS);
    }
    assert_int_equal(w->commits, 1); /* of the first list */
}

/* A row made from the kubelet's checkpoint: in grace, nothing to dial, usable once it registers. */
static void an_imported_resource_waits_for_its_plugin(void **state)
{
    struct world *w = *state;
    Checkpoint__V1__Resource row = CHECKPOINT__V1__RESOURCE__INIT;
    uint8_t bytes[64];

    row.name = (char *)GPU;
    world_store(w, DEVICEMGR_RECORD_RESOURCE, GPU, "", "", bytes,
                checkpoint__v1__resource__pack(&row, bytes));
    world_restart(w);
    expect_nothing(w);
    runtime_listed(w, "u1");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    plugin_stop_stored(w, GPU);
    pass(w, HOLD_MS - STOP_STORE_MS);
    expect_with(w, "verdict 11 refused 14", GPU, "has not registered here", "grace", NULL);
    plugin_register(w, 7, GPU, "gpu.sock");
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, w->endpoint, "connection refused");
    expect(w, "register 7 refused 2: failed to dial device plugin: connection refused");
    expect_nothing(w); /* and the resource stays in grace */
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    container_made(w, 12, "u1", "main", GPU ":g0");
}

static void a_restored_plugin_that_still_serves_is_active(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    expect_nothing(w); /* nothing new to store */
    runtime_listed(w, "u1");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

static void an_identical_list_does_nothing(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0 g1@1", false, false);

    forget_logs(w);
    plugin_list(w, endpoint, "g0 g1@1");
    expect_nothing(w);
    assert_int_equal(logged(w, ""), 0);
}

static void health_alone_is_no_reason_to_write(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);

    plugin_list(w, endpoint, "g0 g1!");
    expect_nothing(w);
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate *");
    allocated(w, "A=1"); /* nor does another's write take a row of 100,000 devices along */
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    expect(w, "verdict 11 forward*");
    plugin_list(w, endpoint, "g0 g1@1");
    expect_nothing(w); /* that is taken along */
    plugin_list(w, endpoint, "g0 g1! g2");
    expect(w, "commit resource vendor.com/gpu");
}

static void a_hundred_thousand_devices_are_digested_once(void **state)
{
    struct world *w = *state;
    size_t n = 100000;
    char *list = malloc(n * 8 + 1), *end = list;

    for (size_t i = 0; i < n; i++)
        end += sprintf(end, "d%zu ", i);
    plugin_up(w, GPU, "gpu.sock", "d0", false, false);
    forget_logs(w);
    plugin_list(w, w->endpoint, list);
    expect(w, "commit resource vendor.com/gpu");
    committed(w);
    assert_int_equal(logged(w, "100000 of 100000 devices healthy (99999 added, 0 removed"), 1);
    plugin_list(w, w->endpoint, list);
    expect_nothing(w);
    assert_int_equal(logged(w, ""), 0);
    free(list);
}

static void an_id_may_be_any_text(void **state)
{
    static const char ID[] = "\xc3\xa9\"\\/\xe2\x98\x83,\x01\xf0\x9f\x8e\x9b\n";
    char token[96];
    struct world *w = *state;
    struct devicemgr_annotation note = {"devices.cri-device-shim/vendor.com_gpu", token};
    struct devicemgr_create request = {.sandbox_id = "s-u1",
                                       .pod_uid = "u1",
                                       .pod_namespace = "ns",
                                       .pod_name = "u1",
                                       .container = "main",
                                       .deadline_ms = UINT64_MAX,
                                       .container_annotations = &note,
                                       .container_annotations_len = 1};

    plugin_up(w, GPU, "gpu.sock", ID, false, false);
    snprintf(token, sizeof token, "{\"resource\":\"%s\",\"ids\":[\"%s\"]}", GPU,
             "\xc3\xa9\\\"\\\\/\xe2\x98\x83,\\u0001\\ud83c\\udf9b\\n");
    assert_true(devicemgr_create(w->mgr, w->now_ms, 11, &request));
    devicemgr_run(w->mgr);
    expect_with(w, "allocate ", ID, NULL);
    allocated(w, "A=1");
    committed(w);
    create_answered(w, 11, "c1");
    ignore_all(w);
    world_restart(w); /* and it is stored as it is */
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, ID);
    runtime_listed(w, "u1/main");
    ignore_all(w);
    assert_true(devicemgr_create(w->mgr, w->now_ms, 12, &request));
    devicemgr_run(w->mgr);
    expect(w, "verdict 12 forward A=1");
}

/* The most that is known of one node. */
static void two_hundred_resources_are_apart(void **state)
{
    uint64_t endpoints[200];
    struct world *w = *state;
    char name[32], line[64];

    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        endpoints[i] = plugin_up(w, name, name + strlen("vendor.com/"), "d0 d1", false, false);
    }
    container_made(w, 1, "u1", "main", "vendor.com/r117:d1");
    plugin_lost(w, endpoints[3], "reset");
    expect(w, "open vendor.com/r3 r3");
    for (unsigned i = 0; i < 200; i++) {
        if (i == 3)
            continue;
        snprintf(line, sizeof line, "commit resource vendor.com/r%u", i);
        plugin_list(w, endpoints[i], "d0 d1 d2");
        expect(w, line); /* this one and no other */
        committed(w);
        expect_nothing(w);
    }
    assert_true(create(w, 2, "u2", "main", "vendor.com/r117:d1", NULL));
    expect(w, "check c-u1-main");
    assert_true(create(w, 3, "u2", "other", "vendor.com/r118:d1", NULL));
    expect(w, "allocate d1 *");
    world_restart(w);
    for (unsigned i = 0; i < 200; i++)
        expect(w, "open vendor.com/r*");
    expect_nothing(w);
}

static void health_may_flap(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    size_t commits = w->commits;

    for (int i = 0; i < 100; i++) {
        plugin_list(w, endpoint, i % 2 ? "g0 g1" : "g0! g1");
        plugin_list(w, endpoint, i % 2 ? "g0 g1" : "g0! g1");
    }
    assert_int_equal(w->commits, commits);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* The first of the lines is that of the plugin that is up. */
static void a_plugin_that_flaps_is_logged_now_and_then(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);

    assert_int_equal(logged(w, "is active: 2 of 2 devices healthy"), 1);
    for (int i = 0; i < 100; i++)
        plugin_list(w, endpoint, i % 2 ? "g0 g1" : "g0! g1");
    assert_int_equal(logged(w, "of 2 devices healthy (0 added, 0 removed, 1 changed)"),
                     LISTS_TOLD_AT_ONCE - 1);
    plugin_list(w, endpoint, "g0 g1!");
    assert_int_equal(logged(w, "devices healthy"), 0);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + LIST_TOLD_EVERY_MS);
    pass(w, LIST_TOLD_EVERY_MS);
    assert_int_equal(
        logged(w, "1 of 2 devices healthy (0 added, 0 removed, 92 changed by 92 lists)"), 1);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);

    /* What has come until its end is told in front of that. */
    plugin_list(w, endpoint, "g0! g1!");
    assert_int_equal(logged(w, "devices healthy"), 0);
    plugin_lost(w, endpoint, "crashed");
    assert_int_equal(logged(w, "0 of 2 devices healthy"), 1);

    /* Half of them are paid for after half of the time. */
    endpoint = w->endpoint;
    plugin_options(w, endpoint, false, false);
    plugin_list(w, endpoint, "g0 g1");
    assert_int_equal(logged(w, "is active: 2 of 2 devices healthy"), 1);
    pass(w, LISTS_TOLD_AT_ONCE / 2 * LIST_TOLD_EVERY_MS);
    for (int i = 0; i < 20; i++)
        plugin_list(w, endpoint, i % 2 ? "g0 g1" : "g0! g1");
    assert_int_equal(logged(w, "1 changed)"), LISTS_TOLD_AT_ONCE / 2);
}

static void useless_entries_are_told_once(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_list(w, endpoint, "g0 g1 g1!");
    committed(w);
    assert_int_equal(logged(w, "1 list entries without an id in UTF-8, or repeated"), 1);
    ignore_all(w);
    plugin_list(w, endpoint, "g0 g1 g1!");
    assert_int_equal(logged(w, ""), 0);
    expect_nothing(w);
}

static void events_of_no_endpoint_are_ignored(void **state)
{
    struct world *w = *state;

    plugin_lost(w, 4711, "?");
    plugin_options(w, 4711, true, true);
    plugin_list(w, 4711, "g0");
    w->call = 4711;
    allocated(w, "A=1");
    preferred(w, "g0");
    prestarted(w, 0, NULL);
    expect_nothing(w);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

/* One device whose id has so many MiB. */
static void list_large(struct world *w, uint64_t endpoint, size_t id_mib)
{
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device device = V1BETA1__DEVICE__INIT, *devices = &device;
    size_t len = id_mib * 1024 * 1024;

    device.id = malloc(len + 1);
    memset(device.id, 'x', len);
    device.id[len] = '\0';
    device.health = (char *)"Healthy";
    list.devices = &devices;
    list.n_devices = 1;
    devicemgr_endpoint_list(w->mgr, w->now_ms, endpoint, &list);
    devicemgr_run(w->mgr);
    free(device.id);
}

static uint64_t plugin_up_to_list(struct world *w, const char *resource, const char *socket)
{
    uint64_t endpoint = plugin_up(w, resource, socket, "old", false, false);

    ignore_all(w);
    forget_logs(w);
    return endpoint;
}

/* All plugins share it; one that would take too much is refused alone, and what it had is kept. */
static void the_memory_of_all_devices_has_a_bound(void **state)
{
    const size_t most = DEVICES_BYTES_MAX / (1024 * 1024);
    struct world *w = *state;
    uint64_t gpu = plugin_up_to_list(w, GPU, "gpu.sock");
    uint64_t nic = plugin_up_to_list(w, NIC, "nic.sock");

    list_large(w, gpu, most / 2);
    ignore_all(w);
    assert_int_equal(logged(w, "1 of 1 devices healthy (1 added, 1 removed"), 1);
    list_large(w, nic, most / 2);
    assert_int_equal(logged(w, "with its list the devices of all plugins would take over 128 MiB"),
                     1);
    expect(w, "close");
    expect(w, "open other.com/nic nic.sock");
    nic = w->endpoint;
    plugin_options(w, nic, false, false);
    plugin_list(w, gpu, "g0");
    list_large(w, nic, most / 2); /* there is room again */
    ignore_all(w);
    assert_int_equal(logged(w, "other.com/nic: plugin endpoint \"nic.sock\" is active: 1 of 1"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_endpoint_is_dialled_once_more_at_once),
        TEST(a_plugin_that_flaps_is_not_dialled_for_ever),
        TEST(after_the_grace_the_resource_is_gone),
        TEST(a_resource_may_have_its_own_grace),
        TEST(the_stop_time_is_that_of_the_first_loss),
        TEST(a_plugin_that_never_lists_counts_as_stopped_in_time),
        TEST(a_first_list_is_welcome_late),
        TEST(one_that_registered_well_is_not_cut_off),
        TEST(one_that_only_registers_again_and_again_holds_nothing),
        TEST(one_that_is_being_dialled_at_the_end_is_waited_for),
        TEST(one_that_is_being_dialled_at_the_end_may_fail),
        TEST(a_plugin_that_drops_only_its_stream_is_back_at_once),
        TEST(a_plugin_whose_socket_is_replaced_may_list_other_devices),
        TEST(restored_resources_start_in_grace_and_are_dialled),
        TEST(an_imported_resource_waits_for_its_plugin),
        TEST(a_socket_is_dialled_as_that_of_who_registered_it),
        TEST(one_socket_may_be_registered_by_another_user),
        TEST(the_grace_goes_on_through_a_restart),
        TEST(a_grace_that_ended_during_a_restart_is_over_unless_the_plugin_serves),
        TEST(a_plugin_that_came_back_has_no_stop_time),
        TEST(another_boot_begins_a_fresh_grace),
        TEST(a_short_loss_is_not_stored),
        TEST(a_restored_plugin_that_still_serves_is_active),
        TEST(an_identical_list_does_nothing),
        TEST(the_memory_of_all_devices_has_a_bound),
        TEST(health_alone_is_no_reason_to_write),
        TEST(a_hundred_thousand_devices_are_digested_once),
        TEST(an_id_may_be_any_text),
        TEST(two_hundred_resources_are_apart),
        TEST(health_may_flap),
        TEST(a_plugin_that_flaps_is_logged_now_and_then),
        TEST(useless_entries_are_told_once),
        TEST(events_of_no_endpoint_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
