/* A driver that is away here and has registered with the kubelet itself. */
#include <stdio.h>

#include "claims_world.h"
#include "devicemgr/things/limits.h"

/* An instance of DRIVER with the kubelet itself. */
static bool moved(struct world *w, uint64_t instance, const char *endpoint)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin"};
    const struct devicemgr_driver_instance is = {DRIVER, endpoint, SERVICES, 1};
    bool taken = devicemgr_driver_moved(w->mgr, w->now_ms, instance, &is);

    devicemgr_run(w->mgr);
    return taken;
}

static void add_moved(void *user, const struct devicemgr_driver *driver)
{
    *(bool *)user |= driver->moved;
}

static bool is_moved(const struct world *w)
{
    bool is = false;

    devicemgr_drivers(w->mgr, add_moved, &is);
    return is;
}

static void add_moved_ms(void *user, const struct devicemgr_driver *driver)
{
    *(uint64_t *)user = driver->moved_ms;
}

static uint64_t moved_ms(const struct world *w)
{
    uint64_t ms = 0;

    devicemgr_drivers(w->mgr, add_moved_ms, &ms);
    return ms;
}

static void all_committed(struct world *w)
{
    while (w->pending)
        committed(w);
    ignore_all(w);
}

static void gone_and_moved(struct world *w)
{
    driver_deregister(w, 1);
    assert_true(moved(w, 9, "/k/9.sock"));
    expect(w, "commit *");
    committed(w);
}

static void there_is_a_most_of_instances_with_the_kubelet(void **state)
{
    struct world *w = *state;
    char endpoint[32];

    driver_up(w, 1, DRIVER);
    for (uint64_t i = 0; i <= DRIVER_INSTANCES_MAX; i++) {
        snprintf(endpoint, sizeof endpoint, "/k/%d.sock", (int)i);
        assert_int_equal(moved(w, 100 + i, endpoint), i < DRIVER_INSTANCES_MAX);
    }
}

static void what_has_no_name_that_is_one_has_not_moved(void **state)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin", "\xff"};
    const struct devicemgr_driver_instance is = {DRIVER, "/k/9.sock", SERVICES, 2};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    assert_false(devicemgr_driver_moved(w->mgr, w->now_ms, 9, &is));
    devicemgr_run(w->mgr);
    assert_false(is_moved(w));
}

static void that_it_has_is_known_until_it_is_back(void **state)
{
    struct world *w = *state;

    assert_false(devicemgr_drivers_sought(w->mgr));
    assert_false(moved(w, 8, "/k/8.sock")); /* of none that is known */
    driver_up(w, 1, DRIVER);
    assert_false(devicemgr_drivers_sought(w->mgr));
    driver_deregister(w, 1);
    assert_true(devicemgr_drivers_sought(w->mgr));
    assert_true(moved(w, 9, "/k/9.sock"));
    expect(w, "commit driver " DRIVER);
    committed(w);
    assert_int_equal(logged(w, "has registered with the kubelet itself"), 1);
    expect_event(w, "driver-came " DRIVER);
    expect_event(w, "driver-went " DRIVER);
    expect_event(w, "driver-moved " DRIVER " [] -/-/- -: /k/9.sock");
    assert_true(is_moved(w));
    assert_int_equal(moved_ms(w), w->now_ms);
    w->now_ms += 1000;
    assert_false(devicemgr_drivers_sought(w->mgr));
    assert_true(moved(w, 10, "/k/10.sock")); /* a roll-over there */
    expect_no_event(w);
    assert_int_equal(moved_ms(w), w->now_ms - 1000);
    world_restart(w);
    assert_true(is_moved(w));
    assert_int_equal(moved_ms(w), w->now_ms); /* when it was nobody can tell */
    expect_drivers(w, DRIVER "?");
    driver_register(w, 2, DRIVER, "/x/2.sock");
    expect(w, "driver 2 registered");
    expect_stored(w, "commit driver " DRIVER);
    assert_true(is_moved(w));
    driver_connected(w, 2);
    expect_stored(w, "commit driver " DRIVER);
    assert_false(is_moved(w));
    expect_drivers(w, DRIVER "+");
    world_restart(w);
    assert_false(is_moved(w));
}

/* It is found while another driver is away, and asked who it is once. */
static void one_that_is_at_both_has_moved_when_it_goes_here(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_true(moved(w, 9, "/k/9.sock"));
    expect_stored(w, "commit driver " DRIVER); /* it may have other claims from now on */
    assert_false(is_moved(w));
    devicemgr_driver_connected(w->mgr, w->now_ms, 9);
    prepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done*");
    driver_lost(w, 1, "closed");
    assert_true(is_moved(w));
    assert_int_equal(logged(w, "has registered with the kubelet itself"), 1);
    expect_stored(w, "commit -claim c1 " DRIVER ", driver " DRIVER);
    driver_deregister(w, 9); /* and its word stays */
    assert_true(is_moved(w));
}

/* Of such a driver there is no row: the store had failed. */
static void that_it_is_not_reached_there_is_not_said(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    gone_and_moved(w);
    forget_logs(w);
    driver_lost(w, 9, "cannot connect");
    expect_nothing(w);
    assert_int_equal(logged(w, "cannot be reached"), 0);
    driver_connected(w, 9); /* it is tried again */
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 9 *");
}

static void one_of_which_there_is_but_a_claim_has_moved(void **state)
{
    struct world *w = *state;

    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    assert_true(devicemgr_drivers_sought(w->mgr));
    assert_true(moved(w, 9, "/k/9.sock"));
    expect_stored(w, "commit claim c1 " DRIVER ", driver " DRIVER);
    assert_true(is_moved(w));
    driver_connected(w, 9);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 9 *");
}

/* Most drivers serve at the same path, whoever they register with. */
static void it_comes_back_with_the_same_endpoint(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    assert_true(moved(w, 9, "/x/1.sock"));
    devicemgr_driver_connected(w->mgr, w->now_ms, 9);
    ignore_all(w);
    committed(w);
    expect_drivers(w, DRIVER "?");
    driver_register(w, 2, DRIVER, "/x/1.sock");
    expect(w, "driver 2 registered");
    expect_stored(w, "commit driver " DRIVER);
    prepare(w, 5, "c1"); /* by a kubelet that has seen this one first */
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 9 *");
    driver_connected(w, 2);
    expect_stored(w, "commit driver " DRIVER);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 5 done*");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 (ns/c1) at 2 *");
}

static void what_the_kubelet_knows_of_is_let_go_of(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepare_of(w, 6, OTHER_DRIVER, "c1"); /* waits for another driver */
    ignore_all(w);
    committed(w);
    gone_and_moved(w);
    assert_null(claim_on_disk(w, "c1", DRIVER));
    assert_string_equal(claim_on_disk(w, "c1", OTHER_DRIVER), "asked");
    pass(w, DRIVER_KEEP_MS);
    expect(w, "claim 6 refused*");
    expect_nothing(w); /* whoever has told that it is there would not do so again */
    assert_true(is_moved(w));
    driver_deregister(w, 9);
    pass(w, 0);
    expect_stored(w, "commit -driver " DRIVER);
    assert_false(world_stored(w, "driver " DRIVER));
}

/* The row comes back with the next process, if that is all that is known of it. */
static void what_is_let_go_of_and_unprepared_has_no_row_when_that_is_told(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_deregister(w, 1);
    assert_true(moved(w, 9, "/k/9.sock"));
    expect(w, "commit -claim c1 " DRIVER ", driver " DRIVER);
    driver_connected(w, 9);
    unprepare(w, 6, "c1"); /* by a kubelet that has not seen yet that we are withdrawn */
    expect(w, "unprepare c1 (ns/c1) at 9 *");
    claim_unprepared(w);
    expect_nothing(w);
    commit_failed(w, "disk full");
    expect(w, "commit -claim c1 " DRIVER ", driver " DRIVER);
    expect_nothing(w);
    committed(w);
    expect(w, "claim 6 done");
    assert_null(claim_on_disk(w, "c1", DRIVER));
    unprepare(w, 7, "c1"); /* of which there is nothing */
    expect(w, "unprepare c1 (ns/c1) at 9 *");
    claim_unprepared(w);
    expect(w, "claim 7 done");
}

static void create_with_c1(struct world *w)
{
    const char *cdi = "example.com/dev=gpu-0";
    const struct devicemgr_create request = {.sandbox_id = "s-u1",
                                             .pod_uid = "u1",
                                             .pod_namespace = "ns",
                                             .pod_name = "u1",
                                             .container = "main",
                                             .cdi_devices = &cdi,
                                             .cdi_devices_len = 1,
                                             .deadline_ms = UINT64_MAX};

    assert_false(create_claimed(w, 77, &request));
    expect_stored(w, "commit claim c1 *");
}

static void but_not_while_a_container_runs_with_it(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    create_with_c1(w);
    gone_and_moved(w);
    world_restart(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    sandbox_stopped(w, "s-u1");
    expect(w, "commit -claim c1 *");
}

static void nor_while_the_list_shows_one(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    create_with_c1(w);
    gone_and_moved(w);
    pass(w, CLAIM_USER_COMES_MS);
    runtime_listed(w, "u1/main");
    expect_nothing(w);
    runtime_listed(w, "");
    expect(w, "commit -claim c1 *");
}

static void is_back(struct world *w, uint64_t instance)
{
    driver_register(w, instance, DRIVER, "/x/2.sock");
    devicemgr_driver_connected(w->mgr, w->now_ms, instance);
    ignore_all(w);
    devicemgr_run(w->mgr);
}

/* The kubelet has unprepared c1 by itself, with which a container ran, and nobody else will ask for
 * it. */
static void c1_used_moved_and_back(struct world *w)
{
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    create_with_c1(w);
    gone_and_moved(w);
    is_back(w, 2);
    all_committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

static void nor_is_it_kept_once_the_driver_is_back(void **state)
{
    struct world *w = *state;

    c1_used_moved_and_back(w);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit -claim c1 *");
}

static void nor_over_a_restart(void **state)
{
    struct world *w = *state;

    c1_used_moved_and_back(w);
    world_restart(w);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit -claim c1 *");
}

/* It asks for it here again: then it unprepares it here. */
static void but_what_it_asks_for_since_is(void **state)
{
    struct world *w = *state;

    c1_used_moved_and_back(w);
    prepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 2 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done*");
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit claim c1 *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

/* The kubelet may have had it prepared there, and asks here after its own restart. */
static void what_was_never_sent_here_may_have_been_there(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    assert_true(moved(w, 9, "/k/9.sock"));
    is_back(w, 2);
    all_committed(w);
    driver_lost(w, 2, "closed");
    world_restart(w);
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    unprepare(w, 6, "c1");
    expect_nothing(w);
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 5 refused 14", NULL);
    expect_with(w, "claim 6 refused 14", NULL);
}

/* Likewise: that it is there is found out after it was asked for, or while it is put off. */
static void nor_is_it_put_off_if_that_is_found_out_since(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    prepare(w, 5, "c1");
    prepare(w, 6, "c2");
    ignore_all(w);
    all_committed(w);
    claim_cancelled(w, 5);
    claim_cancelled(w, 6);
    unprepare(w, 7, "c1");
    expect(w, "commit claim c1 *");
    assert_true(moved(w, 9, "/k/9.sock"));
    unprepare(w, 8, "c2");
    all_committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "asked");
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 7 refused 14", NULL);
    expect_with(w, "claim 8 refused 14", NULL);
}

/* Likewise; nobody knew that it was there when it was asked to unprepare it. */
static void and_is_in_the_way_if_that_is_found_out_too_late(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    claim_cancelled(w, 5);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
    gone_and_moved(w);
    driver_connected(w, 9);
    expect(w, "settle c1 (ns/c1) at 9 *");
    claim_failed(w, 2, "it is busy");
    prepare(w, 7, "c2");
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "settle c1 (ns/c1) at 9 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 (ns/c2) at 9 *");
}

/* A file that was written while it was there still says prepared. */
static void at_a_start_too(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_deregister(w, 1);
    assert_true(moved(w, 9, "/k/9.sock"));
    expect(w, "commit *"); /* both at once, or nothing */
    world_restart(w);
    assert_false(is_moved(w));
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    assert_true(moved(w, 9, "/k/9.sock"));
    expect(w, "commit -claim c1 *");
}

static void what_waits_for_it_is_asked_there(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    gone_and_moved(w);
    assert_true(devicemgr_drivers_sought(w->mgr));
    driver_connected(w, 9);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 9 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 5 done*");
    expect(w, "commit -claim c1 *"); /* the kubelet has it now */
    committed(w);
    assert_false(devicemgr_drivers_sought(w->mgr));
    prepare(w, 6, "c2"); /* by a kubelet that has not seen yet that we are withdrawn */
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 (ns/c2) at 9 *");
    driver_lost(w, 9, "closed");
    expect_nothing(w);
    assert_true(devicemgr_drivers_sought(w->mgr));
    driver_connected(w, 9);
    expect(w, "prepare c2 (ns/c2) at 9 *");
}

/* The kubelet has the claim in its own books, and unprepares it there. */
static void what_was_asked_there_and_given_up_is_not_kept_once_it_is_back(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    gone_and_moved(w);
    driver_connected(w, 9);
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 9 *");
    claim_cancelled(w, 5);
    is_back(w, 2);
    all_committed(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_stored(w, "commit -claim c1 *");
    expect_nothing(w);
}

/* By us: the kubelet may have had it prepared since, and unprepared. */
static void what_may_have_been_unprepared_here_is_not_prepared_anew(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    create_with_c1(w);
    claim_cancelled(w, 6);
    driver_lost(w, 1, "crashed");
    pass(w, CLAIM_HOLD_MS);
    gone_and_moved(w);
    driver_connected(w, 9);
    expect_nothing(w);
    is_back(w, 2);
    all_committed(w);
    expect_nothing(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "unpreparing");
}

/* Claim c1 is owed to DRIVER, which has moved. */
static void c1_owed_and_moved(struct world *w)
{
    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_deregister(w, 1);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
    gone_and_moved(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "owed");
}

static void it_is_told_there_what_it_is_owed(void **state)
{
    struct world *w = *state;

    c1_owed_and_moved(w);
    world_restart(w);
    assert_true(devicemgr_drivers_sought(w->mgr));
    assert_true(moved(w, 9, "/k/9.sock"));
    driver_connected(w, 9);
    expect(w, "settle c1 (ns/c1) at 9 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    assert_false(devicemgr_drivers_sought(w->mgr));
}

/* The kubelet uses it again: later, without a line each time. */
static void what_fails_there_is_told_again(void **state)
{
    struct world *w = *state;

    c1_owed_and_moved(w);
    driver_connected(w, 9);
    for (uint64_t pause_ms = OWED_RETRY_MS_MIN; pause_ms < 60000; pause_ms *= 2) {
        expect(w, "settle c1 (ns/c1) at 9 *");
        claim_in_use(w);
        expect_nothing(w);
        pass(w, pause_ms);
    }
    assert_int_equal(logged(w, "the kubelet uses it"), 1);
    expect(w, "settle c1 (ns/c1) at 9 *");
    driver_lost(w, 9, "closed"); /* and again, at once, when it is back */
    driver_connected(w, 9);
    expect(w, "settle c1 (ns/c1) at 9 *");
    driver_deregister(w, 9);
    assert_int_equal(logged(w, "the kubelet uses it"), 0);
}

/* A pod runs with it that the kubelet has prepared it for there. */
static void nor_is_it_told_so_when_it_is_back(void **state)
{
    struct world *w = *state;

    c1_owed_and_moved(w);
    world_restart(w); /* which knows that it was the kubelet's */
    is_back(w, 2);
    expect(w, "settle c1 (ns/c1) at 2 *");
    while (w->pending)
        committed(w);
    ignore_all(w);
    world_restart(w); /* and so does one that finds it here */
    is_back(w, 3);
    expect(w, "settle c1 (ns/c1) at 3 *");
    while (w->pending)
        committed(w);
    ignore_all(w);
    claim_in_use(w);
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "settle c1 (ns/c1) at 3 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
}

/* Claim c1 is owed to DRIVER, which was the kubelet's and is back as instance 2; the kubelet has it
 * in its books, and asks for it here. */
static void c1_owed_back_and_asked_for(struct world *w)
{
    c1_owed_and_moved(w);
    is_back(w, 2);
    expect(w, "settle c1 (ns/c1) at 2 *");
    while (w->pending)
        committed(w);
    ignore_all(w);
    claim_in_use(w);
    prepare(w, 7, "c1");
    expect(w, "settle asked c1 (ns/c1) at 2 *"); /* at once: why it was put off may be over */
}

/* It is not prepared for any pod, then: a kubelet has it in its books before it asks. */
static void but_if_the_kubelet_asks_for_it_here(void **state)
{
    struct world *w = *state;

    c1_owed_back_and_asked_for(w);
    claim_failed(w, 2, "it is busy"); /* not at once again */
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "settle asked c1 (ns/c1) at 2 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 2 *");
}

/* A pod runs with it, and the kubelet, which has restarted, asks for another one. */
static void what_it_has_prepared_itself_is_not_taken_from_it(void **state)
{
    struct world *w = *state;

    c1_owed_back_and_asked_for(w);
    claim_in_use(w);
    expect(w, "commit claim c1 *");
    commit_failed(w, "no space"); /* it is owed still, as far as the next process knows */
    expect(w, "claim 7 refused 14*");
    prepare(w, 8, "c1");
    expect_nothing(w);
    pass(w, COMMIT_RETRY_MS_MIN);
    expect_stored(w, "commit claim c1 *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
    expect(w, "prepare c1 (ns/c1) at 2 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 8 done*");
    unprepare(w, 9, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 (ns/c1) at 2 *");
}

/* Claim c1 is owed to DRIVER, which has moved, and has been there since c2 was asked for; the
 * kubelet has c1 in its books. */
static void c1_owed_and_in_its_books(struct world *w)
{
    c1_owed_and_moved(w);
    prepare(w, 7, "c2");
    expect_stored(w, "commit claim c2 *");
    driver_connected(w, 9);
    expect(w, "settle c1 (ns/c1) at 9 *");
    expect_nothing(w);
    claim_in_use(w);
}

/* A pod runs with it for long: what the kubelet has in its books is allocated, and no other claim
 * is given the same. */
static void what_it_uses_there_is_in_nobodys_way(void **state)
{
    struct world *w = *state;

    c1_owed_and_in_its_books(w);
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 (ns/c2) at 9 *");
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "settle c1 (ns/c1) at 9 *");
    claim_failed(w, 2, "it is busy"); /* it was unprepared there, and may be others' */
    prepare(w, 8, "c3");
    claim_allocated(w, "c3", "p", "gpu-0");
    expect_nothing(w);
}

/* The kubelet wants it unprepared here, with which a container runs. */
static void nor_is_it_tried_over_and_over_while_the_runtime_is_listed(void **state)
{
    struct world *w = *state;

    c1_owed_and_in_its_books(w);
    all_committed(w);
    create_with_c1(w);
    unprepare(w, 8, "c1");
    pass(w, OWED_RETRY_MS_MIN); /* which fails where something is due again at once */
    expect(w, "list");
    expect_nothing(w);
    sandbox_stopped(w, "s-u1");
    expect(w, "claim 8 done");
    expect(w, "unprepare c1 (ns/c1) at 9 *");
}

/* By then it may have been unprepared there, and given to the other: they are looked at again. */
static void unless_it_was_in_its_books_before_another_was_asked_for(void **state)
{
    struct world *w = *state;

    c1_owed_and_in_its_books(w);
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 (ns/c2) at 9 *");
    claim_answered(w, "gpu-1");
    expect_stored(w, "commit claim c2 *");
    expect(w, "claim 7 done*");
    expect_stored(w, "commit -claim c2 *");
    prepare(w, 8, "c3");
    claim_allocated(w, "c3", "p", "gpu-0");
    expect(w, "settle c1 (ns/c1) at 9 *"); /* at once */
    expect_nothing(w);
    prepare(w, 9, "c4");
    claim_in_use(w); /* since c3 was asked for, but for c4 nobody knows */
    expect(w, "settle c1 (ns/c1) at 9 *");
    expect(w, "commit claim c3 *");
    claim_unprepared(w);
    committed(w);
    expect_stored(w, "commit -claim c1 *"); /* it goes on when that is stored */
    expect_stored(w, "commit claim c3 " DRIVER ", claim c4 *");
    expect(w, "prepare c3 (ns/c3) at 9 *");
    expect(w, "prepare c4 (ns/c4) at 9 *");
}

/* Who asks for it once more while it is about to be prepared has it looked at, too. */
static void or_was_asked_for_again(void **state)
{
    struct world *w = *state;

    c1_owed_and_in_its_books(w);
    expect(w, "commit claim c2 *");
    prepare(w, 8, "c2"); /* it may have been allocated anew */
    committed(w);
    expect(w, "settle c1 (ns/c1) at 9 *");
    expect(w, "commit claim c2 *");
    claim_in_use(w);
    committed(w);
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 (ns/c2) at 9 *");
}

/* By now it may have other nodes' devices, which the kubelet has had prepared there. */
static void nor_is_it_said_again_that_it_is_unprepared(void **state)
{
    struct world *w = *state;

    c1_owed_and_moved(w);
    claim_allocated(w, "c1", "net", "gpu-9");
    unprepare(w, 7, "c1");
    expect_nothing(w);
    driver_connected(w, 9);
    expect(w, "unprepare c1 (ns/c1) at 9 *"); /* the kubelet wants it, whatever its books say */
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect(w, "claim 7 done");
}

/* While the kubelet has both: the one that has moved is asked for it there. */
static void nor_is_it_while_both_are_there(void **state)
{
    struct world *w = *state;

    c1_owed_and_moved(w);
    driver_connected(w, 9);
    expect(w, "settle c1 (ns/c1) at 9 *");
    prepare(w, 7, "c1");
    expect_nothing(w); /* what is under way was not for it */
    claim_in_use(w);
    expect(w, "settle asked c1 (ns/c1) at 9 *");
    claim_in_use(w);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 (ns/c1) at 9 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 7 done*");
    expect(w, "commit -claim c1 *"); /* the kubelet has it */
}

#define CLAIMS_TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIMS_TEST(there_is_a_most_of_instances_with_the_kubelet),
        CLAIMS_TEST(what_has_no_name_that_is_one_has_not_moved),
        CLAIMS_TEST(that_it_has_is_known_until_it_is_back),
        CLAIMS_TEST(one_that_is_at_both_has_moved_when_it_goes_here),
        CLAIMS_TEST(that_it_is_not_reached_there_is_not_said),
        CLAIMS_TEST(one_of_which_there_is_but_a_claim_has_moved),
        CLAIMS_TEST(it_comes_back_with_the_same_endpoint),
        CLAIMS_TEST(what_the_kubelet_knows_of_is_let_go_of),
        CLAIMS_TEST(what_is_let_go_of_and_unprepared_has_no_row_when_that_is_told),
        CLAIMS_TEST(but_not_while_a_container_runs_with_it),
        CLAIMS_TEST(nor_while_the_list_shows_one),
        CLAIMS_TEST(nor_is_it_kept_once_the_driver_is_back),
        CLAIMS_TEST(nor_over_a_restart),
        CLAIMS_TEST(but_what_it_asks_for_since_is),
        CLAIMS_TEST(what_was_never_sent_here_may_have_been_there),
        CLAIMS_TEST(nor_is_it_put_off_if_that_is_found_out_since),
        CLAIMS_TEST(and_is_in_the_way_if_that_is_found_out_too_late),
        CLAIMS_TEST(at_a_start_too),
        CLAIMS_TEST(what_waits_for_it_is_asked_there),
        CLAIMS_TEST(what_was_asked_there_and_given_up_is_not_kept_once_it_is_back),
        CLAIMS_TEST(what_may_have_been_unprepared_here_is_not_prepared_anew),
        CLAIMS_TEST(it_is_told_there_what_it_is_owed),
        CLAIMS_TEST(what_fails_there_is_told_again),
        CLAIMS_TEST(nor_is_it_told_so_when_it_is_back),
        CLAIMS_TEST(but_if_the_kubelet_asks_for_it_here),
        CLAIMS_TEST(what_it_has_prepared_itself_is_not_taken_from_it),
        CLAIMS_TEST(what_it_uses_there_is_in_nobodys_way),
        CLAIMS_TEST(nor_is_it_tried_over_and_over_while_the_runtime_is_listed),
        CLAIMS_TEST(unless_it_was_in_its_books_before_another_was_asked_for),
        CLAIMS_TEST(or_was_asked_for_again),
        CLAIMS_TEST(nor_is_it_said_again_that_it_is_unprepared),
        CLAIMS_TEST(nor_is_it_while_both_are_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
