#include "devicemgr/things/pod.h"

#include <assert.h>
#include <string.h>

#include "devicemgr/things/limits.h"

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

bool pod_set_tolerations(struct pod *pod, const char *annotation, struct text *error)
{
    if (pod->tolerates == annotation ||
        (pod->tolerates && annotation && strcmp(pod->tolerates, annotation) == 0))
        return false;
    free(pod->tolerates);
    pod->tolerates = annotation ? mem_strdup(annotation) : NULL;
    if (!annotation || tolerations_read(&pod->tolerations, annotation, error) < 0)
        tolerations_fini(&pod->tolerations);
    return true;
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
    ids_fini(&pod->ignored);
    ids_fini(&pod->tokens);
    HASH_DEL(pods->by_uid, pod);
    free(pod->uid);
    free(pod->pod_namespace);
    free(pod->name);
    free(pod->boot_id);
    free(pod->tolerates);
    tolerations_fini(&pod->tolerations);
    free(pod);
}

void pods_fini(struct pods *pods)
{
    struct pod *pod, *next;

    HASH_ITER(hh, pods->by_uid, pod, next) {
        pods_remove(pods, pod);
    }
    while (pods->gone)
        gone_free(pods, pods->gone);
    while (pods->endings)
        ending_free(pods, pods->endings);
}

const struct pod *pods_find(const struct pods *pods, const char *uid)
{
    struct pod *pod;

    HASH_FIND_STR(pods->by_uid, uid, pod);
    return pod;
}

struct pod *pods_edit(struct pods *pods, const char *uid)
{
    return (struct pod *)pods_find(pods, uid);
}

struct pod *pods_ensure(struct pods *pods, const char *uid, const char *pod_namespace,
                        const char *name)
{
    struct pod *pod = pods_edit(pods, uid);
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

void pod_set_removed(struct pod *pod, bool removed)
{
    pod->removed = removed;
}

void pod_set_static(struct pod *pod)
{
    pod->static_pod = true;
}

/* ---- one sandbox ---- */

void sandbox_set_epoch(struct sandbox *sandbox, uint64_t epoch)
{
    sandbox->epoch = epoch;
}

void sandbox_set_ready(struct sandbox *sandbox, uint64_t epoch, bool ready)
{
    sandbox->epoch = epoch;
    sandbox->dead = !ready;
}

void sandbox_set_ran(struct sandbox *sandbox)
{
    sandbox->ran = true;
}

void sandbox_set_remade_by(struct sandbox *sandbox, uint64_t ms)
{
    sandbox->remade_by_ms = ms;
}

static bool may_move(enum sandbox_state from, enum sandbox_state to)
{
    switch (from) {
    case SANDBOX_OPEN:
        return to == SANDBOX_STOPPING || to == SANDBOX_STOPPED;
    case SANDBOX_STOPPING:
        return to == SANDBOX_DOUBTED || to == SANDBOX_STOPPED;
    case SANDBOX_DOUBTED:
        return to != SANDBOX_DOUBTED;
    case SANDBOX_STOPPED:
        return to == SANDBOX_OPEN;
    }
    return false;
}

static void set_state(struct sandbox *sandbox, enum sandbox_state state)
{
    assert(sandbox->state == state || may_move(sandbox->state, state));
    sandbox->state = state;
}

void sandbox_set_stopping(struct sandbox *sandbox)
{
    if (sandbox->state != SANDBOX_STOPPED)
        set_state(sandbox, SANDBOX_STOPPING);
}

void sandbox_set_doubted(struct sandbox *sandbox, uint64_t reopen_ms)
{
    set_state(sandbox, SANDBOX_DOUBTED);
    sandbox->reopen_ms = reopen_ms;
}

void sandbox_set_stopped(struct sandbox *sandbox, uint64_t epoch)
{
    set_state(sandbox, SANDBOX_STOPPED);
    sandbox->stop_epoch = epoch;
    sandbox->stopped_dead = sandbox->dead;
}

void sandbox_set_open(struct sandbox *sandbox)
{
    set_state(sandbox, SANDBOX_OPEN);
}

/* ---- the sandboxes ---- */

const struct sandbox *pods_find_sandbox(const struct pods *pods, const char *id)
{
    struct sandbox *sandbox;

    HASH_FIND_STR(pods->sandboxes, id, sandbox);
    return sandbox;
}

struct sandbox *pods_edit_sandbox(struct pods *pods, const char *id)
{
    return (struct sandbox *)pods_find_sandbox(pods, id);
}

/* A new sandbox goes on where what was told of it before it had a pod left it. */
static void take_ending(struct pods *pods, struct sandbox *sandbox)
{
    struct sandbox_ending *ending = ending_find(pods, sandbox->id);

    if (!ending)
        return;
    if (ending->end == SANDBOX_END_STOPPING)
        sandbox_set_stopping(sandbox);
    if (ending->end == SANDBOX_END_STOPPED)
        sandbox_set_stopped(sandbox, ending->epoch);
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
    struct sandbox *sandbox = pods_edit_sandbox(pods, id);

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
    return pod->ignored.len < POD_IGNORED_MAX && ids_add_new(&pod->ignored, container);
}

void pod_note_token(struct pod *pod, const char *container)
{
    if (pod->tokens.len < POD_TOKENS_MAX)
        ids_add_new(&pod->tokens, container);
}

void pod_set_remembers(struct pod *pod)
{
    pod->remembers = true;
}

bool pod_had_token(const struct pod *pod, const char *container)
{
    return ids_contain(&pod->tokens, container);
}
