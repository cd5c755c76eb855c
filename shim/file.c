#include "shim/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/path.h"

int file_read(int fd, void *out, size_t bytes, size_t *len)
{
    size_t have = 0;
    ssize_t n = 1;

    while (have < bytes && n != 0) {
        n = read(fd, (uint8_t *)out + have, bytes - have);
        if (n < 0 && errno != EINTR)
            return -errno;
        have += n > 0 ? (size_t)n : 0;
    }
    *len = have;
    return 0;
}

int file_read_text(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err;
    size_t len;

    if (fd < 0)
        return -errno;
    err = file_read(fd, text, bytes - 1, &len);
    close(fd);
    if (err)
        return err;
    text[len] = '\0';
    return (int)len;
}

int file_write(int fd, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, (const uint8_t *)bytes + done, len - done);

        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* What was renamed or removed in the directory of `path` is so after a power loss, too. */
static int sync_directory_of(const char *path)
{
    char *dir = path_beside(path, ".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

    if (fd < 0 || fsync(fd) < 0)
        err = -errno;
    if (fd >= 0)
        close(fd);
    free(dir);
    return err;
}

static int replace(const char *path, const void *bytes, size_t len, bool synced)
{
    char beside[PATH_MAX];
    int fd, err;

    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return -ENAMETOOLONG;
    unlink(beside);
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    err = file_write(fd, bytes, len);
    if (!err && synced && fsync(fd) < 0)
        err = -errno;
    if (close(fd) < 0 && !err)
        err = -errno;
    if (!err && rename(beside, path) < 0)
        err = -errno;
    if (err)
        unlink(beside);
    return err;
}

int file_replace(const char *path, const void *bytes, size_t len)
{
    return replace(path, bytes, len, false);
}

int file_replace_synced(const char *path, const void *bytes, size_t len)
{
    int err = replace(path, bytes, len, true);

    return err ? err : sync_directory_of(path);
}

int file_remove_synced(const char *path)
{
    if (unlink(path) < 0)
        return errno == ENOENT ? 0 : -errno;
    return sync_directory_of(path);
}
