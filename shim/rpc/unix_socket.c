#include "shim/rpc/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/log.h"

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

/* ---- connecting ---- */

int unix_connect(const char *path)
{
    struct sockaddr_un address;
    int fd, err;

    if (!unix_path_fits(path))
        return -ENAMETOOLONG;
    address_set(&address, path);
    fd = stream_socket();
    if (fd < 0)
        return fd;
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

/* ---- listening ---- */

/* Whether somebody listens at the socket file: 0 if nobody does, -EADDRINUSE if so. */
static int probe_socket(const char *path)
{
    int fd = unix_connect(path);

    if (fd >= 0)
        close(fd);
    switch (fd) {
    case -ECONNREFUSED:
    case -ENOENT:
        return 0;
    case -EAGAIN:     /* its backlog is full */
    case -EPROTOTYPE: /* a datagram socket, served */
        return -EADDRINUSE;
    default:
        return fd < 0 ? fd : -EADDRINUSE;
    }
}

/* Where a socket's file is to be. */
struct place {
    int dir; /* opened: its name may be another's by now */
    const char *name;
    const char *path; /* for people */
    struct sockaddr_un address;
};

/* As in the kubelet's own directory for plugins what is in the way goes, but nothing is lost: a
 * symlink is removed, not what it leads to; a directory or a file only if there is nothing in it
 * (the kubelet makes such for a hostPath volume whose file is missing). */
static int remove_stray(const struct place *place, const struct stat *st)
{
    mode_t type = st->st_mode;
    bool directory = S_ISDIR(type);

    if (S_ISREG(type) && st->st_size > 0)
        return -EEXIST;
    if (unlinkat(place->dir, place->name, directory ? AT_REMOVEDIR : 0) < 0)
        return errno == ENOENT ? 0 : errno == EEXIST ? -ENOTEMPTY : -errno;
    if (!S_ISSOCK(type))
        log_warning("%s: %s was in the way of a socket, and was removed", place->path,
                    directory       ? "an empty directory"
                    : S_ISLNK(type) ? "a symbolic link"
                                    : "an empty file");
    return 0;
}

static int make_room(const struct place *place)
{
    struct stat st;
    int err;

    if (fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    err = S_ISSOCK(st.st_mode) ? probe_socket(place->address.sun_path) : 0;
    return err ? err : remove_stray(place, &st);
}

static int bind_and_listen(int fd, const struct place *place, mode_t mode)
{
    /* bind(2) gives the file the mode of the socket's own inode, less the umask: so nobody can
     * connect in between, and no name needs to be trusted for a chmod(2). listen(2) follows at
     * once: peers that watch the directory connect as soon as the name is there. */
    if (fchmod(fd, mode) < 0 ||
        bind(fd, (const struct sockaddr *)&place->address, sizeof place->address) < 0)
        return -errno;
    if (listen(fd, SOMAXCONN) < 0) {
        int err = -errno;

        unlinkat(place->dir, place->name, 0);
        return err;
    }
    return 0;
}

static int listen_place(const struct place *place, mode_t mode, int *fd_out)
{
    int fd, err = make_room(place);

    if (err)
        return err;
    fd = stream_socket();
    if (fd < 0)
        return fd;
    err = bind_and_listen(fd, place, mode);
    if (err) {
        close(fd);
        return err;
    }
    *fd_out = fd;
    return 0;
}

int unix_listen(const char *path, mode_t mode, int *fd_out)
{
    const char *slash = strrchr(path, '/');
    struct place place = {.name = slash ? slash + 1 : path, .path = path};
    char dir[sizeof place.address.sun_path + 1];
    int err;

    if (!*place.name)
        return -EINVAL;
    if (!unix_path_fits(path))
        return -ENAMETOOLONG;
    address_set(&place.address, path);
    snprintf(dir, sizeof dir, "%.*s", (int)(place.name - path), path);
    place.dir = open(slash ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place.dir < 0)
        return -errno;
    err = listen_place(&place, mode, fd_out);
    close(place.dir);
    return err;
}

int unix_listen_at(int dir, const char *name, mode_t mode, int *fd_out)
{
    struct place place = {.dir = dir, .name = name, .path = name};
    char path[PATH_MAX];

    /* There is no bindat(2). */
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dir, name);
    if (!*name || strchr(name, '/'))
        return -EINVAL;
    if (!unix_path_fits(path))
        return -ENAMETOOLONG;
    address_set(&place.address, path);
    return listen_place(&place, mode, fd_out);
}

/* ---- the other end ---- */

int unix_peer(int fd, struct ucred *out)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return -errno;
    *out = cred;
    return 0;
}
