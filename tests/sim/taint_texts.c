#include "tests/sim/taint_texts.h"

#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/token.h"
#include "tests/sim/taint_world.h"

static void write_tolerations(const struct tw_pod *pod, char *out, size_t bytes)
{
    static const char *const KEYS[] = {"k0", "k1", "devices.cri-device-shim/unhealthy"};
    static const char *const EFFECTS[] = {"None", "NoSchedule", "NoExecute"};
    size_t used = (size_t)snprintf(out, bytes, "[");

    for (size_t i = 0; i < pod->tolerations_len; i++) {
        const struct tw_toleration *is = &pod->tolerations[i];

        used += (size_t)snprintf(out + used, bytes - used, "%s{\"operator\":\"%s\"",
                                 i > 0 ? "," : "", is->exists ? "Exists" : "Equal");
        if (is->key >= 0)
            used += (size_t)snprintf(out + used, bytes - used, ",\"key\":\"%s\"", KEYS[is->key]);
        if (!is->exists)
            used += (size_t)snprintf(out + used, bytes - used, ",\"value\":\"v%u\"", is->value);
        if (is->effect >= 0)
            used += (size_t)snprintf(out + used, bytes - used, ",\"effect\":\"%s\"",
                                     EFFECTS[is->effect]);
        if (is->has_seconds)
            used += (size_t)snprintf(out + used, bytes - used, ",\"tolerationSeconds\":%lld",
                                     (long long)is->seconds);
        used += (size_t)snprintf(out + used, bytes - used, "}");
    }
    snprintf(out + used, bytes - used, "]");
}

void taint_texts_init(struct tw_texts *texts, const struct tw_pod *pod)
{
    const char *ids[TW_DEVICES_MAX];
    size_t len = 0;

    *texts = (struct tw_texts){.pod_len = 0};
    snprintf(texts->uid, sizeof texts->uid, "u%u", pod->uid);
    snprintf(texts->sandbox, sizeof texts->sandbox, "s%u", pod->sandbox);
    snprintf(texts->container, sizeof texts->container, "c%u", pod->container);
    snprintf(texts->grace, sizeof texts->grace, "%llu", (unsigned long long)pod->grace_ms / 1000);
    write_tolerations(pod, texts->tolerations, sizeof texts->tolerations);
    texts->pod[texts->pod_len++] = (struct devicemgr_annotation){"kubernetes.io/config.source",
                                                                 pod->is_static ? "file" : "api"};
    if (pod->tolerations_len > 0)
        texts->pod[texts->pod_len++] = (struct devicemgr_annotation){
            "devices.cri-device-shim/tolerations", texts->tolerations};
    if (pod->kind == TW_REQUEST) {
        snprintf(texts->request, sizeof texts->request, "%s=1", taint_resource_name(pod->resource));
        texts->pod[texts->pod_len++] =
            (struct devicemgr_annotation){"devices.cri-device-shim/main", texts->request};
    }
    texts->own[texts->own_len++] =
        (struct devicemgr_annotation){"io.kubernetes.pod.terminationGracePeriod", texts->grace};
    for (size_t i = 0; i < TW_DEVICES_MAX; i++) {
        if (pod->mask & 1u << i)
            ids[len++] = taint_device_id(pod->resource, i);
    }
    if (len == 0 || pod->kind == TW_CLAIM)
        return;
    texts->token_key = token_key(taint_resource_name(pod->resource));
    texts->token = token_value(taint_resource_name(pod->resource), ids, len);
    texts->own[texts->own_len++] = (struct devicemgr_annotation){texts->token_key, texts->token};
}

void taint_texts_fini(struct tw_texts *texts)
{
    free(texts->token_key);
    free(texts->token);
}
