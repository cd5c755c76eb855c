#include "devicemgr/pod.h"

#include <string.h>

#include "devicemgr/limits.h"

struct sandbox_ending {
    char *id;
    enum sandbox_end end;
    uint64_t epoch;
    UT_hash_handle hh;
};

struct pod_gone {
    char *uid;
    UT_hash_handle hh;
};

static void sandbox_link(struct sandbox *sandbox, struct pod *pod)
{
    sandbox->pod = pod;
    sandbox->pod_next = pod->sandboxes;
    pod->sandboxes = sandbox;
}

static void sandbox_unlink(struct sandbox *sandbox)
{
    struct sandbox **link = &sandbox->pod->sandboxes;

    while (*link != sandbox)
        link = &(*link)->pod_next;
    *link = sandbox->pod_next;
}

static void sandbox_free(struct pods *pods, struct sandbox *sandbox)
{
    sandbox_unlink(sandbox);
    HASH_DEL(pods->sandboxes, sandbox);
    free(sandbox->id);
    free(sandbox);
}

static struct sandbox_ending *ending_find(const struct pods *pods, const char *id)
{
    struct sandbox_ending *ending;

    HASH_FIND_STR(pods->endings, id, ending);
    return ending;
}

static void ending_free(struct pods *pods, struct sandbox_ending *ending)
{
    HASH_DEL(pods->endings, ending);
    free(ending->id);
    free(ending);
}

static struct pod_gone *gone_find(const struct pods *pods, const char *uid)
{
    struct pod_gone *gone;

    HASH_FIND_STR(pods->gone, uid, gone);
    return gone;
}

static void gone_free(struct pods *pods, struct pod_gone *gone)
{
    HASH_DEL(pods->gone, gone);
    free(gone->uid);
    free(gone);
}

static void gone_add(struct pods *pods, const char *uid)
{
    struct pod_gone *gone = mem_alloc(1, sizeof *gone);

    if (HASH_COUNT(pods->gone) >= PODS_GONE_MAX)
        gone_free(pods, pods->gone);
    gone->uid = mem_strdup(uid);
    HASH_ADD_KEYPTR(hh, pods->gone, gone->uid, strlen(gone->uid), gone);
}

bool pods_gone(const struct pods *pods, const char *uid)
{
    return gone_find(pods, uid) != NULL;
}

void pods_remove(struct pods *pods, struct pod *pod)
{
    gone_add(pods, pod->uid);
    while (pod->sandboxes)
        sandbox_free(pods, pod->sandboxes);
    for (size_t i = 0; i < pod->ignored_len; i++)
        free(pod->ignored[i]);
    free(pod->ignored);
    HASH_DEL(pods->by_uid, pod);
    free(pod->uid);
    free(pod->pod_namespace);
    free(pod->name);
    free(pod->boot_id);
    free(pod);
}

void pods_fini(struct pods *pods)
{
    struct pod *pod, *next;

    HASH_ITER(hh, pods->by_uid, pod, next)
    {
        pods_remove(pods, pod);
    }
    while (pods->gone)
        gone_free(pods, pods->gone);
    while (pods->endings)
        ending_free(pods, pods->endings);
}

struct pod *pods_find(const struct pods *pods, const char *uid)
{
    struct pod *pod;

    HASH_FIND_STR(pods->by_uid, uid, pod);
    return pod;
}

struct pod *pods_ensure(struct pods *pods, const char *uid, const char *pod_namespace,
                        const char *name)
{
    struct pod *pod = pods_find(pods, uid);
    struct pod_gone *gone = gone_find(pods, uid);

    if (gone)
        gone_free(pods, gone);
    if (!pod) {
        pod = mem_alloc(1, sizeof *pod);
        pod->uid = mem_strdup(uid);
        pod->boot_id = mem_strdup("");
        HASH_ADD_KEYPTR(hh, pods->by_uid, pod->uid, strlen(pod->uid), pod);
    }
    free(pod->pod_namespace);
    free(pod->name);
    pod->pod_namespace = mem_strdup(pod_namespace);
    pod->name = mem_strdup(name);
    return pod;
}

void pod_set_boot(struct pod *pod, const char *boot_id)
{
    if (strcmp(pod->boot_id, boot_id) == 0)
        return;
    free(pod->boot_id);
    pod->boot_id = mem_strdup(boot_id);
}

struct sandbox *pods_find_sandbox(const struct pods *pods, const char *id)
{
    struct sandbox *sandbox;

    HASH_FIND_STR(pods->sandboxes, id, sandbox);
    return sandbox;
}

/* A new sandbox goes on where what was told of it before it had a pod left it. */
static void take_ending(struct pods *pods, struct sandbox *sandbox)
{
    struct sandbox_ending *ending = ending_find(pods, sandbox->id);

    if (!ending)
        return;
    sandbox->stopping = ending->end != SANDBOX_END_REMOVED;
    sandbox->stopped = ending->end == SANDBOX_END_STOPPED;
    sandbox->stop_epoch = ending->epoch;
    ending_free(pods, ending);
}

/* The pod's sandbox with the highest attempt, but for this one, is the newest if this one was. */
static void replace_newest(struct pod *pod, const struct sandbox *leaves)
{
    if (pod->newest != leaves)
        return;
    pod->newest = NULL;
    for (struct sandbox *s = pod->sandboxes; s; s = s->pod_next) {
        if (s != leaves && (!pod->newest || s->attempt > pod->newest->attempt))
            pod->newest = s;
    }
}

struct sandbox *pods_ensure_sandbox(struct pods *pods, struct pod *pod, const char *id,
                                    uint32_t attempt)
{
    struct sandbox *sandbox = pods_find_sandbox(pods, id);

    if (!sandbox) {
        sandbox = mem_alloc(1, sizeof *sandbox);
        sandbox->id = mem_strdup(id);
        sandbox_link(sandbox, pod);
        HASH_ADD_KEYPTR(hh, pods->sandboxes, sandbox->id, strlen(sandbox->id), sandbox);
        take_ending(pods, sandbox);
        pod->removed = false;
    }
    if (sandbox->pod != pod) {
        replace_newest(sandbox->pod, sandbox);
        sandbox_unlink(sandbox);
        sandbox_link(sandbox, pod);
    }
    sandbox->attempt = attempt;
    if (!pod->newest || attempt >= pod->newest->attempt)
        pod->newest = sandbox;
    return sandbox;
}

void pods_remove_sandbox(struct pods *pods, struct sandbox *sandbox)
{
    replace_newest(sandbox->pod, sandbox);
    sandbox_free(pods, sandbox);
}

void pods_note_end(struct pods *pods, const char *id, enum sandbox_end end, uint64_t epoch)
{
    struct sandbox_ending *ending = ending_find(pods, id);

    if (ending)
        ending_free(pods, ending);
    else if (HASH_COUNT(pods->endings) >= SANDBOX_ENDS_MAX)
        ending_free(pods, pods->endings);
    ending = mem_alloc(1, sizeof *ending);
    ending->id = mem_strdup(id);
    ending->end = end;
    ending->epoch = epoch;
    HASH_ADD_KEYPTR(hh, pods->endings, ending->id, strlen(ending->id), ending);
}

enum sandbox_end pods_find_end(const struct pods *pods, const char *id, uint64_t *epoch)
{
    const struct sandbox_ending *ending = ending_find(pods, id);

    if (!ending)
        return SANDBOX_END_NONE;
    *epoch = ending->epoch;
    return ending->end;
}

void pods_forget_stopping(struct pods *pods, const char *id)
{
    struct sandbox_ending *ending = ending_find(pods, id);

    if (ending && ending->end == SANDBOX_END_STOPPING)
        ending_free(pods, ending);
}

bool pod_ignore_once(struct pod *pod, const char *container)
{
    for (size_t i = 0; i < pod->ignored_len; i++) {
        if (strcmp(pod->ignored[i], container) == 0)
            return false;
    }
    if (pod->ignored_len == POD_IGNORED_MAX)
        return false;
    pod->ignored = mem_grow(pod->ignored, pod->ignored_len, sizeof *pod->ignored);
    pod->ignored[pod->ignored_len++] = mem_strdup(container);
    return true;
}
