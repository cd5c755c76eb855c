#include "devicemgr/things/claim.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/things/enum.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

static const char *const NAMES[CLAIM_STATES] = {
    [CLAIM_ASKED] = "asked",       [CLAIM_SENT] = "sent",
    [CLAIM_PREPARED] = "prepared", [CLAIM_UNPREPARING] = "unpreparing",
    [CLAIM_OWED] = "owed",
};

const char *claim_state_name(enum claim_state state)
{
    return NAMES[state];
}

const char *claim_state_word(enum claim_state state)
{
    if (state == CLAIM_NEW)
        return "new";
    return state == CLAIM_GONE ? "gone" : NAMES[state];
}

bool claim_state_find(const char *name, enum claim_state *out)
{
    return ENUM_FIND(NAMES, name, out);
}

bool claim_state_kept(enum claim_state state)
{
    return NAMES[state] != NULL;
}

/* ---- the table ---- */

void claims_fini(struct claims *table)
{
    while (table->by_key)
        claims_remove(table, table->by_key);
}

size_t claims_len(const struct claims *table)
{
    return HASH_COUNT(table->by_key);
}

const struct claim *claims_find(const struct claims *table, const char *uid, const char *driver)
{
    const char *parts[] = {uid, driver};
    const struct claim *claim;
    struct mem_sought sought;

    mem_seek(&sought, parts, sizeof parts / sizeof *parts);
    HASH_FIND(hh, table->by_key, sought.key, sought.key_bytes, claim);
    mem_sought_drop(&sought);
    return claim;
}

bool claims_have(const struct claims *table, const char *uid)
{
    const struct claims_of *of = table->by_driver;

    while (of && !claims_find(table, uid, of->driver))
        of = of->hh.next;
    return of != NULL;
}

struct claim *claims_edit(struct claims *table, const char *uid, const char *driver)
{
    return (struct claim *)claims_find(table, uid, driver);
}

const struct claims_of *claims_of(const struct claims *table, const char *driver)
{
    const struct claims_of *of;

    HASH_FIND_STR(table->by_driver, driver, of);
    return of;
}

static struct claims_of *ensure_of(struct claims *table, const char *driver)
{
    struct claims_of *of = (struct claims_of *)claims_of(table, driver);

    if (of)
        return of;
    of = mem_alloc(1, sizeof *of);
    of->driver = mem_strdup(driver);
    HASH_ADD_KEYPTR(hh, table->by_driver, of->driver, strlen(of->driver), of);
    return of;
}

struct claim *claims_add(struct claims *table, const char *uid, const char *driver,
                         const char *pod_namespace, const char *name)
{
    const char *parts[] = {uid, driver};
    struct claim *claim = mem_alloc(1, sizeof *claim);

    assert(!claims_find(table, uid, driver));
    claim->uid = mem_strdup(uid);
    claim->driver = mem_strdup(driver);
    claim->pod_namespace = mem_strdup(pod_namespace);
    claim->name = mem_strdup(name);
    claim->key = mem_key(parts, sizeof parts / sizeof *parts, &claim->key_bytes);
    HASH_ADD_KEYPTR(hh, table->by_key, claim->key, claim->key_bytes, claim);
    claim->of = ensure_of(table, driver);
    DL_APPEND(claim->of->first, claim);
    claim->of->len++;
    return claim;
}

static void drop_former_unused(struct claim *claim)
{
    for (size_t i = 0; claim->former.len > 0 && i < claim->users_len; i++) {
        if (claim->users[i].former)
            return;
    }
    granted_fini(&claim->former);
}

void claim_drop_user(struct claim *claim, size_t index)
{
    struct claim_user *user = &claim->users[index];

    free(user->sandbox_id);
    free(user->container);
    free(user->pod);
    free(user->pod_uid);
    *user = claim->users[--claim->users_len];
    drop_former_unused(claim);
}

static void drop_users(struct claim *claim)
{
    while (claim->users_len > 0)
        claim_drop_user(claim, 0);
    free(claim->users);
    claim->users = NULL;
    granted_fini(&claim->former); /* of a row that nobody was in */
}

static void leave(struct claims *table, struct claim *claim)
{
    struct claims_of *of = claim->of;

    DL_DELETE(of->first, claim);
    of->owed -= claim->state == CLAIM_OWED;
    of->owed_stored -= claim->owed_stored;
    if (--of->len > 0)
        return;
    HASH_DEL(table->by_driver, of);
    free(of->driver);
    free(of);
}

void claims_remove(struct claims *table, struct claim *claim)
{
    HASH_DEL(table->by_key, claim);
    leave(table, claim);
    table->response_bytes -= claim->response_bytes;
    free(claim->uid);
    free(claim->driver);
    free(claim->pod_namespace);
    free(claim->name);
    free(claim->response);
    granted_fini(&claim->devices);
    granted_fini(&claim->lapsed);
    granted_fini(&claim->allocation);
    drop_users(claim);
    free(claim->key);
    free(claim);
}

/* ---- its states ---- */

/* Which may follow which: the picture, and the ways back. */
static const unsigned NEXT[CLAIM_STATES] = {
    [CLAIM_NEW] = 1u << CLAIM_ASKED | 1u << CLAIM_SENT,
    [CLAIM_ASKED] = 1u << CLAIM_SENT | 1u << CLAIM_OWED | 1u << CLAIM_GONE,
    [CLAIM_SENT] = 1u << CLAIM_SENT | 1u << CLAIM_ASKED | 1u << CLAIM_PREPARED |
                   1u << CLAIM_UNPREPARING | 1u << CLAIM_OWED,
    [CLAIM_PREPARED] =
        1u << CLAIM_PREPARED | 1u << CLAIM_SENT | 1u << CLAIM_UNPREPARING | 1u << CLAIM_OWED,
    [CLAIM_UNPREPARING] = 1u << CLAIM_SENT | 1u << CLAIM_PREPARED | 1u << CLAIM_UNPREPARING |
                          1u << CLAIM_OWED | 1u << CLAIM_GONE,
    [CLAIM_OWED] = 1u << CLAIM_ASKED | 1u << CLAIM_SENT | 1u << CLAIM_PREPARED |
                   1u << CLAIM_UNPREPARING | 1u << CLAIM_GONE,
    [CLAIM_GONE] = 1u << CLAIM_NEW | 1u << CLAIM_ASKED | 1u << CLAIM_UNPREPARING | 1u << CLAIM_OWED,
};

bool claim_local_doubted(const struct claim *claim)
{
    return claim->local &&
           !(claim->allocation_known && granted_same(&claim->allocation, &claim->devices));
}

static void note_owed_stored(struct claim *claim, bool stored)
{
    claim->of->owed_less = claim->of->owed_less || (claim->owed_stored && !stored);
    claim->of->owed_stored += (size_t)stored - (size_t)claim->owed_stored;
    claim->owed_stored = stored;
}

static void enter(struct claim *claim, enum claim_state state, uint64_t now_ms)
{
    claim->of->owed += (size_t)(state == CLAIM_OWED) - (size_t)(claim->state == CLAIM_OWED);
    if (claim->state != state || claim->since_ms == 0)
        claim->since_ms = now_ms;
    claim->state = state;
    claim->sent = (claim->sent || state == CLAIM_SENT) && state != CLAIM_NEW;
    claim->unanswered =
        state == CLAIM_SENT || (claim->unanswered && state != CLAIM_PREPARED && state != CLAIM_NEW);
    claim->moved = claim->moved && state != CLAIM_NEW;
    claim->earlier = claim->earlier && state == CLAIM_OWED;
    if (state == CLAIM_NEW) /* no kubelet has it in its books, but one killed just then */
        granted_fini(&claim->lapsed);
    if (state == CLAIM_SENT) /* of what is allocated now */
        claim->local = claim->local && !claim_local_doubted(claim);
}

void claim_set_state(struct claim *claim, enum claim_state state, uint64_t now_ms)
{
    assert(NEXT[claim->state] & 1u << state);
    if (claim->state == CLAIM_OWED && (claim->durable || claim->commit != 0))
        note_owed_stored(claim, true);
    enter(claim, state, now_ms);
    claim->durable = false;
    claim->commit = 0;
}

void claim_set_restored(struct claim *claim, enum claim_state state, uint64_t now_ms, bool sent,
                        bool unanswered, bool local)
{
    assert(claim->state == CLAIM_NEW && claim_state_kept(state));
    enter(claim, state, now_ms);
    claim->durable = true;
    claim->earlier = state == CLAIM_OWED;
    claim->sent = sent;
    claim->unanswered = unanswered || state == CLAIM_SENT;
    claim->local = local;
}

void claim_set_moved(struct claim *claim, bool moved)
{
    assert(claim_state_kept(claim->state));
    claim->moved = moved;
}

void claim_set_prepared(struct claim *claim, uint64_t prepared_ms)
{
    claim->prepared_ms = prepared_ms;
}

void claim_add_former(struct claim *claim, const struct granted_device *device)
{
    struct granted_device *added;

    if (claim->former.len == CLAIM_FORMER_MAX || granted_find(&claim->former, device))
        return;
    added = granted_add(&claim->former, device->pool, device->device, device->share_id, false);
    ids_copy(&added->cdi, device->cdi.v, device->cdi.len);
}

/* Its driver has answered others: what it had is kept, if anybody has it. */
static void keep_former(struct claim *claim)
{
    bool used = false;

    for (size_t i = 0; i < claim->users_len; i++) {
        used = used || !claim->users[i].former;
        claim->users[i].former = true;
    }
    for (size_t i = 0; used && i < claim->devices.len; i++)
        claim_add_former(claim, &claim->devices.v[i]);
}

bool claims_set_response(struct claims *table, struct claim *claim, const void *response,
                         size_t response_bytes)
{
    struct granted devices = {0};
    uint8_t *copy;

    if (!granted_read(&devices, response, response_bytes))
        return false;
    if (!granted_same(&devices, &claim->devices)) {
        claim->local = false;
        keep_former(claim);
    }
    granted_lapse(&claim->lapsed, &claim->devices, &devices, CLAIM_FORMER_MAX);
    claim->devices = devices;
    claim->held_told = false;
    copy = mem_alloc(response_bytes, 1);
    if (response_bytes > 0)
        memcpy(copy, response, response_bytes);
    table->response_bytes += response_bytes - claim->response_bytes;
    free(claim->response);
    claim->response = copy;
    claim->response_bytes = response_bytes;
    return true;
}

void claim_forget_allocation(struct claim *claim)
{
    granted_fini(&claim->allocation);
    claim->allocation_known = claim->allocated = false;
    claim->alone = claim->alone && claim->users_len > 0;
}

void claims_renew(struct claims *table, struct claim *claim, uint64_t now_ms)
{
    claim_set_state(claim, CLAIM_NEW, now_ms);
    table->response_bytes -= claim->response_bytes;
    claim->response_bytes = 0;
    claim->prepared_ms = 0;
    free(claim->response);
    claim->response = NULL;
    granted_fini(&claim->devices);
    drop_users(claim);
    claim->alone = claim->alone && claim->allocated;
    claim->local = false;
    claim->anew_ms = claim->anew_pause_ms = 0;
    claim->held_told = false;
}

bool claim_looks(const struct claim *claim)
{
    size_t i = 0;

    while (i < claim->allocation.len && !claim->allocation.v[i].admin)
        i++;
    return i < claim->allocation.len;
}

bool claim_has_cdi(const struct claim *claim, const char *name)
{
    return granted_named(&claim->devices, name);
}

struct claim_user *claim_find_user(const struct claim *claim, const char *sandbox_id,
                                   const char *container)
{
    for (size_t i = 0; i < claim->users_len; i++) {
        if (strcmp(claim->users[i].sandbox_id, sandbox_id) == 0 &&
            strcmp(claim->users[i].container, container) == 0)
            return &claim->users[i];
    }
    return NULL;
}

bool claim_add_user(struct claim *claim, const char *sandbox_id, const char *container,
                    const char *pod, const char *pod_uid, uint64_t asked_ms)
{
    struct claim_user *user = claim_find_user(claim, sandbox_id, container);

    if (user) {
        bool former = user->former;

        user->asked_ms = asked_ms;
        user->former = false;
        drop_former_unused(claim);
        return former;
    }
    if (claim->users_len == CLAIM_USERS_MAX)
        return false;
    claim->users = mem_grow(claim->users, claim->users_len, sizeof *claim->users);
    claim->users[claim->users_len++] = (struct claim_user){.sandbox_id = mem_strdup(sandbox_id),
                                                           .container = mem_strdup(container),
                                                           .pod = mem_strdup(pod),
                                                           .pod_uid = mem_strdup(pod_uid),
                                                           .asked_ms = asked_ms};
    return true;
}

void claim_set_former(struct claim *claim, const char *sandbox_id, const char *container)
{
    struct claim_user *user = claim_find_user(claim, sandbox_id, container);

    assert(user);
    user->former = true;
}

void claim_set_lapsed(struct claim *claim, struct granted *lapsed)
{
    granted_fini(&claim->lapsed);
    claim->lapsed = *lapsed;
    *lapsed = (struct granted){0};
}

const struct granted *claim_devices_of(const struct claim *claim, const struct claim_user *user)
{
    return user->former ? &claim->former : &claim->devices;
}

void claim_note_asked(struct claim *claim, const char *sandbox_id, const char *container,
                      uint64_t asked_ms)
{
    struct claim_user *user = claim_find_user(claim, sandbox_id, container);

    if (user)
        user->asked_ms = asked_ms;
}

bool claim_tell_held_once(struct claim *claim)
{
    bool told = claim->held_told;

    claim->held_told = true;
    return !told;
}

bool claim_anew(struct claim *claim, uint64_t now_ms, uint64_t *pause_ms)
{
    if (now_ms < claim->anew_ms)
        return false;
    if (now_ms >= later_by(claim->anew_ms, ANEW_MS_MAX))
        claim->anew_pause_ms = 0; /* it has helped for a while */
    claim->anew_pause_ms = longer_pause(claim->anew_pause_ms, ANEW_MS_MIN, ANEW_MS_MAX);
    claim->anew_ms = later_by(now_ms, claim->anew_pause_ms);
    *pause_ms = claim->anew_pause_ms;
    return true;
}

void claim_note_lost(struct claim *claim)
{
    if (!claim_is_lost(claim))
        claim->lost++;
}

void claim_note_answered(struct claim *claim)
{
    claim->lost = 0;
}

bool claim_is_lost(const struct claim *claim)
{
    return claim->lost == CLAIM_LOST_MAX;
}

void claim_set_doubted(struct claim *claim)
{
    claim->sent = true;
}

void claim_set_local(struct claim *claim)
{
    claim->local = true;
}

void claim_set_alone(struct claim *claim)
{
    claim->alone = true;
}

static bool is_alone(const struct granted *allocation)
{
    for (size_t i = 0; i < allocation->len; i++) {
        if (allocation->v[i].share_id || allocation->v[i].admin)
            return false;
    }
    return true;
}

void claim_set_allocation(struct claim *claim, bool allocated, struct granted *granted)
{
    granted_fini(&claim->allocation);
    claim->allocation = *granted;
    *granted = (struct granted){0};
    claim->allocated = allocated;
    claim->allocation_known = true;
    if (allocated)
        claim->alone = is_alone(&claim->allocation);
}

void claim_set_unstored(struct claim *claim)
{
    claim->durable = claim->stored = false;
    claim->commit = 0;
}

void claim_carry(struct claim *claim, uint64_t commit)
{
    if (!claim->durable)
        claim->commit = commit;
}

void claim_committed(struct claim *claim, bool durable)
{
    claim->commit = 0;
    claim->durable = durable;
    if (durable)
        note_owed_stored(claim, false);
}
