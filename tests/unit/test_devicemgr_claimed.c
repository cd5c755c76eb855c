/* Containers with the CDI devices of claims: whether they may be made, and what follows if the
 * runtime cannot make them. */
#include <stdio.h>
#include <stdlib.h>

#include "claims_world.h"
#include "devicemgr/things/claim.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr/why.h"

/* What a request names, in its field and in annotations; with blanks between. */
static bool create_named(struct world *w, uint64_t number, const char *uid, const char *field,
                         const char *annotated)
{
    char sandbox[32], text[256], *rest = text, *name;
    const char *names[8];
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .pod_uid = uid,
                                       .pod_namespace = w->pod_namespace ? w->pod_namespace : "ns",
                                       .pod_name = uid,
                                       .container = "main",
                                       .cdi_devices = names,
                                       .deadline_ms = UINT64_MAX};

    snprintf(sandbox, sizeof sandbox, "s-%s", uid);
    snprintf(text, sizeof text, "%s %s", field, annotated);
    while ((name = strsep(&rest, " "))) {
        if (*name == '\0')
            continue;
        request.cdi_annotated_len += name >= text + strlen(field);
        names[request.cdi_devices_len++] = name;
    }
    return create_claimed(w, number, &request);
}

#define GPU_0 "example.com/dev=gpu-0"
#define GPU_1 "example.com/dev=gpu-1"

static void assert_passes(struct world *w, const char *uid, const char *field)
{
    assert_false(create_named(w, 77, uid, field, ""));
    while (w->pending)
        committed(w);
    ignore_all(w);
}

static void runtime_cdi(struct world *w, enum devicemgr_cdi cdi)
{
    devicemgr_runtime_cdi(w->mgr, w->now_ms, cdi);
    devicemgr_run(w->mgr);
}

/* ---- what the runtime reads ---- */

static void one_that_would_start_without_its_device_is_refused(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0 gpu-1");
    ignore_all(w);
    runtime_cdi(w, DEVICEMGR_CDI_NONE);
    assert_true(create_named(w, 7, "u1", "other.com/x=y " GPU_0, ""));
    expect_with(w, "verdict 7 refused 9", "container \"main\" of pod \"ns/u1\"",
                "without the devices of its claim", "does not support CDI", GPU_0, NULL);
    expect_event(w, "refused - [" GPU_0 "] ns/u1/main cdi-not-read: ");
    expect_nothing(w); /* nor does it use the claim */
    assert_passes(w, "u1", "other.com/x=y");
    assert_passes(w, "u1", "");
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    assert_passes(w, "u1", GPU_0);
}

static void one_that_reads_annotations_needs_them(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0 gpu-1");
    runtime_cdi(w, DEVICEMGR_CDI_ANNOTATED);
    assert_true(create_named(w, 7, "u1", GPU_0 " " GPU_1, GPU_0));
    expect_with(w, "verdict 7 refused 9", "in annotations only", GPU_1, NULL);
    assert_false(create_named(w, 8, "u1", GPU_0 " " GPU_1, GPU_1 " " GPU_0));
    expect(w, "commit claim *");
    committed(w);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    assert_false(create_named(w, 9, "u1", GPU_0 " " GPU_1, GPU_0));
    expect_nothing(w);
}

static void where_nobody_knows_it_passes_and_is_said_once(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    forget_logs(w);
    assert_passes(w, "u1", "other.com/x=y"); /* nobody's that we know */
    assert_int_equal(logged(w, "not known whether the runtime supports CDI"), 0);
    assert_passes(w, "u1", GPU_0);
    assert_passes(w, "u2", GPU_0);
    assert_int_equal(logged(w, "not known whether the runtime supports CDI"), 1);
    runtime_cdi(w, DEVICEMGR_CDI_UNKNOWN); /* another one, perhaps */
    assert_passes(w, "u3", GPU_0);
    assert_int_equal(logged(w, "not known whether the runtime supports CDI"), 1);
}

/* ---- who has the device ---- */

/* As drivers do that have a name for each claim's device, and one for all. */
#define C1_GPU_0 "example.com/dev=c1-0 example.com/dev=all"
#define C2_GPU_0 "example.com/dev=c2-0 example.com/dev=all"
#define C2_GPU_1 "example.com/dev=c2-1 example.com/dev=all"

/* Pod u1 has c1's device, which c2 has, too. */
static void of_two_pods(struct world *w)
{
    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:c1-0+all");
    claim_prepared(w, 6, "c2", "gpu-0:c2-0+all gpu-1:c2-1+all");
    assert_passes(w, "u1", C1_GPU_0);
    forget_logs(w);
}

static void both_known(struct world *w)
{
    claim_allocated(w, "c1", "p", "gpu-0");
    claim_allocated(w, "c2", "p", "gpu-0");
    if (w->pending) /* of one that runs it is stored */
        committed(w);
    ignore_all(w);
}

static void a_device_of_a_pod_that_runs_is_not_given_to_another(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
    expect_with(w, "verdict 7 refused 14", "container \"main\" of pod \"ns/u2\"",
                "device gpu-0 of claim c2", "container \"main\" of pod ns/u1", NULL);
    expect_event(w, "refused - [gpu-0] ns/u2/main claim-held: ");
    pass(w, LIST_EVERY_MS);
    expect(w, "list"); /* it may run no more */
    expect_nothing(w);
    assert_passes(w, "u3", C1_GPU_0); /* who shares its claim */
    assert_passes(w, "u2", C2_GPU_1); /* another device of the claim */
    assert_passes(w, "u1", C1_GPU_0); /* its own, again */
    sandbox_stopped(w, "s-u2");
    sandbox_stopped(w, "s-u1");
    sandbox_stopped(w, "s-u3");
    assert_passes(w, "u2", C2_GPU_0);
    assert_int_equal(logged(w, "may still be used"), 0);
}

static void on_refused(void *user, const struct devicemgr_why *why)
{
    struct devicemgr_why *told = user;

    if (why->refused_word)
        *told = *why;
}

/* It has no devices but its claim's, so that nobody waits for what comes of its create. */
static void a_refusal_is_over_when_it_passes(void **state)
{
    struct devicemgr_why told = {0};
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
    assert_true(create_named(w, 8, "u2", C2_GPU_0, ""));
    ignore_all(w);
    devicemgr_why(w->mgr, w->now_ms, "u2", NULL, on_refused, &told);
    assert_int_equal(told.refused_times, 2);
    assert_false(told.refused_over);
    sandbox_stopped(w, "s-u1");
    assert_passes(w, "u2", C2_GPU_0);
    devicemgr_why(w->mgr, w->now_ms, "u2", NULL, on_refused, &told);
    assert_true(told.refused_over);
    sandbox_stopped(w, "s-u2");
    assert_passes(w, "u1", C1_GPU_0);
    assert_true(create_named(w, 9, "u2", C2_GPU_0, ""));
    ignore_all(w);
    devicemgr_why(w->mgr, w->now_ms, "u2", NULL, on_refused, &told);
    assert_int_equal(told.refused_times, 1);
    assert_false(told.refused_over);
}

static void what_the_list_does_not_show_is_not_in_the_way(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    pass(w, CLAIM_USER_COMES_MS);
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
    expect(w, "verdict 7 refused 14*");
    expect(w, "list");
    runtime_listed(w, "u1 u2");
    expect(w, "commit claim c1 *");
    committed(w);
    assert_passes(w, "u2", C2_GPU_0);
}

static void without_the_cluster_s_word_it_is_said_once(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    claim_allocated(w, "c2", "p", "gpu-0"); /* of the other's claim nothing is known */
    assert_passes(w, "u2", C2_GPU_0);
    assert_passes(w, "u2", C2_GPU_0);
    sandbox_stopped(w, "s-u2");
    assert_passes(w, "u3", C2_GPU_0);
    assert_int_equal(logged(w, "may still be used by container \"main\" of pod ns/u1"), 1);
}

/* Of one of the two that have it by now nothing is known; that is no reason to give it to a
 * third. */
static void one_who_is_known_to_have_it_is_enough(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    claim_prepared(w, 8, "c3", "gpu-0:c3-0+all");
    assert_passes(w, "u3", "example.com/dev=c3-0 example.com/dev=all");
    claim_allocated(w, "c2", "p", "gpu-0");
    claim_allocated(w, "c3", "p", "gpu-0");
    committed(w);
    ignore_all(w);
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
    expect_with(w, "verdict 7 refused 14", "container \"main\" of pod ns/u3", NULL);
}

/* Its names tell its own claims apart, of which one may only look. */
static void one_that_has_it_by_two_claims_is_refused_all_the_same(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    claim_prepared(w, 8, "c3", "gpu-0:c3-0+all");
    assert_true(create_named(w, 7, "u2", C2_GPU_0 " example.com/dev=c3-0", ""));
    expect_with(w, "verdict 7 refused 14", "device gpu-0 of claim c2", NULL);
}

/* The pod may share u1's claim, as well as have the other one. */
static void where_names_do_not_tell_the_claims_apart_it_is_said_once(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    claim_prepared(w, 6, "c2", "gpu-0");
    both_known(w);
    forget_logs(w);
    assert_passes(w, "u1", GPU_0); /* its own, again */
    assert_int_equal(logged(w, "may still be used"), 0);
    assert_passes(w, "u2", GPU_0);
    assert_passes(w, "u2", GPU_0);
    assert_int_equal(logged(w, "may still be used by container \"main\" of pod ns/u1"), 1);
}

/* The kubelet has asked for the claim once more, and its driver has answered another device, which
 * it is allocated by now. */
static void prepared_anew(struct world *w, uint64_t number, const char *uid, const char *device)
{
    char name[32];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(device, ":"), device);
    prepare(w, number, uid);
    while (w->pending)
        committed(w);
    ignore_all(w);
    claim_answered(w, device);
    claim_allocated(w, uid, "p", name);
    while (w->pending)
        committed(w);
    ignore_all(w);
}

/* Whose container is known by both claims, one of which has other devices by now, has it by the one
 * that the two pods share. */
static void who_may_have_it_by_the_same_claim_is_in_nobodys_way(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_prepared(w, 6, "c2", "gpu-0");
    both_known(w);
    assert_passes(w, "u1", GPU_0);
    prepared_anew(w, 7, "c1", "gpu-1");
    assert_passes(w, "u2", GPU_0);
    claim_prepared(w, 8, "c3", "gpu-0:c3-0");
    claim_allocated(w, "c3", "p", "gpu-0");
    committed(w);
    ignore_all(w);
    assert_true(create_named(w, 9, "u3", "example.com/dev=c3-0", ""));
    expect_with(w, "verdict 9 refused 14", "container \"main\" of pod ns/u1", NULL);
}

static void allocate_as(struct world *w, const char *uid, const char *device_name, bool admin)
{
    const struct devicemgr_claim_device device = {DRIVER, "p", device_name, NULL, admin};

    devicemgr_claim_allocation(w->mgr, w->now_ms, uid, true, &device, 1);
    devicemgr_run(w->mgr);
}

static void allocate(struct world *w, const char *uid, const char *share_id, bool admin)
{
    const struct devicemgr_claim_device device = {DRIVER, "p", "gpu-0", share_id, admin};

    devicemgr_claim_allocation(w->mgr, w->now_ms, uid, true, &device, 1);
    devicemgr_run(w->mgr);
}

static void what_is_shared_or_only_looked_at_is_in_nobodys_way(void **state)
{
    static const struct {
        const char *first_shares, *second_shares;
        bool first_looks, second_looks;
    } cases[] = {{NULL, NULL, true, false},
                 {NULL, NULL, false, true},
                 {"s", NULL, false, false},
                 {NULL, "s", false, false}};
    struct world *w = *state;

    of_two_pods(w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        allocate(w, "c1", cases[i].first_shares, cases[i].first_looks);
        allocate(w, "c2", cases[i].second_shares, cases[i].second_looks);
        assert_passes(w, "u2", C2_GPU_0);
        sandbox_stopped(w, "s-u2");
    }
    assert_int_equal(logged(w, "may still be used"), 0);
    allocate(w, "c1", NULL, false);
    allocate(w, "c2", NULL, false);
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
}

/* By what its driver answered of both, while the cluster says that the one has another by now. */
static void what_a_driver_says_is_shared_is_in_nobodys_way(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "*gpu-0:c1-0+all");
    claim_prepared(w, 6, "c2", "*gpu-0:c2-0+all");
    assert_passes(w, "u1", C1_GPU_0);
    claim_allocated(w, "c1", "p", "gpu-1");
    claim_allocated(w, "c2", "p", "gpu-0");
    forget_logs(w);
    assert_passes(w, "u2", C2_GPU_0);
    assert_int_equal(logged(w, "may still be used"), 0);
}

/* A device that is whole, and what may be made of it: of two counters. */
static void partitions(struct world *w)
{
    static const struct devicemgr_counter there[] = {{"set/memory", true, 80},
                                                     {"set/engines", true, 4}};
    static const struct devicemgr_counter drawn[] = {
        {"set/engines", false, 0}, {"set/memory", false, 0}, {"set/unheard", false, 0}};
    static const char *const devices[] = {"whole", "half-0", "half-1", "most", "wild"};
    static const struct devicemgr_draw draws[] = {
        {"whole", 0, 4},  {"whole", 1, 80},  {"half-0", 0, 2}, {"half-0", 1, 40},
        {"half-1", 0, 2}, {"half-1", 1, 40}, {"most", 0, 1},   {"wild", 0, 0},
        {"most", 1, 60},  {"wild", 2, 9},    {"wild", 7, 9}};

    slice_told(w, (struct devicemgr_slice){"s0", DRIVER, "p", .apart = true, .counters = there,
                                           .counters_len = 2});
    slice_told(w,
               (struct devicemgr_slice){"s1", DRIVER, "p", devices, 5, false, drawn, 3, draws, 11});
}

/* Claim CLAIM is prepared with the device, which has its own name. */
static void part_of(struct world *w, uint64_t number, const char *claim, const char *device)
{
    claim_prepared(w, number, claim, device);
    claim_allocated(w, claim, "p", device);
    ignore_all(w);
}

static void named_parts(struct world *w)
{
    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    partitions(w);
    part_of(w, 1, "c-whole", "whole");
    part_of(w, 2, "c-half-0", "half-0");
    part_of(w, 3, "c-half-1", "half-1");
    part_of(w, 4, "c-most", "most");
    part_of(w, 5, "c-wild", "wild");
}

#define PART(name) "example.com/dev=" name

static void a_part_of_what_a_pod_still_has_is_not_given_to_another(void **state)
{
    struct world *w = *state;

    named_parts(w);
    assert_passes(w, "u1", PART("whole"));
    assert_true(create_named(w, 7, "u2", PART("half-1"), ""));
    expect_with(w, "verdict 7 refused 14", "device half-1 of claim c-half-1",
                "container \"main\" of pod ns/u1, which has device whole by another claim", NULL);
    ignore_all(w);
    assert_passes(w, "u3", PART("wild"));  /* of something else */
    assert_passes(w, "u4", PART("whole")); /* who shares its claim */
    sandbox_stopped(w, "s-u4");
    assert_passes(w, "u1", PART("half-0")); /* of what it has itself */
    sandbox_stopped(w, "s-u1");
    assert_passes(w, "u2", PART("half-1"));
    assert_int_equal(logged(w, "may still be used"), 0);
}

static void nor_is_the_whole_while_a_part_of_it_is_used(void **state)
{
    struct world *w = *state;

    named_parts(w);
    assert_passes(w, "u1", PART("half-0"));
    assert_passes(w, "u2", PART("half-1")); /* there is enough for both */
    assert_true(create_named(w, 7, "u3", PART("whole"), ""));
    expect_with(w, "verdict 7 refused 14", "which has device half-0 by another claim", NULL);
    ignore_all(w);
    assert_true(create_named(w, 8, "u3", PART("most"), "")); /* of one of the two counters */
    expect_with(w, "verdict 8 refused 14", "which has device half-0 by another claim", NULL);
    ignore_all(w);
    sandbox_stopped(w, "s-u1");
    committed(w);
    ignore_all(w);
    assert_true(create_named(w, 9, "u3", PART("most"), ""));
    expect_with(w, "verdict 9 refused 14",
                "container \"main\" of pod ns/u2, which has device half-1", NULL);
    ignore_all(w);
    sandbox_stopped(w, "s-u2");
    assert_passes(w, "u3", PART("most"));
}

/* Three devices that draw 3, 5 and 4 of 10. */
static void parts_told(struct world *w)
{
    static const struct devicemgr_counter counters[] = {{"set/c", true, 10}};
    static const char *const devices[] = {"a", "b", "c"};
    static const struct devicemgr_draw draws[] = {{"a", 0, 3}, {"b", 0, 5}, {"c", 0, 4}};

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    slice_told(
        w, (struct devicemgr_slice){"s1", DRIVER, "p", devices, 3, false, counters, 1, draws, 3});
}

/* By the sum of what is drawn; what two claims have draws once. */
static void what_several_have_of_it_counts_together(void **state)
{
    struct world *w = *state;

    parts_told(w);
    part_of(w, 1, "c1", "a:c1");
    part_of(w, 2, "c2", "a:c2");
    part_of(w, 3, "c3", "b:c3");
    part_of(w, 4, "c4", "c:c4");
    claim_allocated(w, "c1", "p", "a");
    claim_allocated(w, "c2", "p", "a");
    claim_allocated(w, "c3", "p", "b");
    claim_allocated(w, "c4", "p", "c");
    assert_passes(w, "u1", PART("c1"));
    assert_passes(w, "u1", PART("c2"));
    assert_passes(w, "u4", PART("c4"));
    sandbox_stopped(w, "s-u4");
    assert_passes(w, "u3", PART("c3"));
    assert_true(create_named(w, 7, "u4", PART("c4"), ""));
    expect_with(w, "verdict 7 refused 14", "container \"main\" of pod ns/u3, which has device b",
                NULL);
    ignore_all(w);
    devicemgr_slice_gone(w->mgr, w->now_ms, "s1"); /* nobody says so any more */
    assert_passes(w, "u4", PART("c4"));
}

/* Of another pool or driver; of what stands in no slice. */
static void what_is_of_something_else_is_in_nobodys_way(void **state)
{
    static const struct devicemgr_counter little[] = {{"set/memory", true, 1}};
    static const char *const whole[] = {"whole"};
    static const struct devicemgr_draw draws[] = {{"whole", 0, 80}};
    struct world *w = *state;

    named_parts(w);
    /* of an earlier generation */
    slice_told(w, (struct devicemgr_slice){"s2", DRIVER, "p", .apart = true, .counters = little,
                                           .counters_len = 1});
    slice_told(w,
               (struct devicemgr_slice){"s3", DRIVER, "q", whole, 1, false, little, 1, draws, 1});
    slice_told(
        w, (struct devicemgr_slice){"s4", OTHER_DRIVER, "p", whole, 1, false, little, 1, draws, 1});
    part_of(w, 11, "c-q", "q/whole:q-whole");
    claim_allocated(w, "c-q", "q", "whole");
    part_of(w, 12, "c-else", "else");
    unprepare(w, 13, "c-never"); /* it is asked for */
    ignore_all(w);
    assert_passes(w, "u1", PART("q-whole"));
    assert_passes(w, "u2", PART("else"));
    assert_passes(w, "u3", PART("half-0"));
    assert_passes(w, "u4", PART("half-1"));
    assert_int_equal(logged(w, "may still be used"), 0);
    assert_true(create_named(w, 7, "u5", PART("whole"), ""));
    allocate_as(w, "c-whole", "whole", true); /* it only looks */
    assert_passes(w, "u5", PART("whole"));
}

static void of_what_a_slice_says_too_much_of_nothing_is_known(void **state)
{
    static const struct devicemgr_counter counters[SLICE_COUNTERS_MAX + 1];
    static const struct devicemgr_draw draws[SLICE_DRAWS_MAX + 1];
    static const char *const devices[] = {"whole", "half-0"};
    const struct devicemgr_slice most[] = {
        {"s1", DRIVER, "p", devices, 2, .counters = counters,
         .counters_len = SLICE_COUNTERS_MAX + 1},
        {"s1", DRIVER, "p", devices, 2, .draws = draws, .draws_len = SLICE_DRAWS_MAX + 1}};
    struct world *w = *state;

    named_parts(w);
    assert_passes(w, "u1", PART("whole"));
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        partitions(w);
        assert_true(create_named(w, 7, "u2", PART("half-0"), ""));
        ignore_all(w);
        slice_told(w, most[i]);
        assert_passes(w, "u2", PART("half-0"));
        sandbox_stopped(w, "s-u2");
    }
}

/* Of the one that has it the cluster has not said what it is; or it only looks. */
static void of_parts_that_nobody_knows_it_is_said_once(void **state)
{
    struct world *w = *state;

    named_parts(w);
    allocate_as(w, "c-whole", "whole", true);
    assert_passes(w, "u1", PART("whole"));
    assert_passes(w, "u2", PART("half-1"));
    sandbox_stopped(w, "s-u2");
    assert_int_equal(logged(w, "may still be used"), 0);
    claim_allocated(w, "c-whole", "p", "whole");
    prepare(w, 9, "c-half-1"); /* it is not known what that has now */
    ignore_all(w);
    claim_answered(w, "half-1");
    committed(w);
    ignore_all(w);
    assert_passes(w, "u2", PART("half-1"));
    sandbox_stopped(w, "s-u2");
    assert_passes(w, "u2", PART("half-1"));
    assert_int_equal(logged(w, "which has device whole by another claim"), 1);
}

/* With what another has of which nothing is known there is too little, and without it enough: that
 * may only look, whoever has most. */
static void what_is_known_must_be_too_much_by_itself(void **state)
{
    struct world *w = *state;

    parts_told(w);
    claim_prepared(w, 1, "c1", "a:c1");
    part_of(w, 2, "c2", "b:c2");
    part_of(w, 3, "c3", "c:c3");
    claim_allocated(w, "c2", "p", "b");
    claim_allocated(w, "c3", "p", "c");
    assert_passes(w, "u1", PART("c1"));
    assert_passes(w, "u2", PART("c2"));
    assert_passes(w, "u3", PART("c3"));
    sandbox_stopped(w, "s-u3");
    assert_int_equal(logged(w, "both draw on the same counters"), 1);
    claim_allocated(w, "c1", "p", "a");
    while (w->pending)
        committed(w);
    ignore_all(w);
    assert_true(create_named(w, 7, "u3", PART("c3"), ""));
    expect_with(w, "verdict 7 refused 14", "which has device b by another claim", NULL);
}

static void a_pod_of_another_namespace_may_be_hidden(void **state)
{
    struct world *w = *state;

    w->settings.hide_other_namespaces = true;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    of_two_pods(w);
    both_known(w);
    w->pod_namespace = "other";
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
    expect_with(w, "verdict 7 refused 14", "a container of another namespace", NULL);
    assert_int_equal(logged(w, "pod ns/u1"), 1);
}

/* Claim c2's container in a sandbox that the runtime has not told of yet. */
static bool create_next(struct world *w, uint64_t number, const char *uid, const char *name_space,
                        const char *name)
{
    const char *cdi[] = {"example.com/dev=c2-0", "example.com/dev=all"};
    const struct devicemgr_create request = {.sandbox_id = "s-next",
                                             .pod_uid = uid,
                                             .pod_namespace = name_space,
                                             .pod_name = name,
                                             .container = "main",
                                             .cdi_devices = cdi,
                                             .cdi_devices_len = 2,
                                             .deadline_ms = UINT64_MAX};

    return create_claimed(w, number, &request);
}

static void next_is_refused(struct world *w, const char *uid, const char *name_space,
                            const char *name)
{
    assert_true(create_next(w, 7, uid, name_space, name));
    expect_with(w, "verdict 7 refused 14", "container \"main\" of pod ns/u1", NULL);
    ignore_all(w);
}

/* Whose sandbox nobody knows any more, nor whose uid, as in a row of an earlier release, is told by
 * name, and namespaces may begin alike. */
static void a_pod_of_a_namespace_that_begins_alike_is_another(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    world_restart(w);
    claims_find(&w->mgr->state.claims, "c1", DRIVER)->users[0].pod_uid[0] = '\0';
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    both_known(w);
    ignore_all(w);
    next_is_refused(w, "u1", "n", "u1");
    next_is_refused(w, "u1", "nsx", "u1");
    next_is_refused(w, "u1", "ns", "u");
    assert_false(create_next(w, 8, "u1", "ns", "u1")); /* made anew */
}

static void on_waits(void *user, const struct devicemgr_why *why)
{
    struct text *told = user;

    text_add(told, "%s %s%s", why->container, why->pending ? "pending" : "",
             why->forwarded ? " forwarded" : "");
    for (size_t i = 0; i < why->findings_len; i++) {
        assert_null(why->findings[i].resource);
        assert_int_equal(why->findings[i].step, DEVICEMGR_WHY_ASK);
        text_add(told, " %s: %s", why->findings[i].word, why->findings[i].text);
    }
}

static void assert_why(struct world *w, const char *expected)
{
    struct text told = {0};

    devicemgr_why(w->mgr, w->now_ms, "ns/u1", NULL, on_waits, &told);
    assert_string_equal(told.buf, expected);
}

/* What it waits for is said, though it has no devices but its claim's. */
static void who_waits_for_the_store_is_told_so(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:c1-0+all");
    ignore_all(w);
    w->slow = true;
    assert_false(create_named(w, 7, "u1", C1_GPU_0, ""));
    pass(w, 3000);
    assert_why(w,
               "main pending unstored: container \"main\" of pod \"ns/u1\": state was not stored "
               "within 3s");
    committed(w);
    assert_why(w, "main pending forwarded");
    devicemgr_create_answered(w->mgr, w->now_ms, 7, "k");
    assert_why(w, "");
    ignore_all(w);
}

/* A StatefulSet makes one, when its pod was deleted by force. */
static void a_pod_of_the_same_name_is_another(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    world_restart(w); /* which sandbox is whose says the runtime in a moment */
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    both_known(w);
    next_is_refused(w, "another", "ns", "u1");
    assert_false(create_next(w, 8, "u1", "ns", "u1")); /* made anew */
}

/* Who is killed in that moment would let another have its device, as nobody else knows who runs. */
static void who_is_to_run_with_a_claim_is_stored_first(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    sandbox_stopped(w, "s-u1");
    committed(w);
    both_known(w);
    assert_false(create_named(w, 7, "u1", C1_GPU_0, ""));
    expect(w, "commit claim c1 *");
    expect_nothing(w);
    assert_int_equal(w->passed, 0); /* it waits */
    world_restart(w);               /* nothing was stored, and nothing is made */
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    both_known(w);
    assert_false(create_named(w, 8, "u1", C1_GPU_0, ""));
    expect_stored(w, "commit claim c1 *");
    assert_int_equal(w->passed, 8);
    assert_false(create_named(w, 9, "u1", C1_GPU_0, "")); /* that is stored */
    expect_nothing(w);
    world_restart(w);
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    both_known(w);
    next_is_refused(w, "u2", "ns", "u2");
}

/* As one that is made again: its device has a row, and the claim has been prepared since. */
static void who_has_devices_too_waits_for_its_claims(void **state)
{
    const char *name = GPU_0;
    char *key = request_token_key(GPU), *value;
    struct ids ids = {0};
    struct devicemgr_annotation token = {.key = key};
    struct devicemgr_create request = {.sandbox_id = "s-u1",
                                       .pod_uid = "u1",
                                       .pod_namespace = "ns",
                                       .pod_name = "u1",
                                       .container = "main",
                                       .container_annotations = &token,
                                       .container_annotations_len = 1,
                                       .cdi_devices = &name,
                                       .cdi_devices_len = 1,
                                       .deadline_ms = UINT64_MAX};
    struct world *w = *state;

    ids_add(&ids, "g0");
    token.value = value = request_token_value(GPU, &ids);
    u1_has_g0(w, "g0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_true(devicemgr_create(w->mgr, w->now_ms, 7, &request));
    devicemgr_run(w->mgr);
    expect(w, "commit claim c1 *");
    expect_nothing(w);
    commit_failed(w, "disk full");
    expect_with(w, "verdict 7 refused 14", "cannot be stored: disk full", NULL);
    assert_true(devicemgr_create(w->mgr, w->now_ms, 8, &request));
    devicemgr_run(w->mgr);
    expect_stored(w, "commit claim c1 *");
    expect(w, "verdict 8 forward *");
    create_answered(w, 8, NULL);
    assert_true(devicemgr_create(w->mgr, w->now_ms, 9, &request)); /* that is stored */
    devicemgr_run(w->mgr);
    expect(w, "verdict 9 forward *");
    expect_nothing(w);
    ids_fini(&ids);
    free(key);
    free(value);
}

/* As of one with devices: what waits is kept, and has its bounds. */
static void who_would_wait_beyond_the_bounds_is_refused(void **state)
{
    const char *name = GPU_0;
    char long_name[5000], uid[32];
    struct devicemgr_create request = {.sandbox_id = "s-u1",
                                       .pod_uid = "u1",
                                       .pod_namespace = "ns",
                                       .pod_name = long_name,
                                       .container = "main",
                                       .cdi_devices = &name,
                                       .cdi_devices_len = 1,
                                       .deadline_ms = UINT64_MAX};
    struct world *w = *state;

    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    plugin_register(w, 1, GPU, "gpu.sock");
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    ignore_all(w);
    assert_true(create_claimed(w, 7, &request));
    expect_with(w, "verdict 7 refused", "have more than 4096 bytes together", NULL);
    for (uint64_t i = 0; i < CREATES_MAX; i++) {
        snprintf(uid, sizeof uid, "other%u", (unsigned)i);
        assert_true(create(w, 100 + i, uid, "main", GPU ":g0", NULL));
    }
    ignore_all(w);
    assert_true(create_named(w, 8, "u1", GPU_0, ""));
    expect_with(w, "verdict 8 refused 14:", "4096 creates wait or are under way already", NULL);
}

static void who_cannot_be_stored_with_a_claim_is_refused(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_false(create_named(w, 7, "u1", GPU_0, ""));
    expect(w, "commit claim c1 *");
    commit_failed(w, "disk full");
    expect_with(w, "verdict 7 refused 14", "cannot be stored: disk full", NULL);
    expect_nothing(w);
    assert_false(create_named(w, 8, "u1", GPU_0, "")); /* that is tried at once */
    expect_stored(w, "commit claim c1 *");
    assert_int_equal(w->passed, 8);
}

static void who_waits_for_that_may_be_over(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    sandbox_ran(w, "u1", "s-u1", 0);
    assert_false(create_named(w, 7, "u1", GPU_0, ""));
    create_cancelled(w, 7);
    expect_stored(w, "commit claim c1 *");
    assert_int_equal(w->passed, 0);
    sandbox_stopped(w, "s-u1");
    expect_stored(w, "commit claim c1 *");
    sandbox_ran(w, "u1", "s-u1-1", 1);
    sandbox_stopped(w, "s-u1-1");
    expect_nothing(w);
    assert_false(create_named(w, 8, "u1", GPU_0, ""));
    sandbox_stopped(w, "s-u1");
    expect(w, "commit claim c1 *");
    committed(w);
    expect_with(w, "verdict 8 refused 9", "the pod is terminating", NULL);
    assert_int_equal(w->passed, 0);
}

/* The kubelet has another claim with the same names prepared by itself. */
static void but_not_as_what_is_owed_is_unprepared(void **state)
{
    struct world *w = *state;

    slice_is(w, "p", "gpu-0");
    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    driver_lost(w, 1, "closed");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "claim 6 done");
    driver_connected(w, 1);
    expect(w, "unprepare c1 *");
    sandbox_ran(w, "u1", "s-u1", 0);
    prepare_of(w, 8, "other.example.com", "c2");
    expect(w, "commit claim c2 *"); /* under way */
    assert_false(create_named(w, 7, "u1", GPU_0, ""));
    claim_unprepared(w);
    committed(w);
    expect_stored(w, "commit -claim c1 *");
    expect_nothing(w);
    assert_int_equal(w->passed, 7);
}

static void who_had_it_before_a_restart_is_asked_for(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    w->looks = true;
    world_restart(w);
    expect(w, "look c1 (ns/c1)");
    runtime_listed(w, "u1/main u2");
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    both_known(w);
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
}

/* As when a pod was deleted by force, and its claim with it, and the shim is upgraded. */
static void what_the_cluster_said_before_a_restart_counts(void **state)
{
    static const struct {
        const char *shares;
        bool looks;
        bool waits;
    } cases[] = {{NULL, false, true}, {"s", false, false}, {NULL, true, false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *w = *state;

        of_two_pods(w);
        allocate(w, "c1", cases[i].shares, cases[i].looks);
        assert_passes(w, "u3", C1_GPU_0);
        world_restart(w);
        runtime_listed(w, "u1/main u2 u3/main");
        ignore_all(w);
        driver_up(w, 1, DRIVER);
        claim_allocated(w, "c2", "p", "gpu-0"); /* and c1 is there no more */
        assert_int_equal(create_named(w, 7, "u2", C2_GPU_0, ""), cases[i].waits);
        ignore_all(w);
        world_teardown(state);
        claims_setup(state);
    }
}

#define C1_GPU_1 "example.com/dev=c1-1 example.com/dev=all"

/* As of a named claim whose pod was deleted by force: it is allocated anew for another pod, and the
 * kubelet, which has restarted, prepares it anew. */
static void what_a_claim_had_before_is_with_whom_it_runs(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    prepared_anew(w, 8, "c1", "gpu-1:c1-1+all");
    for (int i = 0; i < 2; i++) {
        assert_true(create_named(w, 9, "u2", C2_GPU_0, ""));
        expect_with(w, "verdict 9 refused 14", "device gpu-0 of claim c2",
                    "container \"main\" of pod ns/u1", NULL);
        world_restart(w);
        ignore_all(w);
        driver_up(w, 1, DRIVER);
        claim_allocated(w, "c2", "p", "gpu-0");
        claim_allocated(w, "c1", "p", "gpu-1");
        runtime_cdi(w, DEVICEMGR_CDI_READ);
    }
    assert_passes(w, "u3", C1_GPU_1); /* what it has now is free */
    sandbox_stopped(w, "s-u3");
    assert_passes(w, "u1", C1_GPU_1); /* made again */
    world_restart(w);
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    both_known(w);
    assert_passes(w, "u2", C2_GPU_0);
}

/* Its pod has the claim, and has had another device by it. */
static void who_has_a_claim_with_what_it_had_before_has_not_what_it_has_now(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    assert_passes(w, "u2", C2_GPU_1);
    claim_allocated(w, "c2", "p", "gpu-1");
    prepared_anew(w, 8, "c1", "gpu-1:c1-1+all");
    assert_true(create_named(w, 9, "u1", C1_GPU_1, ""));
    expect_with(w, "verdict 9 refused 14", "device gpu-1 of claim c1",
                "container \"main\" of pod ns/u2", NULL);
}

static void what_was_shared_or_looked_at_before_is_in_nobodys_way(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "*gpu-0:c1-0+all");
    claim_prepared(w, 6, "c2", "*gpu-0:c2-0+all");
    claim_prepared(w, 7, "c3", "gpu-0:c3-0+all");
    assert_passes(w, "u1", C1_GPU_0);
    assert_passes(w, "u3", "example.com/dev=c3-0 example.com/dev=all");
    claim_allocated(w, "c2", "p", "gpu-0");
    prepared_anew(w, 8, "c1", "gpu-1:c1-1+all");
    prepared_anew(w, 9, "c3", "gpu-2:c3-2+all");
    allocate_as(w, "c3", "gpu-2", true);
    while (w->pending)
        committed(w);
    ignore_all(w);
    claim_prepared(w, 10, "c4", "gpu-0:c4-0+all");
    claim_allocated(w, "c4", "p", "gpu-0");
    forget_logs(w);
    assert_passes(w, "u2", C2_GPU_0);
    assert_int_equal(logged(w, "may still be used"), 0);
    sandbox_stopped(w, "s-u2");
    assert_passes(w, "u4", "example.com/dev=c4-0 example.com/dev=all");
    assert_int_equal(logged(w, "may still be used"), 0);
    sandbox_stopped(w, "s-u4");
    allocate_as(w, "c3", "gpu-2", false);
    assert_true(create_named(w, 11, "u4", "example.com/dev=c4-0 example.com/dev=all", ""));
}

/* For another pod, which has asked for it meanwhile. */
static void what_is_told_of_a_claim_while_it_is_unprepared_counts(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    claim_allocated(w, "c1", "p", "gpu-0");
    committed(w);
    unprepare(w, 7, "c2");
    ignore_all(w);
    committed(w);
    expect(w, "unprepare c2 *");
    prepare(w, 8, "c2");
    claim_unprepared(w);
    claim_allocated(w, "c2", "p", "gpu-0");
    expect_stored(w, "commit -claim c2 *");
    ignore_all(w);
    committed(w);
    expect(w, "prepare c2 *");
    claim_answered(w, "gpu-0:c2-0+all");
    expect_stored(w, "commit claim c2 *");
    expect(w, "claim 8 done*");
    assert_true(create_named(w, 9, "u2", C2_GPU_0, ""));
    expect_with(w, "verdict 9 refused 14", "container \"main\" of pod ns/u1", NULL);
}

/* That says what those have who ran with it, and it has none of them any more. */
static void what_was_told_of_it_before_that_does_not(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_prepared(w, 6, "c2", "gpu-0");
    assert_passes(w, "u1", GPU_0); /* by one of them: c2 is not kept by it */
    both_known(w);
    while (w->pending)
        committed(w);
    ignore_all(w);
    unprepare(w, 7, "c2");
    expect_stored(w, "commit claim c2 *");
    expect(w, "unprepare c2 *");
    prepare(w, 8, "c2");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c2 *");
    ignore_all(w);
    committed(w);
    expect(w, "prepare c2 *");
    claim_answered(w, "gpu-0:c2-0+all");
    expect_stored(w, "commit claim c2 *");
    expect(w, "claim 8 done*");
    forget_logs(w);
    assert_passes(w, "u2", C2_GPU_0);
    assert_int_equal(logged(w, "may still be used"), 1);
}

/* The cluster has not said yet what it has by now: who runs with it has what it had. */
static void who_runs_with_a_claim_that_is_asked_for_anew_is_known_to(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    prepare(w, 8, "c1");
    while (w->pending)
        committed(w);
    ignore_all(w);
    assert_true(create_named(w, 9, "u2", C2_GPU_0, ""));
    expect_with(w, "verdict 9 refused 14", "container \"main\" of pod ns/u1", NULL);
    driver_lost(w, 1, "crashed"); /* which may have others for it by now */
    unprepare(w, 10, "c1");
    assert_true(create_named(w, 11, "u2", C2_GPU_0, ""));
    world_restart(w);
    runtime_listed(w, "u1/main u2");
    ignore_all(w);
    driver_register(w, 1, DRIVER, "/x/1.sock");
    while (w->pending)
        committed(w);
    ignore_all(w);
    driver_connected(w, 1);
    expect(w, "prepare c1 *"); /* nobody knows whether it has it yet */
    claim_failed(w, 13, "busy");
    claim_allocated(w, "c2", "p", "gpu-0");
    assert_true(create_named(w, 12, "u2", C2_GPU_0, ""));
    ignore_all(w);
    sandbox_stopped(w, "s-u1");
    assert_passes(w, "u2", C2_GPU_0);
    prepare(w, 13, "c1"); /* of which nothing is known then */
    while (w->pending)
        committed(w);
    claim_answered(w, "gpu-0:c1-0+all");
    while (w->pending)
        committed(w);
    assert_passes(w, "u1", C1_GPU_0);
}

static void what_a_claim_had_before_is_drawn_on(void **state)
{
    struct world *w = *state;

    parts_told(w);
    part_of(w, 1, "c1", "b:c1");
    part_of(w, 3, "c3", "c:c3");
    part_of(w, 4, "c4", "a:c4");
    assert_passes(w, "u1", PART("c1"));
    prepared_anew(w, 5, "c1", "a:c1-a");
    claim_allocated(w, "c3", "p", "c");
    claim_allocated(w, "c4", "p", "a");
    assert_passes(w, "u3", PART("c3")); /* 5 and 4 of 10 */
    assert_true(create_named(w, 7, "u4", PART("c4"), ""));
    expect_with(w, "verdict 7 refused 14", "container \"main\" of pod ns/u1, which has device b",
                NULL);
    ignore_all(w);
    sandbox_stopped(w, "s-u3");
    prepared_anew(w, 8, "c1", "b:c1-b");
    assert_passes(w, "u2", PART("c1-b"));
    assert_passes(w, "u3", PART("c3")); /* what two have by now and from before is drawn once */
    sandbox_stopped(w, "s-u1");
    sandbox_stopped(w, "s-u2");
    assert_passes(w, "u4", PART("c4"));
}

#define C1_BOTH "example.com/dev=c1-0 " C1_GPU_1

/* Its create goes on, with other names; what these are is the next to be expected. */
static void renamed(struct world *w, const char *uid, const char *field, const char *annotated)
{
    while (w->pending)
        committed(w);
    ignore_all(w);
    assert_false(create_named(w, 78, uid, field, annotated));
    while (w->pending)
        committed(w);
    while (w->lines && strncmp(w->lines->text, "rename", 6) != 0)
        expect(w, ""); /* any */
}

/* It goes on with what it names. */
static void stays(struct world *w, const char *uid, const char *field)
{
    assert_false(create_named(w, 79, uid, field, ""));
    while (w->pending)
        committed(w);
    for (; w->lines; expect(w, ""))
        assert_int_not_equal(strncmp(w->lines->text, "rename", 6), 0);
}

/* As by a kubelet up to 1.36.2 that has restarted. */
static void what_a_claim_had_before_is_not_given_beside_what_it_has(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    prepared_anew(w, 8, "c1", "gpu-1:c1-1+all");
    for (int i = 0; i < 2; i++) {
        renamed(w, "u3", C1_BOTH, "");
        expect(w, "rename example.com/dev=c1-0 to none");
        expect_nothing(w);
        world_restart(w);
        ignore_all(w);
        driver_up(w, 1, DRIVER);
        both_known(w);
        runtime_cdi(w, DEVICEMGR_CDI_READ);
        sandbox_stopped(w, "s-u1");
    }
    assert_passes(w, "u2", C2_GPU_0);
    claim_prepared(w, 10, "c4", "gpu-1:c4-1");
    claim_allocated(w, "c4", "p", "gpu-1");
    claim_allocated(w, "c1", "p", "gpu-1");
    ignore_all(w);
    assert_true(create_named(w, 11, "u4", "example.com/dev=c4-1", ""));
    expect_with(w, "verdict 11 refused 14", "container \"main\" of pod ns/u3", NULL);
}

/* As by one that was told nothing of a prepare that was ours; whoever ran with it has ended. */
static void who_names_what_a_claim_had_before_is_given_what_it_has(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    prepared_anew(w, 8, "c1", "gpu-1:c1-1+all");
    pass(w, CLAIM_USER_COMES_MS);
    ignore_all(w);
    runtime_listed(w, "u1 u2");
    renamed(w, "u1", C1_GPU_0, C1_GPU_0);
    expect(w, "rename example.com/dev=c1-0 to example.com/dev=c1-1");
    assert_passes(w, "u2", C2_GPU_0);
    claim_prepared(w, 10, "c4", "gpu-1:c4-1");
    claim_allocated(w, "c4", "p", "gpu-1");
    ignore_all(w);
    assert_true(create_named(w, 11, "u4", "example.com/dev=c4-1", ""));
    expect_with(w, "verdict 11 refused 14", "container \"main\" of pod ns/u1", NULL);
}

/* Its last pod has ended before the driver answers others, or names the same otherwise. */
static void what_nobody_has_of_before_is_not_given_either(void **state)
{
    static const char *const cases[] = {"gpu-1:c1-1+all", "gpu-0:c1-1+all"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *w = *state;

        of_two_pods(w);
        sandbox_stopped(w, "s-u1");
        prepared_anew(w, 8, "c1", cases[i]);
        renamed(w, "u3", C1_BOTH, "");
        expect(w, "rename example.com/dev=c1-0 to none");
        prepared_anew(w, 9, "c1", "gpu-2:c1-2");
        renamed(w, "u3", C1_BOTH " example.com/dev=c1-2", "");
        expect(w, "rename example.com/dev=c1-0 to none");
        expect(w, "rename example.com/dev=c1-1 to none");
        expect_nothing(w); /* c2 has the common one */
        prepared_anew(w, 10, "c1", "gpu-0:c1-0+all");
        stays(w, "u3", C1_GPU_0);
        world_teardown(state);
        claims_setup(state);
    }
}

/* What a container has of a claim is what is for the requests that it names of it. */
static void who_names_one_request_is_given_what_is_for_that(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:c1-0@a nic-0:c1-n0@b any-0:c1-a0");
    prepared_anew(w, 6, "c1", "gpu-1:c1-1@a nic-1:c1-n1@b any-0:c1-a0");
    renamed(w, "u1", "example.com/dev=c1-0 example.com/dev=c1-a0", "");
    expect(w, "rename example.com/dev=c1-0 to example.com/dev=c1-1");
    expect_nothing(w);
    prepared_anew(w, 7, "c1", "all-1:c1-2");
    renamed(w, "u2", "", "example.com/dev=c1-n0 example.com/dev=c1-a0");
    expect(w, "rename example.com/dev=c1-n0 to example.com/dev=c1-2");
    expect(w, "rename example.com/dev=c1-a0 to example.com/dev=c1-2");
    prepared_anew(w, 8, "c1", "");
    renamed(w, "u3", "example.com/dev=c1-2", "");
    expect(w, "rename example.com/dev=c1-2 to none");
    expect_nothing(w);
}

/* A driver that had one name for all that a claim has, until its next release. */
static void a_name_of_several_is_what_each_of_them_was_for(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:c1@a nic-0:c1@b");
    prepared_anew(w, 6, "c1", "gpu-0:c1-g@a nic-0:c1-n@b fpga-0:c1-f@d");
    renamed(w, "u1", "example.com/dev=c1", "");
    expect(w, "rename example.com/dev=c1 to example.com/dev=c1-g,example.com/dev=c1-n");
    expect_nothing(w);
}

/* And that does not have the claim's uid in it. */
static void any_of_them_says_that_it_is_by_the_claim(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:all@a nic-0:all@b");
    prepared_anew(w, 6, "c1", "gpu-0:g@a nic-0:n@b");
    renamed(w, "u1", "example.com/dev=all example.com/dev=n", "");
    expect(w, "rename example.com/dev=all to example.com/dev=g");
    expect_nothing(w);
}

/* The kubelet names all of each device. */
static void what_is_common_to_them_is_what_is_named_with_it(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:c1-g+common@a nic-0:c1-n+common@b");
    prepared_anew(w, 6, "c1", "gpu-0:c1-g@a nic-0:c1-n@b");
    renamed(w, "u1", "example.com/dev=c1-n example.com/dev=common", "");
    expect(w, "rename example.com/dev=common to none");
    expect_nothing(w);
}

static void reserve(struct world *w, const char *claim, const char *pod_uid)
{
    const struct devicemgr_claim_consumers consumers = {.reserved_for = &pod_uid,
                                                        .reserved_for_len = 1};

    devicemgr_claim_consumers(w->mgr, w->now_ms, claim, &consumers);
}

/* Names that are the device's, whatever claim it is given by. */
static void what_may_be_by_another_claim_stays(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0");
    claim_prepared(w, 6, "c2", "gpu-0");
    claim_prepared(w, 7, "c3", "gpu-0");
    prepared_anew(w, 8, "c3", "gpu-2");
    prepared_anew(w, 9, "c1", "gpu-1");
    stays(w, "u3", GPU_0 " " GPU_1); /* by c2 */
    reserve(w, "c2", "u2");
    stays(w, "u3", GPU_0 " " GPU_1);
    reserve(w, "c1", "u2");
    stays(w, "u2", GPU_0 " " GPU_1);
    reserve(w, "c1", "u3");
    renamed(w, "u3", GPU_0, "");
    expect(w, "rename " GPU_0 " to " GPU_1);
    expect_nothing(w);
}

static void nor_is_it_by_a_claim_that_is_known_not_to_be_the_pods(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepared_anew(w, 8, "c1", "gpu-1");
    stays(w, "u3", GPU_0); /* by one that is not known, perhaps */
    renamed(w, "u3", GPU_0 " " GPU_1, "");
    expect(w, "rename " GPU_0 " to none");
    reserve(w, "c1", "u2");
    stays(w, "u3", GPU_0 " " GPU_1);
}

static void nor_by_one_of_which_it_names_what_is_for_another_request(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:gpu-0@a nic-0:nic-0@b");
    prepared_anew(w, 8, "c1", "gpu-1:gpu-1@a nic-0:nic-0@b");
    stays(w, "u3", GPU_0 " example.com/dev=nic-0");
    renamed(w, "u3", GPU_0 " " GPU_1 " example.com/dev=nic-0", "");
    expect(w, "rename " GPU_0 " to none");
    expect_nothing(w);
}

/* Nor of one that the kubelet had prepared while the driver was there anything is known. */
static void nor_where_the_driver_was_with_the_kubelet_before(void **state)
{
    const struct devicemgr_driver_instance there = {.name = DRIVER, .endpoint = "/k/1.sock"};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    driver_deregister(w, 1);
    assert_true(devicemgr_driver_moved(w->mgr, w->now_ms, 9, &there));
    driver_deregister(w, 9);
    driver_register(w, 2, DRIVER, "/x/2.sock");
    driver_connected(w, 2);
    while (w->pending)
        committed(w);
    ignore_all(w);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0");
    prepared_anew(w, 8, "c1", "gpu-1");
    stays(w, "u3", GPU_0 " " GPU_1);
    reserve(w, "c1", "u3");
    renamed(w, "u3", GPU_0 " " GPU_1, "");
    expect(w, "rename " GPU_0 " to none");
}

static void what_a_claim_had_is_forgotten_when_it_is_unprepared(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:c1-0+all");
    prepared_anew(w, 6, "c1", "gpu-1:c1-1+all");
    unprepare(w, 7, "c1");
    committed(w);
    ignore_all(w);
    claim_unprepared(w);
    prepare(w, 8, "c1");
    while (w->pending)
        committed(w);
    claim_answered(w, "gpu-1:c1-1+all");
    while (w->pending)
        committed(w);
    ignore_all(w);
    stays(w, "u1", C1_BOTH);
    sandbox_stopped(w, "s-u1");
    prepared_anew(w, 9, "c1", "gpu-2:c1-2+all");
    renamed(w, "u1", C1_BOTH, "");
    expect(w, "rename example.com/dev=c1-1 to example.com/dev=c1-2");
}

/* The kubelet may have had it prepared there. */
static void of_a_driver_that_is_with_the_kubelet_all_stays(void **state)
{
    const struct devicemgr_driver_instance there = {.name = DRIVER, .endpoint = "/k/1.sock"};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    claim_prepared(w, 5, "c1", "gpu-0:c1-0+all");
    prepared_anew(w, 6, "c1", "gpu-1:c1-1+all");
    assert_true(devicemgr_driver_moved(w->mgr, w->now_ms, 9, &there));
    stays(w, "u1", C1_BOTH);
}

/* The store has lost its row, and it is not back yet. */
static void of_one_of_which_nothing_is_known_it_is_left_out(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0:c1-0+all");
    prepared_anew(w, 6, "c1", "gpu-1:c1-1+all");
    world_store(w, DEVICEMGR_RECORD_DRIVER, DRIVER, "", "", NULL, 0);
    world_restart(w);
    runtime_cdi(w, DEVICEMGR_CDI_READ);
    renamed(w, "u1", C1_BOTH, "");
    expect(w, "rename example.com/dev=c1-0 to none");
    expect_nothing(w);
}

/* When no pod is to use a claim any more its allocation is taken back, and the claim stays: that no
 * pod runs with its device says nobody. */
static void what_is_allocated_no_more_is_with_whom_it_runs(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    both_known(w);
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c1", false, NULL, 0);
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
    expect_with(w, "verdict 7 refused 14", "container \"main\" of pod ns/u1", NULL);
    ignore_all(w);
    assert_passes(w, "u3", C1_GPU_0); /* with which it is stored */
    world_restart(w);
    runtime_listed(w, "u1/main u2 u3/main");
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    devicemgr_claim_allocation(w->mgr, w->now_ms, "c1", false, NULL, 0);
    claim_allocated(w, "c2", "p", "gpu-0");
    assert_true(create_named(w, 8, "u2", C2_GPU_0, ""));
    ignore_all(w);
    sandbox_stopped(w, "s-u1");
    sandbox_stopped(w, "s-u3");
    assert_passes(w, "u2", C2_GPU_0);
}

/* The agent may be away while pods come. */
static void what_the_cluster_says_of_one_that_runs_is_stored(void **state)
{
    struct world *w = *state;

    of_two_pods(w);
    ignore_all(w);
    allocate(w, "c2", NULL, false); /* nobody runs with it: its row comes with who does */
    expect_nothing(w);
    allocate(w, "c1", NULL, false);
    expect_stored(w, "commit claim c1 *");
    allocate(w, "c1", NULL, false);
    expect_nothing(w);
    world_restart(w);
    runtime_listed(w, "u1/main u2");
    ignore_all(w);
    driver_up(w, 1, DRIVER);
    claim_allocated(w, "c2", "p", "gpu-0"); /* and c1 is there no more */
    assert_true(create_named(w, 7, "u2", C2_GPU_0, ""));
}

/* ---- what the runtime cannot resolve ---- */

#define ALL "example.com/dev=all"
#define WORDS                                                                                      \
    "failed to create containerd container: CDI device injection failed: unresolvable CDI "        \
    "devices "

static void refused(struct world *w, const char *words)
{
    devicemgr_create_refused(w->mgr, w->now_ms, words);
    devicemgr_run(w->mgr);
}

static void it_is_prepared_anew(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0:gpu-0+all");
    claim_prepared(w, 6, "c2", "gpu-1:gpu-1+all");
    assert_passes(w, "u1", GPU_0 " " ALL);
    forget_logs(w);
    refused(w, WORDS "other.com/x=y, " GPU_0 ", " ALL); /* of c2 there is no container */
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "prepare c1 *");
    expect_nothing(w);
    refused(w, WORDS GPU_0); /* it is being done */
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect(w, "commit claim c1 *");
    committed(w);
    expect_nothing(w); /* nobody has asked */
    assert_string_equal(claim_on_disk(w, "c1", DRIVER), "prepared");
    assert_int_equal(logged(w, "claim ns/c1, driver " DRIVER ": "), 2);
}

/* The kubelet has asked for it by itself, and the answer is being stored. */
static void one_that_was_answered_just_now_is_not_prepared_anew(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    prepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect(w, "commit claim c1 *");
    refused(w, WORDS GPU_0);
    expect_nothing(w);
    committed(w);
    expect(w, "claim 6 done: gpu-0");
    expect_nothing(w);
}

/* Else it would be prepared behind the kubelet's back, and its device be nobody's to give away. */
static void nor_is_one_that_is_to_be_unprepared(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    pass(w, CLAIM_USER_COMES_MS);
    unprepare(w, 6, "c1");
    expect(w, "list");
    refused(w, WORDS GPU_0); /* who waits for the list has it for a user still */
    expect_nothing(w);
    runtime_listed(w, "");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    expect_stored(w, "commit -claim c1 *");
    expect(w, "claim 6 done");
    expect_nothing(w);
}

static void of_other_words_nothing_comes(void **state)
{
    static const char *const words[] = {
        "",
        "no such image",
        "unresolvable CDI devices ",
        "unresolvable CDI devices , ",
        WORDS "other.com/x=y",
        ("CDI device injection failed: failed to inject devices: " GPU_0)};
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        refused(w, words[i]);
    expect_nothing(w);
}

/* c1, of which the driver says the same. */
static void renewed(struct world *w)
{
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect(w, "commit claim c1 *");
    committed(w);
    expect_nothing(w);
}

static void where_that_does_not_help_it_is_done_less_and_less(void **state)
{
    uint64_t pause_ms = ANEW_MS_MIN;
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    for (size_t i = 0; i < 8; i++) {
        refused(w, WORDS GPU_0);
        renewed(w);
        pass(w, pause_ms - 1);
        refused(w, WORDS GPU_0);
        expect_nothing(w);
        pass(w, 1);
        pause_ms = pause_ms * 2 < ANEW_MS_MAX ? pause_ms * 2 : ANEW_MS_MAX;
    }
    assert_int_equal(pause_ms, ANEW_MS_MAX);
    pass(w, ANEW_MS_MAX); /* it was well for so long */
    refused(w, WORDS GPU_0);
    renewed(w);
    pass(w, ANEW_MS_MIN);
    refused(w, WORDS GPU_0);
    renewed(w);
}

static void a_driver_that_fails_it_is_logged(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    refused(w, WORDS GPU_0);
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "prepare c1 *");
    claim_failed(w, 13, "no space");
    expect_nothing(w);
    assert_int_equal(logged(w, "preparing it anew failed: no space"), 1);
    prepare(w, 6, "c1"); /* the kubelet's own, then */
    expect(w, "prepare c1 *");
}

/* The kubelet does not ask as long as the sandbox lives. */
static void one_that_failed_is_prepared_anew_again(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    refused(w, WORDS GPU_0);
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_failed(w, 13, "no space");
    refused(w, WORDS GPU_0);
    expect_nothing(w);
    pass(w, ANEW_MS_MIN);
    refused(w, WORDS GPU_0);
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

/* Nor does it where it takes the claim for prepared, since it was not told otherwise. */
static void so_is_one_that_could_not_be_unprepared(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    claim_failed(w, 13, "busy");
    expect(w, "claim 6 refused 13*");
    refused(w, WORDS GPU_0); /* nobody was asked for with it */
    expect_nothing(w);
    assert_passes(w, "u2", GPU_0); /* it is asked to, with that */
    refused(w, WORDS GPU_0);
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

static void and_one_that_was_as_the_kubelet_had_given_up(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    unprepare(w, 6, "c1");
    expect_stored(w, "commit claim c1 *");
    expect(w, "unprepare c1 *");
    claim_cancelled(w, 6);
    claim_unprepared(w);
    expect_nothing(w);
    assert_passes(w, "u2", GPU_0); /* it is asked to, with that */
    refused(w, WORDS GPU_0);
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_nothing(w);
}

static void one_that_is_away_is_waited_for_and_given_up(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    driver_lost(w, 1, "crashed");
    refused(w, WORDS GPU_0);
    expect_nothing(w);
    driver_connected(w, 1);
    renewed(w);
    driver_lost(w, 1, "crashed");
    pass(w, ANEW_MS_MIN);
    refused(w, WORDS GPU_0);
    pass(w, CLAIM_HOLD_MS);
    driver_connected(w, 1);
    expect_nothing(w);
}

static void the_kubelet_s_own_requests_follow(void **state)
{
    struct world *w = *state;

    driver_up(w, 1, DRIVER);
    claim_prepared(w, 5, "c1", "gpu-0");
    assert_passes(w, "u1", GPU_0);
    refused(w, WORDS GPU_0);
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "prepare c1 *");
    prepare(w, 6, "c1");
    sandbox_stopped(w, "s-u1");
    expect(w, "commit claim c1 *");
    committed(w);
    unprepare(w, 7, "c1");
    expect_nothing(w);
    claim_answered(w, "gpu-0");
    expect_stored(w, "commit claim c1 *");
    expect_stored(w, "commit claim c1 *");
    expect(w, "prepare c1 *");
    claim_answered(w, "gpu-0");
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "claim 6 done: gpu-0");
    expect(w, "commit claim c1 *");
    committed(w);
    expect(w, "unprepare c1 *");
    claim_unprepared(w);
    refused(w, WORDS GPU_0); /* it is over */
    committed(w);
    refused(w, WORDS GPU_0);
    ignore_all(w);
    expect_drivers(w, DRIVER "+");
}

int main(void)
{
#define CLAIMS_TEST(test) cmocka_unit_test_setup_teardown(test, claims_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        CLAIMS_TEST(one_that_would_start_without_its_device_is_refused),
        CLAIMS_TEST(one_that_reads_annotations_needs_them),
        CLAIMS_TEST(where_nobody_knows_it_passes_and_is_said_once),
        CLAIMS_TEST(a_device_of_a_pod_that_runs_is_not_given_to_another),
        CLAIMS_TEST(a_refusal_is_over_when_it_passes),
        CLAIMS_TEST(what_the_list_does_not_show_is_not_in_the_way),
        CLAIMS_TEST(without_the_cluster_s_word_it_is_said_once),
        CLAIMS_TEST(one_who_is_known_to_have_it_is_enough),
        CLAIMS_TEST(one_that_has_it_by_two_claims_is_refused_all_the_same),
        CLAIMS_TEST(where_names_do_not_tell_the_claims_apart_it_is_said_once),
        CLAIMS_TEST(who_may_have_it_by_the_same_claim_is_in_nobodys_way),
        CLAIMS_TEST(what_is_shared_or_only_looked_at_is_in_nobodys_way),
        CLAIMS_TEST(what_a_driver_says_is_shared_is_in_nobodys_way),
        CLAIMS_TEST(a_part_of_what_a_pod_still_has_is_not_given_to_another),
        CLAIMS_TEST(nor_is_the_whole_while_a_part_of_it_is_used),
        CLAIMS_TEST(what_several_have_of_it_counts_together),
        CLAIMS_TEST(what_is_of_something_else_is_in_nobodys_way),
        CLAIMS_TEST(of_what_a_slice_says_too_much_of_nothing_is_known),
        CLAIMS_TEST(of_parts_that_nobody_knows_it_is_said_once),
        CLAIMS_TEST(what_is_known_must_be_too_much_by_itself),
        CLAIMS_TEST(a_pod_of_another_namespace_may_be_hidden),
        CLAIMS_TEST(a_pod_of_a_namespace_that_begins_alike_is_another),
        CLAIMS_TEST(a_pod_of_the_same_name_is_another),
        CLAIMS_TEST(who_is_to_run_with_a_claim_is_stored_first),
        CLAIMS_TEST(who_waits_for_the_store_is_told_so),
        CLAIMS_TEST(who_has_devices_too_waits_for_its_claims),
        CLAIMS_TEST(who_would_wait_beyond_the_bounds_is_refused),
        CLAIMS_TEST(who_cannot_be_stored_with_a_claim_is_refused),
        CLAIMS_TEST(who_waits_for_that_may_be_over),
        CLAIMS_TEST(but_not_as_what_is_owed_is_unprepared),
        CLAIMS_TEST(who_had_it_before_a_restart_is_asked_for),
        CLAIMS_TEST(what_the_cluster_said_before_a_restart_counts),
        CLAIMS_TEST(what_a_claim_had_before_is_with_whom_it_runs),
        CLAIMS_TEST(who_has_a_claim_with_what_it_had_before_has_not_what_it_has_now),
        CLAIMS_TEST(what_was_shared_or_looked_at_before_is_in_nobodys_way),
        CLAIMS_TEST(what_is_told_of_a_claim_while_it_is_unprepared_counts),
        CLAIMS_TEST(what_was_told_of_it_before_that_does_not),
        CLAIMS_TEST(who_runs_with_a_claim_that_is_asked_for_anew_is_known_to),
        CLAIMS_TEST(what_a_claim_had_before_is_drawn_on),
        CLAIMS_TEST(what_a_claim_had_before_is_not_given_beside_what_it_has),
        CLAIMS_TEST(who_names_what_a_claim_had_before_is_given_what_it_has),
        CLAIMS_TEST(what_nobody_has_of_before_is_not_given_either),
        CLAIMS_TEST(who_names_one_request_is_given_what_is_for_that),
        CLAIMS_TEST(a_name_of_several_is_what_each_of_them_was_for),
        CLAIMS_TEST(any_of_them_says_that_it_is_by_the_claim),
        CLAIMS_TEST(what_is_common_to_them_is_what_is_named_with_it),
        CLAIMS_TEST(what_may_be_by_another_claim_stays),
        CLAIMS_TEST(nor_is_it_by_a_claim_that_is_known_not_to_be_the_pods),
        CLAIMS_TEST(nor_by_one_of_which_it_names_what_is_for_another_request),
        CLAIMS_TEST(nor_where_the_driver_was_with_the_kubelet_before),
        CLAIMS_TEST(what_a_claim_had_is_forgotten_when_it_is_unprepared),
        CLAIMS_TEST(of_a_driver_that_is_with_the_kubelet_all_stays),
        CLAIMS_TEST(of_one_of_which_nothing_is_known_it_is_left_out),
        CLAIMS_TEST(what_is_allocated_no_more_is_with_whom_it_runs),
        CLAIMS_TEST(what_the_cluster_says_of_one_that_runs_is_stored),
        CLAIMS_TEST(it_is_prepared_anew),
        CLAIMS_TEST(one_that_was_answered_just_now_is_not_prepared_anew),
        CLAIMS_TEST(nor_is_one_that_is_to_be_unprepared),
        CLAIMS_TEST(of_other_words_nothing_comes),
        CLAIMS_TEST(where_that_does_not_help_it_is_done_less_and_less),
        CLAIMS_TEST(a_driver_that_fails_it_is_logged),
        CLAIMS_TEST(one_that_failed_is_prepared_anew_again),
        CLAIMS_TEST(so_is_one_that_could_not_be_unprepared),
        CLAIMS_TEST(and_one_that_was_as_the_kubelet_had_given_up),
        CLAIMS_TEST(one_that_is_away_is_waited_for_and_given_up),
        CLAIMS_TEST(the_kubelet_s_own_requests_follow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
