#include "devicemgr/machines/steer.h"

#include <string.h>

#include <utlist.h>

#include "cri-proto/resource_name.h"
#include "cri-proto/utf8.h"
#include "devicemgr/books/ordered.h"
#include "devicemgr/books/state.h"
#include "devicemgr/rules/evictable.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"

/* ---- one request ---- */

static struct steer *steer_new(const struct steer *said)
{
    struct steer *steer = mem_alloc(1, sizeof *steer);

    *steer = *said;
    steer->resource = mem_strdup(said->resource);
    ids_copy(&steer->ids, said->ids.v, said->ids.len);
    if (said->ids.len == 0)
        ids_add(&steer->ids, "");
    steer->words.reason = mem_strdup(said->words.reason);
    steer->words.value = said->words.value ? mem_strdup(said->words.value) : NULL;
    return steer;
}

static void steer_free(struct steer *steer)
{
    free(steer->resource);
    ids_fini(&steer->ids);
    free(steer->words.reason);
    free(steer->words.value);
    free(steer);
}

void steers_fini(struct steers *steers)
{
    struct steer *steer, *next;

    DL_FOREACH_SAFE(steers->first, steer, next) {
        steer_free(steer);
    }
}

/* ---- whether it can be ---- */

static int refuse(struct text *text, int code, const char *why)
{
    text_add(text, "%s", why);
    return code;
}

/* The device of a taint. */
static const char *device_of(const struct steer *steer)
{
    struct taint_said said;
    const char *device = "";

    order_taint_parts(steer->ids.v[0], &said, &device);
    return device;
}

/* A driver's: its pool is named, too. */
static int check_driver(const struct steer *steer, struct text *text)
{
    const char *device = device_of(steer);

    if (!utf8_is_text(device) || !taint_device_of(steer->resource, device))
        return refuse(text, CODE_INVALID_ARGUMENT,
                      "a device of a driver is named POOL/DEVICE; a resource's name has a slash");
    return CODE_OK;
}

/* As it stands, whatever there is. */
static int check_words(const struct steer *steer, struct text *text)
{
    const char *wrong = order_reason_judge(steer->words.reason);

    if (steer->kind == ORDER_TAINT && kube_name_is_driver(steer->resource)) {
        int code = check_driver(steer, text);

        if (code != CODE_OK)
            return code;
    } else if (!resource_name_valid(steer->resource)) {
        return refuse(text, CODE_INVALID_ARGUMENT, "that is no name of a resource");
    }
    if (wrong)
        return refuse(text, CODE_INVALID_ARGUMENT, wrong);
    for (size_t i = 0; i < steer->ids.len; i++) {
        bool empty =
            steer->kind == ORDER_TAINT ? device_of(steer)[0] == '\0' : steer->ids.v[i][0] == '\0';

        if ((steer->kind == ORDER_CORDON || steer->kind == ORDER_TAINT) &&
            (empty || !utf8_is_text(steer->ids.v[i])))
            return refuse(text, CODE_INVALID_ARGUMENT, "a device id is empty, or no UTF-8");
    }
    return CODE_OK;
}

/* Whether a grace period is under way. */
static int check_grace(const struct state *state, const struct steer *steer, struct text *text)
{
    const struct resource *resource = resources_find(state->resources, steer->resource);

    if (!resource)
        text_add(text, "resource %s is not known on this node", steer->resource);
    else if (resource->builtin)
        text_add(text, "resource %s is a built-in one: there is no plugin that could be away",
                 resource->name);
    else if (!resource->endpoint.stopped)
        text_add(text, "no stop grace period of resource %s is under way: its plugin is not away",
                 resource->name);
    return text->len > 0 ? CODE_FAILED_PRECONDITION : CODE_OK;
}

/* How many orders there will be besides those that there are. */
static size_t unset(const struct state *state, const struct steer *steer)
{
    size_t len = 0;

    for (size_t i = 0; i < steer->ids.len; i++)
        len += !orders_find(&state->orders, steer->kind, steer->resource, steer->ids.v[i]);
    return len;
}

static int check(const struct steers *steers, const struct steer *steer, struct text *text)
{
    const struct state *state = steers->state;
    int code = check_words(steer, text);

    if (code != CODE_OK)
        return code;
    if (state->unread) {
        text_add(text, "the state of this node's devices cannot be read: ");
        text_add_words(text, state->unread, TEXT_WORDS_BYTES_MAX);
        return CODE_FAILED_PRECONDITION;
    }
    if (state->draining)
        return refuse(text, CODE_FAILED_PRECONDITION, "the shim is being stopped");
    if (steer->what == STEER_SET && orders_len(&state->orders) + unset(state, steer) > ORDERS_MAX)
        return refuse(text, CODE_RESOURCE_EXHAUSTED, "too much has been set already");
    return steer->kind == ORDER_GRACE ? check_grace(state, steer, text) : CODE_OK;
}

/* ---- doing it ---- */

/* As it would be with what was set before: one that is to end goes on as it was until that is
 * durable. */
static struct order_words words_of(const struct state *state, const struct steer *steer)
{
    const struct order *order = orders_find(&state->orders, steer->kind, steer->resource, "");
    struct order_words words = steer->words;

    if (steer->kind == ORDER_GRACE && order && !order->words.over)
        words.more_ms = later_by(order->words.more_ms, words.more_ms);
    return words;
}

static bool is_same(const struct order *order, const struct order_words *words)
{
    return order && strcmp(order->words.reason, words->reason) == 0 &&
           order->words.more_ms == words->more_ms && order->words.over == words->over &&
           order->words.for_ms == 0 && words->for_ms == 0 && /* else it begins anew */
           strcmp(order->words.value ? order->words.value : "", words->value ? words->value : "") ==
               0;
}

/* What is so already is written all the same only if it says something else. How many are to be
 * committed. */
static size_t set(struct state *state, const struct steer *steer)
{
    const struct order_words words = words_of(state, steer);
    size_t changed = 0;

    for (size_t i = 0; i < steer->ids.len; i++) {
        const char *id = steer->ids.v[i];
        const struct order *order = orders_find(&state->orders, steer->kind, steer->resource, id);

        if (is_same(order, &words) || (order && order->state == ORDER_SETTING)) /* named twice */
            continue;
        order = orders_set(&state->orders, steer->kind, steer->resource, id, &words);
        dirty_touch_order(state, order);
        changed++;
    }
    return changed;
}

static size_t take_back(struct state *state, const struct steer *steer)
{
    size_t changed = 0;

    for (size_t i = 0; i < steer->ids.len; i++) {
        struct order *order =
            orders_edit(&state->orders, steer->kind, steer->resource, steer->ids.v[i]);

        if (!order || order->state == ORDER_ENDING)
            continue;
        order_end(order);
        dirty_touch_order(state, order);
        changed++;
    }
    return changed;
}

/* ---- what is said of it ---- */

/* How many of the ids the plugin does not list now: it may have been a slip. */
static size_t unlisted(const struct state *state, const struct steer *steer)
{
    const struct resource *resource = resources_find(state->resources, steer->resource);
    size_t len = 0;

    for (size_t i = 0; i < steer->ids.len; i++)
        len += !resource || !devices_find(&resource->devices, steer->ids.v[i]);
    return len;
}

static void tell_cordon(const struct state *state, const struct steer *steer, struct text *text)
{
    size_t len = unlisted(state, steer);

    text_add(text, "%s: %s: ", steer->resource,
             steer->what == STEER_SET ? "cordoned" : "uncordoned");
    text_add_ids(text, &steer->ids);
    if (steer->what == STEER_SET && !resources_find(state->resources, steer->resource))
        text_add(text, "; no such resource is known on this node now");
    else if (steer->what == STEER_SET && len > 0)
        text_add(text, "; %zu of them %s not listed now", len, len == 1 ? "is" : "are");
}

static void tell_grace(const struct state *state, const struct steer *steer, struct text *text)
{
    const struct resource *resource = resources_find(state->resources, steer->resource);
    uint64_t end_ms = UINT64_MAX;

    if (resource && resource->endpoint.stopped)
        end_ms = endpoint_end_ms(&resource->endpoint, ordered_grace_ms(state, resource));
    text_add(text, "%s: ", steer->resource);
    if (end_ms == UINT64_MAX) {
        text_add(text, "its plugin is back, or being dialled");
        return;
    }
    text_add(text, "its stop grace period ends ");
    if (end_ms <= state->now_ms) {
        text_add(text, "now");
        return;
    }
    text_add(text, "in ");
    text_add_duration(text, end_ms - state->now_ms);
}

/* Each once. */
static void note_pod(void *user, const struct evictable *evictable)
{
    ids_add_new(user, evictable->pod_uid);
}

/* Who would have to go, or has: the first few by name. */
static void tell_evicted(const struct state *state, const struct steer *steer, struct text *text)
{
    struct taint taint = {.effect = TAINT_NO_EXECUTE,
                          .value = steer->words.value,
                          .words = "",
                          .added_ms = state->now_ms};
    struct ids pods = {0}, names = {0};
    struct taint_said said;
    const char *device;

    if (!order_taint_parts(steer->ids.v[0], &said, &device))
        return;
    taint.key = said.key;
    evictable_by(state, steer->resource, device, &taint, note_pod, &pods);
    for (size_t i = 0; i < pods.len; i++) {
        const struct pod *pod = pods_find(&state->pods, pods.v[i]);
        struct text name = {0};

        text_add_words(&name, pod->pod_namespace, TEXT_IDS_BYTES_MAX);
        text_add(&name, "/");
        text_add_words(&name, pod->name, TEXT_IDS_BYTES_MAX);
        ids_add(&names, name.buf);
    }
    ids_sort(&names);
    text_add(text, said.effect == TAINT_NO_EXECUTE && steer->what == STEER_SET
                       ? "; pods to be evicted: "
                       : "; pods that NoExecute evicts: ");
    if (names.len == 0)
        text_add(text, "none");
    text_add_ids(text, &names);
    ids_fini(&names);
    ids_fini(&pods);
}

static void tell_taint(const struct state *state, const struct steer *steer, struct text *text)
{
    struct taint_said said;
    const char *device;

    if (!order_taint_parts(steer->ids.v[0], &said, &device))
        return;
    text_add(text, "%s: %s: ", steer->resource,
             steer->what == STEER_SET         ? "tainted"
             : steer->what == STEER_TAKE_BACK ? "untainted"
                                              : "nothing has changed; tainted so would be");
    text_add_words(text, device, TEXT_IDS_BYTES_MAX);
    text_add(text, " %s", said.key);
    if (steer->what == STEER_TAKE_BACK) {
        if (steer->ids.len == 1)
            text_add(text, ":%s", taint_effect_name(said.effect));
        return;
    }
    text_add(text, "%s%s:%s", steer->words.value[0] != '\0' ? "=" : "", steer->words.value,
             taint_effect_name(said.effect));
    if (steer->words.for_ms > 0) {
        text_add(text, " for ");
        text_add_duration(text, steer->words.for_ms);
    }
    if (said.effect != TAINT_NO_SCHEDULE)
        tell_evicted(state, steer, text);
    if (!resources_find(state->resources, steer->resource) &&
        !drivers_find(&state->drivers, steer->resource))
        text_add(text, "; no such resource or driver is known on this node now");
}

static void tell(const struct state *state, const struct steer *steer, struct text *text)
{
    switch (steer->kind) {
    case ORDER_CORDON:
        tell_cordon(state, steer, text);
        break;
    case ORDER_WITHDRAWAL:
        text_add(text, "%s: %s", steer->resource,
                 steer->what == STEER_SET ? "withdrawn" : "not withdrawn any more");
        break;
    case ORDER_GRACE:
        tell_grace(state, steer, text);
        break;
    case ORDER_TAINT:
        tell_taint(state, steer, text);
        break;
    case ORDER_KINDS:
        break;
    }
}

static void log_steer(struct state *state, const struct steer *steer, const struct text *said)
{
    struct text text = {0};

    text_add(&text, "by the operator: resource %s", said->buf);
    if (steer->words.reason[0] != '\0') {
        text_add(&text, ": ");
        text_add_words(&text, steer->words.reason, TEXT_WORDS_BYTES_MAX);
    }
    state_log_about(state, LEVEL_WARNING,
                    name_line(DEVICEMGR_LINE_ORDERED, name_about_resource(steer->resource)), &text);
}

/* The first one's end. */
static void answer(struct steers *steers, int code, bool changed, const struct text *text)
{
    struct steer *steer = steers->first;

    action_steered(&steers->state->actions, steer->number, code, changed, text->buf);
    DL_DELETE(steers->first, steer);
    steers->len--;
    steer_free(steer);
}

/* ---- one after the other ---- */

/* The first one, when its turn has come. False: it waits for a commit. */
static bool start(struct steers *steers)
{
    struct state *state = steers->state;
    struct steer *steer = steers->first;
    struct text text = {0};
    int code = check(steers, steer, &text);

    if (code == CODE_OK && steer->what != STEER_LOOK &&
        (steer->what == STEER_TAKE_BACK ? take_back(state, steer) : set(state, steer)) > 0) {
        ordered_changed(state, steer->resource);
        steer->begun = true;
        return false;
    }
    if (code == CODE_OK)
        tell(state, steer, &text);
    answer(steers, code, false, &text);
    return true;
}

void steers_next(struct steers *steers)
{
    while (steers->first && !steers->first->begun && start(steers))
        continue;
}

void steers_begin(struct steers *steers, const struct steer *said)
{
    struct steer *steer = steer_new(said);

    DL_APPEND(steers->first, steer);
    steers->len++;
    steers_next(steers);
}

void steers_commit_began(struct steers *steers, uint64_t commit)
{
    if (steers->first && steers->first->commit == 0)
        steers->first->commit = commit;
}

bool steers_committed(struct steers *steers, uint64_t commit, const char *error)
{
    struct steer *steer = steers->first;
    struct text text = {0};

    if (!steer || steer->commit != commit)
        return false;
    if (error) {
        text_add(&text, "nothing has changed, since it cannot be stored: ");
        text_add_words(&text, error, TEXT_WORDS_BYTES_MAX);
    } else {
        tell(steers->state, steer, &text);
        log_steer(steers->state, steer, &text);
    }
    answer(steers, error ? CODE_ABORTED : CODE_OK, !error, &text);
    return true;
}
