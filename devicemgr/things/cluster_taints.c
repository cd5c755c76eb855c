#include "devicemgr/things/cluster_taints.h"

#include <stdio.h>
#include <string.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

/* ---- one ---- */

static char *copy(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

static bool taint_init(struct cluster_taint *taint, uint64_t now_ms, const char *device,
                       const struct devicemgr_taint *is)
{
    if (!kube_name_is_qualified(is->key) || !kube_name_is_label_value(is->value))
        return false;
    *taint = (struct cluster_taint){.device = copy(device),
                                    .key = mem_strdup(is->key),
                                    .value = mem_strdup(is->value),
                                    .added_ms = ago(now_ms, is->age_ms),
                                    .earlier_ms = ago(is->age_ms, now_ms),
                                    .added_s = is->added_s};
    if (!taint_effect_find(is->effect, &taint->effect))
        taint->effect = TAINT_NONE;
    return true;
}

static void taint_fini(struct cluster_taint *taint)
{
    free(taint->device);
    free(taint->key);
    free(taint->value);
}

static void count(struct cluster_taints *table, const struct cluster_taint *taint)
{
    table->taints++;
    table->of_slices += taint->device != NULL;
    table->no_execute += taint->effect == TAINT_NO_EXECUTE;
}

static void uncount(struct cluster_taints *table, const struct cluster_taint *taint)
{
    table->taints--;
    table->of_slices -= taint->device != NULL;
    table->no_execute -= taint->effect == TAINT_NO_EXECUTE;
}

/* ---- slices ---- */

static void slice_free(struct cluster_taints *table, struct tainted_slice *slice)
{
    HASH_DEL(table->slices, slice);
    for (size_t i = 0; i < slice->taints_len; i++) {
        uncount(table, &slice->taints[i]);
        taint_fini(&slice->taints[i]);
    }
    free(slice->taints);
    free(slice->uid);
    free(slice->driver);
    free(slice->pool);
    free(slice);
}

bool cluster_taints_drop_slice(struct cluster_taints *table, const char *uid)
{
    struct tainted_slice *slice;

    HASH_FIND_STR(table->slices, uid, slice);
    if (slice)
        slice_free(table, slice);
    return slice != NULL;
}

void cluster_taints_drop_slices(struct cluster_taints *table)
{
    while (table->slices)
        slice_free(table, table->slices);
}

void cluster_taints_set_slice(struct cluster_taints *table, uint64_t now_ms, const char *uid,
                              const char *driver, const char *pool, int64_t generation,
                              const struct devicemgr_tainted_device *devices, size_t len)
{
    struct tainted_slice *slice;

    cluster_taints_drop_slice(table, uid);
    if (HASH_COUNT(table->slices) == SLICES_MAX)
        return;
    slice = mem_alloc(1, sizeof *slice);
    slice->uid = mem_strdup(uid);
    slice->driver = mem_strdup(driver);
    slice->pool = mem_strdup(pool);
    slice->generation = generation;
    if (len > SLICE_TAINTS_MAX)
        len = SLICE_TAINTS_MAX;
    slice->taints = mem_alloc(len, sizeof *slice->taints);
    for (size_t i = 0; i < len; i++)
        slice->taints_len += taint_init(&slice->taints[slice->taints_len], now_ms,
                                        devices[i].device, &devices[i].taint);
    for (size_t i = 0; i < slice->taints_len; i++)
        count(table, &slice->taints[i]);
    HASH_ADD_KEYPTR(hh, table->slices, slice->uid, strlen(slice->uid), slice);
}

/* ---- rules ---- */

static void rule_free(struct cluster_taints *table, struct taint_rule *rule)
{
    HASH_DEL(table->rules, rule);
    if (!rule->refused)
        uncount(table, &rule->taint);
    taint_fini(&rule->taint);
    free(rule->uid);
    free(rule->name);
    free(rule->driver);
    free(rule->pool);
    free(rule->device);
    free(rule);
}

const struct taint_rule *cluster_taints_find_rule(const struct cluster_taints *table,
                                                  const char *uid)
{
    const struct taint_rule *rule;

    HASH_FIND_STR(table->rules, uid, rule);
    return rule;
}

bool cluster_taints_drop_rule(struct cluster_taints *table, const char *uid)
{
    struct taint_rule *rule = (struct taint_rule *)cluster_taints_find_rule(table, uid);

    if (rule)
        rule_free(table, rule);
    return rule != NULL;
}

const struct taint_rule *cluster_taints_set_rule(struct cluster_taints *table, uint64_t now_ms,
                                                 const char *uid,
                                                 const struct devicemgr_taint_rule *is)
{
    struct taint_rule *rule;
    struct cluster_taint taint;

    cluster_taints_drop_rule(table, uid);
    if (HASH_COUNT(table->rules) == TAINT_RULES_MAX ||
        !taint_init(&taint, now_ms, NULL, &is->taint))
        return NULL;
    rule = mem_alloc(1, sizeof *rule);
    rule->uid = mem_strdup(uid);
    rule->name = mem_strdup(is->name);
    rule->driver = copy(is->driver);
    rule->pool = copy(is->pool);
    rule->device = copy(is->device);
    rule->taint = taint;
    rule->refused = !is->driver && !is->pool && !is->device;
    if (!rule->refused)
        count(table, &rule->taint);
    HASH_ADD_KEYPTR(hh, table->rules, rule->uid, strlen(rule->uid), rule);
    return rule;
}

void cluster_taints_fini(struct cluster_taints *table)
{
    cluster_taints_drop_slices(table);
    while (table->rules)
        rule_free(table, table->rules);
}

/* ---- what is in force ---- */

static struct taint value_of(const struct cluster_taint *is, enum taint_source source,
                             const char *name)
{
    return (struct taint){.source = source,
                          .effect = is->effect,
                          .key = is->key,
                          .value = is->value,
                          .words = name,
                          .added_ms = is->added_ms,
                          .earlier_ms = is->earlier_ms,
                          .added_s = is->added_s,
                          .end_ms = UINT64_MAX};
}

static bool is_of_pool(const struct tainted_slice *slice, const char *driver, const char *pool)
{
    return strcmp(slice->driver, driver) == 0 && strcmp(slice->pool, pool) == 0;
}

/* The highest generation of a pool. */
static int64_t newest_of(const struct cluster_taints *table, const char *driver, const char *pool)
{
    int64_t newest = INT64_MIN;

    for (const struct tainted_slice *s = table->slices; s; s = s->hh.next) {
        if (is_of_pool(s, driver, pool) && s->generation > newest)
            newest = s->generation;
    }
    return newest;
}

static bool each_of_slices(const struct cluster_taints *table, const char *driver, const char *pool,
                           const char *device, bool (*each)(void *user, const struct taint *taint),
                           void *user)
{
    for (const struct tainted_slice *s = table->slices; s; s = s->hh.next) {
        if (s->taints_len == 0 || !is_of_pool(s, driver, pool) ||
            s->generation != newest_of(table, driver, pool))
            continue;
        for (size_t i = 0; i < s->taints_len; i++) {
            const struct taint taint = value_of(&s->taints[i], TAINT_BY_SLICE, "");

            if (strcmp(s->taints[i].device, device) == 0 && !each(user, &taint))
                return false;
        }
    }
    return true;
}

static bool is_any_or(const char *selected, const char *name)
{
    return !selected || strcmp(selected, name) == 0;
}

static bool any_no_execute(const struct tainted_slice *slice)
{
    size_t i = 0;

    while (i < slice->taints_len && slice->taints[i].effect != TAINT_NO_EXECUTE)
        i++;
    return i < slice->taints_len;
}

bool cluster_taints_no_execute_of(const struct cluster_taints *table, const char *driver)
{
    if (table->no_execute == 0)
        return false;
    for (const struct tainted_slice *s = table->slices; s; s = s->hh.next) {
        if (any_no_execute(s) && strcmp(s->driver, driver) == 0)
            return true;
    }
    for (const struct taint_rule *r = table->rules; r; r = r->hh.next) {
        if (!r->refused && r->taint.effect == TAINT_NO_EXECUTE && is_any_or(r->driver, driver))
            return true;
    }
    return false;
}

bool cluster_taints_each(const struct cluster_taints *table, const char *driver, const char *pool,
                         const char *device, bool (*each)(void *user, const struct taint *taint),
                         void *user)
{
    if (table->of_slices > 0 && !each_of_slices(table, driver, pool, device, each, user))
        return false;
    for (const struct taint_rule *r = table->rules; r; r = r->hh.next) {
        const struct taint taint = value_of(&r->taint, TAINT_BY_RULE, r->name);

        if (!r->refused && is_any_or(r->driver, driver) && is_any_or(r->pool, pool) &&
            is_any_or(r->device, device) && !each(user, &taint))
            return false;
    }
    return true;
}

/* "pool/device"; the caller frees it. */
static char *id_of(const char *pool, const char *device)
{
    char *id;

    if (asprintf(&id, "%s/%s", pool ? pool : "*", device ? device : "*") < 0)
        abort(); /* out of memory */
    return id;
}

void cluster_taints_list(const struct cluster_taints *table,
                         void (*each)(void *user, const char *driver, const char *id,
                                      const struct taint *taint, bool refused),
                         void *user)
{
    for (const struct tainted_slice *s = table->slices; s; s = s->hh.next) {
        int64_t newest = newest_of(table, s->driver, s->pool);

        for (size_t i = 0; s->generation == newest && i < s->taints_len; i++) {
            const struct taint taint = value_of(&s->taints[i], TAINT_BY_SLICE, "");
            char *id = id_of(s->pool, s->taints[i].device);

            each(user, s->driver, id, &taint, false);
            free(id);
        }
    }
    for (const struct taint_rule *r = table->rules; r; r = r->hh.next) {
        const struct taint taint = value_of(&r->taint, TAINT_BY_RULE, r->name);
        char *id = id_of(r->pool, r->device);

        each(user, r->driver ? r->driver : "", id, &taint, r->refused);
        free(id);
    }
}
