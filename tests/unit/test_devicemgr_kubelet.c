/* What the core knows of the kubelet: its checkpoint, beside the tokens that come. */
#include "devicemgr_world.h"

#define WARNED "that the kubelet's checkpoint does not give it"

/* u1's "main" is made with a token for g0, some time after the file was read. */
static void made_unproven(struct world *w)
{
    gpus_up(w, "g0 g1");
    kubelet_holds(w, "");
    pass(w, 10);
    container_made(w, 11, "u1", "main", GPU ":g0");
    assert_int_equal(logged(w, WARNED), 0);
}

static void a_token_that_the_kubelet_has_is_its_containers(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g9 g10");
    kubelet_holds(w, "u1=" GPU ":g10,g9");
    container_made(w, 11, "u1", "main", GPU ":g9,g10");
    kubelet_holds(w, ""); /* whatever becomes of it */
    assert_int_equal(logged(w, WARNED), 0);
}

static void a_token_is_looked_for_in_a_later_reading(void **state)
{
    struct world *w = *state;

    made_unproven(w);
    kubelet_holds_read(w, w->now_ms - 5, ""); /* began before the create came: says nothing */
    kubelet_holds_read(w, 0, "");             /* there is no file */
    pass(w, 1);
    kubelet_holds(w, "u1=" GPU ":g0");
    kubelet_holds(w, "");
    assert_int_equal(logged(w, WARNED), 0);
}

static void a_token_of_another_container_is_warned_of_once(void **state)
{
    const char *const others[] = {"",
                                  "u1=" GPU ":g1",
                                  "u1=" GPU ":g0,g1",
                                  "u1/other=" GPU ":g0",
                                  "u2=" GPU ":g0",
                                  "u1=" NIC ":g0"};
    struct world *w = *state;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        world_fresh_listed(w);
        made_unproven(w);
        pass(w, 1);
        kubelet_holds(w, others[i]);
        assert_int_equal(
            logged(w, "container \"main\" of pod \"ns/u1\" came with a token for resource "
                      "vendor.com/gpu, device ids g0, " WARNED),
            1);
        kubelet_holds(w, others[i]);
        create_token(w, 12, "u1", GPU ":g0"); /* it is not refused */
        expect(w, "verdict 12 forward*");
        pass(w, 1);
        kubelet_holds(w, others[i]);
        assert_int_equal(logged(w, WARNED), 0);
    }
}

/* A pod that is over goes from the file, too. */
static void a_container_that_ended_is_not_warned_of(void **state)
{
    struct world *w = *state;

    made_unproven(w);
    container_removed(w, "c-u1-main");
    pass(w, 1);
    kubelet_holds(w, "");
    assert_int_equal(logged(w, WARNED), 0);
    create_token(w, 12, "u1", GPU ":g0"); /* its next one is */
    pass(w, 1);
    kubelet_holds(w, "");
    assert_int_equal(logged(w, WARNED), 1);
}

static void what_the_shim_chose_is_not_the_kubelets_to_have(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    pass(w, 1);
    kubelet_holds(w, "");
    assert_int_equal(logged(w, WARNED), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_that_the_kubelet_has_is_its_containers),
        TEST(a_token_is_looked_for_in_a_later_reading),
        TEST(a_token_of_another_container_is_warned_of_once),
        TEST(a_container_that_ended_is_not_warned_of),
        TEST(what_the_shim_chose_is_not_the_kubelets_to_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
