#include "shim/relay/mount_redirect.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "shim/relay/limits.h"

/* ---- paths ---- */

struct name {
    const char *text;
    size_t len;
};

static bool is_name(const struct name *name, const char *text)
{
    return name->len == strlen(text) && memcmp(name->text, text, name->len) == 0;
}

/* The next name of a path that is not "."; false: there is none. */
static bool name_next(const char **at, const char *end, struct name *out)
{
    do {
        while (*at < end && **at == '/')
            ++*at;
        out->text = *at;
        while (*at < end && **at != '/')
            ++*at;
        out->len = (size_t)(*at - out->text);
    } while (is_name(out, "."));
    return out->len > 0;
}

enum mount_place mount_place(const char *path, size_t path_len, const char *directory)
{
    const char *path_end = path + path_len, *directory_end = directory + strlen(directory);
    enum mount_place place = MOUNT_AT;
    struct name a, b;

    if (path_len == 0 || path[0] != '/')
        return MOUNT_ELSEWHERE;
    while (name_next(&path, path_end, &a)) {
        bool within = name_next(&directory, directory_end, &b);

        if (is_name(&a, "..") || (within && (a.len != b.len || memcmp(a.text, b.text, a.len) != 0)))
            return MOUNT_ELSEWHERE;
        if (!within)
            place = MOUNT_BELOW;
    }
    return place == MOUNT_AT && name_next(&directory, directory_end, &b) ? MOUNT_ABOVE : place;
}

/* ---- fields on the wire ---- */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define VARINT_BYTES_MAX 10
#define FIELD_NUMBER_MAX ((1u << 29) - 1)

struct field {
    const uint8_t *start;
    uint64_t number;
    unsigned type;
    const uint8_t *tag_end;
    const uint8_t *value; /* of WIRE_BYTES, behind the length */
    const uint8_t *end;
};

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

static bool value_read(const uint8_t **at, const uint8_t *end, struct field *f)
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

/* 1, 0 at the end, or -EBADMSG. */
static int field_next(const uint8_t **at, const uint8_t *end, struct field *f)
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

/* ---- rewriting ---- */

/* CreateContainerRequest.config, ContainerConfig.mounts, Mount.host_path. */
static const uint64_t WAY[] = {2, 7, 2};
#define WAY_MOUNT 2
#define MOUNT_READONLY 3

struct redirect {
    const char *from;
    const char *to;
};

static int put(struct buffer *out, const void *bytes, size_t len)
{
    if (len > RELAY_MESSAGE_BYTES_MAX - buffer_len(out))
        return -EMSGSIZE;
    return buffer_put(out, bytes, len);
}

static int put_range(struct buffer *out, const uint8_t *start, const uint8_t *end)
{
    return put(out, start, (size_t)(end - start));
}

/* The field's own tag, and another value. */
static int put_field(struct buffer *out, const struct field *f, const void *value, size_t len)
{
    uint8_t varint[VARINT_BYTES_MAX];
    size_t n = 0, rest = len;
    int r;

    for (; rest >= 0x80; rest >>= 7)
        varint[n++] = (uint8_t)(rest | 0x80);
    varint[n++] = (uint8_t)rest;
    r = put_range(out, f->start, f->tag_end);
    if (r == 0)
        r = put(out, varint, n);
    return r == 0 ? put(out, value, len) : r;
}

/* Of a WIRE_VARINT: whether it is not 0. */
static bool is_true(const struct field *f)
{
    for (const uint8_t *at = f->tag_end; at < f->end; at++) {
        if (*at & 0x7f)
            return true;
    }
    return false;
}

/* A Mount; of a field that is there twice the last one counts. As mount_redirect(). */
static int rewrite_mount(const struct redirect *redirect, const uint8_t *bytes, size_t len,
                         struct buffer *out)
{
    const uint8_t *at = bytes, *end = bytes + len;
    struct field f, last = {0};
    bool readonly = false;
    int r;

    while ((r = field_next(&at, end, &f)) > 0) {
        if (f.number != WAY[WAY_MOUNT] && f.number != MOUNT_READONLY)
            continue;
        if (f.type != (f.number == MOUNT_READONLY ? WIRE_VARINT : WIRE_BYTES))
            return -EBADMSG;
        if (f.number == MOUNT_READONLY)
            readonly = is_true(&f);
        else
            last = f;
    }
    if (r < 0 || readonly || !last.start ||
        mount_place((const char *)last.value, (size_t)(last.end - last.value), redirect->from) !=
            MOUNT_AT)
        return r;
    r = put_range(out, bytes, last.start);
    if (r == 0)
        r = put_field(out, &last, redirect->to, strlen(redirect->to));
    if (r == 0)
        r = put_range(out, last.end, end);
    return r < 0 ? r : 1;
}

static int rewrite(const struct redirect *redirect, int depth, const uint8_t *bytes, size_t len,
                   struct buffer *out);

/* One field of a message above the mounts; 1: it has changed. */
static int rewrite_field(const struct redirect *redirect, int depth, const struct field *f,
                         struct buffer *out)
{
    struct buffer inner = {0};
    int r = 0, put;

    if (f->number == WAY[depth])
        r = f->type != WIRE_BYTES
                ? -EBADMSG
                : rewrite(redirect, depth + 1, f->value, (size_t)(f->end - f->value), &inner);
    if (r > 0)
        put = put_field(out, f, buffer_data(&inner), buffer_len(&inner));
    else
        put = put_range(out, f->start, f->end);
    buffer_fini(&inner);
    return r < 0 || put == 0 ? r : put;
}

/* As mount_redirect(), for the message at `depth` of the way; -EBADMSG: malformed. What `out` holds
 * is of use only if 1 is returned. */
static int rewrite(const struct redirect *redirect, int depth, const uint8_t *bytes, size_t len,
                   struct buffer *out)
{
    const uint8_t *at = bytes;
    bool changed = false;
    struct field f;
    int r;

    if (depth == WAY_MOUNT)
        return rewrite_mount(redirect, bytes, len, out);
    while ((r = field_next(&at, bytes + len, &f)) > 0) {
        r = rewrite_field(redirect, depth, &f, out);
        if (r < 0)
            return r;
        changed = changed || r > 0;
    }
    return r < 0 ? r : changed;
}

int mount_redirect(const uint8_t *request, size_t request_len, const char *from, const char *to,
                   struct buffer *out)
{
    const struct redirect redirect = {from, to};
    int r = rewrite(&redirect, 0, request, request_len, out);

    if (r <= 0)
        buffer_fini(out);
    return r == -EBADMSG ? 0 : r;
}
