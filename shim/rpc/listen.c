#include "shim/rpc/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void address_set(struct sockaddr_un *address, const char *path)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, strlen(path));
}

bool unix_path_fits(const char *path)
{
    size_t len = strlen(path);

    return len > 0 && len < sizeof((struct sockaddr_un *)NULL)->sun_path;
}

/* A descriptor, or a negative errno. */
static int stream_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd < 0 ? -errno : fd;
}

/* Whether somebody listens at the socket file: 0 if nobody does, -EADDRINUSE if so. */
static int probe_socket(const struct sockaddr_un *address)
{
    int fd = stream_socket(), err = 0;

    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) < 0)
        err = -errno;
    close(fd);
    switch (err) {
    case -ECONNREFUSED:
    case -ENOENT:
        return 0;
    case 0:
    case -EAGAIN:     /* its backlog is full */
    case -EPROTOTYPE: /* a datagram socket, served */
        return -EADDRINUSE;
    default:
        return err;
    }
}

static int remove_stale(const struct sockaddr_un *address)
{
    struct stat st;
    int err;

    if (lstat(address->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -EEXIST;
    err = probe_socket(address);
    if (err)
        return err;
    if (unlink(address->sun_path) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

static int bind_and_listen(int fd, const struct sockaddr_un *address, mode_t mode)
{
    /* bind(2) gives the file the mode of the socket's own inode, less the umask, so nobody can
     * connect in between; chmod gives back what the umask took. listen(2) follows bind(2) at once:
     * peers that watch the directory connect as soon as the name is there. */
    if (fchmod(fd, mode) < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) < 0)
        return -errno;
    if (listen(fd, SOMAXCONN) < 0 || chmod(address->sun_path, mode) < 0) {
        int err = -errno;

        unlink(address->sun_path);
        return err;
    }
    return 0;
}

int listen_unix(const char *path, mode_t mode, int *fd_out)
{
    struct sockaddr_un address;
    int fd, err;

    if (!path[0])
        return -EINVAL;
    if (!unix_path_fits(path))
        return -ENAMETOOLONG;
    address_set(&address, path);
    err = remove_stale(&address);
    if (err)
        return err;
    fd = stream_socket();
    if (fd < 0)
        return fd;
    err = bind_and_listen(fd, &address, mode);
    if (err) {
        close(fd);
        return err;
    }
    *fd_out = fd;
    return 0;
}

int unix_peer(int fd, struct ucred *out)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return -errno;
    *out = cred;
    return 0;
}
