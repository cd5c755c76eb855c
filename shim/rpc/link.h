/*
 * One HTTP/2 connection: an nghttp2 session on a libuv pipe. What the client's channel and the
 * server's connections have in common, and the one place that bounds what a peer can make us hold.
 *
 *          link_init            connected             the peer, the session or the pipe is over
 *     NEW ──connect/accept──▶ CONNECTING ──────▶ OPEN ─────────────────▶ ENDED
 *                                  │               │                       │
 *                                  └───────────────┴──── link_close ───────┴──▶ CLOSED ──▶ gone()
 *
 * CONNECTING waits for the pipe, OPEN for bytes, link_wake() and the owner, ENDED for the owner's
 * link_close(), CLOSED for libuv to let go of the handles.
 *
 * The session's callbacks run inside link code; they may call the owner's users, who may call
 * link_close(). So every nghttp2 callback starts with link_usable() and gives
 * NGHTTP2_ERR_CALLBACK_FAILURE when it says no, and again after each call to a user; for those of
 * struct link_ops the link does. All but on_stream_close: nghttp2 before 1.55.1 leaks the request
 * that cannot be sent if that one fails (CVE-2023-35945); the link finds out itself when the
 * session returns.
 */
#ifndef SHIM_RPC_LINK_H
#define SHIM_RPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>
#include <uv.h>

#include "shim/rpc/message.h"
#include "shim/rpc/pulse.h"
#include "shim/rpc/rpc.h"
#include "shim/rpc/sieve.h"

/*
 * Bounds of one connection.
 * Messages being received, all streams together: four of the largest, so that one can be inflated
 * while others come in. One read and one write are in flight at a time. Frames that wait to be
 * written (without DATA, which waits in its stream): a peer that makes us answer and does not read
 * is hung up on. Header block of a stream, names and values and RFC 9113's 32 bytes each.
 */
#define LINK_BUDGET_BYTES (4 * (size_t)RPC_MESSAGE_BYTES_MAX)
#define LINK_IO_BYTES ((size_t)64 * 1024)
#define LINK_FRAMES_MAX 4096
#define LINK_HEADERS_BYTES_MAX ((size_t)64 * 1024)
/* Windows we grant. Bytes are taken as they come, so they bound nothing; they only keep a large
 * device list from waiting for WINDOW_UPDATEs. */
#define LINK_STREAM_WINDOW_BYTES (4 * 1024 * 1024)
#define LINK_WINDOW_BYTES (16 * 1024 * 1024)
/* Streams a peer may have open on us at the most: our own as many as a channel has. */
#define LINK_STREAMS_MAX RPC_CALLS_MAX

#define LINK_REASON_BYTES_MAX 192

enum link_role {
    LINK_CLIENT,
    LINK_SERVER,
};

enum link_state {
    LINK_NEW,
    LINK_CONNECTING,
    LINK_OPEN,
    LINK_ENDED,
    LINK_CLOSED,
};

struct link;

struct link_ops {
    /* The pipe stands. Never for an accepted or adopted one. */
    void (*connected)(struct link *link);
    /* The connection is over; `reason` borrowed. Once, unless closed before; always from the loop,
     * never inside the session. The owner calls link_close() now or later. */
    void (*ended)(struct link *link, const char *reason);
    /* libuv is done with the link: the owner frees the memory around it. Once, after link_close(),
     * never inside the session; inside link_close() only if the link had ended long before. */
    void (*gone)(struct link *link);
    /*
     * nghttp2's callbacks, the link being usable. `stream` is the stream's user data; they are not
     * called for a stream that has none. An int: 0, or NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE, which
     * resets the stream.
     */
    void (*frame_received)(struct link *link, const nghttp2_frame *frame);
    void (*frame_sent)(struct link *link, const nghttp2_frame *frame);
    int (*headers_begin)(struct link *link, const nghttp2_frame *frame);
    int (*stream_header)(void *stream, const uint8_t *name, size_t name_len, const uint8_t *value,
                         size_t len);
    void (*stream_data)(void *stream, const uint8_t *data, size_t len);
    void (*stream_closed)(void *stream, uint32_t error_code);
};

struct link {
    nghttp2_session *session;      /* its user data is the link */
    struct message_budget *budget; /* of messages being received; borrowed, or the link's own */
    enum link_state state;         /* to read only */
    bool heard;                    /* to read only: something has come */
    struct pulse pulse;
    struct sieve sieve; /* of what comes; all of it, unless the owner says which stream */

    /* private */
    const struct link_ops *ops;
    enum link_role role;
    struct message_budget own_budget; /* LINK_BUDGET_BYTES, or less */
    uv_pipe_t pipe;
    uv_idle_t wake;
    uv_connect_t connect;
    uv_write_t write;
    unsigned handles; /* not yet closed */
    bool writing;
    bool broken;
    char reason[LINK_REASON_BYTES_MAX]; /* of the end, while known but not told yet */
    uint8_t in[LINK_IO_BYTES];
    uint8_t out[LINK_IO_BYTES];
};

/*
 * Makes session and handles; SETTINGS are queued: the peer may have `streams` open on us. 0 or a
 * negative uv error, with nothing to clean up. After success only link_close() and then gone() end
 * it. `ops` borrowed.
 */
int link_init(struct link *link, uv_loop_t *loop, enum link_role role, size_t streams,
              const struct link_ops *ops) __attribute__((warn_unused_result));

/* Starts to connect; `path` fits sun_path. connected() or ended() follow. */
void link_connect(struct link *link, const char *path);

/* Works on the connected descriptor `fd`, taken also on failure. connected() does not follow. 0 or
 * a negative uv error; the link wants link_close() either way. */
int link_adopt(struct link *link, int fd) __attribute__((warn_unused_result));

/* Asks for what the session has queued to be sent, from the loop; call it after nghttp2_submit_*.
 * Harmless in any state and inside the session. */
void link_wake(struct link *link);

/* Ends the link from the loop with `reason`: for what leaves the session unusable, e.g. no memory
 * to answer a stream. */
void link_break(struct link *link, const char *reason);

/* No more callbacks but gone(). May be called inside the session. */
void link_close(struct link *link);

uv_loop_t *link_loop(const struct link *link);

/* Whether the session may be used: not ended, not closed. */
bool link_usable(const struct link *link);

/* The connection's descriptor, or a negative uv error. */
int link_fd(const struct link *link) __attribute__((warn_unused_result));

/* Resets a stream. What cannot even be queued breaks the link. */
void link_reset(struct link *link, int32_t stream_id, uint32_t error_code);

#endif
