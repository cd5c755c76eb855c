#include "shim/relay/mount_redirect.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "shim/relay/limits.h"
#include "shim/relay/wire.h"

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

/* ---- rewriting ---- */

/* CreateContainerRequest.config, ContainerConfig.mounts, Mount.host_path. */
static const uint64_t WAY[] = {2, 7, 2};
#define WAY_MOUNT 2
#define MOUNT_READONLY 3

struct redirect {
    const char *from;
    const char *to;
};

/* Of a WIRE_VARINT: whether it is not 0. */
static bool is_true(const struct wire_field *f)
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
    struct wire_field f, last = {0};
    bool readonly = false;
    int r;

    while ((r = wire_next(&at, end, &f)) > 0) {
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
    r = wire_put_range(out, bytes, last.start);
    if (r == 0)
        r = wire_put_field(out, &last, redirect->to, strlen(redirect->to));
    if (r == 0)
        r = wire_put_range(out, last.end, end);
    return r < 0 ? r : 1;
}

static int rewrite(const struct redirect *redirect, int depth, const uint8_t *bytes, size_t len,
                   struct buffer *out);

/* One field of a message above the mounts; 1: it has changed. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the way to the mounts is long */
static int rewrite_field(const struct redirect *redirect, int depth, const struct wire_field *f,
                         struct buffer *out)
{
    struct buffer inner = {0};
    int r = 0, put;

    if (f->number == WAY[depth])
        r = f->type != WIRE_BYTES
                ? -EBADMSG
                : rewrite(redirect, depth + 1, f->value, (size_t)(f->end - f->value), &inner);
    if (r > 0)
        put = wire_put_field(out, f, buffer_data(&inner), buffer_len(&inner));
    else
        put = wire_put_range(out, f->start, f->end);
    buffer_fini(&inner);
    return r < 0 || put == 0 ? r : put;
}

/* As mount_redirect(), for the message at `depth` of the way; -EBADMSG: malformed. What `out` holds
 * is of use only if 1 is returned. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the way to the mounts is long */
static int rewrite(const struct redirect *redirect, int depth, const uint8_t *bytes, size_t len,
                   struct buffer *out)
{
    const uint8_t *at = bytes;
    bool changed = false;
    struct wire_field f;
    int r;

    if (depth == WAY_MOUNT)
        return rewrite_mount(redirect, bytes, len, out);
    while ((r = wire_next(&at, bytes + len, &f)) > 0) {
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
