#include "shim/core/drivers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/methods.h"
#include "devicemgr/codes.h"
#include "devicemgr/dra.h"
#include "shim/boot_clock.h"
#include "shim/core/host_state.h"
#include "shim/dra/driver_client.h"
#include "shim/dra/kubelet_claims.h"
#include "shim/must.h"
#include "shim/registry/elsewhere.h"
#include "shim/registry/registry.h"
#include "shim/stopping.h"

#define REFUSAL_BYTES_MAX (SERVICES_WORDS_BYTES_MAX + 512)
/* At the start all are away, for a moment: those that are here are to be known before others are
 * asked, or one that is at both would count as moved. */
#define FIRST_ASK_MS 1000

/* A registration of a driver that is not over. */
struct instance {
    UT_hash_handle hh;
    uint64_t number;
    char *name;
    char *endpoint;
    enum driver_service service;
    bool health;
};

struct drivers {
    struct host *host;
    struct registry *registry;
    struct elsewhere *elsewhere;
    struct driver_clients *clients;
    struct instance *instances;
    unsigned settling; /* how many are looked up in the kubelet's books */
    bool stops;
    struct stopping stopping;
};

/* One that is. */
struct settling {
    struct drivers *drivers;
    uint64_t instance, call, timeout_ms;
    bool asked;
    char *pod_namespace, *name, *uid;
};

static struct devicemgr *core_of(const struct drivers *drivers)
{
    return host_core(drivers->host);
}

static struct instance *find(struct drivers *drivers, uint64_t number)
{
    struct instance *instance;

    HASH_FIND(hh, drivers->instances, &number, sizeof number, instance);
    return instance;
}

static void forget(struct drivers *drivers, struct instance *instance)
{
    HASH_DEL(drivers->instances, instance);
    free(instance->name);
    free(instance->endpoint);
    free(instance);
}

/* What it says; NULL: its word counts no longer. */
static void tell_health(struct drivers *drivers, const struct instance *instance,
                        const DraHealth__V1alpha1__NodeWatchResourcesResponse *response)
{
    const struct host *host = drivers->host;

    if (instance && host->ops->driver_health)
        host->ops->driver_health(host->user, instance->name, instance->number, response);
}

/* ---- registrations ---- */

/* In the kubelet's words (pkg/kubelet/cm/dra/plugin). */
static void refuse_services(struct drivers *drivers, uint64_t registration, const char *name,
                            const char *endpoint, const char *wrong)
{
    char words[REFUSAL_BYTES_MAX];

    snprintf(words, sizeof words,
             "invalid supported gRPC versions of DRA driver plugin %s at endpoint %s: %s", name,
             endpoint, wrong);
    registry_refuse(drivers->registry, registration, words);
}

static struct instance *add(struct drivers *drivers, uint64_t number, const char *name,
                            const char *endpoint, enum driver_service service)
{
    struct instance *instance = must(calloc(1, sizeof *instance));

    instance->number = number;
    instance->name = must(strdup(name));
    instance->endpoint = must(strdup(endpoint));
    instance->service = service;
    HASH_ADD(hh, drivers->instances, number, sizeof instance->number, instance);
    return instance;
}

static void on_driver(void *user, uint64_t registration, const char *name, const char *endpoint,
                      const char *const *services, size_t services_len)
{
    const struct devicemgr_driver_instance is = {
        .name = name, .endpoint = endpoint, .services = services, .services_len = services_len};
    struct drivers *drivers = user;
    char wrong[SERVICES_WORDS_BYTES_MAX];
    struct instance *instance;
    enum driver_service service;

    if (!services_choose(services, services_len, &service, wrong)) {
        refuse_services(drivers, registration, name, endpoint, wrong);
        return;
    }
    instance = add(drivers, registration, name, endpoint, service);
    instance->health = services_have_health(services, services_len);
    devicemgr_driver_register(core_of(drivers), boot_now_ms(), registration, &is);
    host_kick(drivers->host);
}

static void on_plugin(void *user, uint64_t registration, const char *resource, const char *endpoint,
                      uid_t uid)
{
    struct drivers *drivers = user;

    devicemgr_register_at(core_of(drivers), boot_now_ms(), registration, DEVICEPLUGIN_VERSION,
                          endpoint, uid, resource);
    host_kick(drivers->host);
}

/* A device plugin is there for as long as its list is, as one that has called Register. */
static void on_gone(void *user, uint64_t registration)
{
    struct drivers *drivers = user;
    struct instance *instance = find(drivers, registration);

    if (instance) {
        driver_clients_close(drivers->clients, registration);
        tell_health(drivers, instance, NULL);
        forget(drivers, instance);
        devicemgr_driver_deregister(core_of(drivers), boot_now_ms(), registration);
    } else {
        devicemgr_register_cancelled(core_of(drivers), registration);
    }
    host_kick(drivers->host);
}

static const struct registry_ops REGISTRY_OPS = {
    .driver = on_driver, .plugin = on_plugin, .gone = on_gone};

/* ---- with the kubelet itself ---- */

static bool on_elsewhere(void *user, uint64_t number, const char *name, const char *endpoint,
                         const char *const *services, size_t services_len, uid_t uid)
{
    const struct devicemgr_driver_instance is = {
        .name = name, .endpoint = endpoint, .services = services, .services_len = services_len};
    struct drivers *drivers = user;
    char wrong[SERVICES_WORDS_BYTES_MAX];
    enum driver_service service;

    if (!services_choose(services, services_len, &service, wrong) ||
        !devicemgr_driver_moved(core_of(drivers), boot_now_ms(), number, &is))
        return false;
    add(drivers, number, name, endpoint, service);
    driver_clients_open(
        drivers->clients, number,
        &(struct driver_instance){.endpoint = endpoint, .uid = uid, .service = service});
    host_kick(drivers->host);
    return true;
}

static void on_elsewhere_gone(void *user, uint64_t number)
{
    struct drivers *drivers = user;

    driver_clients_close(drivers->clients, number);
    forget(drivers, find(drivers, number));
    devicemgr_driver_deregister(core_of(drivers), boot_now_ms(), number);
    host_kick(drivers->host);
}

static const struct elsewhere_ops ELSEWHERE_OPS = {.driver = on_elsewhere,
                                                   .gone = on_elsewhere_gone};

void drivers_look(struct drivers *drivers)
{
    if (!drivers->stops)
        elsewhere_ask(drivers->elsewhere, devicemgr_drivers_sought(core_of(drivers)));
}

/* ---- what the core answers ---- */

void drivers_registered(struct drivers *drivers, uint64_t number, int code, const char *message)
{
    struct instance *instance = find(drivers, number);
    uid_t uid = 0;

    if (!instance)
        return;
    if (code != 0) {
        registry_answer(drivers->registry, number, message);
        forget(drivers, instance);
        return;
    }
    (void)!registry_peer(drivers->registry, number, &uid); /* it is pending */
    driver_clients_open(drivers->clients, number,
                        &(struct driver_instance){
                            .endpoint = instance->endpoint,
                            .uid = uid,
                            .service = instance->service,
                            .health = instance->health && drivers->host->ops->driver_health,
                        });
    elsewhere_known(drivers->elsewhere, instance->name);
    registry_answer(drivers->registry, number, NULL);
}

void drivers_plugin_registered(struct drivers *drivers, uint64_t registration, int code,
                               const char *message)
{
    registry_answer(drivers->registry, registration, code == 0 ? NULL : message);
}

bool drivers_plugin_has(const struct drivers *drivers, const char *path)
{
    return registry_has_endpoint(drivers->registry, path);
}

bool drivers_plugin_waits(const struct drivers *drivers, const char *path)
{
    return registry_waits_at(drivers->registry, path);
}

const char *drivers_trouble(const struct drivers *drivers, uint64_t *since_ms)
{
    return registry_trouble(drivers->registry, since_ms);
}

/* ---- connections and calls ---- */

static void on_connected(void *user, uint64_t instance)
{
    struct drivers *drivers = user;

    devicemgr_driver_connected(core_of(drivers), boot_now_ms(), instance);
    host_kick(drivers->host);
}

static void on_lost(void *user, uint64_t instance, const char *reason)
{
    struct drivers *drivers = user;

    tell_health(drivers, find(drivers, instance), NULL);
    devicemgr_driver_lost(core_of(drivers), boot_now_ms(), instance, reason);
    host_kick(drivers->host);
}

static void on_answered(void *user, uint64_t call, int code, const char *message,
                        const void *response, size_t response_bytes)
{
    struct drivers *drivers = user;

    devicemgr_claim_answered(core_of(drivers), boot_now_ms(), call, code, message, response,
                             response_bytes);
    host_kick(drivers->host);
}

static void on_health(void *user, uint64_t number,
                      const DraHealth__V1alpha1__NodeWatchResourcesResponse *response)
{
    struct drivers *drivers = user;

    tell_health(drivers, find(drivers, number), response);
}

static const struct driver_clients_ops CLIENTS_OPS = {
    .connected = on_connected, .lost = on_lost, .answered = on_answered, .health = on_health};

static struct claim_call call_of(uint64_t call, struct devicemgr_batch batch,
                                 const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    return (struct claim_call){
        .number = call,
        .batch = batch.number,
        .place = batch.place,
        .timeout_ms = timeout_ms,
        .claim = {.pod_namespace = claim->pod_namespace, .name = claim->name, .uid = claim->uid}};
}

void drivers_prepare(struct drivers *drivers, uint64_t instance, uint64_t call,
                     struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                     uint64_t timeout_ms)
{
    const struct claim_call is = call_of(call, batch, claim, timeout_ms);

    driver_clients_prepare(drivers->clients, instance, &is);
}

void drivers_unprepare(struct drivers *drivers, uint64_t instance, uint64_t call,
                       struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                       uint64_t timeout_ms)
{
    const struct claim_call is = call_of(call, batch, claim, timeout_ms);

    driver_clients_unprepare(drivers->clients, instance, &is);
}

void drivers_send(struct drivers *drivers)
{
    driver_clients_send(drivers->clients);
}

static void settling_free(struct settling *settling)
{
    free(settling->pod_namespace);
    free(settling->name);
    free(settling->uid);
    free(settling);
}

static void settle_unknown(const struct settling *settling, const char *why)
{
    char words[128];

    snprintf(words, sizeof words, "it is not known whether the kubelet uses it: %s", why);
    devicemgr_claim_answered(core_of(settling->drivers), boot_now_ms(), settling->call,
                             CODE_UNAVAILABLE, words, NULL, 0);
}

/* A kubelet has a claim in its books before it asks for it. */
static void settle(const struct settling *settling, int found)
{
    struct drivers *drivers = settling->drivers;
    const struct devicemgr_claim claim = {
        .pod_namespace = settling->pod_namespace, .name = settling->name, .uid = settling->uid};

    if (found == KUBELET_CLAIM_NONE || (found == KUBELET_CLAIM_BEGUN && settling->asked))
        drivers_unprepare(drivers, settling->instance, settling->call, (struct devicemgr_batch){0},
                          &claim, settling->timeout_ms);
    else if (found < 0)
        settle_unknown(settling, strerror(-found));
    else if (found == KUBELET_CLAIM_NAMED && settling->asked)
        settle_unknown(settling, "its books are of another form");
    else
        devicemgr_claim_in_use(core_of(drivers), boot_now_ms(), settling->call);
    host_kick(drivers->host);
}

static void on_looked_up(void *user, int found)
{
    struct settling *settling = user;
    struct drivers *drivers = settling->drivers;

    drivers->settling--;
    if (!drivers->stops)
        settle(settling, found);
    settling_free(settling);
    if (drivers->stops)
        stopping_part(&drivers->stopping);
}

void drivers_settle(struct drivers *drivers, uint64_t instance, uint64_t call,
                    const struct devicemgr_claim *claim, bool asked, uint64_t timeout_ms)
{
    const struct instance *of = find(drivers, instance);
    struct settling *settling = must(calloc(1, sizeof *settling));

    *settling = (struct settling){.drivers = drivers,
                                  .instance = instance,
                                  .call = call,
                                  .timeout_ms = timeout_ms,
                                  .asked = asked,
                                  .pod_namespace = must(strdup(claim->pod_namespace)),
                                  .name = must(strdup(claim->name)),
                                  .uid = must(strdup(claim->uid))};
    drivers->settling++;
    kubelet_claims_ask(drivers->host->loop, drivers->host->config->dra.kubelet_registry_dir,
                       of ? of->name : "", claim->uid, on_looked_up, settling);
}

void drivers_call_cancel(struct drivers *drivers, uint64_t call)
{
    driver_clients_cancel(drivers->clients, call);
}

/* ---- life ---- */

struct drivers *drivers_start(struct host *host)
{
    const struct config_dra *config = &host->config->dra;
    struct drivers *drivers = must(calloc(1, sizeof *drivers));

    uv_update_time(host->loop); /* it may have taken up a long checkpoint since it looked */
    drivers->host = host;
    drivers->clients = driver_clients_new(host->loop, &CLIENTS_OPS, drivers);
    drivers->registry = registry_start(host->loop, config->registry_dir,
                                       config->kubelet_registry_dir, &REGISTRY_OPS, drivers);
    drivers->elsewhere =
        elsewhere_start(host->loop, config->kubelet_registry_dir, uv_now(host->loop) + FIRST_ASK_MS,
                        &ELSEWHERE_OPS, drivers);
    return drivers;
}

static void drivers_free(void *thing)
{
    struct drivers *drivers = thing;
    struct instance *instance, *next;

    HASH_ITER(hh, drivers->instances, instance, next) {
        forget(drivers, instance);
    }
    free(drivers);
}

void drivers_stop(struct drivers *drivers, void (*done)(void *user), void *user)
{
    drivers->stops = true;
    drivers->stopping = (struct stopping){3 + drivers->settling, drivers_free, drivers, done, user};
    elsewhere_stop(drivers->elsewhere, stopping_part, &drivers->stopping);
    registry_stop(drivers->registry, stopping_part, &drivers->stopping);
    driver_clients_stop(drivers->clients, stopping_part, &drivers->stopping);
}
