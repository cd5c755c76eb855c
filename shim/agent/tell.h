/*
 * Events, as the API server takes them (core/v1).
 */
#ifndef SHIM_AGENT_TELL_H
#define SHIM_AGENT_TELL_H

#include <stdint.h>

#include <jansson.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "shim/agent/spam.h"

/* Of the object, and of all that makes an Event the same as another; never 0. */
uint64_t tell_object_hash(const Agent__V1__Tell *tell);
uint64_t tell_event_hash(const Agent__V1__Tell *tell);

/* The namespace that its Events are in: a Node's are in the default one. */
const char *tell_namespace(const Agent__V1__Tell *tell);

/* A new Event, for json_decref(), and its name. NULL: a name is no UTF-8. */
json_t *tell_new(const Agent__V1__Tell *tell, const char *node, char name[SPAM_NAME_BYTES_MAX]);
/* A merge patch of one that comes again, for the time `count` in all; likewise. */
json_t *tell_again(const Agent__V1__Tell *tell, unsigned count);

#endif
