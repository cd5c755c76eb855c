/* A plugin that gives its resource another name, and keeps its socket: it lists the same devices
 * for each name that is dialled there. */
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

#define SHARED "vendor.com/gpu.shared"

/* It is started anew with another name, as nvidia-device-plugin is when it is told to share. */
static void rename_plugin(struct world *w, bool listened_late)
{
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "killed");
    expect(w, "open vendor.com/gpu gpu.sock");
    if (listened_late)
        plugin_lost(w, w->endpoint, "refused");
    plugin_register(w, 8, SHARED, "gpu.sock");
    expect(w, "open vendor.com/gpu.shared gpu.sock");
}

static void the_old_name_is_not_dialled_by_a_shim_that_is_started_anew(void **state)
{
    struct world *w = *state;

    rename_plugin(w, true);
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
    expect(w, "commit resource vendor.com/gpu"); /* its stop time, at once */
    committed(w);
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu.shared");
    committed(w);
    world_restart(w);
    expect(w, "open vendor.com/gpu.shared gpu.sock");
    expect_nothing(w);
}

/* The plugin listened when it was dialled once more, before it registered. */
static void a_dial_of_the_old_name_is_over_when_it_registers(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "killed");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    ignore_all(w);
    pass(w, REDIAL_AGAIN_MS);
    plugin_register(w, 8, SHARED, "gpu.sock");
    expect(w, "open vendor.com/gpu.shared gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
    expect(w, "close");
    expect(w, "commit resource vendor.com/gpu");
    committed(w);
    expect_nothing(w);
    logged(w, "what listens there registered resource vendor.com/gpu.shared since");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect_nothing(w); /* it waits */
    pass(w, GRACE_MS);
    expect_with(w, "verdict 11 refused 14:", GPU, NULL);
}

static void what_is_stored_of_the_old_name_is_not_stored_again(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    plugin_stop_stored(w, GPU);
    plugin_register(w, 8, SHARED, "gpu.sock");
    expect(w, "open vendor.com/gpu.shared gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
    expect_nothing(w);
}

/* It is no resource yet. */
static void an_old_name_that_never_listed_is_gone(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    plugin_register(w, 7, GPU, "gpu.sock");
    ignore_all(w);
    endpoint = w->endpoint;
    plugin_options(w, endpoint, false, false);
    plugin_up(w, SHARED, "gpu.sock", "g0", false, false);
    ignore_all(w);
    plugin_lost(w, endpoint, "stream ended");
    expect_nothing(w);
    assert_int_equal(logged(w, "before it listed any device"), 1);
}

/* The old plugin's stream ends only when the new one has registered. */
static void a_stream_that_ends_late_is_not_dialled_again(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_register(w, 8, SHARED, "gpu.sock");
    expect(w, "open vendor.com/gpu.shared gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
    plugin_lost(w, endpoint, "stream ended");
    expect(w, "commit resource vendor.com/gpu");
    expect_nothing(w);
}

/* One plugin may have two names, which it registers one after the other. */
static void who_registered_both_names_has_both(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    plugin_up(w, SHARED, "gpu.sock", "g0", false, false);
    world_restart(w);
    runtime_listed(w, "");
    ignore_all(w);
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    plugin_up(w, SHARED, "gpu.sock", "g0", false, false);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
}

/* Of a plugin whose socket was another the name stays dialled. */
static void another_socket_is_anothers(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "killed");
    expect(w, "open vendor.com/gpu gpu.sock");
    endpoint = w->endpoint;
    plugin_up(w, SHARED, "shared.sock", "g0", false, false);
    plugin_options(w, endpoint, false, false);
    plugin_list(w, endpoint, "g0");
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open vendor.com/gpu.shared shared.sock");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_old_name_is_not_dialled_by_a_shim_that_is_started_anew),
        TEST(a_dial_of_the_old_name_is_over_when_it_registers),
        TEST(what_is_stored_of_the_old_name_is_not_stored_again),
        TEST(an_old_name_that_never_listed_is_gone),
        TEST(a_stream_that_ends_late_is_not_dialled_again),
        TEST(who_registered_both_names_has_both),
        TEST(another_socket_is_anothers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
