#include "h2_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_BYTES 9
#define FIELDS_MAX 32
#define TEXT_SHOWN_MAX 48

uint32_t h2_random(struct h2_random *r, uint32_t below)
{
    /* splitmix64 */
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return below ? (uint32_t)(z % below) : 0;
}

/* ---- writing ---- */

void h2_writer_init(struct h2_writer *w)
{
    assert_int_equal(nghttp2_hd_deflate_new(&w->deflater, 4096), 0);
}

void h2_writer_fini(struct h2_writer *w)
{
    nghttp2_hd_deflate_del(w->deflater);
}

void h2_put(struct buffer *out, const void *bytes, size_t len)
{
    assert_int_equal(buffer_put(out, bytes, len), 0);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void h2_frame(struct buffer *out, int type, int flags, uint32_t stream, const void *payload,
              size_t len)
{
    uint8_t head[HEAD_BYTES] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len,
                                (uint8_t)type, (uint8_t)flags};

    put_u32(head + 5, stream);
    h2_put(out, head, sizeof head);
    h2_put(out, payload, len);
}

void h2_data(struct buffer *out, uint32_t stream, const void *data, size_t len, int flags, int pad)
{
    struct buffer payload = {0};
    static const uint8_t zeros[256];
    uint8_t pad_byte = (uint8_t)pad;

    if (pad >= 0) {
        h2_put(&payload, &pad_byte, 1);
        flags |= H2_PADDED;
    }
    h2_put(&payload, data, len);
    if (pad > 0)
        h2_put(&payload, zeros, (size_t)pad);
    h2_frame(out, NGHTTP2_DATA, flags, stream, buffer_data(&payload), buffer_len(&payload));
    buffer_fini(&payload);
}

static void put_block(struct h2_writer *w, struct buffer *out, const char *const *fields)
{
    nghttp2_nv nv[FIELDS_MAX];
    size_t n = 0, room;
    uint8_t *block;
    ssize_t len;

    for (; fields[2 * n]; n++) {
        assert_true(n < FIELDS_MAX);
        nv[n] = (nghttp2_nv){.name = (uint8_t *)fields[2 * n],
                             .namelen = strlen(fields[2 * n]),
                             .value = (uint8_t *)fields[2 * n + 1],
                             .valuelen = strlen(fields[2 * n + 1])};
    }
    room = nghttp2_hd_deflate_bound(w->deflater, nv, n);
    block = malloc(room);
    assert_non_null(block);
    len = nghttp2_hd_deflate_hd(w->deflater, block, room, nv, n);
    assert_true(len >= 0);
    h2_put(out, block, (size_t)len);
    free(block);
}

void h2_headers(struct h2_writer *w, struct buffer *out, uint32_t stream, int flags, int pad,
                size_t split, const char *const *fields)
{
    struct buffer block = {0}, payload = {0};
    static const uint8_t zeros[256];
    uint8_t pad_byte = (uint8_t)pad;
    size_t first;

    put_block(w, &block, fields);
    first = split && split < buffer_len(&block) ? split : buffer_len(&block);
    if (pad >= 0)
        h2_put(&payload, &pad_byte, 1);
    if (flags & H2_PRIORITY)
        h2_put(&payload, "\0\0\0\0\x10", 5);
    h2_put(&payload, buffer_data(&block), first);
    if (pad > 0)
        h2_put(&payload, zeros, (size_t)pad);
    flags |= pad >= 0 ? H2_PADDED : 0;
    flags |= first == buffer_len(&block) ? H2_END_HEADERS : 0;
    h2_frame(out, NGHTTP2_HEADERS, flags, stream, buffer_data(&payload), buffer_len(&payload));
    buffer_consume(&block, first);
    while (buffer_len(&block) > 0) {
        size_t n = split < buffer_len(&block) ? split : buffer_len(&block);

        h2_frame(out, NGHTTP2_CONTINUATION, n == buffer_len(&block) ? H2_END_HEADERS : 0, stream,
                 buffer_data(&block), n);
        buffer_consume(&block, n);
    }
    buffer_fini(&block);
    buffer_fini(&payload);
}

void h2_request(struct h2_writer *w, struct buffer *out, uint32_t stream, const char *method)
{
    char path[128];
    const char *const fields[] = {
        ":method", "POST",       ":scheme",      "http",         ":path",
        path,      ":authority", "localhost",    "content-type", "application/grpc",
        "te",      "trailers",   "grpc-timeout", "1500m",        NULL};

    snprintf(path, sizeof path, "/runtime.v1.RuntimeService/%s", method);
    h2_headers(w, out, stream, 0, -1, 0, fields);
}

void h2_answer_head(struct h2_writer *w, struct buffer *out, uint32_t stream)
{
    const char *const fields[] = {":status", "200", "content-type", "application/grpc", NULL};

    h2_headers(w, out, stream, 0, -1, 0, fields);
}

void h2_answer_end(struct h2_writer *w, struct buffer *out, uint32_t stream, const char *status)
{
    const char *const fields[] = {"grpc-status", status, "grpc-message", "", "x-note",
                                  "kept",        NULL};

    h2_headers(w, out, stream, H2_END_STREAM, -1, 0, fields);
}

void h2_answer(struct h2_writer *w, struct buffer *out, uint32_t stream, const char *message)
{
    struct buffer framed = {0};

    h2_message(&framed, 0, message, strlen(message));
    h2_answer_head(w, out, stream);
    h2_data(out, stream, buffer_data(&framed), buffer_len(&framed), 0, -1);
    h2_answer_end(w, out, stream, "0");
    buffer_fini(&framed);
}

void h2_settings(struct buffer *out, int id, uint32_t value)
{
    uint8_t entry[6] = {0, (uint8_t)id};

    put_u32(entry + 2, value);
    h2_frame(out, NGHTTP2_SETTINGS, 0, 0, entry, id < 0 ? 0 : sizeof entry);
}

void h2_settings_ack(struct buffer *out)
{
    h2_frame(out, NGHTTP2_SETTINGS, H2_ACK, 0, NULL, 0);
}

static void put_number(struct buffer *out, int type, uint32_t stream, uint32_t value)
{
    uint8_t payload[4];

    put_u32(payload, value);
    h2_frame(out, type, 0, stream, payload, sizeof payload);
}

void h2_rst(struct buffer *out, uint32_t stream, uint32_t code)
{
    put_number(out, NGHTTP2_RST_STREAM, stream, code);
}

void h2_window(struct buffer *out, uint32_t stream, uint32_t increment)
{
    put_number(out, NGHTTP2_WINDOW_UPDATE, stream, increment);
}

void h2_goaway(struct buffer *out, uint32_t last, uint32_t code)
{
    uint8_t payload[8];

    put_u32(payload, last);
    put_u32(payload + 4, code);
    h2_frame(out, NGHTTP2_GOAWAY, 0, 0, payload, sizeof payload);
}

void h2_message(struct buffer *out, int flag, const void *body, size_t len)
{
    uint8_t head[5] = {(uint8_t)flag};

    put_u32(head + 1, (uint32_t)len);
    h2_put(out, head, sizeof head);
    h2_put(out, body, len);
}

/* ---- reading ---- */

void h2_reader_init(struct h2_reader *r)
{
    *r = (struct h2_reader){0};
    assert_int_equal(nghttp2_hd_inflate_new(&r->inflater), 0);
}

void h2_reader_fini(struct h2_reader *r)
{
    nghttp2_hd_inflate_del(r->inflater);
    buffer_fini(&r->fields);
}

void h2_reader_announced(struct h2_reader *r, uint32_t bytes)
{
    assert_true(r->table_sizes_len < sizeof r->table_sizes / sizeof *r->table_sizes);
    r->table_sizes[r->table_sizes_len++] = bytes;
}

static void take_ack(struct h2_reader *r)
{
    uint32_t bytes = UINT32_MAX;

    if (r->table_sizes_len > 0) {
        bytes = r->table_sizes[0];
        r->table_sizes_len--;
        memmove(r->table_sizes, r->table_sizes + 1, r->table_sizes_len * sizeof bytes);
    }
    if (bytes != UINT32_MAX)
        assert_int_equal(nghttp2_hd_inflate_change_table_size(r->inflater, bytes), 0);
}

static void inflate_block(struct h2_reader *r, const uint8_t *bytes, size_t len, int final)
{
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(r->inflater, &nv, &flags, bytes, len, final);

        if (n < 0)
            fail_msg("a header block does not decode: %s", nghttp2_strerror((int)n));
        bytes += n;
        len -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            h2_put(&r->fields, " ", 1);
            h2_put(&r->fields, nv.name, nv.namelen);
            h2_put(&r->fields, "=", 1);
            h2_put(&r->fields, nv.value, nv.valuelen);
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            nghttp2_hd_inflate_end_headers(r->inflater);
        if (flags & NGHTTP2_HD_INFLATE_FINAL || (len == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT)))
            return;
    }
}

static void strip(struct h2_seen *f)
{
    size_t pad = 0;

    if (f->type != NGHTTP2_DATA && f->type != NGHTTP2_HEADERS)
        return;
    if (f->flags & H2_PADDED) {
        assert_true(f->len > 0);
        pad = f->payload[0];
        f->payload++;
        f->len--;
    }
    assert_true(pad <= f->len);
    f->len -= pad;
    if (f->type == NGHTTP2_HEADERS && f->flags & H2_PRIORITY) {
        assert_true(f->len >= 5);
        f->payload += 5;
        f->len -= 5;
    }
}

bool h2_read(struct h2_reader *r, struct h2_seen *out)
{
    const uint8_t *head = r->bytes;
    size_t len;

    if (r->len < HEAD_BYTES)
        return false;
    len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    if (r->len < HEAD_BYTES + len)
        return false;
    *out = (struct h2_seen){.type = head[3],
                            .flags = head[4],
                            .stream = get_u32(head + 5) & 0x7fffffff,
                            .payload = head + HEAD_BYTES,
                            .len = len,
                            .wire_len = len};
    r->bytes += HEAD_BYTES + len;
    r->len -= HEAD_BYTES + len;
    strip(out);
    if (out->type == NGHTTP2_HEADERS)
        buffer_fini(&r->fields);
    if (out->type == NGHTTP2_HEADERS || out->type == NGHTTP2_CONTINUATION)
        inflate_block(r, out->payload, out->len, out->flags & H2_END_HEADERS ? 1 : 0);
    if (out->type == NGHTTP2_SETTINGS && out->flags & H2_ACK)
        take_ack(r);
    return true;
}

void h2_say(struct buffer *text, const char *format, ...)
{
    char line[512];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof line);
    h2_put(text, line, (size_t)n);
}

void h2_said(struct buffer *text, const char *expected)
{
    h2_put(text, "", 1);
    assert_string_equal((const char *)buffer_data(text), expected);
    buffer_fini(text);
}

static uint32_t sum_of(const uint8_t *bytes, size_t len)
{
    uint32_t sum = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < len; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

static void say_data(struct buffer *text, const struct h2_seen *f)
{
    h2_say(text, "DATA %u %zu", f->stream, f->len);
    if (f->len > 0 && f->len <= TEXT_SHOWN_MAX) {
        h2_say(text, " ");
        for (size_t i = 0; i < f->len; i++)
            h2_say(text, "%c", f->payload[i] >= ' ' && f->payload[i] < 0x7f ? f->payload[i] : '.');
    } else if (f->len > 0) {
        h2_say(text, " #%08x", sum_of(f->payload, f->len));
    }
    h2_say(text, "%s\n", f->flags & H2_END_STREAM ? " END" : "");
}

static void say_settings(struct buffer *text, const struct h2_seen *f)
{
    h2_say(text, "SETTINGS%s", f->flags & H2_ACK ? " ACK" : "");
    for (size_t i = 0; i + 6 <= f->len; i += 6)
        h2_say(text, " %u=%u", (unsigned)f->payload[i + 1], get_u32(f->payload + i + 2));
    h2_say(text, "\n");
}

static void say_frame(struct h2_reader *r, struct buffer *text, const struct h2_seen *f)
{
    switch (f->type) {
    case NGHTTP2_DATA:
        say_data(text, f);
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
        if (f->type == NGHTTP2_HEADERS)
            h2_say(text, "HEADERS %u%s", f->stream, f->flags & H2_END_STREAM ? " END" : "");
        if (f->flags & H2_END_HEADERS) {
            h2_put(text, buffer_data(&r->fields), buffer_len(&r->fields));
            h2_say(text, "\n");
        }
        break;
    case NGHTTP2_SETTINGS:
        say_settings(text, f);
        break;
    case NGHTTP2_RST_STREAM:
        h2_say(text, "RST %u %u\n", f->stream, get_u32(f->payload));
        break;
    case NGHTTP2_WINDOW_UPDATE:
        h2_say(text, "WINDOW %u +%u\n", f->stream, get_u32(f->payload));
        break;
    case NGHTTP2_GOAWAY:
        h2_say(text, "GOAWAY %u %u\n", get_u32(f->payload), get_u32(f->payload + 4));
        break;
    default:
        h2_say(text, "FRAME %d %u %zu\n", f->type, f->stream, f->len);
        break;
    }
}

void h2_transcript(struct h2_reader *r, const uint8_t *bytes, size_t len, struct buffer *text)
{
    struct h2_seen f;

    r->bytes = bytes;
    r->len = len;
    while (h2_read(r, &f))
        say_frame(r, text, &f);
    if (r->len > 0)
        h2_say(text, "and %zu bytes of a frame\n", r->len);
    h2_put(text, "", 1);
}

void h2_look(struct h2_reader *r, const struct buffer *to, size_t *read_to, struct buffer *text)
{
    h2_transcript(r, buffer_data(to) + *read_to, buffer_len(to) - *read_to, text);
    *read_to = buffer_len(to);
}
