/*
 * The API server's objects, as far as the daemon wants to know them.
 */
#ifndef SHIM_AGENT_OBJECTS_H
#define SHIM_AGENT_OBJECTS_H

#include <stdbool.h>

#include <jansson.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "shim/facts.h"

/* The object's uid; NULL: it has none, and is of no use. Borrowed from it. */
const char *object_uid(const json_t *object);

/* Whether it is a pod that has ended, and is there only to be read of: a node may have
 * thousands. */
bool object_is_over(Agent__V1__Kind kind, const json_t *object);

/* Puts what counts of it into `facts`: facts_put()'s answer, or -EINVAL for one without a uid. */
int object_put(struct facts *facts, Agent__V1__Kind kind, const json_t *object);

/* A ResourceClaim, for agent__v1__claim__free_unpacked(). */
Agent__V1__Claim *object_claim(const json_t *object);

#endif
