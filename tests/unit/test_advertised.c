/* shim/kubelet/advertised.c: on a real core, whose lists are built-in devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/kubelet/advertised.h"

#define GPU "v.com/gpu"
#define NIC "v.com/nic"

static void ignore_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)user;
    (void)about;
    (void)level;
    (void)text;
}

static void ignore_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                          size_t records_len)
{
    (void)user;
    (void)commit;
    (void)records;
    (void)records_len;
}

/* Nothing of what is done here asks for more. */
static const struct devicemgr_ports PORTS = {.log = ignore_log, .commit = ignore_commit};

struct fixture {
    struct devicemgr *core;
    uint64_t now_ms;
    uint64_t mask_ms;
    struct advertised advertised;
};

static void begin_core(struct fixture *f)
{
    const struct devicemgr_settings settings = {
        .grace_ms = 1000, .mask_ms = f->mask_ms, .boot_id = "boot"};

    f->core = devicemgr_new(&settings, &PORTS, NULL);
    f->now_ms = 1;
    devicemgr_restored(f->core, f->now_ms);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    begin_core(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    advertised_fini(&f->advertised);
    devicemgr_free(f->core);
    free(f);
    return 0;
}

static void list_one(struct fixture *f, const char *resource, const char *id, bool healthy)
{
    const struct devicemgr_builtin_device device = {.id = id,
                                                    .healthy = healthy,
                                                    .host_path = "/dev/null",
                                                    .container_path = "/dev/null",
                                                    .permissions = "rw"};

    devicemgr_builtin(f->core, 1, resource, &device, 1);
    devicemgr_run(f->core);
}

/* The message as the other end reads it. */
static Bridge__V1__WatchResponse *message_for(struct fixture *f, bool takes_changes,
                                              uint64_t *through, size_t *len)
{
    struct advertised_reader reader = {.takes_changes = takes_changes};
    Bridge__V1__WatchResponse *response;
    struct advertised_message message;
    uint8_t *packed;
    size_t bytes;

    reader.through = *through;
    advertised_message_init(&message, &f->advertised, &reader, 7000);
    bytes = protobuf_c_message_get_packed_size(&message.response.base);
    assert_true(bytes <= RPC_MESSAGE_BYTES_MAX);
    packed = malloc(bytes + 1);
    protobuf_c_message_pack(&message.response.base, packed);
    response = bridge__v1__watch_response__unpack(NULL, bytes, packed);
    assert_non_null(response);
    assert_true(message.through > *through || message.through == f->advertised.version);
    *through = message.through;
    *len = bytes;
    advertised_message_fini(&message);
    free(packed);
    return response;
}

static Bridge__V1__WatchResponse *message(struct fixture *f, uint64_t *through)
{
    size_t len;

    return message_for(f, false, through, &len);
}

static void nothing_is_a_state_too(void **state)
{
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_SAME);
    assert_int_not_equal(f->advertised.version, 0);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 0);
    assert_int_equal(response->mask_ms, 7000);
    assert_string_equal(response->daemon_version, SHIM_VERSION);
    assert_int_equal(through, f->advertised.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

static void lists_come_with_all_they_have(void **state)
{
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    list_one(f, NIC, "n0", true);
    list_one(f, GPU, "g0", false);
    assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_NAMES);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 2);
    assert_string_equal(response->resources[0]->name, GPU);
    assert_string_equal(response->resources[0]->list->devices[0]->id, "g0");
    assert_false(response->resources[0]->list->devices[0]->healthy);
    assert_string_equal(response->resources[1]->name, NIC);
    assert_true(response->resources[1]->list->devices[0]->healthy);
    assert_int_equal(response->resources[1]->list->n_devices, 1);
    assert_int_equal(response->resources[1]->version, f->advertised.lists[1].version);
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

static void only_what_changed_is_packed_and_sent(void **state)
{
    struct fixture *f = *state;
    uint64_t through = 0, version;
    Bridge__V1__WatchResponse *response;
    const uint8_t *bytes;

    list_one(f, NIC, "n0", true);
    list_one(f, GPU, "g0", true);
    advertised_update(&f->advertised, f->core);
    bridge__v1__watch_response__free_unpacked(message(f, &through), NULL);
    assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_SAME);
    assert_int_equal(through, f->advertised.version);

    bytes = f->advertised.lists[1].bytes;
    version = f->advertised.lists[1].version;
    list_one(f, GPU, "g0", false);
    assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_CHANGED);
    assert_true(f->advertised.version > through);
    assert_ptr_equal(f->advertised.lists[1].bytes, bytes);
    assert_int_equal(f->advertised.lists[1].version, version);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 2);
    assert_non_null(response->resources[0]->list);
    assert_null(response->resources[1]->list);
    assert_int_equal(through, f->advertised.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

static void what_is_lost_goes_out_without_a_list(void **state)
{
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    list_one(f, NIC, "n0", true);
    list_one(f, GPU, "g0", true);
    advertised_update(&f->advertised, f->core);
    assert_int_equal(f->advertised.lists[1].healthy, 1);
    bridge__v1__watch_response__free_unpacked(message(f, &through), NULL);
    advertised_set_lost(&f->advertised, &f->advertised.lists[1]);
    assert_true(f->advertised.version > through);
    response = message(f, &through);
    assert_int_equal(response->resources[0]->lost, 0);
    assert_int_equal(response->resources[1]->lost, 1);
    assert_null(response->resources[1]->list);
    assert_int_equal(through, f->advertised.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);

    list_one(f, NIC, "n0", false);
    advertised_update(&f->advertised, f->core);
    assert_int_equal(f->advertised.lists[1].healthy, 0);
    assert_int_equal(f->advertised.lists[1].lost, 1);
}

/* ---- changes ---- */

#define DEVICES_MAX 400

/* The first `len` devices: "d0" ... */
static void list_many(struct fixture *f, const char *resource, size_t len, const bool *unhealthy)
{
    static struct devicemgr_builtin_device devices[DEVICES_MAX];
    static char ids[DEVICES_MAX][24];

    for (size_t i = 0; i < len; i++) {
        snprintf(ids[i], sizeof ids[i], "d%zu", i);
        devices[i] = (struct devicemgr_builtin_device){.id = ids[i],
                                                       .healthy = !unhealthy[i],
                                                       .host_path = "/dev/null",
                                                       .container_path = "/dev/null",
                                                       .permissions = "rw"};
    }
    devicemgr_builtin(f->core, f->now_ms, resource, devices, len);
    devicemgr_run(f->core);
}

/* Device i is held by a pod of the kubelet's. */
static void hold(struct fixture *f, const char *resource, size_t i)
{
    char id[8];
    const char *ids = id;
    const struct devicemgr_kubelet_held held = {
        .pod_uid = "uid", .container = "main", .resource = resource, .ids = &ids, .ids_len = 1};

    snprintf(id, sizeof id, "d%zu", i);
    devicemgr_kubelet_holds(f->core, f->now_ms, f->now_ms, &held, 1);
    devicemgr_run(f->core);
}

/* What a pod that comes costs on the feed does not depend on how many devices there are. */
static void a_device_that_is_held_goes_out_alone(void **state)
{
    static const bool NONE[DEVICES_MAX];
    struct fixture *f = *state;
    size_t few = 0, many = 0, whole = 0;

    for (int round = 0; round < 2; round++) {
        size_t *len = round == 0 ? &few : &many;
        uint64_t through = 0;
        Bridge__V1__WatchResponse *response;
        const Bridge__V1__Resource *resource;

        list_many(f, GPU, round == 0 ? 40 : DEVICES_MAX, NONE);
        advertised_update(&f->advertised, f->core);
        response = message_for(f, true, &through, &whole);
        assert_int_equal(response->resources[0]->layout, f->advertised.lists[0].layout);
        assert_int_equal(response->resources[0]->n_changes, 0);
        bridge__v1__watch_response__free_unpacked(response, NULL);
        hold(f, GPU, 17 + (size_t)round);
        assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_CHANGED);
        response = message_for(f, true, &through, len);
        resource = response->resources[0];
        assert_null(resource->list);
        assert_int_equal(resource->layout, f->advertised.lists[0].layout);
        assert_int_equal(resource->version, f->advertised.lists[0].version);
        if (round == 0) {
            assert_int_equal(resource->n_changes, 1);
            assert_int_equal(resource->changes[0]->place, 17);
            assert_true(resource->changes[0]->held);
            assert_true(resource->changes[0]->healthy);
        }
        bridge__v1__watch_response__free_unpacked(response, NULL);
    }
    assert_true(few < 100 && many < 100);
    assert_true(whole > 2000);
}

/* An older bridge gets the list, as ever. */
static void who_takes_no_changes_gets_lists(void **state)
{
    static const bool NONE[DEVICES_MAX];
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    list_many(f, GPU, 40, NONE);
    advertised_update(&f->advertised, f->core);
    bridge__v1__watch_response__free_unpacked(message(f, &through), NULL);
    hold(f, GPU, 17);
    advertised_update(&f->advertised, f->core);
    response = message(f, &through);
    assert_int_equal(response->resources[0]->n_changes, 0);
    assert_int_equal(response->resources[0]->list->n_devices, 40);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(response->resources[0]->list->devices[i]->held,
                         strcmp(response->resources[0]->list->devices[i]->id, "d17") == 0);
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

/* What a bridge makes of the messages. */
struct replica {
    uint64_t through;
    uint64_t versions[3], layouts[3];
    struct {
        bool healthy, held;
    } devices[3][DEVICES_MAX];
    size_t len[3];
};

static size_t resource_of(const char *name)
{
    return (size_t)(name[strlen(name) - 1] - 'a');
}

/* Lists have the natural order of ids: d0, d1, ... */
static void replica_read(struct fixture *f, struct replica *replica)
{
    size_t bytes;
    Bridge__V1__WatchResponse *response = message_for(f, true, &replica->through, &bytes);

    for (size_t r = 0; r < response->n_resources; r++) {
        const Bridge__V1__Resource *from = response->resources[r];
        size_t to = resource_of(from->name);

        for (size_t i = 0; from->list && i < from->list->n_devices; i++) {
            replica->devices[to][i].healthy = from->list->devices[i]->healthy;
            replica->devices[to][i].held = from->list->devices[i]->held;
        }
        if (from->list) {
            replica->len[to] = from->list->n_devices;
            replica->layouts[to] = from->layout;
        }
        for (size_t i = 0; i < from->n_changes; i++) {
            assert_null(from->list);
            assert_int_equal(from->layout, replica->layouts[to]);
            assert_true(from->changes[i]->place < replica->len[to]);
            replica->devices[to][from->changes[i]->place].healthy = from->changes[i]->healthy;
            replica->devices[to][from->changes[i]->place].held = from->changes[i]->held;
        }
        if (from->list || from->n_changes > 0)
            replica->versions[to] = from->version;
    }
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

struct core_check {
    const struct replica *replica;
    size_t to, len;
};

static void check_device(void *user, const struct devicemgr_shown_device *device)
{
    struct core_check *check = user;

    assert_int_equal(check->replica->devices[check->to][check->len].healthy, device->healthy);
    assert_int_equal(check->replica->devices[check->to][check->len].held, device->held);
    check->len++;
}

static void replica_check(const struct fixture *f, const struct replica *replica)
{
    for (size_t l = 0; l < f->advertised.len; l++) {
        const struct advertised_list *list = &f->advertised.lists[l];
        Bridge__V1__DeviceList *devices = advertised_list_unpack(list);
        size_t to = resource_of(list->resource), healthy = 0;

        assert_int_equal(replica->versions[to], list->version);
        assert_int_equal(replica->len[to], devices->n_devices);
        for (size_t i = 0; i < devices->n_devices; i++) {
            assert_int_equal(replica->devices[to][i].healthy, devices->devices[i]->healthy);
            assert_int_equal(replica->devices[to][i].held, devices->devices[i]->held);
            healthy += devices->devices[i]->healthy;
        }
        assert_int_equal(list->healthy, healthy);
        bridge__v1__device_list__free_unpacked(devices, NULL);
        {
            struct core_check check = {.replica = replica, .to = to};

            devicemgr_shown_devices(f->core, list->resource, check_device, &check);
            assert_int_equal(check.len, replica->len[to]);
        }
    }
}

static unsigned pick(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % below;
}

/* Three lists, of which devices and health change at random, and three readers: one that keeps up,
 * one that lags, and one that comes anew now and then. Each has it all once it has read all. */
static void changes_add_up_for_whoever_lags(void **state)
{
    static const char *const NAMES[] = {"v.com/a", "v.com/b", "v.com/c"};
    static bool unhealthy[3][DEVICES_MAX];
    static struct replica replicas[3];
    struct fixture *f = *state;
    size_t lens[3] = {300, 300, 300};
    unsigned seed = 1;

    memset(replicas, 0, sizeof replicas);
    devicemgr_free(f->core);
    f->mask_ms = 50;
    begin_core(f);
    for (unsigned turn = 0; turn < 3000; turn++) {
        unsigned r = pick(&seed, 3), many = pick(&seed, 50) == 0 ? 290 : pick(&seed, 4);

        for (unsigned i = 0; i < many; i++)
            unhealthy[r][pick(&seed, 300)] ^= 1;
        if (pick(&seed, 100) == 0)
            lens[r] = 290 + pick(&seed, 20);
        if (turn < 3 || pick(&seed, 2) == 0)
            list_many(f, NAMES[turn < 3 ? turn : r], lens[turn < 3 ? turn : r],
                      unhealthy[turn < 3 ? turn : r]);
        f->now_ms += pick(&seed, 3);
        if (pick(&seed, 100) == 0)
            devicemgr_kubelet_started(f->core, f->now_ms);
        if (pick(&seed, 3) == 0) /* perhaps of one that is not listed: so it is, to a new kubelet */
            hold(f, NAMES[pick(&seed, 3)], pick(&seed, 310));
        advertised_update(&f->advertised, f->core);
        for (unsigned one = 0; one < 3; one++) {
            if (one == 2 && pick(&seed, 40) == 0)
                memset(&replicas[one], 0, sizeof replicas[one]);
            if (one == 0 || pick(&seed, 60) == 0)
                replica_read(f, &replicas[one]);
            if (replicas[one].through == f->advertised.version)
                replica_check(f, &replicas[one]);
        }
    }
}

/* The core may take a list for another one that is the same to the kubelet. */
static void an_equal_list_keeps_its_version(void **state)
{
    struct fixture *f = *state;
    uint64_t version;

    list_one(f, GPU, "g0", true);
    advertised_update(&f->advertised, f->core);
    version = f->advertised.lists[0].version;
    list_one(f, GPU, "g0", false);
    list_one(f, GPU, "g0", true);
    assert_int_not_equal(devicemgr_shown_version(f->core), f->advertised.core_version);
    assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_SAME);
    assert_int_equal(f->advertised.lists[0].version, version);
    assert_int_equal(devicemgr_shown_version(f->core), f->advertised.core_version);
}

static void names_between_others_come_and_go(void **state)
{
    const char *const names[] = {"v.com/c", "v.com/a", "v.com/e", "v.com/b", "v.com/d"};
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    for (size_t i = 0; i < 5; i++) {
        list_one(f, names[i], "x", true);
        assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_NAMES);
        assert_int_equal(f->advertised.len, i + 1);
    }
    response = message(f, &through);
    for (size_t i = 0; i < 5; i++) {
        char name[] = {'v', '.', 'c', 'o', 'm', '/', (char)('a' + i), '\0'};

        assert_string_equal(response->resources[i]->name, name);
        assert_non_null(response->resources[i]->list);
    }
    bridge__v1__watch_response__free_unpacked(response, NULL);
    /* Another core shows one of them only. */
    devicemgr_free(f->core);
    begin_core(f);
    list_one(f, "v.com/c", "x", true);
    assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_NAMES);
    assert_int_equal(f->advertised.len, 1);
    assert_string_equal(f->advertised.lists[0].resource, "v.com/c");
}

/* An id of so many bytes. */
static char *long_id(char first, size_t bytes)
{
    char *id = malloc(bytes + 1);

    memset(id, first, bytes);
    id[bytes] = '\0';
    return id;
}

static void what_does_not_fit_comes_in_the_next_message(void **state)
{
    const char *const names[] = {"v.com/a", "v.com/b", "v.com/c"};
    struct fixture *f = *state;
    size_t bytes = ADVERTISED_LISTS_BYTES_MAX / 5 * 2; /* two fit */
    uint64_t through = 0;

    for (size_t i = 3; i-- > 0;) { /* the last by name is the oldest */
        char *id = long_id((char)('a' + i), bytes);

        list_one(f, names[i], id, true);
        advertised_update(&f->advertised, f->core);
        free(id);
    }
    for (int turn = 0; turn < 2; turn++) {
        Bridge__V1__WatchResponse *response = message(f, &through);

        assert_int_equal(response->n_resources, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(!!response->resources[i]->list, turn == 0 ? i > 0 : i == 0);
            assert_int_equal(response->resources[i]->version, f->advertised.lists[i].version);
        }
        assert_int_equal(through == f->advertised.version, turn == 1);
        bridge__v1__watch_response__free_unpacked(response, NULL);
    }
}

/* Two lists of which one fits; the older has changed since. Its changes must not come before it. */
static void a_list_comes_before_its_changes(void **state)
{
    struct fixture *f = *state;
    size_t bytes = ADVERTISED_LISTS_BYTES_MAX / 5 * 3, len;
    uint64_t through = 0;
    bool has[2] = {false, false}, changed = false;
    char *ids[2] = {long_id('a', bytes), long_id('b', bytes)};

    list_one(f, "v.com/a", ids[0], true);
    advertised_update(&f->advertised, f->core);
    list_one(f, "v.com/b", ids[1], true);
    advertised_update(&f->advertised, f->core);
    list_one(f, "v.com/a", ids[0], false);
    advertised_update(&f->advertised, f->core);
    for (int turn = 0; through != f->advertised.version; turn++) {
        Bridge__V1__WatchResponse *response = message_for(f, true, &through, &len);

        assert_true(turn < 3);
        for (size_t i = 0; i < 2; i++) {
            has[i] = has[i] || response->resources[i]->list;
            if (response->resources[i]->list && i == 0)
                changed = !response->resources[0]->list->devices[0]->healthy;
            if (response->resources[i]->n_changes > 0) {
                assert_true(has[i]);
                changed = changed || !response->resources[i]->changes[0]->healthy;
            }
        }
        bridge__v1__watch_response__free_unpacked(response, NULL);
    }
    assert_true(has[0] && has[1] && changed);
    free(ids[0]);
    free(ids[1]);
}

/* Says so on stderr. */
static void a_list_for_no_message_is_not_shown(void **state)
{
    struct fixture *f = *state;
    char *id = long_id('x', ADVERTISED_LISTS_BYTES_MAX);
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    list_one(f, GPU, "g0", true);
    list_one(f, NIC, "n0", true);
    advertised_update(&f->advertised, f->core);
    list_one(f, GPU, id, true);
    assert_int_equal(advertised_update(&f->advertised, f->core), ADVERTISED_CHANGED);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 1);
    assert_string_equal(response->resources[0]->name, NIC);
    assert_int_equal(through, f->advertised.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);
    list_one(f, GPU, "g0", true);
    advertised_update(&f->advertised, f->core);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 2);
    assert_string_equal(response->resources[0]->list->devices[0]->id, "g0");
    bridge__v1__watch_response__free_unpacked(response, NULL);
    free(id);
}

static void the_length_grows_over_each_step_of_a_varint(void **state)
{
    static const size_t BYTES[] = {1,   100,   119,   120,   121,   122,   126,     127,    128,
                                   129, 16000, 16370, 16376, 16380, 16384, 2097140, 2097152};
    struct fixture *f = *state;
    uint64_t through = 0;

    for (size_t i = 0; i < sizeof BYTES / sizeof BYTES[0]; i++) {
        char *id = long_id('x', BYTES[i]);
        Bridge__V1__WatchResponse *response;
        Bridge__V1__DeviceList *list;

        list_one(f, GPU, id, true);
        advertised_update(&f->advertised, f->core);
        response = message(f, &through);
        assert_string_equal(response->resources[0]->list->devices[0]->id, id);
        list = advertised_list_unpack(&f->advertised.lists[0]);
        assert_string_equal(list->devices[0]->id, id);
        bridge__v1__device_list__free_unpacked(list, NULL);
        bridge__v1__watch_response__free_unpacked(response, NULL);
        free(id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_a_state_too, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_come_with_all_they_have, setup, teardown),
        cmocka_unit_test_setup_teardown(only_what_changed_is_packed_and_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_lost_goes_out_without_a_list, setup, teardown),
        cmocka_unit_test_setup_teardown(a_device_that_is_held_goes_out_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(who_takes_no_changes_gets_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_add_up_for_whoever_lags, setup, teardown),
        cmocka_unit_test_setup_teardown(an_equal_list_keeps_its_version, setup, teardown),
        cmocka_unit_test_setup_teardown(names_between_others_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_comes_in_the_next_message, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_list_comes_before_its_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_for_no_message_is_not_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(the_length_grows_over_each_step_of_a_varint, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
