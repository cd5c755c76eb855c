/*
 * gRPC's status and deadline as they stand in header fields, and the codes other layers' failures
 * become. Texts in, texts out; no state.
 */
#ifndef SHIM_RPC_STATUS_H
#define SHIM_RPC_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/rpc/rpc.h"

/* Room for any encoded grpc-message we send, with its NUL: each byte may become "%XX". */
#define STATUS_ENCODED_BYTES_MAX (3 * RPC_STATUS_TEXT_BYTES_MAX + 1)

/* Room for a decoded text with its NUL. */
#define STATUS_TEXT_BYTES_MAX (RPC_STATUS_TEXT_BYTES_MAX + 1)

/* Room for a grpc-timeout with its NUL: eight digits and a unit. */
#define STATUS_TIMEOUT_BYTES_MAX 10

/* A deadline this long is none: more than a human life, and it fits libuv's timers. */
#define STATUS_TIMEOUT_MS_MAX (UINT64_C(1) << 48)

/* Percent-encodes `text` as a grpc-message (gRPC over HTTP/2, "Percent-Byte-Encoded"). Text longer
 * than RPC_STATUS_TEXT_BYTES_MAX is cut before a UTF-8 character. Returns the length without NUL.
 */
size_t status_encode(const char *text, char out[static STATUS_ENCODED_BYTES_MAX]);

/* Decodes a grpc-message of any bytes. What is no valid escape stays as it is, a NUL becomes '?',
 * and what is too long is cut before a UTF-8 character. */
void status_decode(const uint8_t *value, size_t len, char out[static STATUS_TEXT_BYTES_MAX]);

/* Copies `text`, cut as above. */
void status_copy(const char *text, char out[static STATUS_TEXT_BYTES_MAX]);

/* The code of a grpc-status field; RPC_UNKNOWN for what is no code. */
int status_code_parse(const uint8_t *value, size_t len);

/* The number of a :status field, whose digits the session has looked at. */
int status_http_parse(const uint8_t *value, size_t len);

/* Writes a grpc-timeout of at least `timeout_ms` in eight digits at most. */
void status_timeout_format(uint64_t timeout_ms, char out[static STATUS_TIMEOUT_BYTES_MAX]);

/* Reads a grpc-timeout; part milliseconds count as whole ones, and *timeout_ms is at most
 * STATUS_TIMEOUT_MS_MAX. False for one that is malformed. */
bool status_timeout_parse(const uint8_t *value, size_t len, uint64_t *timeout_ms)
    __attribute__((warn_unused_result));

/* The code for an answer without grpc-status (gRPC "HTTP to gRPC Status Code Mapping"). */
int status_from_http(int http_status);

/* The code for RST_STREAM (gRPC over HTTP/2, "HTTP2 Transport Mapping", errors). */
int status_from_h2(uint32_t error_code);

#endif
