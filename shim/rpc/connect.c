#include "shim/rpc/connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/rpc/listen.h"

int unix_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, err;

    if (!unix_path_fits(path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    err = -errno;
    close(fd);
    return err;
}

int unix_connect_file(int file)
{
    char path[32];

    /* There is no connectat(2) that takes an O_PATH descriptor. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return unix_connect(path);
}
