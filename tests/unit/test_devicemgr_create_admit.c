/* What a create asks for, by token and by annotation, and whether it may. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

/* It plainly asked, and would start without. */
static void an_annotation_where_none_is_taken_is_refused(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", NULL, GPU "=1"));
    expect(w,
           "verdict 11 refused 9: container \"main\" of pod \"ns/u1\": its pod asks for devices by "
           "annotation, which is off on this node: take the annotation away, or set "
           "annotations.enabled, or annotations.start_without to have it started without them");
    gpus_up(w, "g0");
    assert_true(create(w, 12, "u1", "main", GPU ":g0", GPU "=1"));
    expect(w, "verdict 12 refused 9:*");
    assert_true(create(w, 13, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

static void ignored_annotations_are_logged_once(void **state)
{
    struct world *w = *state;

    w->settings.start_without = true;
    world_fresh_listed(w);
    assert_false(create(w, 11, "u1", "main", NULL, GPU "=1"));
    assert_false(create(w, 12, "u1", "main", NULL, GPU "=1"));
    assert_int_equal(logged(w, "is ignored: annotations are off"), 1);
    assert_false(create(w, 13, "u1", "other", NULL, GPU "=1"));
    assert_int_equal(logged(w, "is ignored"), 1);
    sandbox_removed(w, "s-u2"); /* no pod is made of a create that comes late */
    assert_false(create(w, 14, "u2", "main", NULL, GPU "=1"));
    assert_int_equal(logged(w, "is ignored"), 0);
    expect_nothing(w);
}

/* The annotation of tolerations has a name that a container may have, too. */
static void what_a_pod_tolerates_asks_for_nothing(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    w->tolerations = "[{\"operator\":\"Exists\"}]";
    world_fresh_listed(w);
    gpus_up(w, "g0");
    assert_false(create(w, 11, "u1", "tolerations", NULL, NULL));
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

static void an_annotation_from_a_namespace_not_allowed_is_refused(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"kube-system"};
    w->settings.namespaces_len = 1;
    world_fresh(w);
    assert_true(create(w, 11, "u1", "main", NULL, GPU "=1"));
    expect_with(w, "verdict 11 refused 9:",
                "namespace ns is not in the setting "
                "annotations.namespaces",
                NULL);
}

static void a_bad_request_is_refused_with_its_place(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    world_fresh(w);
    assert_true(create(w, 11, "u1", "main", NULL, GPU "=0"));
    expect_with(w, "verdict 11 refused 3: container \"main\" of pod \"ns/u1\": ",
                "annotation \"vendor.com/gpu=0\": expected a count from 1 to 65535 at position 16",
                NULL);
    assert_true(create(w, 12, "u1", "main", "bad:g0", NULL));
    expect_with(w, "verdict 12 refused 3:", "the ResourceName \"bad\" is invalid", NULL);
}

/* What devices are held by has a bound; who asks for none is not asked for its names either. */
static void names_without_end_hold_no_devices(void **state)
{
    struct world *w = *state;
    char name[DEMAND_NAMES_BYTES_MAX + 1];

    w->settings.start_without = true;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_false(create(w, 11, "u1", name, NULL, NULL));
    assert_false(create(w, 12, "u1", name, NULL, GPU "=1"));
    expect_nothing(w);
    assert_true(create(w, 13, "u1", name, GPU ":g0", NULL));
    expect_with(w, "verdict 13 refused 3: container \"nnn",
                "have more than 4096 bytes together, and devices are held by them", NULL);
    name[DEMAND_NAMES_BYTES_MAX - 64] = '\0';
    assert_true(create(w, 14, "u1", name, GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

static void the_token_wins_over_the_annotation(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    world_fresh(w);
    runtime_listed(w, "");
    plugin_up(w, GPU, "gpu.sock", "g0 g1 g2", false, false);
    assert_true(create(w, 11, "u1", "main", GPU ":g2", GPU "=2"));
    expect(w, "allocate g2 *");
}

static void too_many_creates_are_refused(void **state)
{
    struct world *w = *state;
    char uid[32];

    plugin_register(w, 1, GPU, "gpu.sock");
    ignore_all(w);
    for (uint64_t i = 0; i < CREATES_MAX; i++) {
        snprintf(uid, sizeof uid, "u%u", (unsigned)i);
        assert_true(create(w, 100 + i, uid, "main", GPU ":g0", NULL));
    }
    expect_nothing(w);
    assert_true(create(w, 1, "last", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 1 refused 14:", "4096 creates wait or are under way already", NULL);
}

static void other_annotations_of_the_container_are_left_alone(void **state)
{
    struct devicemgr_annotation notes[] = {
        {"io.kubernetes.container.hash", "{"},
        {"devices.cri-device-shim/vendor.com_gpu",
         "{\"resource\":\"vendor.com/gpu\",\"ids\":[\"g0\"]}"},
    };
    struct devicemgr_create request = {.sandbox_id = "s",
                                       .pod_uid = "u",
                                       .pod_namespace = "n",
                                       .pod_name = "p",
                                       .container = "c",
                                       .deadline_ms = UINT64_MAX,
                                       .container_annotations = notes,
                                       .container_annotations_len = 2,
                                       .pod_annotations = notes,
                                       .pod_annotations_len = 2};
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    assert_true(devicemgr_create(w->mgr, w->now_ms, 11, &request));
    devicemgr_run(w->mgr);
    expect(w, "allocate g0 *");
    request.container = "d";
    request.container_annotations_len = 1;
    assert_false(devicemgr_create(w->mgr, w->now_ms, 12, &request));
}

/* A pod is deleted by force while its container, whose sandbox is dead, takes its time to end: the
 * kubelet then makes it once more, without what it has given to the next pod meanwhile. */
static void a_container_that_had_a_token_is_not_made_without(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    assert_true(create(w, 12, "u1", "main", NULL, NULL));
    expect(w, "verdict 12 refused 9: container \"main\" of pod \"ns/u1\": the kubelet had devices "
              "for it, and asks for it without them now: it has taken them back, as from a pod "
              "that it removes");
    assert_false(create(w, 13, "u1", "other", NULL, NULL));
    assert_false(create(w, 14, "u2", "main", NULL, NULL));
    container_removed(w, "c-u1-main");
    create_token(w, 15, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
    allocated_stored(w, "A=2");
    expect(w, "commit allocation u2 main vendor.com/gpu, pod u2");
    committed(w);
    expect(w, "verdict 15 forward*");
    assert_true(create(w, 16, "u1", "main", NULL, NULL)); /* it has nothing any more */
    expect(w, "verdict 16 refused 9:*");
}

static void that_it_had_a_token_is_known_after_a_restart(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    world_restart(w);
    ignore_all(w);
    assert_true(create(w, 12, "u1", "main", NULL, NULL));
    expect(w, "verdict 12 refused 9:*");
    assert_false(create(w, 13, "u1", "other", NULL, NULL));
}

/* The pod's row, which says so, was lost, or is of a release that did not note it. */
static void that_it_had_a_token_is_known_by_what_it_was_given(void **state)
{
    Checkpoint__V1__Pod row = CHECKPOINT__V1__POD__INIT;
    struct world *w = *state;
    uint8_t bytes[64];

    u1_has_g0(w, "g0");
    row.uid = (char *)"u1";
    row.namespace_ = row.name = (char *)"ns";
    row.sandbox_id = (char *)"s-u1";
    world_store(w, DEVICEMGR_RECORD_POD, "u1", "", "", bytes,
                checkpoint__v1__pod__pack(&row, bytes));
    world_restart(w);
    ignore_all(w);
    assert_false(create(w, 12, "u1", "other", NULL, NULL));
    assert_true(create(w, 13, "u1", "main", NULL, NULL));
    expect_with(w, "verdict 13 refused 9:", "it has taken them back", NULL);
}

/* Deleted by force, its container at its end: the next pod has its device. */
static void that_it_had_a_token_is_known_when_another_has_its_device(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    container_removed(w, "c-u1-main");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    world_restart(w);
    ignore_all(w);
    assert_true(create(w, 13, "u1", "main", NULL, NULL));
    expect(w, "verdict 13 refused 9:*");
    assert_false(create(w, 14, "u1", "other", NULL, NULL));
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect(w, "commit -loss rows_lost, pod u1, resource vendor.com/gpu");
    committed(w);
    runtime_listed(w, "u1 u2"); /* as long as there is the pod */
    expect_nothing(w);
    assert_true(world_stored(w, "pod u1"));
    runtime_listed(w, "u2");
    expect(w, "commit -pod u1");
    committed(w);
    assert_false(world_stored(w, "pod u1"));
}

/* Found by tests/sim: what it had by the token was another's before a restart, and what goes after
 * it came without one. */
static void that_it_had_a_token_outlives_what_came_without_one(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    runtime_listed(w, "u1/main=" GPU ":g0 u1/side u2");
    kubelet_holds(w, "u1=" GPU ":g0 u1/side=" GPU ":g1");
    committed(w);
    ignore_all(w);
    container_removed(w, "c-u1-main");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    restart_serving(w);
    runtime_listed(w, "u1 u2");
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1 u2");
    ignore_all(w);
    create_token(w, 13, "u2", GPU ":g1");
    expect(w, "allocate g1 *");
    expect(w, "commit -allocation u1 side vendor.com/gpu, pod u1");
}

/* Found by tests/sim: the shim was restarted while RunPodSandbox was under way; the list, begun
 * before, told only of the sandbox before, and the removal of that one freed what the new one held.
 */
static void a_sandbox_first_heard_of_by_its_create_is_the_newest(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    sandbox_ran(w, "u1", "s-old", 0);
    sandbox_stopped(w, "s-old");
    w->sandbox_attempt = 1;
    container_made(w, 11, "u1", "main", GPU ":g0");
    sandbox_ran(w, "u1", "s-old", 0); /* told again */
    sandbox_removed(w, "s-old");
    expect_nothing(w);
    w->sandbox_attempt = 0;
    assert_true(create(w, 12, "u2", "main", GPU ":g0", NULL));
    expect(w, "check c-u1-main");
}

/* ---- whose sandbox it is ---- */

static void a_create_of_another_pod_is_refused(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    sandbox_ran(w, "u1", "s-u1", 0);
    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate g0 *");
    assert_true(create_in(w, 12, "s-u1", "u2", "main", GPU ":g1", NULL));
    expect(w,
           "verdict 12 refused 3: container \"main\" of pod \"ns/u2\": the pod uid \"u2\" of its "
           "sandbox_config is not that of sandbox s-u1, \"u1\"");
    allocated_stored(w, "A=1"); /* the pod's own goes on */
    expect(w, "verdict 11 forward*");
}

static void a_create_without_a_pod_uid_is_refused(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    sandbox_ran(w, "u1", "s-u1", 0);
    sandbox_ran(w, "", "s-none", 0);
    for (uint64_t number = 11; number < 14; number++) {
        const char *const sandboxes[] = {"s-u1", "s-none", "s-unknown"};

        assert_true(create_in(w, number, sandboxes[number - 11], "", "main", GPU ":g0", NULL));
        expect_with(w, "verdict 1", "refused 3: container", "the pod uid \"\"", NULL);
    }
    assert_false(create_in(w, 14, "s-none", "", "main", NULL, NULL)); /* names no device */
}

/* Before the list, a create's own word is all there is. */
static void a_create_is_refused_once_its_sandbox_is_another_pods(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    gpus_up(w, "g0 g1");
    assert_true(create_in(w, 11, "s-u1", "u2", "main", GPU ":g0", NULL));
    assert_true(create_in(w, 12, "s-u1", "u1", "main", GPU ":g1", NULL));
    expect_with(w, "verdict 12 refused 3:", "is not that of sandbox s-u1, \"u2\"", NULL);
    runtime_listed(w, "u1");
    expect_with(w, "verdict 11 refused 3:", "is not that of sandbox s-u1, \"u1\"", NULL);
    create_token(w, 13, "u1", GPU ":g1");
    expect(w, "allocate g1 *");
    allocated_stored(w, "A=1");
    expect(w, "verdict 13 forward*");
    sandbox_removed(w, "s-u1"); /* and the pod with it */
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
}

/* What another pod's sandbox was taken for is not lost with it: the pod has the one before. */
static void a_pod_keeps_its_own_sandbox(void **state)
{
    struct world *w = *state;

    w->sandbox_attempt = 7;
    world_fresh(w);
    gpus_up(w, "g0 g1");
    sandbox_ran(w, "u2", "s-u2", 0);
    assert_true(create_in(w, 11, "s-u1", "u2", "main", GPU ":g0", NULL));
    runtime_listed(w, "u1 u2");
    expect_with(w, "verdict 11 refused 3:", "is not that of sandbox s-u1", NULL);
    sandbox_removed(w, "s-u1");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
}

static void random_pods_event(struct world *w, uint64_t number)
{
    const char *const uids[] = {"", "u1", "u2", "u3"};
    const char *const sandboxes[] = {"s-u1", "s-u2", "s-u3", "s-u4"};
    const char *const lists[] = {"", "u1 u2", "u1/main=" GPU ":g0 u3",
                                 "u2/main! u3/other=" GPU ":g1"};
    const char *uid = uids[rand() % 4], *sandbox = sandboxes[rand() % 4];

    switch (rand() % 11) {
    case 0:
        sandbox_ran(w, uid, sandbox, (uint32_t)(rand() % 3));
        break;
    case 1:
        sandbox_stopping(w, sandbox);
        break;
    case 2:
        sandbox_stopped(w, sandbox);
        break;
    case 3:
        sandbox_removed(w, sandbox);
        break;
    case 4:
        if (rand() % 2)
            devicemgr_runtime_listing(w->mgr);
        runtime_listed(w, lists[rand() % 4]);
        break;
    case 5:
        if (w->call)
            allocated(w, "A=1");
        break;
    case 6:
        create_answered(w, number - 1 - (uint64_t)(rand() % 4), rand() % 2 ? "c" : NULL);
        break;
    case 7:
        create_cancelled(w, number - 1 - (uint64_t)(rand() % 4));
        break;
    case 8:
        pass(w, (uint64_t)rand() % HOLD_MS);
        break;
    default:
        (void)create_in(w, number, sandbox, uid, rand() % 2 ? "main" : "other",
                        rand() % 2 ? GPU ":g0" : NULL, GPU "=1");
    }
    if (w->pending && rand() % 3 > 0)
        committed(w);
}

/* Whatever pods and sandboxes are named by whomever: each create has one end. */
static void clients_may_name_any_pod(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    for (unsigned seed = 1; seed <= 60; seed++) {
        bool seen[600] = {false};

        srand(seed);
        w->call = 0;
        world_fresh(w);
        gpus_up(w, "g0 g1");
        for (unsigned i = 0; i < 600; i++) {
            random_pods_event(w, 1000 + i);
            for (const struct world_line *line = w->lines; line; line = line->next) {
                unsigned number;

                if (sscanf(line->text, "verdict %u", &number) != 1)
                    continue;
                assert_false(seen[number - 1000]);
                seen[number - 1000] = true;
            }
            ignore_all(w);
        }
        if (w->pending)
            committed(w);
        forget_logs(w);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_annotation_where_none_is_taken_is_refused),
        TEST(ignored_annotations_are_logged_once),
        TEST(what_a_pod_tolerates_asks_for_nothing),
        TEST(an_annotation_from_a_namespace_not_allowed_is_refused),
        TEST(a_bad_request_is_refused_with_its_place),
        TEST(names_without_end_hold_no_devices),
        TEST(the_token_wins_over_the_annotation),
        TEST(too_many_creates_are_refused),
        TEST(other_annotations_of_the_container_are_left_alone),
        TEST(a_container_that_had_a_token_is_not_made_without),
        TEST(that_it_had_a_token_is_known_after_a_restart),
        TEST(that_it_had_a_token_is_known_by_what_it_was_given),
        TEST(that_it_had_a_token_is_known_when_another_has_its_device),
        TEST(that_it_had_a_token_outlives_what_came_without_one),
        TEST(a_sandbox_first_heard_of_by_its_create_is_the_newest),
        TEST(a_create_of_another_pod_is_refused),
        TEST(a_create_without_a_pod_uid_is_refused),
        TEST(a_create_is_refused_once_its_sandbox_is_another_pods),
        TEST(a_pod_keeps_its_own_sandbox),
        TEST(clients_may_name_any_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
