/*
 * Whether a runtime reads CDI devices, by what it says of itself. CRI has no word for it:
 * StatusResponse's features do not name it, and a runtime that does not read them starts a
 * container without them.
 */
#ifndef SHIM_RUNTIME_CDI_SUPPORT_H
#define SHIM_RUNTIME_CDI_SUPPORT_H

#include <stdbool.h>

#include "devicemgr/dra.h"

/* Whether its settings have a word in it: they are to be asked for. */
bool cdi_support_by_settings(const char *name);

/*
 * `name` and `version` are VersionResponse's, `settings` is the JSON behind "config" in
 * StatusResponse.info (verbose), or NULL: not known.
 *
 *   containerd  before 1.7   none
 *               1.7          by enableCDI, off by default; the field from 1.7.2 on
 *               from 2.0 on  by enableCDI, on by default; what does not name it has it always on
 *   cri-o       before 1.24  none
 *               before 1.28  annotations
 *               from 1.28 on the field, too
 *   others      not known
 *
 * (containerd's pkg/cri/config and internal/cri/config, CRI-O's
 * internal/factory/container/device_linux.go.)
 */
enum devicemgr_cdi cdi_support(const char *name, const char *version, const char *settings);

#endif
