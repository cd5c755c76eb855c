/* What is counted of the device manager, for metrics. */
#include <stdio.h>

#include "devicemgr/counts.h"
#include "devicemgr_world.h"

struct report {
    char text[4096];
    size_t len;
};

static void add_refusal(void *user, const char *reason, int code, uint64_t count)
{
    struct report *r = user;

    assert_true(code > 0);
    if (count > 0)
        r->len += (size_t)snprintf(r->text + r->len, sizeof r->text - r->len, "%s%s %d x%d",
                                   r->len ? ", " : "", reason, code, (int)count);
}

static void add_held(void *user, const char *resource, size_t devices)
{
    struct report *r = user;

    r->len += (size_t)snprintf(r->text + r->len, sizeof r->text - r->len, "%s%s %zu",
                               r->len ? ", " : "", resource, devices);
}

static void expect_refusals(struct world *w, const char *expected)
{
    struct report r = {0};

    devicemgr_refusals(w->mgr, add_refusal, &r);
    assert_string_equal(r.text, expected);
}

static void expect_held(struct world *w, const char *expected)
{
    struct report r = {0};

    devicemgr_held(w->mgr, add_held, &r);
    assert_string_equal(r.text, expected);
}

static void refusals_by_reason(void **state)
{
    struct world *w = *state;

    expect_refusals(w, "");
    create_token(w, 1, "u1", "new.example/none:x");
    create_token(w, 2, "u2", "new.example/none:x");
    expect_refusals(w, "resource-unknown 9 x2");
}

static void held_devices_and_creates(void **state)
{
    struct world *w = *state;
    struct devicemgr_endpoints endpoints;

    expect_held(w, "");
    plugin_up(w, GPU, "gpu.sock", "g0 g1 g2", false, false);
    expect_held(w, GPU " 0");
    container_made(w, 11, "u1", "main", GPU ":g0,g1");
    expect_held(w, GPU " 2");
    assert_int_equal(devicemgr_creates_held(w->mgr), 0);
    create_token(w, 12, "u2", GPU ":g9");
    assert_int_equal(devicemgr_creates_held(w->mgr), 1);
    devicemgr_endpoints(w->mgr, &endpoints);
    assert_int_equal(endpoints.active, 1);
    assert_int_equal(endpoints.connecting + endpoints.grace + endpoints.gone, 0);
    plugin_lost(w, w->endpoint, "killed");
    devicemgr_endpoints(w->mgr, &endpoints);
    assert_int_equal(endpoints.connecting, 1);
    plugin_lost(w, w->endpoint, "refused");
    devicemgr_endpoints(w->mgr, &endpoints);
    assert_int_equal(endpoints.grace, 1);
    assert_int_equal(endpoints.active, 0);
}

/* What the runtime says is so, however it came about. */
static void a_device_that_two_containers_run_with_is_counted(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main!=" GPU ":g0 u3/main=" GPU ":g1");
    assert_int_equal(devicemgr_held_twice(w->mgr), 0); /* one of the two has exited */
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main=" GPU ":g0 u3/main=" GPU ":g1");
    assert_int_equal(devicemgr_held_twice(w->mgr), 1);
    runtime_listed(w, "u2/main=" GPU ":g0 u3/main=" GPU ":g1");
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
    ignore_all(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refusals_by_reason, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(held_devices_and_creates, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_device_that_two_containers_run_with_is_counted,
                                        world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
