/*
 * What the daemon's rooms say of what came to pass, as events.
 */
#ifndef SHIM_DAEMON_EVENTS_H
#define SHIM_DAEMON_EVENTS_H

#include "config/config.h"
#include "devicemgr/ports.h"
#include "shim/events/events.h"

/* events_start(), as the settings have it. */
struct events *daemon_events_start(uv_loop_t *loop, const struct config *config);
/* The device manager's. */
void daemon_event_of_core(struct events *events, const struct devicemgr_event *event);
/* The gate's: gate_ops.told(). */
void daemon_event_of_gate(struct events *events, const char *word, const char *words);

#endif
