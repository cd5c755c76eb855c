/*
 * The document of "checkpoint export" (shim/checkpoint_json.h), read back into rows.
 *
 * It has exactly the keys that it is written with: one that is missing, unknown or there twice is
 * an error, since what is left out of a checkpoint is a device given twice. What plugins gave to
 * containers is not in it, so that they are asked again when a container is made anew.
 */
#ifndef SHIM_OFFLINE_DOCUMENT_H
#define SHIM_OFFLINE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/offline/rows.h"

#define DOCUMENT_ERROR_BYTES_MAX 512

struct document {
    int version; /* of the schema of the checkpoint that it was taken from; one that is known */
    bool sound;  /* false: that one was damaged, and rows are missing */
    struct rows rows;
};

/* Whether the rows themselves make sense is another question. 0, and the caller gives *out to
 * document_fini(); or -1 with what is wrong, and where, in `err`. Out of memory ends the
 * process. */
int document_parse(const char *text, size_t len, struct document *out, char *err, size_t err_bytes)
    __attribute__((warn_unused_result));
void document_fini(struct document *document);

#endif
