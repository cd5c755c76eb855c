/*
 * An encoded protobuf message, field by field as its bytes lie there: for what is changed in a
 * message that passes on as it is otherwise.
 */
#ifndef SHIM_RELAY_WIRE_H
#define SHIM_RELAY_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "shim/relay/buffer.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    const uint8_t *start;
    uint64_t number;
    unsigned type;
    const uint8_t *tag_end;
    const uint8_t *value; /* of WIRE_BYTES, behind the length */
    const uint8_t *end;
};

/* The field at `*at`, which goes on behind it. 1, 0 at the end, or -EBADMSG: malformed, or a
 * group. */
int wire_next(const uint8_t **at, const uint8_t *end, struct wire_field *f)
    __attribute__((warn_unused_result));

/* Appends. 0, -ENOMEM, or -EMSGSIZE: `out` would be over RELAY_MESSAGE_BYTES_MAX. */
int wire_put_range(struct buffer *out, const uint8_t *start, const uint8_t *end)
    __attribute__((warn_unused_result));
/* The same of the field with another value: its own tag, the value's length, the value. */
int wire_put_field(struct buffer *out, const struct wire_field *f, const void *value, size_t len)
    __attribute__((warn_unused_result));

#endif
