/*
 * A file with a checkpoint that no daemon has open: the database itself, of a daemon that was
 * stopped or as it was set aside, or a document of "checkpoint export". All of it is read, and
 * nothing is changed.
 */
#ifndef SHIM_OFFLINE_SOURCE_H
#define SHIM_OFFLINE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "shim/core/rows_check.h"
#include "shim/offline/rows.h"

/* Of a document: it is read into memory as a whole, some ten times as large. */
#define SOURCE_DOCUMENT_BYTES_MAX (64u * 1024 * 1024)

#define SOURCE_ERROR_BYTES_MAX 512

struct source {
    int version;             /* of the checkpoint's schema */
    bool whole;              /* false: it is a document of a checkpoint that was damaged */
    bool document;           /* so it is without what plugins gave */
    struct rows rows;        /* the good ones */
    struct rows_found found; /* whether they make sense is by the rules of a start, with the
                              * settings of `config` */
};

/* Blocks on the disk. 0, and the caller gives *out to source_fini(); or -1 with the reason, which
 * begins with the path, in `err`. */
int source_read(const char *path, const struct config *config, struct source *out, char *err,
                size_t err_bytes) __attribute__((warn_unused_result));
void source_fini(struct source *source);

/* Nothing is wrong with it, and nothing missing. */
bool source_is_sound(const struct source *source);

#endif
