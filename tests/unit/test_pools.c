/* shim/cluster/pools.c: when a pool's order is made, with a core that has one of one device. What
 * becomes of pools is played by tests/sim (lifts). */
#include "shim/cluster/pools.h"

#include "cri-proto/agent_v1.pb-c.h"
#include "devicemgr/lift.h"
#include "shim/boot_clock.h"
#include "shim/cluster/limits.h"
#include "tests/unit/orders_stage.h"

#define POOL "node/gpu"

struct fixture {
    struct orders_stage stage;
    struct facts facts;
    struct pools pools;
    uint64_t now_ms;
    uint64_t version;
    bool lifted;
    const char *device;
    unsigned looks; /* at pools, and at the devices of one */
    unsigned made;
};

/* What is wrapped is given nothing by which to find it. */
static struct fixture *fixture;

uint64_t __wrap_boot_now_ms(void);
bool __wrap_host_ready(const struct host *host);
struct devicemgr *__wrap_host_core(struct host *host);
uint64_t __wrap_devicemgr_lifted_version(const struct devicemgr *mgr);
void __wrap_devicemgr_lifted(const struct devicemgr *mgr,
                             void (*each)(void *user, const struct devicemgr_lifted *lifted),
                             void *user);
void __wrap_devicemgr_lifted_devices(const struct devicemgr *mgr, const char *resource,
                                     void (*each)(void *user,
                                                  const struct devicemgr_lifted_device *device),
                                     void *user);

uint64_t __wrap_boot_now_ms(void)
{
    return fixture->now_ms;
}

bool __wrap_host_ready(const struct host *host)
{
    (void)host;
    return true;
}

struct devicemgr *__wrap_host_core(struct host *host)
{
    (void)host;
    return NULL;
}

uint64_t __wrap_devicemgr_lifted_version(const struct devicemgr *mgr)
{
    (void)mgr;
    return fixture->version;
}

void __wrap_devicemgr_lifted(const struct devicemgr *mgr,
                             void (*each)(void *user, const struct devicemgr_lifted *lifted),
                             void *user)
{
    const struct devicemgr_lifted gpu = {.resource = "v.com/gpu", .pool = "gpu", .devices = 1};

    (void)mgr;
    fixture->looks++;
    fixture->now_ms += CLUSTER_LOOK_MS; /* the next one is due at once */
    if (fixture->lifted)
        each(user, &gpu);
}

void __wrap_devicemgr_lifted_devices(const struct devicemgr *mgr, const char *resource,
                                     void (*each)(void *user,
                                                  const struct devicemgr_lifted_device *device),
                                     void *user)
{
    const struct devicemgr_lifted_device device = {.id = fixture->device, .name = fixture->device};

    (void)mgr;
    (void)resource;
    fixture->made++;
    each(user, &device);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    fixture = f;
    f->now_ms = CLUSTER_LOOK_MS;
    f->version = 1;
    f->lifted = true;
    f->device = "gpu-0";
    orders_stage_init(&f->stage);
    pools_init(&f->pools, &f->stage.world->loop, NULL, &f->stage.orders, NULL, &f->facts, "node");
    *state = f;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    (void)handle;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int result;

    pools_fini(&f->pools, on_closed);
    result = orders_stage_fini(&f->stage);
    facts_fini(&f->facts);
    free(f);
    return result;
}

static void wait_looks(struct fixture *f, unsigned looks)
{
    WAIT(f->stage.world, f->looks == looks);
}

/* The agent tells that the cluster has it with that device; NULL: not any more. */
static void told(struct fixture *f, const char *device)
{
    Agent__V1__ReportRequest report = AGENT__V1__REPORT_REQUEST__INIT;
    Agent__V1__Slice slice = AGENT__V1__SLICE__INIT;
    char *devices[] = {(char *)(uintptr_t)device};
    uint8_t bytes[256];

    slice.driver = (char *)DEVICEMGR_LIFT_DRIVER;
    slice.pool = (char *)POOL;
    slice.generation = 1;
    slice.devices = devices;
    slice.n_devices = 1;
    if (device)
        assert_true(facts_put(&f->facts, AGENT__V1__KIND__SLICE, "s", bytes,
                              agent__v1__slice__pack(&slice, bytes)) >= 0);
    else
        facts_remove(&f->facts, AGENT__V1__KIND__SLICE, "s");
    report.whole = true;
    pools_reported(&f->pools, &report);
}

/* The agent has done what was ordered, of so many slices. */
static void done(struct fixture *f, size_t slices)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;
    Agent__V1__Order *out[2];

    assert_int_equal(cluster_orders_fill(&f->stage.orders, out, 2), 1);
    assert_int_equal(out[0]->publish_pool->n_slices, slices);
    answer.id = out[0]->id;
    answer.outcome = AGENT__V1__OUTCOME__DONE;
    assert_true(cluster_orders_answered(&f->stage.orders, &answer));
}

/* It is published, as the cluster tells. */
static void publish(struct fixture *f)
{
    pools_complete(&f->pools, true);
    wait_looks(f, 1);
    assert_int_equal(f->made, 1);
    done(f, 1);
    told(f, "gpu-0");
    wait_looks(f, 2);
}

static void what_is_as_it_was_is_not_made_again(void **state)
{
    struct fixture *f = *state;

    publish(f);
    told(f, "gpu-0");
    wait_looks(f, 3);
    assert_int_equal(f->made, 1);
}

static void what_others_delete_is(void **state)
{
    struct fixture *f = *state;

    publish(f);
    told(f, NULL);
    wait_looks(f, 3);
    assert_int_equal(f->made, 2);
    done(f, 1);
}

static void so_is_what_the_core_has_otherwise(void **state)
{
    struct fixture *f = *state;

    publish(f);
    f->version++;
    f->device = "gpu-1";
    pools_look(&f->pools);
    wait_looks(f, 3);
    assert_int_equal(f->made, 2);
    done(f, 1);
}

static void and_what_was_taken_back(void **state)
{
    struct fixture *f = *state;

    publish(f);
    f->version++;
    f->lifted = false;
    pools_look(&f->pools);
    wait_looks(f, 3);
    done(f, 0);
    f->version--; /* as by two reloads, of which one takes `dra` back and one sets it */
    f->lifted = true;
    told(f, NULL);
    wait_looks(f, 4);
    assert_int_equal(f->made, 2);
    done(f, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_as_it_was_is_not_made_again),
        TEST(what_others_delete_is),
        TEST(so_is_what_the_core_has_otherwise),
        TEST(and_what_was_taken_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
