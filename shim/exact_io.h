/*
 * Reads and writes of a socket of which another process knows, after this one was killed at any
 * instruction, whether and how many bytes they moved.
 *
 * recvmmsg(2) and sendmmsg(2), of one message whose struct mmsghdr lies in memory that outlives the
 * process: the kernel writes there how many bytes were moved before the call returns, and SIGKILL
 * ends a process no sooner than that. The page was written just before, so the kernel's own write
 * to it does not have to wait for memory, which is what SIGKILL could end.
 *
 * Each call has a number, one more than that of the call whose effects were stored last. The user
 * stores it in one with what it has made of the call's bytes, its commit; so whoever comes next
 * sees whether the last call is in there already.
 *
 *     exact_read() ──▶ effects of its bytes, exact_serial() ──commit──▶ exact_read() ──▶ ...
 *                  └── killed here: exact_unsettled() says how many bytes have no effects yet
 */
#ifndef SHIM_EXACT_IO_H
#define SHIM_EXACT_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Moved by one call. */
#define EXACT_BYTES_MAX ((size_t)1 << 30)

/* One direction of one socket, to be embedded in shared memory, all zero at first. Aligned, so that
 * it lies in one page. */
struct exact_io {
    /* private */
    _Alignas(64) struct mmsghdr call;
    uint32_t serial;
    uint32_t asked;
};

/*
 * As recv(2) and send(2) do without blocking and without SIGPIPE. `settled`: the number of the last
 * call whose effects were stored, 0 at first; exact_unsettled() is 0. What is read goes to shared
 * memory, too. The bytes moved; 0 for a peer that has ended it; or a negative errno, and none were.
 * What moved nothing need not be settled.
 */
ssize_t exact_read(struct exact_io *io, uint32_t settled, int fd, void *bytes, size_t len)
    __attribute__((warn_unused_result));
ssize_t exact_write(struct exact_io *io, uint32_t settled, int fd, const void *bytes, size_t len)
    __attribute__((warn_unused_result));

/* The same from `n` pieces, of EXACT_BYTES_MAX together at most. */
ssize_t exact_write_pieces(struct exact_io *io, uint32_t settled, int fd,
                           const struct iovec *pieces, int n) __attribute__((warn_unused_result));

/* The last call's number. */
uint32_t exact_serial(const struct exact_io *io);

/* How many bytes the call after `settled` has moved. 0: there was none, or it has not; -EUCLEAN:
 * that is no such number, or no such length. */
ssize_t exact_unsettled(const struct exact_io *io, uint32_t settled)
    __attribute__((warn_unused_result));

#endif
