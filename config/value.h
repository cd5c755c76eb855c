/*
 * One value of a key, where schema_slot() says that it is: what can be done with it whatever its
 * type. Of tables these look at the list alone.
 */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/schema.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "1h30m", "500ms": whole numbers, each unit once, the largest first. */
bool value_duration(const char *text, uint64_t *out_ms);

/* How much is at the slot: the value, or where it is. */
size_t value_bytes(const struct schema_key *key);

/* A list's length. */
size_t *value_len(const struct schema_key *key, void *slot);

bool value_same(const struct schema_key *key, void *a, void *b);
void value_exchange(const struct schema_key *key, void *a, void *b);

/* As in the file, without quotes; of names, with ',' between them; of tables, how many, if any. One
 * that is too long is cut. */
void value_print(const struct schema_key *key, void *slot, char *out, size_t size);

/* Frees what it has and leaves none; accepts a zeroed one. */
void value_fini(const struct schema_key *key, void *slot);

/* Frees all values of a section's struct; accepts a zeroed one. */
void section_fini(enum schema_section section, void *base);

#ifdef __cplusplus
}
#endif

#endif
