/* devicemgr/turn/why_claims.c: what whoever asks is told of claims. */
#include "devicemgr/why.h"

#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "devicemgr/codes.h"
#include "devicemgr/things/limits.h"

static char told[2048];
static char words[1024]; /* of the last one that waits */

static void on_claim(void *user, const struct devicemgr_why_claim *why)
{
    size_t len = strlen(told);

    (void)user;
    len += (size_t)snprintf(told + len, sizeof told - len, "%s %s %s", why->name, why->driver,
                            why->state);
    for (size_t i = 0; i < why->requests_len; i++)
        len += (size_t)snprintf(told + len, sizeof told - len, " %s %llu left %lld",
                                why->requests[i].unprepare ? "unprepare" : "prepare",
                                (unsigned long long)why->requests[i].waited_ms,
                                (long long)why->requests[i].left_ms);
    if (why->word)
        len += (size_t)snprintf(told + len, sizeof told - len, " %s:%s",
                                why->step == DEVICEMGR_WHY_ASK ? "ask" : "wait", why->word);
    if (why->text)
        snprintf(words, sizeof words, "%s", why->text);
    if (why->retry_ms > 0)
        len += (size_t)snprintf(told + len, sizeof told - len, " again %llu",
                                (unsigned long long)why->retry_ms);
    if (why->refused_word)
        len += (size_t)snprintf(told + len, sizeof told - len, " refused %s %s %llu times %d",
                                why->refused_unprepare ? "unprepare" : "prepare", why->refused_word,
                                (unsigned long long)why->refused_times, why->refused_code);
    snprintf(told + len, sizeof told - len, "\n");
}

static const char *ask_of(struct world *w, const char *pod, const char *container,
                          const char *theirs)
{
    const struct devicemgr_why_name name = {"ns", theirs};

    told[0] = '\0';
    devicemgr_why_claims(w->mgr, w->now_ms, pod, container, &name, theirs ? 1 : 0, on_claim, NULL);
    return told;
}

static const char *ask_with(struct world *w, const char *pod, const char *theirs)
{
    return ask_of(w, pod, NULL, theirs);
}

static const char *ask(struct world *w, const char *pod)
{
    return ask_with(w, pod, NULL);
}

static void one_that_waits_says_for_what_and_until_when(void **state)
{
    struct world *w = *state;

    prepare(w, 5, "c1");
    expect(w, "commit claim *");
    committed(w);
    pass(w, 1000);
    assert_string_equal(ask(w, NULL),
                        "c1 " DRIVER " asked prepare 1000 left 39000 wait:driver-away\n");
    pass(w, CLAIM_HOLD_MS - 1000);
    assert_string_equal(ask(w, "ns/c1"),
                        "c1 " DRIVER " asked refused prepare driver-away 1 times 14\n");
    ignore_all(w);
}

/* It is told to who asks for it by its name only. */
static void what_was_done_since_was_refused_once(void **state)
{
    struct world *w = *state;

    prepare(w, 5, "c1");
    committed(w);
    pass(w, CLAIM_HOLD_MS);
    ignore_all(w);
    assert_string_equal(ask(w, NULL),
                        "c1 " DRIVER " asked refused prepare driver-away 1 times 14\n");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 6, "c1", "gpu-0");
    assert_string_equal(ask(w, NULL), "");
    assert_string_equal(ask(w, "c1"),
                        "c1 " DRIVER " prepared refused prepare driver-away 1 times 14\n");
    unprepare(w, 7, "c1");
    committed(w);
    claim_failed(w, CODE_UNKNOWN, "not now");
    assert_non_null(strstr(ask(w, NULL), " refused unprepare driver-failed 1 times 2\n"));
    unprepare(w, 8, "c1");
    claim_unprepared(w);
    committed(w);
    ignore_all(w);
    assert_string_equal(ask(w, NULL), "");
    assert_string_equal(ask(w, "c1"), "c1 " DRIVER "  refused unprepare driver-failed 1 times 2\n");
}

static void one_whose_driver_is_asked_has_no_end_of_ours(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    expect(w, "commit claim *");
    assert_string_equal(ask(w, NULL),
                        "c1 " DRIVER " sent prepare 0 left 40000 ask:claim-unstored\n");
    committed(w);
    unprepare(w, 6, "c1");
    assert_string_equal(ask(w, NULL), "c1 " DRIVER " sent prepare 0 left -1 unprepare 0 left 40000"
                                      " ask:driver-asked\n");
    claim_failed(w, CODE_UNKNOWN, "no such thing");
    assert_non_null(strstr(ask(w, NULL), " refused prepare driver-failed 1 times 2\n"));
    ignore_all(w);
}

/* A driver that is asked for what nobody waits for any more. */
static void one_that_waits_for_its_turn(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    prepare(w, 5, "c1");
    committed(w);
    claim_cancelled(w, 5);
    assert_string_equal(ask(w, NULL), "c1 " DRIVER " sent\n");
    unprepare(w, 6, "c1");
    assert_string_equal(ask(w, NULL),
                        "c1 " DRIVER " sent unprepare 0 left 40000 wait:driver-busy\n");
    ignore_all(w);
}

/* Its driver is away, and is still to be told that the claim is over. */
static void owes(struct world *w)
{
    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_lost(w, 1, "closed");
    unprepare(w, 6, "c1");
    committed(w);
}

static void what_is_owed_says_when_it_is_told_again(void **state)
{
    struct world *w = *state;

    owes(w);
    ignore_all(w);
    assert_string_equal(ask(w, NULL), "c1 " DRIVER " owed wait:claim-owed\n");
    driver_connected(w, 1);
    assert_string_equal(ask(w, NULL), "c1 " DRIVER " owed ask:driver-asked\n");
    claim_failed(w, CODE_UNKNOWN, "not now");
    assert_string_equal(ask(w, NULL), "c1 " DRIVER " owed wait:claim-owed again 1000\n");
    prepare(w, 7, "c2");
    assert_non_null(strstr(ask(w, "c2"), "wait:other-claim-owed\n"));
    ignore_all(w);
}

/* Whose row was lost: since when it is away nobody knows. */
static void what_is_owed_to_a_driver_that_nobody_knows(void **state)
{
    struct world *w = *state;

    owes(w);
    pass(w, 5000);
    ask(w, NULL);
    assert_non_null(strstr(words, ", which is still to be told: it is still away, for 5s"));
    ignore_all(w);
    world_store(w, DEVICEMGR_RECORD_DRIVER, DRIVER, "", "", NULL, 0);
    world_restart(w);
    assert_string_equal(ask(w, NULL), "c1 " DRIVER " owed wait:claim-owed\n");
    assert_non_null(strstr(words, ", which is still to be told: it is not registered"));
    ignore_all(w);
}

/* What a daemon's feed does not let happen. */
static void what_only_the_core_refuses(void **state)
{
    struct world *w = *state;
    char uid[32];

    for (uint64_t n = 0; n < CLAIM_REQUESTS_MAX; n++) {
        snprintf(uid, sizeof uid, "m%u", (unsigned)n % 100);
        prepare(w, 100 + n, uid);
    }
    prepare(w, 1, "c1");
    assert_string_equal(ask(w, "c1"),
                        "c1 " DRIVER "  refused prepare too-many-claims-asked 1 times 8\n");
    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    prepare(w, 2, "c1");
    assert_string_equal(ask(w, "c1"), "c1 " DRIVER "  refused prepare shim-stops 2 times 14\n");
    ignore_all(w);
}

static void before_the_rows_are_read_that_is_the_reason(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    prepare(w, 5, "c1");
    assert_non_null(strstr(ask(w, NULL), " wait:claims-unread\n"));
    pass(w, CLAIM_HOLD_MS);
    assert_non_null(strstr(ask(w, NULL), " refused prepare claims-unread 1 times 14\n"));
    ignore_all(w);
}

static void who_is_meant(void **state)
{
    static const struct devicemgr_why_name elsewhere = {"other", "shared"};
    struct world *w = *state;

    prepare(w, 5, "web-gpu-x7k2p");
    prepare(w, 6, "shared");
    assert_non_null(strstr(ask(w, "web"), "web-gpu-x7k2p "));
    assert_null(strstr(told, "shared"));
    assert_non_null(strstr(ask(w, "ns/web"), "web-gpu-x7k2p "));
    assert_string_equal(ask(w, "other/web"), "");
    assert_string_equal(ask(w, "xx/web"), "");
    assert_string_equal(ask(w, "ns/"), "");
    assert_string_equal(ask(w, "we"), "");
    assert_string_equal(ask(w, "web-gpu"), ""); /* its claim would have one name more */
    assert_non_null(strstr(ask(w, "shared"), "shared "));
    assert_non_null(strstr(ask_with(w, "db", "shared"), "shared "));
    assert_null(strstr(told, "web"));
    told[0] = '\0';
    devicemgr_why_claims(w->mgr, w->now_ms, "db", NULL, &elsewhere, 1, on_claim, NULL);
    assert_string_equal(told, "");
    sandbox_ran(w, "web", "s-web", 0); /* the runtime's pods are called by their uids here */
    assert_non_null(strstr(ask(w, "web"), "web-gpu-x7k2p "));
    ignore_all(w);
}

static void create_with(struct world *w, const char *container, const char *cdi)
{
    const struct devicemgr_create request = {.sandbox_id = "s-web",
                                             .pod_uid = "u1",
                                             .pod_namespace = "ns",
                                             .pod_name = "web",
                                             .container = container,
                                             .cdi_devices = &cdi,
                                             .cdi_devices_len = 1,
                                             .deadline_ms = UINT64_MAX};

    assert_false(create_claimed(w, 77, &request));
    expect_stored(w, "commit claim *");
}

/* What other containers of the pod have is left out; what none has yet is in the way of all. */
static void who_asks_for_a_container(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "web-gpu-1", "gpu-0");
    claim_prepared(w, 6, "shared", "gpu-1");
    claim_sent(w, 7, "web-nic-1");
    create_with(w, "main", "example.com/dev=gpu-0");
    create_with(w, "side", "example.com/dev=gpu-1");
    ask_with(w, "web", "shared");
    assert_true(strstr(told, "web-gpu-1 ") && strstr(told, "shared ") &&
                strstr(told, "web-nic-1 "));
    ask_of(w, "ns/web", "main", "shared");
    assert_true(strstr(told, "web-gpu-1 ") && !strstr(told, "shared "));
    assert_non_null(strstr(told, "web-nic-1 "));
    ask_of(w, "web", "side", "shared");
    assert_true(!strstr(told, "web-gpu-1 ") && strstr(told, "shared "));
    ask_of(w, "web", "other", "shared");
    assert_true(!strstr(told, "web-gpu-1 ") && !strstr(told, "shared "));
    assert_non_null(strstr(told, "web-nic-1 "));
    ignore_all(w);
}

static void count(void *user, const struct devicemgr_why_claim *why)
{
    (void)why;
    ++*(size_t *)user;
}

/* 128 claims, the last ones; nothing with names that cannot be told. */
static void refusals_are_bounded(void **state)
{
    struct world *w = *state;
    char uid[CLAIM_NAMES_BYTES_MAX + 1];
    size_t lines = 0;

    devicemgr_drain(w->mgr, w->now_ms);
    memset(uid, 'x', sizeof uid - 1);
    uid[sizeof uid - 1] = '\0';
    prepare(w, 1, uid);
    prepare(w, 2, "\xff");
    assert_string_equal(ask(w, NULL), "");
    for (unsigned n = 0; n < CLAIMS_REFUSED_MAX + 10; n++) {
        snprintf(uid, sizeof uid, "c%u", n);
        prepare(w, 10 + n, uid);
    }
    assert_string_equal(ask(w, "c9"), "");
    assert_string_not_equal(ask(w, "c10"), "");
    devicemgr_why_claims(w->mgr, w->now_ms, NULL, NULL, NULL, 0, count, &lines);
    assert_int_equal(lines, CLAIMS_REFUSED_MAX);
    ignore_all(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, world_teardown)
        TEST(one_that_waits_says_for_what_and_until_when),
        TEST(what_was_done_since_was_refused_once),
        TEST(one_whose_driver_is_asked_has_no_end_of_ours),
        TEST(one_that_waits_for_its_turn),
        TEST(what_is_owed_says_when_it_is_told_again),
        TEST(what_is_owed_to_a_driver_that_nobody_knows),
        TEST(what_only_the_core_refuses),
        cmocka_unit_test_setup_teardown(before_the_rows_are_read_that_is_the_reason, NULL,
                                        world_teardown),
        TEST(who_is_meant),
        TEST(who_asks_for_a_container),
        TEST(refusals_are_bounded),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
