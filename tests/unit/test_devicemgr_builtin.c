/* Built-in devices. */
#include "devicemgr_world.h"

static const struct devicemgr_builtin_device FUSE = {"fuse",      true, "/dev/fuse",
                                                     "/dev/fuse", "rw", NULL};

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
    struct devicemgr_builtin_device other = {"fuse", true, "/dev/fuse2", "/dev/fuse", "r", NULL};
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

static void a_built_in_device_without_a_node_is_said_to_be_one(void **state)
{
    struct world *w = *state;

    devicemgr_builtin(w->mgr, w->now_ms, "node.local/fuse", &FUSE, 0);
    assert_true(create(w, 11, "u1", "main", "node.local/fuse:fuse", NULL));
    pass(w, HOLD_MS);
    expect_with(w, "verdict 11 refused 14:", "no such device node on the host: device ids fuse",
                NULL);
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

static void an_active_plugins_name_may_become_a_built_in_device(void **state)
{
    struct world *w = *state;

    plugin_up(w, "node.local/fuse", "fuse.sock", "x", false, false);
    builtin(w, FUSE);
    expect(w, "close");
    expect(w, "commit -resource node.local/fuse");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_active_plugins_name_may_become_a_built_in_device),
        TEST(a_built_in_device_needs_no_plugin),
        TEST(a_built_in_device_follows_the_config),
        TEST(a_built_in_device_that_is_away_is_waited_for),
        TEST(a_built_in_device_without_a_node_is_said_to_be_one),
        TEST(a_name_moved_into_the_config_leaves_its_plugin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
