#include "shim/relay/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 256

int buffer_reserve(struct buffer *b, size_t bytes)
{
    size_t capacity = b->capacity ? b->capacity : CAPACITY_MIN;
    uint8_t *grown;

    if (b->capacity - b->end >= bytes)
        return 0;
    if (b->start > 0 && b->capacity - buffer_len(b) >= bytes && b->start >= buffer_len(b)) {
        memcpy(b->bytes, b->bytes + b->start, buffer_len(b));
        b->end -= b->start;
        b->start = 0;
        return 0;
    }
    while (capacity - b->end < bytes) {
        if (capacity > SIZE_MAX / 2)
            return -ENOMEM;
        capacity *= 2;
    }
    grown = realloc(b->bytes, capacity);
    if (!grown)
        return -ENOMEM;
    b->bytes = grown;
    b->capacity = capacity;
    return 0;
}

int buffer_put(struct buffer *b, const void *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    if (buffer_reserve(b, bytes) < 0)
        return -ENOMEM;
    memcpy(b->bytes + b->end, data, bytes);
    b->end += bytes;
    return 0;
}

void buffer_consume(struct buffer *b, size_t bytes)
{
    assert(bytes <= buffer_len(b));
    b->start += bytes;
    if (b->start == b->end)
        b->start = b->end = 0;
}

void buffer_fini(struct buffer *b)
{
    free(b->bytes);
    *b = (struct buffer){0};
}
