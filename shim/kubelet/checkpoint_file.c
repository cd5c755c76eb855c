#include "shim/kubelet/checkpoint_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/file.h"

static int read_text(int fd, const struct stat *st, char **text, size_t *len, char *err,
                     size_t err_bytes)
{
    int r;

    if (!S_ISREG(st->st_mode)) {
        snprintf(err, err_bytes, "it is no file");
        return -1;
    }
    if ((uint64_t)st->st_size > KUBELET_CHECKPOINT_BYTES_MAX) {
        snprintf(err, err_bytes, "it has %lld bytes, more than the %u that are read",
                 (long long)st->st_size, KUBELET_CHECKPOINT_BYTES_MAX);
        return -1;
    }
    *text = malloc((size_t)st->st_size + 1);
    if (!*text) {
        snprintf(err, err_bytes, "no memory for its %lld bytes", (long long)st->st_size);
        return -1;
    }
    r = file_read(fd, *text, (size_t)st->st_size, len);
    if (r < 0)
        snprintf(err, err_bytes, "%s", strerror(-r));
    return r;
}

static enum kubelet_file_state parse_file(int fd, struct kubelet_checkpoint *out, time_t *written,
                                          char *err, size_t err_bytes)
{
    enum kubelet_file_state state = KUBELET_FILE_READ;
    struct stat st;
    char *text = NULL;
    size_t len = 0;

    if (fstat(fd, &st) < 0) {
        snprintf(err, err_bytes, "%s", strerror(errno));
        return KUBELET_FILE_UNREADABLE;
    }
    if (read_text(fd, &st, &text, &len, err, err_bytes) < 0)
        state = KUBELET_FILE_UNREADABLE;
    else if (kubelet_checkpoint_parse(text, len, out, err, err_bytes) < 0)
        state = KUBELET_FILE_DAMAGED;
    else
        *written = st.st_mtime;
    free(text);
    return state;
}

enum kubelet_file_state checkpoint_file_read(const char *path, struct kubelet_checkpoint *out,
                                             time_t *written, char *err, size_t err_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum kubelet_file_state state;

    if (fd < 0) {
        state =
            errno == ENOENT || errno == ENOTDIR ? KUBELET_FILE_MISSING : KUBELET_FILE_UNREADABLE;
        snprintf(err, err_bytes, "%s", strerror(errno));
        return state;
    }
    state = parse_file(fd, out, written, err, err_bytes);
    close(fd);
    return state;
}
