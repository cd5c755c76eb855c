/* shim/bridge/list.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/bridge/list.h"

/* A list of the four kinds of a device, packed. */
static struct packed four(void)
{
    static int64_t nodes[] = {1, 0};
    Bridge__V1__Device devices[4];
    Bridge__V1__Device *pointers[4];
    Bridge__V1__DeviceList list = BRIDGE__V1__DEVICE_LIST__INIT;
    struct packed packed = {0};
    static const char *const ids[] = {"dead", "dead-held", "alive", "alive-held"};

    for (size_t i = 0; i < 4; i++) {
        bridge__v1__device__init(&devices[i]);
        devices[i].id = (char *)ids[i];
        devices[i].healthy = i >= 2;
        devices[i].held = i % 2;
        pointers[i] = &devices[i];
    }
    devices[3].numa_nodes = nodes;
    devices[3].n_numa_nodes = 2;
    list.devices = pointers;
    list.n_devices = 4;
    list_pack(&packed, &list);
    return packed;
}

static void health_is(bool masked, const char *const expected[4])
{
    struct packed packed = four();
    Bridge__V1__DeviceList *list = list_unpack(&packed);
    V1beta1__ListAndWatchResponse *answer = list_answer(list, masked);

    assert_int_equal(answer->n_devices, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(answer->devices[i]->health, expected[i]);
    list_answer_free(answer);
    bridge__v1__device_list__free_unpacked(list, NULL);
    packed_fini(&packed);
}

static void without_the_mask_only_what_is_held_is_healthy(void **state)
{
    (void)state;
    health_is(false, (const char *const[]){"Unhealthy", "Unhealthy", "Healthy", "Healthy"});
    health_is(true, (const char *const[]){"Unhealthy", "Unhealthy", "Unhealthy", "Healthy"});
}

static void ids_and_topology_pass(void **state)
{
    struct packed packed = four();
    Bridge__V1__DeviceList *list = list_unpack(&packed);
    V1beta1__ListAndWatchResponse *answer = list_answer(list, false);

    (void)state;
    assert_string_equal(answer->devices[0]->id, "dead");
    assert_null(answer->devices[0]->topology);
    assert_string_equal(answer->devices[3]->id, "alive-held");
    assert_int_equal(answer->devices[3]->topology->n_nodes, 2);
    assert_int_equal(answer->devices[3]->topology->nodes[0]->id, 1);
    assert_int_equal(answer->devices[3]->topology->nodes[1]->id, 0);
    list_answer_free(answer);
    bridge__v1__device_list__free_unpacked(list, NULL);
    packed_fini(&packed);
}

static void an_empty_list_is_one(void **state)
{
    Bridge__V1__DeviceList empty = BRIDGE__V1__DEVICE_LIST__INIT, *list;
    struct packed packed = {0};
    V1beta1__ListAndWatchResponse *answer;

    (void)state;
    list_pack(&packed, &empty);
    assert_non_null(packed.bytes);
    list = list_unpack(&packed);
    answer = list_answer(list, true);
    assert_int_equal(answer->n_devices, 0);
    list_answer_free(answer);
    bridge__v1__device_list__free_unpacked(list, NULL);
    packed_fini(&packed);
}

static void packed_lists_are_compared_by_content(void **state)
{
    struct packed none = {0}, empty = {0}, one = four(), same = four();
    Bridge__V1__DeviceList list = BRIDGE__V1__DEVICE_LIST__INIT;

    (void)state;
    list_pack(&empty, &list);
    assert_true(packed_equal(&one, &same));
    same.bytes[same.len - 1] ^= 1;
    assert_false(packed_equal(&one, &same));
    assert_false(packed_equal(&one, &empty));
    assert_true(packed_equal(&empty, &empty));
    /* None is no empty one. */
    assert_false(packed_equal(&none, &empty));
    assert_false(packed_equal(&none, &none));
    packed_move(&one, &empty);
    assert_int_equal(one.len, 0);
    assert_null(empty.bytes);
    packed_fini(&one);
    packed_fini(&same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_mask_only_what_is_held_is_healthy),
        cmocka_unit_test(ids_and_topology_pass),
        cmocka_unit_test(an_empty_list_is_one),
        cmocka_unit_test(packed_lists_are_compared_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
