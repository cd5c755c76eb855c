/* cri-proto/methods.c: the table of methods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/methods.h"

static enum cri_method find(const char *path)
{
    return cri_method_find(path, strlen(path));
}

static void intercepts_only_create_container(void **state)
{
    (void)state;
    for (int m = CRI_OTHER; m < CRI_METHODS; m++) {
        assert_int_equal(cri_method_class(m) == CRI_CLASS_INTERCEPTED, m == CRI_CREATE_CONTAINER);
        assert_int_equal(cri_method_class(m) == CRI_CLASS_RELAYED,
                         m == CRI_OTHER || (m >= CRI_VERSION && m <= CRI_STREAM_CONTAINERS));
    }
}

static void finds_each_method_by_its_whole_path(void **state)
{
    (void)state;
    assert_int_equal(find("/runtime.v1.RuntimeService/RunPodSandbox"), CRI_RUN_POD_SANDBOX);
    assert_int_equal(find("/runtime.v1.RuntimeService/StopPodSandbox"), CRI_STOP_POD_SANDBOX);
    assert_int_equal(find("/runtime.v1.RuntimeService/RemovePodSandbox"), CRI_REMOVE_POD_SANDBOX);
    assert_int_equal(find("/runtime.v1.RuntimeService/CreateContainer"), CRI_CREATE_CONTAINER);
    assert_int_equal(find("/runtime.v1.RuntimeService/RemoveContainer"), CRI_REMOVE_CONTAINER);
    assert_int_equal(find("/runtime.v1.RuntimeService/Version"), CRI_VERSION);
    assert_int_equal(find(CRI_LIST_POD_SANDBOX_PATH), CRI_LIST_POD_SANDBOX);
    assert_int_equal(find("/runtime.v1.RuntimeService/StreamPodSandboxes"),
                     CRI_STREAM_POD_SANDBOXES);
    assert_int_equal(find(CRI_LIST_CONTAINERS_PATH), CRI_LIST_CONTAINERS);
    assert_int_equal(find("/runtime.v1.RuntimeService/StreamContainers"), CRI_STREAM_CONTAINERS);
    assert_int_equal(find(CRI_GET_CONTAINER_EVENTS_PATH), CRI_GET_CONTAINER_EVENTS);
    /* What a server takes must not get past us. */
    assert_int_equal(find("runtime.v1.RuntimeService/CreateContainer"), CRI_CREATE_CONTAINER);
}

static void relays_everything_else(void **state)
{
    (void)state;
    assert_int_equal(find("/runtime.v1.RuntimeService/Status"), CRI_OTHER);
    assert_int_equal(find("/runtime.v1.RuntimeService/ListContainerStats"), CRI_OTHER);
    assert_int_equal(find("/runtime.v1.RuntimeService/CreateContainerX"), CRI_OTHER);
    assert_int_equal(find("/runtime.v1.RuntimeService/CreateContaine"), CRI_OTHER);
    assert_int_equal(find("/runtime.v1.ImageService/CreateContainer"), CRI_OTHER);
    assert_int_equal(find("/runtime.v1alpha2.RuntimeService/CreateContainer"), CRI_OTHER);
    assert_int_equal(find("/runtime.v1.RuntimeService/"), CRI_OTHER);
    assert_int_equal(find("//runtime.v1.RuntimeService/CreateContainer"), CRI_OTHER);
    assert_int_equal(find("/"), CRI_OTHER);
    assert_int_equal(find(""), CRI_OTHER);
}

static void names_are_the_bare_method(void **state)
{
    (void)state;
    assert_string_equal(cri_method_name(CRI_CREATE_CONTAINER), "CreateContainer");
    assert_string_equal(cri_method_name(CRI_LIST_CONTAINERS), "ListContainers");
    assert_string_equal(cri_method_name(CRI_OTHER), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intercepts_only_create_container),
        cmocka_unit_test(finds_each_method_by_its_whole_path),
        cmocka_unit_test(relays_everything_else),
        cmocka_unit_test(names_are_the_bare_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
