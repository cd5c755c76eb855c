/*
 * What registers by a socket (registry/registry.h), told to the core, and what the core asks of DRA
 * drivers: an instance of a driver is a registration, by the same number, and has a connection
 * (dra/driver_client.h) from when the core has taken it until its socket goes. While the core wants
 * to know, so is a driver that has registered with the kubelet itself (registry/elsewhere.h).
 */
#ifndef SHIM_CORE_DRIVERS_H
#define SHIM_CORE_DRIVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "devicemgr/ports.h"

struct drivers;
struct host;

/* Watches the directory of the host's settings. */
struct drivers *drivers_start(struct host *host);

/* The answer to a device plugin that registered in this way (ports.h, register_done). */
void drivers_plugin_registered(struct drivers *drivers, uint64_t registration, int code,
                               const char *message);
/* Whether a device plugin has registered with this socket in this way, and whether its registration
 * is not answered yet. */
bool drivers_plugin_has(const struct drivers *drivers, const char *path);
bool drivers_plugin_waits(const struct drivers *drivers, const char *path);

/* Why nobody can register in this way, and since when (boot_now_ms()); NULL: they can. */
const char *drivers_trouble(const struct drivers *drivers, uint64_t *since_ms);

/* As the ports of these names. */
void drivers_registered(struct drivers *drivers, uint64_t instance, int code, const char *message);
void drivers_prepare(struct drivers *drivers, uint64_t instance, uint64_t call,
                     struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                     uint64_t timeout_ms);
void drivers_unprepare(struct drivers *drivers, uint64_t instance, uint64_t call,
                       struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                       uint64_t timeout_ms);
void drivers_settle(struct drivers *drivers, uint64_t instance, uint64_t call,
                    const struct devicemgr_claim *claim, bool asked, uint64_t timeout_ms);
void drivers_call_cancel(struct drivers *drivers, uint64_t call);

/* The core has asked for all that it wants now: claims of one batch go to their driver in one. */
void drivers_send(struct drivers *drivers);

/* Something of the core's may have changed. */
void drivers_look(struct drivers *drivers);

/* Frees it, then runs `done` from the loop. The core is told nothing any more. */
void drivers_stop(struct drivers *drivers, void (*done)(void *user), void *user);

#endif
