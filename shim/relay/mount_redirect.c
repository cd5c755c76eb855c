#include "shim/relay/mount_redirect.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "shim/relay/create_fields.h"
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

/* Of a Mount. */
#define MOUNT_HOST_PATH 2
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
static int rewrite_mount(void *user, const struct wire_field *mount, struct buffer *out)
{
    const struct redirect *redirect = user;
    const uint8_t *at = mount->value;
    struct wire_field f, last = {0};
    bool readonly = false;
    int r;

    while ((r = wire_next(&at, mount->end, &f)) > 0) {
        if (f.number != MOUNT_HOST_PATH && f.number != MOUNT_READONLY)
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
    r = wire_put_range(out, mount->value, last.start);
    if (r == 0)
        r = wire_put_field(out, &last, redirect->to, strlen(redirect->to));
    if (r == 0)
        r = wire_put_range(out, last.end, mount->end);
    return r < 0 ? r : 1;
}

static int rewrite_config(void *user, const struct wire_field *config, struct buffer *out)
{
    return wire_put_changed(out, config->value, (size_t)(config->end - config->value),
                            CREATE_CONFIG_MOUNTS, rewrite_mount, user);
}

int mount_redirect(const uint8_t *request, size_t request_len, const char *from, const char *to,
                   struct buffer *out)
{
    struct redirect redirect = {from, to};
    int r = wire_put_changed(out, request, request_len, CREATE_CONFIG, rewrite_config, &redirect);

    if (r <= 0)
        buffer_fini(out);
    return r == -EBADMSG ? 0 : r;
}
