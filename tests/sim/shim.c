#include "tests/sim/shim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/asker.h"
#include "tests/sim/check.h"
#include "tests/sim/move.h"
#include "tests/sim/over.h"
#include "tests/sim/promise.h"
#include "tests/sim/reader.h"
#include "tests/sim/reloader.h"
#include "tests/sim/rival.h"
#include "tests/sim/world.h"

#define DEAD_MS_MAX 5000
#define DRAIN_MS_MAX 5000
#define STORE_LOSS_PERCENT 5
#define STORE_DAMAGE_PERCENT 10
#define FORGETS_PERCENT 50
#define RESUMES_PERCENT 70

/* From the shim's start until a kubelet has listed. */
#define KUBELET_LISTS_MS_MAX 60000

uint64_t shim_now_ms(struct world *w)
{
    w->shim.told_ms = w->now_ms;
    return w->now_ms - w->shim.boot_ms + 1;
}

bool shim_lives(const struct world *w, uint64_t incarnation)
{
    return w->shim.core && w->shim.incarnation == incarnation;
}

/* ---- ports ---- */

/* False: the shim is dead already, nothing it asks for happens. */
static bool port(struct world *w)
{
    struct shim *shim = &w->shim;

    if (shim->dying)
        return false;
    shim->port_calls++;
    if (shim->port_calls > 100 * PORT_CALLS_MAX)
        abort(); /* it would not end */
    if (shim->crash_in == 0 || w->play.decisions || --shim->crash_in > 0)
        return true;
    world_note(w, "shim: killed inside a run");
    shim->dying = true;
    return false;
}

static void on_open(void *user, uint64_t endpoint, const char *resource, const char *socket,
                    uint32_t uid)
{
    if (port(user))
        plugin_open(user, endpoint, resource, socket, uid);
}

static void on_close(void *user, uint64_t endpoint)
{
    if (port(user))
        plugin_close(user, endpoint);
}

static void on_register_done(void *user, uint64_t registration, int code, const char *message)
{
    if (port(user))
        plugin_register_done(user, registration, code, message);
}

static void on_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t len, uint64_t timeout_ms)
{
    if (port(user))
        plugin_call(user, PLUGIN_ALLOCATE, endpoint, call, device_sim_mask(ids, len), 0, len,
                    timeout_ms);
}

static void on_prefer(void *user, uint64_t endpoint, uint64_t call, const char *const *available,
                      size_t available_len, const char *const *must, size_t must_len, size_t size,
                      uint64_t timeout_ms)
{
    if (port(user))
        plugin_call(user, PLUGIN_PREFER, endpoint, call, device_sim_mask(available, available_len),
                    device_sim_mask(must, must_len), size, timeout_ms);
}

static void on_prestart(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t len, uint64_t timeout_ms)
{
    if (port(user))
        plugin_call(user, PLUGIN_PRESTART, endpoint, call, device_sim_mask(ids, len), 0, len,
                    timeout_ms);
}

static void on_cancel(void *user, uint64_t call)
{
    if (port(user))
        plugin_call_cancel(user, call);
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    if (port(user))
        store_commit(user, commit, records, records_len);
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    if (port(user))
        client_verdict(user, create, verdict);
}

/* Whether the kubelet has decided anew while a create with what it had said before was under way:
 * the container has that, and the kubelet's checkpoint something else. */
static bool outdated(const struct world *w, const struct pod_sim *pod, unsigned name, size_t r)
{
    const struct claim *claim = claims_seek(w, pod->uid, name, r);
    const struct create_sim *create = client_find_of(w, pod->uid, name);

    return name < pod->containers_len && r < RESOURCES_LEN &&
           ((claim ? claim->mask : 0) | (create ? create->ids[r] : 0)) &
               pod->containers[name].former[r] & ~pod->containers[name].ids[r];
}

/* A token that gets so far is the kubelet's, unless it has forgotten the pod meanwhile. */
static void check_warned(struct world *w, const char *text)
{
    const struct pod_sim *known;
    char name[16], resource[64];
    unsigned uid;

    if (sscanf(text,
               "container \"%15[^\"]\" of pod \"ns/u%u\" came with a token for resource %63[^,],",
               name, &uid, resource) != 3)
        return;
    known = kubelet_find_pod(w, uid);
    check_that(w,
               !known || known->released ||
                   outdated(w, known, container_sim_find(name), resource_sim_find(resource)),
               "warned of a good token: %s", text);
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    struct world *w = user;

    (void)about;
    if (!w->shim.dying)
        world_note(w, "log: <%d> %s", level, text);
    check_warned(w, text);
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    if (port(user))
        lister_check(user, check, container_id);
}

static void on_runtime_list(void *user)
{
    if (port(user))
        lister_refresh(user);
}

static void on_preferred(void *user, uint64_t number, const char *const *ids, size_t ids_len)
{
    if (port(user))
        bridge_preferred(user, number, ids, ids_len);
}

static void on_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    if (!port(user))
        return;
    if (number > RELEASER_NUMBERS)
        releaser_answered(user, number, steered);
    else
        operator_answered(user, number, steered);
}

static void on_driver_registered(void *user, uint64_t instance, int code, const char *message)
{
    (void)message;
    if (port(user))
        dra_registered(user, instance, code);
}

static void on_driver_prepare(void *user, uint64_t instance, uint64_t call,
                              struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                              uint64_t timeout_ms)
{
    (void)batch;
    if (port(user))
        dra_called(user, true, instance, call, claim, timeout_ms);
}

static void on_driver_unprepare(void *user, uint64_t instance, uint64_t call,
                                struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                                uint64_t timeout_ms)
{
    (void)batch;
    if (port(user))
        dra_called(user, false, instance, call, claim, timeout_ms);
}

static void on_driver_settle(void *user, uint64_t instance, uint64_t call,
                             const struct devicemgr_claim *claim, bool asked, uint64_t timeout_ms)
{
    (void)asked; /* what the kubelet has is what it was told of an earlier one */
    if (port(user))
        dra_settles(user, instance, call, claim, timeout_ms);
}

static void on_claim_look(void *user, const struct devicemgr_claim *claim)
{
    if (port(user))
        dra_look(user, claim);
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    if (port(user))
        dra_claim_done(user, number, done);
}

static const struct devicemgr_ports PORTS = {
    .endpoint_open = on_open,
    .endpoint_close = on_close,
    .register_done = on_register_done,
    .allocate = on_allocate,
    .prefer = on_prefer,
    .prestart = on_prestart,
    .call_cancel = on_cancel,
    .commit = on_commit,
    .container_check = on_check,
    .runtime_list = on_runtime_list,
    .verdict = on_verdict,
    .preferred = on_preferred,
    .steered = on_steered,
    .driver_registered = on_driver_registered,
    .driver_prepare = on_driver_prepare,
    .driver_unprepare = on_driver_unprepare,
    .driver_settle = on_driver_settle,
    .claim_look = on_claim_look,
    .claim_done = on_claim_done,
    .log = on_log,
};

/* ---- life ---- */

void shim_builtin(struct world *w)
{
    const struct plugin *p = &w->plugins[RESOURCE_BUILTIN];
    struct devicemgr_builtin_device devices[DEVICES_MAX];
    char host[DEVICES_MAX][64], inside[DEVICES_MAX][64];
    size_t len = 0;

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        if (!(p->listed & 1u << i))
            continue;
        snprintf(host[len], sizeof host[len], "/dev/host-%zu-v%u", i, p->version);
        snprintf(inside[len], sizeof inside[len], "/dev/0-%zu", i);
        devices[len] = (struct devicemgr_builtin_device){.id = device_sim_id(i),
                                                         .healthy = p->healthy & 1u << i,
                                                         .host_path = host[len],
                                                         .container_path = inside[len],
                                                         .permissions = "rw"};
        len++;
    }
    world_note(w, "builtin: listed %x healthy %x version %u", p->listed, p->healthy, p->version);
    w->shim.builtin_told = true;
    devicemgr_builtin(w->shim.core, shim_now_ms(w), resource_sim_name(RESOURCE_BUILTIN), devices,
                      len);
    shim_run(w);
}

static void restore(struct world *w, bool lost)
{
    for (const struct store_row *row = w->store.rows; row; row = row->next) {
        int r = devicemgr_restore(w->shim.core, shim_now_ms(w), &row->record);

        check_that(w, r == 0, "a durable row is restored: %s %s %s", row->record.key[0],
                   row->record.key[1], row->record.key[2]);
    }
    if (lost)
        devicemgr_rows_lost(w->shim.core);
    devicemgr_restored(w->shim.core, shim_now_ms(w));
}

/* The kubelet is connected anew, and lists; for a while no kubelet may be there. */
static void kubelet_lists(struct world *w, uint64_t incarnation, uint64_t starts)
{
    if (!shim_lives(w, incarnation))
        return;
    starts = starts || w->kubelet.down;
    w->kubelet.down = false;
    world_note(w, "kubelet: lists%s", starts ? ", and has started" : "");
    if (starts)
        devicemgr_kubelet_started(w->shim.core, shim_now_ms(w));
    devicemgr_kubelet_listed(w->shim.core, shim_now_ms(w));
    if (w->shim.kubelet_ms == 0)
        w->shim.kubelet_ms = w->now_ms;
    if (starts)
        w->shown.started_ms = w->now_ms;
    shim_run(w);
}

static void kubelet_lists_later(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_KUBELET_LISTS, 0, 0);
    bool starts = rng_percent(&rng, 30);

    world_after(w, &rng, rng_delay_ms(&rng, KUBELET_LISTS_MS_MAX), kubelet_lists,
                w->shim.incarnation, starts);
}

static void start(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_SHIM_STARTS, 0, 0);
    struct shim *shim = &w->shim;
    bool lost = w->store.reset;

    (void)a;
    (void)b;
    count_add(COUNT_STARTS);
    shim->settings.boot_id = shim->boot_id;
    shim->core = devicemgr_new(&shim->settings, &PORTS, w);
    world_note(w, "shim: started, boot %u", shim->boot);
    publisher_shim_started(w);
    shown_shim_started(w);
    shim->kubelet_ms = shim->listed_ms = 0;
    if (rng_percent(&rng, 10))
        w->plugins[RESOURCE_BUILTIN].version++; /* another config */
    if (w->faults && rng_percent(&rng, STORE_LOSS_PERCENT))
        lost = store_lose(w) || lost;
    else if (w->faults && rng_percent(&rng, STORE_DAMAGE_PERCENT))
        lost = store_damage(w) || lost;
    shim->damaged = shim->damaged || lost;
    shim->started_ms = w->now_ms;
    shim->earlier = runtime_shim_resumes(w);
    shim->rows_lost = store_find(&w->store, DEVICEMGR_RECORD_LOSS, "rows_lost", "", "");
    if (lost) {
        count_add(COUNT_ROWS_LOST);
        kubelet_rows_lost(w);
    }
    shim->draining = false;
    for (const struct store_row *row = w->store.rows; row; row = row->next)
        claims_row_restored(w, &row->record);
    claims_unsure(w, 0, 0);
    moves_shim_started(w);
    over_shim_started(w);
    shown_rows(w);
    operator_shim_started(w, lost);
    releaser_shim_started(w);
    shim->relisted = false;
    w->store.reset = false;
    if (shim->earlier) {
        count_add(COUNT_RESUMED);
        devicemgr_earlier_creates(shim->core, shim_now_ms(w), true);
    }
    restore(w, lost);
    shim_run(w);
    if (shim->core)
        shim_builtin(w);
    if (shim->core)
        lister_start(w);
    if (shim->core)
        plugins_shim_back(w);
    bridge_report_later(w);
    if (shim->core)
        kubelet_lists_later(w);
    dra_shim_started(w);
}

/* `reboot`: nothing outlives it. */
static void die(struct world *w, bool reboot)
{
    struct rng rng = world_draw(w, DRAW_SHIM_DIES, 0, 0);
    struct rng kept = world_draw(w, DRAW_SHIM_RESUMES, 0, 0);
    struct shim *shim = &w->shim;

    devicemgr_free(shim->core);
    shim->core = NULL;
    shim->dying = false;
    shim->crash_in = 0;
    shim->run_later = false;
    shim->resumes = !reboot && !runtime_outlives(w) && rng_percent(&kept, RESUMES_PERCENT);
    shim->incarnation++;
    shim->builtin_told = false;
    shim->earlier = false;
    shim->earlier_ms = 0;
    lister_stop(w);
    rival_shim_gone(w);
    bridge_shim_gone(w);
    store_crash(w);
    plugins_shim_gone(w);
    client_shim_gone(w);
    runtime_shim_gone(w);
    dra_shim_gone(w);
    world_after(w, &rng, rng_delay_ms(&rng, DEAD_MS_MAX) + 1, start, 0, 0);
}

void shim_kill(struct world *w, bool reboot)
{
    struct rng rng = world_draw(w, DRAW_NODE_REBOOTS, 0, 0);
    bool forgets;

    if (!w->shim.core)
        return;
    world_note(w, "shim: killed%s", reboot ? ", the node reboots" : "");
    die(w, reboot);
    if (!reboot)
        return;
    count_add(COUNT_REBOOTS);
    forgets = rng_percent(&rng, FORGETS_PERCENT);
    if (forgets)
        count_add(COUNT_FORGOTTEN);
    claims_reboot(w, forgets);
    kubelet_rebooted(w, forgets);
    w->shim.boot_ms = w->now_ms;
    snprintf(w->shim.boot_id, sizeof w->shim.boot_id, "boot-%u", ++w->shim.boot);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        plugin_die(w, &w->plugins[r]);
}

static void drained(struct world *w, uint64_t incarnation, uint64_t unused)
{
    (void)unused;
    if (shim_lives(w, incarnation))
        shim_kill(w, false);
}

void shim_drain(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_SHIM_DRAINS, 0, 0);

    if (!w->shim.core || w->shim.draining)
        return;
    world_note(w, "shim: told to end");
    count_add(COUNT_DRAINS);
    w->shim.draining = true;
    world_after(w, &rng, rng_between(&rng, 1, DRAIN_MS_MAX), drained, w->shim.incarnation, 0);
    devicemgr_drain(w->shim.core, shim_now_ms(w));
    shim_run(w);
}

static void run_later(struct world *w, uint64_t incarnation, uint64_t unused)
{
    (void)unused;
    if (shim_lives(w, incarnation) && w->shim.run_later)
        shim_run_now(w);
}

/* Some events are told before the core runs: several then share one run. */
void shim_run(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_SHIM_RUNS, 0, 0);
    struct shim *shim = &w->shim;

    if (!shim->core || shim->running)
        return;
    if (!rng_percent(&rng, 10)) {
        shim_run_now(w);
    } else if (!shim->run_later) {
        shim->run_later = true;
        world_after(w, &rng, rng_below(&rng, 3), run_later, shim->incarnation, 0);
        if (w->faults && rng_percent(&rng, 20))
            client_cancel_one(w); /* perhaps one whose verdict is on its way */
    }
}

void shim_run_now(struct world *w)
{
    struct shim *shim = &w->shim;

    if (!shim->core || shim->running)
        return;
    shim->late = shim->run_later;
    shim->run_later = false;
    shim->running = true;
    shim->runs++;
    shim->port_calls = 0;
    asker_asks(w);
    reader_reads(w);
    devicemgr_run(shim->core);
    asker_asks(w);
    reader_reads(w);
    shim->running = false;
    if (shim->dying || (shim->crash_in > 0 && w->play.decisions))
        die(w, false);
    else
        check_settled(w);
}

uint64_t shim_next_ms(const struct world *w)
{
    uint64_t next_ms = w->shim.core ? devicemgr_next_ms(w->shim.core) : UINT64_MAX;

    return next_ms == UINT64_MAX ? UINT64_MAX : next_ms + w->shim.boot_ms - 1;
}

void shim_earlier_over(struct world *w)
{
    w->shim.earlier = false;
    w->shim.earlier_ms = w->now_ms;
    world_note(w, "shim: creates of an earlier life are over");
    devicemgr_earlier_creates(w->shim.core, shim_now_ms(w), false);
}

uint64_t shim_earlier_until_ms(const struct world *w)
{
    if (w->shim.earlier)
        return UINT64_MAX;
    return w->shim.earlier_ms > 0 ? w->shim.earlier_ms + OUTCOME_MS : 0;
}

void shim_tick(struct world *w)
{
    devicemgr_tick(w->shim.core, shim_now_ms(w));
    shim_run_now(w);
    check_that(w, shim_next_ms(w) > w->now_ms, "a due tick leaves nothing due");
}

void shim_confuse(struct world *w)
{
    struct devicemgr *core = w->shim.core;
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    struct rng rng = world_draw(w, DRAW_CONFUSION, 0, 0);
    uint64_t never = UINT64_MAX - rng_below(&rng, 3), now_ms = shim_now_ms(w);

    world_note(w, "confusion");
    devicemgr_endpoint_options(core, now_ms, never, &options);
    devicemgr_endpoint_list(core, now_ms, never, &list);
    devicemgr_endpoint_lost(core, now_ms, never, "never was");
    devicemgr_allocated(core, now_ms, never, 14, "never was", NULL);
    devicemgr_preferred(core, now_ms, never, 14, "never was", NULL);
    devicemgr_prestarted(core, now_ms, never, 0, NULL);
    devicemgr_register_cancelled(core, never);
    devicemgr_create_cancelled(core, now_ms, never);
    devicemgr_create_answered(core, now_ms, never, "c0");
    devicemgr_container_checked(core, now_ms, never, DEVICEMGR_RUNS);
    devicemgr_container_removed(core, now_ms, "c0");
    devicemgr_sandbox_stopping(core, now_ms, "s0");
    devicemgr_sandbox_stopped(core, now_ms, "s0");
    devicemgr_sandbox_removed(core, now_ms, "s0");
    devicemgr_committed(core, now_ms, never, NULL);
    shim_run(w);
}

static const struct devicemgr_resource_settings *override_of(const struct world *w, size_t resource)
{
    for (size_t i = 0; i < w->shim.settings.resources_len; i++) {
        if (strcmp(w->shim.resources[i].name, resource_sim_name(resource)) == 0)
            return &w->shim.resources[i];
    }
    return NULL;
}

enum devicemgr_refresh shim_refresh(const struct world *w, size_t resource)
{
    const struct devicemgr_resource_settings *own = override_of(w, resource);

    return own ? own->refresh : w->shim.settings.refresh;
}

uint64_t shim_hold_ms(const struct world *w, size_t resource)
{
    const struct devicemgr_resource_settings *own = override_of(w, resource);

    return own ? own->hold_ms : w->shim.settings.hold_ms;
}

uint64_t shim_grace_ms(const struct world *w, size_t resource)
{
    const struct devicemgr_resource_settings *own = override_of(w, resource);

    return own ? own->grace_ms : w->shim.settings.grace_ms;
}

bool shim_exclusive(const struct world *w, size_t resource)
{
    const struct devicemgr_resource_settings *own = override_of(w, resource);

    return !own || own->exclusive;
}

size_t shim_allocates_at_once(const struct world *w)
{
    return w->shim.settings.allocates_at_once;
}

uint64_t shim_calls_ms_max(const struct world *w)
{
    return w->shim.calls_ms_max;
}

/* A call goes by the settings that were when it was made. */
static void note_times(struct shim *shim)
{
    uint64_t allocate_ms = shim->settings.allocate_timeout_ms, calls_ms;

    for (size_t i = 0; i < shim->settings.resources_len; i++) {
        if (shim->resources[i].allocate_timeout_ms > allocate_ms)
            allocate_ms = shim->resources[i].allocate_timeout_ms;
    }
    if (shim->settings.allocates_at_once > 0)
        allocate_ms *= CREATES_SIM_MAX; /* behind all the others */
    calls_ms = allocate_ms + shim->settings.prestart_timeout_ms;
    if (calls_ms > shim->calls_ms_max)
        shim->calls_ms_max = calls_ms;
}

/* ---- settings ---- */

static uint64_t another(struct rng *rng, uint64_t ms)
{
    return rng_percent(rng, 70) ? ms : rng_between(rng, ms / 2, 2 * ms);
}

static void set_refresh(struct world *w, struct rng *rng, enum devicemgr_refresh *refresh)
{
    enum devicemgr_refresh before = *refresh;

    if (rng_percent(rng, 30))
        *refresh = (enum devicemgr_refresh)rng_below(rng, 3);
    if (*refresh != before)
        w->shim.refreshed_ms = w->now_ms;
}

static bool holds_any(const struct world *w)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (w->client.creates[i].number && w->client.creates[i].held)
            return true;
    }
    return false;
}

void shim_set_settings(struct world *w, struct rng *rng)
{
    struct shim *shim = &w->shim;
    struct devicemgr_settings *settings = &shim->settings;

    settings->hold_ms = rng_below(rng, 9) * 1000;
    settings->grace_ms = another(rng, settings->grace_ms);
    set_refresh(w, rng, &settings->refresh);
    settings->allocate_timeout_ms = rng_between(rng, 1, 10) * 1000;
    settings->prestart_timeout_ms = rng_between(rng, 1, 10) * 1000;
    settings->hide_other_namespaces = rng_percent(rng, 50);
    for (size_t i = 0; i < settings->resources_len; i++) {
        shim->resources[i].hold_ms = rng_below(rng, 61) * 1000;
        shim->resources[i].grace_ms = another(rng, shim->resources[i].grace_ms);
        set_refresh(w, rng, &shim->resources[i].refresh);
        shim->resources[i].allocate_timeout_ms = rng_between(rng, 1, 10) * 1000;
    }
    note_times(shim);
    if (!shim->core)
        return; /* the next one starts by them */
    world_note(w, "shim: other settings: hold %" PRIu64 " ms, grace %" PRIu64 " ms",
               settings->hold_ms, settings->grace_ms);
    count_add(COUNT_RELOADS);
    if (holds_any(w))
        count_add(COUNT_RELOADS_HELD);
    devicemgr_set_settings(shim->core, shim_now_ms(w), settings);
    shim_run_now(w);
}

static void pick_overrides(struct world *w, struct rng *rng)
{
    struct shim *shim = &w->shim;

    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (!rng_percent(rng, 20))
            continue;
        shim->resources[shim->settings.resources_len++] = (struct devicemgr_resource_settings){
            .name = resource_sim_name(r),
            .grace_ms = rng_between(rng, 1, 300) * 1000,
            .hold_ms = rng_below(rng, 61) * 1000,
            .allocate_timeout_ms = rng_between(rng, 1, 10) * 1000,
            .allocates_at_once = shim->settings.allocates_at_once,
            .refresh = (enum devicemgr_refresh)rng_below(rng, 3),
            .exclusive = rng_percent(rng, 70),
        };
    }
    shim->settings.resources = shim->resources;
}

void shim_init(struct world *w)
{
    static const char *const ALL[] = {"*"};
    static const char *const CACHED[] = {DRA_LOCAL_DRIVER};
    struct rng rng = world_draw(w, DRAW_SETTINGS, 0, 0);
    struct shim *shim = &w->shim;

    shim->incarnation = 1;
    shim->boot = 1;
    snprintf(shim->boot_id, sizeof shim->boot_id, "boot-1");
    shim->settings = (struct devicemgr_settings){
        .grace_ms = rng_between(&rng, 20, 300) * 1000,
        .hold_ms = rng_below(&rng, 9) * 1000,
        .checked = w->play.seed % 2 == 0,
        .allocate_timeout_ms = rng_between(&rng, 1, 10) * 1000,
        .allocates_at_once = w->play.seed % 16 > 13 ? 16 - w->play.seed % 16 : 0,
        .cached_prepare = CACHED,
        .cached_prepare_len = 1,
        .claim_call_ms = 45000,
        .mask_ms = rng_between(&rng, 0, rng_percent(&rng, 50) ? 10 : 120) * 1000,
        .kubelet_wait_ms = rng_percent(&rng, 50) ? rng_below(&rng, 120) * 1000 : 0,
        .prestart_timeout_ms = rng_between(&rng, 1, 10) * 1000,
        .refresh = (enum devicemgr_refresh)rng_below(&rng, 3),
        .annotations = true,
        .namespaces = ALL,
        .namespaces_len = 1,
    };
    pick_overrides(w, &rng);
    note_times(shim);
    start(w, 0, 0);
    reloader_begins(w);
}

void shim_fini(struct world *w)
{
    lister_stop(w);
    devicemgr_free(w->shim.core);
}
