#include "tests/sim/coming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "tests/sim/over.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* What is kept for a time is dropped by the list after it, which comes within 10 s and takes 15. */
#define KEPT_LAG_MS 30000

uint64_t coming_sources_ms(const struct world *w)
{
    uint64_t ready_ms = w->shim.started_ms + w->shim.settings.kubelet_wait_ms;

    if (w->shim.kubelet_ms > 0 && w->shim.kubelet_ms < ready_ms)
        ready_ms = w->shim.kubelet_ms;
    if (ready_ms < w->shim.listed_ms)
        ready_ms = w->shim.listed_ms;
    return w->shim.listed_ms == 0 || w->now_ms < ready_ms ? UINT64_MAX : ready_ms;
}

/* Whether the shim may never have heard of the pod, in this life: it may be one still to come. */
static bool may_be_new(const struct world *w, unsigned uid)
{
    return w->shim.listed_ms == 0 || runtime_ended_ms(w, uid) <= w->shim.listed_ms;
}

/* The kubelet has promised a device to such a pod. */
static bool may_come(const struct world *w, const struct told *told)
{
    return may_be_new(w, told->uid) &&
           (coming_sources_ms(w) == UINT64_MAX || w->now_ms <= told->since_ms + POD_COMES_MS);
}

/* The kubelet's checkpoint names the pod. */
static bool is_told(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < RESOURCES_LEN * DEVICES_MAX; i++) {
        if (w->bridge.told[i / DEVICES_MAX][i % DEVICES_MAX].uid == uid)
            return true;
    }
    return false;
}

/* What the file names no more goes with the next list. */
bool coming_back(const struct world *w, unsigned uid, unsigned boot)
{
    uint64_t ready_ms = coming_sources_ms(w);

    if (ready_ms == UINT64_MAX || w->now_ms <= ready_ms + KEPT_LAG_MS)
        return true;
    if (boot == w->shim.boot)
        return false;
    if (w->bridge.untold_ms > 0 && w->now_ms <= w->bridge.untold_ms + KEPT_LAG_MS)
        return true;
    return w->now_ms <= ready_ms + KEPT_LAG_MS + (is_told(w, uid) ? POD_RETURNS_MS : POD_COMES_MS);
}

unsigned coming_row_boot(const struct world *w, const char *uid)
{
    const struct store_row *row = store_find(&w->store, DEVICEMGR_RECORD_POD, uid, "", "");
    Checkpoint__V1__Pod *pod;
    unsigned boot;

    if (!row)
        return w->shim.boot; /* the shim knows no other */
    pod = checkpoint__v1__pod__unpack(NULL, row->record.value_bytes, row->record.value);
    boot = (unsigned)strtoul(pod->boot_id + strcspn(pod->boot_id, "0123456789"), NULL, 10);
    checkpoint__v1__pod__free_unpacked(pod, NULL);
    return boot;
}

/* ---- what the kubelet's checkpoint gives to whom ---- */

/* A pod of an earlier boot, by its row, of which there was nothing since: what the kubelet alone
 * has given it is promised as long as it is kept. */
static bool told_may_return(const struct world *w, const struct told *told)
{
    unsigned boot;
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", told->uid);
    boot = coming_row_boot(w, uid);
    return boot < w->shim.boot && runtime_ended_ms(w, told->uid) <= w->shim.boot_ms &&
           coming_back(w, told->uid, boot);
}

bool coming_any(struct world *w)
{
    for (size_t i = 0; i < RESOURCES_LEN * DEVICES_MAX; i++) {
        const struct told *told = &w->bridge.told[i / DEVICES_MAX][i % DEVICES_MAX];

        if (told->uid && told->late && !kubelet_find_pod(w, told->uid) &&
            !runtime_known(w, told->uid) && may_come(w, told))
            return true;
    }
    return false;
}

unsigned coming_told(struct world *w, unsigned uid, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        const struct told *told = &w->bridge.told[resource][i];

        if (told->uid && told->uid != uid &&
            (kubelet_find_pod(w, told->uid) || !over_surely(w, told->uid) || may_come(w, told) ||
             told_may_return(w, told)))
            mask |= 1u << i;
    }
    return mask;
}

/* Whether an entry of the kubelet's checkpoint may be of a pod that can still be admitted. */
static bool told_counts(struct world *w, const struct told *told)
{
    if (kubelet_find_pod(w, told->uid) || !over_surely(w, told->uid))
        return true;
    if (coming_sources_ms(w) == UINT64_MAX)
        return true; /* no pod that a list has no more is dropped before */
    return (told->early && may_be_new(w, told->uid) && w->shim.boot > 1) ||
           (told->late && may_come(w, told));
}

unsigned coming_admitted(struct world *w, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        const struct told *told = &w->bridge.told[resource][i];

        if (told->uid && told_counts(w, told))
            mask |= 1u << i;
    }
    return mask;
}

unsigned coming_promised(struct world *w, unsigned uid, size_t resource, uint64_t before_ms)
{
    unsigned mask = 0;

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        const struct told *told = &w->bridge.told[resource][i];
        const struct pod_sim *pod = kubelet_find_pod(w, told->uid);

        if (pod && told->uid != uid && told->since_ms < before_ms && !pod->released &&
            kubelet_surely_there(w, told->uid))
            mask |= 1u << i;
    }
    return mask;
}
