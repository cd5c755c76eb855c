/*
 * What an operator keeps from new holders: devices that are cordoned, resources that are withdrawn.
 *
 * Who has a device already is not concerned: a pod of which any container has it, by a row that is
 * in the checkpoint or on its way there. A create that has only reserved it is, until then.
 *
 * Asked only where an operator has set something for the resource (`wanted->orders`).
 */
#ifndef DEVICEMGR_RULES_KEPT_BACK_H
#define DEVICEMGR_RULES_KEPT_BACK_H

#include "devicemgr/rules/look.h"
#include "devicemgr/rules/wanted.h"

struct order;

/* Whether a container of the pod has the device, by a row. */
bool kept_back_has(const struct state *state, const struct wanted *wanted, const char *id);
/* What keeps the device from the pod; NULL: nothing does. */
const struct order *kept_back_by(const struct state *state, const struct wanted *wanted,
                                 const char *id);
/* Whether the resource is withdrawn: REFUSE, or GO. */
struct look kept_back_withdrawn(const struct wanted *wanted);
/* Whether one of the devices is kept back: GO; REFUSE, if the resource is withdrawn; or WAIT. */
struct look kept_back_of_ids(const struct state *state, const struct wanted *wanted,
                             const struct ids *ids);
/* `free` of its devices can be had, too few; with `ids`, which are kept back, it would be
 * enough. */
struct look kept_back_too_few(const struct state *state, const struct wanted *wanted, size_t free,
                              const struct ids *ids);

#endif
