#include "tests/sim/shim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/mem.h"
#include "devicemgr/request.h"
#include "tests/sim/check.h"
#include "tests/sim/world.h"

#define DEAD_MS_MAX 5000
#define LIST_MS_MAX 5000
#define CHECK_MS_MAX 1000
#define STORE_LOSS_PERCENT 5

uint64_t shim_now_ms(const struct world *w)
{
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
    if (shim->crash_in == 0 || --shim->crash_in > 0)
        return true;
    world_note(w, "shim: killed inside a run");
    shim->dying = true;
    return false;
}

static void on_open(void *user, uint64_t endpoint, const char *resource, const char *socket)
{
    if (port(user))
        plugin_open(user, endpoint, resource, socket);
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
        kubelet_verdict(user, create, verdict);
}

static void on_log(void *user, int level, const char *text)
{
    struct world *w = user;

    if (!w->shim.dying)
        world_note(w, "log: <%d> %s", level, text);
}

/* ---- container checks ---- */

static void checked(struct world *w, uint64_t slot, uint64_t container)
{
    uint64_t check = w->shim.checks[slot];
    const struct rt_container *c = runtime_find_container(w, (unsigned)container);

    w->shim.checks[slot] = 0;
    world_note(w, "runtime: check of c%u: %s", (unsigned)container,
               w->runtime.down        ? "no answer"
               : c && runtime_live(c) ? "it runs"
               : c                    ? "exited"
                                      : "not known");
    if (w->runtime.down)
        devicemgr_container_checked(w->shim.core, shim_now_ms(w), check, true, true);
    else
        devicemgr_container_checked(w->shim.core, shim_now_ms(w), check, c != NULL,
                                    c && runtime_live(c));
    shim_run(w);
}

static void check_later(struct world *w, uint64_t slot_and_container, uint64_t incarnation)
{
    if (shim_lives(w, incarnation))
        checked(w, slot_and_container >> 32, slot_and_container & 0xffffffff);
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    struct world *w = user;
    unsigned container = (unsigned)strtoul(container_id + 1, NULL, 10);
    size_t slot = 0;

    if (!port(w))
        return;
    while (slot < CHECKS_MAX && w->shim.checks[slot])
        slot++;
    check_that(w, slot < CHECKS_MAX, "checks under way are bounded");
    if (slot == CHECKS_MAX)
        return;
    w->shim.checks[slot] = check;
    world_after(w, rng_delay_ms(&w->rng, CHECK_MS_MAX), check_later,
                (uint64_t)slot << 32 | container, w->shim.incarnation);
}

size_t shim_checks_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < CHECKS_MAX; i++)
        open += w->shim.checks[i] != 0;
    return open;
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
    .verdict = on_verdict,
    .log = on_log,
};

/* ---- the runtime's list: two calls, as the daemon makes them, and the way back ---- */

/* An answer of the runtime, and the texts in it. */
struct listed {
    struct devicemgr_sandbox sandboxes[SANDBOXES_MAX];
    struct devicemgr_container containers[CONTAINERS_MAX];
    struct devicemgr_annotation notes[CONTAINERS_MAX * RESOURCES_LEN];
    char sandbox_ids[SANDBOXES_MAX][16], sandbox_uids[SANDBOXES_MAX][16];
    char container_ids[CONTAINERS_MAX][16], container_sandboxes[CONTAINERS_MAX][16];
    size_t sandboxes_len, containers_len, notes_len;
};

static void fill_sandbox(struct listed *listed, const struct rt_sandbox *s)
{
    size_t n = listed->sandboxes_len++;

    snprintf(listed->sandbox_ids[n], sizeof listed->sandbox_ids[n], "s%u", s->id);
    snprintf(listed->sandbox_uids[n], sizeof listed->sandbox_uids[n], "u%u", s->uid);
    listed->sandboxes[n] = (struct devicemgr_sandbox){.id = listed->sandbox_ids[n],
                                                      .pod_uid = listed->sandbox_uids[n],
                                                      .pod_namespace = "ns",
                                                      .pod_name = listed->sandbox_uids[n],
                                                      .attempt = s->attempt,
                                                      .ready = s->ready};
}

static void fill_container(struct listed *listed, const struct rt_container *c)
{
    size_t n = listed->containers_len++;
    struct devicemgr_container *out = &listed->containers[n];

    snprintf(listed->container_ids[n], sizeof listed->container_ids[n], "c%u", c->id);
    snprintf(listed->container_sandboxes[n], sizeof listed->container_sandboxes[n], "s%u",
             c->sandbox);
    *out = (struct devicemgr_container){.id = listed->container_ids[n],
                                        .sandbox_id = listed->container_sandboxes[n],
                                        .name = container_sim_name(c->name),
                                        .attempt = c->attempt,
                                        .running = runtime_live(c),
                                        .annotations = &listed->notes[listed->notes_len]};
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct ids ids = device_sim_ids(c->noted[r]);

        if (ids.len > 0) {
            listed->notes[listed->notes_len++] =
                (struct devicemgr_annotation){request_token_key(resource_sim_name(r)),
                                              request_token_value(resource_sim_name(r), &ids)};
            out->annotations_len++;
        }
        ids_fini(&ids);
    }
}

static void list_drop(struct shim *shim)
{
    struct listed *listed = shim->listed;

    for (size_t i = 0; listed && i < listed->notes_len; i++) {
        free((char *)listed->notes[i].key);
        free((char *)listed->notes[i].value);
    }
    free(listed);
    shim->listed = NULL;
}

/* False: that list is off; with the runtime away it is begun anew when it is back. */
static bool list_goes_on(struct world *w, uint64_t list)
{
    if (!w->shim.core || w->shim.list != list || !w->shim.listed)
        return false;
    if (!w->runtime.down)
        return true;
    list_drop(&w->shim);
    return false;
}

static void list_begin(struct world *w);

static void list_arrives(struct world *w, uint64_t list, uint64_t unused)
{
    struct listed *listed = w->shim.listed;

    (void)unused;
    if (!list_goes_on(w, list))
        return;
    world_note(w, "runtime: listed, %zu sandboxes and %zu containers", listed->sandboxes_len,
               listed->containers_len);
    kubelet_disturb(w, 0);
    devicemgr_runtime_listed(w->shim.core, shim_now_ms(w), listed->sandboxes, listed->sandboxes_len,
                             listed->containers, listed->containers_len);
    list_drop(&w->shim);
    shim_run(w);
    if (w->shim.list_again && w->shim.core)
        list_begin(w);
}

static void list_containers(struct world *w, uint64_t list, uint64_t unused)
{
    (void)unused;
    if (!list_goes_on(w, list))
        return;
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        if (w->runtime.containers[i].id)
            fill_container(w->shim.listed, &w->runtime.containers[i]);
    }
    world_after(w, rng_delay_ms(&w->rng, LIST_MS_MAX), list_arrives, list, 0);
}

static void list_sandboxes(struct world *w, uint64_t list, uint64_t unused)
{
    (void)unused;
    if (!list_goes_on(w, list))
        return;
    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        if (w->runtime.sandboxes[i].id)
            fill_sandbox(w->shim.listed, &w->runtime.sandboxes[i]);
    }
    world_after(w, rng_delay_ms(&w->rng, LIST_MS_MAX), list_containers, list, 0);
}

static void list_begin(struct world *w)
{
    w->shim.list_again = false;
    w->shim.listed = mem_alloc(1, sizeof *w->shim.listed);
    w->runtime.unseen = false;
    world_note(w, "runtime: being listed");
    devicemgr_runtime_listing(w->shim.core);
    world_after(w, rng_delay_ms(&w->rng, LIST_MS_MAX), list_sandboxes, ++w->shim.list, 0);
}

void shim_list(struct world *w)
{
    if (w->shim.listed)
        w->shim.list_again = true;
    else if (!w->runtime.down)
        list_begin(w);
}

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
    devicemgr_builtin(w->shim.core, shim_now_ms(w), resource_sim_name(RESOURCE_BUILTIN), devices,
                      len);
    shim_run(w);
}

static void restore(struct world *w)
{
    for (const struct store_row *row = w->store.rows; row; row = row->next) {
        int r = devicemgr_restore(w->shim.core, shim_now_ms(w), &row->record);

        check_that(w, r == 0, "a durable row is restored: %s %s %s", row->record.key[0],
                   row->record.key[1], row->record.key[2]);
    }
    devicemgr_restored(w->shim.core, shim_now_ms(w));
}

static void start(struct world *w, uint64_t a, uint64_t b)
{
    struct shim *shim = &w->shim;

    (void)a;
    (void)b;
    shim->starts++;
    shim->settings.boot_id = shim->boot_id;
    shim->core = devicemgr_new(&shim->settings, &PORTS, w);
    world_note(w, "shim: started, boot %u", shim->boot);
    if (rng_percent(&w->rng, 10))
        w->plugins[RESOURCE_BUILTIN].version++; /* another config */
    if (w->faults && rng_percent(&w->rng, STORE_LOSS_PERCENT))
        store_lose(w);
    restore(w);
    shim_run(w);
    if (shim->core)
        shim_builtin(w);
    if (shim->core)
        shim_list(w);
    if (shim->core)
        plugins_shim_back(w);
}

static void die(struct world *w)
{
    struct shim *shim = &w->shim;

    devicemgr_free(shim->core);
    shim->core = NULL;
    shim->dying = false;
    shim->crash_in = 0;
    shim->run_later = false;
    shim->incarnation++;
    list_drop(shim);
    shim->list++;
    shim->list_again = false;
    memset(shim->checks, 0, sizeof shim->checks);
    store_crash(w);
    plugins_shim_gone(w);
    kubelet_shim_gone(w);
    runtime_shim_gone(w);
    world_after(w, rng_delay_ms(&w->rng, DEAD_MS_MAX) + 1, start, 0, 0);
}

void shim_kill(struct world *w, bool reboot)
{
    if (!w->shim.core)
        return;
    world_note(w, "shim: killed%s", reboot ? ", the node reboots" : "");
    die(w);
    if (!reboot)
        return;
    runtime_reboot(w);
    w->shim.boot_ms = w->now_ms;
    snprintf(w->shim.boot_id, sizeof w->shim.boot_id, "boot-%u", ++w->shim.boot);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        plugin_die(w, &w->plugins[r]);
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
    struct shim *shim = &w->shim;

    if (!shim->core || shim->running)
        return;
    if (!rng_percent(&w->rng, 10)) {
        shim_run_now(w);
    } else if (!shim->run_later) {
        shim->run_later = true;
        world_after(w, rng_below(&w->rng, 3), run_later, shim->incarnation, 0);
        if (w->faults && rng_percent(&w->rng, 20))
            kubelet_cancel_one(w); /* perhaps one whose verdict is on its way */
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
    shim->port_calls = 0;
    devicemgr_run(shim->core);
    shim->running = false;
    if (shim->dying)
        die(w);
    else
        check_settled(w);
}

uint64_t shim_next_ms(const struct world *w)
{
    uint64_t next_ms = w->shim.core ? devicemgr_next_ms(w->shim.core) : UINT64_MAX;

    return next_ms == UINT64_MAX ? UINT64_MAX : next_ms + w->shim.boot_ms - 1;
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
    uint64_t never = UINT64_MAX - rng_below(&w->rng, 3), now_ms = shim_now_ms(w);

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
    devicemgr_container_checked(core, now_ms, never, true, true);
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

bool shim_exclusive(const struct world *w, size_t resource)
{
    const struct devicemgr_resource_settings *own = override_of(w, resource);

    return !own || own->exclusive;
}

uint64_t shim_allocate_ms_max(const struct world *w)
{
    uint64_t max_ms = w->shim.settings.allocate_timeout_ms;

    for (size_t i = 0; i < w->shim.settings.resources_len; i++) {
        if (w->shim.resources[i].allocate_timeout_ms > max_ms)
            max_ms = w->shim.resources[i].allocate_timeout_ms;
    }
    return max_ms;
}

static void pick_overrides(struct world *w)
{
    struct shim *shim = &w->shim;

    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (!rng_percent(&w->rng, 20))
            continue;
        shim->resources[shim->settings.resources_len++] = (struct devicemgr_resource_settings){
            .name = resource_sim_name(r),
            .grace_ms = rng_between(&w->rng, 1, 300) * 1000,
            .hold_ms = rng_between(&w->rng, 0, 60) * 1000,
            .allocate_timeout_ms = rng_between(&w->rng, 1, 10) * 1000,
            .refresh = (enum devicemgr_refresh)rng_below(&w->rng, 3),
            .exclusive = rng_percent(&w->rng, 70),
        };
    }
    shim->settings.resources = shim->resources;
}

void shim_init(struct world *w)
{
    static const char *const ALL[] = {"*"};
    struct shim *shim = &w->shim;

    shim->incarnation = 1;
    shim->boot = 1;
    snprintf(shim->boot_id, sizeof shim->boot_id, "boot-1");
    shim->settings = (struct devicemgr_settings){
        .grace_ms = rng_between(&w->rng, 20, 300) * 1000,
        .hold_ms = rng_between(&w->rng, 0, 8) * 1000,
        .allocate_timeout_ms = rng_between(&w->rng, 1, 10) * 1000,
        .prestart_timeout_ms = rng_between(&w->rng, 1, 10) * 1000,
        .refresh = (enum devicemgr_refresh)rng_below(&w->rng, 3),
        .annotations = true,
        .namespaces = ALL,
        .namespaces_len = 1,
    };
    pick_overrides(w);
    start(w, 0, 0);
}

void shim_fini(struct world *w)
{
    list_drop(&w->shim);
    devicemgr_free(w->shim.core);
}
