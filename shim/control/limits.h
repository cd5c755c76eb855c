/*
 * What a client of the control socket can make the daemon hold.
 *
 * Sixteen people and scripts at once, each with 64 KiB of requests that come in, and an answer
 * refused while more than 512 KiB wait for it: with one answer more for each, of 300 KiB at most,
 * what a connection takes by itself (some 130 KiB, LINK_IO_BYTES twice) and 64 calls of 4 KiB, 16 *
 * (64 + 512 + 300 + 130 + 256) KiB, below 20 MiB in the worst case. Only root gets so far.
 */
#ifndef SHIM_CONTROL_LIMITS_H
#define SHIM_CONTROL_LIMITS_H

#define CONTROL_CONNECTIONS_MAX 16
#define CONTROL_REQUEST_BYTES_MAX (64u * 1024)
#define CONTROL_QUEUE_BYTES_MAX (512u * 1024)
/* More than CONTROL_FOLLOWERS_MAX: who has that many on one connection is told so. */
#define CONTROL_CALLS_MAX 64
/* Said of a request that cannot be kept: protobuf-c reads a field of number 0 if its tag has two
 * bytes, and packs one that it does not read again. */
#define CONTROL_UNREADABLE "the request has a field of number 0"
/* A client that is silent is asked for a sign of life; rpc_server_set_pings(). */
#define CONTROL_PINGS_MS 5000
/* Containers of one answer, and ids of one resource of theirs: with texts of 512 bytes each that is
 * some 200 KiB where every container waits for one resource. No id is added once those of the
 * answer have CONTROL_PAGE_BYTES_MAX. */
#define CONTROL_WHY_CONTAINERS_MAX 100
#define CONTROL_WHY_IDS_MAX 64
/* Claims of one answer: with two sentences, names of 1 KiB and as many requests as ids above they
 * have 4 KiB each. */
#define CONTROL_WHY_CLAIMS_MAX 50
/* Pods of one answer that are ended: as many. */
#define CONTROL_WHY_ENDINGS_MAX 50
/* A row of the checkpoint that is exported waits until less than this is queued for its client. */
#define CONTROL_EXPORT_QUEUE_BYTES (64u * 1024)
#define CONTROL_EXPORT_LOOK_MS 10

/* Streams of events, of all clients; each has so much waiting for it that it does not read, and all
 * else stays in the ring. How often one that lags is looked at. */
#define CONTROL_FOLLOWERS_MAX 32
#define CONTROL_FOLLOWER_QUEUE_BYTES (32u * 1024)
#define CONTROL_FOLLOWER_LOOK_MS 50

/* Rows of one page of a list, and what their texts take, with CONTROL_ROW_BYTES for each: a page is
 * made in some ms at the most. One row is in it, however long it is. */
#define CONTROL_PAGE_ROWS_MAX 1000
#define CONTROL_PAGE_BYTES_MAX (200u * 1024)
/* What is counted for a row, besides its texts: its numbers on the wire, and their tags. */
#define CONTROL_ROW_BYTES 64
/* Resources of a page: of each all allocations are looked at. And devices that are counted for it:
 * each takes some microseconds. */
#define CONTROL_PAGE_RESOURCES_MAX 50
#define CONTROL_PAGE_COUNTED_MAX 2000
/* Of Status: the pools that it tells of, counted likewise. What else is in it has some 150 KiB at
 * most: STATUS_PLANNED_MAX names of pods, 80 KiB, and each setting with its default, 50 KiB. */
#define CONTROL_POOLS_BYTES_MAX (128u * 1024)
/* Of one id of a device; of a longer one its beginning is told (told_id.h). Those that there are
 * have some 40 bytes. */
#define CONTROL_ID_BYTES_MAX 1024
/* Who has one device; containers of one pod: the first of them. */
#define CONTROL_HOLDERS_MAX 64
#define CONTROL_POD_CONTAINERS_MAX 256

#endif
