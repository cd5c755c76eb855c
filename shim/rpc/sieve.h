/*
 * Of the bytes of an HTTP/2 connection (RFC 9113 §4.1) those frames that are of one stream, or of
 * the connection. Bytes in, bytes out; no I/O.
 *
 * For a session that knows of no other stream, and could not read the header blocks there: their
 * compression is the connection's. What breaks the protocol, as far as a frame's head tells, passes
 * through, so that the session says so. DATA that is passed over is not given back to the
 * connection's window: that is of as many answers as were under way, and LINK_WINDOW_BYTES wide.
 */
#ifndef SHIM_RPC_SIEVE_H
#define SHIM_RPC_SIEVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIEVE_HEAD_BYTES 9

struct sieve {
    int32_t stream_id; /* 0: everything passes through */

    /* private */
    uint8_t head[SIEVE_HEAD_BYTES];
    size_t head_have;
    size_t payload_left; /* of the frame whose head is whole */
    bool passes;         /* that frame */
};

/*
 * Takes bytes from *data and moves *data and *len on. Returns the length of what passes through of
 * them, *piece: borrowed from the sieve or from *data. Call it until it answers 0: all are taken.
 */
size_t sieve_feed(struct sieve *sieve, const uint8_t **data, size_t *len, const uint8_t **piece)
    __attribute__((warn_unused_result));

#endif
