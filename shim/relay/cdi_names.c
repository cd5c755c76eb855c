#include "shim/relay/cdi_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "cri-proto/lift_marker.h"
#include "shim/relay/create_fields.h"
#include "shim/relay/limits.h"
#include "shim/relay/wire.h"

#define NAME 1 /* of a CDIDevice */

struct span {
    const uint8_t *start;
    size_t len;
};

/* Of a text: what it is, and where it has been put already. */
enum met {
    NAMED_BY_FIELD = 1,
    PUT_IN_FIELD = 2,
    PUT_IN_ANNOTATION = 4,
    PUT_AS_KEY = 8,
};

struct text {
    struct span span;
    int met;
    UT_hash_handle hh;
};

struct walk {
    const struct cdi_names *names;
    struct text *texts; /* by what they say */
    int repeats;        /* what an annotation's name repeats: bits of enum met */
    size_t left_out;    /* repeats, */
    size_t markers;     /* and those that no runtime is to see */
    size_t renamed;     /* others go on in the place of so many */
};

static void walk_fini(struct walk *walk)
{
    struct text *text, *next;

    HASH_ITER(hh, walk->texts, text, next) {
        HASH_DEL(walk->texts, text);
        free(text);
    }
}

/* What was so of it before this is, too; or -EBADMSG: there are too many; -ENOMEM. */
static int meet(struct walk *walk, struct span span, int met)
{
    struct text *text;
    int before;

    HASH_FIND(hh, walk->texts, span.start, span.len, text);
    if (!text) {
        if (HASH_COUNT(walk->texts) == RELAY_CDI_NAMES_MAX)
            return -EBADMSG;
        text = calloc(1, sizeof *text);
        if (!text)
            return -ENOMEM;
        text->span = span;
        HASH_ADD_KEYPTR(hh, walk->texts, text->span.start, text->span.len, text);
        if (!text->hh.tbl) {
            free(text);
            return -ENOMEM;
        }
    }
    before = text->met;
    text->met |= met;
    return before;
}

static struct span span_of(const struct wire_field *f)
{
    return (struct span){f->value, (size_t)(f->end - f->value)};
}

static struct span span_of_text(const char *text)
{
    return (struct span){(const uint8_t *)text, strlen(text)};
}

static bool is_of_cdi(struct span key)
{
    size_t len = strlen(CDI_NAMES_ANNOTATION);

    return key.len >= len && memcmp(key.start, CDI_NAMES_ANNOTATION, len) == 0;
}

/* The next of an annotation's names; false: there is none. */
static bool name_next(const uint8_t **at, const uint8_t *end, struct span *out)
{
    const uint8_t *comma;

    if (*at >= end)
        return false;
    comma = memchr(*at, ',', (size_t)(end - *at));
    *out = (struct span){*at, (size_t)((comma ? comma : end) - *at)};
    *at += out->len + 1;
    return true;
}

/* ---- what comes in front ---- */

static int meet_value(struct walk *walk, struct span value)
{
    const uint8_t *at = value.start, *end = at + value.len;
    struct span name;
    int r = 0;

    while (r >= 0 && name_next(&at, end, &name))
        r = meet(walk, name, PUT_IN_ANNOTATION);
    return r;
}

static int meet_options(struct walk *walk, const V1beta1__ContainerAllocateResponse *options)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < options->n_cdi_devices; i++)
        r = meet(walk, span_of_text(options->cdi_devices[i]->name), NAMED_BY_FIELD | PUT_IN_FIELD);
    for (size_t i = 0; r >= 0 && i < options->n_annotations; i++) {
        if (is_of_cdi(span_of_text(options->annotations[i]->key)))
            r = meet_value(walk, span_of_text(options->annotations[i]->value));
    }
    return r < 0 ? r : 0;
}

/* ---- the request ----
 *
 * Each function puts what it is given. 1: it has changed; 0: it has not; or an error. */

static bool is_marker(struct span name)
{
    return lift_marker_is((const char *)name.start, name.len);
}

/* NULL: it goes on as it is. */
static const struct devicemgr_rename *find_rename(const struct walk *walk, struct span name)
{
    for (size_t i = 0; i < walk->names->renames_len; i++) {
        const struct span is = span_of_text(walk->names->renames[i].name);

        if (is.len == name.len && memcmp(is.start, name.start, is.len) == 0)
            return &walk->names->renames[i];
    }
    return NULL;
}

/* Of a CDIDevice; it is met before any is put, since annotations stand in front of the field. */
static int meet_device(struct walk *walk, const struct wire_field *f)
{
    const struct devicemgr_rename *rename;
    struct wire_field name;
    int r = wire_last(f->value, f->end, NAME, &name);

    if (r < 0)
        return r;
    rename = find_rename(walk, span_of(&name));
    if (!rename)
        return meet(walk, span_of(&name), NAMED_BY_FIELD);
    for (size_t i = 0; r >= 0 && i < rename->to_len; i++)
        r = meet(walk, span_of_text(rename->to[i]), NAMED_BY_FIELD);
    return r;
}

/* The message of `f` with other bytes in the place of a field of its own. 1, or an error. */
static int put_with(const struct wire_field *f, const struct wire_field *inner, const void *bytes,
                    size_t len, struct buffer *out)
{
    struct buffer message = {0};
    int r = wire_put_range(&message, f->value, inner->start);

    if (r == 0)
        r = wire_put_field(&message, inner, bytes, len);
    if (r == 0)
        r = wire_put_range(&message, inner->end, f->end);
    if (r == 0)
        r = wire_put_field(out, f, buffer_data(&message), buffer_len(&message));
    buffer_fini(&message);
    return r < 0 ? r : 1;
}

static int put_renamed(struct walk *walk, const struct wire_field *f, const struct wire_field *name,
                       const struct devicemgr_rename *rename, struct buffer *out)
{
    int r = 0;

    walk->renamed++;
    for (size_t i = 0; r >= 0 && i < rename->to_len; i++) {
        r = meet(walk, span_of_text(rename->to[i]), PUT_IN_FIELD);
        if (r >= 0 && !(r & PUT_IN_FIELD))
            r = put_with(f, name, rename->to[i], strlen(rename->to[i]), out);
    }
    return r < 0 ? r : 1;
}

static int put_device(struct walk *walk, const struct wire_field *f, struct buffer *out)
{
    const struct devicemgr_rename *rename;
    struct wire_field name;
    int r = wire_last(f->value, f->end, NAME, &name);

    if (r == 0 && is_marker(span_of(&name))) {
        walk->markers++;
        return 1;
    }
    rename = r == 0 ? find_rename(walk, span_of(&name)) : NULL;
    if (rename)
        return put_renamed(walk, f, &name, rename, out);
    if (r == 0)
        r = meet(walk, span_of(&name), PUT_IN_FIELD);
    if (r < 0)
        return r;
    if (!(r & PUT_IN_FIELD))
        return wire_put_range(out, f->start, f->end);
    walk->left_out++;
    return 1;
}

static int put_name(struct walk *walk, struct span name, struct buffer *out)
{
    int r = meet(walk, name, PUT_IN_ANNOTATION);

    if (r < 0)
        return r;
    if (r & walk->repeats || is_marker(name)) {
        walk->left_out += !is_marker(name);
        walk->markers += is_marker(name);
        return 1;
    }
    r = buffer_len(out) > 0 ? buffer_put(out, ",", 1) : 0;
    return r == 0 ? buffer_put(out, name.start, name.len) : r;
}

static int put_names_renamed(struct walk *walk, const struct devicemgr_rename *rename,
                             struct buffer *out)
{
    int r = 0;

    walk->renamed++;
    for (size_t i = 0; r >= 0 && i < rename->to_len; i++)
        r = put_name(walk, span_of_text(rename->to[i]), out);
    return r < 0 ? r : 1;
}

/* The names that stay, with ',' between them. */
static int put_names(struct walk *walk, struct span value, struct buffer *out)
{
    const uint8_t *at = value.start, *end = at + value.len;
    bool changed = false;
    struct span name;

    while (name_next(&at, end, &name)) {
        const struct devicemgr_rename *rename = is_marker(name) ? NULL : find_rename(walk, name);
        int r = rename ? put_names_renamed(walk, rename, out) : put_name(walk, name, out);

        if (r < 0)
            return r;
        changed = changed || r > 0;
    }
    return changed;
}

/* The entry of a map with another value; without one it is left out. */
static int put_entry(const struct wire_field *f, const struct wire_field *value,
                     const struct buffer *names, struct buffer *out)
{
    return buffer_len(names) == 0 ? 1
                                  : put_with(f, value, buffer_data(names), buffer_len(names), out);
}

static int put_annotation(struct walk *walk, const struct wire_field *f, struct buffer *out)
{
    struct wire_field key, value;
    struct buffer names = {0};
    int r = wire_last(f->value, f->end, CREATE_ENTRY_KEY, &key);

    if (r == 0)
        r = wire_last(f->value, f->end, CREATE_ENTRY_VALUE, &value);
    if (r < 0 || !is_of_cdi(span_of(&key)))
        return r < 0 ? r : wire_put_range(out, f->start, f->end);
    r = meet(walk, span_of(&key), PUT_AS_KEY);
    if (r & PUT_AS_KEY && r > 0)
        return -EBADMSG; /* of two the last counts, and its names have been met */
    if (r >= 0)
        r = put_names(walk, span_of(&value), &names);
    if (r > 0)
        r = put_entry(f, &value, &names, out);
    else if (r == 0)
        r = wire_put_range(out, f->start, f->end);
    buffer_fini(&names);
    return r;
}

static int put_of_config(struct walk *walk, const struct wire_field *f, struct buffer *out)
{
    if (f->number != CREATE_CONFIG_ANNOTATIONS && f->number != CREATE_CONFIG_CDI_DEVICES)
        return wire_put_range(out, f->start, f->end);
    if (f->type != WIRE_BYTES)
        return -EBADMSG;
    return f->number == CREATE_CONFIG_CDI_DEVICES ? put_device(walk, f, out)
                                                  : put_annotation(walk, f, out);
}

/* `out` NULL: the names of the field are only met. */
static int walk_config(struct walk *walk, const struct wire_field *config, struct buffer *out)
{
    const uint8_t *at = config->value;
    bool changed = false;
    struct wire_field f;
    int r;

    if (config->type != WIRE_BYTES)
        return -EBADMSG;
    while ((r = wire_next(&at, config->end, &f)) > 0) {
        if (out)
            r = put_of_config(walk, &f, out);
        else if (f.number == CREATE_CONFIG_CDI_DEVICES)
            r = f.type == WIRE_BYTES ? meet_device(walk, &f) : -EBADMSG;
        if (r < 0)
            return r;
        changed = changed || r > 0;
    }
    return r < 0 ? r : changed;
}

static int meet_field(struct walk *walk, struct span request)
{
    const uint8_t *at = request.start, *end = at + request.len;
    struct wire_field f;
    int r;

    while ((r = wire_next(&at, end, &f)) > 0) {
        if (f.number == CREATE_CONFIG)
            r = walk_config(walk, &f, NULL);
        if (r < 0)
            return r;
    }
    return r;
}

static int put_config(void *user, const struct wire_field *config, struct buffer *out)
{
    return walk_config(user, config, out);
}

int cdi_names_once(const uint8_t *request, size_t request_len, const struct cdi_names *names,
                   struct buffer *out, size_t *count)
{
    const struct span message = {request, request_len};
    struct walk walk = {.names = names,
                        .repeats = PUT_IN_ANNOTATION | (names->field_read ? NAMED_BY_FIELD : 0)};
    int r = names->options ? meet_options(&walk, names->options) : 0;

    if (r == 0 && names->field_read)
        r = meet_field(&walk, message);
    if (r == 0)
        r = wire_put_changed(out, request, request_len, CREATE_CONFIG, put_config, &walk);
    if (r > 0)
        r = 0; /* what has changed the walk says */
    if (r == 0 && (walk.left_out > 0 || walk.markers > 0 || walk.renamed > 0)) {
        *count = walk.left_out;
        r = 1;
    }
    walk_fini(&walk);
    if (r <= 0)
        buffer_fini(out);
    return r == -EBADMSG && names->renames_len == 0 ? 0 : r;
}
