/* Whom a change concerns is looked at again, and nobody else. */
#include <stdio.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr_world.h"

#define MANY 300

/* How many creates were looked at since the last call. */
static uint64_t looks(struct world *w)
{
    static uint64_t before;
    uint64_t since = w->mgr->state.wakes.looks - before;

    before = w->mgr->state.wakes.looks;
    return since;
}

/* Pods "u0", "u1", ... each want their device of GPU, whose plugin is away. */
static void many_wait_for_a_plugin(struct world *w)
{
    char uid[16], token[64];

    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(uid, sizeof uid, "u%u", i);
        snprintf(token, sizeof token, GPU ":g%u", i);
        create_token(w, 1000 + i, uid, token);
    }
    ignore_all(w);
    looks(w);
}

static void what_is_elsewhere_wakes_nobody(void **state)
{
    struct world *w = *state;
    uint64_t nic;

    many_wait_for_a_plugin(w);
    nic = nics_up(w, "n0 n1");
    container_made(w, 1, "x1", "main", NIC ":n0");
    looks(w);
    plugin_list(w, nic, "n0 n1!");
    sandbox_ran(w, "x2", "s-x2", 0);
    container_removed(w, "c-x1-main");
    sandbox_stopped(w, "s-x1");
    sandbox_removed(w, "s-x1");
    committed(w);
    plugin_lost(w, nic, "killed");
    pass(w, HOLD_MS / 2);
    assert_int_equal(looks(w), 0);
}

static void a_plugin_wakes_those_who_want_it(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    plugin_register(w, 1, NIC, "nic.sock");
    plugin_options(w, w->endpoint, false, false);
    many_wait_for_a_plugin(w);
    gpu = w->endpoint;
    create_token(w, 11, "other", NIC ":n0");
    looks(w);
    plugin_list(w, gpu, "g0 g1");
    assert_int_equal(looks(w), MANY);
    expect(w, "allocate g0 *");
    expect(w, "allocate g1 *");
    expect(w, "commit resource *");
    committed(w);
    looks(w);
    allocated(w, "A=1");
    assert_int_equal(looks(w), 1);
    committed(w);
    assert_in_range(looks(w), 1, 2);
    sandbox_stopping(w, "s-u7"); /* its pod's, and no other */
    assert_int_equal(looks(w), 1);
}

static void a_holder_wakes_those_who_want_its_devices(void **state)
{
    char uid[16], holder[16], id[32], token[64], list[MANY * 8] = "";
    struct world *w = *state;

    for (unsigned i = 0; i < MANY; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "g%u ", i);
    gpus_up(w, list);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(uid, sizeof uid, "u%u", i);
        snprintf(holder, sizeof holder, "h%u", i);
        snprintf(token, sizeof token, GPU ":g%u", i);
        container_made(w, 1 + i, holder, "main", token);
        create_token(w, 1000 + i, uid, token);
        snprintf(id, sizeof id, "check c-h%u-main", i);
        expect(w, id);
    }
    looks(w);
    for (unsigned i = 0; i < MANY / 2; i++) {
        snprintf(id, sizeof id, "c-h%u-main", i);
        container_removed(w, id);
        snprintf(id, sizeof id, "allocate g%u *", i);
        expect(w, id);
        expect_with(w, "commit -allocation", NULL);
        committed(w);
    }
    assert_in_range(looks(w), MANY / 2, MANY);
}

static void a_pod_that_is_over_wakes_who_chooses(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    gpus_up(w, "g0! g1");
    container_made(w, 1, "u1", "main", GPU ":g1");
    container_removed(w, "c-u1-main"); /* its pod lives, and may make another */
    create_request(w, 11, "u2", "main", GPU "=1");
    expect_nothing(w);
    sandbox_stopping(w, "s-u1");
    sandbox_stopped(w, "s-u1");
    expect(w, "allocate g1 *");
}

/* g0 is unhealthy, so that a create waits; g1 is the kubelet's, for pod u9. */
static void with_annotations(struct world *w)
{
    static const char *const ALL[] = {"*"};

    w->settings.annotations = true;
    w->settings.namespaces = ALL;
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
}

static void waits_for_what_is_promised(struct world *w)
{
    with_annotations(w);
    gpus_up(w, "g0! g1");
    kubelet_holds(w, "u9=" GPU ":g1");
}

static void what_the_kubelet_takes_back_wakes_who_chooses(void **state)
{
    struct world *w = *state;

    waits_for_what_is_promised(w);
    create_request(w, 11, "u2", "main", GPU "=1");
    expect_nothing(w);
    kubelet_holds(w, "");
    expect(w, "allocate g1 *");
}

static void what_the_kubelet_gives_away_wakes_who_chose_it_before(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    with_annotations(w);
    endpoint = gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    container_removed(w, "c-u1-main");
    plugin_list(w, endpoint, "g0! g1");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect_nothing(w);
    kubelet_holds(w, "u9=" GPU ":g0");
    expect(w, "allocate g1 *");
}

static void a_pod_that_is_over_before_it_has_a_container_wakes_who_chooses(void **state)
{
    struct world *w = *state;

    waits_for_what_is_promised(w);
    sandbox_ran(w, "u9", "s-u9", 0);
    create_request(w, 11, "u2", "main", GPU "=1");
    expect_nothing(w);
    sandbox_stopping(w, "s-u9");
    sandbox_stopped(w, "s-u9");
    expect(w, "allocate g1 *");
}

static void a_pod_that_does_not_come_wakes_who_chooses(void **state)
{
    struct world *w = *state;

    waits_for_what_is_promised(w);
    pass(w, POD_COMES_MS - 1);
    create_request(w, 11, "u2", "main", GPU "=1");
    expect_nothing(w);
    pass(w, 1);
    expect(w, "allocate g1 *");
}

/* What the kubelet is shown is made out of all allocations, and not anew at each event. */
static void what_is_shown_is_looked_at_where_it_changed(void **state)
{
    char uid[16], token[64], list[MANY * 8] = "";
    struct world *w = *state;
    uint64_t before;

    for (unsigned i = 0; i < MANY; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "g%u ", i);
    gpus_up(w, list);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(uid, sizeof uid, "h%u", i);
        snprintf(token, sizeof token, GPU ":g%u", i);
        container_made(w, 1 + i, uid, "main", token);
    }
    assert_in_range(w->mgr->state.showing.looks, MANY, 10 * MANY);
    before = w->mgr->state.showing.looks;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(uid, sizeof uid, "x%u", i);
        snprintf(token, sizeof token, "s-x%u", i);
        sandbox_ran(w, uid, token, 0);
        pass(w, 10);
        sandbox_removed(w, token);
    }
    assert_int_equal(w->mgr->state.showing.looks, before);
    sandbox_stopped(w, "s-h7");
    assert_in_range(w->mgr->state.showing.looks, before + 1, before + 3);
}

static void the_end_of_a_container_is_looked_at_where_it_was(void **state)
{
    struct world *w = *state;
    uint64_t before;
    char uid[16];

    gpus_up(w, "g0");
    for (unsigned i = 0; i < MANY; i++) {
        struct ids ids = {0};

        snprintf(uid, sizeof uid, "h%u", i);
        ids_add(&ids, "g0");
        allocation_set_live(allocations_add(&w->mgr->state.allocations, uid, "main", GPU, &ids),
                            uid, "s", 0);
        ids_fini(&ids);
    }
    before = w->mgr->state.allocations.looks;
    container_removed(w, "of somebody else");
    assert_int_equal(w->mgr->state.allocations.looks, before);
    container_removed(w, "h7");
    assert_int_equal(w->mgr->state.allocations.looks, before + 1);
}

static void what_the_kubelet_holds_is_looked_at_where_it_changed(void **state)
{
    const char *const ids[] = {"g0"};
    struct devicemgr_kubelet_held held[MANY];
    char uids[MANY][16], sandbox[24];
    struct world *w = *state;
    uint64_t before;

    gpus_up(w, "g0");
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(uids[i], sizeof uids[i], "h%u", i);
        held[i] = (struct devicemgr_kubelet_held){
            .pod_uid = uids[i], .container = "main", .resource = GPU, .ids = ids, .ids_len = 1};
    }
    devicemgr_kubelet_holds(w->mgr, w->now_ms, w->now_ms, held, MANY);
    devicemgr_run(w->mgr);
    before = w->mgr->state.showing.looks;
    for (unsigned i = 0; i < 10; i++) {
        snprintf(sandbox, sizeof sandbox, "s-x%u", i);
        sandbox_ran(w, sandbox + 2, sandbox, 0);
        pass(w, 10);
        sandbox_removed(w, sandbox);
    }
    devicemgr_kubelet_holds(w->mgr, w->now_ms, w->now_ms, held, MANY); /* the same again */
    devicemgr_run(w->mgr);
    assert_int_equal(w->mgr->state.showing.looks, before);
    held[3].container = "other";
    devicemgr_kubelet_holds(w->mgr, w->now_ms, w->now_ms, held, MANY);
    devicemgr_run(w->mgr);
    assert_int_equal(w->mgr->state.showing.looks, ++before);
    sandbox_ran(w, "h7", "s-h7", 0);
    sandbox_stopped(w, "s-h7");
    assert_int_equal(w->mgr->state.showing.looks, before + 2);
}

static void time_wakes_those_whose_it_is(void **state)
{
    struct world *w = *state;
    char uid[16];

    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(uid, sizeof uid, "u%u", i);
        create_token(w, 1000 + i, uid, GPU ":g0");
        pass(w, 100);
    }
    looks(w);
    for (unsigned i = 0; i < 20; i++) {
        char refused[32];

        pass(w, i == 0 ? HOLD_MS - 2000 : 100);
        snprintf(refused, sizeof refused, "verdict %u refused 14:", 1000 + i);
        expect_with(w, refused, NULL);
        expect_nothing(w);
        assert_int_equal(looks(w), 1);
    }
    assert_int_equal(w->mgr->state.wakes.due_len, 0);
    assert_null(w->mgr->state.wakes.lists);
}

/* How many devices were looked at since the last call, for those that choose. */
static uint64_t device_looks(struct world *w)
{
    uint64_t *looks = &w->mgr->state.wakes.device_looks, since = *looks;

    *looks = 0;
    return since;
}

/* "g0 g1 ...", each with this behind it; the caller frees it. */
static char *many_devices(size_t len, const char *behind)
{
    char *list = calloc(len, 16);

    for (size_t i = 0; i < len; i++)
        sprintf(list + strlen(list), "%sg%zu%s", i > 0 ? " " : "", i, behind);
    return list;
}

static uint64_t gpus_by_annotation(struct world *w, const char *devices)
{
    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    return gpus_up(w, devices);
}

static void who_chooses_looks_at_no_more_than_it_has_to(void **state)
{
    struct world *w = *state;
    char *healthy = many_devices(MANY, ""), *unhealthy = many_devices(MANY, "!");
    char *on_node = many_devices(MANY, "@1");
    uint64_t gpu = gpus_by_annotation(w, healthy);

    device_looks(w);
    create_request(w, 11, "u1", "main", GPU "=2");
    expect(w, "allocate g0,g1 *");
    assert_int_equal(device_looks(w), 2);
    create_request(w, 12, "u2", "main", GPU "=1"); /* behind those */
    expect(w, "allocate g2 *");
    assert_int_equal(device_looks(w), 3);
    create_request(w, 13, "u1", "other", GPU "=1"); /* its pod has some, which it may be given */
    expect(w, "allocate g3 *");
    assert_int_equal(device_looks(w), MANY);
    plugin_list(w, gpu, unhealthy);
    ignore_all(w);
    device_looks(w);
    create_request(w, 14, "u4", "main", GPU "=2"); /* it is enough that it can be waited for */
    expect_nothing(w);
    assert_int_equal(device_looks(w), 4 + 2);
    plugin_list(w, gpu, on_node);
    ignore_all(w);
    device_looks(w);
    create_request(w, 15, "u5", "main", GPU "=1"); /* where they are counts */
    assert_int_equal(device_looks(w), MANY);
    free(healthy);
    free(unhealthy);
    free(on_node);
}

/* Between them the loop has all else to do. */
static void many_that_choose_among_many_take_turns(void **state)
{
    const size_t devices = 4 * MANY, waits = TURN_DEVICE_LOOKS_MAX / devices + 2;
    struct world *w = *state;
    char *healthy = many_devices(devices, "@0"), *unhealthy = many_devices(devices, "@0!");
    char uid[16], line[64];
    uint64_t gpu = gpus_by_annotation(w, healthy);

    plugin_list(w, gpu, unhealthy);
    for (unsigned i = 0; i < waits; i++) {
        snprintf(uid, sizeof uid, "u%u", i);
        create_request(w, 1000 + i, uid, "main", GPU "=1");
    }
    ignore_all(w);
    device_looks(w);
    plugin_list(w, gpu, healthy);
    assert_int_equal(device_looks(w),
                     TURN_DEVICE_LOOKS_MAX + devices - TURN_DEVICE_LOOKS_MAX % devices);
    for (unsigned i = 0; i + 1 < waits; i++) {
        snprintf(line, sizeof line, "allocate g%u *", i);
        expect(w, line);
    }
    expect_nothing(w);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms);
    devicemgr_run(w->mgr);
    snprintf(line, sizeof line, "allocate g%zu *", waits - 1);
    expect(w, line);
    expect_nothing(w);
    assert_true(devicemgr_next_ms(w->mgr) > w->now_ms);
    free(healthy);
    free(unhealthy);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_elsewhere_wakes_nobody),
        TEST(a_plugin_wakes_those_who_want_it),
        TEST(a_holder_wakes_those_who_want_its_devices),
        TEST(a_pod_that_is_over_wakes_who_chooses),
        TEST(what_the_kubelet_takes_back_wakes_who_chooses),
        TEST(what_the_kubelet_gives_away_wakes_who_chose_it_before),
        TEST(a_pod_that_is_over_before_it_has_a_container_wakes_who_chooses),
        TEST(a_pod_that_does_not_come_wakes_who_chooses),
        TEST(what_is_shown_is_looked_at_where_it_changed),
        TEST(the_end_of_a_container_is_looked_at_where_it_was),
        TEST(what_the_kubelet_holds_is_looked_at_where_it_changed),
        TEST(time_wakes_those_whose_it_is),
        TEST(who_chooses_looks_at_no_more_than_it_has_to),
        TEST(many_that_choose_among_many_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
