/* shim/relay/calls.c on a real session, with a recording stand-in for the core and its host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "cri-proto/cri_v1.pb-c.h"
#include "devicemgr/dra.h"
#include "devicemgr/endings.h"
#include "gate_stand_in.h"
#include "shim/boot_clock.h"
#include "shim/deaths.h"
#include "shim/log.h"
#include "shim/process.h"
#include "shim/relay/calls.h"
#include "shim/relay/limits.h"
#include "wire.h"

#define FROM "/kubelet/plugins"
#define TO "/the/plugins/of/ours"
#define JOB 4711
#define TEXT(text) ((char[]){text}) /* protobuf-c wants char * */

struct world {
    struct calls *calls;
    struct wire wire;
    struct buffer log;
    bool unready;                            /* the host */
    enum devicemgr_cdi cdi;                  /* what host_runtime_cdi() answers */
    bool cdi_unheard;                        /* what host_knows_cdi() does not */
    bool rows_unread;                        /* what host_knows_rows() does not */
    bool names_devices;                      /* what devicemgr_create() answers */
    bool ends_pods;                          /* that of uid "uid" */
    uint64_t pending;                        /* the last create it left pending */
    const struct devicemgr_verdict *verdict; /* given at the next kick */
    struct gate_stand_in gate;
    const char *mount; /* the host_path of what containers mount; NULL: they do not */
    const char *named; /* their CDI device; NULL: they have none */
    char *arg;         /* their one argument; NULL: they have none */
    bool quiet;
    uint64_t job;  /* that the thread is at (deaths.h) */
    unsigned jobs; /* how often it began one */
    int held;
};

/* The stand-ins have no user pointer of ours. */
static struct world *world;

#define note(...)                                                                                  \
    do {                                                                                           \
        if (!world->quiet)                                                                         \
            h2_say(&world->log, __VA_ARGS__);                                                      \
    } while (0)

/* ---- the host and the core ---- */

struct devicemgr *host_core(struct host *host)
{
    assert_ptr_equal(host, world);
    return (struct devicemgr *)host;
}

uint64_t boot_now_ms(void)
{
    return 1000000;
}

bool deaths_of(uint64_t job, unsigned times)
{
    assert_int_equal(job, JOB);
    assert_int_equal(times, 3);
    return false;
}

uint64_t deaths_enter(uint64_t job)
{
    uint64_t was = world->job;

    world->job = job;
    world->jobs += job == JOB;
    return was;
}

void deaths_hold(uint64_t job)
{
    assert_int_equal(job, JOB);
    world->held++;
}

void deaths_release(uint64_t job)
{
    world->held -= job == JOB; /* an earlier process's has none */
}

uint64_t deaths_digest(const uint8_t *message, size_t len)
{
    (void)message, (void)len;
    return JOB;
}

void host_kick(struct host *host)
{
    const struct devicemgr_verdict *verdict = world->verdict;

    assert_ptr_equal(host, world);
    note("kick\n");
    world->verdict = NULL;
    if (verdict)
        calls_verdict(world->calls, world->pending, verdict);
}

enum devicemgr_cdi host_runtime_cdi(const struct host *host)
{
    assert_ptr_equal(host, world);
    return world->cdi;
}

bool host_knows_cdi(const struct host *host)
{
    assert_ptr_equal(host, world);
    return !world->cdi_unheard;
}

bool host_knows_rows(const struct host *host)
{
    assert_ptr_equal(host, world);
    return !world->rows_unread;
}

bool host_ready(const struct host *host)
{
    assert_ptr_equal(host, world);
    return !world->unready;
}

void host_list_runtime(struct host *host)
{
    assert_ptr_equal(host, world);
    note("list\n");
}

bool devicemgr_create(struct devicemgr *mgr, uint64_t now_ms, uint64_t create,
                      const struct devicemgr_create *r)
{
    (void)mgr;
    assert_int_equal(now_ms, 1000000);
    note("create %llu %s %s/%s %s deadline %lld\n", (unsigned long long)create, r->sandbox_id,
         r->pod_namespace, r->pod_name, r->container, (long long)r->deadline_ms);
    if (world->names_devices)
        world->pending = create;
    return world->names_devices;
}

bool devicemgr_refuses_sandboxes(const struct devicemgr *mgr)
{
    (void)mgr;
    return world->ends_pods;
}

bool devicemgr_sandbox_refused(const struct devicemgr *mgr, const char *pod_uid,
                               struct devicemgr_refusal *out)
{
    (void)mgr;
    *out = (struct devicemgr_refusal){.code = 9, .words = "it is ended"};
    return world->ends_pods && strcmp(pod_uid, "uid") == 0;
}

void devicemgr_create_cancelled(struct devicemgr *mgr, uint64_t now_ms, uint64_t create)
{
    (void)mgr, (void)now_ms;
    note("cancelled %llu\n", (unsigned long long)create);
}

void devicemgr_earlier_creates(struct devicemgr *mgr, uint64_t now_ms, bool under_way)
{
    (void)mgr, (void)now_ms;
    note("earlier creates %s\n", under_way ? "go on" : "are over");
}

void devicemgr_drain(struct devicemgr *mgr, uint64_t now_ms)
{
    (void)mgr, (void)now_ms;
    note("drain\n");
}

void devicemgr_create_answered(struct devicemgr *mgr, uint64_t now_ms, uint64_t create,
                               const char *container_id)
{
    (void)mgr, (void)now_ms;
    note("answered %llu %s\n", (unsigned long long)create, container_id ? container_id : "-");
}

void devicemgr_create_refused(struct devicemgr *mgr, uint64_t now_ms, const char *words)
{
    (void)mgr, (void)now_ms;
    note("refused: %s\n", words);
}

void devicemgr_container_removed(struct devicemgr *mgr, uint64_t now_ms, const char *id)
{
    (void)mgr, (void)now_ms;
    note("container removed %s\n", id);
}

void devicemgr_sandbox_ran(struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_sandbox *s)
{
    (void)mgr, (void)now_ms;
    note("sandbox ran %s %s %s/%s %u %d", s->id, s->pod_uid, s->pod_namespace, s->pod_name,
         s->attempt, s->ready);
    for (size_t i = 0; i < s->annotations_len; i++)
        note(" %s=%s", s->annotations[i].key, s->annotations[i].value);
    note("\n");
}

void devicemgr_sandbox_stopping(struct devicemgr *mgr, uint64_t now_ms, const char *id)
{
    (void)mgr, (void)now_ms;
    note("sandbox stopping %s\n", id);
}

void devicemgr_sandbox_stopped(struct devicemgr *mgr, uint64_t now_ms, const char *id)
{
    (void)mgr, (void)now_ms;
    note("sandbox stopped %s\n", id);
}

void devicemgr_sandbox_stop_failed(struct devicemgr *mgr, uint64_t now_ms, const char *id)
{
    (void)mgr, (void)now_ms;
    note("sandbox stop failed %s\n", id);
}

void devicemgr_sandbox_removed(struct devicemgr *mgr, uint64_t now_ms, const char *id)
{
    (void)mgr, (void)now_ms;
    note("sandbox removed %s\n", id);
}

void devicemgr_kubelet_started(struct devicemgr *mgr, uint64_t now_ms)
{
    (void)mgr, (void)now_ms;
    note("kubelet started\n");
}

void devicemgr_kubelet_listed(struct devicemgr *mgr, uint64_t now_ms)
{
    (void)mgr, (void)now_ms;
    note("kubelet listed\n");
}

void process_name(pid_t pid, char out[PROCESS_NAME_BYTES_MAX])
{
    assert_int_equal(pid, KUBELET);
    strcpy(out, "kubelet");
}

static void world_begin(struct world *w)
{
    world = w;
    w->gate = (struct gate_stand_in){.log = w->quiet ? NULL : &w->log, .arms = true, .holds = true};
    log_set_level(LOG_LEVEL_ERROR); /* a refusal is an info line */
    alloc_fail_enable(w->quiet);
    w->calls = calls_new();
    alloc_fail_enable(false);
    wire_init(&w->wire, w->quiet);
    if (w->calls) {
        wire_connect(&w->wire, calls_owner(w->calls));
        calls_bind(w->calls, (struct host *)w);
    }
    wire_greet(&w->wire);
}

static void world_end(struct world *w)
{
    wire_fini(&w->wire);
    calls_free(w->calls);
    buffer_fini(&w->log);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    world_begin(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_end(*state);
    free(*state);
    return 0;
}

static void told(struct world *w, const char *expected)
{
    if (!w->quiet)
        h2_said(&w->log, expected);
}

static void saw(struct world *w, enum session_end end, const char *expected)
{
    struct buffer text = {0};

    if (w->quiet)
        return;
    wire_look(&w->wire, end, &text);
    if (!strstr((const char *)buffer_data(&text), expected))
        assert_string_equal((const char *)buffer_data(&text), expected);
    buffer_fini(&text);
}

static void call(struct world *w, uint32_t id, const char *method, const ProtobufCMessage *message)
{
    uint8_t *bytes = malloc(protobuf_c_message_get_packed_size(message));

    assert_non_null(bytes);
    wire_call(&w->wire, id, method, bytes, protobuf_c_message_pack(message, bytes));
    free(bytes);
}

static void create(struct world *w, uint32_t id)
{
    Runtime__V1__ContainerMetadata metadata = RUNTIME__V1__CONTAINER_METADATA__INIT;
    Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
    Runtime__V1__PodSandboxMetadata pod = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    Runtime__V1__PodSandboxConfig sandbox = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
    Runtime__V1__Mount mount = RUNTIME__V1__MOUNT__INIT, *mounts[] = {&mount};
    Runtime__V1__CDIDevice cdi = RUNTIME__V1__CDIDEVICE__INIT, *cdis[] = {&cdi};
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;

    metadata.name = TEXT("main");
    config.metadata = &metadata;
    mount.host_path = (char *)w->mount;
    mount.selinux_relabel = true;
    config.mounts = mounts;
    config.n_mounts = w->mount != NULL;
    cdi.name = (char *)w->named;
    config.cdi_devices = cdis;
    config.n_cdi_devices = w->named != NULL;
    config.args = &w->arg;
    config.n_args = w->arg != NULL;
    pod.name = TEXT("web");
    pod.namespace_ = TEXT("ns");
    pod.uid = TEXT("uid");
    sandbox.metadata = &pod;
    request.pod_sandbox_id = TEXT("box");
    request.config = &config;
    request.sandbox_config = &sandbox;
    call(w, id, "CreateContainer", &request.base);
}

static void give(struct world *w, const struct devicemgr_verdict *verdict)
{
    alloc_fail_enable(w->quiet);
    if (w->calls)
        calls_verdict(w->calls, w->pending, verdict);
    alloc_fail_enable(false);
}

static V1beta1__ContainerAllocateResponse *options(void)
{
    static V1beta1__Mount mount;
    static V1beta1__Mount *mounts[] = {&mount};
    static V1beta1__ContainerAllocateResponse__EnvsEntry env;
    static V1beta1__ContainerAllocateResponse__EnvsEntry *envs[] = {&env};
    static V1beta1__ContainerAllocateResponse options;

    v1beta1__container_allocate_response__envs_entry__init(&env);
    env.key = (char *)"GPU";
    env.value = (char *)"g0";
    v1beta1__mount__init(&mount);
    mount.container_path = (char *)"/in";
    mount.host_path = (char *)"/out";
    v1beta1__container_allocate_response__init(&options);
    options.n_mounts = 1;
    options.mounts = mounts;
    options.n_envs = 1;
    options.envs = envs;
    return &options;
}

#define ASKED(n) "create " #n " box ns/web main deadline 1001500\nkick\n"
#define CONTAINER_ID "\x0a\x02id" /* CreateContainerResponse */

/* ---- CreateContainer ---- */

static void a_create_without_devices_passes_at_once(void **state)
{
    struct world *w = *state;

    create(w, 1);
    told(w, ASKED(1));
    saw(w, RUNTIME, "END\n");
    wire_answer(&w->wire, 1, CONTAINER_ID);
    told(w, "");
    calls_verdict(w->calls, 1, &(struct devicemgr_verdict){0}); /* nobody's */
}

/* Whatever it asks for: a claim's device may be what the runtime cannot resolve. */
static void what_the_runtime_says_of_a_create_is_told(void **state)
{
    const char *const refused[] = {
        ":status",     "200", "content-type", "application/grpc",
        "grpc-status", "2",   "grpc-message", "unresolvable CDI devices a",
        NULL};
    struct world *w = *state;

    for (uint32_t id = 1; id <= 3; id += 2) {
        w->names_devices = id == 3;
        create(w, id);
        if (w->names_devices)
            calls_verdict(w->calls, 2, &(struct devicemgr_verdict){0});
        buffer_consume(&w->log, buffer_len(&w->log));
        h2_headers(&w->wire.writers[RUNTIME], &w->wire.out, id, H2_END_STREAM, -1, 0, refused);
        wire_feed(&w->wire, RUNTIME);
        told(w, id == 1 ? "refused: unresolvable CDI devices a\nkick\n"
                        : "refused: unresolvable CDI devices a\nkick\nanswered 2 -\nkick\n");
    }
}

static void a_create_gets_its_options(void **state)
{
    struct world *w = *state;

    w->names_devices = true;
    create(w, 1);
    told(w, ASKED(1));
    saw(w, RUNTIME, "timeout=1500m\n");
    give(w, &(struct devicemgr_verdict){.options = options()});
    assert_non_null(memmem(buffer_data(&w->wire.to[RUNTIME]), buffer_len(&w->wire.to[RUNTIME]),
                           "\x0a\x03/in\x12\x04/out", 11));
    wire_answer(&w->wire, 1, CONTAINER_ID);
    told(w, "answered 1 id\nkick\n");
    calls_verdict(w->calls, 1, &(struct devicemgr_verdict){0}); /* too late */
}

/* What it might end the process at is noted: all that is done with its bytes and the answer's, and,
 * while it is not forwarded, that it is there. */
static void each_step_of_a_create_is_a_job(void **state)
{
    struct world *w = *state;

    w->names_devices = true;
    create(w, 1);
    assert_int_equal(w->jobs, 1);
    assert_int_equal(w->held, 1);
    give(w, &(struct devicemgr_verdict){.options = options()});
    assert_int_equal(w->jobs, 2);
    assert_int_equal(w->held, 0);
    wire_answer(&w->wire, 1, CONTAINER_ID);
    assert_int_equal(w->jobs, 3);
    create(w, 3);
    give(w, &(struct devicemgr_verdict){.code = 14, .message = "no"});
    assert_int_equal(w->jobs, 5);
    assert_int_equal(w->held, 0);
    assert_int_equal(w->job, 0);
    told(w, ASKED(1) "answered 1 id\nkick\n" ASKED(2));
}

static void a_verdict_may_come_at_once_and_without_options(void **state)
{
    struct world *w = *state;
    struct devicemgr_verdict untouched = {0};

    w->names_devices = true;
    w->verdict = &untouched;
    create(w, 1);
    saw(w, RUNTIME, "END\n");
    wire_fail(&w->wire, 1, "13");
    told(w, ASKED(1) "answered 1 -\nkick\n");
}

static void a_refusal_reaches_the_client(void **state)
{
    struct world *w = *state;

    w->names_devices = true;
    create(w, 1);
    give(w, &(struct devicemgr_verdict){.code = 14, .message = "vendor.com/gpu: not now"});
    saw(w, RUNTIME, "RST 1 8\nSETTINGS\n");
    h2_settings_ack(&w->wire.out);
    wire_feed(&w->wire, RUNTIME);
    saw(w, CLIENT, "grpc-status=14 grpc-message=vendor.com/gpu: not now\n");
    told(w, ASKED(1));
}

/* An answer whose id cannot be read may stand for a container that runs. */
static void a_success_without_an_id_is_not_a_refusal(void **state)
{
    static const char *const answers[] = {"", "\x0a\x05id", "\xff\xff"};
    struct world *w = *state;

    w->names_devices = true;
    for (uint32_t i = 0; i < 3; i++) {
        char expected[128];

        create(w, 2 * i + 1);
        give(w, &(struct devicemgr_verdict){.options = options()});
        wire_answer(&w->wire, 2 * i + 1, answers[i]);
        snprintf(expected, sizeof expected,
                 "create %u box ns/web main deadline 1001500\nkick\ncancelled %u\nkick\n", i + 1,
                 i + 1);
        told(w, expected);
    }
}

/* What is forwarded is nobody's when a process has gone; the next one's core is to know of it. */
static void creates_of_an_earlier_process_are_told(void **state)
{
    struct world *w = *state;

    create(w, 1);
    create(w, 3);
    told(w, "create 1 box ns/web main deadline 1001500\nkick\n"
            "create 2 box ns/web main deadline 1001500\nkick\n");
    session_begin(w->wire.session, 0);
    told(w, "earlier creates go on\n");
    wire_answer(&w->wire, 1, CONTAINER_ID);
    told(w, "");
    wire_reset(&w->wire, RUNTIME, 3, 8);
    told(w, "earlier creates are over\nkick\n");
    create(w, 5);
    session_begin(w->wire.session, 0);
    wire_close(&w->wire);
    told(w, "create 3 box ns/web main deadline 1001500\nkick\nearlier creates go on\n"
            "earlier creates are over\nkick\n");
}

static void a_client_that_gives_up_cancels(void **state)
{
    struct world *w = *state;

    w->names_devices = true;
    create(w, 1);
    wire_reset(&w->wire, CLIENT, 1, 8);
    told(w, ASKED(1) "cancelled 1\nkick\n");
    calls_verdict(w->calls, 1, &(struct devicemgr_verdict){.options = options()});
    saw(w, RUNTIME, "RST 1 8\n");
    create(w, 3);
    give(w, &(struct devicemgr_verdict){.options = options()});
    wire_close(&w->wire);
    told(w, "create 2 box ns/web main deadline 1001500\nkick\ncancelled 2\nkick\n");
}

static void a_runtime_that_does_not_wait_cancels(void **state)
{
    struct world *w = *state;

    w->names_devices = true;
    create(w, 1);
    wire_fail(&w->wire, 1, "8");
    told(w, ASKED(1) "cancelled 1\nkick\n");
}

static void what_is_no_request_passes(void **state)
{
    struct world *w = *state;

    wire_call(&w->wire, 1, "CreateContainer", "\x0a\x05x", 3);
    told(w, "");
    saw(w, RUNTIME, "DATA 1 8 .......x END\n");
}

/* ---- plugins in pods ---- */

static bool runtime_got(struct world *w, const char *bytes, size_t len)
{
    size_t at = w->wire.read_to[RUNTIME];

    return memmem(buffer_data(&w->wire.to[RUNTIME]) + at, buffer_len(&w->wire.to[RUNTIME]) - at,
                  bytes, len);
}

/* A mount's host_path and selinux_relabel. */
#define MOUNT_OF_OURS "\x12\x14" TO "\x20\x01", sizeof TO - 1 + 4
#define MOUNT_OF_THEIRS "\x12\x10" FROM "\x20\x01", sizeof FROM - 1 + 4

/* At a daemon's start: nobody guesses what the runtime makes of them. One without passes, one that
 * its client gives up is gone. */
static void cdi_devices_wait_for_the_runtime_s_word(void **state)
{
    struct world *w = *state;

    w->cdi_unheard = true;
    create(w, 1);
    told(w, ASKED(1));
    w->named = "example.com/gpu=0";
    create(w, 3);
    create(w, 5);
    w->names_devices = true;
    create(w, 7);
    told(w, "");
    wire_reset(&w->wire, CLIENT, 5, 8);
    told(w, "cancelled 3\nkick\n"); /* of which the core has never heard */
    w->cdi_unheard = false;
    calls_known(w->calls);
    told(w, ASKED(2) ASKED(4));
    give(w, &(struct devicemgr_verdict){.options = options()});
    assert_true(runtime_got(w, "example.com/gpu=0", 17));
    calls_known(w->calls);
    create(w, 9);
    told(w, ASKED(5));
}

/* Whatever they ask for, and however late the other word comes. */
static void creates_wait_for_the_checkpoint(void **state)
{
    struct world *w = *state;

    w->rows_unread = w->cdi_unheard = true;
    create(w, 1);
    w->named = "example.com/gpu=0";
    create(w, 3);
    told(w, "");
    saw(w, RUNTIME, "");
    w->rows_unread = false;
    calls_known(w->calls);
    told(w, ASKED(1));
    w->cdi_unheard = false;
    calls_known(w->calls);
    told(w, ASKED(2));
    calls_known(w->calls);
    told(w, "");
}

static void who_stops_waits_for_no_word(void **state)
{
    struct world *w = *state;

    w->rows_unread = w->cdi_unheard = true;
    w->named = "example.com/gpu=0";
    create(w, 1);
    told(w, "");
    calls_drain(w->calls);
    told(w, ASKED(1) "drain\nkick\n");
    create(w, 3);
    told(w, ASKED(2));
}

static void a_mount_stays_unless_it_is_to_be_redirected(void **state)
{
    struct world *w = *state;

    w->mount = FROM;
    create(w, 1);
    assert_true(runtime_got(w, MOUNT_OF_THEIRS));
}

static void a_plugins_mount_is_redirected(void **state)
{
    struct world *w = *state;

    calls_set_redirect(w->calls, FROM, TO);
    w->mount = FROM;
    create(w, 1);
    told(w, ASKED(1));
    assert_true(runtime_got(w, MOUNT_OF_OURS));
    assert_false(runtime_got(w, FROM, strlen(FROM)));
    saw(w, RUNTIME, "END\n");
    wire_answer(&w->wire, 1, CONTAINER_ID);
    told(w, "");
    w->mount = "/dev";
    create(w, 3);
    assert_false(runtime_got(w, TO, strlen(TO)));
}

static void a_plugin_that_asks_for_devices_gets_both(void **state)
{
    struct world *w = *state;

    calls_set_redirect(w->calls, FROM, TO);
    w->mount = FROM "/";
    w->names_devices = true;
    create(w, 1);
    assert_false(runtime_got(w, TO, strlen(TO)));
    give(w, &(struct devicemgr_verdict){.options = options()});
    assert_true(runtime_got(w, "\x0a\x03/in\x12\x04/out", 11));
    assert_true(runtime_got(w, MOUNT_OF_OURS));
    assert_false(runtime_got(w, FROM, strlen(FROM)));
    wire_answer(&w->wire, 1, CONTAINER_ID);
    told(w, ASKED(1) "answered 1 id\nkick\n");
}

static void an_argument_that_names_a_plugins_env_gets_its_value(void **state)
{
    struct world *w = *state;

    calls_set_redirect(w->calls, FROM, TO);
    w->mount = FROM;
    w->arg = TEXT("--gpu=$(GPU)");
    w->names_devices = true;
    create(w, 1);
    give(w, &(struct devicemgr_verdict){.options = options()});
    assert_true(runtime_got(w, "\x22\x08--gpu=g0", 10));
    assert_true(runtime_got(w, MOUNT_OF_OURS));
    wire_answer(&w->wire, 1, CONTAINER_ID);
    create(w, 3);
    give(w, &(struct devicemgr_verdict){0}); /* none of ours */
    assert_true(runtime_got(w, "\x22\x0c--gpu=$(GPU)", 14));
}

/* Each by itself, and both in one container: of the one mount only the one that it is of
 * changes. */
static void a_drivers_mount_is_redirected_if_its_pod_is_named(void **state)
{
    static const char *const all[] = {"*/*"}, *const others[] = {"other/*"};
    struct world *w = *state;

    calls_set_redirect(w->calls, "/kubelet/elsewhere", "/our/elsewhere");
    calls_set_driver_redirect(w->calls, FROM, TO, others, 1);
    w->mount = FROM;
    create(w, 1);
    assert_true(runtime_got(w, MOUNT_OF_THEIRS));
    wire_answer(&w->wire, 1, CONTAINER_ID);
    calls_set_driver_redirect(w->calls, FROM, TO, all, 1);
    create(w, 3);
    assert_true(runtime_got(w, MOUNT_OF_OURS));
    wire_answer(&w->wire, 3, CONTAINER_ID);
    calls_set_redirect(w->calls, FROM, TO);
    calls_set_driver_redirect(w->calls, FROM "/", "/never", all, 1);
    create(w, 5);
    assert_true(runtime_got(w, MOUNT_OF_OURS));
    assert_false(runtime_got(w, "/never", strlen("/never")));
}

static void one_that_would_grow_too_large_is_refused(void **state)
{
    static char to[64 * 1024]; /* 260 times as much is over the limit */
    struct world *w = *state;
    struct buffer config = {0}, request = {0};

    memset(to, 'x', sizeof to - 1);
    to[0] = '/';
    calls_set_redirect(w->calls, "/", to);
    for (int i = 0; i < 260; i++)
        h2_put(&config, "\x3a\x03\x12\x01/", 5);
    h2_put(&request, "\x12\x94\x0a", 3);
    h2_put(&request, buffer_data(&config), buffer_len(&config));
    wire_call(&w->wire, 1, "CreateContainer", buffer_data(&request), buffer_len(&request));
    buffer_fini(&config);
    buffer_fini(&request);
    h2_settings(&w->wire.out, -1, 0);
    h2_settings_ack(&w->wire.out);
    wire_feed(&w->wire, RUNTIME);
    saw(w, CLIENT,
        "grpc-status=8 grpc-message=CreateContainer: the message is too large with what is "
        "changed in it\n");
}

/* ---- a new kubelet ---- */

static void a_relist_waits_for_the_gate(void **state)
{
    Runtime__V1__VersionRequest version = RUNTIME__V1__VERSION_REQUEST__INIT;
    Runtime__V1__ContainerFilter filter = RUNTIME__V1__CONTAINER_FILTER__INIT;
    Runtime__V1__ListContainersRequest list = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;
    struct world *w = *state;

    calls_bind_gate(w->calls, &GATE_STAND_IN, &w->gate);
    session_begin(w->wire.session, KUBELET);
    list.filter = &filter;
    call(w, 1, "Version", &version.base);
    wire_answer(&w->wire, 1, "");
    told(w, "announced 100\nkubelet started\nkick\n");
    saw(w, RUNTIME, "END\n");
    call(w, 3, "ListContainers", &list.base);
    told(w, "hold 100 until 1001500\n");
    calls_gate_released(w->calls, w->gate.hold);
    saw(w, RUNTIME, "END\n");
    call(w, 5, "ListContainers", &list.base);
    wire_reset(&w->wire, CLIENT, 5, 8);
    told(w, "hold 100 until 1001500\ncancelled last\n");
    call(w, 7, "ListContainers", &list.base);
    calls_drain(w->calls);
    told(w, "hold 100 until 1001500\ncancelled last\ndrain\nkick\n");
    wire_answer(&w->wire, 3, "");
    told(w, "answered 100\n");
}

static void the_core_hears_that_a_kubelet_has_listed(void **state)
{
    Runtime__V1__ListPodSandboxRequest list = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;
    struct world *w = *state;

    calls_bind_gate(w->calls, &GATE_STAND_IN, &w->gate);
    session_begin(w->wire.session, KUBELET);
    call(w, 1, "ListPodSandbox", &list.base);
    told(w, "");
    wire_answer(&w->wire, 1, "");
    told(w, "kubelet listed\nkick\n");
    call(w, 3, "StreamPodSandboxes", &list.base);
    wire_answer(&w->wire, 3, "");
    told(w, "");
}

/* ---- observed ---- */

/* What waits for an answer has a bound. */
static void names_without_end_are_not_kept(void **state)
{
    struct world *w = *state;
    Runtime__V1__RemovePodSandboxRequest remove = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;
    char name[RELAY_NAMES_BYTES_MAX + 1];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    remove.pod_sandbox_id = name;
    call(w, 1, "RemovePodSandbox", &remove.base);
    wire_answer(&w->wire, 1, "");
    told(w, "");
}

static void pods_and_containers_are_told(void **state)
{
    struct world *w = *state;
    Runtime__V1__PodSandboxMetadata pod = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
    Runtime__V1__RunPodSandboxRequest run = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
    Runtime__V1__StopPodSandboxRequest stop = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;
    Runtime__V1__RemovePodSandboxRequest remove = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;
    Runtime__V1__RemoveContainerRequest remove_one = RUNTIME__V1__REMOVE_CONTAINER_REQUEST__INIT;

    pod.name = TEXT("web");
    pod.namespace_ = TEXT("ns");
    pod.uid = TEXT("uid");
    pod.attempt = 3;
    config.metadata = &pod;
    run.config = &config;
    stop.pod_sandbox_id = remove.pod_sandbox_id = TEXT("box");
    remove_one.container_id = TEXT("one");

    call(w, 1, "RunPodSandbox", &run.base);
    told(w, "");
    wire_answer(&w->wire, 1,
                "\x0a\x03"
                "box");
    told(w, "sandbox ran box uid ns/web 3 1\nkick\n");
    call(w, 3, "StopPodSandbox", &stop.base);
    told(w, "sandbox stopping box\nkick\n");
    wire_answer(&w->wire, 3, "");
    told(w, "sandbox stopped box\nkick\n");
    call(w, 5, "RemovePodSandbox", &remove.base);
    wire_answer(&w->wire, 5, "");
    told(w, "sandbox removed box\nkick\n");
    call(w, 7, "RemoveContainer", &remove_one.base);
    wire_answer(&w->wire, 7, "");
    told(w, "container removed one\nkick\n");

    /* failures and answers that cannot be read say nothing */
    call(w, 9, "RemoveContainer", &remove_one.base);
    wire_fail(&w->wire, 9, "5");
    call(w, 11, "RunPodSandbox", &run.base);
    wire_answer(&w->wire, 11, "\xff");
    call(w, 13, "RunPodSandbox", &run.base);
    wire_reset(&w->wire, RUNTIME, 13, 2);
    told(w, "kick\nkick\n");
    run.config = NULL;
    call(w, 15, "RunPodSandbox", &run.base);
    wire_answer(&w->wire, 15,
                "\x0a\x03"
                "box");
    told(w, "");
    wire_call(&w->wire, 17, "StopPodSandbox", "\x0a\x05x", 3);
    wire_answer(&w->wire, 17, "");
    told(w, "");
}

/* Its tolerations, up to what can be read of them, and whose pod it is; and nothing else. */
static void what_a_sandbox_tolerates_is_told(void **state)
{
    struct world *w = *state;
    Runtime__V1__PodSandboxMetadata pod = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
    Runtime__V1__PodSandboxConfig__AnnotationsEntry entries[3] =
        {RUNTIME__V1__POD_SANDBOX_CONFIG__ANNOTATIONS_ENTRY__INIT,
         RUNTIME__V1__POD_SANDBOX_CONFIG__ANNOTATIONS_ENTRY__INIT,
         RUNTIME__V1__POD_SANDBOX_CONFIG__ANNOTATIONS_ENTRY__INIT},
                                                    *v[] = {&entries[0], &entries[1], &entries[2]};
    Runtime__V1__RunPodSandboxRequest run = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
    char too_long[RELAY_TOLERATIONS_BYTES_MAX + 2];

    pod.uid = TEXT("uid");
    config.metadata = &pod;
    run.config = &config;
    entries[0].key = TEXT("devices.cri-device-shim/tolerations");
    entries[0].value = TEXT("[]");
    entries[1].key = TEXT("another");
    entries[1].value = TEXT("one");
    entries[2].key = TEXT("kubernetes.io/config.source");
    entries[2].value = TEXT("file");
    config.annotations = v;
    config.n_annotations = 3;
    call(w, 1, "RunPodSandbox", &run.base);
    wire_answer(&w->wire, 1, "\x0a\x03one");
    told(w, "sandbox ran one uid / 0 1 kubernetes.io/config.source=file "
            "devices.cri-device-shim/tolerations=[]\nkick\n");
    memset(too_long, ' ', sizeof too_long);
    too_long[sizeof too_long - 1] = '\0';
    entries[0].value = too_long;
    call(w, 3, "RunPodSandbox", &run.base);
    wire_answer(&w->wire, 3, "\x0a\x03two");
    told(w, "sandbox ran two uid / 0 1 kubernetes.io/config.source=file\nkick\n");
}

/* Those that began before anybody was ended pass, and so do other pods'. */
static void a_sandbox_of_a_pod_that_is_ended_is_refused(void **state)
{
    struct world *w = *state;
    Runtime__V1__PodSandboxMetadata pod = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
    Runtime__V1__RunPodSandboxRequest run = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;

    session_begin(w->wire.session, 0);
    pod.uid = TEXT("uid");
    config.metadata = &pod;
    run.config = &config;
    call(w, 1, "RunPodSandbox", &run.base);
    w->ends_pods = true;
    calls_look(w->calls);
    wire_answer(&w->wire, 1, "\x0a\x03one");
    told(w, "sandbox ran one uid / 0 1\nkick\n");
    call(w, 3, "RunPodSandbox", &run.base);
    saw(w, RUNTIME, "RST 3 8\nSETTINGS\n");
    h2_settings_ack(&w->wire.out);
    wire_feed(&w->wire, RUNTIME);
    saw(w, CLIENT, "grpc-status=9 grpc-message=it is ended\n");
    told(w, "");
    pod.uid = TEXT("other");
    call(w, 5, "RunPodSandbox", &run.base);
    wire_answer(&w->wire, 5, "\x0a\x03two");
    told(w, "sandbox ran two other / 0 1\nkick\n");
    wire_call(&w->wire, 7, "RunPodSandbox", "\x0a\x05x", 3); /* cannot be read */
    wire_answer(&w->wire, 7, "");
    told(w, "");
    w->ends_pods = false;
    calls_look(w->calls);
    pod.uid = TEXT("uid");
    call(w, 9, "RunPodSandbox", &run.base);
    wire_answer(&w->wire, 9, "\x0a\x05three");
    told(w, "sandbox ran three uid / 0 1\nkick\n");
}

/* What an earlier process has seen begin is told when it ends; of a stop also that it is under
 * way. */
static void calls_of_an_earlier_process_are_told(void **state)
{
    Runtime__V1__PodSandboxMetadata pod = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
    Runtime__V1__RunPodSandboxRequest run = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
    Runtime__V1__StopPodSandboxRequest stop = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;
    struct world *w = *state;

    pod.name = TEXT("web");
    pod.namespace_ = TEXT("ns");
    pod.uid = TEXT("uid");
    config.metadata = &pod;
    run.config = &config;
    stop.pod_sandbox_id = TEXT("old");
    w->unready = true; /* the earlier one, of which nothing is left */
    call(w, 1, "RunPodSandbox", &run.base);
    call(w, 3, "StopPodSandbox", &stop.base);
    call(w, 5, "StopPodSandbox", &stop.base);
    session_begin(w->wire.session, 0); /* nor does one without its rows tell */
    told(w, "");
    w->unready = false;
    session_begin(w->wire.session, 0);
    told(w, "sandbox stopping old\nkick\nsandbox stopping old\nkick\n");
    wire_answer(&w->wire, 3, "");
    told(w, "sandbox stopped old\nkick\n");
    wire_answer(&w->wire, 1,
                "\x0a\x03"
                "box");
    told(w, "sandbox ran box uid ns/web 0 1\nkick\n");
    wire_reset(&w->wire, RUNTIME, 5, 2);
    told(w, "sandbox stop failed old\nkick\n");
}

static void a_stop_that_fails_or_never_ends_is_told(void **state)
{
    Runtime__V1__StopPodSandboxRequest stop = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;
    struct world *w = *state;

    stop.pod_sandbox_id = TEXT("box");
    call(w, 1, "StopPodSandbox", &stop.base);
    wire_fail(&w->wire, 1, "13");
    told(w, "sandbox stopping box\nkick\nsandbox stop failed box\nkick\n");
    call(w, 3, "StopPodSandbox", &stop.base);
    wire_reset(&w->wire, CLIENT, 3, 8); /* the client gives up */
    told(w, "sandbox stopping box\nkick\nsandbox stop failed box\nkick\n");
    call(w, 5, "StopPodSandbox", &stop.base);
    wire_close(&w->wire);
    told(w, "sandbox stopping box\nkick\nsandbox stop failed box\nkick\n");
}

/* The core knows nothing yet, and learns from the runtime's list what passes meanwhile. */
static void nothing_is_told_to_a_core_without_its_rows(void **state)
{
    Runtime__V1__StopPodSandboxRequest stop = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;
    struct world *w = *state;

    w->unready = true;
    stop.pod_sandbox_id = TEXT("box");
    call(w, 1, "StopPodSandbox", &stop.base);
    w->unready = false;
    wire_answer(&w->wire, 1, "");
    told(w, "");
}

static void a_runtime_that_is_back_is_listed(void **state)
{
    struct world *w = *state;

    calls_runtime_back(w->calls);
    told(w, "list\n");
}

static void without_memory_nothing_leaks(void **state)
{
    bool failed = true;

    (void)state;
    for (unsigned n = 1; failed; n++) {
        struct world w = {.quiet = true, .names_devices = true};

        alloc_fail_at(n);
        world_begin(&w);
        create(&w, 1);
        give(&w, &(struct devicemgr_verdict){.options = options()});
        wire_answer(&w.wire, 1, CONTAINER_ID);
        w.pending = 0;
        create(&w, 3);
        give(&w, &(struct devicemgr_verdict){.code = 14, .message = "no"});
        if (w.calls)
            calls_set_redirect(w.calls, FROM, TO);
        w.mount = FROM;
        w.arg = TEXT("$(GPU)");
        create(&w, 5);
        give(&w, &(struct devicemgr_verdict){.options = options()});
        w.names_devices = false;
        create(&w, 7);
        failed = alloc_failed();
        world_end(&w);
    }
    alloc_fail_at(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_create_without_devices_passes_at_once),
        TEST(what_the_runtime_says_of_a_create_is_told),
        TEST(a_create_gets_its_options),
        TEST(each_step_of_a_create_is_a_job),
        TEST(a_verdict_may_come_at_once_and_without_options),
        TEST(a_refusal_reaches_the_client),
        TEST(a_success_without_an_id_is_not_a_refusal),
        TEST(creates_of_an_earlier_process_are_told),
        TEST(a_client_that_gives_up_cancels),
        TEST(a_runtime_that_does_not_wait_cancels),
        TEST(what_is_no_request_passes),
        TEST(cdi_devices_wait_for_the_runtime_s_word),
        TEST(creates_wait_for_the_checkpoint),
        TEST(who_stops_waits_for_no_word),
        TEST(a_mount_stays_unless_it_is_to_be_redirected),
        TEST(a_plugins_mount_is_redirected),
        TEST(a_plugin_that_asks_for_devices_gets_both),
        TEST(an_argument_that_names_a_plugins_env_gets_its_value),
        TEST(a_drivers_mount_is_redirected_if_its_pod_is_named),
        TEST(one_that_would_grow_too_large_is_refused),
        TEST(a_relist_waits_for_the_gate),
        TEST(the_core_hears_that_a_kubelet_has_listed),
        TEST(names_without_end_are_not_kept),
        TEST(pods_and_containers_are_told),
        TEST(what_a_sandbox_tolerates_is_told),
        TEST(a_sandbox_of_a_pod_that_is_ended_is_refused),
        TEST(calls_of_an_earlier_process_are_told),
        TEST(a_stop_that_fails_or_never_ends_is_told),
        TEST(nothing_is_told_to_a_core_without_its_rows),
        TEST(a_runtime_that_is_back_is_listed),
        cmocka_unit_test(without_memory_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
