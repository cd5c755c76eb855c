/*
 * What an event costs the device manager's core: with 100, 1,000, 10,000 containers that hold a
 * device, with 100, 1,000, 4,000 creations that wait, with a resource of 100,000 devices. CPU time,
 * on the core alone: its ports do nothing but take down what is to be answered.
 *
 *     core_bench [SIZE_MAX]     leaves out sizes above SIZE_MAX
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/things/request.h"

#define GPU "vendor.com/gpu"
#define NIC "other.com/nic"
#define LARGE_DEVICES 100000
#define EVENTS 200
#define ALL_OF_THEM (SIZE_MAX - 1)

struct bench {
    struct devicemgr *mgr;
    uint64_t now_ms;
    uint64_t endpoint, call, commit; /* the latest */
    size_t commit_bytes;             /* since the last look */
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

static const struct devicemgr_ports PORTS = {.endpoint_open = on_open,
                                             .endpoint_close = on_close,
                                             .register_done = on_registered,
                                             .allocate = on_allocate,
                                             .call_cancel = on_cancel,
                                             .commit = on_commit,
                                             .container_check = on_check,
                                             .runtime_list = on_list,
                                             .verdict = on_verdict,
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
    printf("%-52s %7zu %12.2f\n", what, size, us / events);
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

int main(int argc, char **argv)
{
    const size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : SIZE_MAX;
    const size_t containers[] = {100, 1000, 10000};
    const size_t creations[] = {100, 1000, 4000}; /* CREATES_MAX is 4096 */
    const size_t devices[] = {1000, 10000, LARGE_DEVICES};

    printf("%-52s %7s %12s\n", "", "n", "us an event");
    for (size_t i = 0; i < 3 && containers[i] <= most; i++)
        build_up(containers[i]);
    for (size_t i = 0; i < 3 && containers[i] <= most; i++)
        beside_the_kubelets(containers[i]);
    for (size_t i = 0; i < 3 && creations[i] <= most; i++)
        waiting_for_a_plugin(creations[i]);
    for (size_t i = 0; i < 3 && creations[i] <= most; i++)
        waiting_for_a_device(creations[i]);
    for (size_t i = 0; i < 3 && devices[i] <= most; i++)
        large_resource(devices[i]);
    return 0;
}
