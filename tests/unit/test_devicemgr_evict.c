/* devicemgr/machines/evict.c, rules/evictable.c, turn/evict.c: who goes for a taint, and when. */
#include <inttypes.h>
#include <stdio.h>

#include "claims_world.h"
#include "devicemgr/endings.h"
#include "devicemgr/lists.h"
#include "devicemgr/operator.h"
#include "devicemgr/rules/evictable.h"
#include "devicemgr/taints.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"

#define A_MINUTE "[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":60}]"
#define FOR_EVER "[{\"operator\":\"Exists\"}]"
#define OF_G0 ": device g0 of " GPU " is tainted k:NoExecute: dust"

/* ---- what happens ---- */

static void taint_of(struct world *w, const char *resource, const char *id)
{
    devicemgr_taint(w->mgr, w->now_ms, 900, resource, id, "k:NoExecute", 0, "dust", 1, false);
    devicemgr_run(w->mgr);
}

static void untaint_of(struct world *w, const char *resource, const char *id)
{
    devicemgr_untaint(w->mgr, w->now_ms, 901, resource, id, "k");
    devicemgr_run(w->mgr);
}

/* The cluster does not tell who may use the claim. */
static void tells_nothing(struct world *w)
{
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", NULL);
    devicemgr_run(w->mgr);
}

/* How often pods were asked to be evicted since the last call, by uid "uN"; the lines are
 * forgotten. */
static size_t evicted(struct world *w, unsigned *times, size_t len)
{
    size_t n = 0;

    for (const struct world_line *line = w->lines; line; line = line->next) {
        unsigned pod;

        if (sscanf(line->text, "evict u%u ", &pod) != 1)
            continue;
        n++;
        if (pod < len)
            times[pod]++;
    }
    ignore_all(w);
    return n;
}

/* All that there is to store is. How many were asked to be evicted, as evicted() has it. */
static size_t settle_of(struct world *w, unsigned *times, size_t len)
{
    size_t n = evicted(w, times, len);

    while (w->pending) {
        committed(w);
        n += evicted(w, times, len);
    }
    return n;
}

static size_t settle(struct world *w)
{
    return settle_of(w, NULL, 0);
}

static bool is_asked(const struct world *w, const char *uid)
{
    const struct ending *ending = endings_find(&w->mgr->state.endings, uid);

    return ending && ending_find_ask(ending, END_EVICTION, 0);
}

/* ---- setups: there is a cluster that evicts ---- */

static int evict_setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    w->settings.cluster = true;
    world_fresh_listed(w);
    kubelet_lists(w);
    return 0;
}

/* Pod u1 has g0. */
static int u1_setup(void **state)
{
    evict_setup(state);
    u1_has_g0(*state, "g0 g1");
    ignore_all(*state);
    return 0;
}

/* ---- one ---- */

static void who_has_it_goes_once_that_is_durable(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    expect(w, "commit order taint " GPU " k:NoExecute g0");
    expect_nothing(w);
    assert_int_equal(evicts_len(&w->mgr->evicts, EVICTION_WAITS), 1);
    committed(w);
    expect(w, "steered 900: " GPU ": tainted: g0 k:NoExecute; pods to be evicted: ns/u1");
    expect(w, "commit ending u1");
    committed(w);
    expect(w, "evict u1 (ns/u1) in 0ms" OF_G0);
    assert_int_equal(evicts_len(&w->mgr->evicts, EVICTION_ASKED), 1);
    settle(w);
    pass(w, 600000);
    assert_int_equal(settle(w), 0); /* once */
}

static void nobody_goes_for_what_cannot_be_stored(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    ignore_all(w);
    commit_failed(w, "disk full");
    assert_int_equal(settle(w), 0);
    assert_int_equal(HASH_COUNT(w->mgr->evicts.by_uid), 0);
}

static void to_take_it_back_ends_it(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1);
    untaint_of(w, GPU, "g0");
    assert_true(is_asked(w, "u1")); /* until that is durable */
    ignore_all(w);
    commit_failed(w, "disk full");
    ignore_all(w);
    assert_true(is_asked(w, "u1"));
    untaint_of(w, GPU, "g0");
    ignore_all(w);
    committed(w);
    expect(w, "steered 901: *");
    expect(w, "evict no more");
    assert_false(is_asked(w, "u1"));
    settle(w);
}

static void only_the_last_taint_that_goes_ends_it(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    settle(w);
    devicemgr_taint(w->mgr, w->now_ms, 902, GPU, "g0", "other:NoExecute", 0, "", 1, false);
    devicemgr_run(w->mgr);
    settle(w);
    untaint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 0);
    assert_true(is_asked(w, "u1"));
}

static void other_effects_evict_nobody(void **state)
{
    struct world *w = *state;

    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "k:NoSchedule", 0, "", 1, false);
    devicemgr_taint(w->mgr, w->now_ms, 2, GPU, "g0", "k:None", 0, "", 1, false);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
    assert_int_equal(HASH_COUNT(w->mgr->evicts.by_uid), 0);
}

/* ---- tolerations ---- */

static void a_toleration_puts_it_off(void **state)
{
    struct world *w = *state;

    w->tolerations = A_MINUTE;
    u1_has_g0(w, "g0 g1");
    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 0);
    pass(w, 59999);
    assert_int_equal(settle(w), 0);
    assert_int_equal(evicts_next_ms(&w->mgr->evicts), w->now_ms + 1);
    pass(w, 1);
    assert_int_equal(settle(w), 1);
}

/* That is not the operator's to take back, who has asked for nothing. */
static void an_operator_cannot_cancel_it(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1);
    devicemgr_end_cancel(w->mgr, w->now_ms, 950, "u1");
    devicemgr_run(w->mgr);
    expect_with(w, "steer 950 refused 5", "no operator has asked for such a pod to end", NULL);
    expect_nothing(w);
    assert_true(is_asked(w, "u1"));
    devicemgr_end_cancel(w->mgr, w->now_ms, 951, "u2");
    devicemgr_run(w->mgr);
    expect_with(w, "steer 951 refused 5", "no operator has asked for such a pod to end", NULL);
}

/* Who was due before goes before, though the names say the other way round. */
static void who_has_been_due_for_longest_goes_first(void **state)
{
    struct world *w = *state;
    unsigned times[3] = {0};

    w->settings.evict_per_minute = 1;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    gpus_up(w, "g0 g1 g2");
    container_made(w, 10, "u0", "main", GPU ":g0");
    container_made(w, 12, "u2", "main", GPU ":g2");
    w->tolerations = "[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":20}]";
    container_made(w, 11, "u1", "main", GPU ":g1");
    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1); /* which is what there may be in a minute */
    taint_of(w, GPU, "g1");
    taint_of(w, GPU, "g2");
    assert_int_equal(settle(w), 0);
    pass(w, 60000);
    assert_int_equal(settle_of(w, times, 3), 1);
    assert_int_equal(times[2], 1);
    pass(w, 60000);
    assert_int_equal(settle_of(w, times, 3), 1);
    assert_int_equal(times[1], 1);
}

static bool on_row(void *user, const struct devicemgr_ending_row *row)
{
    *(struct devicemgr_ending_row *)user = *row;
    return false;
}

/* Who will go is listed before he is asked to: from when on, and what for. */
static void who_waits_is_listed(void **state)
{
    struct devicemgr_ending_row row = {0};
    struct devicemgr_which which = {0};
    struct world *w = *state;

    w->tolerations = A_MINUTE;
    u1_has_g0(w, "g0 g1");
    taint_of(w, GPU, "g0");
    devicemgr_ending_rows(w->mgr, w->now_ms, &which, on_row, &row);
    assert_string_equal(row.state, "waits");
    assert_false(row.due); /* the taint is not stored yet */
    settle(w);
    pass(w, 20000);
    devicemgr_ending_rows(w->mgr, w->now_ms, &which, on_row, &row);
    assert_string_equal(row.name, "u1");
    assert_string_equal(row.state, "waits");
    assert_true(row.due);
    assert_int_equal(row.due_in_ms, 40000);
    pass(w, 40000);
    devicemgr_ending_rows(w->mgr, w->now_ms, &which, on_row, &row);
    assert_string_equal(row.state, "asked");
    settle(w);
}

/* Of several taints that are tolerated for a while each. */
static void the_first_that_is_due_counts(void **state)
{
    static const char *const keys[] = {"a:NoExecute", "b:NoExecute", "c:NoExecute"};
    struct world *w = *state;

    w->tolerations = "[{\"key\":\"a\",\"effect\":\"NoExecute\",\"tolerationSeconds\":50},"
                     "{\"key\":\"b\",\"effect\":\"NoExecute\",\"tolerationSeconds\":20},"
                     "{\"key\":\"c\",\"effect\":\"NoExecute\",\"tolerationSeconds\":70}]";
    u1_has_g0(w, "g0 g1");
    for (size_t i = 0; i < 3; i++) {
        devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", keys[i], 0, "", 1, false);
        devicemgr_run(w->mgr);
        settle(w);
    }
    pass(w, 19999);
    assert_int_equal(settle(w), 0);
    pass(w, 1);
    assert_int_equal(settle(w), 1);
}

static void what_is_taken_back_in_time_evicts_nobody(void **state)
{
    struct world *w = *state;

    w->tolerations = A_MINUTE;
    u1_has_g0(w, "g0 g1");
    taint_of(w, GPU, "g0");
    settle(w);
    pass(w, 59999);
    untaint_of(w, GPU, "g0");
    settle(w);
    pass(w, 60000);
    assert_int_equal(settle(w), 0);
}

static void one_for_ever_evicts_nobody(void **state)
{
    struct world *w = *state;

    w->tolerations = FOR_EVER;
    u1_has_g0(w, "g0 g1");
    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 0);
    pass(w, 600000);
    assert_int_equal(settle(w), 0);
}

static void a_toleration_that_comes_later_ends_it(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1);
    w->tolerations = FOR_EVER;
    runtime_listed(w, "u1/main");
    assert_false(is_asked(w, "u1"));
    settle(w);
}

/* ---- who is there ---- */

static void a_pod_that_is_over_is_forgotten(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1);
    sandbox_stopped(w, "s-u1");
    settle(w);
    assert_int_equal(HASH_COUNT(w->mgr->evicts.by_uid), 0);
}

static void that_it_has_gone_is_told(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1);
    sandbox_stopped(w, "s-u1");
    while (w->pending)
        committed(w);
    expect_event(w, "ended - [] ns/u1/- gone: -");
    expect_event(w, "released ");
    expect_no_event(w);
    assert_null(endings_find(&w->mgr->state.endings, "u1"));
    assert_false(devicemgr_refuses_sandboxes(w->mgr));
}

/* Also while what was stored last is being stored. */
static void so_it_is_under_a_commit(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    committed(w);
    assert_true(is_asked(w, "u1")); /* which is being stored */
    ignore_all(w);
    sandbox_stopped(w, "s-u1");
    while (w->pending)
        committed(w);
    expect_event(w, "ended - [] ns/u1/- gone: -");
    expect_event(w, "released ");
    expect_no_event(w);
    assert_null(endings_find(&w->mgr->state.endings, "u1"));
}

/* The kubelet may make another sandbox: nothing is made in it before the taint has gone. */
static void one_that_was_evicted_is_kept_from_coming_back(void **state)
{
    struct devicemgr_evictions evictions;
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1);
    devicemgr_pod_evicted(w->mgr, w->now_ms, endings_find(&w->mgr->state.endings, "u1")->order,
                          DEVICEMGR_EVICTED);
    devicemgr_run(w->mgr);
    settle(w);
    sandbox_stopped(w, "s-u1");
    settle(w);
    assert_true(is_asked(w, "u1"));
    assert_true(devicemgr_refuses_sandboxes(w->mgr));
    untaint_of(w, GPU, "g0");
    settle(w);
    assert_false(is_asked(w, "u1"));
    devicemgr_evictions(w->mgr, &evictions);
    assert_int_equal(evictions.taken_back_total, 0); /* it had gone */
}

static void one_that_gets_it_later_goes_as_well(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g1");
    assert_int_equal(settle(w), 0);
    sandbox_ran(w, "u2", "s-u2", 0);
    kubelet_holds(w, "u2=" GPU ":g1"); /* who is to be made with it, and cannot */
    assert_int_equal(settle(w), 1);
    assert_true(is_asked(w, "u2"));
    assert_false(is_asked(w, "u1"));
}

static void nobody_goes_before_the_runtime_has_listed(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    ignore_all(w);
    committed(w); /* the order; what follows from it is lost */
    world_restart(w);
    assert_int_equal(settle(w), 0);
    runtime_listed(w, "u1/main");
    assert_int_equal(settle(w), 1);
}

/* The kubelet has given it away before it was tainted, and no container was made or listed yet. */
static void what_a_pod_tolerates_is_known_with_its_sandbox(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g1");
    settle(w);
    kubelet_holds(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    w->tolerations = FOR_EVER;
    sandbox_ran(w, "u2", "s-u2", 0);
    assert_int_equal(settle(w), 0);
    assert_false(is_asked(w, "u2"));
}

/* There are runtimes that forget all sandboxes with a reboot. */
static void so_it_is_after_a_reboot(void **state)
{
    struct world *w = *state;

    w->tolerations = FOR_EVER;
    runtime_listed(w, "u1/main");
    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 0);
    w->settings.boot_id = "another";
    world_restart(w);
    kubelet_lists(w);
    runtime_listed(w, "");
    assert_non_null(pods_find(&w->mgr->state.pods, "u1"));
    assert_int_equal(settle(w), 0);
    sandbox_ran(w, "u1", "s-again", 1);
    assert_int_equal(settle(w), 0);
    w->tolerations = NULL;
    sandbox_ran(w, "u1", "s-and-again", 2);
    assert_int_equal(settle(w), 1);
}

/* The store has the untaint, and not yet that the pod is let be: nothing is sent for it any
 * more. */
static void what_was_taken_back_before_a_restart_is_not_begun_anew(void **state)
{
    struct world *w = *state;

    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 1);
    untaint_of(w, GPU, "g0");
    ignore_all(w);
    committed(w); /* the order; what follows from it is lost */
    assert_false(is_asked(w, "u1"));
    world_restart(w);
    assert_true(is_asked(w, "u1"));
    runtime_listed(w, "u1/main");
    assert_int_equal(settle(w), 0);
    assert_false(is_asked(w, "u1"));
}

/* The same without a cluster: no container is stopped before it is known who is to go. */
static void nor_are_its_containers_stopped_then(void **state)
{
    struct world *w = *state;

    w->settings.cluster = false;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    taint_of(w, GPU, "g0");
    settle(w);
    assert_true(is_asked(w, "u1"));
    untaint_of(w, GPU, "g0");
    ignore_all(w);
    committed(w);
    world_restart(w);
    ignore_all(w);
    runtime_listed(w, "u1/main");
    for (const struct world_line *line = w->lines; line; line = line->next)
        assert_null(strstr(line->text, "stop"));
    settle(w);
    assert_false(is_asked(w, "u1"));
}

/* One commit has both: that it is to go, and that it need not any more. */
static void who_need_not_go_any_more_has_nothing_sent(void **state)
{
    static const char *const n0[] = {"n0"};
    struct world *w = *state;

    taint_of(w, GPU, "g1");
    settle(w);
    devicemgr_cordon(w->mgr, w->now_ms, 1, NIC, n0, 1, "", 1); /* a commit that takes its time */
    devicemgr_run(w->mgr);
    sandbox_ran(w, "u2", "s-u2", 0);
    kubelet_holds(w, "u2=" GPU ":g1");
    assert_true(is_asked(w, "u2"));
    untaint_of(w, GPU, "g1");
    ignore_all(w);
    committed(w);
    assert_true(is_asked(w, "u2"));
    assert_int_equal(settle(w), 0);
    assert_false(is_asked(w, "u2"));
}

/* The seconds of a toleration count from when the taint came, and it came with this process. */
static void one_of_the_settings_counts_from_the_start(void **state)
{
    static const struct devicemgr_settings_taint taints[] = {{GPU, "g0", "k", "", "NoExecute"}};
    struct world *w = *state;

    w->tolerations = A_MINUTE;
    u1_has_g0(w, "g0 g1");
    settle(w);
    w->settings.taints = taints;
    w->settings.taints_len = 1;
    world_restart(w);
    runtime_listed(w, "u1/main");
    assert_int_equal(settle(w), 0);
    pass(w, 59999);
    assert_int_equal(settle(w), 0);
    pass(w, 1);
    assert_int_equal(settle(w), 1);
    w->settings.taints = NULL;
    w->settings.taints_len = 0;
}

/* That it has ended cannot be stored: all the same nobody is to go for it, from that moment on. */
static void one_that_ends_by_itself_ends_it_in_time(void **state)
{
    struct world *w = *state;

    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "k:NoExecute", 60000, "", 1, false);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 1);
    devicemgr_taint(w->mgr, w->now_ms, 2, GPU, "g1", "k:NoExecute", 0, "", 1, false);
    devicemgr_run(w->mgr);
    ignore_all(w);
    commit_failed(w, "disk full");
    ignore_all(w);
    pass(w, 59999);
    assert_true(is_asked(w, "u1"));
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + 1);
    pass(w, 1);
    assert_false(is_asked(w, "u1"));
    expect(w, "evict no more");
}

/* What was asked for is not asked for twice, and is taken back if it is not to be any more. */
static void it_goes_on_after_a_restart(void **state)
{
    static const struct devicemgr_settings_taint taints[] = {{GPU, "g0", "k", "", "NoExecute"}};
    struct world *w = *state;

    w->settings.taints = taints;
    w->settings.taints_len = 1;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 1);
    world_restart(w);
    runtime_listed(w, "u1/main");
    settle(w);
    assert_int_equal(endings_find(&w->mgr->state.endings, "u1")->asks_len, 1);
    assert_int_equal(w->mgr->evicts.asked, w->mgr->evicts.asked_before); /* once */
    w->settings.taints_len = 0;
    world_restart(w);
    assert_true(is_asked(w, "u1"));
    runtime_listed(w, "u1/main");
    settle(w);
    assert_false(is_asked(w, "u1"));
    w->settings.taints = NULL;
}

/* ---- health ---- */

static void an_unhealthy_device_moves_its_pods_on(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    w->settings.taint_unhealthy_after_ms = 60000;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    endpoint = u1_has_g0(w, "g0 g1");
    plugin_list(w, endpoint, "g0! g1");
    pass(w, 59999);
    assert_int_equal(settle(w), 0);
    pass(w, 1);
    assert_int_equal(settle(w), 1);
    plugin_list(w, endpoint, "g0 g1");
    assert_false(is_asked(w, "u1"));
    settle(w);
}

static void settings_that_evict_for_health_no_more_spare_them(void **state)
{
    struct world *w = *state;

    w->settings.taint_unhealthy_after_ms = 60000;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    plugin_list(w, u1_has_g0(w, "g0 g1"), "g0! g1");
    pass(w, 60000);
    assert_int_equal(settle(w), 1);
    assert_true(is_asked(w, "u1"));
    w->settings.taint_unhealthy_after_ms = 0;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    settle(w);
    assert_false(is_asked(w, "u1"));
    w->settings.taint_unhealthy_after_ms = 60000; /* which begins anew, also over a restart */
    world_restart(w);
    runtime_listed(w, "u1/main");
    plugin_back(w, "g0! g1");
    assert_int_equal(settle(w), 0);
    pass(w, 60000);
    assert_int_equal(settle(w), 1);
}

static void what_was_unhealthy_is_so_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    w->settings.taint_unhealthy_after_ms = 60000;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    endpoint = u1_has_g0(w, "g0 g1");
    plugin_list(w, endpoint, "g0! g1");
    pass(w, 60000);
    assert_int_equal(settle(w), 1);
    world_restart(w);
    runtime_listed(w, "u1/main");
    settle(w);
    assert_true(is_asked(w, "u1"));
    assert_int_equal(w->mgr->evicts.taken_back, 0);
    plugin_back(w, "g0! g1");
    settle(w);
    assert_true(is_asked(w, "u1"));
    plugin_list(w, w->endpoint, "g0 g1");
    settle(w);
    assert_false(is_asked(w, "u1"));
    plugin_list(w, w->endpoint, "g0! g1");
    pass(w, 60000);
    settle(w);
    assert_true(is_asked(w, "u1"));
    w->settings.boot_id = "another"; /* in which nobody has said so */
    world_restart(w);
    runtime_listed(w, "u1/main");
    settle(w);
    assert_false(is_asked(w, "u1"));
}

static void how_long_it_is_tolerated_outlives_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    w->tolerations =
        "[{\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}]";
    w->settings.taint_unhealthy_after_ms = 60000;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    endpoint = u1_has_g0(w, "g0 g1");
    plugin_list(w, endpoint, "g0! g1");
    pass(w, 100000);
    settle(w);
    world_restart(w);
    runtime_listed(w, "u1/main");
    plugin_back(w, "g0! g1");
    settle(w);
    pass(w, 199999);
    settle(w);
    assert_false(is_asked(w, "u1"));
    pass(w, 1);
    settle(w);
    assert_true(is_asked(w, "u1"));
    world_restart(w);
    runtime_listed(w, "u1/main");
    settle(w);
    assert_true(is_asked(w, "u1"));
    assert_int_equal(w->mgr->evicts.taken_back, 0);
    w->tolerations = NULL;
}

static void goes_on_with_u1(struct world *w)
{
    world_restart(w);
    runtime_listed(w, "u1/main");
    settle(w);
}

/* An operator's taint begins anew with a boot, and not with each restart in it. */
static void in_another_boot_it_begins_anew_once(void **state)
{
    struct world *w = *state;

    w->tolerations = A_MINUTE;
    u1_has_g0(w, "g0 g1");
    taint_of(w, GPU, "g0");
    settle(w);
    w->settings.boot_id = "another";
    goes_on_with_u1(w);
    pass(w, 40000);
    settle(w);
    goes_on_with_u1(w);
    pass(w, 19999);
    settle(w);
    assert_false(is_asked(w, "u1"));
    pass(w, 1);
    settle(w);
    assert_true(is_asked(w, "u1"));
    goes_on_with_u1(w);
    assert_true(is_asked(w, "u1"));
    assert_int_equal(w->mgr->evicts.taken_back, 0);
    w->tolerations = NULL;
}

/* ---- claims ---- */

/* "u0" to "uN-1" are here, but for each third: every ninth pod is not known, every other ninth has
 * gone, and the rest have been made anew, with another uid. All have reserved claim "c". */
static size_t many_reserve(struct world *w, size_t len, bool extended)
{
    const char *uids[CLAIM_CONSUMERS_MAX];
    struct devicemgr_claim_consumers consumers = {
        .extended = extended, .reserved_for = uids, .reserved_for_len = len};
    char names[CLAIM_CONSUMERS_MAX][16], sandbox[24];
    size_t here = 0;

    for (size_t i = 0; i < len; i++) {
        snprintf(names[i], sizeof names[i], "u%zu", i);
        uids[i] = names[i];
        snprintf(sandbox, sizeof sandbox, "s-u%zu", i);
        if (i % 9 == 0)
            continue;
        sandbox_ran(w, i % 9 == 6 ? "anew" : uids[i], sandbox, 0);
        if (i % 9 == 3)
            sandbox_removed(w, sandbox);
        here += i % 3 != 0;
    }
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_run(w->mgr);
    ignore_all(w);
    return here;
}

static int claim_setup(void **state)
{
    struct world *w;

    claims_setup(state);
    w = *state;
    w->settings.cluster = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    kubelet_lists(w);
    driver_up(w, 7, DRIVER);
    claim_prepared(w, 1, "c", "gpu-0");
    ignore_all(w);
    return 0;
}

static void each_once(struct world *w, size_t len, size_t here)
{
    unsigned times[CLAIM_CONSUMERS_MAX] = {0};
    size_t n = evicted(w, times, len);

    while (w->pending) {
        committed(w);
        n += evicted(w, times, len);
    }
    pass(w, 60000);
    n += evicted(w, times, len);
    assert_int_equal(n, here);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(times[i], i % 3 != 0);
}

static void all_but_stale_holders_go_each_once(void **state)
{
    struct world *w = *state;
    size_t here = many_reserve(w, CLAIM_CONSUMERS_MAX, false);
    struct devicemgr_evictions evictions;

    assert_int_equal(here, 170);
    taint_of(w, DRIVER, "p/gpu-0");
    each_once(w, CLAIM_CONSUMERS_MAX, here);
    devicemgr_evictions(w->mgr, &evictions);
    assert_int_equal(evictions.asked, here);
    assert_int_equal(evictions.asked_total, here);
    /* those that are not known, and who has been made anew; who has gone is known to be over */
    assert_int_equal(evictions.stale, 29 + 28);
    untaint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    devicemgr_evictions(w->mgr, &evictions);
    assert_int_equal(evictions.waiting + evictions.asked + evictions.stale, 0);
    assert_int_equal(evictions.taken_back_total, here);
    for (const struct ending *e = w->mgr->state.endings.by_uid; e; e = e->hh.next)
        assert_false(is_asked(w, e->pod_uid));
}

static void slice(struct world *w, const char *device, const char *effect)
{
    const struct devicemgr_tainted_device tainted = {device, {"k", "", effect, 0, 0}};

    devicemgr_slice_taints(w->mgr, w->now_ms, "s1", DRIVER, "p", 1, &tainted, 1);
    devicemgr_run(w->mgr);
}

/* A driver's slices are told also where nothing is tainted, as on most nodes. */
static void slices_without_no_execute_cost_no_turn_anything(void **state)
{
    struct world *w = *state;

    devicemgr_slice_taints(w->mgr, w->now_ms, "s1", DRIVER, "p", 1, NULL, 0);
    devicemgr_run(w->mgr);
    assert_true(turn_ends_nobody(w->mgr));
    slice(w, "gpu-0", "NoSchedule");
    assert_true(turn_ends_nobody(w->mgr));
    slice(w, "gpu-0", "NoExecute");
    assert_false(turn_ends_nobody(w->mgr));
    devicemgr_slice_gone(w->mgr, w->now_ms, "s1");
    devicemgr_run(w->mgr);
    assert_true(turn_ends_nobody(w->mgr));
}

static void what_the_cluster_evicts_is_not_evicted_twice(void **state)
{
    const struct devicemgr_taint_rule rule = {
        "r", DRIVER, NULL, NULL, {"k", "", "NoExecute", 0, 0}};
    struct world *w = *state;

    many_reserve(w, 3, false);
    slice(w, "gpu-0", "NoExecute");
    devicemgr_taint_rule(w->mgr, w->now_ms, "r1", &rule);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
}

static void what_it_does_not_see_is(void **state)
{
    struct world *w = *state;

    many_reserve(w, 3, true); /* of extended resources */
    slice(w, "gpu-1", "NoExecute");
    assert_int_equal(settle(w), 0);
    slice(w, "gpu-0", "NoExecute");
    assert_int_equal(settle(w), 2);
    assert_true(is_asked(w, "u1") && is_asked(w, "u2"));
    devicemgr_slice_gone(w->mgr, w->now_ms, "s1");
    devicemgr_run(w->mgr);
    settle(w);
    assert_false(is_asked(w, "u1") || is_asked(w, "u2"));
}

/* ---- an agent that has gone ---- */

/* u1 and u2 are to go for it, and so they are told to. */
static void two_go_for_a_slice(struct world *w)
{
    many_reserve(w, 3, true);
    devicemgr_taints_told(w->mgr, w->now_ms);
    slice(w, "gpu-0", "NoExecute");
    assert_int_equal(settle(w), 2);
}

static void agent_goes(struct world *w)
{
    devicemgr_taints_doubted(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

static void agent_has_told_all(struct world *w)
{
    devicemgr_taints_told(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

static void nothing_is_sent_for_what_an_agent_has_told_that_has_gone(void **state)
{
    struct world *w = *state;

    two_go_for_a_slice(w);
    agent_goes(w);
    expect(w, "evict no more");
    expect(w, "evict no more");
    assert_int_equal(settle(w), 0);
    pass(w, 600000);
    assert_int_equal(settle(w), 0);
    assert_true(is_asked(w, "u1") && is_asked(w, "u2"));
    agent_has_told_all(w);
    assert_int_equal(settle(w), 2);
    assert_true(is_asked(w, "u1") && is_asked(w, "u2"));
}

static void what_is_lifted_meanwhile_evicts_nobody(void **state)
{
    struct world *w = *state;

    two_go_for_a_slice(w);
    agent_goes(w);
    ignore_all(w);
    devicemgr_slice_gone(w->mgr, w->now_ms, "s1");
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
    assert_true(is_asked(w, "u1") && is_asked(w, "u2")); /* another may taint it, or a rule */
    agent_has_told_all(w);
    assert_int_equal(settle(w), 0);
    assert_false(is_asked(w, "u1") || is_asked(w, "u2"));
}

static void nor_is_anybody_new_asked_for_meanwhile(void **state)
{
    struct world *w = *state;

    many_reserve(w, 3, true);
    agent_has_told_all(w);
    agent_goes(w);
    slice(w, "gpu-0", "NoExecute");
    assert_int_equal(settle(w), 0);
    assert_false(is_asked(w, "u1"));
    agent_has_told_all(w);
    assert_int_equal(settle(w), 2);
}

/* It is not stored yet that they are to go. */
static void who_is_asked_for_just_then_has_nothing_sent(void **state)
{
    struct world *w = *state;

    many_reserve(w, 3, true);
    agent_has_told_all(w);
    slice(w, "gpu-0", "NoExecute");
    agent_goes(w);
    assert_int_equal(settle(w), 0);
    assert_true(is_asked(w, "u1"));
    agent_has_told_all(w);
    assert_int_equal(settle(w), 2);
}

/* Nor is what is not the cluster's sent before that is stored. */
static void what_an_operator_has_tainted_goes_on(void **state)
{
    struct world *w = *state;

    many_reserve(w, 3, false);
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 2);
    agent_goes(w);
    expect_nothing(w); /* the next one has these from us */
    untaint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    taint_of(w, DRIVER, "p/gpu-0");
    committed(w);
    ignore_all(w);
    agent_goes(w);
    expect_nothing(w);
    assert_int_equal(settle(w), 2);
}

/* That it is lifted was not stored yet as the agent went. */
static void what_an_operator_lifts_meanwhile_evicts_nobody(void **state)
{
    struct world *w = *state;

    many_reserve(w, 3, true);
    agent_has_told_all(w);
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 2);
    untaint_of(w, DRIVER, "p/gpu-0");
    agent_goes(w);
    assert_int_equal(settle(w), 0);
    assert_false(is_asked(w, "u1") || is_asked(w, "u2"));
}

/* Unless the cluster had tainted it, too, which is not known to have ended. */
static void nor_is_anybody_let_go_for_that(void **state)
{
    struct world *w = *state;

    two_go_for_a_slice(w);
    taint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    untaint_of(w, DRIVER, "p/gpu-0");
    agent_goes(w);
    devicemgr_slice_gone(w->mgr, w->now_ms, "s1");
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
    assert_true(is_asked(w, "u1") && is_asked(w, "u2"));
    agent_has_told_all(w);
    settle(w);
    assert_false(is_asked(w, "u1") || is_asked(w, "u2"));
}

/* As when the machine's shutdown is cancelled, of which the agent has ended. */
static void who_is_ended_here_no_more_has_nothing_sent(void **state)
{
    const struct end_request here = {
        .asker = END_OPERATOR, .grace_ms = ENDING_POD_GRACE, .force_local = true, .why = "dust"};
    struct world *w = *state;

    two_go_for_a_slice(w);
    ends_ask(&w->mgr->ends, "u1", &here);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
    agent_goes(w);
    settle(w);
    ends_cancel(&w->mgr->ends, "u1", END_OPERATOR, END_ONCE);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
    assert_true(is_asked(w, "u1"));
    agent_has_told_all(w);
    assert_int_equal(settle(w), 2);
}

/* Nor before the runtime has listed. */
static void nor_has_who_was_wanted_by_another_before_a_restart(void **state)
{
    const struct end_request dust = {
        .asker = END_OPERATOR, .grace_ms = ENDING_POD_GRACE, .why = "dust"};
    struct world *w = *state;

    two_go_for_a_slice(w);
    ends_ask(&w->mgr->ends, "u1", &dust);
    devicemgr_run(w->mgr);
    settle(w);
    world_restart(w);
    assert_int_equal(settle(w), 1);
    ends_cancel(&w->mgr->ends, "u1", END_OPERATOR, END_ONCE);
    devicemgr_run(w->mgr);
    expect(w, "evict no more");
    assert_int_equal(settle(w), 0);
    runtime_listed(w, "u1 u2");
    assert_int_equal(settle(w), 0);
    assert_true(is_asked(w, "u1"));
    two_go_for_a_slice(w);
}

/* A container of the pod with the device "gpu-0" of claim "c", by the name that it has there. */
static bool with_claim_of(struct world *w, uint64_t number, const char *uid)
{
    static const char *const names[] = {"example.com/dev=gpu-0"};
    const struct devicemgr_annotation tolerations = {"devices.cri-device-shim/tolerations",
                                                     w->tolerations};
    const struct devicemgr_create request = {.sandbox_id = strcmp(uid, "u1") == 0 ? "s-u1" : "s-u2",
                                             .pod_uid = uid,
                                             .pod_namespace = "ns",
                                             .pod_name = uid,
                                             .container = "main",
                                             .cdi_devices = names,
                                             .cdi_devices_len = 1,
                                             .pod_annotations = &tolerations,
                                             .pod_annotations_len = w->tolerations ? 1 : 0,
                                             .deadline_ms = UINT64_MAX};

    settle(w);
    return create_claimed(w, number, &request);
}

static bool with_claim(struct world *w, uint64_t number)
{
    return with_claim_of(w, number, "u1");
}

/* What the cluster has of claim "c", which nobody has reserved: nothing is tolerated. */
static void tolerates_nothing(struct world *w)
{
    const struct devicemgr_claim_consumers none = {0};

    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &none);
    devicemgr_run(w->mgr);
}

/* Whoever evicts, if anybody does: no container is made with it. */
static void nobody_is_made_with_a_claim_of_it(void **state)
{
    struct world *w = *state;

    tolerates_nothing(w);
    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(with_claim(w, 1));
    slice(w, "gpu-0", "NoSchedule");
    assert_false(with_claim(w, 2));
    slice(w, "gpu-0", "NoExecute");
    assert_true(with_claim(w, 3));
    expect(w, "verdict 3 refused 9: container \"main\" of pod \"ns/u1\": resource " DRIVER
              ": device p/gpu-0 is tainted k:NoExecute, which the pod does not tolerate");
    w->tolerations = FOR_EVER;
    assert_false(with_claim(w, 4));
    w->tolerations = NULL;
    slice(w, "gpu-1", "NoExecute");
    assert_false(with_claim(w, 5));
}

/* The shim may have been started while the API server is away. */
static void what_a_claim_tolerates_is_not_known_before_it_is_told(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    slice(w, "gpu-0", "NoExecute");
    assert_false(with_claim(w, 1));
    tolerates_nothing(w);
    assert_true(with_claim(w, 2));
}

static void an_operators_taint_stands_meanwhile(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    taint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    assert_true(with_claim(w, 1));
}

/* Without a cluster, u1 is to go for a claim's device: its container was stopped. */
static void main_is_stopped_for_its_claim(struct world *w)
{
    w->settings.cluster = false;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(with_claim(w, 1));
    settle(w);
    pass(w, CLAIM_USER_COMES_MS);
    taint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    assert_true(is_asked(w, "u1"));
    pass(w, LIST_EVERY_MS);
    runtime_listed(w, "u1/main");
    settle(w);
    devicemgr_container_stopped(w->mgr, w->now_ms, w->stop, 0, NULL);
    devicemgr_run(w->mgr);
    settle(w);
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1/main!");
    settle(w);
}

/* What it was made with is all that says that it has the device: also once that has been stopped,
 * and another container of it would be made again, which has no claim. */
static void who_was_stopped_for_a_claim_is_kept_from_coming_back(void **state)
{
    struct world *w = *state;

    main_is_stopped_for_its_claim(w);
    assert_true(is_asked(w, "u1"));
    assert_true(devicemgr_refuses_sandboxes(w->mgr));
    untaint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    assert_false(is_asked(w, "u1"));
    runtime_listed(w, "u1/main!");
    settle(w);
    assert_int_equal(claims_find(&w->mgr->state.claims, "c", DRIVER)->users_len, 0);
}

/* As long as its sandbox is there: once that was stopped through the shim, or is found stopped, or
 * gone, the claim is nobody's any more, and is unprepared. */
static void until_its_sandbox_has_ended(void **state)
{
    for (int how = 0; how < 3; how++) {
        struct world *w = *state;

        main_is_stopped_for_its_claim(w);
        if (how == 0)
            sandbox_stopped(w, "s-u1");
        else
            runtime_listed(w, how == 1 ? "~u1/main!" : "");
        settle(w);
        assert_int_equal(claims_find(&w->mgr->state.claims, "c", DRIVER)->users_len, 0);
        assert_false(is_asked(w, "u1"));
        unprepare(w, 6, "c");
        expect_stored(w, "commit claim c *");
        expect(w, "unprepare c *");
        world_teardown(state);
        claim_setup(state);
    }
}

/* Some client of the runtime has a pod without a uid: that has nothing to do with containers whose
 * pod is not known. */
static void a_pod_without_a_uid_is_not_taken_for_another(void **state)
{
    const struct devicemgr_sandbox nameless = {
        .id = "s-x", .pod_uid = "", .pod_namespace = "ns", .pod_name = "x", .ready = true};
    struct devicemgr_evictions evictions;
    struct world *w = *state;

    w->settings.cluster = false;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_sandbox_ran(w->mgr, w->now_ms, &nameless);
    assert_false(with_claim(w, 1));
    settle(w);
    taint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    assert_false(is_asked(w, ""));
    devicemgr_evictions(w->mgr, &evictions);
    assert_int_equal(evictions.stale, 1);
}

static void claims_tolerate_by_their_allocation(void **state)
{
    static const struct devicemgr_claim_toleration tolerations[] = {
        {DRIVER, "p", "gpu-0", {"k", "Exists", "", "NoExecute", true, 60}}};
    static const char *const uids[] = {"u1"};
    const struct devicemgr_claim_consumers consumers = {.reserved_for = uids,
                                                        .reserved_for_len = 1,
                                                        .tolerations = tolerations,
                                                        .tolerations_len = 1};
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 0);
    pass(w, 60000);
    assert_int_equal(settle(w), 1);
}

/* As by an API server that has just started. */
static void what_it_has_told_stands_where_it_refuses_to_tell_it_again(void **state)
{
    static const struct devicemgr_claim_toleration tolerations[] = {
        {DRIVER, "p", "gpu-0", {"k", "Exists", "", "NoExecute", false, 0}}};
    static const char *const uids[] = {"u1"};
    const struct devicemgr_claim_consumers consumers = {.reserved_for = uids,
                                                        .reserved_for_len = 1,
                                                        .tolerations = tolerations,
                                                        .tolerations_len = 1};
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    assert_false(with_claim(w, 1));
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 0);
    pass(w, CLAIM_LOOK_AGAIN_MS);
    tells_nothing(w);
    assert_int_equal(settle(w), 0);
}

static bool put_age(void *user, const struct devicemgr_taint_row *taint)
{
    *(uint64_t *)user = taint->since_ms_ago;
    return true;
}

/* u1 tolerates for so many seconds what is tainted since an hour before the boot. */
static void tolerates_what_is_older_than_the_boot(struct world *w, int64_t seconds)
{
    const struct devicemgr_claim_toleration tolerations[] = {
        {DRIVER, "p", "gpu-0", {"k", "Exists", "", "NoExecute", true, seconds}}};
    static const char *const uids[] = {"u1"};
    const struct devicemgr_claim_consumers consumers = {.extended = true,
                                                        .reserved_for = uids,
                                                        .reserved_for_len = 1,
                                                        .tolerations = tolerations,
                                                        .tolerations_len = 1};
    const struct devicemgr_tainted_device tainted = {
        "gpu-0", {"k", "", "NoExecute", 1, w->now_ms + 3600000}};

    sandbox_ran(w, "u1", "s-u1", 0);
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_slice_taints(w->mgr, w->now_ms, "s1", DRIVER, "p", 1, &tainted, 1);
    devicemgr_run(w->mgr);
}

static void what_is_older_than_the_boot_counts_from_then(void **state)
{
    const struct devicemgr_which all = {0};
    struct world *w = *state;
    uint64_t age_ms = 0;

    tolerates_what_is_older_than_the_boot(w, 3600 + (int64_t)(w->now_ms / 1000) + 60);
    assert_int_equal(settle(w), 0);
    devicemgr_taints(w->mgr, w->now_ms, &all, put_age, &age_ms);
    assert_int_equal(age_ms, w->now_ms + 3600000);
    pass(w, 60000);
    assert_int_equal(settle(w), 1);
}

static void that_may_be_over_at_once(void **state)
{
    struct world *w = *state;

    tolerates_what_is_older_than_the_boot(w, 3600);
    assert_int_equal(settle(w), 1);
}

static size_t users_of(const struct world *w, const char *uid)
{
    return claims_find(&w->mgr->state.claims, uid, DRIVER)->users_len;
}

/* Pod u1 has the claim "c", u2 another one, whose device has the same names: it is the same, which
 * u2 looks at and tolerates the taint of; or another one, that is not tainted. `late`: that is told
 * when both have been made. */
static void have_the_same_names(void **state, const char *answer, bool late)
{
    static const struct devicemgr_claim_toleration tolerates[] = {
        {DRIVER, "p", "gpu-0", {"k", "Exists", "", "NoExecute", false, 0}}};
    static const char *const u1[] = {"u1"}, *const u2[] = {"u2"};
    const struct devicemgr_claim_consumers first = {.reserved_for = u1, .reserved_for_len = 1};
    const struct devicemgr_claim_consumers second = {
        .reserved_for = u2, .reserved_for_len = 1, .tolerations = tolerates, .tolerations_len = 1};
    struct world *w = *state;
    unsigned times[3] = {0};

    sandbox_ran(w, "u1", "s-u1", 0);
    sandbox_ran(w, "u2", "s-u2", 0);
    settle(w);
    claim_prepared(w, 2, "d", answer);
    for (int i = 0; i < 2; i++) {
        if ((i > 0) == late) {
            devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &first);
            devicemgr_claim_consumers(w->mgr, w->now_ms, "d", &second);
        }
        assert_false(with_claim(w, 3));
        assert_false(with_claim_of(w, 4, "u2"));
        assert_int_equal(users_of(w, "c"), late ? 2 : 1);
        assert_int_equal(users_of(w, "d"), late ? 2 : 1);
    }
    taint_of(w, DRIVER, "p/gpu-0");
    settle_of(w, times, 3);
    assert_int_equal(times[1], 1);
    assert_int_equal(times[2], 0);
    assert_true(with_claim(w, 5)); /* it is refused */
    assert_false(with_claim_of(w, 6, "u2"));
}

static void who_has_the_same_names_by_another_claim_is_not_meant(void **state)
{
    static const char *const answers[] = {"gpu-0", "gpu-1:gpu-0"};

    for (size_t i = 0; i < 2 * sizeof answers / sizeof *answers; i++) {
        have_the_same_names(state, answers[i / 2], i % 2);
        world_teardown(state);
        claim_setup(state);
    }
}

/* Pod u1 runs with what claim "c" had, pod u2 has what its driver has answered since. */
static void who_has_what_a_claim_had_goes_for_that(void **state)
{
    static const char *const devices[] = {"p/gpu-0", "p/gpu-1"};
    static const char *const u2[] = {"u2"};
    const struct devicemgr_claim_consumers consumers = {.reserved_for = u2, .reserved_for_len = 1};

    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        struct world *w = *state;
        unsigned times[3] = {0};

        sandbox_ran(w, "u1", "s-u1", 0);
        sandbox_ran(w, "u2", "s-u2", 0);
        assert_false(with_claim(w, 1));
        settle(w);
        claim_sent(w, 2, "c");
        claim_answered(w, "gpu-1");
        devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
        settle(w);
        taint_of(w, DRIVER, devices[i]);
        settle_of(w, times, 3);
        assert_int_equal(times[1], i == 0);
        assert_int_equal(times[2], i == 1);
        world_teardown(state);
        claim_setup(state);
    }
}

/* After a restart, too, nobody goes who may tolerate it, nor is anybody let go, before that is
 * told. */
static void nobody_goes_before_the_cluster_has_told_of_a_claim(void **state)
{
    static const struct devicemgr_claim_toleration tolerates[] = {
        {DRIVER, "p", "gpu-0", {"k", "Exists", "", "NoExecute", false, 0}}};
    static const char *const uids[] = {"u1"};
    struct devicemgr_claim_consumers consumers = {.reserved_for = uids,
                                                  .reserved_for_len = 1,
                                                  .tolerations = tolerates,
                                                  .tolerations_len = 1};
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(with_claim(w, 1)); /* a holder by what we know ourselves */
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 0);
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
    consumers.tolerations_len = 0;
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 1);
    world_restart(w);
    runtime_listed(w, "u1/main");
    settle(w);
    assert_true(is_asked(w, "u1"));
    devicemgr_taints_told(w->mgr, w->now_ms);
    consumers.tolerations_len = 1;
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_run(w->mgr);
    settle(w);
    assert_false(is_asked(w, "u1"));
}

static void who_may_use_a_claim_is_asked_for_after_a_restart(void **state)
{
    struct world *w = *state;

    settle(w);
    w->looks = true;
    world_restart(w);
    expect(w, "look c (ns/c)");
}

/* A kubelet asks for what is prepared once: who comes to a claim later the cluster tells alone. */
static void who_comes_to_a_claim_that_is_tainted_goes_as_well(void **state)
{
    static const char *const uids[] = {"u1", "u2"};
    struct devicemgr_claim_consumers consumers = {.reserved_for = uids, .reserved_for_len = 1};
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    settle(w);
    w->looks = true;
    taint_of(w, DRIVER, "p/gpu-0");
    expect(w, "look c (ns/c)"); /* others may have come to it since it was prepared */
    settle(w);
    assert_true(is_asked(w, "u1"));
    sandbox_ran(w, "u2", "s-u2", 0);
    settle(w);
    for (uint64_t number = 2; number < 12; number++) { /* over and over */
        assert_true(with_claim_of(w, number, "u2"));
        expect_with(w, "verdict ", "refused 9", NULL);
        expect_nothing(w);
    }
    pass(w, CLAIM_LOOK_AGAIN_MS);
    expect(w, "look c (ns/c)");
    consumers.reserved_for_len = 2;
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    settle(w);
    pass(w, 60000);
    expect(w, "look c (ns/c)");
    settle(w);
    assert_true(is_asked(w, "u2"));
    untaint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    pass(w, 2 * CLAIM_LOOK_AGAIN_MS);
    expect_nothing(w);
    assert_true(devicemgr_next_ms(w->mgr) > w->now_ms);
}

/* Nor of what only the cluster has tainted, who evicts for that itself. */
static void nobody_is_asked_for_of_a_claim_that_is_not_tainted(void **state)
{
    struct world *w = *state;

    claim_prepared(w, 2, "another", "gpu-1");
    tolerates_nothing(w);
    settle(w);
    w->looks = true;
    taint_of(w, DRIVER, "p/gpu-2");
    slice_is(w, "p", "gpu-0");
    slice(w, "gpu-0", "NoExecute");
    settle(w);
    for (size_t i = 0; i < 3; i++) {
        pass(w, CLAIM_LOOK_AGAIN_MS);
        expect_nothing(w);
    }
}

/* What is tainted of one driver costs claims of others nothing, whoever has tainted it. */
static void claims_of_other_drivers_are_not_looked_at(void **state)
{
    const struct devicemgr_taint_rule of_all = {
        .name = "all", .pool = "p", .device = "n1", .taint = {"k", "", "NoExecute", 0, 0}};
    struct world *w = *state;
    uint64_t *looks = &w->mgr->evicts.looks;
    char uid[8];

    tolerates_nothing(w);
    driver_up(w, 3, OTHER_DRIVER);
    for (uint64_t i = 0; i < 9; i++) {
        snprintf(uid, sizeof uid, "n%" PRIu64, i);
        prepare_of(w, 100 + i, OTHER_DRIVER, uid);
        settle(w);
        claim_answered(w, uid);
        settle(w);
    }
    *looks = 0;
    taint_of(w, DRIVER, "p/gpu-1");
    settle(w);
    *looks = 0;
    devicemgr_run(w->mgr);
    assert_int_equal(*looks, 2); /* who has claim "c"; whether that is to be asked again */
    untaint_of(w, DRIVER, "p/gpu-1");
    slice(w, "gpu-1", "NoExecute");
    settle(w);
    *looks = 0;
    devicemgr_run(w->mgr);
    assert_int_equal(*looks, 1);
    devicemgr_taint_rule(w->mgr, w->now_ms, "r", &of_all);
    devicemgr_run(w->mgr);
    *looks = 0;
    devicemgr_run(w->mgr);
    assert_int_equal(*looks, 10);
}

/* Whatever came of the call that was under way. */
static void so_it_is_of_one_that_was_sent(void **state)
{
    struct world *w = *state;

    prepare(w, 2, "another");
    settle(w);
    assert_string_equal(claim_on_disk(w, "another", DRIVER), "sent");
    w->looks = true;
    world_restart(w);
    expect(w, "look another (ns/another)");
    expect(w, "look c (ns/c)");
}

/* The kubelet takes it for unprepared: who had reserved it has it no more, and nobody waits for the
 * cluster to tell who. */
static void nobody_has_one_that_is_owed(void **state)
{
    struct world *w = *state;

    many_reserve(w, 3, true);
    slice_is(w, "p", "gpu-0");
    driver_lost(w, 7, "it has gone");
    unprepare(w, 2, "c");
    settle(w);
    assert_string_equal(claim_on_disk(w, "c", DRIVER), "owed");
    slice(w, "gpu-0", "NoExecute");
    assert_int_equal(settle(w), 0);
    world_restart(w);
    assert_true(evictable_all_known(&w->mgr->state));
}

/* After a restart the cluster has not told yet what it was for. */
static void nobody_is_let_go_before_the_cluster_has_told_of_its_taints(void **state)
{
    struct world *w = *state;

    many_reserve(w, 3, true);
    slice(w, "gpu-0", "NoExecute");
    assert_int_equal(settle(w), 2);
    world_restart(w);
    runtime_listed(w, "u1/main u2/main");
    settle(w);
    assert_true(is_asked(w, "u1") && is_asked(w, "u2"));
    devicemgr_taints_told(w->mgr, w->now_ms); /* there is none any more */
    devicemgr_run(w->mgr);
    settle(w);
    for (int refused = 0; refused < 2; refused++) {
        assert_true(is_asked(w, "u1") && is_asked(w, "u2"));
        tells_nothing(w);
        settle(w);
        pass(w, refused == 0 ? CLAIM_LOOK_REFUSED_MS : 0);
        settle(w);
    }
    assert_false(is_asked(w, "u1") || is_asked(w, "u2"));
}

/* Nor is it waited for for ever: the cluster has no such claim any more. */
static void what_the_cluster_does_not_know_tolerates_nothing(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(with_claim(w, 1));
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 0);
    for (int refused = 0; refused < 3; refused++) {
        tells_nothing(w);
        assert_int_equal(settle(w), refused == 2);
        if (refused == 1) /* another call has asked for it at once */
            pass(w, CLAIM_LOOK_REFUSED_MS);
    }
}

/* Nor is that a word of an API server that has just started, of which nothing was told since the
 * shim has. */
static void one_refusal_is_no_word(void **state)
{
    static const struct devicemgr_claim_toleration tolerations[] = {
        {DRIVER, "p", "gpu-0", {"k", "Exists", "", "NoExecute", false, 0}}};
    static const char *const uids[] = {"u1"};
    const struct devicemgr_claim_consumers consumers = {.reserved_for = uids,
                                                        .reserved_for_len = 1,
                                                        .tolerations = tolerations,
                                                        .tolerations_len = 1};
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(with_claim(w, 1));
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 0);
    w->looks = true;
    tells_nothing(w);
    assert_int_equal(settle(w), 0);
    pass(w, CLAIM_LOOK_REFUSED_MS);
    expect(w, "look c (ns/c)");
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 0);
}

/* What else that word is for waits for it, too. Behind it nobody is asked. */
static void who_refuses_is_asked_again_without_a_taint(void **state)
{
    static const struct devicemgr_claim_consumers consumers = {0};
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(with_claim(w, 1));
    assert_int_equal(settle(w), 0);
    w->looks = true;
    tells_nothing(w);
    pass(w, CLAIM_LOOK_REFUSED_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "look c (ns/c)");
    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_run(w->mgr);
    pass(w, 10 * CLAIM_LOOK_AGAIN_MS);
    expect_nothing(w);
    assert_true(evicts_quiet(&w->mgr->evicts));
}

/* Of two API servers that have started one after the other each refuses. */
static void nor_is_one_by_another_that_has_just_started(void **state)
{
    struct world *w = *state;

    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(with_claim(w, 1));
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 0);
    w->looks = true;
    tells_nothing(w);
    pass(w, 3000);
    devicemgr_cluster_reached(w->mgr, w->now_ms, false);
    pass(w, CLAIM_LOOK_REFUSED_MS);
    expect(w, "look c (ns/c)");
    devicemgr_cluster_reached(w->mgr, w->now_ms, true);
    tells_nothing(w);
    assert_int_equal(settle(w), 0);
    pass(w, CLAIM_LOOK_REFUSED_MS);
    expect(w, "look c (ns/c)");
    tells_nothing(w);
    assert_int_equal(settle(w), 1); /* so does one that has been there for so long */
}

/* Else those of claims that are over would be in the way of new ones, some day. */
static void consumers_go_with_their_claim(void **state)
{
    static const struct devicemgr_claim_consumers consumers = {.extended = true};
    struct world *w = *state;
    struct consumers *const *table = &w->mgr->state.tainted.consumers;

    devicemgr_claim_consumers(w->mgr, w->now_ms, "c", &consumers);
    devicemgr_claim_consumers(w->mgr, w->now_ms, "another", &consumers);
    assert_non_null(consumers_find(*table, "c"));
    assert_null(consumers_find(*table, "another"));
    unprepare(w, 9, "c");
    ignore_all(w);
    while (w->pending)
        committed(w);
    claim_unprepared(w);
    settle(w);
    assert_null(consumers_find(*table, "c"));
}

/* ---- how many at a time ---- */

static void so_many_go_within_a_minute(void **state)
{
    struct world *w = *state;

    w->settings.evict_per_minute = 2;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    many_reserve(w, 8, false); /* five are there */
    taint_of(w, DRIVER, "p/gpu-0");
    assert_int_equal(settle(w), 2);
    pass(w, 59999);
    assert_int_equal(settle(w), 0);
    pass(w, 1);
    assert_int_equal(settle(w), 2);
    pass(w, 59999);
    assert_int_equal(settle(w), 0);
    pass(w, 1);
    assert_int_equal(settle(w), 1);
    pass(w, 600000);
    assert_int_equal(settle(w), 0);
}

/* A process that dies over and over is no way around it. */
static void also_over_restarts(void **state)
{
    struct world *w = *state;
    const struct endings *endings = &w->mgr->state.endings;
    struct devicemgr_evictions told;

    w->settings.evict_per_minute = 2;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    many_reserve(w, 8, false); /* five are there */
    taint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    assert_int_equal(endings_len(endings), 2);
    pass(w, 30000);
    settle(w);
    world_restart(w);
    endings = &w->mgr->state.endings;
    kubelet_lists(w);
    runtime_listed(w, "u1/main u2/main u4/main u5/main u7/main");
    many_reserve(w, 8, false);
    taint_of(w, DRIVER, "p/gpu-0");
    settle(w);
    devicemgr_evictions(w->mgr, &told);
    assert_int_equal(told.waiting, 3);
    assert_int_equal(told.asked_total, 0);
    pass(w, 29999);
    settle(w);
    assert_int_equal(endings_len(endings), 2); /* the same */
    pass(w, 1);
    settle(w);
    assert_int_equal(endings_len(endings), 4);
    devicemgr_evictions(w->mgr, &told);
    assert_int_equal(told.asked_total, 2);
}

/* Of those that are asked for one is never let go. */
static void a_budget_of_nothing_delays_nobody_else(void **state)
{
    struct world *w = *state;
    uint64_t orders[3];
    size_t len = 0;

    many_reserve(w, 5, false); /* u1, u2, u4 */
    taint_of(w, DRIVER, "p/gpu-0");
    ignore_all(w);
    while (w->pending) {
        uint64_t before = w->order;

        committed(w);
        ignore_all(w);
        assert_true(w->order >= before);
    }
    for (const struct ending *e = w->mgr->state.endings.by_uid; e; e = e->hh.next)
        orders[len++] = e->order;
    assert_int_equal(len, 3);
    for (size_t i = 1; i < len; i++) { /* not the first */
        devicemgr_pod_evicted(w->mgr, w->now_ms, orders[i], DEVICEMGR_EVICTED);
        devicemgr_run(w->mgr);
        settle(w);
    }
    len = 0;
    for (const struct ending *e = w->mgr->state.endings.by_uid; e; e = e->hh.next)
        len += e->state == ENDING_EVICTING;
    assert_int_equal(len, 1);
}

/* Of pods that are ended there is a most: who finds no room is asked for when there is some. */
static void who_finds_no_room_is_not_forgotten(void **state)
{
    const struct end_request request = {
        .asker = END_OPERATOR, .grace_ms = ENDING_POD_GRACE, .why = "tired"};
    struct world *w = *state;
    char uid[16];

    for (size_t i = 0; i < ENDINGS_MAX; i++) {
        snprintf(uid, sizeof uid, "full%zu", i);
        ends_ask(&w->mgr->ends, uid, &request);
        devicemgr_run(w->mgr);
        settle(w); /* a line tells of so many rows only */
    }
    taint_of(w, GPU, "g0");
    assert_int_equal(settle(w), 0);
    assert_int_equal(evicts_next_ms(&w->mgr->evicts), UINT64_MAX); /* no time ends that */
    ends_cancel(&w->mgr->ends, "full0", END_OPERATOR, 0);
    devicemgr_run(w->mgr);
    assert_int_equal(settle(w), 1);
    assert_true(is_asked(w, "u1"));
}

/* ---- again and again ---- */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 16;
}

/* Whether what is in the store is what is done. */
static void check(struct world *w, bool tainted)
{
    while (w->pending)
        committed(w);
    ignore_all(w);
    pass(w, 60000);
    while (w->pending)
        committed(w);
    ignore_all(w);
    for (int i = 1; i < 9; i++) {
        char uid[8];

        snprintf(uid, sizeof uid, "u%d", i);
        if (i % 3 != 0 && is_asked(w, uid) != tainted)
            fail_msg("%s: asked %d, tainted %d", uid, is_asked(w, uid), tainted);
    }
}

static void set_and_taken_back_a_thousand_times(void **state)
{
    struct world *w = *state;
    uint32_t seed = 1;

    many_reserve(w, 9, false);
    for (int i = 0; i < 1000; i++) {
        bool tainted = next(&seed) % 2;

        if (tainted)
            taint_of(w, DRIVER, "p/gpu-0");
        else
            untaint_of(w, DRIVER, "p/gpu-0");
        if (next(&seed) % 3 == 0)
            pass(w, next(&seed) % 5000);
        if (w->pending && next(&seed) % 2)
            committed(w);
        else if (w->pending && next(&seed) % 8 == 0)
            commit_failed(w, "disk full");
        ignore_all(w);
        if (next(&seed) % 5 == 0) {
            size_t len;
            const struct owners *in_store;

            while (w->pending)
                committed(w);
            in_store = orders_taints(&w->mgr->state.orders, DRIVER, "p/gpu-0");
            len = owners_len(in_store);
            check(w, len > 0);
        }
    }
}

/* What the store has is what is done, after whatever the shim was killed in. */
static void over_restarts_nobody_is_forgotten(void **state)
{
    struct world *w = *state;
    uint32_t seed = 7;

    for (int i = 0; i < 1000; i++) {
        bool tainted;

        if (next(&seed) % 2)
            taint_of(w, GPU, "g0");
        else
            untaint_of(w, GPU, "g0");
        for (uint32_t n = next(&seed) % 4; w->pending && n > 0; n--) {
            ignore_all(w);
            if (next(&seed) % 6 == 0)
                commit_failed(w, "disk full");
            else
                committed(w);
        }
        ignore_all(w);
        if (next(&seed) % 3 == 0) {
            world_restart(w);
            pass(w, next(&seed) % 2000);
            runtime_listed(w, "u1/main");
        }
        if (next(&seed) % 3 != 0)
            continue;
        settle(w);
        pass(w, 60000);
        settle(w);
        tainted = orders_taints(&w->mgr->state.orders, GPU, "g0") != NULL;
        if (is_asked(w, "u1") != tainted)
            fail_msg("%d: asked %d, tainted %d", i, is_asked(w, "u1"), tainted);
    }
}

#define TEST(f, setup) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_has_it_goes_once_that_is_durable, u1_setup),
        TEST(nobody_goes_for_what_cannot_be_stored, u1_setup),
        TEST(to_take_it_back_ends_it, u1_setup),
        TEST(only_the_last_taint_that_goes_ends_it, u1_setup),
        TEST(other_effects_evict_nobody, u1_setup),
        TEST(a_toleration_puts_it_off, evict_setup),
        TEST(an_operator_cannot_cancel_it, u1_setup),
        TEST(who_has_been_due_for_longest_goes_first, evict_setup),
        TEST(who_waits_is_listed, evict_setup),
        TEST(the_first_that_is_due_counts, evict_setup),
        TEST(what_is_taken_back_in_time_evicts_nobody, evict_setup),
        TEST(one_for_ever_evicts_nobody, evict_setup),
        TEST(a_toleration_that_comes_later_ends_it, u1_setup),
        TEST(a_pod_that_is_over_is_forgotten, u1_setup),
        TEST(that_it_has_gone_is_told, u1_setup),
        TEST(so_it_is_under_a_commit, u1_setup),
        TEST(one_that_was_evicted_is_kept_from_coming_back, u1_setup),
        TEST(one_that_gets_it_later_goes_as_well, u1_setup),
        TEST(nobody_goes_before_the_runtime_has_listed, u1_setup),
        TEST(what_a_pod_tolerates_is_known_with_its_sandbox, u1_setup),
        TEST(so_it_is_after_a_reboot, u1_setup),
        TEST(what_was_taken_back_before_a_restart_is_not_begun_anew, u1_setup),
        TEST(nor_are_its_containers_stopped_then, u1_setup),
        TEST(who_need_not_go_any_more_has_nothing_sent, u1_setup),
        TEST(one_of_the_settings_counts_from_the_start, evict_setup),
        TEST(one_that_ends_by_itself_ends_it_in_time, u1_setup),
        TEST(it_goes_on_after_a_restart, u1_setup),
        TEST(an_unhealthy_device_moves_its_pods_on, evict_setup),
        TEST(settings_that_evict_for_health_no_more_spare_them, evict_setup),
        TEST(what_was_unhealthy_is_so_after_a_restart, evict_setup),
        TEST(how_long_it_is_tolerated_outlives_a_restart, evict_setup),
        TEST(in_another_boot_it_begins_anew_once, evict_setup),
        TEST(all_but_stale_holders_go_each_once, claim_setup),
        TEST(slices_without_no_execute_cost_no_turn_anything, claim_setup),
        TEST(what_the_cluster_evicts_is_not_evicted_twice, claim_setup),
        TEST(what_it_does_not_see_is, claim_setup),
        TEST(nothing_is_sent_for_what_an_agent_has_told_that_has_gone, claim_setup),
        TEST(what_is_lifted_meanwhile_evicts_nobody, claim_setup),
        TEST(nor_is_anybody_new_asked_for_meanwhile, claim_setup),
        TEST(who_is_asked_for_just_then_has_nothing_sent, claim_setup),
        TEST(what_an_operator_has_tainted_goes_on, claim_setup),
        TEST(what_an_operator_lifts_meanwhile_evicts_nobody, claim_setup),
        TEST(nor_is_anybody_let_go_for_that, claim_setup),
        TEST(who_is_ended_here_no_more_has_nothing_sent, claim_setup),
        TEST(nor_has_who_was_wanted_by_another_before_a_restart, claim_setup),
        TEST(nobody_is_made_with_a_claim_of_it, claim_setup),
        TEST(what_a_claim_tolerates_is_not_known_before_it_is_told, claim_setup),
        TEST(an_operators_taint_stands_meanwhile, claim_setup),
        TEST(who_was_stopped_for_a_claim_is_kept_from_coming_back, claim_setup),
        TEST(until_its_sandbox_has_ended, claim_setup),
        TEST(a_pod_without_a_uid_is_not_taken_for_another, claim_setup),
        TEST(claims_tolerate_by_their_allocation, claim_setup),
        TEST(what_is_older_than_the_boot_counts_from_then, claim_setup),
        TEST(that_may_be_over_at_once, claim_setup),
        TEST(who_has_the_same_names_by_another_claim_is_not_meant, claim_setup),
        TEST(who_has_what_a_claim_had_goes_for_that, claim_setup),
        TEST(nobody_goes_before_the_cluster_has_told_of_a_claim, claim_setup),
        TEST(nobody_is_let_go_before_the_cluster_has_told_of_its_taints, claim_setup),
        TEST(who_may_use_a_claim_is_asked_for_after_a_restart, claim_setup),
        TEST(so_it_is_of_one_that_was_sent, claim_setup),
        TEST(who_comes_to_a_claim_that_is_tainted_goes_as_well, claim_setup),
        TEST(nobody_is_asked_for_of_a_claim_that_is_not_tainted, claim_setup),
        TEST(claims_of_other_drivers_are_not_looked_at, claim_setup),
        TEST(nobody_has_one_that_is_owed, claim_setup),
        TEST(what_the_cluster_does_not_know_tolerates_nothing, claim_setup),
        TEST(one_refusal_is_no_word, claim_setup),
        TEST(who_refuses_is_asked_again_without_a_taint, claim_setup),
        TEST(nor_is_one_by_another_that_has_just_started, claim_setup),
        TEST(what_it_has_told_stands_where_it_refuses_to_tell_it_again, claim_setup),
        TEST(consumers_go_with_their_claim, claim_setup),
        TEST(who_finds_no_room_is_not_forgotten, u1_setup),
        TEST(so_many_go_within_a_minute, claim_setup),
        TEST(also_over_restarts, claim_setup),
        TEST(a_budget_of_nothing_delays_nobody_else, claim_setup),
        TEST(set_and_taken_back_a_thousand_times, claim_setup),
        TEST(over_restarts_nobody_is_forgotten, u1_setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
