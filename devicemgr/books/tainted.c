#include "devicemgr/books/tainted.h"

#include <string.h>

#include "devicemgr/books/happened.h"
#include "devicemgr/books/ordered.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"

/* ---- the settings ---- */

static void free_settings(struct settings_taint *taints, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        free(taints[i].resource);
        free(taints[i].id);
        free(taints[i].key);
        free(taints[i].value);
    }
    free(taints);
}

static bool is_same(const struct settings_taint *a, const struct settings_taint *b)
{
    return strcmp(a->resource, b->resource) == 0 && strcmp(a->id, b->id) == 0 &&
           strcmp(a->key, b->key) == 0 && strcmp(a->value, b->value) == 0 && a->effect == b->effect;
}

/* Since when it is among the settings. */
static uint64_t since_ms(const struct state *state, const struct settings_taint *taint)
{
    for (size_t i = 0; i < state->tainted.settings_len; i++) {
        if (is_same(&state->tainted.settings[i], taint))
            return state->tainted.settings[i].added_ms;
    }
    return state->now_ms;
}

static bool settings_by_health(const struct devicemgr_settings *settings)
{
    bool any = settings->taint_unhealthy_after_ms > 0;

    for (size_t i = 0; i < settings->resources_len; i++)
        any = any || settings->resources[i].taint_unhealthy_after_ms > 0;
    return any;
}

void tainted_settings_changed(struct state *state)
{
    struct tainted *tainted = &state->tainted;
    const struct devicemgr_settings *settings = &state->settings;
    struct settings_taint *taints = mem_alloc(settings->taints_len, sizeof *taints);

    tainted->settings_no_execute = 0;
    for (size_t i = 0; i < settings->taints_len; i++) {
        const struct devicemgr_settings_taint *from = &settings->taints[i];

        taints[i] = (struct settings_taint){.resource = mem_strdup(from->resource),
                                            .id = mem_strdup(from->id ? from->id : ""),
                                            .key = mem_strdup(from->key),
                                            .value = mem_strdup(from->value)};
        if (!taint_effect_find(from->effect, &taints[i].effect))
            taints[i].effect = TAINT_NONE;
        taints[i].added_ms = since_ms(state, &taints[i]);
        tainted->settings_no_execute += taints[i].effect == TAINT_NO_EXECUTE;
    }
    free_settings(tainted->settings, tainted->settings_len);
    tainted->settings = taints;
    tainted->settings_len = settings->taints_len;
    tainted->by_health = settings_by_health(settings);
    for (struct health_guard *guard = tainted->guards; guard; guard = guard->hh.next)
        guard->next_ms = 0;
    tainted_changed(state, NULL);
}

static bool is_meant(const struct settings_taint *taint, const char *resource, const char *id)
{
    return strcmp(taint->resource, resource) == 0 &&
           (taint->id[0] == '\0' || strcmp(taint->id, id) == 0);
}

/* ---- what is in force ---- */

void tainted_changed(struct state *state, const char *resource)
{
    if (resource)
        ordered_changed(state, resource);
    for (const struct resource *r = state->resources; !resource && r; r = r->hh.next)
        ordered_changed(state, r->name);
}

struct taint tainted_of_order(const struct order *order)
{
    return (struct taint){.source = TAINT_BY_OPERATOR,
                          .effect = order->effect,
                          .key = order->taint_key,
                          .value = order->words.value,
                          .words = order->words.reason,
                          .added_ms = order->words.set_ms,
                          .added_s = order->words.at_s,
                          .end_ms = order_end_ms(order),
                          .unstored = order->state != ORDER_SET};
}

static bool each_of_orders(const struct state *state, const char *resource, const char *id,
                           bool (*each)(void *user, const struct taint *taint), void *user)
{
    const struct owners *orders = orders_taints(&state->orders, resource, id);

    for (size_t i = 0; i < owners_len(orders); i++) {
        const struct taint taint = tainted_of_order(orders->v[i]);

        if (state->now_ms < taint.end_ms && !each(user, &taint))
            return false;
    }
    return true;
}

struct taint tainted_of_settings(const struct settings_taint *is)
{
    return (struct taint){.source = TAINT_BY_SETTINGS,
                          .effect = is->effect,
                          .key = is->key,
                          .value = is->value,
                          .words = "",
                          .added_ms = is->added_ms,
                          .end_ms = UINT64_MAX};
}

static bool each_of_settings(const struct state *state, const char *resource, const char *id,
                             bool (*each)(void *user, const struct taint *taint), void *user)
{
    for (size_t i = 0; i < state->tainted.settings_len; i++) {
        const struct settings_taint *is = &state->tainted.settings[i];
        const struct taint taint = tainted_of_settings(is);

        if (is_meant(is, resource, id) && !each(user, &taint))
            return false;
    }
    return true;
}

static bool by_health(const struct state *state, const char *resource, const char *id,
                      bool (*each)(void *user, const struct taint *taint), void *user)
{
    const struct resource *is = resources_find(state->resources, resource);
    const struct device *device = is ? devices_find(&is->devices, id) : NULL;
    struct taint taint = {.source = TAINT_BY_HEALTH,
                          .effect = TAINT_NO_SCHEDULE,
                          .key = TAINT_KEY_UNHEALTHY,
                          .value = "",
                          .words = "",
                          .end_ms = UINT64_MAX};
    const struct health_guard *guard;

    if (!device || device->healthy)
        return true;
    HASH_FIND_STR(state->tainted.guards, resource, guard);
    if (guard && ids_contain_sorted(&is->no_execute, id))
        taint.effect = TAINT_NO_EXECUTE;
    else if (guard && is->health_closed)
        taint.held_back = true;
    taint.added_ms = device->since_ms;
    return each(user, &taint);
}

bool tainted_each(const struct state *state, const char *resource, const char *id,
                  bool (*each)(void *user, const struct taint *taint), void *user)
{
    const char *slash = taint_device_of(resource, id);
    bool more;

    if (!each_of_orders(state, resource, id, each, user) ||
        !each_of_settings(state, resource, id, each, user))
        return false;
    if (!slash)
        return by_health(state, resource, id, each, user);
    if (!cluster_taints_any(&state->tainted.cluster))
        return true;
    char *pool = strndup(id, (size_t)(slash - id));

    if (!pool)
        abort(); /* out of memory */
    more = cluster_taints_each(&state->tainted.cluster, resource, pool, slash + 1, each, user);
    free(pool);
    return more;
}

static bool by_settings(const struct state *state, const char *resource)
{
    for (size_t i = 0; i < state->tainted.settings_len; i++) {
        if (strcmp(state->tainted.settings[i].resource, resource) == 0)
            return true;
    }
    return false;
}

bool tainted_any(const struct state *state, const char *resource)
{
    const struct resource_orders *of = orders_of(&state->orders, resource);

    return (of && of->taints > 0) || by_settings(state, resource);
}

bool tainted_or_ordered(const struct state *state, const char *resource)
{
    return orders_of(&state->orders, resource) || by_settings(state, resource);
}

static bool keeps_nobody_back(void *user, const struct taint *taint)
{
    (void)user;
    return taint->effect == TAINT_NONE;
}

bool tainted_or_cordoned(const struct state *state, const char *resource, const char *id)
{
    return orders_cordon(&state->orders, resource, id) ||
           (tainted_any(state, resource) &&
            !(each_of_orders(state, resource, id, keeps_nobody_back, NULL) &&
              each_of_settings(state, resource, id, keeps_nobody_back, NULL)));
}

/* ---- tolerations ---- */

void tainted_note_pod(struct state *state, struct pod *pod,
                      const struct devicemgr_annotation *annotations, size_t len)
{
    const char *annotation = NULL;
    struct text text = {0}, wrong = {0};

    for (size_t i = 0; i < len; i++) {
        if (tolerations_is_annotation(annotations[i].key, annotations[i].value))
            annotation = annotations[i].value;
    }
    if (!pod || !pod_set_tolerations(pod, annotation, &wrong))
        return;
    wake_pod(&state->wakes, pod->uid);
    if (wrong.len == 0)
        return;
    text_add(&text, "pod \"");
    text_add_words(&text, pod->pod_namespace, TEXT_IDS_BYTES_MAX);
    text_add(&text, "/");
    text_add_words(&text, pod->name, TEXT_IDS_BYTES_MAX);
    text_add(&text, "\": its annotation of tolerations is ignored: %s", wrong.buf);
    state_log_about(
        state, LEVEL_WARNING,
        (struct devicemgr_about){.pod_namespace = pod->pod_namespace, .pod_name = pod->name},
        &text);
}

/* ---- health ---- */

static struct health_guard *guard_of(struct tainted *tainted, const struct resource *resource)
{
    struct health_guard *guard;

    HASH_FIND_STR(tainted->guards, resource->name, guard);
    if (guard)
        return guard;
    guard = mem_alloc(1, sizeof *guard);
    guard->resource = mem_strdup(resource->name);
    guard->usable_ms = UINT64_MAX;
    HASH_ADD_KEYPTR(hh, tainted->guards, guard->resource, strlen(guard->resource), guard);
    return guard;
}

static void guard_free(struct tainted *tainted, struct health_guard *guard)
{
    HASH_DEL(tainted->guards, guard);
    free(guard->resource);
    free(guard);
}

/* Those that are healthy again, or listed no more, are not NoExecute. How many went. */
static size_t release_healthy(struct resource *resource)
{
    struct ids stay = {0};
    size_t before = resource->no_execute.len;

    for (size_t i = 0; i < before; i++) {
        const struct device *device = devices_find(&resource->devices, resource->no_execute.v[i]);

        if (device && !device->healthy)
            ids_add(&stay, resource->no_execute.v[i]);
    }
    ids_fini(&resource->no_execute);
    resource->no_execute = stay;
    return before - stay.len;
}

static int by_since(const void *a, const void *b)
{
    const struct device *x = *(const struct device *const *)a;
    const struct device *y = *(const struct device *const *)b;

    if (x->since_ms != y->since_ms)
        return x->since_ms < y->since_ms ? -1 : 1;
    return strverscmp(x->id, y->id);
}

/* Those that are to become NoExecute, who was unhealthy first first; the caller frees them. With
 * them `waiting` counts those whose plugin was not there all that time. */
static const struct device **find_due(struct health_guard *guard, const struct resource *resource,
                                      uint64_t now_ms, uint64_t after_ms, size_t *len,
                                      size_t *waiting)
{
    const struct devices *devices = &resource->devices;
    const struct device **due = mem_alloc(devices->len - devices->healthy, sizeof *due);

    *len = *waiting = 0;
    guard->next_ms = UINT64_MAX;
    for (size_t i = 0; i < devices->len; i++) {
        const struct device *device = &devices->items[i];
        uint64_t at_ms = later_by(later(device->since_ms, guard->usable_ms), after_ms);

        if (device->healthy || ids_contain_sorted(&resource->no_execute, device->id))
            continue;
        *waiting += later_by(device->since_ms, after_ms) <= now_ms;
        if (at_ms > now_ms)
            guard->next_ms = earlier(guard->next_ms, at_ms);
        else
            due[(*len)++] = device;
    }
    if (*len > 1)
        qsort(due, *len, sizeof *due, by_since);
    return due;
}

static void log_closed(struct state *state, const struct health_guard *guard,
                       const struct resource *resource)
{
    size_t acting = resource->no_execute.len;
    struct text text = {0};

    text_add(&text,
             "resource %s: %zu of %zu devices are unhealthy for so long that their pods would be "
             "evicted: no more than %zu are, the others wait for the operator",
             guard->resource, acting + guard->held_back, resource->devices.len, acting);
    state_log_about(state, LEVEL_WARNING, name_about_resource(guard->resource), &text);
    happened_to_resource(state, DEVICEMGR_EVENT_HELD_BACK, false, guard->resource, text.buf);
}

/* Whether anything is in force, or not, that was not before. */
static bool look_at_health(struct state *state, struct health_guard *guard,
                           struct resource *resource, uint64_t after_ms)
{
    size_t most = resource->devices.len / TAINT_HEALTH_SHARE, len, taken = 0, waiting;
    size_t gone = release_healthy(resource), held_back = guard->held_back;
    const struct device **due = find_due(guard, resource, state->now_ms, after_ms, &len, &waiting);
    bool closed = resource->health_closed;

    if (resource->no_execute.len + waiting == 0)
        resource->health_closed = false;
    while (!resource->health_closed && taken < len && resource->no_execute.len < later(most, 1))
        ids_add(&resource->no_execute, due[taken++]->id);
    ids_sort(&resource->no_execute);
    guard->held_back = resource->health_closed ? waiting : len - taken;
    resource->health_closed = resource->health_closed || guard->held_back > 0;
    free(due);
    if (resource->health_closed && !closed)
        log_closed(state, guard, resource);
    if (gone + taken > 0 || held_back != guard->held_back)
        dirty_touch_resource(state, resource->name, true);
    return gone + taken > 0 || closed != resource->health_closed;
}

static void review_resource(struct state *state, struct resource *resource, uint64_t after_ms)
{
    struct health_guard *guard = guard_of(&state->tainted, resource);
    bool usable = resource_usable(resource);

    if (usable == (guard->usable_ms != UINT64_MAX) && guard->changes == resource->devices.changes &&
        state->now_ms < guard->next_ms)
        return;
    guard->next_ms = UINT64_MAX;
    if (usable != (guard->usable_ms != UINT64_MAX))
        guard->usable_ms = usable ? state->now_ms : UINT64_MAX;
    guard->changes = resource->devices.changes;
    if (usable && look_at_health(state, guard, resource, after_ms))
        tainted_changed(state, resource->name);
}

static void forget_health(struct state *state, struct resource *resource)
{
    if (resource->no_execute.len == 0 && !resource->health_closed)
        return;
    ids_fini(&resource->no_execute);
    resource->health_closed = false;
    dirty_touch_resource(state, resource->name, true);
}

static void review_health(struct state *state)
{
    struct health_guard *guard, *next;

    for (struct resource *r = state->resources; r; r = r->hh.next) {
        uint64_t after_ms = state_settings_of(state, r->name)->taint_unhealthy_after_ms;

        if (after_ms > 0)
            review_resource(state, r, after_ms);
        else
            forget_health(state, r);
    }
    HASH_ITER(hh, state->tainted.guards, guard, next) {
        if (resources_find(state->resources, guard->resource) &&
            state_settings_of(state, guard->resource)->taint_unhealthy_after_ms > 0)
            continue;
        tainted_changed(state, guard->resource);
        guard_free(&state->tainted, guard);
    }
}

/* ---- time ---- */

void tainted_started(struct state *state)
{
    for (size_t i = 0; i < state->tainted.settings_len; i++) {
        if (state->tainted.settings[i].added_ms == 0)
            state->tainted.settings[i].added_ms = state->now_ms;
    }
    review_health(state); /* what it has led to may be switched off since */
}

static void drop_one(struct state *state, struct order *order)
{
    struct text text = {0};

    text_add(&text, "resource %s: device ", order->resource);
    text_add_words(&text, order->device, TEXT_IDS_BYTES_MAX);
    text_add(&text, ": its taint %s:%s has ended", order->taint_key,
             taint_effect_name(order->effect));
    state_log_about(state, LEVEL_INFO,
                    name_line(DEVICEMGR_LINE_ORDERED, name_about_resource(order->resource)), &text);
    dirty_touch_order(state, order);
    ordered_changed(state, order->resource);
    orders_remove(&state->orders, order);
}

/* One that has ended goes, if that can be stored now; else it is not in force all the same. When
 * it, or the next, is to be looked at again. */
static uint64_t drop_if_ended(struct state *state, struct order *order)
{
    uint64_t end_ms = order->kind == ORDER_TAINT ? order_end_ms(order) : UINT64_MAX;

    if (state->now_ms < end_ms)
        return end_ms;
    if (state->checkpoint.error) {
        state->tainted.ended = true;
        return UINT64_MAX;
    }
    if (order->state != ORDER_SET) /* its commit is under way */
        return state->now_ms + COMMIT_RETRY_MS_MIN;
    drop_one(state, order);
    return UINT64_MAX;
}

static void drop_ended(struct state *state)
{
    struct tainted *tainted = &state->tainted;
    struct order *order, *next;

    if (state->now_ms < tainted->ends_ms && (!tainted->ended || state->checkpoint.error))
        return;
    tainted->ends_ms = UINT64_MAX;
    tainted->ended = false;
    HASH_ITER(hh, state->orders.by_key, order, next) {
        tainted->ends_ms = earlier(tainted->ends_ms, drop_if_ended(state, order));
    }
}

void tainted_review(struct state *state)
{
    if (state->orders.tainted)
        drop_ended(state);
    review_health(state);
}

uint64_t tainted_next_ms(const struct state *state)
{
    uint64_t next_ms = state->orders.tainted ? state->tainted.ends_ms : UINT64_MAX;

    for (const struct health_guard *guard = state->tainted.guards; guard; guard = guard->hh.next)
        next_ms = earlier(next_ms, guard->next_ms);
    return next_ms;
}

void tainted_fini(struct tainted *tainted)
{
    cluster_taints_fini(&tainted->cluster);
    consumers_fini(&tainted->consumers);
    free_settings(tainted->settings, tainted->settings_len);
    while (tainted->guards)
        guard_free(tainted, tainted->guards);
}
