/*
 * What the peers know, and what their sending, reading and settling share.
 */
#ifndef TESTS_FUZZ_H2_PEERS_STATE_H
#define TESTS_FUZZ_H2_PEERS_STATE_H

#include <nghttp2/nghttp2.h>

#include "tests/fuzz/h2_peers.h"

#define PEER_MESSAGE_HEAD_BYTES 5
#define PEER_WINDOW_INITIAL 65535
#define PEER_TABLE_INITIAL 4096
#define PEER_FRAME_PAYLOAD_MAX 16384
/* Fewer than the session lets be without an ACK. */
#define PEER_SETTINGS_MAX 64
/* Request bytes of one run, so that a run stays fast. */
#define PEER_BODY_BYTES_MAX (300 * 1024)
/* The grpc-status of every answer of the runtime's. */
#define PEER_STATUS 0

struct peer_settings {
    bool has_table;
    bool has_window;
    uint32_t table;
    uint32_t window;
};

/* One end. */
struct peer {
    nghttp2_hd_deflater *deflater;
    nghttp2_hd_inflater *inflater;
    size_t read;         /* of the run's output to this end */
    struct buffer rest;  /* of a frame that was cut */
    bool heard;          /* has read one */
    bool begun;          /* has sent its first SETTINGS */
    size_t cut;          /* the next frame's; 0: none */
    struct buffer block; /* the header block that comes */
    struct frame_head block_head;
    struct buffer verbatim; /* frames of the other end that must come as they are */
    struct peer_settings unacked[PEER_SETTINGS_MAX];
    size_t unacked_len;
    char path[96]; /* of the last block */
    int status;    /* grpc-status of the last block; -1: none */
};

struct peer_stream {
    uint32_t id;
    enum peer_kind kind;
    /* the client's view */
    size_t message_bytes; /* of the message, inflated */
    struct buffer body;   /* all it will send */
    size_t sent;
    int64_t credit; /* updates read less bytes sent; the initial window comes on top */
    bool ended;
    bool trailers;
    bool reset;
    bool answered; /* END_STREAM read */
    bool closed;   /* RST_STREAM read */
    bool late;     /* DATA was sent behind the runtime's RST_STREAM, which had not been read yet */
    size_t response_read;
    /* the runtime's view */
    bool seen;
    bool request_ended;
    bool cancelled; /* RST_STREAM read */
    bool response_begun;
    bool response_ended;
    bool runtime_reset;
    int64_t granted; /* updates sent less bytes read */
    size_t received;
    struct buffer response;
    /* what the decision made of the request */
    bool refused;
    int code;
    struct buffer rewritten;
    size_t replaced; /* bytes of body that `rewritten` stands for */
};

struct peers {
    struct run run;
    struct peer ends[2];
    struct peer_stream streams[PEERS_STREAMS_MAX];
    size_t streams_len;
    size_t body_bytes;
    int64_t client_window; /* what the client may send */
    int64_t client_initial;
    int64_t client_frame;    /* the largest it may send */
    int64_t runtime_window;  /* what the runtime has room for */
    int64_t runtime_initial; /* acknowledged */
    uint32_t goaway_last;    /* streams above are over */
    uint32_t goaway_read;    /* the last that the client has read of */
    bool wild;
    struct run_decision decision;
    unsigned pings;
    unsigned drains; /* GOAWAYs of the session's to come, unless the runtime said one */
};

/* Abort without memory. */
void peer_put(struct buffer *to, const void *bytes, size_t len);
void peer_put_head(struct buffer *out, size_t len, uint8_t type, uint8_t flags, uint32_t stream);
void peer_put_u32(struct buffer *out, uint32_t value);

/* The contents of every message: that of a request has its stream id for a seed. */
void peer_pattern(uint8_t *bytes, size_t len, uint32_t seed);

/* NULL: none of that id. */
struct peer_stream *peers_stream(struct peers *p, uint32_t id);

/* The runtime owes this stream nothing more, or the client does not look. */
bool peers_over(const struct peers *p, const struct peer_stream *st);

/* The :path of a call. */
const char *peer_path(enum peer_kind kind, uint32_t id);

/* What an end says first (RFC 9113 §3.4), unless it has. */
void peers_begin(struct peers *p, enum session_end end);

/* Feeds what is left of a frame that was cut. */
void peers_send_rest(struct peers *p, enum session_end end);

/* Feeds whole frames, or what peers_cut() leaves of them. */
void peers_feed(struct peers *p, enum session_end end, const struct buffer *frames);

/* How many bytes of DATA the client may send now; negative when a window has shrunk. */
int64_t peers_room(const struct peers *p, const struct peer_stream *st);
bool peer_may_send(const struct peer_stream *st);

/* The next `bytes` of the request, as far as the windows allow; nothing if it may not send. */
void peers_send_body(struct peers *p, struct peer_stream *st, size_t bytes, bool end,
                     unsigned layout);

void peers_send_reset(struct peers *p, enum session_end end, struct peer_stream *st, uint32_t code);

/* The stream, counted round, if the runtime may answer on it; else NULL. */
struct peer_stream *peers_answerable(struct peers *p, size_t stream);
void peers_send_answer_end(struct peers *p, struct peer_stream *st, unsigned layout);

#endif
