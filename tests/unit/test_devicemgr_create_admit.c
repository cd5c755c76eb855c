/* What a create asks for, by token and by annotation, and whether it may. */
#include <stdio.h>

#include "devicemgr/limits.h"
#include "devicemgr_world.h"

static void ignored_annotations_are_logged_once(void **state)
{
    struct world *w = *state;

    assert_false(create(w, 11, "u1", "main", NULL, GPU "=1"));
    assert_false(create(w, 12, "u1", "main", NULL, GPU "=1"));
    assert_int_equal(logged(w, "is ignored: annotations are off"), 1);
    assert_false(create(w, 13, "u1", "other", NULL, GPU "=1"));
    assert_int_equal(logged(w, "is ignored"), 1);
    expect_nothing(w);
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
    expect_with(w, "verdict 1 refused 14:", "creates are under way already", NULL);
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
    request.container_annotations_len = 1;
    assert_false(devicemgr_create(w->mgr, w->now_ms, 12, &request));
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ignored_annotations_are_logged_once),
        TEST(an_annotation_from_a_namespace_not_allowed_is_refused),
        TEST(a_bad_request_is_refused_with_its_place),
        TEST(the_token_wins_over_the_annotation),
        TEST(too_many_creates_are_refused),
        TEST(other_annotations_of_the_container_are_left_alone),
        TEST(a_sandbox_first_heard_of_by_its_create_is_the_newest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
