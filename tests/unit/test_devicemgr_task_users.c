/* A claim is not unprepared while a container may run with it. */
#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "devicemgr/things/claim.h"
#include "devicemgr/things/limits.h"

/* In sandbox "s-UID", with the CDI device of the device that the claim was prepared with. */
static bool create_with(struct world *w, const char *uid, const char *container, const char *cdi)
{
    const char *sandbox = strcmp(uid, "u1") == 0 ? "s-u1" : "s-u2";
    const struct devicemgr_create request = {.sandbox_id = sandbox,
                                             .pod_uid = uid,
                                             .pod_namespace = "ns",
                                             .pod_name = uid,
                                             .container = container,
                                             .cdi_devices = &cdi,
                                             .cdi_devices_len = 1,
                                             .deadline_ms = UINT64_MAX};

    return create_claimed(w, 77, &request);
}

/* Claim c1 is prepared, and pods u1 and u2 have a container with it. */
static void c1_in_two_pods(struct world *w)
{
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0")); /* it passes */
    expect_stored(w, "commit claim c1 *");
    assert_false(create_with(w, "u2", "main", "example.com/dev=gpu-0"));
    expect_stored(w, "commit claim c1 *");
    create_with(w, "u2", "other", "example.com/dev=gpu-9"); /* no device of it */
    expect_nothing(w);
    pass(w, CLAIM_USER_COMES_MS);
}

static void one_that_another_pod_uses_is_not_unprepared(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit claim c1 *");
    unprepare(w, 6, "c1"); /* the kubelet has lost count */
    expect(w, "list");
    expect_nothing(w);
    runtime_listed(w, "u2/main");
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u2", NULL);
    expect_nothing(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    sandbox_stopped(w, "s-u2");
    expect_stored(w, "commit claim c1 *");
    unprepare(w, 7, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
}

static void the_stop_of_a_dead_sandbox_ends_no_user(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0"));
    expect_stored(w, "commit claim c1 *");
    pass(w, CLAIM_USER_COMES_MS);
    runtime_listed(w, "~u1/main");
    ignore_all(w);
    sandbox_stopped(w, "s-u1"); /* CRI-O stops nothing in it */
    ignore_all(w);
    unprepare(w, 6, "c1");
    pass(w, LIST_EVERY_MS);
    ignore_all(w); /* the list */
    runtime_listed(w, "~u1/main");
    expect_with(w, "claim 6 refused 14", "container \"main\"", NULL);
}

/* The machine went down before it was started: containerd lists it so for ever. */
static void but_who_was_only_created_in_it_is_none(void **state)
{
    const struct devicemgr_sandbox dead = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1"};
    const struct devicemgr_container created = {
        .id = "c-u1-main", .sandbox_id = "s-u1", .name = "main", .running = true, .created = true};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0"));
    expect_stored(w, "commit claim c1 *");
    pass(w, CLAIM_USER_COMES_MS);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &dead, 1, &created, 1);
    devicemgr_run(w->mgr);
    ignore_all(w);
    sandbox_stopped(w, "s-u1");
    ignore_all(w);
    unprepare(w, 6, "c1");
    pass(w, LIST_EVERY_MS);
    ignore_all(w); /* the list */
    devicemgr_runtime_listed(w->mgr, w->now_ms, &dead, 1, &created, 1);
    devicemgr_run(w->mgr);
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
}

/* A driver may have the same names for a device whoever has it: the container of u1 may have it by
 * its own claim, to look at it perhaps, and runs for ever. */
static void one_that_may_have_it_by_another_claim_is_in_nobodys_way(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_prepared(w, 6, "c2", "gpu-0 gpu-1");
    assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0"));
    expect_stored(w, "commit claim c1 *");
    ignore_all(w);
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 7, "c2");
    expect_stored(w, "commit claim c2 *");
    expect(w, "unprepare c2 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c2 *");
    expect(w, "claim 7 done");
    unprepare(w, 8, "c1"); /* which is the last that it may have it by */
    expect(w, "list");
    runtime_listed(w, "u1/main");
    expect_with(w, "claim 8 refused 14", "container \"main\" of pod ns/u1", NULL);
}

/* Nor does it matter whether it is the same device to the cluster: it may be another share of one,
 * or one of many for which the driver has one name. */
static void so_is_one_that_has_the_same_names(void **state)
{
    static const char *const answers[][2] = {{"*gpu-0", "**gpu-0"}, {"kvm-0:kvm", "kvm-1:kvm"}};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct world *w = *state;

        driver_up(w, 1, DRIVER);
        claim_prepared(w, 5, "c1", answers[i][0]);
        claim_prepared(w, 6, "c2", answers[i][1]);
        assert_false(
            create_with(w, "u1", "main", i == 0 ? "example.com/dev=gpu-0" : "example.com/dev=kvm"));
        expect_stored(w, "commit claim c1 *");
        ignore_all(w);
        pass(w, CLAIM_USER_COMES_MS);
        unprepare(w, 7, "c2");
        expect_stored(w, "commit claim c2 *");
        expect(w, "unprepare c2 *");
        world_teardown(state);
        claims_setup(state);
    }
}

/* What counts is what it was asked for with, of a claim that has others by now. */
static void so_it_is_by_what_the_claim_had_before(void **state)
{
    static const struct {
        const char *anew;
        const char *answer;
    } cases[] = {{"gpu-1:own", "gpu-0"}, {"gpu-0:own", "gpu-2:other"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool alike = i == 0;
        struct world *w = *state;

        driver_up(w, 1, DRIVER);
        claim_prepared(w, 5, "c1", "gpu-0");
        claim_prepared(w, 6, "c2", cases[i].answer);
        assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0"));
        expect_stored(w, "commit claim c1 *");
        ignore_all(w);
        prepare(w, 7, "c1");
        expect_stored(w, "commit claim c1 *");
        expect(w, "prepare c1 *");
        claim_answered(w, cases[i].anew);
        expect_stored(w, "commit claim c1 *");
        ignore_all(w);
        pass(w, CLAIM_USER_COMES_MS);
        unprepare(w, 8, "c1");
        if (alike)
            expect_stored(w, "commit claim c1 *");
        expect(w, alike ? "unprepare c1 *" : "list");
        world_teardown(state);
        claims_setup(state);
    }
}

static void what_the_list_does_not_show_uses_nothing(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    unprepare(w, 6, "c1");
    expect(w, "list");
    runtime_listed(w, "u1/main! u2");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
}

static void a_list_that_was_asked_for_before_says_nothing(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    devicemgr_runtime_listing(w->mgr);
    create_with(w, "u2", "late", "example.com/dev=gpu-0");
    expect_stored(w, "commit claim c1 *");
    pass(w, CLAIM_USER_COMES_MS); /* the runtime takes its time */
    devicemgr_runtime_listed(w->mgr, w->now_ms, NULL, 0, NULL, 0);
    devicemgr_run(w->mgr);
    expect(w, "commit claim c1 *"); /* who was there before is not any more */
    committed(w);
    unprepare(w, 6, "c1");
    expect(w, "list");
    runtime_listed(w, "u2/late");
    expect_with(w, "claim 6 refused 14", "container \"late\" of pod ns/u2", NULL);
}

static void one_that_may_be_in_the_making_counts(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    create_with(w, "u2", "main", "example.com/dev=gpu-0"); /* again, and not made yet */
    expect_nothing(w);
    unprepare(w, 6, "c1");
    expect(w, "list");
    runtime_listed(w, "");
    expect_with(w, "claim 6 refused 14", "pod ns/u2", NULL);
    pass(w, CLAIM_USER_COMES_MS);
    ignore_all(w);
    committed(w);
    unprepare(w, 7, "c1");
    expect(w, "list");
    runtime_listed(w, "");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
}

/* However long the runtime takes to make one that is made again: no list tells that it has the
 * claim. */
static void one_that_is_long_in_the_making_counts(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    w->slow = true;
    assert_false(create_with(w, "u2", "main", "example.com/dev=gpu-0"));
    expect_nothing(w);
    pass(w, 3 * CLAIM_USER_COMES_MS);
    runtime_listed(w, "u2");
    expect_stored(w, "commit claim c1 *"); /* u1 has ended */
    devicemgr_runtime_listing(w->mgr);
    if (w->passed == 77) /* in between */
        devicemgr_create_answered(w->mgr, w->now_ms, w->passed, "k");
    devicemgr_runtime_listed(w->mgr, w->now_ms, NULL, 0, NULL, 0);
    devicemgr_run(w->mgr);
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 6, "c1");
    expect(w, "list");
    runtime_listed(w, "u2/main");
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u2", NULL);
    expect_nothing(w);
}

/* Its client has given it up, and it may come all the same. */
static void one_that_nobody_hears_of_counts(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    w->slow = true;
    assert_false(create_with(w, "u2", "main", "example.com/dev=gpu-0"));
    pass(w, 3 * CLAIM_USER_COMES_MS);
    devicemgr_create_cancelled(w->mgr, w->now_ms, 77);
    runtime_listed(w, "u2");
    expect_stored(w, "commit claim c1 *"); /* u1 has ended */
    unprepare(w, 6, "c1");
    pass(w, LIST_EVERY_MS);
    ignore_all(w);
    runtime_listed(w, "u2/main");
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u2", NULL);
}

/* On the way to the runtime since before the restart. */
static void one_that_an_earlier_process_has_sent_counts(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    world_restart(w);
    devicemgr_earlier_creates(w->mgr, w->now_ms, true);
    driver_register(w, 2, DRIVER, "/x/2.sock");
    ignore_all(w);
    committed(w);
    driver_connected(w, 2);
    ignore_all(w);
    pass(w, 3 * CLAIM_USER_COMES_MS);
    runtime_listed(w, "u1 u2");
    ignore_all(w);
    devicemgr_earlier_creates(w->mgr, w->now_ms, false);
    unprepare(w, 6, "c1");
    pass(w, LIST_EVERY_MS);
    ignore_all(w);
    runtime_listed(w, "u1 u2/main");
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/", NULL);
}

static void who_used_it_is_known_after_a_restart(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    world_restart(w);
    driver_register(w, 2, DRIVER, "/x/2.sock");
    ignore_all(w);
    committed(w);
    driver_connected(w, 2);
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 6, "c1");
    runtime_listed(w, "u1/main u2/main");
    ignore_all(w);
    pass(w, CLAIM_HOLD_MS);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

static void a_runtime_that_does_not_answer_unprepares_nothing(void **state)
{
    struct world *w = *state;

    c1_in_two_pods(w);
    unprepare(w, 6, "c1");
    expect(w, "list");
    pass(w, CLAIM_HOLD_MS);
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

static void nor_is_it_put_off_while_it_is_used(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    c1_in_two_pods(w);
    driver_lost(w, 1, "closed");
    unprepare(w, 6, "c1");
    expect(w, "list");
    runtime_listed(w, "u1/main u2/main");
    expect_with(w, "claim 6 refused 14", "pod ns/u", NULL);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

/* It is asked for while the driver is at it. */
static void c1_being_unprepared_under_u1(struct world *w)
{
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0"));
    expect_stored(w, "commit claim c1 *");
}

static void one_that_is_asked_for_while_that_is_stored_counts(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 6, "c1");
    expect(w, "commit claim c1 *");
    create_with(w, "u1", "main", "example.com/dev=gpu-0");
    expect_nothing(w);
    committed(w);
    expect(w, "list");
    expect(w, "commit claim c1 *");
    expect_nothing(w); /* the driver is not asked */
    runtime_listed(w, "u1/main");
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

/* Of the last pod that had the claim, while another one comes: a kubelet up to 1.36.2 has that use
 * what it takes for prepared. What its driver has unprepared is prepared anew. */
static void so_does_one_while_the_driver_is_at_it(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    claim_unprepared(w);
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    expect_stored(w, "commit claim c1 *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
    unprepare(w, 8, "c1");
    expect(w, "list");
    runtime_listed(w, "u1/main");
    expect_with(w, "claim 8 refused 14", "container \"main\" of pod ns/u1", NULL);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit claim c1 *");
    unprepare(w, 9, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect(w, "claim 9 done");
}

/* It may have done that. */
static void so_does_one_whose_driver_dies_of_it(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    driver_lost(w, 1, "crashed");
    expect(w, "list");
    driver_connected(w, 1);
    expect_nothing(w);
    runtime_listed(w, "u1/main");
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

/* Half of it, or later. */
static void so_does_one_whose_driver_fails_it(void **state)
{
    static const struct {
        bool cancelled, crashes;
    } cases[] = {{false, false}, {true, false}, {true, true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *w = *state;

        c1_being_unprepared_under_u1(w);
        if (cases[i].cancelled)
            claim_cancelled(w, 6);
        if (cases[i].crashes)
            driver_lost(w, 1, "crashed");
        else
            claim_failed(w, 4, "deadline exceeded");
        if (!cases[i].cancelled)
            expect(w, "claim 6 refused 4*");
        if (cases[i].crashes)
            driver_connected(w, 1);
        expect_stored(w, "commit claim c1 *");
        expect(w, "prepare c1 *");
        claim_answered(w, "gpu-0");
        expect_stored(w, "commit claim c1 *");
        expect_nothing(w);
        world_teardown(state);
        claims_setup(state);
    }
}

/* However long that is away: nobody else asks for it. */
static void so_does_one_whose_driver_is_away_for_long(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    claim_cancelled(w, 6);
    driver_lost(w, 1, "crashed");
    pass(w, CLAIM_HOLD_MS);
    driver_connected(w, 1);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    driver_lost(w, 1, "closed");
    driver_connected(w, 1);
    expect_nothing(w);
}

/* Or goes as it prepares it anew. */
static void or_goes_as_it_does_so(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    claim_unprepared(w);
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    driver_lost(w, 1, "crashed");
    pass(w, CLAIM_HOLD_MS);
    driver_connected(w, 1);
    expect(w, "prepare c1 *"); /* that it is sent is stored */
    claim_failed(w, 2, "no");
    expect_nothing(w);
    driver_lost(w, 1, "closed");
    driver_connected(w, 1);
    expect(w, "prepare c1 *");
    world_restart(w);
    driver_register(w, 2, DRIVER, "/x/2.sock");
    ignore_all(w);
    committed(w);
    driver_connected(w, 2);
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    driver_lost(w, 2, "closed");
    driver_connected(w, 2);
    expect_nothing(w);
}

/* Or where that it is asked to cannot be stored: it has not gone, and nobody else asks. */
static void or_cannot_be_stored_as_it_is_asked_to(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    claim_unprepared(w);
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    expect(w, "commit claim c1 *");
    commit_failed(w, "disk full");
    expect_nothing(w);
    pass(w, COMMIT_RETRY_MS_MIN);
    expect_stored(w, "commit claim c1 *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

/* Claim c2 is owed, and its driver fails that, in the way of c1, which is to be prepared anew for
 * pod u1. */
static void c1_waits_behind_owed(struct world *w)
{
    slice_is(w, "p", "gpu-1");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 4, "c2", "gpu-1");
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, CLAIM_USER_COMES_MS);
    driver_lost(w, 1, "closed");
    unprepare(w, 6, "c2");
    expect_stored(w, "commit claim c2 *");
    expect(w, "claim 6 done");
    driver_connected(w, 1);
    expect(w, "unprepare c2 *");
    claim_failed(w, 2, "busy");
    unprepare(w, 7, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0"));
    expect_stored(w, "commit claim c1 *");
    claim_unprepared(w);
    expect_with(w, "claim 7 refused 14", "container \"main\" of pod ns/u1", NULL);
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

/* As long as that takes. */
static void or_that_is_behind_what_is_owed(void **state)
{
    struct world *w = *state;

    c1_waits_behind_owed(w);
    for (uint64_t waited_ms = 0; waited_ms < 3 * CLAIM_HOLD_MS; waited_ms += OWED_RETRY_MS_MAX) {
        pass(w, OWED_RETRY_MS_MAX);
        expect(w, "unprepare c2 *");
        claim_failed(w, 2, "busy");
        expect_nothing(w);
    }
    pass(w, OWED_RETRY_MS_MAX);
    expect(w, "unprepare c2 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c2 *");
    expect(w, "prepare c1 *"); /* that it is sent is stored */
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

static void but_in_nobodys_way_behind_it(void **state)
{
    struct world *w = *state;

    c1_waits_behind_owed(w);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit claim c1 *");
    pass(w, CLAIM_HOLD_MS - 1);
    unprepare(w, 8, "c1");
    expect(w, "unprepare c2 *");
    expect_nothing(w);
    pass(w, 1);
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
}

/* So does one that comes when that is over: its kubelet has the claim prepared until it has asked
 * once more, which it does not behind who comes. */
static void so_does_one_that_comes_just_behind(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    claim_cancelled(w, 6);
    claim_unprepared(w);
    expect_nothing(w);
    assert_false(create_with(w, "u1", "main", "example.com/dev=gpu-0"));
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

/* It may be what ends it, which has others to serve. */
static void but_not_for_ever_if_it_ends_each_time(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    claim_unprepared(w);
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    expect_stored(w, "commit claim c1 *");
    for (int i = 0; i < CLAIM_LOST_MAX; i++) {
        expect(w, "prepare c1 *");
        driver_lost(w, 1, "crashed");
        driver_connected(w, 1);
    }
    expect_nothing(w);
    prepare(w, 7, "c1"); /* the kubelet may */
    expect(w, "prepare c1 *");
}

static void but_none_that_has_ended_by_then(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    claim_cancelled(w, 6);
    driver_lost(w, 1, "crashed");
    pass(w, CLAIM_HOLD_MS);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit claim c1 *");
    driver_connected(w, 1);
    expect_nothing(w);
}

/* A kubelet that asks for that itself, behind it, has its answer. */
static void nor_is_it_prepared_twice_then(void **state)
{
    struct world *w = *state;

    c1_being_unprepared_under_u1(w);
    prepare(w, 7, "c1");
    claim_unprepared(w);
    expect_with(w, "claim 6 refused 14", "container \"main\" of pod ns/u1", NULL);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 7 done*");
    expect_nothing(w);
}

static void nor_is_what_is_stored_put_off_then(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, CLAIM_USER_COMES_MS);
    driver_lost(w, 1, "closed");
    unprepare(w, 6, "c1");
    expect(w, "commit claim c1 *");
    create_with(w, "u1", "main", "example.com/dev=gpu-0");
    committed(w);
    expect(w, "list");
    expect(w, "commit claim c1 *");
    expect_nothing(w); /* it is not promised */
    committed(w);
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
}

/* Claim c1 is owed, and the kubelet, which has the driver, too, has had it prepared since then for
 * a pod whose container is made. */
static void c1_owed_and_used(struct world *w)
{
    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_lost(w, 1, "closed");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
    create_with(w, "u1", "main", "example.com/dev=gpu-0");
    expect_stored(w, "commit claim c1 *");
}

static void what_is_owed_is_looked_up_if_a_container_was_made_with_it_since(void **state)
{
    struct world *w = *state;

    c1_owed_and_used(w);
    driver_connected(w, 1);
    expect(w, "settle c1 (ns/c1) at 1 *");
    claim_in_use(w);
    expect_nothing(w);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit claim c1 *");
    pass(w, OWED_RETRY_MS_MIN);
    expect(w, "unprepare c1 (ns/c1) at 1 *");
}

static void nor_is_it_unprepared_to_prepare_it_anew(void **state)
{
    struct world *w = *state;

    c1_owed_and_used(w);
    prepare(w, 7, "c1");
    expect_nothing(w);
    driver_connected(w, 1);
    expect_stored(w, "commit claim c1 *");
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "sent");
    expect(w, "prepare c1 (ns/c1) at 1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 7 done*");
}

/* A crash would have it owed again, behind what was prepared since. */
static void nor_is_another_prepared_before_that_is_stored(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_sent(w, 9, "c2");
    claim_cancelled(w, 9);
    driver_deregister(w, 1);
    c1_owed_and_used(w);
    prepare(w, 7, "c1");
    prepare(w, 8, "c2");
    driver_connected(w, 1);
    expect(w, "commit claim c1 *");
    expect_nothing(w);
    committed(w);
    expect(w, "prepare c1 *");
    expect(w, "prepare c2 *");
}

static void there_is_a_most_of_users(void **state)
{
    struct claim claim = {0};
    char name[16];

    (void)state;
    for (int i = 0; i < CLAIM_USERS_MAX; i++) {
        snprintf(name, sizeof name, "c%d", i);
        assert_true(claim_add_user(&claim, "s", name, "ns/web", "u1", 1));
    }
    assert_false(claim_add_user(&claim, "s", "more", "ns/web", "u1", 1));
    assert_int_equal(claim.users_len, CLAIM_USERS_MAX);
    while (claim.users_len > 0)
        claim_drop_user(&claim, 0);
    free(claim.users);
}

static void there_is_a_most_of_what_a_claim_had(void **state)
{
    struct claim claim = {0};
    char name[16];

    (void)state;
    for (int i = 0; i < CLAIM_FORMER_MAX + 1; i++) {
        const struct granted_device device = {.pool = (char *)"p", .device = name};

        snprintf(name, sizeof name, "d%d", i);
        claim_add_former(&claim, &device);
        claim_add_former(&claim, &device);
    }
    assert_int_equal(claim.former.len, CLAIM_FORMER_MAX);
    granted_fini(&claim.former);
}

#define CLAIMS_TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIMS_TEST(one_that_another_pod_uses_is_not_unprepared),
        CLAIMS_TEST(the_stop_of_a_dead_sandbox_ends_no_user),
        CLAIMS_TEST(but_who_was_only_created_in_it_is_none),
        CLAIMS_TEST(one_that_may_have_it_by_another_claim_is_in_nobodys_way),
        CLAIMS_TEST(so_is_one_that_has_the_same_names),
        CLAIMS_TEST(so_it_is_by_what_the_claim_had_before),
        CLAIMS_TEST(what_the_list_does_not_show_uses_nothing),
        CLAIMS_TEST(a_list_that_was_asked_for_before_says_nothing),
        CLAIMS_TEST(one_that_may_be_in_the_making_counts),
        CLAIMS_TEST(one_that_is_long_in_the_making_counts),
        CLAIMS_TEST(one_that_nobody_hears_of_counts),
        CLAIMS_TEST(one_that_an_earlier_process_has_sent_counts),
        CLAIMS_TEST(who_used_it_is_known_after_a_restart),
        CLAIMS_TEST(a_runtime_that_does_not_answer_unprepares_nothing),
        CLAIMS_TEST(nor_is_it_put_off_while_it_is_used),
        CLAIMS_TEST(one_that_is_asked_for_while_that_is_stored_counts),
        CLAIMS_TEST(so_does_one_while_the_driver_is_at_it),
        CLAIMS_TEST(so_does_one_whose_driver_dies_of_it),
        CLAIMS_TEST(so_does_one_whose_driver_fails_it),
        CLAIMS_TEST(so_does_one_whose_driver_is_away_for_long),
        CLAIMS_TEST(or_goes_as_it_does_so),
        CLAIMS_TEST(or_cannot_be_stored_as_it_is_asked_to),
        CLAIMS_TEST(or_that_is_behind_what_is_owed),
        CLAIMS_TEST(but_in_nobodys_way_behind_it),
        CLAIMS_TEST(so_does_one_that_comes_just_behind),
        CLAIMS_TEST(but_not_for_ever_if_it_ends_each_time),
        CLAIMS_TEST(but_none_that_has_ended_by_then),
        CLAIMS_TEST(nor_is_it_prepared_twice_then),
        CLAIMS_TEST(nor_is_what_is_stored_put_off_then),
        CLAIMS_TEST(what_is_owed_is_looked_up_if_a_container_was_made_with_it_since),
        CLAIMS_TEST(nor_is_it_unprepared_to_prepare_it_anew),
        CLAIMS_TEST(nor_is_another_prepared_before_that_is_stored),
        cmocka_unit_test(there_is_a_most_of_users),
        cmocka_unit_test(there_is_a_most_of_what_a_claim_had),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
