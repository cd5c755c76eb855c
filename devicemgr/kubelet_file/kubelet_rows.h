/*
 * Rows of our checkpoint for what the kubelet's one holds.
 *
 * Its resources come back in grace, with the devices it listed as healthy and those that are
 * allocated; where their plugins serve it does not say. Its allocations come with the options that
 * the kubelet had kept, or without, to be asked for anew:
 * - where they hold our own token: then the bridge made them, and they are not the plugin's
 * - where they cannot be read
 */
#ifndef DEVICEMGR_KUBELET_FILE_KUBELET_ROWS_H
#define DEVICEMGR_KUBELET_FILE_KUBELET_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/kubelet_file/kubelet_checkpoint.h"
#include "devicemgr/ports.h"

struct kubelet_row {
    struct devicemgr_record record; /* its value is the row's own, its keys are the checkpoint's */
    size_t devices;
    bool with_options; /* of an allocation */
};

struct kubelet_rows {
    struct kubelet_row *v; /* resources first */
    size_t len;
    size_t left_out; /* they break a rule of ours: a name that is none, no device, an empty id */
};

/* `boot_id` is the boot in which the options were given, "" if not known. `from` is borrowed until
 * kubelet_rows_fini(). */
void kubelet_rows_init(struct kubelet_rows *rows, const struct kubelet_checkpoint *from,
                       const char *boot_id);
void kubelet_rows_fini(struct kubelet_rows *rows);

#endif
