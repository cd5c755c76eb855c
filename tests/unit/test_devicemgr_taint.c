/* devicemgr/things/taint.c and cluster_taints.c. */
#include <stdio.h>

#include "devicemgr/things/cluster_taints.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static void what_an_operator_writes(void **state)
{
    static const char *const bad[] = {"",         ":NoExecute", "k=v",     "k:Never", "k=:x",
                                      "k v:None", "k=a b:None", "=v:None", "k:"};
    struct taint_said said;
    char text[1024];

    (void)state;
    snprintf(text, sizeof text, "%0*d:None", (int)sizeof said.key, 1);
    assert_non_null(taint_said_read(&said, text));
    snprintf(text, sizeof text, "k=%0*d:None", (int)sizeof said.value, 1);
    assert_non_null(taint_said_read(&said, text));
    assert_null(taint_said_read(&said, "example.com/broken=fan:NoExecute"));
    assert_string_equal(said.key, "example.com/broken");
    assert_string_equal(said.value, "fan");
    assert_int_equal(said.effect, TAINT_NO_EXECUTE);
    assert_false(said.any_effect);
    assert_null(taint_said_read(&said, "k:None"));
    assert_string_equal(said.value, "");
    assert_int_equal(said.effect, TAINT_NONE);
    assert_null(taint_said_read(&said, "k"));
    assert_true(said.any_effect);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (strcmp(bad[i], "k=v") == 0) /* to take it back */
            assert_null(taint_said_read(&said, bad[i]));
        else
            assert_non_null(taint_said_read(&said, bad[i]));
    }
}

static void a_drivers_device_has_its_pool_in_front(void **state)
{
    (void)state;
    assert_string_equal(taint_device_of("gpu.example.com", "rack/1/gpu-0"), "/gpu-0");
    assert_null(taint_device_of("gpu.example.com", "gpu-0"));
    assert_null(taint_device_of("gpu.example.com", "/gpu-0"));
    assert_null(taint_device_of("gpu.example.com", "pool/"));
    assert_null(taint_device_of("vendor.com/gpu", "pool/gpu-0"));
}

/* ---- what the cluster says ---- */

static bool put(void *user, const struct taint *taint)
{
    char *text = user;

    sprintf(text + strlen(text), "%s %s=%s:%s@%d; ", taint_source_name(taint->source), taint->key,
            taint->value, taint_effect_name(taint->effect), (int)taint->added_ms);
    return true;
}

static const char *in_force(const struct cluster_taints *table, const char *device)
{
    static char text[1024];

    text[0] = '\0';
    assert_true(cluster_taints_each(table, "d.io", "p", device, put, text));
    return text;
}

static struct devicemgr_taint taint(const char *key, const char *effect)
{
    return (struct devicemgr_taint){.key = key, .value = "", .effect = effect, .age_ms = 400};
}

static void slice(struct cluster_taints *table, const char *uid, int64_t generation,
                  const char *device, const char *key, const char *effect)
{
    const struct devicemgr_tainted_device devices[] = {{device, taint(key, effect)},
                                                       {device, taint("no key", effect)}};

    cluster_taints_set_slice(table, 1000, uid, "d.io", "p", generation, devices, 2);
}

static void only_slices_of_the_highest_generation_count(void **state)
{
    struct cluster_taints table = {0};

    (void)state;
    slice(&table, "s1", 7, "g0", "old", "NoExecute");
    assert_string_equal(in_force(&table, "g0"), "slice old=:NoExecute@600; ");
    slice(&table, "s2", 8, "g1", "new", "NoSchedule");
    assert_string_equal(in_force(&table, "g0"), "");
    assert_string_equal(in_force(&table, "g1"), "slice new=:NoSchedule@600; ");
    cluster_taints_set_slice(&table, 1000, "s9", "d.io", "other", 99, NULL, 0);
    assert_string_equal(in_force(&table, "g1"), "slice new=:NoSchedule@600; ");
    assert_true(cluster_taints_drop_slice(&table, "s2"));
    assert_false(cluster_taints_drop_slice(&table, "s2"));
    assert_string_equal(in_force(&table, "g0"), "slice old=:NoExecute@600; ");
    slice(&table, "s1", 7, "g0", "strange", "NoIdea"); /* counts as None */
    assert_string_equal(in_force(&table, "g0"), "slice strange=:None@600; ");
    cluster_taints_drop_slices(&table);
    assert_string_equal(in_force(&table, "g0"), "");
    cluster_taints_fini(&table);
}

static void rules_select_by_all_that_they_name(void **state)
{
    static const struct {
        const char *driver, *pool, *device;
        bool is;
    } all[] = {{"d.io", NULL, NULL, true}, {"e.io", NULL, NULL, false}, {NULL, "p", NULL, true},
               {NULL, NULL, "g0", true},   {NULL, "p", "g1", false},    {"d.io", "p", "g0", true},
               {"d.io", "q", "g0", false}, {NULL, NULL, NULL, false}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct devicemgr_taint_rule rule = {"r", all[i].driver, all[i].pool, all[i].device,
                                                  taint("k", "NoExecute")};
        struct cluster_taints table = {0};
        const struct taint_rule *is = cluster_taints_set_rule(&table, 1000, "u", &rule);

        assert_int_equal(is->refused, i == 7);
        assert_string_equal(in_force(&table, "g0"), all[i].is ? "rule k=:NoExecute@600; " : "");
        assert_true(cluster_taints_drop_rule(&table, "u"));
        assert_false(cluster_taints_drop_rule(&table, "u"));
        assert_string_equal(in_force(&table, "g0"), "");
        cluster_taints_fini(&table);
    }
}

static void there_is_a_most_of_rules(void **state)
{
    const struct devicemgr_taint_rule rule = {"r", "d.io", NULL, NULL, taint("k", "None")};
    const struct devicemgr_taint_rule none = {"r", "d.io", NULL, NULL, taint("", "None")};
    struct cluster_taints table = {0};
    char uid[16];

    (void)state;
    assert_null(cluster_taints_set_rule(&table, 1000, "u", &none));
    for (int i = 0; i <= TAINT_RULES_MAX; i++) {
        snprintf(uid, sizeof uid, "u%d", i);
        assert_int_equal(cluster_taints_set_rule(&table, 1000, uid, &rule) != NULL,
                         i < TAINT_RULES_MAX);
    }
    assert_non_null(cluster_taints_set_rule(&table, 1000, "u0", &rule)); /* as it is now */
    cluster_taints_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_operator_writes),
        cmocka_unit_test(a_drivers_device_has_its_pool_in_front),
        cmocka_unit_test(only_slices_of_the_highest_generation_count),
        cmocka_unit_test(rules_select_by_all_that_they_name),
        cmocka_unit_test(there_is_a_most_of_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
