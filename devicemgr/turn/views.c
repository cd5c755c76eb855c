/*
 * What is read of it, between turns.
 */
#include "devicemgr/rules/lifted.h"
#include "devicemgr/rules/shown.h"
#include "devicemgr/turn/turn.h"

void devicemgr_capacity(const struct devicemgr *mgr,
                        void (*each)(void *user, const struct devicemgr_capacity *capacity),
                        void *user)
{
    capacity_each(&mgr->state, each, user);
}

void devicemgr_kept(const struct devicemgr *mgr, struct devicemgr_kept *kept)
{
    const struct state *state = &mgr->state;

    *kept = (struct devicemgr_kept){.creates = HASH_COUNT(mgr->creates.by_number),
                                    .calls = calls_len(&mgr->calls),
                                    .checks = checks_len(&mgr->checks),
                                    .allocations = HASH_COUNT(state->allocations.by_key),
                                    .pods = HASH_COUNT(state->pods.by_uid),
                                    .sandboxes = HASH_COUNT(state->pods.sandboxes)};
}

void devicemgr_health(const struct devicemgr *mgr, struct devicemgr_health *health)
{
    const struct state *state = &mgr->state;

    *health = (struct devicemgr_health){.unread = state->unread,
                                        .unstored = state->checkpoint.error,
                                        .unstored_ms = state->checkpoint.failing_ms,
                                        .listed = state->listing.listed};
}

/* Whether one of these rows, which are yet to be durable, is of a plugin that registered in this
 * life. */
static bool has_registered(const struct state *state, const struct dirty_row *rows)
{
    for (const struct dirty_row *row = rows; row; row = row->hh.next) {
        const struct resource *resource = row->kind == DEVICEMGR_RECORD_RESOURCE
                                              ? resources_find(state->resources, row->parts[0])
                                              : NULL;

        if (resource && resource->endpoint.origin == ENDPOINT_REGISTERED)
            return true;
    }
    return false;
}

bool devicemgr_registrations_unstored(const struct devicemgr *mgr)
{
    const struct state *state = &mgr->state;

    for (const struct resource *r = state->resources; r; r = r->hh.next) {
        if (endpoint_awaits_first_list(&r->endpoint))
            return true;
    }
    return has_registered(state, state->dirty.rows) ||
           has_registered(state, state->checkpoint.carried);
}

uint64_t devicemgr_shown_version(const struct devicemgr *mgr)
{
    return shown_version(&mgr->state);
}

void devicemgr_shown(const struct devicemgr *mgr,
                     void (*each)(void *user, const struct devicemgr_shown *shown), void *user)
{
    shown_each(&mgr->state, each, user);
}

void devicemgr_shown_devices(const struct devicemgr *mgr, const char *resource,
                             void (*each)(void *user, const struct devicemgr_shown_device *device),
                             void *user)
{
    shown_devices(&mgr->state, resource, each, user);
}

bool devicemgr_shown_some(const struct devicemgr *mgr, const char *resource, const uint32_t *places,
                          size_t len,
                          void (*each)(void *user, uint32_t place,
                                       const struct devicemgr_shown_device *device, bool marked),
                          void *user)
{
    return shown_some(&mgr->state, resource, places, len, each, user);
}

uint64_t devicemgr_lifted_version(const struct devicemgr *mgr)
{
    return lifted_version(&mgr->state);
}

void devicemgr_lifted(const struct devicemgr *mgr,
                      void (*each)(void *user, const struct devicemgr_lifted *lifted), void *user)
{
    lifted_each(&mgr->state, each, user);
}

void devicemgr_lifted_devices(const struct devicemgr *mgr, const char *resource,
                              void (*each)(void *user,
                                           const struct devicemgr_lifted_device *device),
                              void *user)
{
    lifted_devices(&mgr->state, resource, each, user);
}
