/*
 * CreateContainers, from the request over the device manager's verdict to the runtime's answer.
 *
 * Each has a number, by which the device manager knows it. One whose request cannot be read is the
 * runtime's to refuse and goes on untouched; so does one that asks for no device of ours.
 *
 * At the daemon's start one waits, for some ms, until it is known what holds what
 * (host_knows_rows()), and one with CDI devices until it is known what the runtime makes of those
 * (host_knows_cdi()), also behind each of the runtime's starts: they would be refused for nothing,
 * or decided by guess.
 */
#ifndef SHIM_RELAY_PENDING_CREATES_H
#define SHIM_RELAY_PENDING_CREATES_H

#include "devicemgr/devicemgr.h"
#include "shim/core/host.h"
#include "shim/histogram.h"
#include "shim/relay/plugin_mounts.h"
#include "shim/relay/session.h"

struct pending_creates;

/* How long those with devices took to be decided, and were held, of those that were. */
struct create_counts {
    struct histogram forwarded, forwarded_held;
    struct histogram refused, refused_held;
};

/* Borrowed until pending_creates_free(). */
const struct create_counts *pending_creates_counts(const struct pending_creates *creates);

/* NULL: out of memory. */
struct pending_creates *pending_creates_new(void);
/* Every session must be gone. Accepts NULL. */
void pending_creates_free(struct pending_creates *creates);

/* As calls_bind(). */
void pending_creates_bind(struct pending_creates *creates, struct host *host);

/* Whose mounts are redirected, of device plugins and of DRA drivers: to be set, before the first
 * call. */
struct plugin_mounts *pending_creates_mounts(struct pending_creates *creates);
struct plugin_mounts *pending_creates_driver_mounts(struct pending_creates *creates);

/* Calls of CRI_CREATE_CONTAINER, as in session_owner_ops. `deadline_ms`: when the client will give
 * it up, UINT64_MAX for never. */
void pending_creates_request(struct pending_creates *creates, struct session *session,
                             struct session_call *call, uint64_t deadline_ms);
void pending_creates_answered(struct pending_creates *creates, struct session_call *call,
                              int status, const uint8_t *message, size_t message_bytes);
void pending_creates_ended(struct pending_creates *creates, struct session_call *call);

/* The host's `known`: decides those that have waited for it. */
void pending_creates_known(struct pending_creates *creates);
/* The daemon stops: decides all that wait; none does from now on. */
void pending_creates_drain(struct pending_creates *creates);

/* One that an earlier process forwarded, or let pass: the device manager knows that such go on, and
 * when they are over. pending_creates_ended() follows. */
void pending_creates_regained(struct pending_creates *creates, struct session_call *call);

/* As calls_verdict(). */
void pending_creates_verdict(struct pending_creates *creates, uint64_t create,
                             const struct devicemgr_verdict *verdict);

#endif
