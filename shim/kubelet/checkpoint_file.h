/*
 * The kubelet's checkpoint as it is on disk. Blocks on the disk.
 */
#ifndef SHIM_KUBELET_CHECKPOINT_FILE_H
#define SHIM_KUBELET_CHECKPOINT_FILE_H

#include <stddef.h>
#include <time.h>

#include "devicemgr/kubelet_file/kubelet_checkpoint.h"

enum kubelet_file_state {
    KUBELET_FILE_MISSING,
    KUBELET_FILE_UNREADABLE, /* there, but it could not be read */
    KUBELET_FILE_DAMAGED,    /* or of a format we do not know */
    KUBELET_FILE_READ,
};

/* KUBELET_FILE_READ with *out, which the caller gives to kubelet_checkpoint_fini(), and *written,
 * when it was last written; else why in `err`, and *out untouched. */
enum kubelet_file_state checkpoint_file_read(const char *path, struct kubelet_checkpoint *out,
                                             time_t *written, char *err, size_t err_bytes);

#endif
