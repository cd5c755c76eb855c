/* Containers that have devices of a lifted resource by claims: what they are given, and who else
 * may have it. */
#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "cri-proto/dra_v1.pb-c.h"
#include "cri-proto/lifted_name.h"
#include "devicemgr/counts.h"
#include "devicemgr/lift.h"
#include "devicemgr/lists.h"
#include "devicemgr/operator.h"
#include "devicemgr/taints.h"
#include "devicemgr/things/limits.h"
#include "shown_world.h"

#define G0 LIFT_MARKER_PREFIX "vendor.com:gpu:g0:c1"
#define G0_OF_C2 LIFT_MARKER_PREFIX "vendor.com:gpu:g0:c2"
#define G0_OF_C3 LIFT_MARKER_PREFIX "vendor.com:gpu:g0:c3"
#define G1 LIFT_MARKER_PREFIX "vendor.com:gpu:g1:c1"
#define G1_OF_C2 LIFT_MARKER_PREFIX "vendor.com:gpu:g1:c2"

static void lift(struct world *w)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);

    own.dra = true;
    world_fresh_with(w, &own);
}

static int lift_setup(void **state)
{
    if (mask_setup(state) < 0)
        return -1;
    lift(*state);
    return 0;
}

/* The container names these CDI devices, with blanks between; `token`: or NULL. */
static bool create_beside(struct world *w, uint64_t number, const char *uid, const char *container,
                          const char *text, const struct devicemgr_annotation *token)
{
    char sandbox[32], words[512], *rest = words, *name;
    const char *names[8];
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .pod_uid = uid,
                                       .pod_namespace = "ns",
                                       .pod_name = uid,
                                       .container = container,
                                       .cdi_devices = names,
                                       .container_annotations = token,
                                       .container_annotations_len = token != NULL,
                                       .deadline_ms = UINT64_MAX};
    bool asks;

    snprintf(sandbox, sizeof sandbox, "s-%s", uid);
    snprintf(words, sizeof words, "%s", text);
    while ((name = strsep(&rest, " ")))
        names[request.cdi_devices_len++] = name;
    asks = devicemgr_create(w->mgr, w->now_ms, number, &request);
    devicemgr_run(w->mgr);
    return asks;
}

static bool create_named(struct world *w, uint64_t number, const char *uid, const char *container,
                         const char *names)
{
    return create_beside(w, number, uid, container, names, NULL);
}

static void made(struct world *w, uint64_t number, const char *uid, const char *container,
                 const char *names)
{
    char id[64];

    assert_true(create_named(w, number, uid, container, names));
    expect(w, "allocate *");
    allocated_stored(w, "MADE=1");
    expect(w, "verdict *");
    snprintf(id, sizeof id, "c-%s-%s", uid, container);
    create_answered(w, number, id);
    ignore_all(w);
}

static void on_device(void *user, const struct devicemgr_lifted_device *device)
{
    char *text = user;

    sprintf(text + strlen(text), "%s%s ", device->name, device->taints_len > 0 ? "!" : "");
}

static const char *published(struct world *w)
{
    static char text[256];

    text[0] = '\0';
    devicemgr_lifted_devices(w->mgr, GPU, on_device, text);
    return text;
}

static void it_is_given_what_its_claim_has(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1 g2");
    assert_false(create_named(w, 10, "u0", "main", "vendor.com/x=y"));
    assert_true(create_named(w, 11, "u1", "main", G1 " vendor.com/x=y " G0 " " G1));
    expect(w, "allocate g0,g1 *");
    allocated_stored(w, "MADE=1");
    expect_with(w, "verdict 11 forward", "MADE=1", "\"ids\":[\"g0\",\"g1\"]", NULL);
    create_answered(w, 11, "c-u1-main");
    expect_shown(w, GPU, ""); /* which the kubelet knows nothing of */
    expect_resources(w, "");
}

/* As by a token: what it was given is given again, without its plugin, over restarts. */
static void it_has_it_as_long_as_its_pod_lives(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    made(w, 11, "u1", "main", G0);
    restart(w);
    ignore_all(w);
    runtime_listed(w, "u1/main!");
    ignore_all(w);
    serve(w, "g0 g1");
    expect_resources(w, "");
    assert_true(create_named(w, 12, "u1", "main", G0));
    expect(w, "verdict 12 forward*");
    assert_false(create_named(w, 13, "u1", "other", "")); /* another container has none */
}

/* By its name, which is its id here; the kubelet tries again. */
static void what_is_not_there_yet_is_waited_for(void **state)
{
    struct world *w = *state;

    assert_true(create_named(w, 11, "u1", "main", G0));
    expect_with(w, "verdict 11 refused 9", "not registered on this node", NULL);
    ignore_all(w);
    gpus_up(w, "g1");
    assert_true(create_named(w, 12, "u1", "main", G0));
    expect_nothing(w);
    plugin_list(w, w->endpoint, "g0 g1");
    expect(w, "allocate g0 *");
}

static void a_name_that_means_nothing_is_refused(void **state)
{
    struct world *w = *state;

    assert_true(create_named(w, 11, "u1", "main", LIFT_MARKER_PREFIX "vendor.com:gpu"));
    expect_with(w, "verdict 11 refused 3", "stands for no resource", NULL);
    assert_true(create_named(w, 12, "u1", "main", LIFT_MARKER_PREFIX "vendor.com:nic:n0:c1"));
    expect_with(w, "verdict 12 refused 3", "stands for no resource", NULL);
}

/* Of other containers of the pod, and of other pods. */
static void who_has_the_claim_shares_its_devices(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    made(w, 11, "u1", "main", G0);
    made(w, 12, "u1", "side", G0);
    made(w, 13, "u2", "main", G0);
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
}

/* Claim `uid` has this device, by this name. */
static void prepared_with(struct world *w, uint64_t number, const char *uid, const char *id,
                          const char *name)
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__Device device = DRA__V1__DEVICE__INIT, *devices[] = {&device};
    char *names[] = {(char *)(uintptr_t)name};
    uint8_t bytes[256];

    device.pool_name = (char *)"node-1/" GPU;
    device.device_name = (char *)(uintptr_t)id;
    device.cdi_device_ids = names;
    device.n_cdi_device_ids = 1;
    message.devices = devices;
    message.n_devices = 1;
    if (w->pending)
        committed(w);
    ignore_all(w);
    prepare_of(w, number, DEVICEMGR_LIFT_DRIVER, uid);
    expect_stored(w, "commit claim *");
    expect(w, "prepare *");
    devicemgr_claim_answered(w->mgr, w->now_ms, w->call, 0, NULL, bytes,
                             dra__v1__node_prepare_resource_response__pack(&message, bytes));
    devicemgr_run(w->mgr);
    expect_stored(w, "commit claim *");
    ignore_all(w);
}

static void prepared(struct world *w, uint64_t number, const char *uid, const char *name)
{
    prepared_with(w, number, uid, "g0", name);
}

/* As made(), of a claim that is known: that it is used is stored, too. */
static void made_of_known(struct world *w, uint64_t number, const char *uid, const char *names)
{
    char line[64];

    assert_true(create_named(w, number, uid, "main", names));
    if (w->pending)
        committed(w);
    ignore_all(w);
    allocated(w, "MADE=1");
    while (w->pending) {
        ignore_all(w);
        committed(w);
    }
    snprintf(line, sizeof line, "verdict %d forward*", (int)number);
    expect(w, line);
    snprintf(line, sizeof line, "c-%s-main", uid);
    create_answered(w, number, line);
    ignore_all(w);
}

/* What they have is what is allocated to them, also while the cluster says nothing of it, or no
 * more: a pod that was deleted by force may run yet. */
static void another_claim_s_device_is_not_given(void **state)
{
    struct world *w = *state;

    devicemgr_restored(w->mgr, w->now_ms);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0");
    prepared(w, 5, "c1", G0);
    prepared(w, 6, "c2", G0_OF_C2);
    made_of_known(w, 11, "u1", G0);
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c1", false, NULL, 0);
    assert_true(create_named(w, 12, "u2", "main", G0_OF_C2));
    expect_with(w, "verdict 12 refused 14", "device g0 of claim c2", NULL);
    ignore_all(w);
    sandbox_ended(w, "s-u1");
    ignore_all(w);
    if (w->pending)
        committed(w);
    made_of_known(w, 13, "u2", G0_OF_C2);
}

/* However long its container waits for the device: a list that is without it says nothing yet. */
static void who_waits_for_a_claim_s_device_uses_it(void **state)
{
    struct world *w = *state;
    struct devicemgr_resource_settings own = w->own;

    own.hold_ms = 3 * CLAIM_USER_COMES_MS;
    world_fresh_with(w, &own);
    devicemgr_restored(w->mgr, w->now_ms);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0!");
    prepared(w, 5, "c1", G0);
    prepared(w, 6, "c2", G0_OF_C2);
    assert_true(create_named(w, 11, "u1", "main", G0));
    if (w->pending)
        committed(w);
    pass(w, CLAIM_USER_COMES_MS);
    runtime_listed(w, "u1");
    if (w->pending)
        committed(w);
    ignore_all(w);
    plugin_list(w, w->endpoint, "g0");
    ignore_all(w);
    assert_true(create_named(w, 12, "u2", "main", G0_OF_C2));
    expect_with(w, "verdict 12 refused 14", "device g0 of claim c2", "ns/u1", NULL);
}

/* Without a checkpoint it is known by its token, which does not say whose it is. The next create
 * does, also one that waits for something else. */
/* It is allocated anew, and the kubelet names what it had before, too. */
static void what_its_claim_had_before_is_not_asked_for(void **state)
{
    struct world *w = *state;

    devicemgr_restored(w->mgr, w->now_ms);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0 g1");
    prepared(w, 5, "c1", G0);
    made_of_known(w, 11, "u1", G0);
    prepared_with(w, 6, "c1", "g1", G1);
    assert_true(create_named(w, 12, "u3", "main", G0 " " G1));
    expect(w, "allocate g1 *");
    ignore_all(w);
    assert_true(create_named(w, 13, "u1", "main", G0));
    ignore_all(w);
    container_checked(w, false);
    expect(w, "allocate g1 *"); /* as who is made anew with another request */
}

static void what_a_claim_has_is_known_to_be_its_own_again(void **state)
{
    const struct devicemgr_annotation token = {"devices.cri-device-shim/other.com_nic",
                                               "{\"resource\":\"" NIC "\",\"ids\":[\"n0\"]}"};
    struct world *w = *state;

    gpus_up(w, "g0");
    nics_up(w, "n0!");
    runtime_listed(w, "u1/main=" GPU ":g0");
    ignore_all(w);
    assert_string_equal(published(w), "g0! ");
    container_removed(w, "c-u1-main");
    ignore_all(w);
    assert_true(create_beside(w, 12, "u1", "main", G0, &token));
    assert_string_equal(published(w), "g0 ");
}

/* Who shares the claim waits until then for a container of which it is not known whether it
 * runs. */
static void and_who_shares_the_claim_goes_on(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_forwarded(w, 11, "u1", "main", GPU ":g0");
    create_cancelled(w, 11);
    ignore_all(w);
    assert_true(create_named(w, 12, "u2", "main", G0));
    expect_nothing(w);
    assert_true(create_named(w, 13, "u1", "main", G0));
    expect(w, "verdict 13 forward*");
    expect(w, "allocate g0 *");
}

/* One is in the other's way: neither knows what the other may share. */
/* The claim by which u1 has it went with the checkpoint, and its pod was deleted by force. */
static void a_claim_that_is_not_known_any_more_shares_nothing(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    runtime_listed(w, "u1/main=" GPU ":g0");
    ignore_all(w);
    made_of_known(w, 11, "u1", G0);
    assert_true(create_named(w, 12, "u2", "main", G0_OF_C2));
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused 14", "g0", "ns/u1", NULL);
    restart(w);
    ignore_all(w);
    runtime_listed(w, "u1/main=" GPU ":g0");
    ignore_all(w);
    serve(w, "g0");
    assert_true(create_named(w, 13, "u2", "main", G0_OF_C2)); /* its row says by which */
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 13 refused 14", "g0", "ns/u1", NULL);
    ignore_all(w);
    sandbox_ended(w, "s-u1");
    ignore_all(w);
    assert_true(create_named(w, 14, "u2", "main", G0_OF_C2));
    expect(w, "allocate g0 *");
}

/* Of two devices by two claims each has its own; who looks only is in nobody's way. */
static void who_only_looks_shares_it(void **state)
{
    const struct devicemgr_claim_device looks = {DEVICEMGR_LIFT_DRIVER, "node-1/" GPU, "g0", NULL,
                                                 true};
    struct world *w = *state;

    devicemgr_restored(w->mgr, w->now_ms);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0 g1");
    made(w, 11, "u1", "main", G0 " " G1_OF_C2);
    prepared(w, 5, "c3", G0_OF_C3);
    assert_true(create_named(w, 12, "u2", "main", G0_OF_C3));
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect(w, "commit claim c3 *");
    expect_with(w, "verdict 12 refused 14", "g0", "ns/u1", NULL);
    committed(w);
    ignore_all(w);
    assert_true(create_named(w, 13, "u3", "main", G1)); /* by the claim of the other one */
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 13 refused 14", "g1", "ns/u1", NULL);
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c3", true, &looks, 1);
    ignore_all(w);
    made_of_known(w, 14, "u2", G0_OF_C3);
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
    made(w, 15, "u3", "main", G1_OF_C2);
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
    if (w->pending)
        committed(w);
    restart(w); /* of which the cluster has said nothing yet */
    ignore_all(w);
    runtime_listed(w, "u1/main=" GPU ":g0,g1 u2/main=" GPU ":g0 u3/main=" GPU ":g1");
    ignore_all(w);
    serve(w, "g0 g1");
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
    assert_true(create_named(w, 16, "u2", "main", G0_OF_C3));
    expect(w, "verdict 16 forward*");
    assert_true(create_named(w, 17, "u1", "main", G0 " " G1_OF_C2));
    expect(w, "verdict 17 forward*");
}

/* Whenever that is told, also of who has it by then. */
static void who_looks_is_known_to_over_a_restart(void **state)
{
    const struct devicemgr_claim_device looks = {DEVICEMGR_LIFT_DRIVER, "node-1/" GPU, "g0", NULL,
                                                 true};
    struct world *w = *state;

    devicemgr_restored(w->mgr, w->now_ms);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0");
    prepared(w, 5, "c3", G0_OF_C3);
    made_of_known(w, 11, "u2", G0_OF_C3);
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c3", true, &looks, 1);
    devicemgr_run(w->mgr);
    while (w->pending) {
        ignore_all(w);
        committed(w);
    }
    ignore_all(w);
    made(w, 12, "u1", "main", G0);
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
    restart(w); /* of which the cluster has said nothing yet */
    ignore_all(w);
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main=" GPU ":g0");
    ignore_all(w);
    serve(w, "g0");
    assert_int_equal(devicemgr_held_twice(w->mgr), 0);
    assert_true(create_named(w, 13, "u1", "main", G0));
    expect(w, "verdict 13 forward*");
}

static void what_a_pod_has_from_before_is_its_own(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_made(w, 11, "u1", "main", GPU ":g0");
    assert_true(create_named(w, 12, "u2", "main", G0));
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 12 refused 14", "g0", "ns/u1", NULL);
    made(w, 13, "u2", "other", G1);
    create_token(w, 14, "u3", GPU ":g1");
    expect(w, "check c-u2-other");
    container_checked(w, true);
    expect_with(w, "verdict 14 refused 14", "g1", "ns/u2", NULL);
    expect_resources(w, GPU); /* a kubelet that starts admits it again, by these alone */
    expect_shown(w, GPU, "g0!+");
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+");
}

/* Or a topology manager refuses who has another one by a claim: nothing is free on a node. */
static void and_is_shown_on_no_node(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0@0 g1@1");
    container_made(w, 11, "u1", "main", GPU ":g0");
    expect_shown(w, GPU, "g0!+");
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+");
}

/* Nor is one that is listed no more, wherever the kubelet knows it to be. */
static void nor_is_what_is_not_listed_any_more(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0@0 g1@1");

    container_made(w, 11, "u1", "main", GPU ":g0");
    plugin_list(w, gpu, "g1@1");
    kubelet_starts(w);
    kubelet_holds(w, "u1=" GPU ":g0@0");
    expect_shown(w, GPU, "g0+");
}

static void and_is_tainted_until_it_is_gone(void **state)
{
    uint64_t version;
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    made(w, 12, "u2", "main", G1);
    assert_string_equal(published(w), "g0 g1 "); /* that it is allocated the scheduler knows */
    version = devicemgr_lifted_version(w->mgr);
    container_made(w, 11, "u1", "main", GPU ":g0");
    assert_string_equal(published(w), "g0! g1 ");
    assert_int_not_equal(devicemgr_lifted_version(w->mgr), version);
    version = devicemgr_lifted_version(w->mgr);
    sandbox_ended(w, "s-u1");
    assert_string_equal(published(w), "g0 g1 ");
    assert_int_not_equal(devicemgr_lifted_version(w->mgr), version);
    expect_resources(w, "");
}

/* The settings say so no more: what claims have is not to be given away by the kubelet. */
static void moved_back_it_is_unhealthy_while_claimed(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    made(w, 11, "u1", "main", G0);
    made(w, 12, "u2", "main", G0);
    w->own.dra = false;
    restart(w);
    ignore_all(w);
    runtime_listed(w, "u1/main! u2/main!");
    ignore_all(w);
    serve(w, "g0 g1");
    expect_resources(w, GPU);
    expect_shown(w, GPU, "g0! g1");
    assert_string_equal(published(w), "");
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g0! g1");
    sandbox_ended(w, "s-u2");
    expect_shown(w, GPU, "g0 g1");
}

static void it_cannot_be_asked_for_by_annotation(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    lift(w);
    gpus_up(w, "g0");
    assert_true(create(w, 11, "u1", "main", NULL, GPU "=1"));
    expect_with(w, "verdict 11 refused 9", "is asked for by ResourceClaims", NULL);
}

/* The settings say so since then. */
static void who_has_it_by_annotation_goes_on(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    w->settings.annotations = true;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    ignore_all(w);
    w->own.dra = true;
    restart(w);
    ignore_all(w);
    runtime_listed(w, "u1/main!");
    ignore_all(w);
    serve(w, "g0 g1");
    assert_true(create(w, 12, "u1", "main", NULL, GPU "=1"));
    if (w->pending)
        committed(w);
    expect(w, "verdict 12 forward*");
    ignore_all(w);
    assert_true(create(w, 13, "u2", "main", NULL, GPU "=1"));
    expect_with(w, "verdict 13 refused 9", "is asked for by ResourceClaims", NULL);
}

/* u1's "init" has had g0 of g0 and g1 by annotation; the settings say so since then. */
static void published_behind_init(struct world *w, struct devicemgr_resource_settings *own)
{
    w->settings.annotations = true;
    own->hold_ms = HOLD_MS;
    world_fresh_with(w, own);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "init", GPU "=1", "g0");
    container_removed(w, "c-u1-init");
    ignore_all(w);
    w->own.dra = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    ignore_all(w);
}

/* An init container's is the whole pod's. */
static void so_does_whom_it_is_handed_on_to(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    published_behind_init(w, &own);
    assert_true(create(w, 12, "u1", "main", NULL, GPU "=2"));
    expect_with(w, "verdict 12 refused 9", "its pod has too few of its own", NULL);
    container_chosen(w, 13, "u1", "main", GPU "=1", "g0");
    ignore_all(w);
    assert_true(create(w, 14, "u1", "side", NULL, GPU "=1"));
    expect(w, "check c-u1-main");
    container_checked(w, true);
    expect_with(w, "verdict 14 refused 9", "its pod has too few of its own", NULL);
}

static void and_waits_for_it(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    published_behind_init(w, &own);
    plugin_list(w, w->endpoint, "g0! g1");
    ignore_all(w);
    assert_true(create(w, 12, "u1", "main", NULL, GPU "=1"));
    expect_nothing(w);
    plugin_list(w, w->endpoint, "g0 g1");
    expect(w, "allocate g0 *");
}

/* What it has by a claim is given by that alone. */
static void a_claim_s_device_is_not_handed_on(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    published_behind_init(w, &own);
    made(w, 12, "u1", "side", G1);
    container_removed(w, "c-u1-side");
    ignore_all(w);
    assert_true(create(w, 13, "u1", "main", NULL, GPU "=2"));
    expect_with(w, "verdict 13 refused 9", "its pod has too few of its own", NULL);
    assert_true(create(w, 14, "u2", "main", NULL, GPU "=1"));
    expect_with(w, "verdict 14 refused 9", "is asked for by ResourceClaims", NULL);
}

/* Nor is it told that it had some. */
static void who_waits_for_one_gets_none(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    w->settings.annotations = true;
    world_fresh_with(w, &own);
    gpus_up(w, "g0!");
    assert_true(create(w, 11, "u1", "main", NULL, GPU "=1"));
    expect_nothing(w);
    w->own.dra = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    expect_with(w, "verdict 11 refused 9", "its pod has too few of its own", NULL);
}

/* Others are the scheduler's to give. */
static void but_gets_no_other_one(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    w->settings.annotations = true;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "a", GPU "=1", "g0");
    container_removed(w, "c-u1-a");
    container_chosen(w, 12, "u1", "b", GPU "=1", "g0"); /* handed on */
    ignore_all(w);
    w->own.dra = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    assert_true(create(w, 13, "u1", "a", NULL, GPU "=1"));
    expect(w, "check c-u1-b");
    container_checked(w, true);
    expect_with(w, "verdict 13 refused 9", "its pod has too few of its own", NULL);
}

/* The scheduler may have given the others to claims. */
static void what_a_pod_has_lost_is_not_replaced(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.dra = own.replace = true;
    own.replace_after_ms = 1000;
    own.hold_ms = 10000;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    container_made(w, 11, "u1", "main", GPU ":g0");
    container_removed(w, "c-u1-main");
    plugin_list(w, w->endpoint, "g0! g1");
    if (w->pending)
        committed(w);
    ignore_all(w);
    create_token(w, 12, "u1", GPU ":g0");
    pass(w, 1000);
    devicemgr_kubelet_took(w->mgr, w->now_ms, GPU);
    devicemgr_run(w->mgr);
    expect_nothing(w);
    pass(w, 10000);
    expect_with(w, "verdict 12 refused 14", "unhealthy", NULL);
}

/* Which of its rows is not known then. */
static void nor_is_it_refused_for_good_before_it_is_read(void **state)
{
    struct world *w = *state;

    w->settings.annotations = true;
    lift(w);
    gpus_up(w, "g0");
    devicemgr_rows_unread(w->mgr, "it hangs");
    assert_true(create(w, 11, "u1", "main", NULL, GPU "=1"));
    expect_with(w, "verdict 11 refused 14", "it hangs", NULL);
}

/* Which does not see such names. */
static void whether_the_runtime_knows_cdi_is_nobody_s_doubt(void **state)
{
    struct world *w = *state;

    devicemgr_restored(w->mgr, w->now_ms);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0");
    prepared(w, 5, "c1", G0);
    forget_logs(w);
    made_of_known(w, 11, "u1", G0);
    assert_int_equal(logged(w, "not known whether the runtime supports CDI"), 0);
    devicemgr_runtime_cdi(w->mgr, w->now_ms, DEVICEMGR_CDI_NONE);
    devicemgr_run(w->mgr);
    assert_true(create_named(w, 12, "u2", "main", G0)); /* who shares its claim */
    ignore_all(w);
    allocated(w, "MADE=1");
    while (w->pending) {
        ignore_all(w);
        committed(w);
    }
    expect(w, "verdict 12 forward*");
}

/* ---- who goes for a taint ---- */

/* Claim c1, which has g0, is prepared, in a cluster that evicts. */
static void u1_has_prepared_g0(struct world *w)
{
    w->settings.cluster = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_restored(w->mgr, w->now_ms);
    kubelet_lists(w);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0");
    sandbox_ran(w, "u1", "s-u1", 0);
    prepared(w, 5, "c1", G0);
}

/* And a container of pod u1 has it. */
static void u1_has_g0_by_claim(struct world *w)
{
    u1_has_prepared_g0(w);
    made_of_known(w, 11, "u1", G0);
}

static void consumers_of(struct world *w, const char *claim, const char *uid, const char *device,
                         bool extended, const char *tolerated)
{
    const char *const uids[] = {uid};
    const struct devicemgr_claim_toleration toleration = {
        .driver = DEVICEMGR_LIFT_DRIVER,
        .pool = "node-1/" GPU,
        .device = device,
        .toleration = {
            .key = tolerated ? tolerated : "", .op = "Exists", .value = "", .effect = ""}};
    const struct devicemgr_claim_consumers consumers = {.extended = extended,
                                                        .reserved_for = uids,
                                                        .reserved_for_len = 1,
                                                        .tolerations = &toleration,
                                                        .tolerations_len = tolerated != NULL};

    devicemgr_claim_consumers(w->mgr, w->now_ms, claim, &consumers);
    devicemgr_taints_told(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

static void consumers_are(struct world *w, bool extended, const char *tolerated)
{
    consumers_of(w, "c1", "u1", "g0", extended, tolerated);
}

/* All that there is to store is. Whether the pod was asked to be evicted. */
static bool pod_goes(struct world *w, const char *uid)
{
    bool asked = false;
    char begin[32];

    snprintf(begin, sizeof begin, "evict %s ", uid);
    do {
        for (const struct world_line *line = w->lines; line; line = line->next)
            asked = asked || strncmp(line->text, begin, strlen(begin)) == 0;
        ignore_all(w);
    } while (w->pending && (committed(w), true));
    return asked;
}

static bool goes(struct world *w)
{
    return pod_goes(w, "u1");
}

static void taint_g0(struct world *w)
{
    devicemgr_taint(w->mgr, w->now_ms, 900, GPU, "g0", "k:NoExecute", 0, "dust", 1, false);
    devicemgr_run(w->mgr);
}

/* Which sees the taint, as it is published, and what the claim tolerates. */
static void the_cluster_evicts_who_has_it_by_a_claim(void **state)
{
    struct world *w = *state;

    u1_has_g0_by_claim(w);
    taint_g0(w);
    assert_false(goes(w)); /* it has not said yet whose it is */
    consumers_are(w, false, NULL);
    assert_false(goes(w));
    pass(w, 600000);
    assert_false(goes(w));
}

/* kubernetes/kubernetes#141290 */
static void but_of_an_extended_resource_s_claim(void **state)
{
    struct world *w = *state;

    u1_has_g0_by_claim(w);
    consumers_are(w, true, "k");
    taint_g0(w);
    assert_false(goes(w));
    consumers_are(w, true, "another");
    assert_true(goes(w));
}

/* Nobody else does it, and its container would be refused for ever. */
static void so_does_who_has_no_container_yet(void **state)
{
    struct world *w = *state;

    u1_has_prepared_g0(w);
    consumers_are(w, false, NULL);
    taint_g0(w);
    assert_false(goes(w)); /* the cluster does it */
    consumers_are(w, true, "k");
    assert_false(goes(w));
    consumers_are(w, true, NULL);
    assert_true(goes(w));
}

/* By its id, which is not what it is called in the slice. */
static void whatever_its_device_is_called(void **state)
{
    char name[LIFTED_NAME_BYTES];
    struct world *w = *state;

    w->settings.cluster = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_restored(w->mgr, w->now_ms);
    kubelet_lists(w);
    driver_up(w, 1, DEVICEMGR_LIFT_DRIVER);
    gpus_up(w, "g0 GPU_1");
    sandbox_ran(w, "u1", "s-u1", 0);
    lifted_name_device("GPU_1", name);
    prepared_with(w, 5, "c1", name, G1);
    consumers_are(w, true, NULL);
    taint_g0(w);
    assert_false(goes(w));
    devicemgr_taint(w->mgr, w->now_ms, 901, GPU, "GPU_1", "k:NoExecute", 0, "dust", 1, false);
    devicemgr_run(w->mgr);
    assert_true(goes(w));
}

/* Whoever does it. */
static void and_who_would_go_is_told(void **state)
{
    struct world *w = *state;

    u1_has_prepared_g0(w);
    consumers_are(w, false, NULL);
    ignore_all(w);
    devicemgr_taint(w->mgr, w->now_ms, 900, GPU, "g0", "k:NoExecute", 0, "dust", 1, true);
    devicemgr_run(w->mgr);
    expect_with(w, "steered 900 as before", "NoExecute evicts: ns/u1", NULL);
    devicemgr_taint(w->mgr, w->now_ms, 901, GPU, "g1", "k:NoExecute", 0, "dust", 1, true);
    devicemgr_run(w->mgr);
    expect_with(w, "steered 901 as before", "NoExecute evicts: none", NULL);
}

static size_t names; /* that were made since the last look */

void __real_lifted_name_device(const char *id, char out[LIFTED_NAME_BYTES]);
void __wrap_lifted_name_device(const char *id, char out[LIFTED_NAME_BYTES]);

void __wrap_lifted_name_device(const char *id, char out[LIFTED_NAME_BYTES])
{
    names++;
    __real_lifted_name_device(id, out);
}

struct rows {
    size_t len, pods;
};

static bool count_row(void *user, const struct devicemgr_taint_row *row)
{
    struct rows *rows = user;

    rows->len++;
    rows->pods += row->pods;
    return true;
}

/* Not each device's name for each claim and taint: with 1000 of each that stands for minutes. */
static void and_in_few_steps_where_there_are_many(void **state)
{
    static const struct devicemgr_settings_taint every = {GPU, NULL, "k", "", "NoSchedule"};
    enum { DEVICES = 100, CLAIMS = 50 };
    char list[DEVICES * 12] = "", *at = list, id[16], uid[16], name[LIFTED_NAME_BYTES];
    const struct devicemgr_which all = {0};
    struct world *w = *state;
    struct rows rows = {0};

    w->settings.taints = &every;
    w->settings.taints_len = 1;
    u1_has_prepared_g0(w);
    for (int i = 0; i < DEVICES; i++)
        at += sprintf(at, "%sGPU_%d!", i > 0 ? " " : "", i);
    plugin_list(w, w->endpoint, list);
    for (int i = 0; i < CLAIMS; i++) {
        snprintf(id, sizeof id, "GPU_%d", i);
        snprintf(uid, sizeof uid, "d%d", i);
        lifted_name_device(id, name);
        prepared_with(w, 100 + (uint64_t)i, uid, name, G1);
        consumers_of(w, uid, "u1", name, false, NULL);
    }
    ignore_all(w);
    names = 0;
    devicemgr_taints(w->mgr, w->now_ms, &all, count_row, &rows);
    assert_int_equal(rows.len, DEVICES + 1);
    assert_int_equal(rows.pods, CLAIMS + 1);
    assert_in_range(names, 1, 2 * DEVICES);
    names = 0;
    devicemgr_taint(w->mgr, w->now_ms, 900, GPU, "GPU_7", "k:NoExecute", 0, "dust", 1, true);
    devicemgr_run(w->mgr);
    expect_with(w, "steered 900 as before", "NoExecute evicts: ns/u1", NULL);
    assert_in_range(names, 1, CLAIMS);
}

/* Pods of extended resources' claims, of which some tolerate the taint: whose claim it is, is told
 * by the device, and, where one that was given away before is prepared still, by who has reserved
 * it. */
static void each_goes_by_its_own_claim(void **state)
{
    struct world *w = *state;

    u1_has_g0_by_claim(w);
    plugin_list(w, w->endpoint, "g0 g1");
    sandbox_ran(w, "u2", "s-u2", 0);
    prepared_with(w, 6, "c2", "g1", G1_OF_C2);
    made_of_known(w, 12, "u2", G1_OF_C2);
    prepared_with(w, 7, "c3", "g1", LIFT_MARKER_PREFIX "vendor.com:gpu:g1:c3");
    consumers_of(w, "c1", "u1", "g0", true, "k");
    consumers_of(w, "c2", "u2", "g1", true, "another");
    consumers_of(w, "c3", "u3", "g1", true, "k");
    taint_g0(w);
    devicemgr_taint(w->mgr, w->now_ms, 901, GPU, "g1", "k:NoExecute", 0, "dust", 1, false);
    devicemgr_run(w->mgr);
    assert_true(pod_goes(w, "u2"));
    assert_false(pod_goes(w, "u1"));
    consumers_of(w, "c1", "u1", "g0", true, "another");
    assert_true(pod_goes(w, "u1"));
}

/* Nothing is published then. */
static void nor_once_it_is_published_no_more(void **state)
{
    struct world *w = *state;

    u1_has_g0_by_claim(w);
    consumers_are(w, false, NULL);
    taint_g0(w);
    assert_false(goes(w));
    w->settings.resources_len = 0;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    assert_true(goes(w));
}

/* ---- who is made with what is tainted ---- */

/* By its claim, for which the scheduler has given it the device. */
static void who_tolerates_it_by_its_claim_is_made_with_it(void **state)
{
    struct world *w = *state;

    u1_has_prepared_g0(w);
    consumers_are(w, false, "another");
    taint_g0(w);
    assert_false(goes(w)); /* stored */
    assert_true(create_named(w, 10, "u1", "main", G0));
    expect(w, "verdict 10 refused 9*");
    consumers_are(w, false, "k");
    ignore_all(w);
    made_of_known(w, 11, "u1", G0);
    container_removed(w, "c-u1-main");
    ignore_all(w);
    assert_true(create_named(w, 12, "u1", "main", G0)); /* what it has it keeps */
    expect(w, "verdict 12 forward*");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define lift_test(test) cmocka_unit_test_setup_teardown(test, lift_setup, world_teardown)
        lift_test(it_is_given_what_its_claim_has),
        lift_test(it_has_it_as_long_as_its_pod_lives),
        lift_test(what_is_not_there_yet_is_waited_for),
        lift_test(a_name_that_means_nothing_is_refused),
        lift_test(who_has_the_claim_shares_its_devices),
        lift_test(another_claim_s_device_is_not_given),
        lift_test(who_waits_for_a_claim_s_device_uses_it),
        lift_test(what_its_claim_had_before_is_not_asked_for),
        lift_test(what_a_claim_has_is_known_to_be_its_own_again),
        lift_test(and_who_shares_the_claim_goes_on),
        lift_test(a_claim_that_is_not_known_any_more_shares_nothing),
        lift_test(who_only_looks_shares_it),
        lift_test(who_looks_is_known_to_over_a_restart),
        lift_test(what_a_pod_has_from_before_is_its_own),
        lift_test(and_is_shown_on_no_node),
        lift_test(nor_is_what_is_not_listed_any_more),
        lift_test(and_is_tainted_until_it_is_gone),
        lift_test(moved_back_it_is_unhealthy_while_claimed),
        lift_test(it_cannot_be_asked_for_by_annotation),
        lift_test(who_has_it_by_annotation_goes_on),
        lift_test(so_does_whom_it_is_handed_on_to),
        lift_test(and_waits_for_it),
        lift_test(a_claim_s_device_is_not_handed_on),
        lift_test(who_waits_for_one_gets_none),
        lift_test(but_gets_no_other_one),
        lift_test(what_a_pod_has_lost_is_not_replaced),
        lift_test(nor_is_it_refused_for_good_before_it_is_read),
        lift_test(whether_the_runtime_knows_cdi_is_nobody_s_doubt),
        lift_test(the_cluster_evicts_who_has_it_by_a_claim),
        lift_test(but_of_an_extended_resource_s_claim),
        lift_test(so_does_who_has_no_container_yet),
        lift_test(whatever_its_device_is_called),
        lift_test(and_who_would_go_is_told),
        lift_test(and_in_few_steps_where_there_are_many),
        lift_test(each_goes_by_its_own_claim),
        lift_test(nor_once_it_is_published_no_more),
        lift_test(who_tolerates_it_by_its_claim_is_made_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
