/*
 * The arrival of a create: what it asks for, and whether it may.
 */
#include <assert.h>
#include <string.h>

#include "devicemgr/create.h"

/* The value of the pod's request annotation for this container; NULL: none. */
static const char *request_annotation(const struct devicemgr_create *request)
{
    for (size_t i = 0; i < request->pod_annotations_len; i++) {
        if (request_is_key_of(request->pod_annotations[i].key, request->container))
            return request->pod_annotations[i].value;
    }
    return NULL;
}

static bool has_token(const struct devicemgr_create *request)
{
    for (size_t i = 0; i < request->container_annotations_len; i++) {
        if (request_is_token_key(request->container_annotations[i].key))
            return true;
    }
    return false;
}

bool create_namespace_allowed(const struct devicemgr *mgr, const char *pod_namespace)
{
    for (size_t i = 0; i < mgr->settings.namespaces_len; i++) {
        if (strcmp(mgr->settings.namespaces[i], "*") == 0 ||
            strcmp(mgr->settings.namespaces[i], pod_namespace) == 0)
            return true;
    }
    return false;
}

/* A client may leave the uid out, or name another pod's; runtimes do not look at it. */
enum create_step create_check_pod(const struct devicemgr *mgr, const struct create *create,
                                  struct create_refusal *refusal)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, create->sandbox_id);

    if (create->pod_uid[0] != '\0' && (!sandbox || strcmp(sandbox->pod->uid, create->pod_uid) == 0))
        return STEP_GO;
    create_name(create, NULL, &refusal->text);
    text_add(&refusal->text, "the pod uid \"");
    text_add_words(&refusal->text, create->pod_uid, TEXT_IDS_BYTES_MAX);
    if (create->pod_uid[0] == '\0') {
        text_add(&refusal->text, "\" of its sandbox_config is none, and devices are held by it");
    } else {
        text_add(&refusal->text, "\" of its sandbox_config is not that of sandbox %.12s, \"",
                 create->sandbox_id);
        text_add_words(&refusal->text, sandbox->pod->uid, TEXT_IDS_BYTES_MAX);
        text_add(&refusal->text, "\"");
    }
    refusal->code = CODE_INVALID_ARGUMENT;
    return STEP_REFUSE;
}

static void log_ignored(struct devicemgr *mgr, const struct create *create)
{
    struct text text = {0};
    struct pod *pod;

    if (mgr->unread || core_sandbox_removed(mgr, create->sandbox_id))
        return; /* no pod to remember it by */
    pod = pods_ensure(&mgr->pods, create->pod_uid, create->pod_namespace, create->pod_name);
    core_pod_changed(mgr, create->pod_uid);
    if (!pod_ignore_once(pod, create->container))
        return;
    create_name(create, NULL, &text);
    text_add(&text, "its pod's request annotation is ignored: annotations are off on this node");
    core_log(mgr, LEVEL_WARNING, &text);
}

/* Reads both sources into create->request. STEP_REFUSE, or STEP_GO. */
static enum create_step read_request(struct devicemgr *mgr, struct create *create,
                                     const struct devicemgr_create *request, const char *annotation,
                                     struct create_refusal *refusal)
{
    create_name(create, NULL, &refusal->text);
    refusal->code = CODE_INVALID_ARGUMENT;
    for (size_t i = 0; i < request->container_annotations_len; i++) {
        const struct devicemgr_annotation *token = &request->container_annotations[i];
        struct text error = {0};

        if (!request_is_token_key(token->key))
            continue;
        if (request_add_token(&create->request, token->key, token->value, &error) < 0) {
            text_add(&refusal->text, "%s", error.buf);
            return STEP_REFUSE;
        }
    }
    if (annotation && !mgr->settings.annotations && !mgr->settings.start_without) {
        text_add(
            &refusal->text,
            "its pod asks for devices by annotation, which is off on this node: take the "
            "annotation away, or set annotations.enabled, or annotations.start_without to have "
            "it started without them");
        refusal->code = CODE_FAILED_PRECONDITION;
        return STEP_REFUSE;
    } else if (annotation && !mgr->settings.annotations) {
        log_ignored(mgr, create);
    } else if (annotation && !create_namespace_allowed(mgr, create->pod_namespace)) {
        text_add(&refusal->text,
                 "its pod asks for devices by annotation, and namespace %s is not "
                 "in the setting annotations.namespaces",
                 create->pod_namespace);
        refusal->code = CODE_FAILED_PRECONDITION;
        return STEP_REFUSE;
    } else if (annotation &&
               request_add_annotation(&create->request, annotation, &refusal->text) < 0) {
        return STEP_REFUSE;
    }
    request_sort(&create->request);
    return STEP_GO;
}

static struct create *create_new(const struct devicemgr *mgr, uint64_t number,
                                 const struct devicemgr_create *request)
{
    struct create *create = mem_alloc(1, sizeof *create);

    create->number = number;
    create->sandbox_id = mem_strdup(request->sandbox_id);
    create->pod_uid = mem_strdup(request->pod_uid);
    create->pod_namespace = mem_strdup(request->pod_namespace);
    create->pod_name = mem_strdup(request->pod_name);
    create->container = mem_strdup(request->container);
    create->attempt = request->attempt;
    create->started_ms = mgr->now_ms;
    create->limit_ms = UINT64_MAX;
    if (request->deadline_ms != UINT64_MAX)
        create->limit_ms = request->deadline_ms > DEADLINE_MARGIN_MS
                               ? request->deadline_ms - DEADLINE_MARGIN_MS
                               : 0;
    return create;
}

/* A pending create of the same container is of a client that has given it up, or will. */
static void take_over(struct devicemgr *mgr, const struct create *create)
{
    struct create *older = wake_find_other(mgr, create);
    struct text text = {0};

    if (!older)
        return;
    create_name(older, NULL, &text);
    text_add(&text, "taken over by a newer CreateContainer of the same container");
    create_refuse(mgr, older, CODE_ABORTED, &text);
}

/* The sandbox may be older than the shim, and the runtime's list still to come. One that was
 * removed stays unknown: the create is late, and is refused for it. */
static void know_sandbox(struct devicemgr *mgr, const struct create *create, uint32_t attempt)
{
    struct pod *pod;
    struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, create->sandbox_id);

    if (sandbox || core_sandbox_removed(mgr, create->sandbox_id))
        return;
    pod = pods_ensure(&mgr->pods, create->pod_uid, create->pod_namespace, create->pod_name);
    sandbox = pods_ensure_sandbox(&mgr->pods, pod, create->sandbox_id, attempt);
    sandbox->epoch = mgr->epoch;
    pod_set_boot(pod, mgr->settings.boot_id);
    core_pod_changed(mgr, create->pod_uid);
}

static void admit(struct devicemgr *mgr, struct create *create, uint32_t sandbox_attempt)
{
    struct create_refusal refusal = {0};

    if (create_check_pod(mgr, create, &refusal) == STEP_REFUSE) {
        create_push_refusal(mgr, create->number, refusal.code, &refusal.text);
        create_free(mgr, create);
        return;
    }
    create->items = mem_alloc(create->request.len, sizeof *create->items);
    for (size_t i = 0; i < create->request.len; i++)
        create->items[i].want = &create->request.items[i];
    know_sandbox(mgr, create, sandbox_attempt);
    take_over(mgr, create);
    create->arrival = ++mgr->arrivals;
    wake_join(mgr, create);
}

/* What it holds, and who else holds that, stands in rows that nobody has read. */
static void refuse_unread(struct devicemgr *mgr, struct create *create)
{
    struct text text = {0};

    create_name(create, create->request.items[0].resource, &text);
    text_add(&text, "the state of this node's devices cannot be read: ");
    text_add_words(&text, mgr->unread, TEXT_WORDS_BYTES_MAX);
    create_push_refusal(mgr, create->number, CODE_UNAVAILABLE, &text);
    create_free(mgr, create);
}

bool devicemgr_create(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                      const struct devicemgr_create *request)
{
    const char *annotation = request_annotation(request);
    struct create_refusal refusal = {0};
    struct create *create;

    core_at(mgr, now_ms);
    if (!annotation && !has_token(request)) {
        adopt_created(mgr, request);
        return false;
    }
    create = create_new(mgr, number, request);
    assert(!creates_find(mgr, number));
    HASH_ADD(hh, mgr->creates, number, sizeof create->number, create);
    if (HASH_COUNT(mgr->creates) > CREATES_MAX) {
        create_name(create, NULL, &refusal.text);
        text_add(&refusal.text, "%d creates are under way already", CREATES_MAX);
        create_refuse(mgr, create, CODE_UNAVAILABLE, &refusal.text);
    } else if (read_request(mgr, create, request, annotation, &refusal) == STEP_REFUSE) {
        create_push_refusal(mgr, number, refusal.code, &refusal.text);
        create_free(mgr, create);
    } else if (create->request.len == 0) {
        create_free(mgr, create); /* its annotation was ignored */
        adopt_created(mgr, request);
        return false;
    } else if (mgr->unread) {
        refuse_unread(mgr, create);
    } else {
        admit(mgr, create, request->sandbox_attempt);
    }
    return true;
}
