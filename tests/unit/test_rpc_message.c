/* shim/rpc/message.c: framing, inflating and unpacking within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

#define BUDGET ((size_t)64 * 1024 * 1024)

static struct message_budget budget;

static int reset_budget(void **state)
{
    (void)state;
    budget = (struct message_budget){.left = BUDGET};
    return 0;
}

/* Nothing is held any more. */
static int check_budget(void **state)
{
    (void)state;
    return budget.left == BUDGET && budget.taken == 0 ? 0 : -1;
}

static void encodings(void **state)
{
    (void)state;
    assert_int_equal(message_encoding_parse((const uint8_t *)"identity", 8), MESSAGE_IDENTITY);
    assert_int_equal(message_encoding_parse((const uint8_t *)"gzip", 4), MESSAGE_GZIP);
    assert_int_equal(message_encoding_parse((const uint8_t *)"gzip2", 5), MESSAGE_ENCODING_UNKNOWN);
    assert_int_equal(message_encoding_parse((const uint8_t *)"", 0), MESSAGE_ENCODING_UNKNOWN);
}

/* Feeds `len` bytes and copies the bodies, one behind the other, with '|' after each. */
static size_t feed(struct message_reader *reader, const uint8_t *data, size_t len, char *out)
{
    size_t n = 0;

    for (;;) {
        switch (message_reader_feed(reader, &data, &len)) {
        case MESSAGE_MORE:
            assert_int_equal(len, 0);
            return n;
        case MESSAGE_READY:
            if (reader->body_len)
                memcpy(out + n, reader->body, reader->body_len);
            n += reader->body_len;
            out[n++] = '|';
            break;
        case MESSAGE_FAILED:
            fail();
        }
    }
}

static void cuts_messages_at_any_byte(void **state)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 3, 'a', 'b', 'c', 0,  0,
                                    0, 0, 0, 0, 0, 0,   0,   1,   'd'};

    (void)state;
    for (size_t first = 0; first <= sizeof bytes; first++) {
        for (size_t second = first; second <= sizeof bytes; second++) {
            struct message_reader reader;
            char out[32];
            size_t n;

            message_reader_init(&reader, &budget);
            n = feed(&reader, bytes, first, out);
            n += feed(&reader, bytes + first, second - first, out + n);
            n += feed(&reader, bytes + second, sizeof bytes - second, out + n);
            assert_int_equal(n, 7);
            assert_memory_equal(out, "abc||d|", 7);
            assert_false(message_reader_partial(&reader));
            message_reader_fini(&reader);
        }
    }
}

static void knows_when_it_is_inside_a_message(void **state)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 3, 'a', 'b', 'c'};
    struct message_reader reader;
    char out[8];

    (void)state;
    message_reader_init(&reader, &budget);
    assert_false(message_reader_partial(&reader));
    for (size_t i = 0; i < sizeof bytes; i++) {
        feed(&reader, bytes + i, 1, out);
        assert_int_equal(message_reader_partial(&reader), i + 1 < sizeof bytes);
    }
    message_reader_fini(&reader);
    message_reader_fini(&reader);
}

static int fault(struct message_reader *reader, const void *bytes, size_t len)
{
    const uint8_t *data = bytes;

    assert_int_equal(message_reader_feed(reader, &data, &len), MESSAGE_FAILED);
    assert_non_null(reader->fault_text);
    return reader->fault_code;
}

static int fault_of(enum message_encoding encoding, const void *bytes, size_t len)
{
    struct message_reader reader;
    int code;

    message_reader_init(&reader, &budget);
    reader.encoding = encoding;
    code = fault(&reader, bytes, len);
    message_reader_fini(&reader);
    return code;
}

static void refuses_bad_heads(void **state)
{
    (void)state;
    assert_int_equal(fault_of(MESSAGE_IDENTITY, "\2\0\0\0\0", 5), RPC_INTERNAL);
    assert_int_equal(fault_of(MESSAGE_IDENTITY, "\1\0\0\0\0", 5), RPC_INTERNAL);
    assert_int_equal(fault_of(MESSAGE_ENCODING_UNKNOWN, "\1\0\0\0\0", 5), RPC_INTERNAL);
    assert_int_equal(fault_of(MESSAGE_IDENTITY, "\0\1\0\0\1", 5), RPC_RESOURCE_EXHAUSTED);
    assert_int_equal(fault_of(MESSAGE_IDENTITY, "\0\xff\xff\xff\xff", 5), RPC_RESOURCE_EXHAUSTED);
}

static void an_announced_length_costs_nothing(void **state)
{
    struct message_reader reader;
    const uint8_t *data = (const uint8_t *)"\0\1\0\0\0ab";
    size_t len = 7;

    (void)state;
    message_reader_init(&reader, &budget);
    assert_int_equal(message_reader_feed(&reader, &data, &len), MESSAGE_MORE);
    assert_true(budget.left > BUDGET - 64 * 1024);
    message_reader_fini(&reader);
}

static void readers_share_one_budget(void **state)
{
    static uint8_t bytes[5 + 100000] = {0, 0, 1, 0x86, 0xa0};
    struct message_reader first, second;
    const uint8_t *data = bytes;
    size_t len = sizeof bytes;

    (void)state;
    budget.left = 150000;
    message_reader_init(&first, &budget);
    message_reader_init(&second, &budget);
    assert_int_equal(message_reader_feed(&first, &data, &len), MESSAGE_READY);
    assert_int_equal(fault(&second, bytes, sizeof bytes), RPC_RESOURCE_EXHAUSTED);
    message_reader_fini(&first);
    message_reader_fini(&second);
    assert_int_equal(budget.left, 150000);
    budget.left = BUDGET;
}

static void does_not_keep_a_large_buffer(void **state)
{
    static uint8_t bytes[5 + 100000] = {0, 0, 1, 0x86, 0xa0};
    struct message_reader reader;
    const uint8_t *data = bytes;
    size_t len = sizeof bytes;

    (void)state;
    message_reader_init(&reader, &budget);
    assert_int_equal(message_reader_feed(&reader, &data, &len), MESSAGE_READY);
    assert_int_equal(message_reader_feed(&reader, &data, &len), MESSAGE_MORE);
    assert_int_equal(budget.left, BUDGET);
    message_reader_fini(&reader);
}

/* A compressed message of `len` zero bytes and then `tail`, behind its head; the caller frees
 * it. */
static uint8_t *compressed(size_t len, size_t tail, size_t *out_len)
{
    z_stream stream = {0};
    size_t room = len / 500 + 1000;
    uint8_t *out = malloc(room), *in = calloc(1, len + 1);
    size_t n;

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = in;
    stream.avail_in = (uInt)len;
    stream.next_out = out + MESSAGE_HEAD_BYTES;
    stream.avail_out = (uInt)(room - MESSAGE_HEAD_BYTES);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    n = stream.total_out + tail;
    memset(out + MESSAGE_HEAD_BYTES + stream.total_out, 'x', tail);
    deflateEnd(&stream);
    free(in);
    out[0] = 1;
    out[1] = (uint8_t)(n >> 24);
    out[2] = (uint8_t)(n >> 16);
    out[3] = (uint8_t)(n >> 8);
    out[4] = (uint8_t)n;
    *out_len = MESSAGE_HEAD_BYTES + n;
    return out;
}

static void inflates_up_to_the_largest_message(void **state)
{
    static const size_t sizes[] = {
        0, 1, 4095, 4096, 4097, 8192, 100000, RPC_MESSAGE_BYTES_MAX - 1, RPC_MESSAGE_BYTES_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t len;
        uint8_t *bytes = compressed(sizes[i], 0, &len);
        const uint8_t *data = bytes;
        struct message_reader reader;

        message_reader_init(&reader, &budget);
        reader.encoding = MESSAGE_GZIP;
        assert_int_equal(message_reader_feed(&reader, &data, &len), MESSAGE_READY);
        assert_int_equal(reader.body_len, sizes[i]);
        assert_int_equal(message_reader_feed(&reader, &data, &len), MESSAGE_MORE);
        message_reader_fini(&reader);
        free(bytes);
    }
}

static void refuses_what_inflates_too_far(void **state)
{
    static const size_t sizes[] = {RPC_MESSAGE_BYTES_MAX + 1, RPC_MESSAGE_BYTES_MAX + 2,
                                   8 * RPC_MESSAGE_BYTES_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t len;
        uint8_t *bytes = compressed(sizes[i], 0, &len);

        assert_int_equal(fault_of(MESSAGE_GZIP, bytes, len), RPC_RESOURCE_EXHAUSTED);
        free(bytes);
    }
}

static void refuses_what_does_not_inflate(void **state)
{
    size_t len;
    uint8_t *bytes = compressed(1000, 3, &len);

    (void)state;
    assert_int_equal(fault_of(MESSAGE_GZIP, bytes, len), RPC_INTERNAL); /* bytes behind its end */
    bytes[4] = 10;
    assert_int_equal(fault_of(MESSAGE_GZIP, bytes, 15), RPC_INTERNAL); /* cut off */
    free(bytes);
    assert_int_equal(fault_of(MESSAGE_GZIP, "\1\0\0\0\0", 5), RPC_INTERNAL);
    assert_int_equal(fault_of(MESSAGE_GZIP, "\1\0\0\0\4abcd", 9), RPC_INTERNAL);
}

static void takes_plain_messages_under_gzip(void **state)
{
    struct message_reader reader;
    char out[8];

    (void)state;
    message_reader_init(&reader, &budget);
    reader.encoding = MESSAGE_GZIP;
    assert_int_equal(feed(&reader, (const uint8_t *)"\0\0\0\0\1a", 6, out), 2);
    message_reader_fini(&reader);
}

/* Every amount of memory up to what an inflated message needs: fails or works, never leaks. */
static void any_budget_is_kept(void **state)
{
    size_t len;
    uint8_t *bytes = compressed(50000, 0, &len);

    (void)state;
    for (size_t bytes_max = 0; bytes_max < 200000; bytes_max += 97) {
        const size_t own = bytes_max / 3, shared_before = bytes_max - own;
        size_t left = len, shared = shared_before;
        const uint8_t *data = bytes;
        struct message_reader reader;

        budget = (struct message_budget){.left = bytes_max};
        if (bytes_max % 2)
            budget = (struct message_budget){.left = BUDGET, .own = own, .shared = &shared};
        message_reader_init(&reader, &budget);
        reader.encoding = MESSAGE_GZIP;
        if (message_reader_feed(&reader, &data, &left) == MESSAGE_FAILED)
            assert_int_equal(reader.fault_code, RPC_RESOURCE_EXHAUSTED);
        else
            assert_int_equal(reader.body_len, 50000);
        message_reader_fini(&reader);
        assert_int_equal(budget.left, budget.shared ? BUDGET : bytes_max);
        assert_int_equal(budget.taken, 0);
        assert_int_equal(shared, shared_before);
    }
    free(bytes);
    budget = (struct message_budget){.left = BUDGET};
}

/* Half a message of 100 kB, and whether there was room for it. */
static bool half_fits(struct message_reader *reader, struct message_budget *from)
{
    static const uint8_t bytes[5 + 50000] = {0, 0, 1, 0x86, 0xa0};
    const uint8_t *data = bytes;
    size_t len = sizeof bytes;

    message_reader_init(reader, from);
    return message_reader_feed(reader, &data, &len) == MESSAGE_MORE;
}

/* Ten who send much and one whose message is small. */
static void what_is_ones_own_is_there_whatever_others_hold(void **state)
{
    static const uint8_t small[] = {0, 0, 0, 0, 3, 'a', 'b', 'c'};
    size_t shared = 200000, fit = 0;
    struct message_budget budgets[11];
    struct message_reader readers[11];
    char out[8];

    (void)state;
    for (size_t i = 0; i < 11; i++)
        budgets[i] = (struct message_budget){.left = BUDGET, .own = 8192, .shared = &shared};
    for (size_t i = 0; i < 10; i++)
        fit += half_fits(&readers[i], &budgets[i]);
    assert_int_equal(fit, 3); /* each in a buffer of 64 KiB, 8 of them its own */
    message_reader_init(&readers[10], &budgets[10]);
    assert_int_equal(feed(&readers[10], small, sizeof small, out), 4);
    for (size_t i = 0; i < 11; i++) {
        message_reader_fini(&readers[i]);
        assert_int_equal(budgets[i].left, BUDGET);
    }
    assert_int_equal(shared, 200000);
    assert_true(half_fits(&readers[9], &budgets[9]));
    message_reader_fini(&readers[9]);
}

/* ---- protobuf ---- */

static uint8_t *packed_list(size_t devices, const char *id, size_t *len)
{
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__TopologyInfo topology = V1BETA1__TOPOLOGY_INFO__INIT;
    V1beta1__NUMANode node = V1BETA1__NUMANODE__INIT;
    V1beta1__NUMANode *nodes[] = {&node};
    V1beta1__Device device = V1BETA1__DEVICE__INIT;
    V1beta1__Device **all = calloc(devices, sizeof *all);
    uint8_t *bytes;

    node.id = 1;
    topology.n_nodes = 1;
    topology.nodes = nodes;
    device.id = (char *)id;
    device.health = (char *)"Healthy";
    device.topology = &topology;
    for (size_t i = 0; i < devices; i++)
        all[i] = &device;
    list.n_devices = devices;
    list.devices = all;
    assert_int_equal(message_pack(&list.base, &bytes, len), 0);
    free(all);
    return bytes;
}

static void packs_behind_a_head_and_unpacks(void **state)
{
    size_t len;
    uint8_t *bytes = packed_list(2, "w0", &len);
    struct message_arena arena = {0};
    V1beta1__ListAndWatchResponse *list;
    int code = 7;

    (void)state;
    assert_memory_equal(bytes, "\0\0\0\0", 4);
    assert_int_equal(bytes[4], len - 5);
    list = (V1beta1__ListAndWatchResponse *)message_unpack(
        &v1beta1__list_and_watch_response__descriptor, bytes + 5, len - 5, &arena, &code);
    assert_non_null(list);
    assert_int_equal(list->n_devices, 2);
    assert_string_equal(list->devices[1]->id, "w0");
    assert_int_equal(list->devices[1]->topology->nodes[0]->id, 1);
    assert_int_equal(code, 7);
    message_arena_fini(&arena);
    free(bytes);
}

static void the_worst_of_real_lists_fits(void **state)
{
    size_t len;
    uint8_t *bytes = packed_list(100000, "w0", &len);
    struct message_arena arena = {0};
    int code;

    (void)state;
    assert_non_null(message_unpack(&v1beta1__list_and_watch_response__descriptor, bytes + 5,
                                   len - 5, &arena, &code));
    message_arena_fini(&arena);
    free(bytes);
}

static void unpacks_an_empty_message(void **state)
{
    struct message_arena arena = {0};
    int code;

    (void)state;
    assert_non_null(message_unpack(&v1beta1__empty__descriptor, NULL, 0, &arena, &code));
    message_arena_fini(&arena);
}

/* protobuf-c reads a field 0 whose tag is longer than it need be, and writes what it does not
 * read. */
static void what_could_not_be_packed_again_is_refused(void **state)
{
    static const uint8_t ZERO[] = {0x81, 0x00, 1, 2, 3, 4, 5, 6, 7, 8};
    struct message_arena arena = {0};
    int code = 0;

    (void)state;
    assert_null(message_unpack(&v1beta1__empty__descriptor, ZERO, sizeof ZERO, &arena, &code));
    assert_int_equal(code, RPC_INTERNAL);
    message_arena_fini(&arena);
}

/* Cut anywhere, and with each byte changed: it parses or it does not, and nothing leaks. */
static void damaged_messages_are_refused(void **state)
{
    size_t len;
    uint8_t *bytes = packed_list(3, "a-device", &len);
    int code;

    (void)state;
    for (size_t cut = 0; cut < len - 5; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);
        struct message_arena arena = {0};

        memcpy(exact, bytes + 5, cut);
        if (!message_unpack(&v1beta1__list_and_watch_response__descriptor, exact, cut, &arena,
                            &code))
            assert_int_equal(code, RPC_INTERNAL);
        message_arena_fini(&arena);
        free(exact);
    }
    for (size_t at = 5; at < len; at++) {
        uint8_t before = bytes[at];

        for (unsigned value = 0; value < 256; value++) {
            struct message_arena arena = {0};

            bytes[at] = (uint8_t)value;
            if (!message_unpack(&v1beta1__list_and_watch_response__descriptor, bytes + 5, len - 5,
                                &arena, &code))
                assert_int_equal(code, RPC_INTERNAL);
            message_arena_fini(&arena);
        }
        bytes[at] = before;
    }
    free(bytes);
}

static void garbage_that_needs_much_memory_is_refused(void **state)
{
    static uint8_t empty_devices[20000], unknown_fields[20000];
    struct message_arena arena = {0};
    int code = 0;

    (void)state;
    for (size_t i = 0; i < sizeof empty_devices; i += 2) {
        empty_devices[i] = 0x0a;
        unknown_fields[i] = 0x78;
    }
    assert_null(message_unpack(&v1beta1__list_and_watch_response__descriptor, empty_devices,
                               sizeof empty_devices, &arena, &code));
    assert_int_equal(code, RPC_RESOURCE_EXHAUSTED);
    message_arena_fini(&arena);
    code = 0;
    arena = (struct message_arena){0};
    assert_null(message_unpack(&v1beta1__list_and_watch_response__descriptor, unknown_fields,
                               sizeof unknown_fields, &arena, &code));
    assert_int_equal(code, RPC_RESOURCE_EXHAUSTED);
    message_arena_fini(&arena);
}

static void packs_up_to_the_largest_message(void **state)
{
    V1beta1__CDIDevice device = V1BETA1__CDIDEVICE__INIT;
    char *name = malloc(RPC_MESSAGE_BYTES_MAX);
    uint8_t *bytes = NULL;
    size_t len = 0;

    (void)state;
    memset(name, 'a', RPC_MESSAGE_BYTES_MAX);
    name[RPC_MESSAGE_BYTES_MAX - 5] = '\0'; /* a tag and four bytes of length before it */
    device.name = name;
    assert_int_equal(message_pack(&device.base, &bytes, &len), 0);
    assert_int_equal(len, RPC_MESSAGE_BYTES_MAX + MESSAGE_HEAD_BYTES);
    free(bytes);
    bytes = NULL;
    name[RPC_MESSAGE_BYTES_MAX - 5] = 'a';
    name[RPC_MESSAGE_BYTES_MAX - 4] = '\0';
    assert_int_equal(message_pack(&device.base, &bytes, &len), -EMSGSIZE);
    assert_null(bytes);
    free(name);
}

#define READER_TEST(function) cmocka_unit_test_setup_teardown(function, reset_budget, check_budget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodings),
        READER_TEST(cuts_messages_at_any_byte),
        READER_TEST(knows_when_it_is_inside_a_message),
        READER_TEST(refuses_bad_heads),
        READER_TEST(an_announced_length_costs_nothing),
        READER_TEST(readers_share_one_budget),
        READER_TEST(does_not_keep_a_large_buffer),
        READER_TEST(inflates_up_to_the_largest_message),
        READER_TEST(refuses_what_inflates_too_far),
        READER_TEST(refuses_what_does_not_inflate),
        READER_TEST(takes_plain_messages_under_gzip),
        READER_TEST(any_budget_is_kept),
        READER_TEST(what_is_ones_own_is_there_whatever_others_hold),
        cmocka_unit_test(packs_behind_a_head_and_unpacks),
        cmocka_unit_test(the_worst_of_real_lists_fits),
        cmocka_unit_test(unpacks_an_empty_message),
        cmocka_unit_test(what_could_not_be_packed_again_is_refused),
        cmocka_unit_test(damaged_messages_are_refused),
        cmocka_unit_test(garbage_that_needs_much_memory_is_refused),
        cmocka_unit_test(packs_up_to_the_largest_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
