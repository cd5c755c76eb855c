#include "cri-proto/message_walk.h"

#include <stddef.h>

typedef bool is_right_fn(const ProtobufCMessage *one);

const void *message_member(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

bool message_has(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return !(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
           *(const uint32_t *)message_member(message, field->quantifier_offset) == field->id;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the types are, of which none has itself in it */
static bool walk_repeated(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          is_right_fn *is_right)
{
    size_t len = *(const size_t *)message_member(message, field->quantifier_offset);
    const ProtobufCMessage *const *all =
        *(const ProtobufCMessage *const *const *)message_member(message, field->offset);

    for (size_t i = 0; i < len; i++) {
        if (!message_walk(all[i], is_right))
            return false;
    }
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the types are, of which none has itself in it */
static bool walk_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       is_right_fn *is_right)
{
    const ProtobufCMessage *one;

    if (field->type != PROTOBUF_C_TYPE_MESSAGE || !message_has(message, field))
        return true;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return walk_repeated(message, field, is_right);
    one = *(const ProtobufCMessage *const *)message_member(message, field->offset);
    return !one || message_walk(one, is_right);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the types are, of which none has itself in it */
bool message_walk(const ProtobufCMessage *message, is_right_fn *is_right)
{
    if (!is_right(message))
        return false;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        if (!walk_field(message, &message->descriptor->fields[i], is_right))
            return false;
    }
    return true;
}
