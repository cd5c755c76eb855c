/* devicemgr/rules/tainted.c, books/tainted.c and what follows from an operator's taints. */
#include <stdio.h>

#include "devicemgr/endings.h"
#include "devicemgr/lists.h"
#include "devicemgr/operator.h"
#include "devicemgr/taints.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"
#include "shown_world.h"

#define FOR_EVER "[{\"operator\":\"Exists\"}]"
#define A_MINUTE "[{\"key\":\"k\",\"effect\":\"NoExecute\",\"tolerationSeconds\":60}]"

static void taint(struct world *w, uint64_t number, const char *id, const char *text)
{
    devicemgr_taint(w->mgr, w->now_ms, number, GPU, id, text, 0, "dust", 1234, false);
    devicemgr_run(w->mgr);
}

static void all_stored(struct world *w)
{
    ignore_all(w);
    while (w->pending) {
        committed(w);
        ignore_all(w);
    }
}

static void tainted(struct world *w, const char *id, const char *text)
{
    taint(w, 900, id, text);
    all_stored(w);
}

static void untainted(struct world *w, const char *id, const char *text)
{
    devicemgr_untaint(w->mgr, w->now_ms, 901, GPU, id, text);
    devicemgr_run(w->mgr);
    all_stored(w);
}

static bool put(void *user, const struct taint *taint)
{
    char *text = user;

    sprintf(text + strlen(text), "%s %s=%s:%s%s; ", taint_source_name(taint->source), taint->key,
            taint->value, taint_effect_name(taint->effect), taint->held_back ? " held back" : "");
    return true;
}

/* All that is in force on the device. */
static const char *in_force(struct world *w, const char *id)
{
    static char text[1024];

    text[0] = '\0';
    tainted_each(&w->mgr->state, GPU, id, put, text);
    return text;
}

/* ---- what an operator says ---- */

static void it_is_answered_when_it_is_durable(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    taint(w, 1, "g0", "x.io/k=v:NoSchedule");
    expect(w, "commit order taint " GPU " x.io/k:NoSchedule g0");
    expect_nothing(w);
    committed(w);
    expect(w, "steered 1: " GPU ": tainted: g0 x.io/k=v:NoSchedule");
    taint(w, 2, "g0", "x.io/k=v:NoSchedule");
    expect(w, "steered 2 as before: *");
    taint(w, 3, "g0", "x.io/k=w:NoSchedule"); /* another value takes its place */
    expect(w, "commit order taint " GPU " x.io/k:NoSchedule g0");
    assert_string_equal(in_force(w, "g0"), "operator x.io/k=w:NoSchedule; ");
    commit_failed(w, "disk full");
    expect(w, "steer 3 refused 10: *");
    assert_string_equal(in_force(w, "g0"), "operator x.io/k=v:NoSchedule; ");
    taint(w, 4, "g0", "x.io/k:NoExecute"); /* another effect is another one */
    ignore_all(w);
    committed(w);
    expect(w, "steered 4: " GPU ": tainted: g0 x.io/k:NoExecute; pods to be evicted: none");
    assert_int_equal(logged(w, "by the operator: resource " GPU ": tainted: g0"), 2);
    devicemgr_untaint(w->mgr, w->now_ms, 5, GPU, "g0", "x.io/k");
    devicemgr_run(w->mgr);
    expect(w, "commit -order taint " GPU " x.io/k:NoExecute g0, -order taint " GPU
              " x.io/k:NoSchedule g0");
    committed(w);
    expect(w, "steered 5: " GPU ": untainted: g0 x.io/k");
    assert_string_equal(in_force(w, "g0"), "");
}

static void what_is_no_taint_is_refused(void **state)
{
    struct world *w = *state;

    taint(w, 1, "g0", "k");
    expect(w, "steer 1 refused 3: a taint has an effect*");
    taint(w, 2, "g0", "k:Never");
    expect(w, "steer 2 refused 3: the effect*");
    taint(w, 3, "", "k:None");
    expect(w, "steer 3 refused 3: a device id is empty*");
    devicemgr_taint(w->mgr, w->now_ms, 4, "gpu.io", "g0", "k:None", 0, "", 1, false);
    devicemgr_run(w->mgr);
    expect(w, "steer 4 refused 3: a device of a driver is named POOL/DEVICE*");
    devicemgr_taint(w->mgr, w->now_ms, 5, "gpu.io", "p/g0", "k:None", 0, "", 1, false);
    devicemgr_run(w->mgr);
    expect(w, "commit order taint gpu.io k:None p/g0");
    committed(w);
    expect(w, "steered 5: gpu.io: tainted: p/g0 k:None; pods that NoExecute evicts: none; no such "
              "resource or driver is known on this node now");
}

static void dry_changes_nothing_and_says_who_would_go(void **state)
{
    struct world *w = *state;

    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "k:NoExecute", 0, "", 1, true);
    devicemgr_run(w->mgr);
    expect(w, "steered 1 as before: " GPU ": nothing has changed; tainted so would be: g0 "
              "k:NoExecute; pods that NoExecute evicts: ns/u1");
    devicemgr_taint(w->mgr, w->now_ms, 2, GPU, "g1", "k:NoExecute", 0, "", 1, true);
    devicemgr_run(w->mgr);
    expect(w, "steered 2 as before: *");
    expect_nothing(w);
    assert_string_equal(in_force(w, "g0"), "");
}

static void it_ends_by_itself(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "k:NoSchedule", 60000, "", 1, false);
    devicemgr_run(w->mgr);
    ignore_all(w);
    committed(w);
    expect(w, "steered 1: " GPU ": tainted: g0 k:NoSchedule for 1m0s");
    pass(w, 30000);
    restart_serving(w);
    ignore_all(w);
    assert_string_equal(in_force(w, "g0"), "operator k=:NoSchedule; ");
    pass(w, 29999);
    ignore_all(w);
    assert_string_equal(in_force(w, "g0"), "operator k=:NoSchedule; ");
    pass(w, 1);
    assert_string_equal(in_force(w, "g0"), "");
    expect(w, "commit -order taint " GPU " k:NoSchedule g0");
    commit_failed(w, "disk full");
    assert_string_equal(in_force(w, "g0"), "");
    assert_int_equal(logged(w, "its taint k:NoSchedule has ended"), 1);
    pass(w, COMMIT_RETRY_MS_MAX);
    expect(w, "commit -order taint " GPU " k:NoSchedule g0");
}

/* While the store fails, its row stays; it is not in force all the same. */
static void it_ends_though_that_cannot_be_stored(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "k:NoSchedule", 60000, "", 1, false);
    devicemgr_run(w->mgr);
    ignore_all(w);
    committed(w);
    pass(w, 59000);
    taint(w, 2, "g1", "k:NoSchedule");
    ignore_all(w);
    commit_failed(w, "disk full");
    pass(w, 1000);
    assert_string_equal(in_force(w, "g0"), "");
    expect_shown(w, GPU, "g0 g1");
    ignore_all(w);
    while (w->pending)
        committed(w);
    tainted(w, "g1", "k:NoSchedule"); /* it works again */
    pass(w, COMMIT_RETRY_MS_MAX);
    while (w->pending)
        committed(w);
    ignore_all(w);
    assert_false(world_stored(w, "order taint " GPU " k:NoSchedule g0"));
}

/* It was never in force, and goes as soon as it is known what the store has. */
static void it_may_end_before_it_is_stored(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "k:NoSchedule", 1000, "", 1, false);
    devicemgr_run(w->mgr);
    expect(w, "commit order taint " GPU " k:NoSchedule g0");
    pass(w, 2000);
    assert_string_equal(in_force(w, "g0"), "");
    expect_nothing(w);
    committed(w);
    expect_with(w, "steered 1: ", NULL);
    pass(w, COMMIT_RETRY_MS_MIN);
    expect(w, "commit -order taint " GPU " k:NoSchedule g0");
    committed(w);
    assert_false(world_stored(w, "order taint " GPU " k:NoSchedule g0"));
}

/* ---- NoSchedule ---- */

static void nobody_new_is_given_it(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    tainted(w, "g0", "k:NoSchedule");
    expect_shown(w, GPU, "g0! g1");
    sandbox_ran(w, "u2", "s-u2", 0);
    create_request(w, 21, "u2", "main", GPU "=1");
    expect(w, "allocate g1 in *");
}

static void too_few_are_left(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    tainted(w, "g0", "k:NoSchedule");
    sandbox_ran(w, "u3", "s-u3", 0);
    create_request(w, 31, "u3", "main", GPU "=2");
    expect_nothing(w);
    pass(w, HOLD_MS);
    expect(w, "verdict 31 refused 14: container \"main\" of pod \"ns/u3\": resource " GPU
              ": too few devices can be used: asked 2, free and healthy 1; device g0 is tainted "
              "k:NoSchedule, which the pod does not tolerate: dust");
    create_request(w, 32, "u3", "main", GPU "=2");
    untainted(w, "g0", "k"); /* that wakes it */
    assert_int_equal(w->mgr->state.allocations.by_key != NULL, true);
}

static void who_has_it_is_made_again_with_it(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    tainted(w, "g0", "k:NoSchedule");
    container_removed(w, "c-u1-main");
    ignore_all(w);
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward*");
}

static void what_the_kubelet_chose_is_not_taken_back(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    tainted(w, "g0", "k:NoSchedule");
    sandbox_ran(w, "u2", "s-u2", 0);
    create_token(w, 21, "u2", GPU ":g0");
    expect(w, "allocate g0 in *");
}

static void who_tolerates_it_may_be_given_it(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    tainted(w, "g0", "k:NoSchedule");
    w->tolerations = FOR_EVER;
    sandbox_ran(w, "u2", "s-u2", 0);
    create_request(w, 21, "u2", "main", GPU "=1");
    expect(w, "allocate g0 in *");
}

/* ---- NoExecute ---- */

static void nobody_is_made_with_it(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    tainted(w, "g0", "k=v:NoExecute");
    expect_shown(w, GPU, "g0+ g1");
    container_removed(w, "c-u1-main");
    ignore_all(w);
    create_token(w, 12, "u1", GPU ":g0"); /* not even who has it, and is being evicted */
    expect(w, "verdict 12 refused 9: container \"main\" of pod \"ns/u1\": the pod is ended on this "
              "node, by eviction: device g0 of " GPU " is tainted k=v:NoExecute: dust");
    sandbox_ran(w, "u2", "s-u2", 0);
    create_token(w, 21, "u2", GPU ":g0");
    expect(w, "verdict 21 refused 9: container \"main\" of pod \"ns/u2\": resource " GPU
              ": device g0 is tainted k=v:NoExecute, which the pod does not tolerate: dust");
    untainted(w, "g0", "k");
    create_token(w, 13, "u1", GPU ":g0");
    expect(w, "verdict 13 forward*");
}

static void seconds_of_tolerations_count_from_the_taint_on(void **state)
{
    struct world *w = *state;

    w->tolerations = A_MINUTE;
    u1_has_g0(w, "g0 g1");
    tainted(w, "g0", "k:NoExecute");
    container_removed(w, "c-u1-main");
    ignore_all(w);
    pass(w, 59000);
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward*");
    create_answered(w, 12, "c-u1-main");
    container_removed(w, "c-u1-main");
    pass(w, 1000);
    ignore_all(w);
    create_token(w, 13, "u1", GPU ":g0");
    expect(w, "verdict 13 refused 9: *");
}

static void tolerations_that_cannot_be_read_are_none(void **state)
{
    struct world *w = *state;

    w->tolerations = "[{\"key\":\"a b\"}]";
    gpus_up(w, "g0");
    sandbox_ran(w, "u2", "s-u2", 0);
    tainted(w, "g0", "k:NoExecute");
    create_token(w, 21, "u2", GPU ":g0");
    expect(w, "verdict 21 refused 9: *");
    create_token(w, 22, "u2", GPU ":g0");
    assert_int_equal(logged(w, "its annotation of tolerations is ignored: toleration 1"), 1);
}

static void a_list_tells_of_tolerations(void **state)
{
    struct world *w = *state;

    assert_int_equal(pods_find(&w->mgr->state.pods, "u1")->tolerations.len, 0);
    w->tolerations = FOR_EVER;
    runtime_listed(w, "u1/main");
    assert_int_equal(pods_find(&w->mgr->state.pods, "u1")->tolerations.len, 1);
    w->tolerations = NULL;
    runtime_listed(w, "u1/main");
    assert_int_equal(pods_find(&w->mgr->state.pods, "u1")->tolerations.len, 0);
}

static void none_does_nothing(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    tainted(w, "g0", "k:None");
    expect_shown(w, GPU, "g0");
    sandbox_ran(w, "u2", "s-u2", 0);
    create_request(w, 21, "u2", "main", GPU "=1");
    expect(w, "allocate g0 in *");
}

/* ---- the settings ---- */

static void settings_taint_one_or_all(void **state)
{
    static const struct devicemgr_settings_taint taints[] = {{GPU, "g0", "one", "v", "NoExecute"},
                                                             {GPU, NULL, "all", "", "NoSchedule"}};
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    w->settings.taints = taints;
    w->settings.taints_len = 2;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    expect_shown(w, GPU, "g0! g1!");
    assert_string_equal(in_force(w, "g0"), "settings one=v:NoExecute; settings all=:NoSchedule; ");
    assert_string_equal(in_force(w, "g1"), "settings all=:NoSchedule; ");
    w->settings.taints_len = 0;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    expect_shown(w, GPU, "g0 g1");
    w->settings.taints = NULL;
}

/* ---- health ---- */

static int health_setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    w->settings.taint_unhealthy_after_ms = 60000;
    world_fresh_listed(w);
    return 0;
}

/* From now on. */
static void g0_evicts_in_a_minute(struct world *w)
{
    pass(w, 59999);
    assert_string_equal(in_force(w, "g0"), "health " TAINT_KEY_UNHEALTHY "=:NoSchedule; ");
    pass(w, 1);
    assert_string_equal(in_force(w, "g0"), "health " TAINT_KEY_UNHEALTHY "=:NoExecute; ");
}

static void an_unhealthy_device_is_no_execute_after_a_while(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2 g3 g4");

    plugin_list(w, endpoint, "g0! g1 g2 g3 g4");
    assert_string_equal(in_force(w, "g0"), "health " TAINT_KEY_UNHEALTHY "=:NoSchedule; ");
    g0_evicts_in_a_minute(w);
    plugin_list(w, endpoint, "g0 g1 g2 g3 g4");
    assert_string_equal(in_force(w, "g0"), "");
}

static void not_by_the_loss_of_a_plugin(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_list(w, endpoint, "g0! g1");
    pass(w, 30000);
    plugin_lost(w, endpoint, "gone");
    pass(w, 59000);
    assert_string_equal(in_force(w, "g0"), "health " TAINT_KEY_UNHEALTHY "=:NoSchedule; ");
    ignore_all(w);
    plugin_register(w, 77, GPU, "gpu.sock");
    plugin_back(w, "g0! g1");
    g0_evicts_in_a_minute(w);            /* by its word from now on */
    plugin_lost(w, w->endpoint, "gone"); /* what was said stands */
    pass(w, 1000);
    assert_string_equal(in_force(w, "g0"), "health " TAINT_KEY_UNHEALTHY "=:NoExecute; ");
}

static void one_that_is_listed_no_more_begins_anew(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2");

    plugin_list(w, endpoint, "g0! g1 g2");
    pass(w, 60000);
    assert_string_equal(in_force(w, "g0"), "health " TAINT_KEY_UNHEALTHY "=:NoExecute; ");
    plugin_list(w, endpoint, "g1 g2");
    assert_string_equal(in_force(w, "g0"), "");
    plugin_list(w, endpoint, "g0! g1 g2");
    g0_evicts_in_a_minute(w);
}

/* Another that is there later is another: it begins anew. */
static void nor_once_its_resource_is_gone(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_list(w, endpoint, "g0! g1");
    pass(w, 60000);
    assert_string_equal(in_force(w, "g0"), "health " TAINT_KEY_UNHEALTHY "=:NoExecute; ");
    plugin_lost(w, endpoint, "gone");
    pass(w, GRACE_MS);
    while (w->pending) {
        committed(w);
        ignore_all(w);
    }
    pass(w, 1000);
    assert_string_equal(in_force(w, "g0"), "");
    ignore_all(w);
    gpus_up(w, "g0! g1");
    g0_evicts_in_a_minute(w);
}

static size_t acting(struct world *w, const char *effect)
{
    char id[8], part[32];
    size_t n = 0;

    snprintf(part, sizeof part, ":%s", effect);
    for (int i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "g%d", i);
        n += strstr(in_force(w, id), part) != NULL;
    }
    return n;
}

static size_t held_back(struct world *w)
{
    struct devicemgr_evictions evictions;

    devicemgr_evictions(w->mgr, &evictions);
    return evictions.held_back;
}

static void no_more_than_a_quarter_at_a_time(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2 g3 g4 g5 g6 g7");

    plugin_list(w, endpoint, "g0! g1! g2! g3! g4! g5! g6! g7!");
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 2);
    assert_int_equal(acting(w, "NoSchedule held back"), 6);
    assert_int_equal(held_back(w), 6);
    assert_int_equal(logged(w, "8 of 8 devices are unhealthy for so long"), 1);
    expect_event(w, "held-back " GPU);
    plugin_list(w, endpoint, "g0 g1 g2! g3! g4! g5! g6! g7!"); /* nobody takes their place */
    pass(w, 600000);
    assert_int_equal(acting(w, "NoExecute"), 0);
    assert_int_equal(acting(w, "NoSchedule held back"), 6);
    assert_int_equal(held_back(w), 6);
    assert_int_equal(logged(w, "for so long"), 0);
    plugin_list(w, endpoint, "g0 g1 g2 g3 g4 g5 g6 g7"); /* it opens again */
    plugin_list(w, endpoint, "g0 g1 g2 g3 g4 g5 g6 g7!");
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 1);
    assert_int_equal(held_back(w), 0);
}

static void health_evicts_after(struct world *w, uint64_t ms)
{
    w->settings.taint_unhealthy_after_ms = ms;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
}

/* Settings that evict for health no more are an operator's word on that, too. */
static void what_is_held_back_is_so_until_it_is_switched_off(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2 g3");

    plugin_list(w, endpoint, "g0! g1! g2 g3");
    pass(w, 60000);
    plugin_list(w, endpoint, "g0 g1! g2 g3"); /* nobody acts any more */
    assert_int_equal(held_back(w), 1);
    while (w->pending)
        committed(w);
    ignore_all(w);
    health_evicts_after(w, 0);
    expect_stored(w, "commit resource " GPU);
    assert_int_equal(held_back(w), 0);
    health_evicts_after(w, 60000);
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 1);
}

static void where_none_is_nothing_is_to_be_stored(void **state)
{
    struct world *w = *state;

    plugin_list(w, gpus_up(w, "g0 g1"), "g0! g1");
    while (w->pending)
        committed(w);
    ignore_all(w);
    health_evicts_after(w, 0);
    expect_nothing(w);
}

/* Those that are held back wait for the operator, not for their plugin to come back. */
static void nor_once_its_plugin_was_away(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2 g3 g4 g5 g6 g7");

    plugin_list(w, endpoint, "g0! g1! g2! g3! g4! g5! g6! g7!");
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 2);
    plugin_list(w, endpoint, "g0 g1 g2! g3! g4! g5! g6! g7!");
    plugin_lost(w, endpoint, "gone");
    ignore_all(w);
    plugin_register(w, 77, GPU, "gpu.sock");
    plugin_back(w, "g0 g1 g2! g3! g4! g5! g6! g7!");
    assert_int_equal(held_back(w), 6);
    pass(w, 600000);
    assert_int_equal(acting(w, "NoExecute"), 0);
    assert_int_equal(acting(w, "NoSchedule held back"), 6);
    assert_int_equal(held_back(w), 6);
}

/* Nor for another daemon. */
static void nor_once_it_was_restarted(void **state)
{
    static const char *const mended = "g0 g1 g2! g3! g4! g5! g6! g7!";
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2 g3 g4 g5 g6 g7");

    plugin_list(w, endpoint, "g0! g1! g2! g3! g4! g5! g6! g7!");
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 2);
    assert_int_equal(logged(w, "for so long"), 1);
    plugin_list(w, endpoint, mended);
    all_stored(w);
    world_restart(w);
    ignore_all(w);
    plugin_back(w, mended);
    assert_int_equal(held_back(w), 6);
    pass(w, 600000);
    assert_int_equal(acting(w, "NoExecute"), 0);
    assert_int_equal(acting(w, "NoSchedule held back"), 6);
    assert_int_equal(held_back(w), 6);
    assert_int_equal(logged(w, "for so long"), 0); /* that was said */
    w->settings.boot_id = "another";
    all_stored(w);
    world_restart(w);
    ignore_all(w);
    plugin_back(w, mended);
    assert_int_equal(held_back(w), 0);
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 2);
}

/* Nothing of it is left for whoever switches it on again. */
static void unless_it_was_switched_off_by_that(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2 g3");

    plugin_list(w, endpoint, "g0! g1! g2 g3");
    pass(w, 60000);
    assert_int_equal(held_back(w), 1);
    all_stored(w);
    w->settings.taint_unhealthy_after_ms = 0;
    world_restart(w);
    all_stored(w);
    w->settings.taint_unhealthy_after_ms = 60000;
    world_restart(w);
    ignore_all(w);
    plugin_back(w, "g0! g1! g2 g3");
    assert_int_equal(acting(w, "NoExecute"), 0);
    plugin_list(w, w->endpoint, "g0 g1! g2 g3");
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 1);
    assert_int_equal(held_back(w), 0);
}

/* What waits later, or no more, is known to the next daemon, too; what is unhealthy for a while
 * only costs no row. */
static void who_is_held_back_is_stored(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1 g2 g3");

    plugin_list(w, endpoint, "g0! g1! g2 g3");
    pass(w, 60000);
    assert_int_equal(held_back(w), 1);
    plugin_list(w, endpoint, "g0 g1! g2 g3");
    all_stored(w);
    plugin_list(w, endpoint, "g0 g1! g2 g3!");
    plugin_list(w, endpoint, "g0 g1! g2 g3");
    plugin_list(w, endpoint, "g0 g1! g2 g3!");
    assert_null(w->pending);
    pass(w, 60000);
    assert_int_equal(held_back(w), 2);
    plugin_list(w, endpoint, "g0 g1 g2 g3!");
    assert_int_equal(held_back(w), 1);
    all_stored(w);
    world_restart(w);
    ignore_all(w);
    plugin_back(w, "g0 g1! g2 g3!");
    assert_int_equal(held_back(w), 1);
    plugin_list(w, w->endpoint, "g0 g1! g2 g3"); /* it opens: the other one begins anew */
    pass(w, 59999);
    assert_int_equal(acting(w, "NoExecute"), 0);
    pass(w, 1);
    assert_int_equal(acting(w, "NoExecute"), 1);
}

static void at_least_one_may(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_list(w, endpoint, "g0! g1!");
    pass(w, 60000);
    assert_int_equal(acting(w, "NoExecute"), 1);
}

/* ---- the list of all ---- */

static bool put_row(void *user, const struct devicemgr_taint_row *row)
{
    char *text = user;

    sprintf(text + strlen(text), "%s %s %s=%s:%s by %s%s%s", row->resource, row->id, row->key,
            row->value, row->effect, row->source, *row->words ? " " : "", row->words);
    if (row->ends_in_ms != UINT64_MAX)
        sprintf(text + strlen(text), ", %d s", (int)(row->ends_in_ms / 1000));
    if (row->refused)
        strcat(text, ", refused");
    if (row->pods > 0)
        sprintf(text + strlen(text), ", %zu pods", row->pods);
    strcat(text, "\n");
    return strstr(text, "refused") == NULL; /* the list ends there */
}

static void expect_list(struct world *w, const char *resource, const char *const *after,
                        const char *expected)
{
    const struct devicemgr_which which = {.resource = resource, .after = after};
    char text[2048] = "";

    devicemgr_taints(w->mgr, w->now_ms, &which, put_row, text);
    assert_string_equal(text, expected);
}

static void all_are_listed_whoever_set_them(void **state)
{
    static const struct devicemgr_settings_taint taints[] = {{GPU, NULL, "all", "", "NoSchedule"},
                                                             {GPU, "g0", "one", "v", "NoExecute"}};
    static const struct devicemgr_tainted_device slice = {"d0", {"k", "v", "NoExecute", 0, 0}};
    static const struct devicemgr_taint_rule rule = {
        "broken", "a.io", NULL, NULL, {"r", "", "NoSchedule", 0, 0}};
    static const struct devicemgr_taint_rule any = {
        "all", NULL, NULL, NULL, {"r", "", "NoExecute", 0, 0}};
    static const char *const after[DEVICEMGR_TAINT_KEY] = {GPU, "g0", "k:NoExecute", "operator",
                                                           "dust"};
    struct world *w = *state;

    expect_list(w, NULL, NULL, "");
    u1_has_g0(w, "g0 g1");
    plugin_list(w, w->endpoint, "g0 g1!");
    w->settings.taints = taints;
    w->settings.taints_len = 2;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    w->settings.taints_len = 0; /* what is told next */
    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "k:NoExecute", 60000, "dust", 0, false);
    devicemgr_slice_taints(w->mgr, w->now_ms, "s1", "a.io", "p", 1, &slice, 1);
    devicemgr_taint_rule(w->mgr, w->now_ms, "r1", &rule);
    devicemgr_taint_rule(w->mgr, w->now_ms, "r2", &any);
    devicemgr_run(w->mgr);
    ignore_all(w);
    committed(w);
    ignore_all(w);
    expect_list(w, GPU, NULL,
                "vendor.com/gpu  all=:NoSchedule by settings, 1 pods\n"
                "vendor.com/gpu g0 k=:NoExecute by operator dust, 60 s, 1 pods\n"
                "vendor.com/gpu g0 one=v:NoExecute by settings, 1 pods\n"
                "vendor.com/gpu g1 devices.cri-device-shim/unhealthy=:NoSchedule by health\n");
    expect_list(w, GPU, after,
                "vendor.com/gpu g0 one=v:NoExecute by settings, 1 pods\n"
                "vendor.com/gpu g1 devices.cri-device-shim/unhealthy=:NoSchedule by health\n");
    expect_list(w, "a.io", NULL,
                "a.io */* r=:NoSchedule by rule broken\n"
                "a.io p/d0 k=v:NoExecute by slice\n");
    expect_list(w, NULL, NULL, " */* r=:NoExecute by rule all, refused\n");
    pass(w, 60000); /* the operator's is over */
    ignore_all(w);
    expect_list(w, GPU, NULL,
                "vendor.com/gpu  all=:NoSchedule by settings, 1 pods\n"
                "vendor.com/gpu g0 one=v:NoExecute by settings, 1 pods\n"
                "vendor.com/gpu g1 devices.cri-device-shim/unhealthy=:NoExecute by health\n");
}

/* A list that is asked for row by row, each behind the one before. */
struct page {
    char parts[DEVICEMGR_TAINT_KEY][96];
    const char *after[DEVICEMGR_TAINT_KEY];
    char text[2048];
    size_t rows;
};

static bool put_page(void *user, const struct devicemgr_taint_row *row)
{
    struct page *page = user;

    snprintf(page->parts[0], sizeof page->parts[0], "%s", row->resource);
    snprintf(page->parts[1], sizeof page->parts[1], "%s", row->id);
    snprintf(page->parts[2], sizeof page->parts[2], "%s:%s", row->key, row->effect);
    snprintf(page->parts[3], sizeof page->parts[3], "%s", row->source);
    snprintf(page->parts[4], sizeof page->parts[4], "%s", row->words);
    for (size_t i = 0; i < DEVICEMGR_TAINT_KEY; i++)
        page->after[i] = page->parts[i];
    put_row(page->text, row);
    page->rows++;
    return false;
}

static void a_list_goes_on_behind_each_of_its_rows(void **state)
{
    static const struct devicemgr_settings_taint taints[] = {
        {"vendor.com/a", NULL, "all", "", "None"}, {GPU, "g10", "one", "", "NoSchedule"}};
    struct world *w = *state;
    struct page page = {0};
    char text[2048] = "";

    u1_has_g0(w, "g0 g1 g2 g10");
    w->settings.taints = taints;
    w->settings.taints_len = 2;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    w->settings.taints_len = 0; /* what is told next */
    plugin_list(w, w->endpoint, "g0! g1! g2 g10!");
    tainted(w, "g1", "zeal:None");
    tainted(w, "g1", "dust:None");
    tainted(w, "g2", "dust:None");
    tainted(w, "g11", "dust:None");
    pass(w, 60000);
    ignore_all(w);
    devicemgr_taints(w->mgr, w->now_ms, &(struct devicemgr_which){0}, put_row, text);
    assert_string_equal(
        text, "vendor.com/a  all=:None by settings\n"
              "vendor.com/gpu g0 devices.cri-device-shim/unhealthy=:NoExecute by health, "
              "1 pods\n"
              "vendor.com/gpu g1 devices.cri-device-shim/unhealthy=:NoSchedule by health\n"
              "vendor.com/gpu g1 dust=:None by operator dust\n"
              "vendor.com/gpu g1 zeal=:None by operator dust\n"
              "vendor.com/gpu g2 dust=:None by operator dust\n"
              "vendor.com/gpu g10 devices.cri-device-shim/unhealthy=:NoSchedule by health\n"
              "vendor.com/gpu g10 one=:NoSchedule by settings\n"
              "vendor.com/gpu g11 dust=:None by operator dust\n");
    for (size_t rows = 1; rows == page.rows + 1; rows++) {
        const struct devicemgr_which which = {.after = rows > 1 ? page.after : NULL};

        devicemgr_taints(w->mgr, w->now_ms, &which, put_page, &page);
    }
    assert_string_equal(page.text, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_answered_when_it_is_durable, mask_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_taint_is_refused, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(dry_changes_nothing_and_says_who_would_go, u1_runs_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(it_ends_by_itself, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(it_ends_though_that_cannot_be_stored, mask_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(it_may_end_before_it_is_stored, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(nobody_new_is_given_it, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(too_few_are_left, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(who_has_it_is_made_again_with_it, mask_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_the_kubelet_chose_is_not_taken_back, mask_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(who_tolerates_it_may_be_given_it, mask_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(nobody_is_made_with_it, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(seconds_of_tolerations_count_from_the_taint_on, mask_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(tolerations_that_cannot_be_read_are_none, mask_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_list_tells_of_tolerations, u1_runs_setup, world_teardown),
        cmocka_unit_test_setup_teardown(none_does_nothing, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(settings_taint_one_or_all, mask_setup, world_teardown),
        cmocka_unit_test_setup_teardown(an_unhealthy_device_is_no_execute_after_a_while,
                                        health_setup, world_teardown),
        cmocka_unit_test_setup_teardown(not_by_the_loss_of_a_plugin, health_setup, world_teardown),
        cmocka_unit_test_setup_teardown(one_that_is_listed_no_more_begins_anew, health_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(nor_once_its_resource_is_gone, health_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(no_more_than_a_quarter_at_a_time, health_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_is_held_back_is_so_until_it_is_switched_off,
                                        health_setup, world_teardown),
        cmocka_unit_test_setup_teardown(where_none_is_nothing_is_to_be_stored, health_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(nor_once_its_plugin_was_away, health_setup, world_teardown),
        cmocka_unit_test_setup_teardown(nor_once_it_was_restarted, health_setup, world_teardown),
        cmocka_unit_test_setup_teardown(unless_it_was_switched_off_by_that, health_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(who_is_held_back_is_stored, health_setup, world_teardown),
        cmocka_unit_test_setup_teardown(at_least_one_may, health_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_list_goes_on_behind_each_of_its_rows, health_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(all_are_listed_whoever_set_them, health_setup,
                                        world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
