/*
 * The devices of a resource that are free for a pod. Of one that is published for claims, whose
 * others the scheduler gives away, those that it has besides.
 */
#ifndef DEVICEMGR_RULES_POOL_H
#define DEVICEMGR_RULES_POOL_H

#include <stddef.h>

#include "devicemgr/rules/choose.h"
#include "devicemgr/rules/wanted.h"
#include "devicemgr/things/ids.h"

struct pool {
    struct candidate *candidates; /* the healthy ones, in natural order of ids */
    size_t len;
    size_t reused;
    size_t free;          /* healthy or not; of unhealthy ones only until there are enough */
    size_t looks;         /* how many devices were looked at */
    struct ids kept_back; /* by the operator: healthy ones, which are not candidates; so are */
    struct ids tainted;
};

/* There is the resource. Where the first that are free are to be chosen (choose.h), only as many as
 * are asked for. The caller gives it to pool_fini(). */
struct pool pool_fill(const struct state *state, const struct wanted *wanted);
void pool_fini(struct pool *pool);

#endif
