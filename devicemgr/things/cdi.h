/*
 * What runtimes say of CDI devices.
 */
#ifndef DEVICEMGR_THINGS_CDI_H
#define DEVICEMGR_THINGS_CDI_H

#include "devicemgr/things/ids.h"

/*
 * Adds the names of the devices that a runtime cannot resolve, by its words: containerd and CRI-O
 * pass on those of CDI's own library (InjectDevices in pkg/cdi/cache.go), `... unresolvable CDI
 * devices NAME, NAME`, with other words around. At most UNRESOLVED_MAX.
 */
void cdi_unresolved(const char *words, struct ids *names);

#endif
