/*
 * What the core asks for (devicemgr/ports.h), and who does it: plugins, the checkpoint's worker,
 * the runtime's lister, the host's owner.
 */
#ifndef SHIM_CORE_PORTS_H
#define SHIM_CORE_PORTS_H

#include "devicemgr/ports.h"

/* Their `user` is the struct host. */
extern const struct devicemgr_ports PORTS;

#endif
