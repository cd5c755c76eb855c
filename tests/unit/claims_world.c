#include "claims_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/dra_v1.pb-c.h"

int claims_setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    devicemgr_restored(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
    ignore_all(w);
    forget_logs(w);
    return 0;
}

void driver_register(struct world *w, uint64_t instance, const char *name, const char *endpoint)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
    const struct devicemgr_driver_instance is = {name, endpoint, SERVICES, 2};

    devicemgr_driver_register(w->mgr, w->now_ms, instance, &is);
    devicemgr_run(w->mgr);
}

void driver_connected(struct world *w, uint64_t instance)
{
    devicemgr_driver_connected(w->mgr, w->now_ms, instance);
    devicemgr_run(w->mgr);
}

void driver_lost(struct world *w, uint64_t instance, const char *why)
{
    devicemgr_driver_lost(w->mgr, w->now_ms, instance, why);
    devicemgr_run(w->mgr);
}

void driver_deregister(struct world *w, uint64_t instance)
{
    devicemgr_driver_deregister(w->mgr, w->now_ms, instance);
    devicemgr_run(w->mgr);
}

void driver_up(struct world *w, uint64_t instance, const char *name)
{
    char endpoint[64], line[64];

    snprintf(endpoint, sizeof endpoint, "/x/%" PRIu64 ".sock", instance);
    snprintf(line, sizeof line, "driver %" PRIu64 " registered", instance);
    driver_register(w, instance, name, endpoint);
    expect(w, line);
    snprintf(line, sizeof line, "commit driver %s", name);
    expect(w, line);
    committed(w);
    driver_connected(w, instance);
    expect_nothing(w);
}

static const struct devicemgr_batch ALONE = {0};

static struct devicemgr_claim names_of(const char *uid)
{
    return (struct devicemgr_claim){.pod_namespace = "ns", .name = uid, .uid = uid};
}

void prepare_of(struct world *w, uint64_t number, const char *driver, const char *uid)
{
    const struct devicemgr_claim claim = names_of(uid);

    devicemgr_claim_prepare(w->mgr, w->now_ms, number, ALONE, driver, &claim);
    devicemgr_run(w->mgr);
}

void unprepare_of(struct world *w, uint64_t number, const char *driver, const char *uid)
{
    const struct devicemgr_claim claim = names_of(uid);

    devicemgr_claim_unprepare(w->mgr, w->now_ms, number, ALONE, driver, &claim);
    devicemgr_run(w->mgr);
}

void prepare(struct world *w, uint64_t number, const char *uid)
{
    prepare_of(w, number, DRIVER, uid);
}

void unprepare(struct world *w, uint64_t number, const char *uid)
{
    unprepare_of(w, number, DRIVER, uid);
}

void ask_in_batch(struct world *w, uint64_t number, bool prepares, struct devicemgr_batch batch,
                  const char *uid)
{
    const struct devicemgr_claim claim = names_of(uid);

    if (prepares)
        devicemgr_claim_prepare(w->mgr, w->now_ms, number, batch, DRIVER, &claim);
    else
        devicemgr_claim_unprepare(w->mgr, w->now_ms, number, batch, DRIVER, &claim);
}

void claim_cancelled(struct world *w, uint64_t number)
{
    devicemgr_claim_cancelled(w->mgr, w->now_ms, number);
    devicemgr_run(w->mgr);
}

#define DEVICES_MAX 8
#define NAMES_MAX 2

struct answered {
    Dra__V1__Device device;
    char *request;
    char names[NAMES_MAX][64];
    char *ids[NAMES_MAX];
};

/* "pool/device:name+name"; the pool may be left out, and so may the names. */
static void read_device(struct answered *to, char *word)
{
    Dra__V1__Device *device = &to->device;
    char *names = strchr(word, ':'), *request = strchr(word, '@'), *slash, *name;

    if (request)
        *request++ = '\0';
    to->request = request;
    if (names)
        *names++ = '\0';
    slash = strchr(word, '/');
    if (slash)
        *slash = '\0';
    dra__v1__device__init(device);
    device->request_names = &to->request;
    device->n_request_names = request != NULL;
    for (; word[0] == '*'; word++) {
        device->share_id = (char *)(device->shared_case ? "another" : "s");
        device->shared_case = DRA__V1__DEVICE__SHARED_SHARE_ID;
    }
    device->pool_name = slash ? word : (char *)"p";
    device->device_name = slash ? slash + 1 : word;
    device->cdi_device_ids = to->ids;
    if (!names)
        names = device->device_name;
    for (char *rest = names; device->n_cdi_device_ids < NAMES_MAX && (name = strsep(&rest, "+"));) {
        char *id = to->ids[device->n_cdi_device_ids] = to->names[device->n_cdi_device_ids];

        snprintf(id, sizeof to->names[0], "example.com/dev=%s", name);
        device->n_cdi_device_ids++;
    }
}

size_t claim_response(const char *devices, uint8_t bytes[1024])
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    struct answered items[DEVICES_MAX];
    Dra__V1__Device *v[DEVICES_MAX];
    char *words = strdup(devices), *rest = NULL;
    size_t len;

    message.devices = v;
    for (char *name = strtok_r(words, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        size_t i = message.n_devices++;

        read_device(&items[i], name);
        v[i] = &items[i].device;
    }
    assert_true(dra__v1__node_prepare_resource_response__get_packed_size(&message) <= 1024);
    len = dra__v1__node_prepare_resource_response__pack(&message, bytes);
    free(words);
    return len;
}

void claim_answered(struct world *w, const char *devices)
{
    uint8_t bytes[1024];
    size_t len = claim_response(devices, bytes);

    devicemgr_claim_answered(w->mgr, w->now_ms, w->call, 0, NULL, bytes, len);
    devicemgr_run(w->mgr);
}

void slice_told(struct world *w, struct devicemgr_slice slice)
{
    devicemgr_slice(w->mgr, w->now_ms, &slice);
    devicemgr_run(w->mgr);
}

void slice_is(struct world *w, const char *pool, const char *device)
{
    slice_told(w, (struct devicemgr_slice){device, DRIVER, pool, &device, .devices_len = 1});
}

void claim_allocated(struct world *w, const char *uid, const char *pool, const char *device)
{
    const struct devicemgr_claim_device is = {.driver = DRIVER, .pool = pool, .device = device};

    devicemgr_claim_allocation(w->mgr, w->now_ms, uid, true, &is, 1);
    devicemgr_run(w->mgr);
}

void claim_unprepared(struct world *w)
{
    devicemgr_claim_answered(w->mgr, w->now_ms, w->call, 0, NULL, NULL, 0);
    devicemgr_run(w->mgr);
}

void claim_in_use(struct world *w)
{
    devicemgr_claim_in_use(w->mgr, w->now_ms, w->call);
    devicemgr_run(w->mgr);
}

void claim_failed(struct world *w, int code, const char *message)
{
    devicemgr_claim_answered(w->mgr, w->now_ms, w->call, code, message, NULL, 0);
    devicemgr_run(w->mgr);
}

void claim_sent(struct world *w, uint64_t number, const char *uid)
{
    prepare(w, number, uid);
    expect_stored(w, "commit claim *");
    expect(w, "prepare *");
}

void claim_prepared(struct world *w, uint64_t number, const char *uid, const char *response)
{
    uint8_t bytes[1024];
    size_t len = claim_response(response, bytes);
    char line[128];

    claim_sent(w, number, uid);
    claim_answered(w, response);
    expect_stored(w, "commit claim *");
    snprintf(line, sizeof line, "claim %" PRIu64 " done: %s", number, world_response(bytes, len));
    expect(w, line);
    expect_nothing(w);
}

static void add_driver(void *user, const struct devicemgr_driver *driver)
{
    char *text = user;
    size_t n = strlen(text);

    n += (size_t)snprintf(text + n, 256 - n, "%s%s%s", n ? " " : "", driver->name,
                          driver->connected    ? "+"
                          : driver->registered ? "!"
                                               : "?");
    if (driver->owed > 0)
        snprintf(text + n, 256 - n, "(%zu-%zu)", driver->claims, driver->owed);
    else if (driver->claims > 0)
        snprintf(text + n, 256 - n, "(%zu)", driver->claims);
}

void expect_drivers(struct world *w, const char *expected)
{
    char text[256] = "";

    devicemgr_drivers(w->mgr, add_driver, text);
    assert_string_equal(text, expected);
}

struct services {
    const char *driver;
    char text[256];
};

static void add_services(void *user, const struct devicemgr_driver *driver)
{
    struct services *services = user;
    size_t n = 0;

    if (strcmp(driver->name, services->driver) != 0)
        return;
    for (size_t i = 0; i < driver->services_len; i++)
        n += (size_t)snprintf(services->text + n, sizeof services->text - n, "%s%s", i ? " " : "",
                              driver->services[i]);
}

void expect_services(struct world *w, const char *driver, const char *expected)
{
    struct services services = {.driver = driver};

    devicemgr_drivers(w->mgr, add_services, &services);
    assert_string_equal(services.text, expected);
}

const char *claim_on_disk(const struct world *w, const char *uid, const char *driver)
{
    static char state[32];

    for (const struct world_row *row = w->disk; row; row = row->next) {
        const struct devicemgr_record *record = &row->record;
        Checkpoint__V1__Claim *claim;

        if (record->kind != DEVICEMGR_RECORD_CLAIM || strcmp(record->key[0], uid) != 0 ||
            strcmp(record->key[1], driver) != 0)
            continue;
        claim = checkpoint__v1__claim__unpack(NULL, record->value_bytes, record->value);
        assert_non_null(claim);
        snprintf(state, sizeof state, "%s", claim->state);
        checkpoint__v1__claim__free_unpacked(claim, NULL);
        return state;
    }
    return NULL;
}
