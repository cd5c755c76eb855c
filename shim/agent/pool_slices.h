/*
 * The ResourceSlices of one pool: which there are to be, what is there of them, and what is to be
 * written.
 *
 * Slices of a pool count together: those of its highest generation, and only if they are as many as
 * each of them says (staging/src/k8s.io/api/resource/v1/types.go, ResourcePool). So what one slice
 * says of its own devices, attributes and taints, may be changed by itself, and everybody sees all
 * of it before or after. Which devices a pool has, and in how many slices, may not, if more than
 * one write is needed for it: the pool gets another generation then, and is not whole, which nobody
 * allocates from, until all slices have it. Upstream's helper for drivers has another generation
 * for any two writes (staging/src/k8s.io/dynamic-resource-allocation/resourceslice): a pool of many
 * slices whose taints change would not be whole each time.
 *
 * Nothing is remembered from one attempt to the next: what an earlier one has left half done is
 * seen by what is there.
 */
#ifndef SHIM_AGENT_POOL_SLICES_H
#define SHIM_AGENT_POOL_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One that there is to be, as it is there. */
struct pool_slice {
    bool there;
    bool named;   /* it has the very devices, by name, that it is to have */
    bool same;    /* and all that is to be said of them */
    bool counted; /* it says how many slices there are to be */
    bool done;    /* written, or found to be right */
    int64_t generation;
};

/* One that there is not to be. */
struct pool_stale {
    char *name, *uid;
};

/* A zeroed struct is of no pool. */
struct pool_slices {
    struct pool_slice *wanted;
    size_t wanted_len;
    struct pool_stale *stale;
    size_t stale_len;
    int64_t stale_generation; /* the highest of those; -1: there are none */
};

void pool_slices_init(struct pool_slices *slices, size_t wanted);
void pool_slices_fini(struct pool_slices *slices);

/* Copied. False: there are POOL_SLICES_MAX already; it goes with another attempt. */
bool pool_slices_add_stale(struct pool_slices *slices, const char *name, const char *uid,
                           int64_t generation);

/* The generation that all of them are to have, by what is there. */
int64_t pool_slices_generation(const struct pool_slices *slices);

/* What is to be done with the first that is not as it is to be, when all have that generation. */
enum pool_write {
    POOL_DONE,   /* nothing with any of them */
    POOL_MAKE,   /* it is not there */
    POOL_CHANGE, /* its devices are other ones, or said to be otherwise */
    POOL_COUNT,  /* only what it says of the pool is wrong */
};
enum pool_write pool_slices_next(const struct pool_slices *slices, int64_t generation,
                                 size_t *index);

#endif
