/* devicemgr/things/granted.c. */
#include "devicemgr/things/granted.h"

#include <stdint.h>
#include <stdlib.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

/* What a driver may answer of `len` devices that are all this one. */
static bool read(struct granted *granted, Dra__V1__Device *device, size_t len)
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    uint8_t *bytes;
    size_t size;
    bool fits;

    message.n_devices = len;
    message.devices = calloc(len, sizeof *message.devices);
    for (size_t i = 0; i < len; i++)
        message.devices[i] = device;
    bytes = malloc(dra__v1__node_prepare_resource_response__get_packed_size(&message));
    size = dra__v1__node_prepare_resource_response__pack(&message, bytes);
    fits = granted_read(granted, bytes, size);
    free(bytes);
    free(message.devices);
    return fits;
}

static void what_a_driver_answers_is_read(void **state)
{
    Dra__V1__Device device = DRA__V1__DEVICE__INIT;
    char *cdi[] = {(char *)"v/c=0"}, *id;
    struct granted granted = {0};

    (void)state;
    device.pool_name = (char *)"p";
    device.device_name = (char *)"gpu-0";
    device.cdi_device_ids = cdi;
    device.n_cdi_device_ids = 1;
    assert_true(read(&granted, &device, 1));
    assert_null(granted.v[0].share_id);
    assert_true(granted_device_named(&granted.v[0], (const char *const *)cdi, 1));
    device.shared_case = DRA__V1__DEVICE__SHARED_SHARE_ID;
    device.share_id = (char *)"s";
    assert_true(read(&granted, &device, 1)); /* in place of what there was */
    assert_int_equal(granted.len, 1);
    assert_string_equal(granted.v[0].share_id, "s");
    id = granted_device_id(&granted.v[0]);
    assert_string_equal(id, "p/gpu-0");
    free(id);
    assert_true(read(&granted, &device, CLAIM_DEVICES_MAX));
    assert_false(read(&granted, &device, CLAIM_DEVICES_MAX + 1));
    assert_false(granted_read(&granted, "\xff", 1));
    assert_int_equal(granted.len, CLAIM_DEVICES_MAX); /* nothing has changed */
    granted_fini(&granted);
}

static void a_device_is_the_same_by_pool_name_and_share(void **state)
{
    struct granted a = {0}, b = {0};

    (void)state;
    granted_add(&a, "p", "gpu-0", NULL, false);
    granted_add(&b, "q", "gpu-0", NULL, false);
    assert_null(granted_find(&a, &b.v[0]));
    granted_add(&b, "p", "gpu-0", "s", false);
    assert_null(granted_find(&a, &b.v[1]));
    assert_null(granted_find(&b, &a.v[0]));
    granted_add(&b, "p", "gpu-0", NULL, true);
    assert_ptr_equal(granted_find(&b, &a.v[0]), &b.v[2]);
    assert_false(granted_same(&a, &b));
    assert_false(granted_same(&b, &a));
    granted_add(&a, "p", "gpu-0", "s", false);
    granted_add(&a, "q", "gpu-0", NULL, false);
    assert_true(granted_same(&a, &b)); /* in any order */
    granted_fini(&a);
    granted_fini(&b);
}

static void names_of_the_runtime_are_all_or_nothing(void **state)
{
    const char *const both[] = {"v/c=0", "v/c=all"};
    struct granted a = {0}, b = {0};

    (void)state;
    granted_add(&a, "p", "gpu-0", NULL, false);
    granted_add(&b, "p", "gpu-0", NULL, false);
    assert_false(granted_device_named(&a.v[0], both, 2)); /* which has none */
    assert_true(granted_named_alike(&a.v[0], &b.v[0]));
    ids_add(&a.v[0].cdi, both[0]);
    ids_add(&a.v[0].cdi, both[1]);
    assert_true(granted_device_named(&a.v[0], both, 2));
    assert_false(granted_device_named(&a.v[0], both, 1));
    ids_add(&b.v[0].cdi, both[1]);
    assert_false(granted_named_alike(&a.v[0], &b.v[0]));
    assert_false(granted_named_alike(&b.v[0], &a.v[0]));
    ids_add(&b.v[0].cdi, both[0]);
    assert_true(granted_named_alike(&a.v[0], &b.v[0]));
    granted_fini(&a);
    granted_fini(&b);
}

static void add(struct granted *granted, const char *device, const char *name)
{
    ids_add(&granted_add(granted, "p", device, NULL, false)->cdi, name);
}

/* Each once, without what is there by the same names, and the newest of too many. */
static void what_lapses_is_kept(void **state)
{
    struct granted lapsed = {0}, devices = {0}, now = {0};

    (void)state;
    add(&now, "gpu-0", "n0");
    add(&now, "gpu-1", "n1-new");
    for (int i = 0; i < 2; i++) {
        add(&devices, "gpu-0", "n0");
        add(&devices, "gpu-1", "n1");
        add(&devices, "gpu-2", "n2");
        granted_lapse(&lapsed, &devices, &now, 2);
        assert_int_equal(devices.len, 0);
        assert_int_equal(lapsed.len, 2);
        assert_string_equal(granted_named(&lapsed, "n1")->device, "gpu-1");
        assert_null(granted_named(&lapsed, "n0"));
    }
    add(&devices, "gpu-2", "n3");
    granted_lapse(&lapsed, &devices, &now, 2);
    assert_int_equal(lapsed.len, 2);
    assert_null(granted_named(&lapsed, "n1"));
    assert_string_equal(granted_named(&lapsed, "n2")->device, "gpu-2");
    assert_string_equal(granted_named(&lapsed, "n3")->device, "gpu-2");
    granted_fini(&lapsed);
    granted_fini(&now);
}

static void what_is_for_no_request_is_for_each(void **state)
{
    struct granted granted = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        add(&granted, "gpu-0", "n");
    ids_add(&granted.v[0].requests, "a");
    ids_add(&granted.v[1].requests, "b");
    ids_add(&granted.v[2].requests, "b");
    ids_add(&granted.v[2].requests, "a");
    assert_false(granted_meant_alike(&granted.v[0], &granted.v[1]));
    assert_true(granted_meant_alike(&granted.v[0], &granted.v[2]));
    assert_true(granted_meant_alike(&granted.v[2], &granted.v[1]));
    assert_true(granted_meant_alike(&granted.v[0], &granted.v[3]));
    assert_true(granted_meant_alike(&granted.v[3], &granted.v[0]));
    granted_fini(&granted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_driver_answers_is_read),
        cmocka_unit_test(a_device_is_the_same_by_pool_name_and_share),
        cmocka_unit_test(names_of_the_runtime_are_all_or_nothing),
        cmocka_unit_test(what_lapses_is_kept),
        cmocka_unit_test(what_is_for_no_request_is_for_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
