/* A container that has other devices than the kubelet gave it, in the place of those. */
#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/lift.h"
#include "devicemgr/lists.h"
#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/request.h"
#include "shown_world.h"

/* ---- the world ---- */

/* u1's container has g1 in the place of g0, which is in no list; the shim has just started. */
static void u1_has_g1_for_g0(struct world *w, const char *devices)
{
    Checkpoint__V1__Allocation row = CHECKPOINT__V1__ALLOCATION__INIT;
    char *ids[] = {(char *)"g1"}, *asked[] = {(char *)"g0"};
    uint8_t bytes[256];

    row.pod_uid = (char *)"u1";
    row.container = (char *)"main";
    row.resource = (char *)GPU;
    row.n_device_ids = row.n_asked_ids = 1;
    row.device_ids = ids;
    row.asked_ids = asked;
    u1_has_g0(w, "g0 g1 g2");
    world_store(w, DEVICEMGR_RECORD_ALLOCATION, "u1", "main", GPU, bytes,
                checkpoint__v1__allocation__pack(&row, bytes));
    restart(w);
    serve(w, devices);
}

/* And its last container is gone. */
static void it_waits_to_be_made_again(struct world *w, const char *devices)
{
    u1_has_g1_for_g0(w, devices);
    pass(w, OUTCOME_MS); /* nothing is in the making any more */
    runtime_listed(w, "u1 u2");
    ignore_all(w);
}

/* ---- what it has ---- */

static void its_next_container_has_them_too(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g1 g2");
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "allocate g1 *");
    allocated(w, "G=1");
    expect_stored(w, "commit allocation u1 main vendor.com/gpu, pod u1");
    expect(w, "verdict 12 forward G=1*");
}

static void it_keeps_them_when_what_was_lost_is_back(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g0 g1");
    create_token(w, 12, "u1", GPU ":g0");
    expect(w, "allocate g1 *");
}

static void the_kubelet_may_decide_anew(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g1 g2");
    create_token(w, 12, "u1", GPU ":g2");
    expect(w, "allocate g2 *");
    expect_stored(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
    create_token(w, 13, "u2", GPU ":g1"); /* nobody has it now */
    expect(w, "allocate g1 *");
}

/* What is in the place of another is not the pod's in the kubelet's books. */
static void the_kubelet_may_give_them_to_another(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g1 g2");
    kubelet_holds(w, "u1=" GPU ":g0 u2=" GPU ":g1");
    create_token(w, 12, "u1", GPU ":g0");
    expect_stored(w, "commit -allocation u1 main vendor.com/gpu, pod u1");
    create_token(w, 13, "u2", GPU ":g1");
    expect(w, "allocate g1 *");
    expect_nothing(w); /* u1 waits for g0 */
}

/* ---- who else may have them ---- */

static void nobody_else_is_given_any_of_them(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g0 g1 g2");
    create_request(w, 12, "u2", "main", GPU "=2");
    expect_with(w, "verdict 12 refused 8:", "too few devices", NULL);
    create_request(w, 13, "u2", "main", GPU "=1");
    expect(w, "allocate g2 *");
    runtime_listed(w, "u2");
    create_request(w, 14, "u2", "other", GPU "=2");
    expect_with(w, "commit ", "-allocation u1 main vendor.com/gpu", NULL);
    expect(w, "allocate g0,g1 *"); /* with the pod both go */
}

static void who_comes_with_a_token_of_what_runs_is_refused(void **state)
{
    struct world *w = *state;

    u1_has_g1_for_g0(w, "g1 g2");
    runtime_listed(w, "u1/main u2");
    ignore_all(w);
    create_token(w, 12, "u2", GPU ":g1");
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect(w, "verdict 12 refused *");
}

/* ---- what a list says ---- */

/* What the row says that the kubelet has given, in the place of which u1's container has something;
 * "": that is what it has. Static. */
static const char *asked_on_disk(const struct world *w, const char *resource)
{
    static char text[64];

    snprintf(text, sizeof text, "no row");
    for (const struct world_row *row = w->disk; row; row = row->next) {
        const struct devicemgr_record *is = &row->record;
        Checkpoint__V1__Allocation *value;

        if (is->kind != DEVICEMGR_RECORD_ALLOCATION || strcmp(is->key[0], "u1") != 0 ||
            strcmp(is->key[2], resource) != 0)
            continue;
        value = checkpoint__v1__allocation__unpack(NULL, is->value_bytes, is->value);
        assert_non_null(value);
        snprintf(text, sizeof text, "%s", value->n_asked_ids > 0 ? value->asked_ids[0] : "");
        checkpoint__v1__allocation__free_unpacked(value, NULL);
    }
    return text;
}

/* u1's container, of this attempt, runs with g1 and n0, and `asked` is what g1 is in the place
 * of. */
static void u1_listed(struct world *w, uint32_t attempt, const char *asked_key, const char *asked)
{
    const struct devicemgr_sandbox sandbox = {"s-u1", "u1", "ns", "u1", 0, true, NULL, 0};
    const struct devicemgr_annotation says[] = {
        {"devices.cri-device-shim/vendor.com_gpu", "{\"resource\":\"" GPU "\",\"ids\":[\"g1\"]}"},
        {"devices.cri-device-shim/other.com_nic", "{\"resource\":\"" NIC "\",\"ids\":[\"n0\"]}"},
        {asked_key, asked}};
    const struct devicemgr_container container = {"c-u1-main", "s-u1", "main", attempt,
                                                  true,        says,   3,      false};

    devicemgr_runtime_listing(w->mgr);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
    if (w->pending)
        committed(w);
    ignore_all(w);
}

/* The checkpoint was lost: what is in the place of what is told by the container, of each resource
 * by itself. */
static void what_a_listed_container_says_of_it_is_of_one_resource(void **state)
{
    char *key = request_asked_key(GPU);
    struct world *w = *state;

    gpus_up(w, "g1 g2");
    nics_up(w, "n0");
    u1_listed(w, 0, key, "{\"resource\":\"" GPU "\",\"ids\":[\"g0\"]}");
    assert_string_equal(asked_on_disk(w, GPU), "g0");
    assert_string_equal(asked_on_disk(w, NIC), "");
    u1_listed(w, 1, key, "{\"resource\":\"" GPU "\",\"ids\":[\"g5\"]}"); /* made anew, behind us */
    assert_string_equal(asked_on_disk(w, GPU), "g5");
    u1_listed(w, 2, key, "{\"resource\":\"" GPU "\",\"ids\":[\"g5\",\"g6\"]}"); /* of one, two */
    assert_string_equal(asked_on_disk(w, GPU), "");
    free(key);
}

/* The kubelet has given g0 to the other one, and may make that again with it. */
static void nor_is_another_container_of_the_pod(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g0 g1 g2");
    create_request(w, 14, "u1", "side", GPU "=2");
    expect(w, "allocate g1,g2 *"); /* what the one has is handed on, as from an init container */
}

static void add_published(void *user, const struct devicemgr_lifted_device *device)
{
    char *text = user;

    sprintf(text + strlen(text), "%s%s ", device->name, device->taints_len > 0 ? "!" : "");
}

/* Where the resource is published for claims since: the scheduler is given neither. */
static void both_are_tainted_where_they_are_published(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;
    char text[64] = "";

    u1_has_g1_for_g0(w, "g0 g1 g2");
    runtime_listed(w, "u1/main");
    own.dra = true;
    w->settings.resources = &own;
    w->settings.resources_len = 1;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    devicemgr_lifted_devices(w->mgr, GPU, add_published, text);
    assert_string_equal(text, "g0! g1! g2 ");
    w->settings.resources_len = 0;
}

/* ---- taints ---- */

static void taint(struct world *w, uint64_t number, const char *id)
{
    char commit[64];

    devicemgr_taint(w->mgr, w->now_ms, number, GPU, id, "k:NoExecute", 0, "dust", 1, false);
    devicemgr_run(w->mgr);
    snprintf(commit, sizeof commit, "commit order taint " GPU " k:NoExecute %s*", id);
    expect(w, commit);
    committed(w);
}

/* It would be evicted for what it has not, as the kubelet's books say that it has. */
static void it_does_not_go_for_a_taint_of_what_is_lost(void **state)
{
    struct world *w = *state;

    w->settings.cluster = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    u1_has_g1_for_g0(w, "g0 g1 g2");
    runtime_listed(w, "u1/main");
    kubelet_lists(w);
    kubelet_holds(w, "u1=" GPU ":g0");
    ignore_all(w);
    taint(w, 900, "g0");
    expect(w, "steered 900: " GPU ": tainted: g0 k:NoExecute; pods to be evicted: none");
    expect_nothing(w);
    taint(w, 901, "g1");
    expect(w, "steered 901: " GPU ": tainted: g1 k:NoExecute; pods to be evicted: ns/u1");
}

/* ---- what the kubelet is shown ---- */

/* It would fail a pod that it admits again without what it has given it. */
static void a_kubelet_that_starts_is_shown_what_it_gave(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g1 g2");
    expect_shown(w, GPU, "g0+ g1! g2");
    kubelet_holds(w, "u1=" GPU ":g0");
    expect_shown(w, GPU, "g0+ g1! g2");
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g1! g2");
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1! g2");
}

static void with_its_pod_both_are_as_they_are(void **state)
{
    struct world *w = *state;

    it_waits_to_be_made_again(w, "g0! g1 g2");
    expect_shown(w, GPU, "g0+ g1! g2");
    runtime_listed(w, "u2");
    expect_shown(w, GPU, "g0! g1 g2");
}

/* The kubelet has forgotten its pod, and never knew of it. */
static void what_still_runs_is_taken_whatever_its_pod_is(void **state)
{
    struct world *w = *state;

    u1_has_g1_for_g0(w, "g1 g2");
    pass(w, OUTCOME_MS);
    runtime_listed(w, "u1/main");
    ignore_all(w);
    sandbox_ran(w, "u1", "s-u1-1", 1);
    sandbox_ended(w, "s-u1-1"); /* the container is in the sandbox before */
    expect_shown(w, GPU, "g0+ g1! g2");
    container_removed(w, "c-u1-main");
    expect_shown(w, GPU, "g1 g2");
}

static bool put_shown(void *user, const struct devicemgr_device *device)
{
    char *text = user;

    sprintf(text + strlen(text), "%s%s%s ", device->id, device->free ? "=free" : "",
            device->holders_len > 0 ? device->holders[0].state : "");
    return true;
}

static void lists_name_both(void **state)
{
    const struct devicemgr_which which = {.resource = GPU};
    struct world *w = *state;
    char text[256] = "";

    it_waits_to_be_made_again(w, "g1 g2");
    devicemgr_devices(w->mgr, w->now_ms, &which, put_shown, text);
    assert_string_equal(text, "g0promised g1kept g2=free ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(its_next_container_has_them_too),
        TEST(it_keeps_them_when_what_was_lost_is_back),
        TEST(the_kubelet_may_decide_anew),
        TEST(the_kubelet_may_give_them_to_another),
        TEST(nobody_else_is_given_any_of_them),
        TEST(who_comes_with_a_token_of_what_runs_is_refused),
        TEST(what_a_listed_container_says_of_it_is_of_one_resource),
        TEST(nor_is_another_container_of_the_pod),
        TEST(both_are_tainted_where_they_are_published),
        TEST(it_does_not_go_for_a_taint_of_what_is_lost),
        TEST(a_kubelet_that_starts_is_shown_what_it_gave),
        TEST(with_its_pod_both_are_as_they_are),
        TEST(what_still_runs_is_taken_whatever_its_pod_is),
        TEST(lists_name_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
