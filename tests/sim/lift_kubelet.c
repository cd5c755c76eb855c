/*
 * The kubelet of the world of lifted resources: its calls for claims, and what it gives away
 * itself, of what the bridge shows it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

/* It waits no longer. */
#define PATIENCE_MS 45000
#define WIPES_PERCENT 70

/* ---- claims ---- */

size_t lift_claim_find(const char *uid)
{
    return (size_t)strtoul(uid + 1, NULL, 10);
}

/* As the bridge shows it: without the driver there is nobody to ask. */
void lift_ask(struct lift_world *h, size_t claim, bool prepare)
{
    struct lw_claim *is = &h->claims[claim];
    char uid[16];
    const struct devicemgr_batch alone = {0};
    const struct devicemgr_claim names = {.pod_namespace = "ns", .name = uid, .uid = uid};

    if (is->asked || !h->bridged)
        return;
    snprintf(uid, sizeof uid, "c%zu", claim);
    is->in_books = true;
    is->asked = ++h->number;
    is->asks_prepare = prepare;
    is->asked_ms = h->now_ms;
    lift_note(h, "the kubelet asks to %s %s, %" PRIu64, prepare ? "prepare" : "unprepare", uid,
              is->asked);
    if (prepare)
        devicemgr_claim_prepare(h->core, h->now_ms, is->asked, alone, DEVICEMGR_LIFT_DRIVER,
                                &names);
    else
        devicemgr_claim_unprepare(h->core, h->now_ms, is->asked, alone, DEVICEMGR_LIFT_DRIVER,
                                  &names);
    lift_shim_run(h);
}

void lift_give_up(struct lift_world *h, size_t claim)
{
    uint64_t number = h->claims[claim].asked;

    if (!number)
        return;
    h->claims[claim].asked = 0;
    lift_note(h, "the kubelet gives %" PRIu64 " up", number);
    devicemgr_claim_cancelled(h->core, h->now_ms, number);
    lift_shim_run(h);
}

void lift_asked_expire(struct lift_world *h)
{
    for (size_t i = 0; i < h->claims_len && !*h->w->broken; i++) {
        if (h->claims[i].asked && h->now_ms >= h->claims[i].asked_ms + PATIENCE_MS)
            lift_give_up(h, i);
    }
}

static void is_prepared(struct lw_claim *claim, const struct devicemgr_claim_done *done)
{
    Dra__V1__NodePrepareResourceResponse *message =
        dra__v1__node_prepare_resource_response__unpack(NULL, done->response_bytes, done->response);

    claim->prepared = true;
    claim->lost = false;
    claim->names_len = 0;
    for (size_t i = 0; message && i < message->n_devices && i < LW_CLAIM_DEVICES; i++)
        snprintf(claim->names[claim->names_len++], sizeof *claim->names, "%s",
                 message->devices[i]->cdi_device_ids[0]);
    dra__v1__node_prepare_resource_response__free_unpacked(message, NULL);
}

static void is_unprepared(struct lw_claim *claim)
{
    claim->prepared = claim->in_books = false;
    claim->names_len = 0;
    if (claim->life != LW_LEAVING)
        return;
    claim->life = LW_GONE;
    claim->allocated = false;
}

void lift_claim_done(struct lift_world *h, uint64_t number, const struct devicemgr_claim_done *done)
{
    size_t claim = 0;

    while (claim < h->claims_len && h->claims[claim].asked != number)
        claim++;
    check_that(h->w, claim < h->claims_len, "%" PRIu64 " is waited for when it is answered",
               number);
    if (claim == h->claims_len)
        return;
    lift_note(h, "the kubelet is told of c%zu: %d %s", claim, done->code,
              done->message ? done->message : "");
    lift_judge_done(h, claim, done);
    h->claims[claim].asked = 0;
    if (done->code == 0 && h->claims[claim].asks_prepare)
        is_prepared(&h->claims[claim], done);
    else if (done->code == 0)
        is_unprepared(&h->claims[claim]);
}

/* ---- what it is shown ---- */

struct sight {
    struct lift_world *h;
    size_t resource;
    bool shown;
    bool driver;
};

static void on_driver(void *user, const struct devicemgr_driver *driver)
{
    struct sight *sight = user;

    if (strcmp(driver->name, DEVICEMGR_LIFT_DRIVER) == 0)
        sight->driver = driver->connected;
}

static void on_shown(void *user, const struct devicemgr_shown *shown)
{
    struct sight *sight = user;

    if (strcmp(shown->resource, lift_resource_name(sight->resource)) == 0)
        sight->shown = true;
}

static void on_shown_device(void *user, const struct devicemgr_shown_device *is)
{
    const struct sight *sight = user;
    size_t id = lift_device_find(sight->resource, is->id);

    if (id == LW_DEVICES)
        return;
    sight->h->resources[sight->resource].device[id].shown = true;
    sight->h->resources[sight->resource].device[id].shown_healthy = is->healthy;
}

void lift_kubelet_sees(struct lift_world *h)
{
    struct sight sight = {.h = h};

    devicemgr_drivers(h->core, on_driver, &sight);
    h->bridged = sight.driver;
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        sight.resource = r;
        sight.shown = false;
        devicemgr_shown(h->core, on_shown, &sight);
        for (size_t i = 0; i < h->resources[r].devices; i++)
            h->resources[r].device[i].shown = false;
        if (sight.shown)
            devicemgr_shown_devices(h->core, lift_resource_name(r), on_shown_device, &sight);
    }
}

/* ---- what it gives away ---- */

static bool has_given(const struct lift_world *h, size_t resource, size_t device)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && k < pod->devices_len; k++) {
            if (pod->resource == resource && pod->devices[k] == device)
                return true;
        }
    }
    return false;
}

bool lift_kubelet_gives(struct lift_world *h, struct lw_pod *pod)
{
    size_t r = rng_below(&h->rng, LW_RESOURCES), wanted = rng_between(&h->rng, 1, 2);
    const struct lw_resource *resource = &h->resources[r];
    size_t from = rng_below(&h->rng, resource->devices);

    pod->resource = r;
    for (size_t i = 0; i < resource->devices && pod->devices_len < wanted; i++) {
        size_t device = (from + i) % resource->devices;

        if (resource->device[device].shown && resource->device[device].shown_healthy &&
            !has_given(h, r, device))
            pod->devices[pod->devices_len++] = device;
    }
    return pod->devices_len == wanted;
}

void lift_kubelet_is_read(struct lift_world *h)
{
    struct devicemgr_kubelet_held held[LW_PODS];
    char uids[LW_PODS][16], ids[LW_PODS][2][LW_ID_BYTES];
    const char *v[LW_PODS][2];
    size_t len = 0;

    for (size_t i = 0; i < LW_RESOURCES * LW_DEVICES; i++)
        h->resources[i / LW_DEVICES].device[i % LW_DEVICES].in_file = false;
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *pod = &h->pods[i];

        if (!pod->there || pod->devices_len == 0)
            continue;
        snprintf(uids[len], sizeof uids[len], "u%u", pod->uid);
        for (size_t k = 0; k < pod->devices_len; k++) {
            lift_device_id(pod->resource, pod->devices[k], ids[len][k]);
            v[len][k] = ids[len][k];
            h->resources[pod->resource].device[pod->devices[k]].in_file = true;
        }
        held[len] = (struct devicemgr_kubelet_held){.pod_uid = uids[len],
                                                    .container = "n0",
                                                    .resource = lift_resource_name(pod->resource),
                                                    .ids = v[len],
                                                    .ids_len = pod->devices_len};
        len++;
    }
    devicemgr_kubelet_holds(h->core, h->now_ms, h->now_ms, held, len);
    lift_shim_run(h);
}

/* ---- its life ---- */

/* What it had asked for is over with its connections; it deletes all slices of its node
 * (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go), and admits its pods anew. */
void lift_kubelet_restarts(struct lift_world *h)
{
    count_add(COUNT_LIFT_KUBELET);
    lift_note(h, "the kubelet restarts");
    for (size_t i = 0; i < h->claims_len; i++) {
        lift_give_up(h, i);
        h->claims[i].prepared = false;
    }
    if (rng_percent(&h->rng, WIPES_PERCENT)) {
        count_add(COUNT_LIFT_WIPED);
        lift_api_wipe(h);
    }
    devicemgr_kubelet_started(h->core, h->now_ms);
    h->admits_until_ms = h->now_ms + LW_MASK_MS;
    lift_shim_run(h);
}
