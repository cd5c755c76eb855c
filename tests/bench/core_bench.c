/*
 * What an event costs the device manager's core: with 100, 1,000, 10,000 containers that hold a
 * device, with 100, 1,000, 4,000 creations that wait, with a resource of 100,000 devices, and with
 * as many claims as containers, of 64 drivers with a ResourceSlice each. CPU time, on the core
 * alone: its ports do nothing but take down what is to be answered.
 *
 *     core_bench [SIZE_MAX [PART]]     leaves out sizes above SIZE_MAX, and all but this part
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/dra.h"
#include "devicemgr/taints.h"
#include "devicemgr/things/request.h"

#define GPU "vendor.com/gpu"
#define NIC "other.com/nic"
#define LARGE_DEVICES 100000
#define EVENTS 200
#define DRIVERS 64
#define PODS 250
#define CREATES 250 /* that choose at once */
#define ALL_OF_THEM (SIZE_MAX - 1)

struct bench {
    struct devicemgr *mgr;
    uint64_t now_ms;
    uint64_t endpoint, call, commit; /* the latest */
    uint64_t claims_done;
    size_t commit_bytes; /* since the last look */
    uint64_t verdicts;
};

/* ---- ports ---- */

static void on_open(void *user, uint64_t endpoint, const char *resource, const char *socket,
                    uint32_t uid)
{
    (void)resource, (void)socket, (void)uid;
    ((struct bench *)user)->endpoint = endpoint;
}

static void on_close(void *user, uint64_t endpoint)
{
    (void)user, (void)endpoint;
}

static void on_registered(void *user, uint64_t registration, int code, const char *message)
{
    (void)user, (void)registration, (void)code, (void)message;
}

static void on_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t len, uint64_t timeout_ms)
{
    (void)endpoint, (void)ids, (void)len, (void)timeout_ms;
    ((struct bench *)user)->call = call;
}

static void on_cancel(void *user, uint64_t call)
{
    (void)user, (void)call;
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *rows, size_t len)
{
    struct bench *b = user;

    b->commit = commit;
    for (size_t i = 0; i < len; i++)
        b->commit_bytes += rows[i].value_bytes;
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    (void)user, (void)check, (void)container_id;
}

static void on_list(void *user)
{
    (void)user;
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    (void)create, (void)verdict;
    ((struct bench *)user)->verdicts++;
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)user, (void)level, (void)about, (void)text;
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    (void)user, (void)event;
}

static void on_driver_registered(void *user, uint64_t instance, int code, const char *message)
{
    (void)user, (void)instance, (void)message;
    if (code != 0)
        abort();
}

static void on_driver_call(void *user, uint64_t instance, uint64_t call,
                           struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                           uint64_t timeout_ms)
{
    (void)instance, (void)batch, (void)claim, (void)timeout_ms;
    ((struct bench *)user)->call = call;
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    (void)number, (void)done;
    ((struct bench *)user)->claims_done++;
}

static const struct devicemgr_ports PORTS = {.endpoint_open = on_open,
                                             .endpoint_close = on_close,
                                             .register_done = on_registered,
                                             .allocate = on_allocate,
                                             .call_cancel = on_cancel,
                                             .commit = on_commit,
                                             .container_check = on_check,
                                             .runtime_list = on_list,
                                             .verdict = on_verdict,
                                             .driver_registered = on_driver_registered,
                                             .driver_prepare = on_driver_call,
                                             .driver_unprepare = on_driver_call,
                                             .claim_done = on_claim_done,
                                             .event = on_event,
                                             .log = on_log};

/* ---- events ---- */

static void run(struct bench *b)
{
    devicemgr_run(b->mgr);
    while (b->commit) {
        uint64_t commit = b->commit;

        b->commit = 0;
        devicemgr_committed(b->mgr, b->now_ms, commit, NULL);
        devicemgr_run(b->mgr);
    }
}

/* `unhealthy`: the index of one that is; SIZE_MAX: none is. */
static void list(struct bench *b, uint64_t endpoint, size_t len, size_t unhealthy)
{
    V1beta1__ListAndWatchResponse message = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device *devices = calloc(len, sizeof *devices);
    V1beta1__Device **pointers = calloc(len, sizeof *pointers);
    char(*ids)[32] = calloc(len, sizeof *ids);

    for (size_t i = 0; i < len; i++) {
        snprintf(ids[i], sizeof ids[i], "d%zu", i);
        v1beta1__device__init(&devices[i]);
        devices[i].id = ids[i];
        devices[i].health =
            (char *)(i == unhealthy || unhealthy == ALL_OF_THEM ? "Unhealthy" : "Healthy");
        pointers[i] = &devices[i];
    }
    message.n_devices = len;
    message.devices = pointers;
    devicemgr_endpoint_list(b->mgr, b->now_ms, endpoint, &message);
    run(b);
    free(ids);
    free(pointers);
    free(devices);
}

static uint64_t plugin(struct bench *b, const char *resource, size_t devices)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    devicemgr_register(b->mgr, b->now_ms, 1, "v1beta1", "x.sock", 0, resource);
    devicemgr_run(b->mgr);
    devicemgr_endpoint_options(b->mgr, b->now_ms, b->endpoint, &options);
    list(b, b->endpoint, devices, SIZE_MAX);
    return b->endpoint;
}

static void sandbox_ran(struct bench *b, size_t pod)
{
    char id[32], uid[32];
    struct devicemgr_sandbox sandbox = {
        .id = id, .pod_uid = uid, .pod_namespace = "ns", .pod_name = uid, .ready = true};

    snprintf(id, sizeof id, "s%zu", pod);
    snprintf(uid, sizeof uid, "u%zu", pod);
    devicemgr_sandbox_ran(b->mgr, b->now_ms, &sandbox);
    run(b);
}

static void sandbox_removed(struct bench *b, size_t pod)
{
    char id[32];

    snprintf(id, sizeof id, "s%zu", pod);
    devicemgr_sandbox_removed(b->mgr, b->now_ms, id);
    run(b);
}

/* With a token for device `device`, or, SIZE_MAX, with an annotation for `count`. */
static void create(struct bench *b, size_t pod, const char *resource, size_t device, size_t count)
{
    char sandbox[32], uid[32], id[32], asked[64];
    struct ids ids = {(char *[]){id}, 1};
    struct devicemgr_annotation token, annotation = {REQUEST_KEY_PREFIX "main", asked};
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .pod_uid = uid,
                                       .pod_namespace = "ns",
                                       .pod_name = uid,
                                       .container = "main",
                                       .deadline_ms = UINT64_MAX};

    snprintf(sandbox, sizeof sandbox, "s%zu", pod);
    snprintf(uid, sizeof uid, "u%zu", pod);
    snprintf(id, sizeof id, "d%zu", device);
    snprintf(asked, sizeof asked, "%s=%zu", resource, count);
    token = (struct devicemgr_annotation){request_token_key(resource),
                                          request_token_value(resource, &ids)};
    if (device != SIZE_MAX) {
        request.container_annotations = &token;
        request.container_annotations_len = 1;
    } else {
        request.pod_annotations = &annotation;
        request.pod_annotations_len = 1;
    }
    if (!devicemgr_create(b->mgr, b->now_ms, 1000 + pod, &request))
        abort();
    run(b);
    free((char *)token.key);
    free((char *)token.value);
}

static void allocated(struct bench *b)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *all = &options;

    response.n_container_responses = 1;
    response.container_responses = &all;
    devicemgr_allocated(b->mgr, b->now_ms, b->call, 0, NULL, &response);
    run(b);
}

static void answered(struct bench *b, size_t pod)
{
    char id[32];

    snprintf(id, sizeof id, "c%zu", pod);
    devicemgr_create_answered(b->mgr, b->now_ms, 1000 + pod, id);
    run(b);
}

static void container(struct bench *b, size_t pod)
{
    uint64_t before = b->verdicts;

    sandbox_ran(b, pod);
    create(b, pod, GPU, pod, 0);
    allocated(b);
    if (b->verdicts == before)
        abort();
    answered(b, pod);
}

static void removed(struct bench *b, size_t container)
{
    char id[32];

    snprintf(id, sizeof id, "c%zu", container);
    devicemgr_container_removed(b->mgr, b->now_ms, id);
    run(b);
}

/* ---- measuring ---- */

static double cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void say(const char *what, size_t size, double us, double events)
{
    printf("%-56s %7zu %12.2f\n", what, size, us / events);
    fflush(stdout);
}

/* The core has its user in it: `b` must not move any more. */
static void start(struct bench *b, size_t gpus)
{
    static const char *const ALL[] = {"*"};
    const struct devicemgr_settings settings = {.grace_ms = 300000,
                                                .hold_ms = 60000,
                                                .allocate_timeout_ms = 10000,
                                                .mask_ms = 120000,
                                                .boot_id = "b",
                                                .annotations = true,
                                                .cluster = true,
                                                .namespaces = ALL,
                                                .namespaces_len = 1};

    *b = (struct bench){.now_ms = 1000};
    b->mgr = devicemgr_new(&settings, &PORTS, b);
    devicemgr_restored(b->mgr, b->now_ms);
    devicemgr_kubelet_listed(b->mgr, b->now_ms);
    devicemgr_runtime_listed(b->mgr, b->now_ms, NULL, 0, NULL, 0);
    run(b);
    plugin(b, GPU, gpus);
}

/* ---- what is measured ---- */

static void build_up(size_t containers)
{
    struct bench b;
    double from_us, us;

    start(&b, containers + EVENTS);
    from_us = cpu_us();
    for (size_t i = 0; i < containers; i++)
        container(&b, i);
    say("a container's whole way (5 events), n containers", containers, cpu_us() - from_us,
        (double)containers);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        sandbox_ran(&b, 1000000 + i);
    say("a sandbox runs beside n containers", containers, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++) {
        devicemgr_tick(b.mgr, ++b.now_ms);
        run(&b);
    }
    say("a tick beside n containers", containers, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        removed(&b, i % containers);
    say("a container is removed beside n containers", containers, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        sandbox_removed(&b, 1000000 + i);
    say("a sandbox is removed beside n containers", containers, cpu_us() - from_us, EVENTS);

    us = 0;
    for (size_t i = 0; i < 20; i++) {
        list(&b, plugin(&b, NIC, 1), 1, i % 2);
        from_us = cpu_us();
        devicemgr_endpoint_lost(b.mgr, b.now_ms, b.endpoint, "x");
        run(&b);
        us += cpu_us() - from_us;
        b.now_ms += 2000;
    }
    say("another resource's plugin is lost beside n", containers, us, 20);
    devicemgr_free(b.mgr);
}

/* One device each, of pods that have not come yet. */
static void kubelet_holds(struct bench *b, size_t len)
{
    struct devicemgr_kubelet_held *held = calloc(len, sizeof *held);
    char(*uids)[32] = calloc(len, sizeof *uids), (*ids)[32] = calloc(len, sizeof *ids);
    const char **pointers = calloc(len, sizeof *pointers);

    for (size_t i = 0; i < len; i++) {
        snprintf(uids[i], sizeof uids[i], "h%zu", i);
        snprintf(ids[i], sizeof ids[i], "d%zu", i);
        pointers[i] = ids[i];
        held[i] = (struct devicemgr_kubelet_held){.pod_uid = uids[i],
                                                  .container = "main",
                                                  .resource = GPU,
                                                  .ids = &pointers[i],
                                                  .ids_len = 1};
    }
    devicemgr_kubelet_holds(b->mgr, b->now_ms, b->now_ms, held, len);
    run(b);
    free(pointers);
    free(ids);
    free(uids);
    free(held);
}

static void beside_the_kubelets(size_t holds)
{
    struct bench b;
    double from_us;

    start(&b, holds);
    from_us = cpu_us();
    for (size_t i = 0; i < 20; i++)
        kubelet_holds(&b, holds);
    say("the kubelet's checkpoint is told, n entries", holds, cpu_us() - from_us, 20);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        sandbox_ran(&b, i);
    say("a sandbox runs, the kubelet's checkpoint has n", holds, cpu_us() - from_us, EVENTS);
    devicemgr_free(b.mgr);
}

static void waiting_for_a_plugin(size_t waiting)
{
    struct bench b;
    uint64_t endpoint;
    double from_us;

    start(&b, waiting);
    endpoint = plugin(&b, NIC, 4);
    plugin(&b, GPU, waiting);
    devicemgr_endpoint_lost(b.mgr, b.now_ms, b.endpoint, "x");
    run(&b);
    devicemgr_endpoint_lost(b.mgr, b.now_ms, b.endpoint, "x");
    run(&b);
    from_us = cpu_us();
    for (size_t i = 0; i < waiting; i++)
        create(&b, i, GPU, i, 0);
    say("one more creation waits for a plugin that is away", waiting, cpu_us() - from_us,
        (double)waiting);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        list(&b, endpoint, 4, i % 2);
    say("another resource's list, n creations wait", waiting, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        sandbox_ran(&b, 1000000 + i);
    say("a sandbox runs, n creations wait", waiting, cpu_us() - from_us, EVENTS);
    devicemgr_free(b.mgr);
}

/* By annotation, for one of a thousand that are all unhealthy. */
static void waiting_for_a_device(size_t waiting)
{
    struct bench b;
    double from_us;

    start(&b, 1000);
    list(&b, b.endpoint, 1000, ALL_OF_THEM);
    from_us = cpu_us();
    for (size_t i = 0; i < waiting; i++)
        create(&b, i, GPU, SIZE_MAX, 1);
    say("one more creation waits for a device", waiting, cpu_us() - from_us, (double)waiting);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        sandbox_ran(&b, 1000000 + i);
    say("a sandbox runs, n creations wait for a device", waiting, cpu_us() - from_us, EVENTS);
    devicemgr_free(b.mgr);
}

static void large_resource(size_t devices)
{
    struct bench b;
    uint64_t large;
    double from_us, us = 0;

    start(&b, 1000);
    large = plugin(&b, NIC, devices);
    b.commit_bytes = 0;
    for (size_t i = 0; i < 20; i++) {
        list(&b, large, devices, i); /* its time is the plugin's */
        from_us = cpu_us();
        container(&b, i);
        us += cpu_us() - from_us;
    }
    say("a container after a health change of n devices", devices, us, 20);
    say("  bytes to the checkpoint", devices, (double)b.commit_bytes, 20);

    from_us = cpu_us();
    for (size_t i = 0; i < 20; i++) {
        create(&b, 1000 + i, NIC, SIZE_MAX, 1);
        allocated(&b);
        answered(&b, 1000 + i);
    }
    say("a container chooses one of n devices", devices, cpu_us() - from_us, 20);
    devicemgr_free(b.mgr);
}

/* All of them are looked at when the plugin is back. */
static void many_choose(size_t devices)
{
    struct bench b;
    double from_us;

    start(&b, devices);
    list(&b, b.endpoint, devices, ALL_OF_THEM);
    for (size_t i = 0; i < CREATES; i++)
        create(&b, i, GPU, SIZE_MAX, 1);
    from_us = cpu_us();
    list(&b, b.endpoint, devices, SIZE_MAX);
    say("250 creations choose among n devices in one pass", devices, cpu_us() - from_us, 1);
    devicemgr_free(b.mgr);
}

/* ---- claims ---- */

/* Claim i is of driver i % DRIVERS, of pod i % PODS, and has a device of its own, half of what
 * there is of one counter of its driver's one slice. */
static void driver_name(size_t i, char name[32])
{
    snprintf(name, 32, "d%zu.example.com", i % DRIVERS);
}

static void slice(struct bench *b, size_t driver, size_t claims)
{
    const size_t len = claims / DRIVERS + 1;
    char uid[32], name[32], (*ids)[32] = calloc(len, sizeof *ids),
                            (*counted)[32] = calloc(len, sizeof *counted);
    const char **devices = calloc(len, sizeof *devices);
    struct devicemgr_counter *counters = calloc(len, sizeof *counters);
    struct devicemgr_draw *draws = calloc(len, sizeof *draws);

    snprintf(uid, sizeof uid, "slice-%zu", driver);
    driver_name(driver, name);
    for (size_t i = 0; i < len; i++) {
        snprintf(ids[i], sizeof ids[i], "dev-%zu", driver + i * DRIVERS);
        snprintf(counted[i], sizeof counted[i], "counter-%zu", i);
        devices[i] = ids[i];
        counters[i] = (struct devicemgr_counter){.name = counted[i], .there = true, .much = 2};
        draws[i] = (struct devicemgr_draw){.device = ids[i], .counter = i / 2, .much = 1};
    }
    devicemgr_slice(b->mgr, b->now_ms,
                    &(struct devicemgr_slice){.uid = uid,
                                              .driver = name,
                                              .pool = "p",
                                              .devices = devices,
                                              .devices_len = len,
                                              .counters = counters,
                                              .counters_len = len,
                                              .draws = draws,
                                              .draws_len = len});
    run(b);
    devicemgr_slice_taints(b->mgr, b->now_ms, uid, name, "p", 1, NULL, 0);
    run(b);
    free(draws);
    free(counters);
    free(devices);
    free(counted);
    free(ids);
}

static void driver(struct bench *b, size_t i, size_t claims)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin"};
    char name[32], endpoint[32];

    driver_name(i, name);
    snprintf(endpoint, sizeof endpoint, "/x/%zu.sock", i);
    devicemgr_driver_register(b->mgr, b->now_ms, 1 + i,
                              &(struct devicemgr_driver_instance){name, endpoint, SERVICES, 1});
    run(b);
    devicemgr_driver_connected(b->mgr, b->now_ms, 1 + i);
    run(b);
    slice(b, i, claims);
}

static void claim_answered(struct bench *b, size_t i)
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__Device device = DRA__V1__DEVICE__INIT, *devices = &device;
    char id[32], cdi[48], *names = cdi;
    uint8_t bytes[256];

    snprintf(id, sizeof id, "dev-%zu", i);
    snprintf(cdi, sizeof cdi, "example.com/dev=%zu", i);
    device.pool_name = (char *)"p";
    device.device_name = id;
    device.cdi_device_ids = &names;
    device.n_cdi_device_ids = 1;
    message.devices = &devices;
    message.n_devices = 1;
    devicemgr_claim_answered(b->mgr, b->now_ms, b->call, 0, NULL, bytes,
                             dra__v1__node_prepare_resource_response__pack(&message, bytes));
    run(b);
}

static void claim(struct bench *b, size_t i)
{
    char uid[32], name[32], id[32], pod[32];
    const char *pods = pod;
    const uint64_t before = b->claims_done;
    struct devicemgr_claim is = {.pod_namespace = "ns", .name = uid, .uid = uid};
    struct devicemgr_claim_device device = {.driver = name, .pool = "p", .device = id};
    struct devicemgr_claim_consumers consumers = {.reserved_for = &pods, .reserved_for_len = 1};

    snprintf(uid, sizeof uid, "claim-%zu", i);
    snprintf(id, sizeof id, "dev-%zu", i);
    snprintf(pod, sizeof pod, "u%zu", i % PODS);
    driver_name(i, name);
    devicemgr_claim_prepare(b->mgr, b->now_ms, 1 + i, (struct devicemgr_batch){0}, name, &is);
    run(b);
    devicemgr_claim_allocation(b->mgr, b->now_ms, uid, true, &device, 1);
    devicemgr_claim_consumers(b->mgr, b->now_ms, uid, &consumers);
    run(b);
    claim_answered(b, i);
    if (b->claims_done == before)
        abort();
}

/* Container i has claim i. */
static void claims_container(struct bench *b, size_t i)
{
    char sandbox[32], uid[32], name[32], cdi[48], id[32];
    const char *names = cdi;
    const uint64_t before = b->verdicts;
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .pod_uid = uid,
                                       .pod_namespace = "ns",
                                       .pod_name = uid,
                                       .container = name,
                                       .cdi_devices = &names,
                                       .cdi_devices_len = 1,
                                       .deadline_ms = UINT64_MAX};

    snprintf(sandbox, sizeof sandbox, "s%zu", i % PODS);
    snprintf(uid, sizeof uid, "u%zu", i % PODS);
    snprintf(name, sizeof name, "n%zu", i);
    snprintf(cdi, sizeof cdi, "example.com/dev=%zu", i);
    snprintf(id, sizeof id, "c%zu", i);
    if (!devicemgr_create(b->mgr, b->now_ms, 1000 + i, &request))
        abort();
    run(b);
    if (b->verdicts == before)
        abort();
    devicemgr_create_answered(b->mgr, b->now_ms, 1000 + i, id);
    run(b);
}

/* The runtime's list: all of them run. */
static void claims_listed(struct bench *b, size_t claims)
{
    struct devicemgr_sandbox *sandboxes = calloc(PODS, sizeof *sandboxes);
    struct devicemgr_container *containers = calloc(claims, sizeof *containers);
    char(*texts)[3][32] = calloc(claims + PODS, sizeof *texts);

    for (size_t i = 0; i < PODS; i++) {
        char(*text)[32] = texts[i];

        snprintf(text[0], sizeof text[0], "s%zu", i);
        snprintf(text[1], sizeof text[1], "u%zu", i);
        sandboxes[i] = (struct devicemgr_sandbox){.id = text[0],
                                                  .pod_uid = text[1],
                                                  .pod_namespace = "ns",
                                                  .pod_name = text[1],
                                                  .ready = true};
    }
    for (size_t i = 0; i < claims; i++) {
        char(*text)[32] = texts[PODS + i];

        snprintf(text[0], sizeof text[0], "c%zu", i);
        snprintf(text[1], sizeof text[1], "n%zu", i);
        containers[i] = (struct devicemgr_container){
            .id = text[0], .sandbox_id = texts[i % PODS][0], .name = text[1], .running = true};
    }
    devicemgr_runtime_listing(b->mgr);
    devicemgr_runtime_listed(b->mgr, b->now_ms, sandboxes, PODS, containers, claims);
    run(b);
    free(texts);
    free(containers);
    free(sandboxes);
}

static void beside_claims(struct bench *b, size_t claims, const char *what)
{
    char line[64];
    double from_us = cpu_us();

    for (size_t i = 0; i < EVENTS; i++) {
        devicemgr_tick(b->mgr, ++b->now_ms);
        run(b);
    }
    snprintf(line, sizeof line, "a tick beside n claims%s", what);
    say(line, claims, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        devicemgr_next_ms(b->mgr);
    snprintf(line, sizeof line, "when it is next due, beside n claims%s", what);
    say(line, claims, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        sandbox_ran(b, 1000000 + i);
    for (size_t i = 0; i < EVENTS; i++)
        sandbox_removed(b, 1000000 + i);
    snprintf(line, sizeof line, "a sandbox comes, goes beside n claims%s", what);
    say(line, claims, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < DRIVERS; i++)
        slice(b, i, claims);
    snprintf(line, sizeof line, "a slice is told beside n claims%s", what);
    say(line, claims, cpu_us() - from_us, DRIVERS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        claim(b, i % claims);
    snprintf(line, sizeof line, "a claim is prepared beside n claims%s", what);
    say(line, claims, cpu_us() - from_us, EVENTS);

    from_us = cpu_us();
    for (size_t i = 0; i < EVENTS; i++)
        claims_container(b, i % claims);
    snprintf(line, sizeof line, "a container of one of n claims%s", what);
    say(line, claims, cpu_us() - from_us, EVENTS);

    b->now_ms += 600000;
    from_us = cpu_us();
    for (size_t i = 0; i < 20; i++)
        claims_listed(b, claims);
    snprintf(line, sizeof line, "the runtime's list, n containers with claims%s", what);
    say(line, claims, cpu_us() - from_us, 20);
}

static void with_claims(size_t claims)
{
    struct devicemgr_taint_rule rule = {
        .name = "r",
        .driver = "d1.example.com",
        .pool = "p",
        .device = "nothing",
        .taint = {.key = "k", .value = "", .effect = "NoExecute", .added_s = 1}};
    struct bench b;
    double from_us;

    start(&b, 1000);
    for (size_t i = 0; i < DRIVERS; i++)
        driver(&b, i, claims);
    for (size_t i = 0; i < PODS; i++)
        sandbox_ran(&b, i);
    from_us = cpu_us();
    for (size_t i = 0; i < claims; i++) {
        claim(&b, i);
        claims_container(&b, i);
    }
    say("a claim's and its container's whole way, n claims", claims, cpu_us() - from_us,
        (double)claims);
    devicemgr_taints_told(b.mgr, b.now_ms);
    beside_claims(&b, claims, "");
    devicemgr_taint_rule(b.mgr, b.now_ms, "r", &rule);
    run(&b);
    beside_claims(&b, claims, ", NoExecute");
    rule.driver = NULL;
    devicemgr_taint_rule(b.mgr, b.now_ms, "r", &rule);
    run(&b);
    beside_claims(&b, claims, ", of any");
    devicemgr_free(b.mgr);
}

static const struct part {
    const char *name;
    void (*run)(size_t size);
    size_t sizes[3]; /* 0: no more */
} PARTS[] = {
    {"containers", build_up, {100, 1000, 10000}},
    {"kubelet", beside_the_kubelets, {100, 1000, 10000}},
    {"plugin", waiting_for_a_plugin, {100, 1000, 4000}}, /* CREATES_MAX is 4096 */
    {"device", waiting_for_a_device, {100, 1000, 4000}},
    {"large", large_resource, {1000, 10000, LARGE_DEVICES}},
    {"choose", many_choose, {1000, 10000, LARGE_DEVICES}},
    {"claims", with_claims, {100, 1000}},
};

int main(int argc, char **argv)
{
    const size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : SIZE_MAX;

    printf("%-56s %7s %12s\n", "", "n", "us an event");
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        for (size_t k = 0; k < 3 && PARTS[i].sizes[k] > 0; k++) {
            if (PARTS[i].sizes[k] <= most && (argc < 3 || strcmp(argv[2], PARTS[i].name) == 0))
                PARTS[i].run(PARTS[i].sizes[k]);
        }
    }
    return 0;
}
