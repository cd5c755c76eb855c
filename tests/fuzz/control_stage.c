#include "tests/fuzz/control_stage.h"

#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "shim/boot_clock.h"
#include "shim/control/control.h"
#include "shim/control/list.h"
#include "shim/core/host.h"
#include "shim/events/event.h"
#include "shim/level_file.h"
#include "shim/log.h"
#include "tests/fuzz/fuzz.h"

#define GPU "vendor.com/gpu"
#define UID "7d8b1c52-9b1f-4c58-8a0e-0c8f3a8b1d10"
#define LONG_ID_BYTES 3000
#define EVENTS 3

static struct {
    uint64_t now_ms;
    struct settings settings;
    uv_loop_t loop;
    struct devicemgr *core;
    struct control *control;
    uint64_t commit; /* under way; 0: none */
    bool lists;      /* the runtime is to be */
    struct event *events[EVENTS];
    void (*level_written)(void *user, int level, int err);
    void *level_user;
    int level;
    void (*looked)(void *user, const struct store_worker_look *look);
    void *look_user;
} stage;

/* ---- files ---- */

void level_file_write(uv_loop_t *loop, const char *state_dir, int level,
                      void (*done)(void *user, int level, int err), void *user)
{
    (void)loop;
    (void)state_dir;
    FUZZ_CHECK(!stage.level_written, "two levels at once");
    stage.level_written = done;
    stage.level_user = user;
    stage.level = level;
}

void control_stage_level_written(int err)
{
    void (*written)(void *user, int level, int err) = stage.level_written;

    stage.level_written = NULL;
    if (written)
        written(stage.level_user, stage.level, err);
}

bool host_look_at_checkpoint(struct host *host,
                             void (*done)(void *user, const struct store_worker_look *look),
                             void *user)
{
    (void)host;
    if (stage.looked)
        return false;
    stage.looked = done;
    stage.look_user = user;
    return true;
}

void host_forget_look(struct host *host)
{
    (void)host;
    stage.looked = NULL;
}

void control_stage_looked(const char *error)
{
    void (*looked)(void *user, const struct store_worker_look *look) = stage.looked;
    const struct store_worker_look look = {.error = error};

    stage.looked = NULL;
    if (looked)
        looked(stage.look_user, &look);
}

/* ---- events ---- */

bool events_loaded(const struct events *events)
{
    (void)events;
    return true;
}

const struct event *events_after(const struct events *events, uint64_t id)
{
    (void)events;
    return id < EVENTS ? stage.events[id] : NULL;
}

const struct event *events_next(const struct events *events, const struct event *event)
{
    return events_after(events, event->id);
}

uint64_t events_last(const struct events *events)
{
    (void)events;
    return EVENTS;
}

uint64_t events_gone(const struct events *events)
{
    (void)events;
    return 0;
}

void events_now(const struct events *events, struct event_moment *now)
{
    (void)events;
    *now = (struct event_moment){.wall_ms = stage.now_ms, .boot_ms = stage.now_ms};
}

void events_watch(struct events *events, struct events_watch *watch)
{
    (void)events;
    (void)watch;
}

void events_unwatch(struct events_watch *watch)
{
    (void)watch;
}

void events_say(struct events *events, const struct event_said *said)
{
    struct event_moment now;

    events_now(events, &now);
    event_free(event_new(said, &now)); /* it can be one */
}

/* ---- the device manager ---- */

uint64_t boot_now_ms(void)
{
    return stage.now_ms;
}

struct devicemgr *host_core(struct host *host)
{
    (void)host;
    return stage.core;
}

void host_kick(struct host *host)
{
    (void)host;
    devicemgr_run(stage.core);
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    (void)user;
    (void)records;
    (void)records_len;
    stage.commit = commit;
}

static void on_runtime_list(void *user)
{
    (void)user;
    stage.lists = true;
}

static void on_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    (void)user;
    if (stage.control)
        control_steered(stage.control, number, steered);
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    (void)user;
    (void)event;
}

static void on_open(void *user, uint64_t endpoint, const char *resource, const char *socket_name,
                    uint32_t uid)
{
    (void)user;
    (void)endpoint;
    (void)resource;
    (void)socket_name;
    (void)uid;
}

static void on_close(void *user, uint64_t endpoint)
{
    (void)user;
    (void)endpoint;
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)user;
    (void)level;
    (void)about;
    (void)text;
}

/* No create is ever made, so that nothing is asked of plugins. */
static void on_stop_container(void *user, uint64_t op, const char *container_id, uint64_t grace_ms)
{
    (void)user;
    (void)op;
    (void)container_id;
    (void)grace_ms;
}

static void on_stop_cancel(void *user, uint64_t op)
{
    (void)user;
    (void)op;
}

static void on_stop_sandbox(void *user, uint64_t op, const char *sandbox_id)
{
    (void)user;
    (void)op;
    (void)sandbox_id;
}

static const struct devicemgr_ports PORTS = {.endpoint_open = on_open,
                                             .endpoint_close = on_close,
                                             .commit = on_commit,
                                             .runtime_list = on_runtime_list,
                                             .stop_container = on_stop_container,
                                             .stop_cancel = on_stop_cancel,
                                             .stop_sandbox = on_stop_sandbox,
                                             .event = on_event,
                                             .steered = on_steered,
                                             .log = on_log};

void control_stage_committed(const char *error)
{
    uint64_t commit = stage.commit;

    stage.commit = 0;
    if (commit == 0)
        return;
    devicemgr_committed(stage.core, stage.now_ms, commit, error);
    devicemgr_run(stage.core);
}

void control_stage_listed(void)
{
    if (!stage.lists)
        return;
    stage.lists = false;
    devicemgr_runtime_listing(stage.core);
    devicemgr_runtime_listed(stage.core, stage.now_ms, NULL, 0, NULL, 0);
    devicemgr_run(stage.core);
}

void control_stage_pass(uint64_t ms)
{
    stage.now_ms += ms;
    devicemgr_tick(stage.core, stage.now_ms);
    devicemgr_run(stage.core);
}

static void restore(enum devicemgr_record_kind kind, const char *const key[3],
                    const ProtobufCMessage *message)
{
    uint8_t bytes[2 * LONG_ID_BYTES];
    const struct devicemgr_record record = {.kind = kind,
                                            .key = {key[0], key[1], key[2]},
                                            .value = bytes,
                                            .value_bytes =
                                                protobuf_c_message_get_packed_size(message)};

    FUZZ_CHECK(record.value_bytes <= sizeof bytes, "%zu bytes", record.value_bytes);
    protobuf_c_message_pack(message, bytes);
    FUZZ_CHECK(devicemgr_restore(stage.core, stage.now_ms, &record) == 0, "a row");
}

static void restore_resource(char *long_id)
{
    Checkpoint__V1__Device devices[] = {CHECKPOINT__V1__DEVICE__INIT, CHECKPOINT__V1__DEVICE__INIT,
                                        CHECKPOINT__V1__DEVICE__INIT};
    Checkpoint__V1__Device *list[] = {&devices[0], &devices[1], &devices[2]};
    Checkpoint__V1__Resource resource = CHECKPOINT__V1__RESOURCE__INIT;

    resource.name = (char *)GPU;
    resource.endpoint = (char *)"gpu.sock";
    devices[0].id = (char *)"g0";
    devices[1].id = (char *)"g1";
    devices[1].healthy = true;
    devices[2].id = long_id;
    resource.devices = list;
    resource.n_devices = 3;
    restore(DEVICEMGR_RECORD_RESOURCE, (const char *[]){GPU, "", ""}, &resource.base);
}

static void restore_pod(void)
{
    Checkpoint__V1__Pod pod = CHECKPOINT__V1__POD__INIT;
    Checkpoint__V1__Allocation allocation = CHECKPOINT__V1__ALLOCATION__INIT;
    char *ids[] = {(char *)"g0"};

    pod.uid = allocation.pod_uid = (char *)UID;
    pod.namespace_ = (char *)"ns";
    pod.name = (char *)"web";
    pod.sandbox_id = (char *)"s";
    pod.died = pod.stopped = true;
    allocation.container = (char *)"app";
    allocation.resource = (char *)GPU;
    allocation.device_ids = ids;
    allocation.n_device_ids = 1;
    restore(DEVICEMGR_RECORD_POD, (const char *[]){UID, "", ""}, &pod.base);
    restore(DEVICEMGR_RECORD_ALLOCATION, (const char *[]){UID, "app", GPU}, &allocation.base);
}

/* ---- the whole ---- */

static void on_report(void *user, struct report *out)
{
    (void)user;
    out->gate = "off";
}

static int on_reload(void *user, struct settings_reloaded *out)
{
    (void)user;
    (void)out;
    return 0;
}

static void on_set_level(void *user, int level)
{
    (void)user;
    stage.settings.level_set = level;
}

static enum list_at_kubelet at_kubelet(void *user, const char *driver)
{
    (void)user;
    (void)driver;
    return LIST_REGISTERED;
}

static void on_look(void *user, struct list_from *out)
{
    (void)user;
    out->at_kubelet = at_kubelet;
}

static const struct control_ops OPS = {
    .report = on_report, .look = on_look, .reload = on_reload, .set_level = on_set_level};

static void make_events(void)
{
    const struct event_moment now = {.wall_ms = 1, .boot_ms = 1};
    const struct event_said said[EVENTS] = {
        {.kind = "registered", .resource = GPU, .text = "gpu.sock"},
        {.kind = "taken",
         .resource = GPU,
         .pod_uid = UID,
         .pod_namespace = "ns",
         .pod_name = "web"},
        {.kind = "gate", .word = "armed"}};

    for (size_t i = 0; i < EVENTS; i++) {
        stage.events[i] = event_new(&said[i], &now);
        stage.events[i]->id = i + 1;
    }
}

void control_stage_begin(void)
{
    const struct devicemgr_settings settings = {
        .grace_ms = 60000, .hold_ms = 1000, .kubelet_wait_ms = UINT32_MAX, .boot_id = "b"};
    char long_id[LONG_ID_BYTES + 1];
    struct config_error error;

    memset(&stage, 0, sizeof stage);
    stage.now_ms = 1000000;
    log_set_level(LOG_LEVEL_ERROR);
    if (config_load(NULL, &stage.settings.config, &error) < 0)
        abort();
    uv_loop_init(&stage.loop);
    memset(long_id, 'x', LONG_ID_BYTES);
    long_id[LONG_ID_BYTES] = '\0';
    stage.core = devicemgr_new(&settings, &PORTS, NULL);
    restore_resource(long_id);
    restore_pod();
    devicemgr_restored(stage.core, stage.now_ms);
    devicemgr_run(stage.core);
    make_events();
    stage.control = control_start(&stage.loop, &stage.settings, NULL, NULL, NULL, &OPS, NULL);
}

void control_stage_end(void)
{
    struct control *control = stage.control;

    stage.control = NULL;
    control_stop(control);
    control_stage_level_written(0); /* it outlives its room */
    uv_run(&stage.loop, UV_RUN_DEFAULT);
    FUZZ_CHECK(uv_loop_close(&stage.loop) == 0, "a handle is left");
    for (size_t i = 0; i < EVENTS; i++)
        event_free(stage.events[i]);
    devicemgr_free(stage.core);
    config_fini(&stage.settings.config);
}
