/* devicemgr/things/sidecars.c: which containers of a pod are sidecars. */
#include "devicemgr/things/sidecars.h"

#include <stdio.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/pod.h"
#include "devicemgr_world.h"

static const char *const TWO[] = {"proxy", "logs"};
static struct sidecars table;

static void told(const char *pod_uid, bool mirror, const char *const *names, size_t names_len)
{
    sidecars_set(&table, &(struct devicemgr_sidecars){.pod_uid = pod_uid,
                                                      .pod_namespace = "ns",
                                                      .pod_name = "web",
                                                      .mirror = mirror,
                                                      .names = names,
                                                      .names_len = names_len});
}

static size_t turn(const char *uid, const char *pod_namespace, bool static_pod,
                   const char *container)
{
    const struct pod pod = {.uid = (char *)uid,
                            .pod_namespace = (char *)pod_namespace,
                            .name = (char *)"web",
                            .static_pod = static_pod};

    const struct ids *names = sidecars_find(&table, &pod);

    return names ? sidecars_turn(names, container) : 0;
}

static int teardown(void **state)
{
    (void)state;
    sidecars_fini(&table);
    assert_null(table.by_uid);
    return 0;
}

static void the_last_one_is_the_first_of_them(void **state)
{
    (void)state;
    told("u1", false, TWO, 2);
    assert_int_equal(turn("u1", "ns", false, "app"), 0);
    assert_int_equal(turn("u1", "ns", false, "logs"), 1);
    assert_int_equal(turn("u1", "ns", false, "proxy"), 2);
    assert_int_equal(turn("u2", "ns", false, "proxy"), 0); /* of the same name */
}

static void what_is_told_replaces_what_was(void **state)
{
    (void)state;
    told("u1", false, TWO, 2);
    told("u1", false, TWO, 1);
    assert_int_equal(turn("u1", "ns", false, "proxy"), 1);
    assert_int_equal(turn("u1", "ns", false, "logs"), 0);
    told("u1", false, NULL, 0);
    told("u1", false, NULL, 0);
    assert_int_equal(turn("u1", "ns", false, "proxy"), 0);
    assert_null(table.by_uid);
}

static void a_static_pod_is_found_by_its_mirror(void **state)
{
    (void)state;
    told("u1", false, TWO, 1);
    told("of-the-mirror", true, TWO, 2);
    assert_int_equal(turn("of-the-file", "ns", true, "proxy"), 2);
    assert_int_equal(turn("of-the-file", "other", true, "proxy"), 0);
    assert_int_equal(turn("another", "ns", false, "proxy"), 0);
    told("of-the-mirror", true, NULL, 0);
    assert_int_equal(turn("of-the-file", "ns", true, "proxy"), 0); /* u1 is no mirror */
}

static void there_is_a_most_of_them(void **state)
{
    const char *names[SIDECARS_MAX + 1];
    char texts[SIDECARS_MAX + 1][8], uid[16];

    (void)state;
    for (size_t i = 0; i <= SIDECARS_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "c%zu", i);
        names[i] = texts[i];
    }
    told("u0", false, names, SIDECARS_MAX + 1);
    assert_int_equal(turn("u0", "ns", false, "c0"), SIDECARS_MAX);
    assert_int_equal(turn("u0", "ns", false, names[SIDECARS_MAX]), 0);
    for (size_t i = 1; i <= SIDECAR_PODS_MAX; i++) {
        snprintf(uid, sizeof uid, "u%zu", i);
        told(uid, false, TWO, 2);
    }
    assert_int_equal(HASH_COUNT(table.by_uid), SIDECAR_PODS_MAX);
    told("u0", false, TWO, 2); /* which has its place */
    assert_int_equal(turn("u0", "ns", false, "proxy"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_last_one_is_the_first_of_them, teardown),
        cmocka_unit_test_teardown(what_is_told_replaces_what_was, teardown),
        cmocka_unit_test_teardown(a_static_pod_is_found_by_its_mirror, teardown),
        cmocka_unit_test_teardown(there_is_a_most_of_them, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
