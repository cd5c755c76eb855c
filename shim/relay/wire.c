#include "shim/relay/wire.h"

#include <errno.h>
#include <stdbool.h>

#include "shim/relay/limits.h"

#define VARINT_BYTES_MAX 10
#define FIELD_NUMBER_MAX ((1u << 29) - 1)

static bool varint_read(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; *at < end && shift < 7 * VARINT_BYTES_MAX; shift += 7) {
        uint8_t byte = *(*at)++;

        if (shift == 7 * (VARINT_BYTES_MAX - 1) && byte > 1)
            return false; /* more than 64 bits */
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
    default: /* groups, and what is not in use */
        return false;
    }
    if (len > (uint64_t)(end - *at))
        return false;
    f->value = *at;
    *at += len;
    f->end = *at;
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
    f->number = tag >> 3;
    f->type = tag & 7;
    if (f->number == 0 || f->number > FIELD_NUMBER_MAX)
        return -EBADMSG;
    return value_read(at, end, f) ? 1 : -EBADMSG;
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

int wire_put_field(struct buffer *out, const struct wire_field *f, const void *value, size_t len)
{
    uint8_t varint[VARINT_BYTES_MAX];
    size_t n = 0, rest = len;
    int r;

    for (; rest >= 0x80; rest >>= 7)
        varint[n++] = (uint8_t)(rest | 0x80);
    varint[n++] = (uint8_t)rest;
    r = wire_put_range(out, f->start, f->tag_end);
    if (r == 0)
        r = put(out, varint, n);
    return r == 0 ? put(out, value, len) : r;
}
