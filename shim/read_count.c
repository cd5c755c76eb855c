#include "shim/read_count.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "shim/point.h"

/* A power of two, so that numbers that wrap round are the same modulo it; READ_COUNT_BYTES_MAX more
 * are still an int. */
#ifndef READ_COUNT_SPAN
#define READ_COUNT_SPAN (UINT32_C(1) << 29)
#endif

static int set(struct read_count *count, int fd, uint32_t left)
{
    int offset = (int)left;

    if (setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset) < 0)
        return -errno;
    count->left = left;
    return 0;
}

int read_count_init(struct read_count *count, int fd)
{
    return set(count, fd, READ_COUNT_SPAN);
}

ssize_t read_count_resume(struct read_count *count, int fd, uint64_t settled, size_t most)
{
    int offset;
    socklen_t len = sizeof offset;
    uint32_t beyond;

    if (getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, &len) < 0)
        return -errno;
    if (offset < 0) /* nobody has counted */
        return -EUCLEAN;
    beyond = (uint32_t)(0 - (uint64_t)offset - settled) % READ_COUNT_SPAN;
    if (beyond > most)
        return -EUCLEAN;
    count->left = (uint32_t)offset;
    return beyond;
}

ssize_t read_count_read(struct read_count *count, int fd, void *bytes, size_t len)
{
    ssize_t n;
    int r;

    assert(len <= READ_COUNT_BYTES_MAX);
    if (count->left < len) {
        POINT("low");
        r = set(count, fd, count->left + READ_COUNT_SPAN);
        if (r < 0)
            return r;
        POINT("raised");
    }
    n = recv(fd, bytes, len, MSG_DONTWAIT);
    POINT("read");
    if (n < 0)
        return -errno;
    count->left -= (uint32_t)n;
    return n;
}
