/*
 * Whether what protobuf-c has read is text: it does not look, Go's protobuf does, and takes no
 * message with a text that is none (https://protobuf.dev/programming-guides/proto3/#scalar: UTF-8).
 */
#ifndef CRI_PROTO_MESSAGE_TEXT_H
#define CRI_PROTO_MESSAGE_TEXT_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

/* Whether all texts of the message, and of those in it, are UTF-8. To be asked of what another
 * process sent, where it is passed on. Fields that are not known are not looked at. */
bool message_is_text(const ProtobufCMessage *message);

#endif
