/* Register calls, and the dials they are worth. */
#include <stdio.h>

#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static void reg(struct world *w, const char *version, const char *socket, const char *resource)
{
    devicemgr_register(w->mgr, w->now_ms, 7, version, socket, 0, resource);
    devicemgr_run(w->mgr);
}

static void the_version_is_checked_first_in_the_kubelets_words(void **state)
{
    struct world *w = *state;

    reg(w, "v1alpha1", "a/b", "bad");
    expect(w,
           "register 7 refused 2: requested API version \"v1alpha1\" is not supported by kubelet. "
           "Supported version is [\"v1beta1\"]");
    expect_nothing(w);
}

static void the_resource_name_is_checked_second(void **state)
{
    struct world *w = *state;

    reg(w, "v1beta1", "a/b", "kubernetes.io/gpu");
    expect(w, "register 7 refused 2: the ResourceName \"kubernetes.io/gpu\" is invalid");
}

static void refusals_are_logged_now_and_then(void **state)
{
    struct world *w = *state;
    char name[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "bad%d", i);
        reg(w, "v1beta1", "a.sock", name);
        expect_with(w, "register 7 refused 2: the ResourceName \"", name, "is invalid", NULL);
    }
    assert_int_equal(logged(w, "is invalid"), REFUSALS_TOLD_AT_ONCE);
    pass(w, REFUSAL_TOLD_EVERY_MS);
    reg(w, "v1beta1", "a.sock", "worse");
    expect(w, "register 7 refused 2: the ResourceName \"worse\" is invalid");
    assert_int_equal(logged(w, "the ResourceName \"worse\" is invalid; 990 registrations before it "
                               "were refused without a line"),
                     1);
    pass(w, REFUSALS_TOLD_AT_ONCE * (uint64_t)REFUSAL_TOLD_EVERY_MS);
    for (int i = 0; i < REFUSALS_TOLD_AT_ONCE; i++)
        reg(w, "v1beta1", "a.sock", "bad");
    assert_int_equal(logged(w, "the ResourceName \"bad\" is invalid"), REFUSALS_TOLD_AT_ONCE);
    ignore_all(w);
}

static void the_endpoint_must_be_a_bare_file_name(void **state)
{
    static const char *const BAD[] = {"",  "/gpu.sock", "../gpu.sock", "a/b",
                                      ".", "..",        "kubelet.sock"};
    struct world *w = *state;
    char longest[SOCKET_NAME_BYTES_MAX + 2];

    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        reg(w, "v1beta1", BAD[i], GPU);
        expect_with(w, "register 7 refused 3: the endpoint \"", BAD[i],
                    "is not the name of a socket", NULL);
    }
    memset(longest, 'a', sizeof longest);
    longest[SOCKET_NAME_BYTES_MAX + 1] = '\0';
    reg(w, "v1beta1", longest, GPU);
    expect(w, "register 7 refused 3:*");
    longest[SOCKET_NAME_BYTES_MAX] = '\0';
    reg(w, "v1beta1", longest, GPU);
    expect(w, "open *");
}

/* One that was found by its registration socket: all checks but that for the name of its own. */
static void the_endpoint_of_one_that_was_found_is_a_path(void **state)
{
    struct world *w = *state;

    devicemgr_register_at(w->mgr, w->now_ms, 7, "v1", "/plugins/gpu.sock", 0, GPU);
    devicemgr_run(w->mgr);
    expect(w, "register 7 refused 2: requested API version \"v1\"*");
    devicemgr_register_at(w->mgr, w->now_ms, 8, "v1beta1", "/plugins/gpu.sock", 0, "bad");
    devicemgr_run(w->mgr);
    expect(w, "register 8 refused 2: the ResourceName \"bad\" is invalid");
    devicemgr_register_at(w->mgr, w->now_ms, 9, "v1beta1", "/plugins/gpu.sock", 0, GPU);
    devicemgr_run(w->mgr);
    expect(w, "open vendor.com/gpu /plugins/gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 9");
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu");
}

static void the_name_of_a_built_in_device_is_taken(void **state)
{
    struct world *w = *state;

    devicemgr_builtin(w->mgr, w->now_ms, GPU, NULL, 0);
    reg(w, "v1beta1", "gpu.sock", GPU);
    expect_with(w, "register 7 refused 3:", "built-in device", NULL);
}

static void register_is_answered_when_the_options_have_come(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    expect(w, "open vendor.com/gpu gpu.sock");
    expect_nothing(w);
    plugin_list(w, w->endpoint, "g0"); /* out of turn: not looked at */
    expect_nothing(w);
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 7");
    expect_nothing(w);
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu");
}

/* Told that it is registered, and durable only with its first list: until then another process
 * would not know of it. */
static void what_was_told_is_unstored_until_its_row_is_durable(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    assert_false(devicemgr_registrations_unstored(w->mgr));
    plugin_options(w, w->endpoint, false, false);
    assert_true(devicemgr_registrations_unstored(w->mgr));
    plugin_list(w, w->endpoint, "g0");
    assert_true(devicemgr_registrations_unstored(w->mgr)); /* its commit is under way */
    committed(w);
    assert_false(devicemgr_registrations_unstored(w->mgr));
    plugin_register(w, 8, GPU, "other.sock");
    plugin_options(w, w->endpoint, false, false);
    assert_true(devicemgr_registrations_unstored(w->mgr));
    ignore_all(w);
}

static void one_that_is_lost_before_its_list_is_not_unstored(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    plugin_lost(w, w->endpoint, "stream ended");
    assert_false(devicemgr_registrations_unstored(w->mgr));
    ignore_all(w);
}

static void a_failed_dial_is_told_to_the_plugin(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    expect(w, "open *");
    plugin_lost(w, w->endpoint, "connection refused");
    expect(w, "register 7 refused 2: failed to dial device plugin: connection refused");
    expect_nothing(w);
    plugin_register(w, 8, GPU, "gpu.sock");
    expect(w, "open *");
    plugin_lost(w, w->endpoint, "failed to get device plugin options: UNIMPLEMENTED");
    expect(w, "register 8 refused 2: failed to get device plugin options: UNIMPLEMENTED");
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect_with(w, "verdict 11 refused 9:", "known resources: none", NULL);
}

static void a_register_call_given_up_needs_no_answer(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock");
    expect(w, "open *");
    devicemgr_register_cancelled(w->mgr, 7);
    plugin_options(w, w->endpoint, false, false);
    expect_nothing(w);
}

static void the_newest_registration_wins(void **state)
{
    struct world *w = *state;
    uint64_t old = plugin_up(w, GPU, "old.sock", "g0", false, false);

    plugin_register(w, 8, GPU, "new.sock");
    expect(w, "close");
    expect(w, "open vendor.com/gpu new.sock");
    plugin_lost(w, old, "late end of the old stream");
    plugin_list(w, old, "x0");
    expect_nothing(w);
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu"); /* its new socket */
    plugin_lost(w, old, "late end of the old stream");
    expect_nothing(w);
}

static void a_registration_still_pending_is_superseded(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "a.sock");
    plugin_register(w, 8, GPU, "b.sock");
    expect(w, "open vendor.com/gpu a.sock");
    expect(w, "register 7 refused 10: a newer registration of resource vendor.com/gpu has come");
    expect(w, "close");
    expect(w, "open vendor.com/gpu b.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
}

static void a_registration_that_fails_leaves_the_working_endpoint(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "good.sock", "g0", false, false);
    plugin_register(w, 8, GPU, "bad.sock");
    expect(w, "close");
    expect(w, "open vendor.com/gpu bad.sock");
    plugin_lost(w, w->endpoint, "connection refused");
    expect(w, "register 8 refused 2:*");
    expect(w, "open vendor.com/gpu good.sock");
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    expect_nothing(w); /* no record differs */
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate *");
}

static void there_is_a_most_of_resources(void **state)
{
    struct world *w = *state;
    char name[64];

    for (unsigned i = 0; i < RESOURCES_MAX; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        plugin_register(w, 7, name, name + strlen("vendor.com/"));
    }
    ignore_all(w);
    plugin_register(w, 8, "vendor.com/one-more", "x.sock");
    expect_with(w, "register 8 refused 8:", "1024 resources", NULL);
}

static void register_some(struct world *w, unsigned n, const char *socket)
{
    char name[64];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        plugin_register(w, 7, name, socket);
    }
    ignore_all(w);
}

/* Those that it has it may register again, and others register theirs. */
static void there_is_a_most_of_resources_of_one_socket(void **state)
{
    struct world *w = *state;

    register_some(w, SOCKET_RESOURCES_MAX, "x.sock");
    plugin_register(w, 8, "vendor.com/one-more", "x.sock");
    expect(w, "register 8 refused 8: 64 resources are registered with endpoint \"x.sock\" already");
    plugin_register(w, 9, "vendor.com/r5", "x.sock");
    expect_with(w, "register 7 refused 10:", "a newer registration of resource vendor.com/r5",
                NULL);
    expect(w, "close");
    expect(w, "open vendor.com/r5 x.sock");
    plugin_register(w, 10, GPU, "gpu.sock");
    expect(w, "open " GPU " gpu.sock");
    expect_nothing(w);
}

/* A name counts where it was registered last, also while its dial waits: so that no socket is
 * freed by one that takes its names over, which may have no more either. */
static void names_count_where_they_were_registered_last(void **state)
{
    struct world *w = *state;

    register_some(w, SOCKET_RESOURCES_MAX, "x.sock");
    plugin_register(w, 8, GPU, "gpu.sock");
    ignore_all(w);
    plugin_register(w, 9, GPU, "x.sock");
    expect_with(w, "register 9 refused 8:", "64 resources", NULL);
    for (unsigned i = 0; i <= DIALS_AT_ONCE; i++)
        plugin_register(w, 10, "vendor.com/r5", "gpu.sock");
    ignore_all(w);
    plugin_register(w, 11, "vendor.com/r5", "y.sock"); /* its dial waits */
    ignore_all(w);
    plugin_register(w, 12, GPU, "x.sock");
    expect_with(w, "register 8 refused 10:", "a newer registration of resource " GPU, NULL);
    expect(w, "close");
    expect(w, "open " GPU " x.sock");
    plugin_register(w, 13, "vendor.com/r5", "x.sock");
    expect_with(w, "register 13 refused 8:", "64 resources", NULL);
    expect_nothing(w);
}

/* What is lost before it has listed, or is not back within its grace, is no name any more. */
static void a_resource_that_is_removed_makes_room(void **state)
{
    struct world *w = *state;
    uint64_t listed = plugin_up(w, GPU, "x.sock", "g0", false, false);

    register_some(w, SOCKET_RESOURCES_MAX - 1, "x.sock");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    plugin_register(w, 8, "vendor.com/one-more", "x.sock");
    expect(w, "open vendor.com/one-more x.sock");
    plugin_register(w, 9, "vendor.com/two-more", "x.sock");
    expect_with(w, "register 9 refused 8:", "64 resources", NULL);
    plugin_lost(w, listed, "killed");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
}

static void a_register_call_that_gets_no_answer_at_all_is_refused_at_the_end(void **state)
{
    struct world *w = *state;

    plugin_register(w, 7, GPU, "gpu.sock"); /* the port should have given up long before */
    ignore_all(w);
    pass(w, FIRST_LIST_MS + GRACE_MS);
    expect(w, "register 7 refused 2: failed to dial device plugin: no answer");
    expect(w, "close");
    expect_nothing(w);
}

static void a_plugin_that_registers_twice_is_dialled_twice(void **state)
{
    struct world *w = *state;
    uint64_t first = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_register(w, 8, GPU, "gpu.sock");
    expect(w, "close");
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_lost(w, first, "closed"); /* not our endpoint any more */
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 8");
    plugin_list(w, w->endpoint, "g0");
    expect_nothing(w);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
}

/* Ten registrations a second for a minute. */
static void a_plugin_that_flaps_costs_bounded_work(void **state)
{
    struct world *w = *state;
    size_t opens = 0, lines = 0, refused = 0, accepted = 0;
    uint64_t serving = 0;

    for (uint64_t i = 0; i < 600; i++) {
        plugin_register(w, i + 1, GPU, "gpu.sock");
        if (w->endpoint != serving) {
            serving = w->endpoint;
            plugin_options(w, serving, false, false);
            plugin_list(w, serving, "g0");
        }
        if (w->pending)
            committed(w);
        while (w->lines) {
            opens += strncmp(w->lines->text, "open", 4) == 0;
            accepted += strncmp(w->lines->text, "registered", 10) == 0;
            refused += strstr(w->lines->text, "refused 10") != NULL;
            expect(w, "*");
        }
        pass(w, 100);
    }
    for (struct world_line *line = w->logs; line; line = line->next)
        lines++;
    assert_in_range(opens, 60, 70);
    assert_int_equal(w->commits, 1);
    assert_in_range(lines, opens, 2 * opens + 3); /* one for each change, and the warning */
    assert_int_equal(logged(w, "registers too often, it is dialled at most every 1s now"), 1);
    assert_in_range(600 - refused - accepted, 0, 1); /* every call is answered but the last */
    /* the last one's turn comes, and what there is serves until then */
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    plugin_register(w, 1000, GPU, "gpu.sock");
    ignore_all(w);
    assert_true(create(w, 11, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0 *");
    pass(w, DIAL_EVERY_MS);
    expect(w, "close");
    expect(w, "open vendor.com/gpu gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 1000");
    plugin_list(w, w->endpoint, "g0");
    expect(w, "allocate g0 *"); /* the create was held through all that */
}

static void hurry(struct world *w)
{
    for (uint64_t i = 0; i < DIALS_AT_ONCE; i++)
        plugin_register(w, i, GPU, "gpu.sock");
    ignore_all(w);
}

static void a_dial_that_waits_survives_the_loss_of_the_older_connection(void **state)
{
    struct world *w = *state;

    hurry(w);
    plugin_register(w, 50, GPU, "a.sock");
    expect(w, "register 9 refused 10:*");
    w->uid = 1234;
    plugin_register(w, 51, GPU, "b.sock");
    w->uid = 0;
    expect(w, "register 50 refused 10:*");
    plugin_lost(w, w->endpoint, "refused"); /* it never listed, yet it is not over */
    pass(w, DIAL_EVERY_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "open vendor.com/gpu b.sock of 1234");
    plugin_options(w, w->endpoint, false, false);
    expect(w, "registered 51");
    plugin_list(w, w->endpoint, "g0");
    expect(w, "commit resource vendor.com/gpu");
}

static void a_dial_that_waits_takes_the_place_of_a_redial(void **state)
{
    struct world *w = *state;

    hurry(w);
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0");
    committed(w);
    ignore_all(w);
    plugin_lost(w, w->endpoint, "killed"); /* no dial left: in grace */
    plugin_register(w, 50, GPU, "gpu.sock");
    expect_nothing(w);
    devicemgr_register_cancelled(w->mgr, 50);
    pass(w, DIAL_EVERY_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "open vendor.com/gpu gpu.sock");
    ignore_all(w);
    plugin_options(w, w->endpoint, false, false);
    expect_nothing(w); /* nobody waits to be answered */
}

static void a_dial_that_waits_is_called_off_with_its_resource(void **state)
{
    struct world *w = *state;

    hurry(w);
    plugin_register(w, 50, GPU, "gpu.sock");
    ignore_all(w);
    devicemgr_builtin(w->mgr, w->now_ms, GPU, NULL, 0);
    devicemgr_run(w->mgr);
    expect_with(w, "register 50 refused 3:", "built-in", NULL);
    expect(w, "close");
    pass(w, 10 * DIAL_EVERY_MS);
    expect_nothing(w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_version_is_checked_first_in_the_kubelets_words),
        TEST(the_resource_name_is_checked_second),
        TEST(refusals_are_logged_now_and_then),
        TEST(the_endpoint_must_be_a_bare_file_name),
        TEST(the_endpoint_of_one_that_was_found_is_a_path),
        TEST(the_name_of_a_built_in_device_is_taken),
        TEST(register_is_answered_when_the_options_have_come),
        TEST(what_was_told_is_unstored_until_its_row_is_durable),
        TEST(one_that_is_lost_before_its_list_is_not_unstored),
        TEST(a_failed_dial_is_told_to_the_plugin),
        TEST(a_register_call_given_up_needs_no_answer),
        TEST(the_newest_registration_wins),
        TEST(a_registration_still_pending_is_superseded),
        TEST(a_registration_that_fails_leaves_the_working_endpoint),
        TEST(there_is_a_most_of_resources),
        TEST(there_is_a_most_of_resources_of_one_socket),
        TEST(names_count_where_they_were_registered_last),
        TEST(a_resource_that_is_removed_makes_room),
        TEST(a_register_call_that_gets_no_answer_at_all_is_refused_at_the_end),
        TEST(a_plugin_that_registers_twice_is_dialled_twice),
        TEST(a_plugin_that_flaps_costs_bounded_work),
        TEST(a_dial_that_waits_survives_the_loss_of_the_older_connection),
        TEST(a_dial_that_waits_takes_the_place_of_a_redial),
        TEST(a_dial_that_waits_is_called_off_with_its_resource),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
