/* devicemgr/kubelet_file/kubelet_checkpoint.c: a kubelet's real file, each form of each part, and
 * damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "devicemgr/kubelet_file/kubelet_checkpoint.h"
#include "devicemgr/things/mem.h"

#define FILE_BYTES_MAX 8192
#define FILE_LEN(file) (sizeof(file) - 1)

/* Made up; its checksum is as the kubelet's own code has it. */
#define SYNTHETIC                                                                                  \
    "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"11111111-2222-3333-4444-555555555555\","       \
    "\"ContainerName\":\"main\",\"ResourceName\":\"example.com/widget\","                          \
    "\"DeviceIDs\":{\"0\":[\"w0\"],\"1\":[\"w3\"]},\"AllocResp\":\"CgYKAUESAWI=\"}],"              \
    "\"RegisteredDevices\":{\"example.com/widget\":[\"w0\",\"w1\",\"w2\",\"w3\"]}},"               \
    "\"Checksum\":4090544508}"

static int parse(const char *text, size_t bytes, struct kubelet_checkpoint *out, char *err)
{
    char *exact = malloc(bytes + 1); /* so that one byte too many is seen to be read */
    int rc;

    memcpy(exact, text, bytes);
    rc = kubelet_checkpoint_parse(exact, bytes, out, err, KUBELET_CHECKPOINT_ERROR_BYTES_MAX);
    free(exact);
    return rc;
}

static uint32_t fnv(const char *text)
{
    uint32_t sum = 2166136261u;

    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 16777619u;
    return sum;
}

/* A file with this data, and the checksum of what Go prints for it. */
static int parse_data(const char *data, const char *printed, struct kubelet_checkpoint *out,
                      char *err)
{
    char text[FILE_BYTES_MAX];
    int len = snprintf(text, sizeof text, "{\"Data\":%s,\"Checksum\":%" PRIu32 "}", data,
                       printed ? fnv(printed) : 0);

    return parse(text, (size_t)len, out, err);
}

static void accept(const char *data, const char *printed, struct kubelet_checkpoint *out)
{
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX] = "";

    if (parse_data(data, printed, out, err) < 0)
        fail_msg("%s: %s", data, err);
}

static void refuse_text(const char *text, size_t bytes, const char *words)
{
    struct kubelet_checkpoint out = {.checksum = 77};
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX] = "";

    assert_int_equal(parse(text, bytes, &out, err), -1);
    if (!strstr(err, words))
        fail_msg("\"%s\" is not in \"%s\"", words, err);
    assert_int_equal(out.checksum, 77);
}

static void refuse(const char *data, const char *words)
{
    char text[FILE_BYTES_MAX];
    int len = snprintf(text, sizeof text, "{\"Data\":%s,\"Checksum\":1}", data);

    refuse_text(text, (size_t)len, words);
}

/* ---- whole files ---- */

static void the_example_of_the_facts_is_read(void **state)
{
    struct kubelet_checkpoint out;
    const struct kubelet_allocation *one;
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];

    (void)state;
    assert_int_equal(parse(SYNTHETIC, FILE_LEN(SYNTHETIC), &out, err), 0);
    assert_int_equal(out.checksum, 4090544508u);
    assert_true(out.with_nodes);
    assert_int_equal(out.allocations_len, 1);
    one = &out.allocations[0];
    assert_string_equal(one->pod_uid, "11111111-2222-3333-4444-555555555555");
    assert_string_equal(one->container, "main");
    assert_string_equal(one->resource, "example.com/widget");
    assert_int_equal(one->devices_len, 2);
    assert_string_equal(one->devices[0].id, "w0");
    assert_int_equal(one->devices[0].nodes_len, 1);
    assert_int_equal(one->devices[0].nodes[0], 0);
    assert_string_equal(one->devices[1].id, "w3");
    assert_int_equal(one->devices[1].nodes[0], 1);
    assert_int_equal(one->options->n_envs, 1);
    assert_string_equal(one->options->envs[0]->key, "A");
    assert_string_equal(one->options->envs[0]->value, "b");
    assert_int_equal(out.resources_len, 1);
    assert_string_equal(out.resources[0].name, "example.com/widget");
    assert_int_equal(out.resources[0].healthy.len, 4);
    assert_string_equal(out.resources[0].healthy.v[3], "w3");
    kubelet_checkpoint_fini(&out);
    assert_null(out.allocations);
}

static size_t read_real(char text[FILE_BYTES_MAX])
{
    FILE *file = fopen(KUBELET_CHECKPOINT, "rb");
    size_t bytes;

    assert_non_null(file);
    bytes = fread(text, 1, FILE_BYTES_MAX, file);
    fclose(file);
    assert_in_range(bytes, 1, FILE_BYTES_MAX - 1);
    return bytes;
}

static void a_real_kubelets_file_is_read(void **state)
{
    struct kubelet_checkpoint out;
    const struct kubelet_allocation *setup, *main_;
    char text[FILE_BYTES_MAX], err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];

    (void)state;
    assert_int_equal(parse(text, read_real(text), &out, err), 0);
    assert_int_equal(out.checksum, 1076535524);
    assert_int_equal(out.allocations_len, 2);
    setup = &out.allocations[0];
    main_ = &out.allocations[1];
    assert_string_equal(setup->container, "setup");
    assert_int_equal(setup->devices_len, 1);
    assert_string_equal(main_->container, "main");
    assert_string_equal(main_->devices[0].id, "w0");
    assert_string_equal(main_->devices[1].id, "w2");
    assert_int_equal(main_->options->n_devices, 2);
    assert_int_equal(main_->options->n_mounts, 1);
    assert_string_equal(main_->options->envs[0]->value, "w2,w0");
    assert_int_equal(out.resources[0].healthy.len, 4);
    kubelet_checkpoint_fini(&out);
}

static void every_cut_of_a_real_file_is_refused(void **state)
{
    char text[FILE_BYTES_MAX];
    size_t bytes = read_real(text);

    (void)state;
    for (size_t cut = 0; cut < bytes; cut++) {
        if (cut == bytes - 1 && text[cut] == '\n')
            continue;
        refuse_text(text, cut, "it is no JSON");
    }
}

/* A flipped bit breaks the JSON, a name or the checksum; none goes by. */
static void every_flipped_bit_is_found(void **state)
{
    char text[FILE_LEN(SYNTHETIC)];
    unsigned passed = 0;

    (void)state;
    for (size_t at = 0; at < sizeof text; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct kubelet_checkpoint out;
            char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];

            memcpy(text, SYNTHETIC, sizeof text);
            text[at] = (char)(text[at] ^ 1 << bit);
            if (parse(text, sizeof text, &out, err) < 0)
                continue;
            passed++;
            kubelet_checkpoint_fini(&out);
        }
    }
    assert_int_equal(passed, 0);
}

/* ---- the printed text, part by part ---- */

static void empty_null_and_absent_lists_differ_as_in_go(void **state)
{
    static const char *const FILES[][2] = {
        {"{\"PodDeviceEntries\":null,\"RegisteredDevices\":null}",
         "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)<nil> "
         "RegisteredDevices:(map[string][]string)<nil>}"},
        {"{}", "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)<nil> "
               "RegisteredDevices:(map[string][]string)<nil>}"},
        {"{\"PodDeviceEntries\":[],\"RegisteredDevices\":{}}",
         "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)[] "
         "RegisteredDevices:(map[string][]string)map[]}"},
        {"{\"PodDeviceEntries\":null,\"RegisteredDevices\":{\"b/b\":[],\"a/a\":null}}",
         "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)<nil> "
         "RegisteredDevices:(map[string][]string)map[a/a:<nil> b/b:[]]}"},
    };
    struct kubelet_checkpoint out;
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        accept(FILES[i][0], FILES[i][1], &out);
        assert_int_equal(out.allocations_len, 0);
        assert_false(out.with_nodes);
        kubelet_checkpoint_fini(&out);
    }
    assert_int_equal(parse_data(FILES[0][0], FILES[2][1], &out, err), -1);
    assert_non_null(strstr(err, "checksum"));
}

static void nodes_are_ordered_as_numbers(void **state)
{
    struct kubelet_checkpoint out;
    const struct kubelet_device *devices;

    (void)state;
    accept("{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":"
           "\"a/b\",\"DeviceIDs\":{\"10\":[\"x\"],\"2\":[\"x\",\"y\"],\"-1\":[\"z\"],\"7\":[],"
           "\"8\":null},\"AllocResp\":\"\"}],\"RegisteredDevices\":null}",
           "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)["
           "{PodUID:(string)u ContainerName:(string)c ResourceName:(string)a/b "
           "DeviceIDs:(checkpoint.DevicesPerNUMA)map[-1:[z] 2:[x y] 7:[] 8:<nil> 10:[x]] "
           "AllocResp:([]uint8)[]}] RegisteredDevices:(map[string][]string)<nil>}",
           &out);
    assert_int_equal(out.allocations[0].devices_len, 3);
    devices = out.allocations[0].devices;
    assert_string_equal(devices[0].id, "x");
    assert_int_equal(devices[0].nodes_len, 2);
    assert_int_equal(devices[0].nodes[0], 2);
    assert_int_equal(devices[0].nodes[1], 10);
    assert_int_equal(devices[1].nodes_len, 1);
    assert_int_equal(devices[2].nodes_len, 0); /* "-1": no topology */
    assert_non_null(out.allocations[0].options);
    kubelet_checkpoint_fini(&out);
}

/* The kubelet writes an id as often as its plugin has named the node. */
static void an_id_may_stand_twice_at_a_node(void **state)
{
    struct kubelet_checkpoint out;
    const struct kubelet_device *device;

    (void)state;
    accept("{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":"
           "\"a/b\",\"DeviceIDs\":{\"0\":[\"d\",\"d\"],\"1\":[\"d\"]},\"AllocResp\":\"\"}],"
           "\"RegisteredDevices\":null}",
           "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)["
           "{PodUID:(string)u ContainerName:(string)c ResourceName:(string)a/b "
           "DeviceIDs:(checkpoint.DevicesPerNUMA)map[0:[d d] 1:[d]] "
           "AllocResp:([]uint8)[]}] RegisteredDevices:(map[string][]string)<nil>}",
           &out);
    assert_int_equal(out.allocations[0].devices_len, 1);
    device = &out.allocations[0].devices[0];
    assert_int_equal(device->nodes_len, 2);
    assert_int_equal(device->nodes[0], 0);
    assert_int_equal(device->nodes[1], 1);
    kubelet_checkpoint_fini(&out);
}

static void the_old_format_is_read(void **state)
{
    struct kubelet_checkpoint out;

    (void)state;
    accept("{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":"
           "\"a/b\",\"DeviceIDs\":[\"d2\",\"d10\"],\"AllocResp\":\"CgYKAUESAWI=\"},"
           "{\"PodUID\":\"v\",\"ContainerName\":\"c\",\"ResourceName\":\"a/b\","
           "\"DeviceIDs\":null,\"AllocResp\":null}],\"RegisteredDevices\":{\"a/b\":[\"d2\"]}}",
           "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)["
           "{PodUID:(string)u ContainerName:(string)c ResourceName:(string)a/b "
           "DeviceIDs:([]string)[d2 d10] AllocResp:([]uint8)[10 6 10 1 65 18 1 98]} "
           "{PodUID:(string)v ContainerName:(string)c ResourceName:(string)a/b "
           "DeviceIDs:([]string)<nil> AllocResp:([]uint8)<nil>}] "
           "RegisteredDevices:(map[string][]string)map[a/b:[d2]]}",
           &out);
    assert_false(out.with_nodes);
    assert_int_equal(out.allocations_len, 2);
    assert_string_equal(out.allocations[0].devices[0].id, "d2");
    assert_int_equal(out.allocations[0].devices[0].nodes_len, 0);
    assert_string_equal(out.allocations[0].devices[1].id, "d10");
    assert_int_equal(out.allocations[1].devices_len, 0);
    kubelet_checkpoint_fini(&out);
}

static void a_nil_map_and_odd_names_are_printed_as_go_does(void **state)
{
    struct kubelet_checkpoint out;

    (void)state;
    accept("{\"PodDeviceEntries\":[{\"ContainerName\":\"\\u003cc\\u003e \xc3\xa9\","
           "\"ResourceName\":\"a/b\",\"DeviceIDs\":null,\"AllocResp\":\"//8=\",\"New\":1}],"
           "\"RegisteredDevices\":{\"a/b\":[\"with space\"]},\"Other\":[]}",
           "(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)["
           "{PodUID:(string) ContainerName:(string)<c> \xc3\xa9 ResourceName:(string)a/b "
           "DeviceIDs:(checkpoint.DevicesPerNUMA)<nil> AllocResp:([]uint8)[255 255]}] "
           "RegisteredDevices:(map[string][]string)map[a/b:[with space]]}",
           &out);
    assert_string_equal(out.allocations[0].container, "<c> \xc3\xa9");
    assert_null(out.allocations[0].options); /* no message */
    kubelet_checkpoint_fini(&out);
}

/* ---- damage ---- */

#define ENTRY(devices, options)                                                                    \
    "{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":\"a/b\","   \
    "\"DeviceIDs\":" devices ",\"AllocResp\":" options "}],\"RegisteredDevices\":null}"

static void wrong_types_are_refused(void **state)
{
    static const char *const FILES[][2] = {
        {"[]", "\"Data\" is an array, not an object"},
        {"null", "no \"Data\""},
        {"{\"PodDeviceEntries\":{}}", "\"PodDeviceEntries\" is an object, not an array"},
        {"{\"PodDeviceEntries\":[7]}", "an element of \"PodDeviceEntries\""},
        {"{\"PodDeviceEntries\":[{\"PodUID\":7}]}", "\"PodUID\" is a number, not a string"},
        {"{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":7}]}",
         "\"ContainerName\" is a number, not a string"},
        {"{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"c\",\"ResourceName\":7}]}",
         "\"ResourceName\" is a number, not a string"},
        {"{\"RegisteredDevices\":[]}", "\"RegisteredDevices\" is an array"},
        {"{\"RegisteredDevices\":{\"a/b\":true}}", "a resource's ids are no array"},
        {"{\"RegisteredDevices\":{\"a/b\":[true]}}", "an id is no string"},
        {ENTRY("\"d\"", "\"\""), "\"DeviceIDs\" is a string"},
        {ENTRY("{\"zero\":[]}", "\"\""), "no NUMA node's number"},
        {ENTRY("{\"00\":[]}", "\"\""), "no NUMA node's number"},
        {ENTRY("{\"99999999999999999999\":[]}", "\"\""), "no NUMA node's number"},
        {ENTRY("{\"\":[]}", "\"\""), "no NUMA node's number"},
        {ENTRY("{\"0\":{}}", "\"\""), "a NUMA node's ids are no array"},
        {ENTRY("{\"0\":[0]}", "\"\""), "an id is no string"},
        {ENTRY("{\"0\":[0],\"1\":[\"d\"]}", "\"\""), "an id is no string"},
        {ENTRY("[\"d\",\"d\",\"e\"]", "\"\""), "an id stands twice"},
        {ENTRY("{\"-1\":[\"d\"],\"0\":[\"d\"]}", "\"\""), "an id stands twice"},
        {ENTRY("[\"d\",\"d\"]", "\"\""), "an id stands twice"},
        {ENTRY("[null]", "\"\""), "an id is no string"},
        {ENTRY("{}", "7"), "\"AllocResp\" is a number"},
        {ENTRY("{}", "\"CgY\""), "\"AllocResp\" is no base64"},
        {ENTRY("{}", "\"Cg==Cg==\""), "\"AllocResp\" is no base64"},
        {ENTRY("{}", "\"C*==\""), "\"AllocResp\" is no base64"},
        {ENTRY("{}", "\"Ch==\""), "\"AllocResp\" is no base64"},
        {"{\"PodDeviceEntries\":[{\"DeviceIDs\":[]},{\"DeviceIDs\":{}}]}",
         "\"DeviceIDs\" is an object, not an array"},
        {"{\"PodDeviceEntries\":null,\"PodDeviceEntries\":null}", "duplicate"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        refuse(FILES[i][0], FILES[i][1]);
}

static void what_is_no_checkpoint_is_refused(void **state)
{
    static const char *const FILES[][2] = {
        {"", "it is no JSON"},
        {"\x00\x01", "it is no JSON"},
        {"[]", "it is no JSON object"},
        {"{\"Checksum\":1}", "no \"Data\""},
        {"{\"Data\":{}}", "no \"Checksum\""},
        {"{\"Data\":{},\"Checksum\":\"1\"}", "\"Checksum\" is a string"},
        {"{\"Data\":{},\"Checksum\":1.5}", "\"Checksum\" is a real number"},
        {"{\"Data\":{},\"Checksum\":-1}", "its checksum is -1"},
        {"{\"Data\":{},\"Checksum\":99999999999999999999}", "it is no JSON"},
        {"{\"Data\":{},\"Checksum\":1} {}", "it is no JSON"},
    };
    char deep[10000];

    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        refuse_text(FILES[i][0], strlen(FILES[i][0]), FILES[i][1]);
    memset(deep, '[', sizeof deep);
    refuse_text(deep, sizeof deep, "it is no JSON");
}

static void a_huge_file_is_refused_unread(void **state)
{
    struct kubelet_checkpoint out;
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];

    (void)state;
    assert_int_equal(kubelet_checkpoint_parse("", KUBELET_CHECKPOINT_BYTES_MAX + (size_t)1, &out,
                                              err, sizeof err),
                     -1);
    assert_string_equal(err, "it has more than 64 MiB");
}

/* 20,000 devices of one container, and as many registered: no quadratic work. */
static void many_devices_are_cheap(void **state)
{
    enum { MANY = 20000 };
    char *ids = mem_alloc(MANY, 16), *data = mem_alloc(MANY, 48), *end = ids;
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];
    struct kubelet_checkpoint out;
    uint64_t told = 0;
    int len;

    (void)state;
    for (int i = 0; i < MANY; i++)
        end += sprintf(end, "%s\"d%d\"", i ? "," : "", i);
    for (int round = 0; round < 2; round++) { /* the refusal tells the sum */
        len = sprintf(data, "{\"Data\":" ENTRY("{\"0\":[%s]}", "\"\"") ",\"Checksum\":%" PRIu64 "}",
                      ids, told);
        if (round == 0) {
            assert_int_equal(parse(data, (size_t)len, &out, err), -1);
            assert_int_equal(sscanf(err, "its checksum is 0, its data gives %" SCNu64, &told), 1);
        }
    }
    assert_int_equal(parse(data, (size_t)len, &out, err), 0);
    assert_int_equal(out.allocations[0].devices_len, MANY);
    assert_string_equal(out.allocations[0].devices[MANY - 1].id, "d19999");
    kubelet_checkpoint_fini(&out);
    free(ids);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_facts_is_read),
        cmocka_unit_test(a_real_kubelets_file_is_read),
        cmocka_unit_test(every_cut_of_a_real_file_is_refused),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(empty_null_and_absent_lists_differ_as_in_go),
        cmocka_unit_test(nodes_are_ordered_as_numbers),
        cmocka_unit_test(an_id_may_stand_twice_at_a_node),
        cmocka_unit_test(the_old_format_is_read),
        cmocka_unit_test(a_nil_map_and_odd_names_are_printed_as_go_does),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(what_is_no_checkpoint_is_refused),
        cmocka_unit_test(a_huge_file_is_refused_unread),
        cmocka_unit_test(many_devices_are_cheap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
