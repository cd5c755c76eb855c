/* shim/bridge/list.c and offer.c */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/bridge/offer.h"
#include "tests/unit/alloc_fail.h"

/* The four kinds of a device, the last with nodes. */
struct four {
    Bridge__V1__DeviceList list;
    Bridge__V1__Device devices[4];
    Bridge__V1__Device *pointers[4];
    int64_t nodes[3];
    Bridge__V1__Resource message;
};

static void four_init(struct four *four, uint64_t version, uint64_t layout)
{
    static const char *const ids[] = {"dead", "dead-held", "alive", "alive-held"};

    *four = (struct four){.list = BRIDGE__V1__DEVICE_LIST__INIT,
                          .nodes = {1, 0, -3},
                          .message = BRIDGE__V1__RESOURCE__INIT};
    for (size_t i = 0; i < 4; i++) {
        bridge__v1__device__init(&four->devices[i]);
        four->devices[i].id = (char *)ids[i];
        four->devices[i].healthy = i >= 2;
        four->devices[i].held = i % 2;
        four->pointers[i] = &four->devices[i];
    }
    four->devices[3].numa_nodes = four->nodes;
    four->devices[3].n_numa_nodes = 3;
    four->list.devices = four->pointers;
    four->list.n_devices = 4;
    four->message.name = (char *)"v.com/gpu";
    four->message.version = version;
    four->message.layout = layout;
    four->message.list = &four->list;
}

static struct list *new_four(void)
{
    struct four four;
    struct list *list;

    four_init(&four, 1, 1);
    list = list_new(&four.list);
    assert_non_null(list);
    return list;
}

static V1beta1__ListAndWatchResponse *answer(const struct list *list, bool masked)
{
    uint8_t health[8];
    struct packed packed;
    V1beta1__ListAndWatchResponse *answer;

    list_health(list, masked, health);
    assert_int_equal(list_answer(list, health, &packed), 0);
    answer = v1beta1__list_and_watch_response__unpack(NULL, packed.len, packed.bytes);
    assert_non_null(answer);
    /* As anybody would pack it. */
    assert_int_equal(v1beta1__list_and_watch_response__get_packed_size(answer), packed.len);
    packed_fini(&packed);
    return answer;
}

static void answer_free(V1beta1__ListAndWatchResponse *answer)
{
    v1beta1__list_and_watch_response__free_unpacked(answer, NULL);
}

static void health_is(const struct list *list, bool masked, const char *const expected[4])
{
    V1beta1__ListAndWatchResponse *shown = answer(list, masked);

    assert_int_equal(shown->n_devices, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(shown->devices[i]->health, expected[i]);
    answer_free(shown);
}

static void without_the_mask_only_what_is_held_is_healthy(void **state)
{
    struct list *list = new_four();

    (void)state;
    health_is(list, false, (const char *const[]){"Unhealthy", "Unhealthy", "Healthy", "Healthy"});
    health_is(list, true, (const char *const[]){"Unhealthy", "Unhealthy", "Unhealthy", "Healthy"});
    list_free(list);
}

static void ids_and_topology_pass(void **state)
{
    struct list *list = new_four();
    V1beta1__ListAndWatchResponse *shown = answer(list, false);

    (void)state;
    assert_string_equal(shown->devices[0]->id, "dead");
    assert_null(shown->devices[0]->topology);
    assert_string_equal(shown->devices[3]->id, "alive-held");
    assert_int_equal(shown->devices[3]->topology->n_nodes, 3);
    assert_int_equal(shown->devices[3]->topology->nodes[0]->id, 1);
    assert_int_equal(shown->devices[3]->topology->nodes[1]->id, 0);
    assert_int_equal(shown->devices[3]->topology->nodes[2]->id, -3);
    answer_free(shown);
    list_free(list);
}

/* As the file has it: behind its length. */
static void what_is_packed_is_the_list(void **state)
{
    struct list *list = new_four(), *again;
    struct packed packed;
    Bridge__V1__DeviceList *message;

    (void)state;
    assert_int_equal(list_pack(list, &packed), 0);
    assert_int_equal(packed.bytes[0], packed.len - 1);
    message = bridge__v1__device_list__unpack(NULL, packed.len - 1, packed.bytes + 1);
    assert_non_null(message);
    assert_true(message->devices[3]->held && message->devices[3]->healthy);
    assert_false(message->devices[0]->held || message->devices[0]->healthy);
    assert_int_equal(message->devices[3]->numa_nodes[2], -3);
    again = list_new(message);
    assert_true(list_same_devices(list, again));
    list_free(again);
    bridge__v1__device_list__free_unpacked(message, NULL);
    packed_fini(&packed);
    list_free(list);
}

static void an_empty_list_is_one(void **state)
{
    Bridge__V1__DeviceList empty = BRIDGE__V1__DEVICE_LIST__INIT;
    struct list *list = list_new(&empty);
    struct packed packed;

    (void)state;
    assert_int_equal(list_len(list), 0);
    answer_free(answer(list, true));
    assert_int_equal(list_pack(list, &packed), 0);
    assert_int_equal(packed.len, 1);
    packed_fini(&packed);
    list_free(list);
}

static void other_devices_or_nodes_make_another_list(void **state)
{
    struct list *list = new_four(), *other;
    struct four four;

    (void)state;
    for (int what = 0; what < 6; what++) {
        four_init(&four, 1, 1);
        if (what == 1)
            four.devices[0].id = (char *)"deaf";
        if (what == 2)
            four.list.n_devices = 3;
        if (what == 3)
            four.nodes[1] = 7;
        if (what == 4) { /* one device's nodes are the other's */
            four.devices[2].numa_nodes = four.nodes;
            four.devices[2].n_numa_nodes = 1;
            four.devices[3].numa_nodes++;
            four.devices[3].n_numa_nodes--;
        }
        if (what == 5) /* its health does not */
            four.devices[0].healthy = four.devices[0].held = true;
        other = list_new(&four.list);
        assert_int_equal(list_same_devices(list, other), what == 0 || what == 5);
        list_free(other);
    }
    list_free(list);
}

/* ---- what is offered ---- */

static int take_change(struct offer *offer, uint32_t place, bool healthy, bool held,
                       uint64_t version, uint64_t layout)
{
    Bridge__V1__Resource message = BRIDGE__V1__RESOURCE__INIT;
    Bridge__V1__Change changes[2], *pointers[2] = {&changes[0], &changes[1]};

    bridge__v1__change__init(&changes[0]); /* device 0 stays unhealthy */
    bridge__v1__change__init(&changes[1]);
    changes[1].place = place;
    changes[1].healthy = healthy;
    changes[1].held = held;
    message.version = version;
    message.layout = layout;
    message.changes = pointers;
    message.n_changes = 2;
    return offer_take(offer, &message);
}

static void a_change_shows_if_the_kubelet_sees_it(void **state)
{
    struct offer offer = {0};
    struct four four;
    uint64_t health;

    (void)state;
    four_init(&four, 3, 9);
    assert_int_equal(offer_take(&offer, &four.message), 1);
    health = offer.health;
    assert_int_equal(take_change(&offer, 2, true, true, 4, 9), 0); /* held */
    assert_int_equal(offer.version, 4);
    assert_int_equal(offer.health, health);
    assert_int_equal(take_change(&offer, 2, false, true, 5, 9), 1);
    assert_int_not_equal(offer.health, health);
    health_is(offer.list, false,
              (const char *const[]){"Unhealthy", "Unhealthy", "Unhealthy", "Healthy"});
    assert_true(offer_set_masked(&offer, true));
    assert_false(offer_set_masked(&offer, true));
    assert_int_equal(take_change(&offer, 3, true, false, 6, 9), 1); /* the mask shows it now */
    assert_int_equal(take_change(&offer, 2, true, false, 7, 9), 0); /* and hides that */
    assert_int_equal(offer.version, 7);
    offer_fini(&offer);
}

static void changes_of_another_list_are_not_taken(void **state)
{
    struct offer offer = {0};
    struct four four;

    (void)state;
    assert_int_equal(take_change(&offer, 2, false, false, 4, 9), -ESTALE);
    four_init(&four, 3, 9);
    assert_int_equal(offer_take(&offer, &four.message), 1);
    assert_int_equal(take_change(&offer, 2, false, false, 4, 8), -ESTALE);
    assert_int_equal(take_change(&offer, 4, false, false, 4, 9), -ESTALE);
    assert_int_equal(take_change(&offer, UINT32_MAX, false, false, 4, 9), -ESTALE);
    offer_forget_version(&offer);
    assert_int_equal(take_change(&offer, 2, false, false, 4, 9), -ESTALE);
    assert_int_equal(take_change(&offer, 2, false, false, 4, 0), -ESTALE);
    health_is(offer.list, false,
              (const char *const[]){"Unhealthy", "Unhealthy", "Healthy", "Healthy"});
    four.message.list = NULL;
    assert_int_equal(offer_take(&offer, &four.message), 0); /* the same as before */
    offer_fini(&offer);
}

static void the_same_devices_keep_their_number(void **state)
{
    struct offer offer = {0};
    struct four four;
    uint64_t devices;

    (void)state;
    four_init(&four, 3, 9);
    assert_int_equal(offer_take(&offer, &four.message), 1);
    devices = offer.devices;
    four_init(&four, 1, 1); /* of a daemon's next life */
    assert_int_equal(offer_take(&offer, &four.message), 1);
    assert_int_equal(offer.devices, devices);
    assert_int_equal(offer.version, 1);
    four.list.n_devices--;
    assert_int_equal(offer_take(&offer, &four.message), 1);
    assert_int_not_equal(offer.devices, devices);
    offer_fini(&offer);
}

/* How large a list is is a peer's to say: it costs that list, and nothing else. */
static void without_memory_all_stays_as_it_was(void **state)
{
    struct offer offer = {0};
    struct packed packed = {0};
    struct four four;
    uint8_t health[4];

    (void)state;
    four_init(&four, 3, 9);
    assert_int_equal(offer_take(&offer, &four.message), 1);
    four.message.version = 4;
    four.list.n_devices = 2;
    alloc_fail_enable(true);
    alloc_fail_at(1);
    assert_int_equal(offer_take(&offer, &four.message), -ENOMEM);
    list_health(offer.list, false, health);
    alloc_fail_at(1);
    assert_int_equal(list_answer(offer.list, health, &packed), -ENOMEM);
    alloc_fail_at(1);
    assert_int_equal(list_pack(offer.list, &packed), -ENOMEM);
    alloc_fail_enable(false);
    assert_null(packed.bytes);
    assert_int_equal(offer.version, 3);
    assert_int_equal(list_len(offer.list), 4);
    assert_int_equal(offer_take(&offer, &four.message), 1);
    assert_int_equal(list_len(offer.list), 2);
    offer_fini(&offer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_mask_only_what_is_held_is_healthy),
        cmocka_unit_test(ids_and_topology_pass),
        cmocka_unit_test(what_is_packed_is_the_list),
        cmocka_unit_test(an_empty_list_is_one),
        cmocka_unit_test(other_devices_or_nodes_make_another_list),
        cmocka_unit_test(a_change_shows_if_the_kubelet_sees_it),
        cmocka_unit_test(changes_of_another_list_are_not_taken),
        cmocka_unit_test(the_same_devices_keep_their_number),
        cmocka_unit_test(without_memory_all_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
