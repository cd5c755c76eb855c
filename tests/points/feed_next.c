/*
 * The feed of a release to come: each of its messages, those within others, too, has two fields
 * more, a number and a text, in the place of the library's message_pack().
 */
#include <stdlib.h>
#include <string.h>

#include "shim/rpc/message.h"

#define PACKAGE "bridge.v1"

int __real_message_pack(const ProtobufCMessage *message, uint8_t **out, size_t *len);
int __wrap_message_pack(const ProtobufCMessage *message, uint8_t **out, size_t *len);

/* As protobuf-c keeps what it does not know; freed by it. */
static ProtobufCMessageUnknownField more(uint32_t tag, ProtobufCWireType type, const char *bytes)
{
    ProtobufCMessageUnknownField field = {.tag = tag, .wire_type = type, .len = strlen(bytes)};

    field.data = (uint8_t *)strdup(bytes);
    return field;
}

static uint32_t last_tag(const ProtobufCMessageDescriptor *descriptor)
{
    return descriptor->n_fields > 0 ? descriptor->fields[descriptor->n_fields - 1].id : 0;
}

static void add_to(ProtobufCMessage *message)
{
    uint32_t last = last_tag(message->descriptor);

    message->unknown_fields = malloc(2 * sizeof *message->unknown_fields);
    message->n_unknown_fields = 2;
    message->unknown_fields[0] = more(last + 1, PROTOBUF_C_WIRE_TYPE_VARINT, "\x07");
    message->unknown_fields[1] = more(last + 2, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, "\7to come");
}

static void add_to_all(ProtobufCMessage *message);

static void add_within(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    char *at = (char *)message + field->offset;
    ProtobufCMessage **one = (ProtobufCMessage **)(void *)at;
    size_t len = *one != NULL;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        len = *(size_t *)(void *)((char *)message + field->quantifier_offset);
        one = *(ProtobufCMessage ***)(void *)at;
    }
    for (size_t i = 0; i < len; i++)
        add_to_all(one[i]);
}

static void add_to_all(ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        if (message->descriptor->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            add_within(message, &message->descriptor->fields[i]);
    }
    add_to(message);
}

int __wrap_message_pack(const ProtobufCMessage *message, uint8_t **out, size_t *len)
{
    ProtobufCMessage *copy;
    int r;

    if (strcmp(message->descriptor->package_name, PACKAGE) != 0)
        return __real_message_pack(message, out, len);
    copy = message_copy(message);
    if (!copy)
        abort();
    add_to_all(copy);
    r = __real_message_pack(copy, out, len);
    protobuf_c_message_free_unpacked(copy, NULL);
    return r;
}
