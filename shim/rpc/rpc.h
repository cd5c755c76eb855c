/*
 * gRPC over unix sockets, both roles: nghttp2 sessions on libuv pipes.
 *
 * Unary calls and server streams; deadlines, cancel, percent-encoded status messages (gRPC over
 * HTTP/2), message caps, gzip on receipt. Messages are protobuf-c. Everything runs on one loop and
 * one thread. No callback ever runs inside the call that asked for it. The process must ignore
 * SIGPIPE: libuv writes to sockets whose other end is gone.
 */
#ifndef SHIM_RPC_RPC_H
#define SHIM_RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "shim/rpc/socket_file.h"

/* Largest message either role takes, the kubelet's own limit for CRI. */
#define RPC_MESSAGE_BYTES_MAX (16u * 1024 * 1024)
/* Longest status text kept from, or sent to, a peer; longer ones are cut at a character. */
#define RPC_STATUS_TEXT_BYTES_MAX 1024
/* Most calls that may be open on one channel. */
#define RPC_CALLS_MAX 1024
/* Most bytes of answers that may wait for one client, all its calls together: two of the largest,
 * beyond which one more message is taken. */
#define RPC_QUEUE_BYTES_MAX (2 * (size_t)RPC_MESSAGE_BYTES_MAX)

/* gRPC status codes (gRPC "Status codes and their use in gRPC"). */
enum rpc_code {
    RPC_OK = 0,
    RPC_CANCELLED = 1,
    RPC_UNKNOWN = 2,
    RPC_INVALID_ARGUMENT = 3,
    RPC_DEADLINE_EXCEEDED = 4,
    RPC_NOT_FOUND = 5,
    RPC_ALREADY_EXISTS = 6,
    RPC_PERMISSION_DENIED = 7,
    RPC_RESOURCE_EXHAUSTED = 8,
    RPC_FAILED_PRECONDITION = 9,
    RPC_ABORTED = 10,
    RPC_OUT_OF_RANGE = 11,
    RPC_UNIMPLEMENTED = 12,
    RPC_INTERNAL = 13,
    RPC_UNAVAILABLE = 14,
    RPC_DATA_LOSS = 15,
    RPC_UNAUTHENTICATED = 16,
};

/* "UNAVAILABLE"; "UNKNOWN" for a number that is no code. */
const char *rpc_code_name(int code);

/* How a call ended; the text is borrowed until the callback returns, never NULL, any bytes. */
struct rpc_status {
    int code;
    const char *message;
};

/* ---- client ---- */

struct rpc_channel; /* one connection to one server */
struct rpc_call;    /* one outgoing call */
struct message_budget;

struct rpc_channel_ops {
    /* The connection stands; calls made before it were queued. May be NULL. */
    void (*connected)(struct rpc_channel *channel, void *user);
    /* The connection could not be made or is over; every call has been ended with UNAVAILABLE
     * before. Runs once. The channel is dead: the owner calls rpc_channel_close(). May be NULL. */
    void (*lost)(struct rpc_channel *channel, const char *reason, void *user);
    /* The server has said that it takes no more calls here (GOAWAY), which may come twice. Those
     * that it has go on, and with the last of them the connection ends. May be NULL. */
    void (*goes_away)(struct rpc_channel *channel, void *user);
    /* The server takes no more calls here, and a call that it has not looked at needs another
     * connection of the same owner's to it, one that takes calls, which is borrowed for as long as
     * the call takes. NULL: there is none, and the call ends. May be NULL. */
    struct rpc_channel *(*instead)(struct rpc_channel *channel, void *user);
};

/*
 * Starts to connect to the unix socket `path`. 0 and *out, or a negative uv error (UV_ENAMETOOLONG
 * for a path that does not fit sun_path, UV_EINVAL for an empty one, UV_ENOMEM); a refused
 * connection is told by lost(). `ops` and `user` are borrowed until the channel is closed.
 */
int rpc_channel_open(uv_loop_t *loop, const char *path, const struct rpc_channel_ops *ops,
                     void *user, struct rpc_channel **out) __attribute__((warn_unused_result));

/* The same on the connected unix socket `fd`, for an owner that connects in a way of its own; `fd`
 * is taken, also on failure. connected() does not run. */
int rpc_channel_open_fd(uv_loop_t *loop, int fd, const struct rpc_channel_ops *ops, void *user,
                        struct rpc_channel **out) __attribute__((warn_unused_result));

/*
 * Ends every call without a callback, closes the connection and frees the channel when libuv is
 * done with it; none of its callbacks runs any more. Accepts NULL. May be called from a callback of
 * the channel.
 */
void rpc_channel_close(struct rpc_channel *channel);

/* A server that is silent for that long is asked for a sign of life, and one that gives none for as
 * long again is lost. Call it before connected(). Only of a server of our own: others count
 * PINGs. */
void rpc_channel_set_pings(struct rpc_channel *channel, uint64_t every_ms);

/* What comes on it counts to `budget` (message.h), which is borrowed until the channel is closed,
 * beside what else draws on that; by itself it has 64 MiB of its own. Call it before the first
 * call. */
void rpc_channel_set_budget(struct rpc_channel *channel, struct message_budget *budget);

/* The connection's descriptor, the channel's; a negative uv error: it is not connected. */
int rpc_channel_fd(const struct rpc_channel *channel) __attribute__((warn_unused_result));

/* Whether anything has come on it: a server that does not hang sends its SETTINGS, also where it
 * has no thread for a call. */
bool rpc_channel_is_heard(const struct rpc_channel *channel);

/* Whether a call may be made on it: it is not lost, the server has not said that it takes no more
 * (as far as is known), and fewer than RPC_CALLS_MAX are open. */
bool rpc_channel_takes_calls(const struct rpc_channel *channel);

struct rpc_call_ops {
    /* One message; borrowed until return. Any number for a stream. Once at most for a unary call,
     * which has succeeded only when done() says so: an error may still follow its message. */
    void (*message)(struct rpc_call *call, const ProtobufCMessage *message, void *user);
    /* The call is over; runs exactly once (unless cancelled), after which `call` is gone. A unary
     * call that ended OK without exactly one message ends INTERNAL. */
    void (*done)(struct rpc_call *call, const struct rpc_status *status, void *user);
};

/*
 * Calls `path` with one request, packed before return. `deadline_ms` 0: none; else the call ends
 * DEADLINE_EXCEEDED after it, and the server is told by grpc-timeout. `stream`: the answer is a
 * server stream. May be called before connected(). `path` is borrowed until done() or cancel. A
 * call that the server says it has not looked at (REFUSED_STREAM, GOAWAY) is asked once more,
 * within its deadline; one that was not sent yet has not been asked.
 *
 * done() gets the server's own status, or: UNAVAILABLE, the connection is lost or the server takes
 * no more calls · INTERNAL, a malformed answer · UNKNOWN, an answer without a status or not gRPC's
 * · RESOURCE_EXHAUSTED, a message over RPC_MESSAGE_BYTES_MAX in either direction, one that needs
 * unreasonable memory, or more than RPC_CALLS_MAX calls · the code that gRPC gives an HTTP status
 * or a reset stream. None of these but the first touches the channel's other calls. An answer with
 * a header field over 65,536 bytes (a status text, say), or with headers in more than nine frames,
 * is more than nghttp2 takes, and the connection is lost for it.
 *
 * NULL when out of memory or the channel is lost. `ops`, `user` borrowed until done() or cancel.
 */
struct rpc_call *rpc_channel_call(struct rpc_channel *channel, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, bool stream,
                                  uint64_t deadline_ms, const struct rpc_call_ops *ops, void *user);

/*
 * Goes on with a server stream that a process before this one had on the channel's connection,
 * which was kept open since (fd_store.h): messages that were sent meanwhile follow. It is the first
 * call on a channel of rpc_channel_open_fd(), before its loop runs, and the only one that there may
 * be; `stream_id` is what rpc_call_stream() said of it then, when its first message had come.
 * Nothing is sent. What comes of other calls there is passed over. Who had died inside of a message
 * has left what cannot be read: the connection is lost then, as with any server that breaks the
 * protocol. NULL: it cannot be; the rest as of rpc_channel_call().
 */
struct rpc_call *rpc_channel_resume(struct rpc_channel *channel, int32_t stream_id,
                                    const char *path, const ProtobufCMessage *request,
                                    const ProtobufCMessageDescriptor *response,
                                    const struct rpc_call_ops *ops, void *user);

/* The descriptor of the connection that the call is on, which stays its channel's, and its stream
 * there (RFC 9113 §5.1.1). A negative uv error: it was not sent. */
int rpc_call_stream(const struct rpc_call *call, int32_t *stream_id)
    __attribute__((warn_unused_result));

/* RST_STREAM(CANCEL); no callback follows, the call is gone. Accepts NULL. May be called from any
 * callback, also from the call's own, where it does nothing in done(). */
void rpc_call_cancel(struct rpc_call *call);

/* ---- server ---- */

struct rpc_server;   /* a listening socket and its connections */
struct rpc_incoming; /* one incoming call */

struct rpc_method {
    const char *path;
    const ProtobufCMessageDescriptor *request;
    /* A call came with its one request message, borrowed until return. Must end in
     * rpc_incoming_finish(), now or later. `user` is the server's. */
    void (*handle)(struct rpc_incoming *call, const ProtobufCMessage *request, void *user);
};

/*
 * A server that does not listen yet; its socket is to be at `place` (copied). `methods` borrowed
 * until it is closed. Unknown paths are answered UNIMPLEMENTED, bad requests INTERNAL or
 * RESOURCE_EXHAUSTED. 0 or -ENOMEM.
 */
int rpc_server_new(uv_loop_t *loop, const struct socket_place *place,
                   const struct rpc_method *methods, size_t methods_len, void *user,
                   struct rpc_server **out) __attribute__((warn_unused_result));

/* The same as rpc_channel_set_pings() for all clients that come from now on. */
void rpc_server_set_pings(struct rpc_server *server, uint64_t every_ms);

/* What a server allows its clients, in place of the most that there can be. */
struct rpc_limits {
    size_t connections;   /* at once; for one more the one ends that has been without a call for
                           * longest, a second at least, or with calls that all wait for the client,
                           * ten seconds; it waits in the kernel's backlog for that */
    size_t request_bytes; /* of requests being received on one connection, all together: a call over
                           * that is answered RESOURCE_EXHAUSTED */
    size_t queue_bytes;   /* in place of RPC_QUEUE_BYTES_MAX */
    size_t calls;         /* at once on one connection: some 4 KiB each, whatever comes of them;
                           * further ones wait with the client, or are refused unread */
    /* Only for root and the user of this process: another's first call is answered
     * PERMISSION_DENIED, and its connection is ended. */
    bool private;
};
/* For all clients that come from now on. */
void rpc_server_set_limits(struct rpc_server *server, const struct rpc_limits *limits);
/* Bytes of answers that one client had not taken, at their most. */
size_t rpc_server_queued_max(const struct rpc_server *server);

/*
 * Listens, unless it does so already and the socket's file is still there: for the first time, and
 * again when somebody has removed or replaced the file; call it as often as that may have happened
 * (keeper.h). Who connected before stays connected. 0: nothing was to be done; 1: it listens
 * (anew); or the errors of socket_file_make(): whoever listened before still does, as far as he is
 * reached.
 */
int rpc_server_listen(struct rpc_server *server) __attribute__((warn_unused_result));

/* Goes on with the listening socket `fd`, taken also on failure, which a process before this one
 * made at the server's place: `tag` is what that one's rpc_server_listener() said. 0; -ESTALE:
 * another file stands there, or none; or another negative errno. In either case nothing listens. */
int rpc_server_resume(struct rpc_server *server, int fd, const char *tag)
    __attribute__((warn_unused_result));

/* The descriptor that listens, borrowed until the server is called or closed next, and what
 * rpc_server_resume() is to be told of it (socket_file_tag()). -1: none does. */
int rpc_server_listener(const struct rpc_server *server, char tag[SOCKET_FILE_TAG_BYTES_MAX]);

/* Ends connections and calls (their cancelled() does not run), removes the socket file if it is
 * still its own, frees. Accepts NULL. May be called from any callback; from inside handle() its
 * call is gone, too. */
void rpc_server_close(struct rpc_server *server);

/* Ends the connections and calls as rpc_server_close() does, and goes on listening. */
void rpc_server_disconnect(struct rpc_server *server);

/* Credentials of the process that made the connection (SO_PEERCRED). */
void rpc_incoming_peer(const struct rpc_incoming *call, struct ucred *out);

/* `cancelled` runs once if the client resets the call, its deadline passes or its connection ends
 * before rpc_incoming_finish(); the call is gone then and must not be touched any more. So whoever
 * keeps a call after handle() has returned must ask for it, from inside handle(). */
void rpc_incoming_on_cancel(struct rpc_incoming *call, void (*cancelled)(void *user), void *user);

/* Sends one message, packed before return. 0, -ENOMEM, -EMSGSIZE for one over
 * RPC_MESSAGE_BYTES_MAX, or -ENOBUFS while more than RPC_QUEUE_BYTES_MAX, or what the server's
 * limits say, wait for the client. Bytes queued but not yet taken by the client:
 * rpc_incoming_queued(). */
int rpc_incoming_send(struct rpc_incoming *call, const ProtobufCMessage *message)
    __attribute__((warn_unused_result));
size_t rpc_incoming_queued(const struct rpc_incoming *call);

/* Sends that one message and ends the call OK, or RESOURCE_EXHAUSTED if it could not be sent. The
 * call is gone afterwards. */
void rpc_incoming_answer(struct rpc_incoming *call, const ProtobufCMessage *message);

/* Ends the call with trailers; `message` copied, may be NULL. The call is gone afterwards. */
void rpc_incoming_finish(struct rpc_incoming *call, int code, const char *message);

#endif
