#include "shim/events/events_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/events/limits.h"
#include "shim/file.h"
#include "shim/must.h"

static int size_of(int fd, size_t *size)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (st.st_size > (off_t)EVENTS_FILE_BYTES_MAX)
        return -EFBIG;
    *size = (size_t)st.st_size;
    return 0;
}

int events_file_read(const char *path, uint8_t **bytes, size_t *len)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err;
    size_t size;

    *bytes = NULL;
    *len = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    err = size_of(fd, &size);
    if (!err) {
        *bytes = must(malloc(size + 1)); /* never a malloc of nothing */
        err = file_read(fd, *bytes, size, len);
    }
    close(fd);
    if (err) {
        free(*bytes);
        *bytes = NULL;
    }
    return err;
}

int events_file_append(const char *path, size_t before, const uint8_t *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    size_t size;
    int err;

    if (fd < 0)
        return -errno;
    err = size_of(fd, &size);
    if (!err && size != before)
        err = -ESTALE;
    if (!err) {
        err = file_write(fd, bytes, len);
        if (err && ftruncate(fd, (off_t)before) < 0)
            err = -errno;
    }
    if (close(fd) < 0 && !err)
        err = -errno;
    return err;
}
