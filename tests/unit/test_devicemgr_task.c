/* What is done for a claim: one thing at a time, durable before it is sent and before it is
 * told. */
#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "devicemgr/things/limits.h"

/* ---- prepare ---- */

static void what_is_sent_is_durable_before_and_what_came_of_it_before_it_is_told(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect(w, "commit claim c1 " DRIVER);
    expect_nothing(w);
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
    expect(w, "prepare c1 (ns/c1) at 1 in 45000ms");
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect(w, "commit claim c1 " DRIVER);
    expect_nothing(w);
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    expect(w, "claim 5 done: gpu-0");
    expect_nothing(w);
    expect_drivers(w, DRIVER "+(1)");
}

static void a_call_has_the_time_that_the_settings_say(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    w->settings.claim_call_ms = 700;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    prepare(w, 5, "c1");
    expect_stored(w, "commit *");
    expect(w, "prepare c1 (ns/c1) at 1 in 700ms");
}

static void an_answer_may_be_empty(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "");
}

static void a_driver_that_is_there_is_always_asked(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_prepared(w, 6, "c1", "gpu-1"); /* the row says again that it may have another answer */
}

static void a_failure_is_told_in_the_drivers_words(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    ignore_all(w);
    committed(w);
    expect(w, "prepare *");
    claim_failed(w, 2, "no such device");
    expect(w, "claim 5 refused 2: no such device");
    expect_nothing(w);
    prepare(w, 6, "c1"); /* that it may have something is durable already */
    expect(w, "prepare *");
}

static void an_answer_that_is_too_large_is_refused(void **state)
{
    struct world *w = *state;
    char *large = calloc(1, CLAIM_RESPONSE_BYTES_MAX + 1);

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    ignore_all(w);
    committed(w);
    expect(w, "prepare *");
    devicemgr_claim_answered(w->mgr, w->now_ms, w->call, 0, NULL, large,
                             CLAIM_RESPONSE_BYTES_MAX + 1);
    devicemgr_run(w->mgr);
    free(large);
    expect_with(w, "claim 5 refused 8", "more than can be kept", NULL);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
}

static void claims_are_kept_for_each_driver(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_up(w, 2, OTHER_DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepare_of(w, 6, OTHER_DRIVER, "c1");
    expect(w, "commit claim c1 " OTHER_DRIVER);
    committed(w);
    expect(w, "prepare c1 (ns/c1) at 2 *");
    claim_answered(w, "nic-0");
    expect_stored(w, "commit *");
    expect(w, "claim 6 done: nic-0");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    assert_string_equal(claim_on_disk(w, "c1", OTHER_DRIVER), "prepared");
}

/* ---- unprepare ---- */

static void an_unprepare_is_durable_before_and_after(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    expect(w, "commit claim c1 " DRIVER);
    expect_nothing(w);
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "unpreparing");
    expect(w, "unprepare c1 (ns/c1) at 1 in 45000ms");
    claim_unprepared(w);
    expect(w, "commit -claim c1 " DRIVER);
    expect_nothing(w);
    committed(w);
    expect(w, "claim 6 done");
    expect_nothing(w);
    assert_null(claim_on_disk(w, "c1", DRIVER));
    expect_drivers(w, DRIVER "+");
}

static void one_that_fails_is_asked_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    ignore_all(w);
    committed(w);
    expect(w, "unprepare *");
    claim_failed(w, 13, "busy");
    expect(w, "claim 6 refused 13: busy");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "unpreparing");
    unprepare(w, 7, "c1");
    expect(w, "unprepare *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim *");
    expect(w, "claim 7 done");
}

static void a_claim_never_seen_passes_through(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    unprepare(w, 5, "c9");
    expect(w, "unprepare c9 *");
    claim_unprepared(w);
    expect(w, "claim 5 done");
    expect_nothing(w);
    expect_drivers(w, DRIVER "+");
}

static void a_claim_that_was_unprepared_may_be_prepared_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    prepare(w, 7, "c1"); /* waits its turn */
    expect_stored(w, "commit *");
    expect(w, "unprepare *");
    claim_unprepared(w);
    expect(w, "commit -claim *");
    expect_nothing(w);
    committed(w);
    expect(w, "claim 6 done");
    expect_stored(w, "commit claim *");
    expect(w, "prepare *");
    claim_answered(w, "gpu-1");
    expect_stored(w, "commit *");
    expect(w, "claim 7 done: gpu-1");
}

/* ---- one at a time ---- */

static void what_is_asked_twice_is_done_once(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    claim_sent(w, 6, "c1");
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit *");
    expect(w, "claim 5 done: gpu-0");
    expect(w, "claim 6 done: gpu-0");
    expect_nothing(w);
}

/* By a pod that was given the claim after another was deleted by force: with another device. */
static void what_is_asked_during_the_call_is_done_anew(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    prepare(w, 6, "c1");
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit *");
    expect(w, "claim 5 done: gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    prepare(w, 7, "c1");
    claim_failed(w, 2, "no");
    expect(w, "claim 6 refused 2: no");
    expect(w, "claim 7 refused 2: no"); /* which may ask again */
    expect_nothing(w);
}

/* ---- several claims in one request ---- */

/* c1 and c2, as requests `batch` and the next. */
static void ask_for_both(struct world *w, uint64_t batch, bool prepares)
{
    ask_in_batch(w, batch, prepares, (struct devicemgr_batch){batch, 0}, "c1");
    ask_in_batch(w, batch + 1, prepares, (struct devicemgr_batch){batch, 1}, "c2");
    devicemgr_run(w->mgr);
}

/* Of batch 5; `what` is prepare or unprepare. */
static void expect_both(struct world *w, const char *what)
{
    char line[64];

    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "%s c%d *", what, i + 1);
        expect(w, line);
        expect(w, i == 0 ? "place 0 of batch 5" : "place 1 of batch 5");
    }
    expect_nothing(w);
}

static void what_is_asked_for_in_one_request_is_called_for_in_one_run(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    ask_for_both(w, 5, true);
    expect(w, "commit claim c1 " DRIVER ", claim c2 *");
    expect_nothing(w);
    committed(w);
    expect_both(w, "prepare");
    driver_lost(w, 1, "closed");
    driver_connected(w, 1);
    expect_both(w, "prepare");
    devicemgr_claim_cancelled(w->mgr, w->now_ms, 5);
    devicemgr_claim_cancelled(w->mgr, w->now_ms, 6);
    driver_lost(w, 1, "closed");
    driver_connected(w, 1);
    expect_nothing(w);
    ask_for_both(w, 5, false);
    expect_stored(w, "commit *");
    expect_both(w, "unprepare");
}

/* Whatever the order in which they are called for: of those that are known already, say, by
 * that. */
static void the_places_are_the_requests(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 1, "c2");
    claim_sent(w, 2, "c1");
    claim_cancelled(w, 1);
    claim_cancelled(w, 2);
    driver_lost(w, 1, "closed");
    ask_for_both(w, 5, true);
    expect_nothing(w);
    driver_connected(w, 1);
    expect(w, "prepare c2 *");
    expect(w, "place 1 of batch 5");
    expect(w, "prepare c1 *");
    expect(w, "place 0 of batch 5");
    expect_nothing(w);
}

/* Who came first is served; he that comes behind is so by the same call. */
static void a_claim_of_two_requests_is_called_for_in_the_first(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    ask_in_batch(w, 4, true, (struct devicemgr_batch){4, 0}, "c2");
    ask_for_both(w, 5, true);
    expect_stored(w, "commit *");
    expect(w, "prepare c2 *");
    expect(w, "place 0 of batch 4");
    expect(w, "prepare c1 *");
    expect(w, "place 0 of batch 5");
    expect_nothing(w);
}

/* What is owed is the driver's, and nobody's request. */
static void what_is_owed_is_of_no_batch(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 1, "c1", "gpu-0");
    claim_prepared(w, 2, "c2", "gpu-0");
    driver_lost(w, 1, "closed");
    ask_for_both(w, 5, false);
    expect_stored(w, "commit *");
    expect(w, "claim 5 *");
    expect(w, "claim 6 *");
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    expect(w, "unprepare c2 *");
    expect_nothing(w);
}

static void an_unprepare_waits_for_the_prepare_under_way(void **state)
{
    struct world *w = *state;
    uint64_t call;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    claim_cancelled(w, 5); /* the kubelet gives up, and removes the pod */
    unprepare(w, 6, "c1");
    prepare(w, 7, "c1");
    expect_nothing(w);
    call = w->call;
    claim_answered(w, "gpu-0");
    expect(w, "commit claim *");
    committed(w); /* prepared: nobody is told */
    expect_stored(w, "commit claim *");
    expect(w, "unprepare *");
    w->call = call; /* an answer that was given already counts for nothing */
    claim_answered(w, "gpu-9");
    expect_nothing(w);
    w->call = call + 3;
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "unpreparing");
}

static void one_that_nobody_waits_for_is_not_sent(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect(w, "commit *");
    claim_cancelled(w, 5);
    committed(w);
    expect_stored(w, "commit claim *");
    expect_nothing(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "asked");
    unprepare(w, 6, "c1"); /* the driver is asked all the same: it is there */
    expect(w, "unprepare *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim *");
    expect(w, "claim 6 done");
}

/* The kubelet has given up just before; it takes the claim for prepared until it is told. */
static void what_nobody_is_told_is_asked_for_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim *");
    expect(w, "unprepare *");
    claim_cancelled(w, 6);
    claim_unprepared(w);
    expect_nothing(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "unpreparing");
    unprepare(w, 7, "c1");
    expect(w, "unprepare *"); /* at once: that it may be is durable */
    claim_unprepared(w);
    expect_stored(w, "commit -claim *");
    expect(w, "claim 7 done");
    expect_nothing(w);
}

/* ---- the driver goes ---- */

static void a_driver_that_is_away_is_waited_for(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_lost(w, 1, "closed");
    prepare(w, 5, "c1");
    expect_stored(w, "commit claim *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "asked");
    pass(w, CLAIM_HOLD_MS - 1);
    expect_nothing(w);
    driver_connected(w, 1);
    expect_stored(w, "commit claim *");
    expect(w, "prepare *");
}

static void but_not_for_ever(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_lost(w, 1, "closed");
    pass(w, 3000);
    prepare(w, 5, "c1");
    ignore_all(w);
    committed(w);
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 5 refused 14: claim ns/c1, driver " DRIVER ": ",
                "no connection to it, for 43s (closed); waited 40s", NULL);
    expect_nothing(w);
    driver_connected(w, 1);
    expect_nothing(w);
    prepare(w, 7, "c1"); /* the kubelet's next try */
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 7 done: gpu-0");
    prepare_of(w, 6, OTHER_DRIVER, "c1");
    expect_stored(w, "commit *");
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 6 refused 14", "DRA driver " OTHER_DRIVER " is not registered", NULL);
}

static void an_unprepare_is_waited_with_too(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_lost(w, 1, "closed");
    unprepare(w, 6, "c1");
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 6 refused 14", NULL);
    expect_nothing(w);
    unprepare(w, 7, "c1");
    driver_connected(w, 1);
    expect_stored(w, "commit *");
    expect(w, "unprepare *");
}

static void a_driver_that_dies_during_the_call_is_asked_again(void **state)
{
    struct world *w = *state;
    uint64_t before;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect_stored(w, "commit *");
    expect(w, "prepare c1 (ns/c1) at 1 *");
    before = w->call;
    driver_lost(w, 1, "closed");
    expect_nothing(w);
    driver_connected(w, 1);
    expect(w, "prepare c1 (ns/c1) at 1 *");
    assert_int_not_equal(w->call, before);
    devicemgr_claim_answered(w->mgr, w->now_ms, before, 0, NULL, "old", 3);
    devicemgr_run(w->mgr);
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit *");
    expect(w, "claim 5 done: gpu-0");
}

static void one_that_dies_in_each_call_is_not_asked_for_ever(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect_stored(w, "commit *");
    for (int i = 0; i < CLAIM_LOST_MAX - 1; i++) {
        expect(w, "prepare *");
        pass(w, CLAIM_HOLD_MS / (CLAIM_LOST_MAX - 1));
        expect_nothing(w);
        driver_lost(w, 1, "crashed");
        if (i < CLAIM_LOST_MAX - 2)
            driver_connected(w, 1);
    }
    expect_with(w, "claim 5 refused 14", "crashed", NULL);
}

/* It may be the claim that ends it: others are to be served, too. */
static void one_that_ends_its_driver_is_refused(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    for (int i = 1; i < CLAIM_LOST_MAX; i++) {
        driver_lost(w, 1, "crashed");
        expect_nothing(w);
        driver_connected(w, 1);
        expect(w, "prepare c1 *");
    }
    driver_lost(w, 1, "crashed");
    expect_with(w, "claim 5 refused 14: claim ns/c1, driver " DRIVER ": ",
                "the driver has ended each time that it was asked", NULL);
    driver_connected(w, 1);
    expect_nothing(w);
    prepare(w, 6, "c1"); /* the kubelet's next try */
    expect(w, "prepare c1 *");
    driver_lost(w, 1, "crashed");
    expect_with(w, "claim 6 refused 14", "the driver has ended each time", NULL);
    driver_connected(w, 1);
    prepare(w, 7, "c1");
    expect(w, "prepare c1 *");
    claim_failed(w, 2, "no"); /* that was none of its ends */
    expect_with(w, "claim 7 refused 2", NULL);
    prepare(w, 8, "c1");
    expect(w, "prepare c1 *");
    driver_lost(w, 1, "crashed");
    expect_nothing(w);
}

static void who_waited_behind_a_call_hears_of_that(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect_stored(w, "commit *");
    expect(w, "prepare *");
    prepare(w, 6, "c1");
    pass(w, CLAIM_HOLD_MS);
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit *");
    expect(w, "claim 5 done: gpu-0");
    expect_with(w, "claim 6 refused 14",
                "the driver is still busy with what was asked for it before; waited 40s", NULL);
    expect_nothing(w);
}

static void one_that_goes_before_the_call_gets_none(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect(w, "commit *");
    driver_lost(w, 1, "closed");
    committed(w);
    expect(w, "commit claim *"); /* it is not sent any more */
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "asked");
    driver_connected(w, 1);
    expect_stored(w, "commit claim *");
    expect(w, "prepare *");
}

static void the_newest_instance_that_is_connected_is_called(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_register(w, 2, DRIVER, "/x/new.sock");
    expect(w, "driver 2 registered");
    expect_stored(w, "commit driver *");
    prepare(w, 5, "c1");
    expect_stored(w, "commit *");
    expect(w, "prepare c1 (ns/c1) at 1 *"); /* the newer one is not connected yet */
    driver_connected(w, 2);
    prepare(w, 6, "c2");
    expect_stored(w, "commit *");
    expect(w, "prepare c2 (ns/c2) at 2 *");
    driver_deregister(w, 1); /* the old one is rolled away: its call goes to the new one */
    expect(w, "prepare c1 (ns/c1) at 2 *");
    driver_register(w, 3, DRIVER, "/x/old.sock"); /* rolled back */
    driver_connected(w, 3);
    driver_deregister(w, 2);
    ignore_all(w);
    committed(w);
    expect_drivers(w, DRIVER "+(2)");
}

/* ---- restarts ---- */

/* Killed when its row was durable, and perhaps sent. */
static void what_may_have_been_sent_is_known_after_a_crash(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    world_restart(w);
    expect_drivers(w, DRIVER "?(1)");
    prepare(w, 6, "c1"); /* the kubelet's call goes on */
    unprepare(w, 7, "c2");
    expect_nothing(w);
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 6 refused 14", NULL); /* it is not owed nothing */
    expect_with(w, "claim 7 refused 14", NULL);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
}

static void a_crash_before_the_answer_is_durable_asks_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    claim_answered(w, "gpu-0");
    expect(w, "commit *");
    world_restart(w); /* nobody was told */
    driver_up(w, 2, DRIVER);
    prepare(w, 6, "c1");
    expect(w, "prepare *"); /* the row says so already */
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit *");
    expect(w, "claim 6 done: gpu-0");
}

static void a_crash_of_an_unprepare_is_taken_up_by_the_next(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit *");
    expect(w, "unprepare *");
    world_restart(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "unpreparing");
    driver_up(w, 2, DRIVER);
    unprepare(w, 7, "c1");
    expect(w, "unprepare *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim *");
    expect(w, "claim 7 done");
}

static void what_is_asked_before_the_rows_are_read_waits_for_them(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit *");
    world_reborn(w);
    unprepare(w, 7, "c1");
    prepare(w, 8, "c2");
    claim_cancelled(w, 8);
    expect_nothing(w);
    world_restored(w);
    expect_nothing(w);
    expect_drivers(w, DRIVER "?(1)");
    driver_register(w, 2, DRIVER, "/x/2.sock");
    ignore_all(w);
    committed(w);
    driver_connected(w, 2);
    expect(w, "unprepare c1 *"); /* as its row says */
}

static void rows_that_are_not_read_are_told_in_time(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    devicemgr_rows_unread(w->mgr, "the disk is away");
    prepare(w, 5, "c1");
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 5 refused 14", "cannot be read: the disk is away", NULL);
}

/* ---- the store fails ---- */

static void what_cannot_be_stored_is_not_sent(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect(w, "commit *");
    commit_failed(w, "disk full");
    expect_with(w, "claim 5 refused 14", "cannot be stored: disk full", NULL);
    expect(w, "commit claim *");
    expect_nothing(w);
}

static void an_answer_that_cannot_be_stored_is_asked_for_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    claim_answered(w, "gpu-0");
    expect(w, "commit *");
    commit_failed(w, "disk full");
    expect_with(w, "claim 5 refused 14", "disk full", NULL);
    claim_sent(w, 6, "c1");
}

static void an_unprepare_that_cannot_be_stored_is_asked_for_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    expect(w, "commit *");
    commit_failed(w, "disk full");
    expect_with(w, "claim 6 refused 14", "disk full", NULL);
    expect_stored(w, "commit claim *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    unprepare(w, 7, "c1");
    expect_stored(w, "commit *");
    expect(w, "unprepare *");
    claim_unprepared(w);
    expect(w, "commit -claim *");
    commit_failed(w, "disk full");
    expect_with(w, "claim 7 refused 14", "disk full", NULL);
    expect_stored(w, "commit claim *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "unpreparing");
    unprepare(w, 8, "c1");
    expect(w, "unprepare *");
}

static void a_store_that_is_slow_is_not_waited_for_ever(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect(w, "commit *");
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 5 refused 14", "was not stored within 40s", NULL);
    prepare(w, 6, "c1");
    committed(w);
    expect(w, "prepare *");
}

/* Its row was on its way, and never came to the disk: there is nothing to delete. */
static void a_claim_is_gone_whose_row_never_was(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_lost(w, 1, "closed");
    prepare(w, 5, "c1");
    expect(w, "commit claim *");
    claim_cancelled(w, 5);
    driver_connected(w, 1);
    unprepare(w, 6, "c1");
    expect(w, "unprepare *");
    claim_unprepared(w);
    expect_nothing(w);
    commit_failed(w, "disk full");
    expect(w, "claim 6 done");
    pass(w, CLAIM_HOLD_MS);
    expect_nothing(w);
}

/* One that nobody knew, and of which a new file of the store may have a row: none comes there by an
 * error, behind which nobody may ask once more. */
static void what_nobody_knew_is_not_remembered_for_an_error(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    unprepare(w, 6, "c1");
    expect(w, "unprepare c1 *");
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect(w, "commit -claim c1 *");
    claim_unprepared(w);
    expect_nothing(w);
    committed(w);
    expect(w, "commit -claim c1 *");
    commit_failed(w, "disk full");
    expect(w, "claim 6 refused*");
    pass(w, COMMIT_RETRY_MS_MAX);
    expect_nothing(w); /* the file has none, as the commit before says */
    assert_null(claim_on_disk(w, "c1", DRIVER));
}

static void what_came_late_has_some_time_to_be_stored(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    pass(w, CLAIM_HOLD_MS + 2000);
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect(w, "commit *");
    pass(w, CLAIM_KEEP_MS - 1);
    expect_nothing(w);
    committed(w);
    expect(w, "claim 5 done: gpu-0");
    claim_sent(w, 6, "c1");
    claim_answered(w, "gpu-0");
    expect(w, "commit *");
    pass(w, CLAIM_KEEP_MS);
    expect_with(w, "claim 6 refused 14", "not stored", NULL);
}

static void a_file_that_was_lost_has_to_have_it_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    claim_failed(w, 2, "no");
    expect(w, "claim 5 refused 2: no");
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect(w, "commit *");
    prepare(w, 6, "c1");
    expect_nothing(w); /* it is not there yet that the driver may have something */
    committed(w);
    expect(w, "prepare *");
}

/* ---- bounds ---- */

static void names_have_a_bound(void **state)
{
    struct world *w = *state;
    char *large = calloc(1, CLAIM_NAMES_BYTES_MAX + 1);

    memset(large, 'a', CLAIM_NAMES_BYTES_MAX);
    driver_up(w, 1, DRIVER);
    prepare(w, 5, large);
    expect_with(w, "claim 5 refused 3", "too long", NULL);
    prepare(w, 6, "");
    expect_with(w, "claim 6 refused 3", NULL);
    prepare(w, 7, "\xff");
    expect_with(w, "claim 7 refused 3", NULL);
    expect_nothing(w);
    free(large);
}

/* A row with them could not be read after a restart, and who uses the claim would not be known. */
static void names_are_texts(void **state)
{
    static const struct {
        const char *driver;
        struct devicemgr_claim claim;
    } bad[] = {{DRIVER, {"ns", "c1", ""}},
               {"", {"ns", "c1", "c1"}},
               {"\xff", {"ns", "c1", "c1"}},
               {DRIVER, {"\xff", "c1", "c1"}},
               {DRIVER, {"ns", "\xff", "c1"}}};
    const struct devicemgr_batch alone = {0};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        devicemgr_claim_prepare(w->mgr, w->now_ms, 5, alone, bad[i].driver, &bad[i].claim);
        devicemgr_run(w->mgr);
        expect_with(w, "claim 5 refused 3", NULL);
        devicemgr_claim_unprepare(w->mgr, w->now_ms, 6, alone, bad[i].driver, &bad[i].claim);
        devicemgr_run(w->mgr);
        expect_with(w, "claim 6 refused 3", NULL);
        expect_nothing(w);
    }
    expect_drivers(w, DRIVER "+");
}

static void who_is_answered_cannot_be_cancelled(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_cancelled(w, 5);
    claim_cancelled(w, 99);
    expect_nothing(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

static void there_is_a_most_of_claims_and_of_who_waits(void **state)
{
    struct world *w = *state;
    char uid[32];

    for (int i = 0; i < CLAIMS_MAX; i++) {
        snprintf(uid, sizeof uid, "c%d", i);
        prepare(w, 1000 + (uint64_t)i, uid);
        if (i % 2)
            claim_cancelled(w, 1000 + (uint64_t)i);
    }
    ignore_all(w);
    prepare(w, 5, "more");
    expect_with(w, "claim 5 refused 8", "too many claims are kept", NULL);
    for (int i = 0; i < CLAIM_REQUESTS_MAX / 2; i++)
        prepare(w, 100000 + (uint64_t)i, "c0");
    ignore_all(w);
    prepare(w, 6, "c1");
    expect_with(w, "claim 6 refused 8", "waited for", NULL);
}

static void who_stops_lets_nobody_wait(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 5, "c1");
    prepare_of(w, 6, OTHER_DRIVER, "c2");
    expect(w, "commit *");
    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_with(w, "claim 6 refused 14", "being stopped", NULL);
    prepare(w, 7, "c3");
    expect_with(w, "claim 7 refused 14", "being stopped", NULL);
    committed(w);
    claim_answered(w, "gpu-0"); /* what is under way may end */
    expect_stored(w, "commit *");
    expect(w, "claim 5 done: gpu-0");
}

#define CLAIMS_TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIMS_TEST(what_is_sent_is_durable_before_and_what_came_of_it_before_it_is_told),
        CLAIMS_TEST(a_call_has_the_time_that_the_settings_say),
        CLAIMS_TEST(an_answer_may_be_empty),
        CLAIMS_TEST(a_driver_that_is_there_is_always_asked),
        CLAIMS_TEST(a_failure_is_told_in_the_drivers_words),
        CLAIMS_TEST(an_answer_that_is_too_large_is_refused),
        CLAIMS_TEST(claims_are_kept_for_each_driver),
        CLAIMS_TEST(an_unprepare_is_durable_before_and_after),
        CLAIMS_TEST(one_that_fails_is_asked_again),
        CLAIMS_TEST(a_claim_never_seen_passes_through),
        CLAIMS_TEST(a_claim_that_was_unprepared_may_be_prepared_again),
        CLAIMS_TEST(what_is_asked_twice_is_done_once),
        CLAIMS_TEST(what_is_asked_during_the_call_is_done_anew),
        CLAIMS_TEST(what_is_asked_for_in_one_request_is_called_for_in_one_run),
        CLAIMS_TEST(the_places_are_the_requests),
        CLAIMS_TEST(a_claim_of_two_requests_is_called_for_in_the_first),
        CLAIMS_TEST(what_is_owed_is_of_no_batch),
        CLAIMS_TEST(an_unprepare_waits_for_the_prepare_under_way),
        CLAIMS_TEST(one_that_nobody_waits_for_is_not_sent),
        CLAIMS_TEST(what_nobody_is_told_is_asked_for_again),
        CLAIMS_TEST(a_driver_that_is_away_is_waited_for),
        CLAIMS_TEST(but_not_for_ever),
        CLAIMS_TEST(an_unprepare_is_waited_with_too),
        CLAIMS_TEST(a_driver_that_dies_during_the_call_is_asked_again),
        CLAIMS_TEST(one_that_dies_in_each_call_is_not_asked_for_ever),
        CLAIMS_TEST(one_that_ends_its_driver_is_refused),
        CLAIMS_TEST(who_waited_behind_a_call_hears_of_that),
        CLAIMS_TEST(one_that_goes_before_the_call_gets_none),
        CLAIMS_TEST(the_newest_instance_that_is_connected_is_called),
        CLAIMS_TEST(what_may_have_been_sent_is_known_after_a_crash),
        CLAIMS_TEST(a_crash_before_the_answer_is_durable_asks_again),
        CLAIMS_TEST(a_crash_of_an_unprepare_is_taken_up_by_the_next),
        CLAIMS_TEST(what_is_asked_before_the_rows_are_read_waits_for_them),
        CLAIMS_TEST(rows_that_are_not_read_are_told_in_time),
        CLAIMS_TEST(what_cannot_be_stored_is_not_sent),
        CLAIMS_TEST(an_answer_that_cannot_be_stored_is_asked_for_again),
        CLAIMS_TEST(an_unprepare_that_cannot_be_stored_is_asked_for_again),
        CLAIMS_TEST(a_store_that_is_slow_is_not_waited_for_ever),
        CLAIMS_TEST(a_claim_is_gone_whose_row_never_was),
        CLAIMS_TEST(what_nobody_knew_is_not_remembered_for_an_error),
        CLAIMS_TEST(what_came_late_has_some_time_to_be_stored),
        CLAIMS_TEST(a_file_that_was_lost_has_to_have_it_again),
        CLAIMS_TEST(names_have_a_bound),
        CLAIMS_TEST(names_are_texts),
        CLAIMS_TEST(who_is_answered_cannot_be_cancelled),
        CLAIMS_TEST(there_is_a_most_of_claims_and_of_who_waits),
        CLAIMS_TEST(who_stops_lets_nobody_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
