#include "shim/relay/long_strings.h"

#include <errno.h>

#include "shim/relay/hpack.h"
#include "shim/relay/limits.h"

/* What is left of the first byte for an index, or a size. */
#define INDEXED_MASK (HPACK_INDEXED - 1)
#define KEPT_MASK (HPACK_LITERAL_INDEXED - 1)
#define TABLE_SIZE_MASK (HPACK_TABLE_SIZE - 1)
#define LITERAL_MASK 0x0f
#define STRING_MASK 0x7f
#define CONTINUES 0x80 /* an integer (RFC 7541 §5.1) */
#define SHIFT_MAX 28   /* nghttp2's, too: of 32 bits */

enum place {
    AT_FIELD,
    AT_INDEX, /* more of it */
    AT_LENGTH,
    AT_LENGTH_MORE, /* held back until it is whole */
    AT_STRING,
    AT_LONG_STRING, /* left out */
};

/* Without Huffman's code, of LONG_STRINGS_STAND_IN_BYTES zeros. */
static const uint8_t STAND_IN[3 + LONG_STRINGS_STAND_IN_BYTES] = {0x7f, 0x81, 0x7f};

_Static_assert(LONG_STRINGS_STAND_IN_BYTES == 127 + 1 + (0x7f << 7), "as STAND_IN says");

static void next_string(struct long_strings *s)
{
    s->at = s->due > 0 ? AT_LENGTH : AT_FIELD;
}

static void string_over(struct long_strings *s)
{
    s->due--;
    next_string(s);
}

static void begin_field(struct long_strings *s, uint8_t first)
{
    uint8_t mask = LITERAL_MASK;

    if (first & HPACK_INDEXED)
        mask = INDEXED_MASK;
    else if (first & HPACK_LITERAL_INDEXED)
        mask = KEPT_MASK;
    else if (first & HPACK_TABLE_SIZE)
        mask = TABLE_SIZE_MASK;
    s->kept = mask == KEPT_MASK;
    s->due = 0;
    if (mask == KEPT_MASK || mask == LITERAL_MASK)
        s->due = first & mask ? 1 : 2; /* the name is in a table, or comes */
    next_string(s);
    if ((first & mask) == mask)
        s->at = AT_INDEX;
}

/* A byte that passes. */
static void pass(struct long_strings *s, uint8_t byte)
{
    if (s->at == AT_FIELD) {
        begin_field(s, byte);
    } else if (s->at == AT_INDEX) {
        if (!(byte & CONTINUES))
            next_string(s);
    } else {
        s->left = byte & STRING_MASK;
        s->at = AT_STRING;
        if (s->left == 0)
            string_over(s);
    }
}

/* Whether the next byte is no more than looked at here. */
static bool passes(const struct long_strings *s, uint8_t byte)
{
    return s->at < AT_LENGTH || s->at == AT_STRING ||
           (s->at == AT_LENGTH && (byte & STRING_MASK) != STRING_MASK);
}

/* How many bytes from the front pass. */
static size_t pass_all(struct long_strings *s, const uint8_t *bytes, size_t len)
{
    size_t n = 0;

    while (n < len && passes(s, bytes[n])) {
        size_t some = s->left < len - n ? s->left : len - n;

        if (s->at != AT_STRING) {
            pass(s, bytes[n++]);
            continue;
        }
        n += some;
        s->left -= some;
        if (s->left == 0)
            string_over(s);
    }
    return n;
}

static void leave_out(struct long_strings *s, const uint8_t **bytes, size_t *len)
{
    size_t n = s->left < *len ? s->left : *len;

    *bytes += n;
    *len -= n;
    s->left -= n;
    if (s->left == 0)
        string_over(s);
}

/* A length is whole: 1 and the part, or -EBADMSG. */
static int take_length(struct long_strings *s, uint32_t table, struct long_strings_part *out)
{
    s->at = AT_STRING;
    *out = (struct long_strings_part){s->length, s->length_len};
    if (s->left <= LONG_STRINGS_BYTES)
        return 1;
    if (s->left > RELAY_HEADER_BLOCK_BYTES_MAX || (s->kept && table > LONG_STRINGS_STAND_IN_BYTES))
        return -EBADMSG;
    s->at = AT_LONG_STRING;
    *out = (struct long_strings_part){STAND_IN, sizeof STAND_IN};
    return 1;
}

/* The next byte of a length of several. As take_length(); 0: it is not whole. */
static int hold_length(struct long_strings *s, uint8_t byte, uint32_t table,
                       struct long_strings_part *out)
{
    if (s->at == AT_LENGTH) {
        s->at = AT_LENGTH_MORE;
        s->left = STRING_MASK;
        s->shift = 0;
        s->length[0] = byte;
        s->length_len = 1;
        return 0;
    }
    if (s->shift > SHIFT_MAX)
        return -EBADMSG;
    s->length[s->length_len++] = byte;
    s->left += (size_t)(byte & STRING_MASK) << s->shift;
    s->shift += 7;
    return byte & CONTINUES ? 0 : take_length(s, table, out);
}

int long_strings_next(struct long_strings *s, uint32_t table, const uint8_t **bytes, size_t *len,
                      struct long_strings_part *out)
{
    int r = 0;

    while (r == 0 && *len > 0) {
        size_t n = pass_all(s, *bytes, *len);

        if (n > 0) {
            *out = (struct long_strings_part){*bytes, n};
            r = 1;
        } else if (s->at == AT_LONG_STRING) {
            leave_out(s, bytes, len);
        } else {
            r = hold_length(s, **bytes, table, out);
            n = 1;
        }
        *bytes += n;
        *len -= n;
    }
    return r;
}

bool long_strings_end(struct long_strings *s)
{
    bool whole = s->at == AT_FIELD;

    *s = (struct long_strings){0};
    return whole;
}
