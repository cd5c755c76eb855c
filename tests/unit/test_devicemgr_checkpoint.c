/* Group commit and its failures. */
#include <stdio.h>

#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static int setup(void **state)
{
    world_setup(state);
    plugin_up(*state, GPU, "gpu.sock", "g0 g1 g2", false, false);
    return 0;
}

/* Brings create `number` of pod `uid` to where it needs the store. */
static void allocate_for(struct world *w, uint64_t number, const char *uid, const char *tokens)
{
    assert_true(create(w, number, uid, "main", tokens, NULL));
    expect(w, "allocate *");
    allocated(w, "A=1");
}

static void one_commit_at_a_time_and_the_next_takes_all(void **state)
{
    struct world *w = *state;

    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    allocate_for(w, 12, "u2", GPU ":g1");
    allocate_for(w, 13, "u3", GPU ":g2");
    expect_nothing(w);
    committed(w);
    expect(w, "verdict 11 forward A=1");
    expect(w,
           "commit allocation u2 main vendor.com/gpu, allocation u3 main vendor.com/gpu, pod u2, "
           "pod u3");
    committed(w);
    expect(w, "verdict 12 forward A=1");
    expect(w, "verdict 13 forward A=1");
    expect_nothing(w);
}

static void events_before_one_run_share_a_commit(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    sandbox_ran(w, "u2", "s-u2", 0);
    container_made(w, 1, "u1", "main", GPU ":g0");
    container_made(w, 2, "u2", "main", GPU ":g1");
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u1");
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u2");
    devicemgr_run(w->mgr);
    expect(w, "commit -allocation u1 main vendor.com/gpu, -allocation u2 main vendor.com/gpu, "
              "-pod u1, -pod u2");
}

static void a_store_that_fails_is_said_when_it_changes(void **state)
{
    static const struct {
        const char *error, *id, *said; /* NULL: nothing */
    } steps[] = {
        {"full", ":g0", "state cannot be stored: full"},
        {"full", ":g0", NULL},
        {"read-only", ":g0", "state cannot be stored: read-only"},
        {NULL, ":g0", "state can be stored again"},
        {NULL, ":g1", NULL},
        {"read-only", ":g2", "state cannot be stored: read-only"},
    };
    struct world *w = *state;
    char uid[8], token[32];

    forget_logs(w);
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        snprintf(uid, sizeof uid, "p%u", i);
        snprintf(token, sizeof token, GPU "%s", steps[i].id);
        allocate_for(w, 20 + i, uid, token);
        expect(w, "commit *");
        forget_logs(w);
        if (steps[i].error)
            commit_failed(w, steps[i].error);
        else
            committed(w);
        expect(w, "verdict *");
        assert_int_equal(logged(w, steps[i].said ? steps[i].said : "stored"),
                         steps[i].said != NULL);
    }
}

static void a_failed_commit_refuses_its_creates_and_takes_all_back(void **state)
{
    struct world *w = *state;

    container_made(w, 1, "u9", "main", GPU ":g2");
    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit *");
    commit_failed(w, "disk I/O error: No space left on device");
    expect(w,
           "verdict 11 refused 14: container \"main\" of pod \"ns/u1\": resource vendor.com/gpu: "
           "the allocation cannot be stored: disk I/O error: No space left on device");
    expect_nothing(w); /* no busy retry */
    assert_int_equal(logged(w, "state cannot be stored: disk I/O error"), 1);
    /* what needs no commit passes */
    assert_true(create(w, 12, "u9", "main", GPU ":g2", NULL));
    expect(w, "verdict 12 forward MADE=1");
    /* and g0 is free again; the disk has nothing to be put right */
    allocate_for(w, 13, "u2", GPU ":g0");
    expect(w, "commit allocation u2 main vendor.com/gpu, pod u2");
    committed(w);
    expect(w, "verdict 13 forward A=1");
}

/* Pods that end while the disk is full leave rows that nothing else would ever delete. */
static void a_failed_commit_is_tried_again_by_itself(void **state)
{
    static const uint64_t PAUSES_MS[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    container_made(w, 1, "u1", "main", GPU ":g0");
    sandbox_removed(w, "s-u1");
    for (size_t i = 0; i < sizeof PAUSES_MS / sizeof *PAUSES_MS; i++) {
        expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
        commit_failed(w, "database or disk is full");
        pass(w, PAUSES_MS[i] - 1);
        expect_nothing(w);
        pass(w, 1);
    }
    expect(w, "commit *");
    committed(w);
    assert_false(world_stored(w, "allocation u1 main " GPU));
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

/* The disk may be full for days, while pods come and go. */
static void what_was_never_stored_is_not_deleted(void **state)
{
    struct world *w = *state;
    char uid[16], sandbox[16], line[128];

    container_made(w, 1, "u0", "main", GPU ":g2");
    for (unsigned i = 1; i <= 50; i++) {
        snprintf(uid, sizeof uid, "u%u", i);
        snprintf(sandbox, sizeof sandbox, "s-u%u", i);
        allocate_for(w, 10 + i, uid, GPU ":g0");
        snprintf(line, sizeof line, "commit allocation %s main vendor.com/gpu, pod %s", uid, uid);
        expect(w, line);
        if (i % 3 == 0)
            sandbox_removed(w, sandbox); /* in the midst of it */
        commit_failed(w, "database or disk is full");
        expect(w, "verdict *");
        if (i % 3 == 1)
            sandbox_removed(w, sandbox);
        expect_nothing(w);
        assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX); /* nothing to try again */
    }
    for (unsigned i = 0; i < 3; i++) { /* one that stays, and is tried again */
        allocate_for(w, 100 + i, "u99", GPU ":g0");
        expect(w, "commit allocation u99 main vendor.com/gpu, pod u99");
        commit_failed(w, "database or disk is full");
        expect(w, "verdict *");
        assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
    }
}

/* Nor is what never had anything to keep: a plugin may register any number of names. */
static void resources_that_never_listed_leave_no_rows(void **state)
{
    struct world *w = *state;
    char name[32];

    for (uint64_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", (unsigned)i);
        plugin_register(w, 100 + i, name, "r.sock");
        plugin_options(w, w->endpoint, true, true);
        plugin_lost(w, w->endpoint, "refused");
    }
    ignore_all(w);
    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
}

/* What the disk has of pods that end is to go from it, however often that fails. */
static void what_was_stored_is_deleted_in_the_end(void **state)
{
    struct world *w = *state;

    container_made(w, 1, "u1", "main", GPU ":g0");
    sandbox_removed(w, "s-u1");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    /* a new pod of that uid, as of a static pod, comes, and ends, in the midst of it */
    w->sandbox_attempt = 1;
    assert_true(create_in(w, 11, "s-u1-1", "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    allocated(w, "A=1");
    commit_failed(w, "database or disk is full");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    sandbox_removed(w, "s-u1-1");
    expect_with(w, "verdict 11 refused 9:", NULL);
    commit_failed(w, "database or disk is full");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    assert_true(world_stored(w, "allocation u1 main " GPU));
    committed(w);
    assert_false(world_stored(w, "allocation u1 main " GPU));
    assert_false(world_stored(w, "pod u1"));
    expect_nothing(w);
}

/* Its row is in the store, though it was gone before anybody knew. */
static void what_is_stored_too_late_is_deleted_in_the_end(void **state)
{
    struct world *w = *state;

    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit allocation u1 *");
    sandbox_removed(w, "s-u1");
    expect_with(w, "verdict 11 refused 9:", NULL);
    committed(w);
    for (unsigned i = 0; i < 2; i++) {
        expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
        commit_failed(w, "database or disk is full");
        pass(w, COMMIT_RETRY_MS_MAX);
    }
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    assert_true(world_stored(w, "pod u1"));
}

static void a_commit_that_succeeds_ends_the_retries(void **state)
{
    const char *const uids[] = {"u1", "u2"}, *const sandboxes[] = {"s-u1", "s-u2"};
    struct world *w = *state;

    for (int i = 0; i < 2; i++) {
        container_made(w, 10, uids[i], "main", GPU ":g0");
        sandbox_removed(w, sandboxes[i]);
        expect(w, "commit -allocation u*");
        commit_failed(w, "database or disk is full");
        assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + COMMIT_RETRY_MS_MIN);
        allocate_for(w, 12, i == 0 ? "u3" : "u4", i == 0 ? GPU ":g1" : GPU ":g2");
        expect_with(w, "commit ", "-allocation u", "allocation u", NULL);
        assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX); /* one at a time */
        committed(w);
        expect(w, "verdict *");
        assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
        create_answered(w, 12, "c-12");
    }
}

static void a_new_file_gets_all_there_is(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    sandbox_ran(w, "u5", "s-u5", 0); /* holds nothing */
    container_made(w, 1, "u1", "main", GPU ":g0");
    allocate_for(w, 11, "u2", GPU ":g1");
    expect(w, "commit allocation u2 main vendor.com/gpu, pod u2");
    devicemgr_store_reset(w->mgr, w->now_ms);
    commit_failed(w, "made anew");
    expect(w, "verdict 11 refused 14:*");
    expect(w, "commit -loss rows_lost, allocation u1 main vendor.com/gpu, pod u1, "
              "resource vendor.com/gpu");
    committed(w);
    expect_nothing(w);
    assert_int_equal(devicemgr_next_ms(w->mgr), UINT64_MAX);
}

/* After a reboot, with a full disk: who had it before is made with it, as its row says. */
static void what_is_given_anew_is_stored_later(void **state)
{
    struct world *w = *state;

    container_made(w, 1, "u1", "main", GPU ":g0");
    w->settings.boot_id = "boot-2";
    world_restart(w);
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    if (w->pending)
        committed(w);
    runtime_listed(w, "u1");
    ignore_all(w);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
    allocated(w, "NEW=1");
    expect(w, "commit *");
    commit_failed(w, "read-only");
    expect(w, "verdict 11 forward NEW=1");
    create_answered(w, 11, NULL);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 12 forward NEW=1");
    pass(w, COMMIT_RETRY_MS_MIN);
    expect_stored(w, "commit *");
    world_restart(w);
    plugin_back(w, "g0");
    runtime_listed(w, "u1");
    ignore_all(w);
    assert_true(create(w, 13, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 13 forward NEW=1");
}

/* What another resource has never given is not. */
static void but_not_with_what_is_new_besides(void **state)
{
    struct world *w = *state;

    container_made(w, 1, "u1", "main", GPU ":g0");
    w->settings.boot_id = "boot-2";
    world_restart(w);
    plugin_back(w, "g0");
    if (w->pending)
        committed(w);
    ignore_all(w);
    nics_up(w, "n0");
    runtime_listed(w, "u1");
    if (w->pending)
        committed(w);
    ignore_all(w);
    assert_true(create(w, 11, "u1", "main", GPU ":g0 " NIC ":n0", NULL));
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
    allocated(w, "NEW=1");
    w->call--;
    allocated(w, "NIC=1");
    expect(w, "commit *");
    commit_failed(w, "read-only");
    expect(w, "verdict 11 refused 14:*");
}

/* A container that runs says that it has it, and no row does. */
static void nor_with_what_was_only_found(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main=" GPU ":g0");
    expect(w, "commit *");
    commit_failed(w, "read-only");
    container_removed(w, "c-u1-main");
    ignore_all(w);
    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit *");
    commit_failed(w, "read-only");
    expect(w, "verdict 11 refused 14:*");
    allocate_for(w, 12, "u1", GPU ":g0");
    expect_stored(w, "commit *");
    expect(w, "verdict 12 forward A=1");
}

static void a_failed_commit_of_a_create_given_up_frees_its_device(void **state)
{
    struct world *w = *state;

    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit *");
    create_cancelled(w, 11);
    commit_failed(w, "EIO");
    expect_nothing(w);
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

static void a_create_given_up_before_its_commit_begins_leaves_nothing(void **state)
{
    struct world *w = *state;

    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit *");
    allocate_for(w, 12, "u2", GPU ":g1");
    create_cancelled(w, 12);
    committed(w);
    expect(w, "verdict 11 forward A=1");
    expect(w, "commit -allocation u2 main vendor.com/gpu, -pod u2");
    committed(w);
    assert_false(world_stored(w, "allocation u2 main " GPU));
}

static void a_pod_that_ends_during_its_commit_is_deleted_by_the_next(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit *");
    sandbox_removed(w, "s-u1");
    expect(w, "verdict 11 refused 9:*");
    committed(w);
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    committed(w);
    assert_false(world_stored(w, "allocation u1 main " GPU));
    expect_nothing(w);
}

static void a_store_that_is_too_slow_ends_with_the_clients_deadline(void **state)
{
    struct world *w = *state;

    w->deadline_ms = w->now_ms + 4200;
    allocate_for(w, 11, "u1", GPU ":g0");
    expect(w, "commit *");
    pass(w, 4000);
    expect_with(w, "verdict 11 refused 4:", "state was not stored within 4s", NULL);
    committed(w);
    w->deadline_ms = UINT64_MAX;
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 12 forward A=1"); /* it was made durable meanwhile */
}

/* Found by tests/sim: the row stayed when the reservation was given up, and so did the pod's
 * end. */
static void a_reservation_writes_no_row_of_its_pod(void **state)
{
    struct world *w = *state;
    uint64_t call;

    sandbox_ran(w, "u1", "s-old", 0);
    sandbox_ran(w, "u1", "s-u1", 1);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    call = w->call;
    sandbox_removed(w, "s-old"); /* its pod has something, if only a reservation */
    container_made(w, 12, "u2", "main", GPU ":g1");
    assert_false(world_stored(w, "pod u1"));
    w->call = call;
    allocate_failed(w, 2, "no");
    expect(w, "verdict 11 refused *");
}

static void a_result_of_no_commit_is_ignored(void **state)
{
    struct world *w = *state;

    devicemgr_committed(w->mgr, w->now_ms, 4711, NULL);
    devicemgr_committed(w->mgr, w->now_ms, 4711, "error");
    devicemgr_run(w->mgr);
    expect_nothing(w);
    assert_int_equal(logged(w, "stored"), 0);
}

static void one_allocation_writes_one_allocation(void **state)
{
    struct world *w = *state;

    container_made(w, 1, "u1", "main", GPU ":g0");
    container_made(w, 2, "u2", "main", GPU ":g1");
    allocate_for(w, 11, "u3", GPU ":g2");
    expect(w, "commit allocation u3 main vendor.com/gpu, pod u3"); /* however many there are */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_commit_at_a_time_and_the_next_takes_all),
        TEST(events_before_one_run_share_a_commit),
        TEST(a_store_that_fails_is_said_when_it_changes),
        TEST(a_failed_commit_refuses_its_creates_and_takes_all_back),
        TEST(a_failed_commit_is_tried_again_by_itself),
        TEST(what_was_never_stored_is_not_deleted),
        TEST(resources_that_never_listed_leave_no_rows),
        TEST(what_was_stored_is_deleted_in_the_end),
        TEST(what_is_stored_too_late_is_deleted_in_the_end),
        TEST(a_commit_that_succeeds_ends_the_retries),
        TEST(a_new_file_gets_all_there_is),
        TEST(what_is_given_anew_is_stored_later),
        TEST(but_not_with_what_is_new_besides),
        TEST(nor_with_what_was_only_found),
        TEST(a_failed_commit_of_a_create_given_up_frees_its_device),
        TEST(a_create_given_up_before_its_commit_begins_leaves_nothing),
        TEST(a_pod_that_ends_during_its_commit_is_deleted_by_the_next),
        TEST(a_store_that_is_too_slow_ends_with_the_clients_deadline),
        TEST(a_reservation_writes_no_row_of_its_pod),
        TEST(a_result_of_no_commit_is_ignored),
        TEST(one_allocation_writes_one_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
