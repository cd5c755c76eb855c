/*
 * What the fuzzer must see of a session's inside.
 */
#ifndef TESTS_FUZZ_SESSION_PROBE_H
#define TESTS_FUZZ_SESSION_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/session.h"

/* The largest message of the session that is tested. */
#define SESSION_PROBE_MESSAGE_BYTES_MAX 120000u

/* Ends the run as a finding when the sums of a ledger, or the count of queued streams, are off. */
void session_probe_check(const struct session *s);

/* session_feed(). Where the bytes only passed, a session in the state before that is told what they
 * came to (session_pass()): it must write nothing, and be in the same state. */
int session_probe_feed(struct session *s, enum session_end from, const uint8_t *bytes, size_t len);

uint32_t session_probe_stream_id(const struct session_call *call);

/* Whether the call is an intercepted one. */
bool session_probe_waits(const struct session_call *call);

/* session_set_class() */
void session_probe_set_class(struct session *s, enum cri_method method,
                             enum cri_method_class class);

/* Whether some call was to be intercepted since the last session_probe_reset(), which comes before
 * each new session. */
bool session_probe_intercepted(void);
void session_probe_reset(void);

#endif
