#include "shim/cluster/core_taints.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/must.h"

/* metav1.Time, which is always written so
 * (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go). Seconds since 1970; 0: it is none. */
static uint64_t seconds_of(const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    time_t seconds = end && *end == '\0' ? timegm(&tm) : 0;

    return seconds > 0 ? (uint64_t)seconds : 0;
}

/* Of one without a time nobody knows how old it is: it is new. */
static struct devicemgr_taint taint_of(const Agent__V1__Taint *from, uint64_t now_s)
{
    struct devicemgr_taint taint = {.key = "", .value = "", .effect = ""};

    if (!from)
        return taint;
    taint.key = from->key;
    taint.value = from->value;
    taint.effect = from->effect;
    taint.added_s = seconds_of(from->time_added);
    if (taint.added_s != 0 && taint.added_s < now_s)
        taint.age_ms = (now_s - taint.added_s) * 1000;
    return taint;
}

void core_taints_slice(struct devicemgr *core, uint64_t now_ms, uint64_t server_now_s,
                       const char *uid, const Agent__V1__Slice *slice)
{
    struct devicemgr_tainted_device *devices = must(calloc(slice->n_taints + 1, sizeof *devices));

    for (size_t i = 0; i < slice->n_taints; i++) {
        devices[i].device = slice->taints[i]->device;
        devices[i].taint = taint_of(slice->taints[i]->taint, server_now_s);
    }
    devicemgr_slice_taints(core, now_ms, uid, slice->driver, slice->pool, slice->generation,
                           devices, slice->n_taints);
    free(devices);
}

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

void core_taints_rule(struct devicemgr *core, uint64_t now_ms, uint64_t server_now_s,
                      const char *uid, const Agent__V1__TaintRule *rule)
{
    struct devicemgr_taint_rule is;

    if (!rule || !rule->selector || rule->selector->more) {
        devicemgr_taint_rule_gone(core, now_ms, uid);
        return;
    }
    is = (struct devicemgr_taint_rule){.name = rule->name,
                                       .driver = given(rule->selector->driver),
                                       .pool = given(rule->selector->pool),
                                       .device = given(rule->selector->device),
                                       .taint = taint_of(rule->taint, server_now_s)};
    devicemgr_taint_rule(core, now_ms, uid, &is);
}

static size_t count(const Agent__V1__Claim *claim)
{
    size_t n = 0;

    for (size_t i = 0; i < claim->n_devices; i++)
        n += claim->devices[i]->n_tolerations;
    return n;
}

void core_taints_claim(struct devicemgr *core, uint64_t now_ms, const Agent__V1__Claim *claim)
{
    struct devicemgr_claim_toleration *tolerations =
        must(calloc(count(claim) + 1, sizeof *tolerations));
    struct devicemgr_claim_consumers is = {.extended = claim->extended,
                                           .reserved_for = (const char *const *)claim->reserved_for,
                                           .reserved_for_len = claim->n_reserved_for,
                                           .tolerations = tolerations};

    for (size_t i = 0; i < claim->n_devices; i++) {
        const Agent__V1__ClaimDevice *device = claim->devices[i];

        for (size_t k = 0; k < device->n_tolerations; k++) {
            const Agent__V1__Toleration *from = device->tolerations[k];

            tolerations[is.tolerations_len++] =
                (struct devicemgr_claim_toleration){.driver = device->driver,
                                                    .pool = device->pool,
                                                    .device = device->device,
                                                    .toleration = {.key = from->key,
                                                                   .op = from->operator_,
                                                                   .value = from->value,
                                                                   .effect = from->effect,
                                                                   .has_seconds = from->limited,
                                                                   .seconds = from->seconds}};
        }
    }
    devicemgr_claim_consumers(core, now_ms, claim->uid, &is);
    free(tolerations);
}
