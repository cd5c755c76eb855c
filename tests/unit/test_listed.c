/* shim/runtime/listed.c: what a runtime may list, and how the core has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/runtime/listed.h"

static Runtime__V1__PodSandbox__AnnotationsEntry pod_entries[3];
static Runtime__V1__Container__AnnotationsEntry container_entries[2];
static Runtime__V1__PodSandbox__AnnotationsEntry *pod_annotations[3];
static Runtime__V1__Container__AnnotationsEntry *container_annotations[2];
static Runtime__V1__PodSandboxMetadata pod_metadata;
static Runtime__V1__ContainerMetadata container_metadata;
static Runtime__V1__PodSandbox pods[3], *pod_items[3];
static Runtime__V1__Container containers[2], *container_items[2];
static Runtime__V1__ListPodSandboxResponse pod_list;
static Runtime__V1__ListContainersResponse container_list;

/* Three sandboxes: one with two annotations, one with nothing at all, one with one; two containers,
 * of which the second has two. Those without metadata are the second of each. */
static int fill(void **state)
{
    static const char *const keys[] = {"k0", "k1", "k2", "k3", "k4"};
    static const char *const values[] = {"v0", "v1", "v2", "v3", "v4"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        pod_entries[i] = (Runtime__V1__PodSandbox__AnnotationsEntry)
            RUNTIME__V1__POD_SANDBOX__ANNOTATIONS_ENTRY__INIT;
        pod_entries[i].key = (char *)keys[i];
        pod_entries[i].value = (char *)values[i];
        pod_annotations[i] = &pod_entries[i];
        pods[i] = (Runtime__V1__PodSandbox)RUNTIME__V1__POD_SANDBOX__INIT;
        pods[i].state = RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
        pod_items[i] = &pods[i];
    }
    for (size_t i = 0; i < 2; i++) {
        container_entries[i] = (Runtime__V1__Container__AnnotationsEntry)
            RUNTIME__V1__CONTAINER__ANNOTATIONS_ENTRY__INIT;
        container_entries[i].key = (char *)keys[3 + i];
        container_entries[i].value = (char *)values[3 + i];
        container_annotations[i] = &container_entries[i];
        containers[i] = (Runtime__V1__Container)RUNTIME__V1__CONTAINER__INIT;
        container_items[i] = &containers[i];
    }
    pod_metadata = (Runtime__V1__PodSandboxMetadata)RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    pod_metadata.uid = (char *)"uid";
    pod_metadata.namespace_ = (char *)"ns";
    pod_metadata.name = (char *)"pod";
    pod_metadata.attempt = 4;
    pods[0].id = (char *)"s0";
    pods[0].metadata = &pod_metadata;
    pods[0].state = RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY;
    pods[0].annotations = pod_annotations;
    pods[0].n_annotations = 2;
    pods[2].id = (char *)"s2";
    pods[2].metadata = &pod_metadata;
    pods[2].annotations = &pod_annotations[2];
    pods[2].n_annotations = 1;
    container_metadata = (Runtime__V1__ContainerMetadata)RUNTIME__V1__CONTAINER_METADATA__INIT;
    container_metadata.name = (char *)"main";
    container_metadata.attempt = 9;
    containers[0].id = (char *)"c0";
    containers[0].pod_sandbox_id = (char *)"s2";
    containers[0].metadata = &container_metadata;
    containers[0].state = RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED;
    containers[1].state = RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
    containers[1].annotations = container_annotations;
    containers[1].n_annotations = 2;
    pod_list = (Runtime__V1__ListPodSandboxResponse)RUNTIME__V1__LIST_POD_SANDBOX_RESPONSE__INIT;
    pod_list.items = pod_items;
    pod_list.n_items = 3;
    container_list =
        (Runtime__V1__ListContainersResponse)RUNTIME__V1__LIST_CONTAINERS_RESPONSE__INIT;
    container_list.containers = container_items;
    container_list.n_containers = 2;
    return 0;
}

static void sandboxes_have_what_they_are_listed_with(void **state)
{
    const struct devicemgr_sandbox *s;
    struct listed listed;

    (void)state;
    assert_true(listed_init(&listed, &pod_list, &container_list));
    assert_int_equal(listed.sandboxes_len, 3);
    s = listed.sandboxes;
    assert_string_equal(s[0].id, "s0");
    assert_string_equal(s[0].pod_uid, "uid");
    assert_string_equal(s[0].pod_namespace, "ns");
    assert_string_equal(s[0].pod_name, "pod");
    assert_int_equal(s[0].attempt, 4);
    assert_true(s[0].ready);
    assert_string_equal(s[2].id, "s2");
    assert_false(s[2].ready);
    listed_fini(&listed);
}

static void containers_have_what_they_are_listed_with(void **state)
{
    struct listed listed;

    (void)state;
    assert_true(listed_init(&listed, &pod_list, &container_list));
    assert_int_equal(listed.containers_len, 2);
    assert_string_equal(listed.containers[0].id, "c0");
    assert_string_equal(listed.containers[0].sandbox_id, "s2");
    assert_string_equal(listed.containers[0].name, "main");
    assert_int_equal(listed.containers[0].attempt, 9);
    assert_false(listed.containers[0].running);
    assert_true(listed.containers[1].running);
    assert_false(listed.containers[0].created);
    assert_false(listed.containers[1].created);
    listed_fini(&listed);
    containers[1].state = RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED;
    assert_true(listed_init(&listed, &pod_list, &container_list));
    assert_true(listed.containers[1].running); /* it may be */
    assert_true(listed.containers[1].created);
    listed_fini(&listed);
}

/* Texts, if empty ones, as those of any other. */
static void without_metadata_there_are_empty_texts(void **state)
{
    struct listed listed;

    (void)state;
    assert_true(listed_init(&listed, &pod_list, &container_list));
    assert_string_equal(listed.sandboxes[1].id, "");
    assert_string_equal(listed.sandboxes[1].pod_uid, "");
    assert_string_equal(listed.sandboxes[1].pod_namespace, "");
    assert_string_equal(listed.sandboxes[1].pod_name, "");
    assert_int_equal(listed.sandboxes[1].attempt, 0);
    assert_string_equal(listed.containers[1].sandbox_id, "");
    assert_string_equal(listed.containers[1].name, "");
    listed_fini(&listed);
}

static void each_has_its_own_annotations(void **state)
{
    struct listed listed;

    (void)state;
    assert_true(listed_init(&listed, &pod_list, &container_list));
    assert_int_equal(listed.sandboxes[0].annotations_len, 2);
    assert_string_equal(listed.sandboxes[0].annotations[0].key, "k0");
    assert_string_equal(listed.sandboxes[0].annotations[1].key, "k1");
    assert_string_equal(listed.sandboxes[0].annotations[1].value, "v1");
    assert_int_equal(listed.sandboxes[1].annotations_len, 0);
    assert_int_equal(listed.sandboxes[2].annotations_len, 1);
    assert_string_equal(listed.sandboxes[2].annotations[0].key, "k2");
    assert_int_equal(listed.containers[0].annotations_len, 0);
    assert_int_equal(listed.containers[1].annotations_len, 2);
    assert_string_equal(listed.containers[1].annotations[0].key, "k3");
    assert_string_equal(listed.containers[1].annotations[1].value, "v4");
    listed_fini(&listed);
}

/* Each label and each annotation is several pieces of memory, however short it is. */
static void what_is_kept_counts_however_short_it_is(void **state)
{
    static Runtime__V1__PodSandbox__LabelsEntry label =
                                                    RUNTIME__V1__POD_SANDBOX__LABELS_ENTRY__INIT,
                                                *labels[] = {&label};
    size_t pods_bytes = listed_bytes(&pod_list.base);
    size_t containers_bytes = listed_bytes(&container_list.base);

    (void)state;
    assert_int_equal(pods_bytes,
                     protobuf_c_message_get_packed_size(&pod_list.base) + 3 * LISTED_PAIR_BYTES);
    assert_int_equal(containers_bytes, protobuf_c_message_get_packed_size(&container_list.base) +
                                           2 * LISTED_PAIR_BYTES);
    pods[1].labels = labels;
    pods[1].n_labels = 1;
    assert_true(listed_bytes(&pod_list.base) > pods_bytes + LISTED_PAIR_BYTES);
    pod_list.n_items = 0;
    assert_int_equal(listed_bytes(&pod_list.base), 0);
}

/* Only one that has exited will not run (again) with its devices. */
static void all_but_what_has_exited_may_run(void **state)
{
    (void)state;
    assert_true(listed_may_run(RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED));
    assert_true(listed_may_run(RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING));
    assert_false(listed_may_run(RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED));
    assert_true(listed_may_run(RUNTIME__V1__CONTAINER_STATE__CONTAINER_UNKNOWN));
    assert_true(listed_may_run((Runtime__V1__ContainerState)4711)); /* of a later runtime */
}

static void nothing_may_be_listed(void **state)
{
    struct listed listed;

    (void)state;
    pod_list.n_items = 0;
    container_list.n_containers = 0;
    assert_true(listed_init(&listed, &pod_list, &container_list));
    assert_int_equal(listed.sandboxes_len, 0);
    assert_int_equal(listed.containers_len, 0);
    listed_fini(&listed);
}

/* The leak sanitizer would tell of what is left. */
static void without_memory_there_is_nothing_to_free(void **state)
{
    bool made = false;
    unsigned n = 0;

    (void)state;
    while (!made) {
        struct listed listed;

        alloc_fail_at(++n);
        alloc_fail_enable(true);
        made = listed_init(&listed, &pod_list, &container_list);
        alloc_fail_enable(false);
        assert_true(made != alloc_failed());
        if (made)
            listed_fini(&listed);
    }
    assert_int_equal(n, 4);
}

#define TEST(name) cmocka_unit_test_setup(name, fill)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sandboxes_have_what_they_are_listed_with),
        TEST(containers_have_what_they_are_listed_with),
        TEST(without_metadata_there_are_empty_texts),
        TEST(each_has_its_own_annotations),
        TEST(what_is_kept_counts_however_short_it_is),
        TEST(all_but_what_has_exited_may_run),
        TEST(nothing_may_be_listed),
        TEST(without_memory_there_is_nothing_to_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
