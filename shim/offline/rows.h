/*
 * The rows of a checkpoint, in memory.
 */
#ifndef SHIM_OFFLINE_ROWS_H
#define SHIM_OFFLINE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"

#define ROWS_KINDS DEVICEMGR_RECORD_LOSS /* those before it are rows of things */

/* A zeroed struct has none. */
struct rows {
    struct devicemgr_record *v;
    size_t len, size;
    size_t counts[ROWS_KINDS]; /* by kind */
};

/* Copies the row. Out of memory ends the process. */
void rows_add(struct rows *rows, const struct devicemgr_record *record);
void rows_fini(struct rows *rows);

#endif
