/*
 * The rows of DRA drivers, and of claims.
 */
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/utf8.h"
#include "devicemgr/books/record.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

/* ---- driver ---- */

uint8_t *record_of_driver(const struct driver *driver, size_t *bytes_len)
{
    Checkpoint__V1__Driver row = CHECKPOINT__V1__DRIVER__INIT;

    row.name = driver->name;
    row.services = driver->services.v;
    row.n_services = driver->services.len;
    row.wiped = driver->wiped;
    row.moved = driver->moved;
    row.was_elsewhere = driver->was_elsewhere;
    return record_pack(&row.base, bytes_len);
}

int record_restore_driver(struct drivers *drivers, uint64_t now_ms,
                          const struct devicemgr_record *record)
{
    Checkpoint__V1__Driver *row =
        checkpoint__v1__driver__unpack(NULL, record->value_bytes, record->value);
    int result = -1;

    if (row && strcmp(row->name, record->key[0]) == 0 && row->name[0] != '\0' &&
        utf8_is_text(row->name) && !drivers_find(drivers, row->name) &&
        drivers_len(drivers) < DRIVERS_MAX && row->n_services <= DRIVER_SERVICES_MAX) {
        const struct ids services = {row->services, row->n_services};
        struct driver *driver = drivers_ensure(drivers, now_ms, row->name, &services);

        driver->stored = driver->restored = true;
        driver_set_wiped(driver, row->wiped);
        if (row->moved)
            driver_set_moved(driver, now_ms);
        driver->was_elsewhere = row->was_elsewhere || row->moved;
        result = 0;
    }
    checkpoint__v1__driver__free_unpacked(row, NULL);
    return result;
}

/* ---- claim ---- */

/* The caller frees it and the first of it: they are one after the other. NULL: there is none. */
static Checkpoint__V1__ClaimDevice **pack_devices(const struct granted *devices)
{
    size_t len = devices->len;
    Checkpoint__V1__ClaimDevice **rows = len > 0 ? mem_alloc(len, sizeof *rows) : NULL;
    Checkpoint__V1__ClaimDevice *all = len > 0 ? mem_alloc(len, sizeof *all) : NULL;

    for (size_t i = 0; i < len; i++) {
        const struct granted_device *is = &devices->v[i];

        checkpoint__v1__claim_device__init(&all[i]);
        all[i].pool = is->pool;
        all[i].device = is->device;
        if (is->share_id)
            all[i].share_id = is->share_id;
        all[i].cdi = is->cdi.v;
        all[i].n_cdi = is->cdi.len;
        all[i].requests = is->requests.v;
        all[i].n_requests = is->requests.len;
        rows[i] = &all[i];
    }
    return rows;
}

static void free_packed(Checkpoint__V1__ClaimDevice **rows)
{
    if (rows)
        free(rows[0]);
    free(rows);
}

uint8_t *record_of_claim(const struct claim *claim, const char *boot_id, size_t *bytes_len)
{
    Checkpoint__V1__Claim row = CHECKPOINT__V1__CLAIM__INIT;
    Checkpoint__V1__ClaimUser *users;
    uint8_t *bytes;

    row.uid = claim->uid;
    row.driver = claim->driver;
    row.namespace_ = claim->pod_namespace;
    row.name = claim->name;
    row.state = (char *)claim_state_name(claim->state);
    row.has_response = claim->response != NULL;
    row.response = (ProtobufCBinaryData){claim->response_bytes, claim->response};
    row.sent = claim->sent;
    row.unanswered = claim->unanswered;
    row.moved = claim->moved;
    row.local = claim->local;
    row.alone = claim->alone;
    row.prepared_ms = claim->prepared_ms;
    if (claim->prepared_ms > 0)
        row.boot_id = (char *)boot_id;
    row.users = mem_alloc(claim->users_len, sizeof *row.users);
    row.n_users = claim->users_len;
    users = mem_alloc(claim->users_len, sizeof *users);
    for (size_t i = 0; i < claim->users_len; i++) {
        checkpoint__v1__claim_user__init(&users[i]);
        users[i].sandbox_id = claim->users[i].sandbox_id;
        users[i].container = claim->users[i].container;
        users[i].pod = claim->users[i].pod;
        users[i].pod_uid = claim->users[i].pod_uid;
        users[i].former = claim->users[i].former;
        row.users[i] = &users[i];
    }
    row.former = pack_devices(&claim->former);
    row.n_former = claim->former.len;
    row.lapsed = pack_devices(&claim->lapsed);
    row.n_lapsed = claim->lapsed.len;
    bytes = record_pack(&row.base, bytes_len);
    free(row.users);
    free(users);
    free_packed(row.former);
    free_packed(row.lapsed);
    return bytes;
}

/* One may be asked for before its row is read. */
static bool is_known(const struct claims *claims, const Checkpoint__V1__Claim *row)
{
    const struct claim *claim = claims_find(claims, row->uid, row->driver);

    return claim && claim->state != CLAIM_NEW;
}

static bool response_valid(const Checkpoint__V1__Claim *row, enum claim_state state)
{
    struct granted devices = {0};
    bool valid =
        !row->has_response || granted_read(&devices, row->response.data, row->response.len);

    granted_fini(&devices);
    return valid && (row->has_response || (state != CLAIM_PREPARED && row->response.len == 0));
}

static bool claim_row_valid(const struct claims *claims, const Checkpoint__V1__Claim *row,
                            const struct devicemgr_record *record, enum claim_state *state)
{
    if (strcmp(row->uid, record->key[0]) != 0 || strcmp(row->driver, record->key[1]) != 0 ||
        row->uid[0] == '\0' || row->driver[0] == '\0' || !claim_state_find(row->state, state))
        return false;
    return utf8_is_text(row->uid) && utf8_is_text(row->driver) && response_valid(row, *state) &&
           row->response.len <= CLAIM_RESPONSE_BYTES_MAX &&
           claims->response_bytes + row->response.len <= CLAIMS_BYTES_MAX &&
           claims_len(claims) < CLAIMS_MAX && !is_known(claims, row);
}

static bool is_of_boot(const Checkpoint__V1__Claim *row, uint64_t now_ms, const char *boot_id)
{
    return same_boot(row->boot_id, boot_id) && row->prepared_ms <= now_ms;
}

static void restore_users(struct claim *claim, uint64_t now_ms, const Checkpoint__V1__Claim *row)
{
    for (size_t i = 0; i < row->n_users; i++) {
        const Checkpoint__V1__ClaimUser *user = row->users[i];

        if (claim_add_user(claim, user->sandbox_id, user->container, user->pod, user->pod_uid,
                           now_ms) &&
            user->former)
            claim_set_former(claim, user->sandbox_id, user->container);
    }
    for (size_t i = 0; i < row->n_former; i++) {
        const Checkpoint__V1__ClaimDevice *is = row->former[i];
        const struct granted_device device = {.pool = is->pool,
                                              .device = is->device,
                                              .share_id = is->share_id[0] ? is->share_id : NULL,
                                              .cdi = {is->cdi, is->n_cdi}};

        claim_add_former(claim, &device);
    }
}

static void restore_lapsed(struct claim *claim, const Checkpoint__V1__Claim *row)
{
    struct granted lapsed = {0};

    for (size_t i = 0; i < row->n_lapsed && i < CLAIM_FORMER_MAX; i++) {
        const Checkpoint__V1__ClaimDevice *is = row->lapsed[i];
        struct granted_device *to = granted_add(&lapsed, is->pool, is->device,
                                                is->share_id[0] ? is->share_id : NULL, false);

        ids_copy(&to->cdi, is->cdi, is->n_cdi);
        ids_copy(&to->requests, is->requests, is->n_requests);
    }
    claim_set_lapsed(claim, &lapsed);
}

int record_restore_claim(struct claims *claims, uint64_t now_ms, const char *boot_id,
                         const struct devicemgr_record *record)
{
    Checkpoint__V1__Claim *row =
        checkpoint__v1__claim__unpack(NULL, record->value_bytes, record->value);
    enum claim_state state;
    int result = -1;

    if (row && claim_row_valid(claims, row, record, &state)) {
        struct claim *claim = claims_edit(claims, row->uid, row->driver);

        if (!claim)
            claim = claims_add(claims, row->uid, row->driver, row->namespace_, row->name);
        if (row->has_response &&
            !claims_set_response(claims, claim, row->response.data, row->response.len))
            abort(); /* it was looked at */
        claim_set_restored(claim, state, now_ms, row->sent, row->unanswered, row->local);
        if (row->moved)
            claim_set_moved(claim, true);
        if (row->alone)
            claim_set_alone(claim);
        if (is_of_boot(row, now_ms, boot_id))
            claim_set_prepared(claim, row->prepared_ms);
        claim->stored = true;
        restore_users(claim, now_ms, row);
        restore_lapsed(claim, row);
        result = 0;
    }
    checkpoint__v1__claim__free_unpacked(row, NULL);
    return result;
}
