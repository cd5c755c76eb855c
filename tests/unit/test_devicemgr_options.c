/* Runtime options: copies, and the merge of several (pod_devices.go, deviceRunContainerOptions). */
#include <malloc.h>

#include "devicemgr/things/options.h"
#include "devicemgr_world.h"

static V1beta1__ContainerAllocateResponse *with_device(const char *container_path, const char *host)
{
    V1beta1__ContainerAllocateResponse *options = options_new();

    options_add_device(options, container_path, host, "rw");
    return options;
}

static void the_first_that_names_a_key_wins(void **state)
{
    V1beta1__ContainerAllocateResponse *a = with_device("/dev/x", "/dev/a");
    V1beta1__ContainerAllocateResponse *b = with_device("/dev/x", "/dev/b");
    V1beta1__ContainerAllocateResponse *merged;
    struct options_merge merge;

    (void)state;
    options_add_device(b, "/dev/y", "/dev/b", "r");
    options_add_annotation(a, "/dev/y", "no clash: another list");
    options_merge_init(&merge);
    options_merge_add(&merge, a);
    options_merge_add(&merge, b);
    assert_int_equal(merge.conflicts, 1);
    assert_string_equal(merge.conflict, "/dev/x");
    merged = options_merge_take(&merge);
    options_merge_fini(&merge);
    options_free(a);
    options_free(b); /* what was merged stands alone */
    assert_int_equal(merged->n_devices, 2);
    assert_string_equal(merged->devices[0]->host_path, "/dev/a");
    assert_string_equal(merged->devices[1]->permissions, "r");
    assert_int_equal(merged->n_annotations, 1);
    options_free(merged);
}

static void a_repetition_is_no_conflict(void **state)
{
    V1beta1__ContainerAllocateResponse *a = with_device("/dev/x", "/dev/a");
    struct options_merge merge;

    (void)state;
    options_merge_init(&merge);
    options_merge_add(&merge, a);
    options_merge_add(&merge, a);
    assert_int_equal(merge.conflicts, 0);
    assert_int_equal(merge.merged->n_devices, 1);
    options_merge_fini(&merge); /* not taken: freed here */
    options_free(a);
}

static void every_list_is_merged_by_its_key(void **state)
{
    V1beta1__ContainerAllocateResponse__EnvsEntry env =
        V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
    V1beta1__Mount mount = V1BETA1__MOUNT__INIT, other = V1BETA1__MOUNT__INIT;
    V1beta1__CDIDevice cdi = V1BETA1__CDIDEVICE__INIT;
    V1beta1__ContainerAllocateResponse__EnvsEntry *envs[] = {&env, &env};
    V1beta1__Mount *mounts[] = {&mount, &other};
    V1beta1__CDIDevice *cdis[] = {&cdi, &cdi};
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    struct options_merge merge;

    (void)state;
    env.key = (char *)"A";
    mount.container_path = other.container_path = (char *)"/lib/x";
    other.host_path = (char *)"/elsewhere";
    cdi.name = (char *)"vendor.com/gpu=0";
    options.envs = envs;
    options.mounts = mounts;
    options.cdi_devices = cdis;
    options.n_envs = options.n_mounts = options.n_cdi_devices = 2;
    options_merge_init(&merge);
    options_merge_add(&merge, &options);
    assert_int_equal(merge.merged->n_envs, 1);
    assert_int_equal(merge.merged->n_mounts, 1);
    assert_int_equal(merge.merged->n_cdi_devices, 1);
    assert_int_equal(merge.conflicts, 1); /* the mounts */
    assert_string_equal(merge.merged->cdi_devices[0]->name, "vendor.com/gpu=0");
    options_merge_fini(&merge);
}

/* One text after the other is none; a mount has a flag besides. */
static void each_text_is_looked_at(void **state)
{
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse__EnvsEntry env =
        V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
    V1beta1__ContainerAllocateResponse__EnvsEntry *envs[] = {&env};
    V1beta1__Mount mount = V1BETA1__MOUNT__INIT, *mounts[] = {&mount};
    V1beta1__CDIDevice cdi = V1BETA1__CDIDEVICE__INIT, *cdis[] = {&cdi};
    char **texts[] = {&env.key, &env.value, &mount.container_path, &mount.host_path, &cdi.name};
    size_t bytes;

    (void)state;
    options.envs = envs;
    options.mounts = mounts;
    options.cdi_devices = cdis;
    options.n_envs = options.n_mounts = options.n_cdi_devices = 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = (char *)"caf\xe9";
        assert_false(options_are_text(&options));
        *texts[i] = (char *)"caf\xc3\xa9";
        assert_true(options_are_text(&options));
    }
    bytes = options_bytes(&options);
    mount.read_only = true;
    assert_int_equal(options_bytes(&options), bytes);
}

static void a_copy_keeps_unknown_fields(void **state)
{
    static const uint8_t WIRE[] = {0x2a, 0x03, 0x0a, 0x01, 'x', 0xc2, 0x3e, 0x02, 'h', 'i'};
    V1beta1__ContainerAllocateResponse *options = options_unpack(WIRE, sizeof WIRE);
    V1beta1__ContainerAllocateResponse *copy = options_copy(options);
    size_t len;
    uint8_t *bytes = options_pack(copy, &len);

    (void)state;
    assert_int_equal(len, sizeof WIRE);
    assert_memory_equal(bytes, WIRE, len);
    assert_true(options_equal(options, copy));
    options_add_annotation(copy, "a", "b");
    assert_false(options_equal(options, copy));
    options_free(options);
    options_free(copy);
    options_free(NULL);
    free(bytes);
}

static void garbage_is_no_message(void **state)
{
    (void)state;
    assert_null(options_unpack("\xff\xff", 2));
    assert_null(options_unpack("\x81\0xxxxxxxx", 10)); /* field 0, in a tag of two bytes */
}

static void different_options_of_one_length_differ(void **state)
{
    V1beta1__ContainerAllocateResponse *a = with_device("/dev/x", "/dev/a");
    V1beta1__ContainerAllocateResponse *b = with_device("/dev/x", "/dev/b");

    (void)state;
    assert_false(options_equal(a, b));
    options_free(a);
    options_free(b);
}

/* As the heap counts it, for short texts and long ones, and unknown fields. */
static void its_size_is_what_it_takes(void **state)
{
    static const uint8_t UNKNOWN[] = {0xfa, 0x01, 0x03, 'a', 'b', 'c'};
    V1beta1__ContainerAllocateResponse *options, *copy;
    struct mallinfo2 before, after;
    char text[3000];
    size_t taken;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    options = options_unpack(UNKNOWN, sizeof UNKNOWN);
    for (int i = 0; i < 1000; i++) {
        options_add_annotation(options, "k", i % 100 == 0 ? text : "");
        options_add_device(options, "/d", "", "r");
    }
    before = mallinfo2();
    copy = options_copy(options);
    after = mallinfo2();
    taken = after.uordblks - before.uordblks;
    assert_true(options_bytes(copy) > 10 * sizeof text);
    if (taken > 0) /* else the heap is a sanitizer's, and says nothing */
        assert_in_range(options_bytes(copy), taken, taken * 3 / 2);
    options_free(copy);
    options_free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_names_a_key_wins),
        cmocka_unit_test(a_repetition_is_no_conflict),
        cmocka_unit_test(every_list_is_merged_by_its_key),
        cmocka_unit_test(each_text_is_looked_at),
        cmocka_unit_test(a_copy_keeps_unknown_fields),
        cmocka_unit_test(its_size_is_what_it_takes),
        cmocka_unit_test(garbage_is_no_message),
        cmocka_unit_test(different_options_of_one_length_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
