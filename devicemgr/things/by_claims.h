/*
 * By which claims a container has devices of a lifted resource (lift.h): pairs of a device and the
 * uid of a claim that has it. There may be several of one device: one has it, others only look.
 */
#ifndef DEVICEMGR_THINGS_BY_CLAIMS_H
#define DEVICEMGR_THINGS_BY_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>

struct by_claim {
    char *id;   /* of the device */
    char *uid;  /* of the claim */
    bool looks; /* the cluster has said that it only looks, whoever has the device */
};

/* A zeroed struct is an empty list. */
struct by_claims {
    struct by_claim *v; /* sorted by device and claim, each pair once */
    size_t len;
};

void by_claims_fini(struct by_claims *by);
/* Copied. Takes O(len); of a pair that is there: it looks if either says so. */
void by_claims_add(struct by_claims *by, const char *id, const char *uid, bool looks);
/* `to` need not be set before, and is not freed. */
void by_claims_copy(struct by_claims *to, const struct by_claims *from);
/* In O(log len). NULL: it is not there. */
const struct by_claim *by_claims_find(const struct by_claims *by, const char *id, const char *uid);
bool by_claims_equal(const struct by_claims *a, const struct by_claims *b);

#endif
