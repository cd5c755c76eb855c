/*
 * Who taints in the world of taints: an operator, who waits for each of his answers, and the
 * settings.
 */
#include <stdio.h>
#include <string.h>

#include "devicemgr/operator.h"
#include "tests/sim/taint_world.h"

#define CODE_OK 0
#define CODE_ABORTED 10
#define FOR_MS_MAX 120000
#define GRACE_MS_MAX 60000

static const char *const EFFECTS[TW_EFFECTS] = {"None", "NoSchedule", "NoExecute"};

static enum tw_effect draw_effect(struct rng *rng)
{
    uint64_t of = rng_below(rng, 10);

    return of < 6 ? TW_NO_EXECUTE : of < 9 ? TW_NO_SCHEDULE : TW_NONE;
}

/* ---- taints ---- */

static void set(struct taint_world *t, size_t resource, size_t device, bool dry)
{
    unsigned key = (unsigned)rng_below(&t->rng, TW_KEYS), value = (unsigned)rng_below(&t->rng, 2);
    enum tw_effect effect = draw_effect(&t->rng);
    uint64_t for_ms = rng_percent(&t->rng, 30) ? rng_between(&t->rng, 1, FOR_MS_MAX) : 0;
    struct tw_cell *cell = &t->cells[resource][device][key][effect];
    char taint[48];

    snprintf(taint, sizeof taint, "k%u=v%u:%s", key, value, EFFECTS[effect]);
    t->request = (struct tw_request){.number = ++t->number, .dry = dry};
    if (!dry) {
        cell->pending = true;
        cell->next = (struct tw_version){.on = true,
                                         .value = value,
                                         .added_ms = t->now_ms,
                                         .end_ms = for_ms ? t->now_ms + for_ms : TW_NEVER};
    }
    taint_note(t, "taint %s %s %s for %llu ms%s", taint_resource_name(resource),
               taint_device_id(resource, device), taint, (unsigned long long)for_ms,
               dry ? ", dry" : "");
    count_add(dry ? COUNT_TAINT_DRY : COUNT_TAINT_SET);
    devicemgr_taint(t->core, t->now_ms, t->request.number, taint_resource_name(resource),
                    taint_device_id(resource, device), taint, for_ms, "", 1, dry);
    taint_shim_run(t);
}

static void take_back(struct taint_world *t, size_t resource, size_t device, unsigned key,
                      int effect)
{
    char taint[48];

    for (int e = 0; e < TW_EFFECTS; e++) {
        struct tw_cell *cell = &t->cells[resource][device][key][e];

        if (effect >= 0 && e != effect)
            continue;
        cell->pending = true;
        cell->next = (struct tw_version){.on = false};
    }
    snprintf(taint, sizeof taint, "k%u%s%s", key, effect < 0 ? "" : ":",
             effect < 0 ? "" : EFFECTS[effect]);
    t->request = (struct tw_request){.number = ++t->number};
    taint_note(t, "untaint %s %s %s", taint_resource_name(resource),
               taint_device_id(resource, device), taint);
    count_add(COUNT_TAINT_TAKEN_BACK);
    devicemgr_untaint(t->core, t->now_ms, t->request.number, taint_resource_name(resource),
                      taint_device_id(resource, device), taint);
    taint_shim_run(t);
}

/* The one that is asked for; what the rows of it are called is in ports.h. */
static bool is_row_of(const struct devicemgr_record *record, size_t resource, size_t device,
                      unsigned key, unsigned effect)
{
    char id[48];

    snprintf(id, sizeof id, "k%u:%s %s", key, EFFECTS[effect], taint_device_id(resource, device));
    return record->kind == DEVICEMGR_RECORD_ORDER && strcmp(record->key[0], "taint") == 0 &&
           strcmp(record->key[1], taint_resource_name(resource)) == 0 &&
           strcmp(record->key[2], id) == 0;
}

#define FOR_EACH_CELL(t, r, d, k, e)                                                               \
    for (size_t r = 0; r < TW_SUBJECTS; r++)                                                       \
        for (size_t d = 0; d < taint_resource_devices(r); d++)                                     \
            for (unsigned k = 0; k < TW_KEYS; k++)                                                 \
                for (unsigned e = 0; e < TW_EFFECTS; e++)

void taint_operator_carried(struct taint_world *t, const struct devicemgr_record *records,
                            size_t records_len)
{
    FOR_EACH_CELL(t, r, d, key, effect)
    {
        struct tw_cell *cell = &t->cells[r][d][key][effect];

        for (size_t i = 0; cell->pending && i < records_len; i++)
            cell->carried = cell->carried || is_row_of(&records[i], r, d, key, effect);
    }
}

void taint_operator_committed(struct taint_world *t, bool fails)
{
    FOR_EACH_CELL(t, r, d, key, effect)
    {
        struct tw_cell *cell = &t->cells[r][d][key][effect];

        if (!cell->carried)
            continue;
        if (!fails)
            cell->is = cell->next;
        t->tainted = ++t->number;
        cell->pending = cell->carried = false;
    }
}

void taint_operator_shim_ended(struct taint_world *t)
{
    t->request = (struct tw_request){0};
    FOR_EACH_CELL(t, r, d, key, effect)
    {
        t->cells[r][d][key][effect].pending = t->cells[r][d][key][effect].carried = false;
    }
}

/* ---- ends ---- */

static void end(struct taint_world *t, struct tw_pod *pod)
{
    uint64_t grace_ms = 1000 * rng_between(&t->rng, 1, GRACE_MS_MAX / 1000);
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    t->request = (struct tw_request){.number = ++t->number, .ends = pod->uid, .was = pod->ended.is};
    taint_note(t, "u%u is to end in %llu ms", pod->uid, (unsigned long long)grace_ms);
    count_add(COUNT_TAINT_ENDED_TOO);
    if (!pod->ended.is) {
        pod->ended_ms = t->now_ms;
        pod->end_grace_ms = TW_NEVER;
    }
    pod->ended.is = true;
    if (grace_ms < pod->end_grace_ms)
        pod->end_grace_ms = grace_ms;
    devicemgr_end(t->core, t->now_ms, t->request.number, uid, grace_ms, rng_percent(&t->rng, 50),
                  "", 1);
    taint_shim_run(t);
}

static void end_no_more(struct taint_world *t, struct tw_pod *pod)
{
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    pod->ended.is = false;
    pod->accepted = pod->accepted && pod->evicted.is; /* another one is another order */
    taint_note(t, "u%u is not to end", pod->uid);
    t->request = (struct tw_request){.number = ++t->number};
    devicemgr_end_cancel(t->core, t->now_ms, t->request.number, uid);
    taint_shim_run(t);
}

/* ---- his day ---- */

void taint_operator_answered(struct taint_world *t, uint64_t number, int code, const char *message)
{
    struct tw_request request = t->request;

    if (request.number != number)
        return;
    taint_note(t, "the operator is told %d: %s", code, message);
    t->request = (struct tw_request){0};
    check_that(t->w, !request.dry || code == CODE_OK, "what is asked for dry is answered: %s",
               message);
    FOR_EACH_CELL(t, r, d, key, effect)
    {
        t->cells[r][d][key][effect].pending = false; /* it was so already, or could not be stored */
    }
    for (size_t i = 0; i < TW_PODS && request.ends; i++) {
        if (t->pods[i].uid == request.ends && code != CODE_OK && code != CODE_ABORTED)
            t->pods[i].ended.is = request.was;
    }
}

void taint_operator_acts(struct taint_world *t)
{
    size_t resource = rng_below(&t->rng, TW_SUBJECTS);
    size_t device = rng_below(&t->rng, taint_resource_devices(resource));
    struct tw_pod *pod = &t->pods[rng_below(&t->rng, TW_PODS)];
    uint64_t what = rng_below(&t->rng, 100);

    if (t->request.number)
        return;
    if (pod->there && pod->mask) { /* of somebody's */
        resource = pod->resource;
        device = (size_t)__builtin_ctz(pod->mask);
    }
    if (what < 55)
        set(t, resource, device, false);
    else if (what < 60)
        set(t, resource, device, true);
    else if (what < 85)
        take_back(t, resource, device, (unsigned)rng_below(&t->rng, TW_KEYS),
                  rng_percent(&t->rng, 50) ? -1 : (int)draw_effect(&t->rng));
    else if (what < 93 && pod->there && pod->known)
        end(t, pod);
    else if (pod->there && pod->ended.is)
        end_no_more(t, pod);
}

/* The first that there is; what is left is for the next time. */
bool taint_operator_heals(struct taint_world *t)
{
    uint64_t before = t->number;

    if (t->request.number)
        return false;
    FOR_EACH_CELL(t, r, d, key, effect)
    {
        const struct tw_version *is = &t->cells[r][d][key][effect].is;

        if (!t->request.number && is->on && t->now_ms < is->end_ms)
            take_back(t, r, d, key, (int)effect);
    }
    for (size_t i = 0; i < TW_PODS && !t->request.number; i++) {
        if (t->pods[i].there && t->pods[i].ended.is)
            end_no_more(t, &t->pods[i]);
    }
    return t->number != before;
}

/* ---- the settings ---- */

void taint_settings_change(struct taint_world *t)
{
    struct tw_set *one = &t->sets[t->sets_len];

    count_add(COUNT_TAINT_RELOADED);
    t->tainted = ++t->number;
    if (t->untainted) {
        t->sets_len = 0;
    } else if (t->sets_len < TW_SETS_MAX && rng_percent(&t->rng, 60)) {
        size_t resource = rng_below(&t->rng, TW_SUBJECTS);

        *one = (struct tw_set){.resource = resource,
                               .device =
                                   rng_percent(&t->rng, 15)
                                       ? -1
                                       : (int)rng_below(&t->rng, taint_resource_devices(resource)),
                               .key = (unsigned)rng_below(&t->rng, TW_KEYS),
                               .value = (unsigned)rng_below(&t->rng, 2),
                               .effect = draw_effect(&t->rng),
                               .added_ms = t->now_ms};
        t->sets_len++;
    } else if (t->sets_len > 0) {
        t->sets_len--;
    }
    if (rng_percent(&t->rng, 50))
        t->per_minute = (uint32_t)rng_below(&t->rng, 6);
    taint_note(t, "%zu taints in the settings, %u may go in a minute", t->sets_len, t->per_minute);
    for (size_t i = 0; i < t->sets_len; i++)
        taint_note(t, "  %s g%d k%u=v%u:%s", taint_resource_name(t->sets[i].resource),
                   t->sets[i].device, t->sets[i].key, t->sets[i].value, EFFECTS[t->sets[i].effect]);
    taint_shim_reload(t);
}

void taint_settings_shim_started(struct taint_world *t)
{
    for (size_t i = 0; i < t->sets_len; i++)
        t->sets[i].added_ms = t->now_ms;
}
