/*
 * UTF-8 (RFC 3629 §4), read character by character.
 */
#ifndef CRI_PROTO_UTF8_H
#define CRI_PROTO_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `text`, of which `len` may be read; 0: there is none. It reads no
 * further than to the first byte that fits no character, so that a NUL ends a text, too. */
size_t utf8_character_bytes(const char *text, size_t len);
/* Whether the NUL-terminated `text` is UTF-8: nothing overlong, no surrogates, nothing past
 * U+10FFFF, as JSON and a Go peer want it; protobuf-c does not look. */
bool utf8_is_text(const char *text);
/* Bytes of the control character at `text`, of which `len` may be read; 0: another stands there.
 * Those above ASCII (U+0080 to U+009F) are some, too: terminals obey them. So are those that end a
 * line (U+2028, U+2029) or show what follows in another order than it is written (U+202A to U+202E,
 * U+2066 to U+2069; UAX #9). */
size_t utf8_control_bytes(const char *text, size_t len);
/* Copies of the NUL-terminated `text` what fits into `bytes` bytes of `out`, one at least, with a
 * NUL. No character is cut in two, and a byte that belongs to none becomes '?', so that `out` is
 * UTF-8. */
void utf8_copy(char *out, size_t bytes, const char *text);

#endif
