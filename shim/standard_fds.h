/*
 * Who is started with stdin, stdout or stderr closed would have the next file or socket that is
 * opened in its place: words for people would go into that, and libuv aborts when it closes one.
 */
#ifndef SHIM_STANDARD_FDS_H
#define SHIM_STANDARD_FDS_H

#include <fcntl.h>
#include <unistd.h>

/* Before anything else is opened. In the place of what is closed nothing is read, and what is
 * written fails with EBADF as it would have. */
static inline void standard_fds_open(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

#endif
