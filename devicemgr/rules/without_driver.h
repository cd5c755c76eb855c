/*
 * What is right to be told about a claim while its driver is away.
 */
#ifndef DEVICEMGR_RULES_WITHOUT_DRIVER_H
#define DEVICEMGR_RULES_WITHOUT_DRIVER_H

#include <stdbool.h>

struct claim;
struct state;

/* Whether all that the driver has of it is this node's alone, as far as that is seen now. */
bool without_driver_local(const struct state *state, const struct claim *claim);
/* That it is unprepared, before it is: nobody else can be given its devices, and the driver is told
 * before anything new is prepared; or it was never sent there. */
bool without_driver_unprepared(const struct state *state, const struct claim *claim);
/* That it is prepared, with what the driver answered before: the settings say that this driver's
 * answers last, and the same devices are allocated still. */
bool without_driver_prepared(const struct state *state, const struct claim *claim);

#endif
