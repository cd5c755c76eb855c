/*
 * The devices of one resource, as its plugin last listed them.
 *
 * A list is a whole snapshot. Kept in the natural order of ids; a snapshot that names the same ids
 * in the same order as the last costs one comparison per id and no memory.
 */
#ifndef DEVICEMGR_THINGS_DEVICES_H
#define DEVICEMGR_THINGS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/mem.h"

struct device {
    char *id;
    bool healthy;      /* as last listed; not usable while the endpoint is away */
    uint64_t since_ms; /* when `healthy` became so */
    int64_t *nodes;    /* NUMA nodes, from 0 to NUMA_NODES_MAX - 1, each once; none: no topology */
    size_t nodes_len;
    UT_hash_handle hh;
};

struct devices {
    struct device *items; /* in natural order of ids */
    size_t len;
    size_t healthy;
    size_t on_nodes;  /* those with topology */
    size_t bytes;     /* in memory: devices_bytes_of() of each */
    uint64_t changes; /* how many snapshots differed from the one before */
    uint64_t
        shrunk_ms; /* when one last had a device no more that the one before had; 0: none has */
    struct device *by_id;
    uint32_t *order; /* the last snapshot's n-th entry is items[order[n]]; NULL: unusable */
    size_t order_len;
};

/* One entry of a snapshot; borrowed. */
struct device_entry {
    const char *id;
    bool healthy;
    const int64_t *nodes;
    size_t nodes_len;
};

struct devices_change {
    size_t added;
    size_t removed;
    size_t health;   /* ids whose health changed */
    size_t topology; /* ids whose NUMA nodes changed */
    size_t dropped;  /* entries without an id, or with one listed again later, or not UTF-8 */
    size_t nodes;    /* NUMA nodes left out: listed twice, or of a number that there is not */
};

/* What a device takes in memory. */
size_t devices_bytes_of(const char *id, size_t nodes_len);

/* A zeroed struct has no devices. */
void devices_fini(struct devices *devices);
/* Takes a snapshot over; an id listed twice counts as listed last, one that is no UTF-8 not at all:
 * neither a token nor a Go peer could carry it. False: nothing is different (`dropped` may still be
 * set). */
bool devices_update(struct devices *devices, uint64_t now_ms, const struct device_entry *entries,
                    size_t entries_len, struct devices_change *change);
/* When the health of one that is listed became what it is, where that is known of before. */
void devices_set_since(struct devices *devices, const char *id, uint64_t since_ms);
/* NULL: not listed. */
const struct device *devices_find(const struct devices *devices, const char *id);
/* Of the first in `items` that does not come before `id`, and, with `behind`, is not it either. */
size_t devices_place(const struct devices *devices, const char *id, bool behind);

#endif
