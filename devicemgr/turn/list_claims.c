/*
 * The list of claims.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

/* One, with what it is sorted by. */
struct entry {
    const struct claim *claim;
    const char *key[DEVICEMGR_CLAIM_KEY];
};

static bool is_meant(const struct state *state, const struct devicemgr_which *which,
                     const struct entry *entry)
{
    if (which->driver && strcmp(which->driver, entry->claim->driver) != 0)
        return false;
    if (which->pod_namespace && strcmp(which->pod_namespace, entry->claim->pod_namespace) != 0)
        return false;
    return (!which->pod || meant_uses(state, which->pod, NULL, entry->claim)) &&
           (!which->after || meant_order(entry->key, which->after, DEVICEMGR_CLAIM_KEY) > 0);
}

static int by_key(const void *a, const void *b)
{
    return meant_order(((const struct entry *)a)->key, ((const struct entry *)b)->key,
                       DEVICEMGR_CLAIM_KEY);
}

/* The caller frees them. */
static struct devicemgr_granted *devices_of(const struct claim *claim)
{
    struct devicemgr_granted *devices = mem_alloc(claim->devices.len, sizeof *devices);

    for (size_t i = 0; i < claim->devices.len; i++) {
        const struct granted_device *is = &claim->devices.v[i];
        const struct granted_device *allocated = granted_find(&claim->allocation, is);

        devices[i] = (struct devicemgr_granted){
            .pool = is->pool,
            .device = is->device,
            .share_id = is->share_id,
            .admin = allocated && allocated->admin,
            .cdi = (const char *const *)is->cdi.v,
            .cdi_len = is->cdi.len,
        };
    }
    return devices;
}

/* The caller frees them. */
static struct devicemgr_claim_use *users_of(const struct state *state, const struct claim *claim)
{
    struct devicemgr_claim_use *users = mem_alloc(claim->users_len, sizeof *users);

    for (size_t i = 0; i < claim->users_len; i++) {
        const struct claim_user *is = &claim->users[i];

        users[i] = (struct devicemgr_claim_use){
            .pod = is->pod,
            .pod_uid = meant_user_uid(state, is),
            .container = is->container,
        };
    }
    return users;
}

static bool tell(const struct devicemgr *mgr, const struct state *state, const struct claim *claim,
                 bool (*each)(void *user, const struct devicemgr_claim_row *claim), void *user)
{
    struct devicemgr_granted *devices = devices_of(claim);
    struct devicemgr_claim_use *users = users_of(state, claim);
    const struct devicemgr_claim_row row = {
        .uid = claim->uid,
        .pod_namespace = claim->pod_namespace,
        .name = claim->name,
        .driver = claim->driver,
        .state = claim_state_word(claim->state),
        .since_ms_ago = ago(state->now_ms, claim->since_ms),
        .stored = claim->durable,
        .prepared = claim->prepared_ms > 0,
        .prepared_ms_ago = ago(state->now_ms, claim->prepared_ms),
        .local = claim->local,
        .asks = task_asks(task_find(&mgr->tasks, claim)),
        .devices = devices,
        .devices_len = claim->devices.len,
        .users = users,
        .users_len = claim->users_len,
    };
    bool more = each(user, &row);

    free(devices);
    free(users);
    return more;
}

void devicemgr_claim_rows(const struct devicemgr *mgr, uint64_t now_ms,
                          const struct devicemgr_which *which,
                          bool (*each)(void *user, const struct devicemgr_claim_row *claim),
                          void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct entry *entries = mem_alloc(claims_len(&state->claims) + 1, sizeof *entries);
    size_t len = 0;
    bool more = true;

    for (const struct claim *c = state->claims.by_key; c; c = c->hh.next) {
        entries[len] = (struct entry){c, {c->pod_namespace, c->name, c->uid, c->driver}};
        len += is_meant(state, which, &entries[len]);
    }
    qsort(entries, len, sizeof *entries, by_key);
    for (size_t i = 0; more && i < len; i++)
        more = tell(mgr, state, entries[i].claim, each, user);
    free(entries);
    free(state);
}
