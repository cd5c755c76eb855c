/* Which resources the kubelet is shown, and how while a plugin is away. */
#include "devicemgr/things/limits.h"
#include "shown_world.h"

/* ---- which resources ---- */

static void a_resource_is_shown_from_its_first_list_on(void **state)
{
    struct world *w = *state;

    expect_resources(w, "");
    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_resources(w, "");
    plugin_list(w, w->endpoint, "");
    expect_resources(w, GPU);
    expect_shown(w, GPU, "");
    expect_shown(w, NIC, "");
}

static void resources_come_in_the_order_of_names(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    nics_up(w, "n0");
    plugin_up(w, "vendor.com/fpga", "fpga.sock", "f0", false, false);
    expect_resources(w, NIC ", vendor.com/fpga, " GPU);
}

static void a_resource_is_shown_from_its_restoring_on(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1@1");
    restart(w);
    expect_resources(w, GPU);
    expect_shown(w, GPU, "g0 g1@1");
}

static void a_resource_is_shown_until_its_grace_is_over(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    lose(w);
    pass_stored(w, GRACE_MS - 1);
    expect_shown(w, GPU, "g0!+");
    pass(w, 1);
    expect_resources(w, "");
    expect_shown(w, GPU, "");
    gpus_up(w, "g0 g1");
    expect_shown(w, GPU, "g0+ g1"); /* the allocation was kept */
}

/* A gRPC library that looks ends the stream over it. */
static void an_id_that_is_no_utf8_is_not_shown(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 \xff\xfe g1!");
    expect_shown(w, GPU, "g0 g1!");
}

static void list_builtin(struct world *w, bool healthy)
{
    const struct devicemgr_builtin_device device = {.id = "x",
                                                    .healthy = healthy,
                                                    .host_path = "/dev/x",
                                                    .container_path = "/dev/x",
                                                    .permissions = "rw"};

    devicemgr_builtin(w->mgr, w->now_ms, GPU, &device, 1);
    devicemgr_run(w->mgr);
}

static void built_in_devices_are_shown_as_they_are(void **state)
{
    struct world *w = *state;

    list_builtin(w, true);
    expect_shown(w, GPU, "x");
    list_builtin(w, false);
    expect_shown(w, GPU, "x!"); /* at once: there is nothing that would come back by itself */
    assert_int_equal(mask_end_of(w, GPU), 0);
}

static void a_name_that_becomes_a_built_in_devices_is_another_list(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    expect_shown(w, GPU, "g0");
    list_builtin(w, true);
    expect_shown(w, GPU, "x");
}

/* ---- healthy while it is, and while its plugin is away for less than the mask ---- */

static void a_device_is_shown_as_its_plugin_says(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g10 g9! g1@1");

    expect_shown(w, GPU, "g1@1 g9! g10");
    plugin_list(w, gpu, "g10! g9 g1@0");
    expect_shown(w, GPU, "g1@0 g9 g10!");
    plugin_list(w, gpu, "g1@0 g2");
    expect_shown(w, GPU, "g1@0 g2");
}

static void while_masked_it_is_shown_as_it_was(void **state)
{
    struct world *w = *state;
    uint64_t end_ms;

    gpus_up(w, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), 0);
    lose(w);
    end_ms = w->now_ms + MASK_MS;
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), end_ms);
    pass_stored(w, MASK_MS - 1);
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(devicemgr_next_ms(w->mgr), end_ms);
    pass(w, 1);
    expect_shown(w, GPU, "g0! g1!");
    assert_int_equal(mask_end_of(w, GPU), 0); /* it shows already */
}

static void a_plugin_that_flaps_within_the_mask_does_not_show(void **state)
{
    struct world *w = *state;
    uint64_t version, version_of_all;

    gpus_up(w, "g0 g1!");
    expect_shown(w, GPU, "g0 g1!");
    version = version_of(w, GPU);
    for (int i = 0; i < 3; i++) {
        version_of_all = devicemgr_shown_version(w->mgr);
        lose(w);
        assert_int_not_equal(devicemgr_shown_version(w->mgr), version_of_all); /* it may show */
        pass_stored(w, MASK_MS - 1);
        version_of_all = devicemgr_shown_version(w->mgr);
        gpus_up(w, "g0 g1!");
        assert_int_not_equal(devicemgr_shown_version(w->mgr), version_of_all);
        assert_int_equal(mask_end_of(w, GPU), 0);
    }
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(version_of(w, GPU), version);
}

static void the_mask_is_that_of_the_first_loss(void **state)
{
    struct world *w = *state;
    uint64_t end_ms;

    gpus_up(w, "g0");
    lose(w);
    end_ms = w->now_ms + MASK_MS;
    pass_stored(w, MASK_MS / 2);
    plugin_register(w, 2, GPU, "gpu.sock"); /* and dies again */
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    expect_shown(w, GPU, "g0");
    assert_int_equal(mask_end_of(w, GPU), end_ms);
    pass(w, MASK_MS / 2);
    expect_shown(w, GPU, "g0!");
    plugin_register(w, 3, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_shown(w, GPU, "g0!"); /* it has not listed yet */
    plugin_list(w, w->endpoint, "g0");
    expect_shown(w, GPU, "g0");
}

static void without_a_mask_an_outage_shows_at_once(void **state)
{
    struct world *w = *state;

    w->settings.mask_ms = 0;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    expect_shown(w, GPU, "g0");
    plugin_lost(w, w->endpoint, "killed");
    expect_shown(w, GPU, "g0!"); /* the kubelet's own rule: also if a redial helps */
    assert_int_equal(mask_end_of(w, GPU), 0);
    serve(w, "g0");
    expect_shown(w, GPU, "g0");
}

static void a_mask_may_have_no_end(void **state)
{
    struct world *w = *state;

    w->settings.mask_ms = UINT64_MAX;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, GRACE_MS - 1);
    expect_shown(w, GPU, "g0");
    assert_int_equal(mask_end_of(w, GPU), 0);
}

static void a_plugin_that_registers_anew_is_shown_as_before(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1!");
    plugin_register(w, 2, GPU, "new.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), 0);
    pass(w, FIRST_LIST_MS); /* it lists nothing: it counts as stopped from then on */
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), w->now_ms + MASK_MS);
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g0! g1!");
}

static void a_restored_resource_counts_as_healthy_until_listed(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1!");
    expect_shown(w, GPU, "g0 g1!");
    restart(w);
    expect_shown(w, GPU, "g0 g1"); /* what was stored of its health may be old */
    assert_int_equal(mask_end_of(w, GPU), w->now_ms + MASK_MS);
    serve(w, "g0 g1!");
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), 0);
    lose(w);
    expect_shown(w, GPU, "g0 g1!"); /* as last listed, now */
}

static void a_restored_resource_that_lists_the_same_is_the_same_list(void **state)
{
    struct world *w = *state;
    uint64_t version;

    gpus_up(w, "g0 g1");
    restart(w);
    expect_shown(w, GPU, "g0 g1");
    version = version_of(w, GPU);
    serve(w, "g0 g1");
    expect_shown(w, GPU, "g0 g1");
    assert_int_equal(version_of(w, GPU), version);
}

static void a_restored_resource_is_masked_no_longer_than_others(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, MASK_MS / 2);
    restart(w); /* the stop time was stored */
    plugin_lost(w, w->endpoint, "refused");
    expect_shown(w, GPU, "g0");
    assert_int_equal(mask_end_of(w, GPU), w->now_ms + MASK_MS / 2);
    pass(w, MASK_MS / 2);
    expect_shown(w, GPU, "g0!");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_resource_is_shown_from_its_first_list_on),
        TEST(resources_come_in_the_order_of_names),
        TEST(a_resource_is_shown_from_its_restoring_on),
        TEST(a_resource_is_shown_until_its_grace_is_over),
        TEST(an_id_that_is_no_utf8_is_not_shown),
        TEST(built_in_devices_are_shown_as_they_are),
        TEST(a_name_that_becomes_a_built_in_devices_is_another_list),
        TEST(a_device_is_shown_as_its_plugin_says),
        TEST(while_masked_it_is_shown_as_it_was),
        TEST(a_plugin_that_flaps_within_the_mask_does_not_show),
        TEST(the_mask_is_that_of_the_first_loss),
        TEST(without_a_mask_an_outage_shows_at_once),
        TEST(a_mask_may_have_no_end),
        TEST(a_plugin_that_registers_anew_is_shown_as_before),
        TEST(a_restored_resource_counts_as_healthy_until_listed),
        TEST(a_restored_resource_that_lists_the_same_is_the_same_list),
        TEST(a_restored_resource_is_masked_no_longer_than_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
