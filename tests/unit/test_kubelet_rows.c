/* devicemgr/kubelet_file/kubelet_rows.c: what goes over from the kubelet's checkpoint, and what
 * does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/kubelet_file/kubelet_rows.h"
#include "devicemgr/things/options.h"

#define GPU ((char *)"vendor.com/gpu")
#define POD_UID ((char *)"u1")

static struct kubelet_allocation allocation(struct kubelet_device *devices, size_t len)
{
    return (struct kubelet_allocation){.pod_uid = POD_UID,
                                       .container = (char *)"main",
                                       .resource = GPU,
                                       .devices = devices,
                                       .devices_len = len};
}

static void a_resource_lists_healthy_and_allocated_devices(void **state)
{
    int64_t nodes[] = {0, 1};
    char *healthy[] = {(char *)"g0", (char *)"", (char *)"g1"};
    struct kubelet_device devices[] = {{(char *)"g1", nodes, 2}, {(char *)"g7", NULL, 0}};
    struct kubelet_allocation held = allocation(devices, 2);
    struct kubelet_resource resource = {.name = GPU, .healthy = {healthy, 3}};
    struct kubelet_checkpoint from = {
        .allocations = &held, .allocations_len = 1, .resources = &resource, .resources_len = 1};
    Checkpoint__V1__Resource *row;
    struct kubelet_rows rows;

    (void)state;
    kubelet_rows_init(&rows, &from, "boot-1");
    assert_int_equal(rows.len, 2);
    assert_int_equal(rows.left_out, 0);
    assert_int_equal(rows.v[0].record.kind, DEVICEMGR_RECORD_RESOURCE);
    assert_string_equal(rows.v[0].record.key[0], "vendor.com/gpu");
    assert_int_equal(rows.v[0].devices, 3);
    row = checkpoint__v1__resource__unpack(NULL, rows.v[0].record.value_bytes,
                                           rows.v[0].record.value);
    assert_string_equal(row->name, "vendor.com/gpu");
    assert_string_equal(row->endpoint, "");
    assert_int_equal(row->n_devices, 3);
    assert_string_equal(row->devices[0]->id, "g0");
    assert_true(row->devices[0]->healthy);
    assert_string_equal(row->devices[1]->id, "g1");
    assert_int_equal(row->devices[1]->n_numa_nodes, 2);
    assert_string_equal(row->devices[2]->id, "g7");
    assert_false(row->devices[2]->healthy);
    checkpoint__v1__resource__free_unpacked(row, NULL);
    kubelet_rows_fini(&rows);
}

/* Devices may be called the same: what one resource has is not the other's. */
static void of_two_resources_each_has_its_own(void **state)
{
    char *healthy[] = {(char *)"0", (char *)"1"};
    struct kubelet_device gpus[] = {{(char *)"0", NULL, 0}, {(char *)"", NULL, 0}};
    struct kubelet_device nic = {(char *)"7", NULL, 0};
    struct kubelet_allocation held[] = {allocation(gpus, 2), allocation(&nic, 1)};
    struct kubelet_resource resources[] = {
        {.name = GPU, .healthy = {healthy, 2}},
        {.name = (char *)"other.com/nic", .healthy = {healthy, 1}}};
    struct kubelet_checkpoint from = {
        .allocations = held, .allocations_len = 2, .resources = resources, .resources_len = 2};
    static const char *const devices[] = {"0 1", "0 7"};
    struct kubelet_rows rows;
    size_t seen = 0;

    (void)state;
    held[1].resource = (char *)"other.com/nic";
    kubelet_rows_init(&rows, &from, "boot-1");
    for (size_t i = 0; i < rows.len; i++) {
        Checkpoint__V1__Resource *row;
        char text[32] = "";

        if (rows.v[i].record.kind != DEVICEMGR_RECORD_RESOURCE)
            continue;
        row = checkpoint__v1__resource__unpack(NULL, rows.v[i].record.value_bytes,
                                               rows.v[i].record.value);
        for (size_t d = 0; d < row->n_devices; d++)
            strcat(strcat(text, d > 0 ? " " : ""), row->devices[d]->id);
        assert_string_equal(text, devices[strcmp(row->name, GPU) != 0]);
        checkpoint__v1__resource__free_unpacked(row, NULL);
        seen++;
    }
    assert_int_equal(seen, 2);
    kubelet_rows_fini(&rows);
}

/* The options of one allocation after the way through its row; NULL: none. */
static V1beta1__ContainerAllocateResponse *
options_after(V1beta1__ContainerAllocateResponse *options, char boot_id[16])
{
    struct kubelet_device device = {(char *)"g0", NULL, 0};
    struct kubelet_allocation held = allocation(&device, 1);
    struct kubelet_checkpoint from = {.allocations = &held, .allocations_len = 1};
    V1beta1__ContainerAllocateResponse *after = NULL;
    Checkpoint__V1__Allocation *row;
    struct kubelet_rows rows;

    held.options = options;
    kubelet_rows_init(&rows, &from, "boot-1");
    assert_int_equal(rows.len, 1);
    assert_string_equal(rows.v[0].record.key[0], "u1");
    assert_string_equal(rows.v[0].record.key[1], "main");
    assert_string_equal(rows.v[0].record.key[2], "vendor.com/gpu");
    row = checkpoint__v1__allocation__unpack(NULL, rows.v[0].record.value_bytes,
                                             rows.v[0].record.value);
    assert_int_equal(row->n_device_ids, 1);
    assert_string_equal(row->device_ids[0], "g0");
    assert_int_equal(row->has_options, rows.v[0].with_options);
    strcpy(boot_id, row->boot_id);
    if (row->has_options)
        after = options_unpack(row->options.data, row->options.len);
    checkpoint__v1__allocation__free_unpacked(row, NULL);
    kubelet_rows_fini(&rows);
    options_free(options);
    return after;
}

static void options_go_over_unless_they_are_a_token(void **state)
{
    V1beta1__ContainerAllocateResponse *options = options_new(), *after;
    char boot_id[16];

    (void)state;
    options_add_device(options, "/dev/g0", "/dev/null", "rw");
    options_add_annotation(options, "vendor.com/x", "1");
    after = options_after(options, boot_id);
    assert_string_equal(after->devices[0]->container_path, "/dev/g0");
    assert_string_equal(boot_id, "boot-1");
    options_free(after);

    after = options_after(options_new(), boot_id); /* a plugin may have nothing to say */
    assert_non_null(after);
    options_free(after);

    options = options_new();
    options_add_annotation(options, "devices.cri-device-shim/vendor.com_gpu", "{}");
    assert_null(options_after(options, boot_id));
    assert_string_equal(boot_id, "");
    assert_null(options_after(NULL, boot_id));
}

static void what_breaks_a_rule_is_left_out(void **state)
{
    struct kubelet_device good = {(char *)"g0", NULL, 0}, nameless = {(char *)"", NULL, 0};
    struct kubelet_allocation held[] = {allocation(&good, 1), allocation(&good, 1),
                                        allocation(&good, 1), allocation(NULL, 0),
                                        allocation(&nameless, 1)};
    struct kubelet_resource resource = {.name = (char *)"gpu"};
    struct kubelet_checkpoint from = {
        .allocations = held, .allocations_len = 5, .resources = &resource, .resources_len = 1};
    struct kubelet_rows rows;

    (void)state;
    held[0].pod_uid = (char *)"";
    held[1].container = (char *)"";
    held[2].resource = (char *)"gpu";
    kubelet_rows_init(&rows, &from, "");
    assert_int_equal(rows.len, 0);
    assert_int_equal(rows.left_out, 6);
    kubelet_rows_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resource_lists_healthy_and_allocated_devices),
        cmocka_unit_test(of_two_resources_each_has_its_own),
        cmocka_unit_test(options_go_over_unless_they_are_a_token),
        cmocka_unit_test(what_breaks_a_rule_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
