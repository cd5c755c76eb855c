/*
 * Memory and hash tables of the device manager. Out of memory aborts: the core keeps no half-made
 * state, and its caller's service manager starts it again from the checkpoint.
 */
#ifndef DEVICEMGR_THINGS_MEM_H
#define DEVICEMGR_THINGS_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

/* Zeroed memory for `len` objects of `bytes`; never NULL, also for none. */
static inline void *mem_alloc(size_t len, size_t bytes)
{
    void *p = calloc(len ? len : 1, bytes ? bytes : 1);

    if (!p)
        abort();
    return p;
}

static inline char *mem_strdup(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        abort();
    return copy;
}

/* For texts in one piece with what they belong to: what one takes there, and its copy at *end,
 * which moves behind it. NULL takes nothing and stays NULL. */
static inline size_t mem_text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static inline const char *mem_text_move(char **end, const char *text)
{
    char *copy = *end;

    if (!text)
        return NULL;
    *end = stpcpy(copy, text) + 1;
    return copy;
}

/* Room for one more behind `len` objects of `bytes`; call it before each append. It grows at powers
 * of two, so that no capacity need be kept. */
#define GROW_LEN_MIN 8
void *mem_enlarge(void *array, size_t len, size_t bytes);
static inline void *mem_grow(void *array, size_t len, size_t bytes)
{
    bool full = len == 0 || (len >= GROW_LEN_MIN && (len & (len - 1)) == 0);

    return full ? mem_enlarge(array, len, bytes) : array;
}

/*
 * The parts joined by NUL bytes, as a hash key: no two different lists give equal keys. The caller
 * frees it.
 */
char *mem_key(const char *const *parts, size_t parts_len, size_t *key_bytes);

/* Where the parts are within such a key. */
static inline void mem_parts(const char *key, const char **parts, size_t parts_len)
{
    for (size_t i = 0; i < parts_len; i++) {
        parts[i] = key;
        key += strlen(key) + 1;
    }
}

/* The same to look for, on the stack where it fits; used where it stands, until it is dropped, or
 * taken for the caller to keep and free, if it was not found. */
struct mem_sought {
    char *key;
    size_t key_bytes;
    char small[512];
};
void mem_seek(struct mem_sought *sought, const char *const *parts, size_t parts_len);
static inline void mem_sought_drop(struct mem_sought *sought)
{
    if (sought->key != sought->small)
        free(sought->key);
}
static inline char *mem_sought_take(const struct mem_sought *sought, size_t *key_bytes)
{
    *key_bytes = sought->key_bytes;
    if (sought->key != sought->small)
        return sought->key;
    return memcpy(mem_alloc(sought->key_bytes, 1), sought->small, sought->key_bytes);
}

#endif
