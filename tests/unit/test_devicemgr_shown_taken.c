/* What the shim gave away is shown as unhealthy. */
#include "devicemgr/things/limits.h"
#include "devicemgr/things/request.h"
#include "shown_world.h"

/* ---- unhealthy if a container holds it that asked by annotation ---- */

static void what_the_shim_gave_away_the_kubelet_must_not(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0 g1");

    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    expect_shown(w, GPU, "g0! g1");
    plugin_list(w, gpu, "g1"); /* and it is not missed */
    expect_shown(w, GPU, "g1");
    plugin_list(w, gpu, "g0 g1");
    container_removed(w, "c-u1-main");
    expect_shown(w, GPU, "g0! g1"); /* the next attempt gets the same */
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g0 g1");
}

static void it_is_taken_as_soon_as_it_is_chosen(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    create_request(w, 11, "u1", "main", GPU "=1");
    expect(w, "allocate *");
    expect_shown(w, GPU, "g0!");
    create_cancelled(w, 11);
    expect_shown(w, GPU, "g0");
}

static void a_container_that_outlives_its_pod_keeps_its_device(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    sandbox_ran(w, "u1", "s-u1-1", 1);
    sandbox_ended(w, "s-u1-1"); /* the container is in the sandbox before */
    expect_shown(w, GPU, "g0!");
    container_removed(w, "c-u1-main");
    expect_shown(w, GPU, "g0");
}

static void what_the_kubelet_holds_too_is_healthy(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    expect_shown(w, GPU, "g0! g1");
    kubelet_holds(w, "u2=" GPU ":g0");
    expect_shown(w, GPU, "g0+ g1");
    kubelet_holds(w, "");
    expect_shown(w, GPU, "g0! g1");
}

/* A device handed on inside a pod is in two allocations. */
static void what_was_given_away_both_ways_is_healthy(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "init", GPU "=1", "g0");
    container_removed(w, "c-u1-init");
    container_made(w, 12, "u1", "main", GPU ":g0");
    container_made(w, 13, "u2", "init", GPU ":g1");
    container_removed(w, "c-u2-init");
    container_chosen(w, 14, "u2", "main", GPU "=1", "g1");
    expect_shown(w, GPU, "g0+ g1+");
}

static void shared_devices_are_nobodys(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.exclusive = false;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    expect_shown(w, GPU, "g0 g1");
    container_made(w, 12, "u2", "main", GPU ":g0");
    expect_shown(w, GPU, "g0+ g1");
}

static void who_chose_is_known_after_a_restart(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1 g2");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    container_made(w, 12, "u2", "main", GPU ":g1");
    restart(w);
    expect_shown(w, GPU, "g0! g1+ g2");
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main=" GPU ":g1");
    expect_shown(w, GPU, "g0! g1+ g2");
}

/* u1 had g0, and has done its work. Nobody stops its sandbox again, as long as there is the pod. */
static void u1_has_finished(struct world *w)
{
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g0 g1");
    ignore_all(w);
}

/* The daemon is restarted, and the runtime lists what is left of u1. */
static void restart_with_what_is_left(struct world *w)
{
    restart(w);
    pass(w, OUTCOME_MS); /* nothing is in the making any more */
    ignore_all(w);
    runtime_listed(w, "~u1/main!");
}

static void what_a_finished_pod_had_is_free_after_a_restart(void **state)
{
    struct world *w = *state;

    u1_has_finished(w);
    pass(w, STOPPED_STORE_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect_stored(w, "commit pod u1");
    restart_with_what_is_left(w);
    expect_shown(w, GPU, "g0 g1");
}

static void also_if_the_daemon_ends_before_that(void **state)
{
    struct world *w = *state;

    u1_has_finished(w);
    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_stored(w, "commit pod u1");
    restart_with_what_is_left(w);
    expect_shown(w, GPU, "g0 g1");
}

/* The runtime lists "c-u1-main" with its token, and its pod with `request` as its annotation. */
static void list_u1(struct world *w, const char *request_key, const char *request)
{
    struct devicemgr_annotation asked = {request_key, request};
    struct devicemgr_annotation token = {REQUEST_KEY_PREFIX "vendor.com_gpu",
                                         "{\"resource\":\"" GPU "\",\"ids\":[\"g0\"]}"};
    struct devicemgr_sandbox sandbox = {.id = "s-u1",
                                        .pod_uid = "u1",
                                        .pod_namespace = "ns",
                                        .pod_name = "u1",
                                        .ready = true,
                                        .annotations = &asked,
                                        .annotations_len = request_key ? 1 : 0};
    struct devicemgr_container container = {.id = "c-u1-main",
                                            .sandbox_id = "s-u1",
                                            .name = "main",
                                            .running = true,
                                            .annotations = &token,
                                            .annotations_len = 1};

    world_fresh(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
    expect(w, "commit *");
    committed(w);
    gpus_up(w, "g0 g1");
    forget_seen();
}

static void expect_u1(struct world *w, const char *request_key, const char *request,
                      const char *shown)
{
    list_u1(w, request_key, request);
    expect_shown(w, GPU, shown);
}

static void who_chose_is_told_by_the_pods_annotation_if_the_checkpoint_is_lost(void **state)
{
    static const char *const OTHERS[] = {"other"};
    struct world *w = *state;
    const char *const *all = w->settings.namespaces;

    expect_u1(w, REQUEST_KEY_PREFIX "main", GPU "=1", "g0! g1");
    restart(w);
    expect_shown(w, GPU, "g0! g1"); /* and is in it again */
    expect_u1(w, NULL, NULL, "g0+ g1");
    expect_u1(w, REQUEST_KEY_PREFIX "other", GPU "=1", "g0+ g1");
    expect_u1(w, REQUEST_KEY_PREFIX "main", NIC "=1", "g0+ g1");
    expect_u1(w, REQUEST_KEY_PREFIX "main", "nonsense", "g0+ g1");
    w->settings.namespaces = OTHERS; /* it counts for nothing there */
    expect_u1(w, REQUEST_KEY_PREFIX "main", GPU "=1", "g0+ g1");
    w->settings.namespaces = all;
    w->settings.annotations = false;
    expect_u1(w, REQUEST_KEY_PREFIX "main", GPU "=1", "g0+ g1");
}

static void who_chose_is_told_by_the_next_create_at_the_latest(void **state)
{
    struct world *w = *state;

    expect_u1(w, NULL, NULL, "g0+ g1");
    create_request(w, 11, "u1", "main", GPU "=1");
    expect_shown(w, GPU, "g0! g1");
    allocated(w, "A=1"); /* options are not in the token */
    committed(w);
    restart(w);
    expect_shown(w, GPU, "g0! g1");
}

static void who_asked_last_has_chosen(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    container_removed(w, "c-u1-main");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "verdict 12 forward *");
    expect(w, "commit allocation u1 main vendor.com/gpu");
    committed(w);
    expect_shown(w, GPU, "g0! g1");
    restart(w);
    expect_shown(w, GPU, "g0! g1");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_shim_gave_away_the_kubelet_must_not),
        TEST(it_is_taken_as_soon_as_it_is_chosen),
        TEST(a_container_that_outlives_its_pod_keeps_its_device),
        TEST(what_the_kubelet_holds_too_is_healthy),
        TEST(what_was_given_away_both_ways_is_healthy),
        TEST(shared_devices_are_nobodys),
        TEST(who_chose_is_known_after_a_restart),
        TEST(what_a_finished_pod_had_is_free_after_a_restart),
        TEST(also_if_the_daemon_ends_before_that),
        TEST(who_chose_is_told_by_the_pods_annotation_if_the_checkpoint_is_lost),
        TEST(who_chose_is_told_by_the_next_create_at_the_latest),
        TEST(who_asked_last_has_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
