/*
 * Base64 (RFC 4648 §4), written; devicemgr/kubelet_file/base64.h reads it.
 */
#ifndef SHIM_BASE64_H
#define SHIM_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* For the caller to free. Out of memory ends the process. */
char *base64_encode(const uint8_t *bytes, size_t len);

#endif
