/* The manager as a whole: its run, its clock, its start and end. */
#include <stdlib.h>

#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static void nothing_happens_inside_an_event(void **state)
{
    struct world *w = *state;

    devicemgr_register(w->mgr, w->now_ms, 7, "v1beta1", "gpu.sock", 0, GPU);
    expect_nothing(w);
    devicemgr_run(w->mgr);
    expect(w, "open vendor.com/gpu gpu.sock");
}

/* A port that reports its result at once, and runs the manager, inside the call. */
static struct devicemgr *eager_mgr;
static unsigned eager_opens;

static void eager_open(void *user, uint64_t endpoint, const char *resource, const char *socket,
                       uint32_t uid)
{
    (void)user;
    (void)resource;
    (void)socket;
    (void)uid;
    eager_opens++;
    devicemgr_endpoint_lost(eager_mgr, 1, endpoint, "refused");
    devicemgr_run(eager_mgr);
    assert_int_equal(eager_opens, 1); /* the inner run did nothing */
}

static void eager_done(void *user, uint64_t registration, int code, const char *message)
{
    *(int *)user = code;
    assert_int_equal(registration, 7);
    assert_string_equal(message, "failed to dial device plugin: refused");
}

static void eager_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)user;
    (void)about;
    (void)level;
    (void)text;
}

static void a_port_may_answer_at_once(void **state)
{
    struct devicemgr_settings settings = {.grace_ms = 1, .boot_id = ""};
    struct devicemgr_ports ports = {
        .endpoint_open = eager_open, .register_done = eager_done, .log = eager_log};
    int code = 0;

    (void)state;
    eager_mgr = devicemgr_new(&settings, &ports, &code);
    eager_opens = 0;
    devicemgr_register(eager_mgr, 1, 7, "v1beta1", "gpu.sock", 0, GPU);
    devicemgr_run(eager_mgr);
    assert_int_equal(code, 2);
    devicemgr_free(eager_mgr);
    devicemgr_free(NULL);
}

static void time_never_goes_back(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = plugin_up(w, GPU, "gpu.sock", "g0", false, false);

    plugin_lost(w, endpoint, "x");
    ignore_all(w);
    plugin_lost(w, w->endpoint, "x");
    plugin_stop_stored(w, GPU);
    devicemgr_tick(w->mgr, 5);
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms - STOP_STORE_MS + GRACE_MS);
}

static void every_state_can_be_freed(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 g1 g2 g3", false, true);
    plugin_up(w, NIC, "nic.sock", "n0", false, false);
    container_made(w, 1, "u1", "main", GPU ":g0");
    assert_true(create(w, 11, "u2", "main", GPU ":g0", NULL)); /* being checked */
    assert_true(create(w, 12, "u3", "main", GPU ":g1", NULL)); /* being allocated */
    assert_true(create(w, 13, "u4", "main", GPU ":g2", NULL));
    allocated(w, "A=1"); /* being committed */
    assert_true(create(w, 14, "u5", "main", GPU ":g3", NULL));
    allocated(w, "A=1"); /* waiting for the next commit */
    devicemgr_register(w->mgr, w->now_ms, 7, "v1beta1", "gpu.sock", 0, "vendor.com/late");
    /* teardown frees it all, with actions queued */
}

static void damaged_rows_are_refused_and_cleaned_up(void **state)
{
    struct devicemgr_record bad = {DEVICEMGR_RECORD_RESOURCE, {GPU, "", ""}, "\xff", 1};
    struct world *w = *state;

    world_fresh(w);
    for (int kind = DEVICEMGR_RECORD_RESOURCE; kind <= DEVICEMGR_RECORD_LOSS + 1; kind++) {
        bad.kind = (enum devicemgr_record_kind)kind;
        assert_int_equal(devicemgr_restore(w->mgr, w->now_ms, &bad),
                         kind == DEVICEMGR_RECORD_LOSS ? 0 : -1);
    }
    devicemgr_restored(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    expect_nothing(w);
}

static void a_pod_row_without_allocations_goes_with_the_next_commit(void **state)
{
    struct world *w = *state;
    struct world_row **at;

    w->settings.annotations = true;
    w->settings.namespaces = (const char *const[]){"*"};
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    at = &w->disk;
    plugin_up(w, GPU, "gpu.sock", "g0", false, false);
    container_chosen(w, 1, "u1", "main", GPU "=1", "g0");     /* of tokens it would say something */
    while ((*at)->record.kind != DEVICEMGR_RECORD_ALLOCATION) /* lost by damage */
        at = &(*at)->next;
    world_store(w, DEVICEMGR_RECORD_ALLOCATION, (*at)->record.key[0], (*at)->record.key[1],
                (*at)->record.key[2], NULL, 0);
    world_restart(w);
    ignore_all(w);
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, "g0 g1");
    expect(w, "commit -pod u1, resource vendor.com/gpu");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_happens_inside_an_event),
        cmocka_unit_test(a_port_may_answer_at_once),
        TEST(time_never_goes_back),
        TEST(every_state_can_be_freed),
        TEST(damaged_rows_are_refused_and_cleaned_up),
        TEST(a_pod_row_without_allocations_goes_with_the_next_commit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
