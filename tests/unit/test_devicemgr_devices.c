/* Snapshots of devices and what changed between two. */
#include <stdio.h>

#include "devicemgr/things/devices.h"
#include "devicemgr_world.h"

static const int64_t NODES[] = {0, 1};

static void a_first_list_is_all_new(void **state)
{
    struct device_entry list[] = {{"g10", true, NODES, 2}, {"g2", false, NULL, 0}};
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    assert_true(devices_update(&devices, 7, list, 2, &change));
    assert_int_equal(change.added, 2);
    assert_int_equal(devices.healthy, 1);
    assert_string_equal(devices.items[0].id, "g2"); /* natural order */
    assert_int_equal(devices_find(&devices, "g10")->nodes_len, 2);
    assert_int_equal(devices_find(&devices, "g2")->since_ms, 7);
    assert_null(devices_find(&devices, "g1"));
    devices_fini(&devices);
}

static void the_same_list_changes_nothing(void **state)
{
    struct device_entry list[] = {{"g1", true, NODES, 2}, {"g0", true, NULL, 0}};
    struct device_entry turned[] = {{"g0", true, NULL, 0}, {"g1", true, NODES, 2}};
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    assert_true(devices_update(&devices, 1, list, 2, &change));
    assert_false(devices_update(&devices, 2, list, 2, &change));
    assert_false(devices_update(&devices, 3, turned, 2, &change)); /* in whatever order */
    assert_int_equal(devices_find(&devices, "g0")->since_ms, 1);
    devices_fini(&devices);
}

static void each_difference_is_counted(void **state)
{
    struct device_entry before[] = {
        {"a", true, NULL, 0}, {"b", true, NULL, 0}, {"c", true, NODES, 1}};
    struct device_entry health[] = {
        {"a", true, NULL, 0}, {"b", false, NULL, 0}, {"c", true, NODES, 2}};
    struct device_entry other[] = {
        {"d", true, NULL, 0}, {"b", true, NULL, 0}, {"c", true, NODES, 1}};
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    devices_update(&devices, 1, before, 3, &change);
    assert_true(devices_update(&devices, 2, health, 3, &change));
    assert_int_equal(change.health, 1);
    assert_int_equal(change.topology, 1);
    assert_int_equal(change.added + change.removed, 0);
    assert_int_equal(devices.healthy, 2);
    assert_int_equal(devices_find(&devices, "b")->since_ms, 2);
    assert_true(devices_update(&devices, 3, other, 3, &change));
    assert_int_equal(change.added, 1);
    assert_int_equal(change.removed, 1);
    assert_int_equal(change.health, 1);
    assert_int_equal(change.topology, 1);
    assert_int_equal(devices.healthy, 3);
    assert_true(devices_update(&devices, 4, NULL, 0, &change));
    assert_int_equal(change.removed, 3);
    assert_int_equal(devices.len, 0);
    devices_fini(&devices);
}

/* Whether they are new, or only elsewhere than before. */
static void what_they_take_is_counted(void **state)
{
    struct device_entry none[] = {{"a", true, NULL, 0}, {"b", true, NULL, 0}};
    struct device_entry both[] = {{"a", true, NODES, 2}, {"b", true, NULL, 0}};
    const size_t most = devices_bytes_of("a", 2) + devices_bytes_of("b", 0);
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    devices_update(&devices, 1, none, 2, &change);
    assert_int_equal(devices.bytes, devices_bytes_of("a", 0) + devices_bytes_of("b", 0));
    assert_true(devices_update(&devices, 2, both, 2, &change));
    assert_int_equal(change.topology, 1);
    assert_int_equal(devices.bytes, most);
    assert_true(devices_update(&devices, 3, both, 1, &change));
    assert_int_equal(devices.bytes, devices_bytes_of("a", 2));
    assert_true(devices_update(&devices, 4, none, 1, &change));
    assert_int_equal(devices.bytes, devices_bytes_of("a", 0));
    devices_fini(&devices);
}

static void repeated_and_empty_ids_count_for_nothing(void **state)
{
    struct device_entry list[] = {{"a", true, NULL, 0}, {"", true, NULL, 0}, {"a", false, NULL, 0}};
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    assert_true(devices_update(&devices, 1, list, 3, &change));
    assert_int_equal(change.dropped, 2);
    assert_int_equal(devices.len, 1);
    assert_false(devices_find(&devices, "a")->healthy); /* as listed last */
    assert_false(devices_update(&devices, 2, list, 3, &change));
    assert_int_equal(change.dropped, 2);
    devices_fini(&devices);
}

static void ids_that_are_no_utf8_count_for_nothing(void **state)
{
    struct device_entry list[] = {{"b", true, NULL, 0},
                                  {"\xff\xfe", true, NULL, 0},
                                  {"a\xc3", true, NULL, 0},
                                  {"a", true, NULL, 0},
                                  {"\xed\xa0\x80", true, NULL, 0}};
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    assert_true(devices_update(&devices, 1, list, 5, &change));
    assert_int_equal(change.dropped, 3);
    assert_int_equal(change.added, 2);
    assert_int_equal(devices.len, 2);
    assert_int_equal(devices.healthy, 2);
    assert_null(devices_find(&devices, "\xff\xfe"));
    assert_false(devices_update(&devices, 2, list, 5, &change));
    assert_int_equal(change.dropped, 3);
    assert_true(devices_update(&devices, 3, &list[1], 1, &change)); /* alone */
    assert_int_equal(change.dropped, 1);
    assert_int_equal(devices.len, 0);
    devices_fini(&devices);
}

static void nodes_that_there_cannot_be_count_for_nothing(void **state)
{
    const int64_t odd[] = {1, -1, 1023, 1, 1024, INT64_MAX, INT64_MIN, 1023, 0};
    struct device_entry list[] = {{"a", true, odd, 9}};
    int64_t *many = mem_alloc(100000, sizeof *many);
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    assert_true(devices_update(&devices, 1, list, 1, &change));
    assert_int_equal(change.nodes, 6);
    assert_int_equal(devices.items[0].nodes_len, 3);
    assert_int_equal(devices.items[0].nodes[0], 1);
    assert_int_equal(devices.items[0].nodes[1], 1023);
    assert_int_equal(devices.items[0].nodes[2], 0);
    assert_false(devices_update(&devices, 2, list, 1, &change));
    assert_int_equal(change.nodes, 6);
    for (int64_t i = 0; i < 100000; i++)
        many[i] = i % 5000;
    list[0] = (struct device_entry){"a", true, many, 100000};
    assert_true(devices_update(&devices, 3, list, 1, &change));
    assert_int_equal(devices.items[0].nodes_len, 1024);
    assert_int_equal(change.nodes, 100000 - 1024);
    free(many);
    devices_fini(&devices);
}

static void one_change_in_a_hundred_thousand_is_found(void **state)
{
    size_t n = 100000;
    struct device_entry *list = mem_alloc(n, sizeof *list);
    char(*ids)[16] = mem_alloc(n, sizeof *ids);
    struct devices devices = {0};
    struct devices_change change;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "d%zu", n - i);
        list[i] = (struct device_entry){ids[i], true, NULL, 0};
    }
    assert_true(devices_update(&devices, 1, list, n, &change));
    assert_false(devices_update(&devices, 2, list, n, &change));
    list[4711].healthy = false;
    assert_true(devices_update(&devices, 3, list, n, &change));
    assert_int_equal(change.health, 1);
    assert_int_equal(devices.healthy, n - 1);
    assert_false(devices_find(&devices, ids[4711])->healthy);
    list[99999].id = "another";
    assert_true(devices_update(&devices, 4, list, n, &change));
    assert_int_equal(change.added, 1);
    assert_int_equal(change.removed, 1);
    assert_int_equal(change.health + change.topology, 0);
    assert_int_equal(devices.len, n);
    assert_null(devices_find(&devices, ids[99999]));
    assert_non_null(devices_find(&devices, "another"));
    devices_fini(&devices);
    free(ids);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_list_is_all_new),
        cmocka_unit_test(the_same_list_changes_nothing),
        cmocka_unit_test(each_difference_is_counted),
        cmocka_unit_test(what_they_take_is_counted),
        cmocka_unit_test(repeated_and_empty_ids_count_for_nothing),
        cmocka_unit_test(ids_that_are_no_utf8_count_for_nothing),
        cmocka_unit_test(nodes_that_there_cannot_be_count_for_nothing),
        cmocka_unit_test(one_change_in_a_hundred_thousand_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
