#include "shim/cluster/evictions.h"

#include <stdlib.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "devicemgr/endings.h"
#include "shim/boot_clock.h"
#include "shim/must.h"

struct eviction {
    struct evictions *evictions;
    uint64_t number; /* the core's */
    uint64_t order;
    UT_hash_handle hh;
};

static void eviction_free(struct eviction *eviction)
{
    HASH_DEL(eviction->evictions->asked, eviction);
    free(eviction);
}

/* An agent of another release may not say what it was. */
static enum devicemgr_evicted outcome_of(const Agent__V1__AnswerRequest *answer)
{
    switch (answer->evicted) {
    case AGENT__V1__EVICTED__MIRROR:
        return DEVICEMGR_IS_STATIC;
    case AGENT__V1__EVICTED__NOT_THERE:
        return DEVICEMGR_NOT_THERE;
    default:
        return DEVICEMGR_EVICTED;
    }
}

static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct eviction *eviction = user;
    struct host *host = eviction->evictions->host;
    uint64_t number = eviction->number;

    eviction_free(eviction);
    devicemgr_pod_evicted(host_core(host), boot_now_ms(), number, outcome_of(answer));
    host_kick(host);
}

void evictions_ask(struct evictions *evictions, uint64_t number,
                   const struct devicemgr_eviction *what)
{
    Agent__V1__EvictPod evict = AGENT__V1__EVICT_POD__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;
    struct eviction *eviction = must(calloc(1, sizeof *eviction));

    evict.namespace_ = (char *)(uintptr_t)what->pod_namespace;
    evict.name = (char *)(uintptr_t)what->pod_name;
    evict.uid = (char *)(uintptr_t)what->pod_uid;
    evict.own_grace = what->own_grace;
    evict.grace_seconds = what->own_grace ? 0 : (what->grace_ms + 999) / 1000;
    evict.forced = what->forced;
    evict.why = (char *)(uintptr_t)what->why;
    order.what_case = AGENT__V1__ORDER__WHAT_EVICT_POD;
    order.evict_pod = &evict;
    eviction->evictions = evictions;
    eviction->number = number;
    HASH_ADD(hh, evictions->asked, number, sizeof eviction->number, eviction);
    eviction->order = cluster_orders_add(evictions->orders, &order, true, on_done, eviction);
    if (eviction->order == 0)
        abort(); /* CLUSTER_ORDERS_MAX has room for as many as the core has at once */
}

void evictions_cancel(struct evictions *evictions, uint64_t number)
{
    struct eviction *eviction;

    HASH_FIND(hh, evictions->asked, &number, sizeof number, eviction);
    if (!eviction)
        return;
    evictions->cancel(evictions->user, eviction->order);
    eviction_free(eviction);
}

void evictions_init(struct evictions *evictions, struct host *host, struct cluster_orders *orders,
                    void (*cancel)(void *user, uint64_t order), void *user)
{
    *evictions = (struct evictions){.host = host, .orders = orders, .cancel = cancel, .user = user};
}

void evictions_fini(struct evictions *evictions)
{
    while (evictions->asked)
        eviction_free(evictions->asked);
}
