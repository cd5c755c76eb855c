/*
 * A checkpoint as one JSON document, which "checkpoint export" writes and an import reads
 * (shim/offline/document.h): all rows but what plugins gave to containers, as that may have secrets
 * in its environment.
 */
#ifndef SHIM_CHECKPOINT_JSON_H
#define SHIM_CHECKPOINT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* What a program that reads it asks for first. */
#define CHECKPOINT_JSON_FORMAT "cri-device-shim/checkpoint/v1"

/* Without rows. Out of memory ends the process, here as below. */
json_t *checkpoint_json_new(void);
/* Of what schema the checkpoint is, and whether all of it is as it was written. */
void checkpoint_json_set_head(json_t *document, uint64_t schema_version, bool sound);
/* A packed row of checkpoint_v1.proto; `kind`: resource, allocation, pod, order, driver, claim or
 * ending. Nothing comes of one that makes no sense, or of another kind. */
void checkpoint_json_add(json_t *document, const char *kind, const uint8_t *value, size_t bytes);

#endif
