#include "devicemgr/things/options.h"

#include <string.h>

#include "cri-proto/field_numbers.h"
#include "cri-proto/message_text.h"

/* Every entry of every list in ContainerAllocateResponse has the text it is told apart by in its
 * first field, so that one function can merge them all. */
#define KEY_FIELD_ID 1
/* What glibc's heap adds to a piece, at most. */
#define HEAP_BYTES 24

struct options_seen {
    char *key; /* the list's name and the entry's key */
    size_t key_bytes;
    ProtobufCMessage *entry; /* owned by the merged message */
    UT_hash_handle hh;
};

V1beta1__ContainerAllocateResponse *options_new(void)
{
    V1beta1__ContainerAllocateResponse *options = mem_alloc(1, sizeof *options);

    v1beta1__container_allocate_response__init(options);
    return options;
}

uint8_t *options_pack(const V1beta1__ContainerAllocateResponse *options, size_t *bytes_len)
{
    uint8_t *bytes;

    *bytes_len = v1beta1__container_allocate_response__get_packed_size(options);
    bytes = mem_alloc(*bytes_len, 1);
    v1beta1__container_allocate_response__pack(options, bytes);
    return bytes;
}

V1beta1__ContainerAllocateResponse *options_unpack(const void *bytes, size_t bytes_len)
{
    V1beta1__ContainerAllocateResponse *options =
        v1beta1__container_allocate_response__unpack(NULL, bytes_len, bytes);

    if (options && !field_numbers_valid(&options->base)) {
        options_free(options);
        return NULL;
    }
    return options;
}

/* By its wire form: shorter than a walk over every field, and it takes unknown ones along. */
static ProtobufCMessage *message_copy(const ProtobufCMessage *message)
{
    size_t bytes_len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = mem_alloc(bytes_len, 1);
    ProtobufCMessage *copy;

    protobuf_c_message_pack(message, bytes);
    copy = protobuf_c_message_unpack(message->descriptor, NULL, bytes_len, bytes);
    if (!copy)
        abort(); /* out of memory: we packed it ourselves */
    free(bytes);
    return copy;
}

static bool message_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    size_t a_len = protobuf_c_message_get_packed_size(a);
    size_t b_len = protobuf_c_message_get_packed_size(b);
    uint8_t *bytes;
    bool equal;

    if (a_len != b_len)
        return false;
    bytes = mem_alloc(a_len + b_len, 1);
    protobuf_c_message_pack(a, bytes);
    protobuf_c_message_pack(b, bytes + a_len);
    equal = memcmp(bytes, bytes + a_len, a_len) == 0;
    free(bytes);
    return equal;
}

V1beta1__ContainerAllocateResponse *options_copy(const V1beta1__ContainerAllocateResponse *options)
{
    return (V1beta1__ContainerAllocateResponse *)message_copy(&options->base);
}

bool options_equal(const V1beta1__ContainerAllocateResponse *a,
                   const V1beta1__ContainerAllocateResponse *b)
{
    return message_equal(&a->base, &b->base);
}

bool options_are_text(const V1beta1__ContainerAllocateResponse *options)
{
    return message_is_text(&options->base);
}

/* ---- what it takes ---- */

static size_t piece_bytes(size_t bytes)
{
    return bytes + HEAP_BYTES;
}

static size_t unknown_bytes(const ProtobufCMessage *message)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < message->n_unknown_fields; i++)
        bytes += sizeof *message->unknown_fields + piece_bytes(message->unknown_fields[i].len);
    return bytes;
}

/* Of an entry: texts and flags. */
static size_t entry_bytes(const ProtobufCMessage *entry)
{
    size_t bytes = piece_bytes(entry->descriptor->sizeof_message) + unknown_bytes(entry);

    for (unsigned i = 0; i < entry->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &entry->descriptor->fields[i];

        if (field->type == PROTOBUF_C_TYPE_STRING)
            bytes += piece_bytes(strlen(*(char *const *)((const char *)entry + field->offset)) + 1);
    }
    return bytes;
}

size_t options_bytes(const V1beta1__ContainerAllocateResponse *options)
{
    const ProtobufCMessageDescriptor *type = options->base.descriptor;
    size_t bytes = piece_bytes(sizeof *options) + unknown_bytes(&options->base);

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        size_t len = *(const size_t *)((const char *)options + field->quantifier_offset);
        ProtobufCMessage **list =
            *(ProtobufCMessage * *const *)((const char *)options + field->offset);

        for (size_t n = 0; n < len; n++)
            bytes += sizeof(ProtobufCMessage *) + entry_bytes(list[n]);
    }
    return bytes;
}

/* ---- what is put in ---- */

void options_add_annotation(V1beta1__ContainerAllocateResponse *options, const char *key,
                            const char *value)
{
    V1beta1__ContainerAllocateResponse__AnnotationsEntry *entry = mem_alloc(1, sizeof *entry);

    v1beta1__container_allocate_response__annotations_entry__init(entry);
    entry->key = mem_strdup(key);
    entry->value = mem_strdup(value);
    options->annotations =
        reallocarray(options->annotations, options->n_annotations + 1, sizeof(ProtobufCMessage *));
    if (!options->annotations)
        abort();
    options->annotations[options->n_annotations++] = entry;
}

void options_add_device(V1beta1__ContainerAllocateResponse *options, const char *container_path,
                        const char *host_path, const char *permissions)
{
    V1beta1__DeviceSpec *device = mem_alloc(1, sizeof *device);

    v1beta1__device_spec__init(device);
    device->container_path = mem_strdup(container_path);
    device->host_path = mem_strdup(host_path);
    device->permissions = mem_strdup(permissions);
    options->devices =
        reallocarray(options->devices, options->n_devices + 1, sizeof(ProtobufCMessage *));
    if (!options->devices)
        abort();
    options->devices[options->n_devices++] = device;
}

void options_merge_init(struct options_merge *merge)
{
    *merge = (struct options_merge){.merged = options_new()};
}

static const char *entry_key(const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(entry->descriptor, KEY_FIELD_ID);

    return *(char *const *)((const char *)entry + field->offset);
}

/* A copy of `entry` to be kept, or NULL if its key was there before; a repetition that says the
 * same is no conflict. */
static ProtobufCMessage *take_entry(struct options_merge *merge, const char *list,
                                    const ProtobufCMessage *entry)
{
    const char *parts[] = {list, entry_key(entry)};
    struct options_seen *seen;
    size_t key_bytes;
    char *key = mem_key(parts, 2, &key_bytes);

    HASH_FIND(hh, merge->seen, key, key_bytes, seen);
    if (!seen) {
        seen = mem_alloc(1, sizeof *seen);
        seen->key = key;
        seen->key_bytes = key_bytes;
        seen->entry = message_copy(entry);
        HASH_ADD_KEYPTR(hh, merge->seen, seen->key, seen->key_bytes, seen);
        return seen->entry;
    }
    free(key);
    if (!message_equal(seen->entry, entry)) {
        merge->conflicts++;
        if (!merge->conflict)
            merge->conflict = mem_strdup(entry_key(entry));
    }
    return NULL;
}

static bool is_reserved(const struct options_merge *merge, const ProtobufCMessage *entry)
{
    return merge->reserved &&
           entry->descriptor ==
               &v1beta1__container_allocate_response__annotations_entry__descriptor &&
           merge->reserved(entry_key(entry));
}

static void merge_list(struct options_merge *merge, const ProtobufCFieldDescriptor *field,
                       const V1beta1__ContainerAllocateResponse *options)
{
    size_t from_len = *(const size_t *)((const char *)options + field->quantifier_offset);
    ProtobufCMessage **from = *(ProtobufCMessage * *const *)((const char *)options + field->offset);
    size_t *len = (size_t *)((char *)merge->merged + field->quantifier_offset);
    ProtobufCMessage ***list = (ProtobufCMessage ***)((char *)merge->merged + field->offset);

    for (size_t i = 0; i < from_len; i++) {
        bool reserved = is_reserved(merge, from[i]);
        ProtobufCMessage *entry = reserved ? NULL : take_entry(merge, field->name, from[i]);

        merge->left_out += reserved;
        if (!entry)
            continue;
        *list = mem_grow(*list, *len, sizeof **list);
        (*list)[(*len)++] = entry;
    }
}

void options_merge_add(struct options_merge *merge,
                       const V1beta1__ContainerAllocateResponse *options)
{
    const ProtobufCMessageDescriptor *type = options->base.descriptor;

    for (unsigned i = 0; i < type->n_fields; i++)
        merge_list(merge, &type->fields[i], options);
}

V1beta1__ContainerAllocateResponse *options_merge_take(struct options_merge *merge)
{
    V1beta1__ContainerAllocateResponse *merged = merge->merged;

    merge->merged = NULL;
    return merged;
}

void options_merge_fini(struct options_merge *merge)
{
    struct options_seen *seen, *next;

    HASH_ITER(hh, merge->seen, seen, next) {
        HASH_DEL(merge->seen, seen);
        free(seen->key);
        free(seen);
    }
    options_free(merge->merged);
    free(merge->conflict);
    *merge = (struct options_merge){0};
}
