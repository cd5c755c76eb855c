/* What is counted of the device manager, for metrics. */
#include <stdio.h>

#include "claims_world.h"
#include "devicemgr/counts.h"
#include "devicemgr/things/claim.h"

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

/* Of a resource that may be shared; and of one that nobody has registered, which is no line. */
static void what_may_be_shared_is_not_held_twice(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;
    struct report r = {0};

    own.exclusive = false;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    nics_up(w, "n0 n1");
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main=" GPU ":g0 u3/main=no.example/none:x"
                      " u4/main=" NIC ":n0 u5/main!=" NIC ":n1");
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
    devicemgr_held(w->mgr, add_held, &r);
    assert_non_null(strstr(r.text, GPU " 2"));
    assert_non_null(strstr(r.text, NIC " 1"));
    assert_null(strstr(r.text, "no.example"));
    ignore_all(w);
}

static void add_state(void *user, const char *state, size_t claims)
{
    if (claims > 0)
        add_held(user, state, claims);
}

static void add_claim_refusal(void *user, bool unprepare, const char *reason, uint64_t count)
{
    if (count > 0)
        add_held(user, unprepare ? "unprepare" : reason, count);
}

static void drivers_and_their_claims(void **state)
{
    struct world *w = *state;
    struct devicemgr_dra_counts counts;
    struct report r = {0}, refused = {0};

    devicemgr_dra_count(w->mgr, &counts);
    assert_int_equal(counts.drivers + counts.claims + counts.connected, 0);
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 3, "c1", "gpu-0");
    driver_register(w, 2, OTHER_DRIVER, "/x/2.sock");
    devicemgr_dra_count(w->mgr, &counts);
    assert_int_equal(counts.drivers, 2);
    assert_int_equal(counts.connected, 1);
    assert_int_equal(counts.claims, 1);
    assert_int_equal(counts.prepared, 1);
    assert_int_equal(counts.owed, 0);
    assert_int_equal(counts.prepares_done, 1);
    devicemgr_claims_by_state(w->mgr, add_state, &r);
    assert_string_equal(r.text, "prepared 1");
    assert_string_equal(claim_state_word(CLAIM_NEW), "new"); /* which are in no row */
    assert_string_equal(claim_state_word(CLAIM_GONE), "gone");
    devicemgr_claims_refused(w->mgr, add_claim_refusal, &refused);
    assert_string_equal(refused.text, "");
    prepare(w, 4, "c2");
    devicemgr_dra_count(w->mgr, &counts);
    assert_int_equal(counts.waits, 1);
    ignore_all(w);
}

/* Who looks for drivers that are missing is not to find those that are where they belong. */
static void drivers_that_are_not_here(void **state)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin"};
    const struct devicemgr_driver_instance is = {DRIVER, "/k/9.sock", SERVICES, 1};
    struct devicemgr_dra_counts counts;
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_register(w, 2, OTHER_DRIVER, "/x/2.sock");
    driver_lost(w, 1, "hung up");
    devicemgr_dra_count(w->mgr, &counts);
    assert_int_equal(counts.connected + counts.moved + counts.gone, 0); /* both are away */
    driver_deregister(w, 1);
    driver_deregister(w, 2);
    devicemgr_dra_count(w->mgr, &counts);
    assert_int_equal(counts.gone, 2);
    assert_true(devicemgr_driver_moved(w->mgr, w->now_ms, 9, &is));
    devicemgr_dra_count(w->mgr, &counts);
    assert_int_equal(counts.moved, 1);
    assert_int_equal(counts.gone, 1);
    assert_int_equal(counts.drivers, 2);
    ignore_all(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refusals_by_reason, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(held_devices_and_creates, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_device_that_two_containers_run_with_is_counted,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_may_be_shared_is_not_held_twice, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(drivers_and_their_claims, claims_setup, world_teardown),
        cmocka_unit_test_setup_teardown(drivers_that_are_not_here, claims_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
