/*
 * Which of the free devices a container gets: steps 7 to 12 of the kubelet's devicesToAllocate
 * (README.md, "Allocation"), without its topology hints.
 */
#ifndef DEVICEMGR_RULES_CHOOSE_H
#define DEVICEMGR_RULES_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/things/devices.h"
#include "devicemgr/things/ids.h"

struct candidate {
    const struct device *device;
    bool reused; /* of an earlier container of the same pod: taken first */
    bool taken;  /* set by choose_devices() */
};

/*
 * Takes `count` of the candidates, of which there are at least that many, given in natural order of
 * ids: reused ones, then those the plugin prefers (ids that are no candidates are passed over),
 * then from as few further NUMA nodes as can be, those without topology last; equals in natural
 * order. The ids are added to `out`, sorted.
 */
void choose_devices(struct candidate *candidates, size_t candidates_len,
                    const struct ids *preferred, size_t count, struct ids *out);

#endif
