/* shim/rpc/sieve.c: frames of one stream, and the connection's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shim/rpc/sieve.h"

#define OURS 5

struct bytes {
    uint8_t v[65536];
    size_t len;
};

static void add_frame(struct bytes *bytes, uint32_t stream_id, size_t len)
{
    uint8_t *frame = bytes->v + bytes->len;
    const uint8_t head[SIEVE_HEAD_BYTES] = {(uint8_t)(len >> 16),
                                            (uint8_t)(len >> 8),
                                            (uint8_t)len,
                                            0,
                                            0,
                                            (uint8_t)(stream_id >> 24),
                                            (uint8_t)(stream_id >> 16),
                                            (uint8_t)(stream_id >> 8),
                                            (uint8_t)stream_id};

    assert_true(bytes->len + sizeof head + len <= sizeof bytes->v);
    memcpy(frame, head, sizeof head);
    memset(frame + sizeof head, (int)(bytes->len & 0x7f), len);
    bytes->len += sizeof head + len;
}

static void feed(struct sieve *sieve, const uint8_t *data, size_t len, struct bytes *out)
{
    const uint8_t *piece;
    size_t n;

    while ((n = sieve_feed(sieve, &data, &len, &piece)) > 0) {
        memcpy(out->v + out->len, piece, n);
        out->len += n;
    }
    assert_int_equal(len, 0);
}

/* In pieces of each length up to the whole: what comes through is the same. */
static void check(int32_t stream_id, const struct bytes *in, const struct bytes *want)
{
    for (size_t step = 1; step <= in->len; step++) {
        struct sieve sieve = {.stream_id = stream_id};
        static struct bytes out;

        out.len = 0;
        for (size_t at = 0; at < in->len; at += step)
            feed(&sieve, in->v + at, step < in->len - at ? step : in->len - at, &out);
        assert_int_equal(out.len, want->len);
        assert_memory_equal(out.v, want->v, want->len);
    }
}

static void one_stream_s_and_the_connection_s(void **state)
{
    static struct bytes in, want;
    const uint32_t reserved = 1u << 31;

    (void)state;
    for (uint32_t id = 0; id < 9; id++) {
        for (size_t len = 0; len < 40; len += 13) {
            size_t before = in.len;

            add_frame(&in, len % 2 ? id : id | reserved, len);
            if (id != OURS && id % 2)
                continue;
            memcpy(want.v + want.len, in.v + before, in.len - before);
            want.len += in.len - before;
        }
    }
    check(OURS, &in, &want);
}

static void all_where_no_stream_is_said(void **state)
{
    static struct bytes in;

    (void)state;
    for (uint32_t id = 0; id < 9; id++)
        add_frame(&in, id, id);
    check(0, &in, &in);
}

/* It is for who speaks HTTP/2 to say so: no head of a frame, or one of a server's that has not been
 * allowed it. */
static void what_breaks_the_protocol(void **state)
{
    static struct bytes in, want;
    struct sieve sieve = {.stream_id = OURS};
    static struct bytes out;

    (void)state;
    add_frame(&in, OURS + 2, 16384);
    feed(&sieve, in.v, in.len, &out);
    assert_int_equal(out.len, 0);
    add_frame(&want, OURS + 2, 16385);
    feed(&sieve, want.v, want.len, &out);
    assert_int_equal(out.len, want.len);
    assert_memory_equal(out.v, want.v, want.len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stream_s_and_the_connection_s),
        cmocka_unit_test(all_where_no_stream_is_said),
        cmocka_unit_test(what_breaks_the_protocol),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
