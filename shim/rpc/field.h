/*
 * Header fields of gRPC over HTTP/2, to send and to look at.
 */
#ifndef SHIM_RPC_FIELD_H
#define SHIM_RPC_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#define FIELD_CONTENT_TYPE "application/grpc"
#define FIELD_ENCODINGS "identity,gzip"

/* A field to send; both texts are borrowed, nghttp2_submit_*() copies them. */
nghttp2_nv field_make(const char *name, const char *value);

/* Whether the bytes are `text`. */
bool field_is(const uint8_t *bytes, size_t len, const char *text);

/* Whether a content-type is gRPC's: "application/grpc", alone or before '+' or ';'. */
bool field_is_grpc_type(const uint8_t *value, size_t len);

/* What a field counts in a header list (RFC 9113 §6.5.2). */
size_t field_bytes(size_t name_len, size_t value_len);

#endif
