/* shim/kubelet/shown.c: on a real core, whose lists are built-in devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/kubelet/shown.h"

#define GPU "v.com/gpu"
#define NIC "v.com/nic"

static void ignore_log(void *user, int level, const char *text)
{
    (void)user;
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
    struct shown shown;
};

static void begin_core(struct fixture *f)
{
    const struct devicemgr_settings settings = {.grace_ms = 1000, .boot_id = "boot"};

    f->core = devicemgr_new(&settings, &PORTS, NULL);
    devicemgr_restored(f->core, 1);
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

    shown_fini(&f->shown);
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
static Bridge__V1__WatchResponse *message(struct fixture *f, uint64_t *through)
{
    Bridge__V1__WatchResponse *response;
    struct shown_message message;
    uint8_t *packed;
    size_t bytes;

    shown_message_init(&message, &f->shown, *through, 7000);
    bytes = protobuf_c_message_get_packed_size(&message.response.base);
    assert_true(bytes <= RPC_MESSAGE_BYTES_MAX);
    packed = malloc(bytes + 1);
    protobuf_c_message_pack(&message.response.base, packed);
    response = bridge__v1__watch_response__unpack(NULL, bytes, packed);
    assert_non_null(response);
    assert_true(message.through > *through || message.through == f->shown.version);
    *through = message.through;
    shown_message_fini(&message);
    free(packed);
    return response;
}

static void nothing_is_a_state_too(void **state)
{
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    assert_int_equal(shown_update(&f->shown, f->core), SHOWN_SAME);
    assert_int_not_equal(f->shown.version, 0);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 0);
    assert_int_equal(response->mask_ms, 7000);
    assert_string_equal(response->daemon_version, SHIM_VERSION);
    assert_int_equal(through, f->shown.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

static void lists_come_with_all_they_have(void **state)
{
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    list_one(f, NIC, "n0", true);
    list_one(f, GPU, "g0", false);
    assert_int_equal(shown_update(&f->shown, f->core), SHOWN_NAMES);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 2);
    assert_string_equal(response->resources[0]->name, GPU);
    assert_string_equal(response->resources[0]->list->devices[0]->id, "g0");
    assert_false(response->resources[0]->list->devices[0]->healthy);
    assert_string_equal(response->resources[1]->name, NIC);
    assert_true(response->resources[1]->list->devices[0]->healthy);
    assert_int_equal(response->resources[1]->list->n_devices, 1);
    assert_int_equal(response->resources[1]->version, f->shown.lists[1].version);
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
    shown_update(&f->shown, f->core);
    bridge__v1__watch_response__free_unpacked(message(f, &through), NULL);
    assert_int_equal(shown_update(&f->shown, f->core), SHOWN_SAME);
    assert_int_equal(through, f->shown.version);

    bytes = f->shown.lists[1].bytes;
    version = f->shown.lists[1].version;
    list_one(f, GPU, "g0", false);
    assert_int_equal(shown_update(&f->shown, f->core), SHOWN_CHANGED);
    assert_true(f->shown.version > through);
    assert_ptr_equal(f->shown.lists[1].bytes, bytes);
    assert_int_equal(f->shown.lists[1].version, version);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 2);
    assert_non_null(response->resources[0]->list);
    assert_null(response->resources[1]->list);
    assert_int_equal(through, f->shown.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

static void what_is_lost_goes_out_without_a_list(void **state)
{
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    list_one(f, NIC, "n0", true);
    list_one(f, GPU, "g0", true);
    shown_update(&f->shown, f->core);
    assert_int_equal(f->shown.lists[1].healthy, 1);
    bridge__v1__watch_response__free_unpacked(message(f, &through), NULL);
    shown_set_lost(&f->shown, &f->shown.lists[1]);
    assert_true(f->shown.version > through);
    response = message(f, &through);
    assert_int_equal(response->resources[0]->lost, 0);
    assert_int_equal(response->resources[1]->lost, 1);
    assert_null(response->resources[1]->list);
    assert_int_equal(through, f->shown.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);

    list_one(f, NIC, "n0", false);
    shown_update(&f->shown, f->core);
    assert_int_equal(f->shown.lists[1].healthy, 0);
    assert_int_equal(f->shown.lists[1].lost, 1);
}

/* The core may take a list for another one that is the same to the kubelet. */
static void an_equal_list_keeps_its_version(void **state)
{
    struct fixture *f = *state;
    uint64_t version;

    list_one(f, GPU, "g0", true);
    shown_update(&f->shown, f->core);
    version = f->shown.lists[0].version;
    list_one(f, GPU, "g0", false);
    list_one(f, GPU, "g0", true);
    assert_int_not_equal(devicemgr_shown_version(f->core), f->shown.core_version);
    assert_int_equal(shown_update(&f->shown, f->core), SHOWN_SAME);
    assert_int_equal(f->shown.lists[0].version, version);
    assert_int_equal(devicemgr_shown_version(f->core), f->shown.core_version);
}

static void names_between_others_come_and_go(void **state)
{
    const char *const names[] = {"v.com/c", "v.com/a", "v.com/e", "v.com/b", "v.com/d"};
    struct fixture *f = *state;
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    for (size_t i = 0; i < 5; i++) {
        list_one(f, names[i], "x", true);
        assert_int_equal(shown_update(&f->shown, f->core), SHOWN_NAMES);
        assert_int_equal(f->shown.len, i + 1);
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
    assert_int_equal(shown_update(&f->shown, f->core), SHOWN_NAMES);
    assert_int_equal(f->shown.len, 1);
    assert_string_equal(f->shown.lists[0].resource, "v.com/c");
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
    size_t bytes = SHOWN_LISTS_BYTES_MAX / 5 * 2; /* two fit */
    uint64_t through = 0;

    for (size_t i = 3; i-- > 0;) { /* the last by name is the oldest */
        char *id = long_id((char)('a' + i), bytes);

        list_one(f, names[i], id, true);
        shown_update(&f->shown, f->core);
        free(id);
    }
    for (int turn = 0; turn < 2; turn++) {
        Bridge__V1__WatchResponse *response = message(f, &through);

        assert_int_equal(response->n_resources, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(!!response->resources[i]->list, turn == 0 ? i > 0 : i == 0);
            assert_int_equal(response->resources[i]->version, f->shown.lists[i].version);
        }
        assert_int_equal(through == f->shown.version, turn == 1);
        bridge__v1__watch_response__free_unpacked(response, NULL);
    }
}

/* Says so on stderr. */
static void a_list_for_no_message_is_not_shown(void **state)
{
    struct fixture *f = *state;
    char *id = long_id('x', SHOWN_LISTS_BYTES_MAX);
    uint64_t through = 0;
    Bridge__V1__WatchResponse *response;

    list_one(f, GPU, "g0", true);
    list_one(f, NIC, "n0", true);
    shown_update(&f->shown, f->core);
    list_one(f, GPU, id, true);
    assert_int_equal(shown_update(&f->shown, f->core), SHOWN_CHANGED);
    response = message(f, &through);
    assert_int_equal(response->n_resources, 1);
    assert_string_equal(response->resources[0]->name, NIC);
    assert_int_equal(through, f->shown.version);
    bridge__v1__watch_response__free_unpacked(response, NULL);
    list_one(f, GPU, "g0", true);
    shown_update(&f->shown, f->core);
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
        shown_update(&f->shown, f->core);
        response = message(f, &through);
        assert_string_equal(response->resources[0]->list->devices[0]->id, id);
        list = shown_unpack(&f->shown.lists[0]);
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
        cmocka_unit_test_setup_teardown(an_equal_list_keeps_its_version, setup, teardown),
        cmocka_unit_test_setup_teardown(names_between_others_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_comes_in_the_next_message, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_list_for_no_message_is_not_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(the_length_grows_over_each_step_of_a_varint, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
