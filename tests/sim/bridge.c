#include "tests/sim/bridge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/check.h"
#include "tests/sim/reason.h"
#include "tests/sim/world.h"

#define REPORT_MS_MAX 3000
#define TIMEOUT_MS_MAX 600
#define HELD_MAX KUBELET_ROWS_MAX

/* ---- the kubelet's checkpoint ---- */

struct report {
    struct devicemgr_kubelet_held held[HELD_MAX];
    struct id_list ids[HELD_MAX];
    char uids[HELD_MAX][16];
    size_t len;
};

/* The last time, too. */
static bool was_told(const struct world *w, const struct kubelet_row *row)
{
    for (size_t i = 0; i < w->bridge.report_len; i++) {
        const struct kubelet_row *r = &w->bridge.report[i];

        if (r->uid == row->uid && r->name == row->name && r->resource == row->resource &&
            r->mask == row->mask)
            return true;
    }
    return false;
}

static void report_add(struct world *w, struct report *report, unsigned uid, unsigned name,
                       size_t r, unsigned mask)
{
    const struct kubelet_row row = {uid, name, r, mask};
    bool is_new = !was_told(w, &row);
    size_t n = report->len++;

    snprintf(report->uids[n], sizeof report->uids[n], "u%u", uid);
    report->ids[n] = device_sim_ids(mask);
    report->held[n] = (struct devicemgr_kubelet_held){.pod_uid = report->uids[n],
                                                      .container = container_sim_name(name),
                                                      .resource = resource_sim_name(r),
                                                      .ids = (const char *const *)report->ids[n].v,
                                                      .ids_len = report->ids[n].len};
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        struct told *told = &w->bridge.told[r][i];

        if (!(mask & 1u << i))
            continue;
        if (told->uid && told->uid != uid)
            w->bridge.untold_ms = w->now_ms;
        if (told->uid != uid)
            *told = (struct told){.uid = uid};
        if (is_new) {
            told->since_ms = w->now_ms;
            told->early = told->early || !w->bridge.any_told;
            told->late = w->bridge.any_told;
        }
        told->in_file = true;
    }
}

/* What was told before the last time, and then no more, is not. */
static void told_settle(struct world *w)
{
    for (size_t i = 0; i < RESOURCES_LEN * DEVICES_MAX; i++) {
        struct told *told = &w->bridge.told[i / DEVICES_MAX][i % DEVICES_MAX];

        if (!told->in_file && told->uid) {
            *told = (struct told){0};
            w->bridge.untold_ms = w->now_ms;
        }
        told->in_file = false;
    }
}

void bridge_file_written(struct world *w)
{
    struct bridge *bridge = &w->bridge;

    bridge->file_len = 0;
    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];

        for (unsigned c = 0; pod->uid && c < pod->containers_len && !pod->released; c++) {
            for (size_t r = 0; r < RESOURCES_LEN; r++) {
                unsigned mask = pod->containers[c].ids[r] | pod->containers[c].bare[r];

                if (mask)
                    bridge->file[bridge->file_len++] = (struct kubelet_row){pod->uid, c, r, mask};
            }
        }
    }
}

static void report_now(struct world *w, uint64_t incarnation, uint64_t unused)
{
    struct report report = {0};

    (void)unused;
    if (!shim_lives(w, incarnation))
        return;
    for (size_t i = 0; i < w->bridge.file_len; i++) {
        const struct kubelet_row *row = &w->bridge.file[i];

        report_add(w, &report, row->uid, row->name, row->resource, row->mask);
        if (!kubelet_find_pod(w, row->uid))
            count_add(COUNT_TOLD_OF_GONE);
    }
    told_settle(w);
    memcpy(w->bridge.report, w->bridge.file, sizeof w->bridge.report);
    w->bridge.report_len = w->bridge.file_len;
    w->bridge.any_told = true;
    world_note(w, "kubelet: reports what %zu containers hold", report.len);
    devicemgr_kubelet_holds(w->shim.core, shim_now_ms(w), shim_now_ms(w), report.held, report.len);
    for (size_t i = 0; i < report.len; i++)
        id_list_fini(&report.ids[i]);
    shim_run(w);
}

void bridge_report_later(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_REPORT, 0, 0);

    if (w->shim.core)
        world_after(w, &rng, rng_delay_ms(&rng, REPORT_MS_MAX), report_now, w->shim.incarnation, 0);
}

/* ---- preferences ---- */

static void give_up(struct world *w, struct preference *preference)
{
    world_note(w, "kubelet: preference %" PRIu64 " is not waited for", preference->number);
    devicemgr_prefer_cancelled(w->shim.core, preference->number);
    *preference = (struct preference){0};
    shim_run(w);
}

void bridge_give_up(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_PREFERENCE, 0, 0);
    struct preference *preference = &w->bridge.preferences[rng_below(&rng, 2)];

    if (preference->number)
        give_up(w, preference);
}

/* What a plugin that serves does not list, or says to be unhealthy. */
static unsigned lost(const struct world *w, size_t r)
{
    const struct connection *c = plugin_usable(w, r);

    if (r == RESOURCE_BUILTIN)
        return w->shim.builtin_told ? ~(w->plugins[r].listed & w->plugins[r].healthy) : 0;
    return c ? ~c->healthy : 0;
}

/* That, and what containers run with that the shim made, if enough is left that nobody may have. */
static unsigned left_out(struct world *w, size_t r, unsigned available, unsigned must, size_t size)
{
    unsigned taken = claims_held(w, 0, 0, r) | claims_unknown(w, 0, 0, r);
    unsigned wrong = lost(w, r), number;

    taken |= wrong | reason_reserved(w, NULL, r, &number) | operator_may_keep(w, r);
    if (!shim_exclusive(w, r) || number > 0 || reason_unlisted(w) ||
        device_sim_count((available & ~taken) | must) < size)
        return 0;
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (runtime_live(c) && !c->rival && !c->abandoned && c->made_ms < w->lister.heard_ms &&
            (c->through_shim || c->known[r]))
            wrong |= c->known[r] ? c->held[r] : c->noted[r];
    }
    if (!operator_may_have_withdrawn(w, r))
        wrong |= operator_keeps(w, r);
    return wrong & available & ~must;
}

void bridge_ask(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_PREFERENCE, 0, 0);
    size_t r = rng_below(&rng, RESOURCES_LEN);
    unsigned available = (unsigned)rng_between(&rng, 1, (1u << DEVICES_MAX) - 1);
    unsigned must = available & (unsigned)rng_below(&rng, 1u << DEVICES_MAX);
    struct id_list ids = device_sim_ids(available), must_ids = device_sim_ids(must);
    uint64_t timeout_ms = rng_between(&rng, 1, TIMEOUT_MS_MAX);
    size_t size = rng_between(&rng, device_sim_count(must) > 0 ? device_sim_count(must) : 1,
                              device_sim_count(available));
    struct preference *preference = w->bridge.preferences;

    while (preference < w->bridge.preferences + PREFERENCES_MAX && preference->number)
        preference++;
    if (preference < w->bridge.preferences + PREFERENCES_MAX) {
        *preference = (struct preference){
            .number = ++w->bridge.last_number,
            .available = available,
            .wrong = left_out(w, r, available, must, size),
            .size = size,
            .until_ms = w->now_ms + timeout_ms,
        };
        world_note(w, "kubelet: asks what is preferred of %x of resource %zu, %" PRIu64, available,
                   r, preference->number);
        devicemgr_prefer(w->shim.core, shim_now_ms(w), preference->number,
                         &(struct devicemgr_preference){
                             .resource = resource_sim_name(r),
                             .available = (const char *const *)ids.v,
                             .available_len = ids.len,
                             .must_include = (const char *const *)must_ids.v,
                             .must_include_len = must_ids.len,
                             .size = preference->size,
                             .timeout_ms = timeout_ms,
                         });
        shim_run(w);
    }
    id_list_fini(&ids);
    id_list_fini(&must_ids);
}

void bridge_preferred(struct world *w, uint64_t number, const char *const *ids, size_t ids_len)
{
    struct preference *preference = w->bridge.preferences;
    unsigned mask = device_sim_mask(ids, ids_len);

    while (preference < w->bridge.preferences + PREFERENCES_MAX && preference->number != number)
        preference++;
    check_that(w, preference < w->bridge.preferences + PREFERENCES_MAX,
               "a preference is told once, and to those who wait for it");
    if (preference == w->bridge.preferences + PREFERENCES_MAX)
        return;
    world_note(w, "shim: preference %" PRIu64 ": %x", number, mask);
    check_that(w,
               device_sim_count(mask) == ids_len && (mask & ~preference->available) == 0 &&
                   ids_len <= preference->size,
               "only what is available is preferred: %x of %x", mask, preference->available);
    if (preference->wrong)
        count_add(COUNT_LEFT_OUT);
    check_that(w, (mask & preference->wrong) == 0,
               "what a container runs with, or is lost, is not preferred, if others are enough: %x",
               mask & preference->wrong);
    *preference = (struct preference){0};
}

size_t bridge_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < PREFERENCES_MAX; i++)
        open += w->bridge.preferences[i].number != 0;
    return open;
}

void bridge_check(struct world *w)
{
    for (size_t i = 0; i < PREFERENCES_MAX; i++) {
        const struct preference *p = &w->bridge.preferences[i];

        check_that(w, !p->number || w->now_ms <= p->until_ms,
                   "a preference is told in time: %" PRIu64, p->number);
    }
}

/* ---- life ---- */

void bridge_shim_gone(struct world *w)
{
    memset(w->bridge.told, 0, sizeof w->bridge.told);
    w->bridge.any_told = false;
    w->bridge.report_len = 0;
    memset(w->bridge.preferences, 0, sizeof w->bridge.preferences);
}
