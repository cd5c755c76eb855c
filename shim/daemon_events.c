#include "shim/daemon_events.h"

#include <stdlib.h>

#include "shim/path.h"

/* Beside the socket, where nothing outlives the boot. */
#define TOLD_NAME "events-told"

struct events *daemon_events_start(uv_loop_t *loop, const struct config *config)
{
    char *told = path_beside(config->listen, TOLD_NAME);
    struct events *events = events_start(loop, config->state_dir, told);

    free(told);
    return events;
}

void daemon_event_of_core(struct events *events, const struct devicemgr_event *event)
{
    static const char *const KINDS[DEVICEMGR_EVENT_KINDS] = {
        [DEVICEMGR_EVENT_REGISTERED] = "registered",
        [DEVICEMGR_EVENT_LOST] = "lost",
        [DEVICEMGR_EVENT_BACK] = "back",
        [DEVICEMGR_EVENT_REMOVED] = "removed",
        [DEVICEMGR_EVENT_ALLOCATED] = "allocated",
        [DEVICEMGR_EVENT_RELEASED] = "released",
        [DEVICEMGR_EVENT_TAKEN] = "taken",
        [DEVICEMGR_EVENT_REPLACED] = "replaced",
        [DEVICEMGR_EVENT_HELD_BACK] = "taints-held-back",
        [DEVICEMGR_EVENT_REFUSED] = "refused",
        [DEVICEMGR_EVENT_DRIVER_CAME] = "driver-came",
        [DEVICEMGR_EVENT_DRIVER_WENT] = "driver-went",
        [DEVICEMGR_EVENT_DRIVER_MOVED] = "driver-moved",
        [DEVICEMGR_EVENT_SLICES_WIPED] = "slices-wiped",
        [DEVICEMGR_EVENT_CLAIM_PREPARED] = "claim-prepared",
        [DEVICEMGR_EVENT_CLAIM_OWED] = "claim-owed",
        [DEVICEMGR_EVENT_CLAIM_UNPREPARED] = "claim-unprepared",
        [DEVICEMGR_EVENT_ENDING] = "ending",
        [DEVICEMGR_EVENT_ENDED] = "ended",
        [DEVICEMGR_EVENT_SPARED] = "spared",
        [DEVICEMGR_EVENT_SHUTDOWN] = "shutdown",
    };
    const struct event_said said = {.kind = KINDS[event->kind],
                                    .again = event->again,
                                    .resource = event->resource,
                                    .ids = event->ids,
                                    .ids_len = event->ids_len,
                                    .ids_total = event->ids_total,
                                    .pod_uid = event->pod_uid,
                                    .pod_namespace = event->pod_namespace,
                                    .pod_name = event->pod_name,
                                    .container = event->container,
                                    .claim_uid = event->claim_uid,
                                    .claim_namespace = event->claim_namespace,
                                    .claim_name = event->claim_name,
                                    .word = event->word,
                                    .text = event->text};

    events_say(events, &said);
}

void daemon_event_of_gate(struct events *events, const char *word, const char *words)
{
    const struct event_said said = {.kind = "gate", .word = word, .text = words};

    events_say(events, &said);
}
