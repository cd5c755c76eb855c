/*
 * The daemon: its rooms made, and bound to each other, which none of them knows; signals in.
 *
 *   relay/ ──calls──▶ core/ ◀──what is shown, and taken── kubelet/
 *     ▲                 │                                    │
 *     │                 └── plugins/, runtime/               │
 *     └────────── who is a kubelet, and waits ───────────────┘
 */
#ifndef SHIM_DAEMON_H
#define SHIM_DAEMON_H

#include "shim/settings.h"

/* Runs until it is told to stop; SIGHUP changes `settings`. 0, or -ENOMEM, with a log line: it has
 * not begun. */
int daemon_run(struct settings *settings) __attribute__((warn_unused_result));

#endif
