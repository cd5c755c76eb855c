/*
 * Scripts for shim/relay/session.h: an exchange is written down once, played whole and cut in
 * several ways, and what comes out of a cut one must equal what comes out of the whole one.
 */
#ifndef TESTS_UNIT_SESSION_SCRIPT_H
#define TESTS_UNIT_SESSION_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "h2_script.h"
#include "shim/relay/session.h"

#define SESSION_CALLS_MAX 128
#define SESSION_PLAYS 8
#define CLIENT SESSION_CLIENT
#define RUNTIME SESSION_RUNTIME

/* What the owner does with an intercepted call at once. */
enum plan { PLAN_HOLD, PLAN_FORWARD, PLAN_FRAGMENT, PLAN_REFUSE };

struct world {
    struct session *session;
    struct h2_writer writers[2];
    struct h2_reader readers[2]; /* of what is written to an end: that end's decoder */
    struct buffer fed[2];
    struct buffer to[2];
    size_t read_to[2];
    struct buffer log;
    size_t log_read;
    struct buffer out; /* what the script feeds next */
    enum plan plan;
    struct session_call *calls[SESSION_CALLS_MAX]; /* told and undecided or passing, in order */
    size_t calls_len;
    size_t live; /* told and not ended or refused */
    unsigned writes;
    int error;
    size_t cut; /* bytes of each feed; 0: all at once */
    struct h2_random random;
    bool random_cuts;
    bool feeding;
    char decided; /* its address marks a call */
    bool quiet;   /* memory is failing: no transcript */
    bool failed;  /* has been told so outside a feed */
};

#define FRAGMENT "<fragment>"

/* ---- plays ---- */

typedef void scenario(struct world *w);

/* From SETTINGS that are exchanged on; n times, the first one whole. */
void play(scenario *script, size_t n);
/* Fails the first allocation, the second ..., until none was left to fail. */
void without_memory(scenario *script);

#define PLAY(name, n)                                                                              \
    static scenario name##_script;                                                                 \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        play(name##_script, n);                                                                    \
    }                                                                                              \
    static void name##_script(struct world *w)

#define SCENARIO(name) PLAY(name, SESSION_PLAYS)
/* Too large to be cut. */
#define ONCE(name) PLAY(name, 1)

/* One by hand; world_fini() fails on a call that has not ended, or has twice. */
void world_init(struct world *w);
void world_fini(struct world *w);
/* Preface and SETTINGS both ways, acknowledged. */
void greet(struct world *w);

/* ---- words: what is fed ---- */

/* Feeds what the script has put into `out`; feed_bad() expects that it ends the session so. */
void feed(struct world *w, enum session_end from);
void feed_bad(struct world *w, enum session_end from, const char *text);
int feed_bytes(struct world *w, enum session_end from, const uint8_t *bytes, size_t len);

/* Into `out`: a request's HEADERS, a framed message, DATA. */
void request(struct world *w, uint32_t stream, const char *method);
void request_in(struct world *w, uint32_t stream, const char *method, const char *encoding);
void message(struct world *w, uint32_t stream, const char *text, int flags);
void data(struct world *w, uint32_t stream, const void *bytes, size_t len, int flags);
/* `len` zeros in frames of 16384. */
void fill(struct world *w, uint32_t stream, size_t len, int flags);
/* A framed message, packed. */
void gzip(struct buffer *out, const void *bytes, size_t len);

/* Fed at once: a whole request, a whole answer, an ACK. */
void call(struct world *w, uint32_t stream, const char *method, const char *text);
void zip_call(struct world *w, uint32_t stream, const char *method, const char *encoding,
              const struct buffer *framed);
void answer(struct world *w, uint32_t stream, const char *text);
void ack(struct world *w, enum session_end from);

/* ---- words: what the owner says ---- */

void forward(struct world *w, struct session_call *call, const char *fragment);
void forward_instead(struct world *w, struct session_call *call, const char *fragment,
                     const char *bytes, size_t len);
void refuse(struct world *w, struct session_call *call, const char *message);

/* ---- words: what is expected ---- */

/* What an end has been sent since the last look, what the owner was told; both as text. */
void saw(struct world *w, enum session_end end, const char *expected);
void told(struct world *w, const char *expected);
/* Looks at neither. */
void move_on(struct world *w);
void calls_are(const struct world *w, size_t n);
void same(const struct buffer *a, const struct buffer *b);
/* What the client believes it may send on the connection. */
int64_t client_window(const struct world *w);

#define HEAD(id)                                                                                   \
    "HEADERS " #id " :method=POST :scheme=http "                                                   \
    ":path=/runtime.v1.RuntimeService/CreateContainer :authority=localhost "                       \
    "content-type=application/grpc te=trailers grpc-timeout=1500m\n"
#define ANSWER_HEAD(id) "HEADERS " #id " :status=200 content-type=application/grpc\n"
#define ANSWER_END(id) "HEADERS " #id " END grpc-status=0 grpc-message= x-note=kept\n"
#define REFUSAL(id, text)                                                                          \
    "HEADERS " #id " END :status=200 content-type=application/grpc grpc-status=14 "                \
    "grpc-message=" text "\n"
#define CREATE "CreateContainer"
#define LIST "ListContainers"

#endif
