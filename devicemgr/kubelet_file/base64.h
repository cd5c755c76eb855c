/*
 * Base64 (RFC 4648 §4), read.
 */
#ifndef DEVICEMGR_KUBELET_FILE_BASE64_H
#define DEVICEMGR_KUBELET_FILE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* 0 with *out for the caller to free; -1 if `text` is not what an encoder writes: with padding,
 * nothing between, and zeroes for what the padding stands for. */
int base64_decode(const char *text, uint8_t **out, size_t *out_len)
    __attribute__((warn_unused_result));

#endif
