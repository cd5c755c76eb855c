/*
 * A connected socket that another process can go on with after this one was killed, at any
 * instruction: each byte is read once and written once, and what was made of those read is known.
 *
 * What goes on lies in a memfd: two copies of the state, the user's part and the bytes to be
 * written in each, and which of them counts. A change is made in the copy that does not, and one
 * store makes it count: all of a change, or nothing of it. SIGKILL stops a process between two
 * instructions, so the order of stores is all that matters.
 *
 * Reads and writes are exact (shim/exact_io.h): what they moved is committed with the number of the
 * call, and a process that comes next begins with what the last call moved and nobody committed.
 *
 * What is long lies in areas beside the copies, of which there is one: it is written before a state
 * that says so counts, and left alone as long as such a state does.
 *
 * Descriptors that must be kept: the socket and the memfd. They are of this boot. The memory says
 * itself how the state lies in it (kept_layout.h): a process of a release that has other fields, or
 * has them elsewhere, copies what is there into an image of its own, of which there are two places,
 * and one store makes that count. So there is no moment at which such a process must not be killed,
 * and none at which the one before must not have been.
 */
#ifndef SHIM_BRIDGE_KEPT_SOCKET_H
#define SHIM_BRIDGE_KEPT_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/bridge/kept_layout.h"

/* Read in one piece. */
#define KEPT_READ_BYTES_MAX ((size_t)16 * 1024)
/* Waiting to be written. */
#define KEPT_OUT_BYTES_MAX ((size_t)64 * 1024)
/* Written in one piece. */
#define KEPT_WRITE_BYTES_MAX ((size_t)16 * 1024)
/* So many processes in a row that went on with it and died before kept_socket_settled(): it may be
 * its state that kills, and the next one ends it. */
#define KEPT_TAKEOVERS_MAX 8

enum kept_descriptor {
    KEPT_SOCKET,
    KEPT_MEMORY,
    KEPT_DESCRIPTORS,
};

struct kept_socket;

/* The user's part of the state, of `bytes`: its fields, in relation to its beginning, with tags
 * below KEPT_USER_TAGS; a number that says what they mean; and so many areas, each of so many bytes
 * up to KEPT_AREA_BYTES_MAX, which take memory once they are used. Another release may have more of
 * them, or larger ones: they stay where they are. */
#define KEPT_USER_TAGS 0x1000
#define KEPT_AREA_BYTES_MAX ((size_t)64 * 1024 * 1024)
struct kept_state {
    size_t bytes;
    uint32_t format;
    const struct kept_field *fields;
    size_t fields_len;
    void (*copy)(void *to, const void *from); /* what counts of it; NULL: all */
    size_t areas;
    size_t area_bytes;
};

/* Takes `fd`, a connected unix stream socket, only on success. The user's state is zeroed. 0 or a
 * negative errno. */
int kept_socket_new(int fd, const struct kept_state *state, struct kept_socket **out)
    __attribute__((warn_unused_result));

/* Goes on with descriptors that were kept, which are taken only on success. 0; -ESTALE: of another
 * format, or another socket's, or it holds what has no place here; -EUCLEAN: what it holds makes no
 * sense; -ELOOP: see KEPT_TAKEOVERS_MAX; or a negative errno. After a failure the connection is to
 * be ended: shutdown(2). */
int kept_socket_resume(const int fds[KEPT_DESCRIPTORS], const struct kept_state *state,
                       struct kept_socket **out) __attribute__((warn_unused_result));

/* This process has seen its state, and lives. */
void kept_socket_settled(struct kept_socket *kept);

/* Closes this process' descriptors. Accepts NULL. */
void kept_socket_free(struct kept_socket *kept);
/* The same, but for the socket: it is the caller's. */
void kept_socket_give_back(struct kept_socket *kept);

/* The socket's number in this boot: no other has it. */
uint64_t kept_socket_cookie(const struct kept_socket *kept);
int kept_socket_fd(const struct kept_socket *kept, enum kept_descriptor which);

/* ---- the state ---- */

/* As it counts. Borrowed until the next kept_socket_ call. */
const void *kept_socket_state(const struct kept_socket *kept);

/* A change: kept_socket_edit() gives the user's part of a copy; kept_socket_put() adds bytes to be
 * written; kept_socket_commit() makes all of it count, kept_socket_abandon() nothing. Between them
 * nothing else may be called but for the next two. kept_socket_room(): for so many bytes there is
 * room. */
void *kept_socket_edit(struct kept_socket *kept);
size_t kept_socket_room(const struct kept_socket *kept);
void kept_socket_put(struct kept_socket *kept, const void *bytes, size_t len);
void kept_socket_commit(struct kept_socket *kept);
void kept_socket_abandon(struct kept_socket *kept);

/* An area, the same as long as this process has it. NULL: no memory. */
uint8_t *kept_socket_area(struct kept_socket *kept, size_t i);
/* What is in it is of no use any more; its memory is given back if that is worth it. */
void kept_socket_discard(struct kept_socket *kept, size_t i);

/* ---- the socket ---- */

/* What is made of bytes that have come: changes `state`, which was given by kept_socket_edit(), and
 * may call kept_socket_put(). */
typedef void kept_socket_eat(struct kept_socket *kept, void *state, const uint8_t *bytes,
                             size_t len, void *user);

/* Reads what there is, in one piece: after kept_socket_resume() perhaps from a read before, so that
 * it must be called without waiting for the socket. Its length; 0: the peer has ended it; -EAGAIN:
 * nothing; or another negative errno, after which it is to be ended. */
int kept_socket_read(struct kept_socket *kept, kept_socket_eat *eat, void *user)
    __attribute__((warn_unused_result));

/* Writes what waits. 0: all of it; -EAGAIN: the socket takes no more now; or another negative
 * errno, likewise. */
int kept_socket_write(struct kept_socket *kept) __attribute__((warn_unused_result));

#endif
