/* The kubelet's GetPreferredAllocation, passed on. */
#include <stdio.h>
#include <stdlib.h>

#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

#define TIMEOUT_MS 500

static void ask(struct world *w, uint64_t number, const char *resource, const char *const *ids,
                size_t len, size_t must_len, size_t size, uint64_t timeout_ms)
{
    const struct devicemgr_preference asked = {resource, ids, len, ids, must_len, size, timeout_ms};

    devicemgr_prefer(w->mgr, w->now_ms, number, &asked);
}

/* "g0,g1": prefers `size` of these, with the first `must_len` of them. */
static void prefer_with(struct world *w, uint64_t number, const char *resource,
                        const char *available, size_t must_len, size_t size, uint64_t timeout_ms)
{
    const char *ids[16];
    char *words = strdup(available), *rest = NULL;
    size_t len = 0;

    for (char *id = strtok_r(words, ",", &rest); id; id = strtok_r(NULL, ",", &rest))
        ids[len++] = id;
    ask(w, number, resource, ids, len, must_len, size, timeout_ms);
    free(words);
    devicemgr_run(w->mgr);
}

static void prefer(struct world *w, uint64_t number, const char *available, size_t size)
{
    prefer_with(w, number, GPU, available, 0, size, TIMEOUT_MS);
}

static uint64_t gpu_up(struct world *w)
{
    return plugin_up(w, GPU, "gpu.sock", "g0 g1 g2 g3", false, true);
}

static void prefer_cancelled(struct world *w, uint64_t number)
{
    devicemgr_prefer_cancelled(w->mgr, number);
    devicemgr_run(w->mgr);
}

static void prefer_failed(struct world *w, int code)
{
    devicemgr_preferred(w->mgr, w->now_ms, w->call, code, "no", NULL);
    devicemgr_run(w->mgr);
}

/* ---- the plugin's answer ---- */

static void the_plugin_is_asked_and_its_answer_passed_on(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer_with(w, 5, GPU, "g0,g1,g3", 1, 2, TIMEOUT_MS);
    expect(w, "prefer 2 of g0,g1,g3 with g0 in 500ms");
    expect_nothing(w);
    preferred(w, "g0,g3");
    expect(w, "preferred 5: g0,g3");
    preferred(w, "g0,g3"); /* a second answer is none */
    pass(w, TIMEOUT_MS);
    expect_nothing(w);
    assert_int_equal(logged(w, "GetPreferredAllocation"), 0);
}

static void only_what_the_kubelet_can_take_is_passed_on(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0,g1,g2", 2);
    expect(w, "prefer *");
    preferred(w, "g3,g2,g2,nonsense,g1,g0"); /* in the plugin's order, g3 is not available */
    expect(w, "preferred 5: g2,g1");
    prefer(w, 6, "g0,g1,g2", 2);
    expect(w, "prefer *");
    preferred(w, "");
    expect(w, "preferred 6: nothing");
    prefer(w, 7, "g0", 0);
    expect(w, "prefer *");
    preferred(w, "g0");
    expect(w, "preferred 7: nothing");
    prefer(w, 8, "g0,g1,g2", 1);
    expect(w, "prefer *");
    preferred(w, "g1|g2"); /* of several the first counts */
    expect(w, "preferred 8: g1");
}

static void answers_find_their_questions(void **state)
{
    struct world *w = *state;
    uint64_t first;

    gpu_up(w);
    prefer(w, 5, "g0,g1", 1);
    first = w->call;
    prefer(w, 6, "g2,g3", 1);
    ignore_all(w);
    preferred(w, "g3,g0");
    expect(w, "preferred 6: g3");
    w->call = first;
    preferred(w, "g3,g0");
    expect(w, "preferred 5: g0");
}

/* ---- devices whose containers have not ended ---- */

/* A pod's container runs with them; the kubelet may take that pod for gone. */
static void hold(struct world *w, const char *token)
{
    container_made(w, 11, "u1", "main", token);
    ignore_all(w);
}

static void what_is_held_is_left_out(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    hold(w, GPU ":g0");
    prefer(w, 5, "g0,g1,g2", 2);
    expect(w, "prefer 2 of g1,g2 with none in 500ms");
    preferred(w, "g0,g2"); /* a short answer, without g0, which the kubelet would fill up with it */
    expect(w, "preferred 5: g2,g1");
    prefer(w, 6, "g0,g3,g2", 1);
    expect(w, "prefer *");
    preferred(w, "");
    expect(w, "preferred 6: g3");
}

static void what_must_be_included_is_not(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    hold(w, GPU ":g1,g0");
    prefer_with(w, 5, GPU, "g0,g1,g2,g3", 1, 2, TIMEOUT_MS); /* g0 was its init container's */
    expect(w, "prefer 2 of g0,g2,g3 with g0 in 500ms");
    preferred(w, "");
    expect(w, "preferred 5: g0,g2");
}

static void where_nobody_can_be_asked_it_is_left_out_too(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 g1 g2 g3", false, false);
    hold(w, GPU ":g1");
    prefer_with(w, 5, GPU, "g3,g1,g2", 1, 2, TIMEOUT_MS);
    expect(w, "preferred 5: g3,g2");
    plugin_lost(w, w->endpoint, "gone");
    ignore_all(w);
    prefer(w, 6, "g1,g2", 1);
    expect(w, "preferred 6: g2");
    expect_nothing(w);
}

static void a_late_or_failed_answer_leaves_it_out_too(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    hold(w, GPU ":g0");
    prefer(w, 5, "g0,g1", 1);
    expect(w, "prefer *");
    prefer_failed(w, 13);
    expect(w, "preferred 5: g1");
    prefer(w, 6, "g0,g1", 1);
    expect(w, "prefer *");
    pass(w, TIMEOUT_MS);
    expect(w, "cancel");
    expect(w, "preferred 6: g1");
}

static void too_few_others_leave_the_choice_to_the_plugin(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    hold(w, GPU ":g0");
    prefer(w, 5, "g0,g1", 2);
    expect(w, "prefer 2 of g0,g1 with none in 500ms");
    preferred(w, "g0");
    expect(w, "preferred 5: g0");
}

static void what_an_ended_container_had_is_free(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    hold(w, GPU ":g0");
    runtime_listed(w, "u1/main!");
    ignore_all(w);
    prefer(w, 5, "g0,g1", 1);
    expect(w, "prefer 1 of g0,g1 with none in 500ms");
}

/* A kubelet that starts is shown it as healthy while its pod may come back, and takes it for free
 * once that is deleted. */
static void what_a_plugin_that_serves_has_lost_is_left_out(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpu_up(w);

    hold(w, GPU ":g0");
    runtime_listed(w, "u1/main!");
    plugin_list(w, gpu, "g1 g2! g3");
    ignore_all(w);
    prefer(w, 5, "g0,g1,g2", 1);
    expect(w, "prefer 1 of g1 with none in 500ms");
    prefer_failed(w, 13);
    expect(w, "preferred 5: g1");
    prefer(w, 6, "g0,g2", 1); /* there are no others */
    expect(w, "prefer 1 of g0,g2 with none in 500ms");
    preferred(w, "");
    expect(w, "preferred 6: nothing");
    plugin_lost(w, gpu, "gone"); /* nobody can tell */
    ignore_all(w);
    prefer(w, 7, "g0,g1", 1);
    expect(w, "preferred 7: nothing");
}

static void shared_devices_are_never_left_out(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.exclusive = false;
    world_fresh_with(w, &own);
    gpu_up(w);
    hold(w, GPU ":g0");
    prefer(w, 5, "g0,g1", 1);
    expect(w, "prefer 1 of g0,g1 with none in 500ms");
}

/* ---- nothing, at once ---- */

static void an_unknown_resource_has_no_preference(void **state)
{
    struct world *w = *state;

    prefer(w, 5, "g0", 1);
    expect(w, "preferred 5: nothing");
    expect_nothing(w);
}

static void a_built_in_device_has_no_preference(void **state)
{
    struct devicemgr_builtin_device device = {.id = "x",
                                              .healthy = true,
                                              .host_path = "/dev/x",
                                              .container_path = "/dev/x",
                                              .permissions = "rw"};
    struct world *w = *state;

    devicemgr_builtin(w->mgr, w->now_ms, GPU, &device, 1);
    prefer(w, 5, "x", 1);
    expect(w, "preferred 5: nothing");
    expect_nothing(w);
}

static void a_plugin_that_does_not_offer_it_is_not_asked(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    prefer(w, 5, "g0", 1);
    expect(w, "preferred 5: nothing");
    expect_nothing(w);
}

static void a_plugin_that_is_away_is_not_asked(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    plugin_lost(w, w->endpoint, "killed");
    ignore_all(w);
    prefer(w, 5, "g0", 1); /* it is dialled anew */
    expect(w, "preferred 5: nothing");
    plugin_lost(w, w->endpoint, "refused");
    prefer(w, 6, "g0", 1);
    expect(w, "preferred 6: nothing");
    expect_nothing(w);
}

static void without_any_time_it_is_not_asked(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer_with(w, 5, GPU, "g0", 0, 1, 0);
    expect(w, "preferred 5: nothing");
    expect_nothing(w);
}

static void there_is_a_most_of_questions_at_once(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    for (uint64_t i = 0; i < PREFERS_MAX; i++) {
        prefer(w, 100 + i, "g0", 1);
        expect(w, "prefer *");
    }
    prefer(w, 5, "g0", 1);
    expect(w, "preferred 5: nothing");
    prefer_cancelled(w, 100);
    expect(w, "cancel");
    prefer(w, 6, "g0", 1);
    expect(w, "prefer *");
}

/* ---- nothing, later ---- */

static void a_plugin_that_fails_has_no_preference(void **state)
{
    struct world *w = *state;
    V1beta1__PreferredAllocationResponse none = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;

    gpu_up(w);
    prefer(w, 5, "g0", 1);
    expect(w, "prefer *");
    prefer_failed(w, 2);
    expect(w, "preferred 5: nothing");
    prefer(w, 6, "g0", 1); /* it is asked again: it was quick */
    expect(w, "prefer *");
    devicemgr_preferred(w->mgr, w->now_ms, w->call, 0, NULL, &none);
    devicemgr_run(w->mgr);
    expect(w, "preferred 6: nothing");
    expect_nothing(w);
}

static void a_plugin_lost_meanwhile_has_no_preference(void **state)
{
    struct world *w = *state;

    plugin_up(w, NIC, "nic.sock", "n0", false, true);
    gpu_up(w);
    prefer(w, 5, "g0", 1);
    expect(w, "prefer *");
    prefer_with(w, 6, NIC, "n0", 0, 1, TIMEOUT_MS);
    expect(w, "prefer *");
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open *");
    expect(w, "preferred 5: nothing");
    expect_nothing(w);
    preferred(w, "n0"); /* the other plugin is there */
    expect(w, "preferred 6: n0");
    pass(w, TIMEOUT_MS);
    expect_nothing(w);
}

static void a_plugin_that_registers_anew_meanwhile_has_none(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0", 1);
    expect(w, "prefer *");
    plugin_register(w, 2, GPU, "new.sock");
    expect(w, "close");
    expect(w, "open *");
    expect(w, "preferred 5: nothing");
}

static void a_late_plugin_is_not_waited_for(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0", 1);
    expect(w, "prefer *");
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + TIMEOUT_MS);
    pass(w, TIMEOUT_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "cancel");
    expect(w, "preferred 5: nothing");
    preferred(w, "g0"); /* too late */
    expect_nothing(w);
}

static void a_question_may_have_no_end(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer_with(w, 5, GPU, "g0", 0, 1, UINT64_MAX);
    expect(w, "prefer *");
    pass(w, GRACE_MS);
    expect_nothing(w);
    preferred(w, "g0");
    expect(w, "preferred 5: g0");
}

/* ---- rest ---- */

static void a_late_plugin_is_not_asked_again_for_a_while(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0", 1);
    prefer(w, 6, "g0", 1);
    pass(w, TIMEOUT_MS);
    assert_int_equal(logged(w, "resource vendor.com/gpu: GetPreferredAllocation of plugin endpoint "
                               "\"gpu.sock\" was not answered within 500ms; the kubelet goes on "
                               "without it, and it is not asked again for 30s"),
                     1);
    ignore_all(w);
    pass(w, PREFER_REST_MS - 1);
    prefer(w, 7, "g0", 1);
    expect(w, "preferred 7: nothing");
    expect_nothing(w);
    pass(w, 1);
    prefer(w, 8, "g0", 1);
    expect(w, "prefer *");
}

static void one_that_the_connection_calls_late_rests_too(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0", 1);
    expect(w, "prefer *");
    prefer_failed(w, 4); /* its deadline came a little sooner than ours */
    expect(w, "preferred 5: nothing");
    prefer(w, 6, "g0", 1);
    expect(w, "preferred 6: nothing");
    expect_nothing(w);
}

static void a_plugin_that_registers_anew_is_asked_again(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0", 1);
    pass(w, TIMEOUT_MS);
    ignore_all(w);
    gpu_up(w);
    prefer(w, 6, "g0", 1);
    expect(w, "prefer *");
}

static void a_rest_is_one_resources(void **state)
{
    struct world *w = *state;

    plugin_up(w, NIC, "nic.sock", "n0", false, true);
    gpu_up(w);
    prefer(w, 5, "g0", 1);
    pass(w, TIMEOUT_MS);
    ignore_all(w);
    prefer_with(w, 6, NIC, "n0", 0, 1, TIMEOUT_MS);
    expect(w, "prefer *");
}

/* ---- the kubelet does not wait any more ---- */

static void a_cancelled_question_is_not_answered(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0", 1);
    expect(w, "prefer *");
    prefer_cancelled(w, 5);
    expect(w, "cancel");
    preferred(w, "g0");
    pass(w, TIMEOUT_MS);
    prefer_cancelled(w, 5);
    expect_nothing(w);
    assert_int_equal(logged(w, "not asked again"), 0); /* it was not late */
    prefer(w, 5, "g0", 1);
    expect(w, "prefer *");
}

/* Events that come before the manager runs: nobody has been asked yet, and nobody is. */
static void what_is_over_before_it_is_asked_is_not_asked(void **state)
{
    const char *const ids[] = {"g0"};
    struct world *w = *state;

    gpu_up(w);
    ask(w, 5, GPU, ids, 1, 0, 1, TIMEOUT_MS);
    prefer_cancelled(w, 5);
    expect_nothing(w);
    ask(w, 6, GPU, ids, 1, 0, 1, TIMEOUT_MS);
    ask(w, 7, GPU, ids, 1, 0, 1, TIMEOUT_MS);
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open *");
    expect(w, "preferred 6: nothing");
    expect(w, "preferred 7: nothing");
    plugin_options(w, w->endpoint, false, true);
    plugin_list(w, w->endpoint, "g0 g1 g2 g3");
    ask(w, 8, GPU, ids, 1, 0, 1, TIMEOUT_MS);
    devicemgr_tick(w->mgr, w->now_ms + TIMEOUT_MS);
    devicemgr_run(w->mgr);
    expect(w, "preferred 8: nothing");
    expect_nothing(w);
}

static void an_answer_on_its_way_is_called_off(void **state)
{
    const char *const ids[] = {"g0"};
    struct world *w = *state;

    ask(w, 5, GPU, ids, 1, 0, 1, TIMEOUT_MS);
    ask(w, 6, GPU, ids, 1, 0, 1, TIMEOUT_MS);
    expect_nothing(w); /* no port is called from inside an event */
    prefer_cancelled(w, 5);
    expect(w, "preferred 6: nothing");
    expect_nothing(w);
}

static void a_shim_that_ends_owes_no_answer(void **state)
{
    struct world *w = *state;

    gpu_up(w);
    prefer(w, 5, "g0,g1", 1);
    ignore_all(w);
    world_fresh(w);
    expect_nothing(w);
}

/* ---- size ---- */

#define MANY 100000

/* Both lists are long: work that grows with their product would take minutes. */
static void a_long_answer_to_a_long_question_is_filtered(void **state)
{
    struct world *w = *state;
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse one =
        V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse *list[] = {&one};
    char(*texts)[16] = calloc(MANY, sizeof *texts);
    char *listed = calloc(MANY, sizeof *texts), *end = listed;
    const char **ids = calloc(MANY, sizeof *ids);

    for (size_t i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof texts[i], "g%zu", i);
        ids[i] = texts[i];
        end += sprintf(end, "%s ", texts[i]);
    }
    plugin_up(w, GPU, "gpu.sock", listed, false, true);
    ask(w, 5, GPU, ids, MANY / 2, 0, 2, TIMEOUT_MS);
    devicemgr_run(w->mgr);
    expect(w, "prefer 2 *");
    for (size_t i = 0; i < MANY; i++)
        ids[i] = texts[MANY - 1 - i];
    one.deviceids = (char **)ids;
    one.n_deviceids = MANY;
    response.container_responses = list;
    response.n_container_responses = 1;
    devicemgr_preferred(w->mgr, w->now_ms, w->call, 0, NULL, &response);
    devicemgr_run(w->mgr);
    expect(w, "preferred 5: g49999,g49998");
    free(ids);
    free(listed);
    free(texts);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_plugin_is_asked_and_its_answer_passed_on),
        TEST(only_what_the_kubelet_can_take_is_passed_on),
        TEST(answers_find_their_questions),
        TEST(what_is_held_is_left_out),
        TEST(what_must_be_included_is_not),
        TEST(where_nobody_can_be_asked_it_is_left_out_too),
        TEST(a_late_or_failed_answer_leaves_it_out_too),
        TEST(too_few_others_leave_the_choice_to_the_plugin),
        TEST(what_an_ended_container_had_is_free),
        TEST(what_a_plugin_that_serves_has_lost_is_left_out),
        TEST(shared_devices_are_never_left_out),
        TEST(an_unknown_resource_has_no_preference),
        TEST(a_built_in_device_has_no_preference),
        TEST(a_plugin_that_does_not_offer_it_is_not_asked),
        TEST(a_plugin_that_is_away_is_not_asked),
        TEST(without_any_time_it_is_not_asked),
        TEST(there_is_a_most_of_questions_at_once),
        TEST(a_plugin_that_fails_has_no_preference),
        TEST(a_plugin_lost_meanwhile_has_no_preference),
        TEST(a_plugin_that_registers_anew_meanwhile_has_none),
        TEST(a_late_plugin_is_not_waited_for),
        TEST(a_question_may_have_no_end),
        TEST(a_late_plugin_is_not_asked_again_for_a_while),
        TEST(one_that_the_connection_calls_late_rests_too),
        TEST(a_plugin_that_registers_anew_is_asked_again),
        TEST(a_rest_is_one_resources),
        TEST(a_cancelled_question_is_not_answered),
        TEST(what_is_over_before_it_is_asked_is_not_asked),
        TEST(an_answer_on_its_way_is_called_off),
        TEST(a_shim_that_ends_owes_no_answer),
        TEST(a_long_answer_to_a_long_question_is_filtered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
