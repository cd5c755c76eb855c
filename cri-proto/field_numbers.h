/*
 * What protobuf-c reads, and cannot write.
 *
 * A field has no number 0 (https://protobuf.dev/programming-guides/encoding/), and protobuf-c
 * refuses one whose tag is the single byte that it takes. Of a longer tag it looks at the first
 * byte alone: that of 0x81 0x00 is read, written as 0x01, and then refused by everybody.
 */
#ifndef CRI_PROTO_FIELD_NUMBERS_H
#define CRI_PROTO_FIELD_NUMBERS_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

/* Whether each field that the message and those in it do not know has a number that there is. To be
 * asked of what another process sent, where it may be packed again. */
bool field_numbers_valid(const ProtobufCMessage *message);

#endif
