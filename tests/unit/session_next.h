/* session_freeze() and session_thaw() of a release to come, whose state has more in each
 * section. */
#ifndef TESTS_UNIT_SESSION_NEXT_H
#define TESTS_UNIT_SESSION_NEXT_H

#include "shim/relay/session.h"

int session_next_freeze(struct session *s, struct buffer *out) __attribute__((warn_unused_result));
int session_next_thaw(const uint8_t *state, size_t len, const struct session_ops *ops, void *user,
                      struct session_owner owner, struct session **out)
    __attribute__((warn_unused_result));

#endif
