/*
 * In which version the server has the objects of resource.k8s.io: v1 since Kubernetes 1.34, v1beta1
 * and v1beta2 before, DeviceTaintRules only in v1beta2 and v1alpha3, where those are switched on.
 * The server is asked for the group's versions; which objects one has is found out by asking for
 * them.
 *
 *     UNKNOWN ──answer──▶ KNOWN ──while something is not served, each SERVED_AGAIN_MS──▶ KNOWN
 *        ▲                  │
 *        └───── slices ─────┘
 *           are in none of them
 *
 * That there is no such group, or none of its objects, is believed only by the server's own word: a
 * load balancer may answer 404 to all that is asked.
 */
#ifndef SHIM_AGENT_SERVED_H
#define SHIM_AGENT_SERVED_H

#include <stdbool.h>

#include <uv.h>

#include "shim/agent/api_client.h"

#define SERVED_GROUP "resource.k8s.io"
/* Its versions are below it. */
#define SERVED_GROUP_PATH "/apis/" SERVED_GROUP

enum served_kind {
    SERVED_SLICES,
    SERVED_CLAIMS,
    SERVED_TAINT_RULES,
    SERVED_KINDS, /* how many there are */
};

struct served;

/* Asks within START_SPREAD_MS. `changed` is called, from the loop, whenever served_version() says
 * something else; it may call all of this but served_stop(). `user` is borrowed until the stop. */
struct served *served_start(uv_loop_t *loop, struct api_client *client, void (*changed)(void *user),
                            void *user);
/* Frees it in a later turn of the loop. Accepts NULL. */
void served_stop(struct served *served);

/* Whether the server has said it, and nothing that came since speaks against it. */
bool served_known(const struct served *served);
/* "v1", a literal. NULL: it is not served, as far as is known. */
const char *served_version(const struct served *served, enum served_kind kind);
/* The server has no such objects in that version (404): another one is tried, if there is one. */
void served_missing(struct served *served, enum served_kind kind, const char *version);

#endif
