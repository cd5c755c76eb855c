/*
 * Who has a thing: under its name, in parts, all that have it, who came first first.
 */
#ifndef DEVICEMGR_THINGS_OWNERS_H
#define DEVICEMGR_THINGS_OWNERS_H

#include "devicemgr/things/mem.h"

/* Of one thing; there is one only while somebody has it. All of them: a pointer, NULL is none. */
struct owners {
    char *key;
    size_t key_bytes;
    const void **v; /* borrowed */
    size_t len;
    UT_hash_handle hh;
};

/* Valid until one is added or removed. NULL: nobody has it. */
const struct owners *owners_find(const struct owners *all, const char *const *parts,
                                 size_t parts_len);
/* A part of its name, from 0 on. */
const char *owners_part(const struct owners *owners, size_t part);
/* Accepts NULL. */
static inline size_t owners_len(const struct owners *owners)
{
    return owners ? owners->len : 0;
}

void owners_add(struct owners **all, const char *const *parts, size_t parts_len, const void *owner);
/* It has it. */
void owners_remove(struct owners **all, const char *const *parts, size_t parts_len,
                   const void *owner);

#endif
