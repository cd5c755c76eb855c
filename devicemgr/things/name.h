/*
 * How those who hold devices, or ask for them, are named to who reads of them.
 */
#ifndef DEVICEMGR_THINGS_NAME_H
#define DEVICEMGR_THINGS_NAME_H

#include "devicemgr/ports.h"
#include "devicemgr/things/demand.h"
#include "devicemgr/things/text.h"

struct allocation;
struct pods;

/* Adds `container "c" of pod "ns/name": `, and `resource r: ` unless it is NULL. */
void name_demand(const struct demand *demand, const char *resource, struct text *text);
/* Adds `container "c" of pod "ns/name"`; of a pod that is not known its uid. */
void name_holder(const struct pods *pods, const struct allocation *holder, struct text *text);

/* The same as values, for a line of the log; all borrowed. */
static inline struct devicemgr_about name_about_resource(const char *resource)
{
    return (struct devicemgr_about){.resource = resource};
}
static inline struct devicemgr_about name_about_demand(const struct demand *demand,
                                                       const char *resource)
{
    return (struct devicemgr_about){.resource = resource,
                                    .pod_namespace = demand->pod_namespace,
                                    .pod_name = demand->pod_name,
                                    .container = demand->container};
}
struct devicemgr_about name_about_holder(const struct pods *pods, const struct allocation *holder);
/* The same of a line that somebody may look for. */
static inline struct devicemgr_about name_line(enum devicemgr_line line,
                                               struct devicemgr_about about)
{
    about.line = line;
    return about;
}

#endif
