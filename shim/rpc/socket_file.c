#include "shim/rpc/socket_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/directory.h"
#include "shim/rpc/unix_socket.h"

#define SOCKET_MODE 0600
#define BELOW_MODE 0750

int socket_file_init(struct socket_file *file, const struct socket_place *place)
{
    const char *below = place->below ? place->below : "";
    const char *dir = place->dir ? place->dir : place->name;
    const char *slash = place->dir ? NULL : strrchr(place->name, '/');
    const char *name = slash ? slash + 1 : place->name;

    *file = (struct socket_file){.dir_mode = place->dir_mode};
    file->dir = slash ? strndup(dir, (size_t)(slash - dir)) : strdup(dir);
    file->below = place->below ? strdup(place->below) : NULL;
    file->name = strdup(name);
    if (!file->dir ||
        asprintf(&file->path, "%s%s%s/%s", file->dir, *below ? "/" : "", below, name) < 0)
        file->path = NULL;
    if (file->dir && file->name && file->path && !place->below == !file->below)
        return 0;
    socket_file_fini(file);
    return -ENOMEM;
}

void socket_file_fini(struct socket_file *file)
{
    free(file->dir);
    free(file->below);
    free(file->name);
    free(file->path);
    *file = (struct socket_file){0};
}

const char *socket_file_path(const struct socket_file *file)
{
    return file->path;
}

/* ---- what stands there ---- */

static bool is_known(const struct socket_file *file, const struct stat *st)
{
    struct file_identity now = file_identity_of(st);

    return file->known && S_ISSOCK(st->st_mode) && file_identity_is(&now, &file->identity);
}

static void know(struct socket_file *file, const struct stat *st, bool ours)
{
    file->known = true;
    file->ours = ours;
    file->identity = file_identity_of(st);
}

bool socket_file_there(const struct socket_file *file)
{
    struct stat st;

    return file->known && lstat(file->path, &st) == 0 && is_known(file, &st);
}

/* ---- making ---- */

/* A descriptor of the directory in `dir`, which it closes; or a negative errno. */
static int open_below(int dir, const char *below)
{
    int fd = -1;

    if (mkdirat(dir, below, BELOW_MODE) == 0 || errno == EEXIST)
        fd = openat(dir, below, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        fd = -errno;
    close(dir);
    return fd;
}

static int open_directory(const struct socket_file *file)
{
    int fd = open(file->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return file->below ? open_below(fd, file->below) : fd;
}

int socket_file_make(struct socket_file *file, int *fd_out)
{
    int dir, fd, err = 0;
    struct stat st;

    if (!unix_path_fits(file->path))
        return -ENAMETOOLONG; /* others could not connect */
    if (file->dir_mode)
        err = directory_make(file->dir, file->dir_mode);
    if (err)
        return err;
    dir = open_directory(file);
    if (dir < 0)
        return dir;
    err = file->below ? unix_listen_at(dir, file->name, SOCKET_MODE, &fd)
                      : unix_listen(file->path, SOCKET_MODE, &fd);
    if (!err && fstatat(dir, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        err = -errno;
        close(fd);
    }
    close(dir);
    if (err)
        return err;
    know(file, &st, true);
    *fd_out = fd;
    return 0;
}

void socket_file_remove(struct socket_file *file)
{
    struct stat st;
    int dir = file->known && file->ours ? open_directory(file) : -1;

    if (dir < 0)
        return;
    if (fstatat(dir, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_known(file, &st))
        unlinkat(dir, file->name, 0);
    close(dir);
    file->known = false;
}

/* ---- handed over ---- */

void socket_file_tag(const struct socket_file *file, char tag[SOCKET_FILE_TAG_BYTES_MAX])
{
    const struct file_identity *made = &file->identity;

    snprintf(tag, SOCKET_FILE_TAG_BYTES_MAX, "%" PRIx64 "-%" PRIx64 "-%" PRIx64, made->device,
             made->inode, made->modified_ns);
}

bool socket_file_resume(struct socket_file *file, const char *tag)
{
    struct socket_file found = *file;
    char there[SOCKET_FILE_TAG_BYTES_MAX];
    struct stat st;

    if (lstat(file->path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    know(&found, &st, true);
    socket_file_tag(&found, there);
    if (strcmp(there, tag) != 0)
        return false;
    *file = found;
    return true;
}

/* ---- adopting ---- */

/* Who listens where a connection to the path leads: SO_PEERCRED of it. */
static int peer_at(const char *path, struct ucred *out)
{
    int fd = unix_connect(path), err;

    if (fd < 0)
        return fd;
    err = unix_peer(fd, out);
    close(fd);
    return err;
}

void socket_file_adopt(struct socket_file *file, int fd)
{
    struct ucred there, own;
    struct stat st;
    int err;

    if (lstat(file->path, &st) < 0 || !S_ISSOCK(st.st_mode) || unix_peer(fd, &own) < 0)
        return;
    err = peer_at(file->path, &there);
    /* A listening socket has the credentials that its clients see. With a full backlog nobody can
     * tell; but a socket nobody listens at would say so. */
    if (err == -EAGAIN || (!err && own.pid == there.pid && own.uid == there.uid))
        know(file, &st, false);
}
