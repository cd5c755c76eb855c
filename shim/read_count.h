/*
 * Reads of a unix stream socket of which another process knows, after this one was killed at any
 * instruction, how many bytes they took: the kernel counts them in the socket itself.
 *
 * The count is the peek offset (SO_PEEK_OFF, socket(7)), by which nobody here peeks: once it is
 * set, it falls by each byte that is taken from the queue, in the call that takes it. It is the
 * socket's, so whoever has a descriptor of that sees the same. It costs nothing beside recv(2),
 * which is cheaper than recvmmsg(2) of one message (exact_io.h).
 *
 * The offset is an int and stops at 0, so it is raised by READ_COUNT_SPAN when it gets low. So what
 * it says is how many bytes were taken modulo READ_COUNT_SPAN, before that and after.
 *
 *     recv(2) ──▶ effects of its bytes, how many so far ──commit──▶ recv(2) ──▶ ...
 *             └── killed here: read_count_resume() says how many bytes have no effects yet
 */
#ifndef SHIM_READ_COUNT_H
#define SHIM_READ_COUNT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Taken by one call. */
#define READ_COUNT_BYTES_MAX ((size_t)64 * 1024)

/* To be embedded; of this process alone. */
struct read_count {
    /* private */
    uint32_t left; /* the socket's peek offset */
};

/* Nothing has been read from `fd` that counts. 0 or a negative errno: -EOPNOTSUPP for other
 * sockets.
 */
int read_count_init(struct read_count *count, int fd) __attribute__((warn_unused_result));

/*
 * Goes on with a socket of a process before this one, which has stored the effects of `settled`
 * bytes, and after that read once, `most` bytes at most, or not at all. How many bytes that took;
 * or a negative errno, -EUCLEAN: that is not so.
 */
ssize_t read_count_resume(struct read_count *count, int fd, uint64_t settled, size_t most)
    __attribute__((warn_unused_result));

/*
 * As recv(2) without blocking, or a negative errno. What is read goes to shared memory, and its
 * effects are stored, with how many bytes were read so far, before the next one. `len` is
 * READ_COUNT_BYTES_MAX at most.
 */
ssize_t read_count_read(struct read_count *count, int fd, void *bytes, size_t len)
    __attribute__((warn_unused_result));

#endif
