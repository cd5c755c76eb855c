/* Which devices a container gets, and whose they are. */
#include <stdio.h>

#include "devicemgr/machines/create.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static int annotations_setup(void **state)
{
    static const char *const ALL[] = {"*"};
    struct world *w;

    world_setup(state);
    w = *state;
    w->settings.annotations = true;
    w->settings.namespaces = ALL;
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    return 0;
}

/* Their plugin is to be asked for its preference. */
static uint64_t preferring_gpus_up(struct world *w, const char *devices)
{
    return plugin_up(w, GPU, "gpu.sock", devices, false, true);
}

/* container_chosen() in pod u1, by a plugin that prefers these ids. */
static void container_preferred(struct world *w, uint64_t number, const char *container,
                                const char *request, const char *ids)
{
    create_request(w, number, "u1", container, request);
    expect(w, "prefer *");
    preferred(w, ids);
    container_allocated(w, number, "u1", container, ids);
}

/* The runtime is asked whether the container runs, and answers. */
static void checked(struct world *w, const char *container_id, bool running)
{
    char line[64];

    snprintf(line, sizeof line, "check %s", container_id);
    expect(w, line);
    container_checked(w, running);
}

/* ---- the steps of the kubelet's devicesToAllocate, numbered as in devicemgr/README.md ---- */

static void a_changed_request_is_refused(void **state) /* step 1 */
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    create_token(w, 12, "u1", GPU ":g0,g1");
    expect(w, "verdict 12 refused 9: container \"main\" of pod \"ns/u1\": changed request for "
              "resource vendor.com/gpu from 1 to 2");
}

/* Its client gave it up while its row was being written: nobody ever had what was chosen. */
static void a_choice_that_no_container_was_made_with_binds_nobody(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    create_request(w, 11, "u1", "main", GPU "=1");
    allocated(w, "A=1");
    create_cancelled(w, 11);
    ignore_all(w);
    committed(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
    create_request(w, 12, "u1", "main", GPU "=2");
    expect(w, "allocate g0,g1 *");
}

static void nor_does_it_once_it_is_lost(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0 g1");

    create_request(w, 11, "u1", "main", GPU "=1");
    allocated(w, "A=1");
    create_cancelled(w, 11);
    ignore_all(w);
    committed(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
    plugin_list(w, gpu, "g0! g1");
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "allocate g1 *");
}

/* It is not waited for, either, where there is no other. */
static void what_is_lost_of_it_is_another_s_once_it_is_back(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0");

    create_request(w, 11, "u1", "main", GPU "=1");
    allocated(w, "A=1");
    create_cancelled(w, 11);
    ignore_all(w);
    committed(w);
    plugin_list(w, gpu, "g0!");
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "commit -allocation u1 main vendor.com/gpu, -pod u1");
    committed(w);
    create_cancelled(w, 12);
    plugin_list(w, gpu, "g0");
    ignore_all(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
}

static void nothing_new_is_given_out_before_the_first_list(void **state) /* step 2 */
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    world_restart(w); /* the checkpoint has no allocation: it may have been lost */
    plugin_back(w, "g0 g1");
    ignore_all(w);
    create_request(w, 11, "u1", "main", GPU "=1");
    create_token(w, 12, "u2", GPU ":g0");
    expect_nothing(w);
    runtime_listed(w, "u1 u2 u3/main=" GPU ":g0");
    expect(w, "allocate g1 *");
    expect(w, "check c-u3-main");
    expect(w, "commit allocation u3 main vendor.com/gpu, pod u3");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused 14:", "held by container \"main\" of pod \"ns/u3\"", NULL);
}

static void a_runtime_that_never_lists_ends_with_the_hold(void **state)
{
    struct world *w = *state;

    world_fresh(w);
    gpus_up(w, "g0");
    create_token(w, 11, "u1", GPU ":g0");
    pass(w, HOLD_MS);
    expect_with(w, "verdict 11 refused 14:", "the runtime has not listed its containers yet", NULL);
}

static void what_a_container_has_it_keeps_before_the_first_list(void **state) /* step 2 */
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    world_restart(w);
    plugin_back(w, "g0");
    ignore_all(w);
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward MADE=1");
}

static void an_unknown_resource_is_refused_with_the_known_ones(void **state) /* step 3 */
{
    struct world *w = *state;

    gpus_up(w, "g0");
    create_token(w, 11, "u1", NIC ":n0");
    expect(w,
           "verdict 11 refused 9: container \"main\" of pod \"ns/u1\": resource other.com/nic: not "
           "registered on this node, or removed; known resources: vendor.com/gpu; if its plugin "
           "registers with the kubelet itself now, make the pod anew");
}

static void without_a_healthy_device_it_is_waited_for_one(void **state) /* step 4 */
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0! g1!");

    create_request(w, 11, "u1", "main", GPU "=1");
    pass(w, HOLD_MS);
    expect_with(w, "verdict 11 refused 14:", "unhealthy for 5s: device ids g0,g1",
                "asked 1, free and healthy 0", NULL);
    create_request(w, 12, "u1", "main", GPU "=1");
    plugin_list(w, endpoint, "g0! g1");
    expect(w, "allocate g1 *");
}

static void held_ids_must_be_healthy(void **state) /* step 5 */
{
    struct world *w = *state;
    uint64_t endpoint = u1_has_g0(w, "g0");

    plugin_list(w, endpoint, "g0!");
    create_token(w, 12, "u1", GPU ":g0");
    expect_nothing(w);
    pass(w, HOLD_MS);
    expect_with(w, "verdict 12 refused 14:", "unhealthy for 5s: device ids g0", NULL);
}

/* As with a kubelet. */
static void of_several_preferences_the_first_counts(void **state)
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1 g2");
    create_request(w, 11, "u1", "main", GPU "=1");
    expect(w, "prefer *");
    preferred(w, "g2|g1");
    expect(w, "allocate g2 *");
}

static void held_ids_are_used_again(void **state) /* step 6 */
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1 g2");
    container_preferred(w, 11, "main", GPU "=1", "g2");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect_with(w, "verdict 12 forward MADE=1", "\"g2\"", NULL);
}

static void an_init_container_hands_its_devices_on(void **state) /* step 7 */
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1 g2");
    container_preferred(w, 11, "init", GPU "=1", "g1");
    create_request(w, 12, "u1", "main", GPU "=2");
    checked(w, "c-u1-init", false);
    expect(w, "prefer 2 of g0,g1,g2 with g1 in 500ms");
    preferred(w, "g1,g2");
    expect(w, "allocate g1,g2 *");
}

static void reused_devices_are_not_asked_about_if_they_suffice(void **state) /* step 7 */
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1 g2");
    container_preferred(w, 11, "init", GPU "=2", "g1,g2");
    container_removed(w, "c-u1-init");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "allocate g1 *");
    create_request(w, 13, "u2", "main", GPU "=2"); /* other pods get none of them */
    expect_with(w, "verdict 13 refused 8:", "asked 2, free 1", NULL);
}

static void an_init_container_may_run_again(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "init", GPU "=1", "g0");
    container_removed(w, "c-u1-init");
    container_chosen(w, 12, "u1", "main", GPU "=1", "g0");
    sandbox_stopped(w, "s-u1"); /* it is made anew */
    sandbox_ran(w, "u1", "s-again", 1);
    assert_true(world_stored(w, "allocation u1 init " GPU));
    assert_true(world_stored(w, "allocation u1 main " GPU));
}

/* Down when the next container was made: CRI does not tell it from an init container. */
static void a_container_whose_device_was_handed_on_gets_another(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "sidecar", GPU "=1", "g0");
    create_request(w, 12, "u1", "main", GPU "=1");
    checked(w, "c-u1-sidecar", false);
    container_allocated(w, 12, "u1", "main", "g0");
    create_request(w, 13, "u1", "sidecar", GPU "=1");
    checked(w, "c-u1-main", true);
    expect(w, "allocate g1 *");
    expect(w, "commit -allocation u1 sidecar vendor.com/gpu, pod u1");
    committed(w);
    allocated(w, "A=1");
    expect(w, "commit allocation u1 sidecar vendor.com/gpu, pod u1");
    committed(w);
    expect_with(w, "verdict 13 forward", "[\"g1\"]", NULL);
    create_answered(w, 13, "c-sidecar-2");
    create_request(w, 14, "u2", "main", GPU "=1");
    expect_with(w, "verdict 14 refused 8:", "free 0", NULL);
}

/* It would be waited for in vain: once healthy it is the other container's. */
static void a_device_that_was_handed_on_is_not_waited_for(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    container_chosen(w, 11, "u1", "sidecar", GPU "=1", "g0");
    container_removed(w, "c-u1-sidecar");
    container_chosen(w, 12, "u1", "main", GPU "=1", "g0");
    plugin_list(w, endpoint, "g0! g1");
    create_request(w, 13, "u1", "sidecar", GPU "=1");
    checked(w, "c-u1-main", true);
    expect(w, "allocate g1 *");
}

static void one_whose_device_was_handed_on_may_find_none(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_chosen(w, 11, "u1", "sidecar", GPU "=1", "g0");
    container_removed(w, "c-u1-sidecar");
    container_chosen(w, 12, "u1", "main", GPU "=1", "g0");
    create_request(w, 13, "u1", "sidecar", GPU "=1");
    checked(w, "c-u1-main", true);
    expect_with(w, "verdict 13 refused 8:", "asked 1, free 0", NULL);
    assert_true(create(w, 14, "u1", "sidecar", GPU ":g0", NULL)); /* a token is not chosen anew */
    expect(w, "*");
}

static void a_container_that_still_runs_keeps_its_devices(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "sidecar", GPU "=1", "g0");
    create_request(w, 12, "u1", "main", GPU "=1");
    checked(w, "c-u1-sidecar", true);
    expect(w, "allocate g1 *");
    create_request(w, 13, "u1", "other", GPU "=1");
    expect(w, "check c-u1-sidecar"); /* its own question: it may have ended since */
}

/* Then it keeps its devices whatever the runtime says of it; the answer may take its time. */
static void one_that_is_made_anew_is_not_asked_about(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    create_request(w, 12, "u1", "side", GPU "=1");
    expect(w, "check c-u1-main");
    expect_nothing(w);
    assert_true(create(w, 13, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 13 forward*");
    expect(w, "allocate g1 *");
}

static void too_few_devices_is_told_in_numbers(void **state) /* step 8 */
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1 g2!");
    create_request(w, 12, "u2", "main", GPU "=3");
    expect(
        w,
        "verdict 12 refused 8: container \"main\" of pod \"ns/u2\": resource vendor.com/gpu: too "
        "few devices: asked 3, free 1, healthy 2 of 3");
}

static void unhealthy_ones_that_would_suffice_are_waited_for(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1!");

    create_request(w, 11, "u1", "main", GPU "=2");
    expect_nothing(w);
    plugin_list(w, endpoint, "g0 g1");
    expect(w, "allocate g0,g1 *");
    create_cancelled(w, 11);
    ignore_all(w);
    plugin_list(w, endpoint, "g0 g1!");
    create_request(w, 12, "u1", "main", GPU "=2");
    pass(w, HOLD_MS);
    expect_with(w, "verdict 12 refused 14:", "unhealthy", "g1", "asked 2, free and healthy 1",
                NULL);
}

static void a_plugin_that_is_away_is_waited_for_if_its_devices_suffice(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_lost(w, endpoint, "gone");
    plugin_lost(w, w->endpoint, "gone");
    ignore_all(w);
    create_request(w, 11, "u1", "main", GPU "=3");
    expect_with(w, "verdict 11 refused 8:", "asked 3, free 2, healthy 0 of 2", NULL);
    create_request(w, 12, "u1", "main", GPU "=2");
    expect_nothing(w);
    gpus_up(w, "g0 g1");
    allocated(w, "A=1");
    expect(w, "commit *");
}

static void numa_nodes_are_kept_few(void **state) /* steps 9 to 11 */
{
    struct world *w = *state;

    gpus_up(w, "g0@0 g1@1 g2@1 g3@0 g10@1");
    create_request(w, 11, "u1", "main", GPU "=3");
    expect(w, "allocate g1,g2,g10 *");
}

static void a_preference_draws_the_rest_to_its_node(void **state) /* steps 10 and 11 */
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0@0 g1@0 g2@1 g3@1 g4");
    create_request(w, 11, "u1", "main", GPU "=2");
    expect(w, "prefer 2 of g0,g1,g2,g3,g4 with none in 500ms");
    preferred(w, "g3"); /* fewer than asked */
    expect(w, "allocate g2,g3 *");
}

static void as_many_are_chosen_as_were_asked_for(void **state) /* step 12 */
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1 g2");
    create_request(w, 11, "u1", "main", GPU "=2");
    expect(w, "prefer *");
    preferred(w, "g2,g1,g0,g2"); /* more than asked, one twice */
    expect(w, "allocate g1,g2 *");
}

static void equal_requests_get_equal_devices(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++) {
        world_fresh_listed(w);
        gpus_up(w, i == 1 ? "g10@1 g9@1 g2@0 g1@0" : "g1@0 g2@0 g9@1 g10@1");
        create_request(w, 11, "u1", "main", GPU "=1");
        expect(w, "allocate g1 *");
        create_request(w, 12, "u2", "main", GPU "=2");
        expect(w, "allocate g9,g10 *");
    }
}

static void a_preference_counts_as_far_as_it_is_allowed(void **state)
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1 g2 g3");
    container_made(w, 11, "u1", "main", GPU ":g3");
    create_request(w, 12, "u2", "main", GPU "=2");
    expect(w, "prefer 2 of g0,g1,g2 with none in 500ms");
    preferred(w, "g3,nonsense,g2");
    expect(w, "allocate g0,g2 *");
}

static void a_preference_for_what_was_not_offered_is_none(void **state)
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1 g2 g3");
    container_made(w, 11, "u1", "main", GPU ":g3");
    create_request(w, 12, "u2", "main", GPU "=1");
    expect(w, "prefer 1 of g0,g1,g2 with none in 500ms");
    sandbox_stopping(w, "s-u1");
    sandbox_stopped(w, "s-u1"); /* g3 is free now */
    preferred(w, "g3,g1");
    expect(w, "allocate g1 *");
}

static void without_a_preference_it_goes_on(void **state)
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1");
    create_request(w, 11, "u1", "main", GPU "=1");
    expect(w, "prefer *");
    devicemgr_preferred(w->mgr, w->now_ms, w->call, 4, "late", NULL);
    devicemgr_run(w->mgr);
    expect(w, "allocate g0 *");
}

static void no_preference_is_asked_for_where_there_is_no_choice(void **state)
{
    struct world *w = *state;

    preferring_gpus_up(w, "g0 g1");
    create_request(w, 11, "u1", "main", GPU "=2");
    expect(w, "allocate g0,g1 *");
}

/* ---- several creates, several resources ---- */

static void two_pending_creates_never_get_the_same_device(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    create_request(w, 11, "u1", "main", GPU "=1");
    expect(w, "allocate g0 *");
    create_request(w, 12, "u2", "main", GPU "=1");
    expect(w, "allocate g1 *");
    create_request(w, 13, "u3", "main", GPU "=1");
    expect_with(w, "verdict 13 refused 8:", "asked 1, free 0, healthy 2 of 2", NULL);
    create_token(w, 14, "u4", GPU ":g1");
    expect_nothing(w);
    allocate_failed(w, 2, "no"); /* u2's */
    expect(w, "verdict 12 refused *");
    expect(w, "allocate g1 *"); /* u4's */
}

static void several_resources_are_all_or_nothing(void **state)
{
    struct world *w = *state;
    uint64_t nic;

    gpus_up(w, "g0");
    nic = nics_up(w, "n0!");
    create_request(w, 11, "u1", "main", GPU "=1, " NIC "=1");
    expect_nothing(w);
    create_request(w, 12, "u2", "main", GPU "=1"); /* g0 is not kept from it */
    expect(w, "allocate g0 *");
    create_cancelled(w, 12);
    expect(w, "cancel");
    plugin_list(w, nic, "n0");
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
}

/* ---- resources that share ---- */

static void share_gpus(struct world *w)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);

    own.exclusive = false;
    world_fresh_with(w, &own);
}

static void a_shared_device_is_in_several_live_containers(void **state)
{
    struct world *w = *state;

    share_gpus(w);
    u1_has_g0(w, "g0");
    container_made(w, 12, "u2", "main", GPU ":g0"); /* nobody is asked, nothing is taken away */
    create_request(w, 13, "u3", "main", GPU "=1");
    expect(w, "allocate g0 *");
    create_request(w, 14, "u4", "main", GPU "=1"); /* nor does a pending one matter */
    expect(w, "allocate g0 *");
    create_request(w, 15, "u1", "other", GPU "=1"); /* nor one of the same pod */
    expect(w, "allocate g0 *");
    assert_true(world_stored(w, "allocation u1 main " GPU));
    assert_true(world_stored(w, "allocation u2 main " GPU));
}

static void free_is_healthy_where_devices_are_shared(void **state)
{
    struct world *w = *state;

    share_gpus(w);
    preferring_gpus_up(w, "g0 g1 g2!");
    container_made(w, 11, "u1", "main", GPU ":g0,g1");
    create_request(w, 12, "u2", "main", GPU "=4");
    expect_with(w, "verdict 12 refused 8:", "asked 4, free 2, healthy 2 of 3", NULL);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "prefer 1 of g0,g1 with none in 500ms"); /* the plugin may spread the load */
    preferred(w, "g1");
    expect(w, "allocate g1 *");
}

static void others_stay_exclusive(void **state)
{
    struct world *w = *state;

    share_gpus(w);
    nics_up(w, "n0");
    container_made(w, 11, "u1", "main", NIC ":n0");
    create_request(w, 12, "u2", "main", NIC "=1");
    expect_with(w, "verdict 12 refused 8:", "free 0", NULL);
}

/* ---- the runtime refuses ---- */

static void what_was_chosen_for_a_refused_create_is_free_again(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    nics_up(w, "n0");
    assert_true(create(w, 11, "u1", "main", NIC ":n0", GPU "=1, " NIC "=1"));
    expect(w, "allocate n0 *");
    create_cancelled(w, 11);
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=1, " NIC "=1");
    expect(w, "allocate n0 *");
    expect(w, "allocate g0 *");
    allocated(w, "A=1");
    w->call--;
    allocated(w, "A=1");
    expect(w, "commit allocation u1 main other.com/nic, allocation u1 main vendor.com/gpu, pod u1");
    committed(w);
    expect(w, "verdict 12 forward *");
    create_answered(w, 12, NULL);
    expect(w,
           "commit -allocation u1 main other.com/nic, -allocation u1 main vendor.com/gpu, -pod u1");
    committed(w);
    assert_false(world_stored(w, "allocation u1 main " GPU));
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
}

static void what_a_container_was_made_with_outlives_a_refusal(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    create_request(w, 12, "u1", "main", GPU "=1"); /* its next attempt */
    expect(w, "verdict 12 forward *");
    create_answered(w, 12, NULL);
    expect_nothing(w);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect_with(w, "verdict 13 refused 8:", "free 0", NULL);
}

static void an_unknown_outcome_is_no_refusal(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    create_request(w, 11, "u1", "main", GPU "=1");
    allocated(w, "A=1");
    committed(w);
    create_cancelled(w, 11);
    ignore_all(w);
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "verdict 12 forward *");
    create_answered(w, 12, NULL); /* the name is taken, by the first one */
    expect_nothing(w);
    assert_true(world_stored(w, "allocation u1 main " GPU));
}

static void what_the_kubelet_chose_outlives_a_refusal(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_forwarded(w, 11, "u1", "main", GPU ":g0");
    create_answered(w, 11, NULL);
    expect_nothing(w);
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "verdict 12 forward MADE=1");
}

/* ---- holders ---- */

/* The kubelet has admitted a pod with it, whose container is not made yet, or was before the plugin
 * was moved here. */
static void what_the_kubelet_has_promised_is_not_chosen(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u9=" GPU ":g0");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g1");
    create_request(w, 12, "u2", "main", GPU "=1");
    expect_with(w, "verdict 12 refused 8:", "asked 1, free 0, healthy 2 of 2", NULL);
    sandbox_ran(w, "u9", "s-u9", 0);
    pass(w, POD_COMES_MS); /* it pulls its images */
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "verdict 13 refused 8:*");
    sandbox_stopping(w, "s-u9");
    sandbox_stopped(w, "s-u9");
    container_chosen(w, 14, "u2", "main", GPU "=1", "g0");
}

static void what_the_kubelet_promised_to_a_pod_that_never_comes_is_chosen_in_time(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    kubelet_holds(w, "u9=" GPU ":g0");
    pass(w, POD_COMES_MS - 1);
    kubelet_holds(w, "u9=" GPU ":g0"); /* not told anew */
    create_request(w, 11, "u2", "main", GPU "=1");
    expect(w, "verdict 11 refused 8:*");
    pass(w, 1);
    container_chosen(w, 12, "u2", "main", GPU "=1", "g0");
}

/* That container may come without a token, and is not waited for then. */
static void what_the_kubelet_promised_since_is_not_kept(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    kubelet_holds(w, "u1=" GPU ":g0");
    container_removed(w, "c-u1-main");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "verdict 12 forward*"); /* its own */
    create_answered(w, 12, "c-u1-main");
    container_removed(w, "c-u1-main");
    kubelet_holds(w, "u2=" GPU ":g0");
    create_request(w, 13, "u1", "main", GPU "=1");
    expect(w, "allocate g1 *");
}

static void what_was_promised_since_is_free_when_its_container_is_gone(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    kubelet_holds(w, "u2=" GPU ":g0");
    create_request(w, 12, "u1", "main", GPU "=1");
    checked(w, "c-u1-main", true);
    expect_with(w, "verdict 12 refused 14:", "device g0 is held by container", "still runs", NULL);
    pass(w, LATE_ANSWER_MS);
    ignore_all(w);
    create_request(w, 13, "u1", "main", GPU "=1");
    checked(w, "c-u1-main", false);
    expect(w, "allocate g1 *");
}

static void a_shared_device_is_kept_whoever_is_promised_it(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.exclusive = false;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    container_removed(w, "c-u1-main");
    kubelet_holds(w, "u2=" GPU ":g0");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "verdict 12 forward*");
}

static void a_device_of_a_running_container_is_not_given_away(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    create_token(w, 12, "u2", GPU ":g0");
    checked(w, "c-u1-main", true);
    expect(w,
           "verdict 12 refused 14: container \"main\" of pod \"ns/u2\": resource vendor.com/gpu: "
           "device g0 is held by container \"main\" of pod \"ns/u1\", which still runs");
    expect_nothing(w);
}

/* Nor in the log at its usual level: the refusal is logged, too. */
static void a_holder_of_another_namespace_can_be_left_unnamed(void **state)
{
    struct world *w = *state;

    w->settings.hide_other_namespaces = true;
    world_fresh_listed(w);
    u1_has_g0(w, "g0");
    create_token(w, 12, "u2", GPU ":g0");
    checked(w, "c-u1-main", true);
    expect_with(w, "verdict 12 refused 14:", "held by container \"main\" of pod \"ns/u1\"", NULL);
    w->pod_namespace = "others";
    create_token(w, 13, "u3", GPU ":g0");
    checked(w, "c-u1-main", true);
    expect(
        w,
        "verdict 13 refused 14: container \"main\" of pod \"others/u3\": resource vendor.com/gpu: "
        "device g0 is held by a container of another namespace, which still runs");
    assert_true(logged(w, "device g0 is held by container \"main\" of pod \"ns/u1\"") > 0);
    expect_nothing(w);
}

static void a_device_of_a_dead_container_moves(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    create_token(w, 12, "u2", GPU ":g0");
    checked(w, "c-u1-main", false);
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
}

static void a_dead_container_of_a_living_pod_keeps_its_device_from_a_choice(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    container_removed(w, "c-u1-main");
    create_request(w, 12, "u2", "main", GPU "=1");
    expect_with(w, "verdict 12 refused 8:", "free 0", NULL);
    sandbox_stopped(w, "s-u1"); /* but a pod that is over does not */
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g0 *");
}

static void two_creates_may_ask_about_the_same_container(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    create_token(w, 13, "u3", GPU ":g0");
    expect_nothing(w);
    container_checked(w, true);
    expect(w, "verdict 12 refused 14:*");
    expect(w, "check c-u1-main"); /* its own question */
    container_checked(w, true);
    expect(w, "verdict 13 refused 14:*");
}

static void a_runtime_that_does_not_answer_ends_with_the_hold(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check *");
    pass(w, HOLD_MS);
    expect_with(w, "verdict 12 refused 14:", "the runtime has not said yet whether it runs", NULL);
    container_checked(w, false); /* late, yet of use */
    create_token(w, 13, "u2", GPU ":g0");
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
}

static void not_answered(struct world *w)
{
    devicemgr_container_checked(w->mgr, w->now_ms, w->check, DEVICEMGR_NOT_ANSWERED);
    devicemgr_run(w->mgr);
}

/* It was slow, or away for a moment: that is no word of the container. */
static void a_runtime_that_did_not_answer_is_asked_again(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    create_token(w, 12, "u2", GPU ":g0");
    expect(w, "check c-u1-main");
    not_answered(w);
    expect_nothing(w); /* neither refused, nor given it, nor asked at once */
    pass(w, CHECK_AGAIN_MS - 1);
    expect_nothing(w);
    pass(w, 1);
    expect(w, "check c-u1-main");
    not_answered(w);
    pass(w, CHECK_AGAIN_MS);
    expect(w, "check c-u1-main");
    container_checked(w, false);
    expect(w, "allocate g0 *");
    expect(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
}

static void a_runtime_that_never_answers_ends_with_the_hold(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    create_token(w, 12, "u2", GPU ":g0");
    for (uint64_t ms = 0; ms < HOLD_MS; ms += CHECK_AGAIN_MS) {
        expect(w, "check c-u1-main");
        not_answered(w);
        pass(w, CHECK_AGAIN_MS);
    }
    expect(w, "check c-u1-main"); /* for who comes next */
    expect_with(w, "verdict 12 refused 14:", "the runtime has not said yet whether it runs", NULL);
}

/* Container "a" of pod u1 runs with g0; nothing is held. */
static void begin_without_hold(struct world *w, const char *devices)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);

    own.hold_ms = 0;
    world_fresh_with(w, &own);
    gpus_up(w, devices);
    container_chosen(w, 11, "u1", "a", GPU "=1", "g0");
    create_request(w, 12, "u1", "b", GPU "=1");
    expect(w, "check c-u1-a");
    expect_with(w, "verdict 12 refused 14:", "the runtime has not said yet whether it runs", NULL);
}

/* It would be asked for and missed by each attempt, for ever. */
static void an_answer_too_late_for_a_create_counts_for_the_next(void **state)
{
    struct world *w = *state;

    begin_without_hold(w, "g0 g1 g2");
    container_checked(w, true);
    expect_nothing(w);
    pass(w, LATE_ANSWER_MS - 1);
    create_request(w, 13, "u1", "b", GPU "=1");
    expect(w, "allocate g1 *");
    create_token(w, 14, "u2", GPU ":g0"); /* another pod asks for itself */
    expect(w, "check c-u1-a");
    expect(w, "verdict 14 refused 14:*");
    pass(w, 1);
    create_request(w, 15, "u1", "c", GPU "=1");
    expect_with(w, "verdict 15 refused 14:", "not said yet", NULL); /* it is too old by now */
}

/* Its container has ended in truth: that there was no answer does not keep its device. */
static void no_answer_too_late_counts_for_nothing(void **state)
{
    struct world *w = *state;

    begin_without_hold(w, "g0");
    not_answered(w);
    expect_nothing(w);
    pass(w, CHECK_AGAIN_MS);
    create_request(w, 13, "u1", "b", GPU "=1");
    expect(w, "check c-u1-a");
    expect_with(w, "verdict 13 refused 14:", "not said yet", NULL); /* not: too few devices */
    container_checked(w, false);
    create_request(w, 14, "u1", "b", GPU "=1");
    expect(w, "allocate g0 *");
}

static void an_answer_too_late_does_not_outlive_the_container(void **state)
{
    struct world *w = *state;

    begin_without_hold(w, "g0 g1");
    container_checked(w, true);
    container_removed(w, "c-u1-a");
    create_request(w, 13, "u1", "a", GPU "=1");
    expect(w, "verdict 13 forward *");
    create_answered(w, 13, "c-a-again");
    create_request(w, 14, "u1", "b", GPU "=1");
    expect(w, "check c-a-again"); /* nothing was said of that one */
    expect(w, "verdict 14 refused 14:*");
}

/* What one attempt is told late of who has its device now, the next one goes by. */
static void one_whose_device_was_handed_on_need_not_hold(void **state)
{
    struct world *w = *state;

    begin_without_hold(w, "g0 g1");
    container_checked(w, false);
    container_chosen(w, 13, "u1", "b", GPU "=1", "g0"); /* handed on */
    create_request(w, 14, "u1", "a", GPU "=1");
    expect(w, "check c-u1-b");
    expect(w, "verdict 14 refused 14:*");
    container_checked(w, true);
    create_request(w, 15, "u1", "a", GPU "=1");
    expect(w, "allocate g1 *");
}

static void an_id_that_is_no_utf8_is_not_chosen(void **state)
{
    struct world *w = *state;

    gpus_up(w, "\xff\xfe g0 \xed\xa0\x80");
    create_request(w, 11, "u1", "main", GPU "=2");
    expect_with(w, "verdict 11 refused 8:", "asked 2, free 1, healthy 1 of 1", NULL);
    container_chosen(w, 12, "u1", "main", GPU "=1", "g0");
}

static void a_kubelet_that_decided_anew_is_followed(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    create_token(w, 12, "u1", GPU ":g1");
    checked(w, "c-u1-main", false);
    expect(w, "allocate g1 *");
}

static void an_unanswered_create_of_the_same_container_is_waited_for(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_forwarded(w, 11, "u1", "main", GPU ":g0");
    create_token(w, 12, "u1", GPU ":g0");
    expect_nothing(w);
    create_answered(w, 11, NULL);
    expect(w, "verdict 12 forward MADE=1");
}

static void an_answer_for_a_forgotten_question_is_ignored(void **state)
{
    struct world *w = *state;

    devicemgr_container_checked(w->mgr, w->now_ms, 4711, DEVICEMGR_RUNS);
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

static void a_plugin_lost_while_asked_for_its_preference_has_none(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = preferring_gpus_up(w, "g0 g1");

    plugin_up(w, NIC, "nic.sock", "n0 n1", false, true);
    create_request(w, 11, "u1", "main", GPU "=1");
    create_request(w, 12, "u2", "main", NIC "=1");
    expect(w, "prefer 1 of g0,g1 *");
    expect(w, "prefer 1 of n0,n1 *");
    plugin_lost(w, endpoint, "killed");
    expect(w, "open *");
    preferred(w, "n1"); /* the other plugin's call is not touched */
    expect(w, "allocate n1 *");
    plugin_options(w, w->endpoint, false, true);
    plugin_list(w, w->endpoint, "g0 g1");
    expect(w, "allocate g0 *");
}

static void an_unknown_resource_in_an_annotation_is_refused(void **state)
{
    struct world *w = *state;

    create_request(w, 11, "u1", "main", NIC "=1");
    expect_with(w, "verdict 11 refused 9:", NIC, "known resources: none", NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, annotations_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_changed_request_is_refused),
        TEST(a_choice_that_no_container_was_made_with_binds_nobody),
        TEST(nor_does_it_once_it_is_lost),
        TEST(what_is_lost_of_it_is_another_s_once_it_is_back),
        TEST(nothing_new_is_given_out_before_the_first_list),
        TEST(a_runtime_that_never_lists_ends_with_the_hold),
        TEST(what_a_container_has_it_keeps_before_the_first_list),
        TEST(an_unknown_resource_is_refused_with_the_known_ones),
        TEST(without_a_healthy_device_it_is_waited_for_one),
        TEST(held_ids_must_be_healthy),
        TEST(of_several_preferences_the_first_counts),
        TEST(held_ids_are_used_again),
        TEST(an_init_container_hands_its_devices_on),
        TEST(reused_devices_are_not_asked_about_if_they_suffice),
        TEST(an_init_container_may_run_again),
        TEST(a_container_whose_device_was_handed_on_gets_another),
        TEST(a_device_that_was_handed_on_is_not_waited_for),
        TEST(one_whose_device_was_handed_on_may_find_none),
        TEST(a_container_that_still_runs_keeps_its_devices),
        TEST(one_that_is_made_anew_is_not_asked_about),
        TEST(too_few_devices_is_told_in_numbers),
        TEST(unhealthy_ones_that_would_suffice_are_waited_for),
        TEST(a_plugin_that_is_away_is_waited_for_if_its_devices_suffice),
        TEST(numa_nodes_are_kept_few),
        TEST(a_preference_draws_the_rest_to_its_node),
        TEST(as_many_are_chosen_as_were_asked_for),
        TEST(equal_requests_get_equal_devices),
        TEST(a_preference_counts_as_far_as_it_is_allowed),
        TEST(a_preference_for_what_was_not_offered_is_none),
        TEST(without_a_preference_it_goes_on),
        TEST(no_preference_is_asked_for_where_there_is_no_choice),
        TEST(two_pending_creates_never_get_the_same_device),
        TEST(several_resources_are_all_or_nothing),
        TEST(a_shared_device_is_in_several_live_containers),
        TEST(free_is_healthy_where_devices_are_shared),
        TEST(others_stay_exclusive),
        TEST(what_was_chosen_for_a_refused_create_is_free_again),
        TEST(what_a_container_was_made_with_outlives_a_refusal),
        TEST(an_unknown_outcome_is_no_refusal),
        TEST(what_the_kubelet_chose_outlives_a_refusal),
        TEST(what_the_kubelet_has_promised_is_not_chosen),
        TEST(what_the_kubelet_promised_to_a_pod_that_never_comes_is_chosen_in_time),
        TEST(what_the_kubelet_promised_since_is_not_kept),
        TEST(what_was_promised_since_is_free_when_its_container_is_gone),
        TEST(a_shared_device_is_kept_whoever_is_promised_it),
        TEST(a_device_of_a_running_container_is_not_given_away),
        TEST(a_holder_of_another_namespace_can_be_left_unnamed),
        TEST(a_device_of_a_dead_container_moves),
        TEST(a_dead_container_of_a_living_pod_keeps_its_device_from_a_choice),
        TEST(two_creates_may_ask_about_the_same_container),
        TEST(a_runtime_that_does_not_answer_ends_with_the_hold),
        TEST(a_runtime_that_did_not_answer_is_asked_again),
        TEST(a_runtime_that_never_answers_ends_with_the_hold),
        TEST(an_answer_too_late_for_a_create_counts_for_the_next),
        TEST(no_answer_too_late_counts_for_nothing),
        TEST(an_answer_too_late_does_not_outlive_the_container),
        TEST(one_whose_device_was_handed_on_need_not_hold),
        TEST(an_id_that_is_no_utf8_is_not_chosen),
        TEST(a_kubelet_that_decided_anew_is_followed),
        TEST(an_unanswered_create_of_the_same_container_is_waited_for),
        TEST(an_answer_for_a_forgotten_question_is_ignored),
        TEST(a_plugin_lost_while_asked_for_its_preference_has_none),
        TEST(an_unknown_resource_in_an_annotation_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
