/*
 * The server's end of an HTTP/2 connection on a kept socket (kept_socket.h): what one process knows
 * of it, so that the next one goes on in the middle of it. Bytes in, bytes out, no I/O and no
 * calls.
 *
 * A stream is a gRPC call of ours (gRPC over HTTP/2):
 *
 *     REQUEST ──its end──▶ ASKED ──▶ ANSWERING ──▶ FINISHED ──all is put──▶ (none)
 *        │                   └───────────────────────▲
 *        └── no request of ours ─────────────────────┘
 *
 * REQUEST waits for the client, ASKED for who answers, ANSWERING for more messages, FINISHED for
 * the windows. From each of them the client may end it.
 *
 * Header tables (RFC 7541): we write fields that change none, and announce a table of no bytes.
 * Once that is acknowledged each block can be read by itself; before, a connection cannot be gone
 * on with by another process.
 */
#ifndef SHIM_BRIDGE_H2_STATE_H
#define SHIM_BRIDGE_H2_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/bridge/kept_socket.h"
#include "shim/bridge/request_block.h"
#include "shim/rpc/rpc.h"

/* What is below may have more fields and fewer in another release, and larger ones (kept_layout.h):
 * that is the same format. Another number is for what goes on with them in no way; connections end
 * then, and the kubelet is registered with anew. */
#define H2_FORMAT 2

/* Calls at once: of a resource the kubelet has two or three open, of a DRA driver one for each pod
 * that comes or goes, of which there are 110 by default, all of them behind a reboot, and the
 * stream of its health. */
#define H2_STREAMS_MAX 128
/* What a client may put into one frame, HTTP/2's own smallest limit; and into a header block. */
#define H2_FRAME_BYTES_MAX 16384
#define H2_FRAME_HEAD_BYTES 9
#define H2_BLOCK_BYTES_MAX 16384
#define H2_TEXT_BYTES_MAX 128
#define H2_NOTE_BYTES_MAX 64

/* A message of a stream, with gRPC's head: each stream has two places. */
#define H2_MESSAGE_BYTES_MAX ((size_t)RPC_MESSAGE_BYTES_MAX + 5)
#define H2_AREAS (2 * H2_STREAMS_MAX)

enum h2_phase {
    H2_NONE,
    H2_REQUEST,
    H2_ASKED,
    H2_ANSWERING,
    H2_FINISHED,
};

/* All zero: none. */
struct h2_stream {
    uint32_t id;
    uint8_t phase;    /* enum h2_phase */
    uint8_t method;   /* of the table; borrowed from the first to the last byte */
    uint8_t encoding; /* enum message_encoding, of the request */
    uint8_t place;    /* of the message that is sent, 0 or 1; the request is in 0 */
    uint8_t code;     /* FINISHED: gRPC's */
    bool ended;       /* by the client: no more of the request comes */
    bool headed;      /* the answer's headers are put */
    uint32_t request_bytes;
    uint32_t received; /* and not credited */
    uint32_t message_bytes, message_put;
    int64_t window; /* the client's */
};

/* Of a stream, apart from it: where there is none they say nothing, and where there has never been
 * any they take no memory. */
struct h2_words {
    char text[H2_TEXT_BYTES_MAX];    /* FINISHED: gRPC's */
    uint8_t note[H2_NOTE_BYTES_MAX]; /* the answerer's own */
};

struct h2_state {
    uint8_t preface;       /* so many bytes of it have come */
    bool acked;            /* our SETTINGS */
    bool over;             /* a GOAWAY of ours is the last frame */
    bool block_ends;       /* its stream, by the client */
    uint32_t block_stream; /* of a header block whose pieces come; 0: none */
    uint32_t block_bytes;  /* of that, in front of `held` */
    uint32_t frame_bytes;  /* of a frame that has not come as a whole, behind them */
    uint32_t last_id;      /* the client's highest */
    uint32_t received;     /* of the connection, and not credited */
    int64_t window;        /* the client's, of the connection */
    int64_t initial;       /* the client's, of new streams */
    struct h2_stream streams[H2_STREAMS_MAX];
    struct h2_words words[H2_STREAMS_MAX]; /* of the stream in that place */
    uint8_t held[H2_BLOCK_BYTES_MAX + H2_FRAME_HEAD_BYTES + H2_FRAME_BYTES_MAX];
};

/* What a kept socket is to be made with. */
extern const struct kept_state H2_KEPT;

/* What a process has besides. */
struct h2_reader {
    nghttp2_hd_inflater *early; /* until the acknowledgement; NULL afterwards */
    const char *const *paths;   /* of the methods */
    size_t paths_len;
    bool kept; /* another process goes on with the connection if this one ends */
};

/* 0 or -ENOMEM. */
int h2_reader_init(struct h2_reader *reader, const char *const *paths, size_t paths_len)
    __attribute__((warn_unused_result));
void h2_reader_fini(struct h2_reader *reader);

/* There is no memory for what has come, or its answer: the process ends, and the next one goes on
 * with it, while the client, to whom an error is final, waits. Returns only where none would: what
 * is not kept, and the first moments of a connection, whose header blocks depend on each other. */
void h2_reader_without_memory(const struct h2_reader *reader);

/* Of a new connection: our SETTINGS. */
void h2_begin(struct kept_socket *kept);

/* For kept_socket_read(), with a struct h2_reader. Whatever cannot be understood ends the
 * connection: `over`. */
void h2_eat(struct kept_socket *kept, void *state, const uint8_t *bytes, size_t len, void *reader);

/* Puts as much of the answers as room and windows allow, and credits what has come; whether that
 * was anything. */
bool h2_pump(struct kept_socket *kept);

/* Whether there is room for all that h2_eat() may put in answer to one read. */
bool h2_has_room(const struct kept_socket *kept);

/* Whether another process can go on with it. */
bool h2_can_go_on(const struct kept_socket *kept, size_t methods);

/* Within a change: the call ends so once all of its message is put. `text` is copied, and cut. */
void h2_stream_finish(struct h2_state *state, struct h2_stream *stream, int code, const char *text);

/* ---- a stream's answer, each one commit ---- */

/* Where the next message of the stream goes, H2_MESSAGE_BYTES_MAX; NULL: no memory. */
uint8_t *h2_place(struct kept_socket *kept, size_t i);
/* It is there, with gRPC's head. The one before is put as a whole. `finishes`: it is the last, and
 * the call succeeds. */
void h2_answer(struct kept_socket *kept, size_t i, size_t bytes, bool finishes);
void h2_finish(struct kept_socket *kept, size_t i, int code, const char *text);
/* H2_NOTE_BYTES_MAX. */
void h2_note(struct kept_socket *kept, size_t i, const void *note);

#endif
