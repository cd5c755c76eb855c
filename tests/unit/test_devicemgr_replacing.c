/* What the kubelet has chosen is replaced once it has let go of what is to be in its place. */
#include "devicemgr/things/limits.h"
#include "shown_world.h"

#define AFTER_MS 10000

/* ---- the world ---- */

/* And that is stored. */
static void lists(struct world *w, uint64_t gpu, const char *devices)
{
    plugin_list(w, gpu, devices);
    if (w->pending)
        committed(w);
    ignore_all(w);
}

/* u1's container was made with g0, which the kubelet chose; it is over, and g0 is lost. */
static void u1_has_lost_g0(struct world *w, const char *devices)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    uint64_t gpu;

    own.replace = true;
    own.replace_after_ms = AFTER_MS;
    own.hold_ms = 2 * AFTER_MS;
    world_fresh_with(w, &own);
    kubelet_holds(w, "u1=" GPU ":g0");
    gpu = u1_has_g0(w, "g0 g1 g2");
    container_removed(w, "c-u1-main");
    lists(w, gpu, devices);
    pass_stored(w, AFTER_MS);
    forget_logs(w);
}

static void wants_again_as(struct world *w, uint64_t number)
{
    create_token(w, number, "u1", GPU ":g0");
}

static void wants_again(struct world *w)
{
    wants_again_as(w, 12);
}

/* The kubelet has written the file for the list as it is now, and has given away so much. */
static void takes(struct world *w, const char *holds)
{
    kubelet_holds(w, holds);
    devicemgr_kubelet_took(w->mgr, w->now_ms, GPU);
    devicemgr_run(w->mgr);
}

/* ---- until it is replaced ---- */

static void the_kubelet_lets_go_of_it_first(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    expect_shown(w, GPU, "g1");
    wants_again(w);
    expect_nothing(w);
    assert_true(devicemgr_replacing(w->mgr, GPU));
    expect_shown(w, GPU, "g1!");
    kubelet_holds(w, "u1=" GPU ":g0"); /* of before, perhaps */
    expect_nothing(w);
    takes(w, "u1=" GPU ":g0");
    expect(w, "allocate g1 *");
    assert_false(devicemgr_replacing(w->mgr, GPU));
    expect_stored(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
    allocated(w, "G=1");
    expect_stored(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    expect_with(w, "verdict 12 forward G=1", "devices.cri-device-shim/vendor.com_gpu",
                "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g1\"]}",
                "asked.devices.cri-device-shim/vendor.com_gpu",
                "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}", NULL);
    expect_shown(w, GPU, "g1!");
    create_answered(w, 12, "c-u1-2");
    container_removed(w, "c-u1-2");
    create_token(w, 13, "u1", GPU ":g0");
    expect_with(w, "verdict 13 forward", "G=1", NULL);
}

static void what_it_gave_away_meanwhile_is_not_used(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1 g2");
    wants_again(w);
    expect_shown(w, GPU, "g1! g2");
    takes(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    expect_nothing(w);
    expect_shown(w, GPU, "g1+ g2!"); /* another is meant for it */
    takes(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    expect(w, "allocate g2 *");
}

static void what_comes_to_be_given_away_later_is_not_used_either(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1 g2!");
    wants_again(w);
    create_cancelled(w, 12);
    takes(w, "u1=" GPU ":g0");
    kubelet_holds(w, "u1=" GPU ":g0 u2=" GPU ":g1"); /* its Allocate was on its way */
    wants_again(w);
    expect_nothing(w);
    create_token(w, 13, "u2", GPU ":g1");
    expect(w, "allocate g1 *");
}

static void a_bridge_that_is_away_is_waited_for(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    wants_again(w);
    pass(w, 2 * AFTER_MS);
    expect(w, "verdict 12 refused 14: container \"main\" of pod \"ns/u1\": resource "
              "vendor.com/gpu: not listed by the plugin: device ids g0; in their place, once the "
              "kubelet gives them to nobody: g1");
    takes(w, "u1=" GPU ":g0"); /* too late for that one */
    expect_nothing(w);
    create_token(w, 13, "u1", GPU ":g0");
    expect(w, "allocate g1 *");
}

/* ---- until it need not be ---- */

static void what_is_back_meanwhile_is_kept(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    wants_again(w);
    expect_shown(w, GPU, "g1!");
    plugin_list(w, w->endpoint, "g0 g1");
    expect_with(w, "verdict 12 forward", NULL);
    expect_shown(w, GPU, "g0+ g1");
}

static void with_its_pod_it_is_over(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    wants_again(w);
    create_cancelled(w, 12);
    expect_shown(w, GPU, "g1!");
    runtime_listed(w, "u2");
    ignore_all(w);
    expect_shown(w, GPU, "g1");
    assert_false(devicemgr_replacing(w->mgr, GPU));
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g1 *");
}

static void with_its_pods_sandbox_it_is_over(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    wants_again(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect_with(w, "verdict 13 refused 8:", "too few devices", NULL);
    sandbox_ended(w, "s-u1");
    expect_with(w, "verdict 12 refused", NULL);
    ignore_all(w);
    expect_shown(w, GPU, "g1");
    create_request(w, 14, "u2", "main", GPU "=1");
    expect(w, "allocate g1 *");
}

static void nobody_who_asks_again_has_it_given_back(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    wants_again(w);
    create_cancelled(w, 12);
    pass_stored(w, REPLACING_MS - 1);
    expect_shown(w, GPU, "g1!");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g1");
}

/* So long as it waits for another resource, it is not given away, nor asked for anew. */
static void who_asks_again_has_it_kept(void **state)
{
    const char *wants = GPU ":g0 " NIC ":n0";
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    nics_up(w, "n0!");
    wants_again(w);
    create_cancelled(w, 12);
    takes(w, "u1=" GPU ":g0");
    for (uint64_t number = 20; number < 24; number++) {
        pass_stored(w, REPLACING_MS / 2);
        ignore_all(w);
        create_token(w, number, "u1", wants);
        assert_false(devicemgr_replacing(w->mgr, GPU));
        expect_shown(w, GPU, "g1!");
        create_cancelled(w, number);
    }
}

/* ---- who else ---- */

static void what_is_meant_for_one_is_not_chosen_for_another(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    wants_again(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect_with(w, "verdict 13 refused 8:", "too few devices", NULL);
    create_token(w, 14, "u3", GPU ":g9"); /* it has lost its own before it had it */
    expect_nothing(w);
    expect_shown(w, GPU, "g1!");
    takes(w, "u1=" GPU ":g0 u3=" GPU ":g9");
    expect(w, "allocate g1 *");
}

static void the_kubelet_is_led_to_others(void **state)
{
    const char *available[] = {"g1", "g2"};
    const struct devicemgr_preference asks = {
        .resource = GPU, .available = available, .available_len = 2, .size = 1, .timeout_ms = 500};
    struct world *w = *state;

    u1_has_lost_g0(w, "g1 g2");
    wants_again(w);
    devicemgr_prefer(w->mgr, w->now_ms, 5, &asks); /* of a list that has g1 healthy */
    devicemgr_run(w->mgr);
    expect(w, "preferred 5: g2");
}

static void one_that_was_never_made_gets_another_too(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    create_token(w, 13, "u2", GPU ":g9");
    takes(w, "u1=" GPU ":g0 u2=" GPU ":g9");
    expect(w, "allocate g1 *");
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 13 forward G=1", "[\"g9\"]", NULL);
}

/* ---- of several, some are lost ---- */

static void what_stays_is_waited_for(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1 g2 g5");
    container_made(w, 13, "u3", "main", GPU ":g5"); /* whose pod the kubelet has forgotten */
    kubelet_holds(w, "u1=" GPU ":g0 u2=" GPU ":g0,g5");
    create_token(w, 14, "u2", GPU ":g0,g5");
    expect(w, "check c-u3-main");
    container_checked(w, false);
    container_removed(w, "c-u3-main");
    expect_shown(w, GPU, "g1! g2 g5+");
    takes(w, "u1=" GPU ":g0 u2=" GPU ":g0,g5");
    expect(w, "allocate g1,g5 *");
}

/* u2's container was made with g1 in the place of g0, and g5. */
static void u2_has_g1_beside_g5(struct world *w, const char *holds)
{
    u1_has_lost_g0(w, "g1 g2 g5");
    kubelet_holds(w, holds);
    create_token(w, 13, "u2", GPU ":g0,g5");
    takes(w, holds);
    expect(w, "allocate g1,g5 *");
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 13 forward", NULL);
    create_answered(w, 13, "c-u2-main");
}

/* It has the same from the kubelet as the init container that had it before. */
static void what_an_init_container_had_besides_is_kept(void **state)
{
    struct world *w = *state;

    u2_has_g1_beside_g5(w, "u2/init=" GPU ":g0,g5 u2=" GPU ":g0,g5");
    container_removed(w, "c-u2-main");
    create_token(w, 14, "u2", GPU ":g0,g5");
    expect_with(w, "verdict 14 forward G=1", NULL);
}

#define TO_INIT "u2/init=" GPU ":g0 u2=" GPU ":g0"

/* It was made with g1 in the place of g0. */
static void u2s_init_container_has_g1(struct world *w)
{
    u1_has_lost_g0(w, "g1");
    sandbox_ended(w, "s-u1");
    kubelet_holds(w, TO_INIT);
    create(w, 13, "u2", "init", GPU ":g0", NULL);
    devicemgr_run(w->mgr);
    takes(w, TO_INIT);
    ignore_all(w);
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 13 forward", NULL);
    create_answered(w, 13, "c-u2-init");
}

/* Its end was not told: it is asked about, and has what its pod's next one may have. */
static void an_init_container_hands_on_what_it_got(void **state)
{
    struct world *w = *state;

    u2s_init_container_has_g1(w);
    create_token(w, 14, "u2", GPU ":g0");
    expect(w, "check c-u2-init");
    container_checked(w, false);
    takes(w, TO_INIT);
    expect(w, "allocate g1 *");
}

/* One list is not enough to know that none of it is in the making. */
static void u2s_init_container_exited_before_a_kill(struct world *w, const char *holds)
{
    u2s_init_container_has_g1(w);
    w->own.replace_after_ms = 0;
    restart(w);
    kubelet_holds(w, holds);
    serve(w, "g1");
    runtime_listed(w, "u2/init!");
    ignore_all(w);
}

/* The kubelet, which asks for the pod's next container with the same device, knows that none is. */
static void so_does_one_of_before_the_shim_was_killed(void **state)
{
    struct world *w = *state;

    u2s_init_container_exited_before_a_kill(w, TO_INIT);
    create_token(w, 14, "u2", GPU ":g0");
    takes(w, TO_INIT);
    expect(w, "allocate g1 *");
}

static void but_not_to_who_was_given_another(void **state)
{
    const char *holds = "u2/init=" GPU ":g0 u2=" GPU ":g5";
    struct world *w = *state;

    u2s_init_container_exited_before_a_kill(w, holds);
    create_token(w, 14, "u2", GPU ":g5");
    takes(w, holds);
    expect_nothing(w);
}

static void what_an_init_container_had_is_back(void **state)
{
    struct world *w = *state;

    u2s_init_container_has_g1(w);
    container_removed(w, "c-u2-init");
    create_token(w, 14, "u2", GPU ":g0");
    takes(w, TO_INIT);
    expect(w, "allocate g1 *");
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 14 forward", NULL);
    create_answered(w, 14, "c-u2-main");
    container_removed(w, "c-u2-main");
    lists(w, w->endpoint, "g0");
    pass_stored(w, AFTER_MS);
    ignore_all(w);
    create_token(w, 15, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

/* ---- what is in the place of another was given away, too ---- */

/* The kubelet's Allocate of g1 for u2 was on its way as u1 got it. */
static void g1_is_given_to_two(struct world *w, const char *devices)
{
    u1_has_lost_g0(w, devices);
    wants_again(w);
    takes(w, "u1=" GPU ":g0");
    expect(w, "allocate g1 *");
    expect_stored(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
    allocated_stored(w, "G=1");
    expect_with(w, "verdict 12 forward", NULL);
    create_answered(w, 12, "c-u1-2");
    kubelet_holds(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    create_token(w, 13, "u2", GPU ":g1");
    expect(w, "check c-u1-2");
    container_checked(w, true);
}

static void who_was_given_it_too_gets_another(void **state)
{
    struct world *w = *state;

    g1_is_given_to_two(w, "g1 g2");
    expect_nothing(w);
    expect_shown(w, GPU, "g1+ g2!");
    takes(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    expect(w, "allocate g2 *");
    allocated_stored(w, "G=2");
    expect_with(w, "verdict 13 forward G=2", "[\"g1\"]", NULL);
    create_answered(w, 13, "c-u2-main");
    container_removed(w, "c-u1-2");
    wants_again_as(w, 14); /* it need not yield */
    expect_with(w, "verdict 14 forward G=1", NULL);
    create_answered(w, 14, "c-u1-3");
    container_removed(w, "c-u2-main");
    create_token(w, 15, "u2", GPU ":g1");
    expect_with(w, "verdict 15 forward G=2", NULL);
}

static void it_is_told_who_has_it(void **state)
{
    struct world *w = *state;

    g1_is_given_to_two(w, "g1 g2");
    pass(w, 2 * AFTER_MS);
    expect(w, "verdict 13 refused 14: container \"main\" of pod \"ns/u2\": resource "
              "vendor.com/gpu: device g1 is held by container \"main\" of pod \"ns/u1\"; in their "
              "place, once the kubelet gives them to nobody: g2");
}

static void without_another_it_is_refused(void **state)
{
    struct world *w = *state;

    g1_is_given_to_two(w, "g1");
    expect_with(w, "verdict 13 refused 14", "which still runs", NULL);
}

/* Its pod was deleted by force: the kubelet has given g5 to another, and g1 just as it got that. */
static void who_has_what_stays_besides_is_asked_about_once(void **state)
{
    struct world *w = *state;

    u2_has_g1_beside_g5(w, "u1=" GPU ":g0 u2=" GPU ":g0,g5");
    kubelet_holds(w, "u1=" GPU ":g0 u3=" GPU ":g1,g5");
    create_token(w, 14, "u3", GPU ":g1,g5");
    expect(w, "check c-u2-main");
    container_checked(w, true);
    expect_with(w, "verdict 14 refused 14", NULL);
}

/* Containers that nobody has told of yet may run with it. */
static void nothing_is_meant_before_the_first_list(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.replace = true;
    own.hold_ms = AFTER_MS;
    world_fresh_with(w, &own);
    world_fresh(w);
    plugin_up(w, GPU, "gpu.sock", "g1", false, false);
    create_token(w, 12, "u1", GPU ":g0");
    expect_shown(w, GPU, "g1");
    runtime_listed(w, "u1");
    expect_shown(w, GPU, "g1!");
}

/* ---- a shim that is killed ---- */

static void killed_before_it_begins_anew(void **state)
{
    struct world *w = *state;

    u1_has_lost_g0(w, "g1");
    wants_again(w);
    expect_shown(w, GPU, "g1!");
    restart(w);
    kubelet_holds(w, "u1=" GPU ":g0");
    serve(w, "g1");
    runtime_listed(w, "u1");
    pass_stored(w, AFTER_MS + OUTCOME_MS);
    runtime_listed(w, "u1");
    ignore_all(w);
    expect_shown(w, GPU, "g0+ g1");
    wants_again(w);
    expect_nothing(w);
    takes(w, "u1=" GPU ":g0");
    expect(w, "allocate g1 *");
}

/* Its checkpoint is gone: the container says what it has, and in the place of what. */
static void what_a_container_says_is_believed(void **state)
{
    struct devicemgr_annotation says[] = {
        {"devices.cri-device-shim/vendor.com_gpu",
         "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g1\"]}"},
        {"asked.devices.cri-device-shim/vendor.com_gpu",
         "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}"},
    };
    const struct devicemgr_sandbox sandbox = {"s-u1", "u1", "ns", "u1", 0, true, NULL, 0};
    const struct devicemgr_container container = {.id = "c-u1-main",
                                                  .sandbox_id = "s-u1",
                                                  .name = "main",
                                                  .running = true,
                                                  .annotations = says,
                                                  .annotations_len = 2};
    struct world *w = *state;

    world_fresh(w);
    plugin_up(w, GPU, "gpu.sock", "g1 g2", false, false);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
    expect_stored(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    expect_shown(w, GPU, "g1! g2");
    create_token(w, 12, "u2", GPU ":g1");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    ignore_all(w);
    container_removed(w, "c-u1-main");
    create_token(w, 13, "u1", GPU ":g0");
    expect(w, "allocate g1 *");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_kubelet_lets_go_of_it_first),
        TEST(what_it_gave_away_meanwhile_is_not_used),
        TEST(what_comes_to_be_given_away_later_is_not_used_either),
        TEST(a_bridge_that_is_away_is_waited_for),
        TEST(what_is_back_meanwhile_is_kept),
        TEST(with_its_pod_it_is_over),
        TEST(with_its_pods_sandbox_it_is_over),
        TEST(who_asks_again_has_it_kept),
        TEST(nobody_who_asks_again_has_it_given_back),
        TEST(what_is_meant_for_one_is_not_chosen_for_another),
        TEST(the_kubelet_is_led_to_others),
        TEST(one_that_was_never_made_gets_another_too),
        TEST(what_stays_is_waited_for),
        TEST(what_an_init_container_had_besides_is_kept),
        TEST(an_init_container_hands_on_what_it_got),
        TEST(so_does_one_of_before_the_shim_was_killed),
        TEST(but_not_to_who_was_given_another),
        TEST(what_an_init_container_had_is_back),
        TEST(who_was_given_it_too_gets_another),
        TEST(it_is_told_who_has_it),
        TEST(without_another_it_is_refused),
        TEST(who_has_what_stays_besides_is_asked_about_once),
        TEST(nothing_is_meant_before_the_first_list),
        TEST(killed_before_it_begins_anew),
        TEST(what_a_container_says_is_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
