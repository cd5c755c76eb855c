/*
 * Ids of devices, as clients of the control socket are told them. A plugin may make one as long as
 * a message may be. What has more than CONTROL_ID_BYTES_MAX bytes is told cut: its beginning, how
 * long it is, and a hash of all of it, "GPU-0123...(70000 bytes, 9f86d081884c7d65)". That has more
 * bytes than any id that is told whole, so that neither is taken for the other.
 */
#ifndef SHIM_CONTROL_TOLD_ID_H
#define SHIM_CONTROL_TOLD_ID_H

#include <stdbool.h>

#include "shim/control/limits.h"

/* With its NUL: the dots and what is in the brackets are 50 bytes at the most. */
#define TOLD_ID_BYTES_MAX (CONTROL_ID_BYTES_MAX + 64)

/* Whether an id is to be told cut; or what was told is. */
bool told_id_is_cut(const char *id);
/* How an id that is to be cut is told. */
void told_id_cut(const char *id, char out[static TOLD_ID_BYTES_MAX]);
/* Whether what was told, cut, is of this id. Two ids may be told alike where somebody wants them
 * to. */
bool told_id_is_of(const char *told, const char *id);

#endif
