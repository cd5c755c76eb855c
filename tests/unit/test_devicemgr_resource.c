/* Resources: the table, plugins' lists, built-in devices. */
#include "devicemgr/things/options.h"
#include "devicemgr/things/resource.h"
#include "devicemgr_world.h"

static void names_come_sorted(void **state)
{
    struct resource *table = NULL;
    struct ids names = {0};

    (void)state;
    resources_add(&table, GPU);
    resources_add(&table, NIC);
    resources_names(table, &names);
    assert_string_equal(names.v[0], NIC);
    assert_string_equal(names.v[1], GPU);
    ids_fini(&names);
    assert_null(resources_find(table, "a/b"));
    resources_remove(&table, resources_edit(&table, GPU));
    resources_remove(&table, resources_edit(&table, NIC));
    assert_null(table);
}

static void anything_but_healthy_is_unhealthy(void **state)
{
    static const char *const HEALTH[] = {"Healthy", "healthy", "Unhealthy", "", "Healthy "};
    V1beta1__Device devices[5], *list_devices[5];
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    char ids[5][2] = {"a", "b", "c", "d", "e"};
    struct resource *table = NULL, *resource = resources_add(&table, GPU);
    struct devices_change change;

    (void)state;
    for (int i = 0; i < 5; i++) {
        v1beta1__device__init(&devices[i]);
        devices[i].id = ids[i];
        devices[i].health = (char *)HEALTH[i];
        list_devices[i] = &devices[i];
    }
    list.devices = list_devices;
    list.n_devices = 5;
    assert_true(resource_list(resource, 1, &list, &change));
    assert_int_equal(resource->devices.healthy, 1);
    assert_true(devices_find(&resource->devices, "a")->healthy);
    assert_false(resource_usable(resource)); /* its endpoint is not active */
    endpoint_dial(&resource->endpoint, 1, 1, ENDPOINT_REGISTERED, "x.sock", 0);
    endpoint_set_state(&resource->endpoint, 1, ENDPOINT_ACTIVE);
    assert_true(resource_usable(resource));
    resources_remove(&table, resource);
}

static void built_in_devices_know_their_options(void **state)
{
    struct devicemgr_builtin_device devices[] = {
        {"b", true, "/dev/b", "/dev/x1", "rw", NULL},
        {"a", false, "/dev/a", "/dev/x0", "r", NULL},
        {"a", true, "/dev/other", "/dev/x9", "r", NULL}, /* a repeated id */
    };
    struct resource *table = NULL, *resource = resources_add(&table, "node/dev");
    V1beta1__ContainerAllocateResponse *options;
    struct devices_change change;
    struct ids ids = {0};

    (void)state;
    assert_true(resource_set_builtin(resource, 1, devices, 3, &change));
    assert_true(resource_usable(resource));
    assert_false(resource_set_builtin(resource, 2, devices, 3, &change));
    ids_add(&ids, "a");
    ids_add(&ids, "b");
    ids_add(&ids, "gone");
    options = resource_builtin_options(resource, &ids);
    assert_int_equal(options->n_devices, 2);
    assert_string_equal(options->devices[0]->host_path, "/dev/a");
    assert_string_equal(options->devices[0]->permissions, "r");
    assert_string_equal(options->devices[1]->container_path, "/dev/x1");
    options_free(options);
    ids_fini(&ids);
    resources_remove(&table, resource);
}

static void built_in_devices_bring_more_along_once(void **state)
{
    V1beta1__DeviceSpec spec = V1BETA1__DEVICE_SPEC__INIT, *specs[] = {&spec};
    V1beta1__Mount mount = V1BETA1__MOUNT__INIT, *mounts[] = {&mount};
    V1beta1__ContainerAllocateResponse more = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    struct devicemgr_builtin_device devices[] = {{"a", true, "/dev/a", "/dev/a", "rw", &more},
                                                 {"b", true, "/dev/b", "/dev/b", "rw", &more}};
    struct resource *table = NULL, *resource = resources_add(&table, "node/dev");
    V1beta1__ContainerAllocateResponse *options;
    struct devices_change change;
    struct ids ids = {0};

    (void)state;
    spec.container_path = spec.host_path = (char *)"/dev/ctl";
    spec.permissions = (char *)"r";
    mount.container_path = mount.host_path = (char *)"/opt/a";
    more.devices = specs;
    more.mounts = mounts;
    more.n_devices = more.n_mounts = 1;
    assert_true(resource_set_builtin(resource, 1, devices, 2, &change));
    ids_add(&ids, "a");
    ids_add(&ids, "b");
    options = resource_builtin_options(resource, &ids);
    assert_int_equal(options->n_devices, 3);
    assert_int_equal(options->n_mounts, 1);
    assert_string_equal(options->mounts[0]->host_path, "/opt/a");
    options_free(options);
    ids_fini(&ids);
    resources_remove(&table, resource);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_sorted),
        cmocka_unit_test(anything_but_healthy_is_unhealthy),
        cmocka_unit_test(built_in_devices_know_their_options),
        cmocka_unit_test(built_in_devices_bring_more_along_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
