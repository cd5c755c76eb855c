/* A container that is made again gets another device when its own is lost. */
#include "devicemgr/counts.h"
#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "shown_world.h"

#define AFTER_MS 10000

/* ---- the world ---- */

static void replaces(struct world *w, bool replace)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);

    own.replace = replace;
    own.replace_after_ms = AFTER_MS;
    own.hold_ms = 5 * AFTER_MS;
    world_fresh_with(w, &own);
}

/* And that is stored. */
static void lists(struct world *w, uint64_t gpu, const char *devices)
{
    plugin_list(w, gpu, devices);
    if (w->pending)
        committed(w);
    ignore_all(w);
}

/* u1's container was made with g0, which the shim chose, and is over. */
static uint64_t u1_had_g0(struct world *w, const char *devices)
{
    uint64_t gpu = gpus_up(w, devices);

    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    container_removed(w, "c-u1-main");
    ignore_all(w);
    forget_logs(w);
    return gpu;
}

static void wants_again(struct world *w)
{
    create_request(w, 12, "u1", "main", GPU "=1");
}

/* ---- what is lost ---- */

static void what_is_not_listed_for_so_long_is_lost(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1");
    lists(w, gpu, "g1");
    wants_again(w);
    pass(w, AFTER_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "allocate g1 *");
    allocated(w, "G=1");
    expect_stored(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    expect_with(w, "verdict 12 forward", "G=1", NULL);
}

static void so_is_what_is_unhealthy_for_so_long(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1");
    lists(w, gpu, "g0! g1");
    pass(w, AFTER_MS);
    wants_again(w);
    expect(w, "allocate g1 *");
}

static void what_is_back_in_time_is_not(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1");
    lists(w, gpu, "g1");
    wants_again(w);
    pass(w, AFTER_MS - 1);
    lists(w, gpu, "g0! g1"); /* it is not well, since just now */
    pass(w, AFTER_MS - 1);
    expect_nothing(w);
    plugin_list(w, gpu, "g0 g1");
    expect_with(w, "verdict 12 forward", NULL);
}

/* It says nothing of its devices, and first what it has found so far when it is back. */
static void a_plugin_that_was_away_is_heard_first(void **state)
{
    struct world *w = *state;

    replaces(w, true);
    lists(w, u1_had_g0(w, "g0 g1"), "g0! g1");
    plugin_lost(w, w->endpoint, "killed");
    pass(w, 2 * AFTER_MS);
    wants_again(w);
    expect_with(w, "open", NULL);
    ignore_all(w);
    plugin_back(w, "g0! g1");
    pass(w, AFTER_MS - 1);
    ignore_all(w); /* the list is stored */
    pass(w, 1);
    expect(w, "allocate g1 *");
}

/* Who takes one device after the other out is still at it. */
static void a_list_that_shrinks_is_waited_for(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1 g2");
    lists(w, gpu, "g1 g2");
    wants_again(w);
    pass(w, AFTER_MS - 1);
    lists(w, gpu, "g1");
    pass(w, AFTER_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "allocate g1 *");
}

static void without_the_setting_it_is_waited_for(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, false);
    gpu = u1_had_g0(w, "g0 g1");
    lists(w, gpu, "g1");
    wants_again(w);
    pass(w, 2 * AFTER_MS);
    expect_nothing(w);
}

/* ---- what it gets ---- */

static void without_a_free_one_it_waits_and_says_so(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1");
    container_chosen(w, 13, "u2", "main", GPU "=1", "g1");
    lists(w, gpu, "g1");
    wants_again(w);
    pass(w, 2 * AFTER_MS);
    expect_nothing(w);
    sandbox_ended(w, "s-u2");
    expect(w, "allocate g1 *");
}

static void a_refusal_for_want_of_one_says_so(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1!");
    lists(w, gpu, "g1!");
    pass(w, AFTER_MS);
    wants_again(w);
    pass(w, 5 * AFTER_MS);
    expect(
        w,
        "verdict 12 refused 14: container \"main\" of pod \"ns/u1\": resource "
        "vendor.com/gpu: not listed by the plugin: device ids g0; no other is free to be in their "
        "place");
}

static void what_is_not_lost_it_keeps(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = gpus_up(w, "g0 g1 g2 g3");
    container_chosen(w, 11, "u1", "main", GPU "=2", "g0,g1");
    container_removed(w, "c-u1-main");
    lists(w, gpu, "g1 g2 g3");
    pass(w, AFTER_MS);
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=2");
    expect(w, "allocate g1,g2 *");
}

/* Of several resources, in one container: the one is replaced once the other can be had, too. */
static void several_resources_are_all_or_nothing(void **state)
{
    struct world *w = *state;
    uint64_t gpu, nic;

    replaces(w, true);
    gpu = gpus_up(w, "g0 g1");
    nic = nics_up(w, "n0");
    create_request(w, 11, "u1", "main", GPU "=1, " NIC "=1");
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
    allocated(w, "G=0");
    w->call--;
    allocated_stored(w, "N=0");
    expect(w, "verdict 11 forward*");
    create_answered(w, 11, "c-u1-main");
    container_removed(w, "c-u1-main");
    ignore_all(w);
    lists(w, gpu, "g1");
    lists(w, nic, "n0!");
    pass(w, AFTER_MS);
    create_request(w, 12, "u1", "main", GPU "=1, " NIC "=1");
    expect_nothing(w);
    create_request(w, 13, "u2", "main", GPU "=1"); /* g1 is not kept from it */
    expect(w, "allocate g1 *");
    create_cancelled(w, 13);
    ignore_all(w);
    plugin_list(w, nic, "n0");
    expect(w, "allocate g1 *");
    allocated_stored(w, "G=1");
    expect(w, "verdict 12 forward N=0 G=1 *");
}

/* u1's container was made with g0, g1 and n0, and is over; g0 is lost, and n0 is to be waited
 * for. */
static uint64_t u1_lacks_g0_and_waits_for_n0(struct world *w, uint64_t *nic)
{
    uint64_t gpu;

    replaces(w, true);
    gpu = gpus_up(w, "g0 g1 g2");
    *nic = nics_up(w, "n0");
    create_request(w, 11, "u1", "main", GPU "=2, " NIC "=1");
    expect(w, "allocate n0 *");
    expect(w, "allocate g0,g1 *");
    allocated(w, "G=0");
    w->call--;
    allocated_stored(w, "N=0");
    create_answered(w, 11, "c-u1-main");
    container_removed(w, "c-u1-main");
    lists(w, gpu, "g1 g2");
    lists(w, *nic, "n0!");
    pass(w, AFTER_MS);
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=2, " NIC "=1");
    return gpu;
}

static void what_stays_is_kept_while_something_else_is_waited_for(void **state)
{
    struct world *w = *state;
    uint64_t nic;

    u1_lacks_g0_and_waits_for_n0(w, &nic);
    expect_nothing(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g2 *");
}

static void what_is_back_meanwhile_is_not_replaced(void **state)
{
    struct world *w = *state;
    uint64_t nic, gpu = u1_lacks_g0_and_waits_for_n0(w, &nic);

    lists(w, gpu, "g0 g1 g2");
    plugin_list(w, nic, "n0");
    expect_with(w, "verdict 12 forward", "G=0", NULL);
}

/* u1's container was made with g0 and g1, and is made again with g2 in the place of g0. */
static void u1_is_to_have_g2(struct world *w)
{
    uint64_t gpu;

    replaces(w, true);
    gpu = gpus_up(w, "g0 g1 g2");
    container_chosen(w, 11, "u1", "main", GPU "=2", "g0,g1");
    container_removed(w, "c-u1-main");
    lists(w, gpu, "g1 g2");
    pass(w, AFTER_MS);
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=2");
    expect(w, "allocate g1,g2 *");
    expect_nothing(w); /* its row stays until there is another */
}

/* It has g0 and g1 again: g2 is another's to have. */
static void expect_g1_kept(struct world *w)
{
    if (w->pending)
        committed(w);
    ignore_all(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g2 *");
    create_cancelled(w, 13);
    if (w->pending)
        committed(w);
    ignore_all(w);
    create_request(w, 14, "u1", "main", GPU "=2");
    expect(w, "allocate g1,g2 *");
}

static void what_stays_is_kept_if_the_plugin_fails(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    allocate_failed(w, 2, "the device is resetting");
    expect_g1_kept(w);
}

static void or_who_asked_has_gone(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    create_cancelled(w, 12);
    expect_g1_kept(w);
}

static void or_it_cannot_be_stored(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    allocated(w, "G=1");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    commit_failed(w, "database or disk is full");
    expect_g1_kept(w);
}

static void or_who_asked_has_gone_meanwhile(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    allocated(w, "G=1");
    create_cancelled(w, 12);
    commit_failed(w, "database or disk is full");
    expect_g1_kept(w);
}

static void or_the_runtime_refuses_it(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 12 forward", "G=1", NULL);
    create_answered(w, 12, NULL);
    expect_stored(w, "commit allocation u1 main vendor.com/gpu");
    expect_g1_kept(w);
}

static void what_it_has_again_is_asked_for_anew(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 12 forward", "G=1", NULL);
    create_answered(w, 12, NULL);
    expect_stored(w, "commit allocation u1 main vendor.com/gpu");
    lists(w, w->endpoint, "g0 g1 g2");
    create_request(w, 14, "u1", "main", GPU "=2");
    expect(w, "allocate g0,g1 *"); /* what was in force was of g1 and g2 */
}

static void what_stays_may_be_cordoned(void **state)
{
    const char *const g1[] = {"g1"};
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = gpus_up(w, "g0 g1 g2");
    container_chosen(w, 11, "u1", "main", GPU "=2", "g0,g1");
    container_removed(w, "c-u1-main");
    devicemgr_cordon(w->mgr, w->now_ms, 900, GPU, g1, 1, "dust", 1234);
    devicemgr_run(w->mgr);
    committed(w);
    lists(w, gpu, "g1 g2");
    pass(w, AFTER_MS);
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=2");
    expect(w, "allocate g1,g2 *");
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 12 forward", "G=1", NULL);
}

/* The plugin serves again, and what the row says is u1's. */
static void expect_g1_kept_after_a_restart(struct world *w)
{
    world_restart(w);
    plugin_back(w, "g1 g2");
    if (w->pending)
        committed(w);
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1/main!");
    pass(w, AFTER_MS);
    expect_g1_kept(w);
}

static void or_the_daemon_dies(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    expect_g1_kept_after_a_restart(w);
}

/* All is written anew. */
static void also_with_a_new_file(void **state)
{
    struct world *w = *state;

    u1_is_to_have_g2(w);
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_with(w, "commit ", "allocation u1 main vendor.com/gpu", "pod u1", NULL);
    committed(w);
    expect_g1_kept_after_a_restart(w);
}

static void what_another_has_by_then_is_not_had_again(void **state)
{
    struct world *w = *state;
    uint64_t call;

    u1_is_to_have_g2(w);
    call = w->call;
    lists(w, w->endpoint, "g0 g1 g2");
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
    w->call = call;
    allocate_failed(w, 2, "the device is resetting");
    expect_with(w, "verdict 12 refused", NULL);
    expect_stored(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    create_request(w, 14, "u1", "main", GPU "=2");
    expect(w, "allocate g1,g2 *");
}

/* u2 is made with g0, which is well again, while the plugin is asked for u1 still: by the call that
 * is returned. */
static uint64_t u2_has_g0_meanwhile(struct world *w)
{
    uint64_t call;

    u1_is_to_have_g2(w);
    call = w->call;
    lists(w, w->endpoint, "g0 g1 g2");
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
    allocated(w, "G=0");
    expect_stored(w, "commit -allocation u1 main vendor.com/gpu, -pod u1, "
                     "allocation u2 main vendor.com/gpu, pod u2");
    expect_with(w, "verdict 13 forward", "G=0", NULL);
    create_answered(w, 13, "c-u2-main");
    return call;
}

static void nor_is_it_if_the_daemon_dies(void **state)
{
    struct world *w = *state;

    u2_has_g0_meanwhile(w);
    world_restart(w);
    plugin_back(w, "g0 g1 g2");
    if (w->pending)
        committed(w);
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1/main! u2/main=" GPU ":g0");
    ignore_all(w);
    create_request(w, 14, "u1", "main", GPU "=2");
    expect(w, "allocate g1,g2 *");
}

static void what_it_is_to_have_it_gets_all_the_same(void **state)
{
    struct world *w = *state;

    w->call = u2_has_g0_meanwhile(w);
    allocated(w, "G=1");
    expect_stored(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    expect_with(w, "verdict 12 forward", "G=1", NULL);
}

static void what_runs_keeps_what_it_has(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    lists(w, gpu, "g1");
    pass(w, AFTER_MS);
    ignore_all(w);
    wants_again(w);
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused", "still runs", NULL);
}

static void what_another_pod_has_been_given_is_not_taken(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1 g2");
    kubelet_holds(w, "u2=" GPU ":g1");
    lists(w, gpu, "g1 g2");
    pass(w, AFTER_MS);
    ignore_all(w);
    wants_again(w);
    expect(w, "allocate g2 *");
}

/* ---- what is kept, and told ---- */

static void replace_g0(struct world *w)
{
    uint64_t gpu;

    replaces(w, true);
    gpu = u1_had_g0(w, "g0 g1");
    lists(w, gpu, "g1");
    pass(w, AFTER_MS);
    ignore_all(w);
    wants_again(w);
    expect(w, "allocate g1 *");
    allocated_stored(w, "G=1");
    expect_event(w, "replaced vendor.com/gpu [g1] ns/u1/main -: in the place of g0");
    expect_with(w, "verdict 12 forward", "G=1", NULL);
}

static void it_is_told_once(void **state)
{
    struct world *w = *state;

    replace_g0(w);
    assert_int_equal(devicemgr_replaced(w->mgr), 1);
    assert_int_equal(logged(w, "has now device ids g1 in the place of g0, lost"), 1);
    ignore_all(w);
    create_answered(w, 12, "c-u1-2");
    container_removed(w, "c-u1-2");
    create_request(w, 13, "u1", "main", GPU "=1");
    assert_int_equal(logged(w, "in the place of"), 0);
    assert_int_equal(devicemgr_replaced(w->mgr), 1);
}

/* What was lost at first is free: the kubelet knows of none of them. */
static void what_is_back_is_anybodys(void **state)
{
    struct world *w = *state;

    replace_g0(w);
    create_answered(w, 12, "c-u1-2");
    lists(w, w->endpoint, "g0 g1");
    ignore_all(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
    container_removed(w, "c-u1-2");
    create_request(w, 14, "u1", "main", GPU "=1");
    expect_with(w, "verdict 14 forward", "G=1", NULL);
}

static void one_that_is_lost_in_its_turn_is_replaced(void **state)
{
    struct world *w = *state;

    replace_g0(w);
    create_answered(w, 12, "c-u1-2");
    container_removed(w, "c-u1-2");
    lists(w, w->endpoint, "g2");
    pass(w, AFTER_MS);
    ignore_all(w);
    create_request(w, 13, "u1", "main", GPU "=1");
    expect(w, "allocate g2 *");
    committed(w);
    ignore_all(w);
    allocated_stored(w, "G=2");
    expect_event(w, "replaced vendor.com/gpu [g2] ns/u1/main -: in the place of g0");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_listed_for_so_long_is_lost),
        TEST(so_is_what_is_unhealthy_for_so_long),
        TEST(what_is_back_in_time_is_not),
        TEST(a_plugin_that_was_away_is_heard_first),
        TEST(a_list_that_shrinks_is_waited_for),
        TEST(without_the_setting_it_is_waited_for),
        TEST(without_a_free_one_it_waits_and_says_so),
        TEST(a_refusal_for_want_of_one_says_so),
        TEST(what_is_not_lost_it_keeps),
        TEST(several_resources_are_all_or_nothing),
        TEST(what_stays_is_kept_while_something_else_is_waited_for),
        TEST(what_is_back_meanwhile_is_not_replaced),
        TEST(what_stays_is_kept_if_the_plugin_fails),
        TEST(or_who_asked_has_gone),
        TEST(or_it_cannot_be_stored),
        TEST(or_who_asked_has_gone_meanwhile),
        TEST(or_the_runtime_refuses_it),
        TEST(what_it_has_again_is_asked_for_anew),
        TEST(what_stays_may_be_cordoned),
        TEST(or_the_daemon_dies),
        TEST(also_with_a_new_file),
        TEST(what_another_has_by_then_is_not_had_again),
        TEST(nor_is_it_if_the_daemon_dies),
        TEST(what_it_is_to_have_it_gets_all_the_same),
        TEST(what_runs_keeps_what_it_has),
        TEST(what_another_pod_has_been_given_is_not_taken),
        TEST(it_is_told_once),
        TEST(what_is_back_is_anybodys),
        TEST(one_that_is_lost_in_its_turn_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
