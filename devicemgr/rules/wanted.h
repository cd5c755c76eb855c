/*
 * What a create asks for, with what there is of it: looked up once for each look at the create, and
 * handed on.
 */
#ifndef DEVICEMGR_RULES_WANTED_H
#define DEVICEMGR_RULES_WANTED_H

#include "devicemgr/things/demand.h"

struct allocation;
struct devicemgr_resource_settings;
struct resource;
struct resource_orders;
struct state;

/* One resource. What it points to counts until the state changes. */
struct wanted {
    const struct demand *demand; /* whose */
    const struct request_item *want;
    const struct devicemgr_resource_settings *settings;
    const struct resource *resource;      /* NULL: there is none of this name */
    const struct allocation *has;         /* what the container has of it already; NULL: nothing */
    const struct resource_orders *orders; /* what an operator has set for it; NULL: nothing */
    bool tainted; /* an operator, or the settings, taint some of its devices */
};

/* Fills `all`, one for each of the request's items, in their order. */
void wanted_look_up(const struct state *state, const struct demand *demand, struct wanted *all);

#endif
