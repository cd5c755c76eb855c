/*
 * A session under test and both its ends by hand (h2_script.h).
 */
#ifndef TESTS_UNIT_WIRE_H
#define TESTS_UNIT_WIRE_H

#include "h2_script.h"
#include "shim/relay/session.h"

#define CLIENT SESSION_CLIENT
#define RUNTIME SESSION_RUNTIME

struct wire {
    struct session *session; /* NULL if there was no memory for it */
    struct h2_writer writers[2];
    struct h2_reader readers[2];
    struct buffer to[2]; /* what an end was sent, and how much of it was looked at */
    size_t read_to[2];
    struct buffer out; /* what the test feeds next */
    bool quiet;        /* memory is failing (alloc_fail.h): nothing is kept to look at */
};

void wire_init(struct wire *wire, bool quiet);
void wire_fini(struct wire *wire);
/* The connection is gone, and its session with it. */
void wire_close(struct wire *wire);
/* Makes the session of that owner, which does not begin. */
void wire_connect(struct wire *wire, struct session_owner owner);
/* The client's preface. */
void wire_greet(struct wire *wire);

/* Feeds `out` as from that end. */
void wire_feed(struct wire *wire, enum session_end from);
/* A whole request with one message; a whole answer; an end with this status and no message. */
void wire_call(struct wire *wire, uint32_t id, const char *method, const void *message, size_t len);
void wire_answer(struct wire *wire, uint32_t id, const char *message);
void wire_fail(struct wire *wire, uint32_t id, const char *status);
void wire_reset(struct wire *wire, enum session_end from, uint32_t id, uint32_t code);

/* What an end was sent since the last look, see h2_transcript(). */
void wire_look(struct wire *wire, enum session_end end, struct buffer *text);

#endif
