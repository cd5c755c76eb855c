/*
 * The shim of the world of lifted resources: the core, its ports, and the rows that are durable.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

#define CALL_MS 60000
#define HOLD_MS 5000
#define GRACE_MS 3600000
/* How often a start has other settings. */
#define BACK_PERCENT 12
#define OVER_PERCENT 40
/* The number that the driver registers by (shim/core/lifted.h). */
#define DRIVER_INSTANCE UINT64_MAX

/* ---- the store ---- */

static bool has_row(const struct lift_world *h, enum devicemgr_record_kind kind, const char *first,
                    const char *second, const char *third)
{
    for (const struct row *row = h->rows; row; row = row->next) {
        if (row->kind == kind && strcmp(row->key[0], first) == 0 &&
            strcmp(row->key[1], second) == 0 && strcmp(row->key[2], third) == 0)
            return true;
    }
    return false;
}

bool lift_shim_has_rows(const struct lift_world *h, const struct lw_pod *pod, size_t container)
{
    struct lw_had had[LW_HAD];
    size_t len = lift_pod_had(h, pod, container, had);
    char uid[16], name[8];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    snprintf(name, sizeof name, "n%zu", container);
    for (size_t i = 0; i < len; i++) {
        if (!has_row(h, DEVICEMGR_RECORD_ALLOCATION, uid, name,
                     lift_resource_name(had[i].resource)))
            return false;
    }
    return true;
}

bool lift_shim_has_claim(const struct lift_world *h, size_t claim)
{
    char uid[16];

    snprintf(uid, sizeof uid, "c%zu", claim);
    return has_row(h, DEVICEMGR_RECORD_CLAIM, uid, DEVICEMGR_LIFT_DRIVER, "");
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    struct lift_world *h = user;

    check_that(h->w, !h->commit, "one commit is under way at a time");
    h->commit = commit;
    rows_free(&h->pending);
    for (size_t i = 0; i < records_len; i++) {
        lift_note(h, "commit has %d %s %s %s%s", (int)records[i].kind, records[i].key[0],
                  records[i].key[1], records[i].key[2], records[i].value ? "" : ", deleted");
        rows_add(&h->pending, &records[i]);
    }
}

static void end_commit(struct lift_world *h, bool fails)
{
    h->commit = 0;
    h->store_fails = fails;
    if (fails)
        rows_free(&h->pending);
    else
        rows_store(&h->rows, &h->pending);
}

void lift_shim_commit_ends(struct lift_world *h, bool fails)
{
    uint64_t commit = h->commit;

    if (!commit)
        return;
    lift_note(h, "commit ends, %s", fails ? "fails" : "stored");
    if (fails)
        count_add(COUNT_LIFT_COMMIT_FAILED);
    end_commit(h, fails);
    devicemgr_committed(h->core, h->now_ms, commit, fails ? "the disk is full" : NULL);
    lift_shim_run(h);
}

/* ---- ports ---- */

static void on_endpoint_open(void *user, uint64_t endpoint, const char *resource,
                             const char *socket_name, uint32_t uid)
{
    (void)socket_name;
    (void)uid;
    lift_plugin_opened(user, endpoint, resource);
}

static void on_endpoint_close(void *user, uint64_t endpoint)
{
    lift_plugin_closed(user, endpoint);
}

static void on_register_done(void *user, uint64_t registration, int code, const char *message)
{
    (void)user;
    (void)registration;
    (void)code;
    (void)message;
}

static void on_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t ids_len, uint64_t timeout_ms)
{
    (void)timeout_ms;
    lift_plugin_called(user, endpoint, call, ids, ids_len);
}

/* Of a plugin, or of the driver. */
static void on_call_cancel(void *user, uint64_t call)
{
    struct lift_world *h = user;

    lift_plugin_call_cancelled(h, call);
    lift_host_cancel(h, call);
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    lift_check(user, check, container_id);
}

static void on_list(void *user)
{
    struct lift_world *h = user;

    h->list_wanted = true;
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    lift_verdict(user, create, verdict);
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    (void)user;
    (void)event;
}

static void on_registered(void *user, uint64_t instance, int code, const char *message)
{
    struct lift_world *h = user;

    check_that(h->w, code == 0, "the driver may register: %" PRIu64 ", %s", instance, message);
}

static void on_prepare(void *user, uint64_t instance, uint64_t call, struct devicemgr_batch batch,
                       const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    struct lift_world *h = user;

    (void)batch;
    check_that(h->w, instance == DRIVER_INSTANCE, "there is no other driver");
    lift_note(h, "prepare %s by %" PRIu64, claim->uid, call);
    lift_host_prepare(h, call, claim, timeout_ms);
}

/* There is nothing to be done. */
static void on_unprepare(void *user, uint64_t instance, uint64_t call, struct devicemgr_batch batch,
                         const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    struct lift_world *h = user;

    (void)batch;
    (void)instance;
    (void)timeout_ms;
    lift_note(h, "unprepare %s by %" PRIu64, claim->uid, call);
    devicemgr_claim_answered(h->core, h->now_ms, call, 0, "", NULL, 0);
}

static void on_look(void *user, const struct devicemgr_claim *claim)
{
    struct lift_world *h = user;

    h->claims[lift_claim_find(claim->uid)].looked_for = true;
    h->claims[lift_claim_find(claim->uid)].told = false;
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    lift_claim_done(user, number, done);
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)level;
    (void)about;
    lift_note(user, "log: %s", text);
}

static const struct devicemgr_ports PORTS = {.endpoint_open = on_endpoint_open,
                                             .endpoint_close = on_endpoint_close,
                                             .register_done = on_register_done,
                                             .allocate = on_allocate,
                                             .call_cancel = on_call_cancel,
                                             .commit = on_commit,
                                             .container_check = on_check,
                                             .runtime_list = on_list,
                                             .verdict = on_verdict,
                                             .event = on_event,
                                             .driver_registered = on_registered,
                                             .driver_prepare = on_prepare,
                                             .driver_unprepare = on_unprepare,
                                             .claim_look = on_look,
                                             .claim_done = on_claim_done,
                                             .log = on_log};

/* ---- its life ---- */

static void on_driver(void *user, const struct devicemgr_driver *driver)
{
    bool *known = user;

    *known = *known || strcmp(driver->name, DEVICEMGR_LIFT_DRIVER) == 0;
}

static bool is_in_books(const struct lift_world *h)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        if (h->claims[i].in_books)
            return true;
    }
    return false;
}

/* As shim/core/lifted.c does: while something is published, or was before. */
static void serve(struct lift_world *h)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
    static const struct devicemgr_driver_instance is = {DEVICEMGR_LIFT_DRIVER, "", SERVICES, 2};

    h->served = false;
    for (size_t r = 0; r < LW_RESOURCES; r++)
        h->served = h->served || h->resources[r].lifted;
    if (!h->served)
        devicemgr_drivers(h->core, on_driver, &h->served);
    check_that(h->w, h->served || h->rows_lost || !is_in_books(h),
               "there is a driver as long as the kubelet has claims of it");
    if (!h->served)
        return;
    devicemgr_driver_register(h->core, h->now_ms, DRIVER_INSTANCE, &is);
    devicemgr_driver_connected(h->core, h->now_ms, DRIVER_INSTANCE);
}

static struct devicemgr *new_core(struct lift_world *h)
{
    static const struct devicemgr_settings_attribute attributes[] = {
        {"*[13579]", {.name = "model", .kind = DEVICEMGR_ATTRIBUTE_TEXT, .text = "odd"}},
        {"*", {.name = "model", .kind = DEVICEMGR_ATTRIBUTE_TEXT, .text = "even"}}};
    struct devicemgr_resource_settings resources[LW_RESOURCES];
    struct devicemgr_settings settings = {.grace_ms = GRACE_MS,
                                          .hold_ms = HOLD_MS,
                                          .allocate_timeout_ms = CALL_MS,
                                          .prestart_timeout_ms = CALL_MS,
                                          .claim_call_ms = CALL_MS,
                                          .mask_ms = LW_MASK_MS,
                                          .kubelet_wait_ms = 10000,
                                          .boot_id = h->boot_id,
                                          .resources = resources,
                                          .resources_len = LW_RESOURCES,
                                          .checked = true};

    for (size_t r = 0; r < LW_RESOURCES; r++)
        resources[r] = (struct devicemgr_resource_settings){.name = lift_resource_name(r),
                                                            .grace_ms = GRACE_MS,
                                                            .hold_ms = HOLD_MS,
                                                            .allocate_timeout_ms = CALL_MS,
                                                            .exclusive = true,
                                                            .dra = h->resources[r].lifted,
                                                            .attributes = attributes,
                                                            .attributes_len = 2};
    return devicemgr_new(&settings, &PORTS, h);
}

void lift_shim_start(struct lift_world *h)
{
    h->listing = h->store_fails = false;
    h->started_ms = h->now_ms;
    snprintf(h->boot_id, sizeof h->boot_id, "boot%u", h->boot);
    h->core = new_core(h);
    lift_host_starts(h);
    for (const struct row *row = h->rows; row; row = row->next) {
        const struct devicemgr_record record = row_record(row);

        check_that(h->w, devicemgr_restore(h->core, h->now_ms, &record) == 0,
                   "what was stored is restored");
    }
    if (h->unlisted)
        devicemgr_rows_lost(h->core);
    lift_plugins_shim_started(h);
    lift_runtime_shim_started(h);
    devicemgr_restored(h->core, h->now_ms);
    serve(h);
    devicemgr_runtime_cdi(h->core, h->now_ms, DEVICEMGR_CDI_READ);
    devicemgr_kubelet_listed(h->core, h->now_ms);
    h->list_wanted = true; /* as a lister that has connected */
    h->agent = h->agent_told = false;
    h->agent_lost_ms = h->now_ms;
    lift_shim_run(h);
}

/* A commit that was under way was stored, or not. */
void lift_shim_kill(struct lift_world *h, bool lost)
{
    count_add(COUNT_LIFT_KILLED);
    lift_note(h, "the shim is killed%s", lost ? ", and its checkpoint is lost" : "");
    lift_host_ends(h);
    devicemgr_free(h->core);
    h->core = NULL;
    if (h->commit)
        end_commit(h, rng_percent(&h->rng, 50));
    if (lost) {
        count_add(COUNT_LIFT_LOST);
        rows_free(&h->rows);
        h->rows_lost = h->unlisted = true;
    }
    lift_runtime_shim_ended(h);
    for (size_t i = 0; i < h->claims_len; i++) {
        h->claims[i].asked = 0;
        h->claims[i].looked_for = h->claims[i].told = false;
        h->claims[i].lost = h->claims[i].lost || (lost && h->claims[i].in_books);
    }
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        struct lw_resource *resource = &h->resources[r];

        if (h->calm || !rng_percent(&h->rng, resource->lifted ? BACK_PERCENT : OVER_PERCENT))
            continue;
        resource->lifted = !resource->lifted;
        resource->ever = resource->ever || resource->lifted;
        lift_note(h, "resource %zu is moved %s", r, resource->lifted ? "over" : "back");
        count_add(resource->lifted ? COUNT_LIFT_MOVED_OVER : COUNT_LIFT_MOVED_BACK);
    }
    lift_shim_start(h);
}

void lift_shim_end(struct lift_world *h)
{
    lift_host_ends(h);
    devicemgr_free(h->core);
    rows_free(&h->rows);
    rows_free(&h->pending);
}

/* What its ports have set going goes on in the same moment, as host_kick() has it. */
void lift_shim_run(struct lift_world *h)
{
    do {
        h->kicked = false;
        devicemgr_run(h->core);
    } while (h->kicked);
    lift_host_looks(h);
    if (!*h->w->broken)
        lift_judge(h);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void lift_shim_pass(struct lift_world *h, uint64_t ms)
{
    uint64_t end_ms = h->now_ms + ms;

    while (h->now_ms < end_ms && !*h->w->broken) {
        uint64_t world_ms = earlier(lift_host_next_ms(h), lift_containers_next_ms(h));
        uint64_t next_ms = earlier(earlier(devicemgr_next_ms(h->core), world_ms), end_ms);

        if (next_ms > h->now_ms)
            h->now_ms = next_ms;
        lift_containers_due(h);
        lift_host_tick(h);
        if (devicemgr_next_ms(h->core) <= h->now_ms) {
            devicemgr_tick(h->core, h->now_ms);
            lift_shim_run(h);
        }
        if (devicemgr_next_ms(h->core) <= h->now_ms && next_ms == h->now_ms)
            h->now_ms++; /* it asks for the same time again: a commit that is under way */
    }
    lift_asked_expire(h);
}
