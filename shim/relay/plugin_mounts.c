#include "shim/relay/plugin_mounts.h"

#include <string.h>

#include "shim/hash.h"
#include "shim/log.h"
#include "shim/relay/mount_redirect.h"

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
        log_info("pod %s/%s, container %s: its mount of %s is read-only, which is no device "
                 "plugin's; it stays",
                 r->pod_namespace, r->pod_name, r->container, path);
    else if (place == MOUNT_AT)
        log_info("pod %s/%s, container %s: its mount of %s is one of %s", r->pod_namespace,
                 r->pod_name, r->container, path, m->to);
    else
        log_warning(
            "pod %s/%s, container %s: its mount of %s, which %s %s, is not redirected; if it "
            "is a device plugin, let it mount %s itself, which is redirected to %s",
            r->pod_namespace, r->pod_name, r->container, path,
            place == MOUNT_ABOVE ? "holds" : "lies in", m->from, m->from, m->to);
}

bool plugin_mounts_look(struct plugin_mounts *m, const struct create_container *c,
                        const struct devicemgr_create *request)
{
    bool redirect = false;

    for (size_t i = 0; m->from && i < create_container_mounts_len(c); i++) {
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
