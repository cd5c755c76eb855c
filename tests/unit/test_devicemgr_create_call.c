/* Calls on plugins: their answers, good and bad, and whom they touch. */
#include <stdio.h>
#include <stdlib.h>

#include "devicemgr/dra.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static int setup(void **state)
{
    world_setup(state);
    plugin_up(*state, GPU, "gpu.sock", "g0 g1", true, false);
    return 0;
}

static void an_answer_for_no_container_is_none(void **state)
{
    V1beta1__AllocateResponse none = V1BETA1__ALLOCATE_RESPONSE__INIT;
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    devicemgr_allocated(w->mgr, w->now_ms, w->call, 0, NULL, &none);
    devicemgr_run(w->mgr);
    expect_with(w, "verdict 11 refused 14:", "it answered for no container", NULL);
}

/* As with a kubelet. Akri answers for each device. */
static void of_several_the_first_counts(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0,g1", NULL));
    expect(w, "allocate *");
    allocated_stored(w, "A=first | A=second B=2");
    expect(w, "prestart *");
    prestarted(w, 0, NULL);
    expect(w, "verdict 11 forward A=first");
}

/* It is not kept: the plugin is asked again, and may be mended by then. */
static void an_answer_that_is_no_text_is_none(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    allocated(w, "A=caf\xe9");
    expect_with(w, "verdict 11 refused 14:", "its answer is not all UTF-8", NULL);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    allocated(w, "A=caf\xc3\xa9");
    committed(w);
}

/* With one text of so many MiB. */
static void answer_large(struct world *w, size_t mib)
{
    size_t len = mib * 1024 * 1024;
    char *text = malloc(len + 1);

    memcpy(text, "A=", 2);
    memset(text + 2, 'x', len - 2);
    text[len] = '\0';
    allocated(w, text);
    free(text);
}

/* All plugins share it; who would take too much is refused alone, until there is room again. */
static void the_memory_of_all_answers_has_a_bound(void **state)
{
    const size_t most = OPTIONS_BYTES_MAX / (1024 * 1024);
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
    answer_large(w, most / 2);
    committed(w);
    prestarted(w, 0, NULL);
    ignore_all(w);
    create_answered(w, 11, "c1");
    for (uint64_t number = 12; number < 14; number++) {
        assert_true(create(w, number, "u2", "main", GPU ":g1", NULL));
        expect(w, "allocate g1 *");
        answer_large(w, most / 2);
        expect_with(w, number == 12 ? "verdict 12 refused 8:" : "verdict 13 refused 8:",
                    "Allocate of plugin endpoint \"gpu.sock\" answered too much: with it the "
                    "answers for all containers would take over 64 MiB; device ids g1",
                    NULL);
        expect_nothing(w);
    }
    assert_true(create(w, 14, "u3", "main", GPU ":g1", NULL));
    expect(w, "allocate g1 *");
    allocated_stored(w, "A=1"); /* a small one has room */
    ignore_all(w);
    container_removed(w, "c1");
    assert_true(create(w, 15, "u2", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
    answer_large(w, most / 2); /* what u1 had is gone with its devices */
    expect(w, "commit *");
}

static void a_plugin_without_words_is_quoted_as_such(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    allocate_failed(w, 13, "");
    expect_with(w, "verdict 11 refused 14:", "failed: no reason given", NULL);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    allocate_failed(w, 13, NULL);
    expect_with(w, "verdict 12 refused 14:", "failed: no reason given", NULL);
}

static void endless_words_are_cut(void **state)
{
    struct world *w = *state;
    char words[3000];

    memset(words, 'w', sizeof words);
    words[sizeof words - 1] = '\0';
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    allocate_failed(w, 13, words);
    expect_with(w, "verdict 11 refused 14:", "wwww...; device ids g0", NULL);
}

static void a_slow_plugin_hurts_only_who_asked_it(void **state)
{
    struct world *w = *state;

    plugin_up(w, NIC, "nic.sock", "n0", false, false);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
    container_made(w, 12, "u2", "main", NIC ":n0");
    allocate_failed(w, 4, "");
    expect_nothing(w); /* that call was of the other create, and is over */
}

/* ---- one after the other ---- */

/* So many containers, each with a device of its own, of which a plugin is asked for `at_once`. */
static void several_ask(struct world *w, uint32_t at_once, size_t creates)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);

    own.allocates_at_once = at_once;
    world_fresh_with(w, &own);
    plugin_up(w, GPU, "gpu.sock", "g0 g1 g2 g3", false, false);
    for (size_t i = 0; i < creates; i++) {
        char uid[] = "u0", token[64];

        uid[1] = (char)('0' + i);
        snprintf(token, sizeof token, GPU ":g%zu", i);
        assert_true(create(w, 10 + i, uid, "main", token, NULL));
    }
}

static void a_plugin_is_asked_for_one_after_the_other(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 3);
    expect(w, "allocate g0 *");
    expect_nothing(w);
    allocated(w, "A=0");
    expect(w, "allocate g1 *");
    expect(w, "commit *");
    allocate_failed(w, 13, "no");
    expect_with(w, "verdict 11 refused 14:", "failed: no", NULL);
    expect(w, "allocate g2 *");
    allocated(w, "A=2");
    expect_nothing(w); /* the commit is under way */
}

static void a_plugin_is_asked_for_as_many_as_the_settings_say(void **state)
{
    struct world *w = *state;

    several_ask(w, 2, 4);
    expect(w, "allocate g0 *");
    expect(w, "allocate g1 *");
    expect_nothing(w);
    allocated(w, "A=1");
    expect(w, "allocate g2 *");
    several_ask(w, 0, 4);
    for (size_t i = 0; i < 4; i++)
        expect(w, "allocate *");
}

static void another_plugin_does_not_wait_for_it(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 2);
    expect(w, "allocate g0 *");
    plugin_up(w, NIC, "nic.sock", "n0", false, false);
    assert_true(create(w, 21, "u5", "main", NIC ":n0", NULL));
    expect(w, "allocate n0 *");
}

/* How long the plugin may take is counted from when it is asked. */
static void who_waits_for_a_turn_has_the_plugins_time_still(void **state)
{
    struct world *w = *state;

    w->deadline_ms = w->now_ms + ALLOCATE_TIMEOUT_MS + 4000;
    several_ask(w, 1, 2);
    expect(w, "allocate g0 in 10000ms");
    pass(w, ALLOCATE_TIMEOUT_MS);
    allocate_failed(w, 4, "deadline exceeded");
    expect_with(w, "verdict 10 refused 4:", "was not answered within 10s", NULL);
    expect(w, "allocate g1 in 3800ms"); /* but no more than the client's */
    pass(w, 1000);
    allocate_failed(w, 4, "deadline exceeded");
    expect_with(w, "verdict 11 refused 4:", "was not answered within 1s", NULL);
}

/* That is not what it is held. */
static void who_has_waited_for_a_turn_is_held_as_ever(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 2);
    expect(w, "allocate g0 *");
    pass(w, HOLD_MS_MAX);
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open *");
    expect_nothing(w);
    plugin_back(w, "g0 g1 g2 g3");
    expect(w, "allocate g0 *");
}

/* What it was held before counts, however long its plugin took in between. */
static void who_is_held_again_has_what_is_left_of_a_minute(void **state)
{
    struct world *w = *state;

    w->settings.hold_ms = HOLD_MS_MAX;
    world_fresh_listed(w);
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    plugin_lost(w, w->endpoint, "killed");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    pass(w, HOLD_MS_MAX - 1000);
    ignore_all(w);
    plugin_back(w, "g0");
    expect(w, "allocate g0 *");
    pass(w, HOLD_MS_MAX);
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open *");
    pass(w, 999);
    ignore_all(w); /* that it is lost is stored */
    pass(w, 1);
    expect_with(w, "verdict 11 refused 14:", NULL);
}

static void who_has_had_no_turn_by_its_deadline_is_refused(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 1);
    expect(w, "allocate g0 *");
    w->deadline_ms = w->now_ms + 3000;
    assert_true(create(w, 11, "u1", "main", GPU ":g1", NULL));
    pass(w, 2800);
    expect_with(w,
                "verdict 11 refused 14:", "the plugin allocates for other containers first, for 2s",
                "client's deadline", NULL);
    expect_nothing(w); /* there was no call to take back */
    allocated(w, "A=0");
    expect(w, "commit *");
    expect_nothing(w);
}

static void nobody_is_asked_as_his_time_ends(void **state)
{
    struct world *w = *state;

    w->deadline_ms = w->now_ms + 5000;
    several_ask(w, 1, 3);
    expect(w, "allocate g0 *");
    pass(w, 4800);
    expect_with(w, "verdict 10 refused 4:", "was not answered within 4s", NULL);
    expect(w, "cancel");
    expect_with(w, "verdict 11 refused 14:", "allocates for other containers first", NULL);
    expect_with(w, "verdict 12 refused 14:", "allocates for other containers first", NULL);
    expect_nothing(w);
}

static void nor_shortly_before(void **state)
{
    struct world *w = *state;

    w->deadline_ms = w->now_ms + 5000;
    several_ask(w, 1, 1);
    expect(w, "allocate g0 *");
    w->deadline_ms += 300;
    assert_true(create(w, 11, "u1", "main", GPU ":g1", NULL));
    pass(w, 4800);
    expect_with(w, "verdict 10 refused 4:", "was not answered within 4s", NULL);
    expect(w, "cancel");
    expect_nothing(w);
    pass(w, 300);
    expect_with(w, "verdict 11 refused 14:", "allocates for other containers first", NULL);
}

/* Else many that hang, each new again and again, may keep another from its turn for ever. */
static void who_was_late_comes_behind_who_was_not(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 1);
    expect(w, "allocate g0 *");
    pass(w, ALLOCATE_TIMEOUT_MS);
    allocate_failed(w, 4, "deadline exceeded");
    expect_with(w, "verdict 10 refused 4:", "was not answered within 10s", NULL);
    assert_true(create(w, 20, "u2", "main", GPU ":g2", NULL));
    expect(w, "allocate g2 *");
    assert_true(create(w, 21, "u0", "main", GPU ":g0", NULL));
    assert_true(create(w, 22, "u1", "main", GPU ":g1", NULL));
    create_cancelled(w, 20);
    expect(w, "cancel");
    expect(w, "allocate g1 *");
}

static void what_it_waited_for_besides_is_not_counted(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 1);
    expect(w, "allocate g0 *");
    w->deadline_ms = w->now_ms + 10000;
    assert_true(create(w, 11, "u1", "main", GPU ":g1", NULL));
    pass(w, 3000);
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open *");
    pass(w, 900); /* before that is stored */
    plugin_back(w, "g0 g1 g2 g3");
    expect(w, "allocate g0 *");
    pass(w, 5900);
    expect_with(w, "verdict 11 refused 14:", "other containers first, for 5s", NULL);
}

static void who_gives_up_makes_room(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 4);
    expect(w, "allocate g0 *");
    create_cancelled(w, 11); /* waited only */
    expect_nothing(w);
    create_cancelled(w, 10);
    expect(w, "cancel");
    expect(w, "allocate g2 *");
    expect_nothing(w);
}

static void a_plugin_that_is_back_is_asked_in_turn_again(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 3);
    expect(w, "allocate g0 *");
    plugin_lost(w, w->endpoint, "killed");
    expect(w, "open *");
    expect_nothing(w);
    plugin_back(w, "g0 g1 g2 g3");
    expect(w, "allocate g0 *");
    expect_nothing(w);
    allocated(w, "A=0");
    expect(w, "allocate g1 *");
}

static void a_drain_ends_who_waits_for_a_turn(void **state)
{
    struct world *w = *state;

    several_ask(w, 1, 2);
    expect(w, "allocate g0 *");
    devicemgr_drain(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_with(w, "verdict 11 refused 14:", "; the shim is being stopped", NULL);
    allocated_stored(w, "A=0");
    expect_with(w, "verdict 10 forward", NULL);
}

/* ---- */

static void an_answer_of_another_kind_is_ignored(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
    prestarted(w, 0, NULL);
    preferred(w, "g1");
    expect_nothing(w);
    allocated(w, "A=1");
    expect(w, "commit *");
}

static void a_late_pre_start_is_told_like_a_late_allocate(void **state)
{
    struct world *w = *state;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    allocated(w, "A=1");
    committed(w);
    ignore_all(w);
    pass(w, PRESTART_TIMEOUT_MS);
    prestarted(w, 4, "deadline exceeded");
    expect_with(w, "verdict 11 refused 4:", "PreStartContainer", "was not answered within 30s",
                NULL);
    assert_true(create(w, 12, "u1", "main", GPU ":g0", NULL)); /* the allocation stays */
    expect(w, "prestart g0 *");
}

static void another_endpoint_is_prestarted_anew(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = w->endpoint;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    allocated(w, "A=1");
    committed(w);
    ignore_all(w);
    plugin_lost(w, endpoint, "killed"); /* in PreStartContainer */
    expect(w, "open *");
    plugin_options(w, w->endpoint, true, false);
    plugin_list(w, w->endpoint, "g0 g1");
    expect(w, "prestart g0 *");
    prestarted(w, 0, NULL);
    expect(w, "verdict 11 forward A=1");
}

/* Regression: the create was forwarded with the call still under way, whose end then met no
 * create. */
static void a_pre_start_under_way_is_waited_for_though_not_wanted_any_more(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = w->endpoint;

    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    allocated(w, "A=1");
    committed(w);
    ignore_all(w);
    plugin_options(w, endpoint, false, false);
    expect_nothing(w);
    prestarted(w, 0, NULL);
    expect(w, "verdict 11 forward A=1");
    create_answered(w, 11, "c1");
    plugin_lost(w, endpoint, "killed");
    expect(w, "open *");
}

/* ---- CDI devices that the runtime does not read ---- */

static void asked(struct world *w, uint64_t number, const char *uid, const char *token)
{
    assert_true(create(w, number, uid, "main", token, NULL));
    expect(w, "allocate *");
}

static void forwarded(struct world *w, const char *line)
{
    expect(w, "prestart *");
    prestarted(w, 0, NULL);
    expect(w, line);
}

/* The plugin is asked again, and may have another way by then. */
static void cdi_devices_alone_are_refused_where_nobody_reads_them(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_NONE);
    asked(w, 11, "u1", GPU ":g0,g1");
    allocated(w, "cdi:c0 cdi:c1");
    expect_with(w, "verdict 11 refused 9: container \"main\" of pod \"ns/u1\": resource " GPU ": ",
                "without the devices of its plugin: it does not support CDI",
                "the plugin gives nothing but those, for device ids g0,g1", NULL);
    expect_event(w, "refused " GPU " [g0,g1] ns/u1/main cdi-not-read: ");
    expect_nothing(w);
    asked(w, 12, "u1", GPU ":g0,g1");
    allocated_stored(w, "A=1");
    forwarded(w, "verdict 12 forward A=1");
}

static void so_they_are_by_one_that_reads_annotations(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_ANNOTATED);
    asked(w, 11, "u1", GPU ":g0");
    allocated(w, "cdi:c0");
    expect_with(w, "verdict 11 refused 9: ", "of its plugin: it reads CDI devices in annotations",
                NULL);
}

static void what_else_is_given_may_do_and_is_said_once(void **state)
{
    static const struct {
        const char *given, *line;
    } ALL[] = {
        {"A=1 cdi:c0", "verdict 11 forward A=1 cdi:c0"},
        {"/dev/a cdi:c0", "verdict 12 forward /dev/a</dev/a:rw cdi:c0"},
        {"note:cdi.k8s.io/a=a/b=0 cdi:c0", "verdict 13 forward cdi.k8s.io/a=a/b=0 cdi:c0"},
        {"", "verdict 14 forward"},
    };
    struct world *w = *state;
    char uid[8], token[64];

    plugin_list(w, w->endpoint, "g0 g1 g2 g3");
    committed(w);
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_NONE);
    ignore_all(w);
    logged(w, "");
    for (unsigned i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        snprintf(uid, sizeof uid, "u%u", i);
        snprintf(token, sizeof token, GPU ":g%u", i);
        asked(w, 11 + i, uid, token);
        allocated_stored(w, ALL[i].given);
        forwarded(w, ALL[i].line);
    }
    assert_int_equal(logged(w, "CDI devices, too, which the runtime does not read"), 1);
}

static void where_the_runtime_does_not_say_they_pass(void **state)
{
    struct world *w = *state;

    asked(w, 11, "u1", GPU ":g0");
    allocated_stored(w, "cdi:c0");
    forwarded(w, "verdict 11 forward cdi:c0");
}

/* As at the daemon's start. */
static void they_wait_for_one_that_is_to_say(void **state)
{
    static const struct {
        enum devicemgr_cdi cdi;
        const char *line;
    } ALL[] = {{DEVICEMGR_CDI_UNKNOWN, "prestart *"},
               {DEVICEMGR_CDI_READ, "prestart *"},
               {DEVICEMGR_CDI_NONE, "verdict 13 refused 9: *"}};
    struct world *w = *state;
    char uid[8], token[64];

    plugin_list(w, w->endpoint, "g0 g1 g2 g3");
    committed(w);
    ignore_all(w);
    for (unsigned i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_UNHEARD);
        snprintf(uid, sizeof uid, "u%u", i);
        snprintf(token, sizeof token, GPU ":g%u", i);
        asked(w, 11 + i, uid, token);
        allocated(w, "cdi:c0");
        expect_nothing(w);
        devicemgr_runtime_cdi(w->mgr, w->now_ms, ALL[i].cdi);
        devicemgr_run(w->mgr);
        if (ALL[i].cdi != DEVICEMGR_CDI_NONE)
            expect_stored(w, "commit *");
        expect(w, ALL[i].line);
    }
}

static void what_it_says_meanwhile_counts(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_READ);
    asked(w, 11, "u1", GPU ":g0");
    allocated(w, "cdi:c0");
    expect(w, "commit *");
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_NONE);
    committed(w);
    expect(w, "prestart *");
    prestarted(w, 0, NULL);
    expect_with(w, "verdict 11 refused 9: ", "of its plugin", NULL);
}

static void they_wait_no_longer_than_for_anything(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_UNHEARD);
    asked(w, 11, "u1", GPU ":g0");
    allocated(w, "cdi:c0");
    expect_nothing(w);
    pass(w, 60000);
    expect_with(
        w, "verdict 11 refused 14: ", "the runtime has not said yet whether it supports CDI", NULL);
    asked(w, 12, "u1", GPU ":g0");
    allocated_stored(w, "A=1 cdi:c0");
    forwarded(w, "verdict 12 forward A=1 cdi:c0");
}

/* Given when it was switched on, and kept: the plugin is asked again, as for a new one. */
static void what_it_was_given_before_is_asked_for_anew_once_nobody_reads_it(void **state)
{
    struct world *w = *state;

    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_READ);
    asked(w, 11, "u1", GPU ":g0");
    allocated_stored(w, "cdi:c0");
    forwarded(w, "verdict 11 forward cdi:c0");
    create_answered(w, 11, "c1");
    container_removed(w, "c1");
    ignore_all(w);
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_NONE);
    asked(w, 12, "u1", GPU ":g0");
    allocated(w, "cdi:c0");
    expect_with(w, "verdict 12 refused 9: ", "of its plugin", NULL);
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_READ); /* that is kept */
    assert_true(create(w, 13, "u1", "main", GPU ":g0", NULL));
    forwarded(w, "verdict 13 forward cdi:c0");
    create_answered(w, 13, "c2");
    container_removed(w, "c2");
    ignore_all(w);
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_NONE);
    asked(w, 14, "u1", GPU ":g0");
    allocated_stored(w, "A=1");
    forwarded(w, "verdict 14 forward A=1");
}

/* What another plugin gives does not do for this one's devices. */
static void each_plugin_s_are_looked_at(void **state)
{
    struct world *w = *state;

    nics_up(w, "n0");
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_NONE);
    assert_true(create(w, 11, "u1", "main", GPU ":g0 " NIC ":n0", NULL));
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
    allocated(w, "A=1");
    w->call--; /* of the other */
    allocated(w, "cdi:c0");
    expect_with(w, "verdict 11 refused 9: ", "resource " NIC, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_for_no_container_is_none),
        TEST(of_several_the_first_counts),
        TEST(an_answer_that_is_no_text_is_none),
        TEST(the_memory_of_all_answers_has_a_bound),
        TEST(a_plugin_without_words_is_quoted_as_such),
        TEST(endless_words_are_cut),
        TEST(a_slow_plugin_hurts_only_who_asked_it),
        TEST(a_plugin_is_asked_for_one_after_the_other),
        TEST(a_plugin_is_asked_for_as_many_as_the_settings_say),
        TEST(another_plugin_does_not_wait_for_it),
        TEST(who_waits_for_a_turn_has_the_plugins_time_still),
        TEST(who_has_waited_for_a_turn_is_held_as_ever),
        TEST(who_is_held_again_has_what_is_left_of_a_minute),
        TEST(who_has_had_no_turn_by_its_deadline_is_refused),
        TEST(nobody_is_asked_as_his_time_ends),
        TEST(nor_shortly_before),
        TEST(who_was_late_comes_behind_who_was_not),
        TEST(what_it_waited_for_besides_is_not_counted),
        TEST(who_gives_up_makes_room),
        TEST(a_plugin_that_is_back_is_asked_in_turn_again),
        TEST(a_drain_ends_who_waits_for_a_turn),
        TEST(an_answer_of_another_kind_is_ignored),
        TEST(a_late_pre_start_is_told_like_a_late_allocate),
        TEST(another_endpoint_is_prestarted_anew),
        TEST(a_pre_start_under_way_is_waited_for_though_not_wanted_any_more),
        TEST(cdi_devices_alone_are_refused_where_nobody_reads_them),
        TEST(so_they_are_by_one_that_reads_annotations),
        TEST(what_else_is_given_may_do_and_is_said_once),
        TEST(where_the_runtime_does_not_say_they_pass),
        TEST(they_wait_for_one_that_is_to_say),
        TEST(what_it_says_meanwhile_counts),
        TEST(they_wait_no_longer_than_for_anything),
        TEST(what_it_was_given_before_is_asked_for_anew_once_nobody_reads_it),
        TEST(each_plugin_s_are_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
