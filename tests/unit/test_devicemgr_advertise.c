/* When what is shown has another version: whenever it differs, and not much oftener. */
#include <stdio.h>
#include <stdlib.h>

#include "shown_world.h"

/* ---- versions ---- */

static void what_changes_nothing_keeps_the_version(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0 g1!"), version, version_of_all;

    container_made(w, 11, "u1", "main", GPU ":g0");
    version = version_of(w, GPU);
    version_of_all = devicemgr_shown_version(w->mgr);
    plugin_list(w, gpu, "g0 g1!");
    pass(w, 1000);
    runtime_listed(w, "u1/main=" GPU ":g0");
    sandbox_stopping(w, "s-u1");
    assert_false(create(w, 12, "u3", "main", NULL, NULL));
    create_token(w, 13, "u2", GPU ":g1"); /* held: unhealthy */
    pass(w, HOLD_MS);
    expect_with(w, "verdict 13 refused 14:", NULL);
    container_removed(w, "c-u1-main");
    assert_int_equal(devicemgr_shown_version(w->mgr), version_of_all);
    assert_int_equal(version_of(w, GPU), version);
}

/* On a large node each time would cost a look at all its devices. */
static void what_kubelet_and_token_both_say_is_no_change(void **state)
{
    struct world *w = *state;
    uint64_t version, version_of_all;

    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u1=" GPU ":g0"); /* as it is written before the container is made */
    version = version_of(w, GPU);
    version_of_all = devicemgr_shown_version(w->mgr);
    container_made(w, 11, "u1", "main", GPU ":g0");
    expect_shown(w, GPU, "g0+ g1");
    kubelet_holds(w, "");
    kubelet_holds(w, "u1=" GPU ":g0");
    assert_int_equal(version_of(w, GPU), version);
    assert_int_equal(devicemgr_shown_version(w->mgr), version_of_all);
    kubelet_holds(w, "u1=" GPU ":g0,g1"); /* not the same */
    assert_int_not_equal(version_of(w, GPU), version);
    expect_shown(w, GPU, "g0+ g1+");
    kubelet_holds(w, "");
    expect_shown(w, GPU, "g0+ g1");
    kubelet_holds(w, "u1=" GPU ":g0");
    version = version_of(w, GPU);
    sandbox_removed(w, "s-u1");
    assert_int_not_equal(version_of(w, GPU), version);
    expect_shown(w, GPU, "g0 g1");
}

static void another_resources_change_is_none(void **state)
{
    struct world *w = *state;
    uint64_t nic = nics_up(w, "n0 n1"), version;

    gpus_up(w, "g0 g1");
    version = version_of(w, NIC);
    container_made(w, 11, "u1", "main", GPU ":g0");
    kubelet_holds(w, "u1=" GPU ":g0");
    lose(w);
    pass_stored(w, GRACE_MS);
    expect_resources(w, NIC);
    assert_int_equal(version_of(w, NIC), version);
    plugin_list(w, nic, "n0 n1!");
    assert_int_not_equal(version_of(w, NIC), version);
}

static void one_that_waits_for_another_resource_shows_nothing(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0!"), version, version_of_all;

    nics_up(w, "n0");
    version = version_of(w, NIC);
    version_of_all = devicemgr_shown_version(w->mgr);
    create_token(w, 11, "u1", GPU ":g0 " NIC ":n0");
    for (int i = 0; i < 5; i++)
        pass(w, 10);
    assert_int_equal(version_of(w, NIC), version);
    assert_int_equal(devicemgr_shown_version(w->mgr), version_of_all);
    plugin_list(w, gpu, "g0");
    expect_shown(w, NIC, "n0+");
    assert_int_not_equal(version_of(w, NIC), version);
}

static void versions_are_never_reused(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0"), last = 0;

    for (int i = 0; i < 4; i++) {
        plugin_list(w, gpu, i % 2 ? "g0" : "g0!");
        assert_true(version_of(w, GPU) > last);
        last = version_of(w, GPU);
    }
    lose(w);
    pass_stored(w, GRACE_MS);
    gpus_up(w, "g0");
    assert_true(version_of(w, GPU) > last);
}

/* ---- random ---- */

static const char *const UIDS[] = {"u1", "u2", "u3"};
static const char *const LISTS[] = {"g0 g1 g2", "g0! g1 g2", "g1", "g2! g1! g0!", "", "g0 g1 g2@1"};

static void random_create(struct world *w, uint64_t number)
{
    const char *uid = UIDS[rand() % 3];
    const char *token =
        (const char *[]){GPU ":g0", GPU ":g1", NIC ":n0", GPU ":g2 " NIC ":n0"}[rand() % 4];

    if (!create(w, number, uid, rand() % 2 ? "main" : "side", rand() % 3 ? token : NULL, GPU "=1"))
        return;
    if (rand() % 4)
        allocated(w, "A=1");
    if (w->pending)
        committed(w);
    if (rand() % 2)
        create_answered(w, number, rand() % 2 ? "c" : NULL);
    else
        create_cancelled(w, number);
}

static void random_event(struct world *w, uint64_t number)
{
    const char *const sandboxes[] = {"s-u1", "s-u2", "s-u3"};
    int pod = rand() % 3;

    switch (rand() % 12) {
    case 0:
        plugin_register(w, number, GPU, "gpu.sock");
        plugin_options(w, w->endpoint, false, false);
        break;
    case 1:
    case 2:
        plugin_list(w, w->endpoint, LISTS[rand() % 6]);
        break;
    case 3:
        plugin_lost(w, w->endpoint, "killed");
        break;
    case 4:
        pass(w, (uint64_t)(rand() % 4) * MASK_MS / 3);
        break;
    case 5:
        sandbox_ran(w, UIDS[pod], sandboxes[pod], 0);
        break;
    case 6:
        sandbox_stopping(w, sandboxes[pod]);
        sandbox_stopped(w, sandboxes[pod]);
        break;
    case 7:
        if (rand() % 3 == 0)
            sandbox_removed(w, sandboxes[pod]);
        break;
    case 8:
        kubelet_holds(w, rand() % 2 ? "u1=" GPU ":g0 u2=" NIC ":n0" : "u1=" GPU ":g0,g1");
        break;
    case 9:
        runtime_listed(w, rand() % 2 ? "u1/main=" GPU ":g0 u2" : "u1 u2 u3");
        break;
    default:
        random_create(w, number);
    }
    if (w->pending)
        committed(w);
    ignore_all(w);
    forget_logs(w);
}

/* What does not have its version cannot be in a list: look() compares after each event. */
static void no_list_differs_without_its_version(void **state)
{
    struct world *w = *state;

    for (unsigned seed = 1; seed <= 20; seed++) {
        srand(seed);
        w->settings.checked = true;
        world_fresh(w);
        forget_seen();
        runtime_listed(w, "");
        nics_up(w, "n0 n1");
        gpus_up(w, "g0 g1 g2");
        for (uint64_t i = 0; i < 300; i++) {
            random_event(w, 100 + i);
            look(w, &seen[0]);
            look(w, &seen[1]);
        }
    }
}

/* ---- size ---- */

#define MANY_RESOURCES 200
#define MANY_DEVICES 100000

static void list_many(struct world *w, size_t len, const char *last)
{
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device *devices = calloc(len, sizeof *devices);
    V1beta1__Device **pointers = calloc(len, sizeof *pointers);
    char(*ids)[32] = calloc(len, sizeof *ids);

    for (size_t i = 0; i < len; i++) {
        snprintf(ids[i], sizeof ids[i], "g%zu", i);
        v1beta1__device__init(&devices[i]);
        devices[i].id = ids[i];
        devices[i].health = (char *)(i + 1 < len ? "Healthy" : last);
        pointers[i] = &devices[i];
    }
    list.n_devices = len;
    list.devices = pointers;
    devicemgr_endpoint_list(w->mgr, w->now_ms, w->endpoint, &list);
    devicemgr_run(w->mgr);
    free(ids);
    free(pointers);
    free(devices);
}

struct count {
    size_t devices;
    size_t healthy;
    size_t held;
};

static void count_device(void *user, const struct devicemgr_shown_device *device)
{
    struct count *count = user;

    count->devices++;
    count->healthy += device->healthy;
    count->held += device->held;
}

static void expect_count(struct world *w, size_t devices, size_t healthy, size_t held)
{
    struct count count = {0};

    devicemgr_shown_devices(w->mgr, GPU, count_device, &count);
    assert_int_equal(count.devices, devices);
    assert_int_equal(count.healthy, healthy);
    assert_int_equal(count.held, held);
}

/* How many lists have another version than in `before`, which is brought up to date: so many are
 * packed anew. */
struct versions {
    uint64_t v[MANY_RESOURCES + 1];
    size_t len;
    size_t differ;
};

static void compare_version(void *user, const struct devicemgr_shown *shown)
{
    struct versions *versions = user;

    assert_true(versions->len < MANY_RESOURCES + 1);
    versions->differ += versions->v[versions->len] != shown->version;
    versions->v[versions->len++] = shown->version;
}

static void expect_packed(struct world *w, struct versions *versions, size_t expected)
{
    versions->len = versions->differ = 0;
    devicemgr_shown(w->mgr, compare_version, versions);
    assert_int_equal(versions->differ, expected);
}

static void only_what_changes_is_packed_anew_on_a_large_node(void **state)
{
    struct world *w = *state;
    struct versions versions = {0};
    char name[64];

    for (unsigned i = 0; i < MANY_RESOURCES; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        plugin_up(w, name, name + strlen("vendor.com/"), "x0 x1", false, false);
    }
    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    list_many(w, MANY_DEVICES, "Healthy");
    committed(w);
    ignore_all(w);
    expect_packed(w, &versions, MANY_RESOURCES + 1);
    expect_count(w, MANY_DEVICES, MANY_DEVICES, 0);

    list_many(w, MANY_DEVICES, "Healthy");
    expect_packed(w, &versions, 0);
    list_many(w, MANY_DEVICES, "Unhealthy");
    expect_packed(w, &versions, 1);
    expect_count(w, MANY_DEVICES, MANY_DEVICES - 1, 0);
    container_made(w, 11, "u1", "main", "vendor.com/r7:x0");
    kubelet_holds(w, "u1=vendor.com/r7:x0");
    expect_packed(w, &versions, 1);
    kubelet_holds(w, "u1=vendor.com/r7:x0 u2=" GPU ":g99999,gone");
    expect_packed(w, &versions, 1);
    expect_count(w, MANY_DEVICES + 1, MANY_DEVICES + 1, 2);
    lose(w);
    expect_packed(w, &versions, 0);
    pass_stored(w, MASK_MS - 1);
    expect_packed(w, &versions, 0);
    pass_stored(w, 1);
    expect_packed(w, &versions, 2); /* what is held is not said to be healthy any more */
    expect_count(w, MANY_DEVICES, 0, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_changes_nothing_keeps_the_version),
        TEST(what_kubelet_and_token_both_say_is_no_change),
        TEST(another_resources_change_is_none),
        TEST(one_that_waits_for_another_resource_shows_nothing),
        TEST(versions_are_never_reused),
        TEST(no_list_differs_without_its_version),
        TEST(only_what_changes_is_packed_anew_on_a_large_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
