#include "shim/relay/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "shim/relay/limits.h"

#define VARINT_BYTES_MAX 10
#define GROUP_END 4

static bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; *at < end && shift < 7 * VARINT_BYTES_MAX; shift += 7) {
        uint8_t byte = *(*at)++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool value_read(const uint8_t **at, const uint8_t *end, struct wire_field *f)
{
    uint64_t len = 0;

    switch (f->type) {
    case WIRE_VARINT:
    case WIRE_BYTES:
        if (!varint_read(at, end, &len))
            return false;
        if (f->type == WIRE_VARINT)
            len = 0;
        break;
    case WIRE_FIXED64:
        len = 8;
        break;
    case WIRE_FIXED32:
        len = 4;
        break;
    default: /* the end of a group that has not begun, and what is not in use */
        return false;
    }
    if (len > (uint64_t)(end - *at))
        return false;
    f->value = *at;
    *at += len;
    f->end = *at;
    return true;
}

/* Up to the end of a group that has begun, with all groups in it. */
static bool group_skip(const uint8_t **at, const uint8_t *end)
{
    struct wire_field f;
    uint64_t tag;

    for (size_t depth = 1; depth > 0;) {
        if (!varint_read(at, end, &tag))
            return false;
        f.type = tag & 7;
        if (f.type == WIRE_GROUP)
            depth++;
        else if (f.type == GROUP_END)
            depth--;
        else if (!value_read(at, end, &f))
            return false;
    }
    return true;
}

int wire_next(const uint8_t **at, const uint8_t *end, struct wire_field *f)
{
    uint64_t tag;

    if (*at == end)
        return 0;
    f->start = *at;
    if (!varint_read(at, end, &tag))
        return -EBADMSG;
    f->tag_end = *at;
    f->number = (uint32_t)(tag >> 3);
    f->type = tag & 7;
    if (f->number == 0 || f->number > INT32_MAX)
        return -EBADMSG;
    if (f->type != WIRE_GROUP)
        return value_read(at, end, f) ? 1 : -EBADMSG;
    f->value = *at;
    if (!group_skip(at, end))
        return -EBADMSG;
    f->end = *at;
    return 1;
}

int wire_last(const uint8_t *at, const uint8_t *end, uint32_t number, struct wire_field *out)
{
    struct wire_field f;
    int r;

    *out = (struct wire_field){.value = end, .end = end};
    while ((r = wire_next(&at, end, &f)) > 0) {
        if (f.number == number && f.type != WIRE_BYTES)
            return -EBADMSG;
        if (f.number == number)
            *out = f;
    }
    return r;
}

static int put(struct buffer *out, const void *bytes, size_t len)
{
    if (len > RELAY_MESSAGE_BYTES_MAX - buffer_len(out))
        return -EMSGSIZE;
    return buffer_put(out, bytes, len);
}

int wire_put_range(struct buffer *out, const uint8_t *start, const uint8_t *end)
{
    return put(out, start, (size_t)(end - start));
}

static int put_varint(struct buffer *out, uint64_t value)
{
    uint8_t varint[VARINT_BYTES_MAX];
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        varint[n++] = (uint8_t)(value | 0x80);
    varint[n++] = (uint8_t)value;
    return put(out, varint, n);
}

int wire_put_head(struct buffer *out, const struct wire_field *f, size_t len)
{
    int r = wire_put_range(out, f->start, f->tag_end);

    return r == 0 ? put_varint(out, len) : r;
}

int wire_put_field(struct buffer *out, const struct wire_field *f, const void *value, size_t len)
{
    int r = wire_put_head(out, f, len);

    return r == 0 ? put(out, value, len) : r;
}

int wire_put_changed(struct buffer *out, const uint8_t *bytes, size_t len, uint32_t number,
                     int (*change)(void *user, const struct wire_field *f, struct buffer *value),
                     void *user)
{
    const uint8_t *at = bytes;
    bool changed = false;
    struct wire_field f;
    int r;

    while ((r = wire_next(&at, bytes + len, &f)) > 0) {
        struct buffer value = {0};

        r = 0;
        if (f.number == number)
            r = f.type == WIRE_BYTES ? change(user, &f, &value) : -EBADMSG;
        changed = changed || r > 0;
        if (r > 0)
            r = wire_put_field(out, &f, buffer_data(&value), buffer_len(&value));
        else if (r == 0)
            r = wire_put_range(out, f.start, f.end);
        buffer_fini(&value);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : changed;
}

/* ---- what is known ---- */

static unsigned type_of(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE
               ? WIRE_BYTES
               : WIRE_VARINT;
}

static int put_bytes(struct buffer *out, const void *bytes, size_t len)
{
    int r = put_varint(out, len);

    return r == 0 ? put(out, bytes, len) : r;
}

static int put_fields(struct buffer *out, const struct wire_known *what,
                      const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
                      size_t len);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the descriptor's messages */
static int put_message(struct buffer *out, const struct wire_known *what,
                       const ProtobufCMessageDescriptor *descriptor, const struct wire_field *f)
{
    struct buffer known = {0};
    int r = put_fields(&known, what, descriptor, f->value, (size_t)(f->end - f->value));

    if (r == 0)
        r = put_bytes(out, buffer_data(&known), buffer_len(&known));
    buffer_fini(&known);
    return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the descriptor's messages */
static int put_known_field(struct buffer *out, const struct wire_known *what,
                           const ProtobufCFieldDescriptor *field, const struct wire_field *f)
{
    int r = put_varint(out, (uint64_t)field->id << 3 | f->type);

    if (r < 0)
        return r;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return put_message(out, what, field->descriptor, f);
    if (f->type == WIRE_BYTES)
        return put_bytes(out, f->value, (size_t)(f->end - f->value));
    return wire_put_range(out, f->tag_end, f->end);
}

static bool is_uncertain(const struct wire_known *what,
                         const ProtobufCMessageDescriptor *descriptor)
{
    size_t i = 0;

    while (i < what->uncertain_len && what->uncertain[i] != descriptor)
        i++;
    return i < what->uncertain_len;
}

/* As wire_put_known(), of a message of this kind. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the descriptor's messages */
static int put_fields(struct buffer *out, const struct wire_known *what,
                      const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
                      size_t len)
{
    bool uncertain = is_uncertain(what, descriptor);
    const uint8_t *at = bytes;
    struct wire_field f;
    int r;

    while ((r = wire_next(&at, bytes + len, &f)) > 0) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(descriptor, f.number);

        if (field && f.type == type_of(field))
            r = put_known_field(out, what, field, &f);
        else if (field && uncertain)
            r = -EBADMSG;
        if (r < 0)
            break;
    }
    return r == -EBADMSG && uncertain ? -EILSEQ : r;
}

int wire_put_known(struct buffer *out, const struct wire_known *what, const uint8_t *bytes,
                   size_t len)
{
    return put_fields(out, what, what->message, bytes, len);
}
