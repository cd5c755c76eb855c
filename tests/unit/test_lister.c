/* shim/runtime/lister.c and listed.c: the runtime's lists, over a real connection that comes and
 * goes. */
#include "tests/unit/runtime_fixture.h"

#include <unistd.h>

#include "shim/boot_clock.h"
#include "shim/runtime/lister.h"
#include "tests/unit/alloc_fail.h"

#define RUNNING RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING
#define EXITED RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED
#define CREATED RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED
#define UNKNOWN RUNTIME__V1__CONTAINER_STATE__CONTAINER_UNKNOWN
#define CREATED_EVENT RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_CREATED_EVENT
#define STARTED_EVENT RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_STARTED_EVENT
#define STOPPED_EVENT RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_STOPPED_EVENT
#define DELETED_EVENT RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_DELETED_EVENT

struct fixture {
    struct world *world;
    struct runtime runtime; /* pods and containers as fill() has them */
    struct lister_pace pace;
    struct lister *lister; /* NULL while it is not started */
    unsigned begun, listed, checked, cdis, lost;
    enum devicemgr_cdi cdi; /* the last */
    size_t sandboxes_len, containers_len;
    char sandboxes[256];  /* "id/uid/name/attempt", '!' behind one that is not ready, annotation */
    char containers[256]; /* "id/sandbox/name", '!' behind one that does not run, annotation */
    char ended[64];       /* ids, each followed by a space */
    enum lister_finding findings[8];
    bool stopped;
};

static void on_begins(void *user)
{
    struct fixture *f = user;

    f->begun++;
}

static void on_listed(void *user, const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                      const struct devicemgr_container *containers, size_t containers_len)
{
    struct fixture *f = user;
    size_t at = 0;

    f->sandboxes[0] = f->containers[0] = '\0';
    for (size_t i = 0; i < sandboxes_len; i++)
        at += (size_t)snprintf(
            f->sandboxes + at, sizeof f->sandboxes - at, "%s%s/%s/%s/%u%s%s%s%s", i ? " " : "",
            sandboxes[i].id, sandboxes[i].pod_uid, sandboxes[i].pod_name, sandboxes[i].attempt,
            sandboxes[i].ready ? "" : "!", sandboxes[i].annotations_len ? "," : "",
            sandboxes[i].annotations_len ? sandboxes[i].annotations[0].key : "",
            sandboxes[i].annotations_len ? sandboxes[i].annotations[0].value : "");
    at = 0;
    for (size_t i = 0; i < containers_len; i++)
        at += (size_t)snprintf(
            f->containers + at, sizeof f->containers - at, "%s%s/%s/%s%s%s%s%s", i ? " " : "",
            containers[i].id, containers[i].sandbox_id, containers[i].name,
            containers[i].running ? "" : "!", containers[i].annotations_len ? "," : "",
            containers[i].annotations_len ? containers[i].annotations[0].key : "",
            containers[i].annotations_len ? containers[i].annotations[0].value : "");
    f->listed++;
}

static void on_checked(void *user, uint64_t check, enum lister_finding finding)
{
    struct fixture *f = user;

    assert_true(check < 8);
    f->findings[check] = finding;
    f->checked++;
}

static void on_ended(void *user, const char *container_id)
{
    struct fixture *f = user;

    strcat(strcat(f->ended, container_id), " ");
}

static void on_cdi(void *user, enum devicemgr_cdi cdi)
{
    struct fixture *f = user;

    f->cdi = cdi;
    f->cdis++;
}

static void on_lost(void *user)
{
    struct fixture *f = user;

    f->lost++;
}

static const struct lister_ops OPS = {.begins = on_begins,
                                      .listed = on_listed,
                                      .ended = on_ended,
                                      .cdi = on_cdi,
                                      .lost = on_lost,
                                      .checked = on_checked};

/* Often, for tests that wait for it; and never, which is a failure of the test if it is missed. */
#define SOON_MS 5
#define NEVER_MS 3600000

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void start(struct fixture *f)
{
    f->begun = 0;
    f->lister = lister_start(&f->world->loop, f->world->path, &f->pace, &OPS, f);
    assert_int_equal(f->begun, 0);
}

static void stop(struct fixture *f)
{
    f->stopped = false;
    lister_stop(f->lister, on_stopped, f);
    f->lister = NULL;
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

/* Of a runtime that is there, up to the first list. */
static void start_listed(struct fixture *f)
{
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->listed == 1);
}

static void fill(struct runtime *runtime)
{
    *runtime = (struct runtime){
        .pods = {{"s1", "u1", "p1", true, NULL, NULL}, {"s2", "u2", "p2", false, "pk", "pv"}},
        .pods_len = 2,
        .containers = {{"c1", "s1", "main", RUNNING, "k", "v"},
                       {"c2", "s1", "init", EXITED, NULL, NULL},
                       {"c3", "s2", "new", CREATED, NULL, NULL},
                       {"c4", "s2", "odd", UNKNOWN, "k2", "v2"}},
        .containers_len = 4,
    };
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    fill(&f->runtime);
    f->pace = LISTER_PACE;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    if (f->lister)
        stop(f);
    runtime_stop(&f->runtime);
    err = world_free(f->world);
    free(f);
    return err;
}

static void lists_at_the_start(void **state)
{
    struct fixture *f = *state;

    start_listed(f);
    assert_int_equal(f->begun, 1);
    assert_string_equal(f->runtime.filter, "none");
    assert_string_equal(f->sandboxes, "s1/u1/p1/1 s2/u2/p2/1!,pkpv");
    assert_string_equal(f->containers, "c1/s1/main,kv c2/s1/init! c3/s2/new c4/s2/odd,k2v2");
}

static void tells_what_the_runtime_says_it_is(void **state)
{
    struct fixture *f = *state;
    struct lister_state runtime;
    uint64_t since_ms;

    start(f);
    lister_look(f->lister, &runtime);
    assert_false(runtime.connected);
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->runtime.versions == 1);
    world_settle(f->world);
    lister_look(f->lister, &runtime);
    assert_true(runtime.connected);
    assert_string_equal(runtime.name, "a?runtime?");
    assert_string_equal(runtime.version, "1.2");
    since_ms = runtime.since_ms;
    assert_in_range(boot_now_ms() - since_ms, 0, 60000);
    runtime_stop(&f->runtime);
    world_settle(f->world);
    lister_look(f->lister, &runtime);
    assert_false(runtime.connected);
    assert_string_equal(runtime.name, "");
    assert_true(runtime.since_ms >= since_ms);
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->runtime.versions == 2); /* it may be another one now */
}

static void tells_what_it_makes_of_cdi_devices(void **state)
{
    struct fixture *f = *state;

    f->runtime.name = "containerd"; /* 1.2 */
    f->runtime.settings = "{\"enableCDI\": false, \"x\": {}}";
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->cdis == 1);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_NONE);
    f->lost = 0;
    runtime_stop(&f->runtime);
    WAIT(f->world, f->lost > 0);                   /* that was of this one */
    f->runtime.settings = "{\"enableCDI\": true}"; /* and other settings */
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->cdis == 2);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_ANNOTATED);
    runtime_stop(&f->runtime);
    f->runtime.name = NULL; /* another one: its settings have no word of it */
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->cdis == 3);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_UNKNOWN);
    assert_int_equal(f->runtime.statuses, 2);
}

static void one_that_does_not_tell_is_asked_behind_the_next_list(void **state)
{
    struct fixture *f = *state;

    f->runtime.name = "containerd";
    f->runtime.events_code = RPC_UNIMPLEMENTED;
    f->pace.poll_ms = SOON_MS;
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->runtime.statuses >= 3);
    assert_int_equal(f->cdis, 1); /* that it does not: who waits is to go on */
    assert_int_equal(f->cdi, DEVICEMGR_CDI_UNKNOWN);
    f->runtime.settings = "{}";
    WAIT(f->world, f->cdis == 2);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_NONE);
    f->runtime.versions = 0;
    f->listed = 0;
    WAIT(f->world, f->listed >= 2);
    assert_int_equal(f->runtime.versions, 0); /* it has said so */
    runtime_stop(&f->runtime);
    f->runtime.settings = NULL;
    runtime_serve(&f->runtime, f->world); /* another one, perhaps */
    WAIT(f->world, f->cdis == 3);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_UNKNOWN);
}

/* As containerd, which says nothing before it can make a container. */
static void one_that_begins_is_waited_for(void **state)
{
    struct fixture *f = *state;

    f->runtime.name = "containerd";
    f->runtime.pods_code = RPC_UNAVAILABLE;
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->runtime.statuses >= 2 && f->runtime.pod_lists >= 2);
    assert_int_equal(f->cdis, 0);
    f->runtime.settings = "{}";
    f->runtime.pods_code = RPC_OK;
    WAIT(f->world, f->cdis == 1);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_NONE);
}

/* As one that has more to list than is taken: it may make containers all the same. */
static void one_that_does_not_list_is_asked_again(void **state)
{
    struct fixture *f = *state;

    f->runtime.name = "containerd";
    f->runtime.pods_code = RPC_INTERNAL;
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->runtime.statuses >= 1 && f->runtime.pod_lists >= 2);
    f->runtime.settings = "{}";
    WAIT(f->world, f->cdis == 1);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_NONE);
    assert_int_equal(f->listed, 0);
}

static void one_that_has_listed_is_not_waited_for(void **state)
{
    struct fixture *f = *state;

    f->pace = (struct lister_pace){NEVER_MS, NEVER_MS, NEVER_MS};
    f->runtime.name = "containerd";
    f->runtime.hold_status = true;
    start_listed(f);
    WAIT(f->world, f->runtime.status);
    assert_int_equal(f->cdis, 0);
    incoming_answer(f->runtime.status, NULL, RPC_INTERNAL, "no");
    WAIT(f->world, f->cdis == 1); /* before the next list */
    assert_int_equal(f->cdi, DEVICEMGR_CDI_UNKNOWN);
}

static void nor_is_one_whose_list_is_too_large(void **state)
{
    struct fixture *f = *state;

    f->runtime.name = "containerd";
    f->runtime.pods_code = RPC_RESOURCE_EXHAUSTED;
    f->runtime.pairs = 500000;
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->cdis == 1);
    assert_int_equal(f->cdi, DEVICEMGR_CDI_UNKNOWN);
    assert_int_equal(f->listed, 0);
}

static void takes_items_without_metadata(void **state)
{
    struct fixture *f = *state;

    f->runtime.bare = true;
    start_listed(f);
    assert_string_equal(f->sandboxes, "s1///0 s2///0!,pkpv");
}

/* Says once that the runtime is away and once that it is back. */
static void waits_for_a_runtime_that_is_away(void **state)
{
    struct fixture *f = *state;

    start(f);
    world_settle(f->world);
    assert_int_equal(f->listed, 0);
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->listed == 1);
}

static void lists_again_after_the_runtime_restarts(void **state)
{
    struct fixture *f = *state;

    start_listed(f);
    runtime_stop(&f->runtime);
    f->runtime.pods_len = f->runtime.containers_len = 1;
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->listed == 2);
    assert_string_equal(f->sandboxes, "s1/u1/p1/1");
}

/* As it is told; empty: its lists come. */
static const char *failing(const struct fixture *f)
{
    static struct lister_state runtime;

    lister_look(f->lister, &runtime);
    assert_true(runtime.failing[0] == '\0' || runtime.failing_ms <= boot_now_ms());
    return runtime.failing;
}

static void asks_again_when_a_list_fails(void **state)
{
    struct fixture *f = *state;

    f->runtime.pods_code = RPC_UNAVAILABLE;
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, *failing(f));
    assert_string_equal(failing(f), "ListPodSandbox: UNAVAILABLE: the runtime says no");
    f->runtime.pods_code = RPC_OK;
    f->runtime.containers_code = RPC_UNKNOWN;
    WAIT(f->world, strstr(failing(f), "ListContainers: UNKNOWN"));
    assert_int_equal(f->listed, 0);
    f->runtime.containers_code = RPC_OK;
    WAIT(f->world, f->listed == 1);
    assert_string_equal(failing(f), "");
    assert_int_equal(f->begun, 3);
    f->runtime.pods_code = RPC_UNKNOWN;
    lister_refresh(f->lister);
    WAIT(f->world, *failing(f));
    runtime_stop(&f->runtime);
    WAIT(f->world, !*failing(f)); /* it is away, which is told by itself */
}

/* The runtime has more to say than goes into a message. */
static void a_list_that_is_too_large_comes_as_a_stream(void **state)
{
    struct fixture *f = *state;

    f->runtime.pods_code = f->runtime.containers_code = RPC_RESOURCE_EXHAUSTED;
    start_listed(f);
    assert_string_equal(f->sandboxes, "s1/u1/p1/1 s2/u2/p2/1!,pkpv");
    assert_string_equal(f->containers, "c1/s1/main,kv c2/s1/init! c3/s2/new c4/s2/odd,k2v2");
    assert_int_equal(f->runtime.container_lists, 0);
    f->runtime.pods_len = 0; /* no part at all */
    lister_refresh(f->lister);
    WAIT(f->world, f->listed == 2);
    assert_string_equal(f->sandboxes, "");
    assert_int_equal(f->runtime.pod_lists, 1);
    runtime_stop(&f->runtime);
    f->runtime.pods_code = f->runtime.containers_code = RPC_OK;
    f->runtime.pod_streams = 0;
    runtime_serve(&f->runtime, f->world); /* another runtime */
    WAIT(f->world, f->listed == 3);
    assert_int_equal(f->runtime.pod_streams, 0);
}

static void so_does_the_second_half_alone(void **state)
{
    struct fixture *f = *state;

    f->runtime.containers_code = RPC_RESOURCE_EXHAUSTED;
    start_listed(f);
    assert_int_equal(f->runtime.pod_lists, 1);
    assert_int_equal(f->runtime.pod_streams, 0);
    assert_string_equal(f->sandboxes, "s1/u1/p1/1 s2/u2/p2/1!,pkpv");
    assert_string_equal(f->containers, "c1/s1/main,kv c2/s1/init! c3/s2/new c4/s2/odd,k2v2");
}

static void where_the_runtime_has_no_streams_the_list_fails(void **state)
{
    struct fixture *f = *state;

    f->runtime.pods_code = RPC_RESOURCE_EXHAUSTED;
    f->runtime.streams_code = RPC_UNIMPLEMENTED;
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->runtime.pod_lists == 3); /* as a stream, and again; then later */
    assert_int_equal(f->runtime.pod_streams, 1);
    f->runtime.pods_code = RPC_OK;
    WAIT(f->world, f->listed == 1);
}

/* Of what is short on the wire many times that is kept. */
static void a_list_of_very_many_small_parts_is_too_large(void **state)
{
    struct fixture *f = *state;

    f->runtime.pods_code = RPC_RESOURCE_EXHAUSTED;
    f->runtime.pairs = 500000;
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, *failing(f) || f->listed > 0);
    assert_int_equal(f->listed, 0);
    assert_non_null(strstr(failing(f), "it is larger than 128 MiB"));
    f->runtime.pairs = 0;
    WAIT(f->world, f->listed == 1);
    assert_string_equal(failing(f), "");
}

static void lists_again_on_request(void **state)
{
    struct fixture *f = *state;

    runtime_serve(&f->runtime, f->world);
    start(f);
    lister_refresh(f->lister); /* one list for both */
    WAIT(f->world, f->listed == 1);
    world_settle(f->world);
    assert_int_equal(f->listed, 1);
    lister_refresh(f->lister);
    WAIT(f->world, f->listed == 2);
    /* Under way: it may have missed what the caller knows of. */
    f->runtime.hold = true;
    lister_refresh(f->lister);
    WAIT(f->world, f->runtime.held);
    lister_refresh(f->lister);
    runtime_answer_held(&f->runtime);
    WAIT(f->world, f->listed == 4);
}

static void checks_one_container(void **state)
{
    struct fixture *f = *state;

    f->runtime.containers[3].id = "c22"; /* c2 is a prefix of it */
    start_listed(f);
    lister_check(f->lister, 1, "c1");
    lister_check(f->lister, 2, "c2");
    lister_check(f->lister, 3, "c3");
    lister_check(f->lister, 4, "c");
    assert_int_equal(f->checked, 0);
    WAIT(f->world, f->checked == 4);
    assert_int_equal(f->findings[1], LISTER_RUNNING);
    assert_int_equal(f->findings[2], LISTER_STOPPED);
    assert_int_equal(f->findings[3], LISTER_RUNNING);
    assert_int_equal(f->findings[4], LISTER_GONE);
    f->runtime.containers_code = RPC_UNKNOWN;
    lister_check(f->lister, 5, "c1");
    WAIT(f->world, f->checked == 5);
    assert_int_equal(f->findings[5], LISTER_UNKNOWN);
}

static void a_check_without_runtime_finds_nothing_out(void **state)
{
    struct fixture *f = *state;

    start(f);
    lister_check(f->lister, 1, "c1"); /* never connected */
    lister_check(f->lister, 2, "c2");
    assert_int_equal(f->checked, 0);
    WAIT(f->world, f->checked == 2);
    assert_int_equal(f->findings[1], LISTER_UNKNOWN);
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->listed == 1);
    f->runtime.hold = true;
    lister_check(f->lister, 3, "c3");
    WAIT(f->world, f->runtime.held);
    runtime_stop(&f->runtime); /* asked, and then it died */
    WAIT(f->world, f->checked == 3);
    assert_int_equal(f->findings[3], LISTER_UNKNOWN);
}

static void bounds_the_checks_that_wait(void **state)
{
    struct fixture *f = *state;

    start_listed(f);
    for (unsigned i = 0; i < LISTER_CHECKS_MAX + 10; i++)
        lister_check(f->lister, 100 + i, "c1");
    stop(f);
    assert_int_equal(f->checked, 0);
}

/* Says once that there are none. */
static void a_runtime_without_events_is_listed_often(void **state)
{
    struct fixture *f = *state;

    f->runtime.events_code = RPC_UNIMPLEMENTED;
    runtime_serve(&f->runtime, f->world);
    f->pace = (struct lister_pace){SOON_MS, NEVER_MS, NEVER_MS};
    start(f);
    WAIT(f->world, f->listed == 4);
    assert_int_equal(f->runtime.events_calls, 1); /* it will not learn it on this connection */
    runtime_stop(&f->runtime);
    f->runtime.events_code = RPC_OK;
    runtime_serve(&f->runtime, f->world); /* another version of it */
    WAIT(f->world, f->runtime.events);
    stop(f);
    WAIT(f->world, !f->runtime.events);
}

/* The kubelet may go by them, and would miss each that is told here. Says so once. */
static void events_that_one_listener_takes_from_others_are_left_to_them(void **state)
{
    struct fixture *f = *state;

    f->runtime.name = "containerd";
    f->runtime.version = "1.7.24~ds1";
    runtime_serve(&f->runtime, f->world);
    f->pace = (struct lister_pace){SOON_MS, NEVER_MS, NEVER_MS};
    start(f);
    WAIT(f->world, f->listed == 4);
    assert_int_equal(f->runtime.events_calls, 0);
    runtime_stop(&f->runtime);
    f->pace.poll_ms = NEVER_MS;
    f->runtime.version = "v2.0.0"; /* which tells them to all */
    runtime_serve(&f->runtime, f->world);
    WAIT(f->world, f->listed == 5); /* and from before the first list on */
    assert_non_null(f->runtime.events);
}

static void one_that_does_not_say_what_it_is_is_listed(void **state)
{
    struct fixture *f = *state;

    f->runtime.version_code = RPC_UNKNOWN;
    start_listed(f);
    assert_int_equal(f->runtime.events_calls, 0);
    f->runtime.version_code = RPC_OK;
    lister_refresh(f->lister);
    WAIT(f->world, f->listed == 2 && f->runtime.versions == 2);
    world_settle(f->world);
    lister_refresh(f->lister); /* now it has */
    WAIT(f->world, f->listed == 3);
    assert_non_null(f->runtime.events);
}

static void the_end_of_a_container_is_told_at_once(void **state)
{
    struct fixture *f = *state;

    f->pace = (struct lister_pace){NEVER_MS, NEVER_MS, NEVER_MS};
    start_listed(f);
    runtime_send_event(&f->runtime, STARTED_EVENT, "c0", "s1");
    runtime_send_event(&f->runtime, STOPPED_EVENT, "c1", "s1");
    runtime_send_event(&f->runtime, DELETED_EVENT, "c2", NULL);
    WAIT(f->world, strcmp(f->ended, "c1 c2 ") == 0);
    assert_int_equal(f->listed, 1);
}

static void what_an_event_does_not_tell_is_listed(void **state)
{
    struct fixture *f = *state;

    f->pace = (struct lister_pace){NEVER_MS, NEVER_MS, SOON_MS};
    start_listed(f);
    runtime_send_event(&f->runtime, CREATED_EVENT, "c9", "s1");
    runtime_send_event(&f->runtime, CREATED_EVENT, "c10", "s1"); /* one list for both */
    WAIT(f->world, f->listed == 2);
    runtime_send_event(&f->runtime, STOPPED_EVENT, "s1", "s1");
    WAIT(f->world, f->listed == 3);
    f->runtime.hold = true;
    runtime_send_event(&f->runtime, DELETED_EVENT, "s1", "s1");
    WAIT(f->world, f->runtime.held);
    runtime_send_event(&f->runtime, CREATED_EVENT, "c11", "s2"); /* the list may have missed it */
    runtime_send_event(&f->runtime, DELETED_EVENT, "c11", "s2");
    WAIT(f->world, f->ended[0] != '\0');
    runtime_answer_held(&f->runtime);
    WAIT(f->world, f->listed == 5);
    assert_string_equal(f->ended, "c11 ");
}

static void a_stream_that_ends_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    struct rpc_incoming *stream;

    f->pace = (struct lister_pace){SOON_MS, NEVER_MS, NEVER_MS};
    start_listed(f);
    stream = f->runtime.events;
    f->runtime.events = NULL;
    rpc_incoming_finish(stream, RPC_RESOURCE_EXHAUSTED, "a slow reader");
    WAIT(f->world, f->runtime.events_calls == 2 && f->listed == 2);
    runtime_send_event(&f->runtime, STOPPED_EVENT, "c1", "s1");
    WAIT(f->world, f->ended[0] != '\0');
}

/* It would keep the connection, and wait itself, as long as it tells of events there. */
static void a_runtime_that_goes_away_is_listed_on_another_connection(void **state)
{
    struct fixture *f = *state;

    f->pace = (struct lister_pace){NEVER_MS, NEVER_MS, NEVER_MS};
    start_listed(f);
    incoming_goes_away(f->runtime.events);
    WAIT(f->world, f->listed == 2);
    assert_int_equal(f->runtime.events_calls, 2);
    assert_non_null(f->runtime.events);
    assert_int_equal(f->runtime.versions, 2); /* it may be another one now */
}

static void what_it_is_asked_already_is_waited_for(void **state)
{
    struct fixture *f = *state;

    f->pace = (struct lister_pace){NEVER_MS, NEVER_MS, NEVER_MS};
    start_listed(f);
    f->runtime.hold = true;
    lister_check(f->lister, 1, "c1");
    WAIT(f->world, f->runtime.held);
    incoming_goes_away(f->runtime.held);
    WAIT(f->world, !f->runtime.events);
    runtime_answer_held(&f->runtime);
    WAIT(f->world, f->checked == 1);
    assert_int_equal(f->findings[1], LISTER_RUNNING);
    WAIT(f->world, f->listed == 2);
    assert_int_equal(f->runtime.events_calls, 2);
}

/* A list is as large as the runtime makes it: without the memory it fails, and is asked for
 * again. */
static void any_allocation_of_a_list_may_fail(void **state)
{
    struct fixture *f = *state;
    unsigned n = 0;

    runtime_serve(&f->runtime, f->world);
    do {
        f->listed = 0;
        start(f);
        alloc_fail_at(++n);
        alloc_fail_enable(true);
        WAIT(f->world, f->listed > 0 || alloc_failed());
        alloc_fail_enable(false);
        lister_refresh(f->lister); /* the pause need not pass */
        WAIT(f->world, f->listed > 0);
        assert_string_equal(f->sandboxes, "s1/u1/p1/1 s2/u2/p2/1!,pkpv");
        stop(f);
    } while (alloc_failed());
    assert_true(n > 10);
}

static void stops_at_any_step(void **state)
{
    struct fixture *f = *state;

    f->runtime.hold = true;
    start(f); /* not begun */
    stop(f);
    start(f); /* waiting to try again */
    world_settle(f->world);
    stop(f);
    runtime_serve(&f->runtime, f->world);
    start(f); /* a list and a check under way */
    WAIT(f->world, f->runtime.held);
    lister_check(f->lister, 1, "c1");
    stop(f);
    assert_int_equal(f->listed + f->checked, 0);
    WAIT(f->world, !f->runtime.held);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lists_at_the_start),
        TEST(tells_what_the_runtime_says_it_is),
        TEST(tells_what_it_makes_of_cdi_devices),
        TEST(one_that_does_not_tell_is_asked_behind_the_next_list),
        TEST(one_that_begins_is_waited_for),
        TEST(one_that_does_not_list_is_asked_again),
        TEST(one_that_has_listed_is_not_waited_for),
        TEST(nor_is_one_whose_list_is_too_large),
        TEST(takes_items_without_metadata),
        TEST(waits_for_a_runtime_that_is_away),
        TEST(lists_again_after_the_runtime_restarts),
        TEST(asks_again_when_a_list_fails),
        TEST(a_list_that_is_too_large_comes_as_a_stream),
        TEST(so_does_the_second_half_alone),
        TEST(where_the_runtime_has_no_streams_the_list_fails),
        TEST(a_list_of_very_many_small_parts_is_too_large),
        TEST(lists_again_on_request),
        TEST(checks_one_container),
        TEST(a_check_without_runtime_finds_nothing_out),
        TEST(bounds_the_checks_that_wait),
        TEST(a_runtime_without_events_is_listed_often),
        TEST(events_that_one_listener_takes_from_others_are_left_to_them),
        TEST(one_that_does_not_say_what_it_is_is_listed),
        TEST(the_end_of_a_container_is_told_at_once),
        TEST(what_an_event_does_not_tell_is_listed),
        TEST(a_stream_that_ends_is_asked_for_again),
        TEST(a_runtime_that_goes_away_is_listed_on_another_connection),
        TEST(what_it_is_asked_already_is_waited_for),
        TEST(any_allocation_of_a_list_may_fail),
        TEST(stops_at_any_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
