/*
 * Every maximum of the relay, in one place.
 *
 * Per client connection, worst case: RELAY_HELD_BYTES_MAX of withheld requests, once in the session
 * or once in a write queue, twice RELAY_WRITE_QUEUE_BYTES_HIGH plus one read of queued bytes each
 * way, RELAY_SETTINGS_PENDING_MAX entries each way and RELAY_STREAMS_MAX barriers,
 * RELAY_OBSERVED_BYTES_MAX, and RELAY_RESPONSE_BYTES_MAX for each call that is looked at. Beside
 * it the kernel's buffers, RELAY_SOCKET_BYTES doubled for each end.
 */
#ifndef SHIM_RELAY_LIMITS_H
#define SHIM_RELAY_LIMITS_H

#include <stddef.h>

/* One gRPC message of an intercepted call; the kubelet's own limit for what it receives. */
#define RELAY_MESSAGE_BYTES_MAX (16u * 1024 * 1024)
/* All withheld request bytes of one connection: four of the largest messages. */
#define RELAY_HELD_BYTES_MAX (4 * (RELAY_MESSAGE_BYTES_MAX + 5))
/* Copies of observed requests under way on one connection; what does not fit passes unread. */
#define RELAY_OBSERVED_BYTES_MAX (2 * (size_t)RELAY_MESSAGE_BYTES_MAX)
/* One header block on the wire, frame heads included, so that empty CONTINUATIONs count too. */
#define RELAY_HEADER_BLOCK_BYTES_MAX (1024u * 1024)
/* The same decoded, counted as in RFC 9113 §10.5.1: what grpc-go takes, so that no block that a
 * peer would take fails. */
#define RELAY_HEADER_LIST_BYTES_MAX (16u * 1024 * 1024)
/* Header blocks whose meaning is remembered, for each end (header_memo.h): a gRPC server's two, and
 * the methods that a client calls most; a block in steady state has some ten bytes. */
#define RELAY_HEADER_MEMO_BLOCKS 8
#define RELAY_HEADER_MEMO_BYTES 96
/* The answer of a looked-at call is an id or nothing; a longer one passes but is not read. */
#define RELAY_RESPONSE_BYTES_MAX (64u * 1024)
/* Calls looked at, parked or refused at once on one connection. */
#define RELAY_STREAMS_MAX 4096
/* SETTINGS frames of one end in flight without an ACK, our barriers not counted. */
#define RELAY_SETTINGS_PENDING_MAX 256
/* DATA that we frame ourselves: the smallest SETTINGS_MAX_FRAME_SIZE (RFC 9113 §6.5.2). */
#define RELAY_FRAME_BYTES_MAX 16384
/* Below this connection window the client is credited for bytes that are withheld: half the initial
 * window (RFC 9113 §6.9.2), so that its other calls never run dry. */
#define RELAY_CREDIT_BELOW_BYTES 32768
/* Bytes taken by one read(2); shared by all connections, since a read is used up before the next.
 */
#define RELAY_READ_BYTES 65536
/* What the kernel may hold for an end that reads later (SO_SNDBUF, which it doubles): some five
 * times Debian's default, so that a long answer is not handed on in small steps. */
#define RELAY_SOCKET_BYTES (512 * 1024)
/* A client is not read from while more than this waits for it. What it sends is answered with so
 * much at most: two WINDOW_UPDATEs, 26 bytes, for a padded frame of 10, so that one more read adds
 * three times RELAY_READ_BYTES. */
#define RELAY_ANSWER_QUEUE_BYTES_MAX (256u * 1024)
/* How often a client that has shut down its sending side is looked at. */
#define RELAY_LOOK_MS 1000
/* When a connection that could not be taken is tried again. */
#define RELAY_ACCEPT_RETRY_MS 100
/* How long bytes for an end that does not read are kept after the other end is gone. */
#define RELAY_LINGER_MS 2000

#endif
