/* shim/control/status.c: what Status tells of what is published, where there is much of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "devicemgr/devicemgr.h"
#include "shim/control/limits.h"
#include "shim/control/status.h"
#include "shim/published.h"

/* As many resources as there can be (RESOURCES_MAX), with names as long as they can be, and as much
 * said of them (CLUSTER_TROUBLE_BYTES_MAX). */
#define POOLS 1024
#define NAME_BYTES 317
#define POOL_BYTES 253
#define TROUBLE_BYTES 256

struct node {
    size_t pools;
    size_t refused; /* of them: the last ones */
    struct settings settings;
    struct status status;
};

static void published(void *user, void (*each)(void *to, const struct published_pool *pool),
                      void *to)
{
    const struct node *node = user;
    char name[NAME_BYTES + 1], pool[POOL_BYTES + 1], trouble[TROUBLE_BYTES + 1];

    memset(trouble, 't', TROUBLE_BYTES);
    trouble[TROUBLE_BYTES] = '\0';
    for (size_t i = 0; i < node->pools; i++) {
        bool refused = i >= node->pools - node->refused;

        snprintf(name, sizeof name, "%0*zu", NAME_BYTES, i);
        snprintf(pool, sizeof pool, "%0*zu", POOL_BYTES, i);
        each(to, &(struct published_pool){.resource = name,
                                          .name = pool,
                                          .devices = 1,
                                          .there = !refused,
                                          .trouble = refused ? trouble : NULL});
    }
}

static void ask(struct node *node)
{
    struct devicemgr_settings core_settings = {.boot_id = "boot"};
    struct devicemgr *core = devicemgr_new(&core_settings, NULL, NULL);
    struct list_from from = {.core = core, .published = published, .user = node};
    struct report report = {.gate = ""};
    struct config_error error;

    assert_int_equal(config_load(NULL, &node->settings.config, &error), 0);
    status_init(&node->status, &node->settings, &from, &report);
    devicemgr_free(core);
}

static void node_fini(struct node *node)
{
    status_fini(&node->status);
    config_fini(&node->settings.config);
}

/* What one answer may have in CONTROL_CONNECTIONS_MAX of them is a part of what the daemon
 * takes. */
static void pools_with_long_names_do_not_make_an_answer_too_large(void **state)
{
    struct node node = {.pools = POOLS, .refused = POOLS};
    size_t bytes;

    (void)state;
    ask(&node);
    bytes = control__v1__status_response__get_packed_size(&node.status.response);
    assert_in_range(bytes, CONTROL_POOLS_BYTES_MAX - 8192, CONTROL_POOLS_BYTES_MAX + 8192);
    assert_int_equal(node.status.response.n_published + node.status.response.published_more, POOLS);
    node_fini(&node);
}

static void what_is_not_as_it_is_to_be_is_told_first(void **state)
{
    struct node node = {.pools = POOLS, .refused = 3};
    const Control__V1__StatusResponse *response = &node.status.response;
    size_t first;

    (void)state;
    ask(&node);
    assert_true(response->published_more > 0);
    for (size_t i = 0; i < response->n_published; i++) {
        const Control__V1__PublishedPool *pool = response->published[i];

        assert_int_equal(pool->there, i >= 3);
        assert_int_equal(strlen(pool->trouble), i < 3 ? TROUBLE_BYTES : 0);
        first = i < 3 ? POOLS - 3 + i : i - 3;
        assert_int_equal(strtoul(pool->resource, NULL, 10), first);
    }
    node_fini(&node);
}

static void few_are_all_told(void **state)
{
    struct node node = {.pools = 200};
    const Control__V1__StatusResponse *response = &node.status.response;

    (void)state;
    ask(&node);
    assert_int_equal(response->n_published, 200);
    assert_int_equal(response->published_more, 0);
    node_fini(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_with_long_names_do_not_make_an_answer_too_large),
        cmocka_unit_test(what_is_not_as_it_is_to_be_is_told_first),
        cmocka_unit_test(few_are_all_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
