/*
 * What requests for claims were refused last, by claim and driver, for who asks why.
 */
#ifndef DEVICEMGR_BOOKS_CLAIM_REFUSED_H
#define DEVICEMGR_BOOKS_CLAIM_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/things/mem.h"

/* All texts are its own, but for the word and what clears it, which are static. */
struct claim_refused_one {
    char *uid, *driver;
    char *pod_namespace, *name;
    bool unprepare;   /* that was asked for last */
    const char *word; /* of the reason */
    const char *clears;
    int code;
    char *text;
    uint64_t times; /* that this was refused, and nothing else in between */
    uint64_t first_ms, last_ms;
    char *key; /* uid and driver */
    size_t key_bytes;
    UT_hash_handle hh;
};

/* A zeroed struct is empty. */
struct claim_refused {
    struct claim_refused_one *by_key; /* the one that was refused longest ago first */
};

void claim_refused_fini(struct claim_refused *refused);
/* It was refused as `said` says, at `now_ms`; all of that is copied. What has no names that can be
 * told is not remembered. The oldest is forgotten if there are too many (CLAIMS_REFUSED_MAX). */
void claim_refused_note(struct claim_refused *refused, uint64_t now_ms,
                        const struct claim_refused_one *said);
/* NULL: none. */
const struct claim_refused_one *claim_refused_find(const struct claim_refused *refused,
                                                   const char *uid, const char *driver);

#endif
