/*
 * The shim of the world of drivers with two homes: the core, its ports, and the rows that are
 * durable.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "tests/sim/home_world.h"

#define CALL_MS 45000

/* ---- the store ---- */

static const struct row *find_row(const struct row *rows, enum devicemgr_record_kind kind,
                                  const char *first, const char *second)
{
    for (const struct row *row = rows; row; row = row->next) {
        if (row->kind == kind && strcmp(row->key[0], first) == 0 &&
            strcmp(row->key[1], second) == 0)
            return row;
    }
    return NULL;
}

/* The caller frees it; NULL: there is none. */
static Checkpoint__V1__Claim *read_claim(const struct home_world *h, const struct row *rows,
                                         size_t claim)
{
    const struct row *row;
    char uid[16];

    snprintf(uid, sizeof uid, "c%zu", claim);
    row = find_row(rows, DEVICEMGR_RECORD_CLAIM, uid, home_driver_name(h->claims[claim].driver));
    return row && row->bytes ? checkpoint__v1__claim__unpack(NULL, row->bytes, row->value) : NULL;
}

bool home_shim_stores(const struct home_world *h, size_t claim)
{
    Checkpoint__V1__Claim *is = h->commit ? read_claim(h, h->pending, claim) : NULL;
    bool stores = is && (strcmp(is->state, "sent") == 0 || strcmp(is->state, "prepared") == 0);

    checkpoint__v1__claim__free_unpacked(is, NULL);
    return stores;
}

struct hw_row home_shim_row(const struct home_world *h, size_t claim)
{
    Checkpoint__V1__Claim *is = read_claim(h, h->rows, claim);
    struct hw_row row = {.there = is != NULL};

    if (!is)
        return row;
    snprintf(row.state, sizeof row.state, "%s", is->state);
    row.has_device = is->has_response && home_answer_read(is->response.data, is->response.len,
                                                          &row.device, &row.shared);
    row.sent = is->sent;
    row.unanswered = is->unanswered;
    row.alone = is->alone;
    checkpoint__v1__claim__free_unpacked(is, NULL);
    return row;
}

bool home_shim_prepares(const struct home_world *h, size_t claim)
{
    struct hw_row row = home_shim_row(h, claim);

    return row.has_device && strcmp(row.state, "owed") != 0;
}

bool home_shim_row_has(const struct home_world *h, size_t claim, unsigned sandbox)
{
    Checkpoint__V1__Claim *is = read_claim(h, h->rows, claim);
    char id[16];
    bool has = false;

    snprintf(id, sizeof id, "s%u", sandbox);
    for (size_t i = 0; is && i < is->n_users; i++)
        has = has || strcmp(is->users[i]->sandbox_id, id) == 0;
    checkpoint__v1__claim__free_unpacked(is, NULL);
    return has;
}

bool home_shim_row_moved(const struct home_world *h, size_t driver)
{
    const struct row *row =
        find_row(h->rows, DEVICEMGR_RECORD_DRIVER, home_driver_name(driver), "");
    Checkpoint__V1__Driver *is =
        row ? checkpoint__v1__driver__unpack(NULL, row->bytes, row->value) : NULL;
    bool moved = is && is->moved;

    checkpoint__v1__driver__free_unpacked(is, NULL);
    return moved;
}

bool home_shim_is_stored(const struct home_world *h)
{
    return !h->commit && !h->store_fails;
}

static void forget_answer(struct hw_claim *claim)
{
    claim->said = claim->answered = false;
    claim->ours = 0;
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    struct home_world *h = user;

    check_that(h->w, !h->commit, "one commit is under way at a time");
    h->commit = commit;
    rows_free(&h->pending);
    for (size_t i = 0; i < records_len; i++) {
        home_note(h, "commit has %d %s %s%s", (int)records[i].kind, records[i].key[0],
                  records[i].key[1], records[i].value ? "" : ", deleted");
        rows_add(&h->pending, &records[i]);
        if (records[i].kind == DEVICEMGR_RECORD_CLAIM && !records[i].value)
            forget_answer(&h->claims[home_claim_find(records[i].key[0])]);
    }
    for (size_t d = 0; d < HW_DRIVERS; d++) {
        h->drivers[d].carried = h->drivers[d].moved;
        h->drivers[d].seen_carried = h->drivers[d].seen;
    }
}

/* The store says so by now, or it is owed again. */
static void note_given_back(struct home_world *h, bool fails)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        struct hw_claim *claim = &h->claims[i];

        if (claim->given_back)
            claim->given_back = !fails && strcmp(home_shim_row(h, i).state, "owed") == 0;
    }
}

/* What a driver has said of a claim is asked for once more: by the shim, if one runs with it. */
static void note_unstored(struct home_world *h)
{
    for (const struct row *row = h->pending; row; row = row->next) {
        if (row->kind == DEVICEMGR_RECORD_CLAIM)
            h->claims[home_claim_find(row->key[0])].unsure = true;
    }
}

static void end_commit(struct home_world *h, bool fails)
{
    h->commit = 0;
    h->store_fails = fails;
    if (fails) {
        h->failed_ms = h->now_ms;
        note_unstored(h);
        rows_free(&h->pending);
        note_given_back(h, true);
        home_uses_by_rows(h);
        return;
    }
    h->stored_ms = h->now_ms;
    rows_store(&h->rows, &h->pending);
    note_given_back(h, false);
    for (size_t d = 0; d < HW_DRIVERS; d++) {
        h->drivers[d].stored = h->drivers[d].carried;
        h->drivers[d].seen_stored = h->drivers[d].seen_carried;
        if (h->drivers[d].stored && h->drivers[d].moved)
            home_driver_has_moved(h, d);
    }
}

void home_shim_commit_ends(struct home_world *h, bool fails)
{
    uint64_t commit = h->commit;

    if (!commit)
        return;
    home_note(h, "commit ends, %s", fails ? "fails" : "stored");
    if (fails)
        count_add(COUNT_HOME_COMMIT_FAILED);
    end_commit(h, fails);
    devicemgr_committed(h->core, h->now_ms, commit, fails ? "the disk is full" : NULL);
    home_shim_run(h);
}

/* ---- ports ---- */

static void on_registered(void *user, uint64_t instance, int code, const char *message)
{
    struct home_world *h = user;

    check_that(h->w, code == 0, "a driver may register: %" PRIu64 ", %s", instance, message);
}

static void on_prepare(void *user, uint64_t instance, uint64_t call, struct devicemgr_batch batch,
                       const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    (void)timeout_ms;
    home_driver_called(user, &(struct hw_op){.call = call,
                                             .instance = instance,
                                             .claim = home_claim_find(claim->uid),
                                             .prepare = true,
                                             .batch = batch.number});
}

static void on_unprepare(void *user, uint64_t instance, uint64_t call, struct devicemgr_batch batch,
                         const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    (void)timeout_ms;
    home_driver_called(user, &(struct hw_op){.call = call,
                                             .instance = instance,
                                             .claim = home_claim_find(claim->uid),
                                             .batch = batch.number});
}

static void on_settle(void *user, uint64_t instance, uint64_t call,
                      const struct devicemgr_claim *claim, bool asked, uint64_t timeout_ms)
{
    (void)timeout_ms;
    home_driver_called(user, &(struct hw_op){.call = call,
                                             .instance = instance,
                                             .claim = home_claim_find(claim->uid),
                                             .looks = asked ? HW_LOOKS_FOR_AN_ANSWER : HW_LOOKS});
}

static void on_look(void *user, const struct devicemgr_claim *claim)
{
    struct home_world *h = user;

    h->claims[home_claim_find(claim->uid)].looked_for = true;
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    home_claim_done(user, number, done);
}

static void on_list(void *user)
{
    struct home_world *h = user;

    h->list_wanted = true;
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    if (verdict->code == 0)
        home_pod_passes(user, create, verdict);
    else
        home_pod_refused(user, create, verdict->code, verdict->message);
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    (void)user;
    (void)event;
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    static const char OF[] = " of claim c";
    const char *claim = strstr(text, " may still be used by ") ? strstr(text, OF) : NULL;

    (void)level;
    (void)about;
    home_note(user, "log: %s", text);
    if (claim)
        home_judge_said(user, strtoul(claim + sizeof OF - 1, NULL, 10));
}

static const struct devicemgr_ports PORTS = {.commit = on_commit,
                                             .runtime_list = on_list,
                                             .verdict = on_verdict,
                                             .event = on_event,
                                             .driver_registered = on_registered,
                                             .driver_prepare = on_prepare,
                                             .driver_unprepare = on_unprepare,
                                             .driver_settle = on_settle,
                                             .claim_look = on_look,
                                             .claim_done = on_claim_done,
                                             .log = on_log};

/* ---- its life ---- */

void home_shim_start(struct home_world *h)
{
    static const struct devicemgr_settings settings = {
        .boot_id = "boot", .claim_call_ms = CALL_MS, .kubelet_wait_ms = 10000, .checked = true};

    h->listing = h->store_fails = false;
    h->list_due_ms = 0;
    h->started_ms = h->now_ms;
    h->core = devicemgr_new(&settings, &PORTS, h);
    for (const struct row *row = h->rows; row; row = row->next) {
        const struct devicemgr_record record = row_record(row);

        check_that(h->w, devicemgr_restore(h->core, h->now_ms, &record) == 0,
                   "what was stored is restored");
    }
    for (size_t d = 0; d < HW_DRIVERS; d++) {
        struct hw_driver *driver = &h->drivers[d];

        driver->moved = driver->stored;
        driver->seen = driver->seen_stored;
        if (driver->moved) {
            count_add(COUNT_HOME_MOVED_RESTORED);
            home_driver_has_moved(h, d);
        }
    }
    home_uses_shim_started(h);
    home_cluster_shim_started(h);
    devicemgr_restored(h->core, h->now_ms);
    devicemgr_kubelet_listed(h->core, h->now_ms);
    devicemgr_runtime_cdi(h->core, h->now_ms, DEVICEMGR_CDI_READ);
    home_pods_shim_started(h);
    h->list_wanted = true; /* as a lister that has connected */
    home_shim_run(h);
}

/* A commit that was under way was stored, or not. */
void home_shim_kill(struct home_world *h)
{
    count_add(COUNT_HOME_KILLED);
    home_note(h, "the shim is killed");
    devicemgr_free(h->core);
    h->core = NULL;
    if (h->commit)
        end_commit(h, rng_percent(&h->rng, 50));
    home_drivers_shim_ended(h);
    for (size_t i = 0; i < h->claims_len; i++) {
        h->claims[i].asked = 0;
        h->claims[i].given_back = false;
    }
    home_shim_start(h);
}

void home_shim_end(struct home_world *h)
{
    devicemgr_free(h->core);
    rows_free(&h->rows);
    rows_free(&h->pending);
}

void home_shim_run(struct home_world *h)
{
    devicemgr_run(h->core);
    if (!*h->w->broken)
        home_judge(h);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void home_shim_pass(struct home_world *h, uint64_t ms)
{
    uint64_t end_ms = h->now_ms + ms;

    while (h->now_ms < end_ms && !*h->w->broken) {
        uint64_t next_ms =
            earlier(earlier(devicemgr_next_ms(h->core), home_pods_next_ms(h)), end_ms);

        if (next_ms > h->now_ms)
            h->now_ms = next_ms;
        home_pods_due(h);
        if (devicemgr_next_ms(h->core) <= h->now_ms) {
            devicemgr_tick(h->core, h->now_ms);
            home_shim_run(h);
        }
        if (devicemgr_next_ms(h->core) <= h->now_ms && next_ms == h->now_ms)
            h->now_ms++; /* it asks for the same time again: a commit that is under way */
    }
    home_asked_expire(h);
}
