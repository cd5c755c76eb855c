/*
 * HTTP/2 by hand, for tests: frames and header blocks to feed, and a transcript of what came out.
 *
 * Writing and reading use nghttp2's HPACK and nothing of shim/relay but its byte buffer. A failed
 * allocation or bytes that do not parse fail the test.
 */
#ifndef TESTS_UNIT_H2_SCRIPT_H
#define TESTS_UNIT_H2_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "shim/relay/buffer.h"

#define H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum { H2_END_STREAM = 1, H2_ACK = 1, H2_END_HEADERS = 4, H2_PADDED = 8, H2_PRIORITY = 32 };

/* A small generator with a printed seed; the same on every machine. */
struct h2_random {
    uint64_t state;
};
uint32_t h2_random(struct h2_random *r, uint32_t below);

/* ---- writing: one encoder per direction; all append to `out` ---- */

struct h2_writer {
    nghttp2_hd_deflater *deflater;
};
void h2_writer_init(struct h2_writer *w);
void h2_writer_fini(struct h2_writer *w);

void h2_put(struct buffer *out, const void *bytes, size_t len);
void h2_frame(struct buffer *out, int type, int flags, uint32_t stream, const void *payload,
              size_t len);
/* `pad` < 0: not padded. */
void h2_data(struct buffer *out, uint32_t stream, const void *data, size_t len, int flags, int pad);
/* `fields`: name, value, ... NULL. `split`: payload bytes per frame, 0: one frame. */
void h2_headers(struct h2_writer *w, struct buffer *out, uint32_t stream, int flags, int pad,
                size_t split, const char *const *fields);
void h2_request(struct h2_writer *w, struct buffer *out, uint32_t stream, const char *method);
void h2_answer_head(struct h2_writer *w, struct buffer *out, uint32_t stream);
void h2_answer_end(struct h2_writer *w, struct buffer *out, uint32_t stream, const char *status);
/* Headers, one message and OK trailers. */
void h2_answer(struct h2_writer *w, struct buffer *out, uint32_t stream, const char *message);
/* `id` < 0: empty. */
void h2_settings(struct buffer *out, int id, uint32_t value);
void h2_settings_ack(struct buffer *out);
void h2_rst(struct buffer *out, uint32_t stream, uint32_t code);
void h2_window(struct buffer *out, uint32_t stream, uint32_t increment);
void h2_goaway(struct buffer *out, uint32_t last, uint32_t code);
/* gRPC's five-byte head and the body. */
void h2_message(struct buffer *out, int flag, const void *body, size_t len);

/* ---- reading ---- */

struct h2_seen {
    int type;
    int flags;
    uint32_t stream;
    const uint8_t *payload; /* without padding and priority; into the reader's bytes */
    size_t len;
    size_t wire_len;
};

struct h2_reader {
    nghttp2_hd_inflater *inflater;
    const uint8_t *bytes;
    size_t len;
    uint32_t table_sizes[16]; /* for the ACKs to come; UINT32_MAX: that SETTINGS named none */
    size_t table_sizes_len;
    struct buffer fields; /* of the last block, "name=value " ... */
};
void h2_reader_init(struct h2_reader *r);
void h2_reader_fini(struct h2_reader *r);
/* The reader's own side announced a table size; it is in force from the ACK it reads. */
void h2_reader_announced(struct h2_reader *r, uint32_t bytes);

/* The next whole frame of the bytes; false: none. Header blocks are decoded into `fields`. */
bool h2_read(struct h2_reader *r, struct h2_seen *out);

/* Adds to `text`, which does not end in NUL. */
void h2_say(struct buffer *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* That is what was said, and it is forgotten. */
void h2_said(struct buffer *text, const char *expected);

/* One line a frame, into `text`, which ends in NUL. `bytes` begin behind the preface. */
void h2_transcript(struct h2_reader *r, const uint8_t *bytes, size_t len, struct buffer *text);
/* Likewise what `to` has behind `*read_to`, which is its end then. */
void h2_look(struct h2_reader *r, const struct buffer *to, size_t *read_to, struct buffer *text);

#endif
