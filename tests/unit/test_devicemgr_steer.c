/* devicemgr/machines/steer.c and what follows from it: cordon, withdraw, grace. */
#include <stdio.h>

#include "devicemgr/lists.h"
#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"
#include "shown_world.h"

/* ---- what an operator does ---- */

/* `ids`: "g0 g1". */
static void cordon(struct world *w, uint64_t number, const char *ids, const char *reason)
{
    const char *v[4];
    size_t len = 0;
    char *copy = strdup(ids), *rest = copy, *id;

    while ((id = strsep(&rest, " ")))
        v[len++] = id;
    if (reason)
        devicemgr_cordon(w->mgr, w->now_ms, number, GPU, v, len, reason, 1234);
    else
        devicemgr_uncordon(w->mgr, w->now_ms, number, GPU, v, len);
    devicemgr_run(w->mgr);
    free(copy);
}

static void cordoned(struct world *w, const char *ids, const char *reason)
{
    cordon(w, 900, ids, reason);
    ignore_all(w);
    committed(w);
    ignore_all(w);
}

static void withdraw(struct world *w, const char *reason)
{
    if (reason)
        devicemgr_withdraw(w->mgr, w->now_ms, 901, GPU, reason, 1234);
    else
        devicemgr_withdraw_undo(w->mgr, w->now_ms, 901, GPU);
    devicemgr_run(w->mgr);
}

static void withdrawn(struct world *w, const char *reason)
{
    withdraw(w, reason);
    ignore_all(w);
    committed(w);
    ignore_all(w);
}

static void lengthen(struct world *w, uint64_t more_ms)
{
    devicemgr_grace_extend(w->mgr, w->now_ms, 902, GPU, more_ms, 1234);
    devicemgr_run(w->mgr);
}

static void end_grace(struct world *w)
{
    devicemgr_grace_end(w->mgr, w->now_ms, 903, GPU, 1234);
    devicemgr_run(w->mgr);
}

/* All that is set, in one text. */
static bool on_order(void *user, const struct devicemgr_order *order)
{
    char *text = user;

    sprintf(text + strlen(text), "%s %s %s \"%s\" %d; ", order->kind, order->resource, order->id,
            order->reason, (int)order->at_s);
    return true;
}

static const char *orders(struct world *w)
{
    static const struct devicemgr_which ALL = {0};
    static char text[1024];

    text[0] = '\0';
    devicemgr_orders(w->mgr, &ALL, on_order, text);
    return text;
}

/* ---- one request ---- */

static void it_is_answered_when_it_is_durable(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    cordon(w, 1, "g0 g9", "dust");
    expect(w, "commit order cordon " GPU " g0, order cordon " GPU " g9");
    expect_nothing(w);
    committed(w);
    expect(w, "steered 1: " GPU ": cordoned: g0,g9; 1 of them is not listed now");
    expect_nothing(w);
    assert_true(world_stored(w, "order cordon " GPU " g9"));
    assert_string_equal(orders(w),
                        "cordon " GPU " g0 \"dust\" 1234; cordon " GPU " g9 \"dust\" 1234; ");
    assert_int_equal(logged(w, "by the operator: resource " GPU ": cordoned: g0,g9"), 1);
}

static void what_is_so_already_is_no_error(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    cordoned(w, "g0", "dust");
    cordon(w, 1, "g0", "dust");
    expect(w, "steered 1 as before: " GPU ": cordoned: g0");
    cordon(w, 2, "g0", "rust"); /* other words */
    expect(w, "commit order cordon " GPU " g0");
    committed(w);
    expect(w, "steered 2: *");
    assert_string_equal(orders(w), "cordon " GPU " g0 \"rust\" 1234; ");
    cordon(w, 3, "g1", NULL);
    expect(w, "steered 3 as before: " GPU ": uncordoned: g1");
    cordon(w, 4, "g0 g0", NULL);
    expect(w, "commit -order cordon " GPU " g0");
    committed(w);
    expect(w, "steered 4: *");
    assert_string_equal(orders(w), "");
    expect_nothing(w);
}

static void what_cannot_be_stored_has_not_changed(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    cordon(w, 1, "g0", "dust");
    ignore_all(w);
    commit_failed(w, "disk full");
    expect(w, "steer 1 refused 10: nothing has changed, since it cannot be stored: disk full");
    assert_string_equal(orders(w), "");
    expect_shown(w, GPU, "g0 g1");
    pass(w, COMMIT_RETRY_MS_MAX);
    expect_nothing(w); /* nothing is left to be tried again */
    cordoned(w, "g0", "dust");
    cordon(w, 2, "g0", NULL);
    ignore_all(w);
    expect_shown(w, GPU, "g0! g1"); /* in force until it is durable */
    commit_failed(w, "disk full");
    expect(w, "steer 2 refused 10: *");
    expect_shown(w, GPU, "g0! g1");
    assert_string_equal(orders(w), "cordon " GPU " g0 \"dust\" 1234; ");
}

static void one_comes_after_the_other(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    cordon(w, 1, "g0", "dust");
    expect(w, "commit order cordon " GPU " g0");
    cordon(w, 2, "g0", NULL);
    cordon(w, 3, "g1", NULL);
    expect_nothing(w);
    committed(w);
    expect(w, "steered 1: *");
    expect(w, "commit -order cordon " GPU " g0");
    committed(w);
    expect(w, "steered 2: " GPU ": uncordoned: g0");
    expect(w, "steered 3 as before: " GPU ": uncordoned: g1");
    expect_nothing(w);
}

/* It waits for the commit that carries it, not for one that was under way. */
static void an_older_commit_does_not_answer_it(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    create_token(w, 5, "u1", GPU ":g1");
    allocated(w, "A=1");
    ignore_all(w);
    cordon(w, 1, "g0", "dust");
    expect_nothing(w);
    commit_failed(w, "disk full");
    expect(w, "verdict 5 refused*");
    expect(w, "commit order cordon " GPU " g0");
    expect_nothing(w);
    committed(w);
    expect(w, "steered 1: *");
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct world *w = *state;
    char reason[ORDER_REASON_BYTES_MAX + 2];

    memset(reason, 'x', sizeof reason);
    reason[sizeof reason - 1] = '\0';
    cordon(w, 1, "g0", reason);
    expect(w, "steer 1 refused 3: the reason is too long*");
    cordon(w, 1, "g0", reason + 1);
    expect(w, "commit*");
    committed(w);
    expect(w, "steered 1: " GPU ": cordoned: g0; no such resource is known on this node now");
    cordon(w, 2, "g0", "\xff");
    expect(w, "steer 2 refused 3: the reason is no UTF-8");
    cordon(w, 3, "\xff", "dust");
    expect(w, "steer 3 refused 3: a device id is empty, or no UTF-8");
    cordon(w, 4, "", "dust");
    expect(w, "steer 4 refused 3: a device id is empty, or no UTF-8");
    devicemgr_withdraw(w->mgr, w->now_ms, 5, "gpu", "", 1);
    devicemgr_run(w->mgr);
    expect(w, "steer 5 refused 3: that is no name of a resource");
    expect_nothing(w);
}

static void nothing_is_set_before_the_rows_are_known_or_at_the_end(void **state)
{
    struct world *w = *state;

    devicemgr_drain(w->mgr, w->now_ms);
    cordon(w, 1, "g0", "dust");
    expect(w, "steer 1 refused 9: the shim is being stopped");
    world_fresh_listed(w);
    devicemgr_rows_unread(w->mgr, "locked");
    cordon(w, 2, "g0", "dust");
    expect(w, "steer 2 refused 9: the state of this node's devices cannot be read: locked");
}

static void there_is_a_most_of_it(void **state)
{
    struct world *w = *state;
    struct order_words words = {.reason = (char *)""};
    char id[16];

    for (unsigned i = 0; i < ORDERS_MAX; i++) {
        snprintf(id, sizeof id, "x%u", i);
        orders_restore(&w->mgr->state.orders, ORDER_CORDON, GPU, id, &words);
    }
    cordon(w, 1, "g0", "dust");
    expect(w, "steer 1 refused 8: too much has been set already");
    cordon(w, 2, "x0", "dust"); /* it is set already, and takes no more room with other words */
    expect(w, "commit order cordon " GPU " x0");
    committed(w);
    expect(w, "steered 2*");
    cordon(w, 3, "x0 g0", "dust");
    expect(w, "steer 3 refused 8: too much has been set already");
    cordon(w, 4, "x0", NULL);
    expect(w, "commit -order*");
}

static void there_is_a_most_that_waits_for_its_turn(void **state)
{
    struct world *w = *state;

    cordon(w, 1, "g0", "dust");
    expect(w, "commit*");
    for (unsigned i = 2; i <= STEERS_MAX; i++)
        cordon(w, i, "g0", NULL);
    expect_nothing(w);
    cordon(w, STEERS_MAX + 1, "g1", "dust");
    expect_with(w, "steer 65 refused 8: too many orders wait for their turn", NULL);
    committed(w);
    expect(w, "steered 1:*");
    cordon(w, 90, "g1", "dust"); /* there is room again */
    expect(w, "commit*");
    committed(w);
    for (unsigned i = 2; i <= STEERS_MAX; i++)
        expect(w, "steered*");
    expect(w, "commit order cordon " GPU " g1");
}

/* ---- cordon ---- */

static void nobody_new_gets_a_cordoned_device(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1 g2");
    cordoned(w, "g0", "dust in the fan");
    create_token(w, 1, "u1", GPU ":g0");
    expect_nothing(w);
    pass(w, HOLD_MS);
    expect(w, "verdict 1 refused 14: container \"main\" of pod \"ns/u1\": resource " GPU
              ": device g0 is cordoned: dust in the fan");
    create_request(w, 2, "u2", "main", GPU "=1");
    expect(w, "allocate g1*");
    create_request(w, 3, "u3", "main", GPU "=3");
    expect_with(w, "verdict 3 refused 8", "too few devices: asked 3", NULL); /* g1 is u2's */
}

static void with_too_few_others_it_is_waited_for_uncordon(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1 g2!");
    cordoned(w, "g0", "dust");
    create_request(w, 1, "u1", "main", GPU "=2");
    expect_nothing(w);
    cordon(w, 9, "g0", NULL);
    expect(w, "commit -order*");
    expect_nothing(w);
    committed(w);
    expect(w, "steered 9*");
    expect(w, "allocate g0,g1*");
    ignore_all(w);
    create_cancelled(w, 1);
    cordoned(w, "g0 g1", "dust");
    create_request(w, 2, "u2", "main", GPU "=2");
    ignore_all(w);
    pass(w, HOLD_MS);
    expect_with(w, "verdict 2 refused 14",
                "too few devices can be used: asked 2, free and healthy 0; devices g0,g1 are "
                "cordoned: dust",
                NULL);
}

static void who_has_it_keeps_it(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    cordoned(w, "g0", "dust");
    create_token(w, 2, "u2", GPU ":g0");
    expect_nothing(w);
    create_cancelled(w, 2);
    container_removed(w, "c-u1-main");
    assert_true(create(w, 3, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 3 forward*");
    create_answered(w, 3, "c2");
    restart_serving(w);
    runtime_listed(w, "u1/main!");
    ignore_all(w);
    assert_true(create(w, 4, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 4 forward*");
    create_token(w, 5, "u2", GPU ":g0");
    pass(w, HOLD_MS - 1);
    ignore_all(w);
    pass(w, 1);
    expect_with(w, "verdict 5 refused 14", "device g0 is cordoned: dust", NULL);
}

/* An init container has had it, and the kubelet hands it on. */
static void a_pod_that_has_it_hands_it_on(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_made(w, 1, "u1", "init", GPU ":g0");
    container_removed(w, "c-u1-init");
    cordoned(w, "g0", "dust");
    assert_true(create(w, 2, "u1", "main", GPU ":g0", NULL));
    expect(w, "allocate g0*");
}

/* Its devices are reserved, no more: it holds none yet. */
static void a_create_under_way_is_held(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    create_token(w, 1, "u1", GPU ":g0");
    expect(w, "allocate g0*");
    cordoned(w, "g0", "dust");
    allocated(w, "A=1");
    expect_nothing(w);
    pass(w, HOLD_MS);
    expect_with(w, "verdict 1 refused 14", "device g0 is cordoned: dust", NULL);
}

/* It is in the commit that makes the cordon durable, or in one before: it has its device when the
 * operator is answered. */
static void one_that_is_being_stored_has_its_device(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    create_token(w, 1, "u1", GPU ":g0");
    allocated(w, "A=1");
    ignore_all(w);
    cordon(w, 9, "g0", "dust");
    committed(w);
    expect(w, "verdict 1 forward A=1");
    expect(w, "commit order cordon " GPU " g0");
}

static void it_is_shown_unhealthy(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    expect_shown(w, GPU, "g0 g1");
    cordon(w, 1, "g0", "dust");
    expect_shown(w, GPU, "g0! g1");
    ignore_all(w);
    committed(w);
    restart(w);
    expect_shown(w, GPU, "g0! g1");
    serve(w, "g0 g1");
    expect_shown(w, GPU, "g0! g1");
    cordoned(w, "g0", NULL);
    expect_shown(w, GPU, "g0 g1");
}

/* A kubelet that starts would lose the pod. */
static void a_held_one_is_healthy_to_a_kubelet_that_starts(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    cordoned(w, "g0 g1", "dust");
    expect_shown(w, GPU, "g0+ g1!");
    pass(w, MASK_MS);
    expect_shown(w, GPU, "g0!+ g1!");
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1!");
    restart(w);
    expect_shown(w, GPU, "g0+ g1!");
}

static void a_cordoned_one_is_not_preferred(void **state)
{
    static const char *const IDS[] = {"g0", "g1", "g2"};
    const struct devicemgr_preference asked = {
        .resource = GPU, .available = IDS, .available_len = 3, .size = 2, .timeout_ms = 500};
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 g1 g2", false, true);
    cordoned(w, "g1", "dust");
    devicemgr_prefer(w->mgr, w->now_ms, 7, &asked);
    devicemgr_run(w->mgr);
    expect(w, "prefer 2 of g0,g2 with none*");
}

static void it_outlives_a_reboot_and_a_new_file(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    cordoned(w, "g0", "dust");
    w->settings.boot_id = "another";
    world_restart(w);
    ignore_all(w);
    assert_string_equal(orders(w), "cordon " GPU " g0 \"dust\" 1234; ");
    devicemgr_store_reset(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_with(w, "commit", "order cordon " GPU " g0", NULL);
}

/* ---- withdraw ---- */

static void nobody_new_gets_what_is_withdrawn(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    withdrawn(w, "moved");
    create_token(w, 1, "u2", GPU ":g1");
    expect_with(w, "verdict 1 refused 9", "the operator of this node has withdrawn it: moved",
                NULL);
    create_request(w, 2, "u3", "main", GPU "=1");
    expect_with(w, "verdict 2 refused 9", "the operator of this node has withdrawn it: moved",
                NULL);
    container_removed(w, "c-u1-main");
    assert_true(create(w, 3, "u1", "main", GPU ":g0", NULL));
    expect(w, "verdict 3 forward*");
    withdraw(w, NULL);
    ignore_all(w);
    create_token(w, 4, "u2", GPU ":g1");
    expect_with(w, "verdict 4 refused 9", "has withdrawn it", NULL); /* until that is durable */
    committed(w);
    expect(w, "steered 901: " GPU ": not withdrawn any more");
    create_token(w, 5, "u2", GPU ":g1");
    expect(w, "allocate g1*");
}

static void no_plugin_is_waited_for(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0");

    withdrawn(w, "");
    plugin_lost(w, endpoint, "gone");
    ignore_all(w);
    create_token(w, 1, "u1", GPU ":g0");
    expect_with(w, "verdict 1 refused 9", "the operator of this node has withdrawn it", NULL);
    create_request(w, 2, "u1", "other", GPU "=1");
    expect_with(w, "verdict 2 refused 9", "the operator of this node has withdrawn it", NULL);
}

static void the_kubelet_is_shown_what_its_pods_have(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    nics_up(w, "n0");
    withdrawn(w, "moved");
    expect_resources(w, NIC);
    expect_shown(w, GPU, "");
    kubelet_holds(w, "u1=" GPU ":g1");
    expect_resources(w, NIC ", " GPU);
    expect_shown(w, GPU, "g1+"); /* to a kubelet that has just started */
    pass(w, MASK_MS);
    expect_shown(w, GPU, "g1!+");
    kubelet_holds(w, "");
    expect_resources(w, NIC);
    withdrawn(w, NULL);
    expect_resources(w, NIC ", " GPU);
    expect_shown(w, GPU, "g0 g1");
}

static void it_may_be_withdrawn_before_it_comes(void **state)
{
    struct world *w = *state;

    withdrawn(w, "moved");
    gpus_up(w, "g0");
    expect_resources(w, "");
    world_restart(w);
    ignore_all(w);
    assert_string_equal(orders(w), "withdrawal " GPU "  \"moved\" 1234; ");
    expect_resources(w, "");
}

/* ---- grace ---- */

static void a_grace_period_may_end_later(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, GRACE_MS - 1000);
    lengthen(w, 60000);
    expect(w, "commit order grace " GPU);
    committed(w);
    expect(w, "steered 902: " GPU ": its stop grace period ends in 1m1s");
    pass(w, 2000);
    lengthen(w, 30000);
    ignore_all(w);
    committed(w);
    expect(w, "steered 902: " GPU ": its stop grace period ends in 1m29s");
    restart(w);
    ignore_all(w);
    plugin_lost(w, w->endpoint, "no one there");
    ignore_all(w);
    pass(w, 88000);
    expect_resources(w, GPU);
    pass(w, 2000);
    expect_resources(w, "");
    committed(w);
    assert_string_equal(orders(w), ""); /* it ends with the period */
}

static void a_grace_period_may_end_now(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, 2000);
    end_grace(w);
    expect(w, "commit order grace " GPU);
    expect_resources(w, GPU); /* not before it is durable */
    committed(w);
    expect(w, "steered 903: " GPU ": its stop grace period ends now");
    expect_resources(w, "");
    expect(w, "commit -order grace " GPU ", -resource " GPU);
    committed(w);
    assert_int_equal(logged(w, "removed, its grace period was ended by the operator"), 1);
    gpus_up(w, "g0");
    expect_resources(w, GPU);
}

static void one_that_cannot_be_ended_goes_on(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, 2000);
    end_grace(w);
    ignore_all(w);
    commit_failed(w, "disk full");
    expect(w, "steer 903 refused 10: nothing has changed*");
    expect_resources(w, GPU);
    lengthen(w, 5000);
    ignore_all(w);
    committed(w);
    ignore_all(w);
    pass(w, GRACE_MS);
    expect_resources(w, GPU);
    end_grace(w);
    ignore_all(w);
    pass(w, 1);
    expect_resources(w, GPU); /* it is as much longer until then */
    commit_failed(w, "disk full");
    lengthen(w, 5000);
    ignore_all(w);
    commit_failed(w, "disk full");
    pass(w, 3000);
    expect_resources(w, "");
}

/* The resource is gone when the next order is looked at. */
static void what_is_ended_cannot_be_lengthened(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, 2000);
    end_grace(w);
    ignore_all(w);
    lengthen(w, 60000);
    expect_nothing(w);
    committed(w);
    expect(w, "steered 903: " GPU ": its stop grace period ends now");
    expect(w, "steer 902 refused 9: resource " GPU " is not known on this node");
    expect_resources(w, "");
}

static void a_grace_of_no_time_is_no_operators(void **state)
{
    struct world *w = *state;

    w->settings.grace_ms = 0;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    lose(w);
    pass(w, 0);
    assert_int_equal(logged(w, "removed, its plugin has not come back within 0ms"), 1);
}

static void none_is_under_way(void **state)
{
    struct world *w = *state;
    const struct devicemgr_builtin_device device = {.id = "b0",
                                                    .healthy = true,
                                                    .host_path = "/dev/b0",
                                                    .container_path = "/dev/b0",
                                                    .permissions = "rw"};

    lengthen(w, 1000);
    expect(w, "steer 902 refused 9: resource " GPU " is not known on this node");
    gpus_up(w, "g0");
    end_grace(w);
    expect(w, "steer 903 refused 9: no stop grace period of resource " GPU
              " is under way: its plugin is not away");
    devicemgr_builtin(w->mgr, w->now_ms, GPU, &device, 1);
    devicemgr_run(w->mgr);
    ignore_all(w);
    end_grace(w);
    expect_with(w, "steer 903 refused 9", "is a built-in one", NULL);
}

static void a_plugin_that_is_back_ends_it(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, 2000);
    lengthen(w, 60000);
    ignore_all(w);
    committed(w);
    gpus_up(w, "g0");
    assert_string_equal(orders(w), "");
    assert_false(world_stored(w, "order grace " GPU));
    lose(w);
    pass_stored(w, GRACE_MS);
    expect_resources(w, ""); /* the next one is as long as always */
}

/* What it was of is over: a crash came between. */
static void what_is_left_of_a_resource_that_is_gone_is_forgotten(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, 2000);
    lengthen(w, 60000);
    ignore_all(w);
    committed(w);
    world_store(w, DEVICEMGR_RECORD_RESOURCE, GPU, "", "", NULL, 0);
    world_restart(w);
    devicemgr_run(w->mgr);
    expect_with(w, "commit", "-order grace " GPU, NULL);
    assert_string_equal(orders(w), "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_answered_when_it_is_durable),
        TEST(what_is_so_already_is_no_error),
        TEST(what_cannot_be_stored_has_not_changed),
        TEST(one_comes_after_the_other),
        TEST(an_older_commit_does_not_answer_it),
        TEST(what_makes_no_sense_is_refused),
        TEST(nothing_is_set_before_the_rows_are_known_or_at_the_end),
        TEST(there_is_a_most_of_it),
        TEST(there_is_a_most_that_waits_for_its_turn),
        TEST(nobody_new_gets_a_cordoned_device),
        TEST(with_too_few_others_it_is_waited_for_uncordon),
        TEST(who_has_it_keeps_it),
        TEST(a_pod_that_has_it_hands_it_on),
        TEST(a_create_under_way_is_held),
        TEST(one_that_is_being_stored_has_its_device),
        TEST(it_is_shown_unhealthy),
        TEST(a_held_one_is_healthy_to_a_kubelet_that_starts),
        TEST(a_cordoned_one_is_not_preferred),
        TEST(it_outlives_a_reboot_and_a_new_file),
        TEST(nobody_new_gets_what_is_withdrawn),
        TEST(no_plugin_is_waited_for),
        TEST(the_kubelet_is_shown_what_its_pods_have),
        TEST(it_may_be_withdrawn_before_it_comes),
        TEST(a_grace_period_may_end_later),
        TEST(a_grace_period_may_end_now),
        TEST(one_that_cannot_be_ended_goes_on),
        TEST(what_is_ended_cannot_be_lengthened),
        TEST(a_grace_of_no_time_is_no_operators),
        TEST(none_is_under_way),
        TEST(a_plugin_that_is_back_ends_it),
        TEST(what_is_left_of_a_resource_that_is_gone_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
