/*
 * What an operator has set: how much of it.
 */
#ifndef SHIM_CONTROL_LIST_ORDERS_H
#define SHIM_CONTROL_LIST_ORDERS_H

#include "cri-proto/control_v1.pb-c.h"
#include "devicemgr/lists.h"
#include "shim/control/list.h"
#include "shim/control/told_id.h"

/* How many of each kind. The texts are the core's, and count until its next event. */
struct orders_count {
    Control__V1__OrderCount of[DEVICEMGR_ORDER_KINDS];
    size_t len; /* kinds of which there are some */

    /* private */
    Control__V1__Order newest[DEVICEMGR_ORDER_KINDS]; /* of each */
    char ids[DEVICEMGR_ORDER_KINDS][TOLD_ID_BYTES_MAX];
};
void orders_count(struct orders_count *counts, const struct devicemgr *core);
/* How long ago that was, of what the core keeps as the time of an order. */
uint64_t order_ago_ms(uint64_t at_s);

#endif
