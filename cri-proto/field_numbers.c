#include "cri-proto/field_numbers.h"

#include "cri-proto/message_walk.h"

static bool has_valid_numbers(const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        if (message->unknown_fields[i].tag == 0)
            return false;
    }
    return true;
}

bool field_numbers_valid(const ProtobufCMessage *message)
{
    return message_walk(message, has_valid_numbers);
}
