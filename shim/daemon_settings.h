/*
 * The daemon's settings while it runs: read again, and the log's level set; its rooms are told.
 */
#ifndef SHIM_DAEMON_SETTINGS_H
#define SHIM_DAEMON_SETTINGS_H

#include "shim/core/host.h"
#include "shim/kubelet/feed.h"
#include "shim/settings.h"

/* As settings_reload(). `feed` NULL: there is none; `ready`: the service manager was told so. */
int daemon_reload(struct settings *settings, struct host *host, struct feed *feed, bool ready,
                  struct settings_reloaded *out) __attribute__((warn_unused_result));

/* As settings_set_level(); the bridge is told. */
void daemon_set_level(struct settings *settings, struct feed *feed, int level);

#endif
