/* devicemgr/turn/why.c: why a container waits, was refused, or has what it has. */
#include "devicemgr/dra.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr/why.h"

#include <stdio.h>

#include "devicemgr/words/remedy.h"
#include "devicemgr_world.h"

#define ANSWERS_MAX 200

/* What was answered, as one text of each container. */
struct told {
    size_t len;
    char text[ANSWERS_MAX][1024];
    char refused[64]; /* of the last one */
    char clears[256];
    char refused_text[TEXT_BYTES_MAX];
    uint64_t times, first_ms_ago, last_ms_ago, left_ms;
    bool over;
};

static void put(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(char *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(out + strlen(out), 1024 - strlen(out), format, args);
    va_end(args);
}

static void on_why(void *user, const struct devicemgr_why *why)
{
    static const char *const STEPS[] = {"go", "ask", "wait", "refuse"};
    struct told *told = user;
    char *out = told->text[told->len++];

    out[0] = '\0';
    put(out, "%s/%s/%s %s:", why->pod_namespace, why->pod_name, why->container,
        why->forwarded ? "forwarded"
        : why->pending ? "pending"
                       : "none");
    for (size_t i = 0; i < why->findings_len; i++) {
        const struct devicemgr_why_finding *finding = &why->findings[i];

        put(out, " %s %s", finding->resource ? finding->resource : "whole", STEPS[finding->step]);
        for (size_t j = 0; j < finding->ids_len; j++)
            put(out, "%c%s", j > 0 ? ',' : finding->has ? '=' : '+', finding->ids[j]);
        if (!finding->word)
            continue;
        put(out, " %s", finding->word);
        assert_non_null(finding->text);
        assert_true(finding->clears && finding->clears[0] != '\0');
    }
    told->left_ms = why->left_ms;
    told->times = why->refused_times;
    told->first_ms_ago = why->refused_first_ms_ago;
    told->last_ms_ago = why->refused_last_ms_ago;
    told->over = why->refused_over;
    snprintf(told->refused, sizeof told->refused, "%s", why->refused_word ? why->refused_word : "");
    snprintf(told->clears, sizeof told->clears, "%s",
             why->refused_clears ? why->refused_clears : "");
    snprintf(told->refused_text, sizeof told->refused_text, "%s",
             why->refused_text ? why->refused_text : "");
}

/* Of the one container that is meant; "": there is none. */
static const char *ask_of(struct world *w, struct told *told, const char *pod,
                          const char *container)
{
    *told = (struct told){0};
    devicemgr_why(w->mgr, w->now_ms, pod, container, on_why, told);
    assert_in_range(told->len, 0, 1);
    return told->text[0];
}

static const char *ask(struct world *w, struct told *told, const char *pod)
{
    return ask_of(w, told, pod, NULL);
}

static void with_annotations(struct world *w)
{
    static const char *const ALL[] = {"*"};

    w->settings.annotations = true;
    w->settings.namespaces = ALL;
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
}

/* ---- every reason there is ---- */

static void every_reason_has_a_remedy(void **state)
{
    (void)state;
    for (int kind = 0; kind < REASON_KINDS; kind++) {
        assert_non_null(remedy_of(kind));
        assert_int_not_equal(strlen(remedy_of(kind)), 0);
    }
}

/* Whatever a create was refused for, that is answered; and whatever it asked for is looked at. */
static void every_refusal_is_answered(void **state)
{
    struct world *w = *state;
    struct told told;

    gpus_up(w, "g0 g1");
    container_made(w, 11, "u1", "main", GPU ":g0");
    for (int kind = REASON_NONE + 1; kind < REASON_KINDS; kind++) {
        struct creates *creates = &w->mgr->creates;
        char resource[] = GPU;
        const struct claim claim = {.name = resource, .driver = resource};
        const struct claim_user user = {.container = resource, .pod = resource};
        struct reason reason = {.kind = (enum reason_kind)kind,
                                .resource = resource,
                                .holder =
                                    allocations_find(&w->mgr->state.allocations, "u1", "main", GPU),
                                .claim = &claim,
                                .user = &user,
                                .call = "Allocate",
                                .socket_name = "gpu.sock",
                                .words = "words",
                                .taint = {.key = "k", .value = "", .words = ""}};

        sandbox_ran(w, "u2", "s-u2", 0);
        assert_true(create(w, 100 + (uint64_t)kind, "u2", "main", GPU ":g1", NULL));
        create_refuse(creates, creates_find(creates, 100 + (uint64_t)kind), &reason);
        reason_fini(&reason);
        devicemgr_run(w->mgr);
        ignore_all(w);
        assert_string_equal(ask(w, &told, "u2"), "ns/u2/main none: " GPU " go+g1");
        assert_string_equal(told.refused, reason_word((enum reason_kind)kind));
        assert_string_equal(told.clears, remedy_of((enum reason_kind)kind));
        assert_non_null(strstr(told.refused_text, "container \"main\" of pod \"ns/u2\": "));
        assert_int_equal(told.times, kind);
    }
}

/* ---- what the rules say now ---- */

static void one_that_waits_says_what_for_and_how_long_yet(void **state)
{
    struct world *w = *state;
    struct told told;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    nics_up(w, "n0");
    plugin_lost(w, endpoint, "gone");
    ignore_all(w);
    sandbox_ran(w, "u1", "s-u1", 0);
    create_token(w, 11, "u1", GPU ":g0 " NIC ":n0");
    assert_string_equal(ask(w, &told, "u1"),
                        "ns/u1/main pending: " NIC " go+n0 " GPU " wait plugin-away");
    assert_int_equal(told.left_ms, HOLD_MS);
    assert_string_equal(told.refused, "");
    ignore_all(w);
    pass(w, 2000);
    ask(w, &told, "u1");
    assert_int_equal(told.left_ms, HOLD_MS - 2000);
    pass(w, HOLD_MS);
    ignore_all(w);
    assert_string_equal(ask(w, &told, "u1"),
                        "ns/u1/main none: " NIC " go+n0 " GPU " wait plugin-away");
    assert_string_equal(told.refused, "plugin-away");
    assert_int_equal(told.times, 1);
    assert_int_equal(told.last_ms_ago, 2000);
    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, false);
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main none: " NIC " go+n0 " GPU " go+g0");
}

static void the_sandbox_is_of_the_whole(void **state)
{
    struct world *w = *state;
    struct told told;

    u1_has_g0(w, "g0");
    sandbox_stopping(w, "s-u1");
    assert_string_equal(ask(w, &told, "u1"),
                        "ns/u1/main none: whole refuse sandbox-stops " GPU " go=g0");
}

static void a_holder_that_runs_is_named(void **state)
{
    struct world *w = *state;
    struct told told;

    u1_has_g0(w, "g0");
    sandbox_ran(w, "u2", "s-u2", 0);
    create_token(w, 21, "u2", GPU ":g0");
    assert_string_equal(ask(w, &told, "u2"), "ns/u2/main pending: " GPU " wait holder-asked");
    container_checked(w, true);
    ignore_all(w);
    assert_string_equal(ask(w, &told, "u2"), "ns/u2/main none: " GPU " wait holder-asked");
    assert_string_equal(told.refused, "holder-runs");
    assert_non_null(strstr(told.refused_text, "container \"main\" of pod \"ns/u1\""));
}

static void who_waits_for_its_turn_is_told_so(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;
    struct told told;

    own.allocates_at_once = 1;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    sandbox_ran(w, "u1", "s-u1", 0);
    create_token(w, 11, "u1", GPU ":g0");
    sandbox_ran(w, "u2", "s-u2", 0);
    create_token(w, 12, "u2", GPU ":g1");
    assert_string_equal(ask(w, &told, "u2"), "ns/u2/main pending: " GPU " ask=g1 call-queued");
    allocated(w, "A=1");
    assert_string_equal(ask(w, &told, "u2"), "ns/u2/main pending: " GPU " ask=g1 call-unanswered");
}

static void what_is_being_asked_is_said(void **state)
{
    struct world *w = *state;
    struct told told;

    gpus_up(w, "g0");
    sandbox_ran(w, "u1", "s-u1", 0);
    create_token(w, 11, "u1", GPU ":g0");
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main pending: " GPU " ask=g0 call-unanswered");
    allocated(w, "A=1");
    assert_string_equal(ask(w, &told, "u1"),
                        "ns/u1/main pending: whole ask unstored " GPU " go=g0");
    committed(w);
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main forwarded: " GPU " go=g0");
    ignore_all(w);
    create_answered(w, 11, "c1");
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main none: " GPU " go=g0");
}

static void what_the_runtime_is_still_to_say_is_said(void **state)
{
    struct world *w = *state;
    struct told told;

    gpus_up(w, "g0");
    sandbox_ran(w, "u1", "s-u1", 0);
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_UNHEARD);
    create_token(w, 11, "u1", GPU ":g0");
    allocated(w, "cdi:c0");
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main pending: " GPU " wait=g0 cdi-unheard");
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_READ);
    devicemgr_run(w->mgr);
    assert_string_equal(ask(w, &told, "u1"),
                        "ns/u1/main pending: whole ask unstored " GPU " go=g0");
}

static void a_preference_that_would_be_asked_for_is_asked_of_nobody(void **state)
{
    struct world *w = *state;
    struct told told;

    with_annotations(w);
    plugin_up(w, GPU, "gpu.sock", "g0 g1", false, true);
    sandbox_ran(w, "u1", "s-u1", 0);
    create_request(w, 11, "u1", "main", GPU "=3");
    ignore_all(w);
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main none: " GPU " refuse too-few-devices");
    create_request(w, 12, "u1", "main", GPU "=1");
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main pending: " GPU " ask preference");
    ignore_all(w);
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

static void without_rows_nothing_is_said_of_resources(void **state)
{
    struct world *w = *state;
    struct told told;

    devicemgr_rows_unread(w->mgr, "the disk is gone");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    ignore_all(w);
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main none:");
    assert_string_equal(told.refused, "rows-unread");
}

static void what_was_not_understood_is_not_judged_again(void **state)
{
    struct world *w = *state;
    struct told told;

    with_annotations(w);
    assert_true(create(w, 11, "u1", "main", NULL, "nonsense"));
    ignore_all(w);
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main none:");
    assert_string_equal(told.refused, "request-unreadable");
}

static void a_container_that_runs_would_get_the_same_or_not(void **state)
{
    struct world *w = *state;
    struct told told;
    uint64_t endpoint = u1_has_g0(w, "g0");

    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main none: " GPU " go=g0");
    plugin_list(w, endpoint, "g0!");
    assert_string_equal(ask(w, &told, "u1"), "ns/u1/main none: " GPU " wait devices-unhealthy");
}

/* ---- whether a refusal is over ---- */

static bool is_over(struct world *w)
{
    struct told told;

    assert_string_not_equal(ask(w, &told, "u1"), "");
    assert_string_equal(told.refused, "plugin-away");
    return told.over;
}

/* u1's container was made, and is refused when it is to be made again. */
static uint64_t u1_is_refused_again(struct world *w)
{
    uint64_t endpoint = u1_has_g0(w, "g0");

    container_removed(w, "c1");
    plugin_lost(w, endpoint, "gone");
    create_token(w, 12, "u1", GPU ":g0");
    ignore_all(w);
    pass(w, HOLD_MS);
    ignore_all(w);
    return endpoint;
}

static void a_refusal_is_over_when_the_container_was_made_since(void **state)
{
    struct world *w = *state;

    u1_is_refused_again(w);
    assert_false(is_over(w));
    pass(w, 1000);
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    create_token(w, 13, "u1", GPU ":g0");
    assert_false(is_over(w));
    allocated(w, "A=1");
    ignore_all(w);
    assert_false(is_over(w));
    create_answered(w, 13, "c2");
    assert_true(is_over(w));
}

/* How often, and since when, is of what is in the way now. */
static void one_that_was_made_since_is_counted_anew(void **state)
{
    struct world *w = *state;
    struct told told;
    uint64_t endpoint;

    u1_is_refused_again(w);
    create_token(w, 13, "u1", GPU ":g0");
    ignore_all(w);
    pass(w, HOLD_MS);
    ignore_all(w);
    ask(w, &told, "u1");
    assert_int_equal(told.times, 2);
    endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    create_token(w, 14, "u1", GPU ":g0");
    allocated(w, "A=1");
    ignore_all(w);
    create_answered(w, 14, "c2");
    pass(w, 3600 * 1000);
    container_removed(w, "c2");
    plugin_lost(w, endpoint, "gone");
    create_token(w, 15, "u1", GPU ":g0");
    ignore_all(w);
    pass(w, HOLD_MS);
    ignore_all(w);
    ask(w, &told, "u1");
    assert_int_equal(told.times, 1);
    assert_int_equal(told.first_ms_ago, told.last_ms_ago);
    assert_false(told.over);
}

static void a_refusal_is_over_when_the_pod_is_gone(void **state)
{
    struct world *w = *state;

    u1_is_refused_again(w);
    sandbox_stopping(w, "s-u1");
    sandbox_stopped(w, "s-u1");
    ignore_all(w);
    assert_false(is_over(w));
    sandbox_removed(w, "s-u1");
    ignore_all(w);
    assert_true(is_over(w));
}

/* ---- who is meant ---- */

static void a_pod_is_named_in_three_ways(void **state)
{
    struct world *w = *state;
    struct told told;

    u1_has_g0(w, "g0");
    assert_string_not_equal(ask(w, &told, "ns/u1"), "");
    assert_string_not_equal(ask(w, &told, "u1"), "");
    assert_string_not_equal(ask(w, &told, NULL), "");
    assert_string_equal(ask(w, &told, "other/u1"), "");
    assert_string_equal(ask(w, &told, "ns/u"), "");
    assert_string_equal(ask(w, &told, "ns/u11"), "");
    assert_string_not_equal(ask_of(w, &told, "u1", "main"), "");
    assert_string_equal(ask_of(w, &told, "u1", "other"), "");
}

/* A question is at its own time, which the next event may come before. */
static void time_passes_between_events(void **state)
{
    struct world *w = *state;
    struct told told = {0};
    uint64_t endpoint = u1_has_g0(w, "g0"), before;

    plugin_lost(w, endpoint, "gone");
    ignore_all(w);
    before = w->mgr->state.now_ms;
    devicemgr_why(w->mgr, w->now_ms + 60000, "u1", NULL, on_why, &told);
    assert_int_equal(w->mgr->state.now_ms, before);
    assert_string_equal(told.text[0], "ns/u1/main none: " GPU " wait plugin-away");
}

static void as_many_refusals_are_remembered_as_there_is_room_for(void **state)
{
    struct world *w = *state;
    struct told told;
    char uid[16];

    for (unsigned i = 0; i < REFUSED_MAX + 1; i++) {
        snprintf(uid, sizeof uid, "p%u", i);
        assert_true(create(w, 100 + i, uid, "main", NULL, "nonsense"));
        ignore_all(w);
    }
    assert_string_equal(ask(w, &told, "p0"), "");
    assert_string_not_equal(ask(w, &told, "p1"), "");
    assert_int_equal(HASH_COUNT(w->mgr->state.refused.by_key), REFUSED_MAX);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_reason_has_a_remedy),
        TEST(every_refusal_is_answered),
        TEST(one_that_waits_says_what_for_and_how_long_yet),
        TEST(the_sandbox_is_of_the_whole),
        TEST(a_holder_that_runs_is_named),
        TEST(who_waits_for_its_turn_is_told_so),
        TEST(what_is_being_asked_is_said),
        TEST(what_the_runtime_is_still_to_say_is_said),
        TEST(a_preference_that_would_be_asked_for_is_asked_of_nobody),
        TEST(without_rows_nothing_is_said_of_resources),
        TEST(what_was_not_understood_is_not_judged_again),
        TEST(a_container_that_runs_would_get_the_same_or_not),
        TEST(a_refusal_is_over_when_the_container_was_made_since),
        TEST(one_that_was_made_since_is_counted_anew),
        TEST(a_refusal_is_over_when_the_pod_is_gone),
        TEST(a_pod_is_named_in_three_ways),
        TEST(time_passes_between_events),
        TEST(as_many_refusals_are_remembered_as_there_is_room_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
