/*
 * A session under observation: what is fed and decided is written down, what comes out is checked
 * and kept, and in the end all of it is fed again in other cuts. With FUZZ_TRACE in the environment
 * every frame and callback is printed.
 */
#ifndef TESTS_FUZZ_SESSION_RUN_H
#define TESTS_FUZZ_SESSION_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/buffer.h"
#include "shim/relay/session.h"

enum run_verdict { RUN_LATER, RUN_FORWARD, RUN_REFUSE };

struct run_decision {
    enum run_verdict verdict;
    size_t fragment_bytes; /* 0: forward without a fragment */
    bool instead;          /* forward with another message */
    size_t message_bytes;  /* of that */
    int code;              /* of a refusal */
};

#define RUN_FRAGMENT_BYTES_MAX 70000
/* More than the largest that a client may send. */
#define RUN_MESSAGE_BYTES_MAX 150000

struct run_hooks {
    /* An intercepted call waits; RUN_LATER: for run_decide(). */
    struct run_decision (*decide)(void *user);
    /* A decision is about to be carried out; `call` is still whole. */
    void (*decided)(void *user, const struct session_call *call, uint32_t stream_id,
                    const struct run_decision *decision);
};

/* The walk over frames on one wire. */
struct run_walk {
    const char *name;
    size_t preface; /* bytes of it to come */
    uint8_t head[9];
    size_t head_len;
    uint32_t left; /* payload bytes to come */
    uint32_t block_stream;
    bool in_block;
};

struct run_call {
    struct session_call *call; /* NULL: gone */
    uint32_t stream_id;
    bool intercepted;
    bool waits; /* for a decision */
    bool answered;
    struct run_decision at_once; /* what its request() was answered with */
};

struct run {
    const struct run_hooks *hooks;
    void *user;
    struct session *session;
    struct buffer out[2]; /* all that was written to each end */
    struct buffer in[2];  /* all that was fed from each end */
    struct run_walk out_walk[2];
    struct run_walk in_walk[2];
    struct run_call *calls;
    size_t calls_len;
    struct buffer trace;    /* of callbacks, as text */
    struct buffer events;   /* what was fed and decided, in order */
    const struct run *like; /* the first reading, in the second */
    bool drained;
    int error;
};

/* RUN_FRAGMENT_BYTES_MAX bytes, of which every fragment is the beginning. */
const uint8_t *run_fragment(void);
/* The same, of RUN_MESSAGE_BYTES_MAX bytes, for messages. */
const uint8_t *run_message(void);

/* `hooks` and `user` are borrowed. */
void run_init(struct run *run, const struct run_hooks *hooks, void *user);
void run_fini(struct run *run);

/* Nothing happens after an error. */
void run_feed(struct run *run, enum session_end from, const uint8_t *bytes, size_t len);

/* Decides the `index`th of the calls that wait, counted round; false: none waits. */
bool run_decide(struct run *run, size_t index, const struct run_decision *decision);

/* session_drain() */
bool run_drain(struct run *run);

/* session_set_class() */
void run_set_class(struct run *run, enum cri_method method, enum cri_method_class class);

/* The end of the first reading: checks what can be said of any input, and reads again in the cuts
 * that `seed` gives (0: byte by byte). The session is gone afterwards. */
void run_finish(struct run *run, unsigned seed);

#endif
