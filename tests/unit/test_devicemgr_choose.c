/* The choice among free devices. */
#include <stdio.h>
#include <stdlib.h>

#include "devicemgr/rules/choose.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/text.h"
#include "devicemgr_world.h"

/* "g0@0 g1+@1 g2": on nodes, '+' reused; in natural order. */
static void choose(const char *free_ids, const char *preferred_ids, size_t count,
                   const char *expected)
{
    struct candidate candidates[16] = {{0}};
    struct device devices[16] = {{0}};
    int64_t nodes[16];
    char *words = strdup(free_ids), *wanted = strdup(preferred_ids), *rest = NULL;
    struct ids preferred_list = {0}, out = {0};
    size_t len = 0;
    struct text text = {0};

    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *at = strchr(word, '@'), *plus = strchr(word, '+');

        if (at) {
            nodes[len] = atoi(at + 1);
            devices[len].nodes = &nodes[len];
            devices[len].nodes_len = 1;
            *at = '\0';
        }
        if (plus) {
            candidates[len].reused = true;
            *plus = '\0';
        }
        devices[len].id = word;
        candidates[len].device = &devices[len];
        len++;
    }
    for (char *word = strtok_r(wanted, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        ids_add(&preferred_list, word);
    choose_devices(candidates, len, &preferred_list, count, &out);
    text_add_ids(&text, &out);
    assert_string_equal(text.buf, expected);
    ids_fini(&preferred_list);
    ids_fini(&out);
    free(words);
    free(wanted);
}

static void equals_go_in_natural_order(void **state)
{
    (void)state;
    choose("g1 g2 g10", "", 2, "g1,g2");
}

static void reused_ones_go_first(void **state)
{
    (void)state;
    choose("g1 g2 g3+", "g1", 1, "g3");
    choose("g1+ g2+ g3+", "", 2, "g1,g2");
    choose("g1@0 g2@1 g3+@1 g4@0", "", 2, "g2,g3"); /* and draw the others to their node */
}

static void preferred_ones_go_second(void **state)
{
    (void)state;
    choose("g1 g2 g3 g4+", "g3 g3 nonsense g2 g1", 3, "g2,g3,g4");
    choose("g1@0 g2@1 g3@1", "g2", 2, "g2,g3");
}

static void one_node_is_better_than_two(void **state)
{
    (void)state;
    choose("a@0 b@1 c@1", "", 2, "b,c");
    choose("a@0 b@0 c@0 d@1 e@1", "", 2, "d,e"); /* the smallest node that has enough */
    choose("a@1 b@1 c@0 d@0", "", 2, "c,d");     /* of equals the lower number */
}

static void two_nodes_are_better_than_three(void **state)
{
    (void)state;
    choose("a@0 b@1 c@1 d@2 e@2 f@2", "", 5, "b,c,d,e,f");
    choose("a@0 b@1 c@1 d@2 e@2 f@2", "", 4, "a,d,e,f");
}

static void those_without_topology_go_last(void **state)
{
    (void)state;
    choose("a b@1", "", 1, "b");
    choose("a b@1 c", "", 2, "a,b");
}

/* A plugin may say that each device is on a node of its own: one that lists the numbers it likes
 * must not cost a look at every device and node for each device that is taken. */
static void nodes_by_the_thousand_cost_little(void **state)
{
    size_t n = 30000, taken = 0;
    struct device_entry *list = mem_alloc(n, sizeof *list);
    int64_t *nodes = mem_alloc(n, sizeof *nodes);
    char(*ids)[16] = mem_alloc(n, sizeof *ids);
    struct candidate *candidates = mem_alloc(n, sizeof *candidates);
    struct devices devices = {0};
    struct devices_change change;
    struct ids none = {0}, out = {0};

    (void)state;
    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "d%zu", i);
        nodes[i] = (int64_t)i;
        list[i] = (struct device_entry){ids[i], true, &nodes[i], 1};
    }
    devices_update(&devices, 1, list, n, &change);
    for (size_t i = 0; i < n; i++)
        candidates[i].device = &devices.items[i];
    choose_devices(candidates, n, &none, n - 1, &out);
    for (size_t i = 0; i < n; i++)
        taken += candidates[i].taken;
    assert_int_equal(taken, n - 1);
    assert_int_equal(out.len, n - 1);
    ids_fini(&out);
    devices_fini(&devices);
    free(candidates);
    free(ids);
    free(nodes);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_go_in_natural_order),
        cmocka_unit_test(reused_ones_go_first),
        cmocka_unit_test(preferred_ones_go_second),
        cmocka_unit_test(one_node_is_better_than_two),
        cmocka_unit_test(two_nodes_are_better_than_three),
        cmocka_unit_test(those_without_topology_go_last),
        cmocka_unit_test(nodes_by_the_thousand_cost_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
