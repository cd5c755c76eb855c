/* Drivers register, are connected, lost, deregistered, forgotten. */
#include <stdio.h>

#include "claims_world.h"
#include "devicemgr/things/limits.h"

static void one_registers_and_is_known(void **state)
{
    struct world *w = *state;
    uint64_t version = devicemgr_drivers_version(w->mgr);

    expect_drivers(w, "");
    driver_register(w, 1, DRIVER, "/x/1.sock");
    expect(w, "driver 1 registered");
    expect(w, "commit driver " DRIVER);
    expect_drivers(w, DRIVER "!");
    assert_int_not_equal(devicemgr_drivers_version(w->mgr), version);
    version = devicemgr_drivers_version(w->mgr);
    driver_connected(w, 1);
    expect_drivers(w, DRIVER "+");
    assert_int_not_equal(devicemgr_drivers_version(w->mgr), version);
    version = devicemgr_drivers_version(w->mgr);
    driver_connected(w, 1); /* twice is once */
    driver_lost(w, 7, "nobody");
    assert_int_equal(devicemgr_drivers_version(w->mgr), version);
    driver_lost(w, 1, "closed");
    expect_drivers(w, DRIVER "!");
    assert_int_not_equal(devicemgr_drivers_version(w->mgr), version);
    driver_deregister(w, 1);
    expect_drivers(w, DRIVER "?");
    expect_nothing(w);
}

static void that_of_lifted_resources_has_no_endpoint(void **state)
{
    struct world *w = *state;

    driver_register(w, 1, DRIVER, "");
    assert_int_equal(logged(w, "DRA driver " DRIVER " registers"), 1);
}

static void an_endpoint_is_registered_once(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_register(w, 2, DRIVER, "/x/1.sock");
    expect(
        w,
        "driver 2 refused 2: endpoint /x/1.sock already registered for DRA driver plugin " DRIVER);
    driver_connected(w, 2); /* it is over */
    driver_deregister(w, 2);
    expect_drivers(w, DRIVER "+");
    driver_register(w, 3, DRIVER, "/x/3.sock"); /* a roll-over */
    expect(w, "driver 3 registered");
    driver_register(w, 4, OTHER_DRIVER, "/x/1.sock");
    expect(w, "commit driver *");
    expect(w, "driver 4 registered");
    driver_deregister(w, 1);
    expect_drivers(w, DRIVER "! " OTHER_DRIVER "!");
    driver_register(w, 5, DRIVER, "/x/1.sock"); /* it is free again */
    expect(w, "driver 5 registered");
}

static void the_newest_ones_services_count(void **state)
{
    static const char *const OLD[] = {"v1beta1.DRAPlugin"};
    const struct devicemgr_driver_instance is = {DRIVER, "/x/old.sock", OLD, 1};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    devicemgr_driver_register(w->mgr, w->now_ms, 2, &is);
    devicemgr_run(w->mgr);
    expect(w, "driver 2 registered");
    expect(w, "commit driver *");
    committed(w);
    world_restart(w);
    expect_drivers(w, DRIVER "?");
    expect_services(w, DRIVER, "v1beta1.DRAPlugin");
}

static void what_cannot_be_kept_is_refused(void **state)
{
    struct world *w = *state;
    char large[DRIVER_NAMES_BYTES_MAX + 1] = "";

    memset(large, 'a', DRIVER_NAMES_BYTES_MAX);
    driver_register(w, 1, large, "/x");
    expect_with(w, "driver 1 refused 2", "too long", NULL);
    driver_register(w, 2, "", "/x");
    expect_with(w, "driver 2 refused 2", NULL);
    driver_register(w, 3, "\xff", "/x");
    expect_with(w, "driver 3 refused 2", NULL);
    expect_nothing(w);
}

static void nor_are_services_that_cannot_be_kept(void **state)
{
    struct world *w = *state;
    const char *services[DRIVER_SERVICES_MAX + 1];
    struct devicemgr_driver_instance is = {DRIVER, "/x", services, DRIVER_SERVICES_MAX + 1};

    for (size_t i = 0; i <= DRIVER_SERVICES_MAX; i++)
        services[i] = "v1.DRAPlugin";
    devicemgr_driver_register(w->mgr, w->now_ms, 1, &is);
    devicemgr_run(w->mgr);
    expect_with(w, "driver 1 refused 2", NULL);
    is.services_len = 2;
    services[1] = "\xff";
    devicemgr_driver_register(w->mgr, w->now_ms, 2, &is);
    devicemgr_run(w->mgr);
    expect_with(w, "driver 2 refused 2", NULL);
    expect_nothing(w);
}

static void there_is_a_most_of_drivers_and_their_instances(void **state)
{
    struct world *w = *state;
    char name[32];

    for (uint64_t i = 1; i <= DRIVER_INSTANCES_MAX + 1; i++) {
        snprintf(name, sizeof name, "/x/%d.sock", (int)i);
        driver_register(w, i, DRIVER, name);
    }
    assert_int_equal(logged(w, "registers"), DRIVER_INSTANCES_MAX);
    for (uint64_t i = 1; i <= DRIVERS_MAX; i++) {
        snprintf(name, sizeof name, "d%d.example.com", (int)i);
        driver_register(w, 100 + i, name, "/x/y.sock");
    }
    assert_int_equal(logged(w, "registers"), DRIVERS_MAX - 1);
}

static void one_of_which_nothing_is_kept_is_forgotten(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_deregister(w, 1);
    pass(w, 2 * DRIVER_KEEP_MS);
    expect_nothing(w);
    expect_drivers(w, DRIVER "?(1)");
    driver_up(w, 2, DRIVER);
    unprepare(w, 6, "c1");
    expect(w, "commit claim *");
    committed(w);
    expect(w, "unprepare *");
    claim_unprepared(w);
    expect(w, "commit -claim *");
    committed(w);
    expect(w, "claim 6 done");
    driver_deregister(w, 2);
    pass(w, DRIVER_KEEP_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "commit -driver " DRIVER);
    expect_drivers(w, "");
}

static void with_cluster(struct world *w)
{
    w->settings.cluster = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
}

/* With a cluster they are to go first, however long that takes. */
static void nor_is_one_whose_slices_are_there_yet(void **state)
{
    struct world *w = *state;

    with_cluster(w);
    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    pass(w, 2 * DRIVER_KEEP_MS);
    expect_nothing(w);
    expect_drivers(w, DRIVER "?");
    devicemgr_driver_wiped(w->mgr, w->now_ms, DRIVER);
    devicemgr_run(w->mgr);
    expect(w, "commit driver " DRIVER);
    committed(w);
    pass(w, 1);
    expect(w, "commit -driver " DRIVER);
    expect_drivers(w, "");
}

static void add_one(void *user, const struct devicemgr_driver *driver)
{
    (void)driver;
    ++*(size_t *)user;
}

/* That may never come to pass. */
static void which_gives_its_place_to_one_that_comes(void **state)
{
    struct world *w = *state;
    size_t known = 0;
    char name[32];

    with_cluster(w);
    driver_up(w, 1000, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_deregister(w, 1000);
    for (uint64_t i = 1; i <= DRIVERS_MAX; i++) {
        pass(w, 1);
        snprintf(name, sizeof name, "d%d.example.com", (int)i);
        driver_register(w, i, name, "/x/y.sock");
        driver_deregister(w, i);
        committed(w);
    }
    assert_int_equal(logged(w, "registers"), 1 + DRIVERS_MAX);
    devicemgr_drivers(w->mgr, add_one, &known);
    assert_int_equal(known, DRIVERS_MAX);
    assert_true(world_stored(w, "driver " DRIVER));         /* of which there is a claim */
    assert_false(world_stored(w, "driver d1.example.com")); /* away for the longest time */
    assert_true(world_stored(w, "driver d2.example.com"));
    ignore_all(w);
}

static void one_of_before_a_restart_is_known(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    world_restart(w);
    expect_drivers(w, DRIVER "?");
    pass(w, DRIVER_KEEP_MS);
    expect(w, "commit -driver " DRIVER);
    committed(w);
    assert_false(world_stored(w, "driver " DRIVER));
}

static void a_new_file_gets_them_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect(w, "commit -loss rows_lost, claim c1 " DRIVER ", driver " DRIVER);
}

static void add_wiped(void *user, const struct devicemgr_driver *driver)
{
    *(bool *)user |= driver->wiped;
}

static bool is_wiped(struct world *w)
{
    bool wiped = false;

    devicemgr_drivers(w->mgr, add_wiped, &wiped);
    return wiped;
}

/* Once for each time that it is away, whatever is restarted meanwhile: what it has published since
 * by way of another is not ours to wipe. */
static void that_its_slices_are_gone_is_remembered_until_it_is_back(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    devicemgr_driver_wiped(w->mgr, w->now_ms, DRIVER); /* it has come back meanwhile */
    assert_false(is_wiped(w));
    driver_deregister(w, 1);
    devicemgr_driver_wiped(w->mgr, w->now_ms, DRIVER);
    devicemgr_run(w->mgr);
    expect(w, "commit driver " DRIVER);
    committed(w);
    world_restart(w);
    assert_true(is_wiped(w));
    driver_register(w, 2, DRIVER, "/x/2.sock");
    driver_connected(w, 2);
    assert_false(is_wiped(w));
    ignore_all(w);
}

#define CLAIMS_TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIMS_TEST(one_registers_and_is_known),
        CLAIMS_TEST(that_of_lifted_resources_has_no_endpoint),
        CLAIMS_TEST(an_endpoint_is_registered_once),
        CLAIMS_TEST(the_newest_ones_services_count),
        CLAIMS_TEST(what_cannot_be_kept_is_refused),
        CLAIMS_TEST(nor_are_services_that_cannot_be_kept),
        CLAIMS_TEST(there_is_a_most_of_drivers_and_their_instances),
        CLAIMS_TEST(one_of_which_nothing_is_kept_is_forgotten),
        CLAIMS_TEST(nor_is_one_whose_slices_are_there_yet),
        CLAIMS_TEST(which_gives_its_place_to_one_that_comes),
        CLAIMS_TEST(one_of_before_a_restart_is_known),
        CLAIMS_TEST(that_its_slices_are_gone_is_remembered_until_it_is_back),
        CLAIMS_TEST(a_new_file_gets_them_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
