/* shim/kubelet/taken.c: a decision, no I/O. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "devicemgr/things/ids.h"
#include "shim/kubelet/taken.h"

#define GPU "v.com/gpu"
#define NIC "v.com/nic"
#define KUBELET 77

/* GPU with "g2" and "g10" healthy and "g1" not, at version 4; NIC with "n0", at version 5. All of
 * it taken, unless a test changes something. */
struct fixture {
    struct advertised advertised;
    struct advertised_list lists[2];
    Bridge__V1__ReportRequest report;
    Bridge__V1__ResourceReport resources[2];
    Bridge__V1__ResourceReport *pointers[2];
    struct kubelet_file file;
    struct kubelet_resource registered[2];
    struct taken taken;
};

static void pack(struct advertised_list *list, const char *const *ids, const bool *healthy,
                 size_t len)
{
    Bridge__V1__DeviceList message = BRIDGE__V1__DEVICE_LIST__INIT;
    Bridge__V1__Device devices[8], *pointers[8];

    for (size_t i = 0; i < len; i++) {
        bridge__v1__device__init(&devices[i]);
        devices[i].id = (char *)ids[i];
        devices[i].healthy = healthy[i];
        pointers[i] = &devices[i];
    }
    message.devices = pointers;
    message.n_devices = len;
    for (size_t i = 0; i < len; i++)
        list->healthy += healthy[i];
    list->len = bridge__v1__device_list__get_packed_size(&message);
    list->bytes = malloc(list->len + 1);
    bridge__v1__device_list__pack(&message, list->bytes);
}

static void report(struct fixture *f, size_t i, const char *name, uint64_t version)
{
    f->pointers[i] = &f->resources[i];
    bridge__v1__resource_report__init(&f->resources[i]);
    f->resources[i].name = (char *)name;
    f->resources[i].registered = true;
    f->resources[i].version = version;
    f->resources[i].stored = true;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->lists[0] = (struct advertised_list){.resource = (char *)GPU, .version = 4};
    pack(&f->lists[0], (const char *[]){"g1", "g2", "g10"}, (const bool[]){false, true, true}, 3);
    f->lists[1] = (struct advertised_list){.resource = (char *)NIC, .version = 5};
    pack(&f->lists[1], (const char *[]){"n0"}, (const bool[]){true}, 1);
    f->advertised =
        (struct advertised){.lists = f->lists, .len = 2, .version = 5, .core_version = 1};
    bridge__v1__report_request__init(&f->report);
    f->report.kubelet_pid = KUBELET;
    f->report.resources = f->pointers;
    f->report.n_resources = 2;
    report(f, 0, NIC, 5); /* in no order */
    report(f, 1, GPU, 4);
    taken_sort(&f->report);
    f->file.state = KUBELET_FILE_READ;
    f->file.checkpoint.resources = f->registered;
    f->file.checkpoint.resources_len = 2;
    f->registered[0].name = (char *)GPU;
    ids_add(&f->registered[0].healthy, "g2");
    ids_add(&f->registered[0].healthy, "g10");
    f->registered[1].name = (char *)NIC;
    ids_add(&f->registered[1].healthy, "n0");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        free(f->lists[i].bytes);
        ids_fini(&f->registered[i].healthy);
    }
    free(f);
    return 0;
}

static void judge(struct fixture *f)
{
    taken_judge(&f->advertised, &f->report, &f->file, KUBELET, &f->taken);
}

static void assert_missing(struct fixture *f, const char *words)
{
    judge(f);
    assert_false(f->taken.all);
    assert_string_equal(f->taken.words, words);
}

static void all_is_taken(void **state)
{
    struct fixture *f = *state;

    judge(f);
    assert_true(f->taken.all);
    assert_string_equal(f->taken.words, "all resources (2) are registered and stored");
}

static void nothing_shown_needs_nobody(void **state)
{
    struct fixture *f = *state;

    f->advertised.len = 0;
    taken_judge(&f->advertised, NULL, NULL, KUBELET, &f->taken);
    assert_true(f->taken.all);
    assert_string_equal(f->taken.words, "there is nothing to show it");
}

static void without_a_report(void **state)
{
    struct fixture *f = *state;

    taken_judge(&f->advertised, NULL, &f->file, KUBELET, &f->taken);
    assert_false(f->taken.all);
    assert_string_equal(f->taken.words, "no bridge has reported");
    f->report.kubelet_pid = 0;
    assert_missing(f, "the bridge has not reached it");
    f->report.kubelet_pid = KUBELET + 1;
    assert_missing(f, "the bridge has not reached it");
}

static void each_step_is_needed_of_each_resource(void **state)
{
    struct fixture *f = *state;

    f->resources[1].stored = false;
    assert_missing(f, GPU ": its list was not stored");
    f->resources[1].version = 3;
    assert_missing(f, GPU ": its list was not sent");
    f->resources[1].registered = false;
    assert_missing(f, GPU ": not registered");
    f->report.resources++;
    f->report.n_resources = 1;
    assert_missing(f, GPU ": not registered");
    f->resources[0].stored = false;
    assert_missing(f, GPU ": not registered; " NIC ": its list was not stored");
}

/* It will never be taken, so that waiting for it would only cost the kubelet its time. */
static void what_was_refused_is_not_waited_for(void **state)
{
    struct fixture *f = *state;

    f->resources[1].refused = true; /* of an earlier try: it is registered now */
    f->resources[1].stored = false;
    assert_missing(f, GPU ": its list was not stored");
    f->resources[1].registered = false;
    f->file.checkpoint.resources[0].healthy.len--;
    judge(f);
    assert_true(f->taken.all);
    assert_string_equal(f->taken.words,
                        "all resources (1) are registered and stored; it has refused " GPU);
    f->resources[0].stored = false;
    assert_missing(f, NIC ": its list was not stored");
    f->resources[0].registered = false;
    f->resources[0].refused = true;
    judge(f);
    assert_true(f->taken.all);
    assert_string_equal(f->taken.words, "all resources (0) are registered and stored; "
                                        "it has refused " GPU ", " NIC);
    f->file.checkpoint.resources[0].healthy.len++;
}

static void the_file_must_name_each_healthy_id(void **state)
{
    struct fixture *f = *state;

    f->registered[0].healthy.len--; /* without g10 */
    assert_missing(f, GPU ": not in the kubelet's checkpoint");
    f->registered[0].healthy.len++;
    judge(f);
    assert_true(f->taken.all);
    f->registered[0].healthy.v++; /* without g2 */
    f->registered[0].healthy.len--;
    assert_missing(f, GPU ": not in the kubelet's checkpoint");
    f->registered[0].healthy.v--;
    f->registered[0].healthy.len++;
    f->file.checkpoint.resources_len = 1;
    assert_missing(f, NIC ": not in the kubelet's checkpoint");
    f->registered[1].healthy.len--; /* a kubelet that has started writes the names first */
    f->file.checkpoint.resources_len = 2;
    assert_missing(f, NIC ": not in the kubelet's checkpoint");
    f->registered[1].healthy.len++;
}

/* It was written for the list before, in which that one was healthy. */
static void the_file_must_name_no_other_id(void **state)
{
    struct fixture *f = *state;

    ids_add(&f->registered[1].healthy, "n1");
    assert_missing(f, NIC ": not in the kubelet's checkpoint");
    ids_add(&f->registered[0].healthy, "g1"); /* is shown, as unhealthy */
    ids_sort(&f->registered[0].healthy);
    assert_missing(f, GPU ": not in the kubelet's checkpoint");
}

static void without_a_file(void **state)
{
    struct fixture *f = *state;

    taken_judge(&f->advertised, &f->report, NULL, KUBELET, &f->taken);
    assert_false(f->taken.all);
    assert_string_equal(f->taken.words, GPU ": the kubelet's checkpoint is being read");
    f->file.state = KUBELET_FILE_MISSING;
    assert_missing(f, GPU ": there is no kubelet's checkpoint");
    f->resources[0].stored = false;
    f->file.state = KUBELET_FILE_DAMAGED;
    assert_missing(f, NIC ": its list was not stored");
}

static void a_file_of_a_later_format_need_only_be_written(void **state)
{
    struct fixture *f = *state;

    f->file.state = KUBELET_FILE_DAMAGED;
    f->file.checkpoint.resources_len = 0;
    judge(f);
    assert_true(f->taken.all);
    f->file.state = KUBELET_FILE_UNREADABLE;
    judge(f);
    assert_true(f->taken.all);
}

static void a_list_that_cannot_be_shown_is_not_waited_for(void **state)
{
    struct fixture *f = *state;

    f->lists[1].too_long = true;
    f->resources[0].registered = false;
    f->registered[1].healthy.len--;
    judge(f);
    assert_true(f->taken.all);
    assert_string_equal(f->taken.words, "all resources (1) are registered and stored");
    f->registered[1].healthy.len++;
    f->lists[0].too_long = true;
    judge(f);
    assert_true(f->taken.all);
    assert_string_equal(f->taken.words, "there is nothing to show it");
}

static void many_missing_ones_are_cut(void **state)
{
    struct fixture *f = *state;
    struct advertised_list lists[64];

    for (size_t i = 0; i < 64; i++)
        lists[i] = (struct advertised_list){.resource = (char *)"v.com/other", .version = 1};
    f->advertised.lists = lists;
    f->advertised.len = 64;
    judge(f);
    assert_false(f->taken.all);
    assert_int_equal(strlen(f->taken.words), sizeof f->taken.words - 1);
}

static enum displaced_seen look(const struct fixture *f)
{
    return taken_look(&f->lists[1], &f->report, &f->file);
}

static void undone_once_stored_and_without_a_healthy_device(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(look(f), DISPLACED_NO);
    f->registered[1].healthy.len--;
    assert_int_equal(look(f), DISPLACED_YES);
    f->file.checkpoint.resources_len = 1; /* as after the kubelet's grace */
    assert_int_equal(look(f), DISPLACED_YES);
    f->resources[0].stored = false;
    assert_int_equal(look(f), DISPLACED_UNKNOWN);
    f->resources[0].stored = true;
    f->file.state = KUBELET_FILE_MISSING;
    assert_int_equal(look(f), DISPLACED_UNKNOWN);
    assert_int_equal(taken_look(&f->lists[1], &f->report, NULL), DISPLACED_UNKNOWN);
    assert_int_equal(taken_look(&f->lists[1], NULL, &f->file), DISPLACED_UNKNOWN);
    f->file.state = KUBELET_FILE_READ;
    f->lists[1].healthy = 0; /* so that it has none is no wonder */
    assert_int_equal(look(f), DISPLACED_UNKNOWN);
    f->registered[1].healthy.len++;
}

/* Another plugin's, whose devices these are: it is left alone. */
static void other_devices_do_not_undo_it(void **state)
{
    struct fixture *f = *state;

    free(f->registered[1].healthy.v[0]);
    f->registered[1].healthy.v[0] = strdup("theirs");
    assert_int_equal(look(f), DISPLACED_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_shown_needs_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_report, setup, teardown),
        cmocka_unit_test_setup_teardown(each_step_is_needed_of_each_resource, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_refused_is_not_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(the_file_must_name_each_healthy_id, setup, teardown),
        cmocka_unit_test_setup_teardown(the_file_must_name_no_other_id, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_a_later_format_need_only_be_written, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_list_that_cannot_be_shown_is_not_waited_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_missing_ones_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(undone_once_stored_and_without_a_healthy_device, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(other_devices_do_not_undo_it, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
