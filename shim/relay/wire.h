/*
 * An encoded protobuf message, field by field as its bytes lie there: for what is changed in a
 * message that passes on as it is otherwise.
 */
#ifndef SHIM_RELAY_WIRE_H
#define SHIM_RELAY_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "shim/relay/buffer.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_FIXED32 = 5,
};

struct wire_field {
    const uint8_t *start;
    uint32_t number;
    unsigned type;
    const uint8_t *tag_end;
    const uint8_t *value; /* of WIRE_BYTES, behind the length */
    const uint8_t *end;   /* of WIRE_GROUP, behind what ends it */
};

/*
 * The field at `*at`, which goes on behind it. 1, 0 at the end, or -EBADMSG: malformed for the
 * runtimes, too, whichever decoder of Go's they have. gogo/protobuf takes the most: varints of ten
 * bytes, of which what is over 64 bits does not count; of a field's number the last 32 bits;
 * whatever ends a group.
 */
int wire_next(const uint8_t **at, const uint8_t *end, struct wire_field *f)
    __attribute__((warn_unused_result));

/* The last field of that number, which is the one that counts; without one it is empty, and has no
 * start. 0 or -EBADMSG: malformed, or one is not of WIRE_BYTES. */
int wire_last(const uint8_t *at, const uint8_t *end, uint32_t number, struct wire_field *out)
    __attribute__((warn_unused_result));

/* Appends. 0, -ENOMEM, or -EMSGSIZE: `out` would be over RELAY_MESSAGE_BYTES_MAX. */
int wire_put_range(struct buffer *out, const uint8_t *start, const uint8_t *end)
    __attribute__((warn_unused_result));
/* The same of what stands before another value of the field: its own tag, the value's length. */
int wire_put_head(struct buffer *out, const struct wire_field *f, size_t len)
    __attribute__((warn_unused_result));
/* The same with that value behind it. */
int wire_put_field(struct buffer *out, const struct wire_field *f, const void *value, size_t len)
    __attribute__((warn_unused_result));
/*
 * Appends the message at `bytes`, with what `change` writes to `value`, which is empty, in the
 * place of the value of each of its fields of this number, if that returns 1; of 0 the field stays
 * as it is, and of what is negative there is no more. 1: one has changed; 0; or that, or as above,
 * or -EBADMSG: it is malformed, or one of these fields is not of WIRE_BYTES.
 */
int wire_put_changed(struct buffer *out, const uint8_t *bytes, size_t len, uint32_t number,
                     int (*change)(void *user, const struct wire_field *f, struct buffer *value),
                     void *user) __attribute__((warn_unused_result));

/* A message whose fields, and those of the messages in it, are texts, messages and varints. */
struct wire_known {
    const ProtobufCMessageDescriptor *message;
    /* Messages in it of which each runtime makes what it likes, malformed as they may be: an older
     * one skips what it does not know; and gogo/protobuf makes something of nearly every entry of a
     * map. It does not look at the type of key and value, lets them go on behind the entry's end,
     * and skips number 0. */
    const ProtobufCMessageDescriptor *const *uncertain;
    size_t uncertain_len;
};

/*
 * Appends what is known of the message at `bytes`, in the one way of writing it: what protobuf-c
 * reads, of a message which only Go does. A known field of another type is left out, as by
 * google.golang.org/protobuf; gogo's refuses the message. As above; -EBADMSG: malformed for all; or
 * -EILSEQ: one that is uncertain is, or has a known field of another type.
 */
int wire_put_known(struct buffer *out, const struct wire_known *what, const uint8_t *bytes,
                   size_t len) __attribute__((warn_unused_result));

#endif
