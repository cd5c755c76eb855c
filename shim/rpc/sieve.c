#include "shim/rpc/sieve.h"

#include <string.h>

/* RFC 9113, 6.5.2: what a peer may send that was told nothing else. */
#define PAYLOAD_BYTES_MAX 16384

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint32_t number_at(const uint8_t *bytes, size_t len)
{
    uint32_t number = 0;

    for (size_t i = 0; i < len; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* Calls are on odd streams, and 0 is the connection. */
static bool is_wanted(const struct sieve *sieve, int32_t stream_id)
{
    return stream_id == sieve->stream_id || stream_id % 2 == 0 ||
           sieve->payload_left > PAYLOAD_BYTES_MAX;
}

/* Whether the frame's head is whole. */
static bool take_head(struct sieve *sieve, const uint8_t **data, size_t *len)
{
    size_t n = min_size(SIEVE_HEAD_BYTES - sieve->head_have, *len);

    memcpy(sieve->head + sieve->head_have, *data, n);
    sieve->head_have += n;
    *data += n;
    *len -= n;
    if (sieve->head_have < SIEVE_HEAD_BYTES)
        return false;
    sieve->head_have = 0;
    sieve->payload_left = number_at(sieve->head, 3);
    sieve->passes = is_wanted(sieve, (int32_t)(number_at(sieve->head + 5, 4) & INT32_MAX));
    return true;
}

static size_t take(const uint8_t **data, size_t *len, size_t n, const uint8_t **piece)
{
    *piece = *data;
    *data += n;
    *len -= n;
    return n;
}

size_t sieve_feed(struct sieve *sieve, const uint8_t **data, size_t *len, const uint8_t **piece)
{
    size_t n;

    if (sieve->stream_id == 0)
        return take(data, len, *len, piece);
    while (*len > 0) {
        if (sieve->payload_left > 0) {
            n = take(data, len, min_size(sieve->payload_left, *len), piece);
            sieve->payload_left -= n;
            if (sieve->passes)
                return n;
        } else if (take_head(sieve, data, len) && sieve->passes) {
            *piece = sieve->head;
            return SIEVE_HEAD_BYTES;
        }
    }
    return 0;
}
