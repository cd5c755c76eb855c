/*
 * Memory for the few small objects that plugins and lists need. None left ends the process, as in
 * the core: its service manager starts it again from the checkpoint.
 */
#ifndef SHIM_MUST_H
#define SHIM_MUST_H

#include <stdlib.h>

#include <protobuf-c/protobuf-c.h>

static inline void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* A message of its own; protobuf-c has no copy, but the wire form is one. */
static inline ProtobufCMessage *must_copy(const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = must(malloc(bytes + 1));
    ProtobufCMessage *copy;

    protobuf_c_message_pack(message, packed);
    copy = must(protobuf_c_message_unpack(message->descriptor, NULL, bytes, packed));
    free(packed);
    return copy;
}

#endif
