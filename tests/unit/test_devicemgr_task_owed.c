/* While a driver is away: what is put off, and goes out when it is back; what is answered without
 * it. */
#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/things/limits.h"

/* ---- put off ---- */

/* Claim c1 is prepared with this device, and the driver goes. */
static void c1_prepared_and_driver_lost(struct world *w, const char *device)
{
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", device);
    driver_lost(w, 1, "closed");
}

/* And its unprepare is put off. */
static void c1_owed(struct world *w)
{
    slice_is(w, "p", "gpu-0");
    c1_prepared_and_driver_lost(w, "gpu-0");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
}

static void what_is_this_nodes_alone_is_put_off(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    c1_prepared_and_driver_lost(w, "gpu-0");
    unprepare(w, 6, "c1");
    expect(w, "commit claim c1 *");
    expect_nothing(w); /* it is not promised before it is durable */
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "owed");
    expect(w, "claim 6 done");
    expect_drivers(w, DRIVER "!(1-1)");
    unprepare(w, 7, "c1"); /* the answer was lost on its way */
    expect(w, "claim 7 done");
    expect_nothing(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    unprepare(w, 8, "c1");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect(w, "claim 8 done");
    expect_nothing(w);
    expect_drivers(w, DRIVER "+");
}

static void other_nodes_devices_are_not(void **state)
{
    struct world *w = *state;

    slice_is(w, "q", "gpu-0"); /* another pool's */
    c1_prepared_and_driver_lost(w, "gpu-0");
    unprepare(w, 6, "c1");
    expect_nothing(w);
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 6 refused 14", NULL);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

static void nor_is_one_that_has_some_of_each(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    c1_prepared_and_driver_lost(w, "gpu-0 net/gpu-0");
    unprepare(w, 6, "c1");
    expect_nothing(w);
}

static void that_it_was_seen_once_is_remembered(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    slice_is(w, "p", "gpu-0"); /* published after it was prepared */
    expect_stored(w, "commit claim c1 *");
    world_restart(w); /* and wiped since */
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
}

/* The kubelet may have had those prepared by itself, if it has the driver, too. */
static void but_not_if_others_are_allocated(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    c1_prepared_and_driver_lost(w, "gpu-0");
    claim_allocated(w, "c1", "net", "gpu-9");
    unprepare(w, 6, "c1");
    expect_nothing(w);
    claim_allocated(w, "c1", "p", "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
}

static void other_devices_are_looked_at_anew(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_prepared(w, 6, "c1", "net/gpu-9"); /* allocated anew */
    driver_lost(w, 1, "closed");
    unprepare(w, 7, "c1");
    expect_nothing(w);
}

static void what_is_sent_once_more_may_have_other_devices(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepare(w, 6, "c1"); /* it may have been allocated anew since */
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "prepare c1 *");
    driver_lost(w, 1, "closed");
    claim_cancelled(w, 6);
    unprepare(w, 7, "c1");
    expect_nothing(w);
    claim_allocated(w, "c1", "p", "gpu-0"); /* it has not */
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "claim 7 done");
}

static void and_what_was_told_before_that_ended_is_told_anew(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_allocated(w, "c1", "p", "gpu-0"); /* and anew before the driver looked */
    expect_stored(w, "commit claim c1 *");
    driver_lost(w, 1, "closed");
    claim_cancelled(w, 5);
    unprepare(w, 6, "c1");
    expect_nothing(w);
    claim_allocated(w, "c1", "p", "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
}

static void nor_does_that_it_had_not_count_for_the_next_time(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepare(w, 6, "c1");
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "prepare c1 *");
    claim_allocated(w, "c1", "p", "gpu-0");
    expect(w, "commit claim c1 *");
    committed(w);
    claim_failed(w, 2, "no");
    expect(w, "claim 6 refused 2: no");
    prepare(w, 7, "c1"); /* sent already; but what was allocated then may be another now */
    expect(w, "commit claim c1 *");
    expect_nothing(w);
    committed(w);
    expect(w, "prepare c1 *");
    driver_lost(w, 1, "closed");
    claim_cancelled(w, 7);
    unprepare(w, 8, "c1");
    expect_nothing(w);
}

static void one_that_was_never_answered_has_what_is_allocated(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    driver_lost(w, 1, "closed");
    claim_cancelled(w, 5);
    unprepare(w, 6, "c1");
    expect_nothing(w);
    claim_allocated(w, "c1", "p", "gpu-0"); /* it is known now */
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "owed");
}

static void one_that_was_never_sent_owes_nothing(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_lost(w, 1, "closed");
    prepare(w, 5, "c1");
    expect_stored(w, "commit *");
    claim_cancelled(w, 5);
    world_restart(w);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
    driver_register(w, 2, DRIVER, "/x/2.sock");
    ignore_all(w);
    committed(w);
    driver_connected(w, 2);
    expect(w, "unprepare c1 *"); /* it may be from before the driver came here */
    claim_failed(w, 2, "unknown claim");
    prepare(w, 7, "c2"); /* it has no devices that could be in the way */
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 *");
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 *");
}

static void after_rows_were_lost_it_may_have_been(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    world_reborn(w);
    devicemgr_rows_lost(w->mgr);
    world_restored(w);
    ignore_all(w);
    committed(w);
    prepare(w, 5, "c1");
    expect_stored(w, "commit *");
    claim_cancelled(w, 5);
    unprepare(w, 6, "c1");
    expect_nothing(w);
    world_restart(w); /* and that is not forgotten */
    unprepare(w, 7, "c1");
    expect_nothing(w);
}

static void what_cannot_be_stored_is_not_promised(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    c1_prepared_and_driver_lost(w, "gpu-0");
    unprepare(w, 6, "c1");
    expect(w, "commit *");
    commit_failed(w, "disk full");
    expect_with(w, "claim 6 refused 14", "disk full", NULL);
    expect_stored(w, "commit claim *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    driver_connected(w, 1);
    expect_nothing(w);
}

static void what_nobody_waits_for_is_not_put_off(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    c1_prepared_and_driver_lost(w, "gpu-0");
    unprepare(w, 6, "c1");
    expect(w, "commit claim c1 *");
    claim_cancelled(w, 6); /* and nobody was told */
    committed(w);
    expect(w, "commit claim c1 *");
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    driver_connected(w, 1);
    expect_nothing(w);
}

static void nor_is_what_may_have_others_by_then(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    driver_lost(w, 1, "closed"); /* it may have it */
    claim_cancelled(w, 5);
    unprepare(w, 6, "c1");
    expect_nothing(w);
    claim_allocated(w, "c1", "p", "gpu-0");
    expect(w, "commit claim c1 *");
    claim_allocated(w, "c1", "net", "gpu-9");
    committed(w);
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w); /* it is not promised */
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
    driver_connected(w, 1);
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
}

static void what_the_store_has_lost_is_stored_before_it_is_promised_again(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect(w, "commit *");
    unprepare(w, 7, "c1"); /* the answer was lost on its way */
    expect_nothing(w);
    commit_failed(w, "disk full");
    expect_with(w, "claim 7 refused 14", "disk full", NULL);
    pass(w, COMMIT_RETRY_MS_MIN);
    expect(w, "commit *");
    unprepare(w, 8, "c1");
    expect_nothing(w);
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "owed");
    expect(w, "claim 8 done");
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
}

/* A store that fails does so for hours, and at once. */
static void what_cannot_be_stored_is_not_told_again_at_once(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect(w, "commit -claim c1 *");
    commit_failed(w, "disk full");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_nothing(w);
}

/* ---- back ---- */

static void it_goes_out_before_anything_is_prepared(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    prepare(w, 7, "c2");
    expect_stored(w, "commit claim c2 *");
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    expect_nothing(w);
    prepare(w, 8, "c3");
    expect_nothing(w);
    claim_unprepared(w);
    expect(w, "commit -claim c1 *");
    expect_nothing(w); /* a crash now would tell it again */
    committed(w);
    expect(w, "commit claim c2 " DRIVER ", claim c3 " DRIVER);
    committed(w);
    expect(w, "prepare c2 *");
    expect(w, "prepare c3 *");
}

/* Who has been sent already has no row to wait for: a crash would tell it again, behind that
 * one. */
static void it_is_in_the_way_until_that_it_is_done_is_stored(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_sent(w, 6, "c2");
    driver_lost(w, 1, "closed");
    unprepare(w, 7, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 7 done");
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect(w, "commit -claim c1 *");
    claim_cancelled(w, 6);
    prepare(w, 8, "c2");
    expect_nothing(w);
    committed(w);
    expect(w, "prepare c2 *");
}

/* The driver is back before either is durable. */
static void it_goes_out_before_what_is_stored_with_it(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepare(w, 6, "c9");
    expect(w, "commit claim c9 *"); /* under way */
    driver_lost(w, 1, "closed");
    driver_connected(w, 1);
    prepare(w, 7, "c2");
    driver_lost(w, 1, "closed");
    unprepare(w, 8, "c1");
    driver_connected(w, 1);
    ignore_all(w);
    committed(w);
    expect_stored(w, "commit claim c1 " DRIVER ", claim c2 " DRIVER "*");
    expect(w, "claim 8 done");
    expect(w, "unprepare c1 *");
    ignore_all(w);
    committed(w); /* that they are not sent */
    expect_nothing(w);
}

static void restarted_and_driver_back(struct world *w, uint64_t instance)
{
    world_restart(w);
    driver_register(w, instance, DRIVER, "/x/2.sock");
    ignore_all(w);
    committed(w);
    driver_connected(w, instance);
}

static void it_outlives_a_restart(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    world_restart(w);
    expect_drivers(w, DRIVER "?(1-1)");
    restarted_and_driver_back(w, 2);
    expect(w, "settle c1 *");
    restarted_and_driver_back(w, 3); /* and one in the middle */
    expect(w, "settle c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_nothing(w);
}

/* It had the driver itself while nobody was here, and has it prepared for another pod. */
static void what_the_kubelet_has_again_since_is_not_taken_from_it(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    restarted_and_driver_back(w, 2);
    expect(w, "settle c1 *");
    claim_in_use(w);
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "settle c1 *");
    claim_in_use(w);
    unprepare(w, 8, "c1"); /* which it does here */
    expect(w, "claim 8 done");
    pass(w, OWED_RETRY_MS_MAX);
    expect(w, "settle c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
}

static void and_is_prepared_anew_if_it_asks_for_that(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    restarted_and_driver_back(w, 2);
    expect(w, "settle c1 *");
    claim_in_use(w);
    slice_is(w, "p", "gpu-0");
    prepare(w, 8, "c1");
    expect(w, "settle asked c1 *");
    claim_in_use(w);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 8 done: gpu-0");
    driver_lost(w, 2, "closed"); /* and what is owed since then is told as ever */
    ignore_all(w);
    unprepare(w, 9, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 9 done");
    driver_connected(w, 2);
    expect(w, "unprepare c1 *");
}

static void its_own_claim_is_unprepared_before_it_is_prepared_again(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    prepare(w, 7, "c1");
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 7 done: gpu-1");
}

static void one_that_fails_is_in_the_way_of_its_pool(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_failed(w, 13, "device is lost");
    assert_int_equal(logged(w, "failed: device is lost"), 1);
    prepare(w, 7, "c2");
    expect_nothing(w); /* it is not known of which pool it has devices */
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c2", false, NULL, 0);
    devicemgr_run(w->mgr);
    expect_nothing(w); /* nor is it of what may be allocated in a moment */
    claim_allocated(w, "c2", "p", "gpu-1");
    expect_nothing(w);
    prepare(w, 8, "c3");
    claim_allocated(w, "c3", "q", "gpu-9");
    expect_stored(w, "commit claim c3 *");
    expect(w, "prepare c3 *");
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 *");
    claim_failed(w, 13, "device is lost");
    pass(w, 2 * OWED_RETRY_MS_MIN - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 *");
}

/* Whether another may be made of what it has, its slice says, and that of the other one. */
static void but_only_of_its_device_where_they_are_apart(void **state)
{
    static const struct {
        const char *device;
        bool owed_apart, apart, goes;
    } cases[] = {{"gpu-1", true, false, true},
                 {"gpu-1", false, true, true},
                 {"gpu-1", false, false, false},
                 {"gpu-0", true, true, false}};
    static const char *const OWED[] = {"gpu-0"}, *const OTHER[] = {"gpu-1"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *w = *state;

        c1_owed(w);
        slice_told(w, (struct devicemgr_slice){"gpu-0", DRIVER, "p", OWED, 1,
                                               .apart = cases[i].owed_apart});
        slice_told(w,
                   (struct devicemgr_slice){"s1", DRIVER, "p", OTHER, 1, .apart = cases[i].apart});
        driver_connected(w, 1);
        expect(w, "unprepare c1 *");
        claim_failed(w, 13, "device is lost");
        prepare(w, 7, "c2");
        claim_allocated(w, "c2", "p", cases[i].device);
        if (cases[i].goes)
            expect_stored(w, "commit claim c2 *");
        if (cases[i].goes)
            expect(w, "prepare c2 *");
        expect_nothing(w);
        world_teardown(state);
        claims_setup(state);
    }
}

/* One that was made anew: a driver may go by the name alone, and would take down what it has just
 * prepared. */
static void one_of_the_same_name_is_in_the_way_all_the_same(void **state)
{
    static const char *const OWED[] = {"gpu-0"}, *const OTHER[] = {"gpu-1"};
    static const struct devicemgr_claim anew = {.pod_namespace = "ns", .name = "c1", .uid = "c2"};
    struct world *w = *state;

    c1_owed(w);
    slice_told(w, (struct devicemgr_slice){"gpu-0", DRIVER, "p", OWED, 1, .apart = true});
    slice_told(w, (struct devicemgr_slice){"s1", DRIVER, "p", OTHER, 1, .apart = true});
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_failed(w, 13, "device is lost");
    devicemgr_claim_prepare(w->mgr, w->now_ms, 7, (struct devicemgr_batch){0}, DRIVER, &anew);
    devicemgr_run(w->mgr);
    claim_allocated(w, "c2", "p", "gpu-1");
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 *");
}

/* Of a pool with several whole devices and their parts: only what draws on the same counters. */
static void nor_of_what_draws_on_other_counters(void **state)
{
    static const char *const devices[] = {"gpu-0", "half-0", "half-1", "silent"};
    static const struct devicemgr_counter counters[] = {
        {"set-0/memory", true, 80}, {"set-1/memory", true, 80}, {"bus/lanes", true, 8}};
    static const struct devicemgr_draw draws[] = {
        {"gpu-0", 0, 80}, {"gpu-0", 2, 0}, {"half-0", 0, 40}, {"half-1", 1, 40}, {"half-1", 2, 1}};
    static const struct {
        const char *device;
        bool goes;
    } cases[] = {{"half-1", true}, {"half-0", false}, {"gpu-0", false}, {"silent", false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *w = *state;

        c1_owed(w);
        driver_connected(w, 1);
        expect(w, "unprepare c1 *");
        claim_failed(w, 13, "device is lost");
        slice_told(w, (struct devicemgr_slice){"gpu-0", DRIVER, "p", devices, .devices_len = 4});
        prepare(w, 7, "c2");
        claim_allocated(w, "c2", "p", cases[i].device);
        expect_nothing(w);
        slice_told(w, (struct devicemgr_slice){"gpu-0", DRIVER, "p", devices, 4, false, counters, 3,
                                               draws, 5});
        if (cases[i].goes)
            expect_stored(w, "commit claim c2 *");
        if (cases[i].goes)
            expect(w, "prepare c2 *");
        expect_nothing(w);
        world_teardown(state);
        claims_setup(state);
    }
}

/* A driver may number what it gives within a call: what a request has goes out in one. */
static void those_of_one_request_wait_for_each_other(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_failed(w, 13, "device is lost");
    ask_in_batch(w, 7, true, (struct devicemgr_batch){7, 0}, "c2");
    ask_in_batch(w, 8, true, (struct devicemgr_batch){7, 1}, "c3");
    devicemgr_run(w->mgr);
    claim_allocated(w, "c2", "q", "gpu-8");
    expect_nothing(w); /* what c3 has is not known yet */
    claim_allocated(w, "c3", "q", "gpu-9");
    expect_stored(w, "commit claim c2 " DRIVER ", claim c3 *");
    expect(w, "prepare c2 *");
    expect(w, "place 0 of batch 7");
    expect(w, "prepare c3 *");
    expect(w, "place 1 of batch 7");
    expect_nothing(w);
}

/* And for one of them that is owed itself: the pod before had the same. */
static void also_for_what_is_owed_of_themselves(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_failed(w, 13, "device is busy");
    ask_in_batch(w, 7, true, (struct devicemgr_batch){7, 0}, "c1");
    ask_in_batch(w, 8, true, (struct devicemgr_batch){7, 1}, "c2");
    devicemgr_run(w->mgr);
    claim_allocated(w, "c1", "p", "gpu-0");
    claim_allocated(w, "c2", "q", "gpu-9");
    expect_nothing(w); /* c2 is not called for by itself */
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c1 " DRIVER ", claim c2 *");
    expect(w, "prepare c1 *");
    expect(w, "place 0 of batch 7");
    expect(w, "prepare c2 *");
    expect(w, "place 1 of batch 7");
    expect_nothing(w);
}

/* Whichever the kubelet names first; what was never sent is in nobody's way but its own. */
static void whichever_of_them_is_first(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_lost(w, 1, "closed");
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim c1 *");
    claim_cancelled(w, 5);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done*");
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    claim_failed(w, 13, "device is busy");
    ask_in_batch(w, 7, true, (struct devicemgr_batch){7, 0}, "c2");
    ask_in_batch(w, 8, true, (struct devicemgr_batch){7, 1}, "c1");
    devicemgr_run(w->mgr);
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c1 " DRIVER ", claim c2 *");
    expect(w, "prepare c1 *");
    expect(w, "place 1 of batch 7");
    expect(w, "prepare c2 *");
    expect(w, "place 0 of batch 7");
    expect_nothing(w);
}

/* A driver that ends each time that it is told: it serves others, and is told later. */
static void one_that_ends_its_driver_is_told_later(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    for (int i = 0; i < CLAIM_LOST_MAX; i++) {
        driver_connected(w, 1);
        expect(w, "unprepare c1 *");
        driver_lost(w, 1, "crashed");
    }
    assert_int_equal(logged(w, "failed: it has ended each time"), 1);
    prepare(w, 7, "c2");
    expect_stored(w, "commit claim c2 *");
    driver_connected(w, 1);
    claim_allocated(w, "c2", "q", "gpu-9");
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 *");
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 *");
    driver_lost(w, 1, "crashed");
    driver_connected(w, 1);
    expect(w, "prepare c2 *");
    pass(w, 2 * OWED_RETRY_MS_MIN - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
}

/* Two slices of one device each; the claim was prepared with the first one's, and went out with the
 * second's. */
static void one_that_may_have_others_is_in_the_way_of_all(void **state)
{
    static const char *const OTHER[] = {"gpu-9"};
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    slice_told(w, (struct devicemgr_slice){"s2", DRIVER, "q", OTHER, .devices_len = 1});
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    driver_lost(w, 1, "crashed"); /* it may have done it */
    claim_cancelled(w, 6);
    unprepare(w, 7, "c1");
    claim_allocated(w, "c1", "q", "gpu-9"); /* another pod's, by now */
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 7 done");
    world_restart(w);
    driver_register(w, 2, DRIVER, "/x/2.sock");
    ignore_all(w);
    committed(w);
    driver_connected(w, 2);
    expect(w, "settle c1 *");
    claim_failed(w, 13, "device is busy");
    prepare(w, 8, "c2");
    claim_allocated(w, "c2", "q", "gpu-9");
    expect_nothing(w);
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "settle c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect_stored(w, "commit claim c2 *");
    expect(w, "prepare c2 *");
}

static void who_waits_for_it_is_told_so(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    prepare(w, 7, "c2");
    for (uint64_t waited_ms = 0; waited_ms < CLAIM_HOLD_MS; waited_ms += 10000) {
        claim_failed(w, 13, "busy");
        pass(w, 10000);
        expect(w, "unprepare c1 *");
    }
    expect_with(w, "claim 7 refused 14", "has to unprepare another claim first", "c1", NULL);
}

static void a_driver_that_dies_of_it_is_told_again(void **state)
{
    struct world *w = *state;

    c1_owed(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    driver_lost(w, 1, "crashed");
    expect_nothing(w);
    pass(w, 10 * OWED_RETRY_MS_MAX);
    expect_nothing(w);
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
}

static void some_go_out_at_a_time(void **state)
{
    struct world *w = *state;
    uint64_t calls[2 * OWED_AT_ONCE] = {0};
    char uid[16];

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    for (int i = 0; i < 2 * OWED_AT_ONCE; i++) {
        snprintf(uid, sizeof uid, "c%d", i);
        claim_prepared(w, 10 + (uint64_t)i, uid, "gpu-0");
    }
    driver_lost(w, 1, "closed");
    for (int i = 0; i < 2 * OWED_AT_ONCE; i++) {
        snprintf(uid, sizeof uid, "c%d", i);
        unprepare(w, 100 + (uint64_t)i, uid);
    }
    ignore_all(w);
    committed(w);
    ignore_all(w);
    committed(w);
    ignore_all(w);
    driver_connected(w, 1);
    for (int i = 0; i < OWED_AT_ONCE; i++)
        expect(w, "unprepare *");
    expect_nothing(w);
    calls[0] = w->call;
    claim_failed(w, 13, "busy");
    expect(w, "unprepare *"); /* one of those that were not tried yet */
    assert_int_not_equal(w->call, calls[0]);
    expect_nothing(w);
}

static size_t finds; /* since the last look */

const struct task *__real_task_find(const struct tasks *tasks, const struct claim *claim);
const struct task *__wrap_task_find(const struct tasks *tasks, const struct claim *claim);

const struct task *__wrap_task_find(const struct tasks *tasks, const struct claim *claim)
{
    finds++;
    return __real_task_find(tasks, claim);
}

/* Not all of them for each of them, whenever the driver fails one. */
static void and_in_few_steps_where_there_are_many(void **state)
{
    enum { MANY = 200, FAILED = 20 };
    struct world *w = *state;
    char uid[16];

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    for (int i = 0; i < MANY; i++) {
        snprintf(uid, sizeof uid, "c%d", i);
        claim_prepared(w, 10 + (uint64_t)i, uid, "gpu-0");
    }
    driver_lost(w, 1, "closed");
    for (int i = 0; i < MANY; i++) {
        snprintf(uid, sizeof uid, "c%d", i);
        unprepare(w, 1000 + (uint64_t)i, uid);
        expect_stored(w, "commit claim *");
        ignore_all(w);
    }
    driver_connected(w, 1);
    ignore_all(w);
    finds = 0;
    for (int i = 0; i < FAILED; i++) {
        claim_failed(w, 13, "busy");
        (void)devicemgr_next_ms(w->mgr);
        expect(w, "unprepare *");
    }
    assert_in_range(finds, 1, (size_t)FAILED * MANY * 10);
}

/* ---- answered from the checkpoint ---- */

static void cached(struct world *w)
{
    static const char *const DRIVERS[] = {DRIVER};

    w->settings.cached_prepare = DRIVERS;
    w->settings.cached_prepare_len = 1;
    world_fresh_listed(w);
    devicemgr_restored(w->mgr, w->now_ms);
    w->looks = true;
    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect(w, "look c1 (ns/c1)");
    expect_stored(w, "commit *");
    expect(w, "prepare *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit *");
    expect(w, "claim 5 done: gpu-0");
}

static void an_answer_may_last_if_the_same_is_allocated_still(void **state)
{
    struct world *w = *state;

    cached(w);
    prepare(w, 6, "c1");
    expect(w, "look *");
    expect(w, "commit *"); /* a driver that is there is asked */
    committed(w);
    expect(w, "prepare *");
    claim_answered(w, "gpu-1");
    expect_stored(w, "commit *");
    expect(w, "claim 6 done: gpu-1");
    claim_allocated(w, "c1", "p", "gpu-1");
    driver_lost(w, 1, "closed");
    prepare(w, 7, "c1");
    expect(w, "look *");
    expect_nothing(w); /* what was known before counts no more */
    claim_allocated(w, "c1", "p", "gpu-1");
    expect(w, "claim 7 done: gpu-1");
    expect_nothing(w);
}

static void not_if_another_is(void **state)
{
    struct world *w = *state;

    cached(w);
    driver_lost(w, 1, "closed");
    prepare(w, 6, "c1");
    expect(w, "look *");
    claim_allocated(w, "c1", "p", "gpu-1");
    expect_nothing(w);
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c1", false, NULL, 0);
    devicemgr_run(w->mgr);
    expect_nothing(w);
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 6 refused 14", NULL);
}

static void not_if_the_driver_may_have_another(void **state)
{
    struct world *w = *state;

    cached(w);
    prepare(w, 6, "c1");
    expect(w, "look *");
    expect_stored(w, "commit *");
    expect(w, "prepare *");
    driver_lost(w, 1, "crashed");
    claim_allocated(w, "c1", "p", "gpu-0");
    expect_nothing(w);
}

static void nor_if_it_is_not_set(void **state)
{
    struct world *w = *state;

    c1_prepared_and_driver_lost(w, "gpu-0");
    prepare(w, 6, "c1");
    claim_allocated(w, "c1", "p", "gpu-0");
    expect_nothing(w);
}

/* ---- slices ---- */

static void slices_have_bounds_and_may_go(void **state)
{
    struct world *w = *state;
    char uid[32];
    const char *device = "gpu-0";

    driver_up(w, 1, DRIVER);
    for (int i = 0; i < SLICES_MAX; i++) {
        snprintf(uid, sizeof uid, "s%d", i);
        slice_told(w, (struct devicemgr_slice){uid, DRIVER, "q", &device, .devices_len = 1});
    }
    slice_is(w, "p", "gpu-0"); /* one too many */
    claim_prepared(w, 5, "c1", "gpu-0");
    devicemgr_slice_gone(w->mgr, w->now_ms, "s0");
    slice_is(w, "p", "gpu-0");
    expect_stored(w, "commit claim c1 *");
    devicemgr_slice_gone(w->mgr, w->now_ms, "gpu-0");
    claim_prepared(w, 6, "c2", "gpu-0");
    driver_lost(w, 1, "closed");
    unprepare(w, 7, "c2");
    expect_nothing(w);
    unprepare(w, 8, "c1");
    expect(w, "commit claim c1 *");
}

static void slices_may_be_told_before_the_rows_are_read(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    world_reborn(w);
    slice_is(w, "p", "gpu-0");
    expect_nothing(w);
    world_restored(w);
    expect(w, "commit claim c1 *"); /* that they are this node's alone */
    committed(w);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
}

#define CLAIMS_TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIMS_TEST(what_is_this_nodes_alone_is_put_off),
        CLAIMS_TEST(other_nodes_devices_are_not),
        CLAIMS_TEST(nor_is_one_that_has_some_of_each),
        CLAIMS_TEST(that_it_was_seen_once_is_remembered),
        CLAIMS_TEST(but_not_if_others_are_allocated),
        CLAIMS_TEST(other_devices_are_looked_at_anew),
        CLAIMS_TEST(what_is_sent_once_more_may_have_other_devices),
        CLAIMS_TEST(and_what_was_told_before_that_ended_is_told_anew),
        CLAIMS_TEST(nor_does_that_it_had_not_count_for_the_next_time),
        CLAIMS_TEST(one_that_was_never_answered_has_what_is_allocated),
        CLAIMS_TEST(one_that_was_never_sent_owes_nothing),
        CLAIMS_TEST(after_rows_were_lost_it_may_have_been),
        CLAIMS_TEST(what_cannot_be_stored_is_not_promised),
        CLAIMS_TEST(what_nobody_waits_for_is_not_put_off),
        CLAIMS_TEST(nor_is_what_may_have_others_by_then),
        CLAIMS_TEST(what_the_store_has_lost_is_stored_before_it_is_promised_again),
        CLAIMS_TEST(what_cannot_be_stored_is_not_told_again_at_once),
        CLAIMS_TEST(it_goes_out_before_anything_is_prepared),
        CLAIMS_TEST(it_is_in_the_way_until_that_it_is_done_is_stored),
        CLAIMS_TEST(it_goes_out_before_what_is_stored_with_it),
        CLAIMS_TEST(it_outlives_a_restart),
        CLAIMS_TEST(what_the_kubelet_has_again_since_is_not_taken_from_it),
        CLAIMS_TEST(and_is_prepared_anew_if_it_asks_for_that),
        CLAIMS_TEST(its_own_claim_is_unprepared_before_it_is_prepared_again),
        CLAIMS_TEST(one_that_fails_is_in_the_way_of_its_pool),
        CLAIMS_TEST(but_only_of_its_device_where_they_are_apart),
        CLAIMS_TEST(one_of_the_same_name_is_in_the_way_all_the_same),
        CLAIMS_TEST(nor_of_what_draws_on_other_counters),
        CLAIMS_TEST(those_of_one_request_wait_for_each_other),
        CLAIMS_TEST(also_for_what_is_owed_of_themselves),
        CLAIMS_TEST(whichever_of_them_is_first),
        CLAIMS_TEST(one_that_ends_its_driver_is_told_later),
        CLAIMS_TEST(one_that_may_have_others_is_in_the_way_of_all),
        CLAIMS_TEST(who_waits_for_it_is_told_so),
        CLAIMS_TEST(a_driver_that_dies_of_it_is_told_again),
        CLAIMS_TEST(some_go_out_at_a_time),
        CLAIMS_TEST(and_in_few_steps_where_there_are_many),
        CLAIMS_TEST(an_answer_may_last_if_the_same_is_allocated_still),
        CLAIMS_TEST(not_if_another_is),
        CLAIMS_TEST(not_if_the_driver_may_have_another),
        CLAIMS_TEST(nor_if_it_is_not_set),
        CLAIMS_TEST(slices_have_bounds_and_may_go),
        CLAIMS_TEST(slices_may_be_told_before_the_rows_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
