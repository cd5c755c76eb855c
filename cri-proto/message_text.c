#include "cri-proto/message_text.h"

#include <stddef.h>

#include "cri-proto/message_walk.h"
#include "cri-proto/utf8.h"

static bool are_text(const char *const *texts, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!utf8_is_text(texts[i]))
            return false;
    }
    return true;
}

static bool field_is_text(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *at = message_member(message, field->offset);

    if (field->type != PROTOBUF_C_TYPE_STRING || !message_has(message, field))
        return true;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return are_text(*(const char *const *const *)at,
                        *(const size_t *)message_member(message, field->quantifier_offset));
    return are_text(at, 1);
}

static bool has_text(const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        if (!field_is_text(message, &message->descriptor->fields[i]))
            return false;
    }
    return true;
}

bool message_is_text(const ProtobufCMessage *message)
{
    return message_walk(message, has_text);
}
