/* devicemgr/things/cluster_taints.c. */
#include <stdio.h>

#include "devicemgr/things/cluster_taints.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static const struct devicemgr_taint BAD = {.key = "bad", .value = "", .effect = "NoExecute"};

static char told[512];

static void tell(const char *driver, const char *id, const struct taint *taint)
{
    size_t len = strlen(told);

    snprintf(told + len, sizeof told - len, "%s %s %s %s;", driver, id, taint->key, taint->words);
}

static void on_listed(void *user, const char *driver, const char *id, const struct taint *taint,
                      bool refused)
{
    (void)user;
    tell(driver, id, taint);
    if (refused)
        strcat(told, "refused;");
}

static const char *list(const struct cluster_taints *table)
{
    told[0] = '\0';
    cluster_taints_list(table, on_listed, NULL);
    return told;
}

/* `user`: how many are to be told of. */
static bool on_each(void *user, const struct taint *taint)
{
    unsigned *left = user;

    tell("", "", taint);
    return --*left > 0;
}

static const char *in_force(const struct cluster_taints *table, const char *driver,
                            const char *pool, const char *device, unsigned most)
{
    unsigned left = most;
    bool to_the_end;

    told[0] = '\0';
    to_the_end = cluster_taints_each(table, driver, pool, device, on_each, &left);
    assert_int_equal(to_the_end, left > 0);
    return told;
}

static void slice(struct cluster_taints *table, const char *uid, const char *driver,
                  const char *pool, int64_t generation, const char *key)
{
    const struct devicemgr_tainted_device is = {"gpu-0", {key, "", "NoSchedule", 0, 0}};

    cluster_taints_set_slice(table, 1000, uid, driver, pool, generation, &is, 1);
}

static void of_a_pool_the_newest_slices_count(void **state)
{
    struct cluster_taints table = {0};

    (void)state;
    slice(&table, "s1", "d", "p", 1, "old");
    slice(&table, "s2", "d", "p", 2, "new");
    slice(&table, "s3", "d", "q", 1, "of-q");
    slice(&table, "s4", "e", "p", 1, "of-e");
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 9), "  new ;");
    assert_string_equal(in_force(&table, "d", "p", "gpu-1", 9), "");
    assert_string_equal(in_force(&table, "d", "q", "gpu-0", 9), "  of-q ;");
    assert_string_equal(list(&table), "d p/gpu-0 new ;d q/gpu-0 of-q ;e p/gpu-0 of-e ;");
    assert_true(cluster_taints_drop_slice(&table, "s2"));
    assert_false(cluster_taints_drop_slice(&table, "s2"));
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 9), "  old ;");
    cluster_taints_fini(&table);
    assert_false(cluster_taints_any(&table));
}

/* Rules alone: slices, of which there are many, are not looked at. */
static void slices_without_taints_are_none_to_look_at(void **state)
{
    struct cluster_taints table = {0};

    (void)state;
    cluster_taints_set_slice(&table, 1000, "s2", "d", "p", 2, NULL, 0);
    cluster_taints_set_rule(&table, 1000, "r1",
                            &(struct devicemgr_taint_rule){"of-d", "d", NULL, NULL, BAD});
    assert_int_equal(table.of_slices, 0);
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 9), "  bad of-d;");
    slice(&table, "s1", "d", "p", 1, "old");
    assert_int_equal(table.of_slices, 1);
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 9), "  bad of-d;"); /* s2 hides it */
    cluster_taints_drop_slice(&table, "s1");
    assert_int_equal(table.of_slices, 0);
    cluster_taints_fini(&table);
}

static void a_rule_is_for_what_it_names(void **state)
{
    struct cluster_taints table = {0};

    (void)state;
    slice(&table, "s1", "d", "p", 1, "own");
    cluster_taints_set_rule(&table, 1000, "r1",
                            &(struct devicemgr_taint_rule){"of-d", "d", NULL, NULL, BAD});
    cluster_taints_set_rule(&table, 1000, "r2",
                            &(struct devicemgr_taint_rule){"of-p", NULL, "p", NULL, BAD});
    cluster_taints_set_rule(&table, 1000, "r3",
                            &(struct devicemgr_taint_rule){"of-0", NULL, NULL, "gpu-0", BAD});
    assert_true(
        cluster_taints_set_rule(&table, 1000, "r4",
                                &(struct devicemgr_taint_rule){"of-all", NULL, NULL, NULL, BAD})
            ->refused);
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 9),
                        "  own ;  bad of-d;  bad of-p;  bad of-0;");
    assert_string_equal(in_force(&table, "e", "p", "gpu-1", 9), "  bad of-p;");
    assert_string_equal(in_force(&table, "e", "q", "gpu-1", 9), "");
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 1), "  own ;"); /* until it is told */
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 2), "  own ;  bad of-d;");
    assert_string_equal(list(&table), "d p/gpu-0 own ;d */* bad of-d; p/* bad of-p;"
                                      " */gpu-0 bad of-0; */* bad of-all;refused;");
    assert_true(cluster_taints_drop_rule(&table, "r1"));
    assert_false(cluster_taints_drop_rule(&table, "r1"));
    cluster_taints_fini(&table);
}

static void what_is_no_taint_is_not_kept(void **state)
{
    static const struct devicemgr_taint none[] = {{"a key", "", "NoExecute", 0, 0},
                                                  {"k", "a value", "NoExecute", 0, 0}};
    struct cluster_taints table = {0};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct devicemgr_tainted_device is = {"gpu-0", none[i]};

        assert_null(cluster_taints_set_rule(
            &table, 1000, "r1", &(struct devicemgr_taint_rule){"n", "d", NULL, NULL, none[i]}));
        cluster_taints_set_slice(&table, 1000, "s1", "d", "p", 1, &is, 1);
        assert_string_equal(in_force(&table, "d", "p", "gpu-0", 9), "");
    }
    cluster_taints_fini(&table);
}

static void nothing_is_kept_beyond_the_bounds(void **state)
{
    static struct devicemgr_tainted_device devices[SLICE_TAINTS_MAX + 1];
    struct cluster_taints table = {0};
    char uid[16];

    (void)state;
    for (size_t i = 0; i <= SLICE_TAINTS_MAX; i++)
        devices[i] = (struct devicemgr_tainted_device){i < SLICE_TAINTS_MAX ? "gpu-0" : "beyond",
                                                       {"k", "", "NoSchedule", 0, 0}};
    cluster_taints_set_slice(&table, 1000, "s0", "d", "p", 1, devices, SLICE_TAINTS_MAX + 1);
    assert_int_equal(table.slices->taints_len, SLICE_TAINTS_MAX);
    assert_string_equal(in_force(&table, "d", "p", "beyond", 9), "");
    for (unsigned i = 1; i <= SLICES_MAX; i++) {
        snprintf(uid, sizeof uid, "s%u", i);
        slice(&table, uid, "d", "p", 1, "k");
    }
    assert_int_equal(HASH_COUNT(table.slices), SLICES_MAX);
    assert_false(cluster_taints_drop_slice(&table, uid));
    for (unsigned i = 0; i <= TAINT_RULES_MAX; i++) {
        const struct devicemgr_taint_rule rule = {"n", "d", NULL, NULL, BAD};

        snprintf(uid, sizeof uid, "r%u", i);
        assert_int_equal(cluster_taints_set_rule(&table, 1000, uid, &rule) != NULL,
                         i < TAINT_RULES_MAX);
    }
    cluster_taints_fini(&table);
}

/* They count whether anything has to be looked at at all: slices come without any, mostly. */
static void a_slice_without_taints_is_no_taint(void **state)
{
    static const struct devicemgr_tainted_device weak = {"gpu-0", {"k", "", "NoSchedule", 0, 0}};
    static const struct devicemgr_tainted_device strong = {"gpu-0", {"k", "", "NoExecute", 0, 0}};
    const struct devicemgr_taint_rule everything = {"n", NULL, NULL, NULL, BAD};
    struct cluster_taints table = {0};

    (void)state;
    cluster_taints_set_slice(&table, 1000, "s1", "d", "p", 1, NULL, 0);
    assert_false(cluster_taints_any(&table));
    cluster_taints_set_slice(&table, 1000, "s1", "d", "p", 1, &weak, 1);
    assert_true(cluster_taints_any(&table));
    assert_false(cluster_taints_no_execute(&table));
    cluster_taints_set_slice(&table, 1000, "s1", "d", "p", 1, &strong, 1);
    assert_true(cluster_taints_no_execute(&table));
    cluster_taints_set_slice(&table, 1000, "s2", "d", "p", 2, NULL, 0); /* it hides the older */
    assert_string_equal(in_force(&table, "d", "p", "gpu-0", 9), "");
    cluster_taints_drop_slice(&table, "s1");
    assert_false(cluster_taints_any(&table));
    cluster_taints_set_rule(&table, 1000, "r", &everything);
    assert_false(cluster_taints_any(&table)); /* it is refused */
    cluster_taints_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_pool_the_newest_slices_count),
        cmocka_unit_test(slices_without_taints_are_none_to_look_at),
        cmocka_unit_test(a_rule_is_for_what_it_names),
        cmocka_unit_test(what_is_no_taint_is_not_kept),
        cmocka_unit_test(nothing_is_kept_beyond_the_bounds),
        cmocka_unit_test(a_slice_without_taints_is_no_taint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
