/* devicemgr/books/record_shutdown.c: the row of a machine that goes down, and what is none. */
#include <stdio.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/books/record.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

#define BOOT "boot-1"
#define GROUPS (SHUTDOWN_GROUPS_MAX + 1)

struct row {
    Checkpoint__V1__Shutdown shutdown;
    Checkpoint__V1__ShutdownGroup groups[GROUPS], *all_groups[GROUPS];
    Checkpoint__V1__ShutdownPod pods[2], *all_pods[2];
    const char *key;
};

/* One that is right: the second of two groups is under way. */
static void row_init(struct row *row)
{
    checkpoint__v1__shutdown__init(&row->shutdown);
    for (size_t i = 0; i < GROUPS; i++) {
        checkpoint__v1__shutdown_group__init(&row->groups[i]);
        row->groups[i].priority = (int32_t)i;
        row->groups[i].grace_ms = 1000 * (i + 1);
        row->all_groups[i] = &row->groups[i];
    }
    for (size_t i = 0; i < 2; i++) {
        checkpoint__v1__shutdown_pod__init(&row->pods[i]);
        row->pods[i].uid = (char *)(i == 0 ? "u0" : "u1");
        row->pods[i].group = (uint32_t)i;
        row->all_pods[i] = &row->pods[i];
    }
    row->shutdown.state = (char *)"groups";
    row->shutdown.boot_id = (char *)BOOT;
    row->shutdown.since_ms = 500;
    row->shutdown.group = 1;
    row->shutdown.groups = row->all_groups;
    row->shutdown.n_groups = 2;
    row->shutdown.pods = row->all_pods;
    row->shutdown.n_pods = 2;
    row->key = "shutdown";
}

static int restore(struct shutdown *shutdown, const struct row *row, const char *boot_id)
{
    size_t len = checkpoint__v1__shutdown__get_packed_size(&row->shutdown);
    uint8_t *bytes = malloc(len);
    struct devicemgr_record record = {DEVICEMGR_RECORD_SHUTDOWN, {row->key, "", ""}, bytes, len};
    int r;

    checkpoint__v1__shutdown__pack(&row->shutdown, bytes);
    r = record_restore_shutdown(shutdown, 1000, boot_id, &record);
    free(bytes);
    return r;
}

static void bad(const struct row *row)
{
    struct shutdown shutdown = {0};

    assert_int_equal(restore(&shutdown, row, BOOT), -1);
    assert_false(shutdown_under_way(&shutdown) || shutdown.stored);
    shutdown_fini(&shutdown);
}

static void what_breaks_a_rule_changes_nothing(void **state)
{
    struct row row;

    (void)state;
#define BREAKS(change)                                                                             \
    do {                                                                                           \
        row_init(&row);                                                                            \
        change;                                                                                    \
        bad(&row);                                                                                 \
    } while (0)
    BREAKS(row.key = "power-off");
    BREAKS(row.shutdown.state = (char *)"none");
    BREAKS(row.shutdown.state = (char *)"at rest");
    BREAKS(row.shutdown.n_groups = GROUPS);
    BREAKS(row.groups[1].priority = 0);
    BREAKS(row.groups[1].priority = -1);
    BREAKS(row.shutdown.group = 2);
    BREAKS(row.shutdown.n_groups = row.shutdown.n_pods = 0); /* whose second one? */
    BREAKS(row.shutdown.n_groups = row.shutdown.n_pods = row.shutdown.group = 0);
    BREAKS(row.shutdown.state = (char *)"over");
    BREAKS(row.shutdown.over_ms = 700);
    BREAKS(row.pods[1].group = 2);
    BREAKS(row.pods[1].uid = (char *)"");
    BREAKS(row.pods[1].uid = (char *)"\xff");
#undef BREAKS
}

static void bytes_that_are_no_row_change_nothing(void **state)
{
    struct shutdown shutdown = {0};
    struct devicemgr_record record = {
        DEVICEMGR_RECORD_SHUTDOWN, {"shutdown", "", ""}, (const uint8_t *)"\xff\xff", 2};

    (void)state;
    assert_int_equal(record_restore_shutdown(&shutdown, 1000, BOOT, &record), -1);
    assert_false(shutdown.stored);
}

static void it_comes_back_once(void **state)
{
    struct shutdown shutdown = {0};
    struct row row;

    (void)state;
    row_init(&row);
    row.shutdown.since_ms = 4711;   /* not before now */
    row.pods[1].uid = (char *)"u0"; /* twice: it is of the first */
    assert_int_equal(restore(&shutdown, &row, BOOT), 0);
    assert_int_equal(restore(&shutdown, &row, BOOT), -1);
    assert_true(shutdown_under_way(&shutdown));
    assert_int_equal(shutdown.since_ms, 1000);
    assert_int_equal(shutdown_group_len(&shutdown, 0), 1);
    assert_int_equal(shutdown_group_len(&shutdown, 1), 0);
    shutdown_fini(&shutdown);
}

/* The first of a uid counts, and there are so many at most. */
static void what_is_known_of_pods_has_a_bound(void **state)
{
    struct devicemgr_priority *pods = calloc(SHUTDOWN_KNOWN_MAX + 1, sizeof *pods);
    char(*uids)[16] = calloc(SHUTDOWN_KNOWN_MAX + 1, sizeof *uids);
    struct shutdown shutdown = {0};

    (void)state;
    for (size_t i = 0; i <= SHUTDOWN_KNOWN_MAX; i++) {
        snprintf(uids[i], sizeof *uids, "u%zu", i == 1 ? 0 : i);
        pods[i] = (struct devicemgr_priority){uids[i], "ns", uids[i], false, (int32_t)i};
    }
    shutdown_set_known(&shutdown, pods, SHUTDOWN_KNOWN_MAX + 1);
    assert_int_equal(shutdown_find_known(&shutdown, "u0", "ns", "u0", false)->priority, 0);
    assert_null(shutdown_find_known(&shutdown, "u1", "ns", "u1", false));
    assert_non_null(shutdown_find_known(&shutdown, uids[SHUTDOWN_KNOWN_MAX - 1], "ns", "", false));
    assert_null(shutdown_find_known(&shutdown, uids[SHUTDOWN_KNOWN_MAX], "ns", "", false));
    shutdown_fini(&shutdown);
    free(pods);
    free(uids);
}

static void of_another_boot_there_is_only_the_row(void **state)
{
    struct shutdown shutdown = {0};
    struct row row;

    (void)state;
    row_init(&row);
    row.shutdown.state = (char *)"over";
    row.shutdown.over_ms = 700;
    assert_int_equal(restore(&shutdown, &row, "boot-2"), 0);
    assert_false(shutdown_under_way(&shutdown));
    assert_true(shutdown.stored);
    shutdown_fini(&shutdown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_breaks_a_rule_changes_nothing),
        cmocka_unit_test(bytes_that_are_no_row_change_nothing),
        cmocka_unit_test(it_comes_back_once),
        cmocka_unit_test(what_is_known_of_pods_has_a_bound),
        cmocka_unit_test(of_another_boot_there_is_only_the_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
