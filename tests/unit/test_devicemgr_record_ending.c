/* devicemgr/books/record_ending.c: rows of pods that are being ended, and those that are none. */
#include <stdio.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/books/record.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

#define BOOT "boot-1"

static const char BAD[] = "\xff";

struct row {
    Checkpoint__V1__Ending ending;
    Checkpoint__V1__EndingAsk asks[ENDING_ASKS_MAX + 1], *all[ENDING_ASKS_MAX + 1];
    const char *key;
};

/* One that is right. */
static void row_init(struct row *row)
{
    checkpoint__v1__ending__init(&row->ending);
    for (size_t i = 0; i <= ENDING_ASKS_MAX; i++) {
        checkpoint__v1__ending_ask__init(&row->asks[i]);
        row->asks[i].asker = (char *)"operator";
        row->asks[i].token = i + 1;
        row->asks[i].why = (char *)"it is to be mended";
        row->all[i] = &row->asks[i];
    }
    row->ending.pod_uid = (char *)"u1";
    row->ending.namespace_ = (char *)"default";
    row->ending.name = (char *)"p1";
    row->ending.state = (char *)"stopping";
    row->ending.boot_id = (char *)BOOT;
    row->ending.asked_ms = 500;
    row->ending.due_ms = 900;
    row->ending.asks = row->all;
    row->ending.n_asks = 1;
    row->key = "u1";
}

static int restore(struct endings *table, const struct row *row, const char *boot_id)
{
    size_t len = checkpoint__v1__ending__get_packed_size(&row->ending);
    uint8_t *bytes = malloc(len);
    struct devicemgr_record record = {DEVICEMGR_RECORD_ENDING, {row->key, "", ""}, bytes, len};
    int r;

    checkpoint__v1__ending__pack(&row->ending, bytes);
    r = record_restore_ending(table, 1000, boot_id, &record);
    free(bytes);
    return r;
}

static void bad(const struct row *row)
{
    struct endings table = {0};

    assert_int_equal(restore(&table, row, BOOT), -1);
    assert_int_equal(endings_len(&table), 0);
    endings_fini(&table);
}

static void what_breaks_a_rule_changes_nothing(void **state)
{
    char *sidecars[SIDECARS_MAX + 1];
    struct row row;

    (void)state;
#define BREAKS(change)                                                                             \
    do {                                                                                           \
        row_init(&row);                                                                            \
        change;                                                                                    \
        bad(&row);                                                                                 \
    } while (0)
    BREAKS(row.key = "u2");
    BREAKS(row.key = row.ending.pod_uid = (char *)"");
    BREAKS(row.ending.state = (char *)"gone");
    BREAKS(row.ending.state = (char *)"at rest");
    BREAKS(row.ending.n_asks = 0);
    BREAKS(row.ending.n_asks = ENDING_ASKS_MAX + 1);
    BREAKS(row.asks[0].asker = (char *)"nobody");
    BREAKS(row.asks[0].why = (char *)BAD);
    BREAKS(row.key = row.ending.pod_uid = (char *)BAD);
    BREAKS(row.ending.namespace_ = (char *)BAD);
    BREAKS(row.ending.name = (char *)BAD);
    for (size_t i = 0; i <= SIDECARS_MAX; i++)
        sidecars[i] = (char *)"proxy";
    BREAKS(row.ending.sidecars = sidecars; row.ending.n_sidecars = SIDECARS_MAX + 1);
    sidecars[1] = (char *)BAD;
    BREAKS(row.ending.sidecars = sidecars; row.ending.n_sidecars = 2);
#undef BREAKS
}

static void bytes_that_are_no_row_change_nothing(void **state)
{
    struct endings table = {0};
    struct devicemgr_record record = {
        DEVICEMGR_RECORD_ENDING, {"u1", "", ""}, (const uint8_t *)"\xff\xff", 2};

    (void)state;
    assert_int_equal(record_restore_ending(&table, 1000, BOOT, &record), -1);
    assert_int_equal(endings_len(&table), 0);
}

static void one_comes_back_once_with_all_who_ask(void **state)
{
    struct endings table = {0};
    const struct ending *ending;
    struct row row;

    (void)state;
    row_init(&row);
    row.ending.n_asks = ENDING_ASKS_MAX;
    row.asks[0].asked_ms = 700; /* the others say no moment: when the first of all did */
    row.ending.unasked_ms = 200;
    row.ending.unasked_since_ms = 800;
    assert_int_equal(restore(&table, &row, BOOT), 0);
    assert_int_equal(restore(&table, &row, BOOT), -1);
    ending = endings_find(&table, "u1");
    assert_int_equal(ending_asked_ms(ending), 500);
    assert_int_equal(ending->due_ms, 900);
    assert_int_equal(ending->unasked_ms, 200);
    assert_int_equal(ending->unasked_since_ms, 800);
    assert_int_equal(ending_find_ask(ending, END_OPERATOR, 1)->asked_ms, 700);
    assert_int_equal(ending_find_ask(ending, END_OPERATOR, ENDING_ASKS_MAX)->asked_ms, 500);
    endings_fini(&table);
}

static void of_another_boot_all_ask_now(void **state)
{
    struct endings table = {0};
    const struct ending *ending;
    struct row row;

    (void)state;
    row_init(&row);
    row.ending.unasked_ms = row.ending.unasked_since_ms = 200;
    assert_int_equal(restore(&table, &row, "boot-2"), 0);
    ending = endings_find(&table, "u1");
    assert_int_equal(ending_asked_ms(ending), 1000);
    assert_int_equal(ending->due_ms, 0);
    assert_int_equal(ending->unasked_ms + ending->unasked_since_ms, 0);
    endings_fini(&table);
}

static void there_are_no_more_than_fit(void **state)
{
    struct endings table = {0};
    struct row row;
    char uid[16];

    (void)state;
    row_init(&row);
    for (size_t i = 0; i <= ENDINGS_MAX; i++) {
        snprintf(uid, sizeof uid, "u%zu", i);
        row.key = row.ending.pod_uid = uid;
        assert_int_equal(restore(&table, &row, BOOT), i < ENDINGS_MAX ? 0 : -1);
    }
    assert_int_equal(endings_len(&table), ENDINGS_MAX);
    endings_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_breaks_a_rule_changes_nothing),
        cmocka_unit_test(bytes_that_are_no_row_change_nothing),
        cmocka_unit_test(one_comes_back_once_with_all_who_ask),
        cmocka_unit_test(of_another_boot_all_ask_now),
        cmocka_unit_test(there_are_no_more_than_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
