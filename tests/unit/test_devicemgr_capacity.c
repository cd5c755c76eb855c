/* Capacity, allocatable and removed resources, as the kubelet's GetCapacity. */
#include <stdio.h>

#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

struct report {
    char text[4096];
    size_t len;
};

static void add(void *user, const struct devicemgr_capacity *c)
{
    struct report *report = user;

    report->len += (size_t)snprintf(report->text + report->len, sizeof report->text - report->len,
                                    "%s%s %zu/%zu%s", report->len ? ", " : "", c->resource,
                                    c->allocatable, c->capacity, c->removed ? " removed" : "");
    if (c->kept_back > 0)
        report->len +=
            (size_t)snprintf(report->text + report->len, sizeof report->text - report->len,
                             " (%zu kept back, %zu healthy)", c->kept_back, c->healthy);
    else
        assert_int_equal(c->healthy, c->allocatable);
    if (c->removed)
        assert_true(c->capacity == 0 && c->allocatable == 0);
}

static void expect_capacity(struct world *w, const char *expected)
{
    struct report report = {0};

    devicemgr_capacity(w->mgr, add, &report);
    assert_string_equal(report.text, expected);
}

static void lose(struct world *w)
{
    plugin_lost(w, w->endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
}

static void healthy_devices_are_allocatable(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    expect_capacity(w, "");
    gpu = plugin_up(w, GPU, "gpu.sock", "g0 g1! g2", false, false);
    plugin_up(w, NIC, "nic.sock", "n0", false, false);
    expect_capacity(w, NIC " 1/1, " GPU " 2/3");
    plugin_list(w, gpu, "g0! g1! g2");
    expect_capacity(w, NIC " 1/1, " GPU " 1/3");
    plugin_list(w, gpu, "");
    expect_capacity(w, NIC " 1/1, " GPU " 0/0");
}

static void allocated_devices_count_like_others(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    container_made(w, 11, "u1", "main", GPU ":g0");
    expect_capacity(w, GPU " 2/2");
}

static void an_id_that_is_no_utf8_is_no_device(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 \xff\xfe", false, false);
    expect_capacity(w, GPU " 1/1");
}

static void while_the_plugin_is_away_nothing_is_allocatable(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    lose(w);
    expect_capacity(w, GPU " 0/2");
    world_restart(w);
    expect_capacity(w, GPU " 0/2");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0 g1");
    expect_capacity(w, GPU " 2/2");
}

/* As of a node that is cordoned: what there is stays, and what is healthy is so. */
static void what_an_operator_keeps_back_is_not_allocatable(void **state)
{
    static const char *const IDS[] = {"g0", "g1", "g9"};
    struct world *w = *state;

    gpus_up(w, "g0 g1! g2");
    devicemgr_cordon(w->mgr, w->now_ms, 1, GPU, IDS, 3, "dust", 1234);
    devicemgr_run(w->mgr);
    committed(w);
    expect_capacity(w, GPU " 1/3 (2 kept back, 2 healthy)"); /* g9 is not listed */
    devicemgr_withdraw(w->mgr, w->now_ms, 2, GPU, "moved", 1234);
    devicemgr_run(w->mgr);
    committed(w);
    expect_capacity(w, GPU " 0/3 (3 kept back, 2 healthy)");
    lose(w);
    expect_capacity(w, GPU " 0/3 (3 kept back, 0 healthy)");
}

static void a_resource_that_never_had_a_list_is_not_reported(void **state)
{
    struct world *w = *state;

    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_capacity(w, "");
    pass(w, FIRST_LIST_MS + GRACE_MS);
    expect_capacity(w, ""); /* nor is it missed */
}

static void a_removed_resource_is_reported_until_seen(void **state)
{
    struct world *w = *state;

    plugin_up(w, NIC, "nic.sock", "n0", false, false);
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    lose(w);
    pass(w, GRACE_MS);
    expect_capacity(w, NIC " 1/1, " GPU " 0/0 removed");
    expect_capacity(w, NIC " 1/1, " GPU " 0/0 removed");
    devicemgr_removed_seen(w->mgr, "some.other/name");
    devicemgr_removed_seen(w->mgr, NIC); /* it is not removed */
    expect_capacity(w, NIC " 1/1, " GPU " 0/0 removed");
    devicemgr_removed_seen(w->mgr, GPU);
    expect_capacity(w, NIC " 1/1");
}

static void a_removed_resource_is_reported_until_it_is_published_again(void **state)
{
    struct devicemgr_builtin_device device = {.id = "x",
                                              .healthy = true,
                                              .host_path = "/dev/x",
                                              .container_path = "/dev/x",
                                              .permissions = "rw"};
    struct world *w = *state;

    plugin_up(w, NIC, "nic.sock", "n0", false, false);
    lose(w);
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    lose(w);
    pass(w, GRACE_MS);
    ignore_all(w);
    plugin_register(w, 2, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_capacity(w, NIC " 0/0 removed, " GPU " 0/0 removed");
    plugin_list(w, w->endpoint, "g0 g1");
    expect_capacity(w, NIC " 0/0 removed, " GPU " 2/2");
    devicemgr_builtin(w->mgr, w->now_ms, NIC, &device, 1);
    expect_capacity(w, NIC " 1/1, " GPU " 2/2");
}

static void there_is_a_most_of_removed_resources(void **state)
{
    struct world *w = *state;
    struct report report = {0};
    char name[64];

    w->settings.grace_ms = 0;
    world_fresh(w);
    for (unsigned i = 0; i <= RESOURCES_MAX; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        plugin_up(w, name, "x.sock", "x", false, false);
        plugin_lost(w, w->endpoint, "killed");
        plugin_lost(w, w->endpoint, "refused");
        pass(w, 0);
        if (w->pending)
            committed(w);
    }
    for (unsigned i = 4; i <= RESOURCES_MAX; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        devicemgr_removed_seen(w->mgr, name);
    }
    devicemgr_capacity(w->mgr, add, &report);
    assert_string_equal(report.text, "vendor.com/r1 0/0 removed, vendor.com/r2 0/0 removed, "
                                     "vendor.com/r3 0/0 removed"); /* the oldest is forgotten */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(healthy_devices_are_allocatable),
        TEST(allocated_devices_count_like_others),
        TEST(an_id_that_is_no_utf8_is_no_device),
        TEST(while_the_plugin_is_away_nothing_is_allocatable),
        TEST(what_an_operator_keeps_back_is_not_allocatable),
        TEST(a_resource_that_never_had_a_list_is_not_reported),
        TEST(a_removed_resource_is_reported_until_seen),
        TEST(a_removed_resource_is_reported_until_it_is_published_again),
        TEST(there_is_a_most_of_removed_resources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
