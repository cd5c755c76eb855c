/* shim/relay/lane.c: what passes, is seen, is kept and is put in between, at every cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "h2_script.h"
#include "shim/relay/lane.h"

struct world {
    struct lane lane;
    struct buffer out;
    struct buffer seen; /* bodies of tapped and kept frames, and what was gathered */
    size_t wire_bytes;
    unsigned heads, ends, blocks, writes;
    enum lane_how how;
    bool drop; /* gathered frames do not pass on */
    int head_result;
    const char *inject_at_head; /* put in when a head comes */
};

static int on_head(void *user, struct lane *lane, const struct frame_head *head, enum lane_how *how)
{
    struct world *w = user;

    assert_int_equal(*how, LANE_PASS);
    assert_ptr_equal(head, &lane->head);
    w->heads++;
    if (head->type == FRAME_HEADERS)
        lane->in_block = w->how != LANE_PASS || !(head->flags & FRAME_FLAG_END_HEADERS);
    if (w->inject_at_head)
        h2_put(&lane->inject, w->inject_at_head, strlen(w->inject_at_head));
    *how = w->how;
    return w->head_result;
}

static int on_piece(void *user, struct lane *lane, const uint8_t *body, size_t body_bytes,
                    size_t wire_bytes)
{
    struct world *w = user;

    assert_true(lane->within);
    assert_true(body_bytes <= wire_bytes && wire_bytes > 0);
    h2_put(&w->seen, body, body_bytes);
    w->wire_bytes += wire_bytes;
    return 0;
}

static int on_end(void *user, struct lane *lane, const uint8_t *whole)
{
    struct world *w = user;

    w->ends++;
    assert_int_equal(whole != NULL, w->how == LANE_GATHER);
    if (whole) {
        h2_put(&w->seen, whole, FRAME_HEAD_BYTES + lane->head.length);
        if (!w->drop)
            lane_pass_gathered(lane, whole);
    }
    if (lane->head.flags & FRAME_FLAG_END_HEADERS)
        lane->in_block = false;
    return 0;
}

static void on_write(void *user, struct lane *lane, const struct iovec *pieces, int n)
{
    struct world *w = user;

    assert_ptr_equal(lane, &w->lane);
    assert_in_range(n, 1, LANE_PIECES_MAX);
    w->writes++;
    for (int i = 0; i < n; i++) {
        assert_true(pieces[i].iov_len > 0);
        h2_put(&w->out, pieces[i].iov_base, pieces[i].iov_len);
    }
}

static int on_block(void *user, struct lane *lane, const uint8_t *body, size_t body_bytes)
{
    struct world *w = user;

    assert_true(lane->within);
    assert_int_equal(body_bytes, lane->head.length);
    w->blocks++;
    h2_put(&w->seen, body, body_bytes);
    h2_put(&lane->inject, "!", 1);
    lane_flush(lane); /* not before the block */
    return w->head_result;
}

static const struct lane_ops OPS = {on_head, on_piece, on_block, on_end, on_write};

static void fini(struct world *w)
{
    lane_fini(&w->lane);
    buffer_fini(&w->out);
    buffer_fini(&w->seen);
}

static int feed(struct world *w, const struct buffer *in, size_t cut)
{
    int r = 0;

    for (size_t at = 0; at < buffer_len(in) && r == 0; at += cut) {
        size_t n = buffer_len(in) - at < cut ? buffer_len(in) - at : cut;
        uint8_t *copy = malloc(n);

        assert_non_null(copy);
        memcpy(copy, buffer_data(in) + at, n);
        r = lane_feed(&w->lane, copy, n);
        free(copy);
    }
    return r;
}

static void same(const struct buffer *a, const struct buffer *b)
{
    assert_int_equal(buffer_len(a), buffer_len(b));
    if (buffer_len(a) > 0)
        assert_memory_equal(buffer_data(a), buffer_data(b), buffer_len(a));
}

static void put_frames(struct buffer *in)
{
    h2_data(in, 1, "abcdefgh", 8, 0, -1);
    h2_data(in, 1, "ijk", 3, 0, 5);
    h2_data(in, 1, "", 0, 0, 0);
    h2_frame(in, FRAME_HEADERS, H2_PADDED | H2_PRIORITY | H2_END_HEADERS, 1,
             "\3"
             "prio!"
             "lmn"
             "pad",
             12);
    h2_frame(in, FRAME_PING, 0, 0, "opqrstuv", 8);
    h2_frame(in, 0x77, 0xff, 9, "wxyz", 4);
    h2_data(in, 1, "", 0, 1, -1);
}

/* What comes whole is one step; what nobody has a part in is none. */
static void a_block_is_one_step_and_what_only_passes_none(void **state)
{
    struct buffer in = {0}, want = {0};

    (void)state;
    h2_frame(&in, FRAME_PING, 0, 0, "opqrstuv", 8);
    h2_frame(&in, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, 1, "abc", 3);
    h2_put(&want, buffer_data(&in), buffer_len(&in));
    h2_put(&want, "!", 1);
    for (size_t cut = 1; cut <= buffer_len(&in); cut++) {
        bool whole = cut == buffer_len(&in); /* the last of the cuts only */
        struct world w = {.how = LANE_TAP};

        lane_init(&w.lane, &OPS, &w);
        w.lane.passing = 1u << FRAME_PING;
        w.lane.begun = true;
        assert_int_equal(feed(&w, &in, cut), 0);
        if (whole) {
            assert_int_equal(w.blocks, 1);
            assert_int_equal(w.heads + w.ends, 0);
            same(&w.out, &want);
        } else {
            assert_int_equal(w.heads + w.blocks, 1);
        }
        assert_memory_equal(buffer_data(&w.seen), "abc", 3);
        fini(&w);
    }
    buffer_fini(&in);
    buffer_fini(&want);
}

/* DATA without a stream is a fault that the owner may want to see; what it does not see it can
 * count. */
static void data_passes_only_on_a_stream(void **state)
{
    struct buffer in = {0};

    (void)state;
    h2_data(&in, 1, "abcdefgh", 8, 0, 3);
    h2_data(&in, 0, "ijk", 3, 0, -1);
    h2_data(&in, 3, "", 0, 1, -1);
    h2_data(&in, 3, "lm", 2, 1, -1);
    for (size_t cut = 1; cut <= buffer_len(&in); cut++) {
        struct world w = {.how = LANE_PASS};

        lane_init(&w.lane, &OPS, &w);
        w.lane.passing = 1u << FRAME_DATA;
        assert_int_equal(feed(&w, &in, cut), 0);
        assert_int_equal(w.heads, 1);
        assert_int_equal(w.ends, 0);
        assert_int_equal(w.lane.data_passed, 1 + 8 + 3 + 2);
        same(&w.out, &in);
        fini(&w);
    }
    buffer_fini(&in);
}

static void blocks_that_are_known_pass_if_they_are_to(void **state)
{
    struct header_memo memo = {0};
    struct buffer in = {0};

    (void)state;
    header_memo_learn(&memo, (const uint8_t *)"\x82", 1, &(struct header_fields){.method = 0});
    header_memo_learn(&memo, (const uint8_t *)"\x83\x84", 2, &(struct header_fields){.method = 1});
    h2_frame(&in, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, 5, "\x83\x84", 2);
    h2_frame(&in, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, 3, "\x83\x84", 2);
    h2_frame(&in, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, 7, "\x82", 1);
    for (uint32_t bits = 0; bits < 4; bits++) {
        struct world w = {.how = LANE_PASS};

        lane_init(&w.lane, &OPS, &w);
        w.lane.begun = true;
        w.lane.memo = &memo;
        w.lane.passing_methods = bits;
        assert_int_equal(feed(&w, &in, buffer_len(&in)), 0);
        assert_int_equal(w.heads, 0);
        assert_int_equal(w.blocks, (bits & 1 ? 0 : 1) + (bits & 2 ? 0 : 2));
        assert_int_equal(w.lane.stream_passed, bits & 1 ? 7 : bits & 2 ? 5 : 0);
        assert_int_equal(buffer_len(&w.out), buffer_len(&in) + w.blocks); /* on_block() puts in */
        fini(&w);
    }
    buffer_fini(&in);
}

/* Streams 3 and 131 share a bit. */
static void what_is_watched_does_not_pass(void **state)
{
    static const uint32_t ids[] = {1, 3, 5, 131};
    struct header_memo memo = {0};
    struct buffer in = {0};

    (void)state;
    assert_int_equal(lane_watched_bit(3), lane_watched_bit(131));
    header_memo_learn(&memo, (const uint8_t *)"\x82", 1, &(struct header_fields){0});
    for (size_t i = 0; i < 4; i++) {
        h2_frame(&in, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, ids[i], "\x82", 1);
        h2_data(&in, ids[i], "abc", 3, 0, -1);
        h2_frame(&in, FRAME_PING, 0, ids[i], "12345678", 8);
    }
    for (int bit = 0; bit < LANE_WATCHED_BITS; bit++) {
        struct world w = {.how = LANE_PASS};
        int n = bit == 1 ? 2 : bit == 0 || bit == 2;

        lane_init(&w.lane, &OPS, &w);
        w.lane.begun = true;
        w.lane.memo = &memo;
        w.lane.passing = 1u << FRAME_DATA | 1u << FRAME_PING;
        w.lane.passing_methods = 1;
        w.lane.watched = UINT64_C(1) << bit;
        assert_int_equal(feed(&w, &in, buffer_len(&in)), 0);
        assert_int_equal(w.blocks, n);
        assert_int_equal(w.heads, n);
        assert_int_equal(w.lane.data_passed, (4 - n) * 3);
        fini(&w);
    }
    buffer_fini(&in);
}

static void ours_wait_for_the_first_frame_whatever_it_is(void **state)
{
    struct buffer in = {0};

    (void)state;
    h2_frame(&in, FRAME_PING, 0, 0, "12345678", 8);
    for (int late = 0; late < 2; late++) {
        struct world w = {.how = LANE_PASS};

        lane_init(&w.lane, &OPS, &w);
        w.lane.passing = 1u << FRAME_PING;
        if (!late)
            h2_put(&w.lane.inject, "[ours]", 6);
        lane_flush(&w.lane);
        assert_int_equal(buffer_len(&w.out), 0);
        assert_int_equal(feed(&w, &in, buffer_len(&in)), 0);
        if (late)
            h2_put(&w.lane.inject, "[ours]", 6);
        lane_flush(&w.lane);
        assert_int_equal(buffer_len(&w.out), buffer_len(&in) + 6);
        assert_memory_equal(buffer_data(&w.out) + buffer_len(&in), "[ours]", 6);
        fini(&w);
    }
    buffer_fini(&in);
}

static void frames_pass_verbatim_or_are_kept(void **state)
{
    static const enum lane_how hows[] = {LANE_PASS, LANE_TAP, LANE_KEEP};
    struct buffer in = {0}, nothing = {0};

    (void)state;
    put_frames(&in);
    for (size_t h = 0; h < 3; h++) {
        for (size_t cut = 1; cut <= buffer_len(&in); cut++) {
            struct world w = {.how = hows[h]};

            lane_init(&w.lane, &OPS, &w);
            assert_int_equal(feed(&w, &in, cut), 0);
            same(&w.out, w.how == LANE_KEEP ? &nothing : &in);
            assert_int_equal(w.heads, 7);
            assert_int_equal(w.ends, w.how == LANE_PASS ? 0 : 7);
            assert_int_equal(buffer_len(&w.seen), w.how == LANE_PASS ? 0 : 26);
            if (w.how != LANE_PASS)
                assert_memory_equal(buffer_data(&w.seen), "abcdefghijklmnopqrstuvwxyz", 26);
            assert_int_equal(w.wire_bytes, w.how == LANE_PASS ? 0 : buffer_len(&in) - 7 * 9);
            if (cut == buffer_len(&in))
                assert_int_equal(w.writes, w.how == LANE_KEEP ? 0 : 1);
            fini(&w);
        }
    }
    buffer_fini(&in);
}

static void a_small_frame_is_gathered(void **state)
{
    struct buffer in = {0};

    (void)state;
    h2_window(&in, 3, 77);
    h2_frame(&in, FRAME_PING, 0, 0, "12345678", 8);
    h2_settings_ack(&in);
    for (int drop = 0; drop <= 1; drop++) {
        for (size_t cut = 1; cut <= buffer_len(&in); cut++) {
            struct world w = {.how = LANE_GATHER, .drop = drop};

            lane_init(&w.lane, &OPS, &w);
            assert_int_equal(feed(&w, &in, cut), 0);
            same(&w.seen, &in);
            if (drop)
                assert_int_equal(buffer_len(&w.out), 0);
            else
                same(&w.out, &in);
            fini(&w);
        }
    }
    buffer_fini(&in);
}

static void a_large_frame_cannot_be_gathered(void **state)
{
    struct buffer in = {0};
    struct world w = {.how = LANE_GATHER};

    (void)state;
    lane_init(&w.lane, &OPS, &w);
    h2_frame(&in, FRAME_PING, 0, 0, "123456789", 9);
    assert_int_equal(feed(&w, &in, 100), -EPROTO);
    buffer_fini(&in);
    fini(&w);
}

/* The end that a lane comes from speaks first (RFC 9113 §3.4): ours wait for that. */
static void speak_first(struct world *w)
{
    struct buffer settings = {0};

    h2_settings(&settings, -1, 0);
    assert_int_equal(feed(w, &settings, 100), 0);
    buffer_fini(&settings);
    buffer_fini(&w->out);
}

static void frames_of_ours_wait_for_the_first_frame(void **state)
{
    struct buffer in = {0}, expected = {0};

    (void)state;
    h2_settings(&in, -1, 0);
    h2_put(&expected, buffer_data(&in), 9);
    h2_put(&expected, "[ours]", 6);
    for (size_t at = 0; at < buffer_len(&in); at++) {
        struct world w = {.how = LANE_PASS};

        lane_init(&w.lane, &OPS, &w);
        assert_int_equal(lane_feed(&w.lane, buffer_data(&in), at), 0);
        h2_put(&w.lane.inject, "[ours]", 6);
        lane_flush(&w.lane);
        assert_int_equal(lane_feed(&w.lane, buffer_data(&in) + at, buffer_len(&in) - at), 0);
        same(&w.out, &expected);
        fini(&w);
    }
    buffer_fini(&in);
    buffer_fini(&expected);
}

static void frames_of_ours_wait_for_a_boundary(void **state)
{
    struct buffer in = {0};

    (void)state;
    h2_frame(&in, FRAME_PING, 0, 0, "12345678", 8);
    for (size_t at = 1; at < buffer_len(&in); at++) {
        struct world w = {.how = LANE_PASS};

        lane_init(&w.lane, &OPS, &w);
        speak_first(&w);
        assert_int_equal(lane_feed(&w.lane, buffer_data(&in), at), 0);
        h2_put(&w.lane.inject, "[ours]", 6);
        lane_flush(&w.lane);
        assert_int_equal(lane_feed(&w.lane, buffer_data(&in) + at, buffer_len(&in) - at), 0);
        assert_int_equal(buffer_len(&w.out), buffer_len(&in) + 6);
        /* in front of a head that has not passed yet, else behind the frame */
        assert_memory_equal(buffer_data(&w.out) + (at < 9 ? 0 : buffer_len(&in)), "[ours]", 6);
        assert_int_equal(buffer_len(&w.lane.inject), 0);
        fini(&w);
    }
    buffer_fini(&in);
}

static void a_kept_frame_does_not_hold_ours_back(void **state)
{
    struct buffer in = {0};
    struct world w = {.how = LANE_KEEP};

    (void)state;
    h2_data(&in, 1, "abcdefgh", 8, 0, -1);
    lane_init(&w.lane, &OPS, &w);
    speak_first(&w);
    assert_int_equal(lane_feed(&w.lane, buffer_data(&in), 12), 0);
    h2_put(&w.lane.inject, "[ours]", 6);
    lane_flush(&w.lane);
    assert_int_equal(buffer_len(&w.out), 6);
    buffer_fini(&in);
    fini(&w);
}

/* RFC 9113 §4.3: not between HEADERS and its CONTINUATIONs. */
static void a_header_block_is_not_broken(void **state)
{
    struct buffer in = {0};

    (void)state;
    h2_frame(&in, FRAME_HEADERS, 0, 1, "abc", 3);
    h2_frame(&in, FRAME_CONTINUATION, 0, 1, "", 0);
    h2_frame(&in, FRAME_CONTINUATION, H2_END_HEADERS, 1, "def", 3);
    for (size_t cut = 1; cut <= buffer_len(&in); cut++) {
        struct world w = {.how = LANE_TAP};

        lane_init(&w.lane, &OPS, &w);
        assert_int_equal(lane_feed(&w.lane, buffer_data(&in), 9), 0);
        h2_put(&w.lane.inject, "[ours]", 6);
        lane_flush(&w.lane);
        buffer_consume(&in, 9);
        assert_int_equal(feed(&w, &in, cut), 0);
        assert_int_equal(buffer_len(&w.out), buffer_len(&in) + 9 + 6);
        assert_memory_equal(buffer_data(&w.out) + buffer_len(&in) + 9, "[ours]", 6);
        fini(&w);
        in.start -= 9;
    }
    buffer_fini(&in);
}

static void ours_go_behind_what_passed_in_the_same_feed(void **state)
{
    struct buffer in = {0}, expected = {0};
    struct world w = {.how = LANE_PASS, .inject_at_head = "[ours]"};

    (void)state;
    h2_settings_ack(&in);
    h2_frame(&in, FRAME_PING, 0, 0, "12345678", 8);
    h2_put(&expected, buffer_data(&in), 9);
    h2_put(&expected, "[ours]", 6);
    h2_put(&expected, buffer_data(&in) + 9, 17);
    h2_put(&expected, "[ours]", 6);
    lane_init(&w.lane, &OPS, &w);
    assert_int_equal(feed(&w, &in, 100), 0);
    same(&w.out, &expected);
    buffer_fini(&in);
    buffer_fini(&expected);
    fini(&w);
}

/* Pieces that do not touch, more than fit one write. */
static void many_pieces_take_several_writes(void **state)
{
    struct buffer in = {0};
    struct world w = {.how = LANE_GATHER};

    (void)state;
    lane_init(&w.lane, &OPS, &w);
    for (int i = 0; i < 200; i++)
        h2_window(&in, 1, 1);
    assert_int_equal(feed(&w, &in, buffer_len(&in)), 0);
    same(&w.out, &in);
    assert_int_equal(w.writes, 1); /* they do touch */
    buffer_fini(&in);
    fini(&w);
}

static void bad_frames(void **state)
{
    static const struct {
        uint8_t type, flags;
        const char *payload;
        size_t len;
        int result;
    } cases[] = {
        {FRAME_DATA, H2_PADDED, "\4abc", 4, -EPROTO},
        {FRAME_DATA, H2_PADDED, "\3abc", 4, 0},
        {FRAME_DATA, H2_PADDED, "", 0, -EMSGSIZE},
        {FRAME_HEADERS, H2_PRIORITY, "abcd", 4, -EMSGSIZE},
        {FRAME_HEADERS, H2_PRIORITY, "abcde", 5, 0},
        {FRAME_HEADERS, H2_PRIORITY | H2_PADDED, "\1prio!", 6, -EPROTO},
        {FRAME_HEADERS, H2_PRIORITY | H2_PADDED, "\0prio", 5, -EPROTO},
        {FRAME_HEADERS, H2_PRIORITY | H2_PADDED, "\0prio!", 6, 0},
        {FRAME_PING, H2_PADDED, "\xff", 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t cut = 1; cut < 16; cut++) {
            for (enum lane_how how = LANE_PASS; how <= LANE_KEEP; how++) {
                struct world w = {.how = how};
                struct buffer in = {0};

                lane_init(&w.lane, &OPS, &w);
                h2_frame(&in, cases[i].type, cases[i].flags, 1, cases[i].payload, cases[i].len);
                assert_int_equal(feed(&w, &in, cut), how == LANE_PASS ? 0 : cases[i].result);
                buffer_fini(&in);
                fini(&w);
            }
        }
    }
}

static void a_callback_ends_the_walk(void **state)
{
    struct buffer in = {0};
    struct world w = {.how = LANE_PASS, .head_result = -77};

    (void)state;
    put_frames(&in);
    lane_init(&w.lane, &OPS, &w);
    assert_int_equal(feed(&w, &in, 100), -77);
    assert_int_equal(w.heads, 1);
    assert_int_equal(w.ends, 0);
    assert_int_equal(buffer_len(&w.out), 0);
    buffer_fini(&in);
    fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_one_step_and_what_only_passes_none),
        cmocka_unit_test(data_passes_only_on_a_stream),
        cmocka_unit_test(blocks_that_are_known_pass_if_they_are_to),
        cmocka_unit_test(what_is_watched_does_not_pass),
        cmocka_unit_test(ours_wait_for_the_first_frame_whatever_it_is),
        cmocka_unit_test(frames_pass_verbatim_or_are_kept),
        cmocka_unit_test(a_small_frame_is_gathered),
        cmocka_unit_test(a_large_frame_cannot_be_gathered),
        cmocka_unit_test(frames_of_ours_wait_for_the_first_frame),
        cmocka_unit_test(frames_of_ours_wait_for_a_boundary),
        cmocka_unit_test(a_kept_frame_does_not_hold_ours_back),
        cmocka_unit_test(a_header_block_is_not_broken),
        cmocka_unit_test(ours_go_behind_what_passed_in_the_same_feed),
        cmocka_unit_test(many_pieces_take_several_writes),
        cmocka_unit_test(bad_frames),
        cmocka_unit_test(a_callback_ends_the_walk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
