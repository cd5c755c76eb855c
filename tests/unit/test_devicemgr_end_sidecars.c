/* devicemgr/machines/end_stop.c: sidecars of pods that are ended from here. */
#include "devicemgr/endings.h"
#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr_world.h"

#define GRACE 30000

/* ---- what is asked for ---- */

static void end(struct world *w, uint64_t grace_ms)
{
    devicemgr_end(w->mgr, w->now_ms, 1, "ns/u1", grace_ms, true, "tired", 5);
    devicemgr_run(w->mgr);
}

/* "proxy" was started first, then "logs". */
static void told(struct world *w, size_t names_len)
{
    static const char *const NAMES[] = {"proxy", "logs"};

    devicemgr_sidecars(w->mgr, &(struct devicemgr_sidecars){.pod_uid = "u1",
                                                            .pod_namespace = "ns",
                                                            .pod_name = "u1",
                                                            .names = NAMES,
                                                            .names_len = names_len});
}

/* ---- what the runtime has ---- */

#define CONTAINERS 4
static const char *const NAMES[CONTAINERS] = {"proxy", "logs", "app", "other"};
static const char *const IDS[CONTAINERS] = {"c-proxy", "c-logs", "c-app", "c-other"};

/* Of pod u1, as "rrr-": the containers above, which run ('r'), are created ('c'), have exited
 * ('x'), are not there ('-'). */
static void list_comes(struct world *w, const char *what)
{
    const struct devicemgr_sandbox sandbox = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .ready = true};
    struct devicemgr_container containers[CONTAINERS];
    size_t len = 0;

    for (size_t i = 0; i < CONTAINERS; i++) {
        if (what[i] != '-')
            containers[len++] = (struct devicemgr_container){.id = IDS[i],
                                                             .sandbox_id = "s-u1",
                                                             .name = NAMES[i],
                                                             .running = what[i] != 'x',
                                                             .created = what[i] == 'c'};
    }
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, containers, len);
    devicemgr_run(w->mgr);
}

static void listed(struct world *w, const char *what)
{
    devicemgr_runtime_listing(w->mgr);
    list_comes(w, what);
}

static void stopped(struct world *w, uint64_t op, int code)
{
    devicemgr_container_stopped(w->mgr, w->now_ms, op, code, "the runtime's words");
    devicemgr_run(w->mgr);
}

/* All that there is to store is; what else the ports were asked is forgotten. */
static void stored(struct world *w)
{
    while (w->pending)
        committed(w);
    ignore_all(w);
}

static int setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    kubelet_lists(w);
    told(w, 2);
    listed(w, "rrr-");
    pass(w, 10 * LIST_EVERY_MS);
    ignore_all(w);
    return 0;
}

/* What the store is asked meanwhile is done. */
static void expect_stop(struct world *w, const char *line)
{
    expect(w, line);
    while (w->pending) {
        expect(w, "commit ending u1");
        committed(w);
    }
}

/* As far as that its containers are being stopped, of those as list_comes() has it. */
static void stopping(struct world *w, const char *what)
{
    end(w, GRACE);
    stored(w);
    listed(w, what);
}

static void expect_over(struct world *w)
{
    stored(w);
    assert_int_equal(endings_find(&w->mgr->state.endings, "u1")->state, ENDING_STOPPED);
}

/* ---- in their turn ---- */

static void they_are_stopped_behind_all_others(void **state)
{
    struct world *w = *state;
    uint64_t app;

    stopping(w, "rrrr");
    expect(w, "stop c-app in 30000ms");
    expect_stop(w, "stop c-other in 30000ms");
    app = w->stop - 1;
    stopped(w, w->stop, 0);
    pass(w, 5000);
    expect_nothing(w);
    listed(w, "rrrx"); /* again */
    expect_nothing(w);
    stopped(w, app, 0);
    expect_stop(w, "stop c-logs in 25000ms"); /* what is left */
    pass(w, 2000);
    expect_nothing(w);
    stopped(w, w->stop, 5); /* it has gone by itself */
    expect_stop(w, "stop c-proxy in 23000ms");
    assert_int_equal(endings_find(&w->mgr->state.endings, "u1")->state, ENDING_STOPPING);
    stopped(w, w->stop, 0);
    expect_over(w);
    assert_int_equal(w->mgr->ends.counts.stops, 4);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    pass(w, 60000);
    expect_nothing(w);
}

static void so_they_are_where_nothing_else_runs(void **state)
{
    struct world *w = *state;

    stopping(w, "rrx-");
    expect_stop(w, "stop c-logs in 30000ms");
    stopped(w, w->stop, 0);
    expect_stop(w, "stop c-proxy in 30000ms");
    expect_nothing(w);
}

/* It may be started, or never: what holds nobody up now is none of their business. */
static void one_that_is_created_only_keeps_nobody(void **state)
{
    struct world *w = *state;

    stopping(w, "rrc-");
    expect_stop(w, "stop c-logs in 30000ms");
    listed(w, "rrr-");
    expect(w, "stop c-app in 30000ms");
    stored(w);
    listed(w, "crr-"); /* nor is one of them stopped that is */
    pass(w, 60000);
    expect(w, "list");
}

static void a_created_sidecar_has_its_turn_when_it_runs(void **state)
{
    struct world *w = *state;

    stopping(w, "rcr-");
    expect_stop(w, "stop c-app in 30000ms");
    listed(w, "rrr-");
    expect_nothing(w);
    stopped(w, w->stop, 0);
    expect(w, "stop c-logs in 30000ms");
    expect_nothing(w);
}

/* ---- in time ---- */

static void they_wait_no_longer_than_the_grace(void **state)
{
    struct world *w = *state;
    uint64_t app;

    stopping(w, "rrr-");
    expect_stop(w, "stop c-app in 30000ms"); /* which hangs */
    app = w->stop;
    pass(w, GRACE - END_GRACE_MS_MIN - 1);
    expect_nothing(w);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + 1);
    pass(w, 1);
    expect(w, "stop c-proxy in 1000ms");
    expect(w, "stop c-logs in 1000ms");
    stopped(w, w->stop, 0);
    stopped(w, w->stop - 1, 0);
    pass(w, 60000);
    expect_nothing(w);
    stopped(w, app, 0);
    expect_over(w);
}

static void one_that_hangs_keeps_those_behind_it_no_longer(void **state)
{
    struct world *w = *state;

    stopping(w, "rrx-");
    expect_stop(w, "stop c-logs in 30000ms");
    pass(w, GRACE - END_GRACE_MS_MIN - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "stop c-proxy in 1000ms");
}

static void without_a_grace_nobody_waits(void **state)
{
    struct world *w = *state;

    end(w, 1);
    stored(w);
    listed(w, "rrr-");
    expect(w, "stop c-app in 1000ms");
    expect(w, "stop c-proxy in 1000ms");
    expect_stop(w, "stop c-logs in 1000ms");
}

static void a_shorter_grace_is_theirs_too(void **state)
{
    struct world *w = *state;

    stopping(w, "rrr-");
    expect_stop(w, "stop c-app in 30000ms");
    pass(w, 5000);
    end(w, 10000);
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "stop c-app in 10000ms");
    expect(w, "stop no more"); /* of the app's alone */
    stored(w);
    stopped(w, w->stop, 0);
    expect(w, "stop c-logs in 10000ms");
    end(w, 3000);
    stored(w);
    pass(w, 1999);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "stop c-proxy in 1000ms");
    end(w, 1);
    stored(w);
    expect_nothing(w);
}

/* What is still to come before it does not wait for it. */
static void one_that_is_told_anew_keeps_its_turn(void **state)
{
    struct world *w = *state;

    stopping(w, "r-x-");
    expect_stop(w, "stop c-proxy in 30000ms");
    end(w, 10000);
    committed(w);
    stored(w);
    listed(w, "rrx-");
    expect(w, "stop c-logs in 10000ms");
}

/* ---- what the runtime says ---- */

static void a_stop_that_fails_is_followed_by_none_of_theirs(void **state)
{
    struct world *w = *state;
    uint64_t app;

    stopping(w, "rrrr");
    expect(w, "stop c-app in 30000ms");
    expect_stop(w, "stop c-other in 30000ms");
    app = w->stop - 1;
    stopped(w, app, 14);
    stopped(w, w->stop, 0); /* none is under way now */
    expect_nothing(w);
    pass(w, END_RETRY_MS_MIN);
    expect(w, "list");
    listed(w, "rrrx");
    expect(w, "stop c-app in 29000ms");
    stopped(w, w->stop, 0);
    expect(w, "stop c-logs in 29000ms");
    stopped(w, w->stop, 14);
    expect_nothing(w);
    pass(w, END_RETRY_MS_MIN);
    expect(w, "list");
    listed(w, "rrxx");
    expect(w, "stop c-logs in 28000ms");
}

/* What was started since is shown by the next one. */
static void a_list_under_way_is_too_old(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_listing(w->mgr);
    end(w, GRACE);
    stored(w);
    list_comes(w, "rr--");
    stored(w);
    pass(w, LIST_EVERY_MS);
    expect(w, "list");
    listed(w, "rrr-");
    expect(w, "stop c-app in 29000ms");
    expect_nothing(w);
    stopped(w, w->stop, 0);
    expect(w, "stop c-logs in 29000ms");
}

static void a_runtime_that_is_away_keeps_nobody_longer(void **state)
{
    struct world *w = *state;

    stopping(w, "rrr-");
    expect_stop(w, "stop c-app in 30000ms");
    stopped(w, w->stop, 14);
    pass(w, 60000);
    stopped(w, w->stop, 14); /* c-logs */
    stopped(w, w->stop - 1, 14);
    stored(w);
    listed(w, "rrr-");
    expect(w, "stop c-app in 1000ms");
    expect(w, "stop c-proxy in 1000ms");
    expect(w, "stop c-logs in 1000ms");
}

/* ---- who is known ---- */

static void where_they_are_not_known_all_are_stopped_at_once(void **state)
{
    struct world *w = *state;

    told(w, 0);
    stopping(w, "rrr-");
    told(w, 2); /* it is too late */
    expect(w, "stop c-proxy in 30000ms");
    expect(w, "stop c-logs in 30000ms");
    expect_stop(w, "stop c-app in 30000ms");
    expect_nothing(w);
}

static void who_waits_does_so_though_they_are_forgotten(void **state)
{
    struct world *w = *state;

    stopping(w, "rrr-");
    expect_stop(w, "stop c-app in 30000ms");
    told(w, 0);
    listed(w, "rrr-");
    expect_nothing(w);
    stopped(w, w->stop, 0);
    expect(w, "stop c-logs in 30000ms");
}

/* What the process before knew when it stopped them counts until they are told anew. */
static void so_they_do_after_a_restart(void **state)
{
    struct world *w = *state;

    stopping(w, "rrr-");
    expect_stop(w, "stop c-app in 30000ms");
    stopped(w, w->stop, 0);
    ignore_all(w);
    pass(w, 10000);
    world_restart(w);
    listed(w, "rrr-");
    expect(w, "stop c-app in 20000ms");
    expect_nothing(w);
    stopped(w, w->stop, 0);
    expect(w, "stop c-logs in 20000ms");
    stored(w);
    pass(w, 1000);
    world_restart(w);
    listed(w, "rrx-");
    expect(w, "stop c-logs in 19000ms");
    expect_nothing(w);
}

/* ---- who is not to be stopped any more ---- */

static void what_is_taken_back_was_not_sent(void **state)
{
    struct world *w = *state;

    stopping(w, "rrr-");
    expect_stop(w, "stop c-app in 30000ms");
    devicemgr_end_cancel(w->mgr, w->now_ms, 2, "ns/u1");
    devicemgr_run(w->mgr);
    expect(w, "stop no more");
    expect(w, "commit -ending u1");
    committed(w);
    expect(w, "steered 2:*");
    pass(w, 60000);
    expect_nothing(w);
}

static void of_a_pod_that_is_gone_none_waits(void **state)
{
    struct world *w = *state;

    stopping(w, "rrr-");
    stored(w);
    devicemgr_runtime_listing(w->mgr);
    devicemgr_runtime_listed(w->mgr, w->now_ms, NULL, 0, NULL, 0);
    devicemgr_run(w->mgr);
    stored(w);
    assert_null(endings_find(&w->mgr->state.endings, "u1"));
    assert_null(w->mgr->ends.stops);
    pass(w, 60000);
    expect_nothing(w);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(they_are_stopped_behind_all_others),
        TEST(so_they_are_where_nothing_else_runs),
        TEST(one_that_is_created_only_keeps_nobody),
        TEST(a_created_sidecar_has_its_turn_when_it_runs),
        TEST(they_wait_no_longer_than_the_grace),
        TEST(one_that_hangs_keeps_those_behind_it_no_longer),
        TEST(without_a_grace_nobody_waits),
        TEST(a_shorter_grace_is_theirs_too),
        TEST(one_that_is_told_anew_keeps_its_turn),
        TEST(a_stop_that_fails_is_followed_by_none_of_theirs),
        TEST(a_list_under_way_is_too_old),
        TEST(a_runtime_that_is_away_keeps_nobody_longer),
        TEST(where_they_are_not_known_all_are_stopped_at_once),
        TEST(who_waits_does_so_though_they_are_forgotten),
        TEST(so_they_do_after_a_restart),
        TEST(what_is_taken_back_was_not_sent),
        TEST(of_a_pod_that_is_gone_none_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
