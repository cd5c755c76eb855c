#include "shim/relay/frozen.h"

#include <endian.h>
#include <string.h>

#define NUMBER_BYTES 8

uint64_t frozen_format(const char *name)
{
    uint64_t lowest_first;

    memcpy(&lowest_first, name, NUMBER_BYTES);
    return le64toh(lowest_first);
}

void frozen_put(struct frozen_writer *w, uint64_t value)
{
    uint64_t lowest_first = htole64(value);

    if (buffer_put(w->out, &lowest_first, NUMBER_BYTES) < 0)
        w->no_memory = true;
}

void frozen_put_bytes(struct frozen_writer *w, const void *bytes, size_t len)
{
    frozen_put(w, len);
    if (buffer_put(w->out, bytes, len) < 0)
        w->no_memory = true;
}

size_t frozen_section_begin(struct frozen_writer *w)
{
    size_t begin = buffer_len(w->out);

    frozen_put(w, 0);
    return begin;
}

void frozen_section_end(struct frozen_writer *w, size_t begin)
{
    uint64_t lowest_first;

    if (w->no_memory)
        return;
    lowest_first = htole64(buffer_len(w->out) - begin - NUMBER_BYTES);
    memcpy(w->out->bytes + w->out->start + begin, &lowest_first, NUMBER_BYTES);
}

uint64_t frozen_take(struct frozen_reader *r)
{
    uint64_t value = 0;

    if (r->bad || r->left < NUMBER_BYTES) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < NUMBER_BYTES; i++)
        value |= (uint64_t)r->at[i] << 8 * i;
    r->at += NUMBER_BYTES;
    r->left -= NUMBER_BYTES;
    return value;
}

uint64_t frozen_take_most(struct frozen_reader *r, uint64_t most)
{
    uint64_t value = frozen_take(r);

    if (value <= most)
        return value;
    r->bad = true;
    return 0;
}

const uint8_t *frozen_take_bytes(struct frozen_reader *r, size_t most, size_t *len_out)
{
    const uint8_t *bytes;

    *len_out = frozen_take_most(r, most);
    if (*len_out > r->left) {
        r->bad = true;
        *len_out = 0;
    }
    bytes = r->at;
    r->at += *len_out;
    r->left -= *len_out;
    return bytes;
}

int frozen_take_buffer(struct frozen_reader *r, size_t most, struct buffer *out)
{
    size_t len;
    const uint8_t *bytes = frozen_take_bytes(r, most, &len);

    return buffer_put(out, bytes, len);
}

/* What is behind the section. */
size_t frozen_section_enter(struct frozen_reader *r)
{
    size_t len = frozen_take_most(r, r->left), behind;

    if (len > r->left) {
        r->bad = true;
        len = 0;
    }
    behind = r->left - len;
    r->left = len;
    return behind;
}

void frozen_section_leave(struct frozen_reader *r, size_t entered)
{
    r->at += r->left;
    r->left = entered;
}

bool frozen_at_end(const struct frozen_reader *r)
{
    return !r->bad && r->left == 0;
}
