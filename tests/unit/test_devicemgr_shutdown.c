/* devicemgr/machines/shutdown.c, rules/leaving.c, things/shutdown.c, turn/shutdown.c: the machine
 * goes down. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "devicemgr/endings.h"
#include "devicemgr/operator.h"
#include "devicemgr/shutdown.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"

#define CRITICAL 2000000000

static const struct devicemgr_shutdown_group PAIR[] = {{0, 20000}, {CRITICAL, 10000}};
static const struct devicemgr_shutdown_group THREE[] = {
    {-5, 10000}, {100, 20000}, {CRITICAL, 30000}};

/* ---- what is told ---- */

static void tell(struct world *w, const struct devicemgr_shutdown_said *said)
{
    devicemgr_shutdown(w->mgr, w->now_ms, said);
    devicemgr_run(w->mgr);
}

/* "u1:0 u2:2000000000 web:5m": priorities of ns/NAME, those with 'm' of mirrors. NULL: not
 * known. */
static size_t read_pods(const char *text, struct devicemgr_priority *out, char names[][8])
{
    size_t len = 0;

    for (const char *at = text; at && *at; len++) {
        char mark;
        int used, n = sscanf(at, "%7[^:]:%d%c%n", names[len], &out[len].priority, &mark, &used);

        assert_true(n >= 2);
        out[len].mirror = n == 3 && mark == 'm';
        out[len].pod_uid = out[len].mirror ? "of-the-mirror" : names[len];
        out[len].pod_namespace = "ns";
        out[len].pod_name = names[len];
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return len;
}

static void goes_down(struct world *w, uint64_t since_ms, uint64_t limit_ms, const char *pods)
{
    struct devicemgr_priority known[16];
    char names[16][8];
    const struct devicemgr_shutdown_said said = {.under_way = true,
                                                 .since_ms = since_ms,
                                                 .limit_ms = limit_ms,
                                                 .pods = pods ? known : NULL,
                                                 .pods_len = read_pods(pods, known, names)};

    tell(w, &said);
}

static void goes_down_by_kubelet(struct world *w, uint64_t limit_ms)
{
    const struct devicemgr_shutdown_said said = {
        .under_way = true, .since_ms = w->now_ms, .limit_ms = limit_ms, .kubelet_locked = true};

    tell(w, &said);
}

static void cancelled(struct world *w)
{
    const struct devicemgr_shutdown_said said = {.under_way = false};

    tell(w, &said);
}

static struct devicemgr_shutdown_view view(const struct world *w)
{
    struct devicemgr_shutdown_view view;

    devicemgr_shutdown_look(w->mgr, &view);
    return view;
}

/* ---- what would be ---- */

static void add_planned(void *user, const struct devicemgr_shutdown_planned *group)
{
    struct text *text = user;

    if (group->by_priority)
        text_add(text, "%s%d:", text->buf[0] ? " | " : "", (int)group->priority);
    text_add(text, "%" PRIu64 " %zu/%zu", group->grace_ms, group->holders, group->pods);
}

static void add_planned_pod(void *user, const char *pod_namespace, const char *pod_name)
{
    text_add(user, " %s/%s", pod_namespace, pod_name);
}

/* "0:20000 1/2 ns/u3 ns/u1 | ...": if it went down with these priorities (NULL: not known): a
 * group's priority, its time, how many have devices, of how many, who. */
static void expect_plan(struct world *w, uint64_t limit_ms, const char *pods, const char *plan)
{
    struct devicemgr_priority known[16];
    char names[16][8];
    const struct devicemgr_shutdown_said said = {.limit_ms = limit_ms,
                                                 .pods = pods ? known : NULL,
                                                 .pods_len = read_pods(pods, known, names)};
    struct text text = {0};

    devicemgr_shutdown_plan(w->mgr, &said, add_planned, add_planned_pod, &text);
    assert_string_equal(text.buf, plan);
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

/* ---- what comes of it ---- */

static void stored(struct world *w)
{
    while (w->pending)
        committed(w);
}

/* The stops that were asked for since the last call, in their order: "c-u1-main:20000 ...". All
 * else is forgotten. */
static const char *stops(struct world *w)
{
    static char out[1024];
    size_t used = 0;

    out[0] = '\0';
    for (const struct world_line *line = w->lines; line; line = line->next) {
        char id[64];
        unsigned ms;

        if (sscanf(line->text, "stop %63s in %ums", id, &ms) == 2)
            used +=
                (size_t)snprintf(out + used, sizeof out - used, "%s%s:%u", used ? " " : "", id, ms);
    }
    ignore_all(w);
    return out;
}

/* All is stored, the runtime lists this, and all is stored again. The stops that came of it. */
static const char *listed(struct world *w, const char *list)
{
    stored(w);
    ignore_all(w);
    pass(w, LIST_EVERY_MS);
    runtime_listed(w, list);
    stored(w);
    return stops(w);
}

static void containers_ended(struct world *w)
{
    while (w->mgr->ends.stops) {
        devicemgr_container_stopped(w->mgr, w->now_ms, w->mgr->ends.stops->op, CODE_OK, "");
        devicemgr_run(w->mgr);
    }
}

/* Of the sandbox whose stop was asked for first. */
static void sandbox_stop_ended(struct world *w, int code)
{
    assert_non_null(w->mgr->ends.sandboxes);
    devicemgr_sandbox_stop_ended(w->mgr, w->now_ms, w->mgr->ends.sandboxes->op, code,
                                 "the runtime's words");
    devicemgr_run(w->mgr);
}

/* What is being stopped has ended, containers and sandboxes; the runtime lists what is left. The
 * stops that follow. */
static const char *ended(struct world *w, const char *list)
{
    containers_ended(w);
    while (w->mgr->ends.sandboxes)
        sandbox_stop_ended(w, CODE_OK);
    return listed(w, list);
}

static bool is_refused(struct world *w, const char *uid)
{
    struct devicemgr_refusal refusal;

    return devicemgr_sandbox_refused(w->mgr, uid, &refusal);
}

static const struct ending *ending_of(struct world *w, const char *uid)
{
    const struct ending *ending = endings_find(&w->mgr->state.endings, uid);

    assert_non_null(ending);
    return ending;
}

/* ---- setups ---- */

static int setup_with(void **state, const struct devicemgr_shutdown_group *groups, size_t len)
{
    struct world *w;

    world_setup(state);
    w = *state;
    w->settings.shutdown = groups;
    w->settings.shutdown_len = len;
    world_fresh_listed(w);
    kubelet_lists(w);
    pass(w, 10 * LIST_EVERY_MS);
    ignore_all(w);
    forget_logs(w);
    return 0;
}

static int pair_setup(void **state)
{
    return setup_with(state, PAIR, 2);
}

static int cluster_setup(void **state)
{
    struct world *w;

    pair_setup(state);
    w = *state;
    w->settings.cluster = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    return 0;
}

static int three_setup(void **state)
{
    return setup_with(state, THREE, 3);
}

static int off_setup(void **state)
{
    return setup_with(state, NULL, 0);
}

#define THREE_PODS "u1/main u2/main u3/main"

/* Of one that goes on: u1 is of the first group, u2 and u3 of the second. */
static void three_pods_go(struct world *w)
{
    runtime_listed(w, THREE_PODS);
    ignore_all(w);
    goes_down(w, w->now_ms, 60000, "u1:0 u2:2000000000 u3:2000001000");
    assert_string_equal(listed(w, THREE_PODS), "c-u1-main:20000");
}

/* ---- what is made ---- */

static void nothing_is_made_any_more(void **state)
{
    struct world *w = *state;
    struct devicemgr_refusal refusal;

    assert_false(devicemgr_refuses_sandboxes(w->mgr));
    goes_down(w, w->now_ms, 30000, "");
    expect_event(w, "shutdown - [] -/-/- begun: the machine goes down: no sandbox and no container "
                    "is made any more; logind waits for "
                    "30s");
    assert_int_equal(
        logged(w, "no sandbox and no container is made any more; logind waits for 30s"), 1);
    assert_true(devicemgr_refuses_sandboxes(w->mgr));
    assert_true(devicemgr_sandbox_refused(w->mgr, "new", &refusal));
    assert_int_equal(refusal.code, CODE_UNAVAILABLE);
    assert_string_equal(refusal.words, "node is shutting down");
    ignore_all(w);
    assert_true(create(w, 9, "u9", "main", NULL, NULL)); /* one without devices, too */
    devicemgr_run(w->mgr);
    expect_with(w, "verdict 9 refused 14: ",
                "container \"main\" of pod \"ns/u9\": node is shutting down", NULL);
}

static void who_waits_is_refused(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0!");
    create_token(w, 9, "u9", GPU ":g0");
    ignore_all(w);
    goes_down(w, w->now_ms, 30000, "");
    expect_with(w, "verdict 9 refused 14: ", "node is shutting down", NULL);
}

static void without_groups_it_is_off(void **state)
{
    struct world *w = *state;

    goes_down(w, w->now_ms, 30000, "");
    assert_false(devicemgr_refuses_sandboxes(w->mgr));
    expect_nothing(w);
    assert_int_equal(shutdowns_next_ms(&w->mgr->shutdowns), UINT64_MAX);
}

/* ---- groups ---- */

static void pods_end_by_priority(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    assert_int_equal(view(w).group, 1);
    assert_int_equal(view(w).groups, 2);
    assert_int_equal(view(w).pods, 3);
    assert_int_equal(view(w).remaining, 3);
    assert_int_equal(logged(w, "1 pods are ended, group 1 of 2 (priority 0, more or less), within"),
                     1);
    assert_string_equal(ended(w, "~u1/main! u2/main u3/main"), "c-u2-main:10000 c-u3-main:10000");
    assert_int_equal(view(w).group, 2);
    assert_int_equal(view(w).remaining, 2);
    assert_false(view(w).over);
    ended(w, "~u1/main! ~u2/main! ~u3/main!");
    assert_true(view(w).over);
    assert_int_equal(view(w).remaining, 0);
    assert_int_equal(logged(w, "what was to be done before is done"), 1);
    assert_true(is_refused(w, "u1"));
}

static void a_group_has_its_time_and_no_more(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    pass(w, 20000 - 2 * LIST_EVERY_MS);
    assert_int_equal(view(w).group, 1);
    pass(w, LIST_EVERY_MS);
    assert_int_equal(view(w).group, 2);
    pass(w, 9999);
    assert_false(view(w).over);
    pass(w, 1);
    assert_true(view(w).over);
    assert_int_equal(view(w).remaining, 3);
}

static void an_empty_group_costs_no_time(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    ignore_all(w);
    goes_down(w, w->now_ms, 0, "u1:2000000000");
    assert_int_equal(view(w).group, 3);
    assert_int_equal(view(w).priority, CRITICAL);
    assert_int_equal(view(w).group_ends_ms, w->now_ms + 30000);
    assert_int_equal(logged(w, "pods are ended"), 1); /* nothing is said of the others */
}

static void a_pod_is_of_the_highest_group_that_is_not_above_it(void **state)
{
    static const struct {
        int32_t priority;
        size_t group;
    } cases[] = {{INT32_MIN, 0}, {-6, 0},           {-5, 0},       {99, 0},       {100, 1},
                 {101, 1},       {CRITICAL - 1, 1}, {CRITICAL, 2}, {INT32_MAX, 2}};
    struct world *w = *state;
    struct shutdown shutdown = {0};

    shutdown_begin(&shutdown, 1, 0, false);
    shutdown_set_groups(&shutdown, THREE, 3, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(shutdown_group_of(&shutdown, cases[i].priority), cases[i].group);
    shutdown_fini(&shutdown);
    (void)w;
}

static void a_static_pod_is_found_by_its_mirror(void **state)
{
    static const struct devicemgr_annotation FILE_SOURCE = {"kubernetes.io/config.source", "file"};
    struct world *w = *state;
    const struct devicemgr_sandbox sandboxes[] = {
        {.id = "s-u1",
         .pod_uid = "u1",
         .pod_namespace = "ns",
         .pod_name = "u1",
         .ready = true,
         .annotations = &FILE_SOURCE,
         .annotations_len = 1},
        {.id = "s-u2",
         .pod_uid = "u2",
         .pod_namespace = "ns",
         .pod_name = "u2",
         .ready = true,
         .annotations = &FILE_SOURCE,
         .annotations_len = 1},
        {.id = "s-u3", .pod_uid = "u3", .pod_namespace = "ns", .pod_name = "u3", .ready = true}};

    devicemgr_runtime_listing(w->mgr);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 3, NULL, 0);
    goes_down(w, w->now_ms, 0, "u1:100m");
    assert_int_equal(shutdown_find_pod(&w->mgr->state.shutdown, "u1")->group, 1);
    assert_int_equal(shutdown_find_pod(&w->mgr->state.shutdown, "u2")->group, 2); /* critical */
    assert_int_equal(shutdown_find_pod(&w->mgr->state.shutdown, "u3")->group, 0); /* the default */
}

static void those_with_devices_are_stopped_first(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    runtime_listed(w, "u1/main u2/main");
    container_made(w, 21, "u3", "main", GPU ":g0");
    ignore_all(w);
    goes_down(w, w->now_ms, 0, "");
    assert_string_equal(listed(w, THREE_PODS), "c-u3-main:20000 c-u1-main:20000 c-u2-main:20000");
}

/* By the cluster's word, where its container was made before the shim came, or by its name. */
static void so_are_those_with_claims(void **state)
{
    static const char *const uids[] = {"u9", "u3"};
    const struct devicemgr_claim_consumers consumers = {.reserved_for = uids,
                                                        .reserved_for_len = 2};
    const char *cdi = "example.com/dev=gpu-1";
    const struct devicemgr_create made = {.sandbox_id = "s-u2",
                                          .pod_uid = "u2",
                                          .pod_namespace = "ns",
                                          .pod_name = "u2",
                                          .container = "main",
                                          .cdi_devices = &cdi,
                                          .cdi_devices_len = 1,
                                          .deadline_ms = UINT64_MAX};
    struct world *w = *state;

    devicemgr_restored(w->mgr, w->now_ms);
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_prepared(w, 6, "c2", "gpu-1");
    unprepare(w, 7, "c0"); /* which nobody knows, and has no row */
    runtime_listed(w, THREE_PODS);
    ignore_all(w);
    goes_down(w, w->now_ms, 0, "");
    assert_string_equal(listed(w, THREE_PODS), "c-u1-main:20000 c-u2-main:20000 c-u3-main:20000");
    cancelled(w);
    (void)ended(w, THREE_PODS);
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c1", &consumers);
    assert_false(create_claimed(w, 30, &made));
    committed(w);
    assert_int_equal(w->passed, 30);
    ignore_all(w);
    goes_down(w, w->now_ms, 0, "");
    assert_string_equal(listed(w, THREE_PODS), "c-u2-main:20000 c-u3-main:20000 c-u1-main:20000");
}

/* The very groups that there are then, and nothing comes of the question. */
static void what_would_be_is_known(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    runtime_listed(w, "u1/main u10/main u2/main");
    container_made(w, 21, "u3", "main", GPU ":g0");
    ignore_all(w);
    expect_plan(w, 60000, "u1:0 u10:0 u2:2000000000 u3:0",
                "0:20000 1/3 ns/u3 ns/u1 ns/u10 | 2000000000:10000 0/1 ns/u2");
    expect_plan(w, 0, "u1:0 u10:0 u2:0 u3:0",
                "0:20000 1/4 ns/u3 ns/u1 ns/u2 ns/u10 | 2000000000:10000 0/0");
    expect_plan(w, 16000, "u1:0 u10:0 u2:2000000000 u3:0", /* as times_are_shortened_alike */
                "0:10000 1/3 ns/u3 ns/u1 ns/u10 | 2000000000:5000 0/1 ns/u2");
    expect_plan(w, 60000, NULL, "30000 1/1 ns/u3");
    goes_down(w, w->now_ms, 60000, "u1:0 u10:0 u2:2000000000 u3:0");
    assert_int_equal(view(w).pods, 4);
    ignore_all(w);
    expect_plan(w, 60000, "u1:0", ""); /* it is */
}

static void where_nobody_would_be_ended_nothing_is_said(void **state)
{
    struct world *w = *state;
    const struct devicemgr_shutdown_said by_kubelet = {.kubelet_locked = true};
    struct text text = {0};

    runtime_listed(w, "u1/main");
    ignore_all(w);
    devicemgr_shutdown_plan(w->mgr, &by_kubelet, add_planned, add_planned_pod, &text);
    assert_string_equal(text.buf, "");
    world_fresh(w); /* who runs is not known yet */
    ignore_all(w);
    expect_plan(w, 60000, "u1:0", "");
}

static void nor_where_it_is_off(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    ignore_all(w);
    expect_plan(w, 60000, "u1:0", "");
}

static void without_priorities_only_those_with_devices_end(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    runtime_listed(w, "u1/main u2/main");
    container_made(w, 21, "u3", "main", GPU ":g0");
    ignore_all(w);
    goes_down(w, w->now_ms, 60000, NULL);
    assert_int_equal(view(w).groups, 0); /* an agent that has just come may say more */
    pass(w, SHUTDOWN_KNOW_MS);
    assert_false(view(w).by_priority);
    assert_int_equal(view(w).groups, 1);
    assert_int_equal(view(w).group_ends_ms, w->now_ms + 30000);
    assert_int_equal(logged(w, "1 pods that have devices are ended"), 1);
    assert_string_equal(listed(w, THREE_PODS), "c-u3-main:30000");
    ended(w, "u1/main u2/main ~u3/main!");
    assert_true(view(w).over);
}

static void priorities_that_come_in_time_count(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    goes_down(w, w->now_ms, 60000, NULL);
    pass(w, SHUTDOWN_KNOW_MS / 2);
    goes_down(w, 0, 60000, "u1:7");
    assert_true(view(w).by_priority);
    assert_int_equal(view(w).pods, 1);
}

static void what_was_known_for_an_earlier_one_is_not(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    goes_down(w, w->now_ms, 60000, "u1:7");
    assert_true(view(w).by_priority);
    cancelled(w);
    stored(w);
    pass(w, 1);
    goes_down(w, w->now_ms, 60000, NULL);
    assert_string_equal(view(w).state, "begun");
    goes_down(w, 0, 60000, "u1:2000000000");
    assert_int_equal(view(w).group, 2);
}

/* What the kubelet writes on a container. 30 s is the default of who says none. */
static void listed_with_grace(struct world *w, const char *seconds)
{
    const struct devicemgr_annotation own[] = {
        {"io.kubernetes.container.restartCount", "3"},
        {"io.kubernetes.pod.terminationGracePeriod", seconds}};
    const struct devicemgr_sandbox sandbox = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .ready = true};
    const struct devicemgr_container container = {.id = "c-u1-main",
                                                  .sandbox_id = "s-u1",
                                                  .name = "main",
                                                  .running = true,
                                                  .annotations = own,
                                                  .annotations_len = 2};

    devicemgr_runtime_listing(w->mgr);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
}

static void a_pods_own_grace_counts_if_it_is_shorter(void **state)
{
    struct world *w = *state;

    listed_with_grace(w, "4");
    goes_down(w, w->now_ms, 0, "");
    stored(w);
    ignore_all(w);
    world_restart(w); /* that it is the most is stored, too */
    listed_with_grace(w, "4");
    assert_string_equal(stops(w), "c-u1-main:4000");
}

static void so_it_does_of_who_is_being_stopped(void **state)
{
    struct world *w = *state;

    listed_with_grace(w, "4");
    devicemgr_end(w->mgr, w->now_ms, 5, "ns/u1", 30000, true, "tired", 5);
    devicemgr_run(w->mgr);
    stored(w);
    listed_with_grace(w, "4");
    assert_string_equal(stops(w), "c-u1-main:30000");
    goes_down(w, w->now_ms, 0, "");
    stored(w);
    assert_string_equal(stops(w), "c-u1-main:4000");
}

static void what_was_in_the_making_belongs_to_the_group_under_way(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main u2/main");
    goes_down(w, w->now_ms, 0, "u1:0 u2:2000000000 u4:0");
    stored(w);
    pass(w, 20000);
    assert_int_equal(view(w).group, 2);
    listed(w, "u1/main u2/main");
    sandbox_ran(w, "u4", "s-u4", 0);
    assert_int_equal(shutdown_find_pod(&w->mgr->state.shutdown, "u4")->group, 1);
    assert_string_equal(listed(w, "u1/main u2/main u4/main"), "c-u4-main:9000");
}

static void a_pod_that_is_gone_is_not_waited_for(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    listed(w, "u2/main u3/main");
    pass(w, LIST_EVERY_MS);
    listed(w, "u2/main u3/main");
    assert_int_equal(view(w).group, 2);
}

/* ---- their sandboxes ---- */

static void sandboxes_are_stopped_behind_their_containers(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    assert_null(w->mgr->ends.sandboxes);
    containers_ended(w);
    expect(w, "stop sandbox s-u1");
    stored(w);
    assert_int_equal(view(w).group, 1); /* which is not over before */
    sandbox_stop_ended(w, CODE_NOT_FOUND);
    assert_int_equal(view(w).group, 2);
    assert_string_equal(ended(w, "~u1/main! u2/main u3/main"), "c-u2-main:10000 c-u3-main:10000");
    assert_null(w->mgr->ends.sandboxes);
    ended(w, "~u1/main! ~u2/main! ~u3/main!");
    assert_true(view(w).over);
}

static void a_sandbox_that_is_not_stopped_is_told_again(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    containers_ended(w);
    sandbox_stop_ended(w, CODE_UNAVAILABLE);
    assert_int_equal(logged(w, "sandbox s-u1 was not stopped, which is tried again: the runtime's "
                               "words"),
                     1);
    listed(w, "u1/main! u2/main u3/main"); /* what came of it is not certain yet */
    assert_null(w->mgr->ends.sandboxes);
    pass(w, OUTCOME_MS);
    listed(w, "u1/main! u2/main u3/main");
    assert_int_equal(HASH_COUNT(w->mgr->ends.sandboxes), 1);
    assert_int_equal(view(w).group, 1);
    pass(w, 20000); /* nor is it waited for longer than the group has */
    assert_int_equal(view(w).group, 2);
}

static void one_that_is_not_ready_is_not(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    assert_string_equal(ended(w, "~u1/main! u2/main u3/main"), "c-u2-main:10000 c-u3-main:10000");
    world_restart(w);
    listed(w, "~u1/main! u2/main! u3/main");
    assert_int_equal(HASH_COUNT(w->mgr->ends.sandboxes), 1); /* of u2 */
    listed(w, "~u1/main! u2/main! u3/main");
    assert_int_equal(HASH_COUNT(w->mgr->ends.sandboxes), 1); /* once */
}

static void a_sandbox_is_stopped_to_its_end_though_it_is_cancelled(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    containers_ended(w);
    stored(w);
    ignore_all(w);
    cancelled(w);
    assert_int_equal(HASH_COUNT(w->mgr->ends.sandboxes), 1);
    assert_false(is_refused(w, "u1")); /* another may be run in its place */
    sandbox_stop_ended(w, CODE_UNAVAILABLE);
    pass(w, OUTCOME_MS);
    listed(w, "u1/main! u2/main u3/main");
    assert_null(w->mgr->ends.sandboxes);
}

/* ---- time ---- */

static void times_are_shortened_alike(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main u2/main");
    goes_down(w, w->now_ms, 16000, "u1:0 u2:2000000000");
    assert_int_equal(logged(w, "shortened alike"), 1);
    assert_int_equal(view(w).group_ends_ms, w->now_ms + 10000);
    pass(w, 10000);
    assert_int_equal(view(w).group, 2);
    assert_int_equal(view(w).group_ends_ms, w->now_ms + 5000);
    pass(w, 5000); /* a second is left of what logind waits */
    assert_true(view(w).over);
    assert_int_equal(logged(w, "there is no time left for 2 pods"), 1);
}

/* As the installer has it: the second that is left is nothing to speak of. */
static void a_limit_of_just_the_times_is_not_too_small(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main u2/main");
    goes_down(w, w->now_ms, 30000, "u1:0 u2:2000000000");
    assert_int_equal(view(w).group_ends_ms, w->now_ms + 20000 * 29 / 30);
    assert_int_equal(logged(w, "shortened"), 0);
}

static void only_groups_with_pods_share_the_time(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    goes_down(w, w->now_ms, 16000, "u1:2000000000");
    assert_int_equal(view(w).group_ends_ms, w->now_ms + 10000); /* all that it wants */
    assert_int_equal(logged(w, "shortened"), 0);
}

static void before_the_runtime_has_listed_nobody_is_ended(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    goes_down(w, w->now_ms, 16000, "u1:0");
    assert_true(is_refused(w, "u1"));
    pass(w, 14999);
    assert_string_equal(view(w).state, "begun");
    pass(w, 1); /* nobody holds the machine up for a runtime that does not answer */
    assert_true(view(w).over);
}

/* ---- a kubelet that does it itself ---- */

static void a_kubelet_that_ends_them_is_waited_for(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    runtime_listed(w, "u1/main u2/main");
    container_made(w, 21, "u3", "main", GPU ":g0");
    ignore_all(w);
    goes_down_by_kubelet(w, 60000);
    assert_true(is_refused(w, "u1"));
    assert_int_equal(logged(w, "the kubelet ends its pods itself"), 1);
    stored(w);
    assert_string_equal(stops(w), "");
    sandbox_stopped(w, "s-u1");
    sandbox_stopped(w, "s-u2");
    assert_false(view(w).over);
    sandbox_stopping(w, "s-u3");
    assert_false(view(w).over);
    sandbox_stopped(w, "s-u3");
    assert_true(view(w).over);
    assert_string_equal(stops(w), "");
}

static void a_kubelet_is_not_waited_for_for_ever(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    goes_down_by_kubelet(w, 60000);
    pass(w, 58999);
    assert_false(view(w).over);
    pass(w, 1);
    assert_true(view(w).over);
}

static void a_lock_that_a_kubelet_had_before_counts(void **state)
{
    struct world *w = *state;
    const struct devicemgr_shutdown_said before = {.kubelet_locked = true};

    runtime_listed(w, "u1/main");
    tell(w, &before);
    goes_down(w, w->now_ms, 60000, "u1:0");
    assert_string_equal(view(w).state, "kubelet");
}

/* Its lock may be gone when somebody looks again. */
static void that_a_kubelet_does_it_is_stored(void **state)
{
    struct world *w = *state;
    uint64_t since_ms = w->now_ms;

    world_fresh(w); /* what runs is not known, so that nothing is begun */
    goes_down(w, since_ms, 60000, "u1:0");
    stored(w);
    goes_down_by_kubelet(w, 60000);
    stored(w);
    world_restart(w);
    goes_down(w, since_ms, 60000, "u1:0");
    runtime_listed(w, "u1/main");
    assert_string_equal(view(w).state, "kubelet");
}

static void the_kubelet_has_let_go(struct world *w, uint64_t since_ms)
{
    struct devicemgr_priority known[16];
    char names[16][8];
    const struct devicemgr_shutdown_said said = {.under_way = true,
                                                 .since_ms = since_ms,
                                                 .limit_ms = 60000,
                                                 .kubelet_locked = true,
                                                 .kubelet_gone = true,
                                                 .pods = known,
                                                 .pods_len = read_pods("u1:0 u2:0", known, names)};

    tell(w, &said);
}

/* Its process was killed, say. */
static void what_a_kubelet_has_left_is_ended(void **state)
{
    struct world *w = *state;
    uint64_t since_ms = w->now_ms;

    runtime_listed(w, "u1/main u2/main");
    goes_down_by_kubelet(w, 60000);
    pass(w, 10000);
    sandbox_stopped(w, "s-u2");
    the_kubelet_has_let_go(w, since_ms);
    pass(w, 1999);
    assert_string_equal(view(w).state, "kubelet");
    the_kubelet_has_let_go(w, since_ms);
    pass(w, 1);
    assert_string_equal(view(w).state, "groups");
    assert_false(view(w).by_kubelet);
    assert_int_equal(logged(w, "what it has not ended is ended from here"), 1);
    assert_string_equal(listed(w, "u1/main"), "c-u1-main:20000");
    the_kubelet_has_let_go(w, since_ms); /* as before: that it once had one counts no more */
    assert_string_equal(view(w).state, "groups");
    ended(w, "~u1/main!");
    assert_true(view(w).over);
}

static void a_kubelet_that_has_let_go_may_be_at_its_end(void **state)
{
    struct world *w = *state;
    uint64_t since_ms = w->now_ms;

    runtime_listed(w, "u1/main");
    goes_down_by_kubelet(w, 60000);
    the_kubelet_has_let_go(w, since_ms);
    pass(w, 1999);
    sandbox_stopped(w, "s-u1");
    assert_true(view(w).over);
    assert_string_equal(stops(w), "");
}

/* The next process does. */
static void one_that_is_told_to_end_takes_nothing_over(void **state)
{
    struct world *w = *state;
    uint64_t since_ms = w->now_ms;

    runtime_listed(w, "u1/main");
    goes_down_by_kubelet(w, 60000);
    devicemgr_drain(w->mgr, w->now_ms);
    the_kubelet_has_let_go(w, since_ms);
    pass(w, 58999);
    assert_string_equal(view(w).state, "kubelet");
    pass(w, 1);
    assert_true(view(w).over);
    assert_string_equal(stops(w), "");
}

static void that_a_kubelet_has_let_go_is_known_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t since_ms = w->now_ms;

    runtime_listed(w, "u1/main");
    goes_down_by_kubelet(w, 60000);
    stored(w);
    world_restart(w);
    runtime_listed(w, "u1/main");
    pass(w, 10000);
    assert_string_equal(view(w).state, "kubelet"); /* nobody has said anything yet */
    the_kubelet_has_let_go(w, since_ms);
    pass(w, 2000);
    assert_string_equal(view(w).state, "groups");
}

/* ---- cancelled ---- */

static void what_was_not_begun_stays(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    cancelled(w);
    expect_event(w, "shutdown - [] -/-/- cancelled: the machine does not go down: sandboxes and "
                    "containers are made again");
    assert_false(view(w).under_way);
    assert_false(is_refused(w, "u2"));
    assert_true(is_refused(w, "u1")); /* whose stop goes on to its end */
    assert_string_equal(listed(w, THREE_PODS), "");
    ended(w, "u1/main! u2/main u3/main");
    assert_int_equal(logged(w, "\"ns/u1\": none of its containers runs"), 1);
    assert_false(is_refused(w, "u1"));
    assert_null(w->mgr->state.endings.by_uid);
    assert_false(world_stored(w, "shutdown shutdown"));
    assert_false(world_stored(w, "ending u1"));
    pass(w, 60000);
    assert_string_equal(listed(w, "u1/main u2/main u3/main"), ""); /* it may be made again */
}

static void what_was_asked_and_not_sent_is_taken_back(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    goes_down(w, w->now_ms, 0, "");
    stored(w);
    cancelled(w);
    assert_null(w->mgr->state.endings.by_uid);
    assert_string_equal(listed(w, "u1/main"), "");
}

static void others_that_want_a_pod_to_end_want_it_still(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    devicemgr_end(w->mgr, w->now_ms, 5, "ns/u1", DEVICEMGR_POD_GRACE, true, "tired", 5);
    devicemgr_run(w->mgr);
    stored(w);
    cancelled(w);
    ended(w, "u1/main! u2/main u3/main");
    assert_true(is_refused(w, "u1"));
    assert_false(is_refused(w, "u2"));
}

/* Pod u1, whom an operator has the cluster evict, which does not come to it before it is stopped
 * since the machine goes down. */
static void evicted_one_is_stopped(struct world *w)
{
    runtime_listed(w, THREE_PODS);
    devicemgr_end(w->mgr, w->now_ms, 5, "ns/u1", DEVICEMGR_POD_GRACE, false, "tired", 5);
    devicemgr_run(w->mgr);
    stored(w);
    assert_int_equal(ending_of(w, "u1")->state, ENDING_EVICTING);
    three_pods_go(w);
    ended(w, "~u1/main! u2/main u3/main");
    assert_int_equal(ending_of(w, "u1")->state, ENDING_STOPPED);
    assert_true(is_refused(w, "u1"));
}

static void expect_to_be_evicted(struct world *w)
{
    stored(w);
    assert_int_equal(ending_of(w, "u1")->state, ENDING_EVICTING);
    assert_int_not_equal(ending_of(w, "u1")->order, 0);
    assert_false(is_refused(w, "u1"));
}

static void whom_the_cluster_was_to_evict_is_left_to_it_again(void **state)
{
    struct world *w = *state;

    evicted_one_is_stopped(w);
    cancelled(w);
    expect_to_be_evicted(w);
}

static void so_it_is_after_a_reboot(void **state)
{
    struct world *w = *state;

    evicted_one_is_stopped(w);
    w->settings.boot_id = "another";
    world_restart(w);
    expect_to_be_evicted(w);
}

/* The shim is killed once it is stored that a pod, which the cluster is to evict for a taint, is to
 * end here, too. Whether it is to be evicted still is not known yet. */
static void nor_is_anything_sent_then_before_that_is_known(void **state)
{
    const struct end_request request = {
        .asker = END_EVICTION, .grace_ms = ENDING_POD_GRACE, .why = "dust"};
    struct world *w = *state;

    runtime_listed(w, THREE_PODS);
    ends_ask(&w->mgr->ends, "u1", &request);
    devicemgr_run(w->mgr);
    stored(w);
    goes_down(w, w->now_ms, 60000, "u1:0 u2:2000000000 u3:2000001000");
    committed(w);
    w->settings.boot_id = "another";
    world_restart(w);
    assert_int_equal(ending_of(w, "u1")->state, ENDING_EVICTING);
    assert_int_equal(ending_of(w, "u1")->asks_len, 1);
    assert_int_equal(ending_of(w, "u1")->order, 0);
}

static void settings_that_switch_it_off_end_it(void **state)
{
    struct world *w = *state;
    struct devicemgr_settings off = w->settings;

    three_pods_go(w);
    off.shutdown = NULL;
    off.shutdown_len = 0;
    devicemgr_set_settings(w->mgr, w->now_ms, &off);
    devicemgr_run(w->mgr);
    assert_false(view(w).under_way);
    assert_false(is_refused(w, "u2"));
}

/* ---- again ---- */

static void a_later_one_counts(void **state)
{
    struct world *w = *state;
    uint64_t first_ms = w->now_ms;

    three_pods_go(w);
    pass(w, 25000);
    assert_int_equal(view(w).group, 2);
    goes_down(w, first_ms, 60000, "u1:0 u2:2000000000 u3:2000001000");
    assert_int_equal(view(w).group, 2); /* the same one, told again */
    goes_down(w, 0, 60000, NULL);       /* by who does not know since when */
    assert_int_equal(view(w).group, 2);
    goes_down(w, w->now_ms - 1, 40000, NULL);
    assert_int_equal(view(w).since_ms, w->now_ms - 1);
    assert_int_equal(view(w).limit_ms, 40000);
    assert_int_equal(view(w).group, 1);
}

/* The machine did not go down, and nobody has said that it does not: the next time it does. */
static void a_later_one_counts_after_one_that_was_given_up(void **state)
{
    struct world *w = *state;
    uint64_t first_ms = w->now_ms;

    goes_down(w, first_ms, 60000, "u1:0");
    pass(w, 60000);
    pass(w, SHUTDOWN_GIVEN_UP_MS);
    ignore_all(w);
    assert_false(view(w).under_way);
    goes_down(w, first_ms, 60000, "u1:0"); /* the same one, told again */
    assert_false(view(w).under_way);
    goes_down(w, w->now_ms, 60000, "u1:0");
    assert_true(view(w).under_way);
    assert_int_equal(view(w).since_ms, w->now_ms);
}

/* Those of them whose stop has come to its end are not begun anew. */
static void a_later_one_with_less_time_shortens_what_goes_on(void **state)
{
    struct world *w = *state;
    uint64_t asked;

    three_pods_go(w);
    pass(w, 1);
    goes_down(w, w->now_ms, 16000, "u1:0 u2:2000000000 u3:2000001000");
    stored(w);
    assert_string_equal(stops(w), "c-u1-main:10000");
    world_restart(w); /* the same one: as it was stored */
    ignore_all(w);
    assert_string_equal(listed(w, THREE_PODS), "c-u1-main:9000");
    ended(w, "u1/main! u2/main u3/main");
    asked = w->mgr->ends.counts.asked;
    pass(w, 1);
    goes_down(w, w->now_ms, 3000, "u1:0 u2:2000000000 u3:2000001000");
    assert_int_equal(w->mgr->ends.counts.asked, asked);
}

static bool is_told(const struct world *w, const char *start)
{
    const struct world_line *line = w->events;

    while (line && strncmp(line->text, start, strlen(start)) != 0)
        line = line->next;
    return line != NULL;
}

/* Whose end has come, and was told, is asked for again, for a container that was in the making. */
static void what_runs_behind_its_end_has_the_time_of_a_later_one(void **state)
{
    struct world *w = *state;
    uint64_t asked;

    three_pods_go(w);
    containers_ended(w);
    stored(w);
    assert_string_equal(ending_state_name(endings_find(&w->mgr->state.endings, "u1")->state),
                        "stopped");
    asked = w->mgr->ends.counts.asked;
    ignore_all(w);
    pass(w, 1);
    goes_down(w, w->now_ms, 16000, NULL);
    stored(w);
    assert_false(is_told(w, "ending "));
    assert_false(is_told(w, "ended "));
    assert_int_equal(w->mgr->ends.counts.asked, asked);
    assert_string_equal(listed(w, "u1/late u2/main u3/main"), "c-u1-late:9000");
    containers_ended(w);
    stored(w);
    assert_false(is_told(w, "ended "));
}

/* What counts of one that was stopped is when that kills, not when it was asked for. */
static void who_was_stopped_late_has_the_time_of_a_later_one(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    ignore_all(w);
    goes_down(w, w->now_ms, 60000, "u1:0");
    pass(w, 15000); /* the store is slow */
    assert_string_equal(listed(w, "u1/main"), "c-u1-main:20000");
    goes_down(w, w->now_ms, 13000, NULL);
    stored(w);
    assert_string_equal(stops(w), "c-u1-main:12000");
}

static void a_moment_to_come_is_now(void **state)
{
    struct world *w = *state;

    goes_down(w, w->now_ms + 5000, 60000, "");
    assert_int_equal(view(w).since_ms, w->now_ms);
}

static void a_machine_that_does_not_go_down_is_used_again(void **state)
{
    struct world *w = *state;
    uint64_t since_ms = w->now_ms;

    goes_down(w, since_ms, 60000, "");
    assert_true(view(w).over);
    pass(w, SHUTDOWN_GIVEN_UP_MS - 1);
    assert_true(is_refused(w, "u1"));
    pass(w, 1);
    assert_false(is_refused(w, "u1"));
    assert_int_equal(logged(w, "was to go down and has not"), 1);
    goes_down(w, since_ms, 60000, ""); /* what is told once more is not another one */
    goes_down(w, 0, 60000, "");
    assert_false(view(w).under_way);
    cancelled(w);
    goes_down(w, w->now_ms, 60000, "");
    assert_true(view(w).under_way);
}

/* ---- restarts ---- */

static void it_goes_on_after_a_restart(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    assert_true(world_stored(w, "shutdown shutdown"));
    world_restart(w);
    assert_true(is_refused(w, "new")); /* from the first call on */
    assert_int_equal(logged(w, "as is known from before this start"), 1);
    ignore_all(w);
    assert_int_equal(view(w).group, 1);
    assert_string_equal(listed(w, THREE_PODS), "c-u1-main:19000"); /* what is left of it */
    ended(w, "~u1/main! u2/main u3/main");
    assert_int_equal(view(w).group, 2);
    world_restart(w);
    ignore_all(w);
    assert_string_equal(listed(w, "~u1/main! u2/main u3/main"), "c-u2-main:9000 c-u3-main:9000");
    ended(w, "~u1/main! ~u2/main! ~u3/main!");
    assert_true(view(w).over);
    world_restart(w);
    assert_true(view(w).over);
    ignore_all(w);
    assert_string_equal(listed(w, "~u1/main! ~u2/main! ~u3/main!"), "");
    assert_int_equal(view(w).remaining, 0);
}

/* It would be several clients' pods in one, of which no row may be. */
static void what_has_no_uid_is_not_ended(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    sandbox_ran(w, "", "s-none", 0);
    ignore_all(w);
    goes_down(w, w->now_ms, 60000, "u1:0");
    stored(w);
    assert_int_equal(view(w).pods, 1);
    ignore_all(w);
    world_restart(w);
    assert_true(view(w).under_way);
    ignore_all(w);
}

/* The time of its group is over, and nothing is to be done about it before there is a list. */
static void a_runtime_that_does_not_list_is_not_waited_for_at_every_moment(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    world_restart(w);
    w->now_ms += 25000;
    devicemgr_tick(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    assert_true(shutdowns_next_ms(&w->mgr->shutdowns) > w->now_ms);
    ignore_all(w);
}

/* Whatever time it was given then is over. */
static void who_was_asked_before_and_sent_nothing_has_the_time_of_a_later_one(void **state)
{
    struct world *w = *state;

    runtime_listed(w, THREE_PODS);
    ignore_all(w);
    goes_down(w, w->now_ms, 60000, "u1:0 u2:2000000000 u3:2000001000");
    w->now_ms += 25000; /* the store is slow */
    devicemgr_tick(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    goes_down(w, w->now_ms, 16000, NULL);
    assert_string_equal(listed(w, THREE_PODS), "c-u1-main:10000 c-u2-main:10000 c-u3-main:10000");
}

/* Nor does it wait for who is asked for just then. */
static void a_group_whose_time_was_over_before_the_list_is_over_with_it(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    world_restart(w);
    w->now_ms += 25000;
    devicemgr_taint(w->mgr, w->now_ms, 900, GPU, "g0", "k:NoSchedule", 0, "", 1, false);
    devicemgr_run(w->mgr); /* the store is busy: nothing else comes of the list at once */
    runtime_listed(w, THREE_PODS " u4/main");
    assert_int_equal(view(w).group, 2);
    ignore_all(w);
}

static void what_was_cancelled_before_a_restart_is_taken_back_then(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    cancelled(w);
    stored(w);
    world_restart(w);
    assert_false(view(w).under_way);
    assert_true(is_refused(w, "u1"));
    ignore_all(w);
    assert_string_equal(listed(w, "u1/main! u2/main u3/main"), "");
    listed(w, "u1/main! u2/main u3/main");
    assert_false(is_refused(w, "u1"));
}

static void settings_of_another_start_switch_it_off(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    w->settings.shutdown_len = 0;
    world_restart(w);
    assert_false(view(w).under_way);
    assert_false(is_refused(w, "u2"));
    assert_int_equal(logged(w, "the machine does not go down"), 1);
}

static void another_boot_knows_nothing_of_it(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    w->settings.boot_id = "another";
    world_restart(w);
    assert_false(view(w).under_way);
    assert_false(is_refused(w, "u1"));
    assert_null(w->mgr->state.endings.by_uid);
    stored(w);
    assert_false(world_stored(w, "shutdown shutdown"));
    assert_false(world_stored(w, "ending u1"));
    ignore_all(w);
    assert_string_equal(listed(w, THREE_PODS), "");
}

static void a_store_that_fails_does_not_hold_it_up(void **state)
{
    struct world *w = *state;

    runtime_listed(w, "u1/main");
    goes_down(w, w->now_ms, 0, "");
    commit_failed(w, "disk full");
    ignore_all(w);
    pass(w, LIST_EVERY_MS);
    runtime_listed(w, "u1/main");
    assert_string_equal(stops(w), "c-u1-main:20000");
}

static void a_new_file_gets_it(void **state)
{
    struct world *w = *state;

    three_pods_go(w);
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect(w, "commit *");
    assert_true(w->pending != NULL);
    stored(w);
    world_restart(w);
    assert_true(view(w).under_way);
}

static void a_row_that_makes_no_sense_is_dropped(void **state)
{
    struct world *w = *state;
    const struct devicemgr_record record = {.kind = DEVICEMGR_RECORD_SHUTDOWN,
                                            .key = {"shutdown", "", ""},
                                            .value = "x",
                                            .value_bytes = 1};

    assert_int_equal(devicemgr_restore(w->mgr, w->now_ms, &record), -1);
}

/* ---- who remains ---- */

static void note(void *user, const char *pod_namespace, const char *pod_name, size_t group)
{
    char *out = user;

    sprintf(out + strlen(out), "%s/%s:%zu ", pod_namespace, pod_name, group);
}

static void who_remains_is_told(void **state)
{
    struct world *w = *state;
    char told[256] = "";

    three_pods_go(w);
    devicemgr_shutdown_remaining(w->mgr, note, told);
    assert_string_equal(told, "ns/u1:1 ns/u2:2 ns/u3:2 ");
    ended(w, "~u1/main! u2/main u3/main");
    told[0] = '\0';
    devicemgr_shutdown_remaining(w->mgr, note, told);
    assert_string_equal(told, "ns/u2:2 ns/u3:2 ");
}

#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_made_any_more, pair_setup),
        TEST(who_waits_is_refused, pair_setup),
        TEST(without_groups_it_is_off, off_setup),
        TEST(what_has_no_uid_is_not_ended, pair_setup),
        TEST(pods_end_by_priority, pair_setup),
        TEST(a_group_has_its_time_and_no_more, pair_setup),
        TEST(an_empty_group_costs_no_time, three_setup),
        TEST(a_pod_is_of_the_highest_group_that_is_not_above_it, three_setup),
        TEST(a_static_pod_is_found_by_its_mirror, three_setup),
        TEST(those_with_devices_are_stopped_first, pair_setup),
        TEST(so_are_those_with_claims, pair_setup),
        TEST(without_priorities_only_those_with_devices_end, pair_setup),
        TEST(priorities_that_come_in_time_count, pair_setup),
        TEST(what_was_known_for_an_earlier_one_is_not, pair_setup),
        TEST(a_pods_own_grace_counts_if_it_is_shorter, pair_setup),
        TEST(so_it_does_of_who_is_being_stopped, pair_setup),
        TEST(what_was_in_the_making_belongs_to_the_group_under_way, pair_setup),
        TEST(a_pod_that_is_gone_is_not_waited_for, pair_setup),
        TEST(sandboxes_are_stopped_behind_their_containers, pair_setup),
        TEST(a_sandbox_that_is_not_stopped_is_told_again, pair_setup),
        TEST(one_that_is_not_ready_is_not, pair_setup),
        TEST(a_sandbox_is_stopped_to_its_end_though_it_is_cancelled, pair_setup),
        TEST(times_are_shortened_alike, pair_setup),
        TEST(a_limit_of_just_the_times_is_not_too_small, pair_setup),
        TEST(only_groups_with_pods_share_the_time, pair_setup),
        TEST(before_the_runtime_has_listed_nobody_is_ended, pair_setup),
        TEST(a_kubelet_that_ends_them_is_waited_for, pair_setup),
        TEST(a_kubelet_is_not_waited_for_for_ever, pair_setup),
        TEST(what_a_kubelet_has_left_is_ended, pair_setup),
        TEST(a_kubelet_that_has_let_go_may_be_at_its_end, pair_setup),
        TEST(one_that_is_told_to_end_takes_nothing_over, pair_setup),
        TEST(that_a_kubelet_has_let_go_is_known_after_a_restart, pair_setup),
        TEST(a_lock_that_a_kubelet_had_before_counts, pair_setup),
        TEST(that_a_kubelet_does_it_is_stored, pair_setup),
        TEST(what_was_not_begun_stays, pair_setup),
        TEST(what_was_asked_and_not_sent_is_taken_back, pair_setup),
        TEST(others_that_want_a_pod_to_end_want_it_still, pair_setup),
        TEST(whom_the_cluster_was_to_evict_is_left_to_it_again, cluster_setup),
        TEST(so_it_is_after_a_reboot, cluster_setup),
        TEST(nor_is_anything_sent_then_before_that_is_known, cluster_setup),
        TEST(settings_that_switch_it_off_end_it, pair_setup),
        TEST(a_later_one_counts_after_one_that_was_given_up, three_setup),
        TEST(a_later_one_counts, pair_setup),
        TEST(a_later_one_with_less_time_shortens_what_goes_on, pair_setup),
        TEST(what_runs_behind_its_end_has_the_time_of_a_later_one, pair_setup),
        TEST(who_was_stopped_late_has_the_time_of_a_later_one, pair_setup),
        TEST(a_moment_to_come_is_now, pair_setup),
        TEST(a_machine_that_does_not_go_down_is_used_again, pair_setup),
        TEST(it_goes_on_after_a_restart, pair_setup),
        TEST(a_runtime_that_does_not_list_is_not_waited_for_at_every_moment, pair_setup),
        TEST(who_was_asked_before_and_sent_nothing_has_the_time_of_a_later_one, pair_setup),
        TEST(a_group_whose_time_was_over_before_the_list_is_over_with_it, pair_setup),
        TEST(what_was_cancelled_before_a_restart_is_taken_back_then, pair_setup),
        TEST(settings_of_another_start_switch_it_off, pair_setup),
        TEST(another_boot_knows_nothing_of_it, pair_setup),
        TEST(a_store_that_fails_does_not_hold_it_up, pair_setup),
        TEST(a_new_file_gets_it, pair_setup),
        TEST(a_row_that_makes_no_sense_is_dropped, pair_setup),
        TEST(who_remains_is_told, pair_setup),
        TEST(what_would_be_is_known, pair_setup),
        TEST(where_nobody_would_be_ended_nothing_is_said, pair_setup),
        TEST(nor_where_it_is_off, off_setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
