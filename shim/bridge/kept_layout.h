/*
 * How what is kept lies in its memory, said in that memory itself: so that a process of another
 * release, whose own fields lie elsewhere, are longer or shorter, more or fewer, goes on with it.
 *
 * A layout is a list of fields. A tag is one field's for ever; a field that one side does not have
 * is left out, or zero, so that zero must be what is right for a state of a release that had none.
 * What a field means is not in here: where that changes, the field gets another tag, or the whole
 * another format (kept_socket.h).
 *
 * An image is a layout, and behind it what it describes: some fields of its own, and two slots, of
 * which one counts (kept_socket.c).
 */
#ifndef SHIM_BRIDGE_KEPT_LAYOUT_H
#define SHIM_BRIDGE_KEPT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum kept_kind {
    KEPT_BYTES,  /* as they are; what is longer than here is cut, what is shorter ends in zeros */
    KEPT_NUMBER, /* of 1, 2, 4 or 8 bytes; one with a sign has the same size everywhere */
    KEPT_KEY,    /* a number; of an array's elements those exist of which it is not 0 */
    KEPT_EXACT,  /* bytes of another size are another format */
};

/* One element, `count` times, with `stride` from one to the next. */
struct kept_field {
    uint32_t tag;
    uint32_t kind; /* enum kept_kind */
    uint32_t at, bytes;
    uint32_t count, stride;
};

/* Tags from here on are of a slot's fields, which lie in relation to its beginning; of the slots
 * themselves, two, there are only the places. */
#define KEPT_TAG_ACTIVE 1
#define KEPT_TAG_SLOTS 2
#define KEPT_TAG_SLOT 0x100
#define KEPT_SLOTS 2

/* What a layout of so many fields takes in front of the rest, aligned for anything. */
size_t kept_layout_bytes(size_t fields);

/* Into an image of so many bytes, at its beginning. */
void kept_layout_write(void *image, size_t bytes, const struct kept_field *fields, size_t len);

/* The size that an image says it has, of which no more than a layout's head need be there, which is
 * kept_layout_bytes(0). */
size_t kept_layout_image_bytes(const void *image);

/* Whether the image, of at least kept_layout_bytes(len), has exactly these. */
int kept_layout_is(const void *image, const struct kept_field *fields, size_t len);

/* What `from` holds, of kept_layout_image_bytes(), into `to`, which has its layout and is zero
 * otherwise: the slot that counts, into the first. 0; -ESTALE: something of it has no place there;
 * -EUCLEAN: it is no image. */
int kept_layout_copy(const void *from, void *to) __attribute__((warn_unused_result));

#endif
