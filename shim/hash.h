/*
 * FNV-1a, 64 bits: to tell texts apart in a table, or in a name. Not against who chooses them.
 */
#ifndef SHIM_HASH_H
#define SHIM_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BEGIN 14695981039346656037u

static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 1099511628211u;
}

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = hash_word(hash, ((const uint8_t *)bytes)[i]);
    return hash;
}

/* With its end, so that "ab" and "c" are not "a" and "bc". */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

#endif
