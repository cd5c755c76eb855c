#include "shim/exact_io.h"

#include <assert.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/point.h"

/* In the place of a length: the kernel has not written one. */
#define NOTHING UINT32_MAX

/* What was stored before is there when this is: the compiler must not turn them round. */
static void store(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/* Not by the C library: one that translates the header would let the kernel write elsewhere. */
static ssize_t move(struct exact_io *io, uint32_t settled, long number, int fd,
                    const struct iovec *pieces, int n)
{
    size_t bytes = 0;
    long moved;

    assert(exact_unsettled(io, settled) == 0);
    for (int i = 0; i < n; i++)
        bytes += pieces[i].iov_len;
    assert(bytes <= EXACT_BYTES_MAX);
    io->call.msg_hdr = (struct msghdr){.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)n};
    io->asked = (uint32_t)bytes;
    store(&io->call.msg_len, NOTHING);
    POINT("forgotten");
    store(&io->serial, settled + 1);
    POINT("begun");
    moved = syscall(number, fd, &io->call, 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL);
    POINT("moved");
    return moved < 0 ? -errno : (ssize_t)__atomic_load_n(&io->call.msg_len, __ATOMIC_ACQUIRE);
}

ssize_t exact_read(struct exact_io *io, uint32_t settled, int fd, void *bytes, size_t len)
{
    len = len < EXACT_BYTES_MAX ? len : EXACT_BYTES_MAX;
    return move(io, settled, SYS_recvmmsg, fd, &(struct iovec){bytes, len}, 1);
}

ssize_t exact_write(struct exact_io *io, uint32_t settled, int fd, const void *bytes, size_t len)
{
    len = len < EXACT_BYTES_MAX ? len : EXACT_BYTES_MAX;
    return move(io, settled, SYS_sendmmsg, fd, &(struct iovec){(void *)bytes, len}, 1);
}

ssize_t exact_write_pieces(struct exact_io *io, uint32_t settled, int fd,
                           const struct iovec *pieces, int n)
{
    return move(io, settled, SYS_sendmmsg, fd, pieces, n);
}

uint32_t exact_serial(const struct exact_io *io)
{
    return io->serial;
}

ssize_t exact_unsettled(const struct exact_io *io, uint32_t settled)
{
    if (io->serial == settled)
        return 0;
    if (io->serial != settled + 1 || io->asked > EXACT_BYTES_MAX)
        return -EUCLEAN;
    if (io->call.msg_len == NOTHING)
        return 0;
    return io->call.msg_len <= io->asked ? (ssize_t)io->call.msg_len : -EUCLEAN;
}
