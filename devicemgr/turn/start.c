/*
 * The start: what the checkpoint has, row by row, and what follows once all of it is in.
 */
#include "devicemgr/turn/turn.h"

#include "devicemgr/books/ledger.h"
#include "devicemgr/books/ordered.h"
#include "devicemgr/books/record.h"
#include "devicemgr/machines/plugin.h"
#include "devicemgr/things/limits.h"

static int restore(struct state *state, const struct devicemgr_record *record)
{
    switch (record->kind) {
    case DEVICEMGR_RECORD_RESOURCE:
        return record_restore_resource(&state->resources, state->now_ms, state->settings.boot_id,
                                       record);
    case DEVICEMGR_RECORD_ALLOCATION:
        return record_restore_allocation(&state->allocations, state->now_ms + OUTCOME_MS, record);
    case DEVICEMGR_RECORD_POD:
        return record_restore_pod(&state->pods, state->now_ms, record);
    case DEVICEMGR_RECORD_ORDER:
        return record_restore_order(&state->orders, state->now_ms, state->settings.boot_id, record);
    case DEVICEMGR_RECORD_DRIVER:
        return record_restore_driver(&state->drivers, state->now_ms, record);
    case DEVICEMGR_RECORD_CLAIM:
        return record_restore_claim(&state->claims, state->now_ms, state->settings.boot_id, record);
    case DEVICEMGR_RECORD_ENDING:
        return record_restore_ending(&state->endings, state->now_ms, state->settings.boot_id,
                                     record);
    case DEVICEMGR_RECORD_SHUTDOWN:
        return record_restore_shutdown(&state->shutdown, state->now_ms, state->settings.boot_id,
                                       record);
    case DEVICEMGR_RECORD_LOSS:
        listing_rows_lost(state);
        return 0;
    }
    return -1;
}

int devicemgr_restore(struct devicemgr *mgr, uint64_t now_ms, const struct devicemgr_record *record)
{
    int r;

    state_at(&mgr->state, now_ms);
    r = restore(&mgr->state, record);
    if (r < 0)
        devicemgr_rows_lost(mgr);
    return r;
}

void devicemgr_rows_lost(struct devicemgr *mgr)
{
    listing_rows_lost(&mgr->state);
}

void devicemgr_rows_unread(struct devicemgr *mgr, const char *why)
{
    state_set_unread(&mgr->state, why);
}

void devicemgr_restored(struct devicemgr *mgr, uint64_t now_ms)
{
    struct state *state = &mgr->state;

    state_at(state, now_ms);
    state_set_unread(state, NULL);
    tainted_started(state);
    ledger_restored(state);
    ordered_restored(state);
    plugin_restored(state);
    listing_restored(state);
    showing_times(state);
    kubelet_restored(state);
    tasks_restored(&mgr->tasks, state->listing.rows_lost);
    shutdowns_restored(&mgr->shutdowns);
    turn_shut_down(mgr); /* before what was asked for in another boot is begun anew */
    ends_restored(&mgr->ends);
}
