/*
 * What one device costs on the way to the kubelet, for a resource of 1,000, 10,000, 100,000: a pod
 * that takes it, which the kubelet is not shown, and its health, which it is. CPU time: the
 * daemon's (comparing with what the core shows, and the message), the bridge's (reading the message
 * and taking it, and where it shows, making the kubelet's list), and the message's bytes.
 *
 *     feed_bench
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shim/bridge/offer.h"
#include "shim/kubelet/advertised.h"

#define GPU "vendor.com/gpu"
#define ROUNDS 20

struct bench {
    struct devicemgr *core;
    struct advertised advertised;
    struct advertised_reader reader;
    struct offer offer;
    struct devicemgr_builtin_device *devices;
    char (*ids)[24];
    size_t len;
    double daemon_us, bridge_us;
    size_t bytes;
};

static void ignore_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)user, (void)level, (void)about, (void)text;
}

static void ignore_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                          size_t records_len)
{
    (void)user, (void)commit, (void)records, (void)records_len;
}

static const struct devicemgr_ports PORTS = {.log = ignore_log, .commit = ignore_commit};

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* ---- the daemon ---- */

static uint8_t *message(struct bench *b)
{
    struct advertised_message message;
    uint8_t *bytes;

    advertised_message_init(&message, &b->advertised, &b->reader, 1000);
    b->bytes = protobuf_c_message_get_packed_size(&message.response.base);
    bytes = need(malloc(b->bytes + 1));
    protobuf_c_message_pack(&message.response.base, bytes);
    b->reader.through = message.through;
    advertised_message_fini(&message);
    return bytes;
}

/* ---- the bridge ---- */

static void take(struct bench *b, const uint8_t *bytes)
{
    Bridge__V1__WatchResponse *response =
        need(bridge__v1__watch_response__unpack(NULL, b->bytes, bytes));
    int shows = offer_take(&b->offer, response->resources[0]);
    uint8_t *health = need(malloc(b->len + 1));
    struct packed answer = {0};

    if (shows > 0) {
        list_health(b->offer.list, b->offer.masked, health);
        if (list_answer(b->offer.list, health, &answer) < 0)
            abort();
    }
    if (shows < 0)
        abort();
    free(health);
    packed_fini(&answer);
    bridge__v1__watch_response__free_unpacked(response, NULL);
}

static void pass(struct bench *b)
{
    double began_us = now_us(), sent_us;
    uint8_t *bytes;

    advertised_update(&b->advertised, b->core);
    bytes = message(b);
    sent_us = now_us();
    take(b, bytes);
    b->daemon_us += sent_us - began_us;
    b->bridge_us += now_us() - sent_us;
    free(bytes);
}

/* ---- what happens ---- */

static void list_devices(struct bench *b)
{
    devicemgr_builtin(b->core, 1, GPU, b->devices, b->len);
    devicemgr_run(b->core);
}

static void hold(struct bench *b, size_t device)
{
    const char *id = b->ids[device];
    const struct devicemgr_kubelet_held held = {
        .pod_uid = "uid", .container = "main", .resource = GPU, .ids = &id, .ids_len = 1};

    devicemgr_kubelet_holds(b->core, 1, 1, &held, 1);
    devicemgr_run(b->core);
}

static void turn(struct bench *b, size_t device)
{
    b->devices[device].healthy = !b->devices[device].healthy;
    list_devices(b);
}

static void measure(struct bench *b, const char *what,
                    void (*event)(struct bench *b, size_t device))
{
    b->daemon_us = b->bridge_us = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        event(b, i * 37 % b->len);
        pass(b);
    }
    printf("%8zu devices, %s: daemon %8.0f us, bridge %8.0f us, message %8zu bytes\n", b->len, what,
           b->daemon_us / ROUNDS, b->bridge_us / ROUNDS, b->bytes);
}

static void run(size_t len)
{
    const struct devicemgr_settings settings = {.grace_ms = 1000, .boot_id = "boot"};
    struct bench b = {.reader.takes_changes = true, .len = len};

    b.core = devicemgr_new(&settings, &PORTS, NULL);
    devicemgr_restored(b.core, 1);
    b.devices = need(calloc(len, sizeof *b.devices));
    b.ids = need(calloc(len, sizeof *b.ids));
    for (size_t i = 0; i < len; i++) {
        snprintf(b.ids[i], sizeof b.ids[i], "GPU-%08zx", i);
        b.devices[i] = (struct devicemgr_builtin_device){.id = b.ids[i],
                                                         .healthy = true,
                                                         .host_path = "/dev/null",
                                                         .container_path = "/dev/null",
                                                         .permissions = "rw"};
    }
    list_devices(&b);
    pass(&b);
    measure(&b, "held  ", hold);
    measure(&b, "health", turn);
    offer_fini(&b.offer);
    advertised_fini(&b.advertised);
    devicemgr_free(b.core);
    free(b.devices);
    free(b.ids);
}

int main(void)
{
    for (size_t len = 1000; len <= 100000; len *= 10)
        run(len);
    return EXIT_SUCCESS;
}
