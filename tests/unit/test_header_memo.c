/* shim/relay/header_memo.c: what is kept, what makes it forget, and that a listener stays in
 * step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "shim/relay/header_listener.h"
#include "shim/relay/header_memo.h"

#define FIELDS_MAX 6
#define BLOCK_BYTES_MAX 1024

static const struct header_fields SOME = {.timeout_ms = 7, .grpc_status = 3};

static const struct header_memo_entry *learn(struct header_memo *m, const void *bytes, size_t len)
{
    header_memo_learn(m, bytes, len, &SOME);
    return header_memo_find(m, bytes, len);
}

#define LEARN(m, literal) learn(m, literal, sizeof(literal) - 1)

static void blocks_that_keep_the_table_are_kept(void **state)
{
    struct header_memo m = {0};
    const struct header_memo_entry *e;

    (void)state;
    assert_null(header_memo_find(&m, (const uint8_t *)"\x88", 1));
    e = LEARN(&m, "\x88"); /* :status 200 */
    assert_non_null(e);
    assert_int_equal(e->fields.timeout_ms, 7);
    assert_int_equal(e->fields.grpc_status, 3);
    assert_non_null(LEARN(&m, "\xbe\xbf"));
    assert_non_null(LEARN(&m, "\xff\x01\x88"));      /* an index of two bytes */
    assert_non_null(LEARN(&m, "\x04\x02/a"));        /* literal, name from the table */
    assert_non_null(LEARN(&m, "\x00\x01x\x01y"));    /* literal, new name */
    assert_non_null(LEARN(&m, "\x10\x01x\x01y"));    /* never indexed */
    assert_non_null(LEARN(&m, "\x1f\x10\x01y\x88")); /* the same, name index 31 */
    assert_null(header_memo_find(&m, (const uint8_t *)"\x88\x88", 2));
    assert_non_null(header_memo_find(&m, (const uint8_t *)"\x88", 1));
}

static void blocks_that_change_the_table_make_it_forget(void **state)
{
    static const char *const changing[] = {
        "\x41\x01y",          /* literal with incremental indexing */
        "\x88\x40\x01x\x01y", /* the same behind another, new name */
        "\x3f\x10\x88",       /* table size update */
    };
    struct header_memo m = {0};

    (void)state;
    for (size_t i = 0; i < sizeof changing / sizeof changing[0]; i++) {
        assert_non_null(LEARN(&m, "\x88"));
        assert_null(learn(&m, changing[i], strlen(changing[i])));
        assert_null(header_memo_find(&m, (const uint8_t *)"\x88", 1));
    }
    assert_non_null(LEARN(&m, "\x88"));
    header_memo_forget(&m);
    assert_null(header_memo_find(&m, (const uint8_t *)"\x88", 1));
}

/* None is a whole block that a decoder takes; they must only not be read past their end. */
static void cut_blocks_are_not_kept(void **state)
{
    struct header_memo m = {0};

    (void)state;
    assert_null(LEARN(&m, "\xff"));
    assert_null(LEARN(&m, "\xff\xff\xff\xff\xff\xff\x01"));
    assert_null(LEARN(&m, "\x0f"));
    assert_null(LEARN(&m, "\x04"));
    assert_null(LEARN(&m, "\x04\x02/"));
    assert_null(LEARN(&m, "\x04\x7f\xff\xff\x01/"));
    assert_null(LEARN(&m, "\x10\x01"));
    assert_null(LEARN(&m, "\x10\x01x"));
    assert_null(learn(&m, "", 0));
}

static void the_oldest_makes_room(void **state)
{
    struct header_memo m = {0};
    uint8_t block[2] = {0x88, 0};

    (void)state;
    for (uint8_t i = 0; i <= RELAY_HEADER_MEMO_BLOCKS; i++) {
        block[1] = 0x81 + i;
        assert_non_null(learn(&m, block, sizeof block));
    }
    for (uint8_t i = 0; i <= RELAY_HEADER_MEMO_BLOCKS; i++) {
        block[1] = 0x81 + i;
        assert_int_equal(header_memo_find(&m, block, sizeof block) != NULL, i > 0);
    }
}

static void long_blocks_are_not_kept_and_change_nothing(void **state)
{
    struct header_memo m = {0};
    uint8_t block[RELAY_HEADER_MEMO_BYTES + 1];

    (void)state;
    memset(block, 0x88, sizeof block);
    assert_non_null(learn(&m, block, sizeof block - 1));
    assert_null(learn(&m, block, sizeof block));
    assert_non_null(header_memo_find(&m, block, sizeof block - 1));
}

/* ---- a listener and nghttp2's inflater see the same ---- */

static void feed(struct header_listener *l, const uint8_t *bytes, size_t len)
{
    assert_int_equal(header_listener_feed(l, bytes, len, false), 0);
}

static void finish(struct header_listener *l, int grpc_status)
{
    assert_int_equal(header_listener_feed(l, NULL, 0, true), 0);
    assert_int_equal(header_listener_fields(l)->grpc_status, grpc_status);
}

/* grpc-status: 5, without indexing */
static const uint8_t STATUS_5[] = "\x00\x0bgrpc-status\x01"
                                  "5";
#define STATUS_5_BYTES (sizeof STATUS_5 - 1)

static void a_known_block_may_be_only_a_beginning(void **state)
{
    struct header_listener *l = header_listener_new();

    (void)state;
    feed(l, (const uint8_t *)"\x88", 1);
    finish(l, -1);
    feed(l, (const uint8_t *)"\x88", 1); /* known, and more comes */
    feed(l, NULL, 0);
    feed(l, STATUS_5, STATUS_5_BYTES);
    finish(l, 5);
    feed(l, (const uint8_t *)"\x88", 1);
    finish(l, -1);
    feed(l, NULL, 0);
    feed(l, STATUS_5, 3); /* not known, then what would be */
    feed(l, STATUS_5 + 3, STATUS_5_BYTES - 3);
    finish(l, 5);
    feed(l, STATUS_5, STATUS_5_BYTES);
    finish(l, 5);
    header_listener_free(l);
}

static void what_follows_a_known_beginning_may_be_garbage(void **state)
{
    struct header_listener *l = header_listener_new();

    (void)state;
    feed(l, (const uint8_t *)"\x88", 1);
    finish(l, -1);
    feed(l, (const uint8_t *)"\x88", 1);
    assert_true(header_listener_feed(l, (const uint8_t *)"\x80", 1, false) < 0);
    header_listener_free(l);
}

/* The grpc-status that nghttp2 reads; -1: none. */
static int inflate(nghttp2_hd_inflater *inflater, const uint8_t *bytes, size_t len)
{
    int status = -1;
    int flags = 0;

    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, bytes, len, 1);

        assert_true(n >= 0);
        bytes += n;
        len -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT && nv.namelen == strlen("grpc-status") &&
            memcmp(nv.name, "grpc-status", nv.namelen) == 0)
            status = atoi((const char *)nv.value);
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return status;
}

/* Few names and values, so that blocks come back; some never indexed, and the table overflows. */
static size_t random_block(nghttp2_hd_deflater *deflater, uint8_t *out)
{
    static const char *const names[] = {":path", "grpc-status", "x", "content-length", "y"};
    char values[FIELDS_MAX][80];
    nghttp2_nv fields[FIELDS_MAX];
    size_t n = 1 + (size_t)rand() % (FIELDS_MAX - 1);
    ssize_t len;

    for (size_t i = 0; i < n; i++) {
        const char *name = names[(size_t)rand() % (sizeof names / sizeof names[0])];

        snprintf(values[i], sizeof values[i], "%d", rand() % 16);
        if (rand() % 8 == 0)
            memset(values[i] + strlen(values[i]), '0', 60 - strlen(values[i]));
        values[i][60] = '\0';
        if (strcmp(name, "grpc-status") == 0)
            snprintf(values[i], sizeof values[i], "%d", rand() % 16);
        fields[i] = (nghttp2_nv){(uint8_t *)name, (uint8_t *)values[i], strlen(name),
                                 strlen(values[i]), rand() % 4 == 0 ? NGHTTP2_NV_FLAG_NO_INDEX : 0};
    }
    len = nghttp2_hd_deflate_hd(deflater, out, BLOCK_BYTES_MAX, fields, n);
    assert_true(len > 0);
    return (size_t)len;
}

static void change_table(nghttp2_hd_deflater *deflater, nghttp2_hd_inflater *inflater,
                         struct header_listener *l)
{
    uint32_t bytes = (uint32_t)(rand() % 4) * 200;

    assert_int_equal(nghttp2_hd_deflate_change_table_size(deflater, bytes), 0);
    assert_int_equal(nghttp2_hd_inflate_change_table_size(inflater, bytes), 0);
    assert_int_equal(header_listener_table_size(l, bytes), 0);
}

static void a_listener_stays_in_step(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct header_listener *l = header_listener_new();
        nghttp2_hd_deflater *deflater;
        nghttp2_hd_inflater *inflater;
        uint8_t block[BLOCK_BYTES_MAX];

        srand(seed);
        print_message("seed %u\n", seed);
        assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
        assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
        for (int i = 0; i < 2000; i++) {
            size_t len, cut;

            if (rand() % 100 == 0)
                change_table(deflater, inflater, l);
            len = random_block(deflater, block);
            cut = rand() % 2 ? len : (size_t)rand() % (len + 1);
            feed(l, block, cut);
            if (cut < len)
                feed(l, block + cut, len - cut);
            finish(l, inflate(inflater, block, len));
        }
        nghttp2_hd_deflate_del(deflater);
        nghttp2_hd_inflate_del(inflater);
        header_listener_free(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_keep_the_table_are_kept),
        cmocka_unit_test(blocks_that_change_the_table_make_it_forget),
        cmocka_unit_test(cut_blocks_are_not_kept),
        cmocka_unit_test(the_oldest_makes_room),
        cmocka_unit_test(long_blocks_are_not_kept_and_change_nothing),
        cmocka_unit_test(a_known_block_may_be_only_a_beginning),
        cmocka_unit_test(what_follows_a_known_beginning_may_be_garbage),
        cmocka_unit_test(a_listener_stays_in_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
