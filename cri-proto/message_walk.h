/*
 * A message of protobuf-c, and all messages that are in it.
 */
#ifndef CRI_PROTO_MESSAGE_WALK_H
#define CRI_PROTO_MESSAGE_WALK_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

/* Whether `is_right` says so of each of them, the outer one first; it looks at no others inside of
 * the one that it is given. */
bool message_walk(const ProtobufCMessage *message, bool (*is_right)(const ProtobufCMessage *one));

/* A field's place in the message. */
const void *message_member(const ProtobufCMessage *message, unsigned offset);
/* Of a union, whether the field is the member that is set; true of any other field. */
bool message_has(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

#endif
