/*
 * What the kubelet is offered of one resource: its list as the feed last said it, and whether the
 * mask has run out. No I/O.
 */
#ifndef SHIM_BRIDGE_OFFER_H
#define SHIM_BRIDGE_OFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/bridge/list.h"

/* Starts zeroed. To read only. */
struct offer {
    struct list *list; /* NULL: none yet */
    uint64_t version;  /* of it, as the daemon counts; 0: of a daemon's life before */
    uint64_t layout;   /* of the list as it came; 0: changes of it are not taken */
    uint64_t devices;  /* another number when it has other devices, or nodes */
    uint64_t health;   /* another number when the kubelet may be shown another health of one */
    bool masked;
};

/*
 * Takes what the message says of the list. 1: the kubelet is perhaps to be shown something else.
 * 0: it is not. Or, with nothing changed: -ENOMEM, or -ESTALE for changes of a list that this is
 * not; the daemon must send it whole.
 */
int offer_take(struct offer *offer, const Bridge__V1__Resource *message)
    __attribute__((warn_unused_result));
/* Whether that is something else, see list_health(). */
bool offer_set_masked(struct offer *offer, bool masked);
/* The daemon's next life has other versions, and sends its lists whole. */
void offer_forget_version(struct offer *offer);
void offer_fini(struct offer *offer);

#endif
