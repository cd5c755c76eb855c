/*
 * CreateContainers, from the request over the device manager's verdict to the runtime's answer.
 *
 * Each has a number, by which the device manager knows it. One whose request cannot be read is the
 * runtime's to refuse and goes on untouched; so does one that asks for no device of ours.
 *
 * One with CDI devices waits until it is known what the runtime makes of those (host_knows_cdi()),
 * which takes some ms at the daemon's start: it would be decided by guess.
 */
#ifndef SHIM_RELAY_PENDING_CREATES_H
#define SHIM_RELAY_PENDING_CREATES_H

#include "devicemgr/devicemgr.h"
#include "shim/core/host.h"
#include "shim/histogram.h"
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

/* As calls_bind() and calls_set_redirect(). */
void pending_creates_bind(struct pending_creates *creates, struct host *host);
void pending_creates_set_redirect(struct pending_creates *creates, const char *from,
                                  const char *to);
void pending_creates_set_driver_redirect(struct pending_creates *creates, const char *from,
                                         const char *to, const char *const *pods, size_t pods_len);

/* Calls of CRI_CREATE_CONTAINER, as in session_owner_ops. `deadline_ms`: when the client will give
 * it up, UINT64_MAX for never. */
void pending_creates_request(struct pending_creates *creates, struct session *session,
                             struct session_call *call, uint64_t deadline_ms);
void pending_creates_answered(struct pending_creates *creates, struct session_call *call,
                              int status, const uint8_t *message, size_t message_bytes);
void pending_creates_ended(struct pending_creates *creates, struct session_call *call);

/* Decides those that have waited: host_knows_cdi() is so, or they are to wait no longer. */
void pending_creates_cdi_known(struct pending_creates *creates);

/* One that an earlier process forwarded, or let pass: the device manager knows that such go on, and
 * when they are over. pending_creates_ended() follows. */
void pending_creates_regained(struct pending_creates *creates, struct session_call *call);

/* As calls_verdict(). */
void pending_creates_verdict(struct pending_creates *creates, uint64_t create,
                             const struct devicemgr_verdict *verdict);

#endif
