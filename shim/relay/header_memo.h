/*
 * What the last few header blocks said, so that the same bytes need not be decoded again.
 *
 * Only blocks that leave the HPACK dynamic table as it is are kept (RFC 7541 §6: indexed fields and
 * literals that are not indexed), and all are forgotten when the table changes: then equal bytes
 * mean equal fields, and passing over them leaves the decoder in step. Once a connection runs, that
 * is every answer of a gRPC server and every request that names no deadline.
 */
#ifndef SHIM_RELAY_HEADER_MEMO_H
#define SHIM_RELAY_HEADER_MEMO_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/relay/limits.h"
#include "shim/rpc/message.h"

/* What one block said. */
struct header_fields {
    enum cri_method method;         /* of :path */
    enum message_encoding encoding; /* of grpc-encoding */
    uint64_t timeout_ms;            /* of grpc-timeout; UINT64_MAX: none */
    int grpc_status;                /* -1: none */
};

struct header_memo_entry {
    struct header_fields fields;
    size_t len;
    uint8_t bytes[RELAY_HEADER_MEMO_BYTES];
};

_Static_assert(RELAY_HEADER_MEMO_BLOCKS <= 32, "a word has a bit for each entry");

/* For embedding; zeroed it is empty and holds nothing to free. */
struct header_memo {
    struct header_memo_entry entries[RELAY_HEADER_MEMO_BLOCKS];
    unsigned used;
    unsigned next; /* to be overwritten */
};

/* The entry of exactly these bytes, borrowed until the next learn; NULL: none. */
static inline const struct header_memo_entry *header_memo_find(const struct header_memo *m,
                                                               const uint8_t *bytes, size_t len)
{
    const struct header_memo_entry *end = m->entries + m->used;

    for (const struct header_memo_entry *e = m->entries; e < end; e++) {
        if (e->len == len && memcmp(e->bytes, bytes, len) == 0)
            return e;
    }
    return NULL;
}

/* A whole block has been decoded: keeps it, or forgets all if it may have changed the table. Bytes
 * that were found must not be given again. `fields` NULL: it is not to be kept, since it says
 * more. */
void header_memo_learn(struct header_memo *m, const uint8_t *bytes, size_t len,
                       const struct header_fields *fields);

/* The table has changed otherwise. */
void header_memo_forget(struct header_memo *m);

#endif
