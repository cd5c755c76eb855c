/* devicemgr/machines/end*.c, rules/ended.c, turn/operator_end.c: pods that are ended from here. */
#include <stdio.h>

#include "devicemgr/endings.h"
#include "devicemgr/lists.h"
#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr_world.h"

#define REFUSED_OF_U1                                                                              \
    "refused 9: container \"main\" of pod \"ns/u1\": the pod is ended on this node, by the "       \
    "operator: tired"

/* ---- what is asked for ---- */

static void end_in(struct world *w, uint64_t number, const char *pod, uint64_t grace_ms)
{
    devicemgr_end(w->mgr, w->now_ms, number, pod, grace_ms, false, "tired", 5);
    devicemgr_run(w->mgr);
}

static void end_here(struct world *w, uint64_t number, const char *pod, uint64_t grace_ms)
{
    devicemgr_end(w->mgr, w->now_ms, number, pod, grace_ms, true, "tired", 5);
    devicemgr_run(w->mgr);
}

static void take_back(struct world *w, uint64_t number, const char *pod)
{
    devicemgr_end_cancel(w->mgr, w->now_ms, number, pod);
    devicemgr_run(w->mgr);
}

/* Another asker than the operator, by the face that machines have. */
static void ask(struct world *w, enum end_asker asker, uint64_t token, const char *pod_uid,
                uint64_t grace_ms)
{
    const struct end_request request = {
        .asker = asker, .token = token, .grace_ms = grace_ms, .why = "it is to"};

    ends_ask(&w->mgr->ends, pod_uid, &request);
    devicemgr_run(w->mgr);
}

/* ---- what the runtime has ---- */

enum run { RUNS, CREATED, CREATED_MORE, EXITED };

static struct devicemgr_annotation own_grace = {"io.kubernetes.pod.terminationGracePeriod", "45"};

/* Pod u1 in sandbox s-u1 with one container "c-u1-main" and `more`, which runs but with
 * CREATED_MORE, and pod u2, whose container runs. */
static void list_comes(struct world *w, enum run main, const char *more)
{
    const struct devicemgr_sandbox sandboxes[] = {
        {.id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .ready = true},
        {.id = "s-u2", .pod_uid = "u2", .pod_namespace = "ns", .pod_name = "u2", .ready = true}};
    const struct devicemgr_container containers[] = {
        {.id = "c-u1-main",
         .sandbox_id = "s-u1",
         .name = "main",
         .running = main != EXITED,
         .created = main == CREATED || main == CREATED_MORE,
         .annotations = &own_grace,
         .annotations_len = 1},
        {.id = "c-u2-main", .sandbox_id = "s-u2", .name = "main", .running = true},
        {.id = more,
         .sandbox_id = "s-u1",
         .name = "more",
         .running = true,
         .created = main == CREATED_MORE}};

    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, containers, more ? 3 : 2);
    devicemgr_run(w->mgr);
}

static void listed(struct world *w, enum run main, const char *more)
{
    devicemgr_runtime_listing(w->mgr);
    list_comes(w, main, more);
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
    while (w->lines)
        expect(w, "*");
}

static int end_setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    kubelet_lists(w);
    listed(w, RUNS, NULL);
    pass(w, 10 * LIST_EVERY_MS);
    ignore_all(w);
    forget_logs(w);
    return 0;
}

static int cluster_setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    w->settings.cluster = true;
    world_fresh(w);
    devicemgr_restored(w->mgr, w->now_ms);
    kubelet_lists(w);
    listed(w, RUNS, NULL);
    pass(w, 10 * LIST_EVERY_MS);
    ignore_all(w);
    forget_logs(w);
    return 0;
}

/* As far as that its containers are being stopped. */
static void stopping(struct world *w, uint64_t grace_ms)
{
    end_here(w, 1, "ns/u1", grace_ms);
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main *");
    stored(w);
    ignore_all(w);
}

/* ---- here ---- */

static void its_containers_are_stopped_and_none_is_made(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "ns/u1", DEVICEMGR_POD_GRACE);
    expect_event(w, "ending - [] ns/u1/- operator: tired");
    expect(w, "commit ending u1");
    expect_nothing(w); /* stored before anything is done */
    committed(w);
    expect(w, "list");
    expect(w, "steered 1: pod \"ns/u1\": its containers are being stopped, and none is made any "
              "more (by the operator: tired)");
    stored(w);
    assert_true(create(w, 11, "u1", "main", NULL, NULL)); /* one without devices, too */
    devicemgr_run(w->mgr);
    expect(w, "verdict 11 " REFUSED_OF_U1);
    assert_false(create(w, 12, "u2", "main", NULL, NULL));
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 45000ms"); /* its own, and not another pod's container */
    stored(w);
    pass(w, LIST_EVERY_MS);
    stopped(w, w->stop, 0);
    stored(w);
    expect_event(w, "refused ");
    expect_event(w, "ended - [] ns/u1/- stopped: -");
    assert_int_equal(logged(w, "none of its containers runs, and none is made any more"), 1);
    assert_true(create(w, 13, "u1", "main", NULL, NULL));
}

/* Other clients of the runtime may leave it out: all of theirs would be one. */
static void what_has_no_uid_is_no_pod_to_end(void **state)
{
    const struct devicemgr_sandbox sandbox = {
        .id = "s-x", .pod_uid = "", .pod_namespace = "ns", .pod_name = "x", .ready = true};
    struct world *w = *state;

    devicemgr_sandbox_ran(w->mgr, w->now_ms, &sandbox);
    end_in(w, 1, "ns/x", DEVICEMGR_POD_GRACE);
    expect(w, "steer 1 refused 5: the runtime knows no such pod");
    end_in(w, 2, "", DEVICEMGR_POD_GRACE);
    expect(w, "steer 2 refused 5: the runtime knows no such pod");
}

static void one_that_it_is_not_asked_for_is_not_known(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "ns/u3", DEVICEMGR_POD_GRACE);
    expect(w, "steer 1 refused 5: the runtime knows no such pod");
    take_back(w, 2, "ns/u1");
    expect(w, "steer 2 refused 5: no operator has asked for such a pod to end");
    devicemgr_drain(w->mgr, w->now_ms);
    end_in(w, 3, "ns/u1", DEVICEMGR_POD_GRACE);
    expect(w, "steer 3 refused 9: the shim is being stopped");
    expect_nothing(w);
}

static void a_reason_that_cannot_be_kept_is_refused(void **state)
{
    struct world *w = *state;
    char reason[ORDER_REASON_BYTES_MAX + 2];

    memset(reason, 'x', sizeof reason);
    reason[sizeof reason - 1] = '\0';
    devicemgr_end(w->mgr, w->now_ms, 1, "ns/u1", DEVICEMGR_POD_GRACE, true, reason, 5);
    devicemgr_run(w->mgr);
    expect(w, "steer 1 refused 3: the reason is too long*");
    devicemgr_end(w->mgr, w->now_ms, 2, "ns/u1", DEVICEMGR_POD_GRACE, true, "\xff", 5);
    devicemgr_run(w->mgr);
    expect(w, "steer 2 refused 3: the reason is no UTF-8");
    expect_nothing(w);
}

/* Kubernetes' own default is what it has then. */
static void one_whose_grace_cannot_be_read(void **state)
{
    static const char *const VALUES[] = {"", "-1", ":", "45s", "2147483648", "x"};
    const char *right = own_grace.value;
    struct world *w = *state;

    for (uint64_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        own_grace.value = (char *)VALUES[i];
        end_in(w, i + 1, "ns/u1", DEVICEMGR_POD_GRACE);
        stored(w);
        listed(w, RUNS, NULL);
        expect(w, "stop c-u1-main in 30000ms");
        stored(w);
        take_back(w, 100 + i, "ns/u1");
        stored(w);
    }
    own_grace.value = right;
}

/* Pod `uid`, called ns/web, in sandbox "s-UID". */
static void web_ran(struct world *w, const char *uid)
{
    char sandbox[16];

    snprintf(sandbox, sizeof sandbox, "s-%s", uid);
    devicemgr_sandbox_ran(w->mgr, w->now_ms,
                          &(struct devicemgr_sandbox){.id = sandbox,
                                                      .pod_uid = uid,
                                                      .pod_namespace = "ns",
                                                      .pod_name = "web",
                                                      .ready = true});
    ignore_all(w);
}

/* As when an owner makes another one: the sandbox of the first is removed a minute later. */
static void of_those_called_so_the_one_that_lives_is_meant(void **state)
{
    struct world *w = *state;

    web_ran(w, "u3");
    sandbox_stopped(w, "s-u3");
    end_in(w, 1, "u3", UINT64_MAX);
    stored(w);
    web_ran(w, "u4");
    end_in(w, 2, "web", UINT64_MAX);
    stored(w);
    assert_non_null(endings_find(&w->mgr->state.endings, "u4"));
    take_back(w, 3, "web");
    stored(w);
    assert_null(endings_find(&w->mgr->state.endings, "u4"));
    web_ran(w, "u5");
    end_in(w, 4, "ns/web", UINT64_MAX);
    expect(w, "steer 4 refused 9: several pods are called so: name it by its uid");
    sandbox_stopped(w, "s-u4");
    sandbox_stopped(w, "s-u5");
    ignore_all(w);
    end_in(w, 5, "web", UINT64_MAX);
    expect(w, "steer 5 refused 9: several pods are called so: name it by its uid");
}

static void requests_collapse(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    ask(w, END_EVICTION, 7, "u1", 10000);
    ask(w, END_SHUTDOWN, 1, "u1", 20000);
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "steered 1: pod \"ns/u1\": is to end*"); /* the others' is being stored */
    expect(w, "commit ending u1");
    stored(w);
    ignore_all(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 10000ms"); /* once, with the shortest */
    listed(w, RUNS, NULL);
    stopped(w, w->stop, 0);
    expect(w, "commit ending u1");
    stored(w);
    expect_event(w, "ended ");
    expect_no_event(w);
    assert_int_equal(w->mgr->ends.counts.asked, 3);
    assert_int_equal(w->mgr->ends.counts.stops, 1);
}

static void a_shorter_grace_is_sent_on(void **state)
{
    struct world *w = *state;
    uint64_t first;

    stopping(w, 60000);
    first = w->stop;
    pass(w, 20000);
    ignore_all(w);
    ask(w, END_SHUTDOWN, 1, "u1", 50000); /* 40 s are left */
    expect(w, "commit ending u1");
    committed(w);
    expect_nothing(w);
    ask(w, END_EVICTION, 1, "u1", 5000);
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "stop c-u1-main in 5000ms");
    expect(w, "stop no more"); /* the one before, in this order */
    expect(w, "commit ending u1");
    assert_int_not_equal(w->stop, first);
    stopped(w, first, 0); /* nobody's any more */
    expect_nothing(w);
    committed(w);
    stopped(w, w->stop, 0);
    expect(w, "commit ending u1");
}

static void so_it_is_if_a_list_shows_more_before_it_is_stored(void **state)
{
    struct world *w = *state;

    stopping(w, 60000);
    pass(w, 20000);
    ignore_all(w);
    ask(w, END_EVICTION, 1, "u1", 5000);
    expect(w, "commit ending u1");
    listed(w, RUNS, "c-late");
    expect(w, "stop c-u1-main in 5000ms");
    expect(w, "stop no more");
    expect(w, "stop c-late in 5000ms");
    expect_nothing(w);
}

/* 45 s: its containers say so. */
static void so_is_the_pods_own(void **state)
{
    struct world *w = *state;

    stopping(w, 60000);
    pass(w, 5000);
    ignore_all(w);
    ask(w, END_EVICTION, 0, "u1", ENDING_POD_GRACE);
    committed(w);
    expect(w, "commit ending u1");
    expect(w, "stop c-u1-main in 45000ms");
    expect(w, "stop no more");
}

static void the_pods_own_is_learned_again_after_a_restart(void **state)
{
    struct world *w = *state;

    stopping(w, 60000);
    world_restart(w);
    ask(w, END_EVICTION, 0, "u1", ENDING_POD_GRACE);
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 45000ms");
}

static void a_runtime_that_is_away_is_waited_for(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    stopped(w, w->stop, 14);
    assert_int_equal(logged(w, "container c-u1-main was not stopped, which is tried again: the "
                               "runtime's words"),
                     1);
    pass(w, 2 * LIST_EVERY_MS);
    expect(w, "list");
    pass(w, 10000);
    expect_nothing(w); /* it does not answer */
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 18000ms"); /* of its 30 s */
    stopped(w, w->stop, 14);
    pass(w, 60000);
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 1000ms"); /* it had its time */
    stopped(w, w->stop, 5);                /* it is not there */
    expect(w, "commit ending u1");
}

static void what_was_in_the_making_is_stopped_too(void **state)
{
    struct world *w = *state;
    uint64_t first;

    stopping(w, 30000);
    first = w->stop;
    listed(w, RUNS, "c-late");
    expect(w, "stop c-late in 30000ms");
    stopped(w, w->stop, 0);
    expect_nothing(w);
    stopped(w, first, 0);
    stored(w);
    expect_event(w, "ended ");
    pass(w, OUTCOME_MS);
    expect(w, "list"); /* for that */
    listed(w, EXITED, "c-later");
    expect(w, "stop c-later in 26000ms");
    stopped(w, w->stop, 0);
    stored(w);
    expect_no_event(w); /* it was told */
}

/* It does not show what was made since: the next one is asked for all the same. */
static void a_list_under_way_is_too_old(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_listing(w->mgr);
    end_in(w, 1, "u1", 30000);
    stored(w);
    expect_event(w, "ending ");
    list_comes(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 30000ms");
    stored(w);
    stopped(w, w->stop, 0);
    expect_nothing(w);
    pass(w, LIST_EVERY_MS);
    expect(w, "list");
    listed(w, EXITED, NULL);
    stored(w);
    expect_event(w, "ended ");
}

/* A runtime stops nothing that was not started, and says that it has. */
static void one_that_is_created_is_stopped_when_it_runs(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    stored(w);
    listed(w, CREATED, NULL);
    expect(w, "commit ending u1");
    stored(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 30000ms");
}

/* Of a create that was under way, and took long: nobody tells when it is started. */
static void one_that_is_created_is_looked_for_until_it_runs(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    stopped(w, w->stop, 0);
    stored(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    for (uint64_t ms = END_RETRY_MS_MIN; ms < 4 * END_RETRY_MS_MAX; ms *= 2) {
        listed(w, CREATED, NULL);
        pass(w, (ms < END_RETRY_MS_MAX ? ms : END_RETRY_MS_MAX) - 1);
        expect_nothing(w);
        pass(w, 1);
        expect(w, "list");
    }
    listed(w, CREATED_MORE, "c-more"); /* another one, which may be started at once */
    pass(w, END_RETRY_MS_MIN);
    expect(w, "list");
    listed(w, CREATED, "c-more");
    expect(w, "stop c-more in 1000ms");
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 1000ms");
    stored(w);
    ignore_all(w);
    pass(w, 10 * END_RETRY_MS_MAX);
    expect_nothing(w);
}

static void its_end_by_the_list_counts(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    stored(w);
    expect_event(w, "ending ");
    listed(w, EXITED, NULL);
    expect(w, "commit ending u1");
    expect_no_event(w); /* told when it is stored */
    committed(w);
    expect_event(w, "ended - [] ns/u1/- stopped: -");
    expect_nothing(w);
}

static void no_sandbox_is_run_either(void **state)
{
    struct world *w = *state;
    struct devicemgr_refusal refusal;

    assert_false(devicemgr_refuses_sandboxes(w->mgr));
    end_in(w, 1, "u1", 30000);
    assert_false(devicemgr_sandbox_refused(w->mgr, "u1", &refusal)); /* not before it is stored */
    stored(w);
    assert_true(devicemgr_refuses_sandboxes(w->mgr));
    assert_true(devicemgr_sandbox_refused(w->mgr, "u1", &refusal));
    assert_int_equal(refusal.code, 9);
    assert_string_equal(refusal.words,
                        "sandbox of pod \"ns/u1\": the pod is ended on this node, by "
                        "the operator: tired");
    assert_false(devicemgr_sandbox_refused(w->mgr, "u2", &refusal));
    take_back(w, 2, "u1");
    assert_false(devicemgr_refuses_sandboxes(w->mgr));
}

static void what_is_done_is_counted(void **state)
{
    struct devicemgr_endings endings;
    struct world *w = *state;

    stopping(w, 30000);
    devicemgr_endings(w->mgr, &endings);
    assert_int_equal(endings.stopping, 1);
    stopped(w, w->stop, 14);
    stored(w);
    listed(w, EXITED, NULL);
    stored(w);
    devicemgr_endings(w->mgr, &endings);
    assert_int_equal(endings.stopping, 0);
    assert_int_equal(endings.stopped, 1);
    assert_int_equal(endings.stops, 1);
    assert_int_equal(endings.stops_failed, 1);
    assert_int_equal(endings.ended, 1);
}

static bool on_row(void *user, const struct devicemgr_ending_row *row)
{
    struct text *text = user;

    text_add(text, "%s%s/%s %s", text->len > 0 ? ", " : "", row->pod_namespace, row->name,
             row->state);
    for (size_t i = 0; i < row->asks_len; i++) {
        const struct devicemgr_ending_ask *ask = &row->asks[i];

        text_add(text, " by %s: %s", ask->asker, ask->why);
        if (!ask->own_grace)
            text_add(text, " (%d s)", (int)(ask->grace_ms / 1000));
    }
    if (row->due)
        text_add(text, " in %d s", (int)(row->due_in_ms / 1000));
    return true;
}

static void expect_rows(struct world *w, const struct devicemgr_which *which, const char *expected)
{
    struct text text = {0};

    devicemgr_ending_rows(w->mgr, w->now_ms, which, on_row, &text);
    assert_string_equal(text.buf, expected);
}

static void who_is_ended_is_listed(void **state)
{
    const char *const after[] = {"ns", "u1", "u1"};
    struct world *w = *state;

    expect_rows(w, &(struct devicemgr_which){0}, "");
    stopping(w, 30000);
    ask(w, END_SHUTDOWN, 7, "u1", ENDING_POD_GRACE);
    ask(w, END_EVICTION, 7, "u2", ENDING_POD_GRACE);
    expect_rows(w, &(struct devicemgr_which){0},
                "ns/u1 stopping by operator: tired (30 s) by shutdown: it is to in 30 s, "
                "ns/u2 asked by eviction: it is to");
    expect_rows(w, &(struct devicemgr_which){.pod = "ns/u2"}, "ns/u2 asked by eviction: it is to");
    expect_rows(w, &(struct devicemgr_which){.pod_namespace = "other"}, "");
    expect_rows(w, &(struct devicemgr_which){.after = after}, "ns/u2 asked by eviction: it is to");
    ignore_all(w);
}

/* ---- taken back ---- */

static void what_is_taken_back_may_be_made_again(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    take_back(w, 2, "ns/u1");
    expect_event(w, "spared - [] ns/u1/- operator: tired");
    expect(w, "stop no more");
    expect(w, "commit -ending u1");
    assert_false(create(w, 11, "u1", "main", NULL, NULL));
    committed(w);
    expect(w, "steered 2: pod \"ns/u1\": its containers may be made again");
    expect_nothing(w);
    assert_false(world_stored(w, "ending u1"));
    listed(w, RUNS, NULL);
    expect_nothing(w);
}

static void others_want_it_still(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    ask(w, END_EVICTION, 7, "u1", ENDING_POD_GRACE);
    stored(w);
    take_back(w, 2, "u1");
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "steered 2: pod \"ns/u1\": others want it to end still");
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "verdict 11 refused 9: *");
    ends_cancel(&w->mgr->ends, "u1", END_EVICTION, 7);
    assert_false(create(w, 12, "u1", "main", NULL, NULL));
    ends_cancel(&w->mgr->ends, "u1", END_EVICTION, 7); /* there is nothing to be */
}

static void what_was_not_sent_is_taken_back_whole(void **state)
{
    struct world *w = *state;

    ask(w, END_EVICTION, 7, "u1", 1000);
    ends_cancel(&w->mgr->ends, "u1", END_EVICTION, 7);
    devicemgr_run(w->mgr);
    stored(w);
    listed(w, RUNS, NULL);
    expect_nothing(w);
}

/* ---- the store, restarts ---- */

static void it_goes_on_after_a_restart(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    pass(w, 12000);
    world_restart(w);
    ignore_all(w);
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "verdict 11 " REFUSED_OF_U1);
    kubelet_lists(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 18000ms"); /* what was left */
    stopped(w, w->stop, 0);
    expect_event(w, "refused ");
    stored(w);
    expect_event(w, "ended ");
    world_restart(w);
    kubelet_lists(w);
    listed(w, EXITED, NULL);
    pass(w, 10000);
    stored(w);
    expect_no_event(w); /* was told before */
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 " REFUSED_OF_U1);
}

static void who_was_told_is_not_after_a_restart(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    stopped(w, w->stop, 0);
    expect(w, "commit ending u1");
    commit_failed(w, "no space");
    expect_event(w, "ended ");
    listed(w, EXITED, "c-late"); /* was in the making, and is being stopped */
    pass(w, COMMIT_RETRY_MS_MAX);
    stored(w);
    world_restart(w);
    kubelet_lists(w);
    listed(w, EXITED, NULL);
    stored(w);
    expect_no_event(w);
}

/* Before the runtime has been listed nobody knows which pods there are, but those that are
 * ended. */
static void what_is_asked_for_at_a_start(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    world_restart(w);
    end_here(w, 1, "ns/u2", 30000);
    expect(w, "steer 1 refused 9: the runtime has not said yet what there is");
    end_here(w, 2, "ns/u1", 2000);
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "steered 2: *");
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 2000ms");
}

static void another_boot_begins_its_grace_anew(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    w->settings.boot_id = "boot-2";
    w->now_ms = 5000;
    world_restart(w);
    kubelet_lists(w);
    ignore_all(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 30000ms");
}

static void what_cannot_be_stored_is_done_all_the_same(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    expect(w, "commit ending u1");
    commit_failed(w, "no space");
    expect(w, "list");
    expect(w, "steer 1 refused 10: not stored yet, which is tried again: until then a restart of "
              "the shim forgets it: no space");
    expect(w, "commit ending u1");
    commit_failed(w, "no space");
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 30000ms");
    pass(w, COMMIT_RETRY_MS_MAX);
    expect(w, "commit ending u1");
}

static void a_pod_that_is_gone_is_forgotten(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u1");
    devicemgr_run(w->mgr);
    expect(w, "stop no more");
    expect(w, "commit -ending u1");
    committed(w);
    expect_event(w, "ended - [] ns/u1/- gone: -");
    assert_int_equal(endings_len(&w->mgr->state.endings), 0);
    assert_false(world_stored(w, "ending u1"));
}

/* The store has not forgotten it yet, and it is nobody's to end any more. */
static void who_asks_for_it_just_then_is_answered(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u1");
    devicemgr_run(w->mgr);
    expect(w, "stop no more");
    expect(w, "commit -ending u1");
    forget_logs(w);
    take_back(w, 2, "u1");
    expect(w, "steer 2 refused 5: no operator has asked for such a pod to end");
    end_in(w, 3, "u1", 30000);
    expect(w, "steer 3 refused 5: the runtime knows no such pod");
    assert_int_equal(logged(w, "is not ended"), 0);
    committed(w);
    expect_event(w, "ended - [] ns/u1/- gone: -");
    expect_nothing(w);
}

/* That its containers have ended is just being stored. */
static void one_that_goes_meanwhile_is_told_once(void **state)
{
    struct devicemgr_endings endings;
    struct world *w = *state;

    stopping(w, 30000);
    stopped(w, w->stop, 0);
    expect(w, "commit ending u1");
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u1");
    devicemgr_run(w->mgr);
    expect_no_event(w);
    committed(w);
    expect_event(w, "ended - [] ns/u1/- gone: -");
    devicemgr_endings(w->mgr, &endings);
    assert_int_equal(endings.ended, 1);
    expect(w, "commit -ending u1");
    world_restart(w); /* before that is stored */
    kubelet_lists(w);
    runtime_listed(w, "");
    stored(w);
    expect_no_event(w);
    assert_false(world_stored(w, "ending u1"));
}

/* That they are to end is. */
static void one_that_goes_before_is_told_when_that_is_stored(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    ask(w, END_SHUTDOWN, 1, "u1", 30000);
    expect_event(w, "ending ");
    expect(w, "commit ending u1");
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u1");
    devicemgr_run(w->mgr);
    expect(w, "stop no more");
    committed(w);
    expect(w, "commit -ending u1");
    expect_no_event(w);
    committed(w);
    expect_event(w, "ended - [] ns/u1/- gone: -");
    expect_no_event(w);
    expect_nothing(w);
    assert_int_equal(endings_len(&w->mgr->state.endings), 0);
}

static void who_has_asked_as_it_went_hears_of_that(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    end_in(w, 2, "u1", 30000);
    expect(w, "commit ending u1");
    end_in(w, 3, "u1", 30000); /* stored with its end */
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u1");
    devicemgr_run(w->mgr);
    expect(w, "stop no more");
    committed(w);
    expect(w, "steered 2: pod \"ns/u1\": the runtime does not know it, or does not any more (by "
              "the operator: tired)");
    expect(w, "commit -ending u1");
    committed(w);
    expect(w, "steered 3: pod \"ns/u1\": the runtime does not know it, or does not any more (by "
              "the operator: tired)");
    expect_nothing(w);
}

/* The store never had it, and fails still: there is nothing to delete. */
static void one_that_was_never_stored_is_told_all_the_same(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    expect(w, "commit ending u1");
    commit_failed(w, "no space");
    expect(w, "list");
    expect(w, "steer 1 refused 10: *");
    expect(w, "commit ending u1");
    listed(w, RUNS, NULL);
    ignore_all(w);
    end_in(w, 2, "u1", 30000);
    devicemgr_sandbox_removed(w->mgr, w->now_ms, "s-u1");
    devicemgr_run(w->mgr);
    expect(w, "stop no more");
    commit_failed(w, "no space");
    expect(w, "commit -ending u1");
    commit_failed(w, "no space");
    expect(w, "steer 2 refused 10: *");
    expect_event(w, "ending ");
    expect_event(w, "ended - [] ns/u1/- gone: -");
    assert_int_equal(endings_len(&w->mgr->state.endings), 0);
}

/* Its row, which was not stored, is gone with it: no other commit comes. */
static void who_takes_it_back_as_that_fails_is_answered(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    expect(w, "commit ending u1");
    take_back(w, 2, "u1");
    expect_nothing(w);
    commit_failed(w, "no space");
    expect(w, "steer 1 refused 10: *");
    expect(w, "steered 2: *");
    expect_nothing(w);
    assert_int_equal(endings_len(&w->mgr->state.endings), 0);
}

/* Nor is anything to be stored of it when that fails once more. */
static void so_is_who_takes_it_back_behind_that(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    expect(w, "commit ending u1");
    commit_failed(w, "no space");
    expect(w, "list");
    expect(w, "steer 1 refused 10: *");
    expect(w, "commit ending u1");
    commit_failed(w, "no space");
    take_back(w, 2, "u1");
    expect(w, "commit -ending u1");
    commit_failed(w, "no space");
    expect(w, "steered 2: *");
    expect_nothing(w);
}

/* Whatever else could not be stored then, and is tried again. */
static void nor_is_what_else_failed_waited_for(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u2", "s-u2", 0);
    ignore_all(w);
    end_in(w, 1, "u1", 30000);
    expect(w, "commit ending u1");
    end_in(w, 2, "u2", 30000);
    commit_failed(w, "no space");
    expect(w, "list");
    expect(w, "steer 1 refused 10: *");
    expect(w, "commit ending u1, ending u2");
    take_back(w, 3, "u1");
    commit_failed(w, "no space");
    expect(w, "steer 2 refused 10: *");
    expect(w, "steered 3: *");
    expect(w, "commit ending u2");
}

/* The kubelet goes on with its pods, of which some runtimes know nothing then. */
static void a_pod_of_before_a_reboot_may_come_back(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    w->settings.boot_id = "boot-2";
    world_restart(w);
    kubelet_lists(w);
    runtime_listed(w, "");
    pass(w, 10000);
    assert_int_equal(endings_len(&w->mgr->state.endings), 1);
    pass(w, POD_RETURNS_MS);
    runtime_listed(w, "");
    stored(w);
    assert_int_equal(endings_len(&w->mgr->state.endings), 0);
}

/* What is stored meanwhile, in that boot, does not make it one of it. */
static void nor_is_it_forgotten_by_another_restart_then(void **state)
{
    struct world *w = *state;

    stopping(w, 30000);
    w->settings.boot_id = "boot-2";
    world_restart(w);
    kubelet_lists(w);
    runtime_listed(w, "");
    stored(w);
    world_restart(w);
    kubelet_lists(w);
    runtime_listed(w, "");
    stored(w);
    assert_int_equal(endings_len(&w->mgr->state.endings), 1);
    runtime_listed(w, "u1/main!"); /* it has come back: from now on it is like all others */
    stored(w);
    pass(w, 10000);
    runtime_listed(w, "");
    stored(w);
    assert_int_equal(endings_len(&w->mgr->state.endings), 0);
}

static void there_is_a_most_of_it(void **state)
{
    struct world *w = *state;
    char uid[16];

    for (size_t i = 0; i < ENDINGS_MAX; i++) {
        snprintf(uid, sizeof uid, "p%zu", i);
        ask(w, END_EVICTION, 1, uid, 1000);
    }
    ignore_all(w);
    end_in(w, 1, "u1", 1000);
    expect(w, "steer 1 refused 8: too many pods are being ended already");
}

/* ---- by the cluster ---- */

static void evicted(struct world *w, enum devicemgr_evicted outcome)
{
    devicemgr_pod_evicted(w->mgr, w->now_ms, w->order, outcome);
    devicemgr_run(w->mgr);
}

static void the_cluster_is_asked(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", DEVICEMGR_POD_GRACE);
    expect_event(w, "ending ");
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "evict u1 (ns/u1) in 0ms: tired");
    expect(w, "steered 1: pod \"ns/u1\": the API server is asked to evict it, for as long as it "
              "takes (by the operator: tired)");
    assert_false(create(w, 11, "u1", "main", NULL, NULL)); /* it lives as long as its budget says */
    pass(w, 3600000);
    evicted(w, DEVICEMGR_EVICTED);
    expect(w, "commit ending u1");
    committed(w);
    expect_event(w, "ended - [] ns/u1/- evicted: -");
    listed(w, RUNS, NULL);
    expect_nothing(w); /* the kubelet ends it */
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 refused 9: *");
}

static void a_static_pod_is_ended_here(void **state)
{
    const struct devicemgr_annotation source = {"kubernetes.io/config.source", "file"};
    const struct devicemgr_sandbox sandbox = {.id = "s-u1",
                                              .pod_uid = "u1",
                                              .pod_namespace = "ns",
                                              .pod_name = "u1",
                                              .annotations = &source,
                                              .annotations_len = 1};
    struct world *w = *state;

    devicemgr_sandbox_ran(w->mgr, w->now_ms, &sandbox);
    end_in(w, 1, "u1", 30000);
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "list");
    expect(w, "steered 1: pod \"ns/u1\": its containers are being stopped*");
}

/* Its sandbox was run a moment ago, and its call says nothing of where the pod is from: a list
 * does. */
static void one_that_turns_out_to_be_static_is_ended_here(void **state)
{
    static const struct devicemgr_annotation SOURCE = {"kubernetes.io/config.source", "file"};
    struct devicemgr_sandbox sandbox = {
        .id = "s-u3", .pod_uid = "u3", .pod_namespace = "ns", .pod_name = "u3", .ready = true};
    struct world *w = *state;

    devicemgr_sandbox_ran(w->mgr, w->now_ms, &sandbox);
    end_in(w, 1, "u3", 1000);
    ignore_all(w);
    committed(w);
    expect(w, "evict u3 *");
    ignore_all(w);
    sandbox.annotations = &SOURCE;
    sandbox.annotations_len = 1;
    devicemgr_runtime_listing(w->mgr);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, NULL, 0);
    devicemgr_run(w->mgr);
    expect(w, "evict no more");
    assert_int_equal(endings_find(&w->mgr->state.endings, "u3")->state, ENDING_STOPPING);
    ignore_all(w);
}

static void one_that_the_cluster_knows_as_a_mirror_is_ended_here(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    stored(w);
    evicted(w, DEVICEMGR_IS_STATIC);
    expect(w, "list");
    expect(w, "commit ending u1");
    committed(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 30000ms");
    world_restart(w); /* which is remembered */
    expect_nothing(w);
}

static void who_insists_has_it_ended_here(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 30000);
    stored(w);
    end_here(w, 2, "u1", 30000);
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "evict no more");
    expect(w, "list");
    expect(w, "steered 2: pod \"ns/u1\": its containers are being stopped*");
}

static void who_insists_no_more_leaves_it_to_the_cluster(void **state)
{
    struct world *w = *state;

    ask(w, END_EVICTION, 1, "u1", 30000);
    stored(w);
    end_here(w, 2, "u1", 30000);
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 30000ms");
    stored(w);
    take_back(w, 3, "u1");
    expect(w, "stop no more");
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "evict u1 (ns/u1) in 30000ms: it is to");
    expect(w, "steered 3: pod \"ns/u1\": others want it to end still");
    assert_false(create(w, 9, "u1", "main", NULL, NULL));
}

static void a_shorter_grace_is_another_order(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", DEVICEMGR_POD_GRACE);
    stored(w);
    ask(w, END_EVICTION, 1, "u1", 20000);
    expect(w, "list");
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 20000ms: tired");
    evicted(w, DEVICEMGR_EVICTED);
    stored(w);
    ask(w, END_SHUTDOWN, 1, "u1", 5000); /* the kubelet's own stop takes no notice of that */
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 5000ms");
}

static void so_it_is_after_a_restart(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", DEVICEMGR_POD_GRACE);
    stored(w);
    evicted(w, DEVICEMGR_EVICTED);
    stored(w);
    world_restart(w);
    kubelet_lists(w);
    listed(w, RUNS, NULL);
    stored(w);
    listed(w, RUNS, NULL);
    expect_nothing(w); /* nobody has asked for another */
    ask(w, END_SHUTDOWN, 1, "u1", 5000);
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 5000ms");
}

/* Of which the runtime's list tells: 45 s. */
static void nor_is_the_pods_own_passed_over(void **state)
{
    struct world *w = *state;

    end_in(w, 1, "u1", 60000);
    committed(w);
    expect(w, "*");
    expect(w, "*");
    ignore_all(w);
    ask(w, END_EVICTION, 0, "u1", ENDING_POD_GRACE);
    expect(w, "list");
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms: tired"); /* its own */
    listed(w, RUNS, NULL);
    expect_nothing(w);
    evicted(w, DEVICEMGR_EVICTED);
    stored(w);
    listed(w, RUNS, NULL); /* which it has */
    expect_nothing(w);
    world_restart(w); /* behind which nobody knows it before the list */
    stored(w);
    kubelet_lists(w);
    listed(w, RUNS, NULL);
    stored(w);
    listed(w, RUNS, NULL);
    expect_nothing(w);
    end_in(w, 2, "u1", 44000);
    stored(w);
    listed(w, RUNS, NULL);
    expect(w, "stop c-u1-main in 44000ms");
}

/* u1's end is asked for, by force after ten minutes, of which five have gone. */
static void wait_for_force(struct world *w)
{
    w->settings.evict_force_after_ms = 600000;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    end_in(w, 1, "u1", DEVICEMGR_POD_GRACE);
    stored(w);
    pass(w, 300000);
}

static void budgets_are_kept_to_for_a_time(void **state)
{
    struct world *w = *state;

    wait_for_force(w);
    world_restart(w); /* the time goes on */
    expect(w, "evict u1 (ns/u1) in 0ms: tired");
    pass(w, 299000);
    expect_nothing(w);
    pass(w, 1000);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms by force: tired");
    pass(w, 3600000);
    expect_nothing(w);
    evicted(w, DEVICEMGR_NOT_THERE);
    expect(w, "commit ending u1");
}

static void reached(struct world *w, bool is)
{
    devicemgr_cluster_reached(w->mgr, w->now_ms, is);
    devicemgr_run(w->mgr);
}

/* As long as nobody can be asked nobody has said that a budget does not allow it. */
static void an_outage_does_not_count(void **state)
{
    struct world *w = *state;

    wait_for_force(w);
    reached(w, false);
    stored(w);
    pass(w, 3600000);
    expect_nothing(w);
    world_restart(w); /* in the middle of it */
    expect(w, "evict u1 (ns/u1) in 0ms: tired");
    reached(w, false);
    stored(w);
    pass(w, 3600000);
    expect_nothing(w);
    reached(w, true);
    stored(w);
    pass(w, 100000);
    world_restart(w); /* and behind it */
    expect(w, "evict u1 (ns/u1) in 0ms: tired");
    pass(w, 199000);
    expect_nothing(w);
    pass(w, 1000);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms by force: tired");
    reached(w, false); /* it stays so */
    stored(w);
    pass(w, 3600000);
    expect_nothing(w);
}

static void nor_does_one_in_which_it_is_asked_for(void **state)
{
    struct world *w = *state;

    reached(w, false);
    wait_for_force(w);
    pass(w, 3600000);
    expect_nothing(w);
    reached(w, true);
    stored(w);
    pass(w, 599000);
    expect_nothing(w);
    pass(w, 1000);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms by force: tired");
}

static void who_takes_it_back_has_not_waited(void **state)
{
    struct world *w = *state;

    wait_for_force(w);
    ask(w, END_SHUTDOWN, 1, "u1", DEVICEMGR_POD_GRACE);
    stored(w);
    world_restart(w); /* who has asked since when is known still */
    expect(w, "evict u1 (ns/u1) in 0ms: tired");
    pass(w, 100000);
    take_back(w, 2, "u1");
    stored(w);
    pass(w, 499000);
    expect_nothing(w);
    pass(w, 1000);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms by force: it is to");
}

static void what_was_forced_for_him_alone_is_so_no_more(void **state)
{
    struct world *w = *state;

    wait_for_force(w);
    ask(w, END_SHUTDOWN, 1, "u1", DEVICEMGR_POD_GRACE);
    stored(w);
    pass(w, 300000);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms by force: tired");
    take_back(w, 2, "u1");
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms: it is to");
    stored(w);
    pass(w, 300000);
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 0ms by force: it is to");
}

/* Nobody has carried it out yet: it gets longer, too. */
static void so_it_is_with_a_grace(void **state)
{
    struct world *w = *state;

    ask(w, END_EVICTION, 1, "u1", 30000);
    stored(w);
    end_in(w, 2, "u1", 5000);
    stored(w);
    take_back(w, 3, "u1");
    expect(w, "evict no more");
    expect(w, "evict u1 (ns/u1) in 30000ms: it is to");
    stored(w);
    ask(w, END_SHUTDOWN, 1, "u1", DEVICEMGR_POD_GRACE); /* which is longer */
    stored(w);
    listed(w, RUNS, NULL);
    expect_nothing(w);
}

int main(void)
{
#define HERE(test) cmocka_unit_test_setup_teardown(test, end_setup, world_teardown)
#define CLUSTER(test) cmocka_unit_test_setup_teardown(test, cluster_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        HERE(its_containers_are_stopped_and_none_is_made),
        HERE(what_has_no_uid_is_no_pod_to_end),
        HERE(one_that_it_is_not_asked_for_is_not_known),
        HERE(a_reason_that_cannot_be_kept_is_refused),
        HERE(one_whose_grace_cannot_be_read),
        HERE(of_those_called_so_the_one_that_lives_is_meant),
        HERE(requests_collapse),
        HERE(a_shorter_grace_is_sent_on),
        HERE(so_it_is_if_a_list_shows_more_before_it_is_stored),
        HERE(so_is_the_pods_own),
        HERE(the_pods_own_is_learned_again_after_a_restart),
        HERE(a_runtime_that_is_away_is_waited_for),
        HERE(what_was_in_the_making_is_stopped_too),
        HERE(a_list_under_way_is_too_old),
        HERE(one_that_is_created_is_stopped_when_it_runs),
        HERE(one_that_is_created_is_looked_for_until_it_runs),
        HERE(its_end_by_the_list_counts),
        HERE(no_sandbox_is_run_either),
        HERE(what_is_done_is_counted),
        HERE(who_is_ended_is_listed),
        HERE(what_is_taken_back_may_be_made_again),
        HERE(others_want_it_still),
        HERE(what_was_not_sent_is_taken_back_whole),
        HERE(it_goes_on_after_a_restart),
        HERE(who_was_told_is_not_after_a_restart),
        HERE(what_is_asked_for_at_a_start),
        HERE(another_boot_begins_its_grace_anew),
        HERE(what_cannot_be_stored_is_done_all_the_same),
        HERE(a_pod_that_is_gone_is_forgotten),
        HERE(who_asks_for_it_just_then_is_answered),
        HERE(one_that_goes_meanwhile_is_told_once),
        HERE(one_that_goes_before_is_told_when_that_is_stored),
        HERE(who_has_asked_as_it_went_hears_of_that),
        HERE(one_that_was_never_stored_is_told_all_the_same),
        HERE(who_takes_it_back_as_that_fails_is_answered),
        HERE(so_is_who_takes_it_back_behind_that),
        HERE(nor_is_what_else_failed_waited_for),
        HERE(a_pod_of_before_a_reboot_may_come_back),
        HERE(nor_is_it_forgotten_by_another_restart_then),
        HERE(there_is_a_most_of_it),
        CLUSTER(the_cluster_is_asked),
        CLUSTER(a_static_pod_is_ended_here),
        CLUSTER(one_that_turns_out_to_be_static_is_ended_here),
        CLUSTER(one_that_the_cluster_knows_as_a_mirror_is_ended_here),
        CLUSTER(who_insists_has_it_ended_here),
        CLUSTER(who_insists_no_more_leaves_it_to_the_cluster),
        CLUSTER(a_shorter_grace_is_another_order),
        CLUSTER(so_it_is_after_a_restart),
        CLUSTER(nor_is_the_pods_own_passed_over),
        CLUSTER(budgets_are_kept_to_for_a_time),
        CLUSTER(an_outage_does_not_count),
        CLUSTER(nor_does_one_in_which_it_is_asked_for),
        CLUSTER(who_takes_it_back_has_not_waited),
        CLUSTER(what_was_forced_for_him_alone_is_so_no_more),
        CLUSTER(so_it_is_with_a_grace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
