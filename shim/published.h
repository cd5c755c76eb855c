/*
 * What has become of resources that are published as those of a DRA driver (devicemgr/lift.h): what
 * the daemon's part of the cluster knows of it, and who lists devices tells.
 */
#ifndef SHIM_PUBLISHED_H
#define SHIM_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pool of ResourceSlices; texts are borrowed until something else is called. */
struct published_pool {
    const char *resource;
    const char *name;
    size_t devices;      /* in it, */
    size_t left_out;     /* and those that are too many */
    bool there;          /* the API server has it as it is to be, by what was said last */
    const char *trouble; /* why not, by what was said last; NULL: nothing was */
    bool refused;        /* with it: not only put off; until something changes there */
    uint64_t trouble_ms; /* with it: since when; boot_now_ms() */
};

/* One of its slices, as the cluster has it; borrowed likewise. */
struct published_slice {
    const char *name;
    char *const *devices;
    size_t len;
};

#endif
