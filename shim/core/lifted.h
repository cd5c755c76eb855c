/*
 * The DRA driver of lifted resources (devicemgr/lift.h), as the core sees it: a driver like others,
 * with one instance, which is there as long as the daemon is. What it is called for its owner does
 * (host.h, lift_prepare).
 */
#ifndef SHIM_CORE_LIFTED_H
#define SHIM_CORE_LIFTED_H

#include <stdbool.h>
#include <stdint.h>

struct host;

/* Among the numbers of registrations, which begin with 1. */
#define LIFTED_INSTANCE UINT64_MAX

/* It is there from now on, if the settings want it, or they did before: there may be claims of it
 * that are to be unprepared. The host is ready. */
void lifted_start(struct host *host);
/* As the port driver_unprepare: there is nothing to be done. */
void lifted_unprepare(struct host *host, uint64_t call);
/* For lift_prepare (host.h), where nobody knows the cluster: the settings have no agent any more,
 * or the daemon is about to end. */
void lifted_refuse(struct host *host, uint64_t call);

#endif
