/*
 * HPACK's representations of a field (RFC 7541 §6): their first bytes, and the integer that begins
 * in them.
 */
#ifndef SHIM_RELAY_HPACK_H
#define SHIM_RELAY_HPACK_H

#include <stddef.h>
#include <stdint.h>

#define HPACK_INDEXED 0x80 /* a field of a table; 7 bits of its index */
/* One that goes into the table; 6 bits of its name's index, 0: the name comes. */
#define HPACK_LITERAL_INDEXED 0x40
#define HPACK_TABLE_SIZE 0x20 /* 5 bits of the size */
#define HPACK_LITERAL 0x00    /* stays out of the table; 4 bits of its name's index, as above */

#define HPACK_INTEGER_BYTES_MAX 11

/* Puts `value`, whose prefix of `bits` shares its byte with `first` (RFC 7541 §5.1). How many bytes
 * it takes: HPACK_INTEGER_BYTES_MAX at most. */
static inline size_t hpack_put_integer(uint8_t *at, uint8_t first, unsigned bits, uint64_t value)
{
    uint64_t prefix_max = (1u << bits) - 1;
    size_t n = 0;

    if (value < prefix_max) {
        at[n++] = first | (uint8_t)value;
        return n;
    }
    at[n++] = first | (uint8_t)prefix_max;
    for (value -= prefix_max; value >= 128; value >>= 7)
        at[n++] = (uint8_t)(value | 0x80);
    at[n++] = (uint8_t)value;
    return n;
}

#endif
