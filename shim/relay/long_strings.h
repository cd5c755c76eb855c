/*
 * Header blocks on their way to a decoder that takes no string of more than LONG_STRINGS_BYTES, as
 * nghttp2's: others take what the whole list may have (grpc-go 16 MiB), so that such a block must
 * not fail here. A longer string is left out, and another stands for it; nobody here reads a field
 * of that length, and the decoder's table stays in step: with either the entry is larger than the
 * table, which is empty then (RFC 7541 §4.4).
 */
#ifndef SHIM_RELAY_LONG_STRINGS_H
#define SHIM_RELAY_LONG_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As it is encoded, like RFC 7541 §5.2 counts it. */
#define LONG_STRINGS_BYTES 65536
/* What stands for one; the largest table for which that goes. A string that takes more than
 * LONG_STRINGS_BYTES with Huffman's longest code, of 30 bits, is longer than this yet. */
#define LONG_STRINGS_STAND_IN_BYTES 16384

/* For embedding; zeroed it is between two blocks. */
struct long_strings {
    unsigned char at;  /* enum place, of the next byte */
    unsigned char due; /* strings of the field that are not through */
    bool kept;         /* the field goes into the table */
    unsigned shift;    /* of a length's next byte */
    size_t left;       /* of the string; or its length, as far as it has come */
    uint8_t length[8]; /* of a length that is not whole: its bytes */
    size_t length_len;
};

/* A part of a piece, borrowed: the piece's own bytes, or what stands for some until the next
 * call. */
struct long_strings_part {
    const uint8_t *bytes;
    size_t len;
};

/*
 * What the decoder is to have next of a piece of a block, whose *bytes and *len move on. `table`:
 * what the encoder may have taken for its table at most. 1 with a part, 0 when all is taken, or
 * -EBADMSG: a string that is longer than a block, or one for which nothing can stand.
 */
int long_strings_next(struct long_strings *s, uint32_t table, const uint8_t **bytes, size_t *len,
                      struct long_strings_part *out) __attribute__((warn_unused_result));

/* The block has ended: whether it may end here. What is embedded is between two blocks again. */
bool long_strings_end(struct long_strings *s) __attribute__((warn_unused_result));

#endif
