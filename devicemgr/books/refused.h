/*
 * What creates were refused last, by pod and container, for who asks why.
 */
#ifndef DEVICEMGR_BOOKS_REFUSED_H
#define DEVICEMGR_BOOKS_REFUSED_H

#include "devicemgr/things/demand.h"
#include "devicemgr/things/mem.h"

struct refusal {
    char *key;            /* pod uid and container, by mem_key() */
    struct demand demand; /* of the last one; `read` if its request could be */
    const char *word;     /* of the reason, with the next two; static */
    const char *clears;
    int code;
    char *text;
    uint64_t times;
    uint64_t first_ms, last_ms;
    bool made; /* the container was made since, or passed */
    UT_hash_handle hh;
};

/* A zeroed struct is empty. */
struct refused {
    struct refusal *by_key; /* the one that was refused longest ago first */
};

void refused_fini(struct refused *refused);
/* It was refused at `now_ms`, once more if it was not made since; `word` and `clears` are static,
 * all else is copied. The oldest is forgotten if there are too many (REFUSED_MAX). */
void refused_note(struct refused *refused, uint64_t now_ms, const struct demand *demand,
                  const char *word, const char *clears, int code, const char *text);
/* It was made, or passes; if it was refused before. */
void refused_made(struct refused *refused, const char *pod_uid, const char *container);
/* NULL: none. */
const struct refusal *refused_find(const struct refused *refused, const char *pod_uid,
                                   const char *container);

#endif
