/*
 * What the parts of document.c share: a row of the document that is being read.
 */
#ifndef SHIM_OFFLINE_DOCUMENT_READING_H
#define SHIM_OFFLINE_DOCUMENT_READING_H

#include <stddef.h>

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "devicemgr/ports.h"
#include "shim/offline/document.h"

/* A row that is being read; the first thing that is wrong with it counts. */
struct reading {
    struct document *document;
    const char *list;
    size_t index;
    char *err;
    size_t err_bytes;
};

/* It says so where the error goes; -1. */
int reading_wrong(const struct reading *at, const char *what);
/* json_unpack() that says what does not fit; nothing may be left over. */
int reading_unpack(const struct reading *at, json_t *value, const char *format, ...);
/* A text, borrowed, or "" for null. */
int reading_text_or_empty(const struct reading *at, const json_t *value, const char *key,
                          char **out);
int reading_number_from_0(const struct reading *at, json_int_t value, json_int_t max,
                          const char *key);
/* The array is the caller's to free; its texts are the list's. */
int reading_texts_of(const struct reading *at, const json_t *list, const char *key, char ***out,
                     size_t *len);
/* The message, packed, as the row of this key. */
void reading_add_row(const struct reading *at, enum devicemgr_record_kind kind, const char *a,
                     const char *b, const char *c, const ProtobufCMessage *message);

/* ---- document_dra.c ---- */

int document_read_driver(const struct reading *at, json_t *value);
int document_read_claim(const struct reading *at, json_t *value);

#endif
