/*
 * A gRPC client and a runtime that keep to HTTP/2, with a session between them.
 *
 * Each end knows only what it has read. What is read is held against what the other end has sent:
 * header blocks decode, windows are kept, a request arrives as it was sent or as it was to be
 * rewritten, nothing follows the end of a stream, frames nobody has a part in pass in order.
 * Between two such ends a session has no reason ever to fail.
 */
#ifndef TESTS_FUZZ_H2_PEERS_H
#define TESTS_FUZZ_H2_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/frame.h"
#include "tests/fuzz/session_run.h"

#define PEERS_STREAMS_MAX 24

enum peer_kind { PEER_OTHER, PEER_OBSERVED, PEER_CREATE, PEER_LIST };

/* How a request is sent. */
enum peer_style {
    PEER_GZIP = 0x01,       /* compressed, and says so */
    PEER_UNREADABLE = 0x02, /* compressed in a way the shim does not read */
    PEER_TOO_LARGE = 0x04,  /* announces more than it sends, and more than is taken */
    PEER_TAIL = 0x08,       /* bytes behind the message */
    PEER_TIMEOUT = 0x10,
    PEER_CORRUPT = 0x20, /* compressed, but not so that anybody could read it */
};

/* What SETTINGS name. */
enum peer_settings_entry {
    PEER_TABLE = 0x01,         /* the header table's size */
    PEER_WINDOW = 0x02,        /* the initial window of streams */
    PEER_UNKNOWN = 0x04,       /* something nobody knows */
    PEER_TABLE_EMPTIED = 0x08, /* the header table's size twice, 0 before the one given */
    PEER_FRAMES = 0x10,        /* the largest frame: the table's size or the smallest allowed */
};

struct peers;

struct peers *peers_new(void);
void peers_free(struct peers *p);
struct run *peers_run(struct peers *p);

/* How the next intercepted calls are decided. */
void peers_set_decision(struct peers *p, const struct run_decision *decision);

/* The next frame of `end` is cut after `bytes`; the rest goes before that end's next frame. */
void peers_cut(struct peers *p, enum session_end end, size_t bytes);

/* `layout`: of the frames of a header block or of DATA: low bits the pieces, then padding and
 * priority. */
void peers_open(struct peers *p, enum peer_kind kind, unsigned style, size_t message_bytes,
                unsigned layout);
void peers_send_data(struct peers *p, size_t stream, size_t bytes, bool end, unsigned layout);
void peers_send_trailers(struct peers *p, size_t stream, unsigned layout);
void peers_answer(struct peers *p, size_t stream, unsigned layout);
void peers_answer_data(struct peers *p, size_t stream, size_t bytes, bool end, unsigned layout);
void peers_answer_end(struct peers *p, size_t stream, unsigned layout);

void peers_reset(struct peers *p, enum session_end end, size_t stream, uint32_t code);
/* `stream` from PEERS_STREAMS_MAX on: the connection. */
void peers_window(struct peers *p, enum session_end end, size_t stream, uint32_t bytes);
/* SETTINGS of what `which` names. */
void peers_settings(struct peers *p, enum session_end end, unsigned which, uint32_t table_bytes,
                    uint32_t window_bytes);
/* PING, PRIORITY or a frame of an unknown type. */
void peers_extra(struct peers *p, enum session_end end, unsigned type, size_t bytes);
void peers_goaway(struct peers *p);

/* Whether the calls to come of PEER_LIST, or of PEER_OTHER, are looked at. */
void peers_set_class(struct peers *p, enum peer_kind kind, enum cri_method_class class);

/* The session is asked to drain. */
void peers_drain(struct peers *p);

/* Reads up to `frames` of what has come, answers SETTINGS. */
void peers_read(struct peers *p, enum session_end end, size_t frames);

/* Anything at all; the peers' own checks are off from here on. */
void peers_send_raw(struct peers *p, enum session_end end, const uint8_t *bytes, size_t len);

/* Lets everything come to its end and checks that it did. */
void peers_settle(struct peers *p);

#endif
