/*
 * How those who hold devices, or ask for them, are named to who reads of them.
 */
#ifndef DEVICEMGR_THINGS_NAME_H
#define DEVICEMGR_THINGS_NAME_H

#include "devicemgr/things/text.h"

struct allocation;
struct demand;
struct pods;

/* Adds `container "c" of pod "ns/name": `, and `resource r: ` unless it is NULL. */
void name_demand(const struct demand *demand, const char *resource, struct text *text);
/* Adds `container "c" of pod "ns/name"`; of a pod that is not known its uid. */
void name_holder(const struct pods *pods, const struct allocation *holder, struct text *text);

#endif
