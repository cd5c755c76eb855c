/* shim/bridge/allocate.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "shim/bridge/allocate.h"

/* What is asked for the ids, of two containers. */
static V1beta1__AllocateResponse *ask(const char *first, const char *second, bool *is_text)
{
    char *ids[] = {(char *)first, (char *)second};
    V1beta1__ContainerAllocateRequest one = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT,
                                      two = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
    V1beta1__ContainerAllocateRequest *both[] = {&one, &two};
    V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;

    one.devices_ids = ids;
    one.n_devices_ids = 2;
    two.devices_ids = ids + 1;
    two.n_devices_ids = 1;
    request.container_requests = both;
    request.n_container_requests = 2;
    *is_text = allocate_is_text(&request);
    return allocate_answer("v.com/gpu", &request);
}

static void is(const V1beta1__ContainerAllocateResponse *answer, const char *value)
{
    assert_int_equal(answer->n_envs + answer->n_mounts + answer->n_devices + answer->n_cdi_devices,
                     0);
    assert_int_equal(answer->n_annotations, 1);
    assert_string_equal(answer->annotations[0]->key, "devices.cri-device-shim/v.com_gpu");
    assert_string_equal(answer->annotations[0]->value, value);
}

static void each_container_gets_its_token(void **state)
{
    bool is_text;
    V1beta1__AllocateResponse *answer = ask("a", "b", &is_text);

    (void)state;
    assert_true(is_text);
    assert_int_equal(answer->n_container_responses, 2);
    is(answer->container_responses[0], "{\"resource\":\"v.com/gpu\",\"ids\":[\"a\",\"b\"]}");
    is(answer->container_responses[1], "{\"resource\":\"v.com/gpu\",\"ids\":[\"b\"]}");
    allocate_answer_free(answer);
}

static void ids_must_be_text(void **state)
{
    bool is_text = true;

    (void)state;
    assert_null(ask("\xff", "b", &is_text));
    assert_false(is_text);
    is_text = true;
    assert_null(ask("a", "\xc3", &is_text));
    assert_false(is_text);
    allocate_answer_free(ask("\xc3\xbc", "", &is_text));
    assert_true(is_text);
}

static void no_container_no_answer(void **state)
{
    V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
    V1beta1__AllocateResponse *answer = allocate_answer("v.com/gpu", &request);

    (void)state;
    assert_int_equal(answer->n_container_responses, 0);
    allocate_answer_free(answer);
}

/* The kubelet waits for an answer. */
static void without_memory_there_is_none(void **state)
{
    bool failed = true, is_text;
    unsigned n;

    (void)state;
    for (n = 1; failed; n++) {
        V1beta1__AllocateResponse *answer;

        alloc_fail_at(n);
        alloc_fail_enable(true);
        answer = ask("a", "b", &is_text);
        alloc_fail_enable(false);
        failed = alloc_failed();
        assert_true(is_text && failed == !answer);
        if (answer)
            allocate_answer_free(answer);
    }
    alloc_fail_at(0);
    assert_true(n > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_container_gets_its_token),
        cmocka_unit_test(ids_must_be_text),
        cmocka_unit_test(no_container_no_answer),
        cmocka_unit_test(without_memory_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
