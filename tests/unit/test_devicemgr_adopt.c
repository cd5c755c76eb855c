/* Containers that run without a token, with what the kubelet gave them before their plugin was
 * moved over. */
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

#include <stdio.h>

#define HAS "has by the kubelet's checkpoint device ids g0 of resource " GPU
#define PUT_U1 "commit allocation u1 main vendor.com/gpu, pod u1"

/* u1's container runs without a token, u2 has a sandbox; the kubelet's checkpoint gives u1 g0. */
static void moved(struct world *w)
{
    gpus_up(w, "g0 g1");
    runtime_listed(w, "u1/main u2");
    expect_nothing(w);
    kubelet_holds(w, "u1=" GPU ":g0");
}

static void u1_adopted(struct world *w)
{
    moved(w);
    committed(w);
    ignore_all(w);
}

/* A token for g0 waits for u1's container, and is refused when that is found to run. */
static void u2_refused(struct world *w, uint64_t number)
{
    char verdict[64];

    snprintf(verdict, sizeof verdict, "verdict %d refused 14:", (int)number);
    create_token(w, number, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, verdict,
                "device g0 is held by container \"main\" of pod \"ns/u1\", which still runs", NULL);
    expect_nothing(w);
}

static void what_the_kubelet_gave_a_running_container_is_held(void **state)
{
    struct world *w = *state;

    moved(w);
    expect(w, PUT_U1);
    committed(w);
    assert_int_equal(logged(w, HAS), 1);
    kubelet_holds(w, ""); /* u1 was deleted by force, and its container runs on */
    u2_refused(w, 11);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u1/main u2");
    assert_int_equal(logged(w, HAS), 0);
    u2_refused(w, 12);
    container_removed(w, "c-u1-main");
    create_token(w, 13, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

/* Whichever of the three comes last. */
static void it_is_adopted_as_soon_as_all_is_known(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u1=" GPU ":g0");
    expect_nothing(w); /* nobody has seen it run */
    runtime_listed(w, "u1/main u2");
    expect(w, PUT_U1);

    world_fresh_listed(w);
    kubelet_holds(w, "u1=" GPU ":g0");
    runtime_listed(w, "u1/main u2");
    expect_nothing(w);
    pass(w, LIST_EVERY_MS);
    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    plugin_list(w, w->endpoint, "g0 g1");
    expect(w, "list"); /* what was made since the last may have it, too */
    expect_with(w, "commit ", "allocation u1 main vendor.com/gpu", "pod u1", NULL);
    committed(w);
    plugin_list(w, w->endpoint, "g0 g1!");
    runtime_listed(w, "u1/main u2");
    expect_nothing(w);
    kubelet_holds(w, "");
    ignore_all(w);
    u2_refused(w, 11);
}

static void it_is_adopted_from_a_plugin_that_a_builtin_device_replaces(void **state)
{
    const struct devicemgr_builtin_device device = {.id = "g0",
                                                    .healthy = true,
                                                    .host_path = "/dev/g0",
                                                    .container_path = "/dev/g0",
                                                    .permissions = "rw"};
    struct world *w = *state;

    kubelet_holds(w, "u1=" GPU ":g0");
    runtime_listed(w, "u1/main u2");
    pass(w, LIST_EVERY_MS);
    devicemgr_builtin(w->mgr, w->now_ms, GPU, &device, 1);
    devicemgr_run(w->mgr);
    expect(w, "list");
    expect(w, PUT_U1);
    committed(w);
    devicemgr_builtin(w->mgr, w->now_ms, GPU, &device, 1);
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

static void what_is_none_of_ours_is_not_adopted(void **state)
{
    static const char *const others[] = {
        "u1=" NIC ":g0",       /* of a resource that is not served here */
        "u2=" GPU ":g0",       /* of a pod that has no container */
        "u3=" GPU ":g0",       /* that nobody knows */
        "u1/other=" GPU ":g0", /* of a container that does not run */
    };
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        runtime_listed(w, "u1/main u1/other! u2");
        kubelet_holds(w, others[i]);
        expect_nothing(w);
        create_token(w, 11, "u2", GPU ":g0");
        expect(w, "allocate g0 *");
        create_cancelled(w, 11);
        ignore_all(w);
    }
}

static void what_has_ended_since_the_list_is_not_adopted(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    runtime_listed(w, "u1/main u2");
    container_removed(w, "c-u1-main");
    kubelet_holds(w, "u1=" GPU ":g0");
    expect_nothing(w);
    kubelet_holds(w, "");
    runtime_listed(w, "u1/main u2");
    sandbox_stopped(w, "s-u1");
    kubelet_holds(w, "u1=" GPU ":g0");
    expect_nothing(w);
    kubelet_holds(w, "");
    runtime_listed(w, "u1/main u2"); /* believed: a list that is newer than the stop */
    runtime_listed(w, "u1/main! u2");
    kubelet_holds(w, "u1=" GPU ":g0");
    expect_nothing(w);
}

static void what_came_with_a_token_is_not_adopted(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    runtime_listed(w, "u1/main=" GPU ":g0");
    kubelet_holds(w, "u1=" GPU ":g0,g1");
    expect_nothing(w);
    assert_int_equal(logged(w, "runs without a token"), 0);
    kubelet_holds(w, "");
    runtime_listed(w, "u1/main=" GPU ":g0 u2");
    create_token(w, 12, "u2", GPU ":g1");
    expect(w, "allocate g1 *");
}

/* What it has of another plugin, that was moved before. */
static void one_resource_may_come_with_a_token_and_another_not(void **state)
{
    struct world *w = *state;

    nics_up(w, "n0");
    gpus_up(w, "g0 g1");
    runtime_listed(w, "u1/main=" NIC ":n0 u2");
    committed(w);
    ignore_all(w);
    kubelet_holds(w, "u1=" NIC ":n0 u1=" GPU ":g0");
    expect(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    u2_refused(w, 11);
}

static void every_container_that_runs_with_it_must_end(void **state)
{
    const struct devicemgr_sandbox sandboxes[] = {
        {.id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .ready = true},
        {.id = "s-u2", .pod_uid = "u2", .pod_namespace = "ns", .pod_name = "u2", .ready = true}};
    const struct devicemgr_container containers[] = {
        {.id = "new", .sandbox_id = "s-u1", .name = "main", .attempt = 1, .running = true},
        {.id = "old", .sandbox_id = "s-u1", .name = "main", .running = true}};
    struct world *w = *state;

    gpus_up(w, "g0");
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, containers, 2);
    kubelet_holds(w, "u1=" GPU ":g0");
    committed(w);
    pass(w, OUTCOME_MS);
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, 2, containers, 2);
    ignore_all(w);
    container_removed(w, "new");
    create_token(w, 11, "u2", GPU ":g0");
    expect(w, "check old");
    container_checked(w, false);
    expect(w, "allocate g0 *");
}

/* It is not known as one that runs when the plugin is moved over. */
static void one_that_was_made_since_the_last_list_may_have_it(void **state)
{
    struct world *w = *state;

    kubelet_holds(w, "u1=" GPU ":g0");
    runtime_listed(w, "u1/main u2");
    assert_false(create(w, 11, "u1", "main", NULL, NULL)); /* its next attempt */
    pass(w, LIST_EVERY_MS);
    gpus_up(w, "g0 g1");
    ignore_all(w);
    kubelet_holds(w, "");
    container_removed(w, "c-u1-main");
    create_token(w, 12, "u2", GPU ":g0");
    expect_nothing(w); /* it waits */
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1/main u2"); /* that was asked for when the plugin came */
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused 14:", "which still runs", NULL);
}

static void it_survives_a_restart(void **state)
{
    struct world *w = *state;

    u1_adopted(w);
    world_restart(w);
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0 g1");
    kubelet_holds(w, "");
    runtime_listed(w, "u1/main u2");
    ignore_all(w);
    u2_refused(w, 11);
}

static void it_ends_with_its_pod(void **state)
{
    struct world *w = *state;

    u1_adopted(w);
    sandbox_stopped(w, "s-u1");
    ignore_all(w);
    sandbox_removed(w, "s-u1");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    committed(w);
    assert_false(world_stored(w, "allocation u1 main vendor.com/gpu"));
}

/* Its pod is deleted, and its sandbox dies before it does. */
static void it_may_outlive_its_sandbox(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    runtime_listed(w, "~u1/main u2");
    kubelet_holds(w, "u1=" GPU ":g0");
    expect(w, PUT_U1);
    committed(w);
    kubelet_holds(w, "");
    u2_refused(w, 11);
}

/* ---- its pod's creates ---- */

static void its_own_creates_pass_untouched(void **state)
{
    struct world *w = *state;

    u1_adopted(w);
    container_removed(w, "c-u1-main");
    assert_false(create(w, 11, "u1", "main", NULL, NULL));
    assert_false(create(w, 12, "u1", "other", NULL, NULL));
    expect_nothing(w);
}

static void it_is_made_anew_with_what_it_had(void **state)
{
    struct world *w = *state;

    u1_adopted(w);
    container_removed(w, "c-u1-main");
    assert_false(create(w, 11, "u1", "main", NULL, NULL));
    kubelet_holds(w, "");
    create_token(w, 12, "u2", GPU ":g0");
    expect_nothing(w);          /* it waits */
    runtime_listed(w, "u1 u2"); /* it may be in the making yet */
    expect_nothing(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u1/main u2");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused 14:", "which still runs", NULL);
}

/* Made anew with a token for one resource, and what the kubelet gave it of another. */
static void it_is_made_anew_beside_what_a_token_names(void **state)
{
    struct world *w = *state;

    u1_adopted(w);
    nics_up(w, "n0");
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1/main u2"); /* that is all that had it */
    ignore_all(w);
    container_removed(w, "c-u1-main");
    container_forwarded(w, 11, "u1", "main", NIC ":n0");
    create_answered(w, 11, "c-new");
    kubelet_holds(w, "");
    ignore_all(w);
    create_token(w, 12, "u2", GPU ":g0");
    expect_nothing(w); /* it waits: c-new may have it */
}

static void one_that_was_never_made_frees_what_it_had(void **state)
{
    struct world *w = *state;

    u1_adopted(w);
    container_removed(w, "c-u1-main");
    assert_false(create(w, 11, "u1", "main", NULL, NULL));
    create_token(w, 12, "u2", GPU ":g0");
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u1 u2");
    expect(w, "allocate g0 *");
}

static void a_container_that_was_down_is_adopted_when_it_is_made(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    runtime_listed(w, "u1/main! u2");
    kubelet_holds(w, "u1=" GPU ":g0");
    expect_nothing(w);
    assert_false(create(w, 11, "u1", "main", NULL, NULL));
    devicemgr_run(w->mgr);
    expect(w, PUT_U1);
    committed(w);
    kubelet_holds(w, "");
    create_token(w, 12, "u2", GPU ":g0");
    expect_nothing(w);
    pass(w, OUTCOME_MS);
    expect(w, "list");
    runtime_listed(w, "u1/main u2");
    expect(w, "check c-u1-main");
}

static void a_create_without_devices_adopts_nothing(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    runtime_listed(w, "u1 u2");
    kubelet_holds(w, "u1=" GPU ":g0 u2=" NIC ":n0");
    assert_false(create(w, 11, "u1", "other", NULL, NULL));
    assert_false(create(w, 12, "u2", "main", NULL, NULL));            /* not served here */
    assert_false(create_in(w, 13, "s-u2", "u1", "main", NULL, NULL)); /* another pod's sandbox */
    sandbox_stopped(w, "s-u1");
    assert_false(create(w, 14, "u1", "main", NULL, NULL)); /* nothing can be made there */
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

/* The way back: the plugin serves the kubelet again, which makes containers without a token. */
static void after_the_way_back_creates_pass(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    container_made(w, 1, "u1", "main", GPU ":g0");
    plugin_lost(w, endpoint, "gone");
    ignore_all(w);
    kubelet_holds(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    sandbox_ran(w, "u2", "s-u2", 0);
    for (int over = 0; over < 2; over++) {
        assert_false(create(w, 11, "u2", "main", NULL, NULL));
        assert_false(create(w, 12, "u3", "main", NULL, NULL));
        pass(w, GRACE_MS);
        runtime_listed(w, "u1/main u2/main u3/main");
        assert_int_equal(logged(w, "refused"), 0);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_kubelet_gave_a_running_container_is_held),
        TEST(it_is_adopted_as_soon_as_all_is_known),
        TEST(it_is_adopted_from_a_plugin_that_a_builtin_device_replaces),
        TEST(what_is_none_of_ours_is_not_adopted),
        TEST(what_has_ended_since_the_list_is_not_adopted),
        TEST(what_came_with_a_token_is_not_adopted),
        TEST(one_resource_may_come_with_a_token_and_another_not),
        TEST(every_container_that_runs_with_it_must_end),
        TEST(one_that_was_made_since_the_last_list_may_have_it),
        TEST(it_survives_a_restart),
        TEST(it_ends_with_its_pod),
        TEST(it_may_outlive_its_sandbox),
        TEST(its_own_creates_pass_untouched),
        TEST(it_is_made_anew_with_what_it_had),
        TEST(it_is_made_anew_beside_what_a_token_names),
        TEST(one_that_was_never_made_frees_what_it_had),
        TEST(a_container_that_was_down_is_adopted_when_it_is_made),
        TEST(a_create_without_devices_adopts_nothing),
        TEST(after_the_way_back_creates_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
