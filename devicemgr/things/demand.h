/*
 * What a container to be made asks for, and for whom.
 */
#ifndef DEVICEMGR_THINGS_DEMAND_H
#define DEVICEMGR_THINGS_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/things/request.h"

struct devicemgr_create;

/* In the place of a create's number: none has it. */
#define DEMAND_OF_NO_CREATE UINT64_MAX

/* As its CreateContainer says. */
struct demand {
    uint64_t create;                                                         /* its number */
    char *names;                                                             /* in one piece */
    const char *sandbox_id, *pod_uid, *pod_namespace, *pod_name, *container; /* within `names` */
    uint32_t attempt;
    struct request request;
    bool read;           /* the request, and it is right; before that it may have a part of it */
    uint64_t started_ms; /* when it came */
};

/* Copies what is said; `request` stays as it is. */
void demand_init(struct demand *demand, uint64_t create, uint64_t now_ms,
                 const struct devicemgr_create *said);
/* What is said, and what was read of it, for another time: nothing is preferred, and it is no
 * create's. `to` need not be set before. */
void demand_copy(struct demand *to, const struct demand *demand);
void demand_fini(struct demand *demand);
/* Of the ids and names that it is known by. */
size_t demand_names_bytes(const struct demand *demand);

#endif
