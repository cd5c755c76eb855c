/*
 * A session made again from a journal: fed, begun and decided on as the one before it was.
 */
#ifndef SHIM_RELAY_REPLAY_H
#define SHIM_RELAY_REPLAY_H

#include <stdint.h>

#include "shim/relay/journal.h"
#include "shim/relay/session.h"

/*
 * Repeats all events of `j` on `session`, which is in the state that they follow on, and has no
 * owner in the meantime: session_set_owner() and session_begin() are for afterwards. `put_out` is
 * where its ops->write counts what it puts out for each end; what has passed is counted there, too.
 * 0; or a negative code: it is another session than it was, or cannot go on; it is good for
 * session_free() only.
 */
int replay(struct journal *j, struct session *session, uint64_t put_out[2])
    __attribute__((warn_unused_result));

#endif
