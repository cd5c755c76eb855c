#include "shim/cluster/lift_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "cri-proto/lift_marker.h"
#include "devicemgr/codes.h"
#include "devicemgr/dra.h"
#include "devicemgr/lift.h"
#include "shim/boot_clock.h"
#include "shim/must.h"

#define WORDS_BYTES_MAX 256
/* The kubelet waits for 45 s, and is to see our words (devicemgr/things/limits.h,
 * CLAIM_HOLD_MS). */
#define PREPARE_MS 40000

struct lift_call {
    struct lift_driver *driver;
    uint64_t number;
    char *uid;
    uint64_t order;
    uint64_t due_ms; /* it is answered by then */
    UT_hash_handle hh;
};

static void call_free(struct lift_call *call)
{
    HASH_DEL(call->driver->calls, call);
    free(call->uid);
    free(call);
}

/* ---- the answer ---- */

static void fail(struct lift_driver *driver, uint64_t call, const char *words)
{
    devicemgr_claim_answered(host_core(driver->host), boot_now_ms(), call, CODE_UNAVAILABLE, words,
                             NULL, 0);
    host_kick(driver->host);
}

/* The request that a pod's containers name: of a subrequest (firstAvailable) that is "request/sub",
 * and the kubelet compares it with the whole text (pkg/kubelet/cm/dra/claiminfo.go). */
static char *main_request(const char *request)
{
    return must(strndup(request, strcspn(request, "/")));
}

/* Why it is none that can be had; NULL: it can. */
static const char *add_device(Dra__V1__NodePrepareResourceResponse *response, const char *claim_uid,
                              const Agent__V1__ClaimDevice *from)
{
    Dra__V1__Device *device = must(malloc(sizeof *device));
    const char *pool = strchr(from->pool, '/'); /* behind the node's name */
    char marker[LIFT_MARKER_BYTES_MAX];

    dra__v1__device__init(device);
    response->devices[response->n_devices++] = device;
    if (!pool || !lift_marker_put(marker, pool + 1, from->device, claim_uid))
        return "it has a device that is none of those published here";
    if (*from->share_id)
        return "it has a share of a device (consumable capacity), and a plugin gives each as a "
               "whole";
    device->pool_name = must(strdup(from->pool));
    device->device_name = must(strdup(from->device));
    if (*from->request) {
        device->request_names = must(calloc(1, sizeof *device->request_names));
        device->request_names[device->n_request_names++] = main_request(from->request);
    }
    device->cdi_device_ids = must(calloc(1, sizeof *device->cdi_device_ids));
    device->cdi_device_ids[device->n_cdi_device_ids++] = must(strdup(marker));
    return NULL;
}

static void tell(const struct lift_call *call, const Dra__V1__NodePrepareResourceResponse *response)
{
    size_t len = dra__v1__node_prepare_resource_response__get_packed_size(response);
    uint8_t *packed = must(malloc(len + 1));

    dra__v1__node_prepare_resource_response__pack(response, packed);
    devicemgr_claim_answered(host_core(call->driver->host), boot_now_ms(), call->number, CODE_OK,
                             "", packed, len);
    free(packed);
    host_kick(call->driver->host);
}

static void answer_by(const struct lift_call *call, const Agent__V1__Claim *claim)
{
    Dra__V1__NodePrepareResourceResponse *response = must(malloc(sizeof *response));
    const char *wrong = NULL;

    dra__v1__node_prepare_resource_response__init(response);
    response->devices = must(calloc(claim->n_devices + 1, sizeof *response->devices));
    for (size_t i = 0; !wrong && i < claim->n_devices; i++) {
        if (strcmp(claim->devices[i]->driver, DEVICEMGR_LIFT_DRIVER) == 0)
            wrong = add_device(response, call->uid, claim->devices[i]);
    }
    if (wrong)
        fail(call->driver, call->number, wrong);
    else if (response->n_devices == 0)
        fail(call->driver, call->number, "nothing is allocated to it of this driver");
    else
        tell(call, response);
    dra__v1__node_prepare_resource_response__free_unpacked(response, NULL);
}

static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct lift_call *call = user;
    char words[WORDS_BYTES_MAX];

    if (answer->outcome == AGENT__V1__OUTCOME__DONE && answer->claim) {
        answer_by(call, answer->claim);
    } else {
        snprintf(words, sizeof words, "what is allocated to it cannot be read: %s",
                 answer->message);
        fail(call->driver, call->number, words);
    }
    call_free(call);
}

/* ---- time: an agent that is away is waited for ---- */

static void on_time(uv_timer_t *timer);

static void set_timer(struct lift_driver *driver)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct lift_call *call = driver->calls; call; call = call->hh.next)
        next_ms = call->due_ms < next_ms ? call->due_ms : next_ms;
    if (next_ms == UINT64_MAX)
        uv_timer_stop(&driver->timer);
    else
        uv_timer_start(&driver->timer, on_time, boot_left_ms(next_ms), 0);
}

/* What was said when it was asked for last, if anything was. */
static void words_of(const struct lift_call *call, char words[WORDS_BYTES_MAX])
{
    struct cluster_trouble trouble;
    bool said = cluster_orders_trouble(call->driver->orders, call->order, &trouble);

    snprintf(words, WORDS_BYTES_MAX, "what is allocated to it is not known: %s",
             said ? trouble.words : "the cluster does not answer, or no agent is connected");
}

static void on_time(uv_timer_t *timer)
{
    struct lift_driver *driver = timer->data;
    struct lift_call *call, *next;
    char words[WORDS_BYTES_MAX];

    HASH_ITER(hh, driver->calls, call, next) {
        uint64_t number = call->number;

        if (call->due_ms > boot_now_ms())
            continue;
        words_of(call, words);
        driver->cancel(driver->cluster, call->order);
        call_free(call);
        fail(driver, number, words);
        uv_timer_start(timer, on_time, 0, 0); /* the core may have asked, or cancelled, others */
        return;
    }
    set_timer(driver);
}

/* ---- what it is called for ---- */

void lift_driver_prepare(struct lift_driver *driver, uint64_t number,
                         const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    Agent__V1__GetClaim get = AGENT__V1__GET_CLAIM__INIT;
    Agent__V1__Order order = AGENT__V1__ORDER__INIT;
    struct lift_call *call = must(calloc(1, sizeof *call));

    get.namespace_ = (char *)(uintptr_t)claim->pod_namespace;
    get.name = (char *)(uintptr_t)claim->name;
    get.uid = (char *)(uintptr_t)claim->uid;
    order.what_case = AGENT__V1__ORDER__WHAT_GET_CLAIM;
    order.get_claim = &get;
    call->driver = driver;
    call->number = number;
    call->uid = must(strdup(claim->uid));
    call->due_ms = boot_now_ms() + (timeout_ms < PREPARE_MS ? timeout_ms : PREPARE_MS);
    HASH_ADD(hh, driver->calls, number, sizeof call->number, call);
    call->order = cluster_orders_add(driver->orders, &order, false, on_done, call);
    if (call->order == 0) {
        call_free(call);
        fail(driver, number, "too much is to be asked of the cluster");
    }
    set_timer(driver);
}

void lift_driver_cancel(struct lift_driver *driver, uint64_t number)
{
    struct lift_call *call;

    HASH_FIND(hh, driver->calls, &number, sizeof number, call);
    if (!call)
        return;
    driver->cancel(driver->cluster, call->order);
    call_free(call);
}

/* ---- life ---- */

void lift_driver_init(struct lift_driver *driver, uv_loop_t *loop, struct host *host,
                      struct cluster_orders *orders, void (*cancel)(void *cluster, uint64_t order),
                      void *cluster)
{
    *driver =
        (struct lift_driver){.host = host, .orders = orders, .cancel = cancel, .cluster = cluster};
    uv_timer_init(loop, &driver->timer);
    driver->timer.data = driver;
}

void lift_driver_fini(struct lift_driver *driver, uv_close_cb closed)
{
    while (driver->calls)
        call_free(driver->calls);
    uv_close((uv_handle_t *)&driver->timer, closed);
}
