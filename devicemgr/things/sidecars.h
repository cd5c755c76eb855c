/*
 * Which containers of a pod are sidecars, as the cluster has it (endings.h): what stops the pod
 * stops them behind all others, the last of them first.
 */
#ifndef DEVICEMGR_THINGS_SIDECARS_H
#define DEVICEMGR_THINGS_SIDECARS_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/endings.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

struct pod;

/* Of one pod that has some. */
struct pod_sidecars {
    char *uid; /* of a static pod: its mirror's */
    char *pod_namespace, *pod_name;
    bool mirror;
    struct ids names; /* in their order */
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct sidecars {
    struct pod_sidecars *by_uid;
};

void sidecars_fini(struct sidecars *table);
/* devicemgr_sidecars() */
void sidecars_set(struct sidecars *table, const struct devicemgr_sidecars *is);
/* Those of the pod; NULL: none is known. */
const struct ids *sidecars_find(const struct sidecars *table, const struct pod *pod);
/* The turn of this container when its pod, which has those, is stopped: 0 is the first one's, of
 * what is no sidecar, or not known as one. */
size_t sidecars_turn(const struct ids *names, const char *container);

#endif
