#include "shim/exact_io.h"

#include <assert.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A test may end the process here. */
#ifndef EXACT_IO_POINT
#define EXACT_IO_POINT(name) ((void)0)
#endif

/* In the place of a length: the kernel has not written one. */
#define NOTHING UINT32_MAX

/* What was stored before is there when this is: the compiler must not turn them round. */
static void store(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/* Not by the C library: one that translates the header would let the kernel write elsewhere. */
static ssize_t move(struct exact_io *io, uint32_t settled, long number, int fd, struct iovec *bytes)
{
    long moved;

    assert(exact_unsettled(io, settled) == 0);
    if (bytes->iov_len > EXACT_BYTES_MAX)
        bytes->iov_len = EXACT_BYTES_MAX;
    io->call.msg_hdr = (struct msghdr){.msg_iov = bytes, .msg_iovlen = 1};
    io->asked = (uint32_t)bytes->iov_len;
    store(&io->call.msg_len, NOTHING);
    EXACT_IO_POINT("forgotten");
    store(&io->serial, settled + 1);
    EXACT_IO_POINT("begun");
    moved = syscall(number, fd, &io->call, 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL);
    EXACT_IO_POINT("moved");
    return moved < 0 ? -errno : (ssize_t)__atomic_load_n(&io->call.msg_len, __ATOMIC_ACQUIRE);
}

ssize_t exact_read(struct exact_io *io, uint32_t settled, int fd, void *bytes, size_t len)
{
    return move(io, settled, SYS_recvmmsg, fd, &(struct iovec){bytes, len});
}

ssize_t exact_write(struct exact_io *io, uint32_t settled, int fd, const void *bytes, size_t len)
{
    return move(io, settled, SYS_sendmmsg, fd, &(struct iovec){(void *)bytes, len});
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
