/*
 * What the kubelet is shown, as it was last, and of what it is to be looked at anew (advertise.h).
 */
#ifndef DEVICEMGR_BOOKS_SHOWING_H
#define DEVICEMGR_BOOKS_SHOWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state;

struct showing {
    uint64_t version;
    size_t resources_len; /* how many are shown */
    bool stale;           /* something happened since the last look */
    bool all;             /* something that all allocations and holds depend on */
    uint64_t all_ms;      /* by time alone: then; UINT64_MAX: not so */
    uint64_t looks;       /* at allocations and what the kubelet holds; for tests */
    bool starting;        /* a kubelet was, at the last look */
};

/* What is shown of the resource, if it is, is another from now on. */
void showing_changed(struct state *state, const char *name);
/* Likewise, in more than who holds a device. */
void showing_offer_changed(struct state *state, const char *name);
/* What all allocations and all that the kubelet holds depend on has changed. */
void showing_all(struct state *state);
/* It will have at that time, and who may be given a device. */
void showing_all_at(struct state *state, uint64_t at_ms);
/* Finds out anew when that is next. */
void showing_times(struct state *state);

#endif
