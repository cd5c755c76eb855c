#include "shim/bridge/kept_layout.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define ALIGNED 64
/* More than any release has. */
#define FIELDS_MAX 4096

struct layout {
    uint32_t bytes; /* of the image */
    uint32_t len;
    struct kept_field fields[];
};

/* An image, and where in it the fields of a slot begin. */
struct view {
    uint8_t *image;
    const struct layout *layout;
    size_t slot, slot_bytes;
};

size_t kept_layout_bytes(size_t fields)
{
    size_t bytes = sizeof(struct layout) + fields * sizeof(struct kept_field);

    return (bytes + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
}

void kept_layout_write(void *image, size_t bytes, const struct kept_field *fields, size_t len)
{
    struct layout *layout = image;

    layout->bytes = (uint32_t)bytes;
    layout->len = (uint32_t)len;
    memcpy(layout->fields, fields, len * sizeof *fields);
}

size_t kept_layout_image_bytes(const void *image)
{
    return ((const struct layout *)image)->bytes;
}

int kept_layout_is(const void *image, const struct kept_field *fields, size_t len)
{
    const struct layout *layout = image;

    return layout->len == len && memcmp(layout->fields, fields, len * sizeof *fields) == 0;
}

/* ---- one field ---- */

static const struct kept_field *find(const struct view *view, uint32_t tag)
{
    for (uint32_t i = 0; i < view->layout->len; i++) {
        if (view->layout->fields[i].tag == tag)
            return &view->layout->fields[i];
    }
    return NULL;
}

static uint8_t *element(const struct view *view, const struct kept_field *field, uint32_t i)
{
    return view->image + (field->tag >= KEPT_TAG_SLOT ? view->slot : 0) + field->at +
           (size_t)i * field->stride;
}

static bool is_number(const struct kept_field *field)
{
    return field->bytes == 1 || field->bytes == 2 || field->bytes == 4 || field->bytes == 8;
}

/* Of what it is a part of; one element beside the other, so that there are no more than fit in. */
static bool is_within(const struct view *view, const struct kept_field *field)
{
    uint64_t whole = field->tag >= KEPT_TAG_SLOT ? view->slot_bytes : view->layout->bytes;
    uint64_t last = field->count ? (uint64_t)(field->count - 1) * field->stride : 0;

    return field->count > 0 && field->at + last + field->bytes <= whole &&
           (field->count == 1 || (field->stride > 0 && field->stride >= field->bytes)) &&
           (field->kind == KEPT_BYTES || field->kind == KEPT_EXACT || is_number(field));
}

static uint64_t number_read(const uint8_t *at, uint32_t bytes)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } n;

    memcpy(&n, at, bytes);
    return bytes == 1 ? n.u8 : bytes == 2 ? n.u16 : bytes == 4 ? n.u32 : n.u64;
}

/* Whether it fits. */
static bool number_write(uint8_t *at, uint32_t bytes, uint64_t value)
{
    const uint8_t u8 = (uint8_t)value;
    const uint16_t u16 = (uint16_t)value;
    const uint32_t u32 = (uint32_t)value;

    memcpy(at,
           bytes == 1   ? (const void *)&u8
           : bytes == 2 ? (const void *)&u16
           : bytes == 4 ? (const void *)&u32
                        : (const void *)&value,
           bytes);
    return number_read(at, bytes) == value;
}

/* Where `from` is zero, as `to` is, the memory of `to` is not touched, so that it takes none. */
static void copy_bytes(uint8_t *to, const uint8_t *from, size_t len)
{
    static const uint8_t ZEROS[4096];

    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < sizeof ZEROS ? len - at : sizeof ZEROS;
        if (memcmp(from + at, ZEROS, n) != 0)
            memcpy(to + at, from + at, n);
    }
}

static bool copy_element(const struct kept_field *a, const uint8_t *from,
                         const struct kept_field *b, uint8_t *to)
{
    if (b->kind == KEPT_EXACT && a->bytes != b->bytes)
        return false;
    if (b->kind == KEPT_NUMBER || b->kind == KEPT_KEY)
        return is_number(a) && number_write(to, b->bytes, number_read(from, a->bytes));
    copy_bytes(to, from, a->bytes < b->bytes ? a->bytes : b->bytes);
    return true;
}

/* 0 or -ESTALE. */
static int copy_field(const struct view *from, const struct kept_field *a, const struct view *to,
                      const struct kept_field *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        if (!copy_element(a, element(from, a, i), b, element(to, b, i)))
            return -ESTALE;
    }
    for (uint32_t i = b->count; i < a->count && b->kind == KEPT_KEY; i++) {
        if (number_read(element(from, a, i), a->bytes) != 0)
            return -ESTALE;
    }
    return 0;
}

/* ---- all of them ---- */

/* Looks at the fields' places, too. */
static bool view_init(struct view *view, const void *image)
{
    const struct kept_field *slots, *active;
    uint64_t which;

    *view = (struct view){.image = (uint8_t *)image, .layout = image};
    if (view->layout->len > FIELDS_MAX ||
        kept_layout_bytes(view->layout->len) > view->layout->bytes)
        return false;
    slots = find(view, KEPT_TAG_SLOTS);
    active = find(view, KEPT_TAG_ACTIVE);
    if (!slots || !active || slots->count != KEPT_SLOTS || active->kind != KEPT_NUMBER ||
        !is_within(view, slots) || !is_within(view, active))
        return false;
    which = number_read(element(view, active, 0), active->bytes);
    if (which >= KEPT_SLOTS)
        return false;
    view->slot = slots->at + (size_t)which * slots->stride;
    view->slot_bytes = slots->bytes;
    for (uint32_t i = 0; i < view->layout->len; i++) {
        if (!is_within(view, &view->layout->fields[i]))
            return false;
    }
    return true;
}

int kept_layout_copy(const void *source, void *target)
{
    struct view from, to;
    int err = 0;

    if (!view_init(&from, source) || !view_init(&to, target))
        return -EUCLEAN;
    for (uint32_t i = 0; i < to.layout->len && !err; i++) {
        const struct kept_field *b = &to.layout->fields[i], *a = find(&from, b->tag);

        if (a && b->tag != KEPT_TAG_ACTIVE && b->tag != KEPT_TAG_SLOTS)
            err = copy_field(&from, a, &to, b);
    }
    return err;
}
