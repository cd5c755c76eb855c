#include "shim/plugins/plugin_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/rpc/unix_socket.h"

/* NULL, or what is wrong with the file. What a symlink points to may be another's. */
static const char *check_file(const struct stat *st, uid_t uid)
{
    if (S_ISLNK(st->st_mode))
        return "it is a symlink; expected a socket";
    if (!S_ISSOCK(st->st_mode))
        return "it is no socket";
    if (st->st_uid != 0 && st->st_uid != uid)
        return "it belongs to neither root nor the user who registered";
    return NULL;
}

static int check_peer(int fd, uid_t uid, const char **wrong)
{
    struct ucred peer;
    int err = unix_peer(fd, &peer);

    if (err || peer.uid == 0 || peer.uid == uid)
        return err;
    *wrong = "it is served by neither root nor the user who registered";
    return -EACCES;
}

static int connect_file(int file, uid_t uid, const char **wrong)
{
    struct stat st;
    int fd, err;

    if (fstat(file, &st) < 0)
        return -errno;
    *wrong = check_file(&st, uid);
    if (*wrong)
        return -EACCES;
    fd = unix_connect_file(file);
    if (fd < 0)
        return fd;
    err = check_peer(fd, uid, wrong);
    if (!err)
        return fd;
    close(fd);
    return err;
}

int plugin_socket_connect(const char *path, uid_t uid, const char **wrong)
{
    int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd;

    *wrong = NULL;
    if (file < 0)
        return -errno;
    fd = connect_file(file, uid, wrong);
    close(file);
    return fd;
}
