/*
 * What a relayed connection's next process goes on from, in shared memory that outlives this one:
 * the session's state at some moment (session_freeze()), and all that has come since, in order, as
 * events: bytes of either end, the session's beginning, decisions (session_decision). A session
 * that is given the same again writes the same again, of which the journal knows how much each end
 * has taken. So there is no moment at which this process must not be killed.
 *
 * An event is in the journal before it takes effect: bytes are read into it, and the socket itself
 * says how many were (read_count.h); of writes the memory says so (exact_io.h). Bytes that went on
 * without a look, and that the other end has taken, are no event any more: what they came to
 * (session_passed()) takes their place. When JOURNAL_EVENTS_BYTES of events have come, or as many
 * as a larger state will have, the next state does.
 *
 * The memory is of one release. A process that ends as it should leaves something plainer in its
 * place (journal_move()): a state behind which nothing has come, that other releases read, too.
 *
 * What kills whoever makes the session again from it does so each time, also when it was the bytes
 * of an event that killed the first: JOURNAL_TAKERS_MAX of them in a row, and it is used no more.
 */
#ifndef SHIM_RELAY_JOURNAL_H
#define SHIM_RELAY_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "shim/relay/buffer.h"
#include "shim/relay/session.h"

/* Events after which a state is due: few enough that what is read always comes to memory that is
 * still in the processor's cache; a state costs less than that saves. Of a larger state it is as
 * many as that will have, up to the second number, so that what is held while more comes is not
 * written again and again. */
#define JOURNAL_EVENTS_BYTES (32 * 1024)
#define JOURNAL_EVENTS_BYTES_MOST (16 * 1024 * 1024)
#define JOURNAL_TAKERS_MAX 3
/* Whoever changes what lies in the memory, or what is fed to a session and how, changes this. */
#define JOURNAL_FORMAT "SHJRNL05"
/* Of what journal_move() leaves; it grows without another name, as a section does (frozen.h). */
#define JOURNAL_MOVED_FORMAT "SHMOVE01"

struct journal;

/* For a connection of these two unix sockets, which are borrowed and of which nothing was read yet.
 * NULL: out of memory or descriptors. */
struct journal *journal_new(const int sockets[2]);

/*
 * Takes over the journal in `memory`, a descriptor that is taken, also on failure. 0 and *out, and
 * the sockets, given in either order, in that of enum session_end; -EPROTO: another format and not
 * moved, damaged, of other sockets, or one that nobody got through (journal_settled()); -ENOMEM.
 */
int journal_open(int memory, int sockets[2], struct journal **out)
    __attribute__((warn_unused_result));

/* All that it says has been gone through. */
void journal_settled(struct journal *j);

/* Unmaps it; the memory is there as long as another descriptor of it is. Accepts NULL. */
void journal_free(struct journal *j);

/* Of its memory, borrowed; for the service manager. */
int journal_fd(const struct journal *j);

/* ---- as it goes ---- */

/*
 * Reads from an end's socket into the next event, up to RELAY_READ_BYTES: as recv(2) that does not
 * block, or a negative errno. *bytes is borrowed until the next call of any of these functions but
 * journal_done() and journal_write(). -ENOBUFS: there is no room, see journal_is_over().
 */
ssize_t journal_read(struct journal *j, enum session_end from, int fd, const uint8_t **bytes)
    __attribute__((warn_unused_result));

/* The last bytes have taken effect: so much has been put out for each end so far. `passed`: what
 * they came to, or NULL. */
void journal_done(struct journal *j, const uint64_t put_out[2],
                  const struct session_passed *passed);

/* The session is about to be begun; or a decision is about to take effect (session_ops.decided). */
void journal_begin(struct journal *j);
void journal_decide(struct journal *j, uint32_t told, const struct session_decision *decision);

/* Writes to an end's socket: as sendmsg(2) that does not block, or a negative errno. */
ssize_t journal_write(struct journal *j, enum session_end to, int fd, const struct iovec *pieces,
                      int n) __attribute__((warn_unused_result));

/* Whether a state is due that will have some `state_bytes`. */
bool journal_is_due(const struct journal *j, size_t state_bytes);

/* The state between two events, in the place of all that is in it: what session_freeze() says, and
 * for each end what it has not yet taken of what was put out. */
void journal_state(struct journal *j, const struct buffer *session, const struct buffer unsent[2],
                   const uint64_t put_out[2]);

/* The same, for a process of any release; nothing else may follow but journal_free(). When there is
 * no memory for that the journal stays as it is, for one of this release. */
void journal_move(struct journal *j, const struct buffer *session, const struct buffer unsent[2],
                  const uint64_t put_out[2]);

/* It has had no room for an event, and is of no use any more. */
bool journal_is_over(const struct journal *j);

/* ---- for who takes it over ---- */

/* The state. `session`, borrowed, is NULL: the session is new. The unsent bytes are copied; those
 * that an end has taken since are gone from it. 0, -ENOMEM or -EPROTO. */
struct journal_start {
    const uint8_t *session;
    size_t session_len;
    struct buffer unsent[2];
    uint64_t put_out[2];
    uint64_t taken[2]; /* of what was or will be put out */
};
int journal_start(struct journal *j, struct journal_start *out) __attribute__((warn_unused_result));

enum journal_kind {
    JOURNAL_NOTHING,
    JOURNAL_CLIENT,
    JOURNAL_RUNTIME,
    JOURNAL_BEGIN,
    JOURNAL_DECISION,
    JOURNAL_CLIENT_PASSED,
    JOURNAL_RUNTIME_PASSED
};

struct journal_event {
    enum journal_kind kind; /* JOURNAL_NOTHING: there is no more */
    const uint8_t *bytes;   /* of an end; borrowed */
    size_t len;
    struct session_passed passed; /* in the place of `len` bytes, which both ends have had */
    bool done;                    /* so much had been put out afterwards: */
    uint64_t put_out[2];
    uint32_t told; /* of a decision, like the next */
    struct session_decision decision;
};

/* The next event, or with `look` only a look at it. 0 or -EPROTO. */
int journal_next(struct journal *j, bool look, struct journal_event *out)
    __attribute__((warn_unused_result));

#endif
