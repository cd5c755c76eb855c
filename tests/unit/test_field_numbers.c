/* What protobuf-c reads, and cannot write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/field_numbers.h"

/* A field 0 of eight bytes, and the same with a number that there is. */
#define ZERO "\x81\0xxxxxxxx"
#define ONE_HUNDRED "\xa1\x06xxxxxxxx"
#define FIELD_BYTES (sizeof ZERO - 1)

struct wire {
    uint8_t bytes[64];
    size_t len;
};

static void put(struct wire *wire, const void *bytes, size_t len)
{
    assert_true(wire->len + len <= sizeof wire->bytes);
    memcpy(wire->bytes + wire->len, bytes, len);
    wire->len += len;
}

/* A message in field `number` of another; its own is `field`. */
static struct wire within(unsigned number, const char *field)
{
    struct wire wire = {0};
    const uint8_t head[] = {(uint8_t)(number << 3 | 2), FIELD_BYTES};

    put(&wire, head, sizeof head);
    put(&wire, field, FIELD_BYTES);
    return wire;
}

/* Asked of what protobuf-c has read; then whether it reads what it writes. */
static void assert_asked(const ProtobufCMessageDescriptor *type, const struct wire *wire,
                         bool valid)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, wire->len, wire->bytes);
    ProtobufCMessage *again;
    uint8_t packed[64];
    size_t len;

    assert_non_null(message);
    assert_true(protobuf_c_message_get_packed_size(message) <= sizeof packed);
    len = protobuf_c_message_pack(message, packed);
    again = protobuf_c_message_unpack(type, NULL, len, packed);
    assert_int_equal(field_numbers_valid(message), valid);
    assert_int_equal(again != NULL, valid);
    protobuf_c_message_free_unpacked(again, NULL);
    protobuf_c_message_free_unpacked(message, NULL);
}

static void a_field_that_is_not_known_has_a_number(void **state)
{
    struct wire zero = {0}, other = {0};

    (void)state;
    put(&zero, ZERO, FIELD_BYTES);
    put(&other, ONE_HUNDRED, FIELD_BYTES);
    assert_asked(&v1beta1__empty__descriptor, &zero, false);
    assert_asked(&v1beta1__empty__descriptor, &other, true);
}

static void so_has_one_of_a_message_in_another(void **state)
{
    struct wire repeated = within(2, ZERO), single = within(3, ZERO);
    struct wire good = within(2, ONE_HUNDRED);

    (void)state;
    assert_asked(&v1beta1__container_allocate_response__descriptor, &repeated, false);
    assert_asked(&v1beta1__device__descriptor, &single, false);
    assert_asked(&v1beta1__container_allocate_response__descriptor, &good, true);
}

/* A union of a number and a message, which none of ours has yet. */
struct either {
    ProtobufCMessage base;
    uint32_t is;
    union {
        uint64_t number;
        ProtobufCMessage *message;
    };
};

#define EITHER_FIELD(field_id, field_type, member)                                                 \
    {                                                                                              \
        .id = (field_id), .label = PROTOBUF_C_LABEL_OPTIONAL, .type = (field_type),                \
        .quantifier_offset = offsetof(struct either, is),                                          \
        .offset = offsetof(struct either, member), .flags = PROTOBUF_C_FIELD_FLAG_ONEOF            \
    }

static const ProtobufCFieldDescriptor EITHER_FIELDS[] = {
    EITHER_FIELD(1, PROTOBUF_C_TYPE_UINT64, number),
    EITHER_FIELD(2, PROTOBUF_C_TYPE_MESSAGE, message),
};
static const ProtobufCMessageDescriptor EITHER = {.n_fields = 2, .fields = EITHER_FIELDS};

static void of_a_union_what_is_set_counts(void **state)
{
    ProtobufCMessage *bad =
        protobuf_c_message_unpack(&v1beta1__empty__descriptor, NULL, FIELD_BYTES, (uint8_t *)ZERO);
    struct either either = {.base.descriptor = &EITHER, .is = 1, .number = 1};

    (void)state;
    assert_true(field_numbers_valid(&either.base));
    either.is = 2;
    either.message = bad;
    assert_false(field_numbers_valid(&either.base));
    protobuf_c_message_free_unpacked(bad, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_that_is_not_known_has_a_number),
        cmocka_unit_test(so_has_one_of_a_message_in_another),
        cmocka_unit_test(of_a_union_what_is_set_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
