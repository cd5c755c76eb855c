#include "cri-proto/field_numbers.h"

#include <stddef.h>

static const void *member(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the types are, of which none has itself in it */
static bool repeated_valid(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    size_t len = *(const size_t *)member(message, field->quantifier_offset);
    const ProtobufCMessage *const *all =
        *(const ProtobufCMessage *const *const *)member(message, field->offset);

    for (size_t i = 0; i < len; i++) {
        if (!field_numbers_valid(all[i]))
            return false;
    }
    return true;
}

/* Of a union, only the member that is set is a message. */
static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return !(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
           *(const uint32_t *)member(message, field->quantifier_offset) == field->id;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the types are, of which none has itself in it */
static bool field_valid(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessage *one;

    if (field->type != PROTOBUF_C_TYPE_MESSAGE || !is_set(message, field))
        return true;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return repeated_valid(message, field);
    one = *(const ProtobufCMessage *const *)member(message, field->offset);
    return !one || field_numbers_valid(one);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the types are, of which none has itself in it */
bool field_numbers_valid(const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        if (message->unknown_fields[i].tag == 0)
            return false;
    }
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        if (!field_valid(message, &message->descriptor->fields[i]))
            return false;
    }
    return true;
}
