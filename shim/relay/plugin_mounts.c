#include "shim/relay/plugin_mounts.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "shim/hash.h"
#include "shim/log.h"
#include "shim/relay/mount_redirect.h"

/* Longer names are none's: 253 bytes each at most (RFC 1123). */
#define POD_BYTES_MAX 512

static bool is_named(const struct plugin_mounts *m, const struct devicemgr_create *request)
{
    char pod[POD_BYTES_MAX];

    for (size_t i = 0; i < request->pod_annotations_len; i++) {
        if (strcmp(request->pod_annotations[i].key, PLUGIN_MOUNTS_ANNOTATION) == 0 &&
            strcmp(request->pod_annotations[i].value, "true") == 0)
            return true;
    }
    if ((size_t)snprintf(pod, sizeof pod, "%s/%s", request->pod_namespace, request->pod_name) >=
        sizeof pod)
        return false;
    for (size_t i = 0; i < m->pods_len; i++) {
        if (fnmatch(m->pods[i], pod, FNM_PATHNAME) == 0)
            return true;
    }
    return false;
}

/* Whether nothing has been said yet of such a mount in this container. */
static bool is_news(struct plugin_mounts *m, enum mount_place place, bool readonly,
                    const struct devicemgr_create *request)
{
    uint64_t hash = hash_word(HASH_BEGIN, 2 * (uint64_t)place + readonly);

    hash = hash_text(hash_text(hash, request->pod_uid), request->container);
    for (size_t i = 0; i < PLUGIN_MOUNTS_TOLD_MAX; i++) {
        if (m->told[i] == hash)
            return false;
    }
    m->told[m->told_next] = hash;
    m->told_next = (m->told_next + 1) % PLUGIN_MOUNTS_TOLD_MAX;
    return true;
}

static void say(const struct plugin_mounts *m, enum mount_place place, bool readonly,
                const char *path, const struct devicemgr_create *r)
{
    if (place == MOUNT_AT && readonly)
        log_info(
            "pod %s/%s, container %s: its mount of %s is read-only, which is no %s's; it stays",
            r->pod_namespace, r->pod_name, r->container, path, m->whose);
    else if (place == MOUNT_AT)
        log_info("pod %s/%s, container %s: its mount of %s is one of %s", r->pod_namespace,
                 r->pod_name, r->container, path, m->to);
    else
        log_warning(
            "pod %s/%s, container %s: its mount of %s, which %s %s, is not redirected; if it "
            "is a %s, let it mount %s itself, which is redirected to %s",
            r->pod_namespace, r->pod_name, r->container, path,
            place == MOUNT_ABOVE ? "holds" : "lies in", m->from, m->whose, m->from, m->to);
}

bool plugin_mounts_look(struct plugin_mounts *m, const struct create_container *c,
                        const struct devicemgr_create *request)
{
    bool redirect = false;

    if (!m->from || (m->named_only && !is_named(m, request)))
        return false;
    for (size_t i = 0; i < create_container_mounts_len(c); i++) {
        const char *path = create_container_mount(c, i);
        bool readonly = create_container_mount_readonly(c, i);
        enum mount_place place = mount_place(path, strlen(path), m->from);

        redirect = redirect || (place == MOUNT_AT && !readonly);
        if (place == MOUNT_ABOVE && readonly)
            continue; /* whoever looks at the whole node */
        if (place != MOUNT_ELSEWHERE && is_news(m, place, readonly, request))
            say(m, place, readonly, path, request);
    }
    return redirect;
}
