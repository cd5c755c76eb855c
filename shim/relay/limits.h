/*
 * Every maximum of the relay, in one place, and what they come to at the end.
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
/* What compressed requests of one connection take inflated, while they are looked at or held: the
 * largest one, packed and inflated. */
#define RELAY_INFLATED_BYTES_MAX (2 * ((size_t)RELAY_MESSAGE_BYTES_MAX + 1))
/* What reading one message may take, decoded: a request of 1 MiB at its worst (message_unpack()),
 * and 16 MiB of the usual texts twice over. Only one at a time is. */
#define RELAY_DECODED_BYTES_MAX (64 * (size_t)1024 * 1024)
/* What who is who in a request's user namespace may take, decoded: as many ids as the kernel takes,
 * 340 of each kind, some fifteen times over. */
#define RELAY_USERS_BYTES_MAX ((size_t)1024 * 1024)
/* Of the names and ids that an observed call is known by, all together: a pod's uid, namespace and
 * name, or an id. Each has at most 253 characters; containerd takes 4096 bytes of a label. The
 * device manager has the same bound for a create's (DEMAND_NAMES_BYTES_MAX). */
#define RELAY_NAMES_BYTES_MAX 4096
/* Of what a pod tolerates, which is known with an observed call as well: what the device manager
 * reads of it (TOLERATIONS_BYTES_MAX). */
#define RELAY_TOLERATIONS_BYTES_MAX 8192
/* Names of CDI devices in one request that are looked at; of more each passes as it is. A claim has
 * 32 devices at most, with some names each, and a container some claims. */
#define RELAY_CDI_NAMES_MAX 4096
/* A header block decoded, counted as in RFC 9113 §10.5.1: what grpc-go takes, so that no block that
 * a peer would take fails. */
#define RELAY_HEADER_LIST_BYTES_MAX (16u * 1024 * 1024)
/* The same on the wire, where an error's text may be nearly all of it. No block is held: it passes
 * as it comes. */
#define RELAY_HEADER_BLOCK_BYTES_MAX (RELAY_HEADER_LIST_BYTES_MAX + 2u * 1024 * 1024)
/* What each of its frames counts beside the payload: sixteen heads, so that empty CONTINUATIONs are
 * not many. */
#define RELAY_HEADER_FRAME_BYTES (16 * 9)
/* Of the text of a gRPC error, a copy: the names of CDI devices that a runtime cannot resolve stand
 * in it, 32 of a claim at most, of some 200 bytes. */
#define RELAY_STATUS_TEXT_BYTES_MAX (16u * 1024)
/* A header table that has grown beyond this is not followed: a client's connection is closed, of a
 * runtime's answers the codes are not seen any more. gRPC's own have 4 KiB. */
#define RELAY_HEADER_TABLE_BYTES_MAX (1024u * 1024)
/* Header blocks whose meaning is remembered, for each end (header_memo.h): a gRPC server's two, and
 * the methods that a client calls most; a block in steady state has some ten bytes. */
#define RELAY_HEADER_MEMO_BLOCKS 8
#define RELAY_HEADER_MEMO_BYTES 96
/* The answer of a looked-at call is an id or nothing; a longer one passes but is not read. */
#define RELAY_RESPONSE_BYTES_MAX (64u * 1024)
/* Copies of answers under way on one connection; what does not fit passes unread. */
#define RELAY_RESPONSES_BYTES_MAX (64 * (size_t)RELAY_RESPONSE_BYTES_MAX)
/* Calls looked at, parked or refused at once on one connection; one more passes unread, if it is to
 * be observed only. */
#define RELAY_STREAMS_MAX 4096
/* SETTINGS frames of one end in flight without an ACK, our barriers not counted. */
#define RELAY_SETTINGS_PENDING_MAX 256
/* Buffers from this size on are mapped, and so given back at once. */
#define RELAY_MAPPED_BYTES (128 * 1024)
/* DATA that we frame ourselves: the smallest SETTINGS_MAX_FRAME_SIZE (RFC 9113 §6.5.2). */
#define RELAY_FRAME_BYTES_MAX 16384
/* Below this connection window the client is credited for bytes that are withheld: half the initial
 * window (RFC 9113 §6.9.2), so that its other calls never run dry. */
#define RELAY_CREDIT_BELOW_BYTES 32768
/* Bytes taken by one read(2); shared by all connections, since a read is used up before the
 * next. */
#define RELAY_READ_BYTES 65536
/* What the kernel may hold for an end that reads later (SO_SNDBUF, which it doubles): some five
 * times Debian's default, so that a long answer is not handed on in small steps. */
#define RELAY_SOCKET_BYTES (512 * 1024)
/* A client is not read from while more than this waits for it. What it sends is answered with so
 * much at most: two WINDOW_UPDATEs, 26 bytes, for a padded frame of 10, so that one more read adds
 * three times RELAY_READ_BYTES. */
#define RELAY_ANSWER_QUEUE_BYTES_MAX (256u * 1024)
/* How often a client is looked at that has shut down its sending side, or of which nothing is read
 * while the runtime takes nothing. */
#define RELAY_LOOK_MS 1000
/* How long bytes for an end that does not read are kept after the other end is gone. */
#define RELAY_LINGER_MS 2000

/* How long a daemon that is told to stop waits for the rest of header blocks, which are written in
 * one piece mostly; nobody is served meanwhile. */
#define RELAY_BLOCK_MS 500

/*
 * What one client connection may make the relay hold, with its connection to the runtime. Held
 * requests are in the session or on their way to a runtime that does not read. What waits for the
 * client is what its own frames cause and, like what waits for the runtime, a read. An entry of the
 * tables is a stream with its call, its names and its two SETTINGS.
 *
 * Buffers double as they grow; of the large ones only what is filled is in memory (they are mapped,
 * see relay_start()), of those under RELAY_MAPPED_BYTES as much again may be room.
 *
 * The kernel's buffers come beside it: RELAY_SOCKET_BYTES doubled for each end. So does the journal
 * of a connection that outlives the process (journal.h): what is held is in its states, twice at
 * most, and what has come and was decided since the last one.
 */
#define RELAY_ENTRY_BYTES (1024 + RELAY_NAMES_BYTES_MAX + RELAY_TOLERATIONS_BYTES_MAX)
#define RELAY_WAITING_BYTES_MAX (2 * RELAY_ANSWER_QUEUE_BYTES_MAX + 8 * RELAY_READ_BYTES)
#define RELAY_CONNECTION_BYTES_MAX                                                                 \
    (RELAY_HELD_BYTES_MAX + RELAY_INFLATED_BYTES_MAX + RELAY_OBSERVED_BYTES_MAX +                  \
     RELAY_RESPONSES_BYTES_MAX + RELAY_WAITING_BYTES_MAX + 2 * RELAY_HEADER_TABLE_BYTES_MAX +      \
     RELAY_STREAMS_MAX * RELAY_ENTRY_BYTES)
/*
 * What all connections share while one call is worked at: the message decoded with the lists made
 * of it, who is who in it, and three copies of the largest message, on its way from the one that
 * was held over the changed one to the frames it goes out in; or before that, from one that
 * protobuf-c does not read to what is known of it, with a message and another one in it on their
 * way there (wire.h).
 */
#define RELAY_WORK_BYTES_MAX                                                                       \
    (RELAY_DECODED_BYTES_MAX + RELAY_DECODED_BYTES_MAX / 2 + RELAY_USERS_BYTES_MAX +               \
     3 * (size_t)RELAY_MESSAGE_BYTES_MAX)

#endif
