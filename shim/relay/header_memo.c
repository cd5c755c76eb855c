#include "shim/relay/header_memo.h"

#include <stdbool.h>
#include <string.h>

#include "shim/relay/hpack.h"

#define CHANGES_TABLE (HPACK_LITERAL_INDEXED | HPACK_TABLE_SIZE)
#define INDEXED_BITS 7
#define LITERAL_BITS 4
#define STRING_BITS 7

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

/* An integer whose prefix has `bits` (RFC 7541 §5.1); false: cut short, or longer than the memo. */
static bool take_integer(struct cursor *c, unsigned bits, size_t *out)
{
    size_t prefix_max = (1u << bits) - 1;
    size_t value;

    if (c->at == c->end)
        return false;
    value = *c->at++ & prefix_max;
    for (unsigned shift = 0; value >= prefix_max; shift += 7) {
        if (c->at == c->end || shift > 14)
            return false;
        value += (size_t)(*c->at & 0x7f) << shift;
        if (!(*c->at++ & 0x80))
            break;
    }
    *out = value;
    return true;
}

static bool skip_string(struct cursor *c)
{
    size_t len;

    if (!take_integer(c, STRING_BITS, &len) || len > (size_t)(c->end - c->at))
        return false;
    c->at += len;
    return true;
}

static bool skip_literal(struct cursor *c)
{
    size_t name;

    return take_integer(c, LITERAL_BITS, &name) && (name > 0 || skip_string(c)) && skip_string(c);
}

/* Whether the whole block leaves the dynamic table as it is. */
static bool keeps_table(const uint8_t *bytes, size_t len)
{
    struct cursor c = {bytes, bytes + len};
    size_t index;

    while (c.at < c.end) {
        if (*c.at & HPACK_INDEXED) {
            if (!take_integer(&c, INDEXED_BITS, &index))
                return false;
        } else if (*c.at & CHANGES_TABLE || !skip_literal(&c)) {
            return false;
        }
    }
    return true;
}

void header_memo_learn(struct header_memo *m, const uint8_t *bytes, size_t len,
                       const struct header_fields *fields)
{
    struct header_memo_entry *e;

    if (!keeps_table(bytes, len)) {
        header_memo_forget(m);
        return;
    }
    if (len > RELAY_HEADER_MEMO_BYTES || len == 0 || !fields)
        return;
    e = &m->entries[m->next];
    e->fields = *fields;
    e->len = len;
    memcpy(e->bytes, bytes, len);
    m->next = (m->next + 1) % RELAY_HEADER_MEMO_BLOCKS;
    if (m->used < RELAY_HEADER_MEMO_BLOCKS)
        m->used++;
}

void header_memo_forget(struct header_memo *m)
{
    m->used = m->next = 0;
}
