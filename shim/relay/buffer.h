/*
 * A byte buffer that grows at its end and is consumed from its front.
 */
#ifndef SHIM_RELAY_BUFFER_H
#define SHIM_RELAY_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *bytes; /* owned */
    size_t start;   /* first byte not consumed */
    size_t end;
    size_t capacity;
};

static inline size_t buffer_len(const struct buffer *b)
{
    return b->end - b->start;
}

static inline const uint8_t *buffer_data(const struct buffer *b)
{
    return b->start > 0 ? b->bytes + b->start : b->bytes; /* C allows no NULL + 0 */
}

/* Makes room for `bytes` more; 0 or -ENOMEM, then unchanged. */
int buffer_reserve(struct buffer *b, size_t bytes) __attribute__((warn_unused_result));

/* Appends a copy; 0 or -ENOMEM, then unchanged. */
int buffer_put(struct buffer *b, const void *data, size_t bytes)
    __attribute__((warn_unused_result));

/* Drops `bytes` (at most buffer_len()) from the front. */
void buffer_consume(struct buffer *b, size_t bytes);

/* Frees the bytes; the buffer is empty and usable afterwards. Accepts a zeroed struct. */
void buffer_fini(struct buffer *b);

#endif
