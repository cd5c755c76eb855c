/*
 * JSON for programs, put together. Out of memory ends the process (must.h).
 */
#ifndef SHIM_JSON_VALUE_H
#define SHIM_JSON_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* A peer's text; what is no UTF-8 becomes '?'. */
json_t *json_value_text(const char *text);
/* The same, and null for an empty one. */
json_t *json_value_text_or_null(const char *text);
json_t *json_value_texts(char *const *texts, size_t len);
json_t *json_value_number(uint64_t number);
/* Takes the value. */
void json_value_set(json_t *object, const char *key, json_t *value);
void json_value_append(json_t *array, json_t *value);

#endif
