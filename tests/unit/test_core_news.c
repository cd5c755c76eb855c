/* shim/cluster/core_news.c: what the core asks of the cluster. */
#include "tests/unit/test_wait.h"

#include "shim/cluster/core_news.h"
#include "shim/cluster/limits.h"

#define MORE 10

struct fixture {
    struct world *world;
    struct cluster_orders orders;
    struct core_news news;
    bool closed;
};

static void on_due(void *user)
{
    (void)user;
}

/* Without a host: nothing is answered here. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    cluster_orders_init(&f->orders, &f->world->loop, on_due, f);
    core_news_init(&f->news, NULL, &f->orders);
    *state = f;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    const struct cluster_orders *orders = handle->data;
    struct fixture *f = orders->user;

    f->closed = true;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;

    core_news_fini(&f->news);
    cluster_orders_fini(&f->orders, on_closed);
    WAIT(f->world, f->closed);
    result = world_free(f->world);
    free(f);
    return result;
}

static void look_up(struct fixture *f, unsigned number)
{
    char uid[16];

    snprintf(uid, sizeof uid, "c-%u", number);
    core_news_look_up(
        &f->news, &(struct devicemgr_claim){.pod_namespace = "default", .name = "gpu", .uid = uid});
}

static void a_claim_is_looked_up_once_at_a_time(void **state)
{
    struct fixture *f = *state;

    look_up(f, 1);
    look_up(f, 2);
    look_up(f, 1);
    assert_int_equal(f->orders.len, 2);
}

/* Without an agent, that is: what is to be done there must find room when one comes. */
static void the_oldest_make_room(void **state)
{
    struct fixture *f = *state;
    Agent__V1__Order *first;

    for (unsigned i = 0; i < CLUSTER_CLAIMS_MAX + MORE; i++)
        look_up(f, i);
    assert_int_equal(f->orders.len, CLUSTER_CLAIMS_MAX);
    assert_true(CLUSTER_CLAIMS_MAX < CLUSTER_ORDERS_MAX);
    assert_int_equal(cluster_orders_fill(&f->orders, &first, 1), 1);
    assert_string_equal(first->get_claim->uid, "c-10");
    look_up(f, 0); /* it may be asked anew */
    assert_int_equal(f->orders.len, CLUSTER_CLAIMS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_claim_is_looked_up_once_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(the_oldest_make_room, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
