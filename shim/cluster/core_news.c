#include "shim/cluster/core_news.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "devicemgr/dra.h"
#include "devicemgr/endings.h"
#include "devicemgr/lift.h"
#include "devicemgr/taints.h"
#include "shim/boot_clock.h"
#include "shim/cluster/core_taints.h"
#include "shim/cluster/limits.h"
#include "shim/must.h"

/* One that is being looked up. */
struct news_claim {
    struct core_news *news;
    char *uid;
    uint64_t order;
    UT_hash_handle hh;
};

void core_news_init(struct core_news *news, struct host *host, struct cluster_orders *orders)
{
    *news = (struct core_news){.host = host, .orders = orders};
}

static void claim_free(struct news_claim *claim)
{
    HASH_DEL(claim->news->looked_up, claim);
    free(claim->uid);
    free(claim);
}

void core_news_fini(struct core_news *news)
{
    while (news->looked_up)
        claim_free(news->looked_up);
}

/* ---- slices, rules, pods ---- */

static size_t draws_of(const Agent__V1__Slice *slice)
{
    size_t len = 0;

    for (size_t i = 0; i < slice->n_draws; i++)
        len += slice->draws[i]->n_counters;
    return len;
}

static void tell_devices(struct devicemgr *core, const char *uid, const Agent__V1__Slice *slice)
{
    struct devicemgr_counter *counters = must(calloc(slice->n_counters + 1, sizeof *counters));
    struct devicemgr_draw *draws = must(calloc(draws_of(slice) + 1, sizeof *draws));
    struct devicemgr_slice is = {.uid = uid,
                                 .driver = slice->driver,
                                 .pool = slice->pool,
                                 .devices = (const char *const *)slice->devices,
                                 .devices_len = slice->n_devices,
                                 .apart = slice->apart,
                                 .counters = counters,
                                 .counters_len = slice->n_counters,
                                 .draws = draws};

    for (size_t i = 0; i < slice->n_counters; i++) {
        const Agent__V1__Counter *counter = slice->counters[i];

        counters[i] =
            (struct devicemgr_counter){counter->name, counter->there, counter->thousandths};
    }
    for (size_t i = 0; i < slice->n_draws; i++) {
        const Agent__V1__Draw *draw = slice->draws[i];

        for (size_t k = 0; k < draw->n_counters && k < draw->n_thousandths; k++) {
            if (draw->device < slice->n_devices)
                draws[is.draws_len++] = (struct devicemgr_draw){
                    slice->devices[draw->device], draw->counters[k], draw->thousandths[k]};
        }
    }
    devicemgr_slice(core, boot_now_ms(), &is);
    free(counters);
    free(draws);
}

/* The API server's time, in seconds since 1970; where that is not known the machine's own. */
static uint64_t server_now_s(const struct core_news *news)
{
    return news->server_boot_ms != 0 ? (news->server_boot_ms + boot_now_ms()) / 1000
                                     : (uint64_t)time(NULL);
}

static void tell_slice(const struct core_news *news, const struct fact *fact)
{
    struct devicemgr *core = host_core(news->host);
    Agent__V1__Slice *slice =
        fact->value ? agent__v1__slice__unpack(NULL, fact->len, fact->value) : NULL;

    if (slice && strcmp(slice->driver, DEVICEMGR_LIFT_DRIVER) == 0) {
        /* what the core has said itself (pools.h) */
    } else if (slice) {
        tell_devices(core, fact->key, slice);
        core_taints_slice(core, boot_now_ms(), server_now_s(news), fact->key, slice);
    } else {
        devicemgr_slice_gone(core, boot_now_ms(), fact->key);
    }
    agent__v1__slice__free_unpacked(slice, NULL);
}

static void tell_rule(const struct core_news *news, const struct fact *fact)
{
    struct devicemgr *core = host_core(news->host);
    Agent__V1__TaintRule *rule =
        fact->value ? agent__v1__taint_rule__unpack(NULL, fact->len, fact->value) : NULL;

    core_taints_rule(core, boot_now_ms(), server_now_s(news), fact->key, rule);
    agent__v1__taint_rule__free_unpacked(rule, NULL);
}

static void tell_sidecars(const struct core_news *news, const struct fact *fact)
{
    Agent__V1__Pod *pod = fact->value ? agent__v1__pod__unpack(NULL, fact->len, fact->value) : NULL;
    struct devicemgr_sidecars is = {.pod_uid = fact->key};

    if (pod) {
        is.pod_namespace = pod->namespace_;
        is.pod_name = pod->name;
        is.mirror = pod->mirror;
        is.names = (const char *const *)pod->sidecars;
        is.names_len = pod->n_sidecars;
    }
    devicemgr_sidecars(host_core(news->host), &is);
    agent__v1__pod__free_unpacked(pod, NULL);
}

static void on_fact(void *user, const struct fact *fact)
{
    const struct core_news *news = user;

    if (fact->kind == AGENT__V1__KIND__SLICE)
        tell_slice(news, fact);
    else if (fact->kind == AGENT__V1__KIND__TAINT_RULE)
        tell_rule(news, fact);
    else if (fact->kind == AGENT__V1__KIND__POD)
        tell_sidecars(news, fact);
}

void core_news_clock(struct core_news *news, uint64_t server_boot_ms)
{
    news->server_boot_ms = server_boot_ms;
}

void core_news_facts(struct core_news *news, struct facts *facts)
{
    facts_tell(facts, false, on_fact, news);
    host_kick(news->host);
}

void core_news_taints_told(struct core_news *news)
{
    devicemgr_taints_told(host_core(news->host), boot_now_ms());
    host_kick(news->host);
}

void core_news_taints_doubted(struct core_news *news)
{
    devicemgr_taints_doubted(host_core(news->host), boot_now_ms());
    host_kick(news->host);
}

void core_news_reached(struct core_news *news, bool reached)
{
    devicemgr_cluster_reached(host_core(news->host), boot_now_ms(), reached);
    host_kick(news->host);
}

/* ---- claims ---- */

static void tell_claim(const struct core_news *news, const Agent__V1__Claim *claim)
{
    struct devicemgr_claim_device *devices = must(calloc(claim->n_devices + 1, sizeof *devices));

    for (size_t i = 0; i < claim->n_devices; i++) {
        const Agent__V1__ClaimDevice *device = claim->devices[i];

        devices[i] = (struct devicemgr_claim_device){
            .driver = device->driver,
            .pool = device->pool,
            .device = device->device,
            .share_id = *device->share_id ? device->share_id : NULL,
            .admin_access = device->admin_access,
        };
    }
    devicemgr_claim_allocation(host_core(news->host), boot_now_ms(), claim->uid, claim->allocated,
                               devices, claim->n_devices);
    core_taints_claim(host_core(news->host), boot_now_ms(), claim);
    free(devices);
    host_kick(news->host);
}

/* One that is refused is not known: the agent may lack the right to see it. But that nothing will
 * be told of its consumers is. */
static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct news_claim *claim = user;
    const struct core_news *news = claim->news;
    char *uid = must(strdup(claim->uid));

    claim_free(claim); /* the core may ask for it again at once */
    if (answer->outcome == AGENT__V1__OUTCOME__DONE && answer->claim) {
        tell_claim(news, answer->claim);
    } else {
        devicemgr_claim_consumers(host_core(news->host), boot_now_ms(), uid, NULL);
        host_kick(news->host);
    }
    free(uid);
}

/* An agent that has the order may answer it still, which nobody hears. */
static void drop(struct core_news *news, struct news_claim *claim)
{
    cluster_orders_cancel(news->orders, claim->order);
    claim_free(claim);
}

/* While there is no agent they are as many as the pods that come and go, and leave no room for
 * orders. A uthash keeps the order in which its members came. */
static void make_room(struct core_news *news)
{
    struct news_claim *oldest = news->looked_up;

    if (HASH_COUNT(oldest) >= CLUSTER_CLAIMS_MAX)
        drop(news, oldest);
}

void core_news_look_up(struct core_news *news, const struct devicemgr_claim *what)
{
    Agent__V1__GetClaim get = AGENT__V1__GET_CLAIM__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;
    struct news_claim *claim;

    HASH_FIND_STR(news->looked_up, what->uid, claim);
    if (claim)
        drop(news, claim); /* what is read for it may be from before this was asked */
    make_room(news);
    get.namespace_ = (char *)(uintptr_t)what->pod_namespace;
    get.name = (char *)(uintptr_t)what->name;
    get.uid = (char *)(uintptr_t)what->uid;
    order.what_case = AGENT__V1__ORDER__WHAT_GET_CLAIM;
    order.get_claim = &get;
    claim = must(calloc(1, sizeof *claim));
    claim->news = news;
    claim->uid = must(strdup(what->uid));
    HASH_ADD_KEYPTR(hh, news->looked_up, claim->uid, strlen(claim->uid), claim);
    claim->order = cluster_orders_add(news->orders, &order, false, on_done, claim);
    if (claim->order == 0)
        claim_free(claim); /* the core asks again with the next call */
}
