/* Rows of the checkpoint, there and back; a bad row changes nothing. */
#include <stdio.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/books/record.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/options.h"
#include "devicemgr_world.h"

static struct devicemgr_record row(enum devicemgr_record_kind kind, const char *k0, const char *k1,
                                   const char *k2, const void *value, size_t bytes)
{
    return (struct devicemgr_record){kind, {k0, k1, k2}, value, bytes};
}

static void a_resource_comes_back_as_it_was(void **state)
{
    int64_t nodes[] = {0, 3};
    struct device_entry entries[] = {{"g1", false, nodes, 2}, {"g0", true, NULL, 0}};
    struct resource *table = NULL, *again = NULL, *resource = resources_add(&table, GPU);
    struct devices_change change;
    struct devicemgr_record record;
    uint8_t *bytes;
    size_t len;

    (void)state;
    devices_update(&resource->devices, 5, entries, 2, &change);
    endpoint_restore(&resource->endpoint, "gpu.sock", 1234, true, true);
    bytes = record_of_resource(resource, "boot-1", &len);
    resources_remove(&table, resource);
    record = row(DEVICEMGR_RECORD_RESOURCE, GPU, "", "", bytes, len);
    assert_int_equal(record_restore_resource(&again, 9, "boot-1", &record), 0);
    assert_int_equal(record_restore_resource(&again, 9, "boot-1", &record), -1); /* twice */
    resource = resources_edit(&again, GPU);
    assert_string_equal(resource->endpoint.socket_good, "gpu.sock");
    assert_int_equal(resource->endpoint.uid_good, 1234);
    assert_true(resource->endpoint.pre_start && resource->endpoint.has_preference);
    assert_int_equal(resource->devices.len, 2);
    assert_true(devices_find(&resource->devices, "g0")->healthy);
    assert_false(devices_find(&resource->devices, "g1")->healthy);
    assert_int_equal(devices_find(&resource->devices, "g1")->nodes_len, 2);
    assert_int_equal(devices_find(&resource->devices, "g1")->nodes[1], 3);
    resources_remove(&again, resource);
    free(bytes);
}

static void restored(const char *boot_id, uint64_t now_ms, const char *stored_boot_id,
                     struct resource **table)
{
    struct resource *from = NULL, *resource = resources_add(&from, GPU);
    struct devicemgr_record record;
    uint8_t *bytes;
    size_t len;

    endpoint_restore(&resource->endpoint, "gpu.sock", 0, false, false);
    endpoint_stop(&resource->endpoint, 700, "EOF");
    endpoint_set_stop_stored(&resource->endpoint, stored_boot_id != NULL);
    bytes = record_of_resource(resource, stored_boot_id ? stored_boot_id : "boot-1", &len);
    resources_remove(&from, resource);
    record = row(DEVICEMGR_RECORD_RESOURCE, GPU, "", "", bytes, len);
    assert_int_equal(record_restore_resource(table, now_ms, boot_id, &record), 0);
    free(bytes);
}

static void a_stop_time_is_that_of_its_boot(void **state)
{
    static const struct {
        const char *boot_id;
        uint64_t now_ms;
        const char *stored_boot_id; /* NULL: not to be stored yet */
        bool stopped;
    } cases[] = {
        {"boot-1", 900, "boot-1", true},
        {"boot-1", 700, "boot-1", true},
        {"boot-1", 699, "boot-1", false},
        {"boot-2", 900, "boot-1", false},
        {"", 900, "", false},
        {"boot-1", 900, NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct resource *table = NULL;

        restored(cases[i].boot_id, cases[i].now_ms, cases[i].stored_boot_id, &table);
        assert_int_equal(table->endpoint.stopped, cases[i].stopped);
        assert_int_equal(table->endpoint.stop_stored, cases[i].stopped);
        if (cases[i].stopped) {
            assert_int_equal(table->endpoint.stopped_ms, 700);
            assert_string_equal(table->endpoint.stop_reason, "EOF");
        }
        resources_remove(&table, table);
    }
}

static void since_when_it_is_unhealthy_is_of_its_boot(void **state)
{
    static const struct {
        bool closed, no_execute;
        const char *boot_id;
        uint64_t now_ms, since_ms;
    } cases[] = {
        {true, false, "boot-1", 900, 5},    {false, true, "boot-1", 900, 5},
        {true, false, "boot-1", 3, 3},      {true, true, "boot-2", 900, 900},
        {false, false, "boot-1", 900, 900}, /* it is for nobody */
    };
    struct device_entry entries[] = {{"g0", true, NULL, 0}, {"g1", false, NULL, 0}};
    struct devices_change change;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct resource *table = NULL, *resource = resources_add(&table, GPU);
        bool is_boot = strcmp(cases[i].boot_id, "boot-1") == 0;
        struct devicemgr_record record;
        uint8_t *bytes;
        size_t len;

        devices_update(&resource->devices, 5, entries, 2, &change);
        resource->health_closed = cases[i].closed;
        if (cases[i].no_execute)
            ids_add(&resource->no_execute, "g1");
        bytes = record_of_resource(resource, "boot-1", &len);
        resources_remove(&table, resource);
        record = row(DEVICEMGR_RECORD_RESOURCE, GPU, "", "", bytes, len);
        assert_int_equal(
            record_restore_resource(&table, cases[i].now_ms, cases[i].boot_id, &record), 0);
        assert_int_equal(table->health_closed, cases[i].closed && is_boot);
        assert_int_equal(table->no_execute.len, cases[i].no_execute && is_boot);
        assert_int_equal(devices_find(&table->devices, "g1")->since_ms, cases[i].since_ms);
        assert_int_equal(devices_find(&table->devices, "g0")->since_ms, cases[i].now_ms);
        resources_remove(&table, table);
        free(bytes);
    }
}

static void what_is_no_device_does_not_come_back(void **state)
{
    Checkpoint__V1__Device items[] = {CHECKPOINT__V1__DEVICE__INIT, CHECKPOINT__V1__DEVICE__INIT};
    Checkpoint__V1__Device *devices[] = {&items[0], &items[1]};
    Checkpoint__V1__Resource message = CHECKPOINT__V1__RESOURCE__INIT;
    struct resource *table = NULL;
    struct devicemgr_record record;
    uint8_t bytes[128];

    (void)state;
    items[0].id = (char *)"\xff";
    items[1].id = (char *)"g1";
    items[0].unhealthy_since_ms = items[1].unhealthy_since_ms = 5;
    message.name = (char *)GPU;
    message.devices = devices;
    message.n_devices = 2;
    message.health_closed = true;
    message.no_execute_boot_id = (char *)"boot-1";
    record = row(DEVICEMGR_RECORD_RESOURCE, GPU, "", "", bytes,
                 checkpoint__v1__resource__pack(&message, bytes));
    assert_int_equal(record_restore_resource(&table, 900, "boot-1", &record), 0);
    assert_int_equal(table->devices.len, 1);
    assert_int_equal(devices_find(&table->devices, "g1")->since_ms, 5);
    resources_remove(&table, table);
}

static void every_cut_of_a_resource_is_refused_or_harmless(void **state)
{
    struct device_entry entry = {"g0", true, NULL, 0};
    struct resource *table = NULL, *resource = resources_add(&table, GPU);
    struct devices_change change;
    uint8_t *bytes;
    size_t len;

    (void)state;
    devices_update(&resource->devices, 5, &entry, 1, &change);
    endpoint_restore(&resource->endpoint, "gpu.sock", 0, false, false);
    bytes = record_of_resource(resource, "boot-1", &len);
    resources_remove(&table, resource);
    for (size_t cut = 0; cut < len; cut++) {
        struct devicemgr_record record = row(DEVICEMGR_RECORD_RESOURCE, GPU, "", "", bytes, cut);

        if (record_restore_resource(&table, 9, "boot-1", &record) == 0)
            resources_remove(&table, table);
        else
            assert_null(table);
    }
    free(bytes);
}

static void resource_rows_that_break_a_rule_are_refused(void **state)
{
    Checkpoint__V1__Resource message = CHECKPOINT__V1__RESOURCE__INIT;
    struct resource *table = NULL;
    struct devicemgr_record record;
    uint8_t bytes[64];
    size_t len;

    (void)state;
    message.name = (char *)"bad";
    message.endpoint = (char *)"x.sock";
    len = checkpoint__v1__resource__pack(&message, bytes);
    record = row(DEVICEMGR_RECORD_RESOURCE, "bad", "", "", bytes, len);
    assert_int_equal(record_restore_resource(&table, 0, "boot-1", &record), -1);
    message.name = (char *)GPU;
    len = checkpoint__v1__resource__pack(&message, bytes);
    record = row(DEVICEMGR_RECORD_RESOURCE, NIC, "", "", bytes, len); /* another's key */
    assert_int_equal(record_restore_resource(&table, 0, "boot-1", &record), -1);
    assert_null(table);
}

static void no_more_resources_come_back_than_there_may_be(void **state)
{
    Checkpoint__V1__Resource message = CHECKPOINT__V1__RESOURCE__INIT;
    struct resource *table = NULL;
    uint8_t bytes[64];
    char name[32];

    (void)state;
    message.name = name;
    for (size_t i = 0; i <= RESOURCES_MAX; i++) {
        struct devicemgr_record record;

        snprintf(name, sizeof name, "vendor.com/r%zu", i);
        record = row(DEVICEMGR_RECORD_RESOURCE, name, "", "", bytes,
                     checkpoint__v1__resource__pack(&message, bytes));
        assert_int_equal(record_restore_resource(&table, 0, "boot-1", &record),
                         i < RESOURCES_MAX ? 0 : -1);
    }
    assert_int_equal(HASH_COUNT(table), RESOURCES_MAX);
    while (table)
        resources_remove(&table, table);
}

/* An imported row: the kubelet's checkpoint does not say where the plugin was. */
static void a_resource_without_a_socket_comes_back(void **state)
{
    Checkpoint__V1__Resource message = CHECKPOINT__V1__RESOURCE__INIT;
    struct resource *table = NULL;
    struct devicemgr_record record;
    uint8_t bytes[64];

    (void)state;
    message.name = (char *)GPU;
    record = row(DEVICEMGR_RECORD_RESOURCE, GPU, "", "", bytes,
                 checkpoint__v1__resource__pack(&message, bytes));
    assert_int_equal(record_restore_resource(&table, 0, "boot-1", &record), 0);
    assert_string_equal(table->endpoint.socket_good, "");
    resources_remove(&table, table);
}

/* ---- an allocation, and what comes back of it ---- */

struct there_and_back {
    struct allocations table, again;
    struct allocation *allocation; /* of `table`; with the ids g0, g1 */
    struct devicemgr_record record;
    uint8_t *bytes;
};

static void begin(struct there_and_back *t)
{
    const struct ids ids = {(char *[]){(char *)"g1", (char *)"g0"}, 2};

    *t = (struct there_and_back){0};
    t->allocation = allocations_add(&t->table, "u1", "main", GPU, &ids);
}

static void pack(struct there_and_back *t)
{
    size_t len;

    t->bytes = record_of_allocation(t->allocation, "boot-1", &len);
    t->record = row(DEVICEMGR_RECORD_ALLOCATION, "u1", "main", GPU, t->bytes, len);
}

static const struct allocation *come_back(struct there_and_back *t)
{
    assert_int_equal(record_restore_allocation(&t->again, 4711, &t->record), 0);
    return allocations_find(&t->again, "u1", "main", GPU);
}

static void end(struct there_and_back *t)
{
    allocations_fini(&t->table);
    allocations_fini(&t->again);
    free(t->bytes);
}

static void an_allocation_comes_back_as_it_was(void **state)
{
    struct there_and_back t;
    const struct allocation *back;

    (void)state;
    begin(&t);
    allocation_set_fresh(t.allocation, options_new(), 1);
    options_add_device(t.allocation->fresh, "/dev/a", "/dev/b", "r");
    allocation_queue(t.allocation);
    allocation_carry(t.allocation, 7); /* under way: it carries the fresh options */
    allocation_set_own_choice(t.allocation, true);
    pack(&t);
    back = come_back(&t);
    assert_int_equal(record_restore_allocation(&t.again, 4711, &t.record), -1); /* twice */
    assert_int_equal(back->row, ALLOCATION_DURABLE);
    assert_true(back->own_choice);
    assert_string_equal(back->boot_id, "boot-1");
    assert_string_equal(back->ids.v[0], "g0");
    assert_string_equal(back->options->devices[0]->host_path, "/dev/b");
    assert_int_equal(allocation_life(back), ALLOCATION_UNKNOWN);
    assert_int_equal(back->unknown_until_ms, 4711);
    end(&t);
}

static void what_was_asked_for_comes_back(void **state)
{
    char *ids[] = {(char *)"g9", (char *)"g8"};
    struct there_and_back t;
    const struct allocation *back;

    (void)state;
    begin(&t);
    allocation_set_replaced(t.allocation, &(struct ids){ids, t.allocation->ids.len});
    pack(&t);
    back = come_back(&t);
    assert_string_equal(back->ids.v[0], "g0");
    assert_true(ids_contain_sorted(allocation_asked(back), "g9"));
    assert_ptr_equal(allocations_askers(&t.again, GPU, "g9")->v[0], back);
    assert_null(allocations_holders(&t.again, GPU, "g9"));
    end(&t);
}

/* By which claims, and whether the cluster has said that one only looks. */
static void what_claims_have_comes_back(void **state)
{
    struct by_claims by = {0};
    struct there_and_back t;
    const struct allocation *back;

    (void)state;
    begin(&t);
    by_claims_add(&by, "g0", "c2", true);
    by_claims_add(&by, "g0", "c1", false);
    allocation_set_claimed(t.allocation, &by);
    pack(&t);
    back = come_back(&t);
    assert_true(back->claimed);
    assert_true(by_claims_equal(&back->by, &by));
    by_claims_fini(&by);
    end(&t);
}

/* What is in the place of itself is not in another's. */
static void what_was_asked_for_may_be_what_there_is(void **state)
{
    struct there_and_back t;

    (void)state;
    begin(&t);
    allocation_set_replaced(t.allocation, &t.allocation->ids);
    assert_false(allocation_replaced(t.allocation));
    assert_ptr_equal(allocation_asked(t.allocation), &t.allocation->ids);
    end(&t);
}

static void fresh_options_not_in_the_commit_are_not_written(void **state)
{
    struct there_and_back t;

    (void)state;
    begin(&t);
    allocation_set_fresh(t.allocation, options_new(), 1);
    pack(&t);
    assert_null(come_back(&t)->options);
    end(&t);
}

/* A checkpoint of a release that kept more: its plugin is asked again. */
static void options_there_is_no_room_for_come_back_without(void **state)
{
    struct there_and_back t;
    const struct allocation *back;

    (void)state;
    begin(&t);
    allocation_set_restored(t.allocation, options_new(), "boot-1");
    pack(&t);
    t.again.options_bytes = OPTIONS_BYTES_MAX; /* of others */
    back = come_back(&t);
    t.again.options_bytes -= OPTIONS_BYTES_MAX;
    assert_null(back->options);
    assert_string_equal(back->ids.v[0], "g0");
    end(&t);
}

static int restore_allocation(Checkpoint__V1__Allocation *message)
{
    struct allocations table = {0};
    struct devicemgr_record record;
    uint8_t bytes[256];
    size_t len = checkpoint__v1__allocation__pack(message, bytes);
    int result;

    record = row(DEVICEMGR_RECORD_ALLOCATION, message->pod_uid, message->container,
                 message->resource, bytes, len);
    result = record_restore_allocation(&table, 4711, &record);
    allocations_fini(&table);
    return result;
}

static void allocation_rows_that_break_a_rule_are_refused(void **state)
{
    Checkpoint__V1__Allocation message = CHECKPOINT__V1__ALLOCATION__INIT;
    Checkpoint__V1__ByClaim pair = CHECKPOINT__V1__BY_CLAIM__INIT, *pairs[] = {&pair};
    char *ids[] = {(char *)"g0", (char *)"g1"}, *asked[] = {(char *)"g8", (char *)"g9"};

    (void)state;
    pair.device_id = (char *)"g0";
    pair.claim_uid = (char *)"c1";
    message.pod_uid = (char *)"u1";
    message.container = (char *)"main";
    message.resource = (char *)GPU;
    message.device_ids = ids;
    message.n_device_ids = 2;
    assert_int_equal(restore_allocation(&message), 0);
    ids[1] = (char *)"g0"; /* one id twice */
    assert_int_equal(restore_allocation(&message), -1);
    ids[1] = (char *)"";
    assert_int_equal(restore_allocation(&message), -1);
    ids[1] = (char *)"g1\xff"; /* no token could name it */
    assert_int_equal(restore_allocation(&message), -1);
    message.n_device_ids = 0;
    assert_int_equal(restore_allocation(&message), -1);
    message.n_device_ids = 1;
    message.asked_ids = asked;
    message.n_asked_ids = 1;
    assert_int_equal(restore_allocation(&message), 0);
    message.n_asked_ids = 2; /* one is in the place of one */
    assert_int_equal(restore_allocation(&message), -1);
    ids[1] = (char *)"g1";
    message.n_device_ids = 2;
    assert_int_equal(restore_allocation(&message), 0);
    asked[1] = (char *)"g8";
    assert_int_equal(restore_allocation(&message), -1);
    message.n_device_ids = message.n_asked_ids = 1;
    asked[0] = (char *)"";
    assert_int_equal(restore_allocation(&message), -1);
    message.n_asked_ids = 0;
    message.by_claims = pairs;
    message.n_by_claims = 1;
    assert_int_equal(restore_allocation(&message), -1); /* for none */
    message.claimed = true;
    assert_int_equal(restore_allocation(&message), 0);
    pair.claim_uid = (char *)"c\xff";
    assert_int_equal(restore_allocation(&message), -1);
    pair.claim_uid = (char *)"c1";
    pair.device_id = (char *)"g\xff";
    assert_int_equal(restore_allocation(&message), -1);
    message.n_by_claims = 0; /* as it was before they were kept */
    assert_int_equal(restore_allocation(&message), 0);
    message.has_options = true;
    message.options.data = (uint8_t *)"\xff\xff";
    message.options.len = 2;
    assert_int_equal(restore_allocation(&message), -1);
    message.has_options = false;
    message.resource = (char *)"bad";
    assert_int_equal(restore_allocation(&message), -1);
    message.resource = (char *)GPU;
    message.pod_uid = (char *)"";
    assert_int_equal(restore_allocation(&message), -1);
    message.pod_uid = (char *)"u1";
    message.container = (char *)"";
    assert_int_equal(restore_allocation(&message), -1);
}

/* Else a container would be given, after a restart, what another has. */
static void an_allocation_with_the_key_of_another_is_refused(void **state)
{
    static const char *const keys[][3] = {
        {"u2", "main", GPU}, {"u1", "side", GPU}, {"u1", "main", NIC}};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct there_and_back t;

        begin(&t);
        pack(&t);
        memcpy(t.record.key, keys[i], sizeof t.record.key);
        assert_int_equal(record_restore_allocation(&t.again, 4711, &t.record), -1);
        assert_null(t.again.by_key);
        end(&t);
    }
}

/* Its sandbox is one pod's: a second that claims it is no pod's row. */
static void a_pod_with_the_sandbox_of_another_is_refused(void **state)
{
    Checkpoint__V1__Pod message = CHECKPOINT__V1__POD__INIT;
    static const char *const uids[] = {"u1", "u2", ""};
    struct pods pods = {0};
    uint8_t bytes[64];

    (void)state;
    message.sandbox_id = (char *)"s1";
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++) {
        struct devicemgr_record record;

        message.uid = (char *)uids[i];
        record = row(DEVICEMGR_RECORD_POD, uids[i], "", "", bytes,
                     checkpoint__v1__pod__pack(&message, bytes));
        assert_int_equal(record_restore_pod(&pods, 9, &record), i == 0 ? 0 : -1);
    }
    assert_int_equal(HASH_COUNT(pods.by_uid), 1);
    assert_string_equal(pods_find_sandbox(&pods, "s1")->pod->uid, "u1");
    pods_fini(&pods);
}

static void a_pod_comes_back_as_it_was(void **state)
{
    struct pods pods = {0}, again = {0};
    struct pod *pod = pods_ensure(&pods, "u1", "ns", "web");
    struct devicemgr_record record;
    uint8_t *bytes;
    size_t len;

    (void)state;
    sandbox_set_ready(pods_ensure_sandbox(&pods, pod, "s1", 3), 0, false);
    pod_note_token(pod, "main");
    bytes = record_of_pod(pod, 5, &len);
    record = row(DEVICEMGR_RECORD_POD, "u1", "", "", bytes, len);
    assert_int_equal(record_restore_pod(&again, 9, &record), 0);
    assert_int_equal(record_restore_pod(&again, 9, &record), -1); /* twice */
    pod = pods_edit(&again, "u1");
    assert_string_equal(pod->pod_namespace, "ns");
    assert_string_equal(pod->name, "web");
    assert_string_equal(pod->newest->id, "s1");
    assert_int_equal(pod->newest->attempt, 3);
    assert_true(pod->newest->dead && pod->newest->state == SANDBOX_OPEN);
    assert_true(pod_had_token(pod, "main") && !pod_had_token(pod, "side"));
    record.key[0] = "u2";
    assert_int_equal(record_restore_pod(&again, 9, &record), -1); /* another's key */
    record = row(DEVICEMGR_RECORD_POD, "u1", "", "", "\xff", 1);
    assert_int_equal(record_restore_pod(&again, 9, &record), -1);
    pods_fini(&pods);
    pods_fini(&again);
    free(bytes);
}

static void an_order_comes_back_as_it_was(void **state)
{
    const struct order_words words = {
        .reason = (char *)"dust", .at_s = 77, .more_ms = 5000, .over = true};
    struct orders table = {0}, again = {0};
    struct devicemgr_record record;
    const struct order *order;
    uint8_t *bytes;
    size_t len;

    (void)state;
    bytes = record_of_order(orders_set(&table, ORDER_CORDON, GPU, "g0", &words), "b1", &len);
    record = row(DEVICEMGR_RECORD_ORDER, "cordon", GPU, "g0", bytes, len);
    assert_int_equal(record_restore_order(&again, 9, "b1", &record), 0);
    assert_int_equal(record_restore_order(&again, 9, "b1", &record), -1); /* twice */
    order = orders_cordon(&again, GPU, "g0");
    assert_int_equal(order->state, ORDER_SET);
    assert_string_equal(order->words.reason, "dust");
    assert_int_equal(order->words.at_s, 77);
    assert_int_equal(order->words.more_ms, 5000);
    assert_true(order->words.over && order->stored);
    record.key[2] = "g1";
    assert_int_equal(record_restore_order(&again, 9, "b1", &record), -1); /* another's key */
    for (size_t cut = 0; cut < len; cut++) {
        struct orders none = {0};

        record = row(DEVICEMGR_RECORD_ORDER, "cordon", GPU, "g0", bytes, cut);
        if (record_restore_order(&none, 9, "b1", &record) == 0)
            orders_fini(&none);
        else
            assert_null(none.by_key);
    }
    orders_fini(&table);
    orders_fini(&again);
    free(bytes);
}

/* In the same boot its time goes on, in another it begins anew. */
static void a_taint_comes_back_as_it_was(void **state)
{
    const struct order_words words = {.reason = (char *)"dust",
                                      .at_s = 77,
                                      .value = (char *)"deep",
                                      .for_ms = 600000,
                                      .set_ms = 1000};
    struct orders table = {0}, again = {0}, later = {0}, ahead = {0};
    struct devicemgr_record record;
    const struct order *order;
    uint8_t *bytes;
    size_t len;

    (void)state;
    bytes = record_of_order(orders_set(&table, ORDER_TAINT, GPU, "x.io/k:NoExecute g 0", &words),
                            "b1", &len);
    record = row(DEVICEMGR_RECORD_ORDER, "taint", GPU, "x.io/k:NoExecute g 0", bytes, len);
    assert_int_equal(record_restore_order(&again, 9000, "b1", &record), 0);
    assert_int_equal(owners_len(orders_taints(&again, GPU, "g 0")), 1);
    order = orders_taints(&again, GPU, "g 0")->v[0];
    assert_string_equal(order->taint_key, "x.io/k");
    assert_string_equal(order->words.value, "deep");
    assert_string_equal(order->device, "g 0");
    assert_int_equal(order->effect, TAINT_NO_EXECUTE);
    assert_int_equal(order_end_ms(order), 601000);
    assert_int_equal(again.no_execute, 1);
    assert_int_equal(record_restore_order(&later, 9000, "b2", &record), 0);
    assert_int_equal(order_end_ms(orders_taints(&later, GPU, "g 0")->v[0]), 609000);
    assert_int_equal(record_restore_order(&ahead, 900, "b1", &record), 0); /* which cannot be */
    assert_int_equal(order_end_ms(orders_taints(&ahead, GPU, "g 0")->v[0]), 600900);
    orders_fini(&table);
    orders_fini(&again);
    orders_fini(&later);
    orders_fini(&ahead);
    free(bytes);
}

/* Of such a row alone. */
static int restore_order(const char *kind, const char *resource, const char *id, const char *value)
{
    Checkpoint__V1__Order message = CHECKPOINT__V1__ORDER__INIT;
    struct devicemgr_record record;
    struct orders table = {0};
    uint8_t bytes[128];
    int r;

    message.kind = (char *)kind;
    message.resource = (char *)resource;
    message.id = (char *)id;
    message.value = (char *)value;
    record = row(DEVICEMGR_RECORD_ORDER, kind, resource, id, bytes,
                 checkpoint__v1__order__pack(&message, bytes));
    r = record_restore_order(&table, 9, "b1", &record);
    orders_fini(&table);
    return r;
}

static void order_rows_that_break_a_rule_are_refused(void **state)
{
    static const struct {
        const char *kind, *resource, *id;
    } bad[] = {
        {"cordon", GPU, ""},           {"withdrawal", GPU, "g0"},      {"grace", GPU, "g0"},
        {"cordon", "gpu", "g0"},       {"curfew", GPU, "g0"},          {"cordon", GPU, "\xff"},
        {"taint", GPU, "g0"},          {"taint", GPU, "k:NoExecute "}, {"taint", GPU, "k:Never g0"},
        {"taint", GPU, "k=v:None g0"}, {"taint", "gpu", "k:None g0"},  {"taint", GPU, "k g0"}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(restore_order(bad[i].kind, bad[i].resource, bad[i].id, ""), -1);
}

/* Else the slices that publish it were refused by the cluster, all of them. */
static void a_taint_s_value_is_one(void **state)
{
    (void)state;
    assert_int_equal(restore_order("taint", GPU, "k:None g0", ""), 0);
    assert_int_equal(restore_order("taint", GPU, "k:None g0", "deep"), 0);
    assert_int_equal(restore_order("taint", GPU, "k:None g0", "no label"), -1);
}

static void a_driver_comes_back_as_it_was(void **state)
{
    char *const names[] = {(char *)"v1.DRAPlugin", (char *)"v1beta1.DRAPlugin"};
    const struct ids services = {(char **)names, 2};
    struct drivers table = {0}, again = {0};
    struct devicemgr_record record;
    const struct driver *driver;
    uint8_t *bytes;
    size_t len;

    (void)state;
    bytes = record_of_driver(drivers_ensure(&table, 1, "d.com", &services), &len);
    record = row(DEVICEMGR_RECORD_DRIVER, "d.com", "", "", bytes, len);
    assert_int_equal(record_restore_driver(&again, 77, &record), 0);
    assert_int_equal(record_restore_driver(&again, 77, &record), -1); /* twice */
    driver = drivers_find(&again, "d.com");
    assert_true(ids_equal(&driver->services, &services));
    assert_true(driver->stored && !driver->instances);
    assert_int_equal(driver->away_ms, 77);
    record.key[0] = "other.com";
    assert_int_equal(record_restore_driver(&again, 77, &record), -1); /* another's key */
    drivers_fini(&table);
    drivers_fini(&again);
    free(bytes);
}

static int restore_driver(struct drivers *table, const Checkpoint__V1__Driver *message,
                          const char *key)
{
    size_t len = checkpoint__v1__driver__get_packed_size(message);
    uint8_t *bytes = malloc(len);
    struct devicemgr_record record = row(DEVICEMGR_RECORD_DRIVER, key, "", "", bytes, len);
    int r;

    checkpoint__v1__driver__pack(message, bytes);
    r = record_restore_driver(table, 77, &record);
    free(bytes);
    return r;
}

static void driver_rows_that_break_a_rule_are_refused(void **state)
{
    Checkpoint__V1__Driver message = CHECKPOINT__V1__DRIVER__INIT;
    char *services[DRIVER_SERVICES_MAX + 1], name[16];
    struct drivers table = {0};
    struct devicemgr_record record =
        row(DEVICEMGR_RECORD_DRIVER, "d.com", "", "", (const uint8_t *)"\xff\xff", 2);

    (void)state;
    assert_int_equal(record_restore_driver(&table, 77, &record), -1);
    for (size_t i = 0; i <= DRIVER_SERVICES_MAX; i++)
        services[i] = (char *)"v1.DRAPlugin";
    message.services = services;
    message.name = (char *)"";
    assert_int_equal(restore_driver(&table, &message, ""), -1);
    message.name = (char *)"\xff";
    assert_int_equal(restore_driver(&table, &message, "\xff"), -1);
    message.name = (char *)"d.com";
    message.n_services = DRIVER_SERVICES_MAX + 1;
    assert_int_equal(restore_driver(&table, &message, "d.com"), -1);
    assert_int_equal(drivers_len(&table), 0);
    message.n_services = DRIVER_SERVICES_MAX;
    message.moved = true; /* as rows say it that do not say yet where it was */
    assert_int_equal(restore_driver(&table, &message, "d.com"), 0);
    assert_true(drivers_find(&table, "d.com")->was_elsewhere);
    for (size_t i = 1; i <= DRIVERS_MAX; i++) {
        snprintf(name, sizeof name, "d%zu.com", i);
        message.name = name;
        assert_int_equal(restore_driver(&table, &message, name), i < DRIVERS_MAX ? 0 : -1);
    }
    drivers_fini(&table);
}

static void a_claim_comes_back_as_it_was(void **state)
{
    static const uint8_t response[] = {0x0a, 0x04, 0x1a,
                                       0x02, 'g',  '0'}; /* a device of this name */
    static const uint8_t earlier[] = {0x0a, 0x0a, 0x0a, 0x01, 'r',  0x1a,
                                      0x02, 'g',  '1',  0x22, 0x01, 'n'};
    struct claims table = {0}, again = {0}, other = {0}, ahead = {0};
    struct devicemgr_record record;
    struct claim *claim;
    const struct claim *is;
    uint8_t *bytes;
    size_t len;

    (void)state;
    claim = claims_add(&table, "c1", "d.com", "ns", "gpu");
    claim_set_state(claim, CLAIM_SENT, 3);
    assert_true(claims_set_response(&table, claim, earlier, sizeof earlier));
    assert_true(claim_add_user(claim, "s1", "main", "ns/web", "u1", 5));
    assert_true(claim_add_user(claim, "s1", "side", "ns/web", "u1", 5));
    assert_true(claims_set_response(&table, claim, response, sizeof response));
    claim_set_local(claim);
    claim_set_alone(claim);
    assert_true(claim_add_user(claim, "s1", "main", "ns/web", "u1", 5));  /* with what it has now */
    assert_false(claim_add_user(claim, "s1", "main", "ns/web", "u1", 6)); /* once */
    claim_set_prepared(claim, 4);
    claim_set_state(claim, CLAIM_PREPARED, 4);
    bytes = record_of_claim(claim, "boot", &len);
    record = row(DEVICEMGR_RECORD_CLAIM, "c1", "d.com", "", bytes, len);
    assert_int_equal(record_restore_claim(&again, 77, "boot", &record), 0);
    assert_int_equal(record_restore_claim(&again, 77, "boot", &record), -1); /* twice */
    is = claims_find(&again, "c1", "d.com");
    assert_string_equal(is->pod_namespace, "ns");
    assert_string_equal(is->name, "gpu");
    assert_int_equal(is->state, CLAIM_PREPARED);
    assert_true(is->stored && is->durable);
    assert_int_equal(is->response_bytes, sizeof response);
    assert_memory_equal(is->response, response, sizeof response);
    assert_int_equal(again.response_bytes, sizeof response);
    assert_int_equal(is->devices.len, 1);
    assert_string_equal(is->devices.v[0].device, "g0");
    assert_true(is->sent && is->local && is->alone);
    assert_int_equal(is->users_len, 2);
    assert_false(is->users[0].former);
    assert_true(is->users[1].former);
    assert_int_equal(is->former.len, 1);
    assert_string_equal(is->former.v[0].device, "g1");
    assert_null(is->former.v[0].share_id);
    assert_int_equal(is->former.v[0].cdi.len, 1);
    assert_string_equal(is->former.v[0].cdi.v[0], "n");
    assert_int_equal(is->lapsed.len, 1);
    assert_string_equal(is->lapsed.v[0].device, "g1");
    assert_null(is->lapsed.v[0].share_id);
    assert_string_equal(is->lapsed.v[0].cdi.v[0], "n");
    assert_int_equal(is->lapsed.v[0].requests.len, 1);
    assert_string_equal(is->lapsed.v[0].requests.v[0], "r");
    assert_string_equal(is->users[0].sandbox_id, "s1");
    assert_string_equal(is->users[0].container, "main");
    assert_string_equal(is->users[0].pod_uid, "u1");
    assert_string_equal(is->users[0].pod, "ns/web");
    assert_int_equal(is->users[0].asked_ms, 77);
    assert_int_equal(is->since_ms, 77);
    assert_int_equal(is->prepared_ms, 4);
    assert_int_equal(record_restore_claim(&other, 77, "another boot", &record), 0);
    assert_int_equal(claims_find(&other, "c1", "d.com")->prepared_ms, 0);
    assert_int_equal(record_restore_claim(&ahead, 3, "boot", &record), 0); /* which cannot be */
    assert_int_equal(claims_find(&ahead, "c1", "d.com")->prepared_ms, 0);
    record.key[1] = "other.com";
    assert_int_equal(record_restore_claim(&again, 77, "boot", &record), -1); /* another's key */
    for (size_t cut = 0; cut < len; cut++) {
        struct claims none = {0};

        record = row(DEVICEMGR_RECORD_CLAIM, "c1", "d.com", "", bytes, cut);
        if (record_restore_claim(&none, 77, "boot", &record) == 0)
            claims_fini(&none);
        else
            assert_null(none.by_key);
    }
    claims_fini(&ahead);
    claims_fini(&other);
    claims_fini(&table);
    claims_fini(&again);
    free(bytes);
}

static void claim_rows_that_break_a_rule_are_refused(void **state)
{
    static const struct {
        const char *uid, *driver, *state;
        bool has_response;
    } bad[] = {{"c1", "d.com", "prepared", false}, {"c1", "d.com", "new", false},
               {"c1", "d.com", "gone", false},     {"c1", "d.com", "", false},
               {"", "d.com", "sent", false},       {"c1", "", "sent", false},
               {"\xff", "d.com", "sent", false},   {"c1", "\xff", "sent", false},
               {"c1", "d.com", "at rest", false}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Checkpoint__V1__Claim message = CHECKPOINT__V1__CLAIM__INIT;
        struct devicemgr_record record;
        struct claims table = {0};
        uint8_t bytes[128];

        message.uid = (char *)bad[i].uid;
        message.driver = (char *)bad[i].driver;
        message.state = (char *)bad[i].state;
        message.has_response = bad[i].has_response;
        record = row(DEVICEMGR_RECORD_CLAIM, bad[i].uid, bad[i].driver, "", bytes,
                     checkpoint__v1__claim__pack(&message, bytes));
        assert_int_equal(record_restore_claim(&table, 77, "boot", &record), -1);
    }
}

/* Of one that kept more. */
static void there_is_a_most_of_what_a_claim_had_before(void **state)
{
    Checkpoint__V1__Claim message = CHECKPOINT__V1__CLAIM__INIT;
    Checkpoint__V1__ClaimDevice *lapsed[CLAIM_FORMER_MAX + 1];
    Checkpoint__V1__ClaimDevice device = CHECKPOINT__V1__CLAIM_DEVICE__INIT;
    struct devicemgr_record record;
    struct claims table = {0};
    uint8_t *bytes;

    (void)state;
    for (size_t i = 0; i <= CLAIM_FORMER_MAX; i++)
        lapsed[i] = &device;
    message.uid = (char *)"c1";
    message.driver = (char *)"d.com";
    message.state = (char *)"sent";
    message.lapsed = lapsed;
    message.n_lapsed = CLAIM_FORMER_MAX + 1;
    bytes = malloc(checkpoint__v1__claim__get_packed_size(&message));
    record = row(DEVICEMGR_RECORD_CLAIM, "c1", "d.com", "", bytes,
                 checkpoint__v1__claim__pack(&message, bytes));
    assert_int_equal(record_restore_claim(&table, 77, "boot", &record), 0);
    assert_int_equal(claims_find(&table, "c1", "d.com")->lapsed.len, CLAIM_FORMER_MAX);
    claims_fini(&table);
    free(bytes);
}

static int restore_claim(struct claims *table, const char *uid, const uint8_t *response, size_t len)
{
    Checkpoint__V1__Claim message = CHECKPOINT__V1__CLAIM__INIT;
    struct devicemgr_record record;
    uint8_t *bytes;
    int r;

    message.uid = (char *)uid;
    message.driver = (char *)"d.com";
    message.state = (char *)"prepared";
    message.has_response = true;
    message.response = (ProtobufCBinaryData){.data = (uint8_t *)response, .len = len};
    bytes = malloc(checkpoint__v1__claim__get_packed_size(&message));
    record = row(DEVICEMGR_RECORD_CLAIM, uid, "d.com", "", bytes,
                 checkpoint__v1__claim__pack(&message, bytes));
    r = record_restore_claim(table, 77, "boot", &record);
    free(bytes);
    return r;
}

/* What a driver answered has its bounds, alone and together; so have the claims. */
static void claim_rows_that_are_too_much_are_refused(void **state)
{
    static const uint8_t broken[] = {0x0a, 0x7f};
    size_t most = CLAIM_RESPONSE_BYTES_MAX + 1, n = 0;
    uint8_t *large = calloc(1, most);
    struct claims table = {0};
    char uid[16];
    int r;

    (void)state;
    large[0] = 0x7a; /* a field that nobody knows, which is all of it: its length has four bytes */
    assert_int_equal(restore_claim(&table, "c", broken, sizeof broken), -1);
    for (size_t len = most - 5, at = 1; at < 5; at++, len >>= 7)
        large[at] = (uint8_t)(len & 0x7f) | (at < 4 ? 0x80 : 0);
    assert_int_equal(restore_claim(&table, "c", large, most), -1);
    for (size_t len = most - 6, at = 1; at < 5; at++, len >>= 7)
        large[at] = (uint8_t)(len & 0x7f) | (at < 4 ? 0x80 : 0);
    do {
        snprintf(uid, sizeof uid, "c%zu", n++);
        r = restore_claim(&table, uid, large, most - 1);
    } while (r == 0);
    assert_int_equal(claims_len(&table), CLAIMS_BYTES_MAX / CLAIM_RESPONSE_BYTES_MAX);
    for (n = claims_len(&table); n <= CLAIMS_MAX; n++) {
        snprintf(uid, sizeof uid, "n%zu", n);
        r = restore_claim(&table, uid, NULL, 0);
        assert_int_equal(r, n < CLAIMS_MAX ? 0 : -1);
    }
    claims_fini(&table);
    free(large);
}

/* A stop that was asked for is the same whether its sandbox was found dead before or not. */
static void a_stopped_pod_comes_back_stopped(void **state)
{
    (void)state;
    for (int dead = 0; dead < 3; dead++) {
        struct pods pods = {0}, again = {0};
        struct pod *pod = pods_ensure(&pods, "u1", "ns", "web");
        struct sandbox *sandbox = pods_ensure_sandbox(&pods, pod, "s1", 3);
        struct devicemgr_record record;
        uint8_t *bytes;
        size_t len;

        sandbox_set_stopping(sandbox);
        if (dead != 2)
            sandbox_set_stopped(sandbox, 0);
        sandbox_set_ready(sandbox, 0, dead == 0);
        bytes = record_of_pod(pod, 5, &len);
        record = row(DEVICEMGR_RECORD_POD, "u1", "", "", bytes, len);
        assert_int_equal(record_restore_pod(&again, 9, &record), 0);
        sandbox = pods_find(&again, "u1")->newest;
        assert_true(!sandbox->dead && sandbox->state == SANDBOX_STOPPED);
        pods_fini(&pods);
        pods_fini(&again);
        free(bytes);
    }
}

/* Stored at 5, restored at 9. */
static void a_dead_sandbox_that_was_stopped_may_still_be_made_anew(void **state)
{
    (void)state;
    for (uint64_t by_ms = 5; by_ms <= 6; by_ms++) {
        struct pods pods = {0}, again = {0};
        struct pod *pod = pods_ensure(&pods, "u1", "ns", "web");
        struct sandbox *sandbox = pods_ensure_sandbox(&pods, pod, "s1", 3);
        struct devicemgr_record record;
        uint8_t *bytes;
        size_t len;

        sandbox_set_ready(sandbox, 0, false);
        sandbox_set_remade_by(sandbox, by_ms);
        sandbox_set_stopped(sandbox, 0);
        bytes = record_of_pod(pod, 5, &len);
        record = row(DEVICEMGR_RECORD_POD, "u1", "", "", bytes, len);
        assert_int_equal(record_restore_pod(&again, 9, &record), 0);
        sandbox = pods_find(&again, "u1")->newest;
        assert_int_equal(sandbox->state, SANDBOX_STOPPED);
        assert_int_equal(sandbox->dead, by_ms == 6);
        assert_int_equal(sandbox->remade_by_ms, by_ms == 6 ? 9 + SANDBOX_REMADE_MS : 0);
        pods_fini(&pods);
        pods_fini(&again);
        free(bytes);
    }
}

static void a_pod_may_have_no_sandbox(void **state)
{
    struct pods pods = {0}, again = {0};
    struct devicemgr_record record;
    uint8_t *bytes;
    size_t len;

    (void)state;
    bytes = record_of_pod(pods_ensure(&pods, "u1", "ns", "web"), 5, &len);
    record = row(DEVICEMGR_RECORD_POD, "u1", "", "", bytes, len);
    assert_int_equal(record_restore_pod(&again, 9, &record), 0);
    assert_null(pods_find(&again, "u1")->newest);
    pods_fini(&pods);
    pods_fini(&again);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resource_comes_back_as_it_was),
        cmocka_unit_test(a_stop_time_is_that_of_its_boot),
        cmocka_unit_test(since_when_it_is_unhealthy_is_of_its_boot),
        cmocka_unit_test(what_is_no_device_does_not_come_back),
        cmocka_unit_test(every_cut_of_a_resource_is_refused_or_harmless),
        cmocka_unit_test(resource_rows_that_break_a_rule_are_refused),
        cmocka_unit_test(no_more_resources_come_back_than_there_may_be),
        cmocka_unit_test(a_resource_without_a_socket_comes_back),
        cmocka_unit_test(an_allocation_comes_back_as_it_was),
        cmocka_unit_test(fresh_options_not_in_the_commit_are_not_written),
        cmocka_unit_test(what_was_asked_for_comes_back),
        cmocka_unit_test(what_claims_have_comes_back),
        cmocka_unit_test(what_was_asked_for_may_be_what_there_is),
        cmocka_unit_test(options_there_is_no_room_for_come_back_without),
        cmocka_unit_test(allocation_rows_that_break_a_rule_are_refused),
        cmocka_unit_test(an_allocation_with_the_key_of_another_is_refused),
        cmocka_unit_test(a_pod_with_the_sandbox_of_another_is_refused),
        cmocka_unit_test(a_pod_comes_back_as_it_was),
        cmocka_unit_test(an_order_comes_back_as_it_was),
        cmocka_unit_test(a_taint_comes_back_as_it_was),
        cmocka_unit_test(order_rows_that_break_a_rule_are_refused),
        cmocka_unit_test(a_taint_s_value_is_one),
        cmocka_unit_test(a_driver_comes_back_as_it_was),
        cmocka_unit_test(driver_rows_that_break_a_rule_are_refused),
        cmocka_unit_test(a_claim_comes_back_as_it_was),
        cmocka_unit_test(there_is_a_most_of_what_a_claim_had_before),
        cmocka_unit_test(claim_rows_that_are_too_much_are_refused),
        cmocka_unit_test(claim_rows_that_break_a_rule_are_refused),
        cmocka_unit_test(a_stopped_pod_comes_back_stopped),
        cmocka_unit_test(a_dead_sandbox_that_was_stopped_may_still_be_made_anew),
        cmocka_unit_test(a_pod_may_have_no_sandbox),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
