/* devicemgr/books/happened.c: what who watches the node is told, and when. */
#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "devicemgr/things/limits.h"

static void the_life_of_a_plugin_is_told(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    plugin_register(w, 1, GPU, "gpu.sock");
    expect_no_event(w); /* it is being dialled */
    endpoint = w->endpoint;
    plugin_options(w, endpoint, false, false);
    plugin_list(w, endpoint, "g0");
    expect_event(w, "registered " GPU " [] -/-/- -: gpu.sock");
    expect_no_event(w); /* that it lists is no news */
    plugin_list(w, endpoint, "g0 g1");
    expect_no_event(w);
    plugin_lost(w, endpoint, "end of stream");
    expect_event(w, "lost " GPU " [] -/-/- -: end of stream");
    plugin_lost(w, w->endpoint, "refused"); /* it was dialled once more */
    expect_no_event(w);
    plugin_register(w, 2, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_event(w, "registered " GPU);
    plugin_list(w, w->endpoint, "g0");
    expect_event(w, "back " GPU);
    plugin_lost(w, w->endpoint, "end of stream");
    plugin_lost(w, w->endpoint, "refused");
    expect_event(w, "lost " GPU);
    pass(w, GRACE_MS);
    expect_event(w, "removed " GPU);
    expect_no_event(w);
}

static void one_that_does_not_list_is_lost(void **state)
{
    struct world *w = *state;

    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_event(w, "registered " GPU);
    pass(w, FIRST_LIST_MS);
    expect_event(w, "lost " GPU " [] -/-/- -: no device list within 30s");
    plugin_list(w, w->endpoint, "g0");
    expect_event(w, "again back " GPU);
    expect_no_event(w);
}

static void devices_are_told_when_a_container_has_them_and_when_it_ended(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    ignore_all(w);
    container_made(w, 1, "u1", "main", GPU ":g0,g1");
    expect_event(w, "allocated " GPU " [g0,g1] ns/u1/main -: -");
    expect_no_event(w);
    container_removed(w, "c-u1-main");
    expect_event(w, "released " GPU " [g0,g1] ns/u1/main -: -");
    expect_no_event(w);
    create_token(w, 2, "u1", GPU ":g0,g1");
    create_answered(w, 2, "c-u1-again");
    expect_event(w, "allocated " GPU " [g0,g1] ns/u1/main");
    sandbox_stopped(w, "s-u1");
    expect_event(w, "released " GPU " [g0,g1] ns/u1/main");
    sandbox_removed(w, "s-u1");
    runtime_listed(w, "");
    expect_no_event(w);
}

/* Nothing was ever made with them. */
static void a_create_that_is_given_up_was_no_allocation(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    ignore_all(w);
    create_token(w, 1, "u1", GPU ":g0");
    create_cancelled(w, 1);
    for (struct world_line *line = w->events; line; line = line->next)
        assert_ptr_equal(strstr(line->text, "again released"), line->text);
    ignore_all(w);
    container_forwarded(w, 2, "u2", "main", GPU ":g1");
    create_answered(w, 2, NULL);
    for (struct world_line *line = w->events; line; line = line->next)
        assert_ptr_equal(strstr(line->text, "again released"), line->text);
}

static void a_refusal_is_told_with_its_reason(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0! g1", false, false);
    ignore_all(w);
    create_token(w, 1, "u1", GPU ":g0");
    pass(w, HOLD_MS);
    expect_event(w, "refused " GPU " [g0] ns/u1/main devices-unhealthy: container \"main\" of pod");
    expect_no_event(w);
}

/* Who watches knows what was told before. */
static void what_an_earlier_process_may_have_told_is_told_again(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    ignore_all(w);
    world_restart(w);
    plugin_back(w, "g0 g1");
    expect_event(w, "again back " GPU);
    runtime_listed(w, "u1/main");
    expect_event(w, "again allocated " GPU " [g0] ns/u1/main");
    expect_no_event(w);
    world_restart(w);
    ignore_all(w);
    runtime_listed(w, "u1");
    expect_no_event(w); /* it may be in the making */
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1");
    expect_event(w, "again released " GPU " [g0] ns/u1/main");
}

static void as_many_ids_as_fit_are_named(void **state)
{
    struct world *w = *state;
    char list[1024] = "", token[1024] = GPU ":", *end = token + strlen(token);

    for (int i = 0; i < DEVICEMGR_EVENT_IDS_MAX + 6; i++) {
        snprintf(list + strlen(list), sizeof list - strlen(list), "%sg%d", i > 0 ? " " : "", i);
        end += sprintf(end, "%sg%d", i > 0 ? "," : "", i);
    }
    gpus_up(w, list);
    ignore_all(w);
    container_made(w, 1, "u1", "main", token);
    assert_non_null(w->events);
    assert_null(strstr(w->events->text, ",g64"));
    assert_non_null(strstr(w->events->text, ",g63]"));
}

/* ---- drivers and claims ---- */

static void a_driver_comes_and_goes(void **state)
{
    struct world *w = *state;

    driver_register(w, 1, DRIVER, "/x/1.sock");
    expect_no_event(w); /* it cannot be called yet */
    driver_connected(w, 1);
    expect_event(w, "driver-came " DRIVER " [] -/-/- -: /x/1.sock");
    driver_register(w, 2, DRIVER, "/x/2.sock");
    driver_connected(w, 2);
    driver_lost(w, 1, "closed");
    expect_no_event(w); /* it was there all the time */
    driver_lost(w, 2, "closed");
    expect_event(w, "driver-went " DRIVER " [] -/-/- -: closed");
    devicemgr_driver_wiped(w->mgr, w->now_ms, DRIVER);
    devicemgr_run(w->mgr);
    expect_event(w, "slices-wiped " DRIVER " [] -/-/- -: -");
    expect_no_event(w);
    ignore_all(w);
}

static void what_becomes_of_a_claim_is_told_once_it_is_durable(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    expect_event(w, "driver-came " DRIVER);
    prepare(w, 5, "c1");
    committed(w);
    claim_answered(w, "gpu-0");
    expect_no_event(w);
    committed(w);
    expect_event(w, "claim-prepared " DRIVER " [p/gpu-0] -/-/- c1: -");
    prepare(w, 6, "c1"); /* the kubelet has restarted */
    committed(w);
    claim_answered(w, "gpu-0");
    committed(w);
    expect_event(w, "again claim-prepared " DRIVER " [p/gpu-0] -/-/- c1: -");
    driver_lost(w, 1, "closed");
    expect_event(w, "driver-went " DRIVER);
    unprepare(w, 7, "c1");
    expect_no_event(w);
    committed(w);
    expect_event(w, "claim-owed " DRIVER " [p/gpu-0] -/-/- c1: -");
    driver_connected(w, 1);
    expect_event(w, "driver-came " DRIVER);
    claim_unprepared(w);
    expect_no_event(w);
    committed(w);
    expect_event(w, "claim-unprepared " DRIVER " [p/gpu-0] -/-/- c1: -");
    expect_no_event(w);
    ignore_all(w);
}

static void a_driver_of_before_a_restart_may_have_been_told(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    expect_event(w, "driver-came " DRIVER);
    world_restart(w);
    driver_register(w, 2, DRIVER, "/x/1.sock");
    driver_connected(w, 2);
    expect_event(w, "again driver-came " DRIVER);
    driver_lost(w, 2, "closed");
    expect_event(w, "driver-went " DRIVER);
    driver_connected(w, 2);
    expect_event(w, "driver-came " DRIVER);
    ignore_all(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_life_of_a_plugin_is_told, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(one_that_does_not_list_is_lost, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(
            devices_are_told_when_a_container_has_them_and_when_it_ended, world_setup,
            world_teardown),
        cmocka_unit_test_setup_teardown(a_create_that_is_given_up_was_no_allocation, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_refusal_is_told_with_its_reason, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(what_an_earlier_process_may_have_told_is_told_again,
                                        world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(as_many_ids_as_fit_are_named, world_setup, world_teardown),
#define CLAIMS_TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)
        CLAIMS_TEST(a_driver_comes_and_goes),
        CLAIMS_TEST(what_becomes_of_a_claim_is_told_once_it_is_durable),
        CLAIMS_TEST(a_driver_of_before_a_restart_may_have_been_told),
#undef CLAIMS_TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
