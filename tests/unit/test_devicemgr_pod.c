/* Pods and their sandboxes. */
#include <stdio.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/pod.h"
#include "devicemgr_world.h"

static void the_newest_sandbox_has_the_highest_attempt(void **state)
{
    struct pods pods = {0};
    struct pod *pod = pods_ensure(&pods, "u1", "ns", "web");
    struct sandbox *s1 = pods_ensure_sandbox(&pods, pod, "s1", 1);
    struct sandbox *s2 = pods_ensure_sandbox(&pods, pod, "s2", 2);

    (void)state;
    assert_ptr_equal(pods_ensure_sandbox(&pods, pod, "s1", 1), s1); /* known already */
    assert_ptr_equal(pod->newest, s2);
    pods_ensure_sandbox(&pods, pod, "s0", 0);
    assert_ptr_equal(pod->newest, s2);
    pods_remove_sandbox(&pods, s2);
    assert_ptr_equal(pod->newest, s1);
    pods_remove_sandbox(&pods, pods_edit_sandbox(&pods, "s0"));
    assert_ptr_equal(pod->newest, s1);
    pods_remove_sandbox(&pods, s1);
    assert_null(pod->newest);
    pods_fini(&pods);
}

static void a_pod_goes_with_its_sandboxes(void **state)
{
    struct pods pods = {0};
    struct pod *u1 = pods_ensure(&pods, "u1", "ns", "web"),
               *u2 = pods_ensure(&pods, "u2", "ns", "db");

    (void)state;
    pods_ensure_sandbox(&pods, u1, "s1", 0);
    pods_ensure_sandbox(&pods, u2, "s2", 0);
    pods_remove(&pods, u1);
    assert_null(pods_find(&pods, "u1"));
    assert_null(pods_find_sandbox(&pods, "s1"));
    assert_non_null(pods_find_sandbox(&pods, "s2"));
    pods_fini(&pods);
    assert_null(pods.by_uid);
    assert_null(pods.sandboxes);
}

static void the_names_last_told_stay(void **state)
{
    struct pods pods = {0};

    (void)state;
    pods_ensure(&pods, "u1", "", "");
    assert_string_equal(pods_ensure(&pods, "u1", "ns", "web")->name, "web");
    pods_fini(&pods);
}

static void an_ignored_container_is_remembered_as_far_as_there_is_room(void **state)
{
    struct pods pods = {0};
    struct pod *pod = pods_ensure(&pods, "u1", "ns", "web");
    char name[16];

    (void)state;
    for (int i = 0; i < POD_IGNORED_MAX; i++) {
        snprintf(name, sizeof name, "c%d", i);
        assert_true(pod_ignore_once(pod, name));
        assert_false(pod_ignore_once(pod, name));
    }
    assert_false(pod_ignore_once(pod, "one more"));
    pods_fini(&pods);
}

static void an_end_told_before_the_pod_is_known_counts(void **state)
{
    struct pods pods = {0};
    struct pod *pod = pods_ensure(&pods, "u1", "ns", "web");
    struct sandbox *sandbox;
    uint64_t epoch = 0;

    (void)state;
    assert_int_equal(pods_find_end(&pods, "s1", &epoch), SANDBOX_END_NONE);
    pods_note_end(&pods, "s1", SANDBOX_END_STOPPING, 4);
    pods_note_end(&pods, "s2", SANDBOX_END_STOPPED, 5);
    pods_note_end(&pods, "s3", SANDBOX_END_REMOVED, 6);
    assert_int_equal(pods_find_end(&pods, "s1", &epoch), SANDBOX_END_STOPPING);
    assert_int_equal(epoch, 4);
    sandbox = pods_ensure_sandbox(&pods, pod, "s1", 0);
    assert_int_equal(sandbox->state, SANDBOX_STOPPING);
    assert_int_equal(pods_find_end(&pods, "s1", &epoch), SANDBOX_END_NONE);
    sandbox = pods_ensure_sandbox(&pods, pod, "s2", 0);
    assert_int_equal(sandbox->state, SANDBOX_STOPPED);
    sandbox = pods_ensure_sandbox(&pods, pod, "s3", 0); /* told to be there after all */
    assert_int_equal(sandbox->state, SANDBOX_OPEN);
    pods_fini(&pods);
}

static void what_becomes_of_a_stop_is_its_state(void **state)
{
    struct pods pods = {0};
    struct pod *pod = pods_ensure(&pods, "u1", "ns", "web");
    struct sandbox *sandbox = pods_ensure_sandbox(&pods, pod, "s1", 0);

    (void)state;
    sandbox_set_stopping(sandbox);
    sandbox_set_stopping(sandbox); /* by another client */
    sandbox_set_doubted(sandbox, 5);
    sandbox_set_doubted(sandbox, 7); /* that one's failed, too */
    assert_int_equal(sandbox->reopen_ms, 7);
    sandbox_set_open(sandbox);
    assert_int_equal(sandbox->state, SANDBOX_OPEN);
    sandbox_set_stopped(sandbox, 3); /* the stop was not seen to begin */
    sandbox_set_stopping(sandbox);   /* what is stopped can be no more than that */
    assert_int_equal(sandbox->state, SANDBOX_STOPPED);
    sandbox_set_stopped(sandbox, 4);
    assert_int_equal(sandbox->stop_epoch, 4);
    sandbox_set_open(sandbox);
    assert_int_equal(sandbox->state, SANDBOX_OPEN);
    pods_fini(&pods);
}

static void the_oldest_end_is_forgotten_first(void **state)
{
    struct pods pods = {0};
    uint64_t epoch = 0;
    char id[16];

    (void)state;
    pods_note_end(&pods, "old", SANDBOX_END_REMOVED, 0);
    pods_note_end(&pods, "young", SANDBOX_END_REMOVED, 0);
    for (int i = 0; i < SANDBOX_ENDS_MAX - 2; i++) {
        snprintf(id, sizeof id, "s%d", i);
        pods_note_end(&pods, id, SANDBOX_END_REMOVED, 0);
    }
    pods_note_end(&pods, "old", SANDBOX_END_REMOVED, 1); /* told again: the youngest now */
    pods_note_end(&pods, "one more", SANDBOX_END_REMOVED, 1);
    assert_int_equal(pods_find_end(&pods, "old", &epoch), SANDBOX_END_REMOVED);
    assert_int_equal(pods_find_end(&pods, "young", &epoch), SANDBOX_END_NONE);
    pods_fini(&pods);
}

static void a_pod_that_went_is_remembered_until_it_is_back(void **state)
{
    struct pods pods = {0};
    char uid[16];

    (void)state;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(pods_gone(&pods, "u1"), round > 0);
        pods_ensure(&pods, "u1", "ns", "web");
        assert_false(pods_gone(&pods, "u1"));
        pods_remove(&pods, pods_edit(&pods, "u1"));
        assert_true(pods_gone(&pods, "u1"));
    }
    for (int i = 0; i < PODS_GONE_MAX; i++) {
        snprintf(uid, sizeof uid, "v%d", i);
        assert_true(pods_gone(&pods, "u1"));
        pods_ensure(&pods, uid, "ns", "web");
        pods_remove(&pods, pods_edit(&pods, uid));
    }
    assert_false(pods_gone(&pods, "u1")); /* the oldest is forgotten first */
    assert_true(pods_gone(&pods, "v0"));
    pods_fini(&pods);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_sandbox_has_the_highest_attempt),
        cmocka_unit_test(a_pod_goes_with_its_sandboxes),
        cmocka_unit_test(the_names_last_told_stay),
        cmocka_unit_test(an_ignored_container_is_remembered_as_far_as_there_is_room),
        cmocka_unit_test(an_end_told_before_the_pod_is_known_counts),
        cmocka_unit_test(what_becomes_of_a_stop_is_its_state),
        cmocka_unit_test(the_oldest_end_is_forgotten_first),
        cmocka_unit_test(a_pod_that_went_is_remembered_until_it_is_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
