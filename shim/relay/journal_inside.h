/*
 * What the files of a journal share: how it lies in the memory. Nobody else includes this.
 */
#ifndef SHIM_RELAY_JOURNAL_INSIDE_H
#define SHIM_RELAY_JOURNAL_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "shim/exact_io.h"
#include "shim/read_count.h"
#include "shim/relay/journal.h"

/* The memory has holes: only what was written is there. */
#define HEAD_BYTES 4096
#define EVENTS_AT HEAD_BYTES
/* Decisions, four of the largest message, and what comes until a state is due. */
#define EVENTS_BYTES_MAX (64u * 1024 * 1024 + JOURNAL_EVENTS_BYTES_MOST)
#define STATES_AT (EVENTS_AT + EVENTS_BYTES_MAX)
/* RELAY_HELD_BYTES_MAX with the rest of RELAY_CONNECTION_BYTES_MAX that is in a state. */
#define STATE_BYTES_MAX (160u * 1024 * 1024)
/* Beyond the memory of every release: what journal_move() has left. */
#define MOVED_AT ((off_t)1 << 40)
#define MEMORY_BYTES ((size_t)STATES_AT + 2 * (size_t)STATE_BYTES_MAX)

/* Before the bytes of each event, which what has passed has no more; the next one begins at a
 * multiple of its alignment. */
struct event_head {
    uint16_t kind; /* enum journal_kind */
    uint16_t done;
    uint32_t len;
    uint32_t told; /* of a decision */
    struct session_passed passed;
    uint64_t put_out[2];
};

_Static_assert(sizeof(struct event_head) == 64, "a line of the processor's cache");

/* The bytes of a decision begin with it; the fragment and the message follow. */
struct decision_head {
    uint32_t what, stream, method, class;
    int64_t code;
    uint64_t fragment_bytes, message_bytes;
};

struct state_head {
    uint64_t put_out[2];
    uint64_t taken[2];
    uint64_t had[2];      /* from each end, so many bytes were read */
    uint64_t session_len; /* 0: the session is new */
    uint64_t unsent_len[2];
};

/* Each of `events` and `taken` is one aligned word, so that a store of it is a commit. */
struct head {
    uint64_t format;     /* this and the next: in every release */
    uint64_t takers;     /* in a row, that have not got through it */
    uint64_t sockets[2]; /* their cookies */
    uint64_t over;
    uint64_t events;   /* events_word(), read_word() */
    uint64_t taken[2]; /* taken_word() */
    struct state_head states[2];
    struct exact_io writes[2];
};

_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head has a page");

struct journal {
    int fd;
    uint8_t *memory;
    uint8_t *events;
    struct head *head;
    struct read_count counts[2];
    uint64_t had[2]; /* as the state in force and its events say */
    uint32_t last;   /* where the last event of bytes is, or will be */
    uint32_t at;     /* of journal_next() */
};

static inline void journal_commit(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Which state is in force, and where the events behind it end. */
static inline uint64_t events_word(unsigned state, uint32_t end)
{
    return (uint64_t)state << 63 | end;
}

/* The same, and behind that end, with room for their head, the bytes that were read last: no event
 * yet, since it depends on what they come to which one they are. */
static inline uint64_t read_word(unsigned state, uint32_t end, enum session_end from, size_t len)
{
    return events_word(state, end) | (uint64_t)from << 62 | (uint64_t)len << 32;
}

static inline size_t read_len(const struct journal *j)
{
    return j->head->events >> 32 & 0x3fffffff;
}

static inline enum session_end read_from(const struct journal *j)
{
    return j->head->events >> 62 & 1 ? SESSION_RUNTIME : SESSION_CLIENT;
}

static inline unsigned state_of(const struct journal *j)
{
    return (unsigned)(j->head->events >> 63);
}

static inline uint32_t end_of(const struct journal *j)
{
    return (uint32_t)j->head->events;
}

/* How many bytes an end has taken, of which 32 bits are enough to count on from the state, and the
 * number of the last write that is counted. */
static inline uint64_t taken_word(uint64_t bytes, uint32_t serial)
{
    return bytes << 32 | serial;
}

static inline uint64_t taken_by(const struct journal *j, enum session_end end)
{
    uint64_t base = j->head->states[state_of(j)].taken[end];

    return base + (uint32_t)((uint32_t)(j->head->taken[end] >> 32) - (uint32_t)base);
}

static inline uint8_t *state_at(const struct journal *j, unsigned state)
{
    return j->memory + STATES_AT + (size_t)state * STATE_BYTES_MAX;
}

static inline struct event_head *event_at(const struct journal *j, uint32_t at)
{
    return (struct event_head *)(void *)(j->events + at);
}

/* From the beginning of one event with so many bytes to that of the next. */
static inline size_t span(size_t len)
{
    return sizeof(struct event_head) + (len + 7) / 8 * 8;
}

static inline bool is_passed(uint32_t kind)
{
    return kind == JOURNAL_CLIENT_PASSED || kind == JOURNAL_RUNTIME_PASSED;
}

static inline size_t span_of(const struct event_head *e)
{
    return span(is_passed(e->kind) ? 0 : e->len);
}

/* The two sockets' cookies. 0 or a negative errno. */
int journal_cookies(const int sockets[2], uint64_t out[2]) __attribute__((warn_unused_result));

/* Takes `fd`, also on failure. NULL: out of memory. */
struct journal *journal_map(int fd);

/* Whether they are the sockets of these cookies, which are put in order. */
bool journal_has_sockets(const uint64_t cookies[2], int sockets[2]);

/* What was moved is a journal of this release now. 0, -ENOMEM or -EPROTO. */
int journal_move_in(struct journal *j, int sockets[2]) __attribute__((warn_unused_result));

/* What a read has left behind the head that is yet to be written. */
void journal_add_bytes(struct journal *j, enum session_end from, size_t n);

/* Makes that an event, if it is none yet. */
void journal_add_read(struct journal *j);

#endif
