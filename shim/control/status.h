/*
 * The answer to Status: a report, with the settings, the processes' ages, and what an operator has
 * set.
 */
#ifndef SHIM_CONTROL_STATUS_H
#define SHIM_CONTROL_STATUS_H

#include <limits.h>

#include "cri-proto/control_v1.pb-c.h"
#include "shim/control/list.h"
#include "shim/control/list_orders.h"
#include "shim/report.h"
#include "shim/settings.h"

/* Pods of a shutdown that are named; and of one that there might be, of all its groups, of which
 * there are no more than the settings have. */
#define STATUS_REMAINING_MAX 32
#define STATUS_PLANNED_MAX 256
#define STATUS_GROUPS_MAX 64

struct status {
    Control__V1__StatusResponse response;

    /* private */
    char node[HOST_NAME_MAX + 1];
    Control__V1__Process processes[2];
    Control__V1__Process *process_list[2];
    Control__V1__Runtime runtime;
    Control__V1__DraCount dra;
    Control__V1__MachineShutdown shutdown;
    char *remaining[STATUS_REMAINING_MAX];
    Control__V1__ShutdownGroup planned[STATUS_GROUPS_MAX];
    Control__V1__ShutdownGroup *planned_list[STATUS_GROUPS_MAX];
    char *planned_pods[STATUS_PLANNED_MAX];
    size_t planned_pods_len;
    Control__V1__Kubelet kubelet;
    Control__V1__Trouble troubles[REPORT_TROUBLES_MAX];
    Control__V1__Trouble *trouble_list[REPORT_TROUBLES_MAX];
    struct orders_count orders;
    Control__V1__OrderCount *order_list[DEVICEMGR_ORDER_KINDS];
};

/* `settings` and `report` are borrowed until status_fini(), which comes before the core's next
 * event; `from` until return. */
void status_init(struct status *status, const struct settings *settings,
                 const struct list_from *from, const struct report *report);
void status_fini(struct status *status);

#endif
