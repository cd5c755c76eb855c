/*
 * What the daemon answers (cri-proto/control_v1.proto), as JSON for programs: the documents of
 * `cri-device-shimctl -o json`, and those of the page for people (shim/page/). The two are made
 * here, and so say the same.
 *
 * Each function makes a value that is the caller's, and borrows the message until it returns. Out
 * of memory ends the process (must.h). Texts of peers that are no UTF-8 become '?'.
 */
#ifndef SHIM_ANSWERS_ANSWERS_H
#define SHIM_ANSWERS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "cri-proto/control_v1.pb-c.h"

/* The whole answer to Status, and to Why. */
json_t *answer_status(const Control__V1__StatusResponse *status);
json_t *answer_why(const Control__V1__WhyResponse *response);

/* One row of a list, or of Events. */
json_t *answer_resource(const Control__V1__Resource *row);
json_t *answer_plugin(const Control__V1__Plugin *row);
json_t *answer_device(const Control__V1__Device *row);
json_t *answer_driver_device(const Control__V1__DriverDevice *row);
json_t *answer_pod(const Control__V1__Pod *row);
json_t *answer_order(const Control__V1__Order *row);
json_t *answer_taint(const Control__V1__Taint *row);
json_t *answer_ending(const Control__V1__Ending *row);
json_t *answer_driver(const Control__V1__Driver *row);
json_t *answer_claim(const Control__V1__Claim *row);
json_t *answer_event(const Control__V1__Event *event);
/* With these ids in place of the row's own: one allocation may come in several rows. */
json_t *answer_allocation(const Control__V1__Allocation *row, char *const *ids, size_t ids_len);

/* ---- words that tables have, too ---- */

/* healthy, unhealthy, unlisted */
const char *answer_device_health(const Control__V1__Device *row);
/* connected, moved, away, gone */
const char *answer_driver_state(const Control__V1__Driver *row);
/* shim, kubelet, claim */
const char *answer_chosen_by(const Control__V1__Allocation *row);
/* go, ask, wait, refuse */
const char *answer_step(Control__V1__Finding__Step step);

#define ANSWER_TIME_BYTES 32
/* How long ago, as a time (RFC 3339). */
const char *answer_time(uint64_t ms_ago, char out[static ANSWER_TIME_BYTES]);

/* ---- parts of several ---- */

/* How long ago, as a time (RFC 3339). */
json_t *answer_ago(uint64_t ms);
json_t *answer_seconds(uint64_t ms);
/* What an operator has set: since when, and why. This and all below: null if it is NULL. */
json_t *answer_cordon(const Control__V1__Cordon *cordon);
/* What a driver says of a device's health. */
json_t *answer_health(const Control__V1__DeviceHealth *health);
json_t *answer_reason(const Control__V1__Reason *reason);
json_t *answer_refusal(const Control__V1__Refusal *refusal);
json_t *answer_why_claim(const Control__V1__ClaimWhy *claim);

#endif
