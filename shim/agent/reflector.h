/*
 * One collection of the API server, as it is and as it changes: listed, then watched, for ever
 * (staging/src/k8s.io/client-go/tools/cache/reflector.go).
 *
 *     WAITING ──time──▶ STREAMING ──all are told──▶ WATCHING ──its end──▶ WATCHING
 *      ▲   │                 │ the server does not      ▲ │
 *      │   └────time──▶ LISTING ──────all pages─────────┘ │
 *      └── any failure ──────┴────────────────────────────┘   (what was too old: told anew)
 *
 * WAITING waits for its back-off, LISTING for a page, STREAMING and WATCHING for events. STREAMING
 * is a watch that begins with all there is, which costs a server less than a list; servers before
 * 1.32, and those of 1.33, do not know it. Objects go through one by one; none is kept, and one
 * that is too large is left out (json_splitter.h). What is known stays so until all of it was told
 * anew.
 */
#ifndef SHIM_AGENT_REFLECTOR_H
#define SHIM_AGENT_REFLECTOR_H

#include <stdbool.h>

#include <jansson.h>
#include <uv.h>

#include "shim/agent/api_client.h"

struct reflector;

struct reflector_ops {
    /* A list begins; object() follows for all there are, unless another list begins. */
    void (*list_began)(void *user);
    /* It is there, new or changed; borrowed until return. */
    void (*object)(void *user, const json_t *object);
    /* It is there no more; the last that was known of it. */
    void (*deleted)(void *user, const json_t *object);
    /* What came since list_began() is all there is. */
    void (*list_ended)(void *user);
    /* It cannot be had, for now; "": it can. Told when that changes. */
    void (*trouble)(void *user, const char *words);
    /* The server has no such collection (API_NOT_FOUND), or does not allow it (API_REFUSED). True:
     * that is no trouble, but to be so. It is asked on in either case. NULL: it is one. */
    bool (*excused)(void *user, enum api_outcome why);
};

/* `path` is copied, with the query that selects from the collection. Begins within START_SPREAD_MS.
 * `ops` and `user` are borrowed until the stop; all is told from the loop. */
struct reflector *reflector_start(uv_loop_t *loop, struct api_client *client, const char *path,
                                  const struct reflector_ops *ops, void *user);
/* No callback follows; frees it in a later turn of the loop. Accepts NULL. Not from its
 * callbacks. */
void reflector_stop(struct reflector *reflector);

#endif
