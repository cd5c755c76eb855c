/*
 * Listening to header blocks that pass: HPACK state and the few fields the relay reads (RFC 7541).
 *
 * The blocks themselves are forwarded verbatim; the listener sees them in pieces of any size and
 * keeps its dynamic table in step with the two ends, whose table size changes it follows.
 */
#ifndef SHIM_RELAY_HEADER_LISTENER_H
#define SHIM_RELAY_HEADER_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/frozen.h"
#include "shim/relay/header_memo.h"

struct header_listener; /* one direction of one connection */

struct header_listener *header_listener_new(void);    /* NULL: out of memory */
void header_listener_free(struct header_listener *l); /* accepts NULL */

/*
 * The next piece of a block; `final`: its last. 0, or -EBADMSG when the bytes are no HPACK that the
 * receiving end could read either, or have a string for which nothing can stand (long_strings.h);
 * or -E2BIG for a list over RELAY_HEADER_LIST_BYTES_MAX or a table over
 * RELAY_HEADER_TABLE_BYTES_MAX; the listener is of no use any more then. After the final piece the
 * fields are complete.
 */
int header_listener_feed(struct header_listener *l, const uint8_t *bytes, size_t len, bool final)
    __attribute__((warn_unused_result));

/* A whole block in the place of its pieces, if it is one that need not be decoded; then its fields
 * are complete. False: nothing has been taken. */
bool header_listener_recall(struct header_listener *l, const uint8_t *bytes, size_t len);

/* The blocks that need not be decoded, borrowed for the listener's life. One of them may be left
 * out altogether, if nobody wants its fields. */
const struct header_memo *header_listener_memo(const struct header_listener *l);

/* The fields of the last block, borrowed until the next feed. */
const struct header_fields *header_listener_fields(const struct header_listener *l);

/* The grpc-message of the last block, as it stands there (percent-encoded), borrowed until the next
 * feed; NULL: it had none, or an empty one. At most RELAY_STATUS_TEXT_BYTES_MAX of it. */
const char *header_listener_message(const struct header_listener *l);

/* The encoder has acknowledged SETTINGS_HEADER_TABLE_SIZE: blocks from here on obey it. 0 or
 * -ENOMEM. */
int header_listener_table_size(struct header_listener *l, uint32_t bytes)
    __attribute__((warn_unused_result));

/* Between two blocks: writes what a listener needs to go on here. */
void header_listener_freeze(const struct header_listener *l, struct frozen_writer *w);

/* A listener from that; NULL: out of memory, or r->bad. */
struct header_listener *header_listener_thaw(struct frozen_reader *r);

#endif
