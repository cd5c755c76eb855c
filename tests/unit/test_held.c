/* shim/kubelet/held.c: the kubelet's own checkpoint, seen in what the feed shows. */
#include "tests/unit/feed_fixture.h"

/* Before anything is shown the kubelet's file was read. */
static void what_pods_hold_is_shown_from_the_first_message_on(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->config.devices_len = 0;
    start_manager(f);
    start_plugin(f, "!gone");
    world_settle(f->world);
    make_kubelet_file(f, KUBELET_FILE_HELD);
    start_feed(f);
    connect_feed(f);
    watch(f, &q);
    WAIT(f->world, q.messages == 1);
    assert_string_equal(q.id, "gone");
    assert_true(q.held);
    assert_int_equal(kubelet_file_write(f->kubelet_dir, KUBELET_FILE_FREE), 0);
    WAIT(f->world, !q.held);
}

/* Says so on stderr. */
static void a_file_that_cannot_be_read_frees_nothing(void **state)
{
    struct question q;
    struct fixture *f = *state;
    char path[96];

    start_with_list(f, "!gone");
    watch(f, &q);
    make_kubelet_file(f, KUBELET_FILE_HELD);
    WAIT(f->world, q.held);
    snprintf(path, sizeof path, "%s/" KUBELET_CHECKPOINT_FILE, f->kubelet_dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    f->changed = 0;
    WAIT(f->world, f->changed > 0);
    world_settle(f->world);
    assert_true(q.held);
    assert_int_equal(rmdir(path), 0);
    WAIT(f->world, !q.held);
}

/* Held by the file before the shim has heard of the resource. */
static void what_pods_hold_of_a_later_resource(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->config.devices_len = 0;
    make_kubelet_file(f, KUBELET_FILE_HELD);
    start(f);
    watch(f, &q);
    WAIT(f->world, q.messages == 1);
    assert_int_equal(q.resources, 0);
    start_plugin(f, "!gone");
    WAIT(f->world, q.held);
    assert_string_equal(q.id, "gone");
}

/* A kubelet that starts is shown it so though its plugin does not list it. */
static void what_pods_hold_is_on_the_kubelets_nodes(void **state)
{
    static const char text[] =
        "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"uid-1\",\"ContainerName\":\"main\","
        "\"ResourceName\":\"v.com/gpu\",\"DeviceIDs\":{\"1\":[\"gone\"]},\"AllocResp\":null}],"
        "\"RegisteredDevices\":{\"v.com/gpu\":[\"gone\",\"z0\"]}},\"Checksum\":1173979211}";
    struct question q;
    struct fixture *f = *state;

    make_kubelet_file(f, text);
    start_with_list(f, "z0");
    watch(f, &q);
    WAIT(f->world, q.held);
    assert_string_equal(q.id, "gone");
    assert_int_equal(q.nodes, 1);
    assert_int_equal(q.node, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_pods_hold_is_shown_from_the_first_message_on),
        TEST(a_file_that_cannot_be_read_frees_nothing),
        TEST(what_pods_hold_of_a_later_resource),
        TEST(what_pods_hold_is_on_the_kubelets_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
