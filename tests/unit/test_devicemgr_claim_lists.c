/* devicemgr/turn/list_drivers.c, list_claims.c: the lists, and going on with them from a place. */
#include "devicemgr/lists.h"

#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "told_text.h"

/* What was told, a line each; and after how many rows nobody listens any more. */
struct told {
    char text[4096];
    size_t rows, rows_max;
    char key[DEVICEMGR_CLAIM_KEY][64]; /* of the last */
};

static struct told told;

#define put(...) told_text_add(told.text, sizeof told.text, __VA_ARGS__)

static bool end_row(const char *const *key, size_t parts)
{
    put("\n");
    for (size_t i = 0; i < parts; i++)
        snprintf(told.key[i], sizeof told.key[i], "%s", key[i]);
    return ++told.rows < told.rows_max;
}

static bool on_driver(void *user, const struct devicemgr_driver_row *row)
{
    (void)user;
    put("%s %s %llu %zu: %zu prepared %zu owed %zu waits %zu%s%s", row->name,
        row->connected ? "connected" : "away", (unsigned long long)row->since_ms_ago,
        row->services_len, row->claims, row->prepared, row->owed, row->waits,
        row->wiped ? " wiped" : "", row->why);
    for (size_t i = 0; i < row->endpoints_len; i++)
        put(" %s:%zu%s%s:%llu", row->endpoints[i].endpoint, row->endpoints[i].services_len,
            row->endpoints[i].connected ? "+" : "-", row->endpoints[i].called ? "*" : "",
            (unsigned long long)row->endpoints[i].since_ms_ago);
    return end_row(&row->name, DEVICEMGR_DRIVER_KEY);
}

static bool on_claim(void *user, const struct devicemgr_claim_row *row)
{
    (void)user;
    put("%s/%s %s %s %llu%s%s", row->pod_namespace, row->name, row->driver, row->state,
        (unsigned long long)row->since_ms_ago, row->stored ? " stored" : "",
        row->local ? " local" : "");
    if (row->prepared)
        put(" prepared %llu", (unsigned long long)row->prepared_ms_ago);
    for (size_t i = 0; i < row->devices_len; i++)
        put(" %s/%s=%s%s", row->devices[i].pool, row->devices[i].device, row->devices[i].cdi[0],
            row->devices[i].admin ? " admin" : "");
    for (size_t i = 0; i < row->users_len; i++)
        put(" %s(%s)/%s", row->users[i].pod, row->users[i].pod_uid, row->users[i].container);
    if (row->asks > 0)
        put(" waits %zu", row->asks);
    return end_row((const char *const[]){row->pod_namespace, row->name, row->uid, row->driver},
                   DEVICEMGR_CLAIM_KEY);
}

static void begin(size_t rows_max)
{
    told.text[0] = '\0';
    told.rows = 0;
    told.rows_max = rows_max;
}

static const char *drivers(struct world *w, struct devicemgr_which which)
{
    begin(SIZE_MAX);
    devicemgr_driver_rows(w->mgr, w->now_ms, &which, on_driver, NULL);
    return told.text;
}

static const char *claims(struct world *w, struct devicemgr_which which)
{
    begin(SIZE_MAX);
    devicemgr_claim_rows(w->mgr, w->now_ms, &which, on_claim, NULL);
    return told.text;
}

#define ALL ((struct devicemgr_which){0})

static void use_as(struct world *w, const char *pod_name, const char *cdi)
{
    const struct devicemgr_create request = {.pod_uid = "u1",
                                             .pod_namespace = "ns",
                                             .pod_name = pod_name,
                                             .container = "main",
                                             .sandbox_id = "s-u1",
                                             .cdi_devices = &cdi,
                                             .cdi_devices_len = 1};

    (void)!create_claimed(w, 1, &request);
}

static void use(struct world *w, const char *cdi)
{
    sandbox_ran(w, "u1", "s-u1", 0);
    use_as(w, "u1", cdi);
}

static void a_driver_is_told_with_its_endpoints(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, 100);
    driver_register(w, 2, DRIVER, "/x/new.sock");
    assert_string_equal(drivers(w, ALL), DRIVER " connected 100 2: 1 prepared 1 owed 0 waits 0"
                                                " /x/1.sock:2+*:100 /x/new.sock:2-:0\n");
    driver_connected(w, 2);
    pass(w, 10);
    driver_lost(w, 1, "closed");
    assert_string_equal(drivers(w, ALL), DRIVER " connected 110 2: 1 prepared 1 owed 0 waits 0"
                                                " /x/1.sock:2-:0 /x/new.sock:2+*:10\n");
}

static void one_that_is_away_is_told_with_why_and_since_when(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    pass(w, 50);
    driver_lost(w, 1, " it fell");
    pass(w, 7);
    prepare(w, 5, "c1");
    devicemgr_driver_wiped(w->mgr, w->now_ms, DRIVER);
    assert_string_equal(drivers(w, ALL),
                        DRIVER " away 7 2: 1 prepared 0 owed 0 waits 1 wiped it fell"
                               " /x/1.sock:2-:7\n");
    driver_deregister(w, 1);
    assert_string_equal(drivers(w, ALL),
                        DRIVER " away 7 2: 1 prepared 0 owed 0 waits 1 wiped it fell\n");
}

/* As a new pod of it, behind which there is nothing: what it was away for before is not why. */
static void one_that_cannot_be_reached_is_told_with_why(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    driver_register(w, 2, DRIVER, "/x/2.sock");
    pass(w, 7);
    driver_lost(w, 2, " cannot connect");
    assert_string_equal(drivers(w, ALL),
                        DRIVER " away 7 2: 0 prepared 0 owed 0 waits 0 cannot connect"
                               " /x/2.sock:2-:7\n");
    assert_int_equal(logged(w, "cannot be reached"), 1);
    driver_deregister(w, 2);
    assert_non_null(strstr(drivers(w, ALL), "waits 0 cannot connect\n"));
    assert_int_equal(logged(w, "cannot be reached"), 0);
    ignore_all(w);
}

/* As during a roll-over: it is there. */
static void one_of_two_that_cannot_be_reached_takes_nothing_away(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_register(w, 2, DRIVER, "/x/2.sock");
    driver_lost(w, 2, " cannot connect");
    assert_int_equal(logged(w, "cannot be reached"), 1);
    driver_lost(w, 1, " it fell");
    assert_non_null(strstr(drivers(w, ALL), "waits 0 it fell /x/1.sock:2-:0 /x/2.sock:2-:0\n"));
    ignore_all(w);
}

static void drivers_go_on_behind_a_place(void **state)
{
    struct world *w = *state;
    const char *after = "gpu2";

    driver_up(w, 1, "gpu10");
    driver_up(w, 2, "gpu2");
    driver_up(w, 3, "gpu1");
    begin(2);
    devicemgr_driver_rows(w->mgr, w->now_ms, &ALL, on_driver, NULL);
    assert_int_equal(told.rows, 2);
    assert_string_equal(told.key[0], "gpu2");
    assert_memory_equal(drivers(w, (struct devicemgr_which){.after = &after}), "gpu10 ", 6);
    assert_int_equal(told.rows, 1);
    assert_memory_equal(drivers(w, (struct devicemgr_which){.driver = "gpu1"}), "gpu1 ", 5);
    assert_int_equal(told.rows, 1);
}

static void a_claim_is_told_with_its_devices_and_who_uses_it(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    slice_is(w, "p", "gpu-0");
    pass(w, 30);
    committed(w);
    use(w, "example.com/dev=gpu-0");
    committed(w);
    assert_string_equal(claims(w, ALL), "ns/c1 " DRIVER " prepared 30 stored local prepared 30"
                                        " p/gpu-0=example.com/dev=gpu-0 ns/u1(u1)/main\n");
    assert_string_equal(claims(w, (struct devicemgr_which){.pod = "u2"}), "");
    assert_string_not_equal(claims(w, (struct devicemgr_which){.pod = "ns/u1"}), "");
    prepare(w, 6, "c1");
    assert_non_null(strstr(claims(w, ALL), " sent 0 prepared 30 ")); /* it may have others now */
    assert_non_null(strstr(told.text, " waits 1\n"));
}

/* By its name, with and without its namespace, and by its uid, also before its sandbox is known. */
static void whose_claim_it_is(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    use_as(w, "web", "example.com/dev=gpu-0");
    assert_non_null(strstr(claims(w, ALL), " ns/web(u1)/main\n"));
    assert_string_not_equal(claims(w, (struct devicemgr_which){.pod = "u1"}), "");
    assert_string_equal(claims(w, (struct devicemgr_which){.pod = "u2"}), "");
    sandbox_ran(w, "u1", "s-u1", 0);
    assert_non_null(strstr(claims(w, ALL), " ns/web(u1)/main\n"));
    assert_string_not_equal(claims(w, (struct devicemgr_which){.pod = "u1"}), "");
    assert_string_not_equal(claims(w, (struct devicemgr_which){.pod = "web"}), "");
    assert_string_not_equal(claims(w, (struct devicemgr_which){.pod = "ns/web"}), "");
    assert_string_equal(claims(w, (struct devicemgr_which){.pod = "we"}), "");
    ignore_all(w);
}

/* A claim that looks at a device, whoever has it. */
static void a_device_may_be_looked_at_only(void **state)
{
    static const struct devicemgr_claim_device device = {
        .driver = DRIVER, .pool = "p", .device = "gpu-0", .admin_access = true};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0 gpu-1");
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c1", true, &device, 1);
    assert_non_null(strstr(claims(w, ALL), " p/gpu-0=example.com/dev=gpu-0 admin"
                                           " p/gpu-1=example.com/dev=gpu-1\n"));
    ignore_all(w);
}

/* Prepared since then for the first time: not anew with each prepare, but after an unprepare. */
static void a_claim_is_prepared_since_the_first_time(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    pass(w, 30);
    claim_prepared(w, 6, "c1", "gpu-0");
    assert_non_null(strstr(claims(w, ALL), " prepared 0 stored prepared 30 "));
    world_restart(w);
    ignore_all(w);
    assert_non_null(strstr(claims(w, ALL), " prepared 0 stored prepared 30 "));
    driver_up(w, 2, DRIVER);
    unprepare(w, 7, "c1");
    ignore_all(w);
    committed(w);
    claim_unprepared(w);
    committed(w);
    ignore_all(w);
    pass(w, 5);
    claim_prepared(w, 8, "c1", "gpu-0");
    assert_non_null(strstr(claims(w, ALL), " prepared 0 stored prepared 0 "));
}

static void claims_go_on_behind_a_place(void **state)
{
    struct world *w = *state;
    const char *after[DEVICEMGR_CLAIM_KEY] = {"ns", "c2", "c2", DRIVER};

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c10", "gpu-0");
    claim_prepared(w, 6, "c2", "gpu-1");
    claim_prepared(w, 7, "c1", "gpu-2");
    begin(2);
    devicemgr_claim_rows(w->mgr, w->now_ms, &ALL, on_claim, NULL);
    assert_string_equal(told.key[1], "c2");
    assert_memory_equal(claims(w, (struct devicemgr_which){.after = after}), "ns/c10 ", 7);
    assert_int_equal(told.rows, 1);
    assert_int_equal((claims(w, (struct devicemgr_which){.driver = DRIVER}), told.rows), 3);
    assert_int_equal((claims(w, (struct devicemgr_which){.pod_namespace = "ns"}), told.rows), 3);
    assert_string_equal(claims(w, (struct devicemgr_which){.driver = OTHER_DRIVER}), "");
    assert_string_equal(claims(w, (struct devicemgr_which){.pod_namespace = "other"}), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)
        TEST(a_driver_is_told_with_its_endpoints),
        TEST(one_that_is_away_is_told_with_why_and_since_when),
        TEST(one_that_cannot_be_reached_is_told_with_why),
        TEST(one_of_two_that_cannot_be_reached_takes_nothing_away),
        TEST(drivers_go_on_behind_a_place),
        TEST(a_claim_is_told_with_its_devices_and_who_uses_it),
        TEST(whose_claim_it_is),
        TEST(a_device_may_be_looked_at_only),
        TEST(a_claim_is_prepared_since_the_first_time),
        TEST(claims_go_on_behind_a_place),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
