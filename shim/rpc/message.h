/*
 * Messages on the wire: gRPC's five-byte frame around a protobuf (gRPC over HTTP/2,
 * "Length-Prefixed-Message"), in both directions. Bytes in, messages out; no I/O.
 */
#ifndef SHIM_RPC_MESSAGE_H
#define SHIM_RPC_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* Compressed flag and big-endian length. */
#define MESSAGE_HEAD_BYTES 5

/* What grpc-encoding said. */
enum message_encoding {
    MESSAGE_IDENTITY, /* also: no such field */
    MESSAGE_GZIP,
    MESSAGE_ENCODING_UNKNOWN,
};

/* The encoding a grpc-encoding field names. */
enum message_encoding message_encoding_parse(const uint8_t *value, size_t len);

/* ---- framing ---- */

/*
 * What some readers may hold together: all of a connection, say. The first `own` bytes are theirs
 * whatever others hold; what is beyond comes out of `shared`, which other budgets draw on, too.
 */
struct message_budget {
    size_t left;  /* bytes they may still hold */
    size_t taken; /* and those they do */
    size_t own;   /* only with `shared` */
    size_t
        *shared; /* bytes that all who share them may still hold; borrowed. NULL: no such bound */
};

enum message_event {
    MESSAGE_MORE,   /* all bytes are taken, no message is whole */
    MESSAGE_READY,  /* body and body_len are one message, until the next feed or fini */
    MESSAGE_FAILED, /* fault_code and fault_text say why; feed no more */
};

/* Cuts a stream of bytes into messages. */
struct message_reader {
    enum message_encoding encoding; /* set it before the first feed */
    struct message_budget *budget;  /* borrowed */
    uint8_t *body;
    size_t body_len;
    int fault_code;         /* an rpc_code */
    const char *fault_text; /* static */

    /* private */
    uint8_t head[MESSAGE_HEAD_BYTES];
    size_t head_have;
    size_t body_have;
    size_t body_room;
    bool ready;
};

/* A reader without a byte. `budget` is borrowed until fini. */
void message_reader_init(struct message_reader *reader, struct message_budget *budget);

/* Frees what it holds and gives the budget back. May be called twice. */
void message_reader_fini(struct message_reader *reader);

/*
 * Takes bytes from *data and moves *data and *len on, at most to the end of one message: call it
 * until it answers MESSAGE_MORE. A message over RPC_MESSAGE_BYTES_MAX, packed or inflated, fails
 * RESOURCE_EXHAUSTED at its head or at the first byte over, before it is held in memory; so does
 * one for which the budget or memory does not suffice. A compressed message whose encoding is not
 * gzip, or that does not inflate, fails INTERNAL.
 */
enum message_event message_reader_feed(struct message_reader *reader, const uint8_t **data,
                                       size_t *len) __attribute__((warn_unused_result));

/* Whether the bytes so far end inside a message. */
bool message_reader_partial(const struct message_reader *reader);

/* Puts the head of an uncompressed message of `len` bytes, MESSAGE_HEAD_BYTES. */
void message_put_head(uint8_t *head, size_t len);

/* ---- protobuf ---- */

/* The memory of one unpacked message. */
struct message_arena {
    size_t most; /* bytes it may take, however long the message is; 0: by its length */
    struct message_chunk *chunks;
    size_t left; /* bytes it may still take from the heap */
    bool refused;
};

/* Of an answer or a request that is over the limit of message_unpack(), in words. */
#define MESSAGE_OVER_ARENA                                                                         \
    "takes more memory to read than its length allows: it has very many parts, or empty ones"

/*
 * Unpacks into `arena`, which the caller zeroes before, but for `most`, and gives to
 * message_arena_fini() afterwards, also on failure; the message lives as long. Without `most` the
 * arena takes 16 times `len` and 64 KiB at most: the worst of a device list (two-letter ids with a
 * NUMA node) needs 12 times its wire size, while garbage may ask for 40. With it that alone counts:
 * what is right may be short fields that nobody here knows, which need 52 times theirs. NULL with
 * *code INTERNAL: it does not parse, or could not be packed again (field_numbers.h) ·
 * RESOURCE_EXHAUSTED: over that limit, or no memory.
 */
ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
                                 size_t len, struct message_arena *arena, int *code)
    __attribute__((warn_unused_result));

void message_arena_fini(struct message_arena *arena);

/* A message of its own, for protobuf_c_message_free_unpacked(). NULL: no memory. */
ProtobufCMessage *message_copy(const ProtobufCMessage *message) __attribute__((warn_unused_result));

/* Packs `message` behind its head, uncompressed. 0 and *out (the caller frees it) with *len, or
 * -EMSGSIZE over RPC_MESSAGE_BYTES_MAX, or -ENOMEM. */
int message_pack(const ProtobufCMessage *message, uint8_t **out, size_t *len)
    __attribute__((warn_unused_result));

#endif
