/* Registration, the life of an endpoint, device lists, built-in devices: kubelet-facts §1, §2. */
#include <stdio.h>
#include <stdlib.h>

#include "devicemgr/limits.h"
#include "devicemgr_world.h"

static void reg(struct world *w, const char *version, const char *socket, const char *resource)
{
    devicemgr_register(w->mgr, w->now_ms, 7, version, socket, resource);
    devicemgr_run(w->mgr);
}

/* ---- Register ---- */

static void the_version_is_checked_first_in_the_kubelets_words(void **state)
{
    struct world *w = *state;

    reg(w, "v1alpha1", "a/b", "bad");
    expect(w,
           "register 7 refused 2: requested API version \"v1alpha1\" is not supported by kubelet. "
           "Supported version is [\"v1beta1\"]");
    expect_nothing(w);
}

static void the_resource_name_is_checked_second(void **state)
{
    struct world *w = *state;

    reg(w, "v1beta1", "a/b", "kubernetes.io/gpu");
    expect(w, "register 7 refused 2: the ResourceName \"kubernetes.io/gpu\" is invalid");
}

static void the_endpoint_must_be_a_bare_file_name(void **state)
{
    static const char *const BAD[] = {"",  "/gpu.sock", "../gpu.sock", "a/b",
                                      ".", "..",        "kubelet.sock"};
    struct world *w = *state;
    char longest[SOCKET_NAME_BYTES_MAX + 2];

    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        reg(w, "v1beta1", BAD[i], GPU);
        expect_with(w, "register 7 refused 3: the endpoint \"", BAD[i],
                    "is not the name of a socket", NULL);
    }
    memset(longest, 'a', sizeof longest);
    longest[SOCKET_NAME_BYTES_MAX + 1] = '\0';
    reg(w, "v1beta1", longest, GPU);
    expect(w, "register 7 refused 3:*");
    longest[SOCKET_NAME_BYTES_MAX] = '\0';
    reg(w, "v1beta1", longest, GPU);
    expect(w, "open *");
}

static void the_name_of_a_built_in_device_is_taken(void **state)
{
    struct world *w = *state;

    devicemgr_builtin(w->mgr, w->now_ms, GPU, NULL, 0);
    reg(w, "v1beta1", "gpu.sock", GPU);
    expect_with(w, "register 7 refused 3:", "built-in device", NULL);
}

static void register_is_answered_when_the_options_have_come(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    expect(w, "open vendor.com/gpu gpu.sock");
    expect_nothing(w);
    plugin_list(w, w->endpoint, "g0"); /* out of turn: not looked at */
    expect_nothing(w);
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 7");
    expect_nothing(w);
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu");
}

static void a_failed_dial_is_told_to_the_plugin(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    expect(w, "open *");
    plugin_lost(w, w->endpoint, "connection refused");
    expect(w, "register 7 refused 2: failed to dial device plugin: connection refused");
    expect_nothing(w);
    plugin_register(w, 8, GPU, "gpu.sock");
    expect(w, "open *");
    plugin_lost(w, w->endpoint, "failed to get device plugin options: UNIMPLEMENTED");
    expect(w, "register 8 refused 2: failed to get device plugin options: UNIMPLEMENTED");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 11 refused 9:", "known resources: none", NULL);
}

static void a_register_call_given_up_needs_no_answer(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    expect(w, "open *");
    devicemgr_register_cancelled(w->mgr, 7);
    plugin_options(w, w->endpoint, false, false);
    expect_nothing(w);
}

static void the_newest_registration_wins(void **state)
{
    struct world *w = *state;
    uint64_t old = plugin_up(w, GPU, "old.sock", "g0", false, false);

    plugin_register(w, 8, GPU, "new.sock");
    expect(w, "close");
    expect(w, "open vendor.com/gpu new.sock");
    plugin_lost(w, old, "late end of the old stream");
    plugin_list(w, old, "x0");
    expect_nothing(w);
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu"); /* its new socket */
    plugin_lost(w, old, "late end of the old stream");
    expect_nothing(w);
}

static void a_registration_still_pending_is_superseded(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "a.sock");
    plugin_register(w, 8, GPU, "b.sock");
    expect(w, "open vendor.com/gpu a.sock");
    expect(w, "register 7 refused 10: a newer registration of resource vendor.com/gpu has come");
    expect(w, "close");
    expect(w, "open vendor.com/gpu b.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
}

static void a_registration_that_fails_leaves_the_working_endpoint(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "good.sock", "g0", false, false);
    plugin_register(w, 8, GPU, "bad.sock");
    expect(w, "close");
    expect(w, "open vendor.com/gpu bad.sock");
    plugin_lost(w, w->endpoint, "connection refused");
    expect(w, "register 8 refused 2:*");
    expect(w, "open vendor.com/gpu good.sock");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    expect_nothing(w); /* no record differs */
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
}

static void there_is_a_most_of_resources(void **state)
{
    struct world *w = *state;
    char name[64];

    for (unsigned i = 0; i < RESOURCES_MAX; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        plugin_register(w, 7, name, "x.sock");
    }
    ignore_all(w);
    plugin_register(w, 8, "vendor.com/one-more", "x.sock");
    expect_with(w, "register 8 refused 8:", "1024 resources", NULL);
}

/* ---- loss ---- */

static void a_lost_endpoint_is_dialled_once_more_at_once(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "stream ended");
    expect(w, "open vendor.com/gpu gpu.sock");
    assert_int_not_equal(w->endpoint, endpoint);
    plugin_lost(w, w->endpoint, "connection refused");
    expect_nothing(w);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + GRACE_MS);
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
    logged(w, "");
    pass(w, GRACE_MS - 1);
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

static void a_plugin_that_never_lists_is_given_up_after_the_grace(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    ignore_all(w);
    pass(w, GRACE_MS);
    expect(w, "register 7 refused 2: failed to dial device plugin: no answer");
    expect(w, "close");
    expect_nothing(w);
}

/* ---- restart ---- */

static void restored_resources_start_in_grace_and_are_dialled(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    world_restart(w);
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, w->endpoint, "connection refused");
    expect_nothing(w);
    pass(w, GRACE_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "commit -resource vendor.com/gpu");
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
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* ---- lists ---- */

static void an_identical_list_does_nothing(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0 g1@1", false, false);

    logged(w, "");
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
    logged(w, "");
    plugin_list(w, w->endpoint, list);
    expect(w, "commit resource vendor.com/gpu");
    committed(w);
    assert_int_equal(logged(w, "100000 of 100000 devices healthy (99999 added, 0 removed"), 1);
    plugin_list(w, w->endpoint, list);
    expect_nothing(w);
    assert_int_equal(logged(w, ""), 0);
    free(list);
}

static void useless_entries_are_told_once(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_list(w, endpoint, "g0 g1 g1!");
    committed(w);
    assert_int_equal(logged(w, "1 list entries without an id, or repeated"), 1);
    ignore_all(w);
    plugin_list(w, endpoint, "g0 g1 g1!");
    assert_int_equal(logged(w, ""), 0);
    expect_nothing(w);
}

/* ---- built-in devices ---- */

static const struct devicemgr_builtin_device FUSE = {"fuse", true, "/dev/fuse", "/dev/fuse", "rw"};

static void builtin(struct world *w, struct devicemgr_builtin_device device)
{
    devicemgr_builtin(w->mgr, w->now_ms, "node.local/fuse", &device, 1);
    devicemgr_run(w->mgr);
}

static void a_built_in_device_needs_no_plugin(void **state)
{
    struct world *w = *state;

    builtin(w, FUSE);
    expect_nothing(w);
    assert_true(create(w, 11, "u1", "main", "node.local/fuse:fuse", NULL));
    expect(w, "commit allocation u1 main node.local/fuse, pod u1");
    committed(w);
    expect(w, "verdict 11 forward /dev/fuse</dev/fuse:rw");
    create_answered(w, 11, "c1");
    assert_true(create(w, 12, "u1", "main", "node.local/fuse:fuse", NULL));
    expect(w, "verdict 12 forward /dev/fuse</dev/fuse:rw");
}

static void a_built_in_device_follows_the_config(void **state)
{
    struct devicemgr_builtin_device other = {"fuse", true, "/dev/fuse2", "/dev/fuse", "r"};
    struct world *w = *state;

    builtin(w, FUSE);
    assert_true(create(w, 11, "u1", "main", "node.local/fuse:fuse", NULL));
    committed(w);
    create_answered(w, 11, "c1");
    ignore_all(w);
    builtin(w, other);
    assert_true(create(w, 12, "u1", "main", "node.local/fuse:fuse", NULL));
    expect(w, "commit *");
    committed(w);
    expect(w, "verdict 12 forward /dev/fuse</dev/fuse2:r");
}

static void a_built_in_device_that_is_away_is_waited_for(void **state)
{
    struct devicemgr_builtin_device away = FUSE;
    struct world *w = *state;

    away.healthy = false;
    builtin(w, away);
    assert_true(create(w, 11, "u1", "main", "node.local/fuse:fuse", NULL));
    expect_nothing(w);
    builtin(w, FUSE);
    expect(w, "commit *");
    create_cancelled(w, 11);
    committed(w);
    builtin(w, away);
    assert_true(create(w, 12, "u1", "main", "node.local/fuse:fuse", NULL));
    pass(w, HOLD_MS);
    expect_with(w, "verdict 12 refused 14:", "unhealthy for 5s: device ids fuse", NULL);
}

static void a_name_moved_into_the_config_leaves_its_plugin(void **state)
{
    struct world *w = *state;

    plugin_up(w, "node.local/fuse", "fuse.sock", "x", false, false);
    plugin_register(w, 9, "node.local/fuse", "fuse.sock");
    ignore_all(w);
    builtin(w, FUSE);
    expect(w, "register 9 refused 3: resource node.local/fuse is a built-in device now");
    expect(w, "close");
    expect(w, "commit -resource node.local/fuse");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_version_is_checked_first_in_the_kubelets_words),
        TEST(the_resource_name_is_checked_second),
        TEST(the_endpoint_must_be_a_bare_file_name),
        TEST(the_name_of_a_built_in_device_is_taken),
        TEST(register_is_answered_when_the_options_have_come),
        TEST(a_failed_dial_is_told_to_the_plugin),
        TEST(a_register_call_given_up_needs_no_answer),
        TEST(the_newest_registration_wins),
        TEST(a_registration_still_pending_is_superseded),
        TEST(a_registration_that_fails_leaves_the_working_endpoint),
        TEST(there_is_a_most_of_resources),
        TEST(a_lost_endpoint_is_dialled_once_more_at_once),
        TEST(a_plugin_that_flaps_is_not_dialled_for_ever),
        TEST(after_the_grace_the_resource_is_gone),
        TEST(the_stop_time_is_that_of_the_first_loss),
        TEST(a_plugin_that_never_lists_is_given_up_after_the_grace),
        TEST(restored_resources_start_in_grace_and_are_dialled),
        TEST(a_restored_plugin_that_still_serves_is_active),
        TEST(an_identical_list_does_nothing),
        TEST(health_alone_is_no_reason_to_write),
        TEST(a_hundred_thousand_devices_are_digested_once),
        TEST(useless_entries_are_told_once),
        TEST(a_built_in_device_needs_no_plugin),
        TEST(a_built_in_device_follows_the_config),
        TEST(a_built_in_device_that_is_away_is_waited_for),
        TEST(a_name_moved_into_the_config_leaves_its_plugin),
        TEST(events_of_no_endpoint_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
