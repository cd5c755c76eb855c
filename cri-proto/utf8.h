/*
 * UTF-8 (RFC 3629 §4), read character by character.
 */
#ifndef CRI_PROTO_UTF8_H
#define CRI_PROTO_UTF8_H

#include <stddef.h>

/* Bytes of the character at `text`, of which `len` may be read; 0: there is none. It reads no
 * further than to the first byte that fits no character, so that a NUL ends a text, too. */
size_t utf8_character_bytes(const char *text, size_t len);

#endif
