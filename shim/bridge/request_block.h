/*
 * What a request's header block says (RFC 7541; gRPC over HTTP/2, "Requests"). No I/O.
 */
#ifndef SHIM_BRIDGE_REQUEST_BLOCK_H
#define SHIM_BRIDGE_REQUEST_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "shim/rpc/message.h"

struct request_block {
    bool malformed; /* no path, or two */
    bool post;
    bool grpc;
    size_t method; /* of `paths`; their number: none of them */
    enum message_encoding encoding;
};

/* Reads a whole block by `inflater`, or, NULL, by itself: with an encoder's table of no bytes. 0;
 * -EBADMSG: it cannot be read; -E2BIG; or -ENOMEM. */
int request_block_read(nghttp2_hd_inflater *inflater, const uint8_t *bytes, size_t len,
                       const char *const *paths, size_t paths_len, struct request_block *out)
    __attribute__((warn_unused_result));

#endif
